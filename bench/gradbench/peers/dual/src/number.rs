//! Derivatives by dual numbers: functions are generic over numbers, and run once for every few inputs.

use nalgebra::{Const, U1};
use num_dual::{Derivative, Dual64, DualNum, DualSVec, DualSVec64};

pub trait Number: DualNum<Primitive = f64> + Copy {}
impl<D: DualNum<Primitive = f64> + Copy> Number for D {}

pub trait Function {
    fn at<D: Number>(&self, x: &[D]) -> D;
}

/// Tangents of one run: what fills a vector register of the larger machines.
const TANGENTS: usize = 8;

/// Zeroes the tangents of all inputs but some, of which each gets its own.
fn seed<T: Number, const N: usize>(x: &[T], from: usize) -> Vec<DualSVec<T, N>> {
    let tangent = |i: usize| match i.checked_sub(from) {
        Some(own) if own < N => Derivative::derivative_generic(Const, U1, own),
        _ => Derivative::none(),
    };
    x.iter().enumerate().map(|(i, x)| DualSVec::new(*x, tangent(i))).collect()
}

fn by_runs<T: Number>(f: &impl Function, x: &[T]) -> Vec<T> {
    let mut gradient = Vec::with_capacity(x.len() + TANGENTS);
    for from in (0..x.len()).step_by(TANGENTS) {
        let y = f.at(&seed::<T, TANGENTS>(x, from));
        gradient.extend(y.eps.unwrap_generic(Const, U1).iter());
    }
    gradient.truncate(x.len());
    gradient
}

pub fn gradient(f: &impl Function, x: &[f64]) -> Vec<f64> {
    by_runs(f, x)
}

/// The gradient, and how it changes when all inputs grow alike: dual numbers of dual numbers.
pub fn gradient_and_change(f: &impl Function, x: &[f64]) -> Vec<Dual64> {
    let x: Vec<Dual64> = x.iter().map(|x| Dual64::new(*x, 1.0)).collect();
    by_runs(f, &x)
}

/// All rows of a Jacobian of N inputs in one run.
pub fn jacobian<const N: usize, const M: usize>(
    f: impl Fn(&[DualSVec64<N>]) -> [DualSVec64<N>; M],
    x: &[f64; N],
) -> [[f64; N]; M] {
    f(&seed(x, 0)).map(|y| y.eps.unwrap_generic(Const::<N>, U1).into())
}
