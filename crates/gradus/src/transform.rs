//! Programs as Gradus source: the derivative of a function, or the function itself, with everything that it needs.

use crate::error::DriverError;
use crate::function::Function;
use crate::{explanation, pipeline, reach, Error, Program};
use gradus_core::build::At;
use gradus_core::check::Linked;
use gradus_core::print::{print_definitions, Annotations, Options};
use gradus_core::{Body, Definition, DeriveOp, Global, Mode, Symbol, TermKind, Type, Var};
use std::fmt::Write;
use std::sync::Arc;

impl Function {
    /// Gradus source that defines the derivative of this function of one parameter, in the mode of the program's options:
    /// `f_value_and_grad x` if it returns a real, else `f_vjp x dy`.
    ///
    /// With `optimise` the definitions go through the optimiser, and a function of few reals is differentiated in forward mode unless a
    /// mode is asked for: there each partial derivative is an expression.
    pub fn transformed(&self) -> Result<String, Error> {
        self.derivative(self.program().options(), false)?.text()
    }

    /// The same, followed by the derivation of each optimised definition, as a comment.
    pub fn explained(&self) -> Result<String, Error> {
        self.derivative(self.program().options(), true)?.explained_text()
    }

    /// Gradus source that defines this function itself, the derivatives that it takes carried out in the mode of the program's options; with
    /// `optimise`, optimised.
    pub fn expanded(&self) -> Result<String, Error> {
        self.itself(false)?.text()
    }

    /// The same, followed by the derivation of each optimised definition, as a comment.
    pub fn expanded_and_explained(&self) -> Result<String, Error> {
        self.itself(true)?.explained_text()
    }

    /// The steps of the mode `combinator` (C section 6) for this function and every definition that it calls: the function, its combinator, the primal and
    /// the linear combinator that the reverse macro makes of it; and last the code that all of these become.
    pub fn steps(&self) -> Result<String, Error> {
        // Optimised, the definitions would no longer be those of the steps.
        let options = crate::Options { optimise: false, ..self.program().options().clone() };
        let Transformed { program, linked, definitions } = self.derivative(&options, false)?;
        let mut out = String::new();
        for definition in &definitions {
            let Global::Derived { mode: Mode::Combinator, of } = &definition.global else { continue };
            let Global::Source { name, .. } = &**of else { continue };
            let is_function = |d: &Definition| matches!(d.term.as_ref().map(|t| &*t.kind), Some(TermKind::Lambda(_)));
            let shared = pipeline::definitions(linked.clone());
            let source = shared.definition(of).map_err(|d| program.errors(vec![*d]))?;
            // What comes from a custom rule has no text to follow.
            if !is_function(&source) || name.ends_with("#primal") {
                continue;
            }
            let steps = pipeline::combinator_steps(&linked, of).map_err(|d| program.errors(vec![*d]))?;
            let text = print(&program, linked.clone(), std::slice::from_ref(&source))?;
            let _ = write!(
                out,
                "== {name}\n\n-- the function\n\n{text}\n-- as a combinator\n\n{}\n-- after the reverse macro\n\n{}\n",
                steps.combinators, steps.reversed
            );
        }
        let _ = write!(out, "== the code\n\n{}", print(&program, linked, &definitions)?);
        Ok(out)
    }

    /// The derivative and all that it needs.
    fn derivative(&self, options: &crate::Options, explain: bool) -> Result<Transformed, Error> {
        let [input] = self.params() else {
            let (name, ty) = (self.name().to_string(), self.type_text());
            return Err(self.program().error(DriverError::NotOneParameter { name, ty }));
        };
        let at = At(self.program().definition_span(self.definition()));
        let function = at.global(Global::Source { name: self.definition().clone(), types: Arc::from([]) });
        let (x, dy) = (Var::fresh("x"), Var::fresh("dy"));
        let output = self.result().clone();
        let form = |op, types: &[Type], args| at.term(TermKind::Derive { op, types: types.into(), args });
        let (name, ty, term) = if output == Type::Real {
            let body = form(DeriveOp::ValueAndGrad, std::slice::from_ref(input), vec![function, at.var(&x)]);
            let result = Type::tuple([Type::Real, input.clone()]);
            ("value_and_grad", Type::fun(input.clone(), result), at.lambda(&x, input.clone(), body))
        } else {
            let types = [input.clone(), output.clone()];
            let body = form(DeriveOp::Vjp, &types, vec![function, at.var(&x), at.var(&dy)]);
            let params = [(x, input.clone()), (dy, output.clone())];
            ("vjp", Type::funs([input.clone(), output], input.clone()), at.lambdas(&params, body))
        };
        let plain = self.name().chars().all(|c| c.is_alphanumeric() || c == '_');
        let name: Symbol = format!("{}_{name}", if plain { self.name() } else { "function" }).into();
        let program = self.program().with_definition(name.clone(), ty, term);
        let mut options = options.clone();
        if options.optimise && is_few_reals(input) {
            options.mode = options.mode.or(Some(Mode::Forward));
        }
        Transformed::new(program, name, &options, explain)
    }

    fn itself(&self, explain: bool) -> Result<Transformed, Error> {
        Transformed::new(self.program().clone(), self.definition().clone(), self.program().options(), explain)
    }
}

/// One to four reals and nothing else.
fn is_few_reals(input: &Type) -> bool {
    match input {
        Type::Real => true,
        Type::Tuple(parts) => parts.len() <= 4 && parts.iter().all(|part| *part == Type::Real),
        _ => false,
    }
}

/// A program with a definition that is to be read, and the definitions that it needs, itself first.
struct Transformed {
    program: Program,
    linked: Arc<pipeline::Linked>,
    definitions: Vec<Arc<Definition>>,
}

impl Transformed {
    fn new(program: Program, name: Symbol, options: &crate::Options, explain: bool) -> Result<Self, Error> {
        let linked = pipeline::link_for_reading(program.core(), options, explain);
        let root = Global::Source { name, types: Arc::from([]) };
        let definitions = reach::reachable(&*pipeline::definitions(linked.clone()), root)
            .map_err(|diagnostic| program.errors(vec![*diagnostic]))?;
        Ok(Transformed { program, linked, definitions })
    }

    fn text(&self) -> Result<String, Error> {
        print(&self.program, self.linked.clone(), &self.definitions)
    }

    fn explained_text(&self) -> Result<String, Error> {
        let text = self.text()?;
        let derivations = pipeline::derivations(&self.linked);
        let context = Linked { definitions: &*pipeline::definitions(self.linked.clone()), translate: None };
        Ok(text + &explanation::text(&context, &derivations))
    }
}

/// Definitions as Gradus source.
fn print(program: &Program, linked: Arc<pipeline::Linked>, definitions: &[Arc<Definition>]) -> Result<String, Error> {
    let context = Linked { definitions: &*pipeline::definitions(linked), translate: None };
    let options = Options { annotations: Annotations::All, ..Options::default() };
    let text = print_definitions(&context, definitions, options).map_err(|d| program.errors(vec![*d]))?;
    Ok(with_data(&text, program, definitions))
}

/// The text with the `data` that it uses, declared before the first definition.
fn with_data(text: &str, program: &Program, definitions: &[Arc<Definition>]) -> String {
    let mut lines = String::new();
    for definition in definitions {
        let Global::Source { name, .. } = &definition.global else { continue };
        if let Some(Body::Data { file, .. }) = program.core().defs.get(name).map(|def| &def.body) {
            let ty = gradus_core::print::print_type(&definition.ty);
            lines.push_str(&format!("data {name} : {ty} from {}\n\n", crate::value::quoted(file)));
        }
    }
    let first = if text.starts_with("let ") { Some(0) } else { text.find("\nlet ").map(|at| at + 1) };
    let (types, rest) = text.split_at(first.unwrap_or(text.len()));
    format!("{types}{lines}{rest}")
}
