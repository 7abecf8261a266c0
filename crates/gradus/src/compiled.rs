//! Machine code of a program's terms: made when it is needed first, kept, and called with values.

mod values;

use crate::constants::Constants;
use crate::error::DriverError;
use crate::evaluate::{Evaluator, Input};
use crate::function::Argument;
use crate::options::{Backend, Options};
use crate::pipeline;
use crate::program::DataValues;
use crate::{Error, Program, Value};
use gradus_core::build::At;
use gradus_core::{Global, Symbol, Term, Type, Var};
use gradus_native::flow::Failure;
use gradus_native::lower::{DataLengths, Signature};
use gradus_native::{Call, Entry, Executable, Layout, Leaf, Limits, Mismatch, RunError, Site};
use gradus_source::{Diagnostic, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A program that runs as machine code.
pub struct Compiled {
    program: Program,
    constants: Constants,
    /// What comes from files.
    data: DataValues,
    /// The constants that have been computed.
    computed: FxHashMap<Symbol, Value>,
    /// What of both has been flattened, for all calls. Arrays of reals need not be.
    flat: RefCell<FxHashMap<Symbol, Vec<Rc<Leaf>>>>,
    codes: FxHashMap<Key, Made>,
}

/// What code was made for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// By number.
    Item(usize),
    Constant(Symbol),
    /// A definition, applied to other definitions where the call says so.
    Applied(Symbol, Vec<Option<Symbol>>),
}

pub type Made = Result<Rc<Code>, Rc<NotCompiled>>;

/// A term without code.
pub struct NotCompiled {
    pub reason: Error,
    /// The constants that it needs, in the order in which they can be computed.
    pub needs: Vec<Symbol>,
}

/// Why compiled code gave no value.
pub enum Stopped {
    /// There is none.
    NotCompiled(Rc<NotCompiled>),
    /// It needs what compiled code does not have.
    Beyond(Error),
    /// The program failed.
    Failed(Error),
    /// A limit was met, or the run was interrupted.
    Ended(Error),
    /// Elements of an array differ in shape, which the code took to be alike; other code may do it. See [`Compiled::take_as_irregular`].
    Irregular(Error),
}

impl Stopped {
    pub fn into_error(self) -> Error {
        match self {
            Stopped::NotCompiled(not) => not.reason.clone(),
            Stopped::Beyond(error) | Stopped::Failed(error) | Stopped::Ended(error) | Stopped::Irregular(error) => {
                error
            }
        }
    }
}

/// An entry point with what is needed to call it.
pub struct Code {
    executable: Rc<Executable>,
    entry: usize,
    params: Vec<Layout>,
    data: Vec<(Symbol, Layout)>,
    result: Layout,
    /// The place of the whole.
    span: Span,
    /// Whether it is for a program that is irregular.
    irregular: bool,
}

impl Compiled {
    /// Loads the program's data. What compiled code cannot do is refused here.
    pub fn new(program: &Program) -> Result<Self, Error> {
        if let Some(option) = program.options().only_reference() {
            return Err(program.error(DriverError::OnlyReference { option }));
        }
        let (data, constants) = (program.data()?, Constants::new(program.core()));
        let (computed, flat, codes) = Default::default();
        Ok(Compiled { program: program.clone(), constants, data, computed, flat, codes })
    }

    /// From now on, code is made for elements of arrays that differ in shape.
    pub fn take_as_irregular(&mut self) {
        if !self.constants.core().irregular {
            self.constants.take_as_irregular();
            self.codes.clear();
            self.flat.borrow_mut().clear();
        }
    }

    /// What makes the code.
    pub fn backend(&self) -> Backend {
        match self.program.options().backend {
            Backend::C => Backend::C,
            Backend::Auto | Backend::Native | Backend::Reference => Backend::Native,
        }
    }

    /// The code of an item of the program. With the first one, all that follow are compiled.
    pub fn item(&mut self, number: usize) -> Made {
        if !self.codes.contains_key(&Key::Item(number)) {
            self.prepare(number, &[]);
        }
        match self.codes.get(&Key::Item(number)) {
            Some(made) => made.clone(),
            None => gradus_source::bug!("item {number} was not compiled"),
        }
    }

    /// Compiles the items of the program from a number on, some definitions that are no functions, and the constants that these need: one run of the
    /// compiler.
    pub fn prepare(&mut self, first: usize, definitions: &[(Symbol, Type)]) {
        let core = self.program.core().clone();
        let mut wanted: Vec<(Key, Entry)> = Vec::new();
        for (number, item) in core.items.iter().enumerate().skip(first) {
            wanted.push((Key::Item(number), entry(&format!("item_{number}"), &item.term, &item.ty)));
        }
        for (name, ty) in definitions {
            wanted.push((Key::Applied(name.clone(), Vec::new()), entry(name, &self.value_of(name), ty)));
        }
        self.compile_all(wanted);
    }

    /// The code of a closed term.
    pub fn term(&self, term: &Term, ty: &Type) -> Made {
        self.compile_one(entry("term", term, ty))
    }

    /// The code of a definition applied to arguments. Arguments that are definitions themselves become part of the code.
    pub fn function(&mut self, definition: &Symbol, inputs: &[Input], result: &Type) -> Made {
        let known = known_arguments(inputs);
        let key = Key::Applied(definition.clone(), known.clone());
        if let Some(made) = self.codes.get(&key) {
            return made.clone();
        }
        let at = At(self.program.definition_span(definition));
        let mut params: Vec<(Var, Type)> = Vec::new();
        let mut arguments = Vec::new();
        for (i, (input, known)) in inputs.iter().zip(&known).enumerate() {
            arguments.push(match known {
                Some(name) => at.global(global(name)),
                None => {
                    let var = Var::fresh(format!("x{i}"));
                    let term = at.var(&var);
                    params.push((var, input.ty.clone()));
                    term
                }
            });
        }
        let types: Vec<Type> = params.iter().map(|(_, ty)| ty.clone()).collect();
        let term = at.lambdas(&params, at.apps(self.value_of(definition), arguments));
        let applied = entry(definition, &term, &Type::funs(types, result.clone()));
        self.compile_after_constants(vec![(key.clone(), applied)]);
        match self.codes.get(&key) {
            Some(made) => made.clone(),
            None => gradus_source::bug!("`{definition}` was not compiled"),
        }
    }

    /// Whether this call has been compiled already.
    pub fn knows(&self, definition: &Symbol, inputs: &[Input]) -> bool {
        self.codes.contains_key(&Key::Applied(definition.clone(), known_arguments(inputs)))
    }

    /// A definition, written out if it is a constant.
    fn value_of(&self, name: &Symbol) -> Term {
        match self.constants.get(name) {
            Some(constant) => constant.term.clone(),
            None => At(self.program.definition_span(name)).global(global(name)),
        }
    }

    /// The constants that code needs and that have not been computed.
    pub fn missing(&self, code: &Code) -> Vec<Symbol> {
        let names = code.data.iter().map(|(name, _)| name);
        names.filter(|name| self.is_missing(name)).cloned().collect()
    }

    pub fn is_missing(&self, name: &Symbol) -> bool {
        self.constants.get(name).is_some() && !self.computed.contains_key(name)
    }

    /// The code of a constant, and its type.
    pub fn constant(&mut self, name: &Symbol) -> (Made, Type) {
        let Some(constant) = self.constants.get(name).cloned() else { gradus_source::bug!("`{name}` is no constant") };
        let key = Key::Constant(name.clone());
        let made = match self.codes.get(&key) {
            Some(made) => made.clone(),
            None => self.compile_one(entry(name, &constant.term, &constant.ty)),
        };
        self.codes.insert(key, made.clone());
        (made, constant.ty)
    }

    pub fn set_constant(&mut self, name: &Symbol, value: Value) {
        self.computed.insert(name.clone(), value);
    }

    /// The constants that have been computed, with their types.
    pub fn computed(&self) -> impl Iterator<Item = (&Symbol, &Type, &Value)> {
        self.computed.iter().filter_map(|(name, value)| Some((name, &self.constants.get(name)?.ty, value)))
    }

    /// Compiles terms together with the constants that they need, and keeps the code.
    fn compile_all(&mut self, mut wanted: Vec<(Key, Entry)>) {
        let constants = self.wanted_constants(&wanted);
        wanted.extend(constants);
        self.compile_some(wanted);
    }

    /// The same, but what the constants are is known before the terms are compiled, as far as it can be computed: code is better for knowing how long
    /// arrays are.
    fn compile_after_constants(&mut self, wanted: Vec<(Key, Entry)>) {
        let constants = self.wanted_constants(&wanted);
        let names: Vec<Symbol> = constants.iter().map(|(_, entry)| entry.name.as_str().into()).collect();
        self.compile_some(constants);
        for name in &names {
            let Some(Ok(code)) = self.codes.get(&Key::Constant(name.clone())).cloned() else { continue };
            let Some(constant) = self.constants.get(name).filter(|_| self.missing(&code).is_empty()) else { continue };
            // What fails will be told when it is needed.
            if let Ok(value) = self.run(&code, &[], &constant.ty) {
                self.set_constant(name, value);
            }
        }
        self.compile_some(wanted);
    }

    /// The constants that terms need and that are neither computed nor compiled, after those have been computed that take only a few steps.
    fn wanted_constants(&mut self, wanted: &[(Key, Entry)]) -> Vec<(Key, Entry)> {
        let mut names: Vec<Symbol> = Vec::new();
        for name in wanted.iter().flat_map(|(_, entry)| self.constants.needed_by(&entry.term)) {
            let key = Key::Constant(name.clone());
            let known = self.codes.contains_key(&key) || wanted.iter().any(|(other, _)| *other == key);
            if !known && self.is_missing(&name) && !names.contains(&name) {
                names.push(name);
            }
        }
        self.evaluate(&names);
        let constants = names.into_iter().filter(|name| self.is_missing(name)).filter_map(|name| {
            let constant = self.constants.get(&name)?;
            Some((Key::Constant(name.clone()), entry(&name, &constant.term, &constant.ty)))
        });
        constants.collect()
    }

    /// Computes constants by the evaluator until one takes it more than a few steps.
    fn evaluate(&mut self, names: &[Symbol]) {
        if names.is_empty() {
            return;
        }
        let program = self.program.clone().with_options(self.program.options().for_a_few_steps());
        let known: Vec<_> = self.computed().collect();
        let Ok(mut evaluator) = Evaluator::knowing(&program, &known) else { return };
        for name in names {
            let Some(constant) = self.constants.get(name) else { continue };
            let Ok(value) = evaluator.value(name, &constant.ty) else { return };
            self.set_constant(name, value);
        }
    }

    fn compile_some(&mut self, wanted: Vec<(Key, Entry)>) {
        if !wanted.is_empty() {
            let (keys, entries): (Vec<Key>, Vec<Entry>) = wanted.into_iter().unzip();
            self.codes.extend(keys.into_iter().zip(self.compile(&entries)));
        }
    }

    fn compile_one(&self, entry: Entry) -> Made {
        match self.compile(&[entry]).pop() {
            Some(made) => made,
            None => gradus_source::bug!("an entry was lost"),
        }
    }

    /// Compiles terms together; one that is refused does not keep the others from being compiled.
    fn compile(&self, entries: &[Entry]) -> Vec<Made> {
        let core = self.constants.core();
        let lowered = pipeline::lower(core, entries, &self.lengths(entries));
        let ids: Vec<_> = lowered.entries.iter().flatten().map(|(id, _)| *id).collect();
        let threads = self.program.options().threads;
        let executable = pipeline::code(&lowered.module, &ids, self.backend(), threads).map(Rc::new);
        let mut place = 0..;
        let made = lowered.entries.into_iter().zip(entries).map(|(lowered, entry)| {
            let code = lowered.and_then(|(_, signature)| {
                let number = place.next();
                Code::new(executable.clone()?, number.unwrap_or(0), &signature, core, entry.term.span)
            });
            code.map(Rc::new).map_err(|refusal| {
                let reason = self.program.errors(vec![*refusal]);
                Rc::new(NotCompiled { reason, needs: self.constants.needed_by(&entry.term) })
            })
        });
        made.collect()
    }

    /// The lengths of data and constants that terms need, as far as these are there.
    fn lengths(&self, entries: &[Entry]) -> DataLengths {
        if self.computed.is_empty() && self.data.is_empty() {
            return DataLengths::default();
        }
        let names: FxHashSet<Symbol> =
            entries.iter().flat_map(|entry| self.constants.definitions_of(&entry.term)).collect();
        let lengths = names.into_iter().filter_map(|name| {
            let (ty, _) = self.known(&name)?;
            let layout = Layout::of(self.constants.core(), ty).ok()?;
            let mut leaves = Vec::new();
            self.flatten_known(&name, &layout, &mut leaves).ok()?;
            Some((name, leaves.iter().map(|leaf| leaf.lengths().to_vec()).collect()))
        });
        lengths.collect()
    }

    /// Data or a constant, if it is there, and its type.
    fn known(&self, name: &Symbol) -> Option<(&Type, &Value)> {
        let loaded = self.data.iter().find(|(known, _, _)| known == name).map(|(_, ty, value)| (ty, value));
        loaded.or_else(|| Some((&self.constants.get(name)?.ty, self.computed.get(name)?)))
    }

    /// What code gives. The constants that it needs are there.
    pub fn run(&self, code: &Code, inputs: &[Input], result: &Type) -> Result<Value, Stopped> {
        let mut call = self.call(code, inputs)?;
        self.run_call(code, &mut call)?;
        Ok(self.result(code, &call, result))
    }

    /// Code with arguments, ready to run. Blocks of reals are borrowed, other structures flattened.
    pub fn call<'a>(&'a self, code: &Code, inputs: &[Input<'a>]) -> Result<Call<'a>, Stopped> {
        let schema = self.program.schema();
        let mut leaves = Vec::new();
        let mut layouts = code.params.iter();
        for input in inputs {
            match input.argument {
                Argument::Defined(_) => {}
                Argument::Reals(view) => {
                    layouts.next();
                    leaves.push(gradus_native::Argument::Reals { dims: view.shape(), data: view.data() });
                }
                Argument::Value(value) => {
                    let Some(layout) = layouts.next() else { gradus_source::bug!("more arguments than parameters") };
                    let flat = values::flatten(value, input.ty, layout, &schema, &mut leaves);
                    flat.map_err(|differ| self.irregular(differ, code))?;
                }
            }
        }
        for (name, layout) in &code.data {
            self.flatten_known(name, layout, &mut leaves).map_err(|differ| self.irregular(differ, code))?;
        }
        let mut call =
            Call::new(code.executable.clone(), code.entry, leaves).map_err(|error| self.stopped(&error, code))?;
        let Options { max_steps, max_memory, threads, interrupt, .. } = self.program.options();
        let (max_steps, max_memory, threads) = (*max_steps, *max_memory, *threads);
        call.limits = Limits { max_steps, max_memory, interrupt: interrupt.clone(), threads };
        Ok(call)
    }

    /// The leaves of data or of a constant.
    fn flatten_known<'a>(
        &'a self,
        name: &Symbol,
        layout: &Layout,
        leaves: &mut Vec<gradus_native::Argument<'a>>,
    ) -> Result<(), Mismatch> {
        use gradus_native::Argument;
        if let Some(flat) = self.flat.borrow().get(name) {
            leaves.extend(flat.iter().cloned().map(Argument::Shared));
            return Ok(());
        }
        let Some((ty, value)) = self.known(name) else { gradus_source::bug!("there is no value of `{name}`") };
        let first = leaves.len();
        values::flatten(value, ty, layout, &self.program.schema(), leaves)?;
        if is_plain(layout) {
            return Ok(());
        }
        let mut flat = Vec::new();
        for argument in leaves.drain(first..) {
            flat.push(match argument {
                Argument::Owned(leaf) => Rc::new(leaf),
                Argument::Shared(leaf) => leaf,
                Argument::Reals { dims, data } => Rc::new(Leaf::Reals { dims: dims.to_vec(), data: data.to_vec() }),
            });
        }
        leaves.extend(flat.iter().cloned().map(Argument::Shared));
        self.flat.borrow_mut().insert(name.clone(), flat);
        Ok(())
    }

    /// Values that fit their types do not fit code, since elements of an array differ in shape.
    fn irregular(&self, _: Mismatch, code: &Code) -> Stopped {
        if code.irregular {
            gradus_source::bug!("a value that does not fit its type");
        }
        self.stopped(&RunError::Failed(Site { failure: Failure::Rows, span: code.span }), code)
    }

    /// Makes the best code at once, for calls that will be measured.
    pub fn improve(&self, code: &Code) {
        code.executable.improve(self.program.options().threads);
    }

    pub fn run_call(&self, code: &Code, call: &mut Call) -> Result<(), Stopped> {
        call.run().map_err(|error| self.stopped(&error, code))
    }

    /// What the last run of a call gave.
    pub fn result(&self, code: &Code, call: &Call, ty: &Type) -> Value {
        values::unflatten(call.results(), ty, &code.result, &self.program.schema())
    }

    fn stopped(&self, error: &RunError, code: &Code) -> Stopped {
        let mut diagnostic = error.diagnostic();
        // What the compiler added has no place of its own.
        for label in diagnostic.labels.iter_mut().filter(|label| label.span == Span::default()) {
            label.span = code.span;
        }
        let said = self.program.errors(vec![diagnostic]);
        match error {
            RunError::Failed(site) if site.failure == Failure::Order => Stopped::Beyond(said),
            RunError::Failed(site) if site.failure == Failure::Rows && !code.irregular => Stopped::Irregular(said),
            RunError::Arguments { .. } => Stopped::Beyond(said),
            RunError::Failed(_) | RunError::TooDeep { .. } => Stopped::Failed(said),
            RunError::Memory { .. } | RunError::Steps { .. } | RunError::Interrupted { .. } => Stopped::Ended(said),
        }
    }
}

impl Code {
    fn new(
        executable: Rc<Executable>,
        entry: usize,
        signature: &Signature,
        core: &gradus_core::Program,
        span: Span,
    ) -> Result<Code, Box<Diagnostic>> {
        let layout = |ty: &Type| Layout::of(core, ty).map_err(|refusal| Box::new(refusal.diagnostic()));
        let params = signature.params.iter().map(layout).collect::<Result<_, _>>()?;
        let named = |(name, ty): &(Symbol, Type)| layout(ty).map(|layout| (name.clone(), layout));
        let data = signature.data.iter().map(named).collect::<Result<_, _>>()?;
        Ok(Code {
            executable,
            entry,
            params,
            data,
            result: layout(&signature.result)?,
            span,
            irregular: core.irregular,
        })
    }

    /// How many leaves the parameters have, if these and the result's hold nothing but reals in the order of the values.
    pub fn leaves_of_reals(&self) -> Option<usize> {
        let plain = is_plain(&self.result) && self.params.iter().all(is_plain);
        plain.then(|| self.params.iter().map(|layout| layout.leaves().len()).sum())
    }
}

/// Whether there is nothing but reals, in the order of the values.
fn is_plain(layout: &Layout) -> bool {
    match layout.parts() {
        Some(parts) => parts.iter().all(is_plain),
        None => layout.is_dense(),
    }
}

fn global(name: &Symbol) -> Global {
    Global::Source { name: name.clone(), types: Arc::from([]) }
}

/// The arguments that are definitions.
fn known_arguments(inputs: &[Input]) -> Vec<Option<Symbol>> {
    let known = |input: &Input| match input.argument {
        Argument::Defined(name) => Some(name.clone()),
        Argument::Value(_) | Argument::Reals(_) => None,
    };
    inputs.iter().map(known).collect()
}

fn entry(name: &str, term: &Term, ty: &Type) -> Entry {
    Entry { name: name.into(), term: term.clone(), ty: ty.clone() }
}
