//! `Lift`: a value of a type `t`, met where it was not known in advance, as a value of the translated type with zero derivatives.
//!
//! Data go through a function that `derive` writes from the type. A function has its code differentiated, and what it has
//! captured lifted in turn; functions of a recursive group stay a group. Under outer modes `u1 .. un` the code at hand is
//! D_u1(... D_un(l)), and what is wanted is D_u1(... D_un(D_m(l))): the innermost mode acts on the original text.

use crate::code::{Code, Group, LiftSite};
use crate::machine::{internal, refused, Machine, Outcome};
use crate::value::{Fields, Value};
use gradus_core::check::{is_data, Linked};
use gradus_core::traverse::add_binder_types;
use gradus_core::{Global, Lambda, Mode, Term, Type, Var};
use gradus_source::Span;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

/// The outer modes, and the mode.
type Modes = (Arc<[Mode]>, Mode);

/// A group, kept so that its address stays its own, and its image.
type GroupImage = (Rc<Group>, Rc<Group>);

/// What has been lifted before, and what is known about the variables of the program.
#[derive(Default)]
pub(crate) struct Lifted {
    /// The code of the image of a function; the function is kept so that its address stays its own.
    functions: FxHashMap<(*const Lambda, Modes), (Arc<Lambda>, u32)>,
    groups: FxHashMap<(*const Group, Modes), GroupImage>,
    data: FxHashMap<Type, bool>,
    /// The types of variables in the texts that derivatives are made from.
    types: FxHashMap<Var, Type>,
    /// Texts whose variables are not in `types` yet.
    unread_terms: Vec<Term>,
    unread_globals: Vec<Global>,
    /// Code that does nothing, for the machine.
    pub nothing: Option<u32>,
}

impl Lifted {
    pub fn note_term(&mut self, term: &Term) {
        self.unread_terms.push(term.clone());
    }

    /// A global of which the image is run, which was made from the global's text.
    pub fn note_global(&mut self, global: &Global) {
        let mut root = global;
        while let Global::Derived { of, .. } = root {
            root = of;
        }
        self.unread_globals.push(root.clone());
    }
}

/// A function by its code and the address of what it has captured; an environment by its group and its address.
type Origin = (usize, usize);

/// What has been lifted already in one `Lift`. The originals are kept, so that their addresses stay their own.
#[derive(Default)]
struct Done {
    functions: FxHashMap<Origin, Value>,
    environments: FxHashMap<Origin, Value>,
    originals: Vec<Value>,
}

enum Task {
    Lift(Value, Type),
    /// Puts the last so many results together.
    Node(u32, usize),
    Array(usize),
    Closure {
        code: u32,
        count: usize,
        from: Origin,
    },
    /// A member of a recursive group, whose environment is lifted once for all members.
    Member {
        code: u32,
        count: usize,
        environment: Origin,
    },
}

impl Machine<'_> {
    pub(crate) fn lift(&mut self, site: &LiftSite, value: Value, span: Span) -> Outcome<Value> {
        let modes: Modes = (site.under.clone(), site.mode);
        let mut tasks = vec![Task::Lift(value, site.ty.clone())];
        let mut results: Vec<Value> = Vec::new();
        let mut done = Done::default();
        while let Some(task) = tasks.pop() {
            let result = match task {
                Task::Node(tag, count) => Value::Node(tag, Fields::pop(&mut results, count)),
                Task::Array(count) => Value::Array(Fields::pop(&mut results, count)),
                Task::Closure { code, count, from } => {
                    let function = Value::Fun(code, Fields::pop(&mut results, count));
                    done.functions.insert(from, function.clone());
                    function
                }
                Task::Member { code, count, environment } => {
                    let lifted = Value::Node(0, Fields::pop(&mut results, count));
                    done.environments.insert(environment, lifted.clone());
                    Value::Fun(code, Fields::new(vec![lifted]))
                }
                Task::Lift(value, ty) => match (&ty, value) {
                    (Type::Int | Type::Bool | Type::String | Type::Unit, leaf) => leaf,
                    (ty, value) if self.lifts_as_data(ty, span)? => {
                        let all = modes.0.iter().copied().chain([modes.1]).collect();
                        let wrapper = Global::Wrapper { name: "lift", modes: all, types: Arc::from([ty.clone()]) };
                        let function = self.global(&wrapper).map_err(|error| located(error, span))?;
                        self.apply(function, [value]).map_err(|error| located(error, span))?
                    }
                    (Type::Fun(_), Value::Fun(number, fields)) => {
                        match self.lift_function(&modes, number, &fields, &mut tasks, &mut done, span)? {
                            Some(function) => function,
                            None => continue,
                        }
                    }
                    (Type::Tuple(types), Value::Node(tag, fields)) => {
                        tasks.push(Task::Node(tag, fields.len()));
                        push_parts(&mut tasks, &fields, types);
                        continue;
                    }
                    (Type::Named(name, args), Value::Node(tag, fields)) => {
                        let decl = self.definitions.type_decl(name).map_err(|refusal| refused(refusal, span))?;
                        let constructors = decl.constructors(args);
                        let Some((_, types)) = constructors.get(tag as usize) else {
                            return Err(internal(format!("constructor {tag} is not declared"), span));
                        };
                        tasks.push(Task::Node(tag, fields.len()));
                        push_parts(&mut tasks, &fields, types);
                        continue;
                    }
                    (Type::Array(element), Value::Array(items)) => {
                        tasks.push(Task::Array(items.len()));
                        tasks.extend(items.iter().rev().map(|item| Task::Lift(item.clone(), (**element).clone())));
                        continue;
                    }
                    (ty, value) => {
                        let ty = gradus_core::print::print_type(ty);
                        return Err(internal(format!("a {} is lifted at type {ty}", value.sort()), span));
                    }
                },
            };
            results.push(result);
        }
        Ok(results.pop().unwrap_or_default())
    }

    fn lifts_as_data(&mut self, ty: &Type, span: Span) -> Outcome<bool> {
        if let Some(known) = self.lifted.data.get(ty) {
            return Ok(*known);
        }
        let context = Linked { definitions: &*self.definitions, translate: None };
        let answer = is_data(&context, ty).map_err(|refusal| refused(refusal, span))?;
        self.lifted.data.insert(ty.clone(), answer);
        Ok(answer)
    }

    /// Plans the lifting of a function: its image, and the lifting of what the image captures. Gives the result if
    /// nothing is left to do.
    fn lift_function(
        &mut self,
        modes: &Modes,
        number: u32,
        fields: &Fields,
        tasks: &mut Vec<Task>,
        done: &mut Done,
        span: Span,
    ) -> Outcome<Option<Value>> {
        let code = self.codes.get(number).clone();
        let present = fields.len() - code.captured();
        if let (Some((group, index)), 0) = (&code.group, present) {
            let image = self.group_image(modes, group, &code.name, span)?;
            let (code_image, count) = (image.members[*index].code, image.captures.len());
            if count == 0 {
                return Ok(Some(Value::Fun(code_image, Fields::default())));
            }
            let address = match fields.first() {
                Some(Value::Node(_, environment)) => environment.address(),
                _ => 0,
            };
            let environment = (Rc::as_ptr(group) as usize, address);
            if let Some(lifted) = done.environments.get(&environment) {
                return Ok(Some(Value::Fun(code_image, Fields::new(vec![lifted.clone()]))));
            }
            done.originals.extend(fields.first().cloned());
            tasks.push(Task::Member { code: code_image, count, environment });
            let text = self.base(&modes.0, &group.members[*index].lambda, span)?;
            self.push_captures(&image.captures, &code, fields, &text, tasks, span)?;
            return Ok(None);
        }
        let from = (number as usize, fields.address());
        if let Some(function) = done.functions.get(&from) {
            return Ok(Some(function.clone()));
        }
        done.originals.push(Value::Fun(number, fields.clone()));
        let lambda = &code.chain[present];
        let key = (Arc::as_ptr(lambda), modes.clone());
        let image = match self.lifted.functions.get(&key) {
            Some((_, image)) => *image,
            None => {
                let image = self.image(modes, lambda, span)?;
                let number = self.codes.open_function(&code.name, &image);
                self.lifted.functions.insert(key, (lambda.clone(), number));
                number
            }
        };
        let captures = self.codes.get(image).captures.clone();
        tasks.push(Task::Closure { code: image, count: captures.len(), from });
        let text = self.base(&modes.0, lambda, span)?;
        self.push_captures(&captures, &code, fields, &text, tasks, span)?;
        Ok(None)
    }

    fn push_captures(
        &mut self,
        captures: &[Var],
        code: &Code,
        fields: &Fields,
        text: &Arc<Lambda>,
        tasks: &mut Vec<Task>,
        span: Span,
    ) -> Outcome<()> {
        let types = self.definitions.variable_types(text);
        for var in captures.iter().rev() {
            let Some(value) = captured(code, fields, var) else {
                return Err(internal(format!("{var:?} is not captured by `{}`", code.name), span));
            };
            let ty = match types.as_ref().and_then(|types| types.get(var)) {
                Some(ty) => ty.clone(),
                None => self.variable_type(var, span)?,
            };
            tasks.push(Task::Lift(value, ty));
        }
        Ok(())
    }

    fn group_image(&mut self, modes: &Modes, group: &Rc<Group>, name: &Rc<str>, span: Span) -> Outcome<Rc<Group>> {
        let key = (Rc::as_ptr(group), modes.clone());
        if let Some((_, image)) = self.lifted.groups.get(&key) {
            return Ok(image.clone());
        }
        let mut members = Vec::new();
        for member in &group.members {
            members.push((member.var.clone(), self.image(modes, &member.lambda, span)?));
        }
        let image = self.codes.open_group(name, &members);
        self.lifted.groups.insert(key, (group.clone(), image.clone()));
        Ok(image)
    }

    /// l from D_u1(... D_un(l)).
    fn base(&self, under: &[Mode], lambda: &Arc<Lambda>, span: Span) -> Outcome<Arc<Lambda>> {
        let mut base = lambda;
        for outer in under {
            match &base.origin {
                Some((mode, origin)) if mode == outer => base = origin,
                _ => return Err(internal(format!("a function has no origin under mode {outer}"), span)),
            }
        }
        Ok(base.clone())
    }

    /// D_u1(... D_un(D_m(l))) from D_u1(... D_un(l)).
    fn image(&self, (under, mode): &Modes, lambda: &Arc<Lambda>, span: Span) -> Outcome<Arc<Lambda>> {
        let base = self.base(under, lambda, span)?;
        let differentiate = |lambda: &Arc<Lambda>, mode| {
            self.definitions.differentiate(lambda, mode).map_err(|refusal| refused(refusal, span))
        };
        let mut image = differentiate(&base, *mode)?;
        for outer in under.iter().rev() {
            image = differentiate(&image, *outer)?;
        }
        Ok(image)
    }

    /// The type of a variable in the text that derivatives are made from.
    fn variable_type(&mut self, var: &Var, span: Span) -> Outcome<Type> {
        if !self.lifted.types.contains_key(var) {
            for term in std::mem::take(&mut self.lifted.unread_terms) {
                add_binder_types(&term, &mut self.lifted.types);
            }
            for global in std::mem::take(&mut self.lifted.unread_globals) {
                let definition = self.definitions.definition(&global).map_err(|refusal| refused(refusal, span))?;
                definition.term.iter().for_each(|term| add_binder_types(term, &mut self.lifted.types));
            }
        }
        match self.lifted.types.get(var) {
            Some(ty) => Ok(ty.clone()),
            None => Err(internal(format!("the type of {var:?} is not known"), span)),
        }
    }
}

fn push_parts(tasks: &mut Vec<Task>, fields: &Fields, types: &[Type]) {
    tasks.extend(fields.iter().zip(types).rev().map(|(field, ty)| Task::Lift(field.clone(), ty.clone())));
}

/// The value of a variable that a function has captured, or got as an argument already.
fn captured(code: &Code, fields: &Fields, var: &Var) -> Option<Value> {
    let arguments = &fields[code.captured()..];
    if let Some(index) = code.chain.iter().take(arguments.len()).position(|l| l.param == *var) {
        return arguments.get(index).cloned();
    }
    let Some((group, _)) = &code.group else {
        return fields.get(code.captures.iter().position(|v| v == var)?).cloned();
    };
    if let Some(member) = group.members.iter().find(|member| member.var == *var) {
        return Some(Value::Fun(member.code, Fields::new(fields[..code.captured()].to_vec())));
    }
    match fields.first()? {
        Value::Node(_, environment) => environment.get(group.captures.iter().position(|v| v == var)?).cloned(),
        _ => None,
    }
}

/// What goes wrong in generated code is told at the place that asked for it.
fn located(mut error: Box<crate::error::RuntimeError>, span: Span) -> Box<crate::error::RuntimeError> {
    if error.span == Span::default() {
        error.span = span;
    }
    error
}
