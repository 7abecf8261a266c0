//! Array memory of code made inside the process: blocks counted by their holders, and what a running call may use.
//!
//! The C backend has the same in C, in its prelude. Compiled code reads [`Block::holders`], [`Thread::fuel`] and
//! [`Thread::stack_end`] itself, at the offsets below.

mod blocks;

use crate::cells::Cells;
use crate::chunks::Shared;
use crate::slot::{Kind, Limits};
use crate::tape::Tape;
use blocks::{free_waiting, CLASSES};
use std::cell::UnsafeCell;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering;

pub(crate) use blocks::recycle;
pub use blocks::{allocate, allocate_several, copy, extend, free, grow, hand_over, release, settle, Block};

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

/// Blocks that nobody holds are kept up to this many bytes together on threads that only run chunks of loops, of which there may be many.
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
    /// Bytes of the blocks that are held, of the chunks of cells and of the tape.
    used: usize,
    /// Of these: of the chunks and of the tape.
    apart: usize,
    /// The last of the blocks of the thread, held or waiting.
    last: *mut Block,
    waiting: [*mut Block; CLASSES],
    waiting_bytes: usize,
    cells: Cells,
}

struct Own(UnsafeCell<Thread>);

impl Drop for Own {
    fn drop(&mut self) {
        unsafe { free_waiting(self.0.get_mut()) };
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
            apart: 0,
            last: null_mut(),
            waiting: [null_mut(); CLASSES],
            waiting_bytes: 0,
            cells: Cells::new(),
        }))
    };
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
            (*thread).apart = 0;
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
        // No compiled code runs now, so nobody else looks at the blocks.
        let mut block = unsafe { (*own.0.get()).last };
        let mut count = 0;
        while let Some(there) = unsafe { block.as_ref() } {
            count += usize::from(there.holders != 0);
            block = there.earlier;
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
        let mut block = (*thread).last;
        while !block.is_null() {
            let earlier = (*block).earlier;
            if (*block).holders != 0 {
                recycle(thread, block);
            }
            block = earlier;
        }
        (*thread).cells.reset();
    }
}

/// At the end of a call that had cells, when what it gives has been handed over and let go.
///
/// # Safety
/// See [`abandon`]; nobody may look at a cell any more.
pub unsafe extern "C" fn leave(thread: *mut Thread) {
    unsafe {
        if (*thread).used > (*thread).apart {
            return abandon(thread);
        }
        (*thread).cells.reset();
    }
}

pub(crate) unsafe fn cells<'a>(thread: *mut Thread) -> &'a mut Cells {
    unsafe { &mut (*thread).cells }
}

pub(crate) unsafe fn tape<'a>(thread: *mut Thread) -> &'a mut Tape {
    unsafe { &mut (*thread).tape }
}

/// Counts bytes against the limit.
#[inline]
unsafe fn charge(thread: *mut Thread, bytes: usize) -> bool {
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

/// The same for what is no block.
pub(crate) unsafe fn charge_apart(thread: *mut Thread, bytes: usize) -> bool {
    unsafe {
        let fits = charge(thread, bytes);
        (*thread).apart += if fits { bytes } else { 0 };
        fits
    }
}

/// The opposite of [`charge`].
#[inline]
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
                (*thread).apart = 0;
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

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(left_behind() == 0 && (*thread).used == 0);
            set_limits(std::ptr::null());
        }
    }
}
