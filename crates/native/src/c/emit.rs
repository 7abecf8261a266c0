//! A flow module as C text: types, functions, entry points.

use super::scalars;
use crate::flow::*;
use gradus_source::Span;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::fmt::Write;

/// A place where the program can fail. The failure number of `sites[i]` is `i + FIRST_SITE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    pub failure: Failure,
    pub span: Span,
}

/// Smaller numbers are taken: all went well, out of memory, recursion too deep.
pub const FIRST_SITE: usize = 3;

/// The failure number of recursion that needs more stack than there is.
pub const STACK: i32 = 2;

/// A C file, its header, and what its failure numbers mean.
#[derive(Clone, Debug)]
pub struct Source {
    pub code: String,
    pub header: String,
    pub sites: Vec<Site>,
}

/// Writes a module. `entries` are the functions to be called from outside, with their C names.
pub fn emit(module: &Module, entries: &[(FunctionId, String)]) -> Source {
    let mut emitter = Emitter {
        module,
        text: String::new(),
        depth: 0,
        names: FxHashMap::default(),
        types: BTreeSet::new(),
        sites: Vec::new(),
        outside: super::cells::outside(module, entries),
    };
    for id in 0..module.functions.len() {
        let signature = emitter.signature(FunctionId(id));
        emitter.line(&format!("{signature};"));
    }
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
    code.push_str(&emitter.text);
    code.push_str(&failure_text(&emitter.sites));
    Source { code, header, sites: emitter.sites }
}

fn failure_text(sites: &[Site]) -> String {
    let mut text = String::from("\nconst char *gradus_failure(int code) {\n  static const char *const texts[] = {\n");
    text.push_str("    \"\",\n    \"out of memory\",\n    \"recursion too deep\",\n");
    for site in sites {
        let words = site.failure.key().replace('_', " ");
        let Span { file, start, end } = site.span;
        let _ = writeln!(text, "    \"{words} (file {}, bytes {start} to {end})\",", file.0);
    }
    text.push_str("  };\n  return texts[code];\n}\n");
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

pub(super) struct Emitter<'a> {
    pub(super) module: &'a Module,
    pub(super) text: String,
    pub(super) depth: usize,
    /// Numbers in order of appearance, so that the same program gives the same text and is found in the cache.
    names: FxHashMap<Var, String>,
    types: BTreeSet<Type>,
    sites: Vec<Site>,
    /// The shapes of boxes that entry points take or give.
    pub(super) outside: BTreeSet<ShapeId>,
}

impl Emitter<'_> {
    pub(super) fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{:width$}{text}", "", width = 2 * self.depth);
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

    pub(super) fn site(&mut self, failure: Failure, span: Span) -> usize {
        let site = Site { failure, span };
        let at = self.sites.iter().position(|s| *s == site).unwrap_or_else(|| {
            self.sites.push(site);
            self.sites.len() - 1
        });
        at + FIRST_SITE
    }

    pub(super) fn function_name(&self, id: FunctionId) -> String {
        format!("gr_{}_{}", id.0, self.module.function(id).name)
    }

    /// Parameters are borrowed; results are written through pointers and belong to the caller.
    fn signature(&mut self, id: FunctionId) -> String {
        let function = self.module.function(id);
        let mut params = Vec::new();
        for param in &function.params {
            let (ty, name) = (self.ty(param.ty), self.name(*param));
            let pointer = if param.ty.accumulator && param.ty.rank == 0 { " *restrict" } else { "" };
            params.push(format!("{ty}{pointer} {name}"));
        }
        for (i, result) in function.results.iter().enumerate() {
            params.push(format!("{} *result_{i}", self.ty(*result)));
        }
        let list = if params.is_empty() { "void".to_string() } else { params.join(", ") };
        format!("static void {}({list})", self.function_name(id))
    }

    fn function(&mut self, id: FunctionId) {
        let function = self.module.function(id);
        let signature = self.signature(id);
        self.line(&format!("\n{signature} {{"));
        self.depth += 1;
        if is_recursive(self.module, id) {
            self.line("GR_CHECK_STACK();");
        }
        let targets: Vec<String> = (0..function.results.len()).map(|i| format!("*result_{i}")).collect();
        self.block(&function.body, &[], &targets);
        self.depth -= 1;
        self.line("}");
    }

    pub(super) fn call(&mut self, id: FunctionId, args: &[Atom], binds: &[Var]) {
        let mut list = Vec::new();
        for arg in args {
            let text = self.atom(*arg);
            let scalar_accumulator = matches!(arg, Atom::Var(v) if v.ty.accumulator && v.ty.rank == 0);
            list.push(if scalar_accumulator { format!("&{text}") } else { text });
        }
        for var in binds {
            let (ty, name) = (self.ty(var.ty), self.name(*var));
            self.line(&format!("{ty} {name};"));
            list.push(format!("&{name}"));
        }
        let name = self.function_name(id);
        self.line(&format!("{name}({});", list.join(", ")));
    }

    fn entry(&mut self, id: FunctionId, name: &str) {
        let function = self.module.function(id);
        self.line(&format!("\nint {name}(const gradus_slot *in, gradus_slot *out) {{"));
        self.depth += 1;
        let (mut args, mut inputs) = (Vec::new(), Vec::new());
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
            args.push(format!("&result_{i}"));
        }
        let heap = !self.module.shapes.is_empty();
        if heap || self.can_fail(id) {
            self.line("jmp_buf failure;");
            self.line("gr_self.failure = &failure;");
            self.line("gr_self.stack_end = (char *)__builtin_frame_address(0) - gr_stack;");
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
        self.line(&format!("{function_name}({});", args.join(", ")));
        for (i, ty, _) in &inputs {
            self.drop(&format!("arg_{i}"), *ty);
        }
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
                    format!("gr_output_boxes(&out[{i}], {data}, {rank}, {dims}, {}, gr_shapes);", shape.0)
                }
                _ => format!("{ty}_output(&out[{i}], result_{i});"),
            };
            self.line(&text);
        }
        if heap {
            for (i, result) in function.results.iter().enumerate() {
                if result.is_array() && result.shape().is_some() {
                    self.line(&format!("gr_drop(result_{i}.b);"));
                }
            }
            self.line("gr_cells_reset();");
        }
        self.line("return 0;");
        self.depth -= 1;
        self.line("}");
    }

    /// Whether a function allocates, checks, or calls: otherwise it needs no place to return to on failure.
    fn can_fail(&self, id: FunctionId) -> bool {
        fn block_can_fail(block: &Block) -> bool {
            block.stmts.iter().any(|stmt| {
                let arrays = stmt.binds.iter().any(|v| v.ty.is_counted());
                arrays
                    || matches!(stmt.op, Op::Check { .. } | Op::Call { .. })
                    || stmt.op.blocks().iter().any(|(b, _)| block_can_fail(b))
            })
        }
        let function = self.module.function(id);
        function.results.iter().any(|t| t.is_array()) || block_can_fail(&function.body)
    }
}

/// Whether a function can come to call itself.
pub fn is_recursive(module: &Module, id: FunctionId) -> bool {
    let mut next = Vec::new();
    callees(&module.function(id).body, &mut next);
    let mut seen: Vec<FunctionId> = Vec::new();
    while let Some(callee) = next.pop() {
        if callee == id {
            return true;
        }
        if !seen.contains(&callee) {
            seen.push(callee);
            callees(&module.function(callee).body, &mut next);
        }
    }
    false
}

fn callees(block: &Block, found: &mut Vec<FunctionId>) {
    gradus_core::traverse::with_stack(|| {
        for stmt in &block.stmts {
            if let Op::Call { function, .. } = &stmt.op {
                found.push(*function);
            }
            stmt.op.blocks().iter().for_each(|(b, _)| callees(b, found));
        }
    })
}
