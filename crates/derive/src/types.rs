//! The translation of types (K Fig. 3, 5, 7 and 9; N Fig. 4.9 and 8.15): a mode says what a real and a function type become, and
//! everything else is homomorphic. Also what a type has inside.

use crate::mode::{rules, ModeRules};
use crate::{Linker, Made, Refusal};
use gradus_core::traverse::with_stack;
use gradus_core::{Mode, Type, TypeBody, TypeDecl, TypeName};
use gradus_source::Span;
use std::sync::Arc;

/// What a type has inside, declared types looked through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub reals: bool,
    pub functions: bool,
    /// A variant with several constructors, or an array: two values can differ in shape.
    pub shapes: bool,
}

impl Contents {
    fn and(self, other: Contents) -> Contents {
        Contents {
            reals: self.reals || other.reals,
            functions: self.functions || other.functions,
            shapes: self.shapes || other.shapes,
        }
    }

    /// No function inside.
    pub fn is_data(self) -> bool {
        !self.functions
    }

    /// Neither reals nor functions: the same under every mode.
    pub fn is_leaf(self) -> bool {
        !self.reals && !self.functions
    }
}

fn mentions(ty: &Type, name: &TypeName) -> bool {
    with_stack(|| match ty {
        Type::Named(other, args) => other == name || args.iter().any(|arg| mentions(arg, name)),
        Type::Tuple(parts) => parts.iter().any(|part| mentions(part, name)),
        Type::Fun(ends) => mentions(&ends.0, name) || mentions(&ends.1, name),
        Type::Array(element) => mentions(element, name),
        Type::Var(_) | Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit => false,
    })
}

impl Linker {
    pub fn contents(&self, ty: &Type) -> Contents {
        self.contents_inside(ty, &mut Vec::new())
    }

    /// `around`: the declared types that we are inside of.
    fn contents_inside(&self, ty: &Type, around: &mut Vec<TypeName>) -> Contents {
        with_stack(|| match ty {
            Type::Real => Contents { reals: true, ..Contents::default() },
            Type::Var(_) | Type::Int | Type::Bool | Type::String | Type::Unit => Contents::default(),
            Type::Tuple(parts) => self.contents_of_all(parts, around),
            // What a function takes and gives does not matter: it is a function inside already.
            Type::Fun(_) => Contents { functions: true, ..Contents::default() },
            Type::Array(element) => {
                let own = Contents { shapes: true, ..Contents::default() };
                own.and(self.contents_inside(element, around))
            }
            Type::Named(name, args) => {
                self.contents_of_all(args, around).and(self.contents_of_declaration(name, around))
            }
        })
    }

    fn contents_of_all(&self, types: &[Type], around: &mut Vec<TypeName>) -> Contents {
        types.iter().fold(Contents::default(), |all, t| all.and(self.contents_inside(t, around)))
    }

    /// Of the declaration alone, its parameters left open.
    fn contents_of_declaration(&self, name: &TypeName, around: &mut Vec<TypeName>) -> Contents {
        if around.contains(name) {
            return Contents::default();
        }
        if around.is_empty() {
            if let Some(known) = self.known_contents(name) {
                return known;
            }
        }
        let decl = self.declaration(name).unwrap_or_else(|_| gradus_source::bug!("no type {}", name.base));
        around.push(name.clone());
        let mut found = Contents::default();
        match &decl.body {
            TypeBody::Record(fields) => {
                for (_, ty) in fields {
                    found = found.and(self.contents_inside(ty, around));
                }
            }
            TypeBody::Variant(constructors) => {
                found.shapes = constructors.len() > 1;
                for (_, types) in constructors {
                    found = found.and(self.contents_of_all(types, around));
                }
            }
        }
        around.pop();
        if around.is_empty() {
            self.keep_contents(name, found);
        }
        found
    }

    /// The parts of a tuple, or of the only constructor of a type that is not recursive: of what is a product in the proved language.
    pub fn parts(&self, ty: &Type) -> Option<Vec<Type>> {
        match ty {
            Type::Tuple(parts) => Some(parts.to_vec()),
            Type::Named(name, args) => {
                let mut constructors = self.declaration(name).ok()?.constructors(args);
                let recursive = constructors.iter().any(|(_, fields)| fields.iter().any(|ty| mentions(ty, name)));
                let (_, fields) = constructors.pop().filter(|_| constructors.is_empty() && !recursive)?;
                Some(fields)
            }
            Type::Var(_)
            | Type::Real
            | Type::Int
            | Type::Bool
            | Type::String
            | Type::Unit
            | Type::Fun(_)
            | Type::Array(_) => None,
        }
    }

    /// How many reals and pairs a product of reals, and of what has none, consists of: `weight` of `proofs/Activity.v`. `None` if it is no such product.
    pub fn weight(&self, ty: &Type) -> Option<usize> {
        with_stack(|| match self.parts(ty) {
            Some(parts) => {
                let inside = parts.iter().map(|part| self.weight(part)).sum::<Option<usize>>()?;
                Some(inside + parts.len().saturating_sub(1))
            }
            None if *ty == Type::Real => Some(1),
            None => self.contents(ty).is_leaf().then_some(0),
        })
    }

    /// D(type) under a mode.
    pub fn image(&self, mode: &dyn ModeRules, ty: &Type) -> Type {
        with_stack(|| match ty {
            // K Fig. 3: D(A x B) = D(A) x D(B)
            Type::Tuple(parts) => Type::Tuple(parts.iter().map(|t| self.image(mode, t)).collect()),
            // D(A + B) = D(A) + D(B), and N Fig. 8.15: D(mu a. t) = mu a. D(t)
            Type::Named(name, args) => {
                let args = args.iter().map(|t| self.image(mode, t)).collect();
                Type::Named(self.image_name(mode.mode(), name), args)
            }
            // D(A -> B): the mode's own
            Type::Fun(ends) => match mode.function(self, &ends.0, &ends.1) {
                Some(ty) => ty,
                None => mode.arrow(self.image(mode, &ends.0), self.image(mode, &ends.1)),
            },
            // D(L) = L
            Type::Int | Type::Bool | Type::String | Type::Unit => ty.clone(),
            // D(R): the mode's own
            Type::Real => mode.real(),
            // C Fig. 10: D(Array n A) = Array n D(A)
            Type::Array(element) => Type::array(self.image(mode, element)),
            // N Fig. 8.15: D(a) = a
            Type::Var(_) => ty.clone(),
        })
    }

    /// A declaration without reals and functions (such as `list`) is its own image: only its arguments change.
    pub fn image_name(&self, mode: Mode, name: &TypeName) -> TypeName {
        let own = self.contents_of_declaration(name, &mut Vec::new());
        // Under `combinator`, D(real) = real.
        if own.is_leaf() || (mode == Mode::Combinator && own.is_data()) {
            return name.clone();
        }
        let mut image = name.clone();
        image.modes.push(mode);
        image
    }

    /// D_u1(... D_un(type)) for modes `[u1, .., un]`.
    pub fn image_under(&self, modes: &[Mode], ty: &Type) -> Made<Type> {
        let mut image = ty.clone();
        for mode in modes.iter().rev() {
            image = self.image(rules(*mode, Span::default())?, &image);
        }
        Ok(image)
    }

    /// The declaration behind a name, which may be the image of a declaration under modes.
    pub fn declaration(&self, name: &TypeName) -> Made<Arc<TypeDecl>> {
        if let Some(known) = self.known_declaration(name) {
            return Ok(known);
        }
        let unknown = || Box::new(Refusal::UnknownType { name: name.clone() });
        let mut inner = name.clone();
        let mode = rules(inner.modes.pop().ok_or_else(unknown)?, Span::default())?;
        let decl = self.declaration(&inner)?;
        let at = |t: &Type| self.image(mode, t);
        let body = match &decl.body {
            TypeBody::Record(fields) => TypeBody::Record(fields.iter().map(|(f, t)| (f.clone(), at(t))).collect()),
            TypeBody::Variant(constructors) => TypeBody::Variant(
                constructors.iter().map(|(c, types)| (c.clone(), types.iter().map(at).collect())).collect(),
            ),
        };
        let image = Arc::new(TypeDecl { name: name.clone(), params: decl.params.clone(), body, span: decl.span });
        self.keep_declaration(image.clone());
        Ok(image)
    }
}
