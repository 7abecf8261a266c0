//! The problems: which function each name stands for, how its input is read and what its result looks like.

use crate::functions::{solve, Cost, Determinant, Last, LogSumExp, Misfit, Mixture, Recurrent, Square};
use crate::number::{gradient, gradient_and_change, Function};
use serde_json::{json, Value};
use std::f64::consts::PI;

/// What is timed, and what makes JSON of its numbers.
pub struct Prepared {
    pub run: Box<dyn Fn() -> Vec<f64>>,
    pub finish: Box<dyn Fn(Vec<f64>) -> Value>,
}

impl Prepared {
    pub fn new(run: impl Fn() -> Vec<f64> + 'static, finish: impl Fn(Vec<f64>) -> Value + 'static) -> Prepared {
        Prepared { run: Box::new(run), finish: Box::new(finish) }
    }
}

/// All numbers of a number, or of an array in arrays.
pub fn reals(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(parts) => parts.iter().flat_map(reals).collect(),
        one => vec![one.as_f64().expect("a number")],
    }
}

pub fn count(value: &Value) -> usize {
    value.as_u64().expect("a count") as usize
}

fn value_of(f: impl Function + 'static, x: Vec<f64>) -> Prepared {
    Prepared::new(move || vec![f.at(&x)], |y| json!(y[0]))
}

fn gradient_of(f: impl Function + 'static, x: Vec<f64>) -> Prepared {
    Prepared::new(move || gradient(&f, &x), |y| json!(y))
}

fn mixture(i: &Value) -> (Mixture, Vec<f64>) {
    let (d, k, m) = (count(&i["d"]), count(&i["k"]), count(&i["m"]));
    let gamma = reals(&i["gamma"])[0];
    // The logarithm of the gamma function at multiples of a half, from those of 1/2 and 1.
    let log_gamma = |halves: usize| -> f64 {
        let (start, first) = [(2, 0.0), (1, 0.5 * PI.ln())][halves % 2];
        first + (start..halves).step_by(2).map(|h| (0.5 * h as f64).ln()).sum::<f64>()
    };
    let freedom = d + m + 1;
    let log_multigamma = 0.25 * (d * (d - 1)) as f64 * PI.ln() + (0..d).map(|j| log_gamma(freedom - j)).sum::<f64>();
    let constant = (freedom * d) as f64 * (gamma / 2.0_f64.sqrt()).ln() - log_multigamma;
    let point = ["alpha", "mu", "q", "l"].iter().flat_map(|name| reals(&i[*name])).collect();
    (Mixture { d, k, x: reals(&i["x"]), m: m as f64, gamma, constant }, point)
}

fn mixture_gradient(i: &Value) -> Prepared {
    let (f, point) = mixture(i);
    let (d, k) = (f.d, f.k);
    let finish = move |y: Vec<f64>| {
        let (alpha, rest) = y.split_at(k);
        let (mu, rest) = rest.split_at(k * d);
        let (q, l) = rest.split_at(k * d);
        let rows = |x: &[f64], width: usize| x.chunks(width.max(1)).map(<[f64]>::to_vec).collect::<Vec<_>>();
        json!({"alpha": alpha, "mu": rows(mu, d), "q": rows(q, d), "l": rows(l, d * (d - 1) / 2)})
    };
    Prepared::new(move || gradient(&f, &point), finish)
}

/// The points, the centroids, and how many coordinates each has.
fn clusters(i: &Value) -> (Vec<f64>, Vec<f64>, usize) {
    (reals(&i["points"]), reals(&i["centroids"]), reals(&i["points"][0]).len())
}

fn cost(i: &Value) -> Prepared {
    let (points, centroids, d) = clusters(i);
    Prepared::new(move || vec![Cost::new(points.clone(), &centroids, d).at(&centroids)], |y| json!(y[0]))
}

/// Which centroid is nearest does not change for small changes. Coordinates do not interact, so how the gradient changes when all grow alike is the
/// diagonal of the Hessian.
fn direction(i: &Value) -> Prepared {
    let (points, centroids, d) = clusters(i);
    let run = move || {
        let f = Cost::new(points.clone(), &centroids, d);
        gradient_and_change(&f, &centroids).iter().map(|slope| slope.re / slope.eps).collect()
    };
    Prepared::new(run, move |y| json!(y.chunks(d).collect::<Vec<_>>()))
}

fn recurrent(i: &Value) -> (Recurrent, Vec<f64>) {
    let bits = reals(&i["sequence"][0]).len();
    let f = Recurrent { bits, state: reals(&i["state"]), sequence: reals(&i["sequence"]) };
    (f, [reals(&i["main_params"]), reals(&i["extra_params"])].concat())
}

pub fn prepare(module: &str, function: &str, i: &Value) -> Option<Prepared> {
    let x = || reals(&i["x"]);
    Some(match (module, function) {
        ("hello", "square") => value_of(Square, reals(i)),
        ("hello", "double") => Prepared::new(
            {
                let x = reals(i);
                move || gradient(&Square, &x)
            },
            |y| json!(y[0]),
        ),
        ("llsq", "primal") => value_of(Misfit { n: count(&i["n"]) }, x()),
        ("llsq", "gradient") => gradient_of(Misfit { n: count(&i["n"]) }, x()),
        ("lse", "primal") => value_of(LogSumExp, x()),
        ("lse", "gradient") => gradient_of(LogSumExp, x()),
        ("ode", "primal") => {
            let (x, s) = (x(), count(&i["s"]));
            Prepared::new(move || solve(&x, s), |y| json!(y))
        }
        ("ode", "gradient") => gradient_of(Last { s: count(&i["s"]) }, x()),
        ("det", "primal") => value_of(Determinant { size: count(&i["ell"]) }, reals(&i["A"])),
        ("det", "gradient") => gradient_of(Determinant { size: count(&i["ell"]) }, reals(&i["A"])),
        ("gmm", "objective") => {
            let (f, point) = mixture(i);
            value_of(f, point)
        }
        ("gmm", "jacobian") => mixture_gradient(i),
        ("kmeans", "cost") => cost(i),
        ("kmeans", "dir") => direction(i),
        ("lstm", "objective") => {
            let (f, point) = recurrent(i);
            value_of(f, point)
        }
        ("lstm", "jacobian") => {
            let (f, point) = recurrent(i);
            gradient_of(f, point)
        }
        ("ba", "objective") => crate::ba::objective(i),
        ("ba", "jacobian") => crate::ba::jacobian(i),
        _ => return None,
    })
}
