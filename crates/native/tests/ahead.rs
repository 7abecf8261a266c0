//! Reads that move in front of branches and loops, as flow that is written as text.

#[path = "support/text.rs"]
mod text;

use gradus_native::{Backend, Leaf};
use text::{compile, simplified};

/// All pairs of different elements, and elements of another array that may be shorter.
const PAIRS: &str = "\
fun f(x: real[1], y: real[1]) -> (real[1]) {
  n = dim x 0
  m = dim y 0
  all = for i < n {
    total = open 0.0
    for j < n {
      same = eq i j
      if same {
      } else {
        a = get x i
        b = get x j
        d = sub a b
        short = lt j m
        e = if short {
          c = get y j
          s = mul c d
          yield s
        } else {
          yield d
        }
        accumulate total += e
      }
    }
    sum = freeze total
    collect sum
  }
  return all
}
";

/// The line of a text with these words, by number.
fn line(text: &str, words: &str) -> usize {
    text.lines().position(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words} in {text}"))
}

#[test]
fn reads_of_known_places_come_before_branches_and_loops() {
    let text = simplified(PAIRS);
    assert!(line(&text, "get x i") < line(&text, "for j"), "{text}");
    assert!(line(&text, "get x j") < line(&text, "if "), "{text}");
    assert!(line(&text, "if ") < line(&text, "get y j"), "{text}");
    assert_eq!(text.matches("get ").count(), 3, "{text}");
    for backend in Backend::ALL {
        let code = compile(&text, backend);
        for n in [0, 1, 2, 7, 33] {
            for m in [0, 1, n, 40] {
                let (x, y) = (|i: usize| (3 * i % 7) as f64, |j: usize| (j % 4) as f64);
                let term = |i: usize, j: usize| if j < m { y(j) * (x(i) - x(j)) } else { x(i) - x(j) };
                let sums: Vec<f64> = (0..n).map(|i| (0..n).map(|j| term(i, j)).sum()).collect();
                let [x, y] = [(0..n).map(x).collect::<Vec<_>>(), (0..m).map(y).collect()].map(Leaf::reals);
                assert_eq!(code.call(0, &[x, y]), Ok(vec![Leaf::reals(sums)]), "{n} and {m} on {backend:?}");
            }
        }
    }
}

/// State whose length nothing says but what a loop reads of it in each iteration: a step that runs backwards.
const BACKWARDS: &str = "\
fun f(x: real[1], steps: int, n: int) -> (real[1]) {
  last = isub n 1
  done = for t < steps with y: real[1] = x {
    fits = lt last 4
    check fits size
    next = for i < n {
      p.2 = for k < n with p: real = 1.0 {
        j = isub last k
        same = eq i j
        q = if same {
          yield p
        } else {
          a = get y i
          b = get y j
          d = sub a b
          r = mul p d
          yield r
        }
        yield q
      }
      own = get y i
      s = sub own p.2
      collect s
    }
    yield next
  }
  return done
}
";

#[test]
fn a_loop_says_how_long_what_it_reads_is() {
    let text = simplified(BACKWARDS);
    // What has a length of its own may be read in the branch, what every iteration reads need not.
    assert!(line(&text, "get y i") < line(&text, "for k"), "{text}");
    let one = |y: &[f64], i: usize| {
        let others = (0..y.len()).rev().filter(|j| *j != i);
        y[i] - others.map(|j| y[i] - y[j]).product::<f64>()
    };
    for backend in Backend::ALL {
        let code = compile(&text, backend);
        let mut y = vec![0.5, -1.0, 2.0, 0.25];
        for steps in 0..4 {
            let found = code.call(0, &[Leaf::reals([0.5, -1.0, 2.0, 0.25]), Leaf::Int(steps), Leaf::Int(4)]);
            assert_eq!(found, Ok(vec![Leaf::reals(y.clone())]), "{steps} on {backend:?}");
            y = (0..4).map(|i| one(&y, i)).collect();
        }
    }
}

/// Each iteration makes an array that is one longer, of which it reads the last element anyway, and others where there are such.
const GROWING: &str = "\
fun f(x: real, n: int) -> (real[1]) {
  all = for i < n {
    m = iadd i 1
    a = for k < m {
      r = realofint k
      s = mul x r
      t = mul s s
      collect t
    }
    first = get a 0
    own = get a i
    total = open first
    for j < n {
      there = le j i
      e = if there {
        b = get a j
        c = mul b own
        yield c
      } else {
        yield 0.0
      }
      accumulate total += e
      accumulate total += e
    }
    sum = freeze total
    collect sum
  }
  return all
}
";

#[test]
fn an_array_of_each_iteration_is_as_long_as_that_one_says() {
    let text = simplified(GROWING);
    assert!(line(&text, "if ") < line(&text, "get a j"), "{text}");
    for backend in Backend::ALL {
        let squares = |i: i64| (0..=i).map(|j| 2.0 * (j * j * i * i) as f64).sum::<f64>();
        let expected = Leaf::reals((0..20).map(squares).collect::<Vec<_>>());
        assert_eq!(compile(&text, backend).call(0, &[Leaf::Real(1.0), Leaf::Int(20)]), Ok(vec![expected]));
    }
}
