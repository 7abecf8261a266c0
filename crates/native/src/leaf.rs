//! Flattened values: what compiled functions take and give, one for each slot of the calling convention.

use crate::flow::{Scalar, ShapeId, Type};
use gradus_runtime::slot::Slot;

/// A number, or a regular array of numbers in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Leaf {
    Real(f64),
    Int(i64),
    Bool(bool),
    Reals { dims: Vec<usize>, data: Vec<f64> },
    Ints { dims: Vec<usize>, data: Vec<i64> },
    Bools { dims: Vec<usize>, data: Vec<u8> },
    Boxes(Boxes),
}

/// A box, or an array of boxes, written out: see `cells.c` for the form.
#[derive(Clone, Debug, PartialEq)]
pub struct Boxes {
    /// 0 for a box.
    pub(crate) rank: u8,
    pub(crate) words: Vec<i64>,
    /// How many of the words belong to the cells; behind them stand the places of the cells.
    pub(crate) used: usize,
    /// The box as a reference, or the place of the array.
    pub(crate) root: i64,
}

impl Leaf {
    pub fn reals(data: impl Into<Vec<f64>>) -> Leaf {
        let data = data.into();
        Leaf::Reals { dims: vec![data.len()], data }
    }

    pub fn matrix(rows: usize, columns: usize, data: impl Into<Vec<f64>>) -> Leaf {
        Leaf::Reals { dims: vec![rows, columns], data: data.into() }
    }

    pub fn ty(&self) -> Type {
        match self {
            Leaf::Real(_) => Type::REAL,
            Leaf::Int(_) => Type::INT,
            Leaf::Bool(_) => Type::BOOL,
            Leaf::Reals { dims, .. } => Type::array(Scalar::Real, dims.len() as u8),
            Leaf::Ints { dims, .. } => Type::array(Scalar::Int, dims.len() as u8),
            Leaf::Bools { dims, .. } => Type::array(Scalar::Bool, dims.len() as u8),
            Leaf::Boxes(boxes) => Type::array(Scalar::Box(ShapeId(0)), boxes.rank),
        }
    }

    /// How long it is along each axis; nothing for a number or a box.
    pub fn lengths(&self) -> &[usize] {
        match self {
            Leaf::Real(_) | Leaf::Int(_) | Leaf::Bool(_) | Leaf::Boxes(_) => &[],
            Leaf::Reals { dims, .. } | Leaf::Ints { dims, .. } | Leaf::Bools { dims, .. } => dims,
        }
    }

    /// Whether the data fills the shape.
    pub fn is_regular(&self) -> bool {
        let fits = |dims: &[usize], len: usize| dims.iter().product::<usize>() == len;
        match self {
            Leaf::Real(_) | Leaf::Int(_) | Leaf::Bool(_) | Leaf::Boxes(_) => true,
            Leaf::Reals { dims, data } => fits(dims, data.len()),
            Leaf::Ints { dims, data } => fits(dims, data.len()),
            Leaf::Bools { dims, data } => fits(dims, data.len()),
        }
    }

    /// A slot that borrows the data.
    pub fn slot(&self) -> Slot {
        match self {
            Leaf::Real(x) => Slot::real(*x),
            Leaf::Int(x) => Slot::integer(*x),
            Leaf::Bool(x) => Slot::integer(i64::from(*x)),
            Leaf::Reals { dims, data } => Slot::array(data, dims),
            Leaf::Ints { dims, data } => Slot::array(data, dims),
            Leaf::Bools { dims, data } => Slot::array(data, dims),
            Leaf::Boxes(boxes) => {
                let mut slot = Slot::array(&boxes.words, &[boxes.used, 0, boxes.words.len() - boxes.used]);
                slot.dims[1] = boxes.root;
                slot
            }
        }
    }

    /// A copy of what a slot holds.
    ///
    /// # Safety
    /// The slot must hold a value of the type.
    pub unsafe fn from_slot(slot: &Slot, ty: Type) -> Leaf {
        let rank = ty.rank as usize;
        let dims = || slot.dims.iter().take(rank).map(|d| *d as usize).collect();
        unsafe {
            match (ty.scalar, rank) {
                (Scalar::Real, 0) => Leaf::Real(slot.as_real()),
                (Scalar::Int, 0) => Leaf::Int(slot.as_integer()),
                (Scalar::Bool, 0) => Leaf::Bool(slot.as_integer() != 0),
                (Scalar::Real, _) => Leaf::Reals { dims: dims(), data: slot.as_slice(rank).to_vec() },
                (Scalar::Int, _) => Leaf::Ints { dims: dims(), data: slot.as_slice(rank).to_vec() },
                (Scalar::Bool, _) => Leaf::Bools { dims: dims(), data: slot.as_slice(rank).to_vec() },
                (Scalar::Box(_), _) => {
                    let words = slot.as_slice(1).to_vec();
                    Leaf::Boxes(Boxes { rank: ty.rank, used: words.len(), words, root: slot.dims[1] })
                }
            }
        }
    }
}
