//! Derivatives by finite differences, to compare with; and random points to compare at.

use crate::place::Place;
use crate::schema::{Schema, Shape};
use crate::value::Parts;
use crate::Value;
use gradus_core::traverse::with_stack;
use gradus_core::Type;

/// Calls `visit` with every real inside a value, in order, and its place.
pub fn for_each_real(value: &mut Value, visit: &mut dyn FnMut(&Place, &mut f64)) {
    walk(value, &Place::Root, visit)
}

fn walk(value: &mut Value, place: &Place, visit: &mut dyn FnMut(&Place, &mut f64)) {
    with_stack(|| match value {
        Value::Real(x) => visit(place, x),
        Value::Reals(block) => {
            walk_block(&block.shape, &mut block.data, place, visit);
        }
        Value::Record { fields, parts } => {
            for (name, part) in fields.iter().zip(parts.iter_mut()) {
                walk(part, &Place::Field(place, name), visit);
            }
        }
        Value::Variant { constructor, parts } => {
            let place = Place::Field(place, constructor);
            for (i, part) in parts.iter_mut().enumerate() {
                walk(part, &Place::Index(&place, i), visit);
            }
        }
        Value::Tuple(parts) | Value::List(parts) | Value::Array(parts) => {
            for (i, part) in parts.iter_mut().enumerate() {
                walk(part, &Place::Index(place, i), visit);
            }
        }
        Value::Unit | Value::Bool(_) | Value::Int(_) | Value::String(_) | Value::Function => {}
    })
}

fn walk_block(shape: &[usize], data: &mut [f64], place: &Place, visit: &mut dyn FnMut(&Place, &mut f64)) {
    match shape {
        [_, inner @ ..] if !inner.is_empty() => {
            let row = inner.iter().product::<usize>().max(1);
            for (i, row) in data.chunks_mut(row).enumerate() {
                walk_block(inner, row, &Place::Index(place, i), visit);
            }
        }
        _ => data.iter_mut().enumerate().for_each(|(i, x)| visit(&Place::Index(place, i), x)),
    }
}

/// The reals inside a value, in order.
pub fn reals(value: &Value) -> Vec<f64> {
    let mut out = Vec::new();
    for_each_real(&mut value.clone(), &mut |_, x| out.push(*x));
    out
}

/// `value` with its reals replaced, in order.
pub fn with_reals(value: &Value, reals: &[f64]) -> Value {
    let mut out = value.clone();
    let mut next = reals.iter();
    for_each_real(&mut out, &mut |_, x| {
        if let Some(real) = next.next() {
            *x = *real;
        }
    });
    out
}

/// `value + factor * direction` on the reals.
pub fn moved(value: &Value, factor: f64, direction: &[f64]) -> Value {
    let moved: Vec<f64> = reals(value).iter().zip(direction).map(|(x, d)| x + factor * d).collect();
    with_reals(value, &moved)
}

/// The difference of two numbers in relation to their size, but at least to 1.
pub fn relative_difference(a: f64, b: f64) -> f64 {
    if a == b || (a.is_nan() && b.is_nan()) {
        return 0.0;
    }
    let difference = (a - b).abs() / a.abs().max(b.abs()).max(1.0);
    if difference.is_nan() {
        f64::INFINITY
    } else {
        difference
    }
}

/// The step of a central difference at `x` that balances its two errors: the cube root of the precision, scaled.
pub fn step(x: f64) -> f64 {
    let rough = f64::EPSILON.cbrt() * x.abs().max(1.0);
    (x + rough) - x // a step that is exact
}

/// A larger difference is looked at again with a step that is so many times smaller.
const SUSPICIOUS: f64 = 1e-6;
const NEARER: f64 = 64.0;

/// How a gradient compares with central differences.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The largest relative difference, and where it is.
    pub difference: f64,
    pub place: String,
    pub gradient: f64,
    pub finite_difference: f64,
    /// How many of the reals were compared.
    pub compared: usize,
}

/// Compares the gradient of `f` at `point` with central differences, in every real, or in `most` of them evenly spread.
pub fn compare<E>(
    point: &Value,
    gradient: &Value,
    most: usize,
    mut f: impl FnMut(&Value) -> Result<f64, E>,
) -> Result<Comparison, E> {
    let (at, exact) = (reals(point), reals(gradient));
    let mut places = Vec::new();
    for_each_real(&mut point.clone(), &mut |place, _| places.push(place.to_string()));
    let stride = at.len().div_ceil(most.max(1)).max(1);
    let mut worst =
        Comparison { difference: 0.0, place: "$".into(), gradient: 0.0, finite_difference: 0.0, compared: 0 };
    for (i, &x) in at.iter().enumerate().step_by(stride) {
        let mut beside = |moved: f64| {
            let mut reals = at.clone();
            if let Some(real) = reals.get_mut(i) {
                *real = moved;
            }
            f(&with_reals(point, &reals))
        };
        let mut central = |h: f64| Ok((beside(x + h)? - beside(x - h)?) / (2.0 * h));
        let gradient = exact.get(i).copied().unwrap_or(f64::NAN);
        let mut finite_difference = central(step(x))?;
        let mut difference = relative_difference(gradient, finite_difference);
        if difference > SUSPICIOUS {
            // Perhaps there is a kink nearby, or the function is strongly curved.
            let nearer = central(step(x) / NEARER)?;
            let again = relative_difference(gradient, nearer);
            if again < difference {
                (finite_difference, difference) = (nearer, again);
            }
        }
        worst.compared += 1;
        if difference >= worst.difference {
            let place = places.get(i).cloned().unwrap_or_default();
            worst = Comparison { difference, place, gradient, finite_difference, ..worst };
        }
    }
    Ok(worst)
}

/// A small generator (SplitMix64): the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between `low` and `high`.
    pub fn real(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.bits() % count.max(1) as u64) as usize
    }

    /// A random value of a data type with reals in a range; arrays have three elements, so that sizes agree. `None` if the
    /// type holds a function or has no finite values.
    pub fn value(&mut self, ty: &Type, schema: &Schema, range: (f64, f64), depth: usize) -> Option<Value> {
        const ELEMENTS: usize = 3;
        let parts = |types: &[Type], random: &mut Random| {
            let values = types.iter().map(|ty| random.value(ty, schema, range, depth + 1));
            values.collect::<Option<Parts>>()
        };
        Some(match &*schema.shape(ty) {
            Shape::Real => Value::Real(self.real(range.0, range.1)),
            Shape::Int => Value::Int(self.below(ELEMENTS) as i64),
            Shape::Bool => Value::Bool(self.below(2) == 1),
            Shape::String => Value::from("text"),
            Shape::Unit => Value::Unit,
            Shape::Tuple(types) => Value::Tuple(parts(types, self)?),
            Shape::Record { fields, types } => Value::Record { fields: fields.clone(), parts: parts(types, self)? },
            Shape::List(element) => Value::List(parts(&vec![element.clone(); self.below(ELEMENTS + 1)], self)?),
            Shape::Array(element) => {
                let items = parts(&vec![element.clone(); ELEMENTS], self)?;
                Value::array(items.into_vec())
            }
            Shape::Variant { constructors, .. } => {
                // Deep down, the constructor with the fewest arguments, so that recursion ends.
                let shallow = constructors.iter().min_by_key(|(_, types)| types.len());
                let any = constructors.get(self.below(constructors.len()));
                let (constructor, types) = if depth > 4 { shallow } else { any }?;
                if depth > 40 {
                    return None;
                }
                Value::Variant { constructor: constructor.clone(), parts: parts(types, self)? }
            }
            Shape::Opaque => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reals_in_order() {
        let value =
            Value::tuple([1.0.into(), Value::Int(7), vec![2.0, 3.0].into(), Value::variant("Some", [4.0.into()])]);
        assert_eq!(reals(&value), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(with_reals(&value, &[5.0, 6.0, 7.0, 8.0]).to_string(), "(5.0, 7, [| 6.0; 7.0 |], Some 8.0)");
    }

    #[test]
    fn a_right_gradient_passes_and_a_wrong_one_is_found() {
        // f (x, y) = sin x * y: gradient (cos x * y, sin x)
        let f = |v: &Value| match reals(v)[..] {
            [x, y] => Ok::<f64, ()>(x.sin() * y),
            _ => Err(()),
        };
        let point = Value::tuple([0.5.into(), 2.0.into()]);
        let right = Value::tuple([(0.5f64.cos() * 2.0).into(), 0.5f64.sin().into()]);
        let comparison = compare(&point, &right, 100, f).expect("runs");
        assert!(comparison.difference < 1e-9 && comparison.compared == 2, "{comparison:?}");
        let wrong = Value::tuple([(0.5f64.cos() * 2.0).into(), 0.6.into()]);
        let comparison = compare(&point, &wrong, 100, f).expect("runs");
        assert!(comparison.difference > 0.1 && comparison.place == "$[1]", "{comparison:?}");
    }

    #[test]
    fn places_in_matrices_have_two_indices() {
        let matrix = Value::array(vec![vec![1.0, 2.0].into(), vec![3.0, 4.0].into()]);
        let mut places = Vec::new();
        for_each_real(&mut matrix.clone(), &mut |place, x| places.push(format!("{place} {x}")));
        assert_eq!(places, ["$[0][0] 1", "$[0][1] 2", "$[1][0] 3", "$[1][1] 4"]);
    }

    #[test]
    fn a_kink_that_is_near_is_no_difference() {
        let f = |v: &Value| Ok::<f64, ()>(reals(v)[0].abs());
        let comparison = compare(&1e-6.into(), &1.0.into(), 1, f).expect("runs");
        assert!(comparison.difference < 1e-6, "{comparison:?}");
    }

    #[test]
    fn the_generator_is_the_published_one() {
        // The first outputs of SplitMix64 from seed 1234567.
        let mut random = Random(1234567);
        assert_eq!([random.bits(), random.bits()], [6457827717110365317, 3203168211198807973]);
    }
}
