//! When two values count as equal: reals up to a tolerance, everything else exactly.

use gradus::numeric::{for_each_real, with_reals};
use gradus::Value;

pub fn agree(left: &Value, right: &Value, tolerance: f64) -> Result<(), String> {
    let mut expected = Vec::new();
    for_each_real(&mut right.clone(), &mut |_, x| expected.push(*x));
    let mut index = 0;
    let mut problem = None;
    for_each_real(&mut left.clone(), &mut |place, x| {
        match expected.get(index) {
            Some(y) if close(*x, *y, tolerance) => {}
            Some(y) => problem = problem.take().or(Some(format!("at {place}: {x:?} is not {y:?}"))),
            None => problem = problem.take().or(Some("there are more reals than expected".to_string())),
        }
        index += 1;
    });
    if let Some(problem) = problem {
        return Err(problem);
    }
    // With the expected reals put in, nothing may be left that differs. NaN differs from itself, so all are put in as zero.
    let zeros = vec![0.0; expected.len()];
    if index == expected.len() && with_reals(left, &zeros) == with_reals(right, &zeros) {
        Ok(())
    } else {
        Err(format!("the shape differs from {right}"))
    }
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
}
