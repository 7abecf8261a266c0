//! Core to flow. Terms are evaluated symbolically: structure (tuples, records, known constructors, functions) exists only at compile
//! time, and what remains is arithmetic on numbers and arrays, written to flow. Applying a known function is writing its body, so
//! higher-order functions are specialised to their arguments and leave nothing behind; functions that are recursive but not
//! in a tail call become flow functions, and those that are become loops.

mod arrays;
mod calls;
mod choice;
mod derive;
mod functions;
mod heap;
mod jacobian;
mod layout;
mod prims;
mod rules;
mod structural;
mod texts;
mod value;
mod visit;

pub(crate) use heap::choose_case;
pub(crate) use structural::linear_fields;

use crate::adjoint::Adjoints;
use crate::flow::build::SeenFrom;
use crate::flow::{Atom, Builder, Function, FunctionId, Module, Name, Var};
use crate::refusal::{Reason, Refusal};
use crate::tangent::Tangents;
use gradus_core::traverse::with_stack;
use gradus_core::{instance, Body, Global, Lambda, Literal, Program, Symbol, Term, TermKind, Type, TypeDecl, TypeName};
use gradus_source::{FileId, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use value::{Env, Group, Value};

pub(crate) type Lowered<T> = Result<T, Box<Refusal>>;

/// What an entry point takes and gives, before flattening.
#[derive(Clone, Debug)]
pub struct Signature {
    pub params: Vec<Type>,
    pub result: Type,
    /// The `data` that the program reads, by definition and type: further parameters, after the others.
    pub data: Vec<(Symbol, Type)>,
}

/// Of data the lengths of its leaves along their axes, in order; none for a number.
pub type DataLengths = FxHashMap<Symbol, Vec<Vec<usize>>>;

/// Lowers the functions of one program into one flow module.
pub struct Lowering<'a> {
    program: &'a Program,
    /// The lengths of the leaves of data, as far as they are known.
    data_lengths: &'a DataLengths,
    types: FxHashMap<TypeName, TypeDecl>,
    pub module: Module,
    adjoints: Adjoints,
    tangents: Tangents,
    recursive: functions::Cycles<'a>,
    instances: FxHashMap<Global, (Term, Type)>,
    b: Builder,
    /// What is known in the entry that is being lowered.
    constants: FxHashMap<Global, Lowered<Value>>,
    data: Vec<(Symbol, Type)>,
    data_params: Vec<Var>,
    functions: functions::Functions,
    heap: heap::Heap,
    /// The definitions that are being prepared, outermost first.
    preparing: Vec<Global>,
    /// How often the bodies of functions are being written inside each other.
    applying: FxHashMap<*const Lambda, usize>,
    /// How many terms of the entry have been lowered, one that is written out several times as often.
    lowered: usize,
    /// How often the definitions of the entry have been written out.
    written_out: FxHashMap<Global, usize>,
    facts: calls::Facts,
}

impl<'a> Lowering<'a> {
    pub fn new(program: &'a Program, data_lengths: &'a DataLengths) -> Lowering<'a> {
        let builtin = TypeDecl::builtin().into_iter();
        let types = builtin.chain(program.types.values().cloned()).map(|d| (d.name.clone(), d)).collect();
        Lowering {
            program,
            data_lengths,
            types,
            module: Module::default(),
            adjoints: Adjoints::default(),
            tangents: Tangents::default(),
            recursive: functions::Cycles::new(program),
            instances: FxHashMap::default(),
            b: Builder::new(),
            constants: FxHashMap::default(),
            data: Vec::new(),
            data_params: Vec::new(),
            functions: functions::Functions::default(),
            heap: heap::Heap::default(),
            preparing: Vec::new(),
            applying: FxHashMap::default(),
            lowered: 0,
            written_out: FxHashMap::default(),
            facts: calls::Facts::default(),
        }
    }

    /// Gives what comes from other files than these the places of the calls that led there: for people who know only these.
    pub fn seen_from(&mut self, files: &[FileId]) {
        self.b.seen_from = SeenFrom::files(files);
    }

    pub(crate) fn refuse<T>(&self, reason: Reason, span: Span) -> Lowered<T> {
        Err(Box::new(Refusal { reason, span }))
    }

    /// Lowers a closed term of a type `a1 -> ... -> an -> b`, of data types, to a flow function that takes the leaves of the
    /// arguments and gives those of the result.
    pub fn entry(&mut self, name: &str, term: &Term, ty: &Type) -> Lowered<(FunctionId, Signature)> {
        self.b = self.b.another();
        self.constants.clear();
        self.data.clear();
        self.data_params.clear();
        self.functions = functions::Functions::default();
        self.lowered = 0;
        self.written_out.clear();
        self.prepare(term)?;
        let mut params = Vec::new();
        let mut types = Vec::new();
        let mut result = ty.clone();
        let mut value = self.eval(term, &Env::default())?;
        while let Type::Fun(ft) = &result {
            let (from, to) = (ft.0.clone(), ft.1.clone());
            self.is_data(&from, term.span)?;
            let mut vars = Vec::new();
            for leaf in self.leaves(&from, term.span)? {
                vars.push(Var::fresh(param_name(types.len()), leaf));
            }
            let argument = self.unflatten(&from, &mut vars.iter().map(|v| Atom::Var(*v)), term.span)?;
            self.b.span = term.span;
            self.check_lengths(&argument);
            params.extend(vars);
            types.push(from);
            value = self.apply(value, argument, term.span)?;
            result = to;
        }
        self.is_data(&result, term.span)?;
        let results = self.flatten(&value, &result, term.span)?;
        let result_types = self.leaves(&result, term.span)?;
        let body = self.b.pop(results);
        params.append(&mut self.data_params);
        let function = Function { name: Name::new(name), params, results: result_types, body, rule: None };
        self.module.functions.push(function);
        let id = FunctionId(self.module.functions.len() - 1);
        Ok((id, Signature { params: types, result, data: std::mem::take(&mut self.data) }))
    }

    /// Completes the module: what entries left open is written now.
    pub fn finish(mut self) -> Lowered<Module> {
        self.functions = functions::Functions::default();
        self.finish_closures()?;
        crate::adjoint::finish(&mut self.module, &mut self.adjoints, &mut self.tangents);
        Ok(self.module)
    }

    /// The monomorphic text of a definition, and its type.
    fn definition(&mut self, global: &Global, span: Span) -> Lowered<(Term, Type)> {
        if let Some(known) = self.instances.get(global) {
            return Ok(known.clone());
        }
        let Global::Source { name, types } = global else {
            return self.refuse(Reason::Foreign("code of another differentiation mode".into()), span);
        };
        let Some(def) = self.program.defs.get(name) else {
            return self.refuse(Reason::Foreign(format!("the missing definition `{name}`")), span);
        };
        let Body::Term(term) = &def.body else {
            return self.refuse(Reason::Foreign(format!("the value `{name}` here")), span);
        };
        let made = (instance::instance(&def.scheme, term, types), def.scheme.instantiate(types));
        self.instances.insert(global.clone(), made.clone());
        Ok(made)
    }

    /// Evaluates, at the start of an entry, the definitions that are no functions and that the term needs; what cannot be lowered
    /// is reported only if it is really used.
    fn prepare(&mut self, term: &Term) -> Lowered<()> {
        let mut globals = Vec::new();
        collect_globals(term, &mut globals);
        for (global, span) in globals {
            // Polymorphic recursion may have no end of instances; the first ones tell what they need.
            if self.constants.contains_key(&global) || !self.functions.seen.insert(global.clone()) {
                continue;
            }
            if is_instance(&global) && self.preparing.iter().filter(|g| same_name(g, &global)).count() > INSTANCES {
                continue;
            }
            if let Some(data) = self.data_param(&global, span)? {
                self.constants.insert(global, Ok(data));
                continue;
            }
            let Ok((body, _)) = self.definition(&global, span) else { continue };
            // Marked first, so that recursion ends; a function is evaluated where it is used.
            let foreign = Refusal { reason: Reason::Foreign("a value that depends on itself".into()), span };
            self.constants.insert(global.clone(), Err(Box::new(foreign)));
            self.preparing.push(global.clone());
            self.prepare(&body)?;
            for rule in self.rule_terms(&global) {
                self.prepare(&rule)?;
            }
            self.preparing.pop();
            if matches!(&*body.kind, TermKind::Lambda(_)) || self.rule_arity(&global).is_some() {
                self.constants.remove(&global);
                continue;
            }
            let value = self.eval(&body, &Env::default());
            self.constants.insert(global, value);
        }
        Ok(())
    }

    /// A definition that is `data` becomes parameters of the entry.
    fn data_param(&mut self, global: &Global, span: Span) -> Lowered<Option<Value>> {
        let Global::Source { name, .. } = global else { return Ok(None) };
        let Some(def) = self.program.defs.get(name) else { return Ok(None) };
        let Body::Data { .. } = &def.body else { return Ok(None) };
        let ty = def.scheme.ty.clone();
        let vars: Vec<Var> = self.leaves(&ty, span)?.into_iter().map(|l| Var::fresh(&**name, l)).collect();
        let value = self.unflatten(&ty, &mut vars.iter().map(|v| Atom::Var(*v)), span)?;
        let lengths = vars.iter().zip(self.data_lengths.get(name).into_iter().flatten());
        let known = lengths.filter(|(_, lengths)| !lengths.is_empty() && !lengths.contains(&0));
        self.module.lengths.extend(known.map(|(var, lengths)| (*var, lengths.clone())));
        self.data_params.extend(vars);
        self.data.push((name.clone(), ty));
        Ok(Some(value))
    }

    /// The value of a term.
    fn eval(&mut self, term: &Term, env: &Env) -> Lowered<Value> {
        with_stack(|| self.eval_inner(term, env))
    }

    fn eval_inner(&mut self, term: &Term, env: &Env) -> Lowered<Value> {
        let span = term.span;
        self.b.span = span;
        self.lowered += 1;
        if self.lowered > MOST_TERMS {
            return self.refuse(Reason::TooLarge, span);
        }
        match &*term.kind {
            TermKind::Var(var, _) => match env.get(var) {
                Some(value) => Ok(value),
                None => gradus_source::bug!("the variable {var:?} is not bound"),
            },
            TermKind::Global(global) => self.global(global, span),
            TermKind::Literal(literal) => match literal {
                Literal::Real(x) => Ok(Value::real(*x)),
                Literal::Int(k) => Ok(Value::Leaf(Atom::Int(*k))),
                Literal::Bool(x) => Ok(Value::Leaf(Atom::Bool(*x))),
                Literal::Unit => Ok(Value::Unit),
                Literal::String(text) => Ok(self.text(text)),
            },
            TermKind::Lambda(lambda) => {
                Ok(Value::Function(Rc::new(value::Function::Lambda { lambda: lambda.clone(), env: env.clone() })))
            }
            TermKind::App(function, argument) => {
                let function = self.eval(function, env)?;
                let argument = self.eval(argument, env)?;
                self.apply(function, argument, span)
            }
            TermKind::Let { var, scheme, bound, body } => {
                let value = self.eval(bound, env)?;
                self.eval(body, &env.with(var, &scheme.ty, value))
            }
            TermKind::LetRec { bindings, body } => {
                let members = bindings.iter().map(|(v, s, t)| (v.clone(), s.ty.clone(), t.clone())).collect();
                let group = Rc::new(Group { members, outer: env.clone() });
                self.eval(body, &Env::with_group(&group))
            }
            TermKind::Prim { prim, types, args, .. } => {
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    values.push(self.eval(arg, env)?);
                }
                self.b.span = span;
                self.prim(*prim, types, values, span)
            }
            TermKind::Tuple(items) => {
                let values = items.iter().map(|t| self.eval(t, env)).collect::<Lowered<Vec<_>>>()?;
                Ok(Value::tuple(values))
            }
            TermKind::Proj { index, term } => match self.eval(term, env)? {
                Value::Tuple(items) => match items.get(*index) {
                    Some(item) => Ok(item.clone()),
                    None => gradus_source::bug!("a tuple has no component {index}"),
                },
                Value::Boxed { known: Some((_, fields)), .. } => match fields.get(*index) {
                    Some(field) => Ok(field.clone()),
                    None => gradus_source::bug!("a record has no field {index}"),
                },
                Value::Boxed { cell, ty, known: None } => {
                    let fields = self.constructors(&ty, span)?.concat();
                    let values = self.fields_of(cell, 0, &fields, span)?;
                    match values.into_iter().nth(*index) {
                        Some(value) => Ok(value),
                        None => gradus_source::bug!("a record has no field {index}"),
                    }
                }
                _ => gradus_source::bug!("the component of something that is no tuple"),
            },
            TermKind::Construct { name, types, tag, args } => {
                let values = args.iter().map(|t| self.eval(t, env)).collect::<Lowered<Vec<_>>>()?;
                let ty = Type::Named(name.clone(), types.clone());
                self.b.span = span;
                if self.is_boxed(name) {
                    let shape = self.cell_shape(&ty, span)?;
                    let types = self.constructors(&ty, span)?.swap_remove(*tag);
                    let mut fields = Vec::new();
                    for (value, ty) in values.iter().zip(&types) {
                        fields.extend(self.flatten(value, ty, span)?);
                    }
                    let cell = self.b.cell(shape, *tag, fields);
                    return Ok(Value::Boxed { cell, ty, known: Some((*tag, values.into())) });
                }
                Ok(match self.shape(&ty, span)? {
                    layout::Shape::Record(_) => Value::tuple(values),
                    layout::Shape::Variant(constructors) => {
                        let mut fields = vec![None; constructors.len()];
                        fields[*tag] = Some(values);
                        Value::Variant { tag: Atom::Int(*tag as i64), fields: fields.into() }
                    }
                })
            }
            TermKind::Case { scrutinee, arms, default } => {
                let value = self.eval(scrutinee, env)?;
                self.case(value, arms, default.as_ref(), span, &mut |s, body, bound| {
                    let env = bound.into_iter().fold(env.clone(), |env, (v, t, x)| env.with(&v, &t, x));
                    s.eval(body, &env)
                })
            }
            TermKind::If { condition, then, otherwise } => {
                let condition = self.eval(condition, env)?;
                let condition = self.leaf(&condition);
                self.choose(condition, span, &mut |s| s.eval(then, env), &mut |s| s.eval(otherwise, env))
            }
            TermKind::ArrayLiteral { element, items } => {
                let values = items.iter().map(|t| self.eval(t, env)).collect::<Lowered<Vec<_>>>()?;
                self.array_literal(element, &values, span)
            }
            TermKind::Derive { op, types, args } => {
                let values = args.iter().map(|t| self.eval(t, env)).collect::<Lowered<Vec<_>>>()?;
                self.b.span = span;
                self.derivative(*op, types, values, span)
            }
            TermKind::Lift { .. } => self.refuse(Reason::Foreign("code of another differentiation mode".into()), span),
        }
    }

    fn global(&mut self, global: &Global, span: Span) -> Lowered<Value> {
        if let Some(known) = self.constants.get(global) {
            return known.clone();
        }
        let (term, ty) = self.definition(global, span)?;
        if let Global::Source { name, .. } = global {
            if self.recursive.has(name) || self.rule_arity(global).is_some() || self.is_called(global, &term, &ty) {
                let recursive = value::Recursive::Global { global: global.clone(), term, ty };
                return Ok(Value::Function(Rc::new(value::Function::Recursive { recursive, args: Vec::new() })));
            }
        }
        self.eval(&term, &Env::default())
    }

    /// The operand of a number.
    fn leaf(&self, value: &Value) -> Atom {
        match value {
            Value::Leaf(atom) => *atom,
            _ => gradus_source::bug!("a structure where a number is expected"),
        }
    }
}

/// How many instances of a definition may wait for each other before we say that its instances do not end.
const INSTANCES: usize = 4;

/// How many terms an entry may become. Functions are written out where they are called, so that a few lines can become any amount of code.
const MOST_TERMS: usize = 400_000;

/// Whether there may be others of the same name.
fn is_instance(global: &Global) -> bool {
    !matches!(global, Global::Source { types, .. } if types.is_empty())
}

/// Whether two globals are instances of the same definition.
fn same_name(a: &Global, b: &Global) -> bool {
    match (a, b) {
        (Global::Source { name: a, .. }, Global::Source { name: b, .. }) => a == b,
        (Global::Source { .. } | Global::Derived { .. } | Global::Wrapper { .. }, _) => a == b,
    }
}

/// `x`, `y`, `z`, then numbered.
fn param_name(i: usize) -> &'static str {
    ["x", "y", "z", "u", "v", "w"].get(i).copied().unwrap_or("p")
}

/// The definitions that a term mentions, with a place where it does.
fn collect_globals(term: &Term, found: &mut Vec<(Global, Span)>) {
    fn walk(term: &Term, seen: &mut FxHashSet<Global>, found: &mut Vec<(Global, Span)>) {
        with_stack(|| {
            if let TermKind::Global(global) = &*term.kind {
                if seen.insert(global.clone()) {
                    found.push((global.clone(), term.span));
                }
            }
            gradus_core::traverse::for_each_child(term, &mut |child| walk(child, seen, found));
        })
    }
    walk(term, &mut FxHashSet::default(), found);
}
