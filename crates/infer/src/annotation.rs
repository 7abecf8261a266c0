//! Types as they are written: in annotations and declarations.

use crate::error::{NamePlace, Namespace, TypeError};
use crate::infer::Infer;
use crate::names::{Alias, TypeRef, Value};
use crate::scheme::LocalScheme;
use crate::store::{Node, Size, Ty};
use gradus_core::traverse::with_stack;
use gradus_core::Symbol;
use gradus_syntax::ast::{SizeExpr, TypeDecl, TypeExpr, TypeExprKind};
use std::sync::Arc;

/// What a size name that is not in scope means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeNames {
    /// In a parameter of a named function: a new size variable of that function.
    Rigid,
    /// In a parameter of `fun`: a size to be found out.
    Flexible,
    /// Elsewhere: a size that nothing is known of, unless it is the value of an integer variable.
    Unknown,
}

impl Infer {
    pub fn type_expr(&mut self, ty: &TypeExpr, sizes: SizeNames) -> Ty {
        with_stack(|| match &ty.kind {
            TypeExprKind::Var(name) => self.type_var(&name.name, name.span),
            TypeExprKind::Named(path, args) => {
                let args: Vec<Ty> = args.iter().map(|arg| self.type_expr(arg, sizes)).collect();
                self.named_type(path, args, ty.span)
            }
            TypeExprKind::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.type_expr(part, sizes)).collect();
                self.store.tuple(parts)
            }
            TypeExprKind::Fun(from, to) => {
                let (from, to) = (self.type_expr(from, sizes), self.type_expr(to, sizes));
                self.store.fun(from, to)
            }
            TypeExprKind::Array(element, size) => {
                // The outermost size is read first, as it is written.
                let size = self.size_expr(size, sizes);
                let element = self.type_expr(element, sizes);
                self.store.array(element, size)
            }
            TypeExprKind::Wild => self.store.fresh(),
            TypeExprKind::Error => Ty::ERROR,
        })
    }

    /// `'a` stands for the same type everywhere in the binding in which it occurs first.
    fn type_var(&mut self, name: &Symbol, span: gradus_source::Span) -> Ty {
        if let Some(ty) = self.type_vars.iter().rev().find_map(|scope| scope.get(name)) {
            return *ty;
        }
        let ty = self.store.fresh();
        match self.type_vars.last_mut() {
            Some(scope) => {
                scope.insert(name.clone(), ty);
                ty
            }
            None => {
                let error = TypeError::Unknown {
                    namespace: Namespace::TypeVariable,
                    name: name.clone(),
                    module: None,
                    near: None,
                    place: NamePlace::Nowhere,
                    span,
                };
                self.report(error);
                Ty::ERROR
            }
        }
    }

    fn named_type(&mut self, path: &gradus_syntax::ast::Path, args: Vec<Ty>, span: gradus_source::Span) -> Ty {
        if path.modules.is_empty() {
            self.expand_pending(&path.name.name, path.name.span);
        }
        let Some(found) = self.type_named(path) else { return Ty::ERROR };
        let expected = match found {
            TypeRef::Constant(_) => 0,
            TypeRef::Declared(id) => self.tables.declared.get(id).params.len(),
            TypeRef::Alias(alias) => self.tables.aliases[alias as usize].params,
        };
        if expected != args.len() {
            let name = path.name.name.clone();
            self.report(TypeError::TypeArity { name, expected, given: args.len(), span });
            return Ty::ERROR;
        }
        match found {
            TypeRef::Constant(ty) => ty,
            TypeRef::Declared(id) => self.named(id, args),
            TypeRef::Alias(alias) => {
                let body = self.tables.aliases[alias as usize].body.clone();
                body.instantiate_with(&mut self.store, &args, &[]).first().copied().unwrap_or(Ty::ERROR)
            }
        }
    }

    fn size_expr(&mut self, size: &SizeExpr, names: SizeNames) -> Size {
        let name = match size {
            SizeExpr::Literal(n, _) => return Size::Literal(*n),
            SizeExpr::Unknown => return Size::Unknown,
            SizeExpr::Var(name) => name,
        };
        if let Some(size) = self.size_vars.iter().rev().find_map(|scope| scope.get(&name.name)) {
            return *size;
        }
        // `let zeros (n : int) : real[n]`: the size is the value of the variable.
        let variable = match self.locals.get(&name.name).and_then(|stack| stack.last()) {
            Some(Value::Local(id)) if matches!(self.store.shape(self.tree.local_of(*id).ty), Node::Int) => Some(*id),
            _ => None,
        };
        let size = match (names, variable) {
            (SizeNames::Rigid, _) | (_, Some(_)) => self.store.rigid_size(name.name.clone()),
            (SizeNames::Flexible, None) => self.store.fresh_size(),
            (SizeNames::Unknown, None) => return Size::Unknown,
        };
        if let (Size::Rigid(r), Some(id)) = (size, variable) {
            self.store.rigid_sizes[r as usize].value = Some(id);
            self.tree.local_mut(id).size = Some(size);
        }
        if let Some(scope) = self.size_vars.last_mut() {
            scope.insert(name.name.clone(), size);
        }
        size
    }

    // Aliases of a group that is being declared may use each other in any order.

    /// Expands an alias of the group being declared, if that is what the name means.
    pub fn expand_pending(&mut self, name: &Symbol, span: gradus_source::Span) {
        let Some((decl, busy)) = self.pending_aliases.get_mut(name) else { return };
        if std::mem::replace(busy, true) {
            self.pending_aliases.remove(name);
            self.report(TypeError::CyclicAlias { name: name.clone(), span });
            self.define_type(name.clone(), TypeRef::Constant(Ty::ERROR));
            return;
        }
        let decl = decl.clone();
        self.alias(&decl);
        self.pending_aliases.remove(name);
    }

    fn alias(&mut self, decl: &TypeDecl) {
        let gradus_syntax::ast::TypeBody::Alias(body) = &decl.body else { return };
        // Its parameters are its own, whatever declaration is being read.
        let outer = std::mem::take(&mut self.type_vars);
        let scheme = self.declared_params(decl);
        let ty = self.bounded_type(body);
        self.type_vars = outer;
        let body = Arc::new(self.store.close(&[ty], &scheme));
        if !self.pending_aliases.contains_key(&decl.name.name) {
            return;
        }
        self.tables.aliases.push(Alias { params: decl.params.len(), body });
        self.define_type(decl.name.name.clone(), TypeRef::Alias(self.tables.aliases.len() as u32 - 1));
    }

    pub fn define_type(&mut self, name: Symbol, ty: TypeRef) {
        self.scope.types.insert(name.clone(), ty);
        self.exports.types.insert(name, ty);
    }

    /// Brings the parameters of a declaration into scope, each standing for itself.
    pub fn declared_params(&mut self, decl: &TypeDecl) -> LocalScheme {
        let mut scheme = LocalScheme::default();
        let mut scope = rustc_hash::FxHashMap::default();
        for param in &decl.params {
            let q = self.store.quantify(param.name.clone(), false);
            scheme.vars.push(q);
            scope.insert(param.name.clone(), self.store.add(Node::Quantified(q)));
        }
        self.type_vars.push(scope);
        scheme
    }
}
