//! Arguments in the wrong order, `map a f` for `map f a`: one message, which tells the order.

use crate::display::Printer;
use crate::error::{TypeError, Why};
use crate::infer::Infer;
use crate::store::{Node, Ty};
use crate::tree::{Exp, ExpKind};
use gradus_source::Span;

/// What a parameter wants, as far as an exchange shows in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Function,
    Array,
    Other,
}

impl Infer {
    pub fn argument_shape(&mut self, ty: Ty) -> Shape {
        match self.store.shape(ty) {
            Node::Fun(..) => Shape::Function,
            Node::Array(..) => Shape::Array,
            _ => Shape::Other,
        }
    }

    /// Looks at what is wrong with the arguments of a call, told since `errors`. If what one parameter wants was given to another,
    /// that is told alone: types inside the arguments follow from their order.
    pub fn tell_order(&mut self, function: Exp, wanted: &[Shape], given: &[Exp], errors: usize) {
        let head = self.tree.node(function).span;
        let told = self.errors.split_off(errors);
        let mut mismatches = told.iter().filter_map(|error| mismatched_argument(error, head));
        let wrong: Vec<usize> =
            mismatches.clone().chain(told.iter().filter_map(|error| no_data(error, head))).collect();
        let misplaced = mismatches.find(|index| self.stands_elsewhere(*index, wanted, given, &wrong));
        let (Some(misplaced), Some(order)) = (misplaced, self.function_type(function)) else {
            return self.errors.extend(told);
        };
        for mut error in told {
            let here = mismatched_argument(&error, head) == Some(misplaced);
            match &mut error {
                TypeError::Mismatch(mismatch) if here => mismatch.order = Some(order.clone()),
                TypeError::Mismatch(_) | TypeError::NotData { .. } | TypeError::NotNumber { .. } => continue,
                _ => {}
            }
            self.errors.push(error);
        }
    }

    /// Whether another argument is, or may be, what this parameter wants.
    fn stands_elsewhere(&mut self, index: usize, wanted: &[Shape], given: &[Exp], wrong: &[usize]) -> bool {
        let Some(shape) = wanted.get(index).copied().filter(|shape| *shape != Shape::Other) else { return false };
        wanted.iter().zip(given).enumerate().any(|(other, (wants, exp))| {
            let ty = self.ty(*exp);
            other != index && *wants != shape && (wrong.contains(&other) || self.argument_shape(ty) == shape)
        })
    }

    /// The type of a function as it was defined.
    fn function_type(&self, function: Exp) -> Option<String> {
        let scheme = match &self.tree.node(function).kind {
            ExpKind::Global(id, _) => self.tables.globals[id.0 as usize].scheme.clone()?,
            ExpKind::Prim(prim, ..) => self.tables.builtins.prim(*prim),
            ExpKind::Derive(op, ..) => self.tables.builtins.derive(*op),
            _ => return None,
        };
        Some(Printer::of_closed(&scheme, &self.tables.declared).print(scheme.root()))
    }
}

/// The argument, counted from 0, that is something else altogether than what is wanted.
fn mismatched_argument(error: &TypeError, head: Span) -> Option<usize> {
    match error {
        TypeError::Mismatch(mismatch) if mismatch.parts.is_none() => argument(&mismatch.why, head),
        _ => None,
    }
}

/// The argument that is a function where there should be data.
fn no_data(error: &TypeError, head: Span) -> Option<usize> {
    match error {
        TypeError::NotData { why, .. } => argument(why, head),
        _ => None,
    }
}

fn argument(why: &Why, head: Span) -> Option<usize> {
    match why {
        Why::Argument { index, head: at, .. } if *at == head => Some(index - 1),
        _ => None,
    }
}
