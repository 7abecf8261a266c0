//! Derivative rules: `derivative f x y dz = e` and `tangent f x y dx dy = e`.

use crate::annotation::SizeNames;
use crate::display::Printer;
use crate::error::{TypeError, Why};
use crate::infer::Infer;
use crate::names::Value;
use crate::pattern::Reading;
use crate::scheme::LocalScheme;
use crate::store::{Node, Size, Ty};
use crate::tree::{ExpKind, Param};
use gradus_source::Span;
use gradus_syntax::ast::{Direction, Expr, Ident, Pattern};

impl Infer {
    /// A rule has the type variables of its function, and a type that follows from it.
    pub fn rule(&mut self, direction: Direction, function: &Ident, params: &[Pattern], body: &Expr, span: Span) {
        let Some(Value::Global(id)) = self.exports.values.get(&function.name).copied() else {
            let near = self.near_value(&function.name);
            self.report(TypeError::UnknownRuleTarget { name: function.name.clone(), near, span: function.span });
            return;
        };
        let global = self.tables.globals[id.0 as usize].clone();
        let Some(scheme) = global.scheme else { return };
        let errors = self.errors.len();
        self.store.level = 1;
        // The function's own variables, standing for themselves.
        let mut own = LocalScheme::default();
        for var in &scheme.vars {
            let q = self.store.quantify(var.var.name.clone(), var.data);
            self.store.quantified[q as usize].var = var.var.clone();
            own.vars.push(q);
        }
        let types: Vec<Ty> = own.vars.iter().map(|q| self.store.add(Node::Quantified(*q))).collect();
        let sizes: Vec<Size> = scheme.sizes.iter().map(|name| self.store.rigid_size(name.clone())).collect();
        let ty = scheme.instantiate_with(&mut self.store, &types, &sizes).first().copied().unwrap_or(Ty::ERROR);
        let reverse = direction == Direction::Reverse;
        let arity = if reverse { params.len().saturating_sub(1) } else { params.len() / 2 };
        let Some((inputs, output)) = self.take_params(ty, arity) else {
            self.rule_arity(function, ty, params.len(), reverse);
            return;
        };
        // What is left to be applied has parameters that the rule lacks.
        let partial = matches!(self.store.shape(output), Node::Fun(..));
        if arity == 0 || partial || !reverse && params.len() % 2 == 1 {
            self.rule_arity(function, ty, params.len(), reverse);
            return;
        }
        let (expected, result) = if reverse {
            let all = match inputs[..] {
                [one] => one,
                _ => self.store.tuple(inputs.clone()),
            };
            (inputs.iter().copied().chain([output]).collect::<Vec<_>>(), all)
        } else {
            (inputs.iter().chain(&inputs).copied().collect(), output)
        };
        let rule_ty = self.store.funs(&expected, result);
        let rule = Printer::of_store(&self.store, &self.tables.declared).print(rule_ty);
        self.type_vars.push(Default::default());
        self.size_vars.push(Default::default());
        let depth = self.enter();
        let mut reading = Reading::new(SizeNames::Flexible, None);
        reading.why = Why::Rule { function: function.name.clone(), rule: rule.clone() };
        let made: Vec<Param> =
            params.iter().zip(&expected).map(|(p, t)| self.param(p, Some(*t), &mut reading)).collect();
        self.no_variable_twice(&reading);
        let why = Why::Rule { function: function.name.clone(), rule };
        let body = self.check(body, result, &why);
        self.leave(depth);
        self.size_vars.pop();
        self.type_vars.pop();
        self.store.level = 0;
        let exp = self.tree.exp(ExpKind::Function(made, body), rule_ty, span);
        if self.errors.len() == errors {
            let term = self.lower(&own.vars, |lower| lower.term(exp));
            let data: Vec<bool> = own.vars.iter().map(|q| self.store.quantified[*q as usize].data).collect();
            let name = self.tables.globals[id.0 as usize].name.clone();
            if let Some(def) = self.tables.program.defs.get_mut(&name) {
                let taken = if reverse { &mut def.rules.reverse } else { &mut def.rules.forward };
                if let Some(first) = taken.as_ref().map(|term| term.span) {
                    let what = crate::error::Twice::Rule;
                    let name = function.name.clone();
                    self.report(TypeError::Twice { what, name, first, second: function.span });
                } else if def.rules.arity != 0 && def.rules.arity != arity {
                    let takes = def.rules.arity;
                    let (ty, given) = (self.show(ty), params.len());
                    let name = function.name.clone();
                    self.report(TypeError::RuleArity { name, ty, given, reverse, takes, span: function.span });
                } else {
                    *taken = Some(term);
                    def.rules.arity = arity;
                    // A rule may need more of a type variable than the function did.
                    for ((_, constraint), data) in def.scheme.vars.iter_mut().zip(&data) {
                        *constraint = crate::scheme::constraint(*data);
                    }
                    let mut closed = (*scheme).clone();
                    for (var, data) in closed.vars.iter_mut().zip(data) {
                        var.data = data;
                    }
                    self.global_mut(id).scheme = Some(closed.into());
                }
            }
        }
        self.reset();
    }

    fn rule_arity(&mut self, function: &Ident, ty: Ty, given: usize, reverse: bool) {
        let mut takes = 0;
        let mut at = ty;
        while let Node::Fun(_, to) = self.store.shape(at) {
            takes += 1;
            at = to;
        }
        let (ty, name) = (self.show(ty), function.name.clone());
        self.report(TypeError::RuleArity { name, ty, given, reverse, takes, span: function.span });
        self.reset();
    }

    fn take_params(&mut self, ty: Ty, count: usize) -> Option<(Vec<Ty>, Ty)> {
        let mut params = Vec::new();
        let mut at = ty;
        for _ in 0..count {
            match self.store.shape(at) {
                Node::Fun(from, to) => {
                    params.push(from);
                    at = to;
                }
                _ => return None,
            }
        }
        Some((params, at))
    }
}
