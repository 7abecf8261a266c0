//! Types as they are written in Gradus. Type variables are renamed `'a`, `'b`, ... by order of appearance.

use crate::traverse::with_stack;
use crate::{Scheme, Type, TypeName, TypeVar};

/// A type on its own.
pub fn print_type(ty: &Type) -> String {
    TypePrinter::default().ty(ty)
}

/// The type of a scheme; what its variables range over is left out.
pub fn print_scheme(scheme: &Scheme) -> String {
    TypePrinter::default().ty(&scheme.ty)
}

/// `tree`, `Geometry.point`; `tree_forward` for the image under a mode.
pub fn type_name(name: &TypeName) -> String {
    let mut text = name.base.to_string();
    for mode in &name.modes {
        text.push('_');
        text.push_str(mode.key());
    }
    text
}

/// Prints several types with the same names for the same variables, as a message about two types must.
pub struct TypePrinter<'a> {
    vars: Vec<TypeVar>,
    names: Box<dyn Fn(&TypeName) -> String + 'a>,
}

impl Default for TypePrinter<'_> {
    fn default() -> Self {
        TypePrinter::with_names(type_name)
    }
}

/// How tightly a place binds: what stands there looser than this needs parentheses.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    Function,
    Product,
    Atom,
}

impl<'a> TypePrinter<'a> {
    /// With another way to name declared types.
    pub fn with_names(names: impl Fn(&TypeName) -> String + 'a) -> Self {
        TypePrinter { vars: Vec::new(), names: Box::new(names) }
    }

    pub fn ty(&mut self, ty: &Type) -> String {
        let mut out = String::new();
        self.write(ty, Level::Function, &mut out);
        out
    }

    /// As an operand of a product: functions and products in parentheses.
    pub fn operand(&mut self, ty: &Type) -> String {
        let mut out = String::new();
        self.write(ty, Level::Atom, &mut out);
        out
    }

    /// `'a` for the first variable asked for, then `'b`, ...
    pub fn var(&mut self, var: &TypeVar) -> String {
        let index = self.vars.iter().position(|v| v == var).unwrap_or_else(|| {
            self.vars.push(var.clone());
            self.vars.len() - 1
        });
        let letter = char::from(b'a' + (index % 26) as u8);
        match index / 26 {
            0 => format!("'{letter}"),
            round => format!("'{letter}{round}"),
        }
    }

    fn write(&mut self, ty: &Type, level: Level, out: &mut String) {
        with_stack(|| match ty {
            Type::Var(v) => out.push_str(&self.var(v)),
            Type::Real => out.push_str("real"),
            Type::Int => out.push_str("int"),
            Type::Bool => out.push_str("bool"),
            Type::String => out.push_str("string"),
            Type::Unit => out.push_str("unit"),
            Type::Tuple(parts) => self.parenthesised(level > Level::Product, out, |this, out| {
                for (i, part) in parts.iter().enumerate() {
                    if i > 0 {
                        out.push_str(" * ");
                    }
                    this.write(part, Level::Atom, out);
                }
            }),
            Type::Fun(parts) => self.parenthesised(level > Level::Function, out, |this, out| {
                this.write(&parts.0, Level::Product, out);
                out.push_str(" -> ");
                this.write(&parts.1, Level::Function, out);
            }),
            Type::Array(element) => {
                self.write(element, Level::Atom, out);
                out.push_str("[]");
            }
            Type::Named(name, args) => {
                match &args[..] {
                    [] => {}
                    [one] => {
                        self.write(one, Level::Atom, out);
                        out.push(' ');
                    }
                    several => {
                        out.push('(');
                        for (i, arg) in several.iter().enumerate() {
                            if i > 0 {
                                out.push_str(", ");
                            }
                            self.write(arg, Level::Function, out);
                        }
                        out.push_str(") ");
                    }
                }
                out.push_str(&(self.names)(name));
            }
        })
    }

    fn parenthesised(&mut self, needed: bool, out: &mut String, write: impl FnOnce(&mut Self, &mut String)) {
        if needed {
            out.push('(');
        }
        write(self, out);
        if needed {
            out.push(')');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_as_in_gradus() {
        let (a, b) = (Type::Var(TypeVar::fresh("p")), Type::Var(TypeVar::fresh("q")));
        let pair = Type::tuple([Type::Real, Type::Int]);
        assert_eq!(print_type(&Type::array(pair.clone())), "(real * int)[]");
        assert_eq!(print_type(&Type::array(Type::array(Type::Real))), "real[][]");
        assert_eq!(
            print_type(&Type::fun(Type::fun(a.clone(), b.clone()), Type::list(b.clone()))),
            "('a -> 'b) -> 'b list"
        );
        assert_eq!(print_type(&Type::funs([a.clone(), b.clone()], a.clone())), "'a -> 'b -> 'a");
        assert_eq!(print_type(&Type::either(pair.clone(), Type::fun(a, b))), "(real * int, 'a -> 'b) either");
        assert_eq!(print_type(&Type::tuple([pair, Type::Bool])), "(real * int) * bool");
        assert_eq!(print_type(&Type::list(Type::list(Type::array(Type::Unit)))), "unit[] list list");
    }
}
