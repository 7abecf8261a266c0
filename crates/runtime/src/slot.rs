//! The calling convention of compiled functions, as `gradus.h` states it.

use std::ffi::c_void;
use std::ptr::null;
use std::sync::atomic::AtomicBool;

/// One flattened parameter or result: a number, or an array with its shape.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slot {
    pub value: SlotValue,
    /// Of an output array, for [`Release`]; null for inputs.
    pub owner: *mut c_void,
    pub dims: [i64; 7],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union SlotValue {
    pub real: f64,
    pub integer: i64,
    pub data: *mut c_void,
}

impl Slot {
    pub fn real(value: f64) -> Slot {
        Slot { value: SlotValue { real: value }, owner: std::ptr::null_mut(), dims: [0; 7] }
    }

    pub fn integer(value: i64) -> Slot {
        Slot { value: SlotValue { integer: value }, owner: std::ptr::null_mut(), dims: [0; 7] }
    }

    /// A borrowed array. The data must outlive every call that gets the slot.
    pub fn array<T>(data: &[T], dims: &[usize]) -> Slot {
        let mut slot = Slot::integer(0);
        slot.value.data = data.as_ptr() as *mut c_void;
        for (to, from) in slot.dims.iter_mut().zip(dims) {
            *to = *from as i64;
        }
        slot
    }

    /// # Safety
    /// The slot must hold a real.
    pub unsafe fn as_real(&self) -> f64 {
        unsafe { self.value.real }
    }

    /// # Safety
    /// The slot must hold an integer or a boolean.
    pub unsafe fn as_integer(&self) -> i64 {
        unsafe { self.value.integer }
    }

    /// The numbers of an array of the given rank.
    ///
    /// # Safety
    /// The slot must hold an array of such numbers, of at least that rank, not yet released.
    pub unsafe fn as_slice<T>(&self, rank: usize) -> &[T] {
        let count = self.dims.iter().take(rank).map(|d| *d as usize).product();
        if count == 0 {
            return &[];
        }
        unsafe { std::slice::from_raw_parts(self.value.data as *const T, count) }
    }
}

/// A compiled function.
pub type Entry = unsafe extern "C" fn(inputs: *const Slot, outputs: *mut Slot) -> i32;

/// Gives an output array back.
pub type Release = unsafe extern "C" fn(slot: *mut Slot);

/// What calls may use, as `gradus.h` states it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Limits {
    /// Bytes of the machine's stack.
    pub stack: i64,
    /// Bytes of arrays together.
    pub memory: i64,
    /// Loop iterations and calls of recursive functions.
    pub steps: i64,
    /// Ends the call soon after it has become true; may be null.
    pub interrupt: *const AtomicBool,
    /// The same for code that gives way to better code; code made by a C compiler, which knows the fields above only, has no other.
    pub replaced: *const AtomicBool,
}

impl Limits {
    /// What holds for a thread of which nothing was said.
    pub const NONE: Limits =
        Limits { stack: 1 << 20, memory: i64::MAX, steps: i64::MAX, interrupt: null(), replaced: null() };
}

/// Sets the limits of the calls that follow on this thread; null for none.
pub type SetLimits = unsafe extern "C" fn(limits: *const Limits);

/// What a failure number means: it is `8 * place + kind`.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A check of the program failed.
    Check = 0,
    Memory = 1,
    Stack = 2,
    Steps = 3,
    Interrupted = 4,
    /// There is better code for what it was doing.
    Replaced = 5,
}

impl Kind {
    pub const ALL: [Kind; 6] = [Kind::Check, Kind::Memory, Kind::Stack, Kind::Steps, Kind::Interrupted, Kind::Replaced];

    /// The failure number at a place; places are numbered from 1.
    pub fn at(self, place: usize) -> i32 {
        (8 * place) as i32 + self as i32
    }

    /// The kind and the place of a failure number.
    pub fn of(code: i32) -> (Kind, usize) {
        let kind = Kind::ALL.get((code & 7) as usize).copied().unwrap_or(Kind::Memory);
        (kind, (code >> 3) as usize)
    }
}
