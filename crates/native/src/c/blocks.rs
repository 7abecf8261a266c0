//! Statements as C. Each array variable holds its array once; it is let go after its last use in its block, or handed on by that use.

use super::cells::{is_box, stored};
use super::emit::Emitter;
use super::scalars;
use crate::flow::walk::for_each_operand;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashMap;

/// How the statement that is being written may take array variables over.
pub(super) struct Ownership {
    /// For the arrays that the block owns: the statement of the last use; the number of statements for results.
    last_use: FxHashMap<Var, usize>,
    at: usize,
    /// How often the current statement uses each variable.
    uses: FxHashMap<Var, usize>,
    handed_on: Vec<Var>,
}

impl Ownership {
    fn new(block: &Block, params: &[Var]) -> Ownership {
        let mut last_use: FxHashMap<Var, usize> = FxHashMap::default();
        let owned = |v: &Var| v.ty.is_counted() && !v.ty.accumulator;
        for param in params.iter().filter(|v| owned(v)) {
            last_use.insert(*param, 0);
        }
        for (at, stmt) in block.stmts.iter().enumerate() {
            for var in uses_of(stmt).into_keys() {
                if let Some(last) = last_use.get_mut(&var) {
                    *last = at;
                }
            }
            for var in stmt.binds.iter().filter(|v| owned(v)) {
                last_use.insert(*var, at);
            }
        }
        for result in &block.results {
            if let Some(last) = result.var().and_then(|v| last_use.get_mut(&v)) {
                *last = block.stmts.len();
            }
        }
        Ownership { last_use, at: 0, uses: FxHashMap::default(), handed_on: Vec::new() }
    }

    /// Whether something belongs to an outer block or to the caller, and so lives as long as this block.
    pub(super) fn is_borrowed(&self, atom: Atom) -> bool {
        atom.var().is_none_or(|v| !self.last_use.contains_key(&v))
    }

    /// Whether nobody looks at what the current statement binds.
    pub(super) fn is_unused(&self, var: Var) -> bool {
        self.last_use.get(&var) == Some(&self.at)
    }

    /// The block no longer has to let go of a variable.
    pub(super) fn forget(&mut self, var: Var) {
        self.last_use.remove(&var);
    }
}

fn uses_of(stmt: &Stmt) -> FxHashMap<Var, usize> {
    let mut uses = FxHashMap::default();
    let mut count = |a: Atom| {
        if let Atom::Var(v) = a {
            *uses.entry(v).or_insert(0) += 1;
        }
    };
    stmt.op.for_each_operand(&mut count);
    for (block, _) in stmt.op.blocks() {
        for_each_operand(block, &mut count);
    }
    uses
}

impl Emitter<'_> {
    /// Writes a block whose results go to `targets`. `params` are arrays that the block takes over.
    pub(super) fn block(&mut self, block: &Block, params: &[Var], targets: &[String]) {
        with_stack(|| {
            let mut ownership = Ownership::new(block, params);
            let unused: Vec<Var> = params
                .iter()
                .copied()
                .filter(|v| v.ty.is_counted() && !walk::count_uses(block).contains_key(v))
                .collect();
            for var in unused {
                self.drop_var(var);
                ownership.last_use.remove(&var);
            }
            for (at, stmt) in block.stmts.iter().enumerate() {
                ownership.at = at;
                ownership.uses = uses_of(stmt);
                ownership.handed_on.clear();
                self.stmt(stmt, &mut ownership);
                let mut over: Vec<Var> =
                    ownership.last_use.iter().filter(|(_, last)| **last == at).map(|(v, _)| *v).collect();
                over.sort_by_key(|v| v.id);
                for var in over {
                    ownership.last_use.remove(&var);
                    if !ownership.handed_on.contains(&var) {
                        self.drop_var(var);
                    }
                }
            }
            self.results(block, targets, &mut ownership);
        })
    }

    fn drop_var(&mut self, var: Var) {
        let name = self.name(var);
        self.drop(&name, var.ty);
    }

    fn results(&mut self, block: &Block, targets: &[String], ownership: &mut Ownership) {
        for (result, target) in block.results.iter().zip(targets) {
            let text = self.atom(*result);
            if let Some(var) = result.var().filter(|v| v.ty.is_counted()) {
                // Its own are handed over once; what is not its own, or given twice, is held once more.
                if ownership.last_use.remove(&var).is_none() {
                    self.hold(&text, var.ty);
                }
            }
            self.line(&format!("{target} = {text};"));
        }
    }

    /// An operand that the operation takes over: handed on if this is its last use, held once more otherwise.
    pub(super) fn take(&mut self, atom: Atom, ownership: &mut Ownership) -> String {
        let text = self.atom(atom);
        if let Some(var) = atom.var().filter(|v| v.ty.is_counted()) {
            let last = ownership.last_use.get(&var) == Some(&ownership.at);
            let only = ownership.uses.get(&var) == Some(&1);
            if last && only {
                ownership.handed_on.push(var);
            } else {
                self.hold(&text, var.ty);
            }
        }
        text
    }

    /// The element number of an index, and the number of elements that it stands for.
    pub(super) fn offset(&mut self, array: &str, ty: Type, index: &[Atom]) -> String {
        let mut text = String::new();
        for (axis, i) in index.iter().enumerate() {
            let i = self.atom(*i);
            text = if axis == 0 { i } else { format!("({text}) * {array}.d[{axis}] + {i}") };
        }
        for axis in index.len()..ty.rank as usize {
            text = format!("({text}) * {array}.d[{axis}]");
        }
        text
    }

    fn declare(&mut self, binds: &[Var]) -> Vec<String> {
        let mut names = Vec::new();
        for var in binds {
            let (ty, name) = (self.ty(var.ty), self.name(*var));
            self.line(&format!("{ty} {name};"));
            names.push(name);
        }
        names
    }

    fn stmt(&mut self, stmt: &Stmt, ownership: &mut Ownership) {
        match (&stmt.op, &stmt.binds[..]) {
            (Op::Scalar { prim, args }, [y]) => {
                let texts: Vec<String> = args.iter().map(|a| self.atom(*a)).collect();
                let value = scalars::expression(*prim, &texts, args);
                self.define(*y, &value);
            }
            (Op::Copy { value } | Op::Stop { value }, [y]) => {
                let value = self.take(*value, ownership);
                self.define(*y, &value);
            }
            (Op::Select { cond, then, otherwise }, [y]) => {
                let (c, a, b) = (self.atom(*cond), self.atom(*then), self.atom(*otherwise));
                self.define(*y, &format!("{c} ? {a} : {b}"));
            }
            (Op::Dim { array, axis }, [y]) => {
                let array = self.name(*array);
                self.define(*y, &format!("{array}.d[{axis}]"));
            }
            (Op::Get { array, index }, [y]) => {
                let name = self.name(*array);
                let offset = self.offset(&name, array.ty, index);
                if y.ty.is_array() {
                    let dims: Vec<String> =
                        (index.len()..array.ty.rank as usize).map(|axis| format!("{name}.d[{axis}]")).collect();
                    self.define(*y, &format!("{{{name}.p + {offset}, {name}.b, {{{}}}}}", dims.join(", ")));
                    self.line(&format!("gr_hold({name}.b);"));
                } else {
                    self.define(*y, &format!("{name}.p[{offset}]"));
                    if y.ty.is_counted() {
                        if ownership.is_borrowed((*array).into()) {
                            ownership.forget(*y);
                        } else {
                            let element = self.name(*y);
                            self.hold(&element, y.ty);
                        }
                    }
                }
            }
            (Op::Set { array, index, value }, [y]) => {
                let taken = self.take((*array).into(), ownership);
                let ty = self.ty(array.ty);
                let target = self.name(*y);
                self.line(&format!("{ty} {target} = {ty}_own({taken});"));
                self.store(&target, array.ty, index, *value, "=");
            }
            (Op::Fill { dims, value }, [y]) => {
                let name = self.declare(&[*y]).remove(0);
                for (axis, dim) in dims.iter().enumerate() {
                    let dim = self.atom(*dim);
                    self.line(&format!("{name}.d[{axis}] = {dim};"));
                }
                self.allocate_and_fill(&name, y.ty, *value);
            }
            (Op::Cell { tag, fields, .. }, [y]) => self.cell(*tag, fields, *y, ownership),
            (Op::Tag { cell }, [y]) => {
                let cell = self.atom(*cell);
                self.define(*y, &format!("gr_tag({cell})"));
            }
            (Op::Unpack { cell, .. }, binds) => self.unpack(*cell, binds, ownership),
            (Op::Digits { value }, [y]) => {
                let name = self.declare(&[*y]).remove(0);
                let value = self.atom(*value);
                self.line("{");
                self.line("  char digits[400];");
                self.line(&format!("  {name}.d[0] = gr_digits({value}, digits);"));
                let c = self.ty(y.ty);
                self.line(&format!("  {c}_new(&{name});"));
                self.line(&format!("  for (int64_t k = 0; k < {name}.d[0]; k++) {name}.p[k] = digits[k];"));
                self.line("}");
            }
            (Op::Literal { items, ty }, [y]) => self.literal(items, *ty, *y, stmt.span),
            (Op::Check { cond, failure }, []) => {
                let cond = self.atom(*cond);
                let code = self.site(*failure, stmt.span);
                self.line(&format!("if (GR_RARE(!({cond}))) gr_fail({code});"));
            }
            (Op::If { cond, then, otherwise, .. }, binds) => {
                let names = self.declare(binds);
                let cond = self.atom(*cond);
                self.line(&format!("if ({cond}) {{"));
                self.nested(then, &[], &names);
                if !otherwise.stmts.is_empty() || !otherwise.results.is_empty() {
                    self.line("} else {");
                    self.nested(otherwise, &[], &names);
                }
                self.line("}");
            }
            (Op::For(l), binds) => self.for_loop(l, binds, ownership, stmt.span),
            (Op::While(l), binds) => self.while_loop(l, binds, ownership, stmt.span),
            (Op::Call { function, args }, binds) => self.call(*function, args, binds),
            (Op::Open { init }, [acc]) => {
                let taken = self.take(*init, ownership);
                let ty = self.ty(acc.ty);
                let name = self.name(*acc);
                let value = if acc.ty.is_array() { format!("{ty}_own({taken})") } else { taken };
                self.line(&format!("{ty} {name} = {value};"));
            }
            (Op::Add { acc, index, value }, []) => {
                let name = self.accumulator(*acc);
                self.store(&name, acc.ty, index, *value, "+=");
            }
            (Op::Freeze { acc }, [y]) => {
                let name = self.accumulator(*acc);
                self.define(*y, &name);
            }
            (op, _) => gradus_source::bug!("a flow statement binds the wrong number of variables: {op:?}"),
        }
    }

    /// A statement that owns nothing.
    pub(super) fn plain(&mut self, stmt: &Stmt) {
        self.stmt(stmt, &mut Ownership::new(&Block::default(), &[]));
    }

    /// A parameter that accumulates one number is a pointer.
    fn accumulator(&mut self, acc: Var) -> String {
        let name = self.name(acc);
        let is_param = acc.ty.rank == 0 && self.module.functions.iter().any(|f| f.params.contains(&acc));
        if is_param {
            format!("(*{name})")
        } else {
            name
        }
    }

    fn define(&mut self, var: Var, value: &str) {
        let (ty, name) = (self.ty(var.ty), self.name(var));
        self.line(&format!("{ty} {name} = {value};"));
    }

    pub(super) fn nested(&mut self, block: &Block, params: &[Var], targets: &[String]) {
        self.depth += 1;
        self.block(block, params, targets);
        self.depth -= 1;
    }

    /// `target[index] = value` or `+=`, for a number, a row or the whole.
    fn store(&mut self, target: &str, ty: Type, index: &[Atom], value: Atom, operator: &str) {
        let value_text = self.atom(value);
        let adds = operator == "+=";
        if ty.rank == 0 {
            if adds && is_box(ty) {
                self.merge(target, &value_text, ty.shape());
            } else {
                self.line(&format!("{target} {operator} {value_text};"));
            }
            return;
        }
        let offset = if index.is_empty() { "0".to_string() } else { self.offset(target, ty, index) };
        if !value.ty().is_array() {
            let place = format!("{target}.p[{offset}]");
            if !is_box(ty) {
                self.line(&format!("{place} {operator} {value_text};"));
            } else if adds {
                self.merge(&place, &value_text, ty.shape());
            } else {
                self.line(&format!("gr_put(&{place}, gr_hold_cell({value_text}));"));
            }
            return;
        }
        let count: Vec<String> = (index.len()..ty.rank as usize).map(|axis| format!("{target}.d[{axis}]")).collect();
        let element = scalars::c_type(ty.scalar);
        if is_box(ty) {
            let count = count.join(" * ");
            if adds {
                self.line(&format!("for (int64_t k = 0; k < {count}; k++) {{"));
                self.merge(&format!("{target}.p[{offset} + k]"), &format!("{value_text}.p[k]"), ty.shape());
                self.line("}");
            } else {
                self.line(&format!("gr_put_all({target}.p + {offset}, {value_text}.p, {count});"));
            }
            return;
        }
        self.line("{");
        self.line(&format!("  {element} *restrict to = {target}.p + {offset};"));
        self.line(&format!("  const {element} *restrict from = {value_text}.p;"));
        self.line(&format!("  int64_t count = {};", count.join(" * ")));
        self.line(&format!("  for (int64_t k = 0; k < count; k++) to[k] {operator} from[k];"));
        self.line("}");
    }

    fn allocate_and_fill(&mut self, name: &str, ty: Type, value: Atom) {
        let c = self.ty(ty);
        self.line(&format!("{c}_new(&{name});"));
        if value.ty() != ty && matches!(value, Atom::Nil(_)) {
            return;
        }
        let bytes = format!("gr_size({name}.d, {}, sizeof *{name}.p)", ty.rank);
        let zero = match value {
            Atom::Real(r) => r.to_bits() == 0,
            Atom::Int(i) => i == 0,
            Atom::Bool(b) => !b,
            Atom::Var(_) | Atom::Nil(_) => false,
        };
        if zero {
            self.line(&format!("memset({name}.p, 0, {bytes});"));
        } else {
            let value = stored(&self.atom(value), ty);
            let count = format!("{bytes} / (int64_t)sizeof *{name}.p");
            self.line(&format!("for (int64_t k = 0, count = {count}; k < count; k++) {name}.p[k] = {value};"));
        }
    }

    fn literal(&mut self, items: &[Atom], ty: Type, y: Var, span: gradus_source::Span) {
        let name = self.declare(&[y]).remove(0);
        let c = self.ty(ty);
        self.line(&format!("{name}.d[0] = {};", items.len()));
        let first = items.first().filter(|a| a.ty().is_array()).map(|a| self.atom(*a));
        for axis in 1..ty.rank as usize {
            let dim = first.as_ref().map_or("0".to_string(), |first| format!("{first}.d[{}]", axis - 1));
            self.line(&format!("{name}.d[{axis}] = {dim};"));
        }
        self.line(&format!("{c}_new(&{name});"));
        for (i, item) in items.iter().enumerate() {
            if item.ty().is_array() {
                let text = self.atom(*item);
                self.same_row(&name, ty, &text, span);
            }
            self.store(&name, ty, &[Atom::Int(i as i64)], *item, "=");
        }
    }

    /// Arrays are regular: fails unless the row has the shape of the others.
    pub(super) fn same_row(&mut self, array: &str, ty: Type, row: &str, span: gradus_source::Span) {
        let code = self.site(Failure::Rows, span);
        for axis in 1..ty.rank as usize {
            self.line(&format!("if (GR_RARE({array}.d[{axis}] != {row}.d[{}])) gr_fail({code});", axis - 1));
        }
    }
}
