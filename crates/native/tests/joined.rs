//! Loops that the simplifier makes one: what becomes of flow that is written as text, and that it still computes and fails the same.

#[path = "support/text.rs"]
mod text;

use gradus_native::flow::Failure;
use gradus_native::{Backend, Executable, Leaf, RunError};
use text::{compile, simplified};

/// `LAST` is what the last loop reads.
const READS_NEARBY: &str = "\
fun f(x: real[1], h: real) -> (real[1], real[1]) {
  n = dim x 0
  k = for i < n {
    e = get x i
    s = sqrt e
    collect s
  }
  a = for i < n {
    e = get x i
    k.2 = get k i
    t = mul h k.2
    u = add e t
    collect u
  }
  r = for i < n {
    first = eq i 0
    v = if first {
      yield 0.0
    } else {
      before = isub i 1
      LAST
      yield e
    }
    collect v
  }
  return k r
}
";

#[test]
fn an_array_that_is_read_once_nearby_is_not_made() {
    let last = |read: &str| READS_NEARBY.replace("LAST", read);
    let loops = |text: &str| simplified(text).matches("for ").count();
    assert_eq!(loops(&last("e = get a before")), 2);
    for other in ["e.2 = get a before\ne.3 = get a i\ne = add e.2 e.3", "e = get a 0"] {
        assert_eq!(loops(&last(other)), 3, "{other}");
    }
    for backend in Backend::ALL {
        let code = compile(&simplified(&last("e = get a before")), backend);
        for n in [0, 1, 2, 3, 9, 50] {
            let roots: Vec<f64> = (0..n).map(|i| f64::from(i) + 2.0).collect();
            let slopes = roots.iter().map(|k| k * k + 3.0 * k);
            let expected: Vec<f64> = [0.0].into_iter().chain(slopes).take(roots.len()).collect();
            let squares: Vec<f64> = roots.iter().map(|k| k * k).collect();
            let found = code.call(0, &[Leaf::reals(squares), Leaf::Real(3.0)]);
            assert_eq!(found, Ok(vec![Leaf::reals(roots), Leaf::reals(expected)]), "{n} places on {backend:?}");
        }
    }
}

/// A loop of sums in rows, and a later one over the same rows, with what each adds up of an element `e` of the matrix and its sine `s`.
fn sums_of_rows(first: &str, behind: &str, later: &str) -> String {
    format!(
        "\
fun f(x: real[2]) -> (real, real, real, real[2]) {{
  n = dim x 0
  m = dim x 1
  value = open 0.0
  for i < n {{
    total = open 0.0
    for j < m {{
      e = get x i j
      s = sin e
      p = mul s e
{first}    }}
    row = freeze total
{behind}    accumulate value += row
  }}
  result = freeze value
  up = open 0.0
  down = open 0.0
  kept = for k < n {{
    one = open 0.0
    two = open 0.0
    line = for l < m {{
      e = get x k l
      s = sin e
      p = mul s e
{later}      collect s
    }}
    a = freeze one
    b = freeze two
    accumulate up += a
    accumulate down += b
    collect line
  }}
  u = freeze up
  d = freeze down
  return result u d kept
}}
"
    )
}

#[test]
fn sums_join_a_later_loop() {
    let add = |acc: &str, value: &str| format!("      accumulate {acc} += {value}\n");
    let both = |acc: &str| add(acc, "s") + &add(acc, "e");
    // A second loop in each row that needs what comes of the first.
    let second = "    half = mul row 0.5\n\
                  \x20   other = open 0.0\n\
                  \x20   for j2 < m {\n\
                  \x20     e2 = get x i j2\n\
                  \x20     q = mul e2 half\n\
                  \x20     accumulate other += q\n\
                  \x20   }\n\
                  \x20   more = freeze other\n\
                  \x20   accumulate value += more\n";
    // One that needs what a loop makes, which reads the same.
    let third = "    made = for j3 < m {\n\
                 \x20     e3 = get x i j3\n\
                 \x20     s3 = sin e3\n\
                 \x20     collect s3\n\
                 \x20   }\n\
                 \x20   again = open 0.0\n\
                 \x20   for j4 < m {\n\
                 \x20     e4 = get x i j4\n\
                 \x20     s4 = get made j4\n\
                 \x20     p4 = mul e4 s4\n\
                 \x20     accumulate again += p4\n\
                 \x20   }\n\
                 \x20   once = freeze again\n\
                 \x20   accumulate value += once\n";
    let cases = [
        // What is added up is there; is not; is there besides something else, on either side; where a second loop waits for the sum, or for another loop.
        (add("total", "s"), "", add("one", "s") + &add("two", "p")),
        (add("total", "s"), "", add("one", "e") + &add("two", "p")),
        (both("total"), "", add("one", "s") + &add("two", "p")),
        (add("total", "s"), "", both("one") + &add("two", "p")),
        (add("total", "p"), second, add("one", "s") + &add("two", "p")),
        (add("total", "e"), second, add("one", "s") + &add("two", "p")),
        (add("total", "s"), third, add("one", "s") + &add("two", "p")),
    ];
    let x = Leaf::matrix(2, 3, vec![0.5, -1.0, 2.0, 0.25, 3.0, -0.75]);
    let numbers = |leaf: Leaf| match leaf {
        Leaf::Real(x) => vec![x],
        Leaf::Reals { data, .. } => data,
        other => panic!("{other:?}"),
    };
    for (first, behind, later) in cases {
        let text = sums_of_rows(&first, behind, &later);
        for backend in Backend::ALL {
            let [plain, simple] = [text.clone(), simplified(&text)].map(|text| compile(&text, backend));
            let run = |code: &Executable| -> Vec<f64> {
                code.call(0, std::slice::from_ref(&x)).expect("runs").into_iter().flat_map(numbers).collect()
            };
            for (a, b) in run(&plain).into_iter().zip(run(&simple)) {
                assert!((a - b).abs() < 1e-14, "{a} and {b}: {text}\n{}", simplified(&text));
            }
        }
        // The sine is computed once if the sums have joined.
        if behind.is_empty() {
            assert_eq!(simplified(&text).matches("sin").count(), 1, "{}", simplified(&text));
        }
    }
}

/// A sum over the first rows of a matrix, a check of something else, and the slopes of the sum.
const CHECKED_BETWEEN: &str = "\
fun f(x: real[2], m: int, k: int) -> (real, real[1]) {
  n = dim x 0
  w = dim x 1
  wide = lt 1 w
  value = open 0.0
  for i < m {
    inside = lt i n
    check inside index
    check wide index
    e = get x i 1
    s = sin e
    p = mul s e
    accumulate value += p
  }
  total = freeze value
  fits = eq k n
  check fits shape
  zeros = fill n := 0.0
  acc = open zeros
  for j < m {
    inside = lt j n
    check inside index
    check wide index
    e = get x j 1
    s = sin e
    c = cos e
    t = mul c e
    u = add s t
    accumulate acc j += u
  }
  slope = freeze acc
  return total slope
}
";

#[test]
fn sums_join_a_later_loop_that_fails_as_they_do() {
    let text = simplified(CHECKED_BETWEEN);
    assert_eq!(text.matches("for ").count(), 1, "{text}");
    // Where the later loop checks more than the first, it stays behind what comes before it.
    let more =
        CHECKED_BETWEEN.replace("    c = cos e\n", "    small = lt e 1.0\n    check small size\n    c = cos e\n");
    assert_eq!(simplified(&more).matches("for ").count(), 2, "{}", simplified(&more));
    for backend in Backend::ALL {
        let code = compile(&text, backend);
        let call = |columns: usize, m: i64, k: i64| {
            let x = Leaf::matrix(2, columns, [0.0, 0.5].repeat(columns));
            code.call(0, &[x, Leaf::Int(m), Leaf::Int(k)])
        };
        let (sum, slope) = (0.5f64.sin() * 0.5, 0.5f64.sin() + 0.5 * 0.5f64.cos());
        match &call(2, 2, 2).expect("runs")[..] {
            [Leaf::Real(total), Leaf::Reals { data, .. }] => {
                assert!((total - 2.0 * sum).abs() < 1e-15, "{total} on {backend:?}");
                assert!(data.iter().all(|x| (x - slope).abs() < 1e-15), "{data:?} on {backend:?}");
            }
            other => panic!("{other:?}"),
        }
        let fails = |columns, m, k, failure| {
            let found = call(columns, m, k);
            assert!(
                matches!(found, Err(RunError::Failed(site)) if site.failure == failure),
                "{found:?} on {backend:?}"
            );
        };
        fails(2, 3, 2, Failure::Index);
        fails(2, 3, 7, Failure::Index);
        fails(1, 2, 7, Failure::Index);
        fails(2, 2, 7, Failure::Shape);
        fails(1, 0, 7, Failure::Shape);
    }
}
