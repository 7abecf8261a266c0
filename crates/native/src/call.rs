//! A call of compiled code that can be repeated: arguments stay where they are, and results stay compiled code's own until they are asked for.

use crate::flow::{Scalar, Type};
use crate::{Executable, Leaf, Limits, RunError};
use gradus_runtime::slot::Slot;
use std::rc::Rc;

/// One flattened argument.
#[derive(Clone, Debug)]
pub enum Argument<'a> {
    Owned(Leaf),
    /// For several calls.
    Shared(Rc<Leaf>),
    /// An array of reals that belongs to the caller and is not copied.
    Reals {
        dims: &'a [usize],
        data: &'a [f64],
    },
}

impl Argument<'_> {
    pub fn ty(&self) -> Type {
        match self {
            Argument::Owned(leaf) => leaf.ty(),
            Argument::Shared(leaf) => leaf.ty(),
            Argument::Reals { dims, .. } => Type::array(Scalar::Real, dims.len() as u8),
        }
    }

    /// How long it is along each axis; nothing for a number or a box.
    pub fn lengths(&self) -> &[usize] {
        match self {
            Argument::Owned(leaf) => leaf.lengths(),
            Argument::Shared(leaf) => leaf.lengths(),
            Argument::Reals { dims, .. } => dims,
        }
    }

    fn is_regular(&self) -> bool {
        match self {
            Argument::Owned(leaf) => leaf.is_regular(),
            Argument::Shared(leaf) => leaf.is_regular(),
            Argument::Reals { dims, data } => dims.iter().product::<usize>() == data.len(),
        }
    }

    fn slot(&self) -> Slot {
        match self {
            Argument::Owned(leaf) => leaf.slot(),
            Argument::Shared(leaf) => leaf.slot(),
            Argument::Reals { dims, data } => Slot::array(data, dims),
        }
    }
}

/// An entry point with its arguments.
pub struct Call<'a> {
    executable: Rc<Executable>,
    entry: usize,
    /// What the inputs point into.
    arguments: Vec<Argument<'a>>,
    inputs: Vec<Slot>,
    outputs: Vec<Slot>,
    /// Whether the outputs hold results that must be given back.
    filled: bool,
    /// Of every run.
    pub limits: Limits,
}

impl<'a> Call<'a> {
    pub fn new(executable: Rc<Executable>, entry: usize, arguments: Vec<Argument<'a>>) -> Result<Call<'a>, RunError> {
        let regular = arguments.iter().all(Argument::is_regular);
        executable.check(entry, arguments.iter().map(Argument::ty).collect(), regular)?;
        let inputs = arguments.iter().map(Argument::slot).collect();
        let outputs = vec![Slot::integer(0); executable.types(entry).1.len()];
        Ok(Call { executable, entry, arguments, inputs, outputs, filled: false, limits: Limits::default() })
    }

    /// The same call with arguments of its own.
    pub fn into_owned(mut self) -> Call<'static> {
        let own = |argument| match argument {
            Argument::Owned(leaf) => Argument::Owned(leaf),
            Argument::Shared(leaf) => Argument::Shared(leaf),
            Argument::Reals { dims, data } => Argument::Owned(Leaf::Reals { dims: dims.to_vec(), data: data.to_vec() }),
        };
        let arguments: Vec<Argument<'static>> = std::mem::take(&mut self.arguments).into_iter().map(own).collect();
        let inputs = arguments.iter().map(Argument::slot).collect();
        let outputs = vec![Slot::integer(0); self.outputs.len()];
        let (executable, limits) = (self.executable.clone(), self.limits.clone());
        Call { executable, entry: self.entry, arguments, inputs, outputs, filled: false, limits }
    }

    /// Runs the function. Results of an earlier run are given back first; numbers alone need no memory at all.
    pub fn run(&mut self) -> Result<(), RunError> {
        self.release();
        // The types were compared when the call was made, and the arguments live as long as it does.
        unsafe { self.executable.call_slots(self.entry, &self.inputs, &mut self.outputs, &self.limits)? };
        self.filled = true;
        Ok(())
    }

    /// The results of the last run, copied; nothing before the first.
    pub fn results(&self) -> Vec<Leaf> {
        if !self.filled {
            return Vec::new();
        }
        let (_, types) = self.executable.types(self.entry);
        // The outputs were written by a function with these results.
        self.outputs.iter().zip(types).map(|(slot, ty)| unsafe { Leaf::from_slot(slot, *ty) }).collect()
    }

    /// Writes the reals of the results of the last run to `to`, in order; `false` if they are not so many, or not all reals.
    pub fn read_reals(&self, mut to: &mut [f64]) -> bool {
        let (_, types) = self.executable.types(self.entry);
        for (slot, ty) in self.outputs.iter().zip(types).filter(|_| self.filled) {
            // The outputs were written by a function with these results.
            let number;
            let found = match (ty.scalar, ty.rank) {
                (Scalar::Real, 0) => {
                    number = [unsafe { slot.as_real() }];
                    &number[..]
                }
                (Scalar::Real, rank) => unsafe { slot.as_slice(rank as usize) },
                (Scalar::Int | Scalar::Bool | Scalar::Box(_), _) => return false,
            };
            let Some((here, rest)) = to.split_at_mut_checked(found.len()) else { return false };
            here.copy_from_slice(found);
            to = rest;
        }
        self.filled && to.is_empty()
    }

    /// Replaces the reals of the first so many arguments, in order; `false`, and nothing sure about them, if they are not as many
    /// as given, not all reals, or borrowed.
    pub fn write_reals(&mut self, arguments: usize, mut from: &[f64]) -> bool {
        for (argument, slot) in self.arguments.iter_mut().zip(&mut self.inputs).take(arguments) {
            let Argument::Owned(leaf) = argument else { return false };
            let count = match leaf {
                Leaf::Real(_) => 1,
                Leaf::Reals { data, .. } => data.len(),
                Leaf::Int(_) | Leaf::Bool(_) | Leaf::Ints { .. } | Leaf::Bools { .. } | Leaf::Boxes(_) => return false,
            };
            let Some((new, rest)) = from.split_at_checked(count) else { return false };
            match leaf {
                Leaf::Reals { data, .. } => data.copy_from_slice(new),
                leaf => {
                    *leaf = Leaf::Real(new.first().copied().unwrap_or(0.0));
                    *slot = leaf.slot();
                }
            }
            from = rest;
        }
        from.is_empty()
    }

    fn release(&mut self) {
        if !std::mem::take(&mut self.filled) {
            return;
        }
        let (_, types) = self.executable.types(self.entry);
        for (slot, ty) in self.outputs.iter_mut().zip(types) {
            if ty.is_counted() {
                // It was filled by this function on this thread: a call has raw pointers and stays where it was made.
                unsafe { self.executable.release(slot) };
            }
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.release();
    }
}
