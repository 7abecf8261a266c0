//! What lives on the heap: the shapes of recursive types, and functions as data. A function that is not known where it is applied is a
//! cell whose tag says which code it is and whose fields are what that code captured; applying it calls a function, one for each type of
//! functions, that chooses by the tag. The program is whole, so these choices are complete when everything else has been lowered.

use super::value::{Env, Function, Group, Recursive, Value};
use super::{Lowered, Lowering};
use crate::flow::ShapeId;
use crate::flow::{self, Atom, Block, Builder, FunctionId, Name, Op, Type as Leaf, Var};
use crate::refusal::Reason;
use gradus_core::traverse::{free_vars, with_stack};
use gradus_core::{Global, Lambda, Prim, Scheme, Term, TermKind, Type, TypeName};
use gradus_source::Span;
use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// How often a declared type may occur inside itself at ever new arguments before we say that this does not end.
const NESTED_TYPES: usize = 4;

/// The definitions that must be handed over, with their types, and the values of those that are known.
pub(super) type SplitConstants = (Vec<(Global, Type)>, FxHashMap<Global, Lowered<Value>>);

#[derive(Default)]
pub(super) struct Heap {
    /// Whether declared types contain themselves.
    pub(super) recursive: RefCell<FxHashMap<TypeName, bool>>,
    /// The shapes of recursive types.
    cells: FxHashMap<Type, ShapeId>,
    /// The shapes of elements that are boxed only in arrays.
    pub(super) wrappers: FxHashMap<Type, ShapeId>,
    /// The functions of each type that were made into data.
    closures: IndexMap<Type, Closures>,
    /// Types of functions, by their code.
    lambda_types: FxHashMap<*const Lambda, (Arc<Lambda>, Type)>,
    /// The functions that do something with boxes.
    pub(super) on_boxes: FxHashMap<(super::structural::OnBoxes, ShapeId, Span), FunctionId>,
    /// The functions with derivative rules of their own.
    pub(super) ruled: FxHashMap<Global, FunctionId>,
    pub(super) made: Option<super::rules::Made>,
    /// The declared types whose shapes are being made.
    nested: Vec<TypeName>,
}

struct Closures {
    shape: ShapeId,
    /// By tag.
    codes: Vec<Code>,
    apply: Option<Apply>,
}

/// The function that applies closures of a type.
#[derive(Clone)]
struct Apply {
    id: FunctionId,
    cases: Vec<Block>,
}

/// Which function, and what it captures: local variables, arguments, definitions that are no functions.
#[derive(Clone)]
struct Code {
    kind: Kind,
    captured: Vec<(gradus_core::Var, Type)>,
    args: Vec<Type>,
    constants: Vec<(Global, Type)>,
    /// Definitions that are known without capturing anything.
    known: FxHashMap<Global, Lowered<Value>>,
}

#[derive(Clone)]
enum Kind {
    Lambda(Arc<Lambda>),
    Global { global: Global, term: Term, ty: Type },
    Local { members: Vec<(gradus_core::Var, Type, Term)>, member: usize },
    Derivative { op: gradus_core::DeriveOp, types: Arc<[Type]> },
}

impl Code {
    fn is(&self, kind: &Kind, args: usize) -> bool {
        self.args.len() == args
            && match (&self.kind, kind) {
                (Kind::Lambda(a), Kind::Lambda(b)) => Arc::ptr_eq(a, b),
                (Kind::Global { global: a, .. }, Kind::Global { global: b, .. }) => a == b,
                (Kind::Local { members: a, member: i }, Kind::Local { members: b, member: j }) => {
                    i == j && a.first().map(|(v, _, _)| v) == b.first().map(|(v, _, _)| v)
                }
                (Kind::Derivative { op: a, types: s }, Kind::Derivative { op: b, types: t }) => a == b && s == t,
                (Kind::Lambda(_) | Kind::Global { .. } | Kind::Local { .. } | Kind::Derivative { .. }, _) => false,
            }
    }
}

impl Lowering<'_> {
    /// The shape of a recursive type.
    pub(super) fn cell_shape(&mut self, ty: &Type, span: Span) -> Lowered<ShapeId> {
        if let Some(shape) = self.heap.cells.get(ty) {
            return Ok(*shape);
        }
        let Type::Named(name, _) = ty else { gradus_source::bug!("the cells of a type that was not declared") };
        if self.heap.nested.iter().filter(|n| *n == name).count() > NESTED_TYPES {
            return self.refuse(Reason::Unbounded, span);
        }
        let shape = self.module.new_shape(Name::new(&name.base));
        self.heap.cells.insert(ty.clone(), shape);
        self.heap.nested.push(name.clone());
        let filled = self.constructors(ty, span).and_then(|constructors| {
            for fields in constructors {
                let mut leaves = Vec::new();
                for field in &fields {
                    leaves.extend(self.leaves(field, span)?);
                }
                self.module.add_cell(shape, leaves);
            }
            Ok(())
        });
        self.heap.nested.pop();
        if let Err(refusal) = filled {
            self.heap.cells.remove(ty);
            return Err(refusal);
        }
        Ok(shape)
    }

    /// The shape of elements that are boxed only in arrays.
    pub(super) fn wrapper_shape(&mut self, ty: &Type, span: Span) -> Lowered<ShapeId> {
        if let Some(shape) = self.heap.wrappers.get(ty) {
            return Ok(*shape);
        }
        let leaves = self.leaves(ty, span)?;
        let shape = self.module.new_shape("element");
        self.module.add_cell(shape, leaves);
        self.heap.wrappers.insert(ty.clone(), shape);
        Ok(shape)
    }

    /// The type that boxes of a shape have; `None` for functions.
    pub(super) fn type_of_shape(&self, shape: ShapeId) -> Option<(Type, bool)> {
        let find = |table: &FxHashMap<Type, ShapeId>| table.iter().find(|(_, s)| **s == shape).map(|(t, _)| t.clone());
        find(&self.heap.cells).map(|t| (t, false)).or_else(|| find(&self.heap.wrappers).map(|t| (t, true)))
    }

    pub(super) fn closure_shape(&mut self, ty: &Type) -> ShapeId {
        if let Some(closures) = self.heap.closures.get(ty) {
            return closures.shape;
        }
        let shape = self.module.new_shape("closure");
        self.heap.closures.insert(ty.clone(), Closures { shape, codes: Vec::new(), apply: None });
        shape
    }

    /// The type of a known function.
    pub(super) fn function_type(&mut self, function: &Function) -> Type {
        match function {
            Function::Lambda { lambda, env } => {
                let key = Arc::as_ptr(lambda);
                if let Some((_, ty)) = self.heap.lambda_types.get(&key) {
                    return ty.clone();
                }
                let term = Term::new(TermKind::Lambda(lambda.clone()), lambda.body.span);
                let types = free_vars(&term)
                    .into_iter()
                    .filter_map(|v| env.lookup(&v).map(|(ty, _)| (v, Scheme::mono(ty))))
                    .collect();
                let context = gradus_core::check::Unlinked(self.program);
                match gradus_core::check::type_of(&context, &term, &types) {
                    Ok(ty) => {
                        self.heap.lambda_types.insert(key, (lambda.clone(), ty.clone()));
                        ty
                    }
                    Err(error) => gradus_source::bug!("a function without a type: {error:?}"),
                }
            }
            Function::Recursive { recursive, args } => {
                let ty = match recursive {
                    Recursive::Global { ty, .. } => ty.clone(),
                    Recursive::Local { group, member } => group.members[*member].1.clone(),
                };
                after_arguments(ty, args.len())
            }
            Function::Derivative { op, types, args } => {
                let (params, result) = op.signature(types);
                after_arguments(Type::funs(params, result), args.len())
            }
        }
    }

    /// A known function as a closure.
    pub(super) fn reify(&mut self, function: &Rc<Function>, span: Span) -> Lowered<Atom> {
        let ty = self.function_type(function);
        let shape = self.closure_shape(&ty);
        let (kind, env, vars, args): (Kind, Env, Vec<gradus_core::Var>, Vec<(Type, Value)>) = match &**function {
            Function::Lambda { lambda, env } => {
                let term = Term::new(TermKind::Lambda(lambda.clone()), span);
                (Kind::Lambda(lambda.clone()), env.clone(), free_vars(&term), Vec::new())
            }
            Function::Recursive { recursive: Recursive::Global { global, term, ty }, args } => {
                let kind = Kind::Global { global: global.clone(), term: term.clone(), ty: ty.clone() };
                (kind, Env::default(), Vec::new(), with_types(ty, args))
            }
            Function::Recursive { recursive: Recursive::Local { group, member }, args } => {
                let members = group.members.clone();
                let mut vars: Vec<gradus_core::Var> = Vec::new();
                for var in members.iter().flat_map(|(_, _, t)| free_vars(t)) {
                    if !vars.contains(&var) && !members.iter().any(|(v, _, _)| *v == var) {
                        vars.push(var);
                    }
                }
                let args = with_types(&members[*member].1, args);
                (Kind::Local { members, member: *member }, group.outer.clone(), vars, args)
            }
            Function::Derivative { op, types, args } => {
                let (params, result) = op.signature(types);
                let args = with_types(&Type::funs(params, result), args);
                (Kind::Derivative { op: *op, types: types.clone() }, Env::default(), Vec::new(), args)
            }
        };
        let mut values: Vec<(gradus_core::Var, Type, Value)> = Vec::new();
        for var in vars {
            match env.lookup(&var) {
                Some((ty, value)) => values.push((var, ty, value)),
                None => gradus_source::bug!("the captured variable {var:?} is not bound"),
            }
        }
        let tag = match self.heap.closures[&ty].codes.iter().position(|c| c.is(&kind, args.len())) {
            Some(tag) => tag,
            None => {
                let captured = values.iter().map(|(v, t, _)| (v.clone(), t.clone())).collect();
                let arg_types = args.iter().map(|(t, _)| t.clone()).collect();
                self.new_code(&ty, shape, kind, captured, arg_types, span)?
            }
        };
        let constants = self.heap.closures[&ty].codes[tag].constants.clone();
        let mut fields = Vec::new();
        for (_, ty, value) in &values {
            fields.extend(self.flatten(value, ty, span)?);
        }
        for (ty, value) in &args {
            fields.extend(self.flatten(value, ty, span)?);
        }
        for (global, ty) in &constants {
            let value = self.global(global, span)?;
            fields.extend(self.flatten(&value, ty, span)?);
        }
        Ok(self.b.cell(shape, tag, fields))
    }

    fn new_code(
        &mut self,
        ty: &Type,
        shape: ShapeId,
        kind: Kind,
        captured: Vec<(gradus_core::Var, Type)>,
        args: Vec<Type>,
        span: Span,
    ) -> Lowered<usize> {
        let mut terms: Vec<Term> = match &kind {
            Kind::Lambda(lambda) => vec![lambda.body.clone()],
            Kind::Global { term, .. } => vec![term.clone()],
            Kind::Local { members, .. } => members.iter().map(|(_, _, t)| t.clone()).collect(),
            Kind::Derivative { .. } => Vec::new(),
        };
        if let Kind::Global { global, .. } = &kind {
            terms.push(Term::new(TermKind::Global(global.clone()), span));
        }
        let (constants, known) = self.split_constants(&terms, span)?;
        let code = Code { kind, captured, args, constants, known };
        let mut leaves = Vec::new();
        let types = code.captured.iter().map(|(_, t)| t).chain(&code.args).chain(code.constants.iter().map(|(_, t)| t));
        for ty in types.cloned().collect::<Vec<_>>() {
            leaves.extend(self.leaves(&ty, span)?);
        }
        let tag = self.module.add_cell(shape, leaves);
        match self.heap.closures.get_mut(ty) {
            Some(closures) => closures.codes.push(code),
            None => gradus_source::bug!("closures of a type without a shape"),
        }
        Ok(tag)
    }

    /// The definitions that terms need and that are no functions: those that must be handed over, with their types, and those that are
    /// known at compile time.
    pub(super) fn split_constants(&mut self, terms: &[Term], span: Span) -> Lowered<SplitConstants> {
        let mut all: IndexSet<Global> = IndexSet::new();
        for (global, span) in terms.iter().flat_map(|term| self.facts.mentioned_in(term).to_vec()).collect::<Vec<_>>() {
            all.extend(self.constants_of(&global, span).iter().cloned());
        }
        let (mut handed, mut known) = (Vec::new(), FxHashMap::default());
        for global in all {
            let value = match self.constants.get(&global) {
                Some(Ok(value)) => value.clone(),
                Some(Err(refusal)) => {
                    known.insert(global, Err(refusal.clone()));
                    continue;
                }
                None => continue,
            };
            if is_closed(&value) {
                known.insert(global, Ok(value));
            } else {
                let ty = self.constant_type(&global, span)?;
                handed.push((global, ty));
            }
        }
        Ok((handed, known))
    }

    fn constant_type(&mut self, global: &Global, span: Span) -> Lowered<Type> {
        if let Global::Source { name, .. } = global {
            if let Some(def) = self.program.defs.get(name).filter(|d| matches!(d.body, gradus_core::Body::Data { .. }))
            {
                return Ok(def.scheme.ty.clone());
            }
        }
        Ok(self.definition(global, span)?.1)
    }

    /// The definitions that are no functions and that a definition needs, itself or through whatever it calls. Those that lead to each other need the same;
    /// of the others it is asked once.
    fn constants_of(&mut self, global: &Global, span: Span) -> Rc<[Global]> {
        if let Some(known) = self.functions.constants.get(global) {
            return known.clone();
        }
        let cycle = self.cycle(global);
        let (mut found, mut members) = (IndexSet::new(), IndexSet::new());
        let mut next = vec![(global.clone(), span)];
        while let Some((other, span)) = next.pop() {
            if self.constants.contains_key(&other) {
                found.insert(other);
                continue;
            }
            if other != *global && (cycle.is_none() || self.cycle(&other) != cycle) {
                found.extend(with_stack(|| self.constants_of(&other, span)).iter().cloned());
                continue;
            }
            let instances = || members.iter().filter(|g| super::same_name(g, &other)).count();
            if members.contains(&other) || super::is_instance(&other) && instances() > super::INSTANCES {
                continue;
            }
            if let Ok((body, _)) = self.definition(&other, span) {
                next.extend(self.facts.mentioned_in(&body).iter().cloned());
            }
            members.insert(other);
        }
        let found: Rc<[Global]> = found.into_iter().collect();
        self.functions.constants.extend(members.into_iter().map(|member| (member, found.clone())));
        found
    }

    /// Applies a function that is only known when the program runs.
    pub(super) fn apply_closure(&mut self, cell: Atom, ty: &Type, argument: &Value, span: Span) -> Lowered<Value> {
        let Type::Fun(ft) = ty else { gradus_source::bug!("a closure whose type is no function type") };
        let mut args = vec![cell];
        args.extend(self.flatten(argument, &ft.0, span)?);
        let id = self.apply_function(ty, span)?;
        self.b.span = span;
        let results: Vec<Var> = self.module.function(id).results.iter().map(|ty| Var::fresh("r", *ty)).collect();
        self.b.bind(results.clone(), Op::Call { function: id, args });
        self.unflatten(&ft.1, &mut results.into_iter().map(Atom::Var), span)
    }

    /// The function that applies closures of a type; its body is written when all of them are known.
    fn apply_function(&mut self, ty: &Type, span: Span) -> Lowered<FunctionId> {
        let Type::Fun(ft) = ty else { gradus_source::bug!("a closure whose type is no function type") };
        let shape = self.closure_shape(ty);
        if let Some(apply) = self.heap.closures.get(ty).and_then(|c| c.apply.as_ref()) {
            return Ok(apply.id);
        }
        let mut params = vec![Var::fresh("closure", Leaf::boxed(shape))];
        params.extend(self.leaves(&ft.0, span)?.into_iter().map(|l| Var::fresh("x", l)));
        let results = self.leaves(&ft.1, span)?;
        let id = FunctionId(self.module.functions.len());
        self.module.functions.push(flow::Function {
            name: "apply".into(),
            params,
            results,
            body: Block::unfinished(),
            rule: None,
        });
        if let Some(closures) = self.heap.closures.get_mut(ty) {
            closures.apply = Some(Apply { id, cases: Vec::new() });
        }
        Ok(id)
    }

    /// Writes the bodies of the functions that apply closures, until no new closures come up.
    pub(super) fn finish_closures(&mut self) -> Lowered<()> {
        loop {
            let waiting = self.heap.closures.iter().find_map(|(ty, c)| {
                let apply = c.apply.as_ref()?;
                (apply.cases.len() < c.codes.len()).then(|| (ty.clone(), apply.id, apply.cases.len()))
            });
            let Some((ty, id, tag)) = waiting else { break };
            let case = self.closure_case(&ty, id, tag)?;
            if let Some(apply) = self.heap.closures.get_mut(&ty).and_then(|c| c.apply.as_mut()) {
                apply.cases.push(case);
            }
        }
        let applies: Vec<Apply> = self.heap.closures.values().filter_map(|c| c.apply.clone()).collect();
        for Apply { id, cases } in applies {
            let function = self.module.function(id).clone();
            let mut b = Builder::new();
            let tag = b.tag(function.params[0].into());
            let nothing: Vec<Atom> = function.results.iter().map(|ty| b.dummy(*ty)).collect();
            let results = choose_case(&mut b, tag, cases.into_iter().enumerate().collect(), nothing);
            self.module.functions[id.0].body = b.pop(results);
        }
        Ok(())
    }

    /// What a closure with a tag does.
    fn closure_case(&mut self, ty: &Type, id: FunctionId, tag: usize) -> Lowered<Block> {
        let Type::Fun(ft) = ty else { gradus_source::bug!("a closure whose type is no function type") };
        let closures = &self.heap.closures[ty];
        let (code, shape) = (closures.codes[tag].clone(), closures.shape);
        let span = match &code.kind {
            Kind::Lambda(lambda) => lambda.body.span,
            Kind::Global { term, .. } => term.span,
            Kind::Local { members, member } => members[*member].2.span,
            Kind::Derivative { .. } => Span::default(),
        };
        let params = self.module.function(id).params.clone();
        let types = self.module.fields(shape, tag).to_vec();
        let inner = self.b.another();
        let outer = std::mem::replace(&mut self.b, inner);
        let constants = std::mem::replace(&mut self.constants, code.known.clone());
        self.b.span = span;
        let block = self.closure_body(&code, ft, &params, types, tag, span);
        self.constants = constants;
        self.b = outer;
        block
    }

    fn closure_body(
        &mut self,
        code: &Code,
        ft: &(Type, Type),
        params: &[Var],
        types: Vec<Leaf>,
        tag: usize,
        span: Span,
    ) -> Lowered<Block> {
        let mut leaves = self.b.unpack(&types, params[0].into(), tag).into_iter();
        let mut env = Env::default();
        for (var, ty) in &code.captured {
            let value = self.unflatten(ty, &mut leaves, span)?;
            env = env.with(var, ty, value);
        }
        let args = code.args.iter().map(|ty| self.unflatten(ty, &mut leaves, span)).collect::<Lowered<Vec<_>>>()?;
        for (global, ty) in &code.constants {
            let value = self.unflatten(ty, &mut leaves, span)?;
            self.constants.insert(global.clone(), Ok(value));
        }
        let function = match &code.kind {
            Kind::Lambda(lambda) => Function::Lambda { lambda: lambda.clone(), env },
            Kind::Global { global, term, ty } => {
                let recursive = Recursive::Global { global: global.clone(), term: term.clone(), ty: ty.clone() };
                Function::Recursive { recursive, args }
            }
            Kind::Local { members, member } => {
                let group = Rc::new(Group { members: members.clone(), outer: env });
                Function::Recursive { recursive: Recursive::Local { group, member: *member }, args }
            }
            Kind::Derivative { op, types } => Function::Derivative { op: *op, types: types.clone(), args },
        };
        let argument = self.unflatten(&ft.0, &mut params[1..].iter().map(|v| Atom::Var(*v)), span)?;
        let value = self.apply(Value::Function(Rc::new(function)), argument, span)?;
        let results = self.flatten(&value, &ft.1, span)?;
        Ok(self.b.pop(results))
    }
}

/// Chooses among blocks by a tag; `nothing` if there is none.
pub(crate) fn choose_case(b: &mut Builder, tag: Atom, cases: Vec<(usize, Block)>, nothing: Vec<Atom>) -> Vec<Atom> {
    let mut rest: Option<Block> = None;
    for (number, case) in cases.into_iter().rev() {
        rest = Some(match rest {
            None => case,
            Some(rest) => {
                b.push();
                let here = b.scalar(Prim::Equal, &[tag, Atom::Int(number as i64)]);
                let results = b.branch(here, case, rest);
                b.pop(results)
            }
        });
    }
    match rest {
        Some(block) => {
            b.stmts(block.stmts);
            block.results
        }
        None => nothing,
    }
}

fn after_arguments(mut ty: Type, count: usize) -> Type {
    for _ in 0..count {
        ty = match &ty {
            Type::Fun(ft) => ft.1.clone(),
            _ => gradus_source::bug!("a function with more arguments than its type has"),
        };
    }
    ty
}

/// Arguments with the types that a function gives them.
fn with_types(ty: &Type, args: &[Value]) -> Vec<(Type, Value)> {
    let mut ty = ty.clone();
    let mut found = Vec::new();
    for arg in args {
        let Type::Fun(ft) = &ty else { gradus_source::bug!("a function with more arguments than its type has") };
        found.push((ft.0.clone(), arg.clone()));
        let rest = ft.1.clone();
        ty = rest;
    }
    found
}

/// Whether a value is known without anything that is computed when the program runs.
pub(super) fn is_closed(value: &Value) -> bool {
    gradus_core::traverse::with_stack(|| match value {
        Value::Leaf(atom) | Value::Text(atom) => atom.var().is_none(),
        Value::Unit => true,
        Value::Tuple(items) => items.iter().all(is_closed),
        Value::Variant { tag, fields } => tag.var().is_none() && fields.iter().flatten().flatten().all(is_closed),
        Value::Array(_) | Value::Boxed { .. } | Value::Closure { .. } => false,
        Value::Function(function) => match &**function {
            Function::Lambda { lambda, env } => {
                let term = Term::new(TermKind::Lambda(lambda.clone()), Span::default());
                free_vars(&term).iter().all(|v| env.get(v).is_some_and(|value| is_closed(&value)))
            }
            Function::Recursive { recursive, args } => {
                let closed = match recursive {
                    Recursive::Global { .. } => true,
                    Recursive::Local { group, .. } => group.members.iter().all(|(_, _, term)| {
                        let own = |v: &gradus_core::Var| group.members.iter().any(|(w, _, _)| v == w);
                        free_vars(term).iter().all(|v| own(v) || group.outer.get(v).is_some_and(|x| is_closed(&x)))
                    }),
                };
                closed && args.iter().all(is_closed)
            }
            Function::Derivative { args, .. } => args.iter().all(is_closed),
        },
    })
}
