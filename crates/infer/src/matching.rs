//! Pattern matching to decision trees, after Maranget ("Warnings for pattern matching", 2007, and "Compiling pattern matching to good
//! decision trees", 2008). The tree tests each part of a value at most once on a path. What it leaves open are the cases that are not
//! covered, each with its counter-example; an arm that it never reaches is redundant. Guards cover nothing.

use crate::declared::DeclaredBody;
use crate::error::{MatchForm, TypeError};
use crate::lower::Lower;
use crate::store::TypeId;
use crate::tree::{Exp, LocalId, Pat, PatKind};
use gradus_core::{Literal, Term, Type};
use gradus_source::Span;

/// A part of the value that is matched: a position in [`Matcher::parts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part(usize);

impl Part {
    pub fn of(self, parts: &[PartInfo]) -> &PartInfo {
        &parts[self.0]
    }
}

/// How a part is reached.
#[derive(Clone, Debug)]
pub enum Reach {
    /// By a variable or another term that costs nothing to repeat.
    Term(Term),
    /// Component of a tuple or field of a record.
    Component(Part, usize),
    /// Element of an array.
    Element(Part, usize),
    /// The components, if the value is a tuple that is written out and never built.
    Tuple(Vec<Part>),
}

#[derive(Clone, Debug)]
pub struct PartInfo {
    pub ty: Type,
    pub reach: Reach,
    /// Components, once somebody has asked for them.
    pub components: Option<Vec<Part>>,
    /// What is known on the way to where we are.
    pub fact: Fact,
}

#[derive(Clone, Debug)]
pub enum Fact {
    Anything,
    Constructor(TypeId, usize, Vec<Part>),
    NotConstructors(TypeId, Vec<usize>),
    Literal(Literal),
    NotLiterals(Vec<Literal>),
    Length(Vec<Part>),
    NotLengths(Vec<usize>),
}

/// An arm as it goes in.
pub struct Row {
    pub pattern: Pat,
    pub guard: Option<Exp>,
    /// The body, if it is a match itself.
    pub inner: Option<Span>,
    pub span: Span,
}

/// What is left to be tested for an arm, and what has been bound.
#[derive(Clone, Debug)]
struct Clause {
    tests: Vec<(Part, Pat)>,
    binds: Vec<(LocalId, Part)>,
    arm: usize,
}

#[derive(Clone, Debug)]
pub enum Decision {
    Leaf {
        arm: usize,
        binds: Vec<(LocalId, Part)>,
    },
    /// The arm, if its guard holds.
    Guarded {
        arm: usize,
        binds: Vec<(LocalId, Part)>,
        otherwise: Box<Decision>,
    },
    Constructors {
        part: Part,
        cases: Vec<(usize, Vec<Part>, Decision)>,
        default: Option<Box<Decision>>,
    },
    Literals {
        part: Part,
        cases: Vec<(Literal, Decision)>,
        default: Option<Box<Decision>>,
    },
    Lengths {
        part: Part,
        cases: Vec<(usize, Decision)>,
        default: Box<Decision>,
    },
    /// No arm: told as an error.
    Fail,
}

/// More nodes than this are refused: patterns can be written that need exponentially many.
const MAX_NODES: usize = 50_000;
/// How many missing cases are shown.
const MAX_MISSING: usize = 3;

pub struct Matcher<'l, 'a> {
    pub lower: &'l mut Lower<'a>,
    pub parts: Vec<PartInfo>,
    root: Part,
    guards: Vec<bool>,
    pub uses: Vec<usize>,
    missing: Vec<String>,
    nodes: usize,
}

impl<'l, 'a> Matcher<'l, 'a> {
    pub fn new(lower: &'l mut Lower<'a>, ty: Type, reach: Reach) -> Self {
        let root = PartInfo { ty, reach, components: None, fact: Fact::Anything };
        Matcher {
            lower,
            parts: vec![root],
            root: Part(0),
            guards: Vec::new(),
            uses: Vec::new(),
            missing: Vec::new(),
            nodes: 0,
        }
    }

    pub fn add(&mut self, ty: Type, reach: Reach) -> Part {
        self.parts.push(PartInfo { ty, reach, components: None, fact: Fact::Anything });
        Part(self.parts.len() - 1)
    }

    /// The components of the root are these; it is not built unless a pattern asks for it.
    pub fn unbuilt_tuple(&mut self, components: Vec<Part>) {
        self.parts[0].components = Some(components.clone());
        self.parts[0].reach = Reach::Tuple(components);
    }

    pub fn decide(&mut self, rows: &[Row], form: MatchForm, span: Span) -> Decision {
        self.guards = rows.iter().map(|row| row.guard.is_some()).collect();
        self.uses = vec![0; rows.len()];
        let clauses = rows
            .iter()
            .enumerate()
            .map(|(arm, row)| Clause { tests: vec![(self.root, row.pattern)], binds: Vec::new(), arm })
            .collect();
        let decision = self.clauses(clauses);
        if self.nodes > MAX_NODES {
            self.lower.errors.push(TypeError::TooComplicated { span });
            return Decision::Fail;
        }
        if !self.missing.is_empty() {
            let missing = std::mem::take(&mut self.missing);
            let inner = rows.last().and_then(|row| row.inner);
            self.lower.errors.push(TypeError::NotExhaustive { missing, form, inner, span });
        }
        for (row, uses) in rows.iter().zip(&self.uses) {
            if *uses == 0 {
                let span = self.lower.tree.pattern(row.pattern).span;
                self.lower.errors.push(TypeError::Unreachable { span });
            }
        }
        decision
    }

    fn clauses(&mut self, clauses: Vec<Clause>) -> Decision {
        gradus_core::traverse::with_stack(|| self.clauses_inner(clauses))
    }

    fn clauses_inner(&mut self, mut clauses: Vec<Clause>) -> Decision {
        self.nodes += 1 + clauses.len();
        if self.nodes > MAX_NODES.saturating_mul(100) {
            self.nodes = usize::MAX / 2;
            return Decision::Fail;
        }
        for clause in &mut clauses {
            self.simplify(clause);
        }
        let Some(first) = clauses.first() else {
            if self.missing.len() < MAX_MISSING {
                let example = self.example(self.root, false);
                if !self.missing.contains(&example) {
                    self.missing.push(example);
                }
            }
            return Decision::Fail;
        };
        if first.tests.is_empty() {
            let Clause { arm, binds, .. } = first.clone();
            self.uses[arm] += 1;
            if !self.guards[arm] {
                return Decision::Leaf { arm, binds };
            }
            let otherwise = Box::new(self.clauses(clauses.split_off(1)));
            return Decision::Guarded { arm, binds, otherwise };
        }
        // The part of the first clause that most clauses look at.
        let looked = |part: Part| clauses.iter().filter(|c| c.tests.iter().any(|(p, _)| *p == part)).count();
        let mut best = first.tests[0].0;
        if first.tests.len() > 1 {
            let mut most = 0;
            for (part, _) in &first.tests {
                let count = looked(*part);
                if count > most {
                    (best, most) = (*part, count);
                }
            }
        }
        self.branch(best, clauses)
    }

    /// Takes out what always matches: variables, tuples and records.
    fn simplify(&mut self, clause: &mut Clause) {
        let mut todo: Vec<(Part, Pat)> = std::mem::take(&mut clause.tests);
        todo.reverse();
        while let Some((part, pat)) = todo.pop() {
            match self.lower.tree.pattern(pat).kind.clone() {
                PatKind::Wild => {}
                PatKind::Bind(local, inner) => {
                    clause.binds.push((local, part));
                    todo.extend(inner.map(|inner| (part, inner)));
                }
                PatKind::Tuple(pats) => {
                    let components = self.components(part, pats.len());
                    todo.extend(components.into_iter().zip(pats).rev());
                }
                PatKind::Construct(id, _, pats) if self.is_record(id) => {
                    let components = self.components(part, pats.len());
                    todo.extend(components.into_iter().zip(pats).rev());
                }
                PatKind::Construct(..) | PatKind::Literal(_) | PatKind::Numeral(_) | PatKind::Array(_) => {
                    clause.tests.push((part, pat));
                }
                PatKind::Or(alternatives) => {
                    // One that always matches makes the others superfluous only if it comes first; keep it simple.
                    match alternatives[..] {
                        [one] => todo.push((part, one)),
                        _ => clause.tests.push((part, pat)),
                    }
                }
            }
        }
    }

    fn is_record(&self, id: TypeId) -> bool {
        matches!(self.lower.declared.get(id).body, DeclaredBody::Record(..))
    }

    fn components(&mut self, part: Part, count: usize) -> Vec<Part> {
        if let Some(parts) = &self.parts[part.0].components {
            return parts.clone();
        }
        let types: Vec<Type> = match self.parts[part.0].ty.clone() {
            Type::Tuple(types) => types.to_vec(),
            Type::Named(name, args) => self.record_types(&name.base, &args),
            _ => Vec::new(),
        };
        let made: Vec<Part> = (0..count)
            .map(|i| {
                let ty = types.get(i).cloned().unwrap_or(Type::Unit);
                self.add(ty, Reach::Component(part, i))
            })
            .collect();
        self.parts[part.0].components = Some(made.clone());
        made
    }

    fn record_types(&mut self, name: &str, args: &[Type]) -> Vec<Type> {
        let found = self.lower.declared.find(name);
        found.map_or(Vec::new(), |id| self.lower.declared.argument_types(id, 0, args))
    }

    /// Tests one part, which the first clause looks at.
    fn branch(&mut self, part: Part, clauses: Vec<Clause>) -> Decision {
        let clauses = self.expand(part, clauses);
        let Some(first) = clauses.first().and_then(|c| test_of(c, part)) else {
            // The alternatives of an or-pattern were variables.
            return self.clauses(clauses);
        };
        match self.lower.tree.pattern(first).kind.clone() {
            PatKind::Construct(id, _, _) => self.by_constructor(part, id, clauses),
            PatKind::Array(_) => self.by_length(part, clauses),
            PatKind::Literal(_)
            | PatKind::Numeral(_)
            | PatKind::Wild
            | PatKind::Bind(..)
            | PatKind::Tuple(_)
            | PatKind::Or(_) => self.by_literal(part, clauses),
        }
    }

    /// Or-patterns at this part become clauses of their own.
    fn expand(&mut self, part: Part, clauses: Vec<Clause>) -> Vec<Clause> {
        let mut done = Vec::new();
        let mut todo: Vec<Clause> = clauses.into_iter().rev().collect();
        while let Some(clause) = todo.pop() {
            let alternatives = match test_of(&clause, part).map(|pat| self.lower.tree.pattern(pat).kind.clone()) {
                Some(PatKind::Or(alternatives)) => alternatives,
                _ => {
                    done.push(clause);
                    continue;
                }
            };
            for alternative in alternatives.into_iter().rev() {
                let mut copy = clause.clone();
                for (at, pat) in &mut copy.tests {
                    if *at == part && matches!(self.lower.tree.pattern(*pat).kind, PatKind::Or(_)) {
                        *pat = alternative;
                        break;
                    }
                }
                self.simplify(&mut copy);
                todo.push(copy);
            }
        }
        done
    }

    fn by_constructor(&mut self, part: Part, id: TypeId, clauses: Vec<Clause>) -> Decision {
        let arities = self.lower.declared.arities(id);
        let tag_of =
            |this: &Self, clause: &Clause| match test_of(clause, part).map(|p| &this.lower.tree.pattern(p).kind) {
                Some(PatKind::Construct(_, tag, _)) => Some(*tag),
                _ => None,
            };
        let mut tags: Vec<usize> = clauses.iter().filter_map(|clause| tag_of(self, clause)).collect();
        tags.sort_unstable();
        tags.dedup();
        let before = self.parts[part.0].fact.clone();
        let args = match &self.parts[part.0].ty {
            Type::Named(_, args) => args.clone(),
            _ => Vec::new().into(),
        };
        let mut cases = Vec::new();
        for tag in &tags {
            let types = self.lower.declared.argument_types(id, *tag, &args);
            let children: Vec<Part> = types.into_iter().map(|ty| self.argument(ty)).collect();
            let mut rows = Vec::new();
            for clause in &clauses {
                match tag_of(self, clause) {
                    None => rows.push(clause.clone()),
                    Some(other) if other == *tag => {
                        let mut row = clause.clone();
                        if let Some(PatKind::Construct(_, _, pats)) =
                            remove_test(&mut row, part).map(|p| self.lower.tree.pattern(p).kind.clone())
                        {
                            row.tests.splice(0..0, children.iter().copied().zip(pats));
                        }
                        rows.push(row);
                    }
                    Some(_) => {}
                }
            }
            self.name_children(&children, &rows);
            self.parts[part.0].fact = Fact::Constructor(id, *tag, children.clone());
            cases.push((*tag, children, self.clauses(rows)));
        }
        let default = (tags.len() < arities.len()).then(|| {
            self.parts[part.0].fact = Fact::NotConstructors(id, tags.clone());
            let rows = clauses.iter().filter(|clause| tag_of(self, clause).is_none()).cloned().collect();
            Box::new(self.clauses(rows))
        });
        self.parts[part.0].fact = before;
        Decision::Constructors { part, cases, default }
    }

    /// An argument of a constructor is a variable of its arm.
    fn argument(&mut self, ty: Type) -> Part {
        let var = gradus_core::Var::fresh("x");
        self.add(ty, Reach::Term(gradus_core::build::At::default().var(&var)))
    }

    /// A variable is called what the first pattern calls it.
    fn name_children(&mut self, children: &[Part], rows: &[Clause]) {
        for child in children {
            let name = rows.iter().filter_map(|row| test_of(row, *child)).find_map(|pat| {
                match &self.lower.tree.pattern(pat).kind {
                    PatKind::Bind(local, _) => Some(self.lower.tree.local_of(*local).name.clone()),
                    _ => None,
                }
            });
            if let Some(name) = name {
                let var = gradus_core::Var::fresh(name);
                self.parts[child.0].reach = Reach::Term(gradus_core::build::At::default().var(&var));
            }
        }
    }

    fn literal_of(&mut self, clause: &Clause, part: Part) -> Option<Literal> {
        let pat = test_of(clause, part)?;
        let node = self.lower.tree.pattern(pat).clone();
        match node.kind {
            PatKind::Literal(literal) => Some(literal),
            PatKind::Numeral(text) => Some(match text.strip_prefix('-') {
                Some(digits) => self.lower.numeral(digits, true, node.ty, node.span),
                None => self.lower.numeral(&text, false, node.ty, node.span),
            }),
            _ => None,
        }
    }

    fn by_literal(&mut self, part: Part, clauses: Vec<Clause>) -> Decision {
        // Clauses by literal, in order; those without a test go to all.
        let mut buckets: indexmap::IndexMap<Key, (Literal, Vec<Clause>), rustc_hash::FxBuildHasher> =
            Default::default();
        let mut rest: Vec<Clause> = Vec::new();
        for mut clause in clauses {
            match self.literal_of(&clause, part) {
                Some(literal) => {
                    remove_test(&mut clause, part);
                    let bucket = buckets.entry(key(&literal)).or_insert_with(|| (literal, rest.clone()));
                    bucket.1.push(clause);
                }
                None => {
                    buckets.values_mut().for_each(|(_, rows)| rows.push(clause.clone()));
                    rest.push(clause);
                }
            }
        }
        let before = self.parts[part.0].fact.clone();
        let literals: Vec<Literal> = buckets.values().map(|(literal, _)| literal.clone()).collect();
        let all = literals.len() == 2 && matches!(literals[0], Literal::Bool(_));
        let mut cases = Vec::new();
        for (_, (literal, rows)) in buckets {
            self.parts[part.0].fact = Fact::Literal(literal.clone());
            cases.push((literal, self.clauses(rows)));
        }
        let default = (!all).then(|| {
            self.parts[part.0].fact = Fact::NotLiterals(literals);
            Box::new(self.clauses(rest))
        });
        self.parts[part.0].fact = before;
        Decision::Literals { part, cases, default }
    }

    fn by_length(&mut self, part: Part, clauses: Vec<Clause>) -> Decision {
        let length_of =
            |this: &Self, clause: &Clause| match test_of(clause, part).map(|p| &this.lower.tree.pattern(p).kind) {
                Some(PatKind::Array(items)) => Some(items.len()),
                _ => None,
            };
        let mut lengths: Vec<usize> = clauses.iter().filter_map(|clause| length_of(self, clause)).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let before = self.parts[part.0].fact.clone();
        let element = match &self.parts[part.0].ty {
            Type::Array(element) => (**element).clone(),
            other => other.clone(),
        };
        let mut cases = Vec::new();
        for length in &lengths {
            let children: Vec<Part> =
                (0..*length).map(|i| self.add(element.clone(), Reach::Element(part, i))).collect();
            let mut rows = Vec::new();
            for clause in &clauses {
                match length_of(self, clause) {
                    None => rows.push(clause.clone()),
                    Some(other) if other == *length => {
                        let mut row = clause.clone();
                        if let Some(PatKind::Array(pats)) =
                            remove_test(&mut row, part).map(|p| self.lower.tree.pattern(p).kind.clone())
                        {
                            row.tests.splice(0..0, children.iter().copied().zip(pats));
                        }
                        rows.push(row);
                    }
                    Some(_) => {}
                }
            }
            self.parts[part.0].fact = Fact::Length(children);
            cases.push((*length, self.clauses(rows)));
        }
        self.parts[part.0].fact = Fact::NotLengths(lengths);
        let rows = clauses.iter().filter(|clause| length_of(self, clause).is_none()).cloned().collect();
        let default = Box::new(self.clauses(rows));
        self.parts[part.0].fact = before;
        Decision::Lengths { part, cases, default }
    }
}

fn test_of(clause: &Clause, part: Part) -> Option<Pat> {
    clause.tests.iter().find(|(p, _)| *p == part).map(|(_, pat)| *pat)
}

fn remove_test(clause: &mut Clause, part: Part) -> Option<Pat> {
    let index = clause.tests.iter().position(|(p, _)| *p == part)?;
    Some(clause.tests.remove(index).1)
}

/// Literals as map keys.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Bits(u64),
    Text(std::sync::Arc<str>),
}

fn key(literal: &Literal) -> Key {
    match literal {
        Literal::Real(x) => Key::Bits(if *x == 0.0 { 0 } else { x.to_bits() }),
        Literal::Int(i) => Key::Bits(*i as u64),
        Literal::Bool(b) => Key::Bits(u64::from(*b)),
        Literal::String(s) => Key::Text(s.clone()),
        Literal::Unit => Key::Bits(0),
    }
}
