//! Boxes as C: cells and their fields, and the tables that say how boxes go in and out of entry points.

use super::emit::Emitter;
use crate::flow::*;
use crate::ownership::Ownership;
use gradus_source::Span;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The shapes of boxes that entry points take or give, and those inside.
pub(super) fn outside(module: &Module, entries: &[(FunctionId, String)]) -> BTreeSet<ShapeId> {
    let mut found = BTreeSet::new();
    let mut next: Vec<ShapeId> = Vec::new();
    for (id, _) in entries {
        let function = module.function(*id);
        next.extend(function.params.iter().filter_map(|v| v.ty.shape()));
        next.extend(function.results.iter().filter_map(|t| t.shape()));
    }
    while let Some(shape) = next.pop() {
        if found.insert(shape) {
            next.extend(module.shape(shape).cells.iter().flatten().filter_map(|t| t.shape()));
        }
    }
    found
}

/// The tables of these shapes.
pub(super) fn tables(module: &Module, shapes: &BTreeSet<ShapeId>) -> String {
    let mut text = String::new();
    let mut rows = String::new();
    for shape in shapes {
        let mut cells = String::new();
        for (tag, fields) in module.shape(*shape).cells.iter().enumerate() {
            let layout = CellLayout::of(fields);
            let list: Vec<String> = fields.iter().zip(&layout.places).map(|(ty, place)| field(*ty, *place)).collect();
            let name = format!("gr_fields_{shape}_{tag}");
            let list = if list.is_empty() { "{0}".to_string() } else { list.join(", ") };
            let _ = writeln!(text, "static const gr_field {name}[] = {{{list}}};");
            let CellLayout { boxes, blocks, words, .. } = layout;
            let _ = write!(cells, "{{{}, {name}, {boxes}, {blocks}, {words}}}, ", fields.len());
        }
        let _ = writeln!(text, "static const gr_cell_info gr_cells_{shape}[] = {{{cells}{{0}}}};");
        let _ = write!(rows, "[{shape}] = {{gr_cells_{shape}}}, ");
    }
    let _ = writeln!(text, "static const gr_shape_info gr_shapes[] = {{{rows}}};");
    text
}

fn field(ty: Type, place: Place) -> String {
    let (kind, shape) = match ty.scalar {
        Scalar::Real => (0, 0),
        Scalar::Int => (1, 0),
        Scalar::Bool => (2, 0),
        Scalar::Box(shape) => (3, shape.0),
    };
    format!("{{{kind}, {}, {}, {}, {shape}}}", ty.rank, place.at, place.rest)
}

impl Emitter<'_> {
    pub(super) fn hold(&mut self, text: &str, ty: Type) {
        if ty.is_array() {
            self.line(&format!("gr_hold({text}.b);"));
        } else {
            self.line(&format!("gr_hold_cell({text});"));
        }
    }

    pub(super) fn drop(&mut self, text: &str, ty: Type) {
        if ty.is_array() {
            self.line(&format!("gr_drop(self, {text}.b);"));
        } else {
            self.line(&format!("gr_drop_cell(self, {text});"));
        }
    }

    /// Makes the cells of an input.
    pub(super) fn input_boxes(&mut self, i: usize, ty: Type, shape: ShapeId) {
        let c = self.ty(ty);
        self.line(&format!("{c} arg_{i};"));
        let what = format!("(gr_field){{3, {}, 0, 0, {shape}}}", ty.rank);
        if ty.rank == 0 {
            self.line(&format!("gr_input_boxes(&in[{i}], gr_shapes, {what}, &arg_{i}, 0, 0);"));
        } else {
            self.line(&format!("gr_word rest_{i}[{}];", 1 + ty.rank));
            self.line(&format!("gr_input_boxes(&in[{i}], gr_shapes, {what}, 0, rest_{i}, &arg_{i}.b);"));
            self.line(&format!("arg_{i}.p = rest_{i}[0].p;"));
            for axis in 0..ty.rank {
                self.line(&format!("arg_{i}.d[{axis}] = rest_{i}[{}].i;", axis + 1));
            }
        }
    }

    pub(super) fn cell(&mut self, tag: usize, fields: &[Atom], y: Var, ownership: &mut Ownership, span: Span) {
        let name = self.name(y);
        if fields.is_empty() {
            self.line(&format!("gr_cell *{name} = GR_IMMEDIATE({tag});"));
            return;
        }
        let types: Vec<Type> = fields.iter().map(|a| a.ty()).collect();
        let layout = CellLayout::of(&types);
        let CellLayout { boxes, blocks, words, .. } = layout;
        let place = self.place(span);
        self.line(&format!("gr_cell *{name} = gr_cell_new(self, {tag}, {boxes}, {blocks}, {words}, {place});"));
        for ((field, ty), place) in fields.iter().zip(&types).zip(&layout.places) {
            let text = self.take(*field, ownership);
            let Place { at, rest } = *place;
            if ty.is_array() {
                self.line(&format!("{name}->w[{at}].b = {text}.b;"));
                self.line(&format!("{name}->w[{rest}].p = {text}.p;"));
                for axis in 0..ty.rank as usize {
                    self.line(&format!("{name}->w[{}].i = {text}.d[{axis}];", rest + 1 + axis));
                }
            } else {
                self.line(&format!("{name}->w[{at}].{} = {text};", member(ty.scalar)));
            }
        }
    }

    /// The fields of a cell. Those of a cell that outlives the block are borrowed from it; fields that nobody uses are not even read. Of a cell that is not
    /// used any more they are taken over, if nobody else holds it.
    pub(super) fn unpack(&mut self, cell: Atom, binds: &[Var], ownership: &mut Ownership) {
        let types: Vec<Type> = binds.iter().map(|v| v.ty).collect();
        let layout = CellLayout::of(&types);
        let text = self.atom(cell);
        let emptied = cell.var().is_some_and(|v| ownership.hands_on(v));
        let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
        for (bind, place) in binds.iter().zip(&layout.places) {
            let unused = ownership.is_unused(*bind);
            if unused && !(emptied && bind.ty.is_counted()) {
                continue;
            }
            let (ty, name) = (self.ty(bind.ty), self.name(*bind));
            let Place { at, rest } = *place;
            if bind.ty.is_array() {
                let dims: Vec<String> =
                    (0..bind.ty.rank as usize).map(|axis| format!("{text}->w[{}].i", rest + 1 + axis)).collect();
                self.line(&format!(
                    "{ty} {name} = {{{text}->w[{rest}].p, {text}->w[{at}].b, {{{}}}}};",
                    dims.join(", ")
                ));
            } else {
                self.line(&format!("{ty} {name} = {text}->w[{at}].{};", member(bind.ty.scalar)));
            }
            match bind.ty.is_counted() {
                true if unused => unwanted.push((name, bind.ty)),
                true if emptied => wanted.push((name, bind.ty)),
                true if ownership.holds(*bind) => self.hold(&name, bind.ty),
                _ => {}
            }
        }
        if emptied {
            self.line(&format!("if ({text}->holders == 1) {{"));
            unwanted.iter().for_each(|(field, ty)| self.drop(field, *ty));
            self.line(&format!("gr_free_emptied(self, {text});"));
            self.line("} else {");
            wanted.iter().for_each(|(field, ty)| self.hold(field, *ty));
            self.line(&format!("{text}->holders--;"));
            self.line("}");
        }
    }

    /// `place = merge(place, value)` for a box, which is taken over.
    pub(super) fn merge(&mut self, place: &str, value: &str, shape: Option<ShapeId>) {
        let merge = shape.and_then(|s| self.module.shape(s).merge);
        let Some(merge) = merge else { gradus_source::bug!("boxes are added that have no sum") };
        let function = self.function_name(merge);
        self.line(&format!("{{ gr_cell **to = &{place}, *old = *to;"));
        self.line(&format!("  *to = GR_NIL, *to = {function}(self, old, {value}); }}"));
    }
}

/// The member of a word that holds a scalar.
fn member(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Real => "r",
        Scalar::Int | Scalar::Bool => "i",
        Scalar::Box(_) => "c",
    }
}

/// Whether an element type needs more than a copy of its bytes.
pub(super) fn is_box(ty: Type) -> bool {
    matches!(ty.scalar, Scalar::Box(_))
}

/// `text` as what is stored: boxes are held once more.
pub(super) fn stored(text: &str, ty: Type) -> String {
    if is_box(ty) {
        format!("gr_hold_cell({text})")
    } else {
        text.to_string()
    }
}
