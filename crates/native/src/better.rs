//! Code in two qualities: first some that is made quickly, later the best, which gives the same results bit by bit.
//!
//! The first result of a program should not wait for code that pays only for programs that run long. So a call begins with quick code. If the program is
//! still there a moment later, a thread makes the best code, for one program after the other; calls that come later run it, and one that is
//! still running stops at its next look at the limits and begins again with it, which nobody can tell, for programs have no effects.

use crate::cranelift::Later;
use crate::run::Code;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// What is over sooner does not need better code.
const A_MOMENT: Duration = Duration::from_millis(3);
/// Of virtual memory, as for other threads that make code.
const STACK: usize = 64 << 20;

/// The best code of a program, which may not be there yet.
pub(crate) struct Better {
    /// What it is made from, until then.
    later: Mutex<Option<Later>>,
    code: OnceLock<Code>,
    /// Whether it is there, for the quick code to look at.
    there: AtomicBool,
    begun: AtomicBool,
}

/// A program that has begun, and when to look after it.
struct Wanted {
    at: Instant,
    program: Weak<Better>,
}

/// The thread that makes the best code, which lasts as long as the process.
fn worker() -> Option<&'static Sender<Wanted>> {
    static QUEUE: OnceLock<Option<Sender<Wanted>>> = OnceLock::new();
    let start = || {
        let (queue, wanted) = channel::<Wanted>();
        let work = move || {
            for Wanted { at, program } in wanted {
                thread::sleep(at.saturating_duration_since(Instant::now()));
                if let Some(better) = program.upgrade() {
                    better.make(Some(1));
                }
            }
        };
        thread::Builder::new().name("gradus better code".into()).stack_size(STACK).spawn(work).ok().map(|_| queue)
    };
    QUEUE.get_or_init(start).as_ref()
}

impl Better {
    pub(crate) fn new(later: Later) -> Arc<Better> {
        Arc::new(Better {
            later: Mutex::new(Some(later)),
            code: OnceLock::new(),
            there: AtomicBool::new(false),
            begun: AtomicBool::new(false),
        })
    }

    pub(crate) fn code(&self) -> Option<&Code> {
        self.code.get()
    }

    /// Becomes true when the code is there.
    pub(crate) fn there(&self) -> &AtomicBool {
        &self.there
    }

    /// A call begins with quick code: if the program lasts, the best code is made beside it.
    pub(crate) fn begin(self: &Arc<Better>) {
        if self.begun.load(Ordering::Relaxed) || self.begun.swap(true, Ordering::Relaxed) {
            return;
        }
        let wanted = Wanted { at: Instant::now() + A_MOMENT, program: Arc::downgrade(self) };
        // Where there is no other thread, there is this one.
        if worker().is_none_or(|queue| queue.send(wanted).is_err()) {
            self.make(None);
        }
    }

    /// Makes the code, on so many threads at most, unless it is there or cannot be made; waits if somebody else is about it.
    pub(crate) fn make(&self, threads: Option<usize>) {
        let mut later = self.later.lock().unwrap_or_else(|e| e.into_inner());
        // Quick code does what better code would do, so that there is nobody to tell if there is none.
        if let Some(Ok(code)) = later.take().map(|later| later.compile(threads)) {
            let _ = self.code.set(code);
            self.there.store(true, Ordering::Release);
        }
    }
}
