//! The differentiated program as Gradus source: the derivative of a function with everything that it needs.

use crate::error::DriverError;
use crate::function::Function;
use crate::pipeline;
use crate::{Error, Program};
use gradus_core::build::At;
use gradus_core::check::Linked;
use gradus_core::print::{print_definitions, Annotations, Options};
use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Body, Definition, Definitions, DeriveOp, Global, Mode, Symbol, Term, TermKind, Type, Var};
use gradus_source::Diagnostic;
use std::collections::{HashSet, VecDeque};
use std::fmt::Write;
use std::sync::Arc;

/// A function defined through its own derivative has no last definition.
const MOST_DEFINITIONS: usize = 10_000;

impl Function {
    /// Gradus source that defines the derivative of this function of one parameter, in the mode of the program's options:
    /// `f_value_and_grad x` if it returns a real, else `f_vjp x dy`.
    pub fn transformed(&self) -> Result<String, Error> {
        let Transformed { program, linked, definitions } = self.derivative()?;
        print(&program, linked, &definitions)
    }

    /// The steps of the mode `combinator` (C section 6) for this function and every definition that it calls: the function, its combinator, the primal and
    /// the linear combinator that the reverse macro makes of it; and last the code that all of these become.
    pub fn steps(&self) -> Result<String, Error> {
        let Transformed { program, linked, definitions } = self.derivative()?;
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
    fn derivative(&self) -> Result<Transformed, Error> {
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
        let linked = pipeline::link(program.core(), program.options());
        let root = Global::Source { name, types: Arc::from([]) };
        let mut definitions = reachable(&*pipeline::definitions(linked.clone()), root)
            .map_err(|diagnostic| program.errors(vec![*diagnostic]))?;
        if program.options().optimise {
            definitions = definitions.into_iter().map(simplified).collect();
        }
        Ok(Transformed { program, linked, definitions })
    }
}

/// A program with the derivative of a function, and the definitions that this derivative needs, itself first.
struct Transformed {
    program: Program,
    linked: Arc<pipeline::Linked>,
    definitions: Vec<Arc<Definition>>,
}

/// Definitions as Gradus source.
fn print(program: &Program, linked: Arc<pipeline::Linked>, definitions: &[Arc<Definition>]) -> Result<String, Error> {
    let context = Linked { definitions: &*pipeline::definitions(linked), translate: None };
    let options = Options { annotations: Annotations::All, ..Options::default() };
    let text = print_definitions(&context, definitions, options).map_err(|d| program.errors(vec![*d]))?;
    Ok(with_data(&text, program, definitions))
}

/// A definition for reading: nothing will differentiate it again, so that its functions may be changed at will.
fn simplified(definition: Arc<Definition>) -> Arc<Definition> {
    let simple = |term: &Term| gradus_rewrite::simplify(&gradus_rewrite::forget_origins(term)).0;
    Arc::new(Definition { term: definition.term.as_ref().map(simple), ..(*definition).clone() })
}

/// A definition and all that it refers to, directly or not.
fn reachable(definitions: &dyn Definitions, root: Global) -> Result<Vec<Arc<Definition>>, Box<Diagnostic>> {
    let mut known = HashSet::from([root.clone()]);
    let mut queue = VecDeque::from([root]);
    let mut found = Vec::new();
    while let Some(global) = queue.pop_front() {
        let definition = definitions.definition(&global)?;
        if let Some(term) = &definition.term {
            for_each_global(term, &mut |global| {
                if known.insert(global.clone()) {
                    queue.push_back(global.clone());
                }
            })?;
        }
        found.push(definition);
        if found.len() > MOST_DEFINITIONS {
            return Err(Box::new(DriverError::EndlessDerivative.diagnostic()));
        }
    }
    Ok(found)
}

fn for_each_global(term: &Term, visit: &mut dyn FnMut(&Global)) -> Result<(), Box<Diagnostic>> {
    with_stack(|| {
        match &*term.kind {
            TermKind::Global(global) => visit(global),
            TermKind::Lift { .. } => {
                return Err(Box::new(DriverError::UnknownFunction { span: term.span }.diagnostic()));
            }
            _ => {}
        }
        let mut result = Ok(());
        for_each_child(term, &mut |child| {
            if result.is_ok() {
                result = for_each_global(child, visit);
            }
        });
        result
    })
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
