//! First derivatives whose closed forms are known.

use crate::session::check;

#[test]
fn scalars() {
    let (x, y) = (0.7f64, 1.9f64);
    let program = "
        let f x = sin x * exp (x ^ 2) / (1.0 + x)
        let g (x, y) = x ** y + atan2 x y - log (x * y)
        let h x = let y = x * x in let z = y + y in z * y - 3.0
    ";
    let f = x.sin() * (x * x).exp() / (1.0 + x);
    let df = x.cos() * (x * x).exp() / (1.0 + x) + f * 2.0 * x - f / (1.0 + x);
    let r = x * x + y * y;
    let g_x = y * x.powf(y - 1.0) + y / r - 1.0 / x;
    let g_y = x.powf(y) * x.ln() - x / r - 1.0 / y;
    check(
        program,
        &[
            ("grad f 0.7", &[df]),
            ("diff f 0.7", &[df]),
            ("value_and_grad f 0.7", &[f, df]),
            ("grad g (0.7, 1.9)", &[g_x, g_y]),
            ("jvp g (0.7, 1.9) (2.0, -3.0)", &[2.0 * g_x - 3.0 * g_y]),
            ("vjp g (0.7, 1.9) 4.0", &[4.0 * g_x, 4.0 * g_y]),
            ("grad h 2.0", &[64.0]),
        ],
    );
}

/// A constant argument adds nothing, even where its own partial derivative does not exist.
#[test]
fn constants_do_no_harm() {
    check(
        "let f x = x ** 3.0
         let g x = let unused = log x in 2.0 * x",
        &[("grad f (-2.0)", &[12.0]), ("grad g 0.0", &[2.0]), ("grad g (-1.0)", &[2.0])],
    );
}

#[test]
fn every_form() {
    // f (x, y) = (x y, sin x, y^2): more outputs than inputs. g (x, y, z) = (x y z, x + y): fewer.
    let program = "
        let f (x, y) = (x * y, sin x, y ^ 2)
        let g (x, y, z) = (x * y * z, x + y)
        let q (x, y) = x ^ 2 * y + y ^ 3
        let pulled = let (v, back) = pullback f (2.0, 3.0) in (v, back (1.0, 0.0, 0.0), back (0.0, 1.0, 1.0))
        let pushed = let (v, map) = linearize f (2.0, 3.0) in (v, map (1.0, 0.0), map (0.0, 1.0))
    ";
    let (s, c) = (2f64.sin(), 2f64.cos());
    check(
        program,
        &[
            ("jacobian f (2.0, 3.0)", &[3.0, 2.0, c, 0.0, 0.0, 6.0]),
            ("jacobian g (2.0, 3.0, 5.0)", &[15.0, 10.0, 6.0, 1.0, 1.0, 0.0]),
            ("hessian q (2.0, 3.0)", &[6.0, 4.0, 4.0, 18.0]),
            ("hvp q (2.0, 3.0) (1.0, 10.0)", &[46.0, 184.0]),
            ("pulled", &[6.0, s, 9.0, 3.0, 2.0, c, 6.0]),
            ("pushed", &[6.0, s, 9.0, 3.0, c, 0.0, 2.0, 0.0, 6.0]),
            ("vjp f (2.0, 3.0) (1.0, 2.0, 3.0)", &[3.0 + 2.0 * c, 2.0 + 18.0]),
        ],
    );
}

/// K, lemma 1: dt . jvp f s ds = vjp f s dt . ds
#[test]
fn forward_and_reverse_are_transposes() {
    let program = "
        let f (a, xs) = (map (fun x -> exp (a * x)) xs, sum xs * a)
        let s = (0.3, [| 1.0; -2.0; 0.5 |])
        let ds = (0.7, [| 0.1; 0.2; -0.4 |])
        let dt = ([| 1.5; -0.5; 2.0 |], 3.0)
        let difference = (dt <.> jvp f s ds) - (vjp f s dt <.> ds)
    ";
    check(program, &[("difference", &[0.0])]);
}

/// Every smooth primitive, against central differences.
#[test]
fn primitives_agree_with_differences() {
    let functions = [
        "exp x",
        "log x",
        "sqrt x",
        "sin x",
        "cos x",
        "tan x",
        "asin x",
        "acos x",
        "atan x",
        "sinh x",
        "cosh x",
        "tanh x",
        "log1p x",
        "expm1 x",
        "erf x",
        "lgamma x",
        "polygamma 1 x",
        "abs x",
        "-x",
        "x ^ 3",
        "x ^ (-2)",
        "x ** 1.3",
        "1.7 ** x",
        "x / 3.0",
        "3.0 / x",
        "atan2 x 2.0",
        "atan2 2.0 x",
        "maximum x 0.1",
        "minimum x 0.1",
        "2.0 - x",
    ];
    let definitions: String = functions.iter().enumerate().map(|(i, f)| format!("let f{i} x = {f}\n")).collect();
    for mode in crate::session::MODES {
        let session = crate::session::Session::new(&definitions, mode).unwrap_or_else(|e| panic!("{e}"));
        let value = |text: String| {
            let (data, _, _) = session.eval(&text).unwrap_or_else(|e| panic!("{mode}: {e}"));
            crate::session::reals(&data)[0]
        };
        for (i, f) in functions.iter().enumerate() {
            let found = value(format!("grad f{i} 0.4"));
            let difference = (value(format!("f{i} 0.4001")) - value(format!("f{i} 0.3999"))) / 0.0002;
            assert!(crate::session::agree(found, difference, 1e-6), "{mode}: {f}: {found}, differences {difference}");
        }
    }
}
