//! Writing flow: a stack of open blocks to which statements are added.

use super::*;
use crate::flow::fold;
use gradus_source::FileId;
use std::rc::Rc;

/// Adds statements to the innermost open block.
#[derive(Default)]
pub struct Builder {
    open: Vec<Vec<Stmt>>,
    /// Where the statements that are being written come from.
    pub span: Span,
    pub seen_from: SeenFrom,
}

/// Whose places statements get, where not each its own: what comes from a file that is not listed gets the place of the call that led there.
#[derive(Clone, Default)]
pub struct SeenFrom {
    /// None: all.
    files: Rc<[FileId]>,
    caller: Span,
}

impl SeenFrom {
    pub fn files(files: &[FileId]) -> SeenFrom {
        SeenFrom { files: files.into(), caller: Span::default() }
    }

    /// Goes into a call; gives what to go back to.
    pub fn enter(&mut self, call: Span) -> SeenFrom {
        let outer = self.clone();
        if self.files.contains(&call.file) {
            self.caller = call;
        }
        outer
    }

    fn place(&self, span: Span) -> Span {
        if self.files.is_empty() || self.files.contains(&span.file) {
            span
        } else {
            self.caller
        }
    }
}

impl Builder {
    /// With one block open.
    pub fn new() -> Builder {
        Builder { open: vec![Vec::new()], ..Builder::default() }
    }

    /// Another one, for the same reader.
    pub fn another(&self) -> Builder {
        Builder { seen_from: self.seen_from.clone(), ..Builder::new() }
    }

    /// Opens a block inside the current one.
    pub fn push(&mut self) {
        self.open.push(Vec::new());
    }

    /// Closes the innermost block with these results.
    pub fn pop(&mut self, results: Vec<Atom>) -> Block {
        match self.open.pop() {
            Some(stmts) => Block { stmts, results },
            None => gradus_source::bug!("a flow block is closed that was never opened"),
        }
    }

    /// The statement of an open block that binds a variable.
    pub fn bound(&self, var: Var) -> Option<&Stmt> {
        self.open.iter().rev().flatten().find(|stmt| stmt.binds.contains(&var))
    }

    /// Takes back the statements that were written last, beginning with number `start` of the innermost block.
    pub fn split_off(&mut self, start: usize) -> Vec<Stmt> {
        self.current().split_off(start)
    }

    /// The statements of the innermost block from number `start` on.
    pub fn since(&mut self, start: usize) -> &[Stmt] {
        &self.current()[start..]
    }

    /// How many statements the innermost block has.
    pub fn len(&mut self) -> usize {
        self.current().len()
    }

    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    fn current(&mut self) -> &mut Vec<Stmt> {
        match self.open.last_mut() {
            Some(stmts) => stmts,
            None => gradus_source::bug!("a flow statement is written outside every block"),
        }
    }

    pub fn stmt(&mut self, stmt: Stmt) {
        self.current().push(stmt);
    }

    pub fn stmts(&mut self, stmts: impl IntoIterator<Item = Stmt>) {
        self.current().extend(stmts);
    }

    /// `binds = op`
    pub fn bind(&mut self, binds: Vec<Var>, op: Op) {
        let span = self.seen_from.place(self.span);
        self.current().push(Stmt { binds, op, span });
    }

    fn one(&mut self, name: &str, ty: Type, op: Op) -> Var {
        let var = Var::fresh(name, ty);
        self.bind(vec![var], op);
        var
    }

    /// A primitive on numbers, computed now if its operands are known.
    pub fn scalar(&mut self, prim: Prim, args: &[Atom]) -> Atom {
        if let Some(known) = fold::scalar(prim, args) {
            return known;
        }
        let types: Vec<Type> = args.iter().map(|a| a.ty()).collect();
        match scalar::result(prim, &types) {
            Some(ty) => self.one("t", ty, Op::Scalar { prim, args: args.to_vec() }).into(),
            None => gradus_source::bug!("{prim:?} cannot be applied to {types:?}"),
        }
    }

    pub fn add(&mut self, a: Atom, b: Atom) -> Atom {
        self.scalar(Prim::AddReal, &[a, b])
    }

    pub fn mul(&mut self, a: Atom, b: Atom) -> Atom {
        self.scalar(Prim::MulReal, &[a, b])
    }

    pub fn dim(&mut self, array: Var, axis: u8) -> Atom {
        self.one("n", Type::INT, Op::Dim { array, axis }).into()
    }

    pub fn dims(&mut self, array: Var) -> Vec<Atom> {
        (0..array.ty.rank).map(|axis| self.dim(array, axis)).collect()
    }

    /// An element or row; with no indices, the value itself.
    pub fn get(&mut self, array: Atom, index: Vec<Atom>) -> Atom {
        match array {
            Atom::Var(array) if !index.is_empty() => {
                let ty = array.ty.at(index.len());
                self.one("e", ty, Op::Get { array, index }).into()
            }
            whole => whole,
        }
    }

    pub fn set(&mut self, array: Var, index: Vec<Atom>, value: Atom) -> Var {
        self.one("a", array.ty, Op::Set { array, index, value })
    }

    /// Binds `copy` to what is at a place of an array, as an array of its own: who has a part of an array keeps others from changing it in place.
    pub fn copy_out(&mut self, copy: Var, array: Var, index: Vec<Atom>) {
        if index.len() == array.ty.rank as usize {
            return self.bind(vec![copy], Op::Get { array, index });
        }
        let (j, count) = (Var::fresh("j", Type::INT), self.dim(array, index.len() as u8));
        let item = Var::fresh("e", copy.ty.at(1));
        self.push();
        self.copy_out(item, array, [index, vec![j.into()]].concat());
        let body = self.pop(vec![item.into()]);
        self.bind(vec![copy], Op::For(Box::new(For { index: j, count, carried: Vec::new(), body, replayed: false })));
    }

    pub fn fill(&mut self, dims: Vec<Atom>, value: Atom) -> Atom {
        if dims.is_empty() {
            return value;
        }
        let ty = Type::array(value.ty().scalar, dims.len() as u8);
        if dims == [Atom::Int(0)] {
            return self.one("a", ty, Op::Literal { items: Vec::new(), ty }).into();
        }
        self.one("a", ty, Op::Fill { dims, value }).into()
    }

    /// An array of numbers.
    pub fn literal(&mut self, items: Vec<Atom>) -> Atom {
        self.literal_of(items, Type::REAL.in_array())
    }

    /// An array of the type, of items.
    pub fn literal_of(&mut self, items: Vec<Atom>, ty: Type) -> Atom {
        self.one("a", ty, Op::Literal { items, ty }).into()
    }

    /// The zero of a scalar type.
    pub fn zero(scalar: Scalar) -> Atom {
        match scalar {
            Scalar::Real => Atom::Real(0.0),
            Scalar::Int => Atom::Int(0),
            Scalar::Bool => Atom::Bool(false),
            Scalar::Box(shape) => Atom::Nil(shape),
        }
    }

    /// Zero in the shape of a value.
    pub fn zeros_like(&mut self, value: Atom) -> Atom {
        let zero = Builder::zero(value.ty().scalar);
        match value {
            Atom::Var(var) if var.ty.is_array() => {
                let dims = self.dims(var);
                self.fill(dims, zero)
            }
            _ => zero,
        }
    }

    /// Zero as tangent or adjoint of a value: in its shape, with nothing for each box.
    pub fn linear_zeros_like(&mut self, module: &mut Module, value: Atom) -> Atom {
        let zero = Builder::zero(module.linear_type(value.ty()).scalar);
        match value {
            Atom::Var(var) if var.ty.is_array() => {
                let dims = self.dims(var);
                self.fill(dims, zero)
            }
            _ => zero,
        }
    }

    /// A value of the type, for places that nobody looks at: zero, nothing, or an array filled with nothing (see [`Op::is_dummy`]).
    pub fn dummy(&mut self, ty: Type) -> Atom {
        let zero = Builder::zero(ty.scalar);
        if !ty.is_array() {
            return zero;
        }
        self.one("a", ty, Op::Fill { dims: vec![Atom::Int(0); ty.rank as usize], value: zero }).into()
    }

    pub fn select(&mut self, cond: Atom, then: Atom, otherwise: Atom) -> Atom {
        match cond {
            Atom::Bool(true) => then,
            Atom::Bool(false) => otherwise,
            _ if then == otherwise => then,
            _ if then.ty().is_counted() => {
                let side = |result| Block { stmts: Vec::new(), results: vec![result] };
                self.branch(cond, side(then), side(otherwise))[0]
            }
            _ => self.one("t", then.ty(), Op::Select { cond, then, otherwise }).into(),
        }
    }

    pub fn cell(&mut self, shape: ShapeId, tag: usize, fields: Vec<Atom>) -> Atom {
        self.one("cell", Type::boxed(shape), Op::Cell { shape, tag, fields }).into()
    }

    pub fn tag(&mut self, cell: Atom) -> Atom {
        match cell {
            Atom::Nil(_) => Atom::Int(-1),
            _ => self.one("tag", Type::INT, Op::Tag { cell }).into(),
        }
    }

    /// The fields of a box that is known to have the tag; `types` are theirs.
    pub fn unpack(&mut self, types: &[Type], cell: Atom, tag: usize) -> Vec<Atom> {
        let binds: Vec<Var> = types.iter().map(|ty| Var::fresh("field", *ty)).collect();
        if !binds.is_empty() {
            self.bind(binds.clone(), Op::Unpack { cell, tag });
        }
        binds.into_iter().map(Atom::Var).collect()
    }

    pub fn check(&mut self, cond: Atom, failure: Failure) {
        if cond != Atom::Bool(true) {
            self.bind(Vec::new(), Op::Check { cond, failure });
        }
    }

    /// Fails unless two arrays have the same length along an axis.
    pub fn check_same_length(&mut self, one: Var, other: Var, axis: u8, failure: Failure) {
        let lengths = [one, other].map(|array| self.dim(array, axis));
        let same = self.scalar(Prim::Equal, &lengths);
        self.check(same, failure);
    }

    pub fn open(&mut self, name: Name, init: Atom) -> Var {
        let acc = Var::fresh(name, init.ty().accumulator());
        self.bind(vec![acc], Op::Open { init });
        acc
    }

    pub fn accumulate(&mut self, acc: Var, index: Vec<Atom>, value: Atom) {
        self.bind(Vec::new(), Op::Add { acc, index, value });
    }

    pub fn freeze(&mut self, acc: Var) -> Atom {
        let var = Var::fresh(acc.name, acc.ty.frozen());
        self.bind(vec![var], Op::Freeze { acc });
        var.into()
    }

    /// A branch whose blocks give the same number of results.
    pub fn branch(&mut self, cond: Atom, then: Block, otherwise: Block) -> Vec<Atom> {
        let binds: Vec<Var> = then.results.iter().map(|a| Var::fresh("r", a.ty())).collect();
        self.bind(binds.clone(), Op::branch(cond, then, otherwise, false));
        binds.into_iter().map(Atom::Var).collect()
    }

    /// A loop; gives the last state and the collected arrays.
    pub fn for_loop(&mut self, index: Var, count: Atom, carried: Vec<(Var, Atom)>, body: Block) -> Vec<Atom> {
        let state = carried.len();
        let binds: Vec<Var> = body
            .results
            .iter()
            .enumerate()
            .map(|(i, a)| match carried.get(i) {
                Some((var, _)) => var.refresh(),
                None => Var::fresh(if i < state { "c" } else { "a" }, a.ty().in_array()),
            })
            .collect();
        self.bind(binds.clone(), Op::For(Box::new(For { index, count, carried, body, replayed: false })));
        binds.into_iter().map(Atom::Var).collect()
    }

    /// A loop whose body decides about going on; gives the last state and the collected arrays.
    pub fn while_loop(&mut self, carried: Vec<(Var, Atom)>, body: Block) -> Vec<Atom> {
        let results = body.results.iter().skip(1).enumerate();
        let binds: Vec<Var> = results
            .map(|(i, a)| match carried.get(i) {
                Some((var, _)) => var.refresh(),
                None => Var::fresh("a", a.ty().in_array()),
            })
            .collect();
        self.bind(binds.clone(), Op::While(Box::new(While { carried, body })));
        binds.into_iter().map(Atom::Var).collect()
    }
}
