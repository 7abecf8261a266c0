//! Arrays that begin with all of another one, as flow that is written as text.

#[path = "support/text.rs"]
mod text;

use gradus_native::{Backend, Leaf, RunError};
use text::{compile, simplified};

/// What an array of `count` elements has where the first `size` are read from `a`, and then from `b`.
const JOINED: &str = "\
fun f(a: real[1], b: real[1]) -> (real[1]) {
  n = dim a 0
  m = dim b 0
  SIZES
  c = for i < count {
    first = lt i size
    e = if first {
      READ
    } else {
      j = isub i size
      y = get b j
      yield y
    }
    collect e
  }
  return c
}
";

const ALL: &str = "size = iadd n 0\n count = iadd n m";
const IN_ORDER: &str = "x = get a i\n yield x";

fn joined(sizes: &str, read: &str) -> String {
    JOINED.replace("SIZES", sizes).replace("READ", read)
}

/// The result on each backend, as the program is written and simplified.
fn results(text: &str, args: &[Leaf]) -> Vec<Result<Vec<Leaf>, RunError>> {
    let each = |text: String| Backend::ALL.map(|backend| compile(&text, backend).call(0, args));
    [text.to_string(), simplified(text)].into_iter().flat_map(each).collect()
}

fn numbers(from: usize, count: usize) -> Vec<f64> {
    (from..from + count).map(|i| i as f64).collect()
}

#[test]
fn what_begins_with_all_of_an_array_extends_it() {
    let text = joined(ALL, IN_ORDER);
    assert!(simplified(&text).contains("extend a b"), "{}", simplified(&text));
    for (n, m) in [(0, 0), (0, 3), (3, 0), (1, 1), (40, 7), (7, 40), (3000, 5000)] {
        let expected = Ok(vec![Leaf::reals(numbers(0, n + m))]);
        for found in results(&text, &[Leaf::reals(numbers(0, n)), Leaf::reals(numbers(n, m))]) {
            assert_eq!(found, expected, "{n} and {m}");
        }
    }
}

#[test]
fn what_comes_behind_may_be_computed() {
    let text = joined("size = iadd n 0\n count = imul 3 n", IN_ORDER)
        .replace("yield y", "k = realofint i\n z = mul y k\n yield z");
    let after = simplified(&text);
    assert!(after.contains("extend a"), "{after}");
    for n in [0, 1, 5, 50] {
        let (a, b) = (numbers(1, n), numbers(2, 2 * n));
        let behind = b.iter().zip(n..).map(|(y, i)| y * i as f64);
        let expected = Ok(vec![Leaf::reals(a.iter().copied().chain(behind).collect::<Vec<_>>())]);
        for found in results(&text, &[Leaf::reals(a), Leaf::reals(b)]) {
            assert_eq!(found, expected, "{n}");
        }
    }
}

#[test]
fn what_fails_behind_still_fails() {
    let text = joined(ALL, IN_ORDER).replace("yield y", "few = lt y 5.0\n check few size\n yield y");
    assert!(simplified(&text).contains("extend a"));
    for found in results(&text, &[Leaf::reals(numbers(9, 3)), Leaf::reals([1.0, 7.0])]) {
        assert!(matches!(found, Err(RunError::Failed(site)) if format!("{:?}", site.failure) == "Size"));
    }
}

/// The first elements of the result, for `n` of the array that it reads.
type Beginning = fn(usize) -> Vec<f64>;

#[test]
fn a_part_of_an_array_or_another_order_is_no_beginning() {
    let others: [(&str, &str, Beginning); 4] = [
        ("size = isub n 1\n count = iadd size m", IN_ORDER, |n| numbers(0, n - 1)),
        (ALL, "last = isub n 1\n k = isub last i\n x = get a k\n yield x", |n| {
            numbers(0, n).into_iter().rev().collect()
        }),
        (ALL, "x = get a i\n z = neg x\n yield z", |n| numbers(0, n).iter().map(|x| -x).collect()),
        (ALL, "k = idiv i 2\n x = get a k\n yield x", |n| numbers(0, n).iter().map(|x| (x / 2.0).floor()).collect()),
    ];
    for (sizes, read, beginning) in others {
        let text = joined(sizes, read);
        assert!(!simplified(&text).contains("extend"), "{}", simplified(&text));
        for (n, m) in [(1, 1), (6, 4), (33, 50)] {
            let expected = Ok(vec![Leaf::reals([beginning(n), numbers(5, m)].concat())]);
            for found in results(&text, &[Leaf::reals(numbers(0, n)), Leaf::reals(numbers(5, m))]) {
                assert_eq!(found, expected, "{text}");
            }
        }
    }
}

#[test]
fn a_check_that_may_not_hold_is_made() {
    let text = joined(ALL, "x = get a i\n low = lt x 10.0\n check low rows\n yield x");
    assert!(!simplified(&text).contains("extend"));
    for found in results(&text, &[Leaf::reals(numbers(9, 3)), Leaf::reals([1.0])]) {
        assert!(matches!(found, Err(RunError::Failed(site)) if format!("{:?}", site.failure) == "Rows"));
    }
}

/// Blocks of two rows by three, one after another, and then numbers. `THERE` is checked of the place in them.
const BLOCKS: &str = "\
fun f(a: real[1]) -> (real[1]) {
  n = dim a 0
  blocks = for i < n {
    x = get a i
    y = mul x x
    z = neg x
    first = array real[1] of x y z
    second = array real[1] of z 1.0 x
    block = array real[2] of first second
    collect block
  }
  rows = dim blocks 1
  size = imul 6 n
  count = imul 7 n
  flat = for k < count {
    inside = lt k size
    e = if inside {
      block = idiv k 6
      k2 = idiv k 3
      row = imod k2 2
      column = imod k 3
      there = lt block n
      check there index
      fits = lt row LIMIT
      check fits index
      x = get blocks block ROW column
      yield x
    } else {
      j = isub k size
      x = get a j
      yield x
    }
    collect e
  }
  return flat
}
";

#[test]
fn all_elements_of_an_array_of_rows_are_a_beginning() {
    let text = BLOCKS.replace("LIMIT", "rows").replace("ROW", "row");
    assert!(simplified(&text).contains("extend blocks a"), "{}", simplified(&text));
    for n in [0, 1, 2, 30, 1000] {
        let a: Vec<f64> = (0..n).map(|i| i as f64 / 16.0 - 0.5).collect();
        let blocks = a.iter().flat_map(|x| [*x, x * x, -x, -x, 1.0, *x]);
        let expected: Vec<f64> = blocks.chain(a.iter().copied()).collect();
        for found in results(&text, &[Leaf::reals(a)]) {
            assert_eq!(found, Ok(vec![Leaf::reals(expected.clone())]), "{n}");
        }
    }
    // A limit that some rows do not keep, and rows in another order.
    assert!(!simplified(&text.replace("lt row rows", "lt row 1")).contains("extend"));
    assert!(!simplified(&BLOCKS.replace("LIMIT", "rows").replace("ROW", "0")).contains("extend"));
}

/// Two arrays begin as one, and each becomes longer in its own way.
const TWO: &str = "\
fun f(n: int, a: real[1]) -> (real[1], real[1], real[1]) {
  start = extend a a
  p = array real[1] of 1.0
  q = array real[1] of 2.0 3.0
  x.2, y.2 = for i < n with x: real[1] = start, y: real[1] = start {
    more = extend x p
    others = extend y q
    yield more others
  }
  both = extend x.2 y.2
  return both y.2 start
}
";

#[test]
fn nobody_else_sees_an_array_become_longer() {
    let start = [4.0, 5.0, 4.0, 5.0];
    for n in [0, 1, 2, 3, 100, 1000] {
        let y: Vec<f64> = start.into_iter().chain([2.0, 3.0].into_iter().cycle().take(2 * n)).collect();
        let x = start.into_iter().chain(vec![1.0; n]);
        let both: Vec<f64> = x.chain(y.iter().copied()).collect();
        let expected = Ok([both, y, start.to_vec()].map(Leaf::reals).to_vec());
        for found in results(TWO, &[Leaf::Int(n as i64), Leaf::reals([4.0, 5.0])]) {
            assert_eq!(found, expected, "{n}");
        }
    }
}
