//! The language of islands for egg, what is known of a class of equal expressions, and the rules of the table as egg's rewrites.

use crate::condition::Condition;
use crate::known::fold_literals;
use crate::pattern::Pattern;
use crate::size::{cost_of_prim, STEP};
use crate::table::{rules, Class, Rule, Use};
use crate::total::is_total_prim;
use egg::{Analysis, ConditionalApplier, DidMerge, EGraph, ENodeOrVar, Id, Language, RecExpr, Rewrite, Subst, Var};
use gradus_core::{Literal, Prim};
use gradus_source::bug;
use std::sync::LazyLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    Leaf(u32),
    Real(u64),
    Int(i64),
    Bool(bool),
    Prim(Prim),
    If,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node {
    pub op: Op,
    pub children: Vec<Id>,
}

impl Language for Node {
    type Discriminant = Op;

    fn discriminant(&self) -> Op {
        self.op
    }

    fn matches(&self, other: &Self) -> bool {
        self.op == other.op && self.children.len() == other.children.len()
    }

    fn children(&self) -> &[Id] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.children
    }
}

/// What is known of the leaves.
#[derive(Clone, Debug, Default)]
pub struct Island {
    pub totals: Vec<bool>,
    /// An operation outside its domain stops the program.
    pub domain: bool,
}

/// What is known of a class of equal expressions.
#[derive(Clone, Debug)]
pub struct Known {
    total: bool,
    literal: Option<Literal>,
}

impl Analysis<Node> for Island {
    type Data = Known;

    fn make(graph: &mut EGraph<Node, Self>, node: &Node, _: Id) -> Known {
        let parts: Vec<&Known> = node.children.iter().map(|child| &graph[*child].data).collect();
        let all_total = parts.iter().all(|part| part.total);
        let (total, literal) = match node.op {
            Op::Leaf(number) => (graph.analysis.totals.get(number as usize).copied().unwrap_or(false), None),
            Op::Real(bits) => (true, Some(Literal::Real(f64::from_bits(bits)))),
            Op::Int(k) => (true, Some(Literal::Int(k))),
            Op::Bool(p) => (true, Some(Literal::Bool(p))),
            Op::Prim(prim) => {
                let watched = graph.analysis.domain && prim.info().domain.is_some();
                let literals: Option<Vec<Literal>> = parts.iter().map(|part| part.literal.clone()).collect();
                let folded = literals.and_then(|literals| fold_literals(prim, &literals));
                (all_total && !watched && is_total_prim(prim), folded)
            }
            Op::If => (all_total, None),
        };
        Known { total, literal }
    }

    fn merge(&mut self, known: &mut Known, other: Known) -> DidMerge {
        let (total, literal) = (known.total || other.total, known.literal.is_some() || other.literal.is_some());
        let changed = DidMerge(
            total != known.total || literal != known.literal.is_some(),
            total != other.total || literal != other.literal.is_some(),
        );
        known.total = total;
        if known.literal.is_none() {
            known.literal = other.literal;
        }
        changed
    }

    fn modify(graph: &mut EGraph<Node, Self>, id: Id) {
        let Some(literal) = graph[id].data.literal.clone() else { return };
        if let Some(op) = literal_op(&literal) {
            let known = graph.add(Node { op, children: vec![] });
            graph.union_trusted(id, known, "constant");
        }
    }
}

fn literal_op(literal: &Literal) -> Option<Op> {
    match literal {
        Literal::Real(x) => Some(Op::Real(x.to_bits())),
        Literal::Int(k) => Some(Op::Int(*k)),
        Literal::Bool(p) => Some(Op::Bool(*p)),
        Literal::String(_) | Literal::Unit => None,
    }
}

/// Evaluator steps first, then time; of equal ones, that with literals where people write them: `2.0 * x`, `x + 1.0`.
pub struct Cost;

impl egg::CostFunction<Node> for Cost {
    type Cost = u64;

    fn cost<C: FnMut(Id) -> u64>(&mut self, node: &Node, mut costs: C) -> u64 {
        let here = match node.op {
            Op::Real(_) | Op::Int(_) | Op::Bool(_) => STEP,
            Op::Leaf(_) => STEP + 2,
            Op::If => STEP + 20,
            Op::Prim(prim) => {
                let is_literal = |id: Option<&Id>, costs: &mut C| id.is_some_and(|id| costs(*id) == STEP);
                let odd = match prim {
                    Prim::MulReal | Prim::MulInt => is_literal(node.children.get(1), &mut costs),
                    Prim::AddReal | Prim::AddInt => is_literal(node.children.first(), &mut costs),
                    _ => false,
                };
                cost_of_prim(prim) + u64::from(odd)
            }
        };
        node.children.iter().fold(here, |sum, child| sum.saturating_add(costs(*child)))
    }
}

/// The rules of a class that islands can use.
pub fn rewrites(class: Class) -> &'static [Rewrite<Node, Island>] {
    static EXACT: LazyLock<Vec<Rewrite<Node, Island>>> = LazyLock::new(|| made(Class::Exact));
    static ALL: LazyLock<Vec<Rewrite<Node, Island>>> = LazyLock::new(|| made(Class::Reassociates));
    match class {
        Class::Exact => &EXACT,
        Class::Reassociates => &ALL,
    }
}

fn made(class: Class) -> Vec<Rewrite<Node, Island>> {
    rules().iter().filter(|rule| rule.class <= class && serves(rule)).map(rewrite).collect()
}

/// Whether a rule speaks of what an island holds.
pub fn serves(rule: &Rule) -> bool {
    let holds = |pattern: &Pattern| pattern.is_first_order() && is_scalar(pattern);
    rule.usage != Use::Code
        && holds(&rule.left_pattern)
        && holds(&rule.right_pattern)
        && !matches!(rule.left_pattern, Pattern::Real(_))
}

fn is_scalar(pattern: &Pattern) -> bool {
    !matches!(pattern, Pattern::Tuple(_) | Pattern::Proj(..)) && pattern.children().into_iter().all(is_scalar)
}

fn rewrite(rule: &'static Rule) -> Rewrite<Node, Island> {
    let side = |pattern: &Pattern| {
        let mut ast = RecExpr::default();
        add(pattern, &mut ast);
        egg::Pattern::new(ast)
    };
    let condition = move |graph: &mut EGraph<Node, Island>, _: Id, subst: &Subst| {
        let total = |name: &str| subst.get(variable(name)).is_some_and(|id| graph[*id].data.total);
        rule.conditions.iter().all(|condition| match condition {
            Condition::Total(a) => total(a),
            Condition::OneTotal(a, b) => total(a) || total(b),
            _ => false,
        })
    };
    let applier = ConditionalApplier { condition, applier: side(&rule.right_pattern) };
    match Rewrite::new(rule.name, side(&rule.left_pattern), applier) {
        Ok(rewrite) => rewrite,
        Err(problem) => bug!("the rule `{}`: {problem}", rule.name),
    }
}

fn variable(name: &str) -> Var {
    match format!("?{name}").parse() {
        Ok(var) => var,
        Err(problem) => bug!("the metavariable `{name}`: {problem}"),
    }
}

fn add(pattern: &Pattern, ast: &mut RecExpr<ENodeOrVar<Node>>) -> Id {
    let children: Vec<Id> = pattern.children().into_iter().map(|child| add(child, ast)).collect();
    let op = match pattern {
        Pattern::Meta(name) => return ast.add(ENodeOrVar::Var(variable(name))),
        Pattern::Real(x) => Op::Real(x.to_bits()),
        Pattern::Int(k) => Op::Int(*k),
        Pattern::Bool(p) => Op::Bool(*p),
        Pattern::Prim(prim, _, _) => Op::Prim(*prim),
        Pattern::If(_) => Op::If,
        other => bug!("an island holds no {other:?}"),
    };
    ast.add(ENodeOrVar::ENode(Node { op, children }))
}
