//! What the simplifier makes of flow that is written as text, and that it still computes the same.

#[path = "support/text.rs"]
mod text;

use gradus_native::flow::{read, Failure, FunctionId};
use gradus_native::{Backend, Executable, Leaf, RunError};
use text::{compile, simplified};

const ENDS_AT_CALLS: &str = "\
fun squares(lo: int, hi: int, a: real[1]) -> (real) {
  d = isub hi lo
  last = eq d 1
  r = if last {
    n = dim a 0
    inside = lt lo n
    check inside index
    x = get a lo
    y = mul x x
    yield y
  } else {
    s = iadd lo hi
    m = idiv s 2
    one = call squares lo m a
    other = call squares m hi a
    z = add one other
    yield z
  }
  return r
}
";

#[test]
fn recursion_ends_where_it_would_call_itself() {
    let text = simplified(ENDS_AT_CALLS);
    // At the beginning and at both calls.
    assert_eq!(text.matches("check ").count(), 3, "{text}");
    for backend in Backend::ALL {
        let mut module = read::module(ENDS_AT_CALLS).expect("reads");
        gradus_native::simplify::module(&mut module);
        let code = Executable::new(&module, &[FunctionId(0)], &backend.into()).expect("compiles");
        let call = |lo, hi| code.call(0, &[Leaf::Int(lo), Leaf::Int(hi), Leaf::reals([1.0, 2.0, 3.0, 4.0, 5.0])]);
        for (lo, hi, sum) in [(0, 5, 55.0), (0, 1, 1.0), (1, 3, 13.0), (4, 5, 25.0)] {
            assert_eq!(call(lo, hi), Ok(vec![Leaf::Real(sum)]), "on {backend:?}");
        }
        for (lo, hi) in [(0, 6), (5, 6), (4, 9)] {
            assert!(
                matches!(call(lo, hi), Err(RunError::Failed(site)) if site.failure == Failure::Index),
                "on {backend:?}"
            );
        }
    }
}

const SAME_SIDES: &str = "\
fun f(xs: real[1], ys: real[1]) -> (real[1], real[1], real[1]) {
  n = dim xs 0
  m = dim ys 0
  ok = eq n m
  check ok shape
  first, second, third = for i < n {
    x = get xs i
    y = get ys i
    up = gt x 0.0
    a = if up {
      s = sqrt x
      t = mul s y
      yield t
    } else {
      yield y
    }
    b = mul a a
    c = if up {
      s.2 = sqrt x
      u = div b s.2
      yield u
    } else {
      v = div b y
      yield v
    }
    d = if up {
      w = mul x x
      yield w
    } else {
      v.2 = div b y
      e = sqrt y
      w.2 = mul v.2 e
      yield w.2
    }
    collect a c d
  }
  return first second third
}
";

#[test]
fn the_same_side_of_later_branches_computes_nothing_again() {
    let text = simplified(SAME_SIDES);
    assert_eq!((text.matches("sqrt").count(), text.matches("div").count()), (2, 2), "{text}");
    for backend in Backend::ALL {
        let mut module = read::module(SAME_SIDES).expect("reads");
        gradus_native::simplify::module(&mut module);
        let code = Executable::new(&module, &[FunctionId(0)], &backend.into()).expect("compiles");
        let found = code.call(0, &[Leaf::reals([4.0, -1.0]), Leaf::reals([3.0, 9.0])]);
        let expected = [[6.0, 9.0], [18.0, 9.0], [16.0, 27.0]];
        assert_eq!(found, Ok(expected.map(Leaf::reals).to_vec()), "on {backend:?}");
    }
}

const IN_PARTS: &str = "\
fun f(n: int, b: int) -> (int[1]) {
  all = for i < n {
    first = lt i b
    r = if first {
      q = idiv i 3
      d = imod q 2
      e = imod i 3
      t = imul 10 d
      u = iadd t e
      yield u
    } else {
      later = le i 40
      s = if later {
        e.2 = imod i 5
        yield e.2
      } else {
        ok = lt i 60
        check ok index
        yield i
      }
      yield s
    }
    collect r
  }
  return all
}
";

#[test]
fn loops_in_parts() {
    let expected = |i: i64, b: i64| match i {
        _ if i < b => 10 * (i / 3 % 2) + i % 3,
        _ if i <= 40 => i % 5,
        _ => i,
    };
    for backend in Backend::ALL {
        let code = compile(IN_PARTS, backend);
        for n in [0, 1, 4, 5, 6, 7, 29, 30, 40, 41, 42, 60, 61] {
            for b in [i64::MIN, -1, 0, 1, 3, 5, 6, 29, 30, 31, 39, 40, 41, 42, 100, i64::MAX] {
                let found = code.call(0, &[Leaf::Int(n), Leaf::Int(b)]);
                let fails = n > 60 && b <= 60;
                match found {
                    Err(RunError::Failed(site)) => assert!(fails && site.failure == Failure::Index, "{n} {b}"),
                    found => {
                        let all = (0..n).map(|i| expected(i, b)).collect();
                        assert_eq!(found, Ok(vec![Leaf::Ints { dims: vec![n as usize], data: all }]), "{n} {b}");
                        assert!(!fails, "{n} {b}");
                    }
                }
            }
        }
    }
}

const ADDS_TO_THE_PLACE_BEFORE: &str = "\
fun f(x: real[1], t: real[1]) -> (real[1]) {
  n = dim t 0
  a = fill n := 0.0
  x_adj = open a
  for i < n {
    start = eq i 0
    old = if start {
      yield 0.0
    } else {
      b = isub i 1
      w = get x b
      yield w
    }
    if start {
      e = get t 0
      accumulate x_adj i += e
    } else {
      c = isub i 1
      e.2 = get t i
      p = mul old e.2
      accumulate x_adj c += p
    }
  }
  y = freeze x_adj
  return y
}
";

#[test]
fn additions_to_neighbours_are_turned_round() {
    let text = simplified(ADDS_TO_THE_PLACE_BEFORE);
    assert!(!text.contains("accumulate") && !text.contains("fill"), "{text}");
    for backend in Backend::ALL {
        for code in [compile(ADDS_TO_THE_PLACE_BEFORE, backend), compile(&text, backend)] {
            for n in [0, 1, 2, 3, 4, 9, 50] {
                let x: Vec<f64> = (0..n).map(|i| f64::from(i) + 2.0).collect();
                let t: Vec<f64> = (0..n).map(|i| f64::from(i * i) - 3.0).collect();
                let mut expected = vec![0.0; n as usize];
                for i in 0..n as usize {
                    match i {
                        0 => expected[0] += t[0],
                        _ => expected[i - 1] += x[i - 1] * t[i],
                    }
                }
                let found = code.call(0, &[Leaf::reals(x), Leaf::reals(t)]);
                assert_eq!(found, Ok(vec![Leaf::reals(expected)]), "{n} places on {backend:?}");
            }
        }
    }
}

const DIVIDES: &str = "\
fun f(x: real[1]) -> (real[1], real[1]) {
  n = dim x 0
  a, b = for i < n {
    e = get x i
    t = div e 0.015625
    u = div e 3.0
    collect t u
  }
  return a b
}
";

#[test]
fn quotients_by_powers_of_two_are_products() {
    let text = simplified(DIVIDES);
    assert_eq!((text.matches("div").count(), text.matches("mul").count()), (1, 1), "{text}");
    let greatest_power = format!("div e {:?}", 2f64.powi(1023));
    assert!(simplified(&DIVIDES.replace("div e 0.015625", &greatest_power)).contains(&greatest_power));
    let x = [1.0, 0.1, -0.0, 5e-324, 2e-310, 1e308, -1e307, f64::INFINITY, 3.0];
    for backend in Backend::ALL {
        let found = compile(&text, backend).call(0, &[Leaf::reals(x)]);
        let quotients = [0.015625, 3.0].map(|divisor| Leaf::reals(x.map(|x| x / divisor)));
        assert_eq!(found, Ok(quotients.to_vec()), "on {backend:?}");
    }
}

const NINE_PLACES: &str = "\
fun f(k: real[2], x: real[2]) -> (real[1]) {
  rows = dim k 0
  columns = dim k 1
  n = dim x 1
  m = isub n 2
  r = for j < m {
    total = open 0.0
    for i < 9 {
      p = idiv i 3
      p.low = ge p 0
      check p.low index
      p.high = lt p rows
      check p.high index
      q = imod i 3
      q.low = ge q 0
      check q.low index
      q.high = lt q columns
      check q.high index
      w = get k p q
      at = iadd j q
      at.low = ge at 0
      check at.low index
      at.high = lt at n
      check at.high index
      e = get x p at
      t = mul w e
      u = sub t 1.0
      v = mul u u
      accumulate total += v
    }
    total.2 = freeze total
    collect total.2
  }
  return r
}
";

#[test]
fn nine_places_are_written_out() {
    let text = simplified(NINE_PLACES);
    assert_eq!(text.matches("for ").count(), 1, "{text}");
    let k: Vec<f64> = (1..10).map(f64::from).collect();
    let x: Vec<f64> = (0..60).map(|at| f64::from(at % 7)).collect();
    let at = |j: usize| (0..9).map(|i| (k[i] * x[20 * (i / 3) + j + i % 3] - 1.0).powi(2)).sum::<f64>();
    let expected: Vec<f64> = (0..18).map(at).collect();
    for backend in Backend::ALL {
        let found = compile(&text, backend).call(0, &[Leaf::matrix(3, 3, &k[..]), Leaf::matrix(3, 20, &x[..])]);
        assert_eq!(found, Ok(vec![Leaf::reals(&expected[..])]), "on {backend:?}");
    }
}

const ADDS_UNDER_A_CONDITION: &str = "\
fun f(x: real[1], at: int) -> (real[1]) {
  a = fill 3 := 0.0
  x_adj = open a
  n = dim x 0
  for i < n {
    e = get x i
    less = lt e 0.0
    if less {
    } else {
      accumulate x_adj at += e
    }
  }
  y = freeze x_adj
  return y
}
";

#[test]
fn additions_to_one_place_under_conditions_are_made_once() {
    let text = simplified(ADDS_UNDER_A_CONDITION);
    let (in_loop, behind) = text.split_at(text.find("freeze").expect("ends with the sum"));
    assert!(in_loop.contains("accumulate x_adj.2 += ") && behind.contains("accumulate x_adj at += "), "{text}");
    // What one iteration adds stays where it is.
    let once = ADDS_UNDER_A_CONDITION
        .replace("lt e 0.0", "eq i 1")
        .replace("    } else {\n", "")
        .replace("+= e\n", "+= e\n    } else {\n");
    assert!(simplified(&once).contains("      accumulate x_adj at += "), "{}", simplified(&once));
    for backend in Backend::ALL {
        for code in [compile(ADDS_UNDER_A_CONDITION, backend), compile(&text, backend)] {
            let added = |x: &[f64], at| code.call(0, &[Leaf::reals(x), Leaf::Int(at)]);
            assert_eq!(added(&[1.0, -2.0, 4.0], 2), Ok(vec![Leaf::reals([0.0, 0.0, 5.0])]));
            // There is no such place, and nothing is added to it.
            for at in [3, -1, i64::MAX, i64::MIN] {
                assert_eq!(added(&[-1.0, -2.0], at), Ok(vec![Leaf::reals([0.0; 3])]));
                assert_eq!(added(&[], at), Ok(vec![Leaf::reals([0.0; 3])]));
            }
        }
    }
}

const ADDS_AGAIN: &str = "\
fun f(x: real[1], p: int[1]) -> (real[1]) {
  a = fill 3 := 0.0
  x_adj = open a
  n = dim x 0
  m = dim p 0
  same = eq n m
  check same shape
  for i < n {
    e = get x i
    at = get p i
    after = ge at 0
    check after index
    before = lt at 3
    check before index
    less = lt e 0.0
    if less {
      d = mul e e
      accumulate x_adj at += d
    } else {
      accumulate x_adj at += e
    }
    t = mul 2.0 e
    accumulate x_adj at += t
    large = gt e 3.0
    if large {
      accumulate x_adj at += 1.0
    } else {
    }
  }
  y = freeze x_adj
  return y
}
";

#[test]
fn an_iteration_adds_once_to_an_element() {
    let text = simplified(ADDS_AGAIN);
    assert_eq!(text.matches("accumulate x_adj at += ").count(), 1, "{text}");
    // A branch keeps what it adds to an element that may not be there otherwise.
    let sometimes =
        ADDS_AGAIN.replace("    accumulate x_adj at += t\n", "").replace("      accumulate x_adj at += e\n", "");
    assert_eq!(
        simplified(&sometimes).matches("      accumulate x_adj at += ").count(),
        2,
        "{}",
        simplified(&sometimes)
    );
    for backend in Backend::ALL {
        for code in [compile(ADDS_AGAIN, backend), compile(&text, backend)] {
            let found =
                code.call(0, &[Leaf::reals([1.0, -3.0, 4.0]), Leaf::Ints { dims: vec![3], data: vec![2, 0, 2] }]);
            assert_eq!(found, Ok(vec![Leaf::reals([3.0, 0.0, 16.0])]), "on {backend:?}");
        }
    }
}

const COUNTS_BESIDE: &str = "\
fun f(n: int, m: int) -> (int, int, int, int) {
  down, same, up, other = for i < n with x: int = m, y: int = 3, z: int = 0, w: int = 9 {
    a = isub x 2
    b = iadd i 1
    c = iadd x 1
    yield a y b c
  }
  return down same up other
}
";

const COLLECTS_LENGTHS: &str = "\
fun f(x: real[1]) -> (int) {
  n = dim x 0
  last, all = for i < n with k: int = n {
    d = isub n i
    e = isub d 1
    yield e
    collect k
  }
  s = for i.2 < n with t: int = last {
    v = get all i.2
    w = imul v v
    u = iadd t w
    yield u
  }
  return s
}
";

#[test]
fn integers_follow_from_the_index() {
    let text = simplified(COUNTS_BESIDE);
    assert!(text.contains("with w: int = 9 {"), "{text}");
    let squares = simplified(COLLECTS_LENGTHS);
    assert_eq!(squares.matches("for ").count(), 1, "{squares}");
    for backend in Backend::ALL {
        for code in [compile(COUNTS_BESIDE, backend), compile(&text, backend)] {
            for (n, m) in [(-2, 7), (0, 7), (1, 7), (5, 7), (3, i64::MIN)] {
                let x = |i: i64| m.wrapping_sub(2 * i);
                let other = if n > 0 { x(n - 1).wrapping_add(1) } else { 9 };
                let expected = [x(n.max(0)), 3, n.max(0), other].map(Leaf::Int).to_vec();
                assert_eq!(code.call(0, &[Leaf::Int(n), Leaf::Int(m)]), Ok(expected), "{n} {m} on {backend:?}");
            }
        }
        for code in [compile(COLLECTS_LENGTHS, backend), compile(&squares, backend)] {
            for (n, expected) in [(0, 0), (1, 1), (4, 16 + 9 + 4 + 1)] {
                assert_eq!(code.call(0, &[Leaf::reals(vec![0.5; n])]), Ok(vec![Leaf::Int(expected)]));
            }
        }
    }
}

const ADDS_MUCH_TO_A_WINDOW: &str = "\
fun f(x: real[1]) -> (real[1]) {
  n = dim x 0
  m = isub n 2
  ok = ge m 0
  check ok count
  a = fill n := 0.0
  x_adj = open a
  for i < m {
    e = get x i
    s = sin e
    c = cos e
    p = mul s c
    q = add p s
    j = iadd i 1
    k = iadd i 2
    two = mul 2.0 q
    accumulate x_adj i += q
    accumulate x_adj j += two
    accumulate x_adj k += q
  }
  y = freeze x_adj
  return y
}
";

#[test]
fn what_a_window_is_given_is_computed_once() {
    let text = simplified(ADDS_MUCH_TO_A_WINDOW);
    assert!(!text.contains("accumulate") && text.matches("= sin").count() == 1, "{text}");
    for backend in Backend::ALL {
        let (before, after) = (compile(ADDS_MUCH_TO_A_WINDOW, backend), compile(&text, backend));
        for n in [2, 3, 4, 5, 6, 31] {
            let x: Vec<f64> = (0..n).map(|i| f64::from(i) * 0.3).collect();
            let mut expected = vec![0.0; n as usize];
            for (i, x) in x.iter().enumerate().take(n as usize - 2) {
                let q = x.sin() * x.cos() + x.sin();
                [1.0, 2.0, 1.0].iter().enumerate().for_each(|(by, times)| expected[i + by] += times * q);
            }
            for code in [&before, &after] {
                let found = code.call(0, &[Leaf::reals(x.clone())]).expect("runs");
                let [Leaf::Reals { data, .. }] = &found[..] else { panic!("{found:?}") };
                let close = data.iter().zip(&expected).all(|(f, e)| (f - e).abs() < 1e-14 * e.abs().max(1.0));
                assert!(close && data.len() == expected.len(), "{n} places on {backend:?}: {data:?}, not {expected:?}");
            }
        }
        // Too short for a window.
        assert!(matches!(after.call(0, &[Leaf::reals([1.0])]), Err(RunError::Failed(_))));
    }
}

#[test]
fn numbers_that_are_cheap_are_not_kept() {
    let text = simplified(
        "\
fun f(x: real[1], y: real[1]) -> (real[1]) {
  n = dim x 0
  d = for i < n {
    e = get x i
    t = mul 2.0 e
    collect t
  }
  a = open d
  zeros = fill n := 0.0
  b = open zeros
  for j < n {
    start = eq j 0
    if start {
    } else {
      k = isub j 1
      e.2 = get y j
      accumulate b k += e.2
    }
  }
  g = freeze b
  for l < n {
    e.3 = get g l
    accumulate a l += e.3
  }
  r = freeze a
  return r
}
",
    );
    assert_eq!(text.matches("for ").count(), 1, "{text}");
    for backend in Backend::ALL {
        let code = compile(&text, backend);
        let found = code.call(0, &[Leaf::reals([1.0, 2.0, 3.0]), Leaf::reals([10.0, 20.0, 30.0])]);
        assert_eq!(found, Ok(vec![Leaf::reals([22.0, 34.0, 6.0])]));
        assert_eq!(code.call(0, &[Leaf::reals([]), Leaf::reals([])]), Ok(vec![Leaf::reals([])]));
    }
}

#[test]
fn recurrences_run_side_by_side() {
    let text = |step: &str, count: &str| {
        format!(
            "fun roots(x: real[1], m: int) -> (real[1]) {{\n\
             \x20 n = dim x 0\n\
             \x20 y = for i < {count} {{\n\
             \x20   e = get x i\n\
             \x20   z.2 = for k < m with z: real = 1.0 {{\n\
             {step}\
             \x20     q = div e z\n\
             \x20     s = add z q\n\
             \x20     h = mul 0.5 s\n\
             \x20     yield h\n\
             \x20   }}\n\
             \x20   collect z.2\n\
             \x20 }}\n\
             \x20 return y\n\
             }}\n"
        )
    };
    let check = |of: &str, why: &str| format!("      ok.{why} = lt {of} 1e9\n      check ok.{why} {why}\n");
    let goes_by_strips = |step: &str, count: &str| simplified(&text(step, count)).contains("for strip <");
    assert!(goes_by_strips("", "n"));
    assert!(!goes_by_strips("", "7"));
    // What does not wait for itself has lanes of its own.
    let independent =
        text("", "n").replace(" with z: real = 1.0", "").replace("add z q", "add e q").replace("div e z", "div e 2.0");
    let independent =
        independent.replace("yield h", "collect h").replace("collect z.2", "f = get z.2 0\n    collect f");
    assert!(independent.contains("z.2 = for k < m {") && !simplified(&independent).contains("for strip <"));
    // In which order iterations fail is seen only if they fail in different ways.
    assert!(goes_by_strips(&check("z", "index"), "n"));
    assert!(!goes_by_strips(&[check("z", "index"), check("e", "size")].concat(), "n"));
    for backend in Backend::ALL {
        let code = compile(&simplified(&text("", "n")), backend);
        for n in [0, 1, 7, 8, 9, 128, 129, 1000] {
            let numbers: Vec<f64> = (0..n).map(|i| 1.0 + f64::from(i)).collect();
            let found = code.call(0, &[Leaf::reals(numbers.clone()), Leaf::Int(20)]).expect("runs");
            let [Leaf::Reals { data, .. }] = &found[..] else { panic!("{found:?}") };
            assert_eq!(data.len(), numbers.len());
            assert!(
                data.iter().zip(numbers).all(|(root, x)| (root * root - x).abs() <= 1e-13 * x),
                "{n} on {backend:?}"
            );
        }
    }
}
