//! How long a function takes: runs of the function alone, without what goes before and after.

use crate::compiled::Compiled;
use crate::engine::Engine;
use crate::evaluate::{Evaluator, Input};
use crate::function::Argument;
use crate::{Error, Function, Value};
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
    /// use gradus::{Argument, Program, Repeat, Value};
    /// let program = Program::from_source("twice.gr", "let twice x = 2.0 * x")?;
    /// let three = Value::Real(3.0);
    /// let repeat = Repeat { min_runs: 5, min_seconds: 0.0 };
    /// let measured = program.function("twice")?.measure(&[Argument::Value(&three)], repeat)?;
    /// assert_eq!((measured.value, measured.runs.len()), (Value::Real(6.0), 5));
    /// # Ok(())
    /// # }
    /// ```
    pub fn measure(&self, arguments: &[Argument], repeat: Repeat) -> Result<Measured, Error> {
        self.check_call(arguments)?;
        let inputs: Vec<Input> =
            arguments.iter().zip(self.params()).map(|(argument, ty)| Input { argument, ty }).collect();
        self.with_engine(|engine| match engine {
            Engine::Reference(evaluator) => self.measure_evaluation(evaluator, &inputs, repeat),
            Engine::Compiled(compiled) => self.measure_code(compiled, &inputs, repeat),
        })
    }

    fn measure_evaluation(
        &self,
        evaluator: &mut Evaluator,
        inputs: &[Input],
        repeat: Repeat,
    ) -> Result<Measured, Error> {
        let prepared = evaluator.prepare(self.definition(), inputs)?;
        let (held, runs) = repeat.times(|| evaluator.run(prepared.clone()))?;
        let value = evaluator.plain(&held, self.result());
        Ok(Measured { value, compilation: Duration::ZERO, runs })
    }

    fn measure_code(&self, compiled: &mut Compiled, inputs: &[Input], repeat: Repeat) -> Result<Measured, Error> {
        let known = compiled.knows(self.definition(), inputs);
        let began = Instant::now();
        let code = compiled.function(self.definition(), inputs, self.result())?;
        let compilation = if known { Duration::ZERO } else { began.elapsed() };
        let mut call = compiled.call(&code, inputs)?;
        let ((), runs) = repeat.times(|| compiled.run_call(&mut call))?;
        let value = compiled.result(&code, &call, self.result());
        Ok(Measured { value, compilation, runs })
    }
}

impl Repeat {
    /// The last result of `work` and the time of each run.
    fn times<T>(self, mut work: impl FnMut() -> Result<T, Error>) -> Result<(T, Vec<Duration>), Error> {
        let mut runs = Vec::new();
        let mut total = Duration::ZERO;
        loop {
            let began = Instant::now();
            let result = work()?;
            let took = began.elapsed();
            runs.push(took);
            total += took;
            if runs.len() as u64 >= self.min_runs && total.as_secs_f64() >= self.min_seconds {
                return Ok((result, runs));
            }
        }
    }
}
