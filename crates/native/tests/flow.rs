//! flow as text: printing and reading are inverse, the checker finds what is wrong, and the C backend computes what the text says.

#[path = "support/text.rs"]
mod text;

use gradus_native::flow::{check, print, read, FunctionId};
use gradus_native::{Backend, Executable, Leaf, RunError};
use text::compile;

const DOT: &str = "\
fun dot(a: real[1], b: real[1]) -> (real) {
  n = dim a 0
  m = dim b 0
  ok = eq n m
  check ok shape
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

const MIXED: &str = "\
fun f(x: real, n: int) -> (real, real[1], real[2], bool) {
  last, all, rows = for i < n with c: real = x {
    k = realofint i
    next = add c k
    row = fill 3 := c
    changed = set row 1 := k
    yield next
    collect c changed
  }
  big = gt last 10.0
  y = if big {
    half = div last 2.0
    yield half
  } else {
    yield last
  }
  stop, steps = while with z: real = y {
    w = mul z 0.5
    go = gt w 1.0
    yield go w
    collect w
  }
  m = dim steps 0
  r = call g stop m
  return r all rows big
}

fun g(x: real, n: int) -> (real) {
  end = le n 0
  r = if end {
    yield x
  } else {
    m = isub n 1
    y = call g x m
    z = add y 1.0
    yield z
  }
  return r
}
";

#[test]
fn text_round_trips() {
    for text in [DOT, MIXED] {
        let module = read::module(text).expect("reads");
        assert_eq!(print::module(&module), text);
    }
}

#[test]
fn checker_refuses() {
    let broken = [
        ("  y = add x 1\n  return y", "`add` does not take these operands"),
        ("  y = neg x\n  y = neg x\n  return y", ""),
        ("  s = open x\n  return x", "s is never frozen"),
        ("  s = open x\n  t = freeze s\n  accumulate s += x\n  return t", "s is no accumulator in scope"),
        ("  n = dim x 0\n  return x", "x is no array"),
        ("  return x x", "results of the function: (real, real) instead of (real)"),
        (
            "  c = lt x 0.0\n  y = if c {\n    z = neg x\n    yield z\n  } else {\n    yield z\n  }\n  return y",
            "z is not in scope",
        ),
    ];
    for (body, expected) in broken {
        let text = format!("fun f(x: real) -> (real) {{\n{body}\n}}\n");
        let found = match read::module(&text) {
            Err(error) => error.message,
            Ok(module) => check::module(&module).err().unwrap_or_default(),
        };
        assert!(found.contains(expected), "{text}: {found}");
    }
}

#[test]
fn backends_compute() {
    for backend in Backend::ALL {
        let dot = compile(DOT, backend);
        let n = 1003;
        let a: Vec<f64> = (0..n).map(f64::from).collect();
        let b = vec![2.0; n as usize];
        // The sum of 0 to 1002 is 502503.
        assert_eq!(dot.call(0, &[Leaf::reals(a.clone()), Leaf::reals(b)]), Ok(vec![Leaf::Real(1005006.0)]));
        let short = dot.call(0, &[Leaf::reals(a), Leaf::reals([1.0])]);
        assert!(matches!(short, Err(RunError::Failed(_))));
        // After a failure it works as before.
        assert_eq!(dot.call(0, &[Leaf::reals([3.0]), Leaf::reals([4.0])]), Ok(vec![Leaf::Real(12.0)]));

        let mixed = compile(MIXED, backend);
        // x = 1: c is 1, 1, 2, 4 and ends at 7; halved until at most 1: 3.5, 1.75, 0.875 (three steps), plus 3.
        let rows = vec![1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 3.0, 4.0];
        let expected =
            vec![Leaf::Real(3.875), Leaf::reals([1.0, 1.0, 2.0, 4.0]), Leaf::matrix(4, 3, rows), Leaf::Bool(false)];
        assert_eq!(mixed.call(0, &[Leaf::Real(1.0), Leaf::Int(4)]), Ok(expected));
        // No iterations: 16 is halved once at once (big), then 8 -> 4, 2, 1 (three steps).
        let expected = vec![Leaf::Real(4.0), Leaf::reals([]), Leaf::matrix(0, 0, []), Leaf::Bool(true)];
        assert_eq!(mixed.call(0, &[Leaf::Real(16.0), Leaf::Int(0)]), Ok(expected));
    }
}

#[test]
fn cells_on_the_heap() {
    // Makes the list of 0 to n - 1, adds it up, and lets it go: far too deep for recursion in the runtime.
    let text = "\
shape 0 list = () | (real, box0)
fun sum(l: box0) -> (real) {
  total, rest = while with s: real = 0.0, r: box0 = l {
    t = tag r
    more = eq t 1
    s2, r2 = if more {
      x, tail = unpack r 1
      y = add s x
      yield y tail
    } else {
      yield s r
    }
    yield more s2 r2
  }
  return total
}
fun f(n: int) -> (real, int) {
  empty = cell box0 0
  l = for i < n with r: box0 = empty {
    x = real i
    c = cell box0 1 x r
    yield c
  }
  s = call sum l
  lists = fill n := l
  changed = set lists 0 := empty
  first = get changed 0
  t = tag first
  return s t
}
";
    let text = text.replace("real i", "realofint i");
    let module = read::module(&text).expect("reads");
    check::module(&module).expect("is well-formed");
    assert_eq!(print::module(&read::module(&print::module(&module)).expect("reads back")), print::module(&module));
    for backend in Backend::ALL {
        let code = Executable::new(&module, &[FunctionId(1)], &backend.into()).expect("compiles");
        for _ in 0..3 {
            let found = code.call(0, &[Leaf::Int(1_000_000)]).expect("runs");
            assert_eq!(found, [Leaf::Real(1e6 * (1e6 - 1.0) / 2.0), Leaf::Int(0)]);
        }
    }
}

/// A sum that a function is handed and a loop adds to, in a function that calls itself so that it stays one.
const HANDED: &str = "\
fun f(a: real[1]) -> (real) {
  s = open 0.5
  call add_all s a 2
  t = freeze s
  return t
}

fun add_all(s: real!, a: real[1], n: int) -> () {
  more = gt n 0
  if more {
    m = isub n 1
    len = dim a 0
    for i < len {
      x = get a i
      accumulate s += x
    }
    call add_all s a m
  } else {
  }
  return
}
";

#[test]
fn sums_that_are_handed_on() {
    // 0.5 + 2 (0 + 1 + ... + 19)
    let a: Vec<f64> = (0..20).map(f64::from).collect();
    for backend in Backend::ALL {
        assert_eq!(compile(HANDED, backend).call(0, &[Leaf::reals(a.clone())]), Ok(vec![Leaf::Real(380.5)]));
    }
}

/// A loop with a function that is faster in lanes, and one whose first iteration is different, both of which may have nothing to do.
const NOTHING_TO_DO: &str = "\
fun f(a: real[1], n: int) -> (real, real[1]) {
  s = open 0.5
  for i < n {
    j = iadd i 1
    x = get a j
    y = tanh x
    accumulate s += y
  }
  t = freeze s
  len = dim a 0
  b = for k < len {
    first = eq k 0
    z = if first {
      yield 1.0
    } else {
      x = get a k
      y = tanh x
      yield y
    }
    collect z
  }
  return t b
}
";

#[test]
fn loops_with_nothing_to_do() {
    for backend in Backend::ALL {
        let code = compile(NOTHING_TO_DO, backend);
        for n in [-1, 0, -7] {
            let found = code.call(0, &[Leaf::reals([]), Leaf::Int(n)]);
            assert_eq!(found, Ok(vec![Leaf::Real(0.5), Leaf::reals([])]), "{n} iterations on {backend:?}");
        }
        let found = code.call(0, &[Leaf::reals([0.0, 0.0]), Leaf::Int(1)]);
        assert_eq!(found, Ok(vec![Leaf::Real(0.5), Leaf::reals([1.0, 0.0])]));
    }
}
