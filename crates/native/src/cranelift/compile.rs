//! Makes machine code of a module and keeps it in memory.

use super::emit::{Emitter, Linker};
use super::machine::{self, Compiled, Waiting, Written};
use super::math;
use super::pieces::SIZES;
use super::reckoned::Reckoned;
use crate::cores::Plan;
use crate::flow::{walk, FunctionId, Module};
use crate::pieces::Insides;
use crate::place::Places;
use crate::recursion;
use crate::run::Code;
use crate::sole::Sole;
use cranelift_codegen::ir::{types, AbiParam, Function, Signature, UserFuncName, Value};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilder;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module as _, ModuleError};
use gradus_runtime::boxes::Shapes;
use gradus_runtime::chunks::Shape;
use gradus_runtime::memory;
use gradus_runtime::slot::Entry;
use gradus_source::Diagnostic;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex};
use std::thread;

/// Why there is no machine code.
#[derive(Debug)]
pub enum CompileError {
    /// Cranelift does not know this kind of machine.
    Machine { reason: String },
    /// A function is beyond what Cranelift can do.
    Function { reason: String },
}

impl CompileError {
    /// What a user is told.
    pub fn diagnostic(&self) -> Diagnostic {
        let alternative = "`--backend c` or `--backend reference` do without this code generator";
        match self {
            CompileError::Machine { reason } => {
                Diagnostic::error("E0808", format!("no machine code can be made for this kind of machine: {reason}"))
                    .help(alternative)
            }
            CompileError::Function { reason } => {
                Diagnostic::error("E0809", format!("no machine code can be made for this program: {reason}"))
                    .help(alternative)
            }
        }
    }
}

/// The memory of the code; freed when nobody can call it any more.
struct Loaded {
    module: Mutex<Option<JITModule>>,
    _known: Arc<Known>,
}

/// What code has the addresses of.
struct Known {
    _shapes: Box<Shapes>,
    _loops: Vec<Arc<Shape>>,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let module = self.module.get_mut().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(module) = module {
            // Its functions are called only through the `Code` that owns this.
            unsafe { module.free_memory() };
        }
    }
}

fn refused(error: ModuleError) -> CompileError {
    CompileError::Function { reason: error.to_string() }
}

/// How much time making machine code may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Care {
    /// Half as long as the best code takes, for up to twice the time to run.
    Quick,
    Best,
    /// Quick code at first, and the best when calls last: see [`crate::better`].
    #[default]
    QuickThenBest,
}

/// The parts of the code generator that make the difference: how it simplifies, and how it gives out registers.
#[derive(Clone, Copy)]
struct Effort {
    simplify: bool,
    registers: &'static str,
}

impl Effort {
    const QUICK: Effort = Effort { simplify: false, registers: "single_pass" };
    const BEST: Effort = Effort { simplify: true, registers: "backtracking" };
}

/// A program of so few statements is not worth two qualities.
const FEW: usize = 150;
/// So many, which take some milliseconds, are worth a thread.
const WORTH: usize = 300;

fn isa(effort: Effort) -> Result<OwnedTargetIsa, CompileError> {
    let machine = |reason: String| CompileError::Machine { reason };
    let level = if effort.simplify { "speed" } else { "none" };
    let mut flags = settings::builder();
    let choices = [("opt_level", level), ("regalloc_algorithm", effort.registers)];
    for (name, value) in choices.into_iter().chain([("enable_verifier", "false"), ("is_pic", "false")]) {
        flags.set(name, value).map_err(|e| machine(e.to_string()))?;
    }
    let isa = cranelift_native::builder().map_err(|e| machine(e.to_string()))?;
    isa.finish(settings::Flags::new(flags)).map_err(|e| machine(e.to_string()))
}

fn new_module() -> Result<JITModule, CompileError> {
    let mut builder = JITBuilder::with_isa(isa(Effort::BEST)?, cranelift_module::default_libcall_names());
    builder.symbols(math::addresses());
    Ok(JITModule::new(builder))
}

/// Compiles a module; `entries` are the functions to be called from outside, `plan` says which loops are cut into chunks; on so many threads at most.
/// Quick code comes with what the best code can be made from, if that is wanted.
pub fn compile(
    module: &Module,
    entries: &[FunctionId],
    plan: &Plan,
    care: Care,
    threads: Option<usize>,
) -> Result<(Code, Option<Later>), CompileError> {
    let mut statements = 0;
    for function in &module.functions {
        walk::for_each_stmt(&function.body, &mut |_| statements += 1);
    }
    let care = if care == Care::QuickThenBest && statements < FEW { Care::Best } else { care };
    let isa = isa(if care == Care::Best { Effort::BEST } else { Effort::QUICK })?;
    let threads = at_most(threads).min(1 + statements / WORTH);
    let ((linker, entries), compiled) =
        machine::compile(&*isa, threads, |waiting| write(module, entries, plan, waiting))?;
    let known = Arc::new(Known { _shapes: linker.shapes, _loops: linker.loops });
    let declared = linker.jit.declarations().get_functions();
    let declared = declared.map(|(_, d)| (d.name.clone(), d.linkage, d.signature.clone())).collect();
    let places = Arc::new(linker.places);
    let (code, functions) = load(linker.jit, compiled, &entries, places.clone(), known.clone())?;
    let later = Later { declared, functions, entries, places, known };
    Ok((code, (care == Care::QuickThenBest).then_some(later)))
}

/// On how many threads to compile; if nobody says, on as many as the machine runs at once.
fn at_most(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, |n| n.get()))
}

/// Puts machine code where it can be called; gives it, and what it was made from.
fn load(
    mut jit: JITModule,
    compiled: Vec<Compiled>,
    entries: &[FuncId],
    places: Arc<Places>,
    known: Arc<Known>,
) -> Result<(Code, Vec<Written>), CompileError> {
    let mut functions = Vec::with_capacity(compiled.len());
    for Compiled { id, function, alignment, bytes, relocations } in compiled {
        jit.define_function_bytes(id, alignment, &bytes, &relocations).map_err(refused)?;
        functions.push(Written { id, function });
    }
    jit.finalize_definitions().map_err(refused)?;
    let entries = entries
        .iter()
        .map(|id| {
            let address = jit.get_finalized_function(*id);
            // The function was given this signature when it was declared.
            unsafe { std::mem::transmute::<*const u8, Entry>(address) }
        })
        .collect();
    let owner = Loaded { module: Mutex::new(Some(jit)), _known: known };
    let (release, set_limits) = (memory::release, memory::set_limits);
    Ok((Code { entries, release, set_limits, places, _owner: Box::new(owner) }, functions))
}

/// What quick code leaves for better code to be made from.
pub struct Later {
    /// The functions of the module, in the order of their numbers.
    declared: Vec<(Option<String>, Linkage, Signature)>,
    functions: Vec<Written>,
    entries: Vec<FuncId>,
    places: Arc<Places>,
    known: Arc<Known>,
}

impl Later {
    /// Makes the better code, on so many threads at most. It gives the same results, bit by bit.
    pub fn compile(self, threads: Option<usize>) -> Result<Code, CompileError> {
        let mut jit = new_module()?;
        for (name, linkage, signature) in &self.declared {
            match name {
                Some(name) => jit.declare_function(name, *linkage, signature),
                None => jit.declare_anonymous_function(signature),
            }
            .map_err(refused)?;
        }
        let threads = at_most(threads).min(self.functions.len());
        let all = |waiting: Arc<Waiting>| {
            self.functions.into_iter().for_each(|function| waiting.add(function));
            Ok(())
        };
        let (_, compiled) = machine::compile(&*isa(Effort::BEST)?, threads, all)?;
        load(jit, compiled, &self.entries, self.places, self.known).map(|(code, _)| code)
    }
}

/// The functions in Cranelift's language, for people.
pub fn text(module: &Module, entries: &[FunctionId], plan: &Plan) -> Result<String, CompileError> {
    let waiting = Arc::new(Waiting::default());
    write(module, entries, plan, waiting.clone())?;
    Ok(waiting.take_all().iter().map(|function| format!("{}\n", function.function.display())).collect())
}

/// Writes all functions in Cranelift's language; says which of them are entries.
fn write<'a>(
    module: &'a Module,
    entries: &[FunctionId],
    plan: &'a Plan,
    written: Arc<Waiting>,
) -> Result<(Linker<'a>, Vec<FuncId>), CompileError> {
    let mut linker = Linker {
        jit: new_module()?,
        module,
        plan,
        sole: Sole::of(module),
        bodies: Vec::new(),
        shared: FxHashMap::default(),
        written,
        contexts: Vec::new(),
        functions: Vec::new(),
        imports: FxHashMap::default(),
        places: Default::default(),
        recursive: recursion::recursive(module),
        shapes: Box::new(super::cells::shapes(module)),
        loops: Vec::new(),
    };
    for (id, function) in module.functions.iter().enumerate() {
        let signature = linker.signature(function);
        let declared = linker.jit.declare_function(&format!("gradus_function_{id}"), Linkage::Local, &signature);
        linker.functions.push(declared.map_err(refused)?);
    }
    for (id, function) in module.functions.iter().enumerate() {
        let signature = linker.signature(function);
        let recursive = linker.recursive[id];
        let func = linker.functions[id];
        let taken_over = module.taken_over(FunctionId(id));
        linker.write(func, signature, |emitter, _| emitter.function(function, taken_over, recursive));
    }
    while let Some(mut body) = linker.bodies.pop() {
        let signature = linker.body_signature();
        let outer = body.places.take().map(|own| std::mem::replace(&mut linker.places, own));
        let known = linker.places.iter().len();
        linker.write(body.function, signature, |emitter, params| emitter.chunk_body(&body, params));
        if let Some(outer) = outer {
            let own = std::mem::replace(&mut linker.places, outer);
            if own.iter().len() > known {
                gradus_source::bug!("a loop fails in a place that nobody knew of");
            }
        }
    }
    let mut functions = Vec::new();
    for (number, id) in entries.iter().enumerate() {
        let mut signature = linker.jit.make_signature();
        signature.params = vec![AbiParam::new(types::I64); 2];
        signature.returns.push(AbiParam::new(types::I32));
        let name = format!("gradus_entry_{number}");
        let func = linker.jit.declare_function(&name, Linkage::Export, &signature).map_err(refused)?;
        let can_fail = !module.shapes.is_empty() || recursion::can_fail(module, *id);
        linker.write(func, signature, |emitter, params| emitter.entry(*id, params[0], params[1], can_fail));
        functions.push(func);
    }
    Ok((linker, functions))
}

impl Linker<'_> {
    /// Writes a function.
    pub(super) fn write<T>(
        &mut self,
        id: FuncId,
        signature: Signature,
        write: impl FnOnce(&mut Emitter<'_, '_, '_>, &[Value]) -> T,
    ) -> T {
        let mut function = Function::with_name_signature(UserFuncName::user(0, id.as_u32()), signature);
        let mut context = self.contexts.pop().unwrap_or_default();
        let mut b = FunctionBuilder::new(&mut function, &mut context);
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        b.seal_block(entry);
        let params = b.block_params(entry).to_vec();
        let fail = b.create_block();
        let config = self.jit.target_config();
        let mut emitter = Emitter {
            linker: self,
            b,
            held: FxHashMap::default(),
            waiting: FxHashMap::default(),
            imported: FxHashMap::default(),
            thread: params[0],
            fail,
            shared_sums: FxHashSet::default(),
            ends: FxHashSet::default(),
            insides: Insides::new(SIZES),
            replaced: FxHashSet::default(),
            rows_at: FxHashMap::default(),
            frame: None,
            recursive: false,
            reckoned: Reckoned::default(),
        };
        let result = write(&mut emitter, &params);
        emitter.b.finalize(config);
        self.contexts.push(context);
        self.written.add(Written { id, function });
        result
    }
}
