//! Derivatives of a program's functions, asked for from outside: built as core terms, so that nothing the program defines can get in between.

use crate::error::DriverError;
use crate::function::Function;
use crate::{Error, Program, Value};
use gradus_core::build::At;
use gradus_core::{DeriveOp, Global, Symbol, Term, TermKind, Type, Var};
use std::sync::Arc;

impl Program {
    /// Value and gradient of a function of one parameter.
    ///
    /// ```
    /// # fn main() -> Result<(), gradus::Error> {
    /// let program = gradus::Program::from_source("f.gr", "let f (x, y) = x ^ 2 * y + 0.0")?;
    /// let point = gradus::Value::tuple([3.0.into(), 2.0.into()]);
    /// let (value, gradient) = program.gradient("f", &point)?;
    /// assert_eq!(value, 18.0);
    /// assert_eq!(gradient.to_string(), "(12.0, 9.0)");
    /// # Ok(())
    /// # }
    /// ```
    pub fn gradient(&self, name: &str, at: &Value) -> Result<(f64, Value), Error> {
        let both = self.function(name)?.value_and_grad(0)?.call(std::slice::from_ref(at))?;
        match both {
            Value::Tuple(parts) => match <[Value; 2]>::try_from(parts.into_vec()) {
                Ok([Value::Real(value), gradient]) => Ok((value, gradient)),
                _ => gradus_source::bug!("value_and_grad gives a real and a gradient"),
            },
            _ => gradus_source::bug!("value_and_grad gives a pair"),
        }
    }
}

impl Function {
    /// The function of the same parameters that gives value and gradient by parameter number `wrt`.
    pub fn value_and_grad(&self, wrt: usize) -> Result<Function, Error> {
        self.must_be_real()?;
        let input = self.input(wrt)?;
        let result = Type::tuple([Type::Real, input.clone()]);
        self.derived(DeriveOp::ValueAndGrad, wrt, [input], result)
    }

    /// The function of the same parameters that gives the Jacobian by parameter number `wrt`.
    pub fn jacobian(&self, wrt: usize) -> Result<Function, Error> {
        let input = self.input(wrt)?;
        self.derived(DeriveOp::Jacobian, wrt, [input, self.result().clone()], matrix())
    }

    /// The function of the same parameters that gives the Hessian by parameter number `wrt`.
    pub fn hessian(&self, wrt: usize) -> Result<Function, Error> {
        self.must_be_real()?;
        let input = self.input(wrt)?;
        self.derived(DeriveOp::Hessian, wrt, [input], matrix())
    }

    fn must_be_real(&self) -> Result<(), Error> {
        if *self.result() == Type::Real {
            return Ok(());
        }
        let (name, ty) = (self.name().to_string(), self.type_text());
        Err(self.program().error(DriverError::NotReal { name, ty }))
    }

    /// The type of the parameter to differentiate by, which must be data, like the result.
    fn input(&self, wrt: usize) -> Result<Type, Error> {
        let (name, ty) = (self.name().to_string(), self.type_text());
        if self.params().is_empty() {
            return Err(self.program().error(DriverError::NotAFunction { name, ty }));
        }
        let Some(input) = self.params().get(wrt) else {
            let message = format!("there is no parameter number {wrt} (they are counted from 0)");
            let what = format!("`{name} : {ty}`");
            return Err(self.program().error(DriverError::WrongValue { what, message }));
        };
        let schema = self.program().schema();
        if schema.is_data(input) && schema.is_data(self.result()) {
            Ok(input.clone())
        } else {
            Err(self.program().error(DriverError::NotDifferentiable { name, ty }))
        }
    }

    /// `fun x1 ... xn -> form (fun x -> f x1 ... x ... xn) xi`
    fn derived(
        &self,
        op: DeriveOp,
        wrt: usize,
        types: impl Into<Arc<[Type]>>,
        result: Type,
    ) -> Result<Function, Error> {
        let at = At(self.program().definition_span(self.definition()));
        let params: Vec<(Var, Type)> =
            self.params().iter().enumerate().map(|(i, ty)| (Var::fresh(format!("x{i}")), ty.clone())).collect();
        let Some((point, input)) = params.get(wrt) else { gradus_source::bug!("no parameter {wrt}") };
        let variable = Var::fresh("x");
        let function = at.global(Global::Source { name: self.definition().clone(), types: Arc::from([]) });
        let arguments: Vec<Term> =
            params.iter().enumerate().map(|(i, (x, _))| at.var(if i == wrt { &variable } else { x })).collect();
        let restricted = at.lambda(&variable, input.clone(), at.apps(function, arguments));
        let form = at.term(TermKind::Derive { op, types: types.into(), args: vec![restricted, at.var(point)] });
        let ty = Type::funs(self.params().to_vec(), result);
        let name: Symbol = format!("{}#{op:?}", self.definition()).into();
        let program = self.program().with_definition(name.clone(), ty.clone(), at.lambdas(&params, form));
        Ok(Function::new(program, self.name().into(), name, &ty))
    }
}

fn matrix() -> Type {
    Type::array(Type::array(Type::Real))
}
