//! Statements as C.

use super::cells::{is_box, stored};
use super::emit::Emitter;
use super::scalars;
use crate::checks::BITS_OF_LENGTH;
use crate::flow::*;
use crate::ownership::Ownership;
use crate::steps::LARGE;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_source::Span;

impl Emitter<'_> {
    /// Writes a block whose results go to `targets`. `params` are arrays that the block takes over.
    pub(super) fn block(&mut self, block: &Block, params: &[Var], targets: &[String]) {
        with_stack(|| {
            let (mut ownership, unused) = Ownership::new(block, params);
            for var in unused {
                self.drop_var(var);
            }
            if !self.in_pieces(block, &mut ownership) {
                for (at, stmt) in block.stmts.iter().enumerate() {
                    self.stmt_at(at, stmt, &mut ownership);
                }
            }
            self.results(block, targets, &mut ownership);
        })
    }

    /// Writes the statement with a number, and lets go what ends there.
    pub(super) fn stmt_at(&mut self, at: usize, stmt: &Stmt, ownership: &mut Ownership) {
        ownership.start(at, stmt);
        self.stmt(stmt, ownership);
        for var in ownership.end() {
            self.drop_var(var);
        }
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
                if !ownership.gives(var) {
                    self.hold(&text, var.ty);
                }
            }
            self.line(&format!("{target} = {text};"));
        }
    }

    /// An array that the operation takes over to change it.
    pub(super) fn own(&mut self, array: Atom, ownership: &mut Ownership, span: Span) -> String {
        let text = self.atom(array);
        match array.var() {
            Some(var) if !ownership.hands_on(var) => self.hold(&text, var.ty),
            Some(var) if self.sole.contains(var) => return text,
            _ => {}
        }
        let (ty, place) = (self.ty(array.ty()), self.place(span));
        format!("{ty}_own(self, {text}, {place})")
    }

    /// An array, which is taken over if this is its last use, and another behind it.
    fn extend(&mut self, array: Var, by: Var, y: Var, ownership: &mut Ownership, span: Span) {
        let handed_on = ownership.hands_on(array);
        let target = self.declare(&[y]).remove(0);
        let (first, second, place) = (self.name(array), self.name(by), self.place(span));
        let block = if handed_on { format!("{first}.b") } else { "0".into() };
        let (rank, width) = (array.ty.rank, format!("sizeof *{first}.p"));
        self.line(&format!("{target}.d[0] = gr_size({first}.d, {rank}, 1) + {second}.d[0];"));
        self.line(&format!("if (GR_RARE({target}.d[0] > {LARGE})) {{"));
        self.line(&format!("  GR_STEPS({target}.d[0], {place});"));
        self.line("}");
        self.line(&format!(
            "{target}.p = gr_extend(self, &{target}.b, {first}.p, {block}, gr_size({first}.d, {rank}, {width}), {second}.p, {second}.d[0] * {width}, {place});"
        ));
    }

    /// An operand that the operation takes over: handed on if this is its last use, held once more otherwise.
    pub(super) fn take(&mut self, atom: Atom, ownership: &mut Ownership) -> String {
        let text = self.atom(atom);
        if let Some(var) = atom.var().filter(|v| v.ty.is_counted()) {
            if !ownership.hands_on(var) {
                self.hold(&text, var.ty);
            }
        }
        text
    }

    /// The element at an index. The row comes first: so the C compiler sees best how far apart the elements of a loop are.
    fn element(&mut self, array: &str, ty: Type, index: &[Atom]) -> String {
        let Some((last, row)) = index.split_last().filter(|(_, row)| !row.is_empty()) else {
            return format!("{array}.p[{}]", self.offset(array, ty, index));
        };
        let (row, last) = (self.offset(array, ty, row), self.atom(*last));
        format!("({array}.p + {row})[{last}]")
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

    /// How many bits a sum or difference has at most, if it certainly fits.
    fn bits_of_sum(&self, prim: Prim, args: &[Atom]) -> Option<u32> {
        let bits = |atom: &Atom| match atom {
            Atom::Int(k) => Some(u64::BITS - k.unsigned_abs().leading_zeros()),
            Atom::Var(v) => self.bits.get(v).copied(),
            _ => None,
        };
        let [a, b] = args else { return None };
        let sum = 1 + bits(a)?.max(bits(b)?);
        (matches!(prim, Prim::AddInt | Prim::SubInt) && sum < i64::BITS).then_some(sum)
    }

    fn stmt(&mut self, stmt: &Stmt, ownership: &mut Ownership) {
        match (&stmt.op, &stmt.binds[..]) {
            (Op::Scalar { prim, args }, [y]) => {
                let texts: Vec<String> = args.iter().map(|a| self.atom(*a)).collect();
                let small = self.bits_of_sum(*prim, args);
                self.bits.extend(small.map(|bits| (*y, bits)));
                let value = match prim {
                    Prim::AddInt if small.is_some() && self.in_lanes => texts.join(" + "),
                    Prim::SubInt if small.is_some() && self.in_lanes => texts.join(" - "),
                    Prim::Maximum | Prim::Minimum if self.so_far.contains(y) => scalars::so_far(*prim, &texts),
                    Prim::Cos if self.in_lanes => format!("gr_cos_in_lanes({})", texts.join("")),
                    _ => scalars::expression(*prim, &texts, args),
                };
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
                self.bits.insert(*y, BITS_OF_LENGTH);
                let array = self.name(*array);
                self.define(*y, &format!("{array}.d[{axis}]"));
            }
            (Op::Get { array, index }, [y]) => {
                let name = self.name(*array);
                if y.ty.is_array() {
                    let offset = self.offset(&name, array.ty, index);
                    let dims: Vec<String> =
                        (index.len()..array.ty.rank as usize).map(|axis| format!("{name}.d[{axis}]")).collect();
                    self.define(*y, &format!("{{{name}.p + {offset}, {name}.b, {{{}}}}}", dims.join(", ")));
                    if ownership.holds(*y) {
                        self.line(&format!("gr_hold({name}.b);"));
                    }
                } else {
                    let element = self.element(&name, array.ty, index);
                    self.define(*y, &element);
                    if y.ty.is_counted() && ownership.holds(*y) {
                        let element = self.name(*y);
                        self.hold(&element, y.ty);
                    }
                }
            }
            (Op::Set { array, index, value }, [y]) => {
                let owned = self.own((*array).into(), ownership, stmt.span);
                let (ty, target) = (self.ty(array.ty), self.name(*y));
                self.line(&format!("{ty} {target} = {owned};"));
                self.store(&target, array.ty, index, *value, "=", ownership);
            }
            (Op::Extend { array, by }, [y]) => self.extend(*array, *by, *y, ownership, stmt.span),
            (Op::Fill { dims, value }, [y]) => {
                let name = self.declare(&[*y]).remove(0);
                for (axis, dim) in dims.iter().enumerate() {
                    let dim = self.atom(*dim);
                    self.line(&format!("{name}.d[{axis}] = {dim};"));
                }
                self.make(*y, stmt.span);
                self.fill(&name, y.ty, *value);
            }
            (Op::Cell { tag, fields, .. }, [y]) => self.cell(*tag, fields, *y, ownership, stmt.span),
            (Op::Tag { cell }, [y]) => {
                let cell = self.atom(*cell);
                self.define(*y, &format!("gr_tag({cell})"));
            }
            (Op::Unpack { cell, .. }, binds) => self.unpack(*cell, binds, ownership),
            (Op::Hole { cell, tag, field }, [y]) => {
                let at = self.module.place(*cell, *tag, *field);
                let cell = self.name(*cell);
                self.define(*y, &format!("(int64_t)&{cell}->w[{at}].c"));
            }
            (Op::Plug { hole, value }, []) => {
                let (hole, value) = (self.atom(*hole), self.take(*value, ownership));
                self.line(&format!("*(gr_cell **){hole} = {value};"));
            }
            (Op::Push { values }, []) => self.push(values, ownership, stmt.span),
            (Op::Pop { types }, binds) => self.pop(types, binds),
            (Op::Digits { value }, [y]) => {
                let name = self.declare(&[*y]).remove(0);
                let value = self.atom(*value);
                self.line("{");
                self.line("  char digits[400];");
                self.line(&format!("  {name}.d[0] = gr_digits({value}, digits);"));
                let c = self.ty(y.ty);
                let place = self.place(stmt.span);
                self.line(&format!("  {c}_new(self, &{name}, {place});"));
                self.line(&format!("  for (int64_t k = 0; k < {name}.d[0]; k++) {name}.p[k] = digits[k];"));
                self.line("}");
            }
            (Op::Literal { items, ty }, [y]) => self.literal(items, *ty, *y, ownership, stmt.span),
            (Op::Check { cond, failure }, []) => {
                let cond = self.atom(*cond);
                let code = self.site(*failure, stmt.span);
                self.line(&format!("if (GR_RARE(!({cond}))) gr_fail({code});"));
            }
            (Op::If { cond, then, otherwise, .. }, binds) => {
                let names = self.declare(binds);
                let cond = self.atom(*cond);
                let handed = ownership.hands_to_sides();
                self.line(&format!("if ({cond}) {{"));
                self.nested(then, &handed, &names);
                if !otherwise.stmts.is_empty() || !otherwise.results.is_empty() || !handed.is_empty() {
                    self.line("} else {");
                    self.nested(otherwise, &handed, &names);
                }
                self.line("}");
            }
            (Op::For(l), binds) => self.for_loop(l, binds, ownership, stmt.span),
            (Op::While(l), binds) => self.while_loop(l, binds, ownership, stmt.span),
            (Op::Call { function, args }, binds) => self.call(*function, args, binds, ownership),
            (Op::Open { init }, [acc]) => {
                let value = match acc.ty.is_array() {
                    true => self.own(*init, ownership, stmt.span),
                    false => self.take(*init, ownership),
                };
                let (ty, name) = (self.ty(acc.ty), self.name(*acc));
                self.line(&format!("{ty} {name} = {value};"));
            }
            (Op::Add { acc, index, value }, []) => {
                let name = self.accumulator(*acc);
                self.store(&name, acc.ty, index, *value, "+=", ownership);
            }
            (Op::Product(product), []) => self.product(product, stmt.span),
            (Op::Freeze { acc }, [y]) => {
                let name = self.accumulator(*acc);
                self.define(*y, &name);
            }
            (op, _) => gradus_source::bug!("a flow statement binds the wrong number of variables: {op:?}"),
        }
    }

    /// A statement that owns nothing.
    pub(super) fn plain(&mut self, stmt: &Stmt) {
        self.stmt(stmt, &mut Ownership::none());
    }

    /// A parameter that accumulates one number is a pointer.
    pub(super) fn accumulator(&mut self, acc: Var) -> String {
        let name = self.name(acc);
        if self.pointers.contains(&acc) {
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
    fn store(
        &mut self,
        target: &str,
        ty: Type,
        index: &[Atom],
        value: Atom,
        operator: &str,
        ownership: &mut Ownership,
    ) {
        let value_text = if value.ty().is_array() { self.atom(value) } else { self.take(value, ownership) };
        let adds = operator == "+=";
        if ty.rank == 0 {
            if adds && is_box(ty) {
                self.merge(target, &value_text, ty.shape());
            } else {
                self.line(&format!("{target} {operator} {value_text};"));
            }
            return;
        }
        if !value.ty().is_array() {
            let place = self.element(target, ty, index);
            if !is_box(ty) {
                self.line(&format!("{place} {operator} {value_text};"));
            } else if adds {
                self.merge(&place, &value_text, ty.shape());
            } else {
                self.line(&format!("gr_put(self, &{place}, {value_text});"));
            }
            return;
        }
        let offset = if index.is_empty() { "0".to_string() } else { self.offset(target, ty, index) };
        let count: Vec<String> = (index.len()..ty.rank as usize).map(|axis| format!("{target}.d[{axis}]")).collect();
        let element = scalars::c_type(ty.scalar);
        if is_box(ty) {
            let count = count.join(" * ");
            if adds {
                self.line(&format!("for (int64_t k = 0; k < {count}; k++) {{"));
                self.merge(
                    &format!("{target}.p[{offset} + k]"),
                    &format!("gr_hold_cell({value_text}.p[k])"),
                    ty.shape(),
                );
                self.line("}");
            } else {
                self.line(&format!("gr_put_all(self, {target}.p + {offset}, {value_text}.p, {count});"));
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

    fn fill(&mut self, name: &str, ty: Type, value: Atom) {
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

    fn literal(&mut self, items: &[Atom], ty: Type, y: Var, ownership: &mut Ownership, span: Span) {
        let name = self.declare(&[y]).remove(0);
        self.line(&format!("{name}.d[0] = {};", items.len()));
        let first = items.first().filter(|a| a.ty().is_array()).map(|a| self.atom(*a));
        for axis in 1..ty.rank as usize {
            let dim = first.as_ref().map_or("0".to_string(), |first| format!("{first}.d[{}]", axis - 1));
            self.line(&format!("{name}.d[{axis}] = {dim};"));
        }
        self.make(y, span);
        for (i, item) in items.iter().enumerate() {
            if item.ty().is_array() {
                let text = self.atom(*item);
                self.same_row(&name, ty, &text, span);
            }
            self.store(&name, ty, &[Atom::Int(i as i64)], *item, "=", ownership);
        }
    }

    /// Arrays are regular: fails unless the row has the shape of the others.
    pub(super) fn same_row(&mut self, array: &str, ty: Type, row: &str, span: Span) {
        let code = self.site(Failure::Rows, span);
        for axis in 1..ty.rank as usize {
            self.line(&format!("if (GR_RARE({array}.d[{axis}] != {row}.d[{}])) gr_fail({code});", axis - 1));
        }
    }
}
