//! The comparison of all modes on one program.

use crate::numbers::{along, close, flatten, inner, largest};
use gradus_core::build::At;
use gradus_core::{check, DeriveOp, Global, Mode, Prim, Program, Term, TermKind, Type};
use gradus_derive::{Linker, Settings};
use gradus_generate::{Generated, Point};
use gradus_reference::{Machine, Options, Value};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Results of different modes may differ by this much, relative to the largest number of the result.
const TOLERANCE: f64 = 1e-10;
/// What central differences with Richardson's correction can promise on these programs.
const DIFFERENCE_TOLERANCE: f64 = 1e-5;
/// Programs that take longer are passed over: modes without sharing can be exponential.
const MAX_STEPS: u64 = 2_000_000;

/// Why a program counts as a fault of ours.
#[derive(Clone, Debug)]
pub struct Fault {
    pub mode: Mode,
    pub what: String,
}

/// What was seen of one program.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    /// Modes whose gradient was compared, at some point.
    pub compared: Vec<Mode>,
    /// Modes that refused the program, or took too long.
    pub passed_over: Vec<(Mode, String)>,
    /// Points at which finite differences were compared.
    pub differences: usize,
}

/// The modes that can give a reverse derivative.
pub fn modes() -> Vec<Mode> {
    let serves = |mode: &Mode| {
        gradus_derive::mode::rules(*mode, gradus_source::Span::default()).is_ok_and(|rules| rules.capabilities().vjp)
    };
    Mode::ALL.into_iter().filter(serves).collect()
}

pub fn compare(generated: &Generated, modes: &[Mode]) -> Result<Agreement, Fault> {
    let fault = |mode, what: String| Fault { mode, what };
    check::check_program(&generated.program)
        .map_err(|e| fault(Mode::Forward, format!("the program is ill-typed: {}", e.diagnostic().message)))?;
    let program = Arc::new(generated.program.clone());
    let runners: Vec<(Mode, Runner)> = modes.iter().map(|&mode| (mode, Runner::new(&program, mode))).collect();
    // Whoever runs the function itself: the results do not depend on it, except where the program takes derivatives inside.
    let Some((_, reference)) = runners.iter().find(|(mode, _)| *mode == Mode::Monadic).or(runners.first()) else {
        return Ok(Agreement::default());
    };
    let mut agreement = Agreement::default();
    for point in &generated.points {
        compare_at(generated, point, reference, &runners, &mut agreement)?;
    }
    Ok(agreement)
}

fn compare_at(
    generated: &Generated,
    point: &Point,
    reference: &Runner,
    runners: &[(Mode, Runner)],
    agreement: &mut Agreement,
) -> Result<(), Fault> {
    let case = Case::new(generated, point);
    let value = match reference.run(&case.value(), &generated.output) {
        Ok(value) => flatten(&value),
        Err(problem) if is_limit(&problem) => {
            agreement.passed_over.extend(runners.iter().map(|(mode, _)| (*mode, problem.clone())));
            return Ok(());
        }
        Err(problem) => return Err(Fault { mode: Mode::Monadic, what: format!("the function itself: {problem}") }),
    };
    let tangent = match reference.run(&case.jvp(), &generated.output) {
        Ok(tangent) => flatten(&tangent),
        Err(problem) if is_limit(&problem) => return Ok(()),
        Err(problem) => return Err(Fault { mode: Mode::Forward, what: format!("jvp: {problem}") }),
    };
    let direction = case.tangent_numbers(reference, generated);
    let mut first: Option<(Mode, Vec<f64>)> = None;
    for (mode, runner) in runners {
        let mode = *mode;
        let fault = |what: String| Fault { mode, what };
        let both = Type::tuple([generated.output.clone(), generated.input.clone()]);
        let pair = match runner.run(&case.value_and_vjp(), &both) {
            Ok(Value::Node(_, fields)) if fields.len() == 2 => (flatten(&fields[0]), flatten(&fields[1])),
            Ok(_) => return Err(fault("pullback gave no pair".into())),
            Err(problem) if is_limit(&problem) || is_refusal(&problem) => {
                agreement.passed_over.push((mode, problem));
                continue;
            }
            Err(problem) => return Err(fault(format!("vjp: {problem}"))),
        };
        let ((primal, shape), (gradient, _)) = pair;
        // A derivative inside the program is taken in this mode too, so only the same mode must give the same bits.
        let expected = match runner.run(&case.value(), &generated.output) {
            Ok(value) => flatten(&value),
            Err(problem) => return Err(fault(format!("the function itself: {problem}"))),
        };
        if shape != expected.1 || !primal.iter().zip(&expected.0).all(|(a, b)| a.to_bits() == b.to_bits()) {
            return Err(fault(format!("the primal value is {primal:?}, not {:?}", expected.0)));
        }
        // K Lemma 1: dt . F(s, ds) = R(s, dt) . ds
        let left = inner(&case.cotangent(&value.0), &tangent.0);
        let right = inner(&gradient, &direction);
        let scale = largest(&gradient).max(largest(&tangent.0));
        if scale < 1e100 && !close(left, right, TOLERANCE * 100.0, scale) {
            return Err(fault(format!("dy . jvp f x dx = {left}, but vjp f x dy . dx = {right}")));
        }
        match &first {
            None => first = Some((mode, gradient)),
            Some((other, expected)) => {
                let scale = largest(expected);
                let same = expected.len() == gradient.len()
                    && expected.iter().zip(&gradient).all(|(a, b)| close(*a, *b, TOLERANCE, scale));
                if !same {
                    return Err(fault(format!("the gradient is {gradient:?}, but by {other} {expected:?}")));
                }
            }
        }
        agreement.compared.push(mode);
    }
    compare_differences(generated, reference, &case, &value.0, &tangent.0, agreement)
}

/// The slope of f along dx by central differences, with one step of Richardson's extrapolation and an estimate of its error: where
/// two step widths disagree, a branch changed nearby or the function is too rough, and nothing can be said.
fn compare_differences(
    generated: &Generated,
    runner: &Runner,
    case: &Case,
    value: &[f64],
    tangent: &[f64],
    agreement: &mut Agreement,
) -> Result<(), Fault> {
    let slope = |step: f64| -> Option<Vec<f64>> {
        let above = flatten(&runner.run(&case.value_at(step), &generated.output).ok()?).0;
        let below = flatten(&runner.run(&case.value_at(-step), &generated.output).ok()?).0;
        (above.len() == value.len() && below.len() == value.len())
            .then(|| above.iter().zip(&below).map(|(a, b)| (a - b) / (2.0 * step)).collect())
    };
    let (Some(coarse), Some(fine)) = (slope(2e-4), slope(1e-4)) else { return Ok(()) };
    let scale = largest(tangent).max(largest(value)).max(largest(&fine));
    if coarse.iter().zip(&fine).any(|(c, f)| !close(*c, *f, 1e-6, scale)) || scale > 1e6 {
        return Ok(());
    }
    agreement.differences += 1;
    for ((c, f), t) in coarse.iter().zip(&fine).zip(tangent) {
        let extrapolated = (4.0 * f - c) / 3.0;
        if !close(extrapolated, *t, DIFFERENCE_TOLERANCE, scale) {
            let what = format!("jvp gives the slope {t}, central differences {extrapolated}");
            return Err(Fault { mode: Mode::Forward, what });
        }
    }
    Ok(())
}

fn is_limit(problem: &str) -> bool {
    problem.starts_with("E06") && problem.contains("steps")
}

fn is_refusal(problem: &str) -> bool {
    problem.starts_with("E0502") || problem.starts_with("E0503")
}

/// The terms to evaluate for a program at a point. The tangent is the point itself, scaled; the cotangent is the value, scaled.
struct Case {
    input: Type,
    output: Type,
    point: Term,
}

const TANGENT: f64 = 0.7;
const COTANGENT: f64 = 0.9;

impl Case {
    fn new(generated: &Generated, point: &Point) -> Self {
        Case { input: generated.input.clone(), output: generated.output.clone(), point: point.term() }
    }

    fn function(&self) -> Term {
        At::default().global(Global::Source { name: Generated::FUNCTION.into(), types: [].into() })
    }

    fn value(&self) -> Term {
        At::default().app(self.function(), self.point.clone())
    }

    fn value_at(&self, step: f64) -> Term {
        At::default().app(self.function(), along(&self.input, &self.point, step, &self.tangent()))
    }

    fn tangent(&self) -> Term {
        At::default().prim_at(Prim::Scale, [self.input.clone()], [At::default().real(TANGENT), self.point.clone()])
    }

    fn tangent_numbers(&self, runner: &Runner, generated: &Generated) -> Vec<f64> {
        runner.run(&self.tangent(), &generated.input).map_or_else(|_| Vec::new(), |value| flatten(&value).0)
    }

    fn cotangent(&self, value: &[f64]) -> Vec<f64> {
        if self.output == Type::Real {
            return vec![COTANGENT];
        }
        value.iter().map(|y| COTANGENT * y).collect()
    }

    fn types(&self) -> Arc<[Type]> {
        [self.input.clone(), self.output.clone()].into()
    }

    fn jvp(&self) -> Term {
        let args = vec![self.function(), self.point.clone(), self.tangent()];
        At::default().term(TermKind::Derive { op: DeriveOp::Jvp, types: self.types(), args })
    }

    /// `let (y, back) = pullback f x in (y, back dy)`
    fn value_and_vjp(&self) -> Term {
        let at = At::default();
        let var = gradus_core::Var::fresh("r");
        let back = Type::fun(self.output.clone(), self.input.clone());
        let args = vec![self.function(), self.point.clone()];
        let pullback = at.term(TermKind::Derive { op: DeriveOp::Pullback, types: self.types(), args });
        let y = at.proj(at.var(&var), 0);
        let dy = match self.output {
            Type::Real => at.real(COTANGENT),
            _ => at.prim_at(Prim::Scale, [self.output.clone()], [at.real(COTANGENT), y.clone()]),
        };
        let result = at.tuple([y, at.app(at.proj(at.var(&var), 1), dy)]);
        at.bind(&var, Type::tuple([self.output.clone(), back]), pullback, result)
    }
}

/// A linker for one mode, and a machine on it that keeps the code it has made.
struct Runner {
    linker: Rc<Linker>,
    machine: RefCell<Machine<'static>>,
}

impl Runner {
    fn new(program: &Arc<Program>, mode: Mode) -> Self {
        let linker = Rc::new(Linker::new(program.clone(), Settings { reverse: mode, check: true }));
        let machine = RefCell::new(Machine::shared(linker.clone(), Options::default()));
        Runner { linker, machine }
    }

    /// The value of a term, or the code and the message of what went wrong.
    fn run(&self, term: &Term, ty: &Type) -> Result<Value, String> {
        let words = |d: &gradus_source::Diagnostic| format!("{} {}", d.code, d.message);
        let term = self.linker.expand(term, ty).map_err(|d| words(&d))?;
        let mut machine = self.machine.borrow_mut();
        machine.allow_steps(MAX_STEPS);
        machine.eval(&term).map_err(|error| words(&error.diagnostic()))
    }
}
