//! The table against independent values: polygamma from mpmath, derivatives against differences.

use super::{math, Eval, Prim};
use crate::build::At;
use crate::{Literal, Term, TermKind, Type, Var};

/// `(k, x, polygamma k x)`, computed by mpmath with 40 digits.
const POLYGAMMA: &[(i64, f64, f64)] = &[
    (0, 0.1, -10.423754940411076),
    (0, 0.5, -1.9635100260214235),
    (0, 1.0, -0.5772156649015329),
    (0, 1.5, 0.03648997397857652),
    (0, 2.75, 0.8189010249754326),
    (0, 10.0, 2.251752589066721),
    (0, 100.0, 4.600161852738087),
    (0, 1e6, 13.815510057964191),
    (0, 1e-3, -1000.5755719318103),
    (0, -0.5, 0.03648997397857652),
    (0, -1.25, 3.714139120213528),
    (0, -7.75, -1.0307688328309315),
    (0, -150.3, 7.298456956317457),
    (1, 0.1, 101.43329915079275),
    (1, 0.5, 4.934802200544679),
    (1, 1.0, 1.6449340668482264),
    (1, 1.5, 0.9348022005446793),
    (1, 2.75, 0.43757125764893073),
    (1, 10.0, 0.10516633568168575),
    (1, 100.0, 0.010050166663333571),
    (1, 1e6, 1.0000005000001667e-06),
    (1, 1e-3, 1000001.6425331958),
    (1, -0.5, 8.934802200544679),
    (1, -1.25, 19.181879647671607),
    (1, -7.75, 19.61814433435229),
    (1, -150.3, 15.07278242736691),
    (2, 0.1, -2001.8614573783436),
    (2, 0.5, -16.82879664423432),
    (2, 1.0, -2.4041138063191885),
    (2, 1.5, -0.82879664423432),
    (2, 2.75, -0.18871463303130123),
    (2, 10.0, -0.011049834970802067),
    (2, 100.0, -0.00010100499983335),
    (2, 1e6, -1.0000010000005e-12),
    (2, 1e-3, -2000000002.3976321),
    (2, -0.5, -0.82879664423432),
    (2, -1.25, 123.72136678366236),
    (2, -7.75, -124.03974558822776),
    (2, -150.3, 68.83749974087361),
    (3, 0.1, 60004.51287679026),
    (3, 0.5, 97.40909103400244),
    (3, 1.0, 6.493939402266829),
    (3, 1.5, 1.4090910340024372),
    (3, 2.75, 0.16061612748946938),
    (3, 10.0, 0.0023199013042898686),
    (3, 100.0, 2.030199990001333e-06),
    (3, 1e6, 2.000003000002e-18),
    (3, 1e-3, 6000000000006.469),
    (3, -0.5, 193.40909103400244),
    (3, -1.25, 1558.2209125348506),
    (3, -7.75, 1558.5419205916066),
    (3, -150.3, 769.0209137501681),
    (5, 0.1, 120000069.30751093),
    (5, 0.5, 7691.113548602436),
    (5, 1.0, 122.0811674381339),
    (5, 1.5, 11.113548602435497),
    (5, 2.75, 0.3368086815502772),
    (5, 10.0, 0.0003059451621172682),
    (5, 100.0, 2.460599944011996e-09),
    (5, 1e6, 2.400006000006e-29),
    (5, 1e-3, 1.1999999999999998e+20),
    (5, -0.5, 15371.113548602436),
    (5, -1.25, 492230.21062287455),
    (5, -7.75, 492231.2664938476),
    (5, -150.3, 165660.17445332883),
    (10, 0.1, -3.628800000012727e+17),
    (10, 0.5, -7431824508.858769),
    (10, 1.0, -3630593.311606629),
    (10, 1.5, -42108.85876897549),
    (10, 2.75, -55.25601098425511),
    (10, 10.0, -5.7675966863222595e-05),
    (10, 100.0, -3.8135655355681386e-15),
    (10, 1e6, -3.628818144033264e-55),
    (10, 1e-3, -3.628799999999999e+39),
    (10, -0.5, -42108.85876897549),
    (10, -1.25, 15220204740174.338),
    (10, -7.75, -15220204740668.342),
    (10, -150.3, 2048284893017.6938),
    (40, 0.1, -8.159152832478958e+88),
    (40, 0.5, -1.794216682422424e+60),
    (40, 1.0, -8.159152832482688e+47),
    (40, 1.5, -4.919301571242758e+40),
    (40, 2.75, -7.92512142119552e+29),
    (40, 10.0, -8327848.721661187),
    (40, 100.0, -2.475539438617731e-34),
    (40, 1e6, -2.0398290041626778e-194),
    (40, 1e-3, -8.15915283247897e+170),
    (40, -0.5, -4.919301571242758e+40),
    (40, -1.25, 3.945524210146268e+72),
    (40, -7.75, -3.945524210146268e+72),
    (40, -150.3, 2.2370393559365686e+69),
    (200, 2.75, -3.899574126087611e+286),
    (200, 10.0, -7.886578711401554e+173),
    (200, 100.0, -9.125424691096223e-28),
];

#[test]
fn rows_stand_in_the_order_of_the_enum() {
    for (position, prim) in Prim::ALL.iter().enumerate() {
        assert_eq!(prim.info().prim, *prim, "row {position}");
    }
    assert_eq!(super::table().len(), Prim::ALL.len());
}

#[test]
fn names_find_their_primitives() {
    assert_eq!(Prim::from_name("exp"), Some(Prim::Exp));
    assert_eq!(Prim::from_name("+"), Some(Prim::AddReal));
    assert_eq!(Prim::all_named("+").collect::<Vec<_>>(), [Prim::AddReal, Prim::AddInt]);
    assert_eq!(Prim::from_name("nonsense"), None);
}

#[test]
fn polygamma_agrees_with_mpmath() {
    for &(k, x, expected) in POLYGAMMA {
        let found = math::polygamma(k, x);
        // Near a zero (even orders between two poles) rounding the argument alone moves the result by more.
        let condition = (x * math::polygamma(k + 1, x)).abs();
        let error = (found - expected).abs();
        assert!(
            error < 2e-13 * expected.abs() + 1e-15 * condition,
            "polygamma {k} {x} = {found}, expected {expected} (error {error:e})"
        );
    }
    assert!(math::polygamma(0, 0.0).is_nan() && math::polygamma(1, -3.0).is_nan() && math::polygamma(-1, 1.0).is_nan());
}

#[test]
fn powers_multiply() {
    assert_eq!(math::powi(3.0, 5), 243.0);
    assert_eq!(math::powi(2.0, -3), 0.125);
    assert_eq!(math::powi(0.0, 0), 1.0);
    assert_eq!(math::powi(-2.0, 3), -8.0);
    assert_eq!(math::powi(1.0, i64::MIN), 1.0);
    assert_eq!(math::power_of_int(-3, 3), Ok(-27));
    assert!(math::power_of_int(2, -1).is_err());
}

/// Evaluates the terms that partials consist of.
fn evaluate(term: &Term, env: &[(Var, f64)]) -> f64 {
    match &*term.kind {
        TermKind::Var(v, _) => env.iter().find(|(w, _)| w == v).map(|(_, x)| *x).unwrap(),
        TermKind::Literal(Literal::Real(x)) => *x,
        TermKind::Literal(Literal::Int(k)) => *k as f64,
        TermKind::Literal(Literal::Bool(b)) => f64::from(u8::from(*b)),
        TermKind::If { condition, then, otherwise } => {
            evaluate(if evaluate(condition, env) != 0.0 { then } else { otherwise }, env)
        }
        TermKind::Prim { prim, args, .. } => {
            let args: Vec<f64> = args.iter().map(|a| evaluate(a, env)).collect();
            apply(*prim, &args)
        }
        other => panic!("a partial derivative contains {other:?}"),
    }
}

fn apply(prim: Prim, args: &[f64]) -> f64 {
    match (prim.info().eval, args) {
        (Eval::Real(f), [x]) => f(*x),
        (Eval::RealReal(f), [x, y]) => f(*x, *y),
        (Eval::RealInt(f), [x, k]) => f(*x, *k as i64),
        (Eval::IntReal(f), [k, x]) => f(*k as i64, *x),
        (Eval::IntToReal(f), [k]) => f(*k as i64),
        (Eval::IntInt(f), [x, y]) => f(*x as i64, *y as i64).unwrap() as f64,
        (Eval::Structural, [x, y]) => f64::from(u8::from(match prim {
            Prim::Equal => x == y,
            Prim::Less => x < y,
            Prim::LessEqual => x <= y,
            _ => panic!("{prim:?}"),
        })),
        _ => panic!("{prim:?} at {args:?}"),
    }
}

fn partials_at(prim: Prim, args: &[f64]) -> Vec<Option<f64>> {
    let at = At::default();
    let env: Vec<(Var, f64)> = args.iter().map(|x| (Var::fresh("x"), *x)).collect();
    let vars: Vec<Term> = env.iter().map(|(v, _)| at.var(v)).collect();
    let partials = prim.info().partials.unwrap();
    partials(at, &vars).iter().map(|p| p.as_ref().map(|p| evaluate(p, &env))).collect()
}

#[test]
fn partials_agree_with_central_differences() {
    let reals = [-3.2, -1.7, -0.85, -0.3, 0.2, 0.45, 0.8, 1.3, 2.6, 4.1];
    let ints = [-3.0, -1.0, 0.0, 1.0, 2.0, 5.0];
    let mut compared = 0;
    for &prim in Prim::ALL {
        let info = prim.info();
        if info.partials.is_none() {
            continue;
        }
        let grid = |t: &Type| if *t == Type::Int { &ints[..] } else { &reals[..] };
        let points: Vec<Vec<f64>> = match &info.params[..] {
            [a] => grid(a).iter().map(|x| vec![*x]).collect(),
            [a, b] => grid(a).iter().flat_map(|x| grid(b).iter().map(|y| vec![*x, *y])).collect(),
            _ => panic!("{prim:?} has other parameters"),
        };
        for point in points {
            let fine = |c: &Option<super::Condition>| c.is_none_or(|c| (c.holds)(&point));
            if !fine(&info.domain) || !fine(&info.finite_differences) {
                continue;
            }
            for (i, partial) in partials_at(prim, &point).into_iter().enumerate() {
                assert_eq!(partial.is_some(), info.params[i] == Type::Real, "{prim:?}");
                let Some(partial) = partial else { continue };
                let h = 1e-3;
                let moved = |step: f64| {
                    let mut moved = point.clone();
                    moved[i] += step;
                    apply(prim, &moved)
                };
                // Two steps of Richardson's extrapolation: the error is of order h^4.
                let (wide, narrow) = ((moved(h) - moved(-h)) / (2.0 * h), (moved(h / 2.0) - moved(-h / 2.0)) / h);
                let expected = (4.0 * narrow - wide) / 3.0;
                let error = (partial - expected).abs() / (1.0 + expected.abs());
                assert!(error < 1e-7, "{prim:?} at {point:?}, argument {i}: {partial}, differences say {expected}");
                compared += 1;
            }
        }
    }
    assert!(compared > 300, "only {compared} comparisons");
}

#[test]
fn partials_at_the_edges() {
    assert_eq!(partials_at(Prim::PowReal, &[0.0, 2.0]), [Some(0.0), Some(0.0)]);
    assert_eq!(partials_at(Prim::PowReal, &[-2.0, 2.0]), [Some(-4.0), Some(0.0)]);
    assert_eq!(partials_at(Prim::PowReal, &[0.0, 0.0]), [Some(0.0), Some(0.0)]);
    assert_eq!(partials_at(Prim::PowReal, &[0.0, 1.0]), [Some(1.0), Some(0.0)]);
    assert_eq!(partials_at(Prim::PowRealInt, &[0.0, 0.0]), [Some(0.0), None]);
    assert_eq!(partials_at(Prim::PowRealInt, &[0.0, 1.0]), [Some(1.0), None]);
    assert_eq!(partials_at(Prim::Abs, &[0.0]), [Some(0.0)]);
    assert_eq!(partials_at(Prim::Maximum, &[1.0, 1.0]), [Some(0.0), Some(1.0)]);
}

#[test]
fn domains_and_kinks_say_where() {
    let outside = |prim: Prim, args: &[f64]| prim.info().outside_domain(args);
    assert!(outside(Prim::Log, &[-1.0]) && outside(Prim::Log, &[0.0]) && !outside(Prim::Log, &[1.0]));
    assert!(outside(Prim::Sqrt, &[-1e-300]) && !outside(Prim::Sqrt, &[0.0]));
    assert!(outside(Prim::DivReal, &[1.0, 0.0]) && outside(Prim::Asin, &[1.5]) && outside(Prim::Floor, &[1e300]));
    assert!(!outside(Prim::Log, &[f64::NAN]), "NaN was made elsewhere");
    assert!(outside(Prim::PowReal, &[-2.0, 0.5]) && !outside(Prim::PowReal, &[-2.0, 3.0]));
    let kink = |prim: Prim, args: &[f64]| prim.info().at_kink(args);
    assert!(kink(Prim::Abs, &[0.0]) && kink(Prim::Maximum, &[2.0, 2.0]) && kink(Prim::Floor, &[3.0]));
    assert!(kink(Prim::Round, &[2.5]) && !kink(Prim::Round, &[2.0]) && !kink(Prim::Truncate, &[0.0]));
}
