//! The adjoints of variables while a block is taken backwards: each is absent, a value, or a sum that is still open.

use super::*;

/// What a sum of adjoints starts with: to add anything to it leaves that as it is. Nobody sees it, see [`seen`].
const NOTHING: Atom = Atom::Real(-0.0);

/// What is known of the adjoint of a variable. Nothing: it is zero.
#[derive(Clone, Copy)]
pub(super) enum Adj {
    Value(Atom),
    /// An accumulator, which more may be added to.
    Open(Var),
}

impl Sweep<'_> {
    /// Adds to the adjoint of an operand.
    pub(super) fn add(&mut self, to: Atom, value: Atom) {
        let Some(var) = to.var().filter(|v| self.active.contains(v)) else { return };
        let sum = match self.adj.get(&var).copied() {
            None => Adj::Value(value),
            Some(Adj::Value(old)) if !var.ty.is_array() => Adj::Value(match old.ty().shape() {
                None => self.b.add(old, value),
                Some(shape) => merge::call(self.b, self.module, shape, old, value),
            }),
            Some(Adj::Value(old)) => {
                let acc = self.accumulator(var, old);
                self.b.accumulate(acc, Vec::new(), value);
                Adj::Open(acc)
            }
            Some(Adj::Open(acc)) => {
                self.b.accumulate(acc, Vec::new(), value);
                Adj::Open(acc)
            }
        };
        self.adj.insert(var, sum);
    }

    /// Makes the adjoint of an array something that elements can be added to.
    pub(super) fn open(&mut self, var: Var) -> Var {
        let init = match self.adj.get(&var).copied() {
            Some(Adj::Open(acc)) => return acc,
            Some(Adj::Value(value)) => value,
            None => self.zeros_like(var.into()),
        };
        let acc = self.accumulator(var, init);
        self.adj.insert(var, Adj::Open(acc));
        acc
    }

    /// A new accumulator for the adjoint of a variable.
    pub(super) fn accumulator(&mut self, var: Var, init: Atom) -> Var {
        if let Some(shape) = init.ty().shape() {
            merge::ensure(self.module, shape);
        }
        self.b.open(var.name.with("_adj"), init)
    }

    /// Zero as the adjoint of a value.
    pub(super) fn zeros_like(&mut self, value: Atom) -> Atom {
        self.b.linear_zeros_like(self.module, value)
    }

    pub(super) fn add_at(&mut self, array: Var, index: &[Atom], value: Atom) {
        if self.active.contains(&array) {
            let acc = self.open(array);
            self.b.accumulate(acc, index.to_vec(), value);
        }
    }

    /// The adjoint of a variable whose definition is reached: nothing can be added any more.
    pub(super) fn take(&mut self, var: Var) -> Option<Atom> {
        match self.adj.remove(&var)? {
            Adj::Value(value) => Some(value),
            Adj::Open(acc) => Some(self.b.freeze(acc)),
        }
    }

    pub(super) fn take_or_zero(&mut self, var: Var) -> Atom {
        match self.take(var) {
            Some(value) => value,
            None => self.zeros_like(var.into()),
        }
    }

    /// Runs `work`, which writes a statement with nested blocks. What these read from outside gets accumulators before it; numbers
    /// are read back after it, if anything was added.
    pub(super) fn around(&mut self, free: &[Var], work: impl FnOnce(&mut Self)) {
        let mut sums = Vec::new();
        for var in free.iter().copied() {
            if !self.active.contains(&var) || var.ty.accumulator {
                continue;
            }
            if var.ty.is_array() {
                self.open(var);
            } else if !matches!(self.adj.get(&var), Some(Adj::Open(_))) {
                let before = self.adj.remove(&var);
                let nothing = match var.ty {
                    Type::REAL => NOTHING,
                    _ => self.zeros_like(var.into()),
                };
                let acc = self.accumulator(var, nothing);
                self.adj.insert(var, Adj::Open(acc));
                sums.push((var, acc, before));
            }
        }
        let start = self.b.len();
        work(self);
        let mut added = FxHashSet::default();
        for stmt in self.b.since(start) {
            added.extend(outer_accumulators(&stmt.op));
        }
        for (var, acc, before) in sums {
            match before {
                Some(before) => self.adj.insert(var, before),
                None => self.adj.remove(&var),
            };
            let total = self.b.freeze(acc);
            if added.contains(&acc) {
                self.add(var.into(), total);
            }
        }
    }
}

/// An adjoint that people may look at: without the sign of a sum of nothing.
pub(super) fn seen(b: &mut Builder, adj: Atom) -> Atom {
    match adj.ty() {
        Type::REAL => b.add(adj, Atom::Real(0.0)),
        _ => adj,
    }
}

/// The sum of all numbers of an array.
pub(super) fn sum_all(b: &mut Builder, array: Var) -> Atom {
    fn nest(b: &mut Builder, array: Var, acc: Var, index: Vec<Atom>) {
        if index.len() == array.ty.rank as usize {
            let element = b.get(array.into(), index);
            b.accumulate(acc, Vec::new(), element);
            return;
        }
        let count = b.dim(array, index.len() as u8);
        let i = Var::fresh("i", Type::INT);
        b.push();
        nest(b, array, acc, [index, vec![i.into()]].concat());
        let body = b.pop(Vec::new());
        b.for_loop(i, count, Vec::new(), body);
    }
    let acc = b.open("sum".into(), Builder::zero(array.ty.scalar));
    nest(b, array, acc, Vec::new());
    b.freeze(acc)
}
