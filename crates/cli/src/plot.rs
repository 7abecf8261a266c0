//! Charts: what `plot e` draws, as an SVG file or in the terminal.
//!
//! A chart is made of series: an array of reals (over 0, 1, 2, ...), an array of `(x, y)` pairs, a matrix (a series for each
//! row), or a list or array of `(name, series)`.

mod axis;
pub mod svg;
pub mod terminal;

use gradus::Value;

/// A line or a cloud of points with its name in the legend (empty if there is only one).
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// Points whose x never goes back are joined by a line; others are only marked.
    fn is_line(&self) -> bool {
        self.points.windows(2).all(|pair| matches!(pair, [a, b] if a.0 <= b.0))
    }

    /// The stretches between points that cannot be drawn.
    fn stretches(&self) -> impl Iterator<Item = &[(f64, f64)]> {
        self.points.split(|(x, y)| !(x.is_finite() && y.is_finite())).filter(|stretch| !stretch.is_empty())
    }
}

/// The series of a value; an error says what cannot be drawn.
pub fn series(value: &Value) -> Result<Vec<Series>, String> {
    if let Some(points) = points(value) {
        return Ok(vec![Series { name: String::new(), points }]);
    }
    let several: Option<Vec<Series>> = match value {
        Value::Reals(block) if block.shape().len() == 2 => {
            let rows = block.items().enumerate();
            rows.map(|(i, row)| Some(Series { name: format!("row {i}"), points: points(&row)? })).collect()
        }
        Value::List(parts) | Value::Array(parts) => parts.iter().map(named).collect(),
        Value::Tuple(_) => named(value).map(|one| vec![one]),
        _ => None,
    };
    several.ok_or_else(|| {
        "`plot` draws a real[], a real[][] (each row), a (real * real)[], or a list or array of (name, points) pairs".into()
    })
}

/// `(name, points)`
fn named(value: &Value) -> Option<Series> {
    match value {
        Value::Tuple(parts) => match &**parts {
            [Value::String(name), values] => Some(Series { name: name.to_string(), points: points(values)? }),
            _ => None,
        },
        _ => None,
    }
}

fn points(value: &Value) -> Option<Vec<(f64, f64)>> {
    match value {
        Value::Reals(block) if block.shape().len() == 1 => {
            Some(block.data().iter().enumerate().map(|(i, y)| (i as f64, *y)).collect())
        }
        Value::List(parts) | Value::Array(parts) => parts.iter().enumerate().map(|(i, part)| point(i, part)).collect(),
        _ => None,
    }
}

/// A pair, or a number over its position.
fn point(index: usize, value: &Value) -> Option<(f64, f64)> {
    match value {
        Value::Tuple(parts) => match &**parts {
            [x, y] => Some((number(x)?, number(y)?)),
            _ => None,
        },
        _ => Some((index as f64, number(value)?)),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Real(x) => Some(*x),
        Value::Int(i) => Some(*i as f64),
        _ => None,
    }
}

/// The smallest box around all points that can be drawn, as ((x low, x high), (y low, y high)).
fn bounds(series: &[Series]) -> ((f64, f64), (f64, f64)) {
    let drawn = || series.iter().flat_map(Series::stretches).flatten();
    let around = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            (0.0, 1.0)
        } else if low == high {
            let room = if low == 0.0 { 1.0 } else { low.abs() / 2.0 };
            (low - room, high + room)
        } else {
            (low, high)
        }
    };
    (around(&mut drawn().map(|p| p.0)), around(&mut drawn().map(|p| p.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(points: &[(f64, f64)]) -> Value {
        Value::array(points.iter().map(|(x, y)| Value::tuple([(*x).into(), (*y).into()])).collect())
    }

    #[test]
    fn every_kind_of_series() {
        let plain = |points: &[(f64, f64)]| vec![Series { name: String::new(), points: points.to_vec() }];
        assert_eq!(series(&vec![5.0, 7.0].into()), Ok(plain(&[(0.0, 5.0), (1.0, 7.0)])));
        assert_eq!(series(&pairs(&[(1.0, 2.0), (3.0, 4.0)])), Ok(plain(&[(1.0, 2.0), (3.0, 4.0)])));
        let two = Value::list([Value::tuple(["a".into(), vec![1.0].into()]), Value::tuple(["b".into(), pairs(&[])])]);
        let names: Vec<String> = series(&two).expect("series").into_iter().map(|s| s.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(series(&Value::Real(1.0)).is_err());
        assert!(series(&Value::list(["x".into()])).is_err());
    }

    #[test]
    fn points_that_are_not_finite_leave_a_gap() {
        let drawn = series(&vec![1.0, f64::NAN, 3.0, f64::INFINITY].into()).expect("series");
        assert_eq!(drawn[0].stretches().count(), 2);
        assert_eq!(bounds(&drawn), ((0.0, 2.0), (1.0, 3.0)));
        assert_eq!(bounds(&series(&vec![f64::NAN].into()).expect("series")), ((0.0, 1.0), (0.0, 1.0)));
    }
}
