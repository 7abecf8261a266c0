//! What is there before any module: the primitives by their names, the derivative forms, the builtin types.

use crate::declared::Declared;
use crate::names::{Names, TypeRef, Value};
use crate::scheme::Closed;
use crate::store::{Node, Size, Ty};
use gradus_core::prim::Fixity;
use gradus_core::{Constraint, DeriveOp, Prim, TypeVar};
use rustc_hash::FxHashMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Builtins {
    pub names: Names,
    prims: FxHashMap<Prim, Arc<Closed>>,
    derives: FxHashMap<DeriveOp, Arc<Closed>>,
}

pub const DERIVES: [(&str, DeriveOp); 11] = [
    ("grad", DeriveOp::Grad),
    ("value_and_grad", DeriveOp::ValueAndGrad),
    ("vjp", DeriveOp::Vjp),
    ("jvp", DeriveOp::Jvp),
    ("pullback", DeriveOp::Pullback),
    ("linearize", DeriveOp::Linearize),
    ("jacobian", DeriveOp::Jacobian),
    ("hessian", DeriveOp::Hessian),
    ("hvp", DeriveOp::Hvp),
    ("diff", DeriveOp::Diff),
    ("taylor", DeriveOp::Taylor),
];

impl Builtins {
    pub fn new(declared: &Declared) -> Self {
        let mut names = Names::default();
        let mut prims = FxHashMap::default();
        for prim in Prim::ALL.iter().copied() {
            let info = prim.info();
            if info.fixity == Fixity::Function {
                names.values.insert(info.name.into(), Value::Prim(prim));
            }
            prims.insert(prim, Arc::new(prim_scheme(declared, prim)));
        }
        let mut derives = FxHashMap::default();
        for (name, op) in DERIVES {
            names.values.insert(name.into(), Value::Derive(op));
            derives.insert(op, Arc::new(derive_scheme(op)));
        }
        for id in declared.ids() {
            let ty = declared.get(id);
            names.types.insert(ty.name.clone(), TypeRef::Declared(id));
            for tag in 0..declared.arities(id).len() {
                names.constructors.insert(declared.constructor_name(id, tag), (id, tag));
            }
        }
        let constants =
            [("real", Ty::REAL), ("int", Ty::INT), ("bool", Ty::BOOL), ("string", Ty::STRING), ("unit", Ty::UNIT)];
        for (name, ty) in constants {
            names.types.insert(name.into(), TypeRef::Constant(ty));
        }
        Builtins { names, prims, derives }
    }

    pub fn prim(&self, prim: Prim) -> Arc<Closed> {
        self.prims.get(&prim).cloned().unwrap_or_default()
    }

    pub fn derive(&self, op: DeriveOp) -> Arc<Closed> {
        self.derives.get(&op).cloned().unwrap_or_default()
    }
}

/// The type of a primitive in the table, with the sizes that the table does not mention: each array parameter has a size of its
/// own, `set` keeps it, and `build n f` has size `n`.
fn prim_scheme(declared: &Declared, prim: Prim) -> Closed {
    let info = prim.info();
    let mut closed = Closed::default();
    let vars: Vec<TypeVar> = info.scheme.vars.iter().map(|(v, _)| v.clone()).collect();
    for (var, constraint) in &info.scheme.vars {
        closed.add_var(var.clone(), *constraint == Constraint::Data);
    }
    let size = |closed: &mut Closed, ty: Ty, size: Size| match closed.node(ty) {
        Node::Array(element, _) => closed.push(Node::Array(element, size)),
        _ => ty,
    };
    let mut params = Vec::new();
    for param in &info.params {
        let ty = declared.import(&mut closed, &vars, param);
        let ty = match closed.node(ty) {
            Node::Array(..) => {
                closed.sizes.push("n".into());
                let own = Size::Rigid(closed.sizes.len() as u32 - 1);
                size(&mut closed, ty, own)
            }
            _ => ty,
        };
        params.push(ty);
    }
    let mut result = declared.import(&mut closed, &vars, &info.result);
    match prim {
        Prim::Set => result = size(&mut closed, result, Size::Rigid(0)),
        Prim::Build => {
            closed.sizes.push("n".into());
            closed.size_param = Some((0, 0));
            result = size(&mut closed, result, Size::Rigid(0));
        }
        _ => {}
    }
    let root = closed.fun(&params, result);
    closed.roots.push(root);
    closed.finish()
}

/// The types of the derivative forms; inputs and outputs are data.
fn derive_scheme(op: DeriveOp) -> Closed {
    let mut c = Closed::default();
    let (a, b) = match op {
        DeriveOp::Diff | DeriveOp::Taylor => (Ty::REAL, Ty::REAL),
        DeriveOp::Grad | DeriveOp::ValueAndGrad | DeriveOp::Hessian | DeriveOp::Hvp => {
            (c.add_var(TypeVar::fresh("a"), true), Ty::REAL)
        }
        DeriveOp::Vjp | DeriveOp::Jvp | DeriveOp::Pullback | DeriveOp::Linearize | DeriveOp::Jacobian => {
            (c.add_var(TypeVar::fresh("a"), true), c.add_var(TypeVar::fresh("b"), true))
        }
    };
    let f = c.fun(&[a], b);
    let reals = c.push(Node::Array(Ty::REAL, Size::Unknown));
    let matrix = c.push(Node::Array(reals, Size::Unknown));
    let root = match op {
        DeriveOp::Grad => c.fun(&[f, a], a),
        DeriveOp::ValueAndGrad => {
            let both = c.push(Node::Tuple([Ty::REAL, a].into()));
            c.fun(&[f, a], both)
        }
        DeriveOp::Vjp => c.fun(&[f, a, b], a),
        DeriveOp::Jvp => c.fun(&[f, a, a], b),
        DeriveOp::Pullback => {
            let back = c.fun(&[b], a);
            let both = c.push(Node::Tuple([b, back].into()));
            c.fun(&[f, a], both)
        }
        DeriveOp::Linearize => {
            let onward = c.fun(&[a], b);
            let both = c.push(Node::Tuple([b, onward].into()));
            c.fun(&[f, a], both)
        }
        DeriveOp::Jacobian | DeriveOp::Hessian => c.fun(&[f, a], matrix),
        DeriveOp::Hvp => c.fun(&[f, a, a], a),
        DeriveOp::Diff => c.fun(&[f, Ty::REAL], Ty::REAL),
        DeriveOp::Taylor => c.fun(&[Ty::INT, f, Ty::REAL], reals),
    };
    c.roots.push(root);
    c.finish()
}

/// How many arguments a derivative form takes.
pub fn derive_arity(op: DeriveOp) -> usize {
    match op {
        DeriveOp::Grad
        | DeriveOp::ValueAndGrad
        | DeriveOp::Pullback
        | DeriveOp::Linearize
        | DeriveOp::Jacobian
        | DeriveOp::Hessian
        | DeriveOp::Diff => 2,
        DeriveOp::Vjp | DeriveOp::Jvp | DeriveOp::Hvp | DeriveOp::Taylor => 3,
    }
}
