//! Walking and copying flow: operands, nested blocks, free variables, renaming.

use super::*;
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};

impl Op {
    /// An array of rank 1 that nobody looks at, standing where another branch has one.
    pub fn is_dummy(&self) -> bool {
        matches!(self, Op::Fill { dims, .. } if dims[..] == [Atom::Int(0)])
    }

    /// Calls `f` on each operand of this operation itself, not of its nested blocks.
    pub fn for_each_operand(&self, f: &mut dyn FnMut(Atom)) {
        match self {
            Op::Scalar { args, .. } | Op::Call { args, .. } => args.iter().for_each(|a| f(*a)),
            Op::Select { cond, then, otherwise } => [cond, then, otherwise].into_iter().for_each(|a| f(*a)),
            Op::Copy { value } | Op::Stop { value } | Op::Digits { value } => f(*value),
            Op::Cell { fields, .. } => fields.iter().for_each(|a| f(*a)),
            Op::Tag { cell } | Op::Unpack { cell, .. } => f(*cell),
            Op::Push { values } => values.iter().for_each(|a| f(*a)),
            Op::Pop { .. } => {}
            Op::Hole { cell, .. } => f((*cell).into()),
            Op::Plug { hole, value } => [hole, value].into_iter().for_each(|a| f(*a)),
            Op::Dim { array, .. } => f((*array).into()),
            Op::Get { array, index } => {
                f((*array).into());
                index.iter().for_each(|a| f(*a));
            }
            Op::Set { array, index, value } => {
                f((*array).into());
                index.iter().for_each(|a| f(*a));
                f(*value);
            }
            Op::Extend { array, by } => [array, by].into_iter().for_each(|v| f((*v).into())),
            Op::Fill { dims, value } => {
                dims.iter().for_each(|a| f(*a));
                f(*value);
            }
            Op::Literal { items, .. } => items.iter().for_each(|a| f(*a)),
            Op::Check { cond, .. } | Op::If { cond, .. } => f(*cond),
            Op::For(l) => {
                f(l.count);
                l.carried.iter().for_each(|(_, init)| f(*init));
            }
            Op::While(l) => l.carried.iter().for_each(|(_, init)| f(*init)),
            Op::Open { init } => f(*init),
            Op::Add { acc, index, value } => {
                f((*acc).into());
                index.iter().for_each(|a| f(*a));
                f(*value);
            }
            Op::Product(p) => {
                [p.acc, p.left.matrix, p.right.matrix].into_iter().for_each(|v| f(v.into()));
                [p.rows, p.columns, p.inner].into_iter().for_each(f);
            }
            Op::Freeze { acc } => f((*acc).into()),
        }
    }

    /// The same with operands that can be replaced; where the operation needs a variable, only a variable may take its place.
    pub fn for_each_operand_mut(&mut self, f: &mut dyn FnMut(&mut Atom)) {
        let on_var = |var: &mut Var, f: &mut dyn FnMut(&mut Atom)| {
            let mut atom = Atom::Var(*var);
            f(&mut atom);
            match atom {
                Atom::Var(new) => *var = new,
                constant => {
                    gradus_source::bug!("{} is used as an array or accumulator but became {constant:?}", var.name)
                }
            }
        };
        match self {
            Op::Scalar { args, .. } | Op::Call { args, .. } => args.iter_mut().for_each(f),
            Op::Select { cond, then, otherwise } => [cond, then, otherwise].into_iter().for_each(f),
            Op::Copy { value } | Op::Stop { value } | Op::Digits { value } => f(value),
            Op::Cell { fields, .. } => fields.iter_mut().for_each(f),
            Op::Tag { cell } | Op::Unpack { cell, .. } => f(cell),
            Op::Push { values } => values.iter_mut().for_each(f),
            Op::Pop { .. } => {}
            Op::Hole { cell, .. } => on_var(cell, f),
            Op::Plug { hole, value } => [hole, value].into_iter().for_each(f),
            Op::Dim { array, .. } => on_var(array, f),
            Op::Get { array, index } => {
                on_var(array, f);
                index.iter_mut().for_each(f);
            }
            Op::Set { array, index, value } => {
                on_var(array, f);
                index.iter_mut().for_each(&mut *f);
                f(value);
            }
            Op::Extend { array, by } => {
                on_var(array, f);
                on_var(by, f);
            }
            Op::Fill { dims, value } => {
                dims.iter_mut().for_each(&mut *f);
                f(value);
            }
            Op::Literal { items, .. } => items.iter_mut().for_each(f),
            Op::Check { cond, .. } | Op::If { cond, .. } => f(cond),
            Op::For(l) => {
                f(&mut l.count);
                l.carried.iter_mut().for_each(|(_, init)| f(init));
            }
            Op::While(l) => l.carried.iter_mut().for_each(|(_, init)| f(init)),
            Op::Open { init } => f(init),
            Op::Add { acc, index, value } => {
                on_var(acc, f);
                index.iter_mut().for_each(&mut *f);
                f(value);
            }
            Op::Product(p) => {
                [&mut p.acc, &mut p.left.matrix, &mut p.right.matrix].into_iter().for_each(|v| on_var(v, f));
                [&mut p.rows, &mut p.columns, &mut p.inner].into_iter().for_each(f);
            }
            Op::Freeze { acc } => on_var(acc, f),
        }
    }

    /// Calls `f` on the variables that the operation binds for its nested blocks.
    pub fn for_each_param_mut(&mut self, f: &mut dyn FnMut(&mut Var)) {
        match self {
            Op::For(l) => {
                f(&mut l.index);
                l.carried.iter_mut().for_each(|(v, _)| f(v));
            }
            Op::While(l) => l.carried.iter_mut().for_each(|(v, _)| f(v)),
            _ => {}
        }
    }

    /// The variables that the operation binds for its nested blocks.
    pub fn params(&self) -> impl Iterator<Item = Var> + '_ {
        let (index, carried) = match self {
            Op::For(l) => (Some(l.index), &l.carried[..]),
            Op::While(l) => (None, &l.carried[..]),
            _ => (None, &[][..]),
        };
        index.into_iter().chain(carried.iter().map(|(v, _)| *v))
    }

    /// The nested blocks: both sides of a branch, the body of a loop.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = &Block> {
        let blocks = match self {
            Op::If { then, otherwise, .. } => [Some(&**then), Some(&**otherwise)],
            Op::For(l) => [Some(&l.body), None],
            Op::While(l) => [Some(&l.body), None],
            _ => [None, None],
        };
        blocks.into_iter().flatten()
    }

    pub fn blocks_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Block> {
        let blocks = match self {
            Op::If { then, otherwise, .. } => [Some(&mut **then), Some(&mut **otherwise)],
            Op::For(l) => [Some(&mut l.body), None],
            Op::While(l) => [Some(&mut l.body), None],
            _ => [None, None],
        };
        blocks.into_iter().flatten()
    }

    pub fn has_blocks(&self) -> bool {
        matches!(self, Op::If { .. } | Op::For(_) | Op::While(_))
    }
}

impl Stmt {
    /// Whether a variable is used here, at any depth.
    pub fn mentions(&self, var: Var) -> bool {
        let mut found = false;
        self.for_each_use(&mut |v| found |= v == var);
        found
    }

    /// Calls `f` on each variable that is used here, at any depth.
    pub fn for_each_use(&self, f: &mut dyn FnMut(Var)) {
        let mut look = |a: Atom| {
            if let Atom::Var(v) = a {
                f(v);
            }
        };
        self.op.for_each_operand(&mut look);
        self.op.blocks().for_each(|inner| for_each_operand(inner, &mut look));
    }
}

/// Calls `f` on every statement of a block, at any depth, before those inside it.
pub fn for_each_stmt<'a>(block: &'a Block, f: &mut dyn FnMut(&'a Stmt)) {
    with_stack(|| {
        for stmt in &block.stmts {
            f(stmt);
            stmt.op.blocks().for_each(|inner| for_each_stmt(inner, f));
        }
    })
}

/// Calls `f` on every operand in a block, at any depth.
pub fn for_each_operand(block: &Block, f: &mut dyn FnMut(Atom)) {
    with_stack(|| {
        for stmt in &block.stmts {
            stmt.op.for_each_operand(f);
            for inner in stmt.op.blocks() {
                for_each_operand(inner, f);
            }
        }
        block.results.iter().for_each(|a| f(*a));
    })
}

/// Calls `f` on every variable that is bound in a block, at any depth.
pub fn for_each_binder(block: &Block, f: &mut dyn FnMut(Var)) {
    with_stack(|| {
        for stmt in &block.stmts {
            stmt.binds.iter().for_each(|v| f(*v));
            stmt.op.params().for_each(&mut *f);
            stmt.op.blocks().for_each(|inner| for_each_binder(inner, f));
        }
    })
}

/// Whether a block calls anything, at any depth.
pub fn has_calls(block: &Block) -> bool {
    with_stack(|| {
        block.stmts.iter().any(|stmt| match &stmt.op {
            Op::Call { .. } => true,
            op => op.blocks().any(has_calls),
        })
    })
}

/// The functions that a block calls, at any depth.
pub fn callees(block: &Block, found: &mut Vec<FunctionId>) {
    for_each_stmt(block, &mut |stmt| {
        if let Op::Call { function, .. } = &stmt.op {
            found.push(*function);
        }
    });
}

/// The variables that a block uses and does not bind, in order of first use.
pub fn free_vars(block: &Block) -> Vec<Var> {
    let mut bound = FxHashSet::default();
    for_each_binder(block, &mut |v| {
        bound.insert(v);
    });
    let (mut seen, mut order) = (FxHashSet::default(), Vec::new());
    for_each_operand(block, &mut |a| {
        if let Atom::Var(v) = a {
            if !bound.contains(&v) && seen.insert(v) {
                order.push(v);
            }
        }
    });
    order
}

/// Whether a variable is used in a block, at any depth.
pub fn mentions(block: &Block, var: Var) -> bool {
    with_stack(|| {
        block.results.contains(&var.into())
            || block.stmts.iter().any(|stmt| {
                let mut found = false;
                stmt.op.for_each_operand(&mut |a| found |= a == Atom::Var(var));
                found || stmt.op.blocks().any(|inner| mentions(inner, var))
            })
    })
}

/// How often each variable is used as an operand, at any depth.
pub fn count_uses(block: &Block) -> FxHashMap<Var, usize> {
    let mut uses = FxHashMap::default();
    for_each_operand(block, &mut |a| {
        if let Atom::Var(v) = a {
            *uses.entry(v).or_insert(0) += 1;
        }
    });
    uses
}

/// Copies flow with every binder renewed and variables replaced.
#[derive(Clone, Default)]
pub struct Renaming {
    pub map: FxHashMap<Var, Atom>,
}

impl Renaming {
    pub fn atom(&self, atom: Atom) -> Atom {
        match atom {
            Atom::Var(v) => self.map.get(&v).copied().unwrap_or(atom),
            Atom::Real(_) | Atom::Int(_) | Atom::Bool(_) | Atom::Nil(_) => atom,
        }
    }

    fn atoms(&self, atoms: &[Atom]) -> Vec<Atom> {
        atoms.iter().map(|a| self.atom(*a)).collect()
    }

    fn var(&self, var: Var) -> Var {
        match self.atom(var.into()) {
            Atom::Var(v) => v,
            constant => gradus_source::bug!("{} is used as an array or accumulator but became {constant:?}", var.name),
        }
    }

    pub fn renew(&mut self, var: Var) -> Var {
        let new = var.refresh();
        self.map.insert(var, new.into());
        new
    }

    pub fn block(&mut self, block: &Block) -> Block {
        with_stack(|| {
            let stmts = block.stmts.iter().map(|s| self.stmt(s)).collect();
            Block { stmts, results: self.atoms(&block.results) }
        })
    }

    pub fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        let op = self.op(&stmt.op);
        let binds = stmt.binds.iter().map(|v| self.renew(*v)).collect();
        Stmt { binds, op, span: stmt.span }
    }

    fn carried(&mut self, carried: &[(Var, Atom)]) -> Vec<(Var, Atom)> {
        let inits: Vec<Atom> = carried.iter().map(|(_, init)| self.atom(*init)).collect();
        carried.iter().zip(inits).map(|((v, _), init)| (self.renew(*v), init)).collect()
    }

    pub fn op(&mut self, op: &Op) -> Op {
        match op {
            Op::Scalar { prim, args } => Op::Scalar { prim: *prim, args: self.atoms(args) },
            Op::Copy { value } => Op::Copy { value: self.atom(*value) },
            Op::Stop { value } => Op::Stop { value: self.atom(*value) },
            Op::Select { cond, then, otherwise } => {
                Op::Select { cond: self.atom(*cond), then: self.atom(*then), otherwise: self.atom(*otherwise) }
            }
            Op::Dim { array, axis } => Op::Dim { array: self.var(*array), axis: *axis },
            Op::Get { array, index } => Op::Get { array: self.var(*array), index: self.atoms(index) },
            Op::Set { array, index, value } => {
                Op::Set { array: self.var(*array), index: self.atoms(index), value: self.atom(*value) }
            }
            Op::Extend { array, by } => Op::Extend { array: self.var(*array), by: self.var(*by) },
            Op::Fill { dims, value } => Op::Fill { dims: self.atoms(dims), value: self.atom(*value) },
            Op::Literal { items, ty } => Op::Literal { items: self.atoms(items), ty: *ty },
            Op::Cell { shape, tag, fields } => Op::Cell { shape: *shape, tag: *tag, fields: self.atoms(fields) },
            Op::Tag { cell } => Op::Tag { cell: self.atom(*cell) },
            Op::Unpack { cell, tag } => Op::Unpack { cell: self.atom(*cell), tag: *tag },
            Op::Hole { cell, tag, field } => Op::Hole { cell: self.var(*cell), tag: *tag, field: *field },
            Op::Plug { hole, value } => Op::Plug { hole: self.atom(*hole), value: self.atom(*value) },
            Op::Push { values } => Op::Push { values: self.atoms(values) },
            Op::Pop { types } => Op::Pop { types: types.clone() },
            Op::Digits { value } => Op::Digits { value: self.atom(*value) },
            Op::Check { cond, failure } => Op::Check { cond: self.atom(*cond), failure: *failure },
            Op::If { cond, then, otherwise, replayed } => Op::If {
                cond: self.atom(*cond),
                then: Box::new(self.block(then)),
                otherwise: Box::new(self.block(otherwise)),
                replayed: *replayed,
            },
            Op::For(l) => {
                let count = self.atom(l.count);
                let carried = self.carried(&l.carried);
                let index = self.renew(l.index);
                Op::For(Box::new(For { index, count, carried, body: self.block(&l.body), replayed: l.replayed }))
            }
            Op::While(l) => {
                let carried = self.carried(&l.carried);
                Op::While(Box::new(While { carried, body: self.block(&l.body) }))
            }
            Op::Call { function, args } => Op::Call { function: *function, args: self.atoms(args) },
            Op::Open { init } => Op::Open { init: self.atom(*init) },
            Op::Add { acc, index, value } => {
                Op::Add { acc: self.var(*acc), index: self.atoms(index), value: self.atom(*value) }
            }
            Op::Product(p) => {
                let factor = |f: Factor| Factor { matrix: self.var(f.matrix), ..f };
                Op::Product(Box::new(Product {
                    acc: self.var(p.acc),
                    left: factor(p.left),
                    right: factor(p.right),
                    rows: self.atom(p.rows),
                    columns: self.atom(p.columns),
                    inner: self.atom(p.inner),
                }))
            }
            Op::Freeze { acc } => Op::Freeze { acc: self.var(*acc) },
        }
    }
}

/// The variables that are lengths of arrays, or choices between such and constants that could be.
pub fn lengths(block: &Block) -> FxHashSet<Var> {
    fn find(block: &Block, found: &mut FxHashSet<Var>) {
        with_stack(|| {
            for stmt in &block.stmts {
                stmt.op.blocks().for_each(|inner| find(inner, found));
                let is_length =
                    |atom: &Atom| matches!(atom, Atom::Int(0..)) || atom.var().is_some_and(|v| found.contains(&v));
                let is_either = |one: &Atom, other: &Atom| is_length(one) && is_length(other);
                let lengths: Vec<Var> = match &stmt.op {
                    Op::Dim { .. } => stmt.binds.clone(),
                    Op::Select { then, otherwise, .. } if is_either(then, otherwise) => stmt.binds.clone(),
                    Op::If { then, otherwise, .. } => {
                        let results = then.results.iter().zip(&otherwise.results).zip(&stmt.binds);
                        results.filter(|((one, other), _)| is_either(one, other)).map(|(_, bind)| *bind).collect()
                    }
                    _ => Vec::new(),
                };
                found.extend(lengths);
            }
        })
    }
    let mut found = FxHashSet::default();
    find(block, &mut found);
    found
}

/// The variables that are the greater of zero and something else, and what that is.
pub fn clamped(block: &Block) -> FxHashMap<Var, Atom> {
    fn find(block: &Block, negative: &mut FxHashMap<Var, Atom>, found: &mut FxHashMap<Var, Atom>) {
        with_stack(|| {
            for stmt in &block.stmts {
                match (&stmt.op, &stmt.binds[..]) {
                    (Op::Scalar { prim: Prim::Less, args }, [sign]) if args[1] == Atom::Int(0) => {
                        negative.insert(*sign, args[0]);
                    }
                    (Op::Select { cond: Atom::Var(sign), then: Atom::Int(0), otherwise }, [length])
                        if negative.get(sign) == Some(otherwise) =>
                    {
                        found.insert(*length, *otherwise);
                    }
                    (op, _) => op.blocks().for_each(|inner| find(inner, negative, found)),
                }
            }
        })
    }
    let mut found = FxHashMap::default();
    find(block, &mut FxHashMap::default(), &mut found);
    found
}
