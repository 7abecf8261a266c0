//! The tape of code made inside the process: a stack of values, in the reverse order of which they will be wanted.
//!
//! It grows as a whole, so nobody keeps a pointer into it. Compiled code pushes and pops itself, at the offsets in [`crate::memory`].

use crate::memory::{self, Thread};
use crate::process::prefer_large_pages;
use std::alloc::{alloc, dealloc, realloc, Layout};
use std::ptr::null_mut;

/// It is counted against the limit in steps of so many bytes.
const STEP: usize = 1 << 20;

#[repr(C)]
pub(crate) struct Tape {
    /// Where it ends now.
    pub(crate) at: *mut u8,
    /// Where what has been counted of it ends.
    pub(crate) end: *mut u8,
    start: *mut u8,
    room: usize,
}

impl Tape {
    pub(crate) const fn new() -> Tape {
        Tape { at: null_mut(), end: null_mut(), start: null_mut(), room: 0 }
    }

    /// At the start of a call: nothing is on it, and nothing has been counted.
    pub(crate) fn reset(&mut self) {
        self.at = self.start;
        self.end = self.start;
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        if !self.start.is_null() {
            unsafe { dealloc(self.start, layout(self.room)) };
        }
    }
}

fn layout(bytes: usize) -> Layout {
    unsafe { Layout::from_size_align_unchecked(bytes, 16) }
}

/// Makes room for so many bytes more; gives the new end of the tape, or null if there is no memory.
///
/// # Safety
/// The thread must come from [`memory::enter`].
pub unsafe extern "C" fn more(thread: *mut Thread, bytes: i64) -> *mut u8 {
    unsafe {
        let step = STEP.max(bytes as usize);
        if !memory::charge_apart(thread, step) {
            return null_mut();
        }
        let tape = memory::tape(thread);
        let (at, end) = (tape.at as usize - tape.start as usize, tape.end as usize - tape.start as usize);
        if end + step > tape.room {
            let room = 2 * (end + step);
            let fresh = match tape.start.is_null() {
                true => alloc(layout(room)),
                false => realloc(tape.start, layout(tape.room), room),
            };
            if fresh.is_null() {
                return null_mut();
            }
            prefer_large_pages(fresh, room);
            tape.start = fresh;
            tape.room = room;
        }
        tape.at = tape.start.add(at);
        tape.end = tape.start.add(end + step);
        tape.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Limits;

    #[test]
    fn the_tape_keeps_what_it_has_and_is_limited() {
        let limits = Limits { memory: 5 << 20, ..Limits::NONE };
        unsafe {
            memory::set_limits(&limits);
            let thread = memory::enter();
            let mut pushed = 0_u64;
            let fits = |at: *mut u8, end: *mut u8| !at.is_null() && at as usize + 8 <= end as usize;
            loop {
                let tape = memory::tape(thread);
                if !fits(tape.at, tape.end) && more(thread, 8).is_null() {
                    break;
                }
                let tape = memory::tape(thread);
                tape.at.cast::<u64>().write_unaligned(pushed);
                tape.at = tape.at.add(8);
                pushed += 1;
            }
            assert_eq!(pushed, (5 << 20) / 8);
            for expected in (0..pushed).rev() {
                let tape = memory::tape(thread);
                tape.at = tape.at.sub(8);
                assert_eq!(tape.at.cast::<u64>().read_unaligned(), expected);
            }
            memory::enter();
            assert!(!more(thread, 4 << 20).is_null() && more(thread, 2 << 20).is_null());
            memory::set_limits(std::ptr::null());
        }
    }
}
