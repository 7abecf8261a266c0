//! What cannot be made is refused by name.

use gradus_core::Definitions;
use gradus_core::{Global, Mode, Program, TypeName};
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
