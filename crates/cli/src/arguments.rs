//! Values from the command line: JSON, `@file` (JSON or NPY), or `=EXPR`.

use crate::output::Failure;
use gradus::data::{self, Format};
use gradus::{Added, Argument, Error, FsLoader, Function, Loader, Program, Type, Value};
use std::path::Path;
use std::rc::Rc;

/// An argument with what it borrows from.
pub enum Given {
    Value(Value),
    Defined(Rc<str>),
}

impl Given {
    /// Data is evaluated now, since derivatives and finite differences need it; a function stays where it is.
    fn defined(added: &Added) -> Result<Given, Failure> {
        match added.ty {
            Type::Fun(_) => Ok(Given::Defined((&*added.name).into())),
            _ => Ok(Given::Value(value(added.function(""))?)),
        }
    }

    pub fn argument(&self) -> Argument<'_> {
        match self {
            Given::Value(value) => Argument::Value(value),
            Given::Defined(name) => Argument::Defined((&**name).into()),
        }
    }
}

/// A function of a program with arguments for all its parameters.
pub struct Application {
    pub function: Function,
    pub given: Vec<Given>,
}

impl Application {
    /// `texts` are the arguments as written, `option` is how the command line calls them.
    pub fn read(program: &Program, name: &str, texts: &[String], option: &str) -> Result<Application, Failure> {
        let mut function = program.function(name)?;
        if texts.len() != function.params().len() {
            let wanted = match function.params().len() {
                0 => format!("`{name}` is not a function: leave {option} out"),
                1 => format!("`{name}` takes 1 argument: give {option} once"),
                n => format!("`{name}` takes {n} arguments: give {option} {n} times"),
            };
            return Err(Failure::Usage(format!("{wanted}\n  {name} : {}", function.type_text())));
        }
        let params = function.params().to_vec();
        let mut given = Vec::new();
        for (number, (text, ty)) in texts.iter().zip(&params).enumerate() {
            given.push(match text.strip_prefix('=') {
                Some(expression) => {
                    let shown = format!("<{option} {}>", number + 1);
                    let added = function.program().with_expression(&shown, expression, Some(ty.clone()))?;
                    // The definition belongs to the longer program, so the function moves there.
                    function = function.within(&added.program);
                    Given::defined(&added)?
                }
                None => Given::Value(literal(program, text, ty, option)?),
            });
        }
        Ok(Application { function, given })
    }

    pub fn arguments(&self) -> Vec<Argument<'_>> {
        self.given.iter().map(Given::argument).collect()
    }
}

/// The value of an expression, compiled only if it takes long. What goes wrong is told by what was chosen to run programs.
fn value(expression: Function) -> Result<Value, Error> {
    let options = expression.program().options().for_a_few_steps();
    let evaluated = expression.within(&expression.program().clone().with_options(options)).call(&[]);
    evaluated.or_else(|_| expression.call(&[]))
}

/// JSON on the command line, or a file.
fn literal(program: &Program, text: &str, ty: &Type, option: &str) -> Result<Value, Failure> {
    let Some(path) = text.strip_prefix('@') else {
        return gradus::json::read(text.as_bytes(), ty, &program.schema()).map_err(|error| {
            let expression = match program.function(text) {
                Ok(_) => format!("; what the program calls `{text}` is written '={text}'"),
                Err(_) => String::new(),
            };
            Failure::Input(format!(
                "{option} {text}: {error}\n  a value of the type {} is needed{expression}",
                gradus::type_text(ty)
            ))
        });
    };
    let format = Format::of(path).unwrap_or(Format::Json);
    let bytes =
        FsLoader.read(Path::new(path)).map_err(|error| Failure::Input(format!("cannot read {path}: {error}")))?;
    data::read(format, &bytes, ty, &program.schema()).map_err(|error| Failure::Input(format!("{path}: {error}")))
}
