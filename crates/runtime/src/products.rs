//! Matrix products of code made inside the process, by a library. The C backend has its own, in `products.c`.

use crate::chunks::{self, Loop, Shape};
use crate::memory::{self, Thread};
use std::ffi::c_void;

/// `c[i][j] += a(i, l) * b(l, j)`; the distances between neighbours in either direction.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Product {
    pub c: *mut f64,
    pub a: *const f64,
    pub b: *const f64,
    pub c_row: i64,
    pub a_row: i64,
    pub a_inner: i64,
    pub b_inner: i64,
    pub b_column: i64,
    pub rows: i64,
    pub columns: i64,
    pub inner: i64,
    /// What makes a chunk of rows worth its while, see [`Loop::least`].
    pub least: f64,
    /// Where it is: a failure number but for the kind.
    pub place: i64,
}

#[repr(C)]
struct Outside {
    whole: Loop,
    product: Product,
}

/// Multiplications between looks at the limits.
const LOOK_EVERY: i64 = 1 << 26;
/// Multiplications for a step.
const STEP: i64 = 64;
/// So many multiplications have no use for a library.
const SMALL: f64 = 512.0;

/// Rows that are worth arranging the other matrix for.
const BUNDLE: i64 = 64;

/// Adds a product of matrices. 0, or the failure that ended it.
///
/// # Safety
/// The thread must come from [`memory::enter`]; the matrices are as large as said, and nobody else uses the first.
pub unsafe extern "C" fn add(thread: *mut Thread, product: *const Product) -> i32 {
    let product = unsafe { *product };
    if product.rows <= 0 || product.columns <= 0 || product.inner <= 0 {
        return 0;
    }
    let work = product.rows as f64 * product.columns as f64 * product.inner as f64;
    if work <= SMALL {
        unsafe { add_small(&product) };
        return 0;
    }
    let Product { rows, least, place, .. } = product;
    let count = rows / BUNDLE + i64::from(rows % BUNDLE > 0);
    let shape = Shape { least, scalars: 0, arrays: 0, states: 0, joins: 0, place: place as i32 };
    let whole = Loop { cut: 0, count, work: work / 8.0, shape: &shape };
    let mut outside = Outside { whole, product };
    unsafe { chunks::run(thread, bundles, (&raw mut outside).cast(), std::ptr::null_mut(), std::ptr::null()) }
}

unsafe fn add_small(p: &Product) {
    for i in 0..p.rows {
        for l in 0..p.inner {
            unsafe {
                let a = *p.a.offset((i * p.a_row + l * p.a_inner) as isize);
                for j in 0..p.columns {
                    *p.c.offset((i * p.c_row + j) as isize) +=
                        a * *p.b.offset((l * p.b_inner + j * p.b_column) as isize);
                }
            }
        }
    }
}

/// Some bundles of rows of a product.
unsafe extern "C" fn bundles(thread: *mut Thread, outside: *const c_void, _: *mut f64, first: i64, past: i64) -> i32 {
    let Outside { product, .. } = unsafe { &*outside.cast::<Outside>() };
    let Product { c, a, b, c_row, a_row, a_inner, b_inner, b_column, rows, columns, inner, place, .. } = *product;
    let (from, to) = (first * BUNDLE, rows.min(past * BUNDLE));
    let most = (LOOK_EVERY / columns.saturating_mul(inner)).max(1);
    let mut row = from;
    while row < to {
        let some = most.min(to - row);
        let steps = some.saturating_mul(columns).saturating_mul(inner) / STEP;
        unsafe {
            matrixmultiply::dgemm(
                some as usize,
                inner as usize,
                columns as usize,
                1.0,
                a.offset((row * a_row) as isize),
                a_row as isize,
                a_inner as isize,
                b,
                b_inner as isize,
                b_column as isize,
                1.0,
                c.offset((row * c_row) as isize),
                c_row as isize,
                1,
            );
            match memory::spend(thread, steps) {
                0 => {}
                kind => return place as i32 + kind,
            }
        }
        row += some;
    }
    0
}

#[cfg(test)]
mod tests {
    /// Row for row, in whatever parts, the library gives the same bits.
    #[test]
    fn rows_do_not_depend_on_their_neighbours() {
        let (n, m, k) = (13, 9, 300);
        let number = |i: usize| ((i * 7919 % 1009) as f64 - 500.0) / 77.0;
        let a: Vec<f64> = (0..n * k).map(number).collect();
        let b: Vec<f64> = (0..k * m).map(|i| number(i + 5)).collect();
        let multiply = |parts: &[usize]| {
            let mut c = vec![0.0; n * m];
            let mut row = 0;
            for part in parts {
                unsafe {
                    let (a, c) = (a.as_ptr().add(row * k), c.as_mut_ptr().add(row * m));
                    let (k_step, m_step) = (k as isize, m as isize);
                    matrixmultiply::dgemm(*part, k, m, 1.0, a, k_step, 1, b.as_ptr(), m_step, 1, 1.0, c, m_step, 1);
                }
                row += part;
            }
            c
        };
        let whole = multiply(&[n]);
        assert_eq!(whole, multiply(&[1; 13]));
        assert_eq!(whole, multiply(&[5, 4, 3, 1]));
        let element: f64 = (0..k).map(|l| a[3 * k + l] * b[l * m + 4]).sum();
        assert!((whole[3 * m + 4] - element).abs() < 1e-9 * element.abs().max(1.0));
    }
}
