//! What became of a function on its way to machine code, for people: `gradus explain` and `--dump`.

use crate::{pipeline, Error, Function};
use gradus_core::build::At;
use gradus_core::Global;
use gradus_native::explain::{facts, loops_text, Kind, Loop};
use gradus_native::flow::{FunctionId, Module};
use gradus_native::Entry;
use gradus_source::{Position, Span};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A remark with its place in the source.
#[derive(Clone, Debug)]
pub struct Remark {
    pub file: String,
    pub start: Position,
    pub text: String,
}

/// A stage of compilation that can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The typed calculus.
    Core,
    /// First-order code; derivatives inside are made.
    Lowered,
    /// The same, simplified.
    Flow,
    /// What Cranelift gets.
    Cranelift,
    /// The C file.
    C,
}

impl Function {
    /// What the function became: loops, recursion, cells on the heap.
    ///
    /// ```
    /// # fn main() -> Result<(), gradus::Error> {
    /// let program = gradus::Program::from_source("power.gr", "let power x = ifold 1000 (fun _ y -> y * x) 1.0")?;
    /// let remarks = program.function("power")?.explain()?;
    /// assert_eq!((remarks[0].start.line, remarks[0].text.contains("a loop")), (1, true));
    /// # Ok(())
    /// # }
    /// ```
    pub fn explain(&self) -> Result<Vec<Remark>, Error> {
        let (module, id) = self.lowered(true)?;
        let remarks = facts(&module, id).into_iter().filter_map(|fact| self.remark(fact.span, fact.kind.text()));
        Ok(sorted(remarks.collect()))
    }

    /// The same for a function that takes derivatives: which loops run there, again and back, and what is saved.
    pub fn explain_derivative(&self) -> Result<Vec<Remark>, Error> {
        let (module, id) = self.lowered(true)?;
        let mut loops: BTreeMap<Span, Vec<Loop>> = BTreeMap::new();
        let mut remarks = Vec::new();
        for fact in facts(&module, id) {
            match fact.kind {
                Kind::Loop(l) => loops.entry(fact.span).or_default().push(l),
                kind => remarks.extend(self.remark(fact.span, kind.text())),
            }
        }
        for (span, loops) in loops {
            remarks.extend(self.remark(span, loops_text(&loops)));
        }
        Ok(sorted(remarks))
    }

    /// The function after a stage of compilation.
    pub fn dump(&self, stage: Stage) -> Result<String, Error> {
        match stage {
            Stage::Core => Ok(pipeline::core_text(self.program().core(), self.definition())),
            Stage::Lowered => Ok(pipeline::flow_text(&self.lowered(false)?.0)),
            Stage::Flow => Ok(pipeline::flow_text(&self.lowered(true)?.0)),
            Stage::Cranelift => {
                let (module, id) = self.lowered(true)?;
                pipeline::cranelift_text(&module, id).map_err(|error| self.program().errors(vec![*error]))
            }
            Stage::C => {
                let (module, id) = self.lowered(true)?;
                Ok(pipeline::c_library(&module, &[(id, "entry".into())], self.program().sources()).code)
            }
        }
    }

    fn lowered(&self, simplified: bool) -> Result<(Module, FunctionId), Error> {
        let at = At(self.program().definition_span(self.definition()));
        let global = Global::Source { name: self.definition().clone(), types: Arc::from([]) };
        let entry = Entry { name: self.name().into(), term: at.global(global), ty: self.ty() };
        let (core, sources) = (self.program().core(), self.program().sources());
        let lowered = pipeline::lower_for_people(core, entry, sources, simplified);
        lowered.map_err(|refused| self.program().errors(vec![*refused]))
    }

    /// Code without a place of its own is left out.
    fn remark(&self, span: Span, text: String) -> Option<Remark> {
        let file = self.program().sources().file(span.file).filter(|_| span != Span::default())?;
        Some(Remark { file: file.name.to_string(), start: file.position(span.start), text })
    }
}

/// By place, each said once.
fn sorted(mut remarks: Vec<Remark>) -> Vec<Remark> {
    let key = |r: &Remark| (r.file.clone(), r.start.line, r.start.column, r.text.clone());
    remarks.sort_by_key(key);
    remarks.dedup_by_key(|r| key(r));
    remarks
}
