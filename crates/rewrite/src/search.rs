//! The e-graph: expressions on numbers and truth values, rewritten in every way that the rules allow, and the cheapest kept (C section 4
//! leaves the order of rules open; equality saturation needs none).
//!
//! An *island* is a part of a term made of scalar primitives, conditionals and literals. Everything else in it (variables, calls, array
//! accesses, functions) is a leaf. No island contains a binder, so that all its leaves mean the same wherever a rule puts them. Islands are small
//! and each has its own budget, which makes the whole linear in the size of the term.

use crate::equal::same;
use crate::facts::Facts;
use crate::island::{rewrites, Cost, Island, Node, Op};
use crate::steps::{Step, Trail};
use crate::table::Class;
use egg::{CostFunction, EGraph, Extractor, FlatTerm, Language, RecExpr};
use gradus_core::build::At;
use gradus_core::traverse::{map_children, with_stack};
use gradus_core::{Literal, Term, TermKind};
use rustc_hash::FxHashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Nodes of an island; what lies deeper is an island of its own.
const LARGEST: usize = 120;
/// Rounds of rewriting of an island.
const ROUNDS: usize = 6;
/// Nodes that its e-graph may reach, and matches of a rule that are used in a round.
const MOST_NODES: usize = 1500;
const MOST_MATCHES: usize = 300;

/// A difference in cost that is a matter of taste, such as where literals stand.
const NOTHING: u64 = 5;

pub struct Search<'a, 'f> {
    pub facts: &'a mut Facts<'f>,
    pub trail: &'a mut Trail,
}

impl Search<'_, '_> {
    pub fn term(&mut self, term: &Term) -> Term {
        with_stack(|| self.node(term))
    }

    fn node(&mut self, term: &Term) -> Term {
        self.facts.enter(term);
        if matches!(&*term.kind, TermKind::Lambda(lambda) if lambda.origin.is_some() && self.facts.settings.origins) {
            return term.clone();
        }
        if let TermKind::Let { var, bound, .. } = &*term.kind {
            self.facts.note_value(var, bound);
        }
        match operation(term) {
            Some(_) => self.island(term),
            None => self.children(term),
        }
    }

    fn children(&mut self, term: &Term) -> Term {
        let mut position = 0;
        map_children(term, &mut |child| {
            self.trail.path.push(position);
            position += 1;
            let result = self.term(child);
            self.trail.path.pop();
            result
        })
    }

    fn island(&mut self, term: &Term) -> Term {
        let mut builder = Builder { search: self, leaves: Leaves::default(), expr: RecExpr::default(), size: 0 };
        let (term, _) = builder.add(term);
        let (leaves, start) = (builder.leaves, builder.expr);
        if start.as_ref().len() < 3 {
            return term;
        }
        let totals = leaves.terms.iter().map(|leaf| self.facts.is_total(leaf)).collect();
        let island = Island { totals, domain: self.facts.settings.domain };
        let graph = EGraph::<Node, Island>::new(island);
        let mut graph = if self.trail.recording { graph.with_explanations_enabled() } else { graph };
        let root = graph.add_expr(&start);
        saturate(&mut graph, self.facts.settings.class);
        let (cost, best) = Extractor::new(&graph, Cost).find_best(root);
        if cost + NOTHING >= Cost.cost_rec(&start) {
            return term;
        }
        let at = At(term.span);
        self.trail.fired += 1;
        if self.trail.recording {
            let mut explanation = graph.explain_equivalence(&start, &best);
            let flat = explanation.make_flat_explanation();
            let path = self.trail.path.clone();
            self.trail.steps.extend(derivation(at, &leaves.terms, &path, flat));
        }
        written(at, &leaves.terms, &best)
    }
}

fn saturate(graph: &mut EGraph<Node, Island>, class: Class) {
    graph.rebuild();
    for _ in 0..ROUNDS {
        let (nodes, classes) = (graph.total_size(), graph.number_of_classes());
        let found: Vec<_> =
            rewrites(class).iter().map(|rule| (rule, rule.search_with_limit(graph, MOST_MATCHES))).collect();
        for (rule, matches) in found {
            rule.apply(graph, &matches);
        }
        graph.rebuild();
        let same = graph.total_size() == nodes && graph.number_of_classes() == classes;
        if same || graph.total_size() > MOST_NODES {
            break;
        }
    }
}

/// The operation of a term that an island can hold.
fn operation(term: &Term) -> Option<Op> {
    match &*term.kind {
        TermKind::Prim { prim, site, .. } => {
            let info = prim.info();
            let watched = site.differentiated && info.kinks.is_some();
            let structural = matches!(info.eval, gradus_core::prim::Eval::Structural);
            let scalar = info.scheme.vars.is_empty() && (!structural || *prim == gradus_core::Prim::Not);
            (scalar && !watched).then_some(Op::Prim(*prim))
        }
        TermKind::If { .. } => Some(Op::If),
        TermKind::Literal(literal) => match literal {
            Literal::Real(x) => Some(Op::Real(x.to_bits())),
            Literal::Int(k) => Some(Op::Int(*k)),
            Literal::Bool(p) => Some(Op::Bool(*p)),
            Literal::String(_) | Literal::Unit => None,
        },
        _ => None,
    }
}

#[derive(Default)]
struct Leaves {
    terms: Vec<Term>,
    by_hash: FxHashMap<u64, Vec<usize>>,
}

impl Leaves {
    fn number(&mut self, leaf: Term) -> u32 {
        let same_hash = self.by_hash.entry(hash(&leaf)).or_default();
        if let Some(known) = same_hash.iter().find(|known| same(&self.terms[**known], &leaf)) {
            return *known as u32;
        }
        same_hash.push(self.terms.len());
        self.terms.push(leaf);
        self.terms.len() as u32 - 1
    }
}

/// Equal for equal terms; cheap, so that it looks at the first levels only.
fn hash(term: &Term) -> u64 {
    fn walk(term: &Term, depth: usize, state: &mut DefaultHasher) {
        std::mem::discriminant(&*term.kind).hash(state);
        match &*term.kind {
            TermKind::Prim { prim, .. } => prim.hash(state),
            TermKind::Proj { index, .. } => index.hash(state),
            TermKind::Var(var, _) if depth > 0 => var.hash(state),
            _ => {}
        }
        if depth > 0 && !matches!(&*term.kind, TermKind::Lambda(_)) {
            gradus_core::traverse::for_each_child(term, &mut |child| walk(child, depth - 1, state));
        }
    }
    let mut state = DefaultHasher::new();
    // Variables bound inside are met below functions only, which are not looked into.
    walk(term, if matches!(&*term.kind, TermKind::Lambda(_)) { 0 } else { 3 }, &mut state);
    state.finish()
}

struct Builder<'b, 'a, 'f> {
    search: &'b mut Search<'a, 'f>,
    leaves: Leaves,
    expr: RecExpr<Node>,
    size: usize,
}

impl Builder<'_, '_, '_> {
    /// Adds a term; its leaves, in which there may be more islands, are rewritten on the way.
    fn add(&mut self, term: &Term) -> (Term, egg::Id) {
        self.size += 1;
        let inside = self.size <= LARGEST;
        match operation(term).filter(|_| inside) {
            Some(op) => {
                let mut children = Vec::new();
                let mut position = 0;
                let whole = map_children(term, &mut |child| {
                    self.search.trail.path.push(position);
                    position += 1;
                    let (child, id) = with_stack(|| self.add(child));
                    self.search.trail.path.pop();
                    children.push(id);
                    child
                });
                (whole, self.expr.add(Node { op, children }))
            }
            None => {
                // A part that is an island of its own has its own budget.
                let leaf = self.search.term(term);
                let number = self.leaves.number(leaf.clone());
                (leaf, self.expr.add(Node { op: Op::Leaf(number), children: vec![] }))
            }
        }
    }
}

fn rebuilt(at: At, leaves: &[Term], op: &Op, children: Vec<Term>) -> Term {
    match (op, &children[..]) {
        (Op::Leaf(number), _) => match leaves.get(*number as usize) {
            Some(leaf) => leaf.clone(),
            None => gradus_source::bug!("leaf {number} of {}", leaves.len()),
        },
        (Op::Real(bits), _) => at.real(f64::from_bits(*bits)),
        (Op::Int(k), _) => at.int(*k),
        (Op::Bool(p), _) => at.bool(*p),
        (Op::Prim(prim), _) => at.prim(*prim, children),
        (Op::If, [condition, then, otherwise]) => at.if_(condition.clone(), then.clone(), otherwise.clone()),
        (Op::If, _) => gradus_source::bug!("a condition with {} parts", children.len()),
    }
}

/// The term of an expression. A leaf that occurs again gets binders of its own.
fn written(at: At, leaves: &[Term], expr: &RecExpr<Node>) -> Term {
    fn walk(at: At, leaves: &[Term], expr: &RecExpr<Node>, id: egg::Id, used: &mut [bool]) -> Term {
        let node = &expr[id];
        let children = node.children().iter().map(|child| with_stack(|| walk(at, leaves, expr, *child, used)));
        let children = children.collect();
        if let Op::Leaf(number) = node.op {
            if std::mem::replace(&mut used[number as usize], true) {
                return gradus_core::traverse::Copy::default().term(&leaves[number as usize]);
            }
        }
        rebuilt(at, leaves, &node.op, children)
    }
    walk(at, leaves, expr, expr.root(), &mut vec![false; leaves.len()])
}

fn flat_term(at: At, leaves: &[Term], flat: &FlatTerm<Node>) -> Term {
    let children = flat.children.iter().map(|child| flat_term(at, leaves, child)).collect();
    rebuilt(at, leaves, &flat.node.op, children)
}

/// The steps of egg's explanation: each of its terms follows from the one before by one rule, at the part that names it.
fn derivation(at: At, leaves: &[Term], path: &[usize], terms: &[FlatTerm<Node>]) -> Vec<Step> {
    let mut steps = Vec::new();
    for pair in terms.windows(2) {
        let [before, after] = pair else { continue };
        let mut place = path.to_vec();
        let (mut before, mut after) = (before, after);
        loop {
            let rule = after.forward_rule.map(|rule| (rule, false)).or(after.backward_rule.map(|rule| (rule, true)));
            if let Some((rule, reversed)) = rule {
                let name = crate::table::rule(rule.as_str()).map_or("constant", |rule| rule.name);
                let (before, after) = (flat_term(at, leaves, before), flat_term(at, leaves, after));
                steps.push(Step { rule: name, reversed, path: place, before, after });
                break;
            }
            let changed =
                after.children.iter().position(|child| child.has_rewrite_forward() || child.has_rewrite_backward());
            let Some(next) = changed else { break };
            place.push(next);
            (before, after) = (&before.children[next], &after.children[next]);
        }
    }
    steps
}
