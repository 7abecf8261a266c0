//! Machine code of a program's terms: made when it is needed first, kept, and called with values.

mod values;

use crate::error::DriverError;
use crate::evaluate::Input;
use crate::function::Argument;
use crate::options::{Domain, Kinks, Options};
use crate::pipeline;
use crate::program::DataValues;
use crate::{Error, Program, Value};
use gradus_core::build::At;
use gradus_core::{Global, Symbol, Term, Type, Var};
use gradus_native::lower::Signature;
use gradus_native::{Call, Entry, Executable, Layout, Limits};
use gradus_source::Diagnostic;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

/// A program that runs as machine code.
pub struct Compiled {
    program: Program,
    data: DataValues,
    /// Of the program's items, all compiled together.
    items: Option<Vec<Result<Rc<Code>, Error>>>,
    functions: FxHashMap<Key, Result<Rc<Code>, Error>>,
}

/// A definition, applied to other definitions where the call says so.
type Key = (Symbol, Vec<Option<Symbol>>);

/// An entry point with what is needed to call it.
pub struct Code {
    executable: Rc<Executable>,
    entry: usize,
    params: Vec<Layout>,
    data: Vec<(Symbol, Layout)>,
    result: Layout,
}

impl Compiled {
    /// Loads the program's data. What compiled code cannot do is refused here.
    pub fn new(program: &Program) -> Result<Self, Error> {
        if let Some(option) = not_compiled(program.options()) {
            return Err(program.error(DriverError::OnlyReference { option }));
        }
        let data = program.data()?;
        Ok(Compiled { program: program.clone(), data, items: None, functions: FxHashMap::default() })
    }

    /// The value of an item of the program. All items are compiled when the first is asked for.
    pub fn item(&mut self, number: usize) -> Result<Value, Error> {
        let core = self.program.core().clone();
        let Some(item) = core.items.get(number) else { gradus_source::bug!("no item {number}") };
        if matches!(item.ty, Type::Fun(_)) {
            return Ok(Value::Function);
        }
        if self.items.is_none() {
            self.prepare(&[]);
        }
        let code = match self.items.as_ref().and_then(|items| items.get(number)) {
            Some(code) => code.clone()?,
            None => gradus_source::bug!("item {number} was not compiled"),
        };
        self.run(&code, &[], &item.ty)
    }

    /// Compiles all items of the program together with some definitions that are no functions, given with their types: one run of the compiler.
    pub fn prepare(&mut self, definitions: &[(Symbol, Type)]) {
        let core = self.program.core().clone();
        let item = |(i, item): (usize, &gradus_core::Item)| entry(&format!("item_{i}"), &item.term, &item.ty);
        let mut entries: Vec<Entry> = core.items.iter().enumerate().map(item).collect();
        for (name, ty) in definitions {
            let global = Global::Source { name: name.clone(), types: Arc::from([]) };
            entries.push(entry(name, &At(self.program.definition_span(name)).global(global), ty));
        }
        let mut made = self.compile(&entries);
        for ((name, _), code) in definitions.iter().zip(made.split_off(core.items.len())) {
            self.functions.insert((name.clone(), Vec::new()), code);
        }
        self.items = Some(made);
    }

    /// The value of a closed term.
    pub fn term(&mut self, term: &Term, ty: &Type) -> Result<Value, Error> {
        let code = self.compile_one(entry("term", term, ty))?;
        self.run(&code, &[], ty)
    }

    /// A definition applied to arguments; without arguments, its value.
    pub fn apply(&mut self, definition: &Symbol, inputs: &[Input], result: &Type) -> Result<Value, Error> {
        let code = self.function(definition, inputs, result)?;
        self.run(&code, inputs, result)
    }

    /// Whether this call has been compiled already.
    pub fn knows(&self, definition: &Symbol, inputs: &[Input]) -> bool {
        self.functions.contains_key(&key(definition, inputs))
    }

    /// The code of a definition applied to arguments. Arguments that are definitions themselves become part of the code.
    pub fn function(&mut self, definition: &Symbol, inputs: &[Input], result: &Type) -> Result<Rc<Code>, Error> {
        let key = key(definition, inputs);
        if let Some(code) = self.functions.get(&key) {
            return code.clone();
        }
        let at = At(self.program.definition_span(definition));
        let global = |name: &Symbol| at.global(Global::Source { name: name.clone(), types: Arc::from([]) });
        let mut params: Vec<(Var, Type)> = Vec::new();
        let mut arguments = Vec::new();
        for (i, (input, known)) in inputs.iter().zip(&key.1).enumerate() {
            arguments.push(match known {
                Some(name) => global(name),
                None => {
                    let var = Var::fresh(format!("x{i}"));
                    let term = at.var(&var);
                    params.push((var, input.ty.clone()));
                    term
                }
            });
        }
        let types: Vec<Type> = params.iter().map(|(_, ty)| ty.clone()).collect();
        let term = at.lambdas(&params, at.apps(global(definition), arguments));
        let code = self.compile_one(entry(definition, &term, &Type::funs(types, result.clone())));
        self.functions.insert(key, code.clone());
        code
    }

    fn compile_one(&self, entry: Entry) -> Result<Rc<Code>, Error> {
        match self.compile(&[entry]).pop() {
            Some(code) => code,
            None => gradus_source::bug!("an entry was lost"),
        }
    }

    /// Compiles terms together; one that is refused does not keep the others from being compiled.
    fn compile(&self, entries: &[Entry]) -> Vec<Result<Rc<Code>, Error>> {
        let core = self.program.core();
        let lowered = pipeline::lower(core, entries);
        let ids: Vec<_> = lowered.entries.iter().flatten().map(|(id, _)| *id).collect();
        let executable = pipeline::code(&lowered.module, &ids, self.program.options().backend).map(Rc::new);
        let refused = |diagnostic: &Diagnostic| self.program.errors(vec![diagnostic.clone()]);
        let mut place = 0..;
        let made = lowered.entries.into_iter().map(|entry| {
            let (_, signature) = entry.map_err(|diagnostic| refused(&diagnostic))?;
            let number = place.next();
            let executable = executable.clone().map_err(|diagnostic| refused(&diagnostic))?;
            let code = Code::new(executable, number.unwrap_or(0), &signature, core);
            code.map(Rc::new).map_err(|diagnostic| refused(&diagnostic))
        });
        made.collect()
    }

    fn run(&self, code: &Code, inputs: &[Input], result: &Type) -> Result<Value, Error> {
        let mut call = self.call(code, inputs)?;
        self.run_call(&mut call)?;
        Ok(self.result(code, &call, result))
    }

    /// Code with arguments, ready to run. Blocks of reals are borrowed, other structures flattened.
    pub fn call<'a>(&'a self, code: &Code, inputs: &[Input<'a>]) -> Result<Call<'a>, Error> {
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
                    values::flatten(value, input.ty, layout, &schema, &mut leaves);
                }
            }
        }
        for (name, layout) in &code.data {
            match self.data.iter().find(|(known, _, _)| known == name) {
                Some((_, ty, value)) => values::flatten(value, ty, layout, &schema, &mut leaves),
                None => gradus_source::bug!("the data `{name}` was not loaded"),
            }
        }
        let mut call = Call::new(code.executable.clone(), code.entry, leaves).map_err(|error| self.stopped(&error))?;
        let Options { max_steps, max_memory, threads, interrupt, .. } = self.program.options();
        let (max_steps, max_memory, threads) = (*max_steps, *max_memory, *threads);
        call.limits = Limits { max_steps, max_memory, interrupt: interrupt.clone(), threads };
        Ok(call)
    }

    pub fn run_call(&self, call: &mut Call) -> Result<(), Error> {
        call.run().map_err(|error| self.stopped(&error))
    }

    /// What the last run of a call gave.
    pub fn result(&self, code: &Code, call: &Call, ty: &Type) -> Value {
        values::unflatten(call.results(), ty, &code.result, &self.program.schema())
    }

    fn stopped(&self, error: &gradus_native::RunError) -> Error {
        self.program.errors(vec![error.diagnostic()])
    }
}

impl Code {
    fn new(
        executable: Rc<Executable>,
        entry: usize,
        signature: &Signature,
        core: &gradus_core::Program,
    ) -> Result<Code, Box<Diagnostic>> {
        let layout = |ty: &Type| Layout::of(core, ty).map_err(|refusal| Box::new(refusal.diagnostic()));
        let params = signature.params.iter().map(layout).collect::<Result<_, _>>()?;
        let named = |(name, ty): &(Symbol, Type)| layout(ty).map(|layout| (name.clone(), layout));
        let data = signature.data.iter().map(named).collect::<Result<_, _>>()?;
        Ok(Code { executable, entry, params, data, result: layout(&signature.result)? })
    }

    /// How many leaves the parameters have, if these and the result's hold nothing but reals in the order of the values.
    pub fn leaves_of_reals(&self) -> Option<usize> {
        fn is_plain(layout: &Layout) -> bool {
            match layout.parts() {
                Some(parts) => parts.iter().all(is_plain),
                None => layout.is_dense(),
            }
        }
        let plain = is_plain(&self.result) && self.params.iter().all(is_plain);
        plain.then(|| self.params.iter().map(|layout| layout.leaves().len()).sum())
    }
}

fn key(definition: &Symbol, inputs: &[Input]) -> Key {
    let known = |input: &Input| match input.argument {
        Argument::Defined(name) => Some(name.clone()),
        Argument::Value(_) | Argument::Reals(_) => None,
    };
    (definition.clone(), inputs.iter().map(known).collect())
}

fn entry(name: &str, term: &Term, ty: &Type) -> Entry {
    Entry { name: name.into(), term: term.clone(), ty: ty.clone() }
}

/// The option that only the reference evaluator heeds, if one is set.
fn not_compiled(options: &Options) -> Option<&'static str> {
    let Options { mode, kinks, domain, .. } = options;
    match (mode, kinks, domain) {
        (Some(_), ..) => Some("--ad"),
        (_, Kinks::Warn | Kinks::Error | Kinks::Premise, _) => Some("--kinks"),
        (_, _, Domain::Error) => Some("--domain=error"),
        (None, Kinks::Ignore, Domain::Ieee) => None,
    }
}
