//! The state of inference, and the one step that all of it is made of: a value of some type is used at an expected type.

use crate::declared::Declared;
use crate::display::{show_size, Printer};
use crate::error::{Expression, Mismatch, TypeError, Why};
use crate::names::{Alias, Global, GlobalId, Names, Value};
use crate::relate::{Checked, Clash, Relate};
use crate::store::{Node, Size, SizeNode, Store, Ty, TypeId};
use crate::tree::{Exp, ExpKind, LocalId, Tree};
use gradus_core::{Prim, Program, Symbol};
use gradus_source::Span;
use gradus_syntax::ast;
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// What is known of all modules so far.
#[derive(Clone, Debug)]
pub struct Tables {
    pub declared: Declared,
    pub aliases: Vec<Alias>,
    pub globals: Vec<Global>,
    /// What each module offers.
    pub modules: IndexMap<Symbol, Names>,
    pub builtins: crate::builtin::Builtins,
    pub program: Program,
}

pub struct Infer {
    pub tables: Tables,
    pub module: Symbol,
    /// Whether the module's definitions go by their plain names.
    pub main: bool,
    /// The names at the top level here, and those of them that this module offers.
    pub scope: Names,
    pub exports: Names,
    pub imported: FxHashSet<Symbol>,
    /// Local names; the innermost binding last.
    pub locals: FxHashMap<Symbol, Vec<Value>>,
    pub trail: Vec<Symbol>,
    pub store: Store,
    pub tree: Tree,
    /// Scopes of `'a` and of size names in annotations.
    pub type_vars: Vec<FxHashMap<Symbol, Ty>>,
    pub size_vars: Vec<FxHashMap<Symbol, Size>>,
    /// Aliases of the group being declared, by name, with whether they are being expanded.
    pub pending_aliases: FxHashMap<Symbol, (ast::TypeDecl, bool)>,
    /// Of the application being typed: see `relate`.
    pub mark: u32,
    pub pending: Vec<Size>,
    /// Uses of annotated definitions inside their own recursive group.
    pub early_uses: Vec<(GlobalId, Arc<[Ty]>, Exp)>,
    /// Definitions without `rec` around us.
    pub defining: Vec<Symbol>,
    /// How often each name is still to be defined at the top level.
    pub to_define: FxHashMap<Symbol, usize>,
    pub errors: Vec<TypeError>,
    pub warnings: Vec<TypeError>,
}

impl Infer {
    pub fn new(tables: Tables, module: Symbol, main: bool) -> Self {
        let mut scope = tables.builtins.names.clone();
        if let Some(prelude) = tables.modules.get("Prelude") {
            scope.open(prelude);
        }
        Infer {
            tables,
            module,
            main,
            scope,
            exports: Names::default(),
            imported: FxHashSet::default(),
            locals: FxHashMap::default(),
            trail: Vec::new(),
            store: Store::new(),
            tree: Tree::default(),
            type_vars: Vec::new(),
            size_vars: Vec::new(),
            pending_aliases: FxHashMap::default(),
            mark: 0,
            pending: Vec::new(),
            early_uses: Vec::new(),
            defining: Vec::new(),
            to_define: FxHashMap::default(),
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Forgets everything about the definition that was finished.
    pub fn reset(&mut self) {
        self.store = Store::new();
        self.tree.clear();
        self.locals.clear();
        self.trail.clear();
        self.type_vars.clear();
        self.size_vars.clear();
        self.pending.clear();
        self.early_uses.clear();
        self.mark = 0;
    }

    pub fn report(&mut self, error: TypeError) {
        if error.is_warning() {
            self.warnings.push(error);
        } else if !self.errors.iter().rev().take(20).any(|other| *other == error) {
            self.errors.push(error);
        }
    }

    pub fn wrong(&mut self, error: TypeError, span: Span) -> Exp {
        self.report(error);
        self.error_exp(span)
    }

    pub fn error_exp(&mut self, span: Span) -> Exp {
        self.tree.exp(ExpKind::Error, Ty::ERROR, span)
    }

    pub fn ty(&self, exp: Exp) -> Ty {
        self.tree.node(exp).ty
    }

    pub fn show(&self, ty: Ty) -> String {
        Printer::of_store(&self.store, &self.tables.declared).print(ty)
    }

    pub fn named(&mut self, id: TypeId, args: Vec<Ty>) -> Ty {
        self.store.add(Node::Named(id, args.into()))
    }

    // Scopes.

    pub fn bind_value(&mut self, name: Symbol, value: Value) {
        self.locals.entry(name.clone()).or_default().push(value);
        self.trail.push(name);
    }

    pub fn bind_local(&mut self, id: LocalId) {
        self.bind_value(self.tree.local_of(id).name.clone(), Value::Local(id));
    }

    pub fn enter(&self) -> usize {
        self.trail.len()
    }

    pub fn leave(&mut self, depth: usize) {
        for name in self.trail.split_off(depth) {
            if let Some(stack) = self.locals.get_mut(&name) {
                stack.pop();
                if stack.is_empty() {
                    self.locals.remove(&name);
                }
            }
        }
    }

    // Types that meet.

    /// Uses `exp` where `expected` is wanted.
    pub fn flow(&mut self, exp: Exp, expected: Ty, why: &Why) -> Exp {
        let (actual, span) = (self.tree.node(exp).ty, self.tree.node(exp).span);
        match self.relate(actual, expected, span) {
            Ok(checks) if checks.is_empty() => exp,
            Ok(checks) => self.tree.exp(ExpKind::Sized(exp, checks), expected, span),
            Err(clash) => {
                let what = match &self.tree.node(exp).kind {
                    ExpKind::Local(id, _) => Expression::Variable(self.tree.local_of(*id).name.clone()),
                    ExpKind::Global(id, _) => Expression::Variable(self.tables.globals[id.0 as usize].shown.clone()),
                    ExpKind::Literal(gradus_core::Literal::Real(x)) => Expression::RealLiteral(x.to_string()),
                    _ => self.assumed_result(exp).map_or(Expression::Other, Expression::Call),
                };
                self.clash(clash, actual, expected, span, why, what);
                self.error_exp(span)
            }
        }
    }

    pub fn relate(&mut self, actual: Ty, expected: Ty, place: Span) -> Result<Vec<Checked>, Clash> {
        let mut relate = Relate::new(&mut self.store, &self.tables.declared, self.mark, &mut self.pending, place);
        relate.types(actual, expected)?;
        Ok(relate.checks)
    }

    /// For types that we have made ourselves, or where no expression can be checked.
    pub fn agree(&mut self, actual: Ty, expected: Ty, span: Span, why: &Why) {
        if let Err(clash) = self.relate(actual, expected, span) {
            self.clash(clash, actual, expected, span, why, Expression::Other);
        }
    }

    pub fn clash(&mut self, clash: Clash, actual: Ty, expected: Ty, span: Span, why: &Why, what: Expression) {
        let why = why.clone();
        let error = match clash {
            Clash::Shape(a, e) => {
                let mut printer = Printer::of_store(&self.store, &self.tables.declared);
                let (whole_a, whole_e) = (printer.print(actual), printer.print(expected));
                let (part_a, part_e) = (printer.print(a), printer.print(e));
                let whole = self.store.root(actual) == a && self.store.root(expected) == e
                    || self.store.root(actual) == e && self.store.root(expected) == a;
                let elsewhere = |place: Option<Span>| place.filter(|place| *place != span);
                TypeError::Mismatch(Box::new(Mismatch {
                    span,
                    actual: whole_a,
                    expected: whole_e,
                    parts: (!whole).then_some((part_a, part_e)),
                    actual_from: elsewhere(self.store.origin(actual)),
                    expected_from: elsewhere(self.store.origin(expected)),
                    why,
                    what,
                    missing_arguments: self.missing_arguments(actual, expected),
                    order: None,
                }))
            }
            Clash::Infinite(var, ty) => {
                let mut printer = Printer::of_store(&self.store, &self.tables.declared);
                let (var, ty) = (printer.print(var), printer.print(ty));
                TypeError::Infinite { var, ty, span }
            }
            Clash::Function(function) => {
                let whole = if matches!(self.store.shape(actual), Node::Unbound(_)) { expected } else { actual };
                let inside = match self.store.shape(function) {
                    Node::Named(id, _) => self.tables.declared.function_inside(id),
                    _ => None,
                };
                TypeError::NotData { ty: self.show(whole), function: self.show(function), inside, why, span }
            }
            Clash::NotNumber(ty) => {
                let given_number = self.store.kind(actual).is_some();
                let operand = matches!(why, Why::Operand { .. } | Why::OtherOperand { .. });
                let (missing_arguments, number) =
                    if given_number { (0, expected) } else { self.arguments_to_number(ty) };
                if operand && !given_number && missing_arguments == 0 {
                    let from = self.store.origin(actual);
                    return self.report(TypeError::NotNumber { ty: self.show(ty), why, span, from });
                }
                let elsewhere = |place: Option<Span>| place.filter(|place| *place != span);
                // Of a function that lacks arguments, what it would give is the number that was meant.
                let expected_number = if missing_arguments > 0 { number } else { expected };
                TypeError::Mismatch(Box::new(Mismatch {
                    span,
                    actual: self.show(actual),
                    expected: self.show(expected_number),
                    parts: None,
                    actual_from: elsewhere(self.store.origin(actual)),
                    expected_from: elsewhere(self.store.origin(expected)),
                    why,
                    what,
                    missing_arguments,
                    order: None,
                }))
            }
            Clash::Sizes(a, e) => TypeError::SizesDiffer {
                actual: show_size(&self.store, a),
                expected: show_size(&self.store, e),
                actual_type: self.show(actual),
                expected_type: self.show(expected),
                why,
                span,
                variable: matches!(a, Size::Rigid(_)) || matches!(e, Size::Rigid(_)),
            },
        };
        self.report(error);
    }

    /// How many arguments a function lacks to give a value of the expected kind; 0 if that is not what is wrong.
    fn missing_arguments(&mut self, actual: Ty, expected: Ty) -> usize {
        let (mut count, mut at) = (0, actual);
        if matches!(self.store.shape(expected), Node::Fun(..) | Node::Unbound(_) | Node::Error) {
            return 0;
        }
        while let Node::Fun(_, to) = self.store.shape(at) {
            count += 1;
            at = to;
        }
        let fits = count > 0
            && std::mem::discriminant(&self.store.shape(at)) == std::mem::discriminant(&self.store.shape(expected));
        if fits {
            count
        } else {
            0
        }
    }

    /// How many arguments make a number of a function, and of which type; 0 if none do.
    fn arguments_to_number(&mut self, ty: Ty) -> (usize, Ty) {
        let (mut count, mut at) = (0, ty);
        while let Node::Fun(_, to) = self.store.shape(at) {
            count += 1;
            at = to;
        }
        match self.store.shape(at) {
            Node::Int | Node::Real => (count, at),
            Node::Unbound(kind) if kind.number => (count, at),
            _ => (0, at),
        }
    }

    pub fn require_data(&mut self, ty: Ty, span: Span, why: &Why) {
        let mut relate = Relate::new(&mut self.store, &self.tables.declared, self.mark, &mut self.pending, span);
        if let Err(clash) = relate.require_data(ty) {
            self.clash(clash, ty, ty, span, why, Expression::Other);
        }
    }

    // Sizes.

    /// Starts an application: its size variables are those made from here on.
    pub fn start_application(&mut self) -> (u32, usize) {
        self.store.clock += 1;
        let before = std::mem::replace(&mut self.mark, self.store.clock);
        (before, self.pending.len())
    }

    /// A size that only unknown ones were given for is unknown.
    pub fn finish_application(&mut self, (mark, pending): (u32, usize)) {
        self.mark = mark;
        for size in self.pending.split_off(pending) {
            if let Size::Var(v) = self.store.size(size) {
                if matches!(self.store.sizes[v as usize], SizeNode::Unbound { .. }) {
                    self.store.sizes[v as usize] = SizeNode::Link(Size::Unknown);
                }
            }
        }
    }

    /// The array size that an integer expression is, if it names one: a literal, a size variable, `length a`.
    pub fn size_of(&self, exp: Exp) -> Option<Size> {
        match &self.tree.node(exp).kind {
            ExpKind::Numeral(text) => text.replace('_', "").parse().ok().map(Size::Literal),
            ExpKind::Local(id, _) => self.tree.local_of(*id).size,
            ExpKind::Prim(Prim::Length, _, args) => match args[..] {
                [array] => match self.store.node(self.store.root(self.ty(array))) {
                    Node::Array(_, size) => match self.store.size(*size) {
                        Size::Unknown => None,
                        known @ (Size::Literal(_) | Size::Rigid(_) | Size::Var(_)) => Some(known),
                    },
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }
}
