//! The threads on which the chunks of a loop run: one pool for the process, made when it is first needed.
//!
//! One loop at a time has the pool. Whoever finds it taken runs the chunks alone, one after the other: what comes out does not depend on it.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};

/// Does chunk number `k` of a job.
pub type Chunk = unsafe extern "C" fn(job: *mut c_void, k: i64);

/// Calls `chunk(job, k)` for each `k` from 0 to before `chunks` once, and comes back when all have. `gradus.h` has the same.
pub type Runner = unsafe extern "C" fn(chunk: Chunk, job: *mut c_void, chunks: i64);

/// Of each thread of the pool: address space for recursion, of which only what is touched becomes memory.
pub const STACK: usize = 1 << 30;

/// Threads beyond this many are not made.
const MOST_WORKERS: usize = 255;

thread_local! {
    static THREADS: Cell<usize> = const { Cell::new(1) };
}

/// How many threads the loops that are called from this one may use, itself included.
pub fn set_threads(threads: usize) {
    THREADS.set(threads.max(1));
}

/// See [`set_threads`]; one if nothing was said.
pub fn threads() -> usize {
    THREADS.get()
}

/// How many threads the machine runs at once.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// A job while it runs.
struct Task {
    chunk: Chunk,
    job: *mut c_void,
    chunks: i64,
    next: AtomicI64,
}

impl Task {
    /// Takes chunks, in order, until there are no more.
    unsafe fn work(&self) {
        loop {
            let k = self.next.fetch_add(1, Ordering::Relaxed);
            if k >= self.chunks {
                return;
            }
            unsafe { (self.chunk)(self.job, k) };
        }
    }
}

struct State {
    /// Of the loop that has the pool; null if nobody has it. Its thread takes it back before it goes away, when nobody is `active` on it.
    task: *const Task,
    /// How many threads are still welcome.
    wanted: usize,
    active: usize,
    workers: usize,
    /// The system gives no more threads.
    full: bool,
}

// The task is only used by threads that the one it belongs to waits for.
unsafe impl Send for State {}

static STATE: Mutex<State> =
    Mutex::new(State { task: std::ptr::null(), wanted: 0, active: 0, workers: 0, full: false });
static WAKE: Condvar = Condvar::new();
static DONE: Condvar = Condvar::new();

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(|e| e.into_inner())
}

/// A [`Runner`] on as many threads as [`set_threads`] allows.
///
/// # Safety
/// Chunks of the job must be able to run at the same time on different threads.
pub unsafe extern "C" fn run(chunk: Chunk, job: *mut c_void, chunks: i64) {
    let task = Task { chunk, job, chunks, next: AtomicI64::new(0) };
    let helpers = (threads() - 1).min(MOST_WORKERS).min(usize::try_from(chunks - 1).unwrap_or(0));
    let shared = helpers > 0 && start(&task, helpers);
    unsafe { task.work() };
    if shared {
        let mut state = state();
        state.wanted = 0;
        while state.active > 0 {
            state = DONE.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        state.task = std::ptr::null();
    }
}

/// Gives a task to the pool, unless it has one.
fn start(task: &Task, helpers: usize) -> bool {
    let mut state = state();
    if !state.task.is_null() {
        return false;
    }
    while state.workers < helpers && !state.full {
        let builder = std::thread::Builder::new().name("gradus".into()).stack_size(STACK);
        match builder.spawn(worker) {
            Ok(_) => state.workers += 1,
            Err(_) => state.full = true,
        }
    }
    state.task = task;
    state.wanted = helpers;
    drop(state);
    for _ in 0..helpers {
        WAKE.notify_one();
    }
    true
}

fn worker() {
    let mut state = state();
    loop {
        while state.wanted == 0 {
            state = WAKE.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        state.wanted -= 1;
        state.active += 1;
        let task = state.task;
        drop(state);
        // It stays there until nobody is active.
        unsafe { (*task).work() };
        state = self::state();
        state.active -= 1;
        if state.active == 0 {
            DONE.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunks of a job that counts how often each was run.
    unsafe extern "C" fn count(job: *mut c_void, k: i64) {
        let counts = unsafe { &*job.cast::<Vec<AtomicI64>>() };
        counts[k as usize].fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn every_chunk_runs_once_also_when_many_ask() {
        let ask = |threads: usize| {
            set_threads(threads);
            for chunks in [1, 2, 7, 100] {
                let mut counts: Vec<AtomicI64> = (0..chunks).map(|_| AtomicI64::new(0)).collect();
                unsafe { run(count, (&raw mut counts).cast(), chunks) };
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            }
        };
        std::thread::scope(|scope| {
            for threads in [1, 2, 3, 8] {
                scope.spawn(move || (0..50).for_each(|_| ask(threads)));
            }
        });
    }
}
