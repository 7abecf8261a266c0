//! Functions of a program, called from Rust.

use crate::convert::{from_value, to_value};
use crate::engine::Engine;
use crate::error::DriverError;
use crate::evaluate::{check, Input};
use crate::{Error, Program, Value};
use gradus_core::print::print_type;
use gradus_core::{Symbol, Type};
use gradus_infer::Sized;
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::cell::RefCell;

/// A value of a program that may be a function: found by name or written as an expression.
///
/// It keeps what it has evaluated, so that calling it again is cheap. It belongs to the thread that made it; a
/// [`Program`] can be shared between threads, and each looks up its own functions.
///
/// ```
/// # fn main() -> Result<(), gradus::Error> {
/// let program = gradus::Program::from_source("area.gr", "let area w h = w * h + 0.0")?;
/// let area = program.function("area")?;
/// assert_eq!(area.type_text(), "real -> real -> real");
/// assert_eq!(area.call(&[2.0.into(), 3.5.into()])?, gradus::Value::Real(7.0));
/// # Ok(())
/// # }
/// ```
pub struct Function {
    program: Program,
    /// What the user calls it.
    name: String,
    /// The definition behind it.
    definition: Symbol,
    params: Vec<Type>,
    result: Type,
    /// Its type with the lengths of arrays.
    sized: Sized,
    engine: RefCell<Option<Engine>>,
}

/// An argument of [`Function::apply`].
#[derive(Clone, Debug)]
pub enum Argument<'a> {
    Value(&'a Value),
    /// A block of reals in row-major order with its shape.
    Reals(ArrayView<'a>),
    /// Another value of the same program, which may be a function: the name of its definition.
    Defined(Symbol),
}

/// Reals that belong to somebody else, with their shape, in row-major order. The evaluator gets them as one block.
///
/// ```
/// # fn main() -> Result<(), gradus::Error> {
/// use gradus::ArrayView;
/// let program = gradus::Program::from_source("rows.gr", "let totals (m : real[][]) = map sum m")?;
/// let data = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let totals = program.function("totals")?.call_arrays(&[ArrayView::new(&[2, 3], &data).unwrap()])?;
/// assert_eq!(totals.as_reals().unwrap().data(), [6.0, 15.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ArrayView<'a> {
    shape: &'a [usize],
    data: &'a [f64],
}

impl<'a> ArrayView<'a> {
    /// `None` if the number of reals is not the product of the shape.
    pub fn new(shape: &'a [usize], data: &'a [f64]) -> Option<Self> {
        let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
        (count == data.len() && !shape.is_empty()).then_some(ArrayView { shape, data })
    }

    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    pub fn data(&self) -> &'a [f64] {
        self.data
    }
}

impl Function {
    pub(crate) fn new(program: Program, name: String, definition: Symbol, ty: &Type) -> Self {
        let mut params = Vec::new();
        let mut result = ty;
        while let Type::Fun(arrow) = result {
            params.push(arrow.0.clone());
            result = &arrow.1;
        }
        let sized = program.sized(&definition);
        Function { program, name, definition, params, result: result.clone(), sized, engine: RefCell::new(None) }
    }

    /// The same function in a program that has more definitions.
    pub fn within(&self, program: &Program) -> Function {
        Function::new(program.clone(), self.name.clone(), self.definition.clone(), &self.ty())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the definition behind it, for [`Argument::Defined`].
    pub fn definition(&self) -> &Symbol {
        &self.definition
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The types of the parameters; none if it is not a function.
    pub fn params(&self) -> &[Type] {
        &self.params
    }

    pub fn result(&self) -> &Type {
        &self.result
    }

    pub fn ty(&self) -> Type {
        Type::funs(self.params.clone(), self.result.clone())
    }

    /// The type as Gradus writes it.
    pub fn type_text(&self) -> String {
        print_type(&self.ty())
    }

    /// Applies the function to all its arguments. Without parameters, the value itself.
    pub fn call(&self, arguments: &[Value]) -> Result<Value, Error> {
        let arguments: Vec<Argument> = arguments.iter().map(Argument::Value).collect();
        self.apply(&arguments)
    }

    /// Applies the function to blocks of reals, each copied once as a whole.
    pub fn call_arrays(&self, arguments: &[ArrayView]) -> Result<Value, Error> {
        let arguments: Vec<Argument> = arguments.iter().copied().map(Argument::Reals).collect();
        self.apply(&arguments)
    }

    /// Applies a function whose parameters and result are all `real[]`. Compiled code reads the vectors where they are and only its result is
    /// copied; the reference evaluator copies nothing: each vector is handed over to it, and the vector that comes back is its own. What is
    /// not a function of vectors is an error.
    ///
    /// ```
    /// # fn main() -> Result<(), gradus::Error> {
    /// let program = gradus::Program::from_source("twice.gr", "let twice (a : real[]) = map (fun x -> 2.0 * x) a")?;
    /// assert_eq!(program.function("twice")?.call_vectors(vec![vec![1.0, 2.5]])?, [2.0, 5.0]);
    ///
    /// // The evaluator replaces the first number in place: the vector is still where it was.
    /// let options = gradus::Options { backend: gradus::Backend::Reference, ..Default::default() };
    /// let program = gradus::Program::from_source("reset.gr", "let reset (a : real[]) = set a 0 0.0")?.with_options(options);
    /// let vector = vec![1.0, 2.5];
    /// let place = vector.as_ptr();
    /// let changed = program.function("reset")?.call_vectors(vec![vector])?;
    /// assert_eq!((changed.as_ptr(), &changed[..]), (place, &[0.0, 2.5][..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn call_vectors(&self, arguments: Vec<Vec<f64>>) -> Result<Vec<f64>, Error> {
        let views: Vec<[usize; 1]> = arguments.iter().map(|vector| [vector.len()]).collect();
        let views: Vec<Argument> =
            views.iter().zip(&arguments).map(|(shape, data)| Argument::Reals(ArrayView { shape, data })).collect();
        self.check_call(&views)?;
        if self.result != Type::array(Type::Real) {
            let what = format!("the result of `{}`", self.name);
            let message = format!("it is of type {}, not real[]", print_type(&self.result));
            return Err(self.program.error(DriverError::WrongValue { what, message }));
        }
        drop(views);
        self.with_engine(|engine| engine.apply_vectors(&self.definition, arguments))
    }

    /// Applies the function to Rust values: a tuple with an element for each parameter. Any type that serde can write goes
    /// in, any that it can read comes out.
    ///
    /// ```
    /// # fn main() -> Result<(), gradus::Error> {
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Point { x: f64, y: f64 }
    ///
    /// let program = gradus::Program::from_source(
    ///     "move.gr",
    ///     "type point = { x : real; y : real }  let move dx p = { p with x = p.x + dx }",
    /// )?;
    /// let moved: Point = program.function("move")?.call_with(&(1.5, Point { x: 1.0, y: 2.0 }))?;
    /// assert_eq!((moved.x, moved.y), (2.5, 2.0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn call_with<A: Serialize, R: DeserializeOwned>(&self, arguments: &A) -> Result<R, Error> {
        let wrong = |what: &str, message: String| {
            let what = format!("{what} of `{}`", self.name);
            self.program.error(DriverError::WrongValue { what, message })
        };
        let values = if self.params.is_empty() {
            Vec::new()
        } else {
            let all = Type::Tuple(self.params.clone().into());
            let tuple = to_value(arguments, &all, &self.program.schema());
            match tuple.map_err(|error| wrong("the arguments", error.to_string()))? {
                Value::Tuple(parts) => parts.into_vec(),
                other => vec![other],
            }
        };
        let result = self.call(&values)?;
        from_value(&result).map_err(|error| wrong("the result", error.to_string()))
    }

    /// Applies the function to all its arguments, of any kind.
    pub fn apply(&self, arguments: &[Argument]) -> Result<Value, Error> {
        self.check_call(arguments)?;
        let inputs: Vec<Input> =
            arguments.iter().zip(&self.params).map(|(argument, ty)| Input { argument, ty }).collect();
        self.with_engine(|engine| engine.apply(&self.definition, &inputs, &self.result))
    }

    /// Runs `work` on the engine, which is made when it is needed first.
    pub(crate) fn with_engine<R>(&self, work: impl FnOnce(&mut Engine) -> Result<R, Error>) -> Result<R, Error> {
        let mut kept = self.engine.borrow_mut();
        match &mut *kept {
            Some(engine) => work(engine),
            none => work(none.insert(Engine::new(&self.program)?)),
        }
    }

    /// The kinks met by all calls so far, as warnings; none unless the options ask to count them.
    pub fn kinks(&self) -> Error {
        let kinks = self.engine.borrow().as_ref().and_then(Engine::kinks);
        kinks.unwrap_or_else(|| self.program.errors(Vec::new()))
    }

    /// Whether there is an argument for each parameter, and each fits.
    pub(crate) fn check_call(&self, arguments: &[Argument]) -> Result<(), Error> {
        if arguments.len() != self.params.len() {
            return Err(self.program.error(DriverError::WrongArgumentCount {
                name: self.name.clone(),
                ty: self.type_text(),
                expected: self.params.len(),
                found: arguments.len(),
            }));
        }
        self.check_arguments(arguments)
    }

    /// Whether each argument fits its parameter.
    pub(crate) fn check_arguments(&self, arguments: &[Argument]) -> Result<(), Error> {
        let promises = self.sized.params();
        for (number, (argument, ty)) in arguments.iter().zip(&self.params).enumerate() {
            let fits =
                check(argument, ty, &self.program.schema()).and_then(|()| match (argument, promises.get(number)) {
                    (Argument::Value(value), Some(promise)) => {
                        self.program.check_lengths(value, promise).map_err(|misfit| misfit.to_string())
                    }
                    // The lengths of a whole block, as of any array, are checked by the program.
                    (Argument::Value(_), None) | (Argument::Reals(_) | Argument::Defined(_), _) => Ok(()),
                });
            fits.map_err(|message| {
                let what = format!("argument {} of `{}`, a {}", number + 1, self.name, print_type(ty));
                self.program.error(DriverError::WrongValue { what, message })
            })?;
        }
        Ok(())
    }
}
