//! Elementary functions: those of the C library, and the same on many numbers at once.
//!
//! On x86-64 with glibc, many numbers go through its vector functions, four at a time: at most 4 ulp from the true value, with NaN, infinities
//! and the sign of zero as in the scalar ones. Elsewhere they go one by one.

/// A function of the C library.
pub type Unary = unsafe extern "C" fn(f64) -> f64;
pub type Binary = unsafe extern "C" fn(f64, f64) -> f64;

macro_rules! functions {
    ($($name:ident),*; $($two:ident),*) => {
        extern "C" {
            $(fn $name(x: f64) -> f64;)*
            $(fn $two(x: f64, y: f64) -> f64;)*
        }

        /// By name; the position is the number that [`map`] takes.
        pub const UNARY: &[(&str, Unary)] = &[$((stringify!($name), $name)),*];
        /// By name; the position is the number that [`map2`] takes.
        pub const BINARY: &[(&str, Binary)] = &[$((stringify!($two), $two)),*];
    };
}

functions!(exp, log, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, log1p, expm1, erf; pow, atan2);

/// Replaces numbers by a function of them.
///
/// # Safety
/// There must be so many numbers at `data`.
pub unsafe extern "C" fn map(function: i64, data: *mut f64, count: i64) {
    let (Some((_, scalar)), true) = (UNARY.get(function as usize), count > 0) else { return };
    let data = unsafe { std::slice::from_raw_parts_mut(data, count as usize) };
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if let Some(vector) = vector::unary(function as usize) {
        return unsafe { vector::map(vector, data) };
    }
    data.iter_mut().for_each(|x| *x = unsafe { scalar(*x) });
}

/// Replaces the numbers at `x` by a function of them and of those at `y`.
///
/// # Safety
/// There must be so many numbers at both, in different places.
pub unsafe extern "C" fn map2(function: i64, x: *mut f64, y: *const f64, count: i64) {
    let (Some((_, scalar)), true) = (BINARY.get(function as usize), count > 0) else { return };
    let (x, y) =
        unsafe { (std::slice::from_raw_parts_mut(x, count as usize), std::slice::from_raw_parts(y, count as usize)) };
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if let Some(vector) = vector::binary(function as usize) {
        return unsafe { vector::map2(vector, x, y) };
    }
    x.iter_mut().zip(y).for_each(|(x, y)| *x = unsafe { scalar(*x, *y) });
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod vector {
    //! glibc's vector functions, if this machine has them.

    use super::{BINARY, UNARY};
    use std::arch::x86_64::{__m256d, _mm256_loadu_pd, _mm256_storeu_pd};
    use std::sync::LazyLock;

    // What glibc's vector ABI passes in registers is what Rust calls `__m256d`, whatever Rust promises about others.
    #[allow(improper_ctypes_definitions)]
    pub type Unary = unsafe extern "C" fn(__m256d) -> __m256d;
    #[allow(improper_ctypes_definitions)]
    pub type Binary = unsafe extern "C" fn(__m256d, __m256d) -> __m256d;

    struct Found {
        unary: Vec<Option<Unary>>,
        binary: Vec<Option<Binary>>,
        /// Keeps the functions in memory.
        _library: Option<libloading::Library>,
    }

    static FOUND: LazyLock<Found> = LazyLock::new(|| {
        let none = Found { unary: Vec::new(), binary: Vec::new(), _library: None };
        if !std::is_x86_feature_detected!("avx2") {
            return none;
        }
        // Loading it runs no code of ours, and its functions have these types by the vector ABI.
        unsafe {
            let Ok(library) = libloading::Library::new("libmvec.so.1") else { return none };
            let unary = UNARY
                .iter()
                .map(|(name, _)| library.get::<Unary>(format!("_ZGVdN4v_{name}").as_bytes()).ok().map(|f| *f));
            let unary = unary.collect();
            let binary = BINARY
                .iter()
                .map(|(name, _)| library.get::<Binary>(format!("_ZGVdN4vv_{name}").as_bytes()).ok().map(|f| *f));
            let binary = binary.collect();
            Found { unary, binary, _library: Some(library) }
        }
    });

    pub fn unary(function: usize) -> Option<Unary> {
        FOUND.unary.get(function).copied().flatten()
    }

    pub fn binary(function: usize) -> Option<Binary> {
        FOUND.binary.get(function).copied().flatten()
    }

    /// # Safety
    /// The processor must have AVX2, as it has if there is a vector function.
    #[target_feature(enable = "avx2")]
    pub unsafe fn map(function: Unary, data: &mut [f64]) {
        unsafe {
            let mut parts = data.chunks_exact_mut(4);
            for part in &mut parts {
                _mm256_storeu_pd(part.as_mut_ptr(), function(_mm256_loadu_pd(part.as_ptr())));
            }
            let rest = parts.into_remainder();
            if !rest.is_empty() {
                let mut part = [1.0; 4];
                part[..rest.len()].copy_from_slice(rest);
                _mm256_storeu_pd(part.as_mut_ptr(), function(_mm256_loadu_pd(part.as_ptr())));
                rest.copy_from_slice(&part[..rest.len()]);
            }
        }
    }

    /// # Safety
    /// As for [`map`]. The slices must be of the same length.
    #[target_feature(enable = "avx2")]
    pub unsafe fn map2(function: Binary, x: &mut [f64], y: &[f64]) {
        unsafe {
            let mut parts = x.chunks_exact_mut(4);
            let mut others = y.chunks_exact(4);
            for (part, other) in (&mut parts).zip(&mut others) {
                let result = function(_mm256_loadu_pd(part.as_ptr()), _mm256_loadu_pd(other.as_ptr()));
                _mm256_storeu_pd(part.as_mut_ptr(), result);
            }
            let (rest, other) = (parts.into_remainder(), others.remainder());
            if !rest.is_empty() {
                let (mut part, mut second) = ([1.0; 4], [1.0; 4]);
                part[..rest.len()].copy_from_slice(rest);
                second[..other.len()].copy_from_slice(other);
                let result = function(_mm256_loadu_pd(part.as_ptr()), _mm256_loadu_pd(second.as_ptr()));
                _mm256_storeu_pd(part.as_mut_ptr(), result);
                rest.copy_from_slice(&part[..rest.len()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many at once agree with one by one to a few units in the last place, whatever the number.
    #[test]
    fn vectors_agree_with_scalars() {
        let close = |a: f64, b: f64| {
            a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) || {
                (a - b).abs() <= 4.0 * f64::EPSILON * b.abs().max(f64::MIN_POSITIVE)
            }
        };
        let points = [0.0, -0.0, 0.3, -0.7, 1.5, 12.25, -40.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-300];
        for (number, (name, scalar)) in (0_i64..).zip(UNARY) {
            for count in 0..=points.len() {
                let mut data = points;
                unsafe { map(number, data.as_mut_ptr(), count as i64) };
                for (i, (found, x)) in data.iter().zip(points).enumerate() {
                    let expected = if i < count { unsafe { scalar(x) } } else { x };
                    assert!(close(*found, expected), "{name} {x}: {found} instead of {expected}");
                }
            }
        }
        for (number, (name, scalar)) in (0_i64..).zip(BINARY) {
            let mut data = points;
            let others: Vec<f64> = points.iter().rev().map(|y| y * 0.25).collect();
            unsafe { map2(number, data.as_mut_ptr(), others.as_ptr(), points.len() as i64) };
            for ((found, x), y) in data.iter().zip(points).zip(&others) {
                let expected = unsafe { scalar(x, *y) };
                assert!(close(*found, expected), "{name} {x} {y}: {found} instead of {expected}");
            }
        }
    }
}
