//! Elementary functions: those of the C library, and the same on many numbers at once.
//!
//! On x86-64 with glibc, many numbers go through its vector functions, eight or four at a time: at most 4 ulp from the true value, with NaN, infinities
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
    use std::arch::asm;
    use std::arch::x86_64::{__m256d, _mm256_loadu_pd, _mm256_storeu_pd};
    use std::sync::LazyLock;

    // What glibc's vector ABI passes in registers is what Rust calls `__m256d`, whatever Rust promises about others.
    #[allow(improper_ctypes_definitions)]
    type Unary = unsafe extern "C" fn(__m256d) -> __m256d;
    #[allow(improper_ctypes_definitions)]
    type Binary = unsafe extern "C" fn(__m256d, __m256d) -> __m256d;

    /// A function on several numbers at once.
    #[derive(Clone, Copy)]
    pub enum Kernel<F> {
        Four(F),
        /// The address of a function that takes and gives registers of 512 bits, for which this version of Rust has no type in signatures.
        Eight(usize),
    }

    struct Found {
        unary: Vec<Option<Kernel<Unary>>>,
        binary: Vec<Option<Kernel<Binary>>>,
        /// Keeps the functions in memory.
        _library: Option<libloading::Library>,
    }

    static FOUND: LazyLock<Found> = LazyLock::new(|| {
        let none = Found { unary: Vec::new(), binary: Vec::new(), _library: None };
        if !std::is_x86_feature_detected!("avx2") {
            return none;
        }
        let eight = std::is_x86_feature_detected!("avx512f");
        // Loading it runs no code of ours.
        let Ok(library) = (unsafe { libloading::Library::new("libmvec.so.1") }) else { return none };
        let unary = UNARY.iter().map(|(name, _)| unsafe { find(&library, eight, "v", name) }).collect();
        let binary = BINARY.iter().map(|(name, _)| unsafe { find(&library, eight, "vv", name) }).collect();
        Found { unary, binary, _library: Some(library) }
    });

    /// # Safety
    /// `F` must be the type that the vector ABI gives to functions on four numbers with these parameters.
    unsafe fn find<F: Copy>(library: &libloading::Library, eight: bool, params: &str, name: &str) -> Option<Kernel<F>> {
        let wide = format!("_ZGVeN8{params}_{name}");
        if let (true, Ok(found)) = (eight, unsafe { library.get::<unsafe extern "C" fn()>(wide.as_bytes()) }) {
            return Some(Kernel::Eight(*found as usize));
        }
        let narrow = format!("_ZGVdN4{params}_{name}");
        unsafe { library.get::<F>(narrow.as_bytes()) }.ok().map(|found| Kernel::Four(*found))
    }

    pub fn unary(function: usize) -> Option<Kernel<Unary>> {
        FOUND.unary.get(function).copied().flatten()
    }

    pub fn binary(function: usize) -> Option<Kernel<Binary>> {
        FOUND.binary.get(function).copied().flatten()
    }

    /// Calls a function for each eight numbers at `x`.
    ///
    /// # Safety
    /// There must be as many blocks of eight, at least one, and a processor with AVX-512.
    unsafe fn eights(function: usize, x: *mut f64, blocks: usize) {
        unsafe {
            asm!(
                "2:",
                "vmovupd zmm0, [r13]",
                "call r12",
                "vmovupd [r13], zmm0",
                "add r13, 64",
                "dec r14",
                "jnz 2b",
                "vzeroupper",
                in("r12") function,
                inout("r13") x => _,
                inout("r14") blocks => _,
                clobber_abi("C"),
            );
        }
    }

    /// The same for a function of the numbers at `x` and those at `y`.
    ///
    /// # Safety
    /// As for [`eights`].
    unsafe fn eights2(function: usize, x: *mut f64, y: *const f64, blocks: usize) {
        unsafe {
            asm!(
                "2:",
                "vmovupd zmm0, [r13]",
                "vmovupd zmm1, [r15]",
                "call r12",
                "vmovupd [r13], zmm0",
                "add r13, 64",
                "add r15, 64",
                "dec r14",
                "jnz 2b",
                "vzeroupper",
                in("r12") function,
                inout("r13") x => _,
                inout("r14") blocks => _,
                inout("r15") y => _,
                clobber_abi("C"),
            );
        }
    }

    /// The same for fewer numbers than eight. The lanes beyond them hold one, for which functions have nothing special to do.
    ///
    /// # Safety
    /// There must be a processor with AVX-512.
    unsafe fn few(function: usize, x: &mut [f64]) {
        unsafe {
            asm!(
                "kmovw k1, r14d",
                "vbroadcastsd zmm0, [r15]",
                "vmovupd zmm0 {{k1}}, [r13]",
                "call r12",
                "kmovw k1, r14d",
                "vmovupd [r13] {{k1}}, zmm0",
                "vzeroupper",
                in("r12") function,
                in("r13") x.as_mut_ptr(),
                in("r14") (1_u64 << x.len()) - 1,
                in("r15") &1.0_f64,
                clobber_abi("C"),
            );
        }
    }

    /// The same for a function of the numbers at `x` and those at `y`.
    ///
    /// # Safety
    /// As for [`few`]; the slices must be of the same length.
    unsafe fn few2(function: usize, x: &mut [f64], y: &[f64]) {
        unsafe {
            asm!(
                "kmovw k1, r14d",
                "vbroadcastsd zmm0, [{one}]",
                "vmovapd zmm1, zmm0",
                "vmovupd zmm0 {{k1}}, [r13]",
                "vmovupd zmm1 {{k1}}, [r15]",
                "call r12",
                "kmovw k1, r14d",
                "vmovupd [r13] {{k1}}, zmm0",
                "vzeroupper",
                in("r12") function,
                in("r13") x.as_mut_ptr(),
                in("r14") (1_u64 << x.len()) - 1,
                in("r15") y.as_ptr(),
                one = in(reg) &1.0_f64,
                clobber_abi("C"),
            );
        }
    }

    /// # Safety
    /// The function must be one of [`unary`].
    pub unsafe fn map(function: Kernel<Unary>, data: &mut [f64]) {
        let function = match function {
            Kernel::Four(function) => return unsafe { fours(function, data) },
            Kernel::Eight(function) => function,
        };
        let whole = data.len() / 8;
        if whole > 0 {
            unsafe { eights(function, data.as_mut_ptr(), whole) };
        }
        let rest = &mut data[8 * whole..];
        if !rest.is_empty() {
            unsafe { few(function, rest) };
        }
    }

    /// # Safety
    /// The function must be one of [`binary`], and the slices of the same length.
    pub unsafe fn map2(function: Kernel<Binary>, x: &mut [f64], y: &[f64]) {
        let function = match function {
            Kernel::Four(function) => return unsafe { fours2(function, x, y) },
            Kernel::Eight(function) => function,
        };
        let whole = x.len() / 8;
        if whole > 0 {
            unsafe { eights2(function, x.as_mut_ptr(), y.as_ptr(), whole) };
        }
        let (rest, other) = (&mut x[8 * whole..], &y[8 * whole..]);
        if !rest.is_empty() {
            unsafe { few2(function, rest, other) };
        }
    }

    /// # Safety
    /// The processor must have AVX2, as it has if there is a vector function.
    #[target_feature(enable = "avx2")]
    unsafe fn fours(function: Unary, data: &mut [f64]) {
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
    /// As for [`fours`]. The slices must be of the same length.
    #[target_feature(enable = "avx2")]
    unsafe fn fours2(function: Binary, x: &mut [f64], y: &[f64]) {
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

    #[cfg(test)]
    mod tests {
        use super::*;

        /// On a machine with both, four at a time are no less right than eight.
        #[test]
        fn fours_agree_with_eights() {
            let Ok(library) = (unsafe { libloading::Library::new("libmvec.so.1") }) else { return };
            let points: Vec<f64> = (1..=11).map(|k| 0.07 * f64::from(k)).collect();
            let others: Vec<f64> = points.iter().rev().copied().collect();
            let close =
                |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 4.0 * f64::EPSILON * b.abs());
            for (number, (name, _)) in UNARY.iter().enumerate() {
                let Some(Kernel::Four(four)) = (unsafe { find::<Unary>(&library, false, "v", name) }) else { continue };
                let Some(found) = unary(number) else { continue };
                let (mut one, mut other) = (points.clone(), points.clone());
                unsafe { map(Kernel::Four(four), &mut one) };
                unsafe { map(found, &mut other) };
                assert!(close(&one, &other), "{name}: {one:?} and {other:?}");
            }
            for (number, (name, _)) in BINARY.iter().enumerate() {
                let Some(Kernel::Four(four)) = (unsafe { find::<Binary>(&library, false, "vv", name) }) else {
                    continue;
                };
                let Some(found) = binary(number) else { continue };
                let (mut one, mut other) = (points.clone(), points.clone());
                unsafe { map2(Kernel::Four(four), &mut one, &others) };
                unsafe { map2(found, &mut other, &others) };
                assert!(close(&one, &other), "{name}: {one:?} and {other:?}");
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
