//! K Fig. 12: the Delta program of rotating a vector by a quaternion, with the coefficients that the paper prints.

use crate::session::{agree, Session};
use gradus_core::Mode;

const PROGRAM: &str = include_str!("../../../../tests/papers/k_figure_12.gr");

/// The bindings x1 to x40 of the figure without x10 and x30, which bind the two constants to `Zero`.
const PRINTED: &[[f64; 2]] = &[
    [5.5, 2.2],
    [6.6, 1.1],
    [1.0, -1.0],
    [7.7, 1.1],
    [5.5, 3.3],
    [1.0, -1.0],
    [6.6, 3.3],
    [7.7, 2.2],
    [1.0, -1.0],
    [4.4, 2.0],
    [-4.84, 8.8],
    [9.68, 8.8],
    [-4.84, 8.8],
    [3.3, 3.3],
    [2.2, 2.2],
    [1.1, 1.1],
    [1.0, 1.0],
    [1.0, 1.0],
    [4.4, 4.4],
    [1.0, -1.0],
    [7.7, 2.42],
    [6.6, 2.42],
    [5.5, 2.42],
    [7.7, 3.3],
    [6.6, 2.2],
    [5.5, 1.1],
    [1.0, 1.0],
    [1.0, 1.0],
    [45.98, 2.0],
    [3.3, 91.96],
    [2.2, 91.96],
    [1.1, 91.96],
    [1.0, 1.0],
    [1.0, 1.0],
    [1.0, 1.0],
    [1.0, 1.0],
    [1.0, 1.0],
    [1.0, 1.0],
];

#[test]
fn coefficients_of_the_figure() {
    let session = Session::new(PROGRAM, Mode::Monadic).unwrap_or_else(|e| panic!("{e}"));
    let found = session.delta_program("component", "(q0, v0)").unwrap_or_else(|e| panic!("{e}"));
    let sorted = |rows: Vec<Vec<f64>>| {
        let mut rows = rows;
        rows.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        rows
    };
    // To nine digits, so that rounding does not change the order.
    let round = |x: &f64| (x * 1e9).round() / 1e9;
    let found = sorted(found.iter().map(|row| row.iter().map(round).collect()).collect());
    let printed = sorted(PRINTED.iter().map(|row| row.to_vec()).collect());
    assert_eq!(found.len(), printed.len(), "{found:?}");
    for (a, b) in found.iter().flatten().zip(printed.iter().flatten()) {
        assert!(agree(*a, *b, 1e-9), "{found:?}");
    }
}
