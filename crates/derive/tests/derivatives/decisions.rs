//! Branches, comparisons and kinks: decided by primal values; what is not taken does not count.

use crate::session::{check, Session, MODES};
use gradus_core::Mode;
use gradus_reference::{Kinks, Options};

#[test]
fn untaken_branches_do_not_contribute() {
    let program = "
        let f x = if x > 0.0 then log x else 0.0
        let g x = if x > 0.0 then sqrt x else 3.0 * x
        let h x = match (if x < 0.0 then Inl x else Inr (log x)) with Inl y -> y * y | Inr z -> z
    ";
    check(
        program,
        &[
            ("grad f (-1.0)", &[0.0]),
            ("grad f 0.0", &[0.0]),
            ("grad (grad f) 0.0", &[0.0]),
            ("hessian f 0.0", &[0.0]),
            ("grad g 0.0", &[3.0]),
            ("grad (grad g) (-2.0)", &[0.0]),
            ("grad h (-3.0)", &[-6.0]),
            ("diff (grad h) (-3.0)", &[2.0]),
        ],
    );
}

#[test]
fn conditions_see_values_only() {
    let program = "
        import List
        let positive x = x > 0.0
        let f x = if positive x && (x * x < 100.0 || x = 11.0) then x * x else x
        let g (xs, i) = if xs.(i) * 2.0 > xs.(0) + 1.0 then xs.(i) ^ 2 else xs.(0)
        let h x = real (floor x) * x
        let s x = match sign x with Inl () -> -x | Inr () -> 2.0 * x
        let rec count xs n = if xs = [] then n else (match xs with [] -> n | x :: rest -> count rest (n + x * x))
        let ordered (x, y) = if (x, 1) < (y, 0) then x * y else x + y
    ";
    check(
        program,
        &[
            ("grad f 3.0", &[6.0]),
            ("grad f (-3.0)", &[1.0]),
            ("grad f 12.0", &[1.0]),
            ("grad g ([| 2.0; 5.0 |], 1)", &[0.0, 10.0]),
            ("grad h 2.5", &[2.0]),
            ("grad s (-2.0)", &[-1.0]),
            ("grad s 2.0", &[2.0]),
            ("grad (fun xs -> count xs 0.0) [2.0; 3.0]", &[4.0, 6.0]),
            ("grad ordered (2.0, 3.0)", &[3.0, 2.0]),
            ("grad ordered (3.0, 2.0)", &[1.0, 1.0]),
        ],
    );
}

#[test]
fn stop_gradient_and_checkpoint() {
    let program = "
        let f x = x * stop_gradient x
        let g (x, y) = stop_gradient (x * y) * x
        let c x = checkpoint (fun y -> sin (y * x)) (x * x)
    ";
    let x = 0.9f64;
    check(
        program,
        &[
            ("grad f 3.0", &[3.0]),
            ("hessian f 3.0", &[0.0]),
            ("grad (grad f) 3.0", &[0.0]),
            ("grad g (2.0, 5.0)", &[10.0, 0.0]),
            ("grad c 0.9", &[3.0 * x * x * (x * x * x).cos()]),
        ],
    );
}

fn kinks(mode: Mode, program: &str, text: &str) -> u64 {
    let options = Options { kinks: Kinks::Warn, ..Options::default() };
    let session = Session::new(program, mode).unwrap_or_else(|e| panic!("{e}")).with_options(options);
    let (_, _, report) = session.eval(text).unwrap_or_else(|e| panic!("{mode}: {e}"));
    report.kinks.len() as u64
}

#[test]
fn kinks_are_seen_in_every_mode() {
    let program = "
        let relu x = if x > 0.0 then x else 0.0
        let f x = abs x + 1.0
        let positive x = x > 0.0
        let g x = if positive x then x else 0.0
        let settled x = if 1.0 > 1.0 then x else 2.0 * x
    ";
    for mode in MODES {
        for text in ["grad relu 0.0", "grad f 0.0", "grad g 0.0", "diff relu 0.0"] {
            assert!(kinks(mode, program, text) > 0, "{mode}: {text}");
        }
        for text in ["relu 0.0", "f 0.0", "grad relu 1.0", "grad f 1.0", "grad settled 0.0"] {
            assert_eq!(kinks(mode, program, text), 0, "{mode}: {text}");
        }
    }
}
