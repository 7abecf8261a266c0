//! How long a function takes: runs of the function alone, without what goes before and after.

use crate::compiled::{Code, Compiled};
use crate::evaluate::{Evaluator, Input};
use crate::function::Argument;
use crate::{Backend, Error, Function, Value};
use gradus_runtime::clock::cpu_time;
use gradus_runtime::process;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How often to run: until there were so many runs, and they took so long together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeat {
    pub min_runs: u64,
    pub min_seconds: f64,
}

/// The result of the last run, and times.
#[derive(Clone, Debug)]
pub struct Measured {
    pub value: Value,
    /// What compilation took; nothing if the code was there already, or nothing is compiled.
    pub compilation: Duration,
    pub runs: Vec<Duration>,
    /// The processor's time for the cheapest run, on the calling thread alone, where it is known: other work on the machine does not count in it.
    pub cpu: Option<Duration>,
    /// The memory that the first run needed beyond what was in use before it, in bytes, where the system tells. Later runs use it again.
    pub peak_bytes: Option<u64>,
    /// What ran it: never [`Backend::Auto`].
    pub backend: Backend,
}

impl Measured {
    /// The fastest run: other work on the machine only ever adds time.
    pub fn least(&self) -> Duration {
        self.runs.iter().min().copied().unwrap_or_default()
    }
}

impl Function {
    /// Applies the function to all its arguments, again and again.
    ///
    /// ```
    /// # fn main() -> Result<(), gradus::Error> {
    /// use gradus::{Argument, Backend, Program, Repeat, Value};
    /// let program = Program::from_source("twice.gr", "let twice x = 2.0 * x")?;
    /// let three = Value::Real(3.0);
    /// let repeat = Repeat { min_runs: 5, min_seconds: 0.0 };
    /// let measured = program.function("twice")?.measure(&[Argument::Value(&three)], repeat)?;
    /// assert_eq!((measured.value, measured.runs.len()), (Value::Real(6.0), 5));
    /// assert_eq!(measured.backend, Backend::Native);
    /// # Ok(())
    /// # }
    /// ```
    pub fn measure(&self, arguments: &[Argument], repeat: Repeat) -> Result<Measured, Error> {
        self.check_call(arguments)?;
        let inputs: Vec<Input> =
            arguments.iter().zip(self.params()).map(|(argument, ty)| Input { argument, ty }).collect();
        let compilation = Cell::new(Duration::ZERO);
        let code = |compiled: &mut Compiled| {
            let known = compiled.knows(self.definition(), &inputs);
            let began = Instant::now();
            let made = compiled.function(self.definition(), &inputs, self.result());
            compilation.set(if known { Duration::ZERO } else { began.elapsed() });
            made
        };
        let run = |compiled: &Compiled, code: &Code| {
            if repeat.min_runs > 1 || repeat.min_seconds > 0.0 {
                compiled.improve(code);
            }
            let mut call = compiled.call(code, &inputs)?;
            let ((), times) = repeat.times(|| compiled.run_call(code, &mut call))?;
            Ok((compiled.result(code, &call, self.result()), times, compiled.backend()))
        };
        let evaluate = |evaluator: &mut Evaluator| {
            let prepared = evaluator.prepare(self.definition(), &inputs)?;
            let (held, times) = repeat.times(|| evaluator.run(prepared.clone()))?;
            Ok((evaluator.plain(&held, self.result()), times, Backend::Reference))
        };
        let (value, Times { runs, cpu, peak_bytes }, backend) =
            self.with_engine(|engine| engine.run(code, run, evaluate))?;
        Ok(Measured { value, compilation: compilation.get(), runs, cpu, peak_bytes, backend })
    }

    /// The least time that a run takes, in nanoseconds, from as many as fit in `seconds`. Short functions are run in batches, so that looking at
    /// the clock does not count.
    pub fn least_time(&self, arguments: &[Argument], seconds: f64) -> Result<f64, Error> {
        self.check_call(arguments)?;
        let inputs: Vec<Input> =
            arguments.iter().zip(self.params()).map(|(argument, ty)| Input { argument, ty }).collect();
        let code = |compiled: &mut Compiled| compiled.function(self.definition(), &inputs, self.result());
        let run = |compiled: &Compiled, code: &Code| {
            compiled.improve(code);
            let mut call = compiled.call(code, &inputs)?;
            least_time(seconds, || compiled.run_call(code, &mut call))
        };
        let evaluate = |evaluator: &mut Evaluator| {
            let prepared = evaluator.prepare(self.definition(), &inputs)?;
            least_time(seconds, || evaluator.run(prepared.clone()).map(|_| ()))
        };
        self.with_engine(|engine| engine.run(code, run, evaluate))
    }
}

fn least_time<E>(seconds: f64, mut work: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    /// What a batch should take, so that a look at the clock is a small part of it.
    const BATCH: Duration = Duration::from_micros(20);
    let begin = Instant::now();
    let (mut batch, mut least) = (1u64, f64::INFINITY);
    loop {
        let began = Instant::now();
        for _ in 0..batch {
            work()?;
        }
        let took = began.elapsed();
        least = least.min(took.as_nanos() as f64 / batch as f64);
        if took < BATCH {
            batch *= 2;
        } else if begin.elapsed().as_secs_f64() >= seconds {
            return Ok(least);
        }
    }
}

struct Times {
    runs: Vec<Duration>,
    cpu: Option<Duration>,
    peak_bytes: Option<u64>,
}

impl Repeat {
    /// The last result of `work` and the time of each run.
    fn times<T, E>(self, mut work: impl FnMut() -> Result<T, E>) -> Result<(T, Times), E> {
        let mut runs = Vec::new();
        let mut total = Duration::ZERO;
        let mut cpu: Option<Duration> = None;
        let before = process::start();
        let mut peak_bytes = None;
        loop {
            let cpu_began = cpu_time();
            let began = Instant::now();
            let result = work()?;
            let took = began.elapsed();
            let spent = cpu_began.zip(cpu_time()).map(|(began, ended)| ended.saturating_sub(began));
            // Where machines share a processor, its time for a thread may stand still for a moment.
            if let Some(spent) = spent.filter(|spent| !spent.is_zero()) {
                cpu = Some(cpu.map_or(spent, |least| least.min(spent)));
            }
            if runs.is_empty() {
                peak_bytes = before.and_then(process::peak);
            }
            runs.push(took);
            total += took;
            if runs.len() as u64 >= self.min_runs && total.as_secs_f64() >= self.min_seconds {
                return Ok((result, Times { runs, cpu, peak_bytes }));
            }
        }
    }
}
