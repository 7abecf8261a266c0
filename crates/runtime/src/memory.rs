//! Array memory of code made inside the process: blocks counted by their holders, and what a running call may use.
//!
//! The C backend has the same in C, in its prelude. Compiled code reads [`Block::holders`], [`Thread::fuel`] and
//! [`Thread::stack_end`] itself, at the offsets below.

use crate::cells::{self, Cells};
use crate::chunks::Shared;
use crate::process::prefer_large_pages;
use crate::slot::{Kind, Limits, Slot};
use crate::tape::Tape;
use std::alloc::{alloc, dealloc, Layout};
use std::cell::UnsafeCell;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering;

/// What stands before the data of an array. 64 bytes, so that the data is aligned for vectors.
#[repr(C, align(64))]
pub struct Block {
    pub holders: i64,
    /// Of the data that follows.
    bytes: usize,
    /// Of the list in which it is: of the blocks of the running call, or of those that wait for the next use.
    next: *mut Block,
    previous: *mut Block,
    /// How many elements are boxes.
    pub(crate) boxes: i64,
}

/// From a block to its data.
pub const DATA: i64 = size_of::<Block>() as i64;
pub const FUEL_OFFSET: i32 = std::mem::offset_of!(Thread, fuel) as i32;
pub(crate) const CELLS_OFFSET: usize = std::mem::offset_of!(Thread, cells);
pub const STACK_END_OFFSET: i32 = std::mem::offset_of!(Thread, stack_end) as i32;
/// Where the tape ends now, and where what there is of it ends.
pub const TAPE_AT_OFFSET: i32 = (std::mem::offset_of!(Thread, tape) + std::mem::offset_of!(Tape, at)) as i32;
pub const TAPE_END_OFFSET: i32 = (std::mem::offset_of!(Thread, tape) + std::mem::offset_of!(Tape, end)) as i32;

/// Steps between looks at the interrupt.
const LOOK_EVERY: i64 = 1 << 20;
/// The same while better code is being made.
const LOOK_SOON: i64 = 1 << 16;

fn until_look(limits: &Limits) -> i64 {
    if limits.replaced.is_null() {
        LOOK_EVERY
    } else {
        LOOK_SOON
    }
}

/// Blocks that nobody holds are kept for the next use up to this many bytes together.
const KEPT: usize = 256 << 20;
/// The same on threads that only run chunks of loops, of which there may be many.
const KEPT_BY_OTHERS: usize = 32 << 20;

/// What compiled code uses on one thread.
#[repr(C)]
pub struct Thread {
    /// Steps until [`look`] must be called: loop iterations and calls of recursive functions.
    fuel: i64,
    /// Recursive functions fail when the stack pointer is below this.
    stack_end: usize,
    tape: Tape,
    /// Steps that are left besides `fuel`.
    rest: i64,
    limits: Limits,
    /// Of a loop that runs in chunks on several threads, of which this is one.
    shared: *const Shared,
    /// Then: what `fuel` was when it was last taken from the steps that they share.
    given: i64,
    /// Bytes of the blocks in `live`, and of the chunks of cells.
    used: usize,
    live: *mut Block,
    waiting: [*mut Block; CLASSES],
    waiting_bytes: usize,
    cells: Cells,
}

const CLASSES: usize = 256;

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

struct Own(UnsafeCell<Thread>);

impl Drop for Own {
    fn drop(&mut self) {
        unsafe { free_waiting(self.0.get_mut()) };
    }
}

/// # Safety
/// See [`free_list`].
unsafe fn free_waiting(thread: &mut Thread) {
    for list in &mut thread.waiting {
        unsafe { free_list(std::mem::replace(list, null_mut())) };
    }
    thread.waiting_bytes = 0;
}

/// # Safety
/// The blocks of the list must be in no other list, and nobody may hold them.
unsafe fn free_list(mut block: *mut Block) {
    while !block.is_null() {
        unsafe {
            let next = (*block).next;
            dealloc(block.cast(), layout((*block).bytes));
            block = next;
        }
    }
}

thread_local! {
    static THREAD: Own = const {
        Own(UnsafeCell::new(Thread {
            fuel: 0,
            stack_end: 0,
            tape: Tape::new(),
            rest: 0,
            limits: Limits::NONE,
            shared: null(),
            given: 0,
            used: 0,
            live: null_mut(),
            waiting: [null_mut(); CLASSES],
            waiting_bytes: 0,
            cells: Cells::new(),
        }))
    };
}

/// Sizes come from [`class_bytes`], which gives multiples of 64 far below the limit of a layout once they were allocated.
fn layout(bytes: usize) -> Layout {
    unsafe { Layout::from_size_align_unchecked(size_of::<Block>() + bytes, 64) }
}

/// Sets the limits of the calls that follow on this thread; null: none.
///
/// # Safety
/// The pointer must be null or valid, and so must be the flag it points to until the limits are changed.
pub unsafe extern "C" fn set_limits(limits: *const Limits) {
    THREAD.with(|own| unsafe {
        (*own.0.get()).limits = if limits.is_null() { Limits::NONE } else { *limits };
    })
}

/// At the start of a call that can fail.
pub extern "C" fn enter() -> *mut Thread {
    let here = 0_u8;
    THREAD.with(|own| {
        let thread = own.0.get();
        // Nobody else has a reference: compiled code has only the pointer, and this function has no other caller at work.
        unsafe {
            let limits = (*thread).limits;
            (*thread).stack_end = (&raw const here as usize).saturating_sub(limits.stack.max(0) as usize);
            (*thread).used = 0;
            (*thread).tape.reset();
            (*thread).fuel = limits.steps.min(until_look(&limits));
            (*thread).rest = limits.steps - (*thread).fuel;
        }
        thread
    })
}

/// How many blocks calls on this thread have left behind: none, if compiled code frees what it makes.
pub fn left_behind() -> usize {
    THREAD.with(|own| {
        // No compiled code runs now, so nobody else looks at the list.
        let mut block = unsafe { (*own.0.get()).live };
        let mut count = 0;
        while !block.is_null() {
            count += 1;
            block = unsafe { (*block).next };
        }
        count
    })
}

/// After a failure: frees what the call had.
///
/// # Safety
/// The thread must come from [`enter`], here and below.
pub unsafe extern "C" fn abandon(thread: *mut Thread) {
    unsafe {
        while !(*thread).live.is_null() {
            recycle(thread, (*thread).live);
        }
        (*thread).cells.reset();
    }
}

/// At the end of a call that had cells: frees those of its results, with the arrays in them. What else it gives has been handed over.
///
/// # Safety
/// See [`abandon`]; nobody may look at a cell any more.
pub unsafe extern "C" fn leave(thread: *mut Thread) {
    unsafe { abandon(thread) };
}

pub(crate) unsafe fn cells<'a>(thread: *mut Thread) -> &'a mut Cells {
    unsafe { &mut (*thread).cells }
}

pub(crate) unsafe fn tape<'a>(thread: *mut Thread) -> &'a mut Tape {
    unsafe { &mut (*thread).tape }
}

/// Counts bytes against the limit.
pub(crate) unsafe fn charge(thread: *mut Thread, bytes: usize) -> bool {
    unsafe {
        let limit = (*thread).limits.memory.max(0) as usize;
        let used = (*thread).used.saturating_add(bytes);
        let fits = match shared_memory(thread) {
            None => used <= limit,
            Some(shared) => {
                let all = shared.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
                if all > limit {
                    shared.used.fetch_sub(bytes, Ordering::Relaxed);
                }
                all <= limit
            }
        };
        if fits {
            (*thread).used = used;
        }
        fits
    }
}

/// The opposite of [`charge`].
unsafe fn credit(thread: *mut Thread, bytes: usize) {
    unsafe {
        (*thread).used -= bytes;
        if let Some(shared) = shared_memory(thread) {
            shared.used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// Where bytes are counted that several threads use together, if they are limited.
unsafe fn shared_memory<'a>(thread: *mut Thread) -> Option<&'a Shared> {
    unsafe { (*thread).shared.as_ref().filter(|_| (*thread).limits.memory != i64::MAX) }
}

/// Steps and bytes: what is left of the one, and used of the other.
pub(crate) unsafe fn left(thread: *mut Thread) -> (i64, usize) {
    unsafe { ((*thread).fuel + (*thread).rest, (*thread).used) }
}

pub(crate) unsafe fn limits(thread: *mut Thread) -> Limits {
    unsafe { (*thread).limits }
}

pub(crate) unsafe fn is_shared(thread: *mut Thread) -> bool {
    unsafe { !(*thread).shared.is_null() }
}

/// The thread of a call begins a loop with others.
pub(crate) unsafe fn share(thread: *mut Thread, shared: *const Shared) {
    unsafe {
        (*thread).shared = shared;
        (*thread).fuel = 0;
        (*thread).given = 0;
    }
}

/// The loop is over, and so many steps are left.
pub(crate) unsafe fn unshare(thread: *mut Thread, steps: i64) {
    unsafe {
        (*thread).shared = null();
        (*thread).fuel = steps.min(until_look(&(*thread).limits));
        (*thread).rest = steps - (*thread).fuel;
    }
}

/// A thread begins a chunk of a loop: that of the call itself, or another one, which takes over the limits of the call.
pub(crate) unsafe fn join(caller: *mut Thread, limits: Limits, shared: *const Shared) -> *mut Thread {
    let here = 0_u8;
    THREAD.with(|own| {
        let thread = own.0.get();
        // Its own state, or that of another thread, which nobody uses between calls.
        unsafe {
            if thread != caller {
                (*thread).limits = limits;
                (*thread).stack_end = (&raw const here as usize).saturating_sub(limits.stack.max(0) as usize);
                (*thread).used = 0;
                share(thread, shared);
            }
        }
        thread
    })
}

/// The thread has finished the chunk, or failed.
pub(crate) unsafe fn part(thread: *mut Thread, caller: *mut Thread, failed: bool) {
    unsafe {
        take_steps(thread);
        if thread != caller {
            if failed {
                abandon(thread);
            }
            if (*thread).waiting_bytes > KEPT_BY_OTHERS {
                free_waiting(&mut *thread);
            }
            (*thread).shared = null();
            (*thread).limits = Limits::NONE;
        }
    }
}

/// Takes the steps that the thread has made from those that are shared; gives what is left.
unsafe fn take_steps(thread: *mut Thread) -> i64 {
    unsafe {
        let made = (*thread).given - (*thread).fuel;
        (*thread).given = (*thread).fuel;
        match (*thread).shared.as_ref() {
            Some(shared) => shared.steps.fetch_sub(made, Ordering::Relaxed) - made,
            None => 0,
        }
    }
}

/// Counts many steps at once: 0 to go on, or the kind of failure.
///
/// # Safety
/// See [`abandon`].
pub unsafe extern "C" fn count_steps(thread: *mut Thread, steps: i64) -> i32 {
    unsafe {
        (*thread).fuel -= steps;
        if (*thread).fuel < 0 {
            look(thread)
        } else {
            0
        }
    }
}

/// When `fuel` has become negative: 0 to go on, or the kind of failure.
///
/// # Safety
/// See [`abandon`].
pub unsafe extern "C" fn look(thread: *mut Thread) -> i32 {
    unsafe {
        let limits = (*thread).limits;
        for (flag, kind) in [(limits.interrupt, Kind::Interrupted), (limits.replaced, Kind::Replaced)] {
            if !flag.is_null() && (*flag).load(Ordering::Relaxed) {
                return kind as i32;
            }
        }
        if is_shared(thread) {
            let left = take_steps(thread);
            (*thread).fuel = left.min(until_look(&limits));
            (*thread).given = (*thread).fuel;
            return if left < 0 { Kind::Steps as i32 } else { 0 };
        }
        if (*thread).rest + (*thread).fuel < 0 {
            return Kind::Steps as i32;
        }
        let rest = (*thread).rest + (*thread).fuel;
        (*thread).fuel = rest.min(until_look(&limits));
        (*thread).rest = rest - (*thread).fuel;
        0
    }
}

/// Takes some steps: 0 to go on, or the kind of failure.
///
/// # Safety
/// See [`abandon`].
pub(crate) unsafe fn spend(thread: *mut Thread, steps: i64) -> i32 {
    unsafe {
        (*thread).fuel = (*thread).fuel.saturating_sub(steps);
        if (*thread).fuel < 0 {
            look(thread)
        } else {
            0
        }
    }
}

/// A block for so many bytes, held once; null if there is no memory.
///
/// # Safety
/// See [`abandon`].
pub unsafe extern "C" fn allocate(thread: *mut Thread, bytes: i64) -> *mut Block {
    let Ok(bytes) = usize::try_from(bytes) else { return null_mut() };
    if bytes > isize::MAX as usize / 4 {
        return null_mut();
    }
    let class = class_of(bytes);
    let bytes = class_bytes(class);
    unsafe {
        if !charge(thread, bytes) {
            return null_mut();
        }
        let waiting = &mut (*thread).waiting[class];
        let mut block = *waiting;
        if block.is_null() {
            block = alloc(layout(bytes)).cast();
            if block.is_null() {
                credit(thread, bytes);
                return null_mut();
            }
            prefer_large_pages(block.cast(), bytes);
            (*block).bytes = bytes;
        } else {
            *waiting = (*block).next;
            (*thread).waiting_bytes -= bytes;
        }
        (*block).holders = 1;
        (*block).boxes = 0;
        (*block).previous = null_mut();
        (*block).next = (*thread).live;
        if !(*block).next.is_null() {
            (*(*block).next).previous = block;
        }
        (*thread).live = block;
        block
    }
}

/// So many blocks, each as [`allocate`] gives it, to an address; whether there was memory for all.
///
/// # Safety
/// See [`abandon`]; there is room for the addresses of the blocks.
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

/// Takes a block out of the list of the running call.
unsafe fn unlink(thread: *mut Thread, block: *mut Block) {
    unsafe {
        let Block { next, previous, bytes, .. } = *block;
        if previous.is_null() {
            (*thread).live = next;
        } else {
            (*previous).next = next;
        }
        if !next.is_null() {
            (*next).previous = previous;
        }
        credit(thread, bytes);
    }
}

unsafe fn keep(thread: *mut Thread, block: *mut Block) {
    unsafe {
        let bytes = (*block).bytes;
        if (*thread).waiting_bytes + bytes > KEPT {
            dealloc(block.cast(), layout(bytes));
            return;
        }
        (*thread).waiting_bytes += bytes;
        let waiting = &mut (*thread).waiting[class_of(bytes)];
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
        unlink(thread, block);
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
            THREAD.with(|own| keep(own.0.get(), block));
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

    #[test]
    fn memory_is_limited_and_used_again() {
        let limits = Limits { memory: 10_000, ..Limits::NONE };
        unsafe {
            set_limits(&limits);
            let thread = enter();
            let a = allocate(thread, 5000);
            assert!(!a.is_null() && allocate(thread, 5001).is_null());
            free(thread, a);
            assert_eq!(allocate(thread, 5000), a);
            assert!(allocate(thread, -1).is_null() && allocate(thread, i64::MAX).is_null());
            abandon(thread);
            assert!((*thread).live.is_null() && (*thread).used == 0);
            set_limits(std::ptr::null());
        }
    }
}
