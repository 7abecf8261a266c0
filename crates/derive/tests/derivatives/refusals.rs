//! What cannot be made is refused by name.

use crate::session::Session;
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

/// Forms that a mode cannot serve; those that do not depend on the chosen mode still work.
#[test]
fn forms_that_a_mode_cannot_serve() {
    let session = Session::new("let f x = x * x", Mode::Tower).unwrap_or_else(|e| panic!("{e}"));
    for form in ["grad f 1.0", "value_and_grad f 1.0", "vjp f 1.0 1.0", "hvp f 1.0 1.0"] {
        let error = session.eval(form).err().unwrap_or_else(|| panic!("{form} has a value"));
        assert!(error.contains("the mode `tower` cannot compute"), "{form}: {error}");
    }
    assert!(session.eval("diff f 1.0").is_ok());
}

#[test]
fn wording() {
    let span = Span::default();
    let refusals = [
        (Refusal::Unavailable { mode: Mode::Trace, span }, "the mode `trace` is not available"),
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
