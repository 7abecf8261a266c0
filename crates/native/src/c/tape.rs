//! The tape as C.

use super::emit::Emitter;
use crate::flow::*;
use crate::ownership::Ownership;
use gradus_source::Span;

impl Emitter<'_> {
    pub(super) fn push(&mut self, values: &[Atom], ownership: &mut Ownership, span: Span) {
        let types: Vec<Type> = values.iter().map(|a| a.ty()).collect();
        let layout = TapeLayout::of(&types);
        let place = self.place(span);
        self.line("{");
        self.depth += 1;
        self.line(&format!("char *to = gr_push(self, {}, {place});", layout.bytes));
        for ((value, ty), at) in values.iter().zip(types).zip(layout.places) {
            let text = self.take(*value, ownership);
            if ty.is_array() {
                self.line(&format!("memcpy(to + {at}, &{text}, sizeof {text});"));
            } else {
                self.line(&format!("gr_store_{}(to + {at}, {text});", kind(ty.scalar)));
            }
        }
        self.depth -= 1;
        self.line("}");
    }

    pub(super) fn pop(&mut self, types: &[Type], binds: &[Var]) {
        let layout = TapeLayout::of(types);
        for var in binds {
            let (ty, name) = (self.ty(var.ty), self.name(*var));
            self.line(&format!("{ty} {name};"));
        }
        self.line("{");
        self.depth += 1;
        self.line(&format!("const char *from = gr_pop(self, {});", layout.bytes));
        for (var, at) in binds.iter().zip(layout.places) {
            let name = self.name(*var);
            self.line(&format!("memcpy(&{name}, from + {at}, sizeof {name});"));
        }
        self.depth -= 1;
        self.line("}");
    }
}

fn kind(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Real => "real",
        Scalar::Int => "int",
        Scalar::Bool => "bool",
        Scalar::Box(_) => "box",
    }
}
