//! Elements of arrays, many at a time.

/// Sets `count` numbers of eight bytes.
///
/// # Safety
/// There must be room for them at `to`, here and below.
pub unsafe extern "C" fn fill(to: *mut u64, count: i64, value: u64) {
    if count > 0 {
        unsafe { std::slice::from_raw_parts_mut(to, count as usize) }.fill(value);
    }
}

/// Sets `count` booleans.
///
/// # Safety
/// See [`fill`].
pub unsafe extern "C" fn fill_bools(to: *mut u8, count: i64, value: u8) {
    if count > 0 {
        unsafe { std::slice::from_raw_parts_mut(to, count as usize) }.fill(value);
    }
}

/// Copies bytes; the places may be the same.
///
/// # Safety
/// See [`fill`].
pub unsafe extern "C" fn move_bytes(to: *mut u8, from: *const u8, bytes: i64) {
    if bytes > 0 {
        unsafe { std::ptr::copy(from, to, bytes as usize) };
    }
}

/// Adds `count` reals to others.
///
/// # Safety
/// See [`fill`]. The places must differ.
pub unsafe extern "C" fn add(to: *mut f64, from: *const f64, count: i64) {
    if count > 0 {
        let (to, from) = unsafe {
            (std::slice::from_raw_parts_mut(to, count as usize), std::slice::from_raw_parts(from, count as usize))
        };
        to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
    }
}
