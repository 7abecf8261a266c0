//! A compiled function of reals for those who call it very often: no conversion, and no memory for numbers.

use crate::compiled::Stopped;
use crate::error::DriverError;
use crate::evaluate::Input;
use crate::function::Argument;
use crate::{Error, Function, Program, Value};
use gradus_native::Call;

/// A function from reals to reals, of sizes that are fixed when it is made.
pub struct Kernel {
    program: Program,
    call: Call<'static>,
    /// How many of the flattened arguments are the caller's; data of the program follows.
    arguments: usize,
}

impl Function {
    /// The function as compiled code that takes its reals in one row and gives its results in one row. The example says which sizes arrays
    /// have. Parameters and results may be reals, arrays of reals, and tuples and records of these; the backend must not be the evaluator.
    ///
    /// ```
    /// # fn main() -> Result<(), gradus::Error> {
    /// use gradus::{Program, Value};
    /// let text = "let rosenbrock (x, y) = (1.0 - x) ^ 2 + 100.0 * (y - x ^ 2) ^ 2";
    /// let program = Program::from_source("rosenbrock.gr", text)?;
    /// let gradient = program.function("rosenbrock")?.value_and_grad(0)?;
    /// let mut kernel = gradient.kernel(&[Value::tuple([0.0.into(), 0.0.into()])])?;
    /// let mut out = [0.0; 3];
    /// kernel.call(&[1.0, 2.0], &mut out)?;
    /// assert_eq!(out, [100.0, -400.0, 200.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn kernel(&self, example: &[Value]) -> Result<Kernel, Error> {
        let arguments: Vec<Argument> = example.iter().map(Argument::Value).collect();
        self.check_call(&arguments)?;
        let inputs: Vec<Input> =
            arguments.iter().zip(self.params()).map(|(argument, ty)| Input { argument, ty }).collect();
        self.with_engine(|engine| {
            let made = engine.code(|compiled| compiled.function(self.definition(), &inputs, self.result()));
            let Some(made) = made else {
                return Err(self.unsuitable("the reference evaluator compiles nothing"));
            };
            let (compiled, code) = made?;
            let Some(arguments) = code.leaves_of_reals() else {
                return Err(
                    self.unsuitable("only reals, arrays of reals, and tuples and records of these stand in a row")
                );
            };
            let call = compiled.call(&code, &inputs).map_err(Stopped::into_error)?.into_owned();
            Ok(Kernel { program: self.program().clone(), call, arguments })
        })
    }

    fn unsuitable(&self, message: &str) -> Error {
        let what = format!("`{}` as a kernel", self.name());
        self.program().error(DriverError::WrongValue { what, message: message.into() })
    }
}

impl Kernel {
    /// Calls the function. Both rows must have the length that the example gave.
    pub fn call(&mut self, inputs: &[f64], outputs: &mut [f64]) -> Result<(), Error> {
        if !self.call.write_reals(self.arguments, inputs) {
            return Err(self.wrong("the arguments"));
        }
        if let Err(error) = self.call.run() {
            return Err(self.program.errors(vec![error.diagnostic()]));
        }
        if self.call.read_reals(outputs) {
            Ok(())
        } else {
            Err(self.wrong("the results"))
        }
    }

    fn wrong(&self, what: &str) -> Error {
        let message = "there are more or fewer reals than that".to_string();
        self.program.error(DriverError::WrongValue { what: format!("{what} of a kernel"), message })
    }
}
