//! The functions of the problems, written once for all numbers.

use crate::number::{Function, Number};
use std::f64::consts::PI;

pub struct Square;

impl Function for Square {
    fn at<D: Number>(&self, x: &[D]) -> D {
        x[0] * x[0]
    }
}

/// How well the polynomial with coefficients x fits the sign function in n points of [-1, 1].
pub struct Misfit {
    pub n: usize,
}

impl Function for Misfit {
    fn at<D: Number>(&self, x: &[D]) -> D {
        let squared = |i: usize| {
            let t = -1.0 + 2.0 * i as f64 / (self.n - 1) as f64;
            let sign = if t == 0.0 { 0.0 } else { t.signum() };
            let rest = x.iter().rev().fold(D::from(0.0), |value, c| value * t + *c) - sign;
            rest * rest
        };
        (0..self.n).fold(D::from(0.0), |total, i| total + squared(i)) * 0.5
    }
}

pub struct LogSumExp;

impl Function for LogSumExp {
    /// The largest element is a constant for derivatives.
    fn at<D: Number>(&self, x: &[D]) -> D {
        let largest = x.iter().fold(f64::NEG_INFINITY, |largest, x| largest.max(x.re()));
        x.iter().fold(D::from(0.0), |total, x| total + (*x - largest).exp()).ln() + largest
    }
}

/// y0' = x0, yi' = xi y(i-1), from 0 to 2 by s steps of Runge-Kutta.
pub fn solve<D: Number>(x: &[D], s: usize) -> Vec<D> {
    let h = 2.0 / s as f64;
    let rate = |y: &[D]| -> Vec<D> { (0..x.len()).map(|i| if i == 0 { x[0] } else { x[i] * y[i - 1] }).collect() };
    let along = |y: &[D], h: f64, k: &[D]| -> Vec<D> { y.iter().zip(k).map(|(y, k)| *y + *k * h).collect() };
    let mut y = vec![D::from(0.0); x.len()];
    for _ in 0..s {
        let k1 = rate(&y);
        let k2 = rate(&along(&y, h / 2.0, &k1));
        let k3 = rate(&along(&y, h / 2.0, &k2));
        let k4 = rate(&along(&y, h, &k3));
        for i in 0..x.len() {
            y[i] += (k1[i] + k2[i] * 2.0 + k3[i] * 2.0 + k4[i]) * (h / 6.0);
        }
    }
    y
}

/// The last component of the solution.
pub struct Last {
    pub s: usize,
}

impl Function for Last {
    fn at<D: Number>(&self, x: &[D]) -> D {
        solve(x, self.s)[x.len() - 1]
    }
}

/// The determinant by expansion along the rows, over the columns that are left.
pub struct Determinant {
    pub size: usize,
}

impl Determinant {
    fn minor<D: Number>(&self, a: &[D], row: usize, left: u32) -> D {
        if row == self.size {
            return D::from(1.0);
        }
        let (mut total, mut sign) = (D::from(0.0), 1.0);
        for column in (0..self.size).filter(|column| left >> column & 1 == 1) {
            total += a[row * self.size + column] * self.minor(a, row + 1, left & !(1 << column)) * sign;
            sign = -sign;
        }
        total
    }
}

impl Function for Determinant {
    fn at<D: Number>(&self, a: &[D]) -> D {
        self.minor(a, 0, (1 << self.size) - 1)
    }
}

/// Squared distances of points to their centroids, of which it is known which they are.
pub struct Cost {
    pub points: Vec<f64>,
    pub nearest: Vec<usize>,
}

impl Cost {
    pub fn new(points: Vec<f64>, centroids: &[f64], d: usize) -> Cost {
        let nearest = |point: &[f64]| {
            let squared = |c: &[f64]| point.iter().zip(c).map(|(p, c)| (p - c) * (p - c)).sum::<f64>();
            let distances = centroids.chunks(d).map(squared).enumerate();
            distances.fold((0, f64::INFINITY), |best, one| if one.1 < best.1 { one } else { best }).0
        };
        let nearest = points.chunks(d).map(nearest).collect();
        Cost { points, nearest }
    }
}

impl Function for Cost {
    fn at<D: Number>(&self, centroids: &[D]) -> D {
        let d = self.points.len() / self.nearest.len();
        let mut total = D::from(0.0);
        for (point, nearest) in self.points.chunks(d).zip(&self.nearest) {
            for (p, c) in point.iter().zip(&centroids[nearest * d..]) {
                let rest = *c - *p;
                total += rest * rest;
            }
        }
        total
    }
}

/// The log posterior of a mixture of Gaussians. Its vector: alpha, mu, q, and l column by column.
pub struct Mixture {
    pub d: usize,
    pub k: usize,
    pub x: Vec<f64>,
    pub m: f64,
    pub gamma: f64,
    /// The logarithm of the prior's normalising factor.
    pub constant: f64,
}

impl Function for Mixture {
    fn at<D: Number>(&self, p: &[D]) -> D {
        let (d, k) = (self.d, self.k);
        let (alpha, rest) = p.split_at(k);
        let (mu, rest) = rest.split_at(k * d);
        let (q, l) = rest.split_at(k * d);
        let below = d * (d - 1) / 2;
        let diagonal: Vec<D> = q.iter().map(|q| q.exp()).collect();
        let sum = |x: &[D]| x.iter().fold(D::from(0.0), |total, x| total + *x);
        let scale: Vec<D> = (0..k).map(|c| alpha[c] + sum(&q[c * d..][..d])).collect();
        let density = |c: usize, x: &[f64]| {
            let offset: Vec<D> = (0..d).map(|i| -mu[c * d + i] + x[i]).collect();
            let mut v: Vec<D> = (0..d).map(|i| diagonal[c * d + i] * offset[i]).collect();
            let mut entries = l[c * below..].iter();
            for j in 0..d {
                for (v, entry) in v[j + 1..].iter_mut().zip(&mut entries) {
                    *v += *entry * offset[j];
                }
            }
            scale[c] - v.iter().fold(D::from(0.0), |total, v| total + *v * *v) * 0.5
        };
        let mut value = D::from(0.0);
        for x in self.x.chunks(d) {
            let densities: Vec<D> = (0..k).map(|c| density(c, x)).collect();
            value += LogSumExp.at(&densities);
        }
        let n = (self.x.len() / d) as f64;
        value -= (LogSumExp.at(alpha) + 0.5 * d as f64 * (2.0 * PI).ln()) * n;
        let squares = |x: &[D]| x.iter().fold(D::from(0.0), |total, x| total + *x * *x);
        let spread = squares(&diagonal) + squares(l);
        value - spread * (0.5 * self.gamma * self.gamma) + sum(q) * self.m + self.constant * k as f64
    }
}

/// Minus the mean log likelihood of a sequence under a stack of LSTM layers. Its vector: two rows of four gates for each layer, three rows for input and output.
pub struct Recurrent {
    pub bits: usize,
    /// Hidden and cell rows of each layer in turn.
    pub state: Vec<f64>,
    pub sequence: Vec<f64>,
}

fn sigmoid<D: Number>(x: D) -> D {
    ((-x).exp() + 1.0).recip()
}

impl Function for Recurrent {
    fn at<D: Number>(&self, p: &[D]) -> D {
        let b = self.bits;
        let (main, extra) = p.split_at(p.len() - 3 * b);
        let mut state: Vec<D> = self.state.iter().map(|x| D::from(*x)).collect();
        let mut total = D::from(0.0);
        let characters: Vec<&[f64]> = self.sequence.chunks(b).collect();
        for pair in characters.windows(2) {
            let mut x: Vec<D> = (0..b).map(|i| extra[i] * pair[0][i]).collect();
            for (rows, weights) in state.chunks_mut(2 * b).zip(main.chunks(8 * b)) {
                let (hidden, cell) = rows.split_at_mut(b);
                for i in 0..b {
                    let gate = |g: usize, from: D| from * weights[g * b + i] + weights[(4 + g) * b + i];
                    cell[i] =
                        cell[i] * sigmoid(gate(0, x[i])) + sigmoid(gate(1, hidden[i])) * gate(3, hidden[i]).tanh();
                    hidden[i] = sigmoid(gate(2, x[i])) * cell[i].tanh();
                    x[i] = hidden[i];
                }
            }
            let y: Vec<D> = (0..b).map(|i| x[i] * extra[b + i] + extra[2 * b + i]).collect();
            let log_sum = y.iter().fold(D::from(2.0), |total, y| total + y.exp()).ln();
            for (y, target) in y.iter().zip(pair[1]) {
                total += (*y - log_sum) * *target;
            }
        }
        -total / ((characters.len() - 1) * b) as f64
    }
}
