//! Statements as Cranelift code.

use super::emit::{machine_type, machine_types, plain, Array, Emitter, Held};
use crate::flow::*;
use crate::ownership::Ownership;
use cranelift_codegen::ir::types::Type as MachineType;
use cranelift_codegen::ir::{InstBuilder, Value};
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_runtime::slot::Kind;
use gradus_source::Span;

/// So many operations on each side of a branch are done in any case.
const SHORT: usize = 4;

impl Emitter<'_, '_, '_> {
    /// Writes a block; gives the machine values of its results, which the caller holds. `params` are arrays that it takes over.
    pub(super) fn block(&mut self, block: &Block, params: &[Var]) -> Vec<Vec<Value>> {
        with_stack(|| {
            let (mut ownership, unused) = Ownership::new(block, params);
            for var in unused {
                self.drop_var(var);
            }
            if !self.in_pieces(block, &mut ownership) {
                for (at, stmt) in block.stmts.iter().enumerate() {
                    ownership.start(at, stmt);
                    self.stmt(stmt, &mut ownership);
                    for var in ownership.end() {
                        self.drop_var(var);
                    }
                }
            }
            let mut results = Vec::new();
            for result in &block.results {
                let parts = self.parts(*result);
                if let Some(var) = result.var().filter(|v| v.ty.is_counted()) {
                    if !ownership.gives(var) {
                        self.hold_parts(var.ty, &parts);
                    }
                }
                results.push(parts);
            }
            results
        })
    }

    pub(super) fn drop_var(&mut self, var: Var) {
        let parts = self.parts(var.into());
        if var.ty.is_array() && self.linker.sole.contains(var) && !self.replaced.contains(&var) {
            return self.runtime_effect("gradus_free", &[self.thread, parts[1]]);
        }
        self.drop_parts(var.ty, &parts);
    }

    pub(super) fn numbers(&mut self, atoms: &[Atom]) -> Vec<Value> {
        atoms.iter().map(|a| self.number(*a)).collect()
    }

    fn bind_array(&mut self, var: Var, array: Array) {
        self.held.insert(var, Held::Array(array));
    }

    pub(super) fn bind_number(&mut self, var: Var, value: Value) {
        self.held.insert(var, Held::Number(value));
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt, ownership: &mut Ownership) {
        let span = stmt.span;
        match (&stmt.op, &stmt.binds[..]) {
            (Op::Scalar { prim, args }, [y]) => {
                let values = self.numbers(args);
                let value = self.scalar(*prim, &values, args);
                self.bind_number(*y, value);
            }
            (Op::Copy { value } | Op::Stop { value }, [y]) => {
                let parts = self.take(*value, ownership);
                let held = Held::of(y.ty, &parts);
                self.held.insert(*y, held);
            }
            (Op::Select { cond, then, otherwise }, [y]) => {
                let (c, a, b) = (self.number(*cond), self.number(*then), self.number(*otherwise));
                let value = self.b.ins().select(c, a, b);
                self.bind_number(*y, value);
            }
            (Op::Dim { array, axis }, [y]) => {
                let value = self.array(*array).dims[*axis as usize];
                self.bind_number(*y, value);
            }
            (Op::Get { array, index }, [y]) => {
                let array = self.array(*array);
                let index = self.numbers(index);
                if y.ty.is_array() {
                    let data = self.address(&array, &index);
                    let dims = array.dims[index.len()..].to_vec();
                    if ownership.holds(*y) {
                        self.hold(array.block);
                    }
                    self.bind_array(*y, Array { data, block: array.block, dims, scalar: array.scalar });
                } else {
                    let value = self.load_element(&array, &index);
                    if y.ty.is_counted() && ownership.holds(*y) {
                        self.hold_cell(value);
                    }
                    self.bind_number(*y, value);
                }
            }
            (Op::Set { array, index, value }, [y]) => {
                let index = self.numbers(index);
                let array = self.own((*array).into(), ownership, span);
                self.store(&array, &index, *value, ownership);
                self.bind_array(*y, array);
            }
            (Op::Extend { array, by }, [y]) => {
                let extended = self.extended(*array, *by, ownership, span);
                self.bind_array(*y, extended);
            }
            (Op::Fill { dims, value }, [y]) => {
                let dims = self.numbers(dims);
                let array = self.new_array(dims, y.ty.scalar, span);
                let value = self.number(*value);
                self.fill(&array, value);
                self.bind_array(*y, array);
            }
            (Op::Cell { tag, fields, .. }, [y]) => {
                let cell = self.cell(*tag, fields, ownership, span);
                self.bind_number(*y, cell);
            }
            (Op::Tag { cell }, [y]) => {
                let cell = self.number(*cell);
                let tag = self.tag(cell);
                self.bind_number(*y, tag);
            }
            (Op::Unpack { cell, .. }, binds) => self.unpack(*cell, binds, ownership),
            (Op::Hole { cell, tag, field }, [y]) => {
                let address = self.hole(*cell, *tag, *field);
                self.bind_number(*y, address);
            }
            (Op::Plug { hole, value }, []) => {
                let (hole, value) = (self.number(*hole), self.take(*value, ownership));
                self.b.ins().store(plain(), value[0], hole, 0);
            }
            (Op::Push { values }, []) => self.push(values, ownership, span),
            (Op::Pop { types }, binds) => self.pop(types, binds),
            (Op::Digits { value }, [y]) => {
                let array = self.digits(*value, *y, span);
                self.bind_array(*y, array);
            }
            (Op::Literal { items, ty }, [y]) => {
                let array = self.literal(items, *ty, ownership, span);
                self.bind_array(*y, array);
            }
            (Op::Check { cond, failure }, []) => {
                let cond = self.number(*cond);
                self.require(cond, Some(*failure), span, Kind::Check);
            }
            (Op::If { cond, then, otherwise, .. }, binds) => {
                let handed = ownership.hands_to_sides();
                self.branch(*cond, [then, otherwise], &handed, binds);
            }
            (Op::For(l), binds) => self.for_loop(l, binds, ownership, span),
            (Op::While(l), binds) => self.while_loop(l, binds, ownership, span),
            (Op::Call { function, args }, binds) => self.call(*function, args, binds, ownership),
            (Op::Open { init }, [acc]) => self.open(*init, *acc, ownership, span),
            (Op::Add { acc, index, value }, []) => self.add(*acc, index, *value, ownership, span),
            (Op::Product(product), []) => self.product(product, span),
            (Op::Freeze { acc }, [y]) => match self.held(*acc) {
                Held::Array(array) => self.bind_array(*y, array),
                Held::Sum(variable) => {
                    let value = self.b.use_var(variable);
                    self.bind_number(*y, value);
                }
                Held::SumAt(address) => {
                    let value = self.b.ins().load(machine_type(y.ty.scalar), plain(), address, 0);
                    self.bind_number(*y, value);
                }
                Held::Number(_) => gradus_source::bug!("{} is no accumulator", acc.name),
            },
            (op, _) => gradus_source::bug!("a flow statement binds the wrong number of variables: {op:?}"),
        }
    }

    /// A statement that owns nothing.
    pub(super) fn plain(&mut self, stmt: &Stmt) {
        self.stmt(stmt, &mut Ownership::none());
    }

    fn open(&mut self, init: Atom, acc: Var, ownership: &mut Ownership, span: Span) {
        if acc.ty.is_array() {
            let array = self.own(init, ownership, span);
            return self.bind_array(acc, array);
        }
        let value = self.take(init, ownership)[0];
        if self.shared_sums.contains(&acc) {
            let address = self.room(8);
            self.b.ins().store(plain(), value, address, 0);
            self.held.insert(acc, Held::SumAt(address));
        } else {
            let variable = self.b.declare_var(machine_type(acc.ty.scalar));
            self.b.def_var(variable, value);
            self.held.insert(acc, Held::Sum(variable));
        }
    }

    fn add(&mut self, acc: Var, index: &[Atom], value: Atom, ownership: &mut Ownership, span: Span) {
        match self.held(acc) {
            Held::Array(array) if value.ty().is_array() => {
                let index = self.numbers(index);
                self.add_rows(&array, &index, value, span);
            }
            _ => {
                let value = self.take(value, ownership)[0];
                self.add_number(acc, index, value);
            }
        }
    }

    /// Adds to an accumulator of one number or to an element; takes over a box.
    pub(super) fn add_number(&mut self, acc: Var, index: &[Atom], value: Value) {
        let (address, offset) = match self.held(acc) {
            Held::Sum(variable) => {
                let before = self.b.use_var(variable);
                let sum = match acc.ty.shape() {
                    None => self.b.ins().fadd(before, value),
                    shape => self.merged(shape, before, value),
                };
                return self.b.def_var(variable, sum);
            }
            Held::SumAt(address) => (address, 0),
            Held::Array(array) => {
                let index = self.numbers(index);
                self.place(&array, &index)
            }
            Held::Number(_) => gradus_source::bug!("{} is no accumulator", acc.name),
        };
        if acc.ty.shape().is_some() {
            let address = self.moved(address, offset);
            return self.merge_at(address, value, acc.ty.shape());
        }
        let before = self.b.ins().load(machine_type(acc.ty.scalar), plain(), address, offset);
        let sum = self.b.ins().fadd(before, value);
        self.b.ins().store(plain(), sum, address, offset);
    }

    /// The machine types of some variables, in order.
    pub(super) fn types_of(vars: &[Var]) -> Vec<MachineType> {
        vars.iter().flat_map(|v| machine_types(v.ty)).collect()
    }

    /// Gives variables their machine values, which stand in order.
    pub(super) fn bind_all(&mut self, vars: &[Var], values: &[Value]) {
        let mut rest = values;
        for var in vars {
            let (own, others) = rest.split_at(machine_types(var.ty).len());
            let held = Held::of(var.ty, own);
            self.held.insert(*var, held);
            rest = others;
        }
    }

    /// `handed`: the arrays that both sides take over.
    fn branch(&mut self, cond: Atom, [then, otherwise]: [&Block; 2], handed: &[Var], binds: &[Var]) {
        let cond = self.number(cond);
        let ends_loop = binds.iter().any(|v| self.ends.contains(v));
        if is_short(then) && is_short(otherwise) && !ends_loop && binds.iter().all(|v| !v.ty.is_counted()) {
            // What comes of a condition that nobody can foresee is dearer than both sides.
            let [yes, no] = [then, otherwise].map(|side| self.block(side, &[]).concat());
            let values: Vec<Value> =
                yes.into_iter().zip(no).map(|(yes, no)| self.b.ins().select(cond, yes, no)).collect();
            return self.bind_all(binds, &values);
        }
        let (yes, no) = (self.b.create_block(), self.b.create_block());
        let on = self.meeting(binds);
        self.b.ins().brif(cond, yes, &[], no, &[]);
        for (block, side) in [(yes, then), (no, otherwise)] {
            self.b.switch_to_block(block);
            self.b.seal_block(block);
            let results = self.block(side, handed);
            self.arrive(&on, &results);
        }
        self.go_on_from(on, binds);
    }
}

/// Whether a side of a branch is a few operations of a cycle or so each, none of which can fail.
fn is_short(side: &Block) -> bool {
    let is_quick = |stmt: &Stmt| match &stmt.op {
        Op::Scalar { prim: Prim::DivInt | Prim::ModInt, args } => matches!(args[1], Atom::Int(k) if k != 0 && k != -1),
        Op::Scalar { prim, .. } => {
            use Prim::*;
            matches!(prim, AddInt | SubInt | MulInt | NegInt | AddReal | SubReal | MulReal | NegReal | RealOfInt)
                || scalar::is_comparison(*prim)
        }
        op => matches!(op, Op::Select { .. }),
    };
    side.stmts.len() <= SHORT && side.stmts.iter().all(is_quick)
}
