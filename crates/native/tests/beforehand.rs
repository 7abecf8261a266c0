//! What all steps of a loop compute alike for each place, as flow that is written as text.

#[path = "support/text.rs"]
mod text;

use gradus_native::{Backend, Leaf, RunError};
use text::{compile, simplified};

/// A rod that gives heat from cell to cell, as often as there are cells in `t`; nothing says that as many conduct.
const ROD: &str = "\
fun f(k: real[1], t: real[1]) -> (real[1]) {
  n = dim t 0
  m = dim k 0
  end = for s < 5 with y: real[1] = t {
BEFORE    next = for i < n {
      j = iadd i 1
      own = get y i
      last = ge j n
      flow = if last {
        yield own
      } else {
        fits = lt j m
        check fits index
        a = get k i
        b = get k j
        p = mul a b
        q = add a b
        r = div p q
        u = get y j
        d = sub u own
        z = mul r d
        yield z
      }
      new = add own flow
      collect new
    }
    yield next
  }
  return end
}
";

/// In each step, something may fail before anything that is fixed does.
const ASKED: &str = "\
    some = for h < n {
      w = get y h
      low = lt w 100.0
      check low rows
      collect w
    }
    first = get some 0
";

fn rod(before: &str) -> String {
    ROD.replace("BEFORE", before)
}

/// The lines of a text with these words.
fn lines(text: &str, words: &str) -> Vec<usize> {
    text.lines().enumerate().filter(|(_, line)| line.contains(words)).map(|(number, _)| number).collect()
}

fn by_hand(k: &[f64], t: &[f64]) -> Vec<f64> {
    let mut y = t.to_vec();
    for _ in 0..5 {
        let flow = |i: usize| match y.get(i + 1) {
            Some(next) => k[i] * k[i + 1] / (k[i] + k[i + 1]) * (next - y[i]),
            None => y[i],
        };
        y = (0..y.len()).map(|i| y[i] + flow(i)).collect();
    }
    y
}

#[test]
fn dear_numbers_of_all_steps_are_computed_before_the_first() {
    let text = simplified(&rod(""));
    let [quotient] = lines(&text, "div ")[..] else { panic!("several quotients in {text}") };
    let [steps] = lines(&text, "< 5 with")[..] else { panic!("several loops of steps in {text}") };
    assert!(quotient < steps, "{text}");
    // And what protects its reads before these.
    assert!(lines(&text, "check ")[0] < lines(&text, "get k ")[0], "{text}");
    for backend in Backend::ALL {
        let code = compile(&text, backend);
        for n in [0, 1, 2, 3, 40] {
            let [k, t] = [2, 3].map(|p| (0..n).map(|i| (1 + i % p) as f64).collect::<Vec<_>>());
            let expected = Leaf::reals(by_hand(&k, &t));
            assert_eq!(code.call(0, &[Leaf::reals(k), Leaf::reals(t)]), Ok(vec![expected]), "{n} on {backend:?}");
        }
    }
}

#[test]
fn what_fails_in_a_step_fails_beforehand_at_the_same_place() {
    for text in [rod(""), simplified(&rod(""))] {
        for backend in Backend::ALL {
            let found = compile(&text, backend).call(0, &[Leaf::reals([1.0, 2.0]), Leaf::reals([1.0, 2.0, 3.0])]);
            assert!(matches!(found, Err(RunError::Failed(site)) if format!("{:?}", site.failure) == "Index"));
        }
    }
}

#[test]
fn what_fails_before_it_in_a_step_still_fails_first() {
    let text = simplified(&rod(ASKED));
    let [quotient] = lines(&text, "div ")[..] else { panic!("several quotients in {text}") };
    assert!(quotient > lines(&text, "< 5 with")[0], "{text}");
    for backend in Backend::ALL {
        let found = compile(&text, backend).call(0, &[Leaf::reals([1.0]), Leaf::reals([1.0, 200.0])]);
        assert!(matches!(found, Err(RunError::Failed(site)) if format!("{:?}", site.failure) == "Rows"));
    }
}
