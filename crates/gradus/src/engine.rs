//! What runs a program: compiled code, the reference evaluator, or both, as the options say.
//!
//! With [`Backend::Auto`] the evaluator stands behind compiled code. It runs what is not compiled. It is also asked when a program fails,
//! since it knows more to say about it (and needs no value of the top level that the program mentions without using it); but only for
//! [`MOST_STEPS_ASKED`] steps, so that nobody waits for the words of an error longer than for the error.

use crate::compiled::{Code, Compiled, Made, Stopped};
use crate::error::DriverError;
use crate::evaluate::{Evaluator, Input};
use crate::function::Argument;
use crate::options::{Backend, Options};
use crate::{Error, Program, Value};
use gradus_core::traverse::with_stack;
use gradus_core::{Symbol, Term, Type};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// What the evaluator may use to say more about a failure: about a second.
const MOST_STEPS_ASKED: u64 = 20_000_000;

/// A program ready to run. What has been evaluated or compiled is kept.
pub struct Engine {
    program: Program,
    compiled: Option<Compiled>,
    /// Made when it is needed first, and anew when more values of the top level are known.
    evaluator: Option<Evaluating>,
    /// The constants that could not be computed.
    failed: FxHashMap<Symbol, Error>,
    /// The constants that are being computed, outermost first.
    computing: Vec<Symbol>,
}

struct Evaluating {
    evaluator: Evaluator,
    /// How many values were known when it was made.
    known: usize,
}

impl Engine {
    /// Loads the program's data and makes the backend of its options ready.
    pub fn new(program: &Program) -> Result<Self, Error> {
        let mut engine = Engine {
            program: program.clone(),
            compiled: None,
            evaluator: None,
            failed: FxHashMap::default(),
            computing: Vec::new(),
        };
        if program.options().compiles() {
            engine.compiled = Some(Compiled::new(program)?);
        } else {
            engine.evaluator()?;
        }
        Ok(engine)
    }

    /// Makes ready what will be asked for: the items of the program and some definitions that are no functions, with their types. Only a
    /// compiled backend has anything to do, and does it faster for all at once.
    pub fn prepare(&mut self, definitions: &[(Symbol, Type)]) {
        if let Some(compiled) = &mut self.compiled {
            compiled.prepare(0, definitions);
        }
    }

    /// The value of the program's item with this number.
    pub fn item(&mut self, number: usize) -> Result<Value, Error> {
        let core = self.program.core().clone();
        let Some(item) = core.items.get(number) else { gradus_source::bug!("no item {number}") };
        let evaluate = |evaluator: &mut Evaluator| evaluator.term(&item.term, &item.ty);
        // Compiled code is given arguments; it does not give functions.
        if matches!(item.ty, Type::Fun(_)) && self.compiled.is_some() {
            return if self.falls_back() { evaluate(self.evaluator()?) } else { Ok(Value::Function) };
        }
        self.value_by(|compiled| compiled.item(number), &[], &item.ty, evaluate)
    }

    /// The value of a term of the program that is no definition.
    pub fn term(&mut self, term: &Term, ty: &Type) -> Result<Value, Error> {
        self.value_by(|compiled| compiled.term(term, ty), &[], ty, |evaluator| evaluator.term(term, ty))
    }

    /// The value of a definition of the given type.
    pub fn value(&mut self, definition: &Symbol, ty: &Type) -> Result<Value, Error> {
        self.apply(definition, &[], ty)
    }

    /// A definition applied to arguments; without arguments, its value.
    pub fn apply(&mut self, definition: &Symbol, inputs: &[Input], result: &Type) -> Result<Value, Error> {
        let code = |compiled: &mut Compiled| compiled.function(definition, inputs, result);
        self.value_by(code, inputs, result, |evaluator| evaluator.apply(definition, inputs, result))
    }

    /// A function from vectors to a vector applied. The evaluator copies nothing, compiled code no more than the result.
    pub fn apply_vectors(&mut self, definition: &Symbol, vectors: Vec<Vec<f64>>) -> Result<Vec<f64>, Error> {
        if self.compiled.is_none() {
            return self.evaluator()?.apply_vectors(definition, vectors);
        }
        let ty = Type::array(Type::Real);
        let values: Vec<Value> = vectors.into_iter().map(Value::from).collect();
        let arguments: Vec<Argument> = values.iter().map(Argument::Value).collect();
        let inputs: Vec<Input> = arguments.iter().map(|argument| Input { argument, ty: &ty }).collect();
        match self.apply(definition, &inputs, &ty)? {
            Value::Reals(block) => Ok(block.into_data()),
            _ => gradus_source::bug!("a vector was expected"),
        }
    }

    fn value_by(
        &mut self,
        code: impl Fn(&mut Compiled) -> Made,
        inputs: &[Input],
        ty: &Type,
        evaluate: impl FnOnce(&mut Evaluator) -> Result<Value, Error>,
    ) -> Result<Value, Error> {
        if *ty == Type::Unit && self.falls_back() {
            // Nothing is left to compute for compiled code, which would not notice that the program does not end.
            return evaluate(self.evaluator()?);
        }
        self.run(code, |compiled, code| compiled.run(code, inputs, ty), evaluate)
    }

    /// Runs code with what it needs of the top level. What compiled code does not do, the evaluator does, if it may.
    pub(crate) fn run<T>(
        &mut self,
        code: impl Fn(&mut Compiled) -> Made,
        run: impl Fn(&Compiled, &Code) -> Result<T, Stopped>,
        evaluate: impl FnOnce(&mut Evaluator) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let stopped = match self.run_compiled(code, run) {
            None => return evaluate(self.evaluator()?),
            Some(Ok(value)) => return Ok(value),
            Some(Err(stopped)) => stopped,
        };
        if !self.falls_back() {
            return Err(stopped.into_error());
        }
        match stopped {
            Stopped::NotCompiled(not) => {
                self.compute(&not.needs)?;
                evaluate(self.evaluator()?)
            }
            Stopped::Beyond(_) => evaluate(self.evaluator()?),
            Stopped::Failed(error) | Stopped::Irregular(error) => self.ask(error, evaluate),
            Stopped::Ended(error) => Err(error),
        }
    }

    /// Code with what it needs of the top level, for those who run it themselves; nothing if nothing is compiled.
    pub(crate) fn code(
        &mut self,
        code: impl FnOnce(&mut Compiled) -> Made,
    ) -> Option<Result<(&Compiled, Rc<Code>), Error>> {
        let made = self.ready(code)?;
        let compiled = self.compiled.as_ref()?;
        Some(made.map(|code| (compiled, code)).map_err(Stopped::into_error))
    }

    fn run_compiled<T>(
        &mut self,
        code: impl Fn(&mut Compiled) -> Made,
        run: impl Fn(&Compiled, &Code) -> Result<T, Stopped>,
    ) -> Option<Result<T, Stopped>> {
        loop {
            let made = self.ready(&code)?;
            let compiled = self.compiled.as_mut()?;
            match made.and_then(|code| run(compiled, &code)) {
                // Once more, with other code: that does not end so.
                Err(Stopped::Irregular(_)) => compiled.take_as_irregular(),
                ran => return Some(ran),
            }
        }
    }

    fn ready(&mut self, code: impl FnOnce(&mut Compiled) -> Made) -> Option<Result<Rc<Code>, Stopped>> {
        let compiled = self.compiled.as_mut()?;
        let code = match code(compiled) {
            Ok(code) => code,
            Err(not) => return Some(Err(Stopped::NotCompiled(not))),
        };
        for name in compiled.missing(&code) {
            if let Err(stopped) = self.constant(&name) {
                return Some(Err(stopped));
            }
        }
        Some(Ok(code))
    }

    /// Computes a constant, and before it those that it needs.
    fn constant(&mut self, name: &Symbol) -> Result<(), Stopped> {
        if let Some(error) = self.failed.get(name) {
            return Err(Stopped::Failed(error.clone()));
        }
        if self.computing.contains(name) {
            let (name, span) = (name.clone(), self.program.definition_span(name));
            return Err(Stopped::Failed(self.program.error(DriverError::DependsOnItself { name, span })));
        }
        let Some((_, ty)) = self.compiled.as_mut().map(|compiled| compiled.constant(name)) else {
            gradus_source::bug!("the constant `{name}` of a program that is not compiled");
        };
        let run = |compiled: &Compiled, code: &Code| compiled.run(code, &[], &ty);
        self.computing.push(name.clone());
        let ran = with_stack(|| self.run_compiled(|compiled| compiled.constant(name).0, run));
        self.computing.pop();
        let ran = match ran {
            Some(Err(Stopped::NotCompiled(not))) if self.falls_back() => self.evaluated(name, &ty, &not.needs),
            Some(Err(Stopped::Beyond(_))) if self.falls_back() => self.evaluated(name, &ty, &[]),
            Some(ran) => ran,
            None => gradus_source::bug!("the constant `{name}` of a program that is not compiled"),
        };
        match (ran, &mut self.compiled) {
            (Ok(value), Some(compiled)) => compiled.set_constant(name, value),
            (Err(Stopped::Failed(error)), _) => {
                self.failed.insert(name.clone(), error.clone());
                return Err(Stopped::Failed(error));
            }
            (Err(other), _) => return Err(other),
            (Ok(_), None) => {}
        }
        Ok(())
    }

    /// A constant by the evaluator, and before it those that it needs.
    fn evaluated(&mut self, name: &Symbol, ty: &Type, needs: &[Symbol]) -> Result<Value, Stopped> {
        let computed = self.compute(needs);
        let evaluated = computed.and_then(|()| self.evaluator()?.value(name, ty));
        evaluated.map_err(|error| if is_limit(&error) { Stopped::Ended(error) } else { Stopped::Failed(error) })
    }

    /// Computes constants for the evaluator, in this order. One that fails is left to it, which may not need it.
    fn compute(&mut self, constants: &[Symbol]) -> Result<(), Error> {
        for name in constants {
            if !self.compiled.as_ref().is_some_and(|compiled| compiled.is_missing(name)) {
                continue;
            }
            if let Err(Stopped::Ended(error)) = self.constant(name) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Asks the evaluator about a failure of compiled code: usually it says the same in more words, but not if it takes it too long.
    fn ask<T>(
        &mut self,
        failure: Error,
        evaluate: impl FnOnce(&mut Evaluator) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let options = self.program.options().clone();
        let program = self.program.clone().with_options(Options { max_steps: Some(MOST_STEPS_ASKED), ..options });
        let known: Vec<_> = self.compiled.iter().flat_map(Compiled::computed).collect();
        match evaluate(&mut Evaluator::knowing(&program, &known)?) {
            Err(error) if is_limit(&error) => Err(failure),
            answer => answer,
        }
    }

    /// Whether the evaluator does what compiled code does not.
    fn falls_back(&self) -> bool {
        self.program.options().backend == Backend::Auto
    }

    /// The evaluator, which knows what has been computed by others.
    pub(crate) fn evaluator(&mut self) -> Result<&mut Evaluator, Error> {
        let known: Vec<_> = self.compiled.iter().flat_map(Compiled::computed).collect();
        if self.evaluator.as_ref().is_none_or(|evaluating| evaluating.known < known.len()) {
            let evaluator = Evaluator::knowing(&self.program, &known)?;
            self.evaluator = Some(Evaluating { evaluator, known: known.len() });
        }
        match &mut self.evaluator {
            Some(evaluating) => Ok(&mut evaluating.evaluator),
            None => gradus_source::bug!("there is no evaluator"),
        }
    }

    /// The kinks met so far, as warnings; none unless they are counted, which only the reference evaluator does.
    pub fn kinks(&self) -> Option<Error> {
        self.evaluator.as_ref().map(|evaluating| evaluating.evaluator.kinks())
    }

    /// The steps taken so far, where they are counted.
    pub fn steps(&self) -> u64 {
        self.evaluator.as_ref().map_or(0, |evaluating| evaluating.evaluator.report().steps)
    }
}

/// Whether a run was stopped by a limit, or interrupted.
fn is_limit(error: &Error) -> bool {
    error.diagnostics.iter().any(|diagnostic| matches!(diagnostic.code, "E0611" | "E0612" | "E0613"))
}
