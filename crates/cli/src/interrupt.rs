//! Ctrl-C: the run under way stops with a message and its place. What does not stop soon, because it is no run, ends with the process.

use crate::options::Format;
use crate::output::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// What shells expect of a program that Ctrl-C ended.
pub const STATUS: u8 = 130;

/// How long a run has to notice.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(10);

static FLAG: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether we wait for input, and there is nothing to stop.
static WAITING: AtomicBool = AtomicBool::new(false);

/// What runs look at.
pub fn flag() -> Arc<AtomicBool> {
    FLAG.clone()
}

pub fn happened() -> bool {
    FLAG.load(Ordering::SeqCst)
}

/// The next run is not concerned.
pub fn forget() {
    FLAG.store(false, Ordering::SeqCst);
}

/// Reads input; Ctrl-C meanwhile ends the process at once.
pub fn waiting<T>(read: impl FnOnce() -> T) -> T {
    WAITING.store(true, Ordering::SeqCst);
    let result = read();
    WAITING.store(false, Ordering::SeqCst);
    result
}

/// From now on Ctrl-C is ours. Where that cannot be, it ends the process as it always did.
#[cfg(unix)]
pub fn listen(format: Option<Format>) {
    let Ok(mut signals) = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT]) else { return };
    std::thread::spawn(move || {
        for _ in signals.forever() {
            FLAG.store(true, Ordering::SeqCst);
            if !is_noticed() {
                let output = Output::new(format);
                let _ = output.flush();
                output.complain("interrupted");
                std::process::exit(STATUS.into());
            }
        }
    });
}

/// The same where signals are simpler: only runs stop.
#[cfg(not(unix))]
pub fn listen(_: Option<Format>) {
    let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, flag());
}

/// Whether a run stops in time and something else goes on. If nothing goes on, the process ends meanwhile.
#[cfg(unix)]
fn is_noticed() -> bool {
    for _ in 0..PATIENCE.as_millis() / LOOK_EVERY.as_millis() {
        if WAITING.load(Ordering::SeqCst) {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
        if !happened() {
            return true;
        }
    }
    false
}
