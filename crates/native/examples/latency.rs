//! From source text to the first gradient, for programs of growing length and several kinds, in CPU time; see `bench/native/README.md`.

#[path = "../tests/support/mod.rs"]
mod support;

use gradus_native::{lower, Backend, Executable, Leaf, Options};
use std::path::Path;
use std::time::Duration;
use support::{entry, program};

/// Programs of one kind: `gradient` is the derivative of their `loss` by `params`.
struct Kind {
    name: &'static str,
    /// Lines of one piece.
    lines: usize,
    /// Several pieces, and the definition of `loss`.
    text: fn(usize) -> String,
}

const KINDS: [Kind; 20] = [
    Kind { name: "mixed", lines: 10, text: mixed },
    Kind { name: "calls", lines: 2, text: calls },
    Kind { name: "lets", lines: 1, text: lets },
    Kind { name: "loops", lines: 3, text: loops },
    Kind { name: "branches", lines: 4, text: branches },
    Kind { name: "ladder", lines: 1, text: ladder },
    Kind { name: "points", lines: 3, text: points },
    Kind { name: "helper", lines: 2, text: helper },
    Kind { name: "library", lines: 10, text: library },
    Kind { name: "variants", lines: 2, text: variants },
    Kind { name: "closures", lines: 2, text: closures },
    Kind { name: "records", lines: 3, text: records },
    Kind { name: "trees", lines: 5, text: trees },
    Kind { name: "fibonacci", lines: 5, text: fibonacci },
    Kind { name: "values", lines: 1, text: values },
    Kind { name: "literal", lines: 1, text: literal },
    Kind { name: "tuples", lines: 1, text: tuples },
    Kind { name: "mutual", lines: 3, text: mutual },
    Kind { name: "nested", lines: 2, text: nested },
    Kind { name: "types", lines: 4, text: types },
];

/// Functions with a local definition, a loop over an array, a branch, a record, and a call of the function before.
fn mixed(pieces: usize) -> String {
    let mut text = String::new();
    for k in 0..pieces {
        let before = if k == 0 { "x".to_string() } else { format!("step{} p x", k - 1) };
        text += &format!(
            "let step{k} (p : params) (x : real) : real =\n\
             \x20 let y = {before} in\n\
             \x20 let s = sum (map (fun w -> tanh (w * y + p.shift)) p.weights) in\n\
             \x20 let t =\n\
             \x20   if y > 0.5 then exp (0.0 - s * p.scale)\n\
             \x20   else sin s + {k}.0 * cos y in\n\
             \x20 let u = ifold p.count (fun i a -> a * 0.5 + t * p.weights.(i)) 0.0 in\n\
             \x20 let v = sqrt (1.0 + u * u) in\n\
             \x20 log (1.0 + v * v + s * s)\n\n"
        );
    }
    text + &format!("let loss (p : params) : real = step{} p 0.3\n", pieces - 1)
}

/// Many small functions, each calling the one before.
fn calls(pieces: usize) -> String {
    let mut text = String::from("let f0 (p : params) (x : real) : real = x * p.scale\n");
    for k in 1..=pieces {
        text +=
            &format!("let f{k} (p : params) (x : real) : real =\n  0.9 * sin (f{} p x) + 0.1 * p.shift * x\n", k - 1);
    }
    text + &format!("let loss (p : params) : real = f{pieces} p 0.3\n")
}

/// One long function of local definitions, each using the two before it and one far before it.
fn lets(pieces: usize) -> String {
    let mut text = String::from("let loss (p : params) : real =\n  let v0 = p.scale in\n  let v1 = p.shift in\n");
    for k in 2..pieces + 2 {
        text += &format!("  let v{k} = 0.5 * sin v{} + v{} * p.scale - 0.1 * v{} in\n", k - 1, k - 2, k / 2);
    }
    text + &format!("  v{}\n", pieces + 1)
}

/// One function that makes array after array, with a loop for each, and sums of some.
fn loops(pieces: usize) -> String {
    let mut text = String::from("let loss (p : params) : real =\n  let a0 = p.weights in\n  let s0 = p.scale in\n");
    for k in 1..=pieces {
        let before = k - 1;
        text += &format!("  let a{k} = build p.count (fun i -> a{before}.(i) * s{before} + p.weights.(i)) in\n");
        text += &format!("  let t{k} = ifold p.count (fun i t -> 0.5 * t + cos a{k}.(i)) 0.0 in\n");
        text += &format!("  let s{k} = 0.1 * sum (map (fun x -> tanh (x * t{k})) a{k}) in\n");
    }
    text + &format!("  s{pieces} + sum a{pieces}\n")
}

/// One function with branch after branch, the later ones on results of the earlier.
fn branches(pieces: usize) -> String {
    let mut text = String::from("let loss (p : params) : real =\n  let v0 = p.scale in\n");
    for k in 1..=pieces {
        let before = k - 1;
        text += &format!("  let v{k} =\n    if v{before} > 0.{k} then 0.5 * v{before} * p.shift\n");
        text += &format!("    else if v{before} < 0.0 then sin v{before}\n    else 1.1 * v{before} + p.shift in\n");
    }
    text + &format!("  v{pieces}\n")
}

/// One branch in the other, as deep as the program is long.
fn ladder(pieces: usize) -> String {
    let mut text = String::from("let loss (p : params) : real =\n  let v = p.scale * p.shift in\n");
    for k in 1..=pieces {
        text += &format!("  if v > {k}.0 then {k}.0 * sin v else\n");
    }
    text + "  v * v\n"
}

/// One function over vectors of three numbers.
fn points(pieces: usize) -> String {
    let mut text = String::from("let loss (p : params) : real =\n  let v0 = [| p.scale; p.shift; 1.0 |] in\n");
    for k in 1..=pieces {
        let v = format!("v{}", k - 1);
        text += &format!("  let s{k} = sum (map (fun x -> x * x) {v}) in\n");
        text += &format!("  let w{k} = [| {v}.(1) * s{k}; {v}.(2) - {v}.(0); {v}.(0) * {v}.(1) |] in\n");
        text += &format!("  let v{k} = map (fun x -> tanh (x + s{k})) w{k} in\n");
    }
    text + &format!("  sum v{pieces}\n")
}

/// One function of half the length, called from the other half.
fn helper(pieces: usize) -> String {
    let mut text = String::from("let help (p : params) (x : real) : real =\n  let v0 = x in\n");
    for k in 1..=pieces {
        text += &format!("  let v{k} = 0.5 * sin v{} + p.shift * v{} in\n", k - 1, k / 2);
    }
    text += &format!("  v{pieces}\n\nlet loss (p : params) : real =\n  let w0 = p.scale in\n");
    for k in 1..=pieces {
        text += &format!("  let w{k} = w{} + help p {k}.0 in\n", k - 1);
    }
    text + &format!("  w{pieces}\n")
}

/// A few functions of some length, and many that call two of them each.
fn library(pieces: usize) -> String {
    let used = 4;
    let mut text = String::new();
    for k in 0..pieces {
        let start = match k < used {
            true => format!("x * {k}.0"),
            false => format!("u{} p (0.5 * x) + 0.1 * u{} p x", k % used, (k + 1) % used),
        };
        text += &format!("let u{k} (p : params) (x : real) : real =\n  let a = {start} in\n");
        for (to, from) in ["b", "c", "d", "e", "f"].iter().zip(["a", "b", "c", "d", "e"]) {
            text += &format!("  let {to} = 0.3 * sin ({from} * p.shift + x) + {from} * cos (x - {from}) in\n");
        }
        text += "  let h = if f > 0.2 then f * f else exp f in\n  0.2 * tanh (h + b - d)\n\n";
    }
    let calls: Vec<String> = (0..pieces).map(|k| format!("u{k} p 0.3")).collect();
    text + &format!("let loss (p : params) : real = {}\n", calls.join(" + "))
}

/// A variant of many constructors, an array of two, and one `match` over all.
fn variants(pieces: usize) -> String {
    let constructor = |k: usize| format!("  | C{k} of real * real\n");
    let arm = |k: usize| format!("  | C{k} (a, b) -> {k}.0 * sin (a * p.scale) + b * x\n");
    let mut text = String::from("type shape =\n") + &(0..pieces).map(constructor).collect::<String>();
    text += "\nlet apply (p : params) (x : real) (s : shape) : real =\n  match s with\n";
    text += &(0..pieces).map(arm).collect::<String>();
    text += "\nlet loss (p : params) : real =\n";
    text + &format!("  sum (map (apply p 0.3) [| C0 (p.scale, 1.0); C{} (p.shift, 2.0) |])\n", pieces - 1)
}

/// Local functions, each of which calls the one before.
fn closures(pieces: usize) -> String {
    let mut text = String::from("let loss (p : params) : real =\n  let f0 = fun x -> x * p.scale in\n");
    for k in 1..=pieces {
        let before = k - 1;
        text += &format!("  let c{k} = p.shift * {k}.0 in\n  let f{k} = fun x -> 0.5 * sin (f{before} x) + c{k} in\n");
    }
    text + &format!("  f{pieces} 0.3\n")
}

/// A record of many fields, made, changed and read.
fn records(pieces: usize) -> String {
    let all = |text: &dyn Fn(usize) -> String| (0..pieces).map(text).collect::<Vec<_>>();
    let mut text = format!("type wide = {{\n  {}\n}}\n\n", all(&|k| format!("x{k} : real")).join(";\n  "));
    let fields = all(&|k| format!("x{k} = {k}.0 * p.scale"));
    text += &format!("let make (p : params) : wide = {{\n  {}\n}}\n\n", fields.join(";\n  "));
    text += "let loss (p : params) : real =\n  let w = make p in\n  let s = p.shift in\n";
    text += &all(&|k| format!("  let s = 0.5 * sin (s + w.x{k}) in\n")).concat();
    text + "  s\n"
}

/// Recursive functions over a tree, one after the other.
fn trees(pieces: usize) -> String {
    let mut text = String::from("type tree = Leaf of real | Node of tree * tree\n\n");
    for k in 0..pieces {
        text += &format!(
            "let rec fold{k} (p : params) (t : tree) : real =\n  match t with\n  | Leaf x -> x * p.scale + {k}.0\n"
        );
        text += &format!("  | Node (a, b) -> sin (fold{k} p a) * fold{k} p b\n\n");
    }
    text += "let loss (p : params) : real =\n  let t = Node (Leaf p.scale, Node (Leaf p.shift, Leaf 1.0)) in\n  ";
    text + &(0..pieces).map(|k| format!("fold{k} p t")).collect::<Vec<_>>().join("\n  + ") + "\n"
}

/// Functions each of which calls the two before it, twenty by twenty, since they run as often as they would be written out.
fn fibonacci(pieces: usize) -> String {
    let mut text = String::new();
    for k in 0..pieces {
        let call = |back: usize, x: &str| match k % 20 < back {
            true => x.to_string(),
            false => format!("f{} p {x}", k - back),
        };
        text += &format!("let f{k} (p : params) (x : real) : real =\n  let a = {} in\n", call(1, "x"));
        text += &format!("  let b = {} in\n  let c = 0.3 * sin a + p.shift * b in\n", call(2, "(0.5 * x)"));
        text += "  tanh (c + x)\n";
    }
    let last = (0..pieces).filter(|k| k % 20 == 19 || k + 1 == pieces).map(|k| format!("f{k} p p.scale"));
    text + &format!("let loss (p : params) : real = {}\n", last.collect::<Vec<_>>().join(" + "))
}

/// Values of the top level, each made from the one before, and one function that uses them all.
fn values(pieces: usize) -> String {
    let mut text = String::from("let c0 = 1.0\n");
    for k in 1..=pieces / 2 {
        text += &format!("let c{k} = 0.5 * sin c{} + {k}.0\n", k - 1);
    }
    text += "let loss (p : params) : real =\n  let s = p.scale in\n";
    for k in 1..=pieces / 2 {
        text += &format!("  let s = 0.5 * sin (s * c{k}) + p.shift in\n");
    }
    text + "  s\n"
}

/// One long array of numbers, some of them computed.
fn literal(pieces: usize) -> String {
    let items: Vec<String> = (0..pieces).map(|k| format!("{k}.0; {k}.5 * p.scale; p.shift; 0.25")).collect();
    format!(
        "let loss (p : params) : real =\n  let a = [|\n    {}\n  |] in\n  sum (map (fun x -> sin (x * p.shift)) a)\n",
        items.join(";\n    ")
    )
}

/// One long `match` on pairs of numbers.
fn tuples(pieces: usize) -> String {
    let mut text = String::from("let choose (p : params) (i : int) (j : int) : real =\n  match (i, j) with\n");
    for k in 0..pieces {
        text += &format!("  | ({}, {}) -> {k}.0 * sin (p.scale * {k}.5)\n", k / 7, k % 7);
    }
    text + "  | _ -> p.shift\n\nlet loss (p : params) : real = choose p p.count 1 + choose p 1 p.count\n"
}

/// Recursive functions all of which lead to each other.
fn mutual(pieces: usize) -> String {
    let mut text = String::new();
    for k in 0..pieces {
        let start = if k == 0 { "let rec" } else { "and" };
        text +=
            &format!("{start} g{k} (p : params) (n : int) (x : real) : real =\n  if n <= 0 then x * p.scale else\n");
        text += &format!("    sin (g{} p (n - 1) x) + p.shift * {k}.0\n", (k + 1) % pieces);
    }
    text + "let loss (p : params) : real = g0 p 5 0.3\n"
}

/// Local definitions inside each other, as arguments.
fn nested(pieces: usize) -> String {
    let mut text = String::from("let loss (p : params) : real =\n");
    for k in 0..pieces {
        text += &format!("  sin (\n  let v{k} = p.scale * {k}.0 in p.shift * v{k} + 0.5 * (\n");
    }
    text + "  p.scale\n  " + &"))".repeat(pieces) + "\n"
}

/// Records of many types, each with a function that makes it from the one before and one that reads it.
fn types(pieces: usize) -> String {
    let mut text = String::from("type r0 = { a0 : real; b0 : real; c0 : real[] }\n");
    text += "let make0 (p : params) : r0 = { a0 = p.scale; b0 = p.shift; c0 = p.weights }\n";
    for k in 1..=pieces {
        let before = k - 1;
        text += &format!("type r{k} = {{ a{k} : real; b{k} : real; c{k} : real[] }}\n");
        text += &format!("let size{k} (r : r{before}) : real = sin (r.a{before} * r.b{before})\n");
        text += &format!("let make{k} (r : r{before}) : r{k} =\n");
        text += &format!("  {{ a{k} = r.b{before}; b{k} = 0.5 * r.a{before} + size{k} r; c{k} = r.c{before} }}\n");
    }
    text += "let loss (p : params) : real =\n  let r = make0 p in\n";
    for k in 1..=pieces {
        text += &format!("  let r = make{k} r in\n");
    }
    text + &format!("  r.a{pieces} + r.c{pieces}.(0)\n")
}

fn text(kind: &Kind, lines: usize) -> String {
    let mut text = String::from("type params = { scale : real; shift : real; weights : real[]; count : int }\n\n");
    text += &(kind.text)((lines / kind.lines).max(1));
    text + "let gradient (p : params) : params = grad loss p\n"
}

/// CPU time of this thread, or time on the wall where that is not known.
fn now() -> Duration {
    let wall = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    gradus_runtime::clock::cpu_time().unwrap_or_else(wall)
}

/// The times to type, lower and compile a program and to call it once; and the length of its flow.
fn measure(text: &str) -> ([Duration; 4], usize) {
    let leaves = [Leaf::Real(0.5), Leaf::Real(0.1), Leaf::reals([0.3, -0.2, 0.7]), Leaf::Int(3)];
    let start = now();
    let program = program("latency.gr", text, Path::new("."));
    let typed = now();
    let (module, ids, _) = lower(&program, &[entry(&program, "gradient")]).expect("is compiled");
    let lowered = now();
    // On one thread, whose time is measured.
    let options = Options { threads: Some(1), ..Backend::Cranelift.into() };
    let code = Executable::new(&module, &ids, &options).expect("compiles");
    let made = now();
    code.call(0, &leaves).expect("runs");
    let called = now();
    let statements = gradus_native::flow::print::module(&module).lines().count();
    ([typed - start, lowered - typed, made - lowered, called - made], statements)
}

/// `latency [KIND...] [LINES]`: some kinds only, up to so many lines.
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let most = args.iter().find_map(|a| a.parse().ok()).unwrap_or(1600);
    let wanted: Vec<&String> = args.iter().filter(|a| a.parse::<usize>().is_err()).collect();
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    println!("milliseconds; the factor is the total over that of the line before, for a program of twice the length");
    for kind in KINDS.iter().filter(|k| wanted.is_empty() || wanted.iter().any(|w| *w == k.name)) {
        println!(
            "\n{:<10} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>11}",
            kind.name, "lines", "front", "lower", "code", "call", "total", "factor", "statements"
        );
        let mut before: Option<Duration> = None;
        let lengths = std::iter::successors(Some(50), |n| Some(n * 2)).take_while(|n| *n <= most);
        for lines in lengths {
            let text = text(kind, lines);
            // The least of several, since other work disturbs.
            let runs: Vec<_> = (0..3).map(|_| measure(&text)).collect();
            let least = |part: usize| runs.iter().map(|(times, _)| times[part]).min().unwrap_or_default();
            let times = [0, 1, 2, 3].map(least);
            let total: Duration = times.iter().sum();
            let [front, lower, code, call] = times.map(ms);
            let factor = before.map_or(String::new(), |b| format!("{:.2}", total.as_secs_f64() / b.as_secs_f64()));
            let (shown, statements) = (text.lines().count(), runs[0].1);
            let total_ms = ms(total);
            println!("{:<10} {shown:>6} {front:>9.2} {lower:>9.2} {code:>9.2} {call:>9.2} {total_ms:>9.2} {factor:>7} {statements:>11}", "");
            before = Some(total);
        }
    }
}
