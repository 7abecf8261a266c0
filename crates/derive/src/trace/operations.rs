//! The operations of trace terms, numbered: A's `op`, the smooth primitives, and A's `op_r`, their partial derivatives.

use gradus_core::{Prim, Type};
use std::sync::LazyLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// op
    Apply(Prim),
    /// The partial derivative of op by one of its real arguments: what A's `op_r` multiplies the cotangent with.
    Partial(Prim, usize),
}

static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| {
    let mut operations = Vec::new();
    for &prim in Prim::ALL.iter().filter(|prim| prim.info().partials.is_some()) {
        operations.push(Operation::Apply(prim));
        let reals = prim.info().params.iter().enumerate().filter(|(_, ty)| **ty == Type::Real);
        operations.extend(reals.map(|(index, _)| Operation::Partial(prim, index)));
    }
    operations
});

impl Operation {
    /// All operations; the number of an operation is its position.
    pub fn all() -> &'static [Operation] {
        &OPERATIONS
    }

    pub fn number(self) -> i64 {
        match OPERATIONS.iter().position(|operation| *operation == self) {
            Some(position) => position as i64,
            None => gradus_source::bug!("{self:?} is no operation of trace terms"),
        }
    }

    /// How it is written in a printed trace term.
    pub fn text(self) -> String {
        match self {
            Operation::Apply(prim) => prim.info().name.to_string(),
            Operation::Partial(prim, index) => format!("d{}[{}]", index + 1, prim.info().name),
        }
    }

    pub fn prim(self) -> Prim {
        match self {
            Operation::Apply(prim) | Operation::Partial(prim, _) => prim,
        }
    }
}
