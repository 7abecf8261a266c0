//! Elementary functions on many numbers at once are within 4 units in the last place, on both backends. The values are mpmath's, to
//! twice the precision (`accuracy/table.py`).

mod support;

use gradus_native::{compile, Backend, Leaf};
use std::collections::BTreeMap;
use std::path::Path;
use support::{entry, program};

const TEXT: &str = "\
let all_exp (x : real[]) : real[] = map exp x
let all_log (x : real[]) : real[] = map log x
let all_sin (x : real[]) : real[] = map sin x
let all_cos (x : real[]) : real[] = map cos x
let all_tan (x : real[]) : real[] = map tan x
let all_asin (x : real[]) : real[] = map asin x
let all_acos (x : real[]) : real[] = map acos x
let all_atan (x : real[]) : real[] = map atan x
let all_sinh (x : real[]) : real[] = map sinh x
let all_cosh (x : real[]) : real[] = map cosh x
let all_tanh (x : real[]) : real[] = map tanh x
let all_log1p (x : real[]) : real[] = map log1p x
let all_expm1 (x : real[]) : real[] = map expm1 x
let all_erf (x : real[]) : real[] = map erf x
let all_pow (x : real[]) (y : real[]) : real[] = map2 (fun x y -> x ** y) x y
let all_atan2 (x : real[]) (y : real[]) : real[] = map2 atan2 x y
";

/// The arguments of a function at all its points, one list for each, and the values as sums of two numbers.
#[derive(Default)]
struct Points {
    arguments: Vec<Vec<f64>>,
    values: Vec<(f64, f64)>,
}

fn table() -> BTreeMap<&'static str, Points> {
    let mut table: BTreeMap<&str, Points> = BTreeMap::new();
    for line in include_str!("accuracy/table.txt").lines() {
        let mut words = line.split(' ');
        let name = words.next().expect("a name");
        let numbers: Vec<f64> =
            words.map(|word| f64::from_bits(u64::from_str_radix(word, 16).expect("16 hexadecimal digits"))).collect();
        let (at, value) = numbers.split_at(numbers.len() - 2);
        let points = table.entry(name).or_default();
        points.arguments.resize(at.len(), Vec::new());
        points.arguments.iter_mut().zip(at).for_each(|(list, x)| list.push(*x));
        points.values.push((value[0], value[1]));
    }
    table
}

/// The distance between a number and the next one away from zero.
fn unit(x: f64) -> f64 {
    f64::from_bits(x.abs().to_bits() + 1) - x.abs()
}

#[test]
fn at_most_4_units_in_the_last_place() {
    let program = program("accuracy.gr", TEXT, Path::new("."));
    let table = table();
    let entries: Vec<_> = table.keys().map(|name| entry(&program, &format!("all_{name}"))).collect();
    for backend in Backend::ALL {
        let native = match compile(&program, &entries, &backend.into()) {
            Ok(native) => native,
            Err(error) => panic!("{:?}", error.diagnostic()),
        };
        for (at, (name, points)) in table.iter().enumerate() {
            let input: Vec<Leaf> = points.arguments.iter().map(|list| Leaf::reals(list.clone())).collect();
            let found = native.call(at, &input).expect("runs");
            let [Leaf::Reals { data, .. }] = &found[..] else { panic!("{name} gives one array") };
            assert_eq!(data.len(), points.values.len());
            let errors =
                data.iter().zip(&points.values).map(|(y, (near, rest))| ((y - near) - rest).abs() / unit(*near));
            let worst = errors.fold(0.0, f64::max);
            println!("{backend:?} {name}: {worst:.2}");
            assert!(worst <= 4.0, "{name} on {backend:?} is {worst:.2} units off");
        }
    }
}
