//! What cannot be made is refused by name.

use gradus_core::{Definitions, Global, Mode, Program, TypeName};
use gradus_derive::{Linker, Refusal, Settings};
use gradus_source::Span;
use std::sync::Arc;

#[test]
fn keys_that_no_program_has() {
    let linker = Linker::new(Arc::new(Program::default()), Settings::default());
    let missing = Global::Source { name: "nothing".into(), types: [].into() };
    assert_eq!(linker.definition(&missing).map(|_| ()).map_err(|d| d.code), Err("E0505"));
    let wrapper = Global::Wrapper { name: "nothing", modes: vec![], types: [].into() };
    assert_eq!(linker.definition(&wrapper).map(|_| ()).map_err(|d| d.code), Err("E0505"));
    assert_eq!(linker.type_decl(&TypeName::new("nothing")).map(|_| ()).map_err(|d| d.code), Err("E0506"));
}

/// Every mode serves every form: what has no reverse sweep of its own runs once for each real of the input.
#[test]
fn every_mode_serves_every_form() {
    let expectations: [(&str, &[f64]); 8] = [
        ("grad f 3.0", &[6.0]),
        ("value_and_grad f 3.0", &[9.0, 6.0]),
        ("vjp f 3.0 2.0", &[12.0]),
        ("jvp f 3.0 2.0", &[12.0]),
        ("hvp f 3.0 2.0", &[4.0]),
        ("diff f 3.0", &[6.0]),
        ("jacobian f 3.0", &[6.0]),
        ("taylor 2 f 3.0", &[9.0, 6.0, 1.0]),
    ];
    crate::session::check_in(&Mode::ALL, "let f x = x * x", &expectations);
}

#[test]
fn wording() {
    let span = Span::default();
    let refusals = [
        (
            Refusal::Construct { mode: Mode::Combinator, construct: "general recursion", span },
            "the mode `combinator` cannot differentiate general recursion",
        ),
        (Refusal::Form { mode: Mode::Vector, form: "jvp", span }, "the mode `vector` cannot compute `jvp`"),
    ];
    for (refusal, expected) in refusals {
        assert_eq!(refusal.diagnostic().message, expected);
    }
}
