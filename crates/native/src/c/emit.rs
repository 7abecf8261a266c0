//! A flow module as C text: types, functions, entry points.

use super::pieces::SIZES;
use super::scalars;
use crate::cores::Plan;
use crate::flow::*;
use crate::ownership::Ownership;
use crate::pieces::Insides;
use crate::place::Places;
use crate::recursion;
use crate::sole::Sole;
use gradus_runtime::slot::Kind;
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A C file, its header, and the places of its failure numbers.
#[derive(Clone, Debug)]
pub struct Source {
    pub code: String,
    pub header: String,
    pub places: Places,
}

/// Writes a module. `entries` are the functions to be called from outside, with their C names; `plan` says which loops are cut into chunks.
pub fn emit(module: &Module, entries: &[(FunctionId, String)], plan: &Plan) -> Source {
    let mut emitter = Emitter {
        module,
        plan,
        apart: Vec::new(),
        chunked: 0,
        frames: 0,
        uses_products: false,
        so_far: FxHashSet::default(),
        rows: FxHashMap::default(),
        in_place: FxHashMap::default(),
        sole: Sole::of(module),
        in_lanes: false,
        loops_around: 0,
        bits: FxHashMap::default(),
        text: String::new(),
        depth: 0,
        names: FxHashMap::default(),
        types: BTreeSet::new(),
        outside: super::cells::outside(module, entries),
        pointers: FxHashSet::default(),
        places: Places::default(),
        recursive: recursion::recursive(module),
        in_recursion: false,
        insides: Insides::new(SIZES),
    };
    let mut called = Vec::new();
    module.functions.iter().for_each(|function| walk::callees(&function.body, &mut called));
    for id in (0..module.functions.len()).map(FunctionId) {
        let signature = emitter.signature(id);
        // Inside of what calls `setjmp`, C compilers keep less in registers.
        let apart =
            emitter.leaves_by_failure(id) && entries.iter().any(|(entry, _)| *entry == id) && !called.contains(&id);
        emitter.line(&format!("{}{signature};", if apart { "__attribute__((noinline)) " } else { "" }));
    }
    let prototypes = std::mem::take(&mut emitter.text);
    for id in 0..module.functions.len() {
        emitter.function(FunctionId(id));
    }
    for (id, name) in entries {
        emitter.entry(*id, name);
    }
    let mut header = gradus_runtime::C_HEADER.to_string();
    for (_, name) in entries {
        let _ = writeln!(header, "int {name}(const gradus_slot *in, gradus_slot *out);");
    }
    let mut code = format!("{}{}\n", gradus_runtime::C_HEADER, gradus_runtime::C_PRELUDE);
    if !emitter.outside.is_empty() {
        code.push_str(gradus_runtime::C_CELLS);
        code.push_str(&super::cells::tables(module, &emitter.outside));
    }
    for ty in &emitter.types {
        let _ = match ty.scalar {
            Scalar::Box(_) => writeln!(code, "GR_BOX_ARRAY({}, {})", type_name(*ty), ty.rank),
            Scalar::Real | Scalar::Int | Scalar::Bool => {
                writeln!(code, "GR_ARRAY({}, {}, {})", type_name(*ty), scalars::c_type(ty.scalar), ty.rank)
            }
        };
    }
    if emitter.chunked > 0 || emitter.uses_products {
        code.push_str(gradus_runtime::C_CHUNKS);
    }
    if emitter.uses_products {
        code.push_str(gradus_runtime::C_PRODUCTS);
    }
    code.push_str(&prototypes);
    emitter.apart.iter().for_each(|body| code.push_str(body));
    code.push_str(&emitter.text);
    code.push_str(&failure_text(&emitter.places));
    Source { code, header, places: emitter.places }
}

fn failure_text(places: &Places) -> String {
    let mut text = String::from("\nstatic const char *const gr_places[] = {\n  \"\",\n");
    for place in places.iter() {
        let words = place.failure.map_or(String::new(), |f| f.key().replace('_', " "));
        let Span { file, start, end } = place.span;
        let _ = writeln!(text, "  \"{words} (file {}, bytes {start} to {end})\",", file.0);
    }
    text.push_str(
        "};\nconst char *gradus_failure(int code) { return code & 7 ? gr_kinds[code & 7] : gr_places[code >> 3]; }\n",
    );
    text.push_str("const char *gradus_place(int code) { return gr_places[code >> 3]; }\n");
    text
}

pub(super) fn type_name(ty: Type) -> String {
    if ty.rank == 0 {
        return scalars::c_type(ty.scalar).to_string();
    }
    let letter = match ty.scalar {
        Scalar::Real => 'r',
        Scalar::Int => 'i',
        Scalar::Bool => 'b',
        Scalar::Box(_) => 'x',
    };
    format!("gr_{letter}{}", ty.rank)
}

/// The row of a larger array that an array becomes.
#[derive(Clone)]
pub(super) struct RowOf {
    pub(super) array: Var,
    pub(super) row: String,
    /// Whether it is the first row that decides the shape, and this is to be the first.
    pub(super) decides: bool,
}

pub(super) struct Emitter<'a> {
    pub(super) module: &'a Module,
    pub(super) plan: &'a Plan,
    /// Functions that run chunks of loops or pieces of blocks; they stand before those that call them.
    pub(super) apart: Vec<String>,
    /// How many loops are cut into chunks.
    pub(super) chunked: usize,
    /// How many blocks are cut into pieces.
    pub(super) frames: usize,
    /// Whether matrices are multiplied.
    pub(super) uses_products: bool,
    /// The largest or smallest numbers so far, in loops that look for them.
    pub(super) so_far: FxHashSet<Var>,
    pub(super) sole: Sole,
    /// Whether what is written now is the body of a loop that runs in vector lanes.
    pub(super) in_lanes: bool,
    /// How many loops of its function are around what is written now.
    pub(super) loops_around: usize,
    /// Integers that are known to be small: how many bits they have at most. Sums of them do not overflow; where a C compiler knows this of places in
    /// arrays, lanes are filled from neighbours at once.
    pub(super) bits: FxHashMap<Var, u32>,
    /// Arrays that are made where they will be needed.
    pub(super) rows: FxHashMap<Var, RowOf>,
    /// Arrays that may be in the place of others.
    pub(super) in_place: FxHashMap<Var, Var>,
    pub(super) text: String,
    pub(super) depth: usize,
    /// Numbers in order of appearance, so that the same program gives the same text and is found in the cache.
    names: FxHashMap<Var, String>,
    types: BTreeSet<Type>,
    /// The shapes of boxes that entry points take or give.
    pub(super) outside: BTreeSet<ShapeId>,
    /// Parameters that accumulate one number.
    pub(super) pointers: FxHashSet<Var>,
    pub(super) places: Places,
    recursive: Vec<bool>,
    /// Whether the function that is written now may call itself.
    pub(super) in_recursion: bool,
    /// Of the function that is written now.
    pub(super) insides: Insides,
}

impl Emitter<'_> {
    /// Begins to write elsewhere; gives what there is here.
    pub(super) fn elsewhere(&mut self) -> (String, usize) {
        (std::mem::take(&mut self.text), std::mem::replace(&mut self.depth, 0))
    }

    /// Goes on where it was before; gives what was written elsewhere.
    pub(super) fn back(&mut self, before: (String, usize)) -> String {
        self.depth = before.1;
        std::mem::replace(&mut self.text, before.0)
    }

    pub(super) fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{:width$}{text}", "", width = 2 * self.depth);
    }

    /// Memory for an array that has its lengths.
    pub(super) fn make(&mut self, array: Var, span: Span) {
        let (ty, name, place) = (self.ty(array.ty), self.name(array), self.place(span));
        let Some(RowOf { array: whole, row, decides }) = self.rows.get(&array).cloned() else {
            return match self.in_place.get(&array).copied() {
                Some(old) => {
                    let old = self.name(old);
                    self.line(&format!("{ty}_new_for(self, &{name}, {old}, {place});"));
                }
                None => self.line(&format!("{ty}_new(self, &{name}, {place});")),
            };
        };
        if decides {
            self.make_rows(whole, &name, span);
        }
        let whole = self.name(whole);
        self.line(&format!("{ty}_new_at(self, &{name}, {whole}.p, {whole}.b, {whole}.d, {row}, {place});"));
    }

    /// Memory for an array of rows, if it has none. The first row decides the shape.
    pub(super) fn make_rows(&mut self, array: Var, row: &str, span: Span) {
        let name = self.name(array);
        self.line(&format!("if (!{name}.p) {{"));
        self.depth += 1;
        self.line(&format!("memcpy({name}.d + 1, {row}.d, sizeof {row}.d);"));
        self.make(array, span);
        self.depth -= 1;
        self.line("}");
    }

    pub(super) fn name(&mut self, var: Var) -> String {
        let number = self.names.len();
        self.names.entry(var).or_insert_with(|| format!("{}_{number}", var.name)).clone()
    }

    pub(super) fn ty(&mut self, ty: Type) -> String {
        let mut plain = ty.frozen();
        // All boxes look the same in C.
        if let Scalar::Box(shape) = &mut plain.scalar {
            *shape = ShapeId(0);
        }
        if plain.is_array() {
            self.types.insert(plain);
        }
        type_name(plain)
    }

    pub(super) fn atom(&mut self, atom: Atom) -> String {
        match atom {
            Atom::Var(v) => self.name(v),
            Atom::Real(r) => scalars::real(r),
            Atom::Int(i) => scalars::int(i),
            Atom::Bool(b) => i32::from(b).to_string(),
            Atom::Nil(_) => "GR_NIL".into(),
        }
    }

    /// The failure number of a check.
    pub(super) fn site(&mut self, failure: Failure, span: Span) -> i32 {
        Kind::Check.at(self.places.number(Some(failure), span))
    }

    /// A place where memory, stack or steps can run out: the failure number but for the kind.
    pub(super) fn place(&mut self, span: Span) -> i32 {
        Kind::Check.at(self.places.number(None, span))
    }

    pub(super) fn function_name(&self, id: FunctionId) -> String {
        format!("gr_{}_{}", id.0, self.module.function(id).name)
    }

    /// The thread comes first. Parameters are borrowed; results belong to the caller. The first is returned, others are written through pointers.
    fn signature(&mut self, id: FunctionId) -> String {
        let function = self.module.function(id);
        let mut params = vec!["gr_thread *self".to_string()];
        for param in &function.params {
            let (ty, name) = (self.ty(param.ty), self.name(*param));
            let mut pointer = "";
            if param.ty.accumulator && param.ty.rank == 0 {
                self.pointers.insert(*param);
                pointer = " *restrict";
            }
            params.push(format!("{ty}{pointer} {name}"));
        }
        for (i, result) in function.results.iter().enumerate().skip(1) {
            params.push(format!("{} *result_{i}", self.ty(*result)));
        }
        let first = function.results.first().map_or("void".to_string(), |ty| self.ty(*ty));
        // Calls that a C compiler writes out, some levels deep, cost less than what short functions do. GCC needs to be asked; with cells there is more
        // to do, and it would take long.
        let mut types = function.params.iter().map(|param| param.ty).chain(function.results.iter().copied());
        let inline = if self.recursive[id.0] && types.all(|ty| ty.shape().is_none()) { "inline " } else { "" };
        format!("static {inline}{first} {}({})", self.function_name(id), params.join(", "))
    }

    fn function(&mut self, id: FunctionId) {
        let function = self.module.function(id);
        let signature = self.signature(id);
        self.insides = Insides::new(SIZES);
        self.insides.note(&function.body, self.plan);
        self.in_recursion = self.recursive[id.0];
        self.line(&format!("\n{signature} {{"));
        self.depth += 1;
        if self.recursive[id.0] {
            let place = self.place(function.body.stmts.first().map_or(Span::default(), |s| s.span));
            self.line(&format!("GR_CHECK_STACK({place});"));
            self.line(&format!("GR_STEPS(1, {place});"));
        }
        let mut targets: Vec<String> = (0..function.results.len()).map(|i| format!("*result_{i}")).collect();
        if let (Some(target), Some(ty)) = (targets.first_mut(), function.results.first()) {
            let ty = self.ty(*ty);
            self.line(&format!("{ty} result;"));
            *target = "result".to_string();
        }
        self.block(&function.body, self.module.taken_over(id), &targets);
        if !targets.is_empty() {
            self.line("return result;");
        }
        self.depth -= 1;
        self.line("}");
    }

    pub(super) fn call(&mut self, id: FunctionId, args: &[Atom], binds: &[Var], ownership: &mut Ownership) {
        let taken = self.module.taken_over(id).len();
        let mut list = vec!["self".to_string()];
        for (at, arg) in args.iter().enumerate() {
            let text = if at < taken { self.take(*arg, ownership) } else { self.atom(*arg) };
            let own_sum = |v: Var| v.ty.accumulator && v.ty.rank == 0 && !self.pointers.contains(&v);
            list.push(if arg.var().is_some_and(own_sum) { format!("&{text}") } else { text });
        }
        let mut first = String::new();
        for (i, var) in binds.iter().enumerate() {
            let (ty, name) = (self.ty(var.ty), self.name(*var));
            if i == 0 {
                first = format!("{ty} {name} = ");
            } else {
                self.line(&format!("{ty} {name};"));
                list.push(format!("&{name}"));
            }
        }
        let name = self.function_name(id);
        self.line(&format!("{first}{name}({});", list.join(", ")));
    }

    /// Whether an entry has to come back from a failure inside.
    fn leaves_by_failure(&self, id: FunctionId) -> bool {
        !self.module.shapes.is_empty() || recursion::can_fail(self.module, id)
    }

    fn entry(&mut self, id: FunctionId, name: &str) {
        let function = self.module.function(id);
        self.line(&format!("\nint {name}(const gradus_slot *in, gradus_slot *out) {{"));
        self.depth += 1;
        let (mut args, mut inputs) = (vec!["self".to_string()], Vec::new());
        for (i, param) in function.params.iter().enumerate() {
            let ty = self.ty(param.ty);
            args.push(match (param.ty.rank, param.ty.scalar) {
                (0, Scalar::Real) => format!("in[{i}].value.real"),
                (0, Scalar::Int) => format!("in[{i}].value.integer"),
                (0, Scalar::Bool) => format!("in[{i}].value.integer != 0"),
                (_, Scalar::Box(shape)) => {
                    inputs.push((i, param.ty, shape));
                    format!("arg_{i}")
                }
                _ => format!("{ty}_input(&in[{i}])"),
            });
        }
        for (i, result) in function.results.iter().enumerate() {
            let ty = self.ty(*result);
            self.line(&format!("{ty} result_{i};"));
            if i > 0 {
                args.push(format!("&result_{i}"));
            }
        }
        self.line("gr_thread *self = gr_here();");
        let heap = !self.module.shapes.is_empty();
        if self.leaves_by_failure(id) {
            self.line("jmp_buf failure;");
            self.line("gr_start(&failure, __builtin_frame_address(0));");
            self.line("int code = setjmp(failure);");
            self.line("if (code) {");
            self.line("  gr_free_live();");
            if heap {
                self.line("  gr_cells_reset();");
            }
            self.line("  return code;");
            self.line("}");
        }
        for (i, ty, shape) in &inputs {
            self.input_boxes(*i, *ty, *shape);
        }
        let function_name = self.function_name(id);
        let first = if function.results.is_empty() { "" } else { "result_0 = " };
        self.line(&format!("{first}{function_name}({});", args.join(", ")));
        for (i, ty, _) in &inputs {
            self.drop(&format!("arg_{i}"), *ty);
        }
        let place = self.place(function.body.stmts.last().map_or(Span::default(), |s| s.span));
        for (i, result) in function.results.iter().enumerate() {
            let ty = self.ty(*result);
            let text = match (result.rank, result.scalar) {
                (0, Scalar::Real) => format!("out[{i}].value.real = result_{i};"),
                (0, Scalar::Int | Scalar::Bool) => format!("out[{i}].value.integer = result_{i};"),
                (rank, Scalar::Box(shape)) => {
                    let (data, dims) = match rank {
                        0 => (format!("&result_{i}"), "0".to_string()),
                        _ => (format!("result_{i}.p"), format!("result_{i}.d")),
                    };
                    format!("gr_output_boxes(&out[{i}], {data}, {rank}, {dims}, {shape}, gr_shapes);")
                }
                _ => format!("{ty}_output(self, &out[{i}], result_{i}, {place});"),
            };
            self.line(&text);
        }
        if heap {
            for (i, result) in function.results.iter().enumerate() {
                if result.shape().is_some() {
                    self.drop(&format!("result_{i}"), *result);
                }
            }
            self.line("if (self->used > self->apart) gr_free_live();");
            self.line("gr_cells_reset();");
        }
        self.line("return 0;");
        self.depth -= 1;
        self.line("}");
    }
}
