//! Functions with derivative rules of their own: flow functions that carry their rules, which take the place of their derivatives.

use super::value::{Env, Value};
use super::{Lowered, Lowering};
use crate::flow::{self, Atom, Block, FunctionId, Name, Op, Rule, Var};
use crate::refusal::Reason;
use gradus_core::{instance, Body, Def, Global, Term, Type};
use gradus_source::Span;

/// Writes a body, given the arguments and the rest of the parameters.
type Writing<'a, 'b> = dyn FnMut(&mut Lowering<'a>, Vec<Value>, &[Atom]) -> Lowered<Vec<Atom>> + 'b;

/// A function with rules, at its types.
struct Ruled {
    params: Vec<Type>,
    result: Type,
    body: Term,
    reverse: Option<Term>,
    forward: Option<Term>,
}

/// A call that need not be made: in the rule of a function, which is given what the function took and gave.
pub(super) struct Made {
    function: FunctionId,
    took: Vec<Atom>,
    gave: Vec<Var>,
}

impl Ruled {
    /// `a1 * .. * an`, or `a1` alone.
    fn inputs(&self) -> Type {
        match &self.params[..] {
            [one] => one.clone(),
            several => Type::tuple(several.to_vec()),
        }
    }

    /// The parts of a value of that type.
    fn parts(&self, inputs: Value) -> Vec<Value> {
        match (self.params.len(), inputs) {
            (1, one) => vec![one],
            (_, Value::Tuple(items)) => items.to_vec(),
            _ => gradus_source::bug!("a rule gives no tuple"),
        }
    }
}

impl<'a> Lowering<'a> {
    /// How many parameters the rules of a definition speak of, if it has any.
    pub(super) fn rule_arity(&self, global: &Global) -> Option<usize> {
        self.ruled_definition(global).map(|def| def.rules.arity)
    }

    fn ruled_definition(&self, global: &Global) -> Option<&'a Def> {
        let Global::Source { name, .. } = global else { return None };
        let def = self.program.defs.get(name)?;
        (def.rules.reverse.is_some() || def.rules.forward.is_some()).then_some(def)
    }

    /// The rules of a definition at its types.
    pub(super) fn rule_terms(&self, global: &Global) -> Vec<Term> {
        let (Some(def), Global::Source { types, .. }) = (self.ruled_definition(global), global) else {
            return Vec::new();
        };
        let rules = [&def.rules.reverse, &def.rules.forward].into_iter().flatten();
        rules.map(|term| instance::instance(&def.scheme, term, types)).collect()
    }

    /// Calls a function with rules, all its arguments being there.
    pub(super) fn call_ruled(&mut self, global: &Global, args: Vec<Value>, span: Span) -> Lowered<Value> {
        let (Some(def), Global::Source { types, .. }) = (self.ruled_definition(global), global) else {
            gradus_source::bug!("a definition without rules");
        };
        let Body::Term(body) = &def.body else { gradus_source::bug!("data with rules") };
        let at_types = |term: &Term| instance::instance(&def.scheme, term, types);
        let (mut params, mut result) = (Vec::new(), def.scheme.instantiate(types));
        for _ in 0..def.rules.arity {
            let Type::Fun(ft) = &result else { gradus_source::bug!("a rule for more parameters than there are") };
            params.push(ft.0.clone());
            let rest = ft.1.clone();
            result = rest;
        }
        let ruled = Ruled {
            params,
            result,
            body: at_types(body),
            reverse: def.rules.reverse.as_ref().map(at_types),
            forward: def.rules.forward.as_ref().map(at_types),
        };
        if self.is_data(&ruled.inputs(), span).and(self.is_data(&ruled.result, span)).is_err() {
            return self.refuse(Reason::CustomRule(def.name.to_string()), span);
        }
        let terms: Vec<Term> = [Some(&ruled.body), ruled.reverse.as_ref(), ruled.forward.as_ref()]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let (constants, known) = self.split_constants(&terms, span)?;
        let mut leaves = Vec::new();
        for (value, ty) in args.iter().zip(&ruled.params) {
            leaves.extend(self.flatten(value, ty, span)?);
        }
        for (global, ty) in &constants {
            let value = self.global(global, span)?;
            leaves.extend(self.flatten(&value, ty, span)?);
        }
        let id = match self.heap.ruled.get(global) {
            Some(id) => *id,
            None => {
                let outer = std::mem::replace(&mut self.constants, known);
                let id = self.lower_ruled(global, &ruled, &constants, &def.name, span);
                self.constants = outer;
                id?
            }
        };
        self.b.span = span;
        let made = self.heap.made.as_ref().filter(|made| made.function == id && made.took == leaves);
        let results: Vec<Var> = match made {
            Some(made) => made.gave.clone(),
            None => {
                let results = self.module.function(id).results.iter().map(|ty| Var::fresh("r", *ty));
                let results: Vec<Var> = results.collect();
                self.b.bind(results.clone(), Op::Call { function: id, args: leaves });
                results
            }
        };
        self.unflatten(&ruled.result, &mut results.into_iter().map(Atom::Var), span)
    }

    fn lower_ruled(
        &mut self,
        global: &Global,
        ruled: &Ruled,
        constants: &[(Global, Type)],
        name: &str,
        span: Span,
    ) -> Lowered<FunctionId> {
        let mut types = Vec::new();
        for ty in ruled.params.iter().chain(constants.iter().map(|(_, t)| t)) {
            types.extend(self.leaves(ty, span)?);
        }
        let results = self.leaves(&ruled.result, span)?;
        let active = |types: &[flow::Type]| types.iter().copied().filter(|t| t.may_be_active()).collect::<Vec<_>>();
        let linear = |s: &mut Self, types: Vec<flow::Type>| -> Vec<flow::Type> {
            types.into_iter().map(|t| s.module.linear_type(t)).collect()
        };
        let (in_adjs, out_adjs) = (linear(self, active(&types)), linear(self, active(&results)));
        let both = [types.clone(), results.clone()].concat();
        let id = self.declare(name, types, results);
        let reverse =
            self.declare(&format!("{name}_reverse"), [both.clone(), out_adjs.clone()].concat(), in_adjs.clone());
        let forward = self.declare(&format!("{name}_forward"), [both, in_adjs].concat(), out_adjs);
        self.module.functions[id.0].rule = Some(Rule { reverse: Some(reverse), forward: Some(forward) });
        self.heap.ruled.insert(global.clone(), id);
        self.write(id, None, constants, ruled, span, &mut |s, args, _| {
            let function = s.eval(&ruled.body, &Env::default())?;
            let value = s.apply_all(function, args, span)?;
            s.flatten(&value, &ruled.result, span)
        })?;
        self.write(reverse, Some(id), constants, ruled, span, &mut |s, args, rest| {
            let dy = s.beside(rest, &ruled.result, span)?;
            let inputs = s.pull(ruled, &args, dy, span)?;
            let mut adjs = Vec::new();
            for ((value, like), ty) in ruled.parts(inputs).iter().zip(&args).zip(&ruled.params) {
                s.check_tags(value, like)?;
                let (values, likes) = (s.flatten(value, ty, span)?, s.flatten(like, ty, span)?);
                for (value, like) in values.into_iter().zip(likes).filter(|(v, _)| v.ty().may_be_active()) {
                    adjs.push(s.project_leaf(value, like, span)?);
                }
            }
            // Nothing flows to the definitions that it uses.
            for (global, ty) in constants {
                let value = s.global(global, span)?;
                let leaves = s.flatten(&value, ty, span)?;
                for leaf in leaves.into_iter().filter(|l| l.ty().may_be_active()) {
                    adjs.push(s.b.linear_zeros_like(&mut s.module, leaf));
                }
            }
            Ok(adjs)
        })?;
        self.write(forward, Some(id), constants, ruled, span, &mut |s, args, rest| {
            let results = s.leaves(&ruled.result, span)?.len();
            let y = s.unflatten(&ruled.result, &mut rest[..results].iter().copied(), span)?;
            let mut tans = rest[results..].iter().copied();
            let mut dx = Vec::new();
            for (arg, ty) in args.iter().zip(&ruled.params) {
                let mut leaves = Vec::new();
                for leaf in s.flatten(arg, ty, span)? {
                    leaves.push(match leaf.ty().may_be_active() {
                        true => {
                            let tan = tans.next().unwrap_or(leaf);
                            s.rebuild_leaf(leaf, tan, span)?
                        }
                        false => leaf,
                    });
                }
                dx.push(s.unflatten(ty, &mut leaves.into_iter(), span)?);
            }
            let dy = s.push(ruled, &args, dx, &y, span)?;
            s.check_tags(&dy, &y)?;
            let (values, likes) = (s.flatten(&dy, &ruled.result, span)?, s.flatten(&y, &ruled.result, span)?);
            let mut found = Vec::new();
            for (value, like) in values.into_iter().zip(likes).filter(|(v, _)| v.ty().may_be_active()) {
                found.push(s.project_leaf(value, like, span)?);
            }
            Ok(found)
        })?;
        Ok(id)
    }

    fn declare(&mut self, name: &str, params: Vec<flow::Type>, results: Vec<flow::Type>) -> FunctionId {
        let params = params.into_iter().map(|ty| Var::fresh("x", ty)).collect();
        let (name, body) = (Name::new(name), Block::unfinished());
        self.module.functions.push(flow::Function { name, params, results, body, rule: None });
        FunctionId(self.module.functions.len() - 1)
    }

    /// Writes the body of a function that takes the arguments, the definitions that are used, and `rest`. In a rule, this begins with what
    /// the function `of` gave.
    fn write(
        &mut self,
        id: FunctionId,
        of: Option<FunctionId>,
        constants: &[(Global, Type)],
        ruled: &Ruled,
        span: Span,
        body: &mut Writing<'a, '_>,
    ) -> Lowered<()> {
        let params = self.module.function(id).params.clone();
        let made = of.map(|function| {
            let (took, rest) = params.split_at(self.module.function(function).params.len());
            let took = took.iter().copied().map(Atom::Var).collect();
            Made { function, took, gave: rest[..self.module.function(function).results.len()].to_vec() }
        });
        let mut atoms = params.into_iter().map(Atom::Var);
        let args = ruled.params.iter().map(|ty| self.unflatten(ty, &mut atoms, span)).collect::<Lowered<Vec<_>>>()?;
        for (global, ty) in constants {
            let value = self.unflatten(ty, &mut atoms, span)?;
            self.constants.insert(global.clone(), Ok(value));
        }
        let rest: Vec<Atom> = atoms.collect();
        let inner = self.b.another();
        let outer = std::mem::replace(&mut self.b, inner);
        let applying = std::mem::take(&mut self.applying);
        // Without arguments it could be the call of another function, which does not see this one's.
        let made = std::mem::replace(&mut self.heap.made, made.filter(|made| !made.took.is_empty()));
        let results = body(self, args, &rest);
        self.heap.made = made;
        self.applying = applying;
        let mut written = std::mem::replace(&mut self.b, outer);
        self.module.functions[id.0].body = written.pop(results?);
        Ok(())
    }

    pub(super) fn apply_all(&mut self, mut function: Value, args: Vec<Value>, span: Span) -> Lowered<Value> {
        for arg in args {
            function = self.apply(function, arg, span)?;
        }
        Ok(function)
    }

    /// A value whose reals are given: its leaves come first, then what stands for those that can have a derivative.
    fn beside(&mut self, atoms: &[Atom], ty: &Type, span: Span) -> Lowered<Value> {
        let count = self.leaves(ty, span)?.len();
        let mut linear = atoms[count..].iter().copied();
        let mut leaves = Vec::new();
        for leaf in &atoms[..count] {
            leaves.push(match leaf.ty().may_be_active() {
                true => {
                    let real = linear.next().unwrap_or(*leaf);
                    self.rebuild_leaf(*leaf, real, span)?
                }
                false => *leaf,
            });
        }
        self.unflatten(ty, &mut leaves.into_iter(), span)
    }

    /// The cotangent of the inputs: by the reverse rule, or from the forward rule with one application for each real of the input.
    fn pull(&mut self, ruled: &Ruled, args: &[Value], dy: Value, span: Span) -> Lowered<Value> {
        if let Some(reverse) = &ruled.reverse {
            let rule = self.eval(reverse, &Env::default())?;
            return self.apply_all(rule, [args.to_vec(), vec![dy]].concat(), span);
        }
        let inputs = ruled.inputs();
        let point = match args {
            [one] => one.clone(),
            several => Value::tuple(several.to_vec()),
        };
        let count = self.count(&point, &inputs, span)?;
        let partials = self.build_with(count, &Type::Real, span, &mut |s, i| {
            let seed = s.basis(&point, &inputs, i, span)?;
            let Some(forward) = &ruled.forward else { gradus_source::bug!("rules without rules") };
            let rule = s.eval(forward, &Env::default())?;
            let tangent = s.apply_all(rule, [args.to_vec(), ruled.parts(seed)].concat(), span)?;
            s.inner(&tangent, &dy, &ruled.result, span)
        })?;
        self.with_reals(&partials, &point, &inputs, span)
    }

    /// The tangent of the output: by the forward rule, or from the reverse rule with one application for each real of the output.
    fn push(&mut self, ruled: &Ruled, args: &[Value], dx: Vec<Value>, y: &Value, span: Span) -> Lowered<Value> {
        if let Some(forward) = &ruled.forward {
            let rule = self.eval(forward, &Env::default())?;
            return self.apply_all(rule, [args.to_vec(), dx].concat(), span);
        }
        let inputs = ruled.inputs();
        let dx = match &dx[..] {
            [one] => one.clone(),
            _ => Value::tuple(dx),
        };
        let count = self.count(y, &ruled.result, span)?;
        let partials = self.build_with(count, &Type::Real, span, &mut |s, i| {
            let seed = s.basis(y, &ruled.result, i, span)?;
            let Some(reverse) = &ruled.reverse else { gradus_source::bug!("rules without rules") };
            let rule = s.eval(reverse, &Env::default())?;
            let cotangent = s.apply_all(rule, [args.to_vec(), vec![seed]].concat(), span)?;
            s.inner(&cotangent, &dx, &inputs, span)
        })?;
        self.with_reals(&partials, y, &ruled.result, span)
    }
}
