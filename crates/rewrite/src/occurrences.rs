//! How often and where each variable is used: what decides inlining and fusion.

use gradus_core::traverse::{for_each_binder, for_each_child, free_vars, with_stack};
use gradus_core::{Literal, Prim, Term, TermKind, Var};
use rustc_hash::FxHashMap;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Uses {
    pub count: usize,
    /// Whether some use stands inside a function that does not bind the variable itself: such a use may run many times, or never.
    pub under_lambda: bool,
    /// Uses as `x.0`.
    pub projected: usize,
    /// Uses as `x.(i)`, and of these the index and the number of functions around of the last.
    pub indexed: usize,
    pub index: Option<(Var, usize)>,
    /// Uses as `x.(2)`, and the largest such index (of those below zero, the largest there is).
    pub picked: usize,
    pub highest: u64,
    /// Uses as `length x`.
    pub measured: usize,
    /// A function that may still be differentiated captures it.
    pub pinned: bool,
}

#[derive(Default)]
pub struct Occurrences {
    uses: FxHashMap<Var, Uses>,
    /// The number of functions around a binder; the two of a loop count as one.
    levels: FxHashMap<Var, usize>,
}

impl Occurrences {
    /// With `origins`, what functions that may be differentiated capture is pinned.
    pub fn of(term: &Term, origins: bool) -> Self {
        let mut found = Occurrences::default();
        found.walk(term, 0, origins);
        found
    }

    pub fn uses(&self, var: &Var) -> Uses {
        self.uses.get(var).cloned().unwrap_or_default()
    }

    /// Whether the variable was bound in the term; one that a copy has made since was not.
    pub fn knows(&self, var: &Var) -> bool {
        self.levels.contains_key(var)
    }

    pub fn level(&self, var: &Var) -> usize {
        self.levels.get(var).copied().unwrap_or(0)
    }

    /// Whether the only index at which an array is read is that of the loop around, so that each element is read at most once.
    pub fn is_read_once_each(&self, array: &Var) -> bool {
        let uses = self.uses(array);
        let level = self.level(array) + 1;
        uses.indexed == 1
            && uses.count == uses.indexed + uses.measured
            && uses.index.is_some_and(|(index, at)| at == level && self.level(&index) == level)
    }

    fn walk(&mut self, term: &Term, level: usize, origins: bool) {
        with_stack(|| {
            for_each_binder(term, &mut |var| {
                let inside = usize::from(matches!(&*term.kind, TermKind::Lambda(_)));
                self.levels.insert(var.clone(), level + inside);
            });
            match &*term.kind {
                TermKind::Var(var, _) => self.note(var, level, |_| {}),
                TermKind::Lambda(lambda) => {
                    if let (true, Some((_, original))) = (origins, &lambda.origin) {
                        let code = Term::new(TermKind::Lambda(original.clone()), term.span);
                        for var in free_vars(term).iter().chain(&free_vars(&code)) {
                            self.uses.entry(var.clone()).or_default().pinned = true;
                        }
                    }
                    self.walk(&lambda.body, level + 1, origins)
                }
                TermKind::Proj { term: inner, .. } => match &*inner.kind {
                    TermKind::Var(var, _) => self.note(var, level, |uses| uses.projected += 1),
                    _ => self.walk(inner, level, origins),
                },
                TermKind::Prim { prim: Prim::Get, args, .. } => {
                    if let [array, index] = &args[..] {
                        match (&*array.kind, &*index.kind) {
                            (TermKind::Var(array, _), TermKind::Var(index, _)) => self.note(array, level, |uses| {
                                uses.indexed += 1;
                                uses.index = Some((index.clone(), level));
                            }),
                            (TermKind::Var(array, _), TermKind::Literal(Literal::Int(k))) => {
                                self.note(array, level, |uses| {
                                    uses.picked += 1;
                                    uses.highest = uses.highest.max(u64::try_from(*k).unwrap_or(u64::MAX));
                                })
                            }
                            _ => self.walk(array, level, origins),
                        }
                        self.walk(index, level, origins);
                    }
                }
                TermKind::Prim { prim: Prim::Length, args, .. } => match args.first().map(|array| &*array.kind) {
                    Some(TermKind::Var(array, _)) => self.note(array, level, |uses| uses.measured += 1),
                    _ => for_each_child(term, &mut |child| self.walk(child, level, origins)),
                },
                TermKind::Prim { prim: Prim::Ifold, args, .. } => {
                    for arg in args {
                        match &*arg.kind {
                            // The functions of index and state run together.
                            TermKind::Lambda(outer) if outer.origin.is_none() || !origins => match &*outer.body.kind {
                                TermKind::Lambda(inner) if inner.origin.is_none() || !origins => {
                                    self.levels.insert(outer.param.clone(), level + 1);
                                    self.levels.insert(inner.param.clone(), level + 1);
                                    self.walk(&inner.body, level + 1, origins);
                                }
                                _ => self.walk(arg, level, origins),
                            },
                            _ => self.walk(arg, level, origins),
                        }
                    }
                }
                _ => for_each_child(term, &mut |child| self.walk(child, level, origins)),
            }
        })
    }

    fn note(&mut self, var: &Var, level: usize, also: impl FnOnce(&mut Uses)) {
        let bound_at = self.level(var);
        let uses = self.uses.entry(var.clone()).or_default();
        uses.count += 1;
        uses.under_lambda |= level > bound_at;
        also(uses);
    }
}

/// Nodes looked at before a use counts as far away.
const NEAR: usize = 64;

/// Whether a variable is used in a term before anything that can fail, and not under a condition or function: its definition may stand there.
pub fn is_used_next(term: &Term, var: &Var, is_total: &dyn Fn(&Term) -> bool) -> bool {
    let mut left = NEAR;
    matches!(look(term, var, is_total, &mut left), Found::Yes)
}

enum Found {
    Yes,
    /// Not here, and nothing here can fail.
    Not,
    Blocked,
}

fn look(term: &Term, var: &Var, is_total: &dyn Fn(&Term) -> bool, left: &mut usize) -> Found {
    if *left == 0 {
        return Found::Blocked;
    }
    *left -= 1;
    let first = |children: &[&Term], left: &mut usize| {
        for child in children {
            match look(child, var, is_total, left) {
                Found::Not => {}
                found => return found,
            }
        }
        match is_total(term) {
            true => Found::Not,
            false => Found::Blocked,
        }
    };
    match &*term.kind {
        TermKind::Var(found, _) if found == var => Found::Yes,
        TermKind::Var(..) | TermKind::Literal(_) => Found::Not,
        TermKind::Lambda(_) if crate::matching::mentions(term, var) => Found::Blocked,
        TermKind::Lambda(_) => Found::Not,
        // The index is evaluated first, or last.
        TermKind::Prim { prim: Prim::Get, args, .. } if !args.iter().any(is_total) => Found::Blocked,
        TermKind::Prim { args, .. } | TermKind::Construct { args, .. } => first(&args.iter().collect::<Vec<_>>(), left),
        TermKind::Tuple(items) | TermKind::ArrayLiteral { items, .. } => first(&items.iter().collect::<Vec<_>>(), left),
        TermKind::Proj { term: inner, .. } => first(&[inner], left),
        TermKind::App(function, argument) => first(&[function, argument], left),
        TermKind::Let { bound, body, .. } => first(&[bound, body], left),
        TermKind::If { condition: decides, .. } | TermKind::Case { scrutinee: decides, .. } => {
            match look(decides, var, is_total, left) {
                Found::Yes => Found::Yes,
                Found::Not | Found::Blocked => Found::Blocked,
            }
        }
        TermKind::Global(_) | TermKind::LetRec { .. } | TermKind::Derive { .. } | TermKind::Lift { .. } => {
            Found::Blocked
        }
    }
}
