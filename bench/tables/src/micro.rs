//! The classical micro-benchmarks of forward mode (C section 4 and the work that it builds on): what a gradient costs over the function, in
//! evaluator steps for each mode, and in time for compiled code.

use gradus::{Argument, Backend, Error, Evaluator, Input, Mode, Options, Program, Repeat, Value};

/// `input n` makes an input; `f` is the function and `g` its gradient, both of all inputs.
struct Workload {
    name: &'static str,
    n: usize,
    text: &'static str,
}

const WORKLOADS: [Workload; 9] = [
    Workload {
        name: "vector add",
        n: 100,
        text: "let input (n : int) = (build n (fun i -> real i / 7.0), build n (fun i -> sin (real i)))
let f ((a, b) : real[] * real[]) : real = sum (map2 (fun x y -> x + y) a b)
let g ((a, b) : real[] * real[]) : real[] = grad (fun x -> f (x, b)) a",
    },
    Workload {
        name: "dot",
        n: 100,
        text: "let input (n : int) = (build n (fun i -> real i / 7.0), build n (fun i -> sin (real i)))
let f ((a, b) : real[] * real[]) : real = dot a b
let g ((a, b) : real[] * real[]) : real[] = grad (fun x -> f (x, b)) a",
    },
    Workload {
        name: "scale",
        n: 100,
        text: "let input (n : int) = (0.7, build n (fun i -> sin (real i)))
let f ((k, a) : real * real[]) : real = sum (map (fun x -> k * x) a)
let g ((k, a) : real * real[]) : real[] = grad (fun x -> f (k, x)) a",
    },
    Workload {
        name: "outer product",
        n: 30,
        text: "let input (n : int) = (build n (fun i -> real i / 7.0), build n (fun i -> sin (real i)))
let f ((a, b) : real[] * real[]) : real = sum (map (fun x -> sum (map (fun y -> x * y) b)) a)
let g ((a, b) : real[] * real[]) : real[] = grad (fun x -> f (x, b)) a",
    },
    Workload {
        name: "matrix-vector",
        n: 30,
        text: "let input (n : int) = (build n (fun i -> build n (fun j -> real (i - j) / 7.0)), build n (fun i -> sin (real i)))
let f ((m, x) : real[][] * real[]) : real = sum (matvec m x)
let g ((m, x) : real[][] * real[]) : real[] = grad (fun y -> f (m, y)) x",
    },
    Workload {
        name: "matrix-matrix",
        n: 6,
        text: "let input (n : int) = (build n (fun i -> build n (fun j -> real (i - j) / 7.0)), build n (fun i -> build n (fun j -> sin (real (i * j)))))
let f ((a, b) : real[][] * real[][]) : real = sum (map sum (matmul a b))
let g ((a, b) : real[][] * real[][]) : real[][] = grad (fun x -> f (x, b)) a",
    },
    Workload {
        name: "non-negative matrix factorisation",
        n: 8,
        text: "let input (n : int) = (build n (fun i -> build n (fun j -> real (i + j) / 7.0)), (build n (fun i -> 0.3 + real i), build n (fun j -> 0.5 + real j)))
let f ((m, (u, v)) : real[][] * (real[] * real[])) : real =
  ifold (length u) (fun i t -> t + ifold (length v) (fun j s -> s + (m.(i).(j) - u.(i) * v.(j)) ^ 2) 0.0) 0.0
let g ((m, (u, v)) : real[][] * (real[] * real[])) : real[] = grad (fun x -> f (m, (x, v))) u",
    },
    Workload {
        name: "k-means",
        n: 20,
        text: "let input (n : int) = (build n (fun i -> sin (real i)), build 4 (fun k -> real k / 4.0))
let f ((points, means) : real[] * real[]) : real =
  ifold (length points) (fun i t -> t + ifold (length means) (fun k best -> minimum best ((points.(i) - means.(k)) ^ 2)) 1e9) 0.0
let g ((points, means) : real[] * real[]) : real[] = grad (fun x -> f (points, x)) means",
    },
    Workload {
        name: "bundle adjustment projection",
        n: 11,
        text: "let input (n : int) = (build n (fun i -> 0.1 + real i / 10.0), build 3 (fun i -> 1.0 + real i))
let cross (a, b, c) (x, y, z) = (b * z - c * y, c * x - a * z, a * y - b * x)
let f ((cam, pt) : real[] * real[]) : real =
  let r = (cam.(0), cam.(1), cam.(2)) in
  let x = (pt.(0) - cam.(3), pt.(1) - cam.(4), pt.(2) - cam.(5)) in
  let (a, b, c) = r in
  let (x0, x1, x2) = x in
  let theta2 = a * a + b * b + c * c in
  let theta = sqrt theta2 in
  let (w0, w1, w2) = (a / theta, b / theta, c / theta) in
  let (c0, c1, c2) = cross (w0, w1, w2) (x0, x1, x2) in
  let tmp = (w0 * x0 + w1 * x1 + w2 * x2) * (1.0 - cos theta) in
  let (p0, p1, p2) = (x0 * cos theta + c0 * sin theta + w0 * tmp, x1 * cos theta + c1 * sin theta + w1 * tmp, x2 * cos theta + c2 * sin theta + w2 * tmp) in
  let (u, v) = (p0 / p2, p1 / p2) in
  let rr = u * u + v * v in
  let l = 1.0 + cam.(9) * rr + cam.(10) * rr * rr in
  (u * l * cam.(6) + cam.(7)) + (v * l * cam.(6) + cam.(8))
let g ((cam, pt) : real[] * real[]) : real[] = grad (fun x -> f (x, pt)) cam",
    },
];

/// Evaluator steps of one call.
fn steps(program: &Program, name: &str, input: &Value) -> Result<u64, Error> {
    let function = program.function(name)?;
    let mut evaluator = Evaluator::new(program)?;
    let argument = Argument::Value(input);
    let inputs: Vec<Input> = function.params().iter().map(|ty| Input { argument: &argument, ty }).collect();
    evaluator.apply(function.definition(), &inputs, function.result())?;
    Ok(evaluator.report().steps)
}

/// The gradient as `transform --itself` prints it: a program like any other.
fn printed(program: &Program, mode: Mode, optimise: bool) -> Result<Program, Error> {
    let options = Options { mode: Some(mode), optimise, reassociate: optimise, ..Options::default() };
    Program::from_source("printed", &program.clone().with_options(options).function("g")?.expanded()?)
}

/// Seconds of one call of compiled code.
fn seconds(program: &Program, name: &str, input: &Value) -> Result<f64, Error> {
    let program = program.clone().with_options(Options { backend: Backend::C, threads: Some(1), ..Options::default() });
    let repeat = Repeat { min_runs: 200, min_seconds: 0.02 };
    Ok(program.function(name)?.measure(&[Argument::Value(input)], repeat)?.least().as_secs_f64())
}

/// What the gradient costs over the function: its steps and, where it compiles, its time.
struct Ratio {
    steps: f64,
    time: Option<f64>,
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.time {
            Some(time) => write!(f, "{:.2} / {time:.2}", self.steps),
            None => write!(f, "{:.2} / not compiled", self.steps),
        }
    }
}

pub fn micro() -> Result<(), Error> {
    println!("| function | n | steps of f | n-fold forward | optimised forward | `vector` | `monadic` | native |");
    println!("|---|---|---|---|---|---|---|---|");
    for workload in &WORKLOADS {
        let program = Program::from_source(workload.name, workload.text)?;
        let input = program.function("input")?.call(&[Value::Int(workload.n as i64)])?;
        let primal = steps(&program, "f", &input)?;
        let primal_time = seconds(&program, "f", &input)?;
        let ratio = |mode: Mode, optimise: bool| -> Result<Ratio, Error> {
            let gradient = printed(&program, mode, optimise)?;
            let time = seconds(&gradient, "g", &input).ok().map(|time| time / primal_time);
            let evaluated = match optimise {
                true => gradient,
                false => program.clone().with_options(Options { mode: Some(mode), ..Options::default() }),
            };
            Ok(Ratio { steps: steps(&evaluated, "g", &input)? as f64 / primal as f64, time })
        };
        println!(
            "| {} | {} | {primal} | {} | {} | {} | {} | {:.2} |",
            workload.name,
            workload.n,
            ratio(Mode::Forward, false)?,
            ratio(Mode::Forward, true)?,
            ratio(Mode::Vector, false)?,
            ratio(Mode::Monadic, false)?,
            seconds(&program, "g", &input)? / primal_time,
        );
    }
    Ok(())
}
