//! The emitter: writes the operations of one function, in the order of evaluation.

use super::captures::Captures;
use super::uses::{application, group_captures, is_var, members, operands, uses, Use};
use super::{Codes, Place};
use crate::code::{Code, Elements, Group, LiftSite, Op};
use crate::value::Value;
use gradus_core::prim::Eval;
use gradus_core::proved::Steps;
use gradus_core::traverse::with_stack;
use gradus_core::{Arm, Checked, Literal, Prim, Site, Term, TermKind, Type, Var};
use gradus_source::Span;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Where a variable is found.
#[derive(Clone)]
enum Location {
    Slot(u32),
    /// A component of the tuple in a slot: what a recursive group has captured.
    Environment(u32, u32),
    /// A member of a recursive group, and the slot of the group's environment if it has one.
    Member(Rc<Group>, usize, Option<u32>),
}

pub struct Emitter<'a> {
    codes: &'a mut Codes,
    captures: &'a Captures,
    name: Rc<str>,
    uses: Vec<Use>,
    locations: FxHashMap<Var, Location>,
    /// How many values the frame holds at this point.
    height: u32,
    /// Nodes in the current stretch of code, and what they are in steps of the semantics.
    steps: u32,
    semantic_steps: u32,
    ops: Vec<Op>,
    spans: Vec<Span>,
    constants: Vec<Value>,
    switches: Vec<Box<[u32]>>,
    masks: Vec<Box<[bool]>>,
    lifts: Vec<LiftSite>,
    types: Vec<Type>,
    checked: Vec<(u32, Checked)>,
}

impl<'a> Emitter<'a> {
    pub fn new(codes: &'a mut Codes, name: Rc<str>, captures: &'a Captures, body: &Term) -> Self {
        Emitter {
            codes,
            captures,
            name,
            uses: uses(body, captures),
            locations: FxHashMap::default(),
            height: 0,
            steps: 0,
            semantic_steps: 0,
            ops: Vec::new(),
            spans: Vec::new(),
            constants: Vec::new(),
            switches: Vec::new(),
            masks: Vec::new(),
            lifts: Vec::new(),
            types: Vec::new(),
            checked: Vec::new(),
        }
    }

    /// A variable in the next slot.
    pub fn variable(&mut self, var: &Var) {
        self.locations.insert(var.clone(), Location::Slot(self.height));
        self.height += 1;
    }

    /// What a recursive group captures, as one tuple in the next slot, and the group's members.
    pub fn environment(&mut self, group: &Rc<Group>) {
        let slot = (!group.captures.is_empty()).then_some(self.height);
        for (index, var) in group.captures.iter().enumerate() {
            self.locations.insert(var.clone(), Location::Environment(self.height, index as u32));
        }
        self.height += u32::from(slot.is_some());
        self.members(group, slot);
    }

    fn members(&mut self, group: &Rc<Group>, slot: Option<u32>) {
        for (index, member) in group.members.iter().enumerate() {
            self.locations.insert(member.var.clone(), Location::Member(group.clone(), index, slot));
        }
    }

    pub fn finish(mut self, body: &Term, place: Place) -> Code {
        self.stretch(body.span, |this| this.term(body, true));
        if !self.uses.is_empty() {
            gradus_source::bug!("uses and code of `{}` are out of step", self.name);
        }
        Code {
            name: self.name,
            params: place.chain.len(),
            captures: place.captures.into(),
            group: place.group,
            chain: place.chain.into(),
            ops: self.ops.into(),
            spans: self.spans.into(),
            constants: self.constants.into(),
            switches: self.switches.into(),
            masks: self.masks.into(),
            lifts: self.lifts.into(),
            types: self.types.into(),
            checked: self.checked.into(),
        }
    }

    fn op(&mut self, op: Op, span: Span) {
        self.ops.push(op);
        self.spans.push(span);
    }

    /// An operation that takes so many operands and leaves one result.
    fn result(&mut self, op: Op, operands: usize, span: Span) {
        self.op(op, span);
        self.height = self.height + 1 - operands as u32;
    }

    /// A stretch of code that is run as a whole, with its steps counted at the start.
    fn stretch(&mut self, span: Span, emit: impl FnOnce(&mut Self)) {
        let start = self.ops.len();
        let premise = self.codes.checks.premise;
        self.op(Op::Steps(0), span);
        if premise {
            self.op(Op::SemanticSteps(0), span);
        }
        let outer = (std::mem::take(&mut self.steps), std::mem::take(&mut self.semantic_steps));
        emit(self);
        self.ops[start] = Op::Steps(self.steps);
        if premise {
            self.ops[start + 1] = Op::SemanticSteps(self.semantic_steps);
        }
        (self.steps, self.semantic_steps) = outer;
    }

    /// Counts nodes of one step each.
    fn count(&mut self, nodes: usize) {
        self.steps += nodes as u32;
        self.semantic_steps += nodes as u32;
    }

    fn next_use(&mut self) -> Use {
        match self.uses.pop() {
            Some(found) => found,
            None => gradus_source::bug!("uses and code of `{}` are out of step", self.name),
        }
    }

    fn next_read(&mut self) -> bool {
        match self.next_use() {
            Use::Read(last) => last,
            other => gradus_source::bug!("a variable is read where {other:?} is noted"),
        }
    }

    fn next_bind(&mut self) -> bool {
        match self.next_use() {
            Use::Bind(used) => used,
            other => gradus_source::bug!("a variable is bound where {other:?} is noted"),
        }
    }

    fn location(&self, var: &Var) -> Location {
        match self.locations.get(var) {
            Some(location) => location.clone(),
            None => gradus_source::bug!("variable {var:?} is not bound in `{}`", self.name),
        }
    }

    fn read(&mut self, var: &Var, span: Span) {
        let last = self.next_read();
        match self.location(var) {
            Location::Slot(slot) => self.result(if last { Op::Move(slot) } else { Op::Copy(slot) }, 0, span),
            Location::Environment(slot, index) => self.result(Op::Component(slot, index, false), 0, span),
            Location::Member(group, index, environment) => {
                let code = group.members[index].code;
                if let Some(slot) = environment {
                    self.result(Op::Copy(slot), 0, span);
                }
                let captured = usize::from(environment.is_some());
                self.result(Op::Closure(code, captured as u32), captured, span);
            }
        }
    }

    /// A variable for the value on top, unless it is never used.
    fn bind(&mut self, var: &Var, span: Span) -> bool {
        let used = self.next_bind();
        if used {
            self.locations.insert(var.clone(), Location::Slot(self.height - 1));
        } else {
            self.op(Op::Pop, span);
            self.height -= 1;
        }
        used
    }

    /// Takes the variables of a scope away from under its result.
    fn unbind(&mut self, count: usize, tail: bool, span: Span) {
        if count > 0 {
            if !tail {
                self.op(Op::Slide(count as u32), span);
            }
            self.height -= count as u32;
        }
    }

    /// Code that leaves the value of a term on top, or returns it.
    fn term(&mut self, term: &Term, tail: bool) {
        with_stack(|| self.term_inner(term, tail))
    }

    fn term_inner(&mut self, term: &Term, tail: bool) {
        let span = term.span;
        // An application is counted where it is taken apart.
        if !matches!(&*term.kind, TermKind::App(..)) {
            self.steps += 1;
            self.semantic_steps += self.codes.steps.node(term);
        }
        match &*term.kind {
            TermKind::App(..) => return self.apply(term, &[], tail, span),
            TermKind::Let { var, bound, body, .. } => {
                self.term(bound, false);
                let bound = self.bind(var, span);
                self.term(body, tail);
                return self.unbind(usize::from(bound), tail, span);
            }
            TermKind::LetRec { bindings, body } => {
                let functions = members(bindings);
                for var in group_captures(&functions, self.captures) {
                    self.read(&var, span);
                }
                let group = self.codes.group(&self.name, &functions, self.captures);
                let captured = group.captures.len();
                let slot = (captured > 0).then(|| self.height - captured as u32);
                if captured > 0 {
                    self.result(Op::Node(0, captured as u32), captured, span);
                }
                self.members(&group, slot);
                self.term(body, tail);
                return self.unbind(usize::from(captured > 0), tail, span);
            }
            TermKind::If { condition, then, otherwise } => {
                self.term(condition, false);
                return self.conditional(then, otherwise, tail, span);
            }
            TermKind::Case { scrutinee, arms, default } => {
                self.term(scrutinee, false);
                return self.case(term, arms, default.as_ref(), tail);
            }
            TermKind::Prim { prim: Prim::Checkpoint, args, .. } => {
                args.iter().for_each(|arg| self.term(arg, false));
                self.result(if tail { Op::TailCall(1) } else { Op::Call(1) }, 2, span);
                return;
            }
            TermKind::Var(var, _) => self.read(var, span),
            TermKind::Global(global) => {
                let number = self.codes.global(global);
                self.result(Op::Global(number), 0, span);
            }
            TermKind::Literal(literal) => self.literal(literal, span),
            TermKind::Lambda(lambda) => {
                let captured = self.captures[&Arc::as_ptr(lambda)].clone();
                captured.iter().for_each(|v| self.read(v, span));
                let code = self.codes.function(&self.name, lambda, self.captures);
                self.result(Op::Closure(code, captured.len() as u32), captured.len(), span);
            }
            TermKind::Prim { prim, types, args, site } => self.prim(*prim, types, args, *site, span),
            TermKind::Tuple(items) => self.node(0, items, span),
            TermKind::Construct { tag, args, .. } => self.node(*tag, args, span),
            TermKind::Proj { index, term } => self.component(*index as u32, term, span),
            TermKind::ArrayLiteral { element, items } => {
                items.iter().for_each(|item| self.term(item, false));
                self.result(Op::ArrayLiteral(Elements::of(element), items.len() as u32), items.len(), span);
            }
            TermKind::Derive { args, .. } => {
                args.iter().for_each(|arg| self.term(arg, false));
                self.result(Op::Unexpanded, args.len(), span);
            }
            TermKind::Lift { under, mode, ty, term } => {
                self.term(term, false);
                self.lifts.push(LiftSite { under: under[..].into(), mode: *mode, ty: ty.clone() });
                self.result(Op::Lift(self.lifts.len() as u32 - 1), 1, span);
            }
        }
        if tail {
            self.op(Op::Return, span);
        }
    }

    fn literal(&mut self, literal: &Literal, span: Span) {
        let op = match literal {
            Literal::Real(x) => Op::Real(*x),
            Literal::Int(i) => Op::Int(*i),
            Literal::Bool(b) => Op::Bool(*b),
            Literal::Unit => Op::Unit,
            Literal::String(s) => {
                self.constants.push(Value::string(s));
                Op::Constant(self.constants.len() as u32 - 1)
            }
        };
        self.result(op, 0, span);
    }

    fn node(&mut self, tag: usize, args: &[Term], span: Span) {
        args.iter().for_each(|arg| self.term(arg, false));
        self.result(Op::Node(tag as u32, args.len() as u32), args.len(), span);
    }

    /// The slot of a term that is a variable with a slot; its steps are counted and its reading is noted by the caller.
    fn plain_slot(&self, term: &Term) -> Option<u32> {
        match &*term.kind {
            TermKind::Var(var, _) => match self.location(var) {
                Location::Slot(slot) => Some(slot),
                Location::Environment(..) | Location::Member(..) => None,
            },
            _ => None,
        }
    }

    fn component(&mut self, index: u32, term: &Term, span: Span) {
        match self.plain_slot(term) {
            Some(slot) => {
                self.count(1);
                let last = self.next_read();
                self.result(Op::Component(slot, index, last), 0, span);
            }
            None => {
                self.term(term, false);
                self.result(Op::Project(index), 1, span);
            }
        }
    }

    /// `(fun x -> body) a b` binds `x`; everything else is a call.
    fn apply(&mut self, function: &Term, rest: &[&Term], tail: bool, span: Span) {
        let (head, args) = application(function, rest);
        self.count(args.len() - rest.len());
        match (&*head.kind, args.split_first()) {
            (TermKind::Lambda(lambda), Some((first, others))) => {
                self.count(1);
                self.term(first, false);
                let bound = self.bind(&lambda.param, span);
                with_stack(|| self.apply(&lambda.body, others, tail, span));
                self.unbind(usize::from(bound), tail, span);
            }
            (_, None) => self.term(head, tail),
            (TermKind::Var(var, _), Some(_)) => match self.location(var) {
                Location::Member(group, index, environment) if group.members[index].arity == args.len() => {
                    self.count(1);
                    // The functions that the first arguments lead to, as in `Machine::call`.
                    self.semantic_steps += args.len() as u32 - 1;
                    self.next_read();
                    self.result(Op::Unit, 0, span);
                    args.iter().for_each(|arg| self.term(arg, false));
                    let code = group.members[index].code;
                    let call = if tail { Op::TailCallMember } else { Op::CallMember };
                    self.result(call(code, environment), args.len() + 1, span);
                }
                _ => self.call(head, &args, tail, span),
            },
            _ => self.call(head, &args, tail, span),
        }
    }

    fn call(&mut self, head: &Term, args: &[&Term], tail: bool, span: Span) {
        self.term(head, false);
        args.iter().for_each(|arg| self.term(arg, false));
        let count = args.len() as u32;
        self.result(if tail { Op::TailCall(count) } else { Op::Call(count) }, args.len() + 1, span);
    }

    /// The start of a branch: forgets what only other branches need.
    fn forget(&mut self, span: Span) {
        let Use::Forget(vars) = self.next_use() else { gradus_source::bug!("a branch is not noted") };
        for var in vars {
            if let Location::Slot(slot) = self.location(&var) {
                self.op(Op::Clear(slot), span);
            }
        }
    }

    fn conditional(&mut self, then: &Term, otherwise: &Term, tail: bool, span: Span) {
        let test = self.ops.len();
        self.op(Op::JumpIfFalse(0), span);
        self.height -= 1;
        let height = self.height;
        self.stretch(then.span, |this| {
            this.forget(span);
            this.term(then, tail);
        });
        let end = self.ops.len();
        if !tail {
            self.op(Op::Jump(0), span);
        }
        self.height = height;
        self.ops[test] = Op::JumpIfFalse(self.ops.len() as u32);
        self.stretch(otherwise.span, |this| {
            this.forget(span);
            this.term(otherwise, tail);
        });
        if !tail {
            self.ops[end] = Op::Jump(self.ops.len() as u32);
        }
    }

    fn case(&mut self, term: &Term, arms: &[Arm], default: Option<&Term>, tail: bool) {
        let span = term.span;
        let alone = arms.len() == 1 && default.is_none();
        let switch = self.switches.len();
        if !alone {
            if self.codes.checks.premise {
                self.op(Op::ConstructorSteps, span);
            }
            self.op(Op::Switch(switch as u32), span);
            self.switches.push(Box::default());
        }
        let tags = arms.iter().map(|arm| arm.tag + 1).max().unwrap_or(0);
        let mut targets = vec![u32::MAX; tags + 1];
        let mut ends = Vec::new();
        let height = self.height;
        for (number, arm) in arms.iter().enumerate() {
            self.height = height;
            targets[arm.tag] = self.ops.len() as u32;
            self.stretch(arm.body.span, |this| {
                this.semantic_steps += this.codes.steps.arm(term, number);
                this.arm(arm, tail, span);
            });
            if !tail {
                ends.push(self.ops.len());
                self.op(Op::Jump(0), span);
            }
        }
        if let Some(default) = default {
            self.height = height;
            let start = self.ops.len() as u32;
            targets.iter_mut().filter(|target| **target == u32::MAX).for_each(|target| *target = start);
            self.stretch(default.span, |this| {
                this.forget(span);
                this.op(Op::Pop, span);
                this.height -= 1;
                this.term(default, tail);
            });
        }
        let end = self.ops.len() as u32;
        ends.into_iter().for_each(|jump| self.ops[jump] = Op::Jump(end));
        if !alone {
            self.switches[switch] = targets.into();
        }
    }

    fn arm(&mut self, arm: &Arm, tail: bool, span: Span) {
        self.forget(span);
        self.height -= 1;
        let mask: Box<[bool]> = arm.vars.iter().map(|_| self.next_bind()).collect();
        if mask.iter().all(|used| *used) {
            self.op(Op::UnpackAll, span);
        } else {
            self.op(Op::Unpack(self.masks.len() as u32), span);
            self.masks.push(mask.clone());
        }
        for ((var, _), _) in arm.vars.iter().zip(&mask).filter(|(_, used)| **used) {
            self.variable(var);
        }
        self.term(&arm.body, tail);
        self.unbind(mask.iter().filter(|used| **used).count(), tail, span);
    }

    fn prim(&mut self, prim: Prim, types: &[Type], args: &[Term], site: Site, span: Span) {
        if prim == Prim::Get && is_var(&args[0]) {
            return self.get(&args[0], &args[1], span);
        }
        operands(prim, args).into_iter().for_each(|arg| self.term(arg, false));
        let info = prim.info();
        let count = args.len();
        let premise = self.codes.checks.premise;
        let kinks = self.codes.checks.kinks && (premise || site.differentiated) && info.kinks.is_some();
        let scalar = !matches!(info.eval, Eval::Structural) || prim == Prim::Sign;
        if premise && scalar && info.has_premise() {
            self.op(Op::CheckPremise(prim), span);
        } else if kinks && scalar {
            self.op(Op::CheckKink(prim), span);
        }
        if self.codes.checks.domain && info.domain.is_some() && prim != Prim::Sign {
            self.op(Op::CheckDomain(prim, site.partial_of), span);
        }
        match prim {
            // The number of turns is the first of two or three operands.
            Prim::Build | Prim::Ifold if premise => {
                self.op(Op::TurnSteps(count as u32 - 1, Steps::turn(prim, args)), span);
            }
            _ => {}
        }
        let element = || types.first().map_or(Elements::Values, Elements::of);
        let op = match info.eval {
            Eval::Real(f) => Op::Real1(f),
            Eval::RealReal(f) => Op::Real2(f),
            Eval::RealInt(f) => Op::RealInt(f),
            Eval::IntReal(f) => Op::IntReal(f),
            Eval::RealToInt(f) => Op::RealToInt(f),
            Eval::IntToReal(f) => Op::IntToReal(f),
            Eval::Int(f) => Op::Int1(f),
            Eval::IntInt(f) => Op::Int2(f),
            Eval::Structural => match prim {
                Prim::Equal | Prim::NotEqual | Prim::Less | Prim::LessEqual | Prim::Greater | Prim::GreaterEqual => {
                    Op::Compare(prim, kinks)
                }
                Prim::Not => Op::Not,
                Prim::Sign => Op::Sign,
                Prim::StringAppend => Op::StringAppend,
                Prim::StringLength => Op::StringLength,
                Prim::StringOfInt => Op::StringOfInt,
                Prim::StringOfReal => Op::StringOfReal,
                Prim::Build => Op::Build(element()),
                Prim::Get => Op::Get(false),
                Prim::Length => Op::Length,
                Prim::Set => Op::Set,
                Prim::Ifold => Op::Ifold,
                Prim::Iterate => Op::Iterate,
                Prim::CheckSize => Op::CheckSize,
                Prim::VectorAdd | Prim::VectorSub | Prim::Scale | Prim::Inner | Prim::ZeroLike => {
                    self.types.push(types.first().cloned().unwrap_or(Type::Unit));
                    Op::Vector(prim, self.types.len() as u32 - 1)
                }
                // The value itself: nothing to do.
                Prim::StopGradient => return,
                other => gradus_source::bug!("primitive {other:?} has no evaluation"),
            },
        };
        if let Some(what) = site.checks {
            self.checked.push((self.ops.len() as u32, what));
        }
        self.result(op, count, span);
    }

    fn get(&mut self, array: &Term, index: &Term, span: Span) {
        self.term(index, false);
        match self.plain_slot(array) {
            Some(slot) => {
                self.count(1);
                let last = self.next_read();
                self.result(Op::GetFrom(slot, last), 1, span);
            }
            None => {
                // The index is below the array.
                self.term(array, false);
                self.result(Op::Get(true), 2, span);
            }
        }
    }
}
