//! Machine code of functions, which know of each other only by name, on several threads.

use super::CompileError;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::Context;
use cranelift_module::{FuncId, ModuleReloc};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

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

/// Functions that wait to be compiled, while others may still be written.
#[derive(Default)]
pub(super) struct Waiting {
    functions: Mutex<Functions>,
    changed: Condvar,
}

#[derive(Default)]
struct Functions {
    waiting: BinaryHeap<BySize>,
    no_more: bool,
}

/// The longest function comes first, so that no thread is left alone with it at the end.
struct BySize {
    size: usize,
    function: Written,
}

impl Ord for BySize {
    fn cmp(&self, other: &BySize) -> Ordering {
        self.size.cmp(&other.size)
    }
}
impl PartialOrd for BySize {
    fn partial_cmp(&self, other: &BySize) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for BySize {
    fn eq(&self, other: &BySize) -> bool {
        self.size == other.size
    }
}
impl Eq for BySize {}

impl Waiting {
    pub(super) fn add(&self, function: Written) {
        let size = function.function.dfg.num_insts();
        self.functions().waiting.push(BySize { size, function });
        self.changed.notify_one();
    }

    /// Those that wait, when all have been written and nobody compiles them.
    pub(super) fn take_all(&self) -> Vec<Written> {
        let waiting = std::mem::take(&mut self.functions().waiting);
        let mut all: Vec<Written> = waiting.into_iter().map(|next| next.function).collect();
        all.sort_by_key(|function| function.id.as_u32());
        all
    }

    fn functions(&self) -> MutexGuard<'_, Functions> {
        self.functions.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The next to be compiled; nothing if there will be no more.
    fn next(&self) -> Option<Written> {
        let mut functions = self.functions();
        loop {
            if let Some(next) = functions.waiting.pop() {
                return Some(next.function);
            }
            if functions.no_more {
                return None;
            }
            functions = self.changed.wait(functions).unwrap_or_else(|e| e.into_inner());
        }
    }
}

/// Tells those who wait that no more functions will come, however their writer ends.
struct Writing<'a>(&'a Waiting);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.functions().no_more = true;
        self.0.changed.notify_all();
    }
}

/// Compiles functions while they are written, on so many threads; the result does not depend on it. Gives what the writer gives, too.
pub(super) fn compile<T>(
    isa: &dyn TargetIsa,
    threads: usize,
    write: impl FnOnce(Arc<Waiting>) -> Result<T, CompileError>,
) -> Result<(T, Vec<Compiled>), CompileError> {
    let waiting = Arc::new(Waiting::default());
    let work = || {
        let mut context = Context::new();
        let mut done = Vec::new();
        while let Some(written) = waiting.next() {
            done.push((written.id, one(isa, &mut context, written)));
        }
        done
    };
    let (written, mut all) = thread::scope(|scope| {
        let writing = Writing(&waiting);
        // Where there are no more threads, there is this one.
        let spawn = |_| thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).ok();
        let workers: Vec<_> = (1..threads).map_while(spawn).collect();
        let written = write(waiting.clone())?;
        drop(writing);
        let mut all = work();
        for worker in workers {
            all.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        Ok((written, all))
    })?;
    all.sort_by_key(|(id, _)| id.as_u32());
    let all: Result<_, _> = all.into_iter().map(|(_, compiled)| compiled).collect();
    Ok((written, all?))
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
