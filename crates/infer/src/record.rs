//! Records: which record a field belongs to, building, copying with changes, reading a field.

use crate::declared::DeclaredBody;
use crate::error::{Twice, TypeError, Why};
use crate::infer::Infer;
use crate::names::nearest;
use crate::store::{Node, Ty, TypeId};
use crate::tree::{Exp, ExpKind};
use gradus_core::Symbol;
use gradus_source::Span;
use gradus_syntax::ast;

type FieldValue = (ast::Path, Option<ast::Expr>);

impl Infer {
    /// The record that some fields belong to: the type that is known already, or the latest declared record with such fields.
    pub fn record_of<'p>(
        &mut self,
        known: Ty,
        fields: impl Iterator<Item = &'p ast::Path>,
        span: Span,
    ) -> Option<TypeId> {
        if let Node::Named(id, _) = self.store.shape(known) {
            if matches!(self.tables.declared.get(id).body, DeclaredBody::Record(..)) {
                return Some(id);
            }
        }
        let fields: Vec<&ast::Path> = fields.collect();
        let Some(first) = fields.first() else {
            self.report(TypeError::EmptyRecord { span });
            return None;
        };
        let candidates = self.field(first)?;
        let has_all = |id: &TypeId| match &self.tables.declared.get(*id).body {
            DeclaredBody::Record(names, _) => fields.iter().all(|f| names.contains(&f.name.name)),
            DeclaredBody::Variant(_) => false,
        };
        // The latest record with all of the fields; failing that, the latest with the first, for the message.
        let fitting = candidates.iter().rev().map(|(id, _)| *id).find(has_all);
        fitting.or(candidates.last().map(|(id, _)| *id))
    }

    pub fn field_names(&self, id: TypeId) -> &[Symbol] {
        match &self.tables.declared.get(id).body {
            DeclaredBody::Record(names, _) => names,
            DeclaredBody::Variant(_) => &[],
        }
    }

    pub fn field_index(&mut self, id: TypeId, path: &ast::Path) -> Option<usize> {
        let names = self.field_names(id);
        let index = names.iter().position(|name| *name == path.name.name);
        if index.is_none() {
            let near = nearest(&path.name.name, names.iter().map(|name| &**name));
            let record = self.tables.declared.get(id).name.to_string();
            let (field, fields) = (path.name.name.clone(), names.to_vec());
            self.report(TypeError::NoSuchField { record, field, fields, near, span: path.name.span });
        }
        index
    }

    /// `x` in `{ x; y = 1.0 }` is the variable of that name.
    fn field_value(&mut self, (path, value): &FieldValue, expected: Ty, record: &Symbol) -> Exp {
        let why = Why::Field { name: path.name.name.clone(), record: record.clone() };
        match value {
            Some(value) => self.check(value, expected, &why),
            None => {
                let path = ast::Path { modules: Vec::new(), name: path.name.clone(), span: path.name.span };
                let variable = ast::Expr { span: path.span, kind: ast::ExprKind::Var(path) };
                self.check(&variable, expected, &why)
            }
        }
    }

    fn field_values(&mut self, id: TypeId, types: &[Ty], fields: &[FieldValue]) -> Vec<(usize, Exp)> {
        self.twice(Twice::Field, fields.iter().map(|(path, _)| (path.name.name.clone(), path.span)));
        let record = self.tables.declared.get(id).name.clone();
        let mut values = Vec::new();
        for field in fields {
            match self.field_index(id, &field.0) {
                Some(index) => values.push((index, self.field_value(field, types[index], &record))),
                None => {
                    self.field_value(field, Ty::ERROR, &record);
                }
            }
        }
        values
    }

    /// `{ x = 1.0; y = 2.0 }`
    pub fn record(&mut self, fields: &[FieldValue], hint: Option<Ty>, span: Span) -> Exp {
        let known = hint.unwrap_or(Ty::UNIT);
        let Some(id) = self.record_of(known, fields.iter().map(|(path, _)| path), span) else {
            for field in fields {
                self.field_value(field, Ty::ERROR, &"".into());
            }
            return self.error_exp(span);
        };
        let (own, types) = self.constructor_instance(id, 0);
        if let Some(hint) = hint {
            // What is known of the type's arguments helps the fields; a mismatch is told by the caller.
            if matches!(self.store.shape(hint), Node::Named(known, _) if known == id) {
                let _ = self.relate(hint, own, span);
            }
        }
        let values = self.field_values(id, &types, fields);
        let mut missing: Vec<Option<&Symbol>> = self.field_names(id).iter().map(Some).collect();
        values.iter().for_each(|(index, _)| missing[*index] = None);
        let missing: Vec<Symbol> = missing.into_iter().flatten().cloned().collect();
        if !missing.is_empty() {
            // A field that the record does not have was probably meant to be one of these.
            if values.len() == fields.len() {
                let record = self.tables.declared.get(id).name.clone();
                self.report(TypeError::MissingFields { record, fields: missing, span });
            }
            return self.tree.exp(ExpKind::Error, own, span);
        }
        self.tree.exp(ExpKind::Record(id, values), own, span)
    }

    /// `{ r with x = e }`
    pub fn record_with(&mut self, base: &ast::Expr, fields: &[FieldValue], hint: Option<Ty>, span: Span) -> Exp {
        let base = match hint {
            Some(hint) => self.synth_with(base, Some(hint)),
            None => self.synth(base),
        };
        let known = self.ty(base);
        let Some(id) = self.record_of(known, fields.iter().map(|(path, _)| path), span) else {
            return self.error_exp(span);
        };
        let (own, types) = self.constructor_instance(id, 0);
        let field = fields.first().map_or("".into(), |(path, _)| path.name.name.clone());
        let base = self.flow(base, own, &Why::Record { field });
        let values = self.field_values(id, &types, fields);
        self.tree.exp(ExpKind::RecordWith(id, base, values), own, span)
    }

    /// `r.x`
    pub fn field_of(&mut self, base: &ast::Expr, path: &ast::Path, span: Span) -> Exp {
        let base = self.synth(base);
        let known = self.ty(base);
        let shape = self.store.shape(known);
        if shape == Node::Error {
            return self.error_exp(span);
        }
        let is_record = matches!(&shape, Node::Named(id, _) if matches!(self.tables.declared.get(*id).body, DeclaredBody::Record(..)));
        if !is_record && !matches!(shape, Node::Unbound(_)) {
            let error = TypeError::NotARecord { ty: self.show(known), field: path.name.name.clone(), span };
            return self.wrong(error, span);
        }
        let Some(id) = self.record_of(known, std::iter::once(path), span) else { return self.error_exp(span) };
        let Some(index) = self.field_index(id, path) else { return self.error_exp(span) };
        let (own, types) = self.constructor_instance(id, 0);
        let base = self.flow(base, own, &Why::Record { field: path.name.name.clone() });
        self.tree.exp(ExpKind::Field(base, index), types[index], span)
    }
}
