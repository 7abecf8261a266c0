//! Loops of independent iterations in chunks, for code made inside the process; `chunks.c` has the same for the C backend.
//!
//! Into how many chunks a loop is cut depends on how much there is to do and never on the number of threads, and what each chunk adds up is added
//! in the order of the chunks. So results have the same bits on one thread as on many.

use crate::elements;
use crate::memory::{self, Thread};
use crate::pool;
use crate::slot::{Kind, Limits};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::Mutex;

/// Iterations `from` to before `to` of a loop. In `outside` are the [`Loop`] and what it uses from outside, in `own` the sums of one number and, if
/// it is cut, the arrays of sums.
pub type Body =
    unsafe extern "C" fn(thread: *mut Thread, outside: *const c_void, own: *mut f64, from: i64, to: i64) -> i32;

/// What the threads that run one loop share.
pub struct Shared {
    /// Steps that are left.
    pub(crate) steps: AtomicI64,
    /// Bytes that are used; counted only if they are limited.
    pub(crate) used: AtomicUsize,
}

/// A loop is cut if there is work for so many chunks: less is done before another thread is awake.
pub const WORTH_CUTTING: f64 = 4.0;
/// More chunks than this are not made.
const MOST: f64 = 128.0;
/// Of work that is worth a chunk, so much belongs to a number that each chunk adds up: it is cleared, and added to the total.
const SHARE_OF_SUM: f64 = 1.0 / 1024.0;
/// So many numbers may all chunks together add up.
const MOST_SUMS: f64 = (1 << 25) as f64;

/// Into how many chunks a loop of `count` iterations is cut that has so much `work`, of which `least` is worth a chunk, if each chunk has
/// `sums` numbers of its own to add up. One: it is not cut.
fn count(count: i64, work: f64, least: f64, sums: i64) -> i64 {
    let sums = sums as f64;
    let bounds = [work / least, count as f64, MOST_SUMS / sums, work / (least * SHARE_OF_SUM * sums)];
    // Without sums, two of them are infinite.
    bounds.into_iter().fold(MOST, f64::min) as i64
}

/// The first iteration of chunk `k`.
fn start(count: i64, chunks: i64, k: i64) -> i64 {
    count / chunks * k + k.min(count % chunks)
}

struct Job {
    body: Body,
    outside: *const c_void,
    count: i64,
    chunks: i64,
    records: *mut f64,
    width: i64,
    limits: Limits,
    shared: Shared,
    caller: *mut Thread,
    /// The lowest chunk that failed, and how; those after it need not run.
    failed: AtomicI64,
    failure: Mutex<(i64, i32)>,
}

impl Job {
    unsafe fn run(&self, thread: *mut Thread, k: i64) -> i32 {
        unsafe {
            let own = if self.width > 0 { self.records.add((self.width * k) as usize) } else { self.records };
            // Nothing, to which a sum adds without losing the sign of its zero.
            elements::fill(own.cast(), self.width, (-0.0_f64).to_bits());
            let [from, to] = [k, k + 1].map(|k| start(self.count, self.chunks, k));
            (self.body)(thread, self.outside, own, from, to)
        }
    }

    fn fail(&self, k: i64, code: i32) {
        let mut failure = self.failure.lock().unwrap_or_else(|e| e.into_inner());
        if k < failure.0 {
            *failure = (k, code);
            self.failed.store(k, Ordering::Relaxed);
        }
    }
}

unsafe extern "C" fn chunk(job: *mut c_void, k: i64) {
    unsafe {
        let job = &*job.cast::<Job>();
        if k > job.failed.load(Ordering::Relaxed) {
            return;
        }
        let thread = memory::join(job.caller, job.limits, &job.shared);
        let code = job.run(thread, k);
        if code != 0 {
            job.fail(k, code);
        }
        memory::part(thread, job.caller, code != 0);
    }
}

/// How the states of chunks become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    Maximum = 0,
    Minimum = 1,
    /// Of integers, as the next.
    Sum = 2,
    Product = 3,
}

/// So many bits is a [`Join`] in [`Loop::joins`].
pub const JOIN_BITS: u32 = 2;
/// So many fit in there.
pub const MOST_JOINS: usize = 31;

impl Join {
    const ALL: [Join; 4] = [Join::Maximum, Join::Minimum, Join::Sum, Join::Product];

    fn join(self, x: f64, y: f64) -> f64 {
        let ints = |f: fn(i64, i64) -> i64| f64::from_bits(f(x.to_bits() as i64, y.to_bits() as i64) as u64);
        match self {
            Join::Maximum if x > y || x.is_nan() => x,
            Join::Minimum if x < y || x.is_nan() => x,
            Join::Maximum | Join::Minimum => y,
            Join::Sum => ints(i64::wrapping_add),
            Join::Product => ints(i64::wrapping_mul),
        }
    }
}

/// What stands before the values from outside: the loop itself.
#[repr(C)]
pub struct Loop {
    /// Whether it is cut into chunks: set before the body runs.
    pub cut: i64,
    pub count: i64,
    /// See [`count`].
    pub work: f64,
    pub shape: *const Shape,
}

/// What is known of a loop when it is compiled.
pub struct Shape {
    /// See [`count`].
    pub least: f64,
    /// How many sums of one number, and how many arrays of sums it has.
    pub scalars: i64,
    pub arrays: i64,
    /// How many states it carries, and their [`Join`]s, the first in the lowest bits.
    pub states: i64,
    pub joins: i64,
    /// Where it is: a failure number but for the kind.
    pub place: i32,
}

/// An array of sums.
#[repr(C)]
pub struct Sums {
    pub to: *mut f64,
    pub count: i64,
}

/// Runs a loop: in chunks if there is enough to do. 0, or what the first iteration that fails gives. The sums of one number are in `own`, and then the
/// states; a loop that is not cut adds to the `arrays` itself.
///
/// # Safety
/// The thread must come from [`memory::enter`]; the body may use what it finds behind the loop, and iterations do not disturb each other.
pub unsafe extern "C" fn run(
    thread: *mut Thread,
    body: Body,
    outside: *mut Loop,
    own: *mut f64,
    arrays: *const Sums,
) -> i32 {
    unsafe {
        let Loop { count: iterations, work, shape, .. } = *outside;
        let Shape { least, scalars, arrays: array_count, states, joins, place } = *shape;
        let (mut chunks, mut width) = (1, scalars + states);
        let arrays = if array_count > 0 { std::slice::from_raw_parts(arrays, array_count as usize) } else { &[] };
        if work >= WORTH_CUTTING * least {
            width += arrays.iter().map(|sums| sums.count).sum::<i64>();
            chunks = count(iterations, work, least, width);
        }
        (*outside).cut = i64::from(chunks > 1);
        if chunks <= 1 {
            return body(thread, outside.cast(), own, 0, iterations);
        }
        let failed = |kind: Kind| place + kind as i32;
        let block = if width > 0 { memory::allocate(thread, 8 * chunks * width) } else { null_mut() };
        if width > 0 && block.is_null() {
            return failed(Kind::Memory);
        }
        let records: *mut f64 = if width > 0 { block.add(1).cast() } else { null_mut() };
        let code = run_chunks(thread, body, outside.cast(), [iterations, chunks, width], records);
        if code != 0 {
            return code;
        }
        if memory::left(thread).0 < 0 {
            return failed(Kind::Steps);
        }
        if width > 0 {
            merge(own, records, width, chunks, scalars);
            let mut at = scalars as usize;
            for state in 0..states {
                let join = Join::ALL[(joins >> (JOIN_BITS as i64 * state) & 3) as usize];
                for k in 0..chunks {
                    *own.add(at) = join.join(*own.add(at), *records.add((width * k) as usize + at));
                }
                at += 1;
            }
            for sums in arrays {
                merge(sums.to, records.add(at), width, chunks, sums.count);
                at += sums.count as usize;
            }
            memory::free(thread, block);
        }
        0
    }
}

/// Runs the chunks, each with `width` numbers of `records` to add up.
unsafe fn run_chunks(
    thread: *mut Thread,
    body: Body,
    outside: *const c_void,
    [count, chunks, width]: [i64; 3],
    records: *mut f64,
) -> i32 {
    unsafe {
        let limits = memory::limits(thread);
        let (steps, used) = memory::left(thread);
        let shared = Shared { steps: AtomicI64::new(steps), used: AtomicUsize::new(used) };
        let mut job = Job {
            body,
            outside,
            count,
            chunks,
            records,
            width,
            limits,
            shared,
            caller: thread,
            failed: AtomicI64::new(i64::MAX),
            failure: Mutex::new((i64::MAX, 0)),
        };
        if pool::threads() <= 1 || memory::is_shared(thread) {
            for k in 0..chunks {
                let code = job.run(thread, k);
                if code != 0 {
                    return code;
                }
            }
            return 0;
        }
        memory::share(thread, &job.shared);
        pool::run(chunk, (&raw mut job).cast(), chunks);
        memory::unshare(thread, job.shared.steps.load(Ordering::Relaxed));
        job.failure.into_inner().unwrap_or_else(|e| e.into_inner()).1
    }
}

/// Adds what all chunks have added up, in their order: `count` numbers from `records` on, then `width` further, and so on.
unsafe fn merge(to: *mut f64, records: *const f64, width: i64, chunks: i64, count: i64) {
    for k in 0..chunks {
        unsafe { elements::add(to, records.add((width * k) as usize), count) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_iterations() {
        for iterations in [2, 3, 10, 127, 128, 129, 1000, i64::MAX] {
            for chunks in [1, 2, 3, 7, 128] {
                let starts: Vec<i64> = (0..=chunks).map(|k| start(iterations, chunks, k)).collect();
                assert!(starts[0] == 0 && starts.last() == Some(&iterations) && starts.is_sorted());
            }
        }
    }

    #[test]
    fn how_many_chunks() {
        let least = 65536.0;
        assert_eq!(count(1000, 100_000.0, least, 0), 1);
        assert_eq!(count(1000, 200_000.0, least, 0), 3);
        assert_eq!(count(2, 1e9, least, 1), 2);
        assert_eq!(count(i64::MAX, 1e30, least, 1), 128);
        // Ten million sums for ten million additions: no chunks. For ten billion, as many as there is memory for.
        assert!(count(10_000_000, 1e7, least, 10_000_000) <= 1);
        assert_eq!(count(10_000_000_000, 1e10, least, 10_000_000), 3);
    }
}
