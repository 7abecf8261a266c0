//! The last pass: traces that are taken apart in the reverse order of their making go on a stack, the *tape*, instead of the heap.
//!
//! A trace is what a forward sweep keeps for the backward sweep (see `adjoint::traced`). As a cell it has a header, a count, pointers
//! to the traces inside, and is let go on its own. On the tape only its fields are left: making a cell pushes them, taking it apart pops
//! them, and the traces inside lie below it. Of the box itself its tag remains, and not even that if nobody asks for it.
//!
//! Whether the order is right is found out by [`order`] from the program as it is, so nothing depends on how it came about; where it is not
//! (a trace that is used twice, or kept in a closure, as in derivatives of derivatives) there are cells as before.

mod order;

use crate::flow::walk::for_each_operand;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};

/// What a trace on the tape is known by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Nothing,
    /// Whether its tag is 1; it can only be that or 0.
    Bool,
    /// Its tag.
    Int,
}

/// Puts the traces of a module on the tape, as far as their order allows.
pub fn run(module: &mut Module) {
    let shapes = order::find(module);
    if shapes.is_empty() {
        return;
    }
    let (mut asked, mut nil) = (FxHashSet::default(), FxHashSet::default());
    for function in &module.functions {
        tags_asked(&function.body, &mut asked);
        for_each_operand(&function.body, &mut |a| {
            if let Atom::Nil(shape) = a {
                nil.insert(shape);
            }
        });
    }
    let form = |shape: ShapeId| match shape {
        _ if !asked.contains(&shape) => Form::Nothing,
        _ if module.shape(shape).cells.len() <= 2 && !nil.contains(&shape) => Form::Bool,
        _ => Form::Int,
    };
    let mut rewrite =
        Rewrite { forms: shapes.into_iter().map(|s| (s, form(s))).collect(), known: FxHashMap::default() };
    for function in &mut module.functions {
        function.params = function.params.iter().filter_map(|v| rewrite.var(*v)).collect();
        function.results = function.results.iter().filter_map(|t| rewrite.ty(*t)).collect();
        rewrite.block(&mut function.body);
    }
}

/// The shapes of boxes whose tag somebody looks at.
fn tags_asked(block: &Block, found: &mut FxHashSet<ShapeId>) {
    walk::for_each_stmt(block, &mut |stmt| {
        if let Op::Tag { cell } = &stmt.op {
            found.extend(cell.ty().shape());
        }
    });
}

struct Rewrite {
    /// Of the shapes that go on the tape.
    forms: FxHashMap<ShapeId, Form>,
    /// Variables that stand for something else: new traces for their tags, and tags for traces.
    known: FxHashMap<Var, Atom>,
}

impl Rewrite {
    fn form(&self, ty: Type) -> Option<Form> {
        ty.shape().and_then(|s| self.forms.get(&s).copied())
    }

    /// The new type; nothing if there is no such value any more.
    fn ty(&self, ty: Type) -> Option<Type> {
        match self.form(ty) {
            None => Some(ty),
            Some(Form::Nothing) => None,
            Some(Form::Bool) => Some(Type::BOOL),
            Some(Form::Int) => Some(Type::INT),
        }
    }

    fn var(&self, var: Var) -> Option<Var> {
        self.ty(var.ty).map(|ty| Var { ty, ..var })
    }

    fn vars(&self, vars: &[Var]) -> Vec<Var> {
        vars.iter().filter_map(|v| self.var(*v)).collect()
    }

    fn atom(&self, atom: Atom) -> Option<Atom> {
        match atom {
            Atom::Var(v) => match self.known.get(&v) {
                Some(known) => self.var(v).map(|_| *known),
                None => self.var(v).map(Atom::Var),
            },
            Atom::Nil(shape) => match self.forms.get(&shape) {
                None => Some(atom),
                Some(Form::Nothing) => None,
                Some(Form::Bool) => gradus_source::bug!("a trace that is never nil is nil"),
                Some(Form::Int) => Some(Atom::Int(-1)),
            },
            Atom::Real(_) | Atom::Int(_) | Atom::Bool(_) => Some(atom),
        }
    }

    fn atoms(&self, atoms: &[Atom]) -> Vec<Atom> {
        atoms.iter().filter_map(|a| self.atom(*a)).collect()
    }

    fn block(&mut self, block: &mut Block) {
        with_stack(|| {
            let mut out = Vec::with_capacity(block.stmts.len());
            for stmt in std::mem::take(&mut block.stmts) {
                out.extend(self.stmt(stmt));
            }
            block.stmts = out;
            block.results = self.atoms(&block.results);
        })
    }

    fn stmt(&mut self, stmt: Stmt) -> Option<Stmt> {
        let Stmt { binds, op, span } = stmt;
        let (binds, op) = match op {
            Op::Cell { shape, tag, fields } if self.forms.contains_key(&shape) => {
                let now = match self.forms[&shape] {
                    Form::Bool => Atom::Bool(tag == 1),
                    Form::Nothing | Form::Int => Atom::Int(tag as i64),
                };
                self.known.extend(binds.into_iter().map(|v| (v, now)));
                let values = self.atoms(&fields);
                if values.is_empty() {
                    return None;
                }
                (Vec::new(), Op::Push { values })
            }
            Op::Unpack { cell, .. } if self.form(cell.ty()).is_some() => {
                let binds = self.vars(&binds);
                if binds.is_empty() {
                    return None;
                }
                let types = binds.iter().map(|v| v.ty).collect();
                (binds, Op::Pop { types })
            }
            Op::Tag { cell } if self.form(cell.ty()).is_some() => match (self.form(cell.ty()), self.atom(cell)) {
                (Some(Form::Bool), Some(cond)) => {
                    (binds, Op::Select { cond, then: Atom::Int(1), otherwise: Atom::Int(0) })
                }
                (_, Some(tag)) => {
                    self.known.extend(binds.into_iter().map(|v| (v, tag)));
                    return None;
                }
                (_, None) => gradus_source::bug!("the tag of a trace is asked for and not there"),
            },
            Op::Call { function, args } => (self.vars(&binds), Op::Call { function, args: self.atoms(&args) }),
            Op::For(mut l) => {
                l.carried = self.carried(&l.carried);
                l.count = self.atom(l.count).unwrap_or(l.count);
                self.block(&mut l.body);
                (self.vars(&binds), Op::For(l))
            }
            Op::While(mut l) => {
                l.carried = self.carried(&l.carried);
                self.block(&mut l.body);
                (self.vars(&binds), Op::While(l))
            }
            mut op => {
                op.for_each_operand_mut(&mut |a| {
                    if let Some(new) = self.atom(*a) {
                        *a = new;
                    }
                });
                op.blocks_mut().for_each(|inner| self.block(inner));
                (self.vars(&binds), op)
            }
        };
        Some(Stmt { binds, op, span })
    }

    fn carried(&self, carried: &[(Var, Atom)]) -> Vec<(Var, Atom)> {
        carried.iter().filter_map(|(var, init)| Some((self.var(*var)?, self.atom(*init)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A product over numbers that are counted down, in two halves, and how they are used.
    fn program(middle: &str) -> String {
        format!(
            "\
shape 0 trace traced = () | (real, real, box0)
shape 1 closure = (box0)

fun product_fwd(n: int, x: real) -> (real, box0) {{
  end = eq n 0
  y, trace = if end {{
    none = cell box0 0
    yield 1.0 none
  }} else {{
    m = isub n 1
    r, inner = call product_fwd m x
    p = mul r x
    whole = cell box0 1 r x inner
    yield p whole
  }}
  return y trace
}}

fun product_back(trace: box0, y_adj: real) -> (real) {{
  tag = tag trace
  end = eq tag 0
  x_adj = if end {{
    yield 0.0
  }} else {{
    r, x, inner = unpack trace 1
    own = mul r y_adj
    r_adj = mul x y_adj
    rest = call product_back inner r_adj
    sum = add own rest
    yield sum
  }}
  return x_adj
}}

fun slope(n: int, x: real) -> (real) {{
{middle}}}
"
        )
    }

    fn taped(text: &str) -> String {
        let mut module = read::module(text).expect("reads");
        check::module(&module).expect("is well formed");
        run(&mut module);
        check::module(&module).expect("is still well formed");
        print::module(&module)
    }

    const ONCE: &str = "  y, t = call product_fwd n x\n  a = call product_back t 1.0\n  return a\n";

    #[test]
    fn a_trace_that_is_used_once_is_its_fields() {
        let found = taped(&program(ONCE));
        for line in [
            "fun product_fwd(n: int, x: real) -> (real, bool) {",
            "    push r x inner\n    yield p true",
            "fun product_back(trace: bool, y_adj: real) -> (real) {",
            "  tag = select trace 1 0",
            "    r, x, inner = pop real real bool",
        ] {
            assert!(found.contains(line), "no {line} in\n{found}");
        }
        assert_eq!(found, taped(&found));
    }

    #[test]
    fn traces_in_order() {
        let order = |first: &str, second: &str| {
            let make = "  y, t = call product_fwd n x\n  z, u = call product_fwd n y\n";
            let take = format!("  a = call product_back {first} 1.0\n  b = call product_back {second} a\n  return b\n");
            taped(&program(&format!("{make}{take}"))).contains("push")
        };
        assert!(order("u", "t"));
        assert!(!order("t", "u"));
    }

    #[test]
    fn other_traces_stay_cells() {
        let twice =
            "  y, t = call product_fwd n x\n  a = call product_back t 1.0\n  b = call product_back t a\n  return b\n";
        let never = "  y, t = call product_fwd n x\n  return y\n";
        let one_side = "  y, t = call product_fwd n x\n  c = lt y 1.0\n  b = if c {\n    a = call product_back t 1.0\n    yield a\n  } else {\n    yield y\n  }\n  return b\n";
        let kept = "  y, t = call product_fwd n x\n  f = cell box1 0 t\n  u = unpack f 0\n  a = call product_back u 1.0\n  return a\n";
        let each_time = "  y, t = call product_fwd n x\n  b = for i < n with a: real = y {\n    c = call product_back t a\n    yield c\n  }\n  return b\n";
        let collected = "  all = for i < n {\n    y, t = call product_fwd n x\n    collect t\n  }\n  t = get all 0\n  a = call product_back t 1.0\n  return a\n";
        for middle in [twice, never, one_side, kept, each_time, collected] {
            let text = program(middle);
            assert_eq!(taped(&text), print::module(&read::module(&text).expect("reads")), "{middle}");
        }
    }

    #[test]
    fn both_sides_of_a_branch() {
        let sides = |otherwise: &str| {
            let middle = format!(
                "  y, t = call product_fwd n x\n  c = lt y 1.0\n  b = if c {{\n    a = call product_back t 1.0\n    yield a\n  \
                 }} else {{\n{otherwise}  }}\n  return b\n"
            );
            taped(&program(&middle)).contains("push")
        };
        assert!(sides("    d = call product_back t y\n    yield d\n"));
        assert!(!sides("    d = call product_back t y\n    e = call product_back t d\n    yield e\n"));
    }
}
