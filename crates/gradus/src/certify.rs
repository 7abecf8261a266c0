//! Whether a theorem of `proofs/` covers a derivative at a point: its premises are checked, which is a matter of running the program once.

use crate::function::{Argument, Function};
use crate::options::{Backend, Kinks, Options};
use crate::{pipeline, Error};
use gradus_core::proved::{self, Outside};
use gradus_core::{Global, Mode};
use gradus_source::Span;
use std::sync::Arc;

/// What is known about the premises of the theorem: the program, run at the point, terminates, meets no kink, and is written in the
/// proved language.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// How the derivative is taken; `None`: by a compiled backend, in its own way.
    pub mode: Option<Mode>,
    /// The theorem about that mode, by its name in `proofs/Statements.v`.
    pub theorem: Option<&'static str>,
    /// How many steps of the semantics of `proofs/Language.v` the program takes at the point: the unit in which the theorem bounds what the derivative
    /// costs. `None` if a construct is outside the proved language.
    pub steps: Option<u64>,
    /// How many operations met a point that the theorem excludes: comparisons of equal reals, primitives where they are not smooth.
    pub kinks: u64,
    /// Where: the primitive and its place.
    pub kinks_at: Vec<String>,
    /// Constructs outside the proved language, with their places.
    pub outside: Vec<String>,
}

impl Certificate {
    pub fn covered(&self) -> bool {
        self.theorem.is_some() && self.kinks == 0 && self.outside.is_empty()
    }

    /// In one line.
    pub fn summary(&self) -> String {
        if let (true, Some(theorem)) = (self.covered(), self.theorem) {
            let after = self.steps.map_or(String::new(), |steps| format!(" after {steps} steps"));
            return format!(
                "covered by {theorem}: terminated{after}, kinks met: 0, all constructs within the proved language"
            );
        }
        let mut reasons = Vec::new();
        match (self.mode, self.theorem) {
            (None, _) => reasons.push("compiled code has derivatives of its own, which have no theorem".to_string()),
            (Some(mode), None) => reasons.push(format!("no theorem covers the mode `{mode}` for this language")),
            (Some(_), Some(_)) => {}
        }
        if self.kinks > 0 {
            reasons.push(format!("kinks met: {} ({})", self.kinks, self.kinks_at.join(", ")));
        }
        if !self.outside.is_empty() {
            reasons.push(format!("outside the proved language: {}", self.outside.join(", ")));
        }
        format!("not covered by a theorem: {}", reasons.join("; "))
    }
}

impl Function {
    /// Runs the function at a point and checks the premises of the theorem about the derivative there. An error of the run is an
    /// error of this.
    ///
    /// ```
    /// # fn main() -> Result<(), gradus::Error> {
    /// use gradus::{Argument, Backend, Options, Program};
    /// // The theorems are about the evaluator's derivatives.
    /// let options = Options { backend: Backend::Reference, ..Options::default() };
    /// let program = Program::from_source("f.gr", "let f x = if x < 1.0 then x * x else 1.0")?.with_options(options);
    /// let f = program.function("f")?;
    /// let certificate = f.certify(&[Argument::Value(&0.5.into())])?;
    /// assert!(certificate.covered());
    /// // `if`, `<`, `x`, `1.0` and `*`, `x`, `x`
    /// assert_eq!(certificate.steps, Some(7));
    /// assert_eq!(f.certify(&[Argument::Value(&1.0.into())])?.kinks, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn certify(&self, arguments: &[Argument]) -> Result<Certificate, Error> {
        let given = self.program().options();
        let options = Options {
            backend: Backend::Reference,
            mode: None,
            kinks: Kinks::Premise,
            domain: Default::default(),
            optimise: false,
            ..given.clone()
        };
        let function = self.within(&self.program().clone().with_options(options.clone()));
        function.apply(arguments)?;
        let report = function.with_engine(|engine| Ok(engine.evaluator()?.report()))?;
        let definitions = pipeline::definitions(pipeline::link(self.program().core(), &options));
        let named = arguments.iter().filter_map(|argument| match argument {
            Argument::Defined(name) => Some(name.clone()),
            Argument::Value(_) | Argument::Reals(_) => None,
        });
        let mut outside = Vec::new();
        for name in named.chain([self.definition().clone()]) {
            let global = Global::Source { name, types: Arc::from([]) };
            let contents = proved::contents(&*definitions, &global);
            let contents = contents.map_err(|refused| self.program().errors(vec![*refused]))?;
            outside.extend(contents.outside);
            outside.extend(contents.reached.iter().filter_map(|global| self.custom_derivative(global)));
        }
        let kinks = report.kinks;
        let mode = (!given.compiles()).then(|| given.mode.unwrap_or(Mode::Monadic));
        Ok(Certificate {
            mode,
            theorem: mode.and_then(proved::theorem),
            steps: report.semantic_steps.filter(|_| outside.is_empty()),
            kinks: kinks.iter().map(|kink| kink.count).sum(),
            kinks_at: kinks
                .iter()
                .map(|kink| self.placed(&format!("`{}`", kink.prim.info().name), kink.span))
                .collect(),
            outside: outside.iter().map(|construct| self.placed(&construct.what, construct.span)).collect(),
        })
    }

    /// A derivative that the program gives itself, whatever it says.
    fn custom_derivative(&self, global: &Global) -> Option<Outside> {
        let Global::Source { name, .. } = global else { return None };
        let def = self.program().core().defs.get(name)?;
        let custom = def.rules.reverse.is_some() || def.rules.forward.is_some();
        custom.then(|| Outside { what: format!("the custom derivative of `{name}`"), span: def.span })
    }

    /// `what at file:line:column`
    fn placed(&self, what: &str, span: Span) -> String {
        let anywhere = self.program().definition_span(self.definition());
        let span = if span == Span::default() { anywhere } else { span };
        match self.program().sources().file(span.file) {
            Some(file) => {
                let position = file.position(span.start);
                format!("{what} at {}:{}:{}", file.name, position.line, position.column)
            }
            None => what.to_string(),
        }
    }
}
