//! Code in two qualities: first some that is made quickly, later the best, which gives the same results bit by bit.
//!
//! The first result of a program should not wait for code that pays only for programs that run long. So a call begins with quick code, and
//! a thread waits with it for a moment. If the program is still there by then, the thread makes the best code; calls that come later run it, and one that is
//! still running stops at its next look at the limits and begins again with it, which nobody can tell, for programs have no effects.

use crate::cranelift::Later;
use crate::run::Code;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

/// What is over sooner does not need better code.
const A_MOMENT: Duration = Duration::from_millis(3);

/// The best code of a program, which may not be there yet.
pub(crate) struct Better {
    /// What it is made from, until then.
    later: Mutex<Option<Later>>,
    code: OnceLock<Code>,
    /// Whether it is there, for the quick code to look at.
    there: AtomicBool,
    begun: AtomicBool,
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
        let wanted = Arc::downgrade(self);
        let beside = move || {
            thread::sleep(A_MOMENT);
            if let Some(better) = wanted.upgrade() {
                better.make(Some(1));
            }
        };
        if thread::Builder::new().name("gradus better code".into()).spawn(beside).is_err() {
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
