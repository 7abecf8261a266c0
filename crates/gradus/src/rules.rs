//! `check --rules`: each custom derivative rule against central differences, at random points.
//!
//! For a function f, a point x, a direction v and a cotangent dy, the derivative of f along v is taken numerically: it must be
//! `tangent f x v`, and its inner product with dy must be that of `derivative f x dy` with v.

use crate::error::DriverError;
use crate::evaluate::{Evaluator, Input};
use crate::function::Argument;
use crate::numeric::{moved, reals, relative_difference, with_reals, Random};
use crate::{Error, Program, Value};
use gradus_core::print::print_type;
use gradus_core::{Def, Symbol, Term, Type};
use gradus_source::Diagnostic;

/// Points tried for each rule, and how many of them must be usable.
const POINTS: usize = 40;
const ENOUGH: usize = 10;
const TOLERANCE: f64 = 1e-5;

/// Reals are taken from both ranges in turn: many functions are only defined for positive numbers.
const RANGES: [(f64, f64); 2] = [(-2.0, 2.0), (0.1, 2.0)];

/// What the test of all rules found.
pub struct RuleReport {
    /// Rules tested and found right.
    pub right: Vec<String>,
    pub problems: Vec<Diagnostic>,
}

impl Program {
    /// Tests the rules of the file itself.
    pub fn check_rules(&self, seed: u64) -> Result<RuleReport, Error> {
        let core = self.core().clone();
        let mut report = RuleReport { right: Vec::new(), problems: Vec::new() };
        for def in core.defs.values().filter(|def| def.module.is_empty()) {
            for (rule, term) in [("derivative", &def.rules.reverse), ("tangent", &def.rules.forward)] {
                let Some(term) = term else { continue };
                match self.check_rule(def, rule, term, seed)? {
                    None => report.right.push(format!("{rule} {}", def.name)),
                    Some(problem) => report.problems.push(problem.diagnostic()),
                }
            }
        }
        Ok(report)
    }

    fn check_rule(&self, def: &Def, rule: &'static str, term: &Term, seed: u64) -> Result<Option<DriverError>, Error> {
        let untested = |reason: String| {
            Some(DriverError::UntestedRule { function: def.name.to_string(), rule, reason, span: def.span })
        };
        // A polymorphic function is tested at reals.
        let at_reals: Vec<Type> = def.scheme.vars.iter().map(|_| Type::Real).collect();
        let Some(typed) = Typed::new(def, &at_reals) else { return Ok(untested("it is not a function".into())) };
        let types = |ts: &[Type]| ts.iter().map(print_type).collect::<Vec<_>>().join(" and ");
        if !typed.params.iter().chain([&typed.result]).all(|ty| self.schema().is_data(ty)) {
            return Ok(untested(format!("its parameters have the types {}", types(&typed.params))));
        }
        let rule_term = gradus_core::instance::instance(&def.scheme, term, &at_reals);
        let function_term = typed.function_term(def);
        let names: [Symbol; 2] = [format!("{}#function", def.name).into(), format!("{}#{rule}", def.name).into()];
        let program = self.with_definition(names[0].clone(), typed.ty(), function_term).with_definition(
            names[1].clone(),
            typed.rule_type(rule),
            rule_term,
        );
        let mut trial = Trial { typed: &typed, names: &names, evaluator: Evaluator::new(&program)?, rule };
        let mut random = Random(seed);
        let mut usable = 0;
        for point in 0..POINTS {
            let range = RANGES[point % RANGES.len()];
            let mut draw = |ty: &Type| random.value(ty, &program.schema(), range, 0);
            let x: Option<Vec<Value>> = typed.params.iter().map(&mut draw).collect();
            let Some(x) = x else { return Ok(untested("no random point can be made".into())) };
            let direction: Vec<Vec<f64>> =
                x.iter().map(|x| reals(x).iter().map(|_| random.real(-1.0, 1.0)).collect()).collect();
            match trial.compare(&x, &direction, &mut random) {
                Some((expected, found)) if relative_difference(expected, found) > TOLERANCE => {
                    let point = x.iter().map(Value::to_string).collect::<Vec<_>>().join(" and ");
                    let function = def.name.to_string();
                    return Ok(Some(DriverError::WrongRule { function, rule, point, expected, found, span: def.span }));
                }
                Some(_) => usable += 1,
                None => {}
            }
            if usable == ENOUGH {
                break;
            }
        }
        Ok(if usable == 0 { untested(format!("none of {POINTS} random points was usable")) } else { None })
    }
}

/// A function with rules, at closed types, taken apart as far as its rules speak of it.
struct Typed {
    params: Vec<Type>,
    result: Type,
    arguments: Vec<Type>,
}

impl Typed {
    fn new(def: &Def, arguments: &[Type]) -> Option<Typed> {
        let mut result = def.scheme.instantiate(arguments);
        let mut params = Vec::new();
        for _ in 0..def.rules.arity {
            let Type::Fun(arrow) = &result else { return None };
            params.push(arrow.0.clone());
            result = arrow.1.clone();
        }
        (!params.is_empty()).then(|| Typed { params, result, arguments: arguments.to_vec() })
    }

    fn ty(&self) -> Type {
        Type::funs(self.params.clone(), self.result.clone())
    }

    fn function_term(&self, def: &Def) -> Term {
        let global = gradus_core::Global::Source { name: def.name.clone(), types: self.arguments.clone().into() };
        gradus_core::build::At(def.span).global(global)
    }

    /// `a1 * ... * an`, or `a1` alone.
    fn inputs(&self) -> Type {
        match &self.params[..] {
            [one] => one.clone(),
            several => Type::tuple(several.to_vec()),
        }
    }

    fn rule_result(&self, rule: &str) -> Type {
        if rule == "derivative" {
            self.inputs()
        } else {
            self.result.clone()
        }
    }

    /// The parameters of a rule after the point.
    fn rule_params(&self, rule: &str) -> Vec<Type> {
        if rule == "derivative" {
            vec![self.result.clone()]
        } else {
            self.params.clone()
        }
    }

    fn rule_type(&self, rule: &str) -> Type {
        let params = self.params.iter().cloned().chain(self.rule_params(rule));
        Type::funs(params.collect::<Vec<_>>(), self.rule_result(rule))
    }
}

struct Trial<'a> {
    typed: &'a Typed,
    names: &'a [Symbol; 2],
    evaluator: Evaluator,
    rule: &'static str,
}

impl Trial<'_> {
    /// The derivative in a direction, numerically and by the rule, each as one number; nothing if the point is not usable.
    fn compare(&mut self, x: &[Value], direction: &[Vec<f64>], random: &mut Random) -> Option<(f64, f64)> {
        let step = f64::EPSILON.cbrt();
        let y = self.function(x)?;
        let y_tan = self.difference(x, direction, step)?;
        // Where another step gives something else the function has no derivative: it jumps there, or an iteration in it does not settle.
        let other = self.difference(x, direction, 2.0 * step)?;
        if y_tan.iter().zip(&other).any(|(a, b)| relative_difference(*a, *b) > TOLERANCE) {
            return None;
        }
        let weights: Vec<f64> = y_tan.iter().map(|_| random.real(-1.0, 1.0)).collect();
        let expected = inner(&y_tan, &weights);
        let rest: Vec<Value> = if self.rule == "derivative" {
            vec![with_reals(&y, &weights)]
        } else {
            x.iter().zip(direction).map(|(x, v)| with_reals(x, v)).collect()
        };
        let (params, result) = (self.typed.rule_params(self.rule), self.typed.rule_result(self.rule));
        let types: Vec<Type> = self.typed.params.iter().cloned().chain(params).collect();
        let arguments: Vec<Value> = x.iter().cloned().chain(rest).collect();
        let by_rule = reals(&self.call(1, &arguments, &types, &result)?);
        let found =
            if self.rule == "derivative" { inner(&by_rule, &direction.concat()) } else { inner(&by_rule, &weights) };
        expected.is_finite().then_some((expected, found))
    }

    /// The central difference of the function in a direction.
    fn difference(&mut self, x: &[Value], direction: &[Vec<f64>], step: f64) -> Option<Vec<f64>> {
        let beside = |factor: f64| x.iter().zip(direction).map(|(x, v)| moved(x, factor, v)).collect::<Vec<_>>();
        let (after, before) = (reals(&self.function(&beside(step))?), reals(&self.function(&beside(-step))?));
        Some(after.iter().zip(&before).map(|(a, b)| (a - b) / (2.0 * step)).collect())
    }

    fn function(&mut self, x: &[Value]) -> Option<Value> {
        let (types, result) = (self.typed.params.clone(), self.typed.result.clone());
        self.call(0, x, &types, &result)
    }

    /// A run-time error at a random point means only that the point is not usable.
    fn call(&mut self, which: usize, arguments: &[Value], types: &[Type], result: &Type) -> Option<Value> {
        let arguments: Vec<Argument> = arguments.iter().map(Argument::Value).collect();
        let inputs: Vec<Input> = arguments.iter().zip(types).map(|(argument, ty)| Input { argument, ty }).collect();
        self.evaluator.apply(&self.names[which], &inputs, result).ok()
    }
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
