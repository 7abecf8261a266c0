//! From core to code: variables become slots, primitives operations, functions code of their own.

mod captures;
mod emit;
mod uses;

use crate::code::{Code, Group, Member};
use captures::{captures, chain, Captures};
use emit::Emitter;
use gradus_core::proved::Steps;
use gradus_core::{Global, Lambda, Term, TermKind, Var};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;
use uses::group_captures;

/// All code of a machine, by number, and the numbers of the globals that it mentions.
#[derive(Default)]
pub struct Codes {
    /// `None` while it is being compiled.
    codes: Vec<Option<Rc<Code>>>,
    pub globals: Vec<Global>,
    global_numbers: FxHashMap<Global, u32>,
    pub checks: Checks,
    /// The steps of the semantics for the term that is being compiled.
    pub steps: Steps,
    /// Whether there was anything that the semantics does not have.
    pub outside: bool,
}

/// What the settings of the machine ask code to look for.
#[derive(Clone, Copy, Default)]
pub struct Checks {
    pub kinks: bool,
    /// Look everywhere, for all that the theorems exclude.
    pub premise: bool,
    pub domain: bool,
}

impl Codes {
    pub fn new(checks: Checks) -> Self {
        Codes { checks, ..Codes::default() }
    }

    pub fn get(&self, number: u32) -> &Rc<Code> {
        match self.codes.get(number as usize) {
            Some(Some(code)) => code,
            _ => gradus_source::bug!("a function of another machine"),
        }
    }

    pub fn global(&mut self, global: &Global) -> u32 {
        if let Some(number) = self.global_numbers.get(global) {
            return *number;
        }
        let number = self.globals.len() as u32;
        self.globals.push(global.clone());
        self.global_numbers.insert(global.clone(), number);
        number
    }

    fn reserve(&mut self) -> u32 {
        self.codes.push(None);
        self.codes.len() as u32 - 1
    }

    fn fill(&mut self, number: u32, code: Code) {
        self.codes[number as usize] = Some(Rc::new(code));
    }

    /// Code that computes a closed term; a function becomes the code of that function.
    pub fn term(&mut self, name: &str, term: &Term) -> u32 {
        let (captures, free) = captures(term);
        debug_assert!(free.is_empty(), "a term with free variables {free:?}");
        match &*term.kind {
            TermKind::Lambda(lambda) => self.function(&name.into(), lambda, &captures),
            _ => {
                let number = self.reserve();
                let code = Emitter::new(self, name.into(), &captures, term).finish(term, Place::default());
                self.fill(number, code);
                number
            }
        }
    }

    /// The code of a function with free variables, which it captures.
    pub fn open_function(&mut self, name: &Rc<str>, lambda: &Arc<Lambda>) -> u32 {
        self.outside = true;
        let term = Term::new(TermKind::Lambda(lambda.clone()), lambda.body.span);
        let (captures, _) = captures(&term);
        self.function(name, lambda, &captures)
    }

    /// The code of functions that refer to each other.
    pub fn open_group(&mut self, name: &Rc<str>, functions: &[(Var, Arc<Lambda>)]) -> Rc<Group> {
        self.outside = true;
        let mut table = Captures::default();
        for (_, lambda) in functions {
            table.extend(captures(&Term::new(TermKind::Lambda(lambda.clone()), lambda.body.span)).0);
        }
        self.group(name, functions, &table)
    }

    fn function(&mut self, name: &Rc<str>, lambda: &Arc<Lambda>, captures: &Captures) -> u32 {
        let number = self.reserve();
        let (chain, body) = chain(lambda);
        let captured = captures[&Arc::as_ptr(lambda)].clone();
        let mut emitter = Emitter::new(self, name.clone(), captures, body);
        chain.iter().for_each(|l| emitter.variable(&l.param));
        captured.iter().for_each(|v| emitter.variable(v));
        let place = Place { chain, captures: captured, group: None };
        let code = emitter.finish(body, place);
        self.fill(number, code);
        number
    }

    fn group(&mut self, name: &Rc<str>, functions: &[(Var, Arc<Lambda>)], captures: &Captures) -> Rc<Group> {
        let member = |(var, lambda): &(Var, Arc<Lambda>), code| Member {
            var: var.clone(),
            lambda: lambda.clone(),
            code,
            arity: chain(lambda).0.len(),
        };
        let members = functions.iter().map(|f| member(f, self.reserve())).collect();
        let group = Rc::new(Group { members, captures: group_captures(functions, captures) });
        for (index, member) in group.members.iter().enumerate() {
            let (chain, body) = chain(&member.lambda);
            let name: Rc<str> = if member.var.name.is_empty() { name.clone() } else { (*member.var.name).into() };
            let mut emitter = Emitter::new(self, name, captures, body);
            chain.iter().for_each(|l| emitter.variable(&l.param));
            emitter.environment(&group);
            let place = Place { chain, captures: Vec::new(), group: Some((group.clone(), index)) };
            let code = emitter.finish(body, place);
            self.fill(member.code, code);
        }
        group
    }
}

/// What code belongs to.
#[derive(Default)]
struct Place {
    chain: Vec<Arc<Lambda>>,
    captures: Vec<Var>,
    group: Option<(Rc<Group>, usize)>,
}
