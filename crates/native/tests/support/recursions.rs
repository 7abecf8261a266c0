//! Random recursion, as text: functions that take what they get from themselves in sums, times a factor, in branches and in loops, on numbers and on trees. Few
//! programs of nested terms call themselves twice, and fewer do so in a branch and use elsewhere what they got.

use crate::random::from_text;
use gradus_generate::{Data, Generated, Rng};

/// So that the kinds of programs do not have their seeds in common.
const SALT: u64 = 0x7265_6375;
/// How often the text of a function calls it.
const MOST_CALLS: usize = 4;
/// Between which a branch decides; no point comes near them.
const BOUNDS: [&str; 4] = ["0.11234567", "0.41234567", "(-0.21234567)", "0.91234567"];

/// What a function recurs on.
#[derive(Clone, Copy, PartialEq)]
enum Over {
    Number,
    Tree,
}

struct Writer {
    rng: Rng,
    over: Over,
    calls: usize,
    names: usize,
}

/// The text of the program of a seed.
#[allow(dead_code, reason = "tests print no programs")]
pub fn source(seed: u64) -> String {
    text(&mut Rng::new(seed ^ SALT))
}

/// The program of a seed, with points at which to try it.
pub fn generate(seed: u64) -> Generated {
    from_text("recursions.gr", seed, Rng::new(seed ^ SALT), text, point)
}

fn point(rng: &mut Rng) -> Data {
    let mut real = || Data::Real((rng.unit() * 1e4).round() / 1e4);
    Data::Tuple(vec![real(), real()])
}

fn text(rng: &mut Rng) -> String {
    let over = *rng.pick(&[Over::Number, Over::Number, Over::Tree]);
    let mut writer = Writer { rng: rng.split(), over, calls: 0, names: 0 };
    let (x, y) = ("x".to_string(), "y".to_string());
    let known = [x.clone(), y];
    let end = writer.number(3, &known);
    let step = writer.sum(4, &known, &[]);
    let first = writer.number(2, &[x]);
    match over {
        Over::Number => {
            let depth = 2 + writer.rng.below(2);
            format!(
                "let rec go (n : int) (y : real) (x : real) : real =\n  if n <= 0 then {end}\n  else {step}\n\
                 let f ((x, z) : real * real) : real = go {depth} ({first}) x + go 2 x z\n"
            )
        }
        Over::Tree => format!(
            "type tree = Leaf of real | Node of tree * real * tree\n\
             let rec go (t : tree) (y : real) : real =\n  match t with\n  | Leaf x -> {end}\n  | Node (l, x, r) -> {step}\n\
             let f ((x, z) : real * real) : real =\n  \
             go (Node (Node (Leaf x, 0.3 * z, Leaf 0.7), x, Node (Leaf (x * z), 0.4, Leaf z))) ({first})\n"
        ),
    }
}

fn and(names: &[String], name: &str) -> Vec<String> {
    names.iter().cloned().chain([name.to_string()]).collect()
}

impl Writer {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn bound(&mut self) -> &'static str {
        BOUNDS[self.rng.below(BOUNDS.len())]
    }

    /// A number that needs no call.
    fn number(&mut self, depth: usize, known: &[String]) -> String {
        if depth == 0 || self.rng.chance(3, 10) {
            return if self.rng.chance(1, 6) { "0.7".into() } else { self.rng.pick(known).clone() };
        }
        let part = |writer: &mut Self| writer.number(depth - 1, known);
        match self.rng.below(7) {
            0 | 1 => format!("({} * {})", part(self), part(self)),
            2 => format!("({} + {})", part(self), part(self)),
            3 => format!("sin ({})", part(self)),
            4 => format!("tanh ({})", part(self)),
            5 => {
                let (bound, asked) = (self.bound(), self.rng.pick(known).clone());
                format!("(if {asked} > {bound} then {} else {})", part(self), part(self))
            }
            _ => {
                let (name, value) = (self.name(), part(self));
                let rest = self.number(depth - 1, &and(known, &name));
                format!("(let {name} = {value} in {rest})")
            }
        }
    }

    fn call(&mut self, known: &[String]) -> String {
        self.calls += 1;
        let argument = self.number(2, known);
        match self.over {
            Over::Number => {
                let less = 1 + self.rng.below(2);
                let other = self.number(1, known);
                format!("go (n - {less}) ({argument}) ({other})")
            }
            Over::Tree => format!("go {} ({argument})", self.rng.pick(&["l", "r"])),
        }
    }

    /// What is made of calls and of what they gave, mostly without a product of two of them.
    fn sum(&mut self, depth: usize, known: &[String], got: &[String]) -> String {
        if depth == 0 || self.rng.chance(1, 7) {
            return match () {
                () if !got.is_empty() && self.rng.chance(1, 2) => self.rng.pick(got).clone(),
                () if self.calls < MOST_CALLS => self.call(known),
                () => self.number(1, known),
            };
        }
        let part = |writer: &mut Self| writer.sum(depth - 1, known, got);
        match self.rng.below(10) {
            0 | 1 => format!("({} * {})", self.number(1, known), part(self)),
            2 => format!("({} + {})", part(self), part(self)),
            3 => format!("({} - {})", part(self), part(self)),
            4 => format!("({} / (1.5 + square ({})))", part(self), self.number(1, known)),
            5 | 6 => {
                let (bound, asked) = (self.bound(), self.number(1, known));
                format!("(if {asked} > {bound} then {} else {})", part(self), part(self))
            }
            7 => {
                let (name, value) = (self.name(), self.number(1, known));
                let inner = self.sum(depth - 1, &and(known, &name), got);
                format!("sum (build 2 (fun i -> let {name} = {value} + real i in {inner}))")
            }
            8 => {
                let (name, value) = (self.name(), part(self));
                let rest = self.sum(depth - 1, known, &and(got, &name));
                format!("(let {name} = {value} in {rest})")
            }
            _ => format!("tanh ({})", part(self)),
        }
    }
}
