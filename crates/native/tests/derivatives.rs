//! Derivatives of flow programs against closed forms and central differences, first and second order, in both modes.

use gradus_native::adjoint::{self, Adjoints};
use gradus_native::flow::{check, read, FunctionId, Module};
use gradus_native::tangent::{self, Tangents};
use gradus_native::{Backend, Executable, Leaf};

/// The reals of leaves in order.
fn reals(leaves: &[Leaf]) -> Vec<f64> {
    leaves
        .iter()
        .flat_map(|l| match l {
            Leaf::Real(x) => vec![*x],
            Leaf::Reals { data, .. } => data.clone(),
            Leaf::Int(_) | Leaf::Bool(_) | Leaf::Ints { .. } | Leaf::Bools { .. } | Leaf::Boxes(_) => Vec::new(),
        })
        .collect()
}

/// The leaves with their reals replaced in order.
fn with_reals(leaves: &[Leaf], values: &[f64]) -> Vec<Leaf> {
    let mut values = values.iter().copied();
    let mut next = || values.next().expect("as many reals as before");
    leaves
        .iter()
        .map(|l| match l {
            Leaf::Real(_) => Leaf::Real(next()),
            Leaf::Reals { dims, data } => {
                Leaf::Reals { dims: dims.clone(), data: data.iter().map(|_| next()).collect() }
            }
            other => other.clone(),
        })
        .collect()
}

fn only_reals(leaves: &[Leaf]) -> Vec<Leaf> {
    leaves.iter().filter(|l| l.ty().is_real()).cloned().collect()
}

fn close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= tolerance * scale, "{what}: {found:?} instead of {expected:?}");
    }
}

fn checked(module: &Module) {
    if let Err(error) = check::module(module) {
        panic!("{error}\n{}", gradus_native::flow::print::module(module));
    }
}

/// Numbers that look random, between -1 and 1.
fn direction(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 7919 + seed * 104729) as f64 * 0.618).sin()).collect()
}

/// Compares jvp with central differences, vjp with jvp (dt . F ds = R dt . ds), and all four second-order
/// combinations with each other and with central differences of the first order.
fn all_agree(text: &str, at: &[Leaf]) {
    let mut module = read::module(text).expect("reads");
    checked(&module);
    let (mut adjoints, mut tangents) = (Adjoints::default(), Tangents::default());
    let f = FunctionId(0);
    let jvp = tangent::of_function(&mut module, &mut tangents, f);
    let vjp = adjoint::of_function(&mut module, &mut adjoints, f);
    let jvp_jvp = tangent::of_function(&mut module, &mut tangents, jvp);
    let jvp_vjp = tangent::of_function(&mut module, &mut tangents, vjp);
    let vjp_jvp = adjoint::of_function(&mut module, &mut adjoints, jvp);
    let vjp_vjp = adjoint::of_function(&mut module, &mut adjoints, vjp);
    adjoint::finish(&mut module, &mut adjoints, &mut tangents);
    checked(&module);
    for id in 0..module.functions.len() {
        gradus_native::simplify::function(&mut module, FunctionId(id));
    }
    checked(&module);
    for backend in Backend::ALL {
        let entries = [f, jvp, vjp, jvp_jvp, jvp_vjp, vjp_jvp, vjp_vjp];
        compiled_agree(&Executable::new(&module, &entries, &backend.into()).expect("compiles"), at);
    }
}

/// Of the entries `f`, jvp, vjp, and the second derivatives.
fn compiled_agree(code: &Executable, at: &[Leaf]) {
    let call = |entry: usize, args: &[Leaf]| match code.call(entry, args) {
        Ok(leaves) => leaves,
        Err(error) => panic!("entry {entry}: {error:?}"),
    };

    let x = reals(at);
    let values = only_reals(&call(0, at));
    let outputs = reals(&values).len();
    let dx = direction(x.len(), 1);
    let dy = direction(outputs, 2);
    let plus = |x: &[f64], d: &[f64], h: f64| -> Vec<f64> { x.iter().zip(d).map(|(x, d)| x + h * d).collect() };
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let h = 1e-5;
    let central = |f: &dyn Fn(&[f64]) -> Vec<f64>, x: &[f64], d: &[f64]| -> Vec<f64> {
        let (up, down) = (f(&plus(x, d, h)), f(&plus(x, d, -h)));
        up.iter().zip(down).map(|(u, d)| (u - d) / (2.0 * h)).collect()
    };

    // First order.
    let inputs = only_reals(at);
    let jvp_at = |x: &[f64], dx: &[f64]| -> Vec<f64> {
        let args = [with_reals(at, x), with_reals(&inputs, dx)].concat();
        reals(&only_reals(&call(1, &args)))[outputs..].to_vec()
    };
    let vjp_at = |x: &[f64], dy: &[f64]| -> Vec<f64> {
        let args = [with_reals(at, x), with_reals(&values, dy)].concat();
        reals(&only_reals(&call(2, &args)))[outputs..].to_vec()
    };
    let f_at = |x: &[f64]| reals(&call(0, &with_reals(at, x)));
    let forward = jvp_at(&x, &dx);
    let reverse = vjp_at(&x, &dy);
    close(&forward, &central(&f_at, &x, &dx), 1e-8, "jvp against differences");
    close(&[dot(&reverse, &dx)], &[dot(&dy, &forward)], 1e-13, "vjp against jvp");

    // Second order: d/dh of jvp(x + h v, dx) and of vjp(x + h v, dy).
    let v = direction(x.len(), 3);
    let second_forward = central(&|x| jvp_at(x, &dx), &x, &v);
    let second_reverse = central(&|x| vjp_at(x, &dy), &x, &v);
    let zero_x = vec![0.0; x.len()];
    let zero_y = vec![0.0; outputs];
    // jvp of jvp: parameters x, dx, then their tangents v, 0; results y, y', then their tangents.
    let args = [at.to_vec(), with_reals(&inputs, &dx), with_reals(&inputs, &v), with_reals(&inputs, &zero_x)].concat();
    let jj = reals(&only_reals(&call(3, &args)))[3 * outputs..].to_vec();
    close(&jj, &second_forward, 1e-7, "forward over forward");
    let args = [at.to_vec(), with_reals(&values, &dy), with_reals(&inputs, &v), with_reals(&values, &zero_y)].concat();
    let jv = reals(&only_reals(&call(4, &args)))[2 * outputs + x.len()..].to_vec();
    close(&jv, &second_reverse, 1e-7, "forward over reverse");
    // vjp of jvp: adjoint dy of the tangent gives, in x, the gradient of dy . J(x) dx.
    let args = [at.to_vec(), with_reals(&inputs, &dx), with_reals(&values, &zero_y), with_reals(&values, &dy)].concat();
    let vj = reals(&only_reals(&call(5, &args)))[2 * outputs..2 * outputs + x.len()].to_vec();
    close(&[dot(&vj, &v)], &[dot(&dy, &jj)], 1e-13, "reverse over forward");
    // vjp of vjp: adjoint v of the gradient gives, in x, the gradient of v . J(x)^T dy.
    let args = [at.to_vec(), with_reals(&values, &dy), with_reals(&values, &zero_y), with_reals(&inputs, &v)].concat();
    let vv = reals(&only_reals(&call(6, &args)))[outputs + x.len()..outputs + 2 * x.len()].to_vec();
    close(&vv, &jv, 1e-12, "reverse over reverse");
}

#[test]
fn straight_line() {
    all_agree(
        "\
fun f(x: real, y: real) -> (real, real) {
  a = mul x y
  b = sin a
  c = div b y
  d = exp c
  e = atan2 d x
  g = powi e 3
  h = pow y 2.5
  k = log h
  l = sub g k
  return l c
}
",
        &[Leaf::Real(0.7), Leaf::Real(1.3)],
    );
}

#[test]
fn branches() {
    let text = "\
fun f(x: real, a: real[1]) -> (real, real[1]) {
  c = lt x 1.0
  y, b = if c {
    e = get a 1
    p = mul e x
    q = mul p p
    n = set a 0 := q
    yield q n
  } else {
    p = exp x
    yield p a
  }
  s = select c y x
  z = mul y s
  return z b
}
";
    for x in [0.5, 1.5] {
        all_agree(text, &[Leaf::Real(x), Leaf::reals([2.0, 3.0, 4.0])]);
    }
}

#[test]
fn parallel_loops_and_sums() {
    all_agree(
        "\
fun f(a: real[2], x: real) -> (real, real[1]) {
  n = dim a 0
  m = dim a 1
  total = open x
  rows = for i < n {
    s = open 1.0
    for j < m {
      e = get a i j
      y = mul e x
      z = sin y
      accumulate s += z
      w = mul z e
      accumulate total += w
    }
    t = freeze s
    u = mul t t
    collect u
  }
  v = freeze total
  return v rows
}
",
        &[Leaf::matrix(3, 4, direction(12, 9)), Leaf::Real(0.8)],
    );
}

/// Sums of many terms are kept for the way back, in one array for all loops around; those of few are added up again.
#[test]
fn sums_in_loops() {
    let text = "\
fun f(w: real[2], x: real[2], b: real) -> (real, real[1]) {
  n = dim w 0
  m = dim w 1
  points = dim x 0
  rows = for i < points {
    all = open 0.0
    for j < n {
      s = open b
      for k < m {
        e = get w j k
        y = get x i k
        p = mul e y
        accumulate s += p
      }
      t = freeze s
      u = add t b
      v = tanh u
      short = open 0.0
      upto = iadd j 1
      for l < upto {
        q = get w j l
        r = mul q v
        accumulate short += r
      }
      z = freeze short
      z2 = mul z z
      accumulate all += z2
    }
    total = freeze all
    c = sin total
    collect c
  }
  sum = open 0.0
  for i2 < points {
    d = get rows i2
    d2 = mul d d
    accumulate sum += d2
  }
  result = freeze sum
  return result rows
}
";
    for (points, terms) in [(4, 9), (4, 5), (0, 9), (1, 12)] {
        let (w, x) = (direction(3 * terms, 5), direction(points * terms, 6));
        all_agree(text, &[Leaf::matrix(3, terms, w), Leaf::matrix(points, terms, x), Leaf::Real(0.3)]);
    }
    let mut module = read::module(text).expect("reads");
    let vjp = adjoint::of_function(&mut module, &mut Adjoints::default(), FunctionId(0));
    let text = gradus_native::flow::print::function(module.function(vjp), &module);
    // That of `m` terms, and the one whose number of terms changes; the loop that adds up `n` terms collects what it adds up.
    assert_eq!(text.matches("_saved = open").count(), 2, "{text}");
    assert!(text.contains(", total_saved = for"), "{text}");
}

#[test]
fn sequential_loops() {
    all_agree(
        "\
fun f(x: real, a: real[1], k: int) -> (real, real[1], real[2]) {
  n = dim a 0
  last, state, all, rows = for i < k with c: real = x, b: real[1] = a {
    j = imod i n
    e = get b j
    p = mul e c
    q = sin p
    r = add q c
    b1 = set b j := r
    yield r b1
    collect p b
  }
  s = open 0.0
  for i < n {
    inner = for j < i with d: real = last {
      e = get a j
      g = mul d e
      h = cos g
      yield h
    }
    accumulate s += inner
  }
  t = freeze s
  row = get rows 1
  u = get row 0
  y = mul t u
  z = get all 2
  w = add y z
  return w state rows
}
",
        &[Leaf::Real(0.4), Leaf::reals([0.3, 1.1, -0.6]), Leaf::Int(5)],
    );
}

/// Arrays that get longer, and rows that are not there: what each iteration begins with fits in no flat array.
#[test]
fn state_that_changes_its_lengths() {
    all_agree(
        "\
fun f(x: real, y: real, k: int) -> (real[1], real) {
  l = array real[1] of x y
  r0 = fill 0 0 := 0.0
  a, r = for i < k with b: real[1] = l, rows: real[2] = r0 {
    n = dim b 0
    m = iadd n 1
    c = for j < m {
      h = idiv j 2
      e = get b h
      p = mul e x
      q = sin p
      collect q
    }
    d = for j < 2 {
      collect c
    }
    yield c d
  }
  u = get r 1 3
  v = get a 2
  w = mul u v
  return a w
}
",
        &[Leaf::Real(0.4), Leaf::Real(1.7), Leaf::Int(3)],
    );
}

#[test]
fn while_loops() {
    all_agree(
        "\
fun f(x: real, y: real) -> (real, real) {
  a, b, trace = while with u: real = x, v: real = y {
    p = mul u v
    q = sqrt p
    r = add u v
    s = mul r 0.5
    d = sub s q
    go = gt d 0.001
    yield go s q
    collect d
  }
  t = get trace 0
  w = mul a t
  return w b
}
",
        &[Leaf::Real(1.0), Leaf::Real(7.0)],
    );
}

#[test]
fn recursion_and_arrays_in_calls() {
    all_agree(
        "\
fun f(x: real, a: real[1]) -> (real) {
  n = dim a 0
  y = call g x a n
  z = mul y x
  return z
}

fun g(x: real, a: real[1], n: int) -> (real) {
  end = le n 0
  r = if end {
    yield x
  } else {
    m = isub n 1
    e = get a m
    p = mul e x
    s = sin p
    y = call g s a m
    h = mul x 0.5
    z = call g h a m
    t = mul y z
    u = add t e
    yield u
  }
  return r
}
",
        &[Leaf::Real(0.9), Leaf::reals([0.5, 1.5, -0.7, 0.2])],
    );
}

#[test]
fn fills_and_literals() {
    all_agree(
        "\
fun f(x: real, y: real) -> (real[2], real) {
  p = mul x y
  a = fill 2 3 := p
  l = array real[1] of x p 2.0
  m = array real[2] of l l
  b = set a 1 := l
  r = get b 0
  s = get r 1
  e = get m 1 2
  t = mul s e
  o = open a
  accumulate o 1 2 += t
  accumulate o 0 += l
  accumulate o += b
  w = freeze o
  u = get w 0 0
  v = sin u
  return w v
}
",
        &[Leaf::Real(0.4), Leaf::Real(1.7)],
    );
}

/// The adjoint of a sum of products, as text: one loop that reads both arrays once and adds to both adjoints in place.
#[test]
fn adjoint_of_dot() {
    let text = "\
fun dot(a: real[1], b: real[1]) -> (real) {
  n = dim a 0
  s = open 0.0
  for i < n {
    x = get a i
    y = get b i
    p = mul x y
    accumulate s += p
  }
  t = freeze s
  return t
}
";
    let mut module = read::module(text).expect("reads");
    let vjp = adjoint::of_function(&mut module, &mut Adjoints::default(), FunctionId(0));
    module.functions[vjp.0].body.results.remove(0);
    module.functions[vjp.0].results.remove(0);
    gradus_native::simplify::function(&mut module, vjp);
    checked(&module);
    let expected = "\
fun dot_vjp(a: real[1], b: real[1], result_adj: real) -> (real[1], real[1]) {
  n = dim a 0
  n.2 = dim b 0
  a.2 = fill n.2 := 0.0
  b_adj = open a.2
  a_adj = for k < n {
    x = get a k
    y = get b k
    t = mul y result_adj
    t.2 = mul x result_adj
    accumulate b_adj k += t.2
    collect t
  }
  b_adj.2 = freeze b_adj
  return a_adj b_adj.2
}
";
    assert_eq!(gradus_native::flow::print::function(module.function(vjp), &module), expected);
}
