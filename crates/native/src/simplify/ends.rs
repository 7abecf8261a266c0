//! Loops that end by a condition, as `iterate` and tail recursion make them: each iteration either goes on or stops with a result. What is done to stop is done
//! after the loop, with the state that it has then, so that no iteration hands on a result that there is not yet. A loop that counts up to a number is a
//! loop over a range.

mod counters;

use crate::exits;
use crate::flow::walk::Renaming;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

/// More statements than this are not done again after the loop, in order to stop.
const FEW: usize = 16;

pub fn run(block: &mut Block) {
    if has_whiles(block) {
        let known = Known { lengths: walk::lengths(block), uses: walk::count_uses(block) };
        take_apart(block, &known);
    }
}

struct Known {
    lengths: FxHashSet<Var>,
    uses: FxHashMap<Var, usize>,
}

fn has_whiles(block: &Block) -> bool {
    let inside = |op: &Op| op.blocks().any(|inner| with_stack(|| has_whiles(inner)));
    block.stmts.iter().any(|stmt| matches!(stmt.op, Op::While(_)) || inside(&stmt.op))
}

fn take_apart(block: &mut Block, known: &Known) {
    with_stack(|| {
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.op.blocks_mut().for_each(|inner| take_apart(inner, known));
            let parts = match &stmt.op {
                Op::While(l) => match Ending::of(l, &stmt.binds) {
                    Some(ending) => ending.apart(&stmt, &known.lengths),
                    None => stops_anywhere(l, &stmt, &known.uses),
                },
                _ => None,
            };
            out.extend(parts.unwrap_or_else(|| vec![stmt]));
        }
        block.stmts = out;
    })
}

/// How a loop ends: by a branch that is the last that it does.
struct Ending<'a> {
    carried: &'a [(Var, Atom)],
    /// What comes before the branch.
    before: &'a [Stmt],
    cond: Atom,
    stop: &'a Block,
    go: &'a Block,
    /// Whether it stops where the condition holds.
    stops_if: bool,
    /// For each state variable what the sides give it.
    stopped: Vec<Atom>,
    next: Vec<Atom>,
}

impl<'a> Ending<'a> {
    fn of(l: &'a While, binds: &[Var]) -> Option<Ending<'a>> {
        let stmts = &l.body.stmts;
        let Decision { at, decided, on } = Decision::of(l)?;
        let Stmt { binds: given, op: Op::If { cond, then, otherwise, .. }, .. } = &stmts[at] else { return None };
        let place = |v: Var| given.iter().position(|g| *g == v);
        let decision = place(decided)?;
        let [stops_then, stops_otherwise] = [then, otherwise].map(|side| side.results[decision] != on);
        let known = [then, otherwise].iter().all(|side| is_constant(side.results[decision])) && is_constant(on);
        if !known || stops_then == stops_otherwise || binds.len() != l.carried.len() {
            return None;
        }
        let (stop, go) = if stops_then { (then, otherwise) } else { (otherwise, then) };
        let given_by = |side: &Block| -> Vec<Atom> {
            let states = l.body.results[1..].iter();
            states.map(|a| a.var().and_then(place).map_or(*a, |place| side.results[place])).collect()
        };
        let (stopped, next) = (given_by(stop), given_by(go));
        let (carried, before) = (&l.carried[..], &stmts[..at]);
        Some(Ending { carried, before, cond: *cond, stop, go, stops_if: stops_then, stopped, next })
    }

    /// The loop, and what is done after it to stop.
    fn apart(&self, stmt: &Stmt, lengths: &FxHashSet<Var>) -> Option<Vec<Stmt>> {
        let again = self.done_again()?;
        let kept: Vec<usize> = (0..self.carried.len()).filter(|number| !self.is_result(*number)).collect();
        let counter = self.counter(&kept, lengths);
        let stays = self.stop.stmts.is_empty() && kept.iter().all(|k| self.stopped[*k] == self.carried[*k].0.into());
        if counter.is_none() && stays && kept.len() == self.carried.len() {
            return None;
        }
        let mut last = Renaming::default();
        let mut b = Builder::new();
        b.span = stmt.span;
        match counter {
            Some(counter) => self.count(&mut b, &kept, &counter, &mut last),
            None => self.go_on(&mut b, &kept, &mut last),
        }
        b.stmts(again.iter().chain(&self.stop.stmts).map(|stmt| last.stmt(stmt)).collect::<Vec<_>>());
        for (bind, stopped) in stmt.binds.iter().zip(&self.stopped) {
            b.bind(vec![*bind], Op::Copy { value: last.atom(*stopped) });
        }
        Some(b.pop(Vec::new()).stmts)
    }

    /// Whether nobody reads a state variable before the loop stops.
    fn is_result(&self, number: usize) -> bool {
        let (state, _) = self.carried[number];
        let others = self.next.iter().chain(&self.stopped).enumerate().filter(|(at, _)| *at != number);
        let mut stmts = self.before.iter().chain(&self.stop.stmts).chain(&self.go.stmts);
        let is_read = stmts.any(|s| s.mentions(state)) || self.cond == state.into();
        !is_read && !others.into_iter().any(|(_, a)| *a == state.into())
    }

    /// What its stopping side wants to have done; nothing if that is much.
    fn done_again(&self) -> Option<Vec<Stmt>> {
        let mut wanted: FxHashSet<Var> = self.stopped.iter().filter_map(|a| a.var()).collect();
        walk::for_each_operand(self.stop, &mut |a| wanted.extend(a.var()));
        let again: Vec<Stmt> = exits::needed(self.before, wanted).cloned().collect();
        are_little(&again).then_some(again)
    }

    /// The same loop, which leaves its state as it is when it stops. `last` gets the names of the state after it.
    fn go_on(&self, b: &mut Builder, kept: &[usize], last: &mut Renaming) {
        let carried: Vec<(Var, Atom)> = kept.iter().map(|k| self.carried[*k]).collect();
        let given = |goes_on: bool, results: &mut dyn Iterator<Item = Atom>| -> Vec<Atom> {
            std::iter::once(Atom::Bool(goes_on)).chain(results).collect()
        };
        let stop = Block { stmts: Vec::new(), results: given(false, &mut carried.iter().map(|(v, _)| (*v).into())) };
        let go = Block { stmts: self.go.stmts.clone(), results: given(true, &mut kept.iter().map(|k| self.next[*k])) };
        b.push();
        b.stmts(self.before.iter().cloned());
        let (then, otherwise) = if self.stops_if { (stop, go) } else { (go, stop) };
        let binds: Vec<Var> =
            std::iter::once(Var::fresh("r", Type::BOOL)).chain(carried.iter().map(|(v, _)| v.refresh())).collect();
        b.bind(binds.clone(), Op::branch(self.cond, then, otherwise, false));
        let body = b.pop(binds.into_iter().map(Atom::Var).collect());
        let states = carried.iter().map(|(v, _)| *v).collect::<Vec<_>>();
        last.map.extend(states.into_iter().zip(b.while_loop(carried, body)));
    }
}

/// Where a loop decides whether it goes on: by a branch that is the last that it does.
struct Decision {
    /// The place of the branch.
    at: usize,
    decided: Var,
    /// What is decided if it goes on.
    on: Atom,
}

impl Decision {
    fn of(l: &While) -> Option<Decision> {
        let stmts = &l.body.stmts;
        let maker = |v: Var| stmts.iter().position(|s| s.binds.contains(&v));
        let goes_on = l.body.results.first()?.var()?;
        let (decided, on) = match &stmts[maker(goes_on)?].op {
            Op::Scalar { prim: Prim::Equal, args } => (args[0].var()?, args[1]),
            _ => (goes_on, Atom::Bool(true)),
        };
        let at = maker(decided)?;
        let is_last = stmts[at + 1..].iter().all(|s| s.binds == [goes_on]);
        (is_last && is_constant(on)).then_some(Decision { at, decided, on })
    }
}

fn is_constant(a: Atom) -> bool {
    matches!(a, Atom::Int(_) | Atom::Bool(_))
}

/// The same for a loop that stops in several places.
fn stops_anywhere(l: &While, stmt: &Stmt, uses: &FxHashMap<Var, usize>) -> Option<Vec<Stmt>> {
    let Decision { at, decided, on } = Decision::of(l)?;
    if stmt.binds.len() != l.carried.len() {
        return None;
    }
    let tree = Block { stmts: l.body.stmts[..=at].to_vec(), results: Vec::new() };
    let wanted: Vec<Atom> = std::iter::once(decided.into()).chain(l.body.results[1..].iter().copied()).collect();
    let leaves = exits::leaves(&tree, &wanted);
    let states = || l.carried.iter().map(|(state, _)| Atom::Var(*state));
    let (stops, goes): (Vec<_>, Vec<_>) = leaves.iter().partition(|leaf| leaf.given[0] != on);
    if goes.is_empty() || !leaves.iter().all(|leaf| is_constant(leaf.given[0])) {
        return None;
    }
    let stays = stops.iter().all(|leaf| leaf.block.stmts.is_empty() && leaf.given[1..].iter().copied().eq(states()));
    // What nobody asks for afterwards may as well stay as it is.
    let mut asked = wanted.clone();
    for ((given, bind), state) in asked[1..].iter_mut().zip(&stmt.binds).zip(states()) {
        if !uses.contains_key(bind) {
            *given = state;
        }
    }
    let mut again = Vec::new();
    let stopping = exits::stopping(&tree, &asked, on, &mut again)?;
    if !are_little(&again) {
        return None;
    }
    // Whether nobody reads a state variable before the loop stops, nor then.
    let is_result = |number: usize| {
        let (state, _) = l.carried[number];
        let mut next = goes.iter().flat_map(|leaf| leaf.given[1..].iter().enumerate());
        let is_handed_on = next.any(|(at, a)| at != number && *a == state.into()) || walk::mentions(&stopping, state);
        !is_handed_on && !exits::reads(&tree, &wanted, state)
    };
    let kept: Vec<usize> = (0..l.carried.len()).filter(|number| !is_result(*number)).collect();
    if stays && kept.len() == l.carried.len() {
        return None;
    }
    let carried: Vec<(Var, Atom)> = kept.iter().map(|k| l.carried[*k]).collect();
    let body = exits::with_results(&tree, &wanted, on, &|given| {
        let goes_on = given[0] == on;
        let next = kept.iter().map(|k| if goes_on { given[1 + k] } else { l.carried[*k].0.into() });
        std::iter::once(Atom::Bool(goes_on)).chain(next).collect()
    });
    let mut b = Builder::new();
    b.span = stmt.span;
    let mut last = Renaming::default();
    let states: Vec<Var> = carried.iter().map(|(v, _)| *v).collect();
    last.map.extend(states.into_iter().zip(b.while_loop(carried, body)));
    let stopping = last.block(&stopping);
    b.stmts(stopping.stmts);
    for (bind, stopped) in stmt.binds.iter().zip(stopping.results) {
        b.bind(vec![*bind], Op::Copy { value: stopped });
    }
    Some(b.pop(Vec::new()).stmts)
}

/// Whether these statements are few and not much work.
fn are_little(stmts: &[Stmt]) -> bool {
    let is_little = |stmt: &Stmt| match &stmt.op {
        Op::Scalar { prim, .. } => scalar::is_cheap(*prim),
        op => matches!(op, Op::Select { .. } | Op::Dim { .. } | Op::Get { .. } | Op::Tag { .. } | Op::Unpack { .. }),
    };
    stmts.len() <= FEW && stmts.iter().all(is_little)
}
