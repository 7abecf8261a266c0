//! Cells on the heap of code made inside the process: made from chunks, counted by their holders, let go without recursion.
//!
//! A box is a pointer to a cell, or, with the lowest bit set, twice a tag and 3: the value of a constructor without fields, or nil, whose
//! tag is -1. Compiled code reads tags and fields itself, at the offsets below.

use crate::elements;
use crate::memory::{self, Block, Thread};
use crate::process;
use std::alloc::{alloc, dealloc, Layout};
use std::ptr::null_mut;

/// The tag, and words of which the first `boxes` are boxes, the next `blocks` the owners of arrays, the rest numbers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Cell {
    holders: i64,
    pub header: Header,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub tag: u16,
    pub boxes: u16,
    pub blocks: u16,
    pub words: u16,
}

pub const NIL: i64 = 1;
pub const TAG_OFFSET: i32 = std::mem::offset_of!(Cell, header) as i32;
/// Of the first word.
pub const WORDS_OFFSET: i32 = size_of::<Cell>() as i32;

/// The box of a constructor without fields.
pub fn immediate(tag: i64) -> i64 {
    2 * tag + 3
}

/// Cells of fewer words wait in a list of their size when nobody holds them.
const SMALL: usize = 64;
const CHUNK: usize = 1 << 20;
/// After so many chunks they are as large as large pages pay for.
const MANY_CHUNKS: usize = 4;

/// Where a [`Thread`] has its list of waiting cells of so many words, linked through their counts; larger cells have none.
pub fn waiting_offset(words: usize) -> Option<i32> {
    let list = memory::CELLS_OFFSET + std::mem::offset_of!(Cells, free) + words * size_of::<*mut Cell>();
    (words < SMALL).then_some(list as i32)
}

/// The cells of one thread.
pub(crate) struct Cells {
    free: [*mut Cell; SMALL],
    at: usize,
    end: usize,
    chunks: Vec<(*mut u8, usize)>,
    /// How many chunks the running call has begun.
    begun: usize,
}

impl Cells {
    pub(crate) const fn new() -> Cells {
        Cells { free: [null_mut(); SMALL], at: 0, end: 0, chunks: Vec::new(), begun: 0 }
    }

    /// Between calls no cell is alive: results have been written out.
    pub(crate) fn reset(&mut self) {
        if self.begun > 0 {
            self.free = [null_mut(); SMALL];
            (self.at, self.end, self.begun) = (0, 0, 0);
        }
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        for (chunk, bytes) in self.chunks.drain(..) {
            unsafe { dealloc(chunk, chunk_layout(bytes)) };
        }
    }
}

/// Large chunks begin where a large page does.
fn chunk_layout(bytes: usize) -> Layout {
    let align = if bytes >= process::LARGE { 2 << 20 } else { 16 };
    unsafe { Layout::from_size_align_unchecked(bytes, align) }
}

pub(crate) fn is_cell(cell: *mut Cell) -> bool {
    cell as usize & 1 == 0
}

/// The tag of a box; -1 for nil.
///
/// # Safety
/// It must be a box, here and below; threads must come from [`memory::enter`].
pub(crate) unsafe fn tag(cell: *mut Cell) -> i64 {
    if is_cell(cell) {
        unsafe { i64::from((*cell).header.tag) }
    } else {
        (cell as i64 >> 1) - 1
    }
}

pub(crate) unsafe fn word(cell: *mut Cell, at: usize) -> *mut i64 {
    unsafe { cell.add(1).cast::<i64>().add(at) }
}

pub(crate) unsafe fn holders(cell: *mut Cell) -> i64 {
    unsafe { (*cell).holders }
}

/// A new cell waits for its first holder.
pub(crate) unsafe fn unheld(cell: *mut Cell) {
    unsafe { (*cell).holders = 0 };
}

pub(crate) unsafe fn hold(cell: *mut Cell) -> *mut Cell {
    if is_cell(cell) {
        unsafe { (*cell).holders += 1 };
    }
    cell
}

/// A new cell, held once, of which no word is set; null if there is no memory.
///
/// # Safety
/// See [`tag`].
pub unsafe extern "C" fn new(thread: *mut Thread, header: Header) -> *mut Cell {
    unsafe {
        let words = header.words as usize;
        let cells = memory::cells(thread);
        let mut cell = cells.free.get(words).copied().unwrap_or(null_mut());
        if !cell.is_null() {
            cells.free[words] = (*cell).holders as *mut Cell;
        } else {
            let bytes = size_of::<Cell>() + 8 * words;
            if cells.end - cells.at < bytes && !more(thread, bytes) {
                return null_mut();
            }
            cell = cells.at as *mut Cell;
            cells.at += bytes;
        }
        *cell = Cell { holders: 1, header };
        cell
    }
}

unsafe fn more(thread: *mut Thread, bytes: usize) -> bool {
    unsafe {
        let cells = memory::cells(thread);
        let usual = if cells.chunks.len() < MANY_CHUNKS { CHUNK } else { process::LARGE };
        let size = bytes.max(usual);
        while cells.chunks.get(cells.begun).is_some_and(|(_, size)| *size < bytes) {
            cells.begun += 1;
        }
        if cells.begun == cells.chunks.len() {
            let chunk = alloc(chunk_layout(size));
            if chunk.is_null() {
                return false;
            }
            process::prefer_large_pages(chunk, size);
            cells.chunks.push((chunk, size));
        }
        let Some((chunk, size)) = cells.chunks.get(cells.begun).copied() else { return false };
        if !memory::charge_apart(thread, size) {
            return false;
        }
        cells.begun += 1;
        cells.at = chunk as usize;
        cells.end = cells.at + size;
        true
    }
}

/// Lets go of a box; one that nobody holds any more is put before `todo`, linked through its count.
unsafe fn let_go(cell: *mut Cell, todo: *mut Cell) -> *mut Cell {
    unsafe {
        if is_cell(cell) {
            (*cell).holders -= 1;
            if (*cell).holders == 0 {
                (*cell).holders = todo as i64;
                return cell;
            }
        }
        todo
    }
}

/// Lets go of the elements of a block of boxes.
unsafe fn let_go_elements(block: *mut Block, mut todo: *mut Cell) -> *mut Cell {
    unsafe {
        let elements: *mut *mut Cell = block.add(1).cast();
        for i in 0..(*block).boxes {
            todo = let_go(*elements.add(i as usize), todo);
        }
        todo
    }
}

/// A cell whose count has become 0, and what only it held.
///
/// # Safety
/// See [`tag`].
pub unsafe extern "C" fn free_last(thread: *mut Thread, cell: *mut Cell) {
    // Its count of 0 is also the end of the list.
    unsafe { free_all(thread, cell) }
}

/// A list of cells that nobody holds.
unsafe fn free_all(thread: *mut Thread, mut todo: *mut Cell) {
    unsafe {
        while !todo.is_null() {
            let cell = todo;
            todo = (*cell).holders as *mut Cell;
            let Header { boxes, blocks, .. } = (*cell).header;
            for at in 0..boxes as usize {
                todo = let_go(*word(cell, at) as *mut Cell, todo);
            }
            for at in boxes as usize..(boxes + blocks) as usize {
                let block = *word(cell, at) as *mut Block;
                if !block.is_null() {
                    (*block).holders -= 1;
                    if (*block).holders == 0 {
                        todo = let_go_elements(block, todo);
                        memory::recycle(thread, block);
                    }
                }
            }
            free_emptied(thread, cell);
        }
    }
}

/// A cell that nobody holds, and whose fields others have taken over or let go.
unsafe fn free_emptied(thread: *mut Thread, cell: *mut Cell) {
    unsafe {
        if let Some(list) = memory::cells(thread).free.get_mut((*cell).header.words as usize) {
            (*cell).holders = *list as i64;
            *list = cell;
        }
    }
}

/// A block of boxes that nobody holds.
pub(crate) unsafe fn free_block(thread: *mut Thread, block: *mut Block) {
    unsafe {
        let todo = let_go_elements(block, null_mut());
        free_all(thread, todo);
        memory::recycle(thread, block);
    }
}

/// Lets go of a box.
pub(crate) unsafe fn release(thread: *mut Thread, cell: *mut Cell) {
    unsafe {
        let last = let_go(cell, null_mut());
        free_all(thread, last);
    }
}

/// A new block of boxes, all nil; null if there is no memory.
///
/// # Safety
/// See [`tag`].
pub unsafe extern "C" fn allocate(thread: *mut Thread, bytes: i64) -> *mut Block {
    unsafe {
        let block = memory::allocate(thread, bytes);
        if !block.is_null() {
            (*block).boxes = bytes / 8;
            elements::fill(block.add(1).cast(), bytes / 8, NIL as u64);
        }
        block
    }
}

/// Replaces boxes by others, which are held once more.
///
/// # Safety
/// There must be so many boxes at both places.
pub unsafe extern "C" fn put_all(thread: *mut Thread, to: *mut *mut Cell, from: *const *mut Cell, count: i64) {
    unsafe {
        for k in 0..count.max(0) as usize {
            let new = hold(*from.add(k));
            let old = std::ptr::replace(to.add(k), new);
            release(thread, old);
        }
    }
}

/// A new block with copies of so many bytes of boxes; null if there is no memory.
///
/// # Safety
/// There must be so many.
pub unsafe extern "C" fn copy(thread: *mut Thread, data: *const *mut Cell, bytes: i64) -> *mut Block {
    unsafe {
        let block = allocate(thread, bytes);
        if !block.is_null() {
            put_all(thread, block.add(1).cast(), data, bytes / 8);
        }
        block
    }
}

/// The block of a growing array of `count` rows of `width` bytes of boxes, with room for one more row, which is nil.
///
/// # Safety
/// As for [`memory::grow`].
pub unsafe extern "C" fn grow(thread: *mut Thread, block: *mut Block, count: i64, width: i64) -> *mut Block {
    unsafe {
        let fresh = memory::grow(thread, block, count, width);
        if !fresh.is_null() {
            let (have, more) = (count * width / 8, width / 8);
            elements::fill(fresh.add(1).cast::<u64>().add(have as usize), more, NIL as u64);
            (*fresh).boxes = have + more;
        }
        fresh
    }
}

/// Puts the same box into `count` places that hold none.
///
/// # Safety
/// There must be so many.
pub unsafe extern "C" fn fill(to: *mut *mut Cell, count: i64, cell: *mut Cell) {
    unsafe {
        if is_cell(cell) {
            (*cell).holders += count.max(0);
        }
        elements::fill(to.cast(), count, cell as u64);
    }
}

/// The characters of a real in decimal, the shortest that read back as the same number; gives how many there are.
///
/// # Safety
/// There must be room for 400.
pub unsafe extern "C" fn digits(x: f64, to: *mut i64) -> i64 {
    // Rust's debug format: shortest, with `.0`, exponents from 1e16 and below 1e-4.
    let text = if x.is_nan() { "nan".to_string() } else { format!("{x:?}") };
    let mut count = 0;
    for byte in text.bytes().take(400) {
        unsafe { *to.add(count) = i64::from(byte) };
        count += 1;
    }
    count as i64
}
