//! Modules and the ways in: a whole program, or one more expression.

use crate::builtin::Builtins;
use crate::declared::Declared;
use crate::display::Printer;
use crate::error::TypeError;
use crate::error::Why;
use crate::infer::{Infer, Tables};
use crate::names::{Names, Value};
use crate::store::Ty;
use crate::tree::{Exp, ExpKind};
use gradus_core::{Item, ItemKind, Prim, Program, Scheme, Symbol, Term, Type};
use gradus_source::Span;
use gradus_syntax::ast;
use indexmap::IndexMap;

/// A parsed module.
#[derive(Clone, Debug)]
pub struct ModuleSource {
    /// `Optim`; `Prelude` is opened everywhere.
    pub name: Symbol,
    /// If its parser reported errors, type errors are still found, but the program that comes out must not be used.
    pub tree: ast::Module,
}

/// A program whose types are right.
#[derive(Clone, Debug)]
pub struct Inferred {
    pub program: Program,
    /// Of kind [`TypeError::Unreachable`] and the like.
    pub warnings: Vec<TypeError>,
    pub(crate) tables: Tables,
    module: Symbol,
    scope: Names,
    imported: rustc_hash::FxHashSet<Symbol>,
}

/// The type of a definition.
#[derive(Clone, Debug)]
pub struct Signature {
    /// The name in `Program::defs`.
    pub name: Symbol,
    pub scheme: Scheme,
    /// As a user writes it, with sizes: `real[n] -> real[n] -> real`.
    pub shown: String,
}

/// An expression in core form, with nothing open.
#[derive(Clone, Debug)]
pub struct Elaborated {
    pub term: Term,
    pub ty: Type,
    /// As a user writes it, with sizes and with what was open: `'a list`.
    pub shown: String,
    pub warnings: Vec<TypeError>,
}

/// The modules that a module imports, in order.
pub fn imports(tree: &ast::Module) -> Vec<ast::Ident> {
    tree.items
        .iter()
        .filter_map(|item| match &item.kind {
            ast::ItemKind::Import(name) => Some(name.clone()),
            _ => None,
        })
        .collect()
}

/// Infers the modules of a program, in an order in which each comes after those that it imports. The last one is the
/// file that is run: its definitions go by their plain names, and its `show`, `check` and `plot` are the program's.
pub fn infer_program(modules: &[ModuleSource]) -> Result<Inferred, Vec<TypeError>> {
    let declared = Declared::builtin();
    let builtins = Builtins::new(&declared);
    let mut program = Program::default();
    for id in declared.ids() {
        let decl = declared.core_decl(id);
        program.types.insert(decl.name.base.clone(), decl);
    }
    let mut tables =
        Tables { declared, aliases: Vec::new(), globals: Vec::new(), modules: IndexMap::new(), builtins, program };
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    let (mut scope, mut imported) = (Names::default(), Default::default());
    let mut last: Symbol = "".into();
    for (index, module) in modules.iter().enumerate() {
        let main = index + 1 == modules.len();
        let mut infer = Infer::new(tables, module.name.clone(), main);
        infer.module_items(&module.tree);
        errors.append(&mut infer.errors);
        warnings.append(&mut infer.warnings);
        tables = infer.tables;
        tables.modules.insert(module.name.clone(), infer.exports);
        if main {
            (scope, imported, last) = (infer.scope, infer.imported, module.name.clone());
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let program = std::mem::take(&mut tables.program);
    Ok(Inferred { program, warnings, tables, module: last, scope, imported })
}

/// Infers one expression in the scope at the end of the program's file, perhaps at a type that is wanted.
pub fn infer_expr(inferred: &Inferred, expr: &ast::Expr, expected: Option<Type>) -> Result<Elaborated, Vec<TypeError>> {
    let mut infer = Infer::new(inferred.tables.clone(), inferred.module.clone(), true);
    infer.scope = inferred.scope.clone();
    infer.imported = inferred.imported.clone();
    infer.type_vars.push(Default::default());
    infer.store.level = 1;
    let exp = infer.synth(expr);
    let ty = infer.ty(exp);
    infer.bounded(ty, expr.span);
    let shown = infer.show(ty);
    let made = if infer.errors.is_empty() { infer.closed_expression(exp, expected) } else { None };
    match made {
        Some((term, ty)) => Ok(Elaborated { term, ty, shown, warnings: infer.warnings }),
        None => Err(infer.errors),
    }
}

impl Inferred {
    /// A definition by the name by which the program's file knows it: `loss`, `map`, `Optim.descend`.
    pub fn signature(&self, name: &str) -> Option<Signature> {
        let value = match name.rsplit_once('.') {
            None => self.scope.values.get(name),
            Some((module, name)) => self.tables.modules.get(module)?.values.get(name),
        };
        let Some(Value::Global(id)) = value else { return None };
        let global = &self.tables.globals[id.0 as usize];
        let closed = global.scheme.as_ref()?;
        let def = self.program.defs.get(&global.name)?;
        let shown = Printer::of_closed(closed, &self.tables.declared).print(closed.root());
        Some(Signature { name: global.name.clone(), scheme: def.scheme.clone(), shown })
    }

    /// The type of a primitive or derivative form by its name, as a user writes it.
    pub fn builtin(&self, name: &str) -> Option<String> {
        let closed = match self.scope.values.get(name)? {
            Value::Prim(prim) => self.tables.builtins.prim(*prim),
            Value::Derive(op) => self.tables.builtins.derive(*op),
            Value::Local(_) | Value::Global(_) => return None,
        };
        Some(Printer::of_closed(&closed, &self.tables.declared).print(closed.root()))
    }

    /// The definitions of the program's file, in order.
    pub fn own_definitions(&self) -> impl Iterator<Item = Symbol> + '_ {
        let own = self.program.defs.values().filter(|def| def.module == self.module);
        // Not those that a later definition of the same name hides.
        own.map(|def| def.name.clone()).filter(|name| self.scope.values.contains_key(name))
    }
}

impl Infer {
    pub fn module_items(&mut self, tree: &ast::Module) {
        self.count_definitions(tree);
        for item in &tree.items {
            self.item(item);
        }
    }

    /// How often each name is defined at the top level, so that the last one can keep its name.
    fn count_definitions(&mut self, tree: &ast::Module) {
        let mut names = Vec::new();
        for item in &tree.items {
            match &item.kind {
                ast::ItemKind::Let(group) => {
                    for binding in &group.bindings {
                        let whole = !matches!(binding.pattern.kind, ast::PatternKind::Var(_));
                        pattern_names(&binding.pattern, &mut names);
                        if whole {
                            names.push("_whole".into());
                        }
                    }
                }
                ast::ItemKind::Data { name, .. } => names.push(name.name.clone()),
                ast::ItemKind::Import(_)
                | ast::ItemKind::Open(_)
                | ast::ItemKind::Type(_)
                | ast::ItemKind::Show(_)
                | ast::ItemKind::Check(_)
                | ast::ItemKind::Plot { .. }
                | ast::ItemKind::Rule { .. }
                | ast::ItemKind::Error => {}
            }
        }
        for name in names {
            *self.to_define.entry(name).or_insert(0) += 1;
        }
    }

    fn item(&mut self, item: &ast::Item) {
        match &item.kind {
            ast::ItemKind::Import(name) => {
                // A module that is not there has been told by whoever looked for it.
                self.imported.insert(name.name.clone());
            }
            ast::ItemKind::Open(path) => {
                if let Some(names) = self.opened(path).and_then(|module| self.tables.modules.get(&module).cloned()) {
                    self.scope.open(&names);
                }
            }
            ast::ItemKind::Type(decls) => self.declare(decls),
            ast::ItemKind::Let(group) => self.top_let(group),
            ast::ItemKind::Data { name, ty, file } => self.data(&name.name, name.span, ty, file),
            ast::ItemKind::Show(expr) => {
                self.evaluated(expr, None, item.span, |_, _| ItemKind::Show);
            }
            ast::ItemKind::Check(expr) => {
                self.evaluated(expr, Some(Ty::BOOL), item.span, |this, exp| ItemKind::Check { sides: this.sides(exp) });
            }
            ast::ItemKind::Plot { value, file } => {
                let file = file.as_ref().map(|file| file.value.clone());
                self.evaluated(value, None, item.span, |_, _| ItemKind::Plot { file });
            }
            ast::ItemKind::Rule { direction, function, params, body } => {
                self.rule(*direction, function, params, body, item.span)
            }
            ast::ItemKind::Error => {}
        }
    }

    /// `show`, `check`, `plot`: checked in every module, kept for the file that is run.
    fn evaluated(
        &mut self,
        expr: &ast::Expr,
        expected: Option<Ty>,
        span: Span,
        kind: impl FnOnce(&mut Self, Exp) -> ItemKind,
    ) {
        let errors = self.errors.len();
        self.store.level = 1;
        self.type_vars.push(Default::default());
        let exp = match expected {
            Some(ty) => self.check(expr, ty, &Why::Check),
            None => self.synth(expr),
        };
        let ty = self.ty(exp);
        self.bounded(ty, expr.span);
        if self.errors.len() == errors {
            if let Some((term, ty)) = self.closed_expression(exp, None) {
                if self.main {
                    let warned = self.warnings.len();
                    let kind = kind(self, exp);
                    self.warnings.truncate(warned);
                    self.tables.program.items.push(Item { kind, term, ty, span });
                }
            }
        }
        self.reset();
    }

    /// Both sides of a comparison, with binders of their own.
    fn sides(&mut self, exp: Exp) -> Option<(Term, Term, Type)> {
        let (left, right) = match &self.tree.node(exp).kind {
            ExpKind::Prim(
                Prim::Equal | Prim::NotEqual | Prim::Less | Prim::LessEqual | Prim::Greater | Prim::GreaterEqual,
                _,
                args,
            ) => match args[..] {
                [left, right] => (left, right),
                _ => return None,
            },
            _ => return None,
        };
        let (left, right, ty) = self.lower(&[], |lower| (lower.term(left), lower.term(right), lower.ty_of(left)));
        let renewed = |term: &Term| gradus_core::traverse::Copy::default().term(term);
        Some((renewed(&left), renewed(&right), ty))
    }
}

/// The variables of a pattern.
fn pattern_names(pattern: &ast::Pattern, names: &mut Vec<Symbol>) {
    gradus_core::traverse::with_stack(|| match &pattern.kind {
        ast::PatternKind::Var(name) => names.push(name.clone()),
        ast::PatternKind::As(inner, name) => {
            pattern_names(inner, names);
            names.push(name.name.clone());
        }
        ast::PatternKind::Tuple(parts) | ast::PatternKind::List(parts) | ast::PatternKind::Array(parts) => {
            parts.iter().for_each(|part| pattern_names(part, names))
        }
        // All alternatives bind the same.
        ast::PatternKind::Or(parts) => parts.iter().take(1).for_each(|part| pattern_names(part, names)),
        ast::PatternKind::Cons(a, b) => {
            pattern_names(a, names);
            pattern_names(b, names);
        }
        ast::PatternKind::Constructor(_, argument) => argument.iter().for_each(|part| pattern_names(part, names)),
        ast::PatternKind::Record { fields, .. } => {
            for (path, part) in fields {
                match part {
                    Some(part) => pattern_names(part, names),
                    None => names.push(path.name.name.clone()),
                }
            }
        }
        ast::PatternKind::Annotation(inner, _) => pattern_names(inner, names),
        ast::PatternKind::Wild
        | ast::PatternKind::Int(_)
        | ast::PatternKind::Real(_)
        | ast::PatternKind::String(_)
        | ast::PatternKind::Bool(_)
        | ast::PatternKind::Unit
        | ast::PatternKind::Error => {}
    })
}
