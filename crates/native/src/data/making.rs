//! The layout of a type, made from its declaration.

use super::*;

impl Making<'_> {
    pub(super) fn node(&mut self, ty: &Type) -> Result<Node, Box<Refusal>> {
        with_stack(|| {
            Ok(match ty {
                Type::Real => Node::Real,
                Type::Int => Node::Int,
                Type::Bool => Node::Bool,
                Type::String => Node::String,
                Type::Tuple(parts) => Node::Tuple(self.nodes(parts, false)?),
                Type::Array(element) => Node::Array(Box::new(self.element(element)?)),
                Type::Named(..) => self.named(ty, false)?,
                Type::Unit | Type::Fun(_) | Type::Var(_) => Node::Unit,
            })
        })
    }

    pub(super) fn nodes(&mut self, types: &[Type], in_array: bool) -> Result<Vec<Node>, Box<Refusal>> {
        types.iter().map(|t| if in_array { self.element(t) } else { self.node(t) }).collect()
    }

    /// As an element of an array, where some types are boxed that are not elsewhere.
    pub(super) fn element(&mut self, ty: &Type) -> Result<Node, Box<Refusal>> {
        if self.lowering.is_wrapped(ty, Span::default())? {
            return Ok(Node::Wrapped(Box::new(self.node(ty)?)));
        }
        match ty {
            Type::Tuple(parts) => Ok(Node::Tuple(self.nodes(parts, true)?)),
            Type::Named(..) => self.named(ty, true),
            _ => self.node(ty),
        }
    }

    pub(super) fn named(&mut self, ty: &Type, in_array: bool) -> Result<Node, Box<Refusal>> {
        let Type::Named(name, args) = ty else { return Ok(Node::Unit) };
        let builtin = TypeDecl::builtin();
        let decl = self.program.types.values().chain(&builtin).find(|d| d.name == *name).cloned();
        let Some(decl) = decl else { return Ok(Node::Unit) };
        let constructors: Vec<Vec<Type>> = decl.constructors(args).into_iter().map(|(_, types)| types).collect();
        let record = matches!(decl.body, TypeBody::Record(_));
        if !self.lowering.is_boxed(name) {
            return Ok(match decl.body {
                TypeBody::Record(_) => Node::Tuple(self.nodes(&constructors.concat(), in_array)?),
                TypeBody::Variant(_) => {
                    Node::Variant(constructors.iter().map(|ts| self.nodes(ts, false)).collect::<Result<_, _>>()?)
                }
            });
        }
        let list = &*name.base == "list" && name.modes.is_empty();
        let cell = match self.numbers.get(ty) {
            Some(cell) => *cell,
            None => {
                let cell = self.cells.len();
                self.numbers.insert(ty.clone(), cell);
                self.cells.push(Vec::new());
                let nodes = constructors.iter().map(|ts| self.nodes(ts, false)).collect::<Result<_, _>>()?;
                self.cells[cell] = nodes;
                cell
            }
        };
        Ok(Node::Boxed { cell, record, list })
    }
}
