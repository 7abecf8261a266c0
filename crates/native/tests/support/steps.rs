//! Random simulations, as text: a loop whose state is a vector, and whose steps are lines of what users write of the library, each with what the lines
//! before it gave. Sums of functions, what is scattered and what is found to be the largest stand in one step, as they do in no program of nested terms.

use crate::random::from_text;
use gradus_generate::{Data, Generated, Rng};

/// So that the kinds of programs do not have their seeds in common.
const SALT: u64 = 0x7374_6570;

/// Functions of a number that stay moderate.
const FUNCTIONS: [&str; 11] = [
    "exp",
    "sin",
    "tanh",
    "sigmoid",
    "cos",
    "square",
    "softplus",
    "(fun x -> sqrt (1.0 + x * x))",
    "(fun x -> x / (1.0 + x * x))",
    "(fun x -> log1p (x * x))",
    "(fun x -> if x > 0.11234567 then x else 0.1 * x)",
];

struct Writer {
    rng: Rng,
    vectors: Vec<String>,
    numbers: Vec<String>,
    lines: Vec<String>,
}

/// The text of the program of a seed.
#[allow(dead_code, reason = "tests print no programs")]
pub fn source(seed: u64) -> String {
    text(&mut Rng::new(seed ^ SALT))
}

/// The program of a seed, with points at which to try it.
pub fn generate(seed: u64) -> Generated {
    from_text("steps.gr", seed, Rng::new(seed ^ SALT), text, point)
}

fn point(rng: &mut Rng) -> Data {
    let length = 4 + rng.below(15);
    let mut real = || Data::Real((rng.unit() * 1e4).round() / 1e4);
    let vector = (0..length).map(|_| real()).collect();
    Data::Tuple(vec![Data::Array(vector), real(), real()])
}

fn text(rng: &mut Rng) -> String {
    let mut writer = Writer {
        rng: rng.split(),
        vectors: vec!["xs".into()],
        numbers: vec!["a".into(), "b".into()],
        lines: Vec::new(),
    };
    // Some things are only done with lengths that are known, others only without.
    let length = *writer.rng.pick(&["length v", "length v", "5", "17", "20"]);
    for _ in 0..2 + writer.rng.below(5) {
        writer.line();
    }
    let lines = writer.lines.iter().map(|line| format!("    {line}\n")).collect::<String>();
    let (next, other, number) = (writer.vector(), writer.vector(), writer.number());
    let steps = 2 + writer.rng.below(3);
    let start = "build n (fun i -> 0.3 * v.(i mod length v) + 0.1 * a)";
    let weighted = "sum (mapi (fun i x -> cos (real i) * x)";
    let head = format!("let f ((v, a, b) : real[] * real * real) : real =\n  let n = {length} in\n");
    let body = match writer.rng.below(5) {
        0 => format!(
            "  let step xs =\n{lines}    0.5 *> (xs <+> {next}) in\n  {weighted} (loop {steps} step ({start})))\n"
        ),
        1 => format!(
            "  let step (xs, t) =\n{lines}    (map tanh ({next} <+> {other}), t + {number}) in\n  \
             let (e, t) = loop {steps} step ({start}, 0.0) in\n  t + {weighted} e)\n"
        ),
        2 => format!(
            "  let step (xs, a, k) =\n    if k = {steps} then Inr (sum xs + a) else\n{lines}    \
             Inl (map tanh {next}, 0.5 * {number}, k + 1) in\n  iterate step ({start}, a, 0)\n"
        ),
        3 => format!(
            "  let one j =\n    let step xs =\n{lines}    map (fun x -> tanh (x * {number})) {next} in\n    \
             {weighted} (loop {steps} step (map (fun x -> x + 0.1 * real j) ({start})))) in\n  sum (map one (iota 3))\n"
        ),
        _ => format!(
            "  let step i (xs, ys) =\n{lines}    (map2 (fun x y -> tanh (x - 0.1 * real i * y)) {next} ys, {other}) in\n  \
             let (e, d) = ifold {steps} step ({start}, build n (fun i -> b * real i)) in\n  {weighted} e) + dot d d / real n\n"
        ),
    };
    head + &body
}

impl Writer {
    fn vector(&mut self) -> String {
        self.rng.pick(&self.vectors).clone()
    }

    fn number(&mut self) -> String {
        self.rng.pick(&self.numbers).clone()
    }

    fn function(&mut self) -> &'static str {
        FUNCTIONS[self.rng.below(FUNCTIONS.len())]
    }

    fn bind(&mut self, stem: &str, bound: String) -> String {
        let name = format!("{stem}{}", self.lines.len());
        self.lines.push(format!("let {name} = {bound} in"));
        name
    }

    /// A line of a step.
    fn line(&mut self) {
        match self.rng.below(6) {
            0 | 1 => {
                let bound = self.new_number();
                let name = self.bind("s", bound);
                self.numbers.push(name);
            }
            2 if self.rng.chance(1, 3) => {
                let (f, s, v, w) = (self.function(), self.number(), self.vector(), self.vector());
                let (one, other) = (format!("p{}", self.lines.len()), format!("q{}", self.lines.len()));
                let each = format!("(fun x y -> let e = {f} (x - y) in (e * x, e + {s}))");
                self.lines.push(format!("let ({one}, {other}) = unzip (map2 {each} {v} {w}) in"));
                self.vectors.extend([one, other]);
            }
            _ => {
                let bound = self.new_vector();
                let name = self.bind("v", bound);
                self.vectors.push(name);
            }
        }
    }

    fn new_number(&mut self) -> String {
        let (f, s, v, w) = (self.function(), self.number(), self.vector(), self.vector());
        match self.rng.below(7) {
            0 | 1 => format!("mean (map {f} {v})"),
            2 => format!("0.05 * dot {v} {w}"),
            3 => format!("0.1 * logsumexp {v}"),
            4 => format!("{} (map {f} {v})", self.rng.pick(&["max", "min"])),
            5 => {
                let step = self.rng.pick(&["0.5 * acc + tanh (acc * x)", "sin acc + x", "maximum acc x"]);
                format!("0.1 * fold (fun acc x -> {step}) {s} {v}")
            }
            _ => format!("{v}.({} mod n) * tanh {s}", self.rng.below(20)),
        }
    }

    fn new_vector(&mut self) -> String {
        let (f, s, t, v, w) = (self.function(), self.number(), self.number(), self.vector(), self.vector());
        let k = 1 + self.rng.below(7);
        match self.rng.below(13) {
            0 => format!("map {f} {v}"),
            1 => format!("softmax {v}"),
            2 => format!("map (fun x -> {s} * x + {t}) {v}"),
            3 => format!("map2 (fun x y -> tanh (x * y - {s})) {v} {w}"),
            4 => format!("build n (fun i -> {f} {v}.((i + {k}) mod n) - 0.3 * {w}.(i))"),
            5 => format!("scatter_add {v} (build n (fun i -> i * {k} mod n)) (map (fun x -> 0.1 * {f} x) {w})"),
            6 => {
                let step = self.rng.pick(&["0.5 * acc + x", "tanh (acc + x)", "0.5 * tanh acc * x"]).to_string();
                format!("scan (fun acc x -> {step} + 0.1 * {s}) {t} {v}")
            }
            7 => format!("map (fun x -> mean (map (fun z -> exp (-(x - z) ^ 2)) {v})) {w}"),
            8 => format!("map (fun x -> if x > {s} + 0.01234567 then {f} x else {t} * x) {v}"),
            9 => format!("0.2 *> grad (fun w -> sum (map {f} w) * {s} + 0.1 * dot w {v} ^ 2) {w}"),
            10 => format!("ifold (n / {k}) (fun i acc -> set acc i (0.5 * acc.(i) + {f} {v}.(i))) {w}"),
            11 => format!("gather {v} (map (fun x -> if x > {s} + 0.01234567 then 1 else {}) {w})", k % 4),
            _ => format!("build n (fun i -> if i = 0 then {s} else {f} {v}.(i - 1) * tanh {w}.(i))"),
        }
    }
}
