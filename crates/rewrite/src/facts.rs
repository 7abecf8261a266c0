//! What is known about the variables of a definition. Binders are unique, so that a fact about a variable holds wherever it stands.

use crate::settings::Settings;
use crate::total;
use gradus_core::{Definitions, Global, Literal, Prim, Term, TermKind, Type, Var};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

#[derive(Default)]
pub struct Facts<'a> {
    pub settings: Settings,
    pub definitions: Option<&'a dyn Definitions>,
    types: FxHashMap<Var, Type>,
    /// What a variable is bound to by `let`.
    values: FxHashMap<Var, Term>,
    /// The number of iterations of the loop whose index it is.
    bounds: FxHashMap<Var, Term>,
    /// Sizes that are equal here, because a check that they are has been passed; the latest last.
    checked: Vec<(Size, Size)>,
    /// Answers of [`Facts::is_total`], by the address of a term that is kept alive beside.
    totals: RefCell<FxHashMap<usize, (Term, bool)>>,
}

/// The number of elements of an array, up to what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Size {
    Literal(i64),
    /// An integer variable.
    Var(Var),
    Length(Array),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    Var(Var),
    Global(Global),
    /// Any row: all rows of an array have one length.
    Row(Box<Array>),
    Component(Box<Array>, usize),
}

impl Size {
    pub fn mentions(&self, var: &Var) -> bool {
        match self {
            Size::Literal(_) => false,
            Size::Var(found) => found == var,
            Size::Length(array) => array.mentions(var),
        }
    }
}

impl Array {
    fn mentions(&self, var: &Var) -> bool {
        match self {
            Array::Var(found) => found == var,
            Array::Global(_) => false,
            Array::Row(inner) | Array::Component(inner, _) => inner.mentions(var),
        }
    }
}

impl<'a> Facts<'a> {
    pub fn new(settings: Settings, definitions: Option<&'a dyn Definitions>) -> Self {
        Facts { settings, definitions, ..Facts::default() }
    }

    /// Notes the types of the variables that the node binds, and what is known of loops.
    pub fn enter(&mut self, term: &Term) {
        match &*term.kind {
            TermKind::Lambda(lambda) => self.note_type(&lambda.param, &lambda.ty),
            TermKind::Let { var, scheme, .. } if scheme.vars.is_empty() => self.note_type(var, &scheme.ty),
            TermKind::Case { arms, .. } => {
                arms.iter().for_each(|arm| arm.vars.iter().for_each(|(var, ty)| self.note_type(var, ty)))
            }
            TermKind::LetRec { bindings, .. } => {
                let plain = bindings.iter().filter(|(_, scheme, _)| scheme.vars.is_empty());
                plain.for_each(|(var, scheme, _)| self.note_type(var, &scheme.ty))
            }
            TermKind::Prim { prim: Prim::Build | Prim::Ifold, args, .. } => {
                if let [count, function, ..] = &args[..] {
                    if let TermKind::Lambda(lambda) = &*function.kind {
                        self.bounds.insert(lambda.param.clone(), count.clone());
                    }
                }
            }
            _ => {}
        }
    }

    pub fn note_type(&mut self, var: &Var, ty: &Type) {
        self.types.insert(var.clone(), ty.clone());
    }

    pub fn note_value(&mut self, var: &Var, value: &Term) {
        self.values.insert(var.clone(), value.clone());
    }

    /// Where a definition has been made that checks the size of an array, the check has been passed. Says whether there was one, which is
    /// then to be forgotten where the definition ends.
    pub fn learn_check(&mut self, bound: &Term) -> bool {
        let Some((array, count)) = check(bound).or_else(|| self.check_of_rows(bound)) else { return false };
        let (Some(found), Some(wanted)) = (self.size(array), self.size_of_count(count)) else { return false };
        self.checked.push((found, wanted));
        true
    }

    /// `u.(0)` and `n` of `if 0 < length u then (let z = check_size u.(0) n in e) else e`: without rows there is none of another length.
    fn check_of_rows<'t>(&self, term: &'t Term) -> Option<(&'t Term, &'t Term)> {
        let TermKind::If { condition, then, .. } = &*term.kind else { return None };
        let TermKind::Let { bound, .. } = &*then.kind else { return None };
        let (row, count) = check(bound)?;
        let TermKind::Prim { prim: Prim::Get, args: read, .. } = &*row.kind else { return None };
        let TermKind::Prim { prim: Prim::Less, args: compared, .. } = &*condition.kind else { return None };
        let ([zero, length], [array, index]) = (&compared[..], &read[..]) else { return None };
        let is_zero = |term: &Term| matches!(&*term.kind, TermKind::Literal(Literal::Int(0)));
        let of_it = self.size_of_count(length)? == self.size(array)?;
        (is_zero(zero) && is_zero(index) && of_it).then_some((row, count))
    }

    pub fn forget_check(&mut self) {
        self.checked.pop();
        // What is total only because of the check is so nowhere else.
        self.totals.borrow_mut().clear();
    }

    /// Whether two sizes are equal, by the checks that have been passed.
    fn agree(&self, first: &Size, second: &Size) -> bool {
        let mut known = vec![first];
        let mut next = 0;
        while next < known.len() {
            if known[next] == second {
                return true;
            }
            for (left, right) in &self.checked {
                for (from, to) in [(left, right), (right, left)] {
                    if from == known[next] && !known.contains(&to) {
                        known.push(to);
                    }
                }
            }
            next += 1;
        }
        false
    }

    /// The array whose elements an array has: checking a size changes none, on whatever condition.
    pub fn elements<'t>(&'t self, array: &'t Term) -> &'t Term {
        let mut found = self.value(array);
        while let Some(checked) = checked_array(found) {
            found = self.value(checked);
        }
        found
    }

    /// What a term is known to be: itself, or what the variable that it is was bound to.
    pub fn value<'t>(&'t self, term: &'t Term) -> &'t Term {
        match &*term.kind {
            TermKind::Var(var, _) => self.values.get(var).unwrap_or(term),
            _ => term,
        }
    }

    pub fn is_total(&self, term: &Term) -> bool {
        let key = std::sync::Arc::as_ptr(&term.kind) as usize;
        if let Some((_, known)) = self.totals.borrow().get(&key) {
            return *known;
        }
        let answer = total::is_total(self, term);
        self.totals.borrow_mut().insert(key, (term.clone(), answer));
        answer
    }

    /// Whether an index is known to lie inside an array of so many elements.
    pub fn is_below(&self, index: &Term, size: &Term) -> bool {
        self.size_of_count(size).is_some_and(|size| self.is_below_size(index, &size))
    }

    pub fn is_inside(&self, index: &Term, array: &Term) -> bool {
        self.size(array).is_some_and(|size| self.is_below_size(index, &size))
    }

    fn is_below_size(&self, index: &Term, size: &Size) -> bool {
        match &*index.kind {
            TermKind::Literal(Literal::Int(k)) => matches!(size, Size::Literal(n) if (0..*n).contains(k)),
            TermKind::Var(var, _) => {
                let bound = self.bounds.get(var).and_then(|bound| self.size_of_count(bound));
                bound.is_some_and(|bound| self.agree(&bound, size))
            }
            _ => false,
        }
    }

    /// Whether an integer is known not to be negative.
    pub fn is_nonnegative(&self, count: &Term) -> bool {
        match &*count.kind {
            TermKind::Var(var, _) if self.bounds.contains_key(var) => true,
            _ => match self.size_of_count(count) {
                Some(Size::Literal(k)) => k >= 0,
                Some(Size::Length(_)) => true,
                Some(Size::Var(_)) | None => false,
            },
        }
    }

    pub fn has_size(&self, array: &Term, count: &Term) -> bool {
        match (self.size(array), self.size_of_count(count)) {
            (Some(found), Some(wanted)) => self.agree(&found, &wanted),
            _ => false,
        }
    }

    /// Whether two integers are known to be equal, and to have a value.
    pub fn is_same_count(&self, m: &Term, n: &Term) -> bool {
        match (self.size_of_count(m), self.size_of_count(n)) {
            (Some(first), Some(second)) => self.agree(&first, &second) && self.is_total(m) && self.is_total(n),
            _ => false,
        }
    }

    /// The number of elements of an array.
    pub fn size(&self, array: &Term) -> Option<Size> {
        match &*self.value(array).kind {
            TermKind::ArrayLiteral { items, .. } => Some(Size::Literal(items.len() as i64)),
            TermKind::Prim { prim: Prim::Build, args, .. } => self.size_of_count(args.first()?),
            TermKind::Prim { prim: Prim::CheckSize, args, .. } => self.size_of_count(args.get(1)?),
            TermKind::Prim { prim: Prim::Set | Prim::ZeroLike | Prim::StopGradient, args, .. } => {
                self.size(args.first()?)
            }
            TermKind::Prim { prim: Prim::Scale, args, .. } => self.size(args.get(1)?),
            TermKind::Prim { prim: Prim::Get, args, .. } => {
                self.size_of_rows(args.first()?).or_else(|| self.array(array).map(Size::Length))
            }
            TermKind::If { .. } => match checked_array(self.value(array)) {
                Some(checked) => self.size(checked),
                None => self.array(array).map(Size::Length),
            },
            _ => self.array(array).map(Size::Length),
        }
    }

    /// The length of the rows of an array that was built, if it is the same for all.
    fn size_of_rows(&self, array: &Term) -> Option<Size> {
        let TermKind::Prim { prim: Prim::Build, args, .. } = &*self.elements(array).kind else { return None };
        let TermKind::Lambda(lambda) = &*args.get(1)?.kind else { return None };
        let (mut row, mut inside) = (&lambda.body, vec![&lambda.param]);
        while let TermKind::Let { var, body, .. } = &*row.kind {
            inside.push(var);
            row = body;
        }
        self.size(row).filter(|size| !inside.iter().any(|var| size.mentions(var)))
    }

    fn array(&self, array: &Term) -> Option<Array> {
        match &*array.kind {
            TermKind::Var(var, _) => match self.values.get(var) {
                Some(value) => self.array(value).or_else(|| Some(Array::Var(var.clone()))),
                None => Some(Array::Var(var.clone())),
            },
            TermKind::Global(global) => Some(Array::Global(global.clone())),
            TermKind::Prim { prim: Prim::Get, args, .. } => Some(Array::Row(Box::new(self.array(args.first()?)?))),
            TermKind::Proj { index, term } => Some(Array::Component(Box::new(self.array(term)?), *index)),
            _ => None,
        }
    }

    fn size_of_count(&self, count: &Term) -> Option<Size> {
        match &*self.value(count).kind {
            TermKind::Literal(Literal::Int(k)) => Some(Size::Literal(*k)),
            TermKind::Prim { prim: Prim::Length, args, .. } => self.size(args.first()?),
            TermKind::Var(var, _) => Some(Size::Var(var.clone())),
            _ => match &*count.kind {
                TermKind::Var(var, _) => Some(Size::Var(var.clone())),
                _ => None,
            },
        }
    }

    /// The type of a term, where it follows without checking.
    pub fn synthesize(&self, term: &Term) -> Option<Type> {
        gradus_core::traverse::with_stack(|| match &*term.kind {
            TermKind::Var(var, types) if types.is_empty() => self.types.get(var).cloned(),
            TermKind::Global(global) => Some(self.definitions?.definition(global).ok()?.ty.clone()),
            TermKind::Literal(literal) => Some(match literal {
                Literal::Real(_) => Type::Real,
                Literal::Int(_) => Type::Int,
                Literal::Bool(_) => Type::Bool,
                Literal::String(_) => Type::String,
                Literal::Unit => Type::Unit,
            }),
            TermKind::Lambda(lambda) => Some(Type::fun(lambda.ty.clone(), self.synthesize(&lambda.body)?)),
            TermKind::App(function, _) => match self.synthesize(function)? {
                Type::Fun(parts) => Some(parts.1.clone()),
                _ => None,
            },
            TermKind::Let { body, .. } | TermKind::LetRec { body, .. } => self.synthesize(body),
            TermKind::Prim { prim, types, .. } => Some(prim.info().result_at(types)),
            TermKind::Tuple(items) => {
                Some(Type::tuple(items.iter().map(|item| self.synthesize(item)).collect::<Option<Vec<_>>>()?))
            }
            TermKind::Proj { index, term } => match self.synthesize(term)? {
                Type::Tuple(parts) => parts.get(*index).cloned(),
                Type::Named(name, args) => {
                    let decl = self.definitions?.type_decl(&name).ok()?;
                    decl.constructors(&args).first()?.1.get(*index).cloned()
                }
                _ => None,
            },
            TermKind::Construct { name, types, .. } => Some(Type::Named(name.clone(), types.clone())),
            TermKind::Case { arms, default, .. } => {
                let body = arms.first().map(|arm| &arm.body).or(default.as_ref());
                self.synthesize(body?)
            }
            TermKind::If { then, .. } => self.synthesize(then),
            TermKind::ArrayLiteral { element, .. } => Some(Type::array(element.clone())),
            TermKind::Var(..) | TermKind::Derive { .. } | TermKind::Lift { .. } => None,
        })
    }

    /// The type arguments of a primitive at these arguments.
    pub fn type_arguments(&self, prim: Prim, args: &[Term]) -> Option<Vec<Type>> {
        let element = |array: &Term| match self.synthesize(array)? {
            Type::Array(element) => Some((*element).clone()),
            _ => None,
        };
        if prim.info().scheme.vars.is_empty() {
            return Some(vec![]);
        }
        let last = args.last()?;
        Some(vec![match prim {
            Prim::Get | Prim::Length | Prim::Set | Prim::CheckSize => element(args.first()?)?,
            Prim::Build => match self.synthesize(last)? {
                Type::Fun(parts) => parts.1.clone(),
                _ => return None,
            },
            Prim::Iterate | Prim::Checkpoint => return None,
            _ => self.synthesize(last)?,
        }])
    }
}

/// `u` and `n` of `check_size u n`.
fn check(term: &Term) -> Option<(&Term, &Term)> {
    match &*term.kind {
        TermKind::Prim { prim: Prim::CheckSize, args, .. } => args.first().zip(args.get(1)),
        _ => None,
    }
}

/// `u` of `check_size u n`, and of `if p then (let z = check_size u.(0) n in u) else u`.
fn checked_array(term: &Term) -> Option<&Term> {
    match &*term.kind {
        TermKind::Prim { prim: Prim::CheckSize, args, .. } => args.first(),
        TermKind::If { then, otherwise, .. } => {
            let (first, second) = (last_variable(then)?, last_variable(otherwise)?);
            (first.0 == second.0).then_some(first.1)
        }
        _ => None,
    }
}

/// The variable that a term ends with after its definitions, none of which binds it.
fn last_variable(term: &Term) -> Option<(&Var, &Term)> {
    let (mut rest, mut bound) = (term, Vec::new());
    while let TermKind::Let { var, body, .. } = &*rest.kind {
        bound.push(var);
        rest = body;
    }
    match &*rest.kind {
        TermKind::Var(var, _) if !bound.contains(&var) => Some((var, rest)),
        _ => None,
    }
}

/// A term that costs nothing to repeat.
pub fn is_atom(term: &Term) -> bool {
    matches!(&*term.kind, TermKind::Var(..) | TermKind::Literal(_) | TermKind::Global(_))
}
