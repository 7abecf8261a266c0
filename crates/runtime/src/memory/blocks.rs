//! Blocks of memory for arrays: made, counted, kept for the next use, given to the caller.

use super::{charge, credit, Thread, THREAD};
use crate::cells;
use crate::process::prefer_large_pages;
use crate::slot::Slot;
use std::alloc::{alloc, dealloc, Layout};
use std::ptr::null_mut;

/// What stands before the data of an array. 64 bytes, so that the data is aligned for vectors.
#[repr(C, align(64))]
pub struct Block {
    /// None, while it waits for the next use.
    pub holders: i64,
    /// Of the data that follows.
    bytes: usize,
    class: usize,
    /// Of those that wait.
    next: *mut Block,
    /// Its neighbours among the blocks of its thread; one that the caller has is of none.
    pub(super) earlier: *mut Block,
    later: *mut Block,
    /// How many elements are boxes; none, while it waits.
    pub(crate) boxes: i64,
}

/// Blocks that nobody holds are kept for the next use up to this many bytes together.
const KEPT: usize = 256 << 20;

pub(super) const CLASSES: usize = 256;

/// Sizes in units of 64 bytes are rounded up to m * 2^s with m from 5 to 8: four classes for each power of two.
fn class_of(bytes: usize) -> usize {
    let units = bytes.div_ceil(64).max(1);
    if units <= 4 {
        return units;
    }
    let s = 61 - (units - 1).leading_zeros() as usize;
    4 * s + ((units - 1) >> s) + 1
}

fn class_bytes(class: usize) -> usize {
    if class <= 4 {
        return 64 * class;
    }
    let s = (class - 5) / 4;
    64 * ((class - 4 * s) << s)
}

/// Sizes come from [`class_bytes`], which gives multiples of 64 far below the limit of a layout once they were allocated.
fn layout(bytes: usize) -> Layout {
    unsafe { Layout::from_size_align_unchecked(size_of::<Block>() + bytes, 64) }
}

/// A block for so many bytes, held once; null if there is no memory.
///
/// # Safety
/// See [`super::abandon`].
pub unsafe extern "C" fn allocate(thread: *mut Thread, bytes: i64) -> *mut Block {
    let Ok(bytes) = usize::try_from(bytes) else { return null_mut() };
    if bytes > isize::MAX as usize / 4 {
        return null_mut();
    }
    let class = class_of(bytes);
    unsafe {
        let block = (*thread).waiting[class];
        if block.is_null() {
            return allocate_new(thread, class);
        }
        let Block { bytes, next, .. } = *block;
        if !charge(thread, bytes) {
            return null_mut();
        }
        (*thread).waiting[class] = next;
        (*thread).waiting_bytes -= bytes;
        (*block).holders = 1;
        block
    }
}

/// The same where none waits.
#[cold]
unsafe fn allocate_new(thread: *mut Thread, class: usize) -> *mut Block {
    let bytes = class_bytes(class);
    unsafe {
        // No memory is asked for beyond the limit.
        if !charge(thread, bytes) {
            return null_mut();
        }
        let block: *mut Block = alloc(layout(bytes)).cast();
        if block.is_null() {
            credit(thread, bytes);
            return null_mut();
        }
        prefer_large_pages(block.cast(), bytes);
        let (next, earlier, later) = (null_mut(), null_mut(), null_mut());
        block.write(Block { holders: 1, bytes, class, next, earlier, later, boxes: 0 });
        link(thread, block);
        block
    }
}

/// So many blocks, each as [`allocate`] gives it, to an address; whether there was memory for all.
///
/// # Safety
/// See [`super::abandon`]; there is room for the addresses of the blocks.
pub unsafe extern "C" fn allocate_several(thread: *mut Thread, bytes: i64, number: i64, to: *mut *mut Block) -> i64 {
    for i in 0..number {
        unsafe {
            let block = allocate(thread, bytes);
            if block.is_null() {
                return 0;
            }
            to.add(i as usize).write(block);
        }
    }
    1
}

/// The block becomes one of the thread's.
unsafe fn link(thread: *mut Thread, block: *mut Block) {
    unsafe {
        let earlier = std::mem::replace(&mut (*thread).last, block);
        (*block).earlier = earlier;
        (*block).later = null_mut();
        if !earlier.is_null() {
            (*earlier).later = block;
        }
    }
}

/// The block is no longer one of the thread's.
unsafe fn unlink(thread: *mut Thread, block: *mut Block) {
    unsafe {
        let Block { earlier, later, .. } = *block;
        match later.as_mut() {
            Some(later) => later.earlier = earlier,
            None => (*thread).last = earlier,
        }
        if let Some(earlier) = earlier.as_mut() {
            earlier.later = later;
        }
    }
}

/// Gives the memory of a block of the thread back.
unsafe fn give_back(thread: *mut Thread, block: *mut Block) {
    unsafe {
        unlink(thread, block);
        dealloc(block.cast(), layout((*block).bytes));
    }
}

/// # Safety
/// The thread must be this one, and run no code.
pub(super) unsafe fn free_waiting(thread: &mut Thread) {
    for class in 0..CLASSES {
        let mut block = std::mem::replace(&mut thread.waiting[class], null_mut());
        while !block.is_null() {
            unsafe {
                let next = (*block).next;
                give_back(thread, block);
                block = next;
            }
        }
    }
    thread.waiting_bytes = 0;
}

/// Keeps a block of the thread, that nobody holds, for the next use.
unsafe fn keep(thread: *mut Thread, block: *mut Block) {
    unsafe {
        let Block { bytes, class, .. } = *block;
        if (*thread).waiting_bytes + bytes > KEPT {
            return give_back(thread, block);
        }
        (*thread).waiting_bytes += bytes;
        let waiting = &mut (*thread).waiting[class];
        (*block).next = *waiting;
        *waiting = block;
    }
}

/// When the last holder has let go.
///
/// # Safety
/// The block must be one of the running call that nobody holds.
pub unsafe extern "C" fn free(thread: *mut Thread, block: *mut Block) {
    unsafe {
        if (*block).boxes > 0 {
            return cells::free_block(thread, block);
        }
        recycle(thread, block);
    }
}

/// The same without regard to the elements.
pub(crate) unsafe fn recycle(thread: *mut Thread, block: *mut Block) {
    unsafe {
        credit(thread, (*block).bytes);
        (*block).holders = 0;
        (*block).boxes = 0;
        keep(thread, block);
    }
}

/// A new block with a copy of so many bytes; null if there is no memory.
///
/// # Safety
/// There must be so many bytes at `data`.
pub unsafe extern "C" fn copy(thread: *mut Thread, data: *const u8, bytes: i64) -> *mut Block {
    unsafe {
        let block = allocate(thread, bytes);
        if !block.is_null() && bytes > 0 {
            std::ptr::copy_nonoverlapping(data, data_of(block), bytes as usize);
        }
        block
    }
}

unsafe fn data_of(block: *mut Block) -> *mut u8 {
    unsafe { block.add(1).cast() }
}

/// The block of an array of numbers, so many bytes at `data`, and of `others` more bytes behind them: that of the array, which is taken over if it is not
/// null, if nobody else holds it and there is room. Null if there is no memory.
///
/// # Safety
/// There must be so many bytes at `data` and at `more`; the block must be null or that of the data.
pub unsafe extern "C" fn extend(
    thread: *mut Thread,
    data: *const u8,
    block: *mut Block,
    bytes: i64,
    more: *const u8,
    others: i64,
) -> *mut Block {
    unsafe {
        let needed = bytes.saturating_add(others);
        let is_sole = !block.is_null() && (*block).holders == 1 && data == data_of(block);
        let extended = match is_sole && needed as usize <= (*block).bytes {
            true => block,
            false => allocate(thread, needed),
        };
        if extended.is_null() {
            return extended;
        }
        if extended != block && bytes > 0 {
            std::ptr::copy_nonoverlapping(data, data_of(extended), bytes as usize);
        }
        if others > 0 {
            std::ptr::copy_nonoverlapping(more, data_of(extended).add(bytes as usize), others as usize);
        }
        if extended != block && !block.is_null() {
            (*block).holders -= 1;
            if (*block).holders == 0 {
                free(thread, block);
            }
        }
        extended
    }
}

/// The block of a growing array of `count` elements of `width` bytes, with room for one more; the old block is let go if it is
/// another. Elements move as they are, boxes too. Null if there is no memory.
///
/// # Safety
/// The block must be null for no elements yet, or come from here and be held by nobody else.
pub unsafe extern "C" fn grow(thread: *mut Thread, block: *mut Block, count: i64, width: i64) -> *mut Block {
    unsafe {
        let used = count.saturating_mul(width);
        let needed = used.saturating_add(width);
        if !block.is_null() && needed as usize <= (*block).bytes {
            return block;
        }
        let fresh = allocate(thread, needed.saturating_mul(2));
        if !fresh.is_null() && !block.is_null() {
            std::ptr::copy_nonoverlapping(data_of(block), data_of(fresh), used as usize);
            recycle(thread, block);
        }
        fresh
    }
}

/// The block of a result: itself, or a copy if it is also held elsewhere or is a part of a larger array. Null if there is no memory.
///
/// # Safety
/// The block must be null or that of the data, of which there must be so many bytes.
pub unsafe extern "C" fn settle(thread: *mut Thread, block: *mut Block, data: *const u8, bytes: i64) -> *mut Block {
    unsafe {
        if !block.is_null() && (*block).holders == 1 && data == data_of(block) {
            return block;
        }
        let fresh = copy(thread, data, bytes);
        if !fresh.is_null() && !block.is_null() {
            (*block).holders -= 1;
            if (*block).holders == 0 {
                free(thread, block);
            }
        }
        fresh
    }
}

/// Gives a settled block to the caller of compiled code.
///
/// # Safety
/// The block must come from [`settle`].
pub unsafe extern "C" fn hand_over(thread: *mut Thread, block: *mut Block, slot: *mut Slot) {
    unsafe {
        credit(thread, (*block).bytes);
        unlink(thread, block);
        (*slot).value.data = data_of(block).cast();
        (*slot).owner = block.cast();
    }
}

/// Takes back what [`hand_over`] gave.
///
/// # Safety
/// The slot must come from there.
pub unsafe extern "C" fn release(slot: *mut Slot) {
    unsafe {
        let block: *mut Block = (*slot).owner.cast();
        if !block.is_null() {
            (*slot).owner = null_mut();
            THREAD.with(|own| {
                (*block).holders = 0;
                link(own.0.get(), block);
                keep(own.0.get(), block);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_sizes() {
        for bytes in (0..5000).chain((12..50).flat_map(|s| [(1_usize << s) - 1, 1 << s, (1 << s) + 1])) {
            let class = class_of(bytes);
            assert!(class_bytes(class) >= bytes && class_of(class_bytes(class)) == class, "{bytes}");
            assert!(class <= 4 || class_bytes(class - 1) < bytes, "{bytes}");
        }
    }
}
