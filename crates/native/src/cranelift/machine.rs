//! Machine code of functions, which know of each other only by name, on several threads.

use super::CompileError;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::Context;
use cranelift_module::{FuncId, ModuleReloc};
use std::cmp::Reverse;
use std::sync::Mutex;
use std::thread;

/// So many instructions, some milliseconds, are worth a thread.
const WORTH: usize = 2000;
/// Of virtual memory, for each thread.
const STACK: usize = 64 << 20;

/// A function in Cranelift's language.
pub(super) struct Written {
    pub(super) id: FuncId,
    pub(super) function: Function,
}

/// The same as machine code.
pub(super) struct Compiled {
    pub(super) id: FuncId,
    /// In Cranelift's language: what can be compiled once more, with more care.
    pub(super) function: Function,
    pub(super) alignment: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) relocations: Vec<ModuleReloc>,
}

/// Compiles functions on at most so many threads; nothing: on as many as the machine runs at once. The result does not depend on it.
pub(super) fn compile(
    isa: &dyn TargetIsa,
    mut functions: Vec<Written>,
    threads: Option<usize>,
) -> Result<Vec<Compiled>, CompileError> {
    let instructions: usize = functions.iter().map(|f| f.function.dfg.num_insts()).sum();
    let most = threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, |n| n.get()));
    let others = most.min(functions.len()).min(1 + instructions / WORTH).saturating_sub(1);
    // The longest first, so that no thread is left alone with one of them.
    functions.sort_by_key(|f| Reverse(f.function.dfg.num_insts()));
    let left = Mutex::new(functions.into_iter());
    let work = || {
        let mut context = Context::new();
        let mut done = Vec::new();
        loop {
            let next = left.lock().unwrap_or_else(|e| e.into_inner()).next();
            match next {
                Some(written) => done.push((written.id, one(isa, &mut context, written))),
                None => return done,
            }
        }
    };
    let mut all = thread::scope(|scope| {
        // Where there are no more threads, there is this one.
        let spawn = |_| thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).ok();
        let workers: Vec<_> = (0..others).map_while(spawn).collect();
        let mut all = work();
        for worker in workers {
            all.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(id, _)| id.as_u32());
    all.into_iter().map(|(_, compiled)| compiled).collect()
}

fn one(isa: &dyn TargetIsa, context: &mut Context, written: Written) -> Result<Compiled, CompileError> {
    let Written { id, function } = written;
    context.clear();
    context.func = function;
    if let Err(error) = context.compile(isa, &mut Default::default()) {
        return Err(CompileError::Function { reason: format!("{:?}", error.inner) });
    }
    let function = std::mem::replace(&mut context.func, Function::new());
    let Some(code) = context.compiled_code() else { gradus_source::bug!("a function was compiled and is not there") };
    let relocations =
        code.buffer.relocs().iter().map(|reloc| ModuleReloc::from_mach_reloc(reloc, &function, id)).collect();
    let alignment = u64::from(code.buffer.alignment);
    Ok(Compiled { id, function, alignment, bytes: code.code_buffer().to_vec(), relocations })
}
