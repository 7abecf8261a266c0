//! Random programs, as text, in which many things hold the same arrays: lists, trees, records, options, functions and the states of loops hold rows of
//! matrices, and vectors that are changed elsewhere. Whoever lets go of an array too early, or changes one that others hold, gives wrong numbers.

use crate::random::from_text;
use gradus_generate::{Data, Generated, Rng};

/// So that the kinds of programs do not have their seeds in common.
const SALT: u64 = 0x686f_6c64;

/// What a variable is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Real,
    /// `real[]`, of two numbers or more.
    Vector,
    /// `real[][]`, of two rows or more.
    Matrix,
    /// `real[] list`
    List,
    /// `tree`, with vectors at its leaves.
    Tree,
    /// `part`, a record of a vector and a number.
    Part,
    /// `part[]`, of two or more.
    Parts,
    /// `real[] option`
    Option,
    /// `real -> real`
    Function,
}

use Kind::{Function, List, Matrix, Option as Maybe, Part, Parts, Real, Tree, Vector};

const TYPES: [(Kind, &str, &str); 9] = [
    (Real, "s", "real"),
    (Vector, "v", "real[]"),
    (Matrix, "m", "real[][]"),
    (List, "l", "real[] list"),
    (Tree, "t", "tree"),
    (Part, "p", "part"),
    (Parts, "ps", "part[]"),
    (Maybe, "o", "real[] option"),
    (Function, "h", "real -> real"),
];

const HEAD: &str = "\
import List
type tree = Leaf of real[] | Node of tree * tree
type part = { w : real[]; x : real }
let rec used (l : real[] list) : real =
  match l with
  | [] -> 0.1
  | q :: rest -> let r = used rest in r * 0.9 + sin (q.(0) * q.(1))
let rec of_tree (t : tree) : real =
  match t with
  | Leaf v -> sin v.(0) * v.(1)
  | Node (a, b) -> of_tree a + 0.7 * of_tree b
let rec map_tree (f : real[] -> real[]) (t : tree) : tree =
  match t with
  | Leaf v -> Leaf (f v)
  | Node (a, b) -> Node (map_tree f a, map_tree f b)
let rec larger (t : tree) : real[] =
  match t with
  | Leaf v -> v
  | Node (a, b) -> let x = larger a in let y = larger b in if x.(0) > y.(0) then x else y
let rec joined (t : tree) : real[] =
  match t with
  | Leaf v -> v
  | Node (a, b) -> joined a <+> map sin (joined b)
let rec leaves (t : tree) (l : real[] list) : real[] list =
  match t with
  | Leaf v -> v :: l
  | Node (a, b) -> leaves a (leaves b l)
let rec first_above (l : real[] list) (otherwise : real[]) : real[] =
  match l with
  | [] -> otherwise
  | x :: _ when x.(0) > 0.21234567 -> x
  | _ :: rest -> first_above rest otherwise
";

struct Writer {
    rng: Rng,
    scope: Vec<(String, Kind)>,
    lines: Vec<String>,
}

/// The text of the program of a seed.
#[allow(dead_code, reason = "tests print no programs")]
pub fn source(seed: u64) -> String {
    text(&mut Rng::new(seed ^ SALT))
}

/// The program of a seed, with points at which to try it.
pub fn generate(seed: u64) -> Generated {
    from_text("holders.gr", seed, Rng::new(seed ^ SALT), text, point)
}

fn point(rng: &mut Rng) -> Data {
    let (rows, length) = (2 + rng.below(3), 2 + rng.below(3));
    let mut real = || Data::Real((rng.unit() * 1e4).round() / 1e4);
    let mut vector = || Data::Array((0..length).map(|_| real()).collect());
    let (v, m) = (vector(), (0..rows).map(|_| vector()).collect());
    Data::Tuple(vec![real(), v, Data::Array(m)])
}

fn text(rng: &mut Rng) -> String {
    let scope = [("u", Real), ("v", Vector), ("m", Matrix)].map(|(name, kind)| (name.to_string(), kind));
    let mut writer = Writer { rng: rng.split(), scope: scope.to_vec(), lines: Vec::new() };
    writer.bind(List, "[v; m.(1)]".into());
    writer.bind(Tree, "Node (Leaf m.(0), Leaf v)".into());
    writer.bind(Parts, "[| { w = v; x = u }; { w = m.(1); x = 0.5 } |]".into());
    for _ in 0..3 + writer.rng.below(6) {
        writer.line();
    }
    let mut result = String::from("0.1 * u");
    for (name, kind) in writer.scope.clone() {
        if writer.rng.chance(3, 4) {
            result += " + ";
            result += &writer.total(&name, kind);
        }
    }
    let lines = writer.lines.iter().map(|line| format!("  {line}\n")).collect::<String>();
    format!("{HEAD}let f ((u, v, m) : real * real[] * real[][]) : real =\n  let k = if u > 0.51234567 then 1 else 0 in\n{lines}  {result}\n")
}

impl Writer {
    fn bind(&mut self, kind: Kind, bound: String) {
        let (_, stem, ty) = TYPES.into_iter().find(|(k, _, _)| *k == kind).expect("every kind has a type");
        let name = format!("{stem}{}", self.lines.len());
        self.lines.push(format!("let {name} : {ty} = {bound} in"));
        self.scope.push((name, kind));
    }

    /// A variable; rather one of the last.
    fn any(&mut self, kind: Kind) -> Option<String> {
        let all: Vec<String> = self.scope.iter().filter(|(_, k)| *k == kind).map(|(name, _)| name.clone()).collect();
        let last = all.len().saturating_sub(3);
        match all.is_empty() {
            true => None,
            false if self.rng.chance(1, 2) => Some(self.rng.pick(&all[last..]).clone()),
            false => Some(self.rng.pick(&all).clone()),
        }
    }

    /// A variable of a kind of which there is one from the start.
    fn one(&mut self, kind: Kind) -> String {
        self.any(kind).expect("there is one from the start")
    }

    fn place(&mut self) -> &'static str {
        ["0", "1", "k", "(1 - k)"][self.rng.below(4)]
    }

    /// Something that is written where a variable is bound.
    fn inside(&mut self, name: &str, kind: Kind, write: fn(&mut Writer) -> String) -> String {
        self.scope.push((name.to_string(), kind));
        let written = write(self);
        self.scope.retain(|(known, _)| known != name);
        written
    }

    fn real(&mut self) -> String {
        let (s, v, m, i, j) = (self.one(Real), self.one(Vector), self.one(Matrix), self.place(), self.place());
        match (self.rng.below(8), self.any(Function)) {
            (0, _) => s,
            (1 | 2, _) => format!("{v}.({i})"),
            (3, _) => format!("{m}.({i}).({j})"),
            (4, _) => format!("sin ({s} * {v}.({i}))"),
            (5, _) => format!("tanh (sum {v})"),
            (6, Some(h)) => format!("{h} {s}"),
            _ => format!("(0.5 * {s} + {v}.(0))"),
        }
    }

    fn vector(&mut self) -> String {
        let (s, v, w, m, i) = (self.one(Real), self.one(Vector), self.one(Vector), self.one(Matrix), self.place());
        let (ps, l) = (self.one(Parts), self.one(List));
        match (self.rng.below(11), self.any(Part)) {
            (0, _) => v,
            (1, _) => format!("(map (fun x -> sin x * {s}) {v})"),
            (2..5, _) => format!("{m}.({i})"),
            (5, _) => format!("(set {v} {i} ({}))", self.real()),
            (6, _) => format!("(if {} > 0.11234567 then {v} else {m}.({i}))", self.real()),
            (7, _) => format!("(match {l} with [] -> {v} | x :: _ -> x)"),
            (8, Some(p)) => format!("{p}.w"),
            (9, _) => format!("{ps}.({i}).w"),
            _ => format!("({v} <+> {w})"),
        }
    }

    fn part(&mut self) -> String {
        format!("{{ w = {}; x = {} }}", self.vector(), self.real())
    }

    /// A line of the function.
    fn line(&mut self) {
        let (kind, bound) = match self.rng.below(20) {
            0 => (Vector, self.vector()),
            1..4 => (Matrix, self.new_matrix()),
            4..8 => (List, self.new_list()),
            8..10 => (Tree, self.new_tree()),
            10 => (Part, self.part()),
            11..13 => (Parts, self.new_parts()),
            13 => {
                let (r, v) = (self.real(), self.vector());
                (Maybe, format!("ifold 3 (fun i o -> if {r} > real i * 0.2 + 0.01234567 then Some {v} else o) None"))
            }
            14..16 => (Function, self.new_function()),
            _ => (Vector, self.new_vector()),
        };
        self.bind(kind, bound);
    }

    fn new_matrix(&mut self) -> String {
        let (m, i) = (self.one(Matrix), self.place());
        match self.rng.below(6) {
            0 => format!("set {m} {i} {}", self.vector()),
            1 => format!("[| {}; {} |]", self.vector(), self.vector()),
            2 => format!("scan (fun s y -> map2 (fun a b -> 0.5 * a + sin b) s y) {} {m}", self.vector()),
            3 => format!("build (length {m}) (fun i -> {})", self.vector()),
            4 => format!("sort_by (fun row -> row.(0)) {m}"),
            _ => {
                let row = self.inside("q", Matrix, Writer::vector);
                format!("ifold 3 (fun i (q : real[][]) -> set q (i mod 2) {row}) {m}")
            }
        }
    }

    fn new_list(&mut self) -> String {
        let (m, l, other, t, ps) = (self.one(Matrix), self.one(List), self.one(List), self.one(Tree), self.one(Parts));
        let rest = if self.rng.chance(1, 2) { "[]".to_string() } else { other.clone() };
        match self.rng.below(10) {
            0..3 => {
                let row = if self.rng.chance(1, 3) { self.vector() } else { format!("{m}.(i)") };
                format!("ifold (length {m}) (fun i rows -> {row} :: rows) {rest}")
            }
            3 => format!("ifold (length {ps}) (fun i rows -> {ps}.(i).w :: rows) {rest}"),
            4 => {
                let image = self.inside("y", Vector, Writer::vector);
                format!("List.map (fun (y : real[]) -> {image}) {l}")
            }
            5 => format!("leaves {t} {rest}"),
            6 => {
                let way =
                    ["List.reverse", "List.sort_by (fun x -> x.(1))", "List.filter (fun x -> x.(0) > 0.11234567)"];
                format!("{} {l}", self.rng.pick(&way))
            }
            7 => format!("List.of_array (List.to_array ({l} @ {other}))"),
            8 => format!("grad (fun (x : real[] list) -> used x * {}) {l}", self.real()),
            _ => format!("{} :: {l}", self.vector()),
        }
    }

    fn new_tree(&mut self) -> String {
        let (t, l) = (self.one(Tree), self.one(List));
        match self.rng.below(4) {
            0 => format!("ifold 2 (fun i t -> Node (t, Leaf {})) {t}", self.vector()),
            1 => format!("List.fold (fun t x -> Node (Leaf x, t)) {t} {l}"),
            2 => {
                let image = self.inside("y", Vector, Writer::vector);
                format!("map_tree (fun (y : real[]) -> {image}) {t}")
            }
            _ => format!("Node (Leaf {}, Node ({t}, Leaf {}))", self.vector(), self.vector()),
        }
    }

    fn new_parts(&mut self) -> String {
        let (ps, m, i) = (self.one(Parts), self.one(Matrix), self.place());
        match self.rng.below(6) {
            0 => format!("set {ps} {i} ({})", self.part()),
            1 => format!("[| {}; {} |]", self.part(), self.part()),
            2 => format!("map (fun q -> {{ w = q; x = sum q }}) {m}"),
            3 => format!("map (fun (q : part) -> {{ q with x = {} }}) {ps}", self.real()),
            4 => format!("sort_by (fun (q : part) -> q.x) {ps}"),
            _ => format!("ifold 3 (fun i q -> set q (i mod 2) {{ w = {}; x = q.(0).x }}) {ps}", self.vector()),
        }
    }

    fn new_function(&mut self) -> String {
        let l = self.one(List);
        match self.rng.below(2) {
            0 => format!("fun z -> {} * z", self.inside("z", Real, Writer::real)),
            _ => {
                let step = self.rng.pick(&["h", "(fun z -> h z + x.(0))", "(fun z -> h (z * x.(1)))"]).to_string();
                format!("List.fold (fun h x -> {step}) (fun z -> {} * z) {l}", self.real())
            }
        }
    }

    fn new_vector(&mut self) -> String {
        let (l, t) = (self.one(List), self.one(Tree));
        match (self.rng.below(8), self.any(Maybe)) {
            (0, Some(o)) => format!("(match {o} with None -> {} | Some x -> x)", self.vector()),
            (1, _) => format!("{} {t}", self.rng.pick(&["larger", "joined"])),
            (2, _) => format!("first_above {l} {}", self.vector()),
            (3, _) => {
                let step = ["a", "x", "map2 (fun p q -> p + sin q) a x", "set a 0 x.(1)"];
                let step = self.rng.pick(&step).to_string();
                format!("List.fold (fun (a : real[]) (x : real[]) -> {step}) {} {l}", self.vector())
            }
            (4, _) => format!(
                "grad (fun (x : real[]) -> sum (map sin x) * {} + x.(0) * x.(1)) {}",
                self.real(),
                self.vector()
            ),
            (5, _) => {
                let (next, kept) = (self.inside("a", Vector, Writer::vector), self.inside("a", Vector, Writer::vector));
                let start = self.vector();
                format!("(match snd (loop 3 (fun ((a, b) : real[] * real[] list) -> ({next}, {kept} :: b)) ({start}, {l})) with x :: _ -> x | [] -> {start})")
            }
            (6, _) => {
                let (next, other) =
                    (self.inside("a", Vector, Writer::vector), self.inside("b", Vector, Writer::vector));
                format!(
                    "iterate (fun ((i, a, b) : int * real[] * real[]) -> if i = 3 || a.(0) > 2.01234567 then Inr b else Inl (i + 1, b, {next} <+> {other})) (0, {}, {})",
                    self.vector(),
                    self.vector()
                )
            }
            _ => {
                let again = self.inside("a", Vector, Writer::vector);
                format!("(let rec go (i : int) (a : real[]) : real[] = if i = 0 then a else (let b = go (i - 1) a in {again} <+> b) in go 2 {})", self.vector())
            }
        }
    }

    /// A number from all of a variable.
    fn total(&mut self, name: &str, kind: Kind) -> String {
        match kind {
            Real => name.to_string(),
            Vector => format!("sum (map sin {name})"),
            Matrix => format!("sin {name}.(0).(1) * {name}.(1).(0)"),
            List if self.rng.chance(1, 3) => format!("List.sum (List.map (fun x -> sin x.(0) * x.(1)) {name})"),
            List => format!("used {name}"),
            Tree => format!("of_tree {name}"),
            Part => format!("sum {name}.w * {name}.x"),
            Parts => format!("sum (map (fun (q : part) -> q.x * sin q.w.(1)) {name})"),
            Maybe => format!("(match {name} with None -> 0.1 | Some x -> cos x.(0))"),
            Function => format!("{name} 0.3"),
        }
    }
}
