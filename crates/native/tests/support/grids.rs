//! Random programs over vectors and matrices, as text: arrays that loops change place by place, rows that outlive their matrix, places that step over
//! others, recurrences for each element, and products. Lengths reach beyond a vector register, which those of the generator of core terms do not.

use crate::random::from_text;
use gradus_generate::{Data, Generated, Rng};

/// So that the kinds of programs do not have their seeds in common.
const SALT: u64 = 0x6772_6964;

/// What an expression is. Lengths are `n` and `m`, which every program defines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Real,
    /// `real[n]`
    Column,
    /// `real[m]`
    Row,
    /// `real[n][m]`
    Grid,
    /// `real[n][n]`
    Square,
}

use Kind::{Column, Grid, Real, Row, Square};

impl Kind {
    const ARRAYS: [Kind; 4] = [Column, Row, Grid, Square];

    /// The length of an array of this kind, and the kind of its elements.
    fn parts(self) -> (&'static str, Kind) {
        match self {
            Real | Column => ("n", Real),
            Row => ("m", Real),
            Grid => ("n", Row),
            Square => ("n", Column),
        }
    }
}

struct Writer {
    rng: Rng,
    /// Variables, and those of them that count up to a length.
    scope: Vec<(String, Kind)>,
    counters: Vec<(String, &'static str)>,
    names: usize,
    loops: usize,
}

/// The text of the program of a seed.
#[allow(dead_code, reason = "tests print no programs")]
pub fn source(seed: u64) -> String {
    text(&mut Rng::new(seed ^ SALT))
}

/// The program of a seed, with points at which to try it.
pub fn generate(seed: u64) -> Generated {
    from_text("grids.gr", seed, Rng::new(seed ^ SALT), text, point)
}

fn point(rng: &mut Rng) -> Data {
    let long = rng.chance(1, 4);
    let [n, m] = [0, 1].map(|_| 1 + rng.below(if long { 19 } else { 6 }));
    let mut reals = |count| Data::Array((0..count).map(|_| Data::Real((rng.unit() * 1e4).round() / 1e4)).collect());
    let vector = reals(n);
    let mut rows = |length| Data::Array((0..n).map(|_| reals(length)).collect());
    Data::Tuple(vec![vector, rows(m), rows(n)])
}

/// The text of a random program.
fn text(rng: &mut Rng) -> String {
    let scope = [("v", Column), ("a", Grid), ("q", Square)].map(|(name, kind)| (name.to_string(), kind));
    let mut writer = Writer { rng: rng.split(), scope: scope.into(), counters: Vec::new(), names: 0, loops: 0 };
    let mut text = String::from("let f ((v, a, q) : real[] * real[][] * real[][]) : real =\n");
    text += "  let n = length v in\n  let m = length a.(0) in\n";
    for _ in 0..1 + writer.rng.below(4) {
        let kind = *writer.rng.pick(&[Real, Column, Row, Grid, Square]);
        let bound = writer.term(kind, 3);
        let name = writer.fresh("x");
        text += &format!("  let {name} = {bound} in\n");
        writer.scope.push((name, kind));
    }
    text + "  " + &writer.term(Real, 3) + "\n"
}

impl Writer {
    fn fresh(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    fn within<T>(&mut self, vars: &[(&String, Kind)], make: impl FnOnce(&mut Self) -> T) -> T {
        let outside = self.scope.len();
        self.scope.extend(vars.iter().map(|(name, kind)| ((*name).clone(), *kind)));
        let made = make(self);
        self.scope.truncate(outside);
        made
    }

    /// With a variable that counts up to a length.
    fn counting<T>(&mut self, length: &'static str, make: impl FnOnce(&mut Self, &str) -> T) -> T {
        let counter = self.fresh("i");
        self.counters.push((counter.clone(), length));
        self.loops += 1;
        let made = make(self, &counter);
        self.loops -= 1;
        self.counters.pop();
        made
    }

    fn variable(&mut self, kind: Kind) -> Option<String> {
        let fitting: Vec<String> =
            self.scope.iter().filter(|(_, k)| *k == kind).map(|(name, _)| name.clone()).collect();
        (!fitting.is_empty()).then(|| self.rng.pick(&fitting).clone())
    }

    /// A place below a length: a counter as it is, moved, reversed or stepping over others.
    fn place(&mut self, length: &'static str) -> String {
        let fitting: Vec<String> =
            self.counters.iter().filter(|(_, l)| *l == length).map(|(name, _)| name.clone()).collect();
        let any: Vec<String> = self.counters.iter().map(|(name, _)| name.clone()).collect();
        if any.is_empty() || self.rng.chance(1, 12) {
            return self.rng.pick(&["0".to_string(), format!("({length} - 1)"), format!("({length} / 2)")]).clone();
        }
        if fitting.is_empty() || self.rng.chance(1, 8) {
            let i = self.rng.pick(&any).clone();
            return match self.rng.below(2) {
                0 => format!("({i} mod {length})"),
                _ => format!("((3 * {i} + 1) mod {length})"),
            };
        }
        let i = self.rng.pick(&fitting).clone();
        match self.rng.below(9) {
            0 => format!("({length} - 1 - {i})"),
            1 => format!("(if {i} = 0 then 0 else {i} - 1)"),
            2 => format!("(if {i} + 1 < {length} then {i} + 1 else 0)"),
            3 => format!("({i} / 2)"),
            4 => format!("((2 * {i} + 1) mod {length})"),
            _ => i,
        }
    }

    fn term(&mut self, kind: Kind, size: usize) -> String {
        if size == 0 {
            return self.leaf(kind);
        }
        match (kind, self.rng.below(12)) {
            (_, 0) => {
                let (bound_kind, name) = (*self.rng.pick(&[Real, Column, Row, Grid, Square]), self.fresh("x"));
                let bound = self.term(bound_kind, size - 1);
                let body = self.within(&[(&name, bound_kind)], |w| w.term(kind, size - 1));
                format!("(let {name} = {bound} in {body})")
            }
            (_, 1) => {
                let condition = self.condition(size - 1);
                format!("(if {condition} then {} else {})", self.term(kind, size - 1), self.term(kind, size - 1))
            }
            (_, 2) if self.loops < 2 => self.repeated(kind, size),
            (Real, _) => self.real(size),
            (Column, 3) => format!("matvec {} {}", self.argument(Grid, size), self.argument(Row, size)),
            (Row, 3) => format!("matvec (transpose {}) {}", self.argument(Grid, size), self.argument(Column, size)),
            (Grid, 3) => format!("matmul {} {}", self.argument(Square, size), self.argument(Grid, size)),
            (Square, 3) => format!("matmul {0} (transpose {0})", self.argument(Grid, 0)),
            (Square, 4) => format!("transpose {}", self.argument(Square, size)),
            (Grid, 4) => format!("outer {} {}", self.argument(Column, size), self.argument(Row, size)),
            (_, 5) => {
                format!("(({} *> {}) <+> {})", self.small(size), self.argument(kind, size), self.argument(kind, size))
            }
            (Row | Column, 6) => {
                let matrix = if kind == Row { Grid } else { Square };
                format!("{}.({})", self.argument(matrix, size), self.place("n"))
            }
            (_, 7 | 8) if self.loops < 3 => self.changed(kind, size),
            (_, 9 | 10) if self.loops < 3 => {
                let (_, element) = kind.parts();
                let (array, name) = (self.argument(kind, size), self.fresh("x"));
                let body = self.within(&[(&name, element)], |w| w.term(element, size - 1));
                format!("map (fun {name} -> {body}) {array}")
            }
            (Row | Column, 11) if self.loops < 2 => {
                let (array, name) = (self.argument(kind, size), self.fresh("x"));
                let body = self.within(&[(&name, Real)], |w| w.recurrence(&name, size));
                format!("map (fun {name} -> {body}) {array}")
            }
            _ => self.built(kind, size),
        }
    }

    /// A number after some steps, which may have more than it as their state.
    fn recurrence(&mut self, start: &str, size: usize) -> String {
        let (length, state, more) = (*self.rng.pick(&["n", "m"]), self.fresh("s"), self.fresh("t"));
        self.counting(length, |w, i| match w.rng.below(5) {
            0 => {
                let [one, other] =
                    w.within(&[(&state, Real), (&more, Real)], |w| [0, 1].map(|_| w.term(Real, size - 1)));
                format!("fst (ifold {length} (fun {i} ({state}, {more}) -> (0.5 * ({one}), 0.5 * ({other}))) ({start}, 0.5))")
            }
            1 => {
                w.counters.push((more.clone(), "n"));
                let next = w.within(&[(&state, Real)], |w| w.term(Real, size - 1));
                w.counters.pop();
                format!("snd (ifold {length} (fun {i} ({more}, {state}) -> ((2 * {more} + 1) mod n, 0.5 * ({next}))) (0, {start}))")
            }
            2 => {
                let [one, other] = w.within(&[(&state, Real)], |w| [0, 1].map(|_| w.term(Real, size - 1)));
                format!("snd (ifold {length} (fun {i} ({more}, {state}) -> ({state} > 0.21234567, 0.5 * (if {more} then {one} else {other}))) (false, {start}))")
            }
            3 if size > 1 => {
                let inner = w.within(&[(&state, Real)], |w| w.recurrence(&state, size - 1));
                format!("ifold {length} (fun {i} {state} -> 0.5 * ({inner})) {start}")
            }
            _ => {
                let next = w.within(&[(&state, Real)], |w| w.term(Real, size - 1));
                format!("ifold {length} (fun {i} {state} -> 0.5 * ({next})) {start}")
            }
        })
    }

    fn leaf(&mut self, kind: Kind) -> String {
        match self.variable(kind) {
            Some(name) if self.rng.chance(9, 10) => name,
            _ if kind == Real => match self.rng.below(3) {
                0 => format!("{:.2}", self.rng.unit().abs()),
                _ => {
                    let array = *self.rng.pick(&Kind::ARRAYS);
                    self.element(array, 0)
                }
            },
            _ => self.built(kind, 0),
        }
    }

    /// As an argument of a function.
    fn argument(&mut self, kind: Kind, size: usize) -> String {
        format!("({})", self.term(kind, size.saturating_sub(1)))
    }

    /// A number between -1 and 1.
    fn small(&mut self, size: usize) -> String {
        format!("tanh {}", self.argument(Real, size))
    }

    fn built(&mut self, kind: Kind, size: usize) -> String {
        let (length, element) = kind.parts();
        self.counting(length, |w, i| format!("build {length} (fun {i} -> {})", w.term(element, size.saturating_sub(1))))
    }

    /// A number out of an array.
    fn element(&mut self, array: Kind, size: usize) -> String {
        let array_text = match self.variable(array) {
            Some(name) if size == 0 || self.rng.chance(3, 4) => name,
            _ => format!("({})", self.built(array, size.saturating_sub(1))),
        };
        let (length, element) = array.parts();
        let first = self.place(length);
        match element {
            Real => format!("{array_text}.({first})"),
            _ => format!("{array_text}.({first}).({})", self.place(element.parts().0)),
        }
    }

    fn condition(&mut self, size: usize) -> String {
        if !self.counters.is_empty() && self.rng.chance(1, 2) {
            let (i, length) = self.rng.pick(&self.counters.clone()).clone();
            return self
                .rng
                .pick(&[format!("{i} mod 2 = 0"), format!("{i} < {length} / 2"), format!("{i} = 0")])
                .clone();
        }
        // An odd constant: no computed value meets it by accident.
        format!("{} < {:.3}1234567", self.term(Real, size), self.rng.unit().abs())
    }

    fn real(&mut self, size: usize) -> String {
        let size = size - 1;
        match self.rng.below(13) {
            0 => format!("({} + {})", self.term(Real, size), self.term(Real, size)),
            1 => format!("({} - {})", self.term(Real, size), self.term(Real, size)),
            2 | 3 => format!("({} * {})", self.small(size), self.term(Real, size)),
            4 => format!("sin {}", self.argument(Real, size)),
            5 => format!("{} / (1.0 + square {})", self.argument(Real, size), self.argument(Real, size)),
            6 => format!("sqrt (1.0 + square {})", self.argument(Real, size)),
            7 => format!("sum {}", self.array(size)),
            8 => format!("max {}", self.array(size)),
            9 => {
                let kind = *self.rng.pick(&[Column, Row]);
                format!("dot {} {}", self.argument(kind, size), self.argument(kind, size))
            }
            10 if self.loops < 3 && size > 0 => self.thrown_away(size),
            _ => {
                let array = *self.rng.pick(&Kind::ARRAYS);
                self.element(array, size)
            }
        }
    }

    /// A number that a loop gathers from an array which it changes, and which nobody wants in the end; a place may count beside it.
    fn thrown_away(&mut self, size: usize) -> String {
        let kind = *self.rng.pick(&Kind::ARRAYS);
        let (start, (length, _)) = (self.argument(kind, size), kind.parts());
        let (state, total, place) = (self.fresh("s"), self.fresh("t"), self.fresh("k"));
        self.counting(length, |w, i| {
            let counts = w.rng.chance(1, 2);
            if counts {
                w.counters.push((place.clone(), length));
            }
            let change = w.change(&state, kind, size, 1);
            let read = w.within(&[(&state, kind)], |w| w.element(kind, 0));
            let next = format!("0.5 * {total} + {read}");
            if !counts {
                return format!("snd (ifold {length} (fun {i} ({state}, {total}) -> ({change}, {next})) ({start}, 0.0))");
            }
            w.counters.pop();
            let step = 1 + w.rng.below(2);
            format!("(let (_, _, {total}) = ifold {length} (fun {i} ({state}, {place}, {total}) -> ({change}, ({place} + {step}) mod {length}, {next})) ({start}, 0, 0.0) in {total})")
        })
    }

    fn array(&mut self, size: usize) -> String {
        let kind = *self.rng.pick(&[Column, Row]);
        self.argument(kind, size)
    }

    /// A loop whose state is of the kind.
    fn repeated(&mut self, kind: Kind, size: usize) -> String {
        let start = self.argument(kind, size);
        let state = self.fresh("s");
        if self.rng.chance(1, 3) {
            let step = self.within(&[(&state, kind)], |w| w.term(kind, size - 1));
            return format!("loop {} (fun {state} -> 0.5 *> ({step})) {start}", 1 + self.rng.below(3));
        }
        let length = *self.rng.pick(&["n", "m"]);
        self.counting(length, |w, i| {
            let step = w.within(&[(&state, kind)], |w| w.term(kind, size - 1));
            format!("ifold {length} (fun {i} {state} -> 0.5 *> ({step})) {start}")
        })
    }

    /// An array that a loop changes place by place.
    fn changed(&mut self, kind: Kind, size: usize) -> String {
        let start = self.argument(kind, size);
        let (state, (length, element)) = (self.fresh("s"), kind.parts());
        let number = if element == Real { format!("{state}.(0)") } else { format!("{state}.(0).(0)") };
        self.counting(length, |w, i| match w.rng.below(3) {
            0 => w.looping_with_more(kind, i, [&state, &number], size, &start),
            _ => {
                let change = w.change(&state, kind, size, 2);
                w.looping(length, i, [&state, &number], &change, &start)
            }
        })
    }

    /// Some changes of an array, or under some condition none.
    fn change(&mut self, state: &String, kind: Kind, size: usize, more: usize) -> String {
        match self.rng.below(5) {
            0 if more > 0 => {
                let condition = self.condition(0);
                let (then, otherwise) =
                    (self.change(state, kind, size, more - 1), self.change(state, kind, 1, more - 1));
                format!("(if {condition} then {then} else {otherwise})")
            }
            1 if more > 0 => {
                let condition = self.condition(0);
                format!("(if {condition} then {} else {state})", self.change(state, kind, size, more - 1))
            }
            2 if more > 0 => {
                let first = self.change(state, kind, size, more - 1);
                let next = self.fresh("s");
                format!("(let {next} = {first} in {})", self.change(&next, kind, 1, more - 1))
            }
            _ => self.one_change(state, kind, size),
        }
    }

    fn one_change(&mut self, state: &String, kind: Kind, size: usize) -> String {
        let (length, element) = kind.parts();
        let place = self.place(length);
        self.within(&[(state, kind)], |w| match element {
            Real => format!("set {state} {place} (0.5 * ({}))", w.term(Real, size - 1)),
            _ if w.rng.chance(1, 2) => {
                let inner = w.place(element.parts().0);
                let real = w.term(Real, size - 1);
                format!("set {state} {place} (set {state}.({place}) {inner} (0.5 * ({real})))")
            }
            _ => format!("set {state} {place} (0.5 *> ({}))", w.term(element, size - 1)),
        })
    }

    /// A loop over a range with one array as its state, of which a number is given too, in one of the forms in which loops are written.
    fn looping(&mut self, length: &str, i: &str, [state, number]: [&str; 2], change: &str, start: &str) -> String {
        let go = self.fresh("go");
        match self.rng.below(10) {
            0 => format!("(let rec {go} {i} {state} = if {i} = {length} then {state} else {go} ({i} + 1) ({change}) in {go} 0 {start})"),
            1 => format!("(let rec {go} {i} {state} = if {i} < {length} then {go} ({i} + 1) ({change}) else 0.9 *> {state} in {go} 1 {start})"),
            2 => format!("(let rec {go} {i} {state} = if {i} < 0 then {state} else {go} ({i} - 1) ({change}) in {go} ({length} - 1) {start})"),
            3 => format!("iterate (fun ({i}, {state}) -> if {i} >= {length} || {number} > 0.81234567 then Inr (0.9 *> {state}) else Inl ({i} + 1, {change})) (0, {start})"),
            4 => format!("snd (ifold {length} (fun {i} (t, {state}) -> (t + {number}, {change})) (0.0, {start}))"),
            _ => format!("ifold {length} (fun {i} {state} -> {change}) {start}"),
        }
    }

    /// A loop with an array and something else as its state: a place, whether to stop, or another array.
    fn looping_with_more(
        &mut self,
        kind: Kind,
        i: &str,
        [state, number]: [&String; 2],
        size: usize,
        start: &str,
    ) -> String {
        let (go, more, (length, _)) = (self.fresh("go"), self.fresh("t"), kind.parts());
        match self.rng.below(6) {
            0 => {
                self.counters.push((more.clone(), length));
                let change = self.change(state, kind, size, 2);
                self.counters.pop();
                let step = 1 + self.rng.below(3);
                format!("snd (ifold {length} (fun {i} ({more}, {state}) -> (({more} + {step}) mod {length}, {change})) (0, {start}))")
            }
            1 => {
                let change = self.change(state, kind, size, 2);
                format!("(let rec {go} {i} {more} {state} = if {more} || {i} >= {length} then {state} else {go} ({i} + 1) ({number} > 0.51234567) ({change}) in {go} 0 false {start})")
            }
            2 => {
                let (condition, change) = (self.condition(0), self.change(state, kind, size, 2));
                let stop = *self.rng.pick(&["", "0.9 *> "]);
                format!("(let rec {go} {i} {state} = if {i} >= {length} then {state} else if {condition} then {stop}{state} else {go} ({i} + 1) ({change}) in {go} 0 {start})")
            }
            3 => {
                let change = self.within(&[(&more, kind)], |w| w.change(state, kind, size, 1));
                format!("fst (ifold {length} (fun {i} ({state}, {more}) -> ({more}, {change})) ({start}, {start}))")
            }
            4 => {
                let change = self.within(&[(&more, kind)], |w| w.change(state, kind, size, 2));
                format!("fst (ifold {length} (fun {i} ({state}, {more}) -> ({change}, if {number} > 0.31234567 then {state} else {more})) ({start}, {start}))")
            }
            _ => {
                let change = self.change(state, kind, size, 1);
                format!("snd (iterate (fun ({more}, {i}, {state}) -> if {more} then Inr ({i}, {state}) else Inl ({i} + 1 >= {length} || {number} > 0.61234567, {i} + 1, {change})) (false, 0, {start}))")
            }
        }
    }
}
