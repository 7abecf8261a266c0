//! Type declarations.

use crate::annotation::SizeNames;
use crate::declared::{Constructor, DeclaredBody, DeclaredType};
use crate::error::{NamePlace, Namespace, Twice, TypeError};
use crate::infer::Infer;
use crate::names::TypeRef;
use crate::scheme::{Closed, LocalScheme};
use crate::store::{Ty, TypeId};
use gradus_core::Symbol;
use gradus_syntax::ast::{Ident, TypeBody, TypeDecl, TypeExpr, TypeExprKind};
use rustc_hash::FxHashMap;

impl Infer {
    /// `type a = ... and b = ...`: all names first, then what they mean.
    pub fn declare(&mut self, decls: &[TypeDecl]) {
        let place = |ident: &Ident| (ident.name.clone(), ident.span);
        self.twice(Twice::Type, decls.iter().map(|decl| place(&decl.name)));
        let mut group: Vec<(TypeId, &TypeDecl)> = Vec::new();
        for decl in decls {
            self.twice(Twice::TypeParameter, decl.params.iter().map(place));
            if let TypeBody::Alias(_) = &decl.body {
                self.pending_aliases.insert(decl.name.name.clone(), (decl.clone(), false));
                continue;
            }
            let params = decl.params.iter().map(|p| gradus_core::TypeVar::fresh(p.name.clone())).collect();
            let id = self.tables.declared.add(DeclaredType {
                name: self.type_name(&decl.name.name),
                params,
                body: DeclaredBody::Variant(Vec::new()),
                has_function: false,
                span: decl.name.span,
            });
            self.define_type(decl.name.name.clone(), TypeRef::Declared(id));
            group.push((id, decl));
        }
        for decl in decls {
            if matches!(decl.body, TypeBody::Alias(_)) {
                self.check_variables(decl);
                self.expand_pending(&decl.name.name, decl.name.span);
            }
        }
        for (id, decl) in &group {
            self.check_variables(decl);
            let body = self.declared_body(*id, decl);
            self.tables.declared.get_mut(*id).body = body;
            self.offer(*id, decl);
        }
        let ids: Vec<TypeId> = group.iter().map(|(id, _)| *id).collect();
        self.tables.declared.find_functions(&ids);
        for id in ids {
            let decl = self.tables.declared.core_decl(id);
            self.tables.program.types.insert(decl.name.base.clone(), decl);
        }
        self.reset();
    }

    /// Types share a table with those of other modules and with earlier ones of the same name.
    fn type_name(&self, name: &Symbol) -> Symbol {
        let mut full: Symbol = if self.main { name.clone() } else { format!("{}.{name}", self.module).into() };
        while self.tables.program.types.contains_key(&full) {
            full = format!("{full}'").into();
        }
        full
    }

    fn declared_body(&mut self, id: TypeId, decl: &TypeDecl) -> DeclaredBody {
        let scheme = self.declared_params(decl);
        let vars = self.tables.declared.get(id).params.clone();
        for (q, var) in scheme.vars.iter().zip(vars) {
            self.store.quantified[*q as usize].var = var;
        }
        let body = match &decl.body {
            TypeBody::Record(fields) => {
                self.twice(Twice::Field, fields.iter().map(|f| (f.name.name.clone(), f.name.span)));
                let types: Vec<&TypeExpr> = fields.iter().map(|f| &f.ty).collect();
                let closed = self.closed_types(&types, &scheme);
                DeclaredBody::Record(fields.iter().map(|f| f.name.name.clone()).collect(), closed)
            }
            TypeBody::Variant(constructors) => {
                self.twice(Twice::Constructor, constructors.iter().map(|c| (c.name.name.clone(), c.name.span)));
                let constructors = constructors
                    .iter()
                    .map(|c| Constructor {
                        name: c.name.name.clone(),
                        args: self.closed_types(&c.args.iter().collect::<Vec<_>>(), &scheme),
                    })
                    .collect();
                DeclaredBody::Variant(constructors)
            }
            TypeBody::Alias(_) => DeclaredBody::Variant(Vec::new()),
        };
        self.type_vars.pop();
        body
    }

    fn closed_types(&mut self, types: &[&TypeExpr], scheme: &LocalScheme) -> Closed {
        let types: Vec<Ty> = types.iter().map(|ty| self.bounded_type(ty)).collect();
        self.store.close(&types, scheme)
    }

    /// A written type, if it is not too large for the passes that follow.
    pub fn bounded_type(&mut self, ty: &TypeExpr) -> Ty {
        let made = self.type_expr(ty, SizeNames::Unknown);
        self.bounded(made, ty.span)
    }

    /// The names that a type brings with it.
    fn offer(&mut self, id: TypeId, decl: &TypeDecl) {
        let enter = |names: &mut crate::names::Names| match &decl.body {
            TypeBody::Record(fields) => {
                for (index, field) in fields.iter().enumerate() {
                    names.fields.entry(field.name.name.clone()).or_default().push((id, index));
                }
            }
            TypeBody::Variant(constructors) => {
                for (tag, constructor) in constructors.iter().enumerate() {
                    names.constructors.insert(constructor.name.name.clone(), (id, tag));
                }
            }
            TypeBody::Alias(_) => {}
        };
        enter(&mut self.scope);
        enter(&mut self.exports);
    }

    /// A declaration may only use its own parameters.
    fn check_variables(&mut self, decl: &TypeDecl) {
        let known: FxHashMap<&str, ()> = decl.params.iter().map(|p| (&*p.name, ())).collect();
        let mut unknown: Vec<Ident> = Vec::new();
        let mut visit = |ty: &TypeExpr| {
            variables(ty, &mut |name| {
                if !known.contains_key(&*name.name) {
                    unknown.push(name.clone());
                }
            })
        };
        match &decl.body {
            TypeBody::Alias(ty) => visit(ty),
            TypeBody::Record(fields) => fields.iter().for_each(|f| visit(&f.ty)),
            TypeBody::Variant(constructors) => constructors.iter().flat_map(|c| &c.args).for_each(visit),
        }
        for ident in unknown {
            let namespace = Namespace::TypeVariable;
            self.report(TypeError::Unknown {
                namespace,
                name: ident.name,
                module: None,
                near: None,
                place: NamePlace::Nowhere,
                span: ident.span,
            });
        }
    }
}

/// The type variables that a written type mentions.
pub fn variables(ty: &TypeExpr, f: &mut dyn FnMut(&Ident)) {
    gradus_core::traverse::with_stack(|| match &ty.kind {
        TypeExprKind::Var(name) => f(name),
        TypeExprKind::Named(_, parts) | TypeExprKind::Tuple(parts) => parts.iter().for_each(|part| variables(part, f)),
        TypeExprKind::Fun(a, b) => {
            variables(a, f);
            variables(b, f);
        }
        TypeExprKind::Array(element, _) => variables(element, f),
        TypeExprKind::Wild | TypeExprKind::Error => {}
    })
}
