//! Random programs through the native compiler and the reference evaluator: the function and its derivatives.

#![allow(dead_code)] // Those who use it use parts of it.

use crate::support;
use gradus_core::build::At;
use gradus_core::{Body, Def, DeriveOp, Global, Program, Rules, Scheme, Term, TermKind, Type, Var};
use gradus_derive::{Linker, Settings};
use gradus_generate::{Features, Generated, Point, Rng};
use gradus_native::flow::{check, FunctionId, Module};
use gradus_native::simplify::Room;
use gradus_native::{Backend, Care, Data, Entry, Executable, Layout};
use gradus_reference::{Data as Known, Machine};
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// How programs are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    pub backend: Backend,
    pub simplified: bool,
    /// As the first call of a user runs it.
    pub quick: bool,
}

impl Way {
    pub const ALL: [Way; 5] = [
        Way { backend: Backend::Cranelift, simplified: true, quick: false },
        Way { backend: Backend::Cranelift, simplified: true, quick: true },
        Way { backend: Backend::Cranelift, simplified: false, quick: true },
        Way { backend: Backend::C, simplified: true, quick: false },
        Way { backend: Backend::C, simplified: false, quick: false },
    ];
}

/// The program of a text in `f`, with two points at which to try it.
pub fn from_text(
    file: &str,
    seed: u64,
    mut rng: Rng,
    text: fn(&mut Rng) -> String,
    point: fn(&mut Rng) -> gradus_generate::Data,
) -> Generated {
    let program = support::program(file, &text(&mut rng), Path::new("."));
    let (input, output) = support::parts(&program.defs[Generated::FUNCTION].scheme.ty);
    let points = (0..2).map(|_| Point { ty: input.clone(), data: point(&mut rng) }).collect();
    Generated { seed, features: Features::none(), program, input, output, points }
}

/// What came out.
#[derive(Default)]
pub struct Tally {
    pub programs: u64,
    /// Results, on each way.
    pub compared: u64,
    /// Results that the reference evaluator does not give: the program fails, or would take too long.
    pub failing: u64,
    /// Programs that the compiler refuses, by reason.
    pub refused: BTreeMap<String, u64>,
    pub differences: Vec<String>,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.programs += other.programs;
        self.compared += other.compared;
        self.failing += other.failing;
        for (reason, count) in other.refused {
            *self.refused.entry(reason).or_default() += count;
        }
        self.differences.extend(other.differences);
    }
}

/// How much further a rounding error inside of a program may move its result than one of the point does.
const AMPLIFIED: f64 = 256.0;
/// What the reference evaluator may take for one result.
const MOST_STEPS: u64 = 20_000_000;

fn global(name: &str) -> Term {
    At::default().global(Global::Source { name: name.into(), types: Arc::from([]) })
}

fn define(program: &mut Program, name: &str, ty: Type, term: Term) {
    let def = Def {
        name: name.into(),
        module: "Main".into(),
        scheme: Scheme::mono(ty),
        body: Body::Term(term),
        rules: Rules::default(),
        span: Default::default(),
    };
    program.defs.insert(name.into(), def);
}

/// The functions to compare: `f`, its reverse derivative with its own value as cotangent, its forward derivative along the point,
/// the second derivative along the point, and the reverse derivative of the reverse derivative.
fn functions(generated: &Generated) -> (Program, Vec<(&'static str, Type)>) {
    let at = At::default();
    let (a, b) = (generated.input.clone(), generated.output.clone());
    let mut program = generated.program.clone();
    let mut names = vec![("f", Type::fun(a.clone(), b.clone()))];
    let derive = |op, types: Vec<Type>, args: Vec<Term>| at.term(TermKind::Derive { op, types: types.into(), args });
    let x = Var::fresh("x");
    let value = at.app(global("f"), at.var(&x));
    let vjp = derive(DeriveOp::Vjp, vec![a.clone(), b.clone()], vec![global("f"), at.var(&x), value]);
    define(&mut program, "vjp", Type::fun(a.clone(), a.clone()), at.lambda(&x, a.clone(), vjp));
    names.push(("vjp", Type::fun(a.clone(), a.clone())));
    let x = Var::fresh("x");
    let jvp = derive(DeriveOp::Jvp, vec![a.clone(), b.clone()], vec![global("f"), at.var(&x), at.var(&x)]);
    define(&mut program, "jvp", Type::fun(a.clone(), b.clone()), at.lambda(&x, a.clone(), jvp));
    names.push(("jvp", Type::fun(a.clone(), b.clone())));
    if b == Type::Real {
        let x = Var::fresh("x");
        let hvp = derive(DeriveOp::Hvp, vec![a.clone()], vec![global("f"), at.var(&x), at.var(&x)]);
        define(&mut program, "hvp", Type::fun(a.clone(), a.clone()), at.lambda(&x, a.clone(), hvp));
        names.push(("hvp", Type::fun(a.clone(), a.clone())));
        let x = Var::fresh("x");
        let value = at.app(global("vjp"), at.var(&x));
        let again = derive(DeriveOp::Vjp, vec![a.clone(), a.clone()], vec![global("vjp"), at.var(&x), value]);
        define(&mut program, "again", Type::fun(a.clone(), a.clone()), at.lambda(&x, a.clone(), again));
        names.push(("again", Type::fun(a.clone(), a)));
    }
    (program, names)
}

fn input(data: &gradus_generate::Data, is_list: bool) -> Data {
    use gradus_generate::Data as D;
    let input = |data: &D| input(data, false);
    match data {
        D::Construct { .. } if is_list => {
            let (mut items, mut rest) = (Vec::new(), data);
            while let D::Construct { args, .. } = rest {
                let [first, more] = &args[..] else { break };
                items.push(input(first));
                rest = more;
            }
            Data::list(items)
        }
        D::Real(x) => Data::Real(*x),
        D::Int(x) => Data::Int(*x),
        D::Bool(x) => Data::Bool(*x),
        D::Tuple(items) => Data::Tuple(items.iter().map(input).collect()),
        D::Array(items) => Data::Array(items.iter().map(input).collect()),
        D::Construct { tag, args } => Data::Variant { tag: *tag, args: args.iter().map(input).collect() },
    }
}

fn numbers(data: &Data, found: &mut Vec<f64>) {
    match data {
        Data::Real(x) => found.push(*x),
        Data::Int(x) => found.push(*x as f64),
        Data::Bool(x) => found.push(f64::from(u8::from(*x))),
        Data::Unit | Data::String(_) => {}
        Data::Tuple(items) | Data::Array(items) | Data::List(items) => items.iter().for_each(|d| numbers(d, found)),
        Data::Variant { tag, args } => {
            found.push(*tag as f64);
            args.iter().for_each(|d| numbers(d, found));
        }
        Data::Reals { data, .. } => found.extend(data),
    }
}

fn known_numbers(data: &Known, found: &mut Vec<f64>) {
    match data {
        Known::Real(x) => found.push(*x),
        Known::Int(x) => found.push(*x as f64),
        Known::Bool(x) => found.push(f64::from(u8::from(*x))),
        Known::Unit | Known::String(_) | Known::Function => {}
        Known::Tuple(items) | Known::Record(items) | Known::Array(items) | Known::List(items) => {
            items.iter().for_each(|d| known_numbers(d, found))
        }
        Known::Construct { tag, args } => {
            found.push(*tag as f64);
            args.iter().for_each(|d| known_numbers(d, found));
        }
        Known::Reals(data) => found.extend(data),
        Known::Ints(data) => found.extend(data.iter().map(|x| *x as f64)),
    }
}

/// The reference result as numbers; `None` if the program fails.
fn reference(linker: &Linker, name: &str, point: &Point, ty: &Type) -> Option<Vec<f64>> {
    let options = gradus_reference::Options { max_steps: Some(MOST_STEPS), ..Default::default() };
    let mut machine = Machine::new(linker, options);
    let at = At::default();
    let value = machine.eval(&at.app(global(name), point.term())).ok()?;
    let data = machine.to_data(&value, ty).ok()?;
    let mut found = Vec::new();
    known_numbers(&data, &mut found);
    Some(found)
}

/// How far the reference result moves when every real of the point does so by a rounding error or two.
fn sensitivity(linker: &Linker, name: &str, point: &Point, ty: &Type, expected: &[f64]) -> f64 {
    let moved = [1.0, -1.0, 2.0, -2.0].into_iter().filter_map(|ulps| {
        let point = Point { data: nudged(&point.data, 1.0 + ulps * f64::EPSILON), ..point.clone() };
        reference(linker, name, &point, ty)
    });
    let far = moved.map(|moved| moved.iter().zip(expected).fold(0.0_f64, |far, (m, e)| far.max((m - e).abs())));
    far.fold(0.0, f64::max)
}

fn nudged(data: &gradus_generate::Data, factor: f64) -> gradus_generate::Data {
    use gradus_generate::Data as D;
    let all = |items: &[D]| items.iter().map(|d| nudged(d, factor)).collect();
    match data {
        D::Real(x) => D::Real(x * factor),
        D::Int(_) | D::Bool(_) => data.clone(),
        D::Tuple(items) => D::Tuple(all(items)),
        D::Array(items) => D::Array(all(items)),
        D::Construct { tag, args } => D::Construct { tag: *tag, args: all(args) },
    }
}

fn result_of(ty: &Type) -> Type {
    match ty {
        Type::Fun(ft) => ft.1.clone(),
        other => other.clone(),
    }
}

/// A function of a program, in the executables of its batch.
struct Case {
    entry: usize,
    generated: Rc<Generated>,
    program: Arc<Program>,
    linker: Rc<Linker>,
    name: &'static str,
    result: Type,
}

/// Compares the programs that `generate` makes of some seeds, compiled together on each way. What panics is a difference too.
pub fn compare(seeds: Range<u64>, generate: fn(u64) -> Generated, ways: &[Way]) -> Tally {
    let mut tally = Tally { programs: seeds.end - seeds.start, ..Tally::default() };
    let mut modules = [Module::default(), Module::default()];
    let mut entries: [Vec<FunctionId>; 2] = Default::default();
    let mut cases = Vec::new();
    for seed in seeds {
        let generated = generate(seed);
        let (program, names) = functions(&generated);
        let asked: Vec<Entry> =
            names.iter().map(|(name, ty)| Entry { name: (*name).into(), term: global(name), ty: ty.clone() }).collect();
        let lowered = catch_unwind(AssertUnwindSafe(|| {
            let (plain, ids, _) = gradus_native::lower_seen_from(&program, &asked, &[])?;
            let mut simple = plain.clone();
            // So little that also these short loops go by segments, in every other program.
            let room = if seed % 2 == 0 { Room::default() } else { Room { whole: 6, near: 4, least: 2 } };
            gradus_native::simplify::module_within(&mut simple, &room);
            Ok((plain, simple, ids))
        }));
        let (plain, simple, ids) = match lowered {
            Ok(Ok(lowered)) => lowered,
            Ok(Err(refusal)) => {
                let refusal: Box<gradus_native::Refusal> = refusal;
                *tally.refused.entry(refusal.diagnostic().message).or_default() += 1;
                continue;
            }
            Err(_) => {
                tally.differences.push(format!("seed {seed}: lowering panics"));
                continue;
            }
        };
        let wrong = [&plain, &simple].into_iter().find_map(|module| check::module(module).err());
        if let Some(error) = wrong {
            tally.differences.push(format!("seed {seed}: {error}"));
            continue;
        }
        let first = entries[0].len();
        for (at, lowered) in [plain, simple].into_iter().enumerate() {
            let by = modules[at].append(lowered);
            entries[at].extend(ids.iter().map(|id| FunctionId(id.0 + by)));
        }
        let (generated, program) = (Rc::new(generated), Arc::new(program));
        let linker = Rc::new(Linker::new(program.clone(), Settings::default()));
        for (number, (name, ty)) in names.into_iter().enumerate() {
            let (generated, program, linker) = (generated.clone(), program.clone(), linker.clone());
            cases.push(Case { entry: first + number, generated, program, linker, name, result: result_of(&ty) });
        }
    }
    let code = |way: &Way| {
        // So little that also these small loops are cut into chunks and run on all cores.
        let care = if way.quick { Care::Quick } else { Care::QuickThenBest };
        let mut options = gradus_native::Options { least_work: 8.0, care, ..way.backend.into() };
        // What was simplified is compiled as it is for users; for the rest the C compiler need not take pains.
        if !way.simplified {
            options.c.flags.retain(|f| f != "-O3" && f != "-march=native");
            options.c.flags.push("-O0".into());
        }
        let at = usize::from(way.simplified);
        let code = Executable::new(&modules[at], &entries[at], &options).expect("compiles");
        code.improve(None);
        (*way, code)
    };
    let codes: Vec<(Way, Executable)> = ways.iter().map(code).collect();
    cases.iter().for_each(|case| compare_case(case, &codes, &mut tally));
    tally
}

fn compare_case(case: &Case, codes: &[(Way, Executable)], tally: &mut Tally) {
    let Case { entry, generated, program, linker, name, result } = case;
    let layout = Layout::of(program, &generated.input).expect("a layout of the input");
    let output = Layout::of(program, result).expect("a layout of the output");
    let is_list = matches!(&generated.input, Type::Named(name, _) if &*name.base == "list");
    for point in &generated.points {
        let Some(expected) = reference(linker, name, point, result) else {
            tally.failing += 1;
            continue;
        };
        let leaves = layout.flatten(&input(&point.data, is_list)).expect("a point of its type");
        let mut complain = |way: &Way, what: String| {
            tally.differences.push(format!("seed {}, {name}, {way:?}: {what}", generated.seed));
        };
        for (way, code) in codes {
            let found = match code.call(*entry, &leaves) {
                Ok(leaves) => output.unflatten(&mut leaves.into_iter()),
                Err(error) => {
                    complain(way, format!("{error:?}"));
                    continue;
                }
            };
            let mut all = Vec::new();
            match found {
                Ok(found) => numbers(&found, &mut all),
                Err(_) => complain(way, "a result that is not of its type".into()),
            }
            let scale = expected.iter().filter(|x| x.is_finite()).fold(1.0_f64, |m, x| m.max(x.abs()));
            let apart = |f: f64, e: f64| if f == e || (f.is_nan() && e.is_nan()) { 0.0 } else { (f - e).abs() };
            let far = all.iter().zip(&expected).map(|(f, e)| apart(*f, *e)).fold(0.0_f64, |far, d| match d.is_nan() {
                true => f64::INFINITY,
                false => far.max(d),
            });
            if all.len() == expected.len() && far <= 1e-12 * scale {
                continue;
            }
            // Elementary functions differ by a rounding error between the two, anywhere in the program.
            let moves = || AMPLIFIED * sensitivity(linker, name, point, result, &expected);
            let amplified = all.len() == expected.len() && far <= 1e-6 * scale && far <= moves();
            let why = if amplified { ", as far as a rounding error of the point moves it" } else { "" };
            complain(way, format!("{all:?} instead of {expected:?}{why}"));
        }
        tally.compared += 1;
    }
}
