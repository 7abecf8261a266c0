//! Random programs give the same results natively as on the reference evaluator, for the function and its derivatives.

use gradus_core::build::At;
use gradus_core::{Body, Def, DeriveOp, Global, Program, Rules, Scheme, Term, TermKind, Type, Var};
use gradus_derive::{Linker, Settings};
use gradus_generate::{generate, Feature, Features, Generated, Options, Point};
use gradus_native::flow::{check, FunctionId, Module};
use gradus_native::{Backend, Data, Entry, Executable, Layout};
use gradus_reference::{Data as Known, Machine};
use std::sync::Arc;

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
/// and the second derivative along the point.
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
        names.push(("hvp", Type::fun(a.clone(), a)));
    }
    (program, names)
}

fn input(data: &gradus_generate::Data) -> Data {
    use gradus_generate::Data as D;
    match data {
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
fn reference(program: &Program, name: &str, point: &Point, ty: &Type) -> Option<Vec<f64>> {
    let linker = Linker::new(Arc::new(program.clone()), Settings::default());
    let mut machine = Machine::new(&linker, Default::default());
    let at = At::default();
    let value = machine.eval(&at.app(global(name), point.term())).ok()?;
    let data = machine.to_data(&value, ty).ok()?;
    let mut found = Vec::new();
    known_numbers(&data, &mut found);
    Some(found)
}

fn result_of(ty: &Type) -> Type {
    match ty {
        Type::Fun(ft) => ft.1.clone(),
        other => other.clone(),
    }
}

fn compare(seeds: std::ops::Range<u64>, size: usize) -> (usize, usize) {
    let mut features = Features::none();
    // These two are compared in `heap.rs` and `golden.rs`.
    let compiled = |f: &Feature| !matches!(f, Feature::RecursiveTypes | Feature::Rules);
    for feature in Feature::ALL.into_iter().filter(compiled) {
        features = features.with(feature);
    }
    let mut module = Module::default();
    let mut entries: Vec<FunctionId> = Vec::new();
    let mut cases = Vec::new();
    let (mut compared, mut refused) = (0, 0);
    let mut complaints = Vec::new();
    for seed in seeds {
        let generated = generate(seed, Options { size, features, rough: false });
        let (program, names) = functions(&generated);
        let asked: Vec<Entry> =
            names.iter().map(|(name, ty)| Entry { name: (*name).into(), term: global(name), ty: ty.clone() }).collect();
        match gradus_native::lower(&program, &asked) {
            Ok((lowered, ids, _)) => {
                if let Err(error) = check::module(&lowered) {
                    panic!("seed {seed}: {error}\n{}", gradus_native::flow::print::module(&lowered));
                }
                let by = module.append(lowered);
                for (id, (name, ty)) in ids.iter().zip(names) {
                    cases.push((entries.len(), generated.clone(), program.clone(), name, result_of(&ty)));
                    entries.push(FunctionId(id.0 + by));
                }
            }
            Err(refusal) => {
                refused += 1;
                if std::env::var_os("SHOW_REFUSED").is_some() {
                    eprintln!("seed {seed}: {:?}", refusal.reason);
                }
            }
        }
    }
    let codes = Backend::ALL.map(|b| (b, Executable::new(&module, &entries, &b.into()).expect("compiles")));
    for (entry, generated, program, name, ty) in cases {
        let layout = Layout::of(&program, &generated.input).expect("a flat input");
        let output = Layout::of(&program, &ty).expect("a flat output");
        for point in &generated.points {
            let Some(expected) = reference(&program, name, point, &ty) else { continue };
            let leaves = layout.flatten(&input(&point.data)).expect("a point of its type");
            for (backend, code) in &codes {
                let found = match code.call(entry, &leaves) {
                    Ok(leaves) => output.unflatten(&mut leaves.into_iter()).expect("a result of its type"),
                    Err(error) => {
                        complaints.push(format!("seed {}, {name}, {backend:?}: {error:?}", generated.seed));
                        continue;
                    }
                };
                let mut all = Vec::new();
                numbers(&found, &mut all);
                let scale = expected.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
                let close = |f: f64, e: f64| f.to_bits() == e.to_bits() || (f - e).abs() <= 1e-12 * scale;
                let same = all.len() == expected.len() && all.iter().zip(&expected).all(|(f, e)| close(*f, *e));
                if !same {
                    let seed = generated.seed;
                    complaints.push(format!("seed {seed}, {name}, {backend:?}: {all:?} instead of {expected:?}"));
                }
            }
            compared += 1;
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    (compared, refused)
}

#[test]
fn random_programs_agree_with_the_reference() {
    let (compared, refused) = compare(0..120, 60);
    println!("{compared} results compared, {refused} programs refused");
    assert!(compared > 500, "only {compared} results were compared ({refused} programs refused)");
}
