//! What the comparison rests on and needs no oracle: terms as text, literals, translation.

use gradus_core::build::At;
use gradus_core::{Definitions, Mode, Prim, Term, TermKind};
use gradus_derive::{Linker, Settings};
use gradus_generate::{generate, Feature, Features, Options};
use gradus_oracle::translate::Translator;
use gradus_oracle::values::{read_real, same_delta};
use gradus_oracle::wire::{decompose, Sexp, Wire};
use gradus_reference::Value;
use std::sync::Arc;

fn written(wire: &Wire) -> String {
    let mut text = String::new();
    wire.write(&mut text);
    text
}

#[test]
fn literals_are_exact_and_whole_numbers_are_themselves() {
    assert_eq!(decompose(0.0), Some((0, 0)));
    assert_eq!(decompose(2.0), Some((2, 0)));
    assert_eq!(decompose(-0.75), Some((-3, -2)));
    assert_eq!(decompose(f64::MIN_POSITIVE / 2.0), Some((1, -1023)));
    assert_eq!(decompose(f64::NAN), None);
    for x in [0.1, -1e300, 5e-324, 1.0 / 3.0, 9007199254740993.0] {
        let (m, e) = decompose(x).expect("finite");
        // In two factors, since 2^-1074 alone is the least number.
        assert_eq!(m as f64 * 2f64.powi(e / 2) * 2f64.powi(e - e / 2), x);
    }
    assert_eq!(read_real("-0x1.8p+3"), Some(-12.0));
    assert_eq!(read_real("0x0.0000000000001p-1022"), Some(5e-324));
    assert_eq!(read_real("-infinity"), Some(f64::NEG_INFINITY));
}

#[test]
fn answers_are_read() {
    assert!(Sexp::read("(add (v 0)").is_none());
    let answer = Sexp::read("(ok (pair 0x1p+1 ()) 3 0)").expect("an expression");
    let parts = answer.list().expect("a list");
    assert_eq!(parts[0].atom(), Some("ok"));
    assert_eq!(parts[1].list().map(<[Sexp]>::len), Some(3));
}

#[test]
fn deltas_are_compared_entry_for_entry() {
    let node = |tag: u32, parts: Vec<Value>| Value::Node(tag as _, parts.into());
    let var = |i: i64| node(3, vec![Value::Int(i)]);
    let delta = node(2, vec![node(1, vec![Value::Real(2.0), var(0)]), var(1)]);
    let says = |text: &str| same_delta(&delta, &Sexp::read(text).expect("an expression"));
    assert!(says("(add (scale 0x1p+1 (var 0)) (var 1))"));
    assert!(!says("(add (scale 0x1p+1 (var 0)) (scale 0x1p+0 (var 1)))"));
    assert!(!says("(add (var 1) (scale 0x1p+1 (var 0)))"));
    assert!(!says("(add (scale 0x1.8p+1 (var 0)) (var 1))"));
    assert!(!says("(add (scale 0x1p+1 (var 1)) (var 1))"));
}

fn translated(term: &Term) -> String {
    let linker = linker(0);
    let wire = Translator::closed(&linker, term).expect("within the proved language");
    written(&wire)
}

fn linker(seed: u64) -> Linker {
    let program = generate(seed, Options { features: features(), ..Options::default() }).program;
    Linker::new(Arc::new(program), Settings { reverse: Mode::Monadic, check: false })
}

fn features() -> Features {
    let without = [Feature::NestedDerivatives, Feature::VectorSpace, Feature::Checkpoints, Feature::Rules];
    without.into_iter().fold(Features::all(), Features::without)
}

#[test]
fn comparisons_keep_their_order_of_evaluation() {
    let at = At::default();
    let greater = |a: Term, b: Term, ty| at.prim_at(Prim::Greater, [ty], [a, b]);
    assert_eq!(
        translated(&greater(at.real(1.0), at.real(2.0), gradus_core::Type::Real)),
        "(lt (neg (lit 1 0)) (neg (lit 2 0)))"
    );
    assert_eq!(
        translated(&greater(at.int(1), at.int(2), gradus_core::Type::Int)),
        "(case (ile (int 1) (int 2)) (inr U (unit)) (inl U (unit)))"
    );
}

#[test]
fn random_programs_translate() {
    for seed in 0..40 {
        let linker = linker(seed);
        let function = gradus_core::Global::Source { name: "f".into(), types: [].into() };
        let definition = linker.definition(&function).expect("a definition");
        let Some(TermKind::Lambda(lambda)) = definition.term.as_ref().map(|term| &*term.kind) else {
            panic!("no function")
        };
        let wire = Translator::body(&linker, lambda, &[]).expect("within the proved language");
        assert!(Sexp::read(&written(&wire)).is_some(), "seed {seed}");
    }
}
