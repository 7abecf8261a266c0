//! How the time to optimise a term grows with its size.

use gradus::Error;
use gradus_core::build::At;
use gradus_core::traverse::for_each_child;
use gradus_core::{Prim, Term, Type, Var};
use gradus_rewrite::{Class, Optimiser, Settings};
use std::time::Instant;

/// A shape of term, of a length to be chosen.
struct Shape {
    name: &'static str,
    /// Nodes for each unit of length.
    nodes: usize,
    make: fn(&At, usize) -> Term,
}

const SHAPES: [Shape; 4] = [
    Shape { name: "definitions, each used twice by the next", nodes: 5, make: chain },
    Shape { name: "one sum of products", nodes: 5, make: sum },
    Shape { name: "a tower of conditions", nodes: 6, make: conditions },
    Shape { name: "loops over one array", nodes: 11, make: loops },
];

/// `let x1 = sin x0 * x0 in let x2 = sin x1 * x1 in ...`
fn chain(at: &At, length: usize) -> Term {
    let vars: Vec<Var> = (0..=length).map(|_| Var::fresh("x")).collect();
    let body = (1..=length).rev().fold(at.var(&vars[length]), |body, i| {
        let before = at.var(&vars[i - 1]);
        let bound = at.prim(Prim::MulReal, [at.prim(Prim::Sin, [before.clone()]), before]);
        at.bind(&vars[i], Type::Real, bound, body)
    });
    at.lambda(&vars[0], Type::Real, body)
}

/// `0.0 * cos x + 1.0 * cos x + ...`
fn sum(at: &At, length: usize) -> Term {
    let x = Var::fresh("x");
    let product = |i: usize| at.prim(Prim::MulReal, [at.real(i as f64), at.prim(Prim::Cos, [at.var(&x)])]);
    let body = (1..length).fold(product(0), |sum, i| at.prim(Prim::AddReal, [sum, product(i)]));
    at.lambda(&x, Type::Real, body)
}

/// `if x < 9.0 then sin x else if x < 8.0 then sin x else ...`
fn conditions(at: &At, length: usize) -> Term {
    let x = Var::fresh("x");
    let body = (0..length).fold(at.var(&x), |rest, i| {
        let test = at.prim_at(Prim::Less, [Type::Real], [at.var(&x), at.real(i as f64)]);
        at.if_(test, at.prim(Prim::Sin, [at.var(&x)]), rest)
    });
    at.lambda(&x, Type::Real, body)
}

/// `a.(0) * sin a.(0) + (a.(1) * sin a.(1) + ...)`, each read from an array that is built for it.
fn loops(at: &At, length: usize) -> Term {
    let (a, i) = (Var::fresh("a"), Var::fresh("i"));
    let read = |index: Term| at.prim_at(Prim::Get, [Type::Real], [at.var(&a), index]);
    let body = (0..length).fold(at.real(1.0), |rest, _| {
        let twice = at.prim(Prim::MulReal, [at.real(2.0), read(at.var(&i))]);
        let built = at.prim_at(Prim::Build, [Type::Real], [at.int(3), at.lambda(&i, Type::Int, twice)]);
        at.prim(Prim::AddReal, [at.prim_at(Prim::Get, [Type::Real], [built, at.int(1)]), rest])
    });
    at.lambda(&a, Type::array(Type::Real), body)
}

fn size(term: &Term) -> usize {
    let mut nodes = 0;
    let mut open = vec![term.clone()];
    while let Some(term) = open.pop() {
        nodes += 1;
        for_each_child(&term, &mut |child| open.push(child.clone()));
    }
    nodes
}

pub fn optimise() -> Result<(), Error> {
    println!("| term | nodes | nodes after | seconds, exact rules | exponent | seconds, all rules | exponent |");
    println!("|---|---|---|---|---|---|---|");
    let at = At::default();
    for shape in &SHAPES {
        let mut last: Option<(f64, [f64; 2])> = None;
        for nodes in [1_000, 10_000, 100_000] {
            let term = (shape.make)(&at, nodes / shape.nodes);
            let mut after = 0;
            let times = [Class::Exact, Class::Reassociates].map(|class| {
                let optimiser =
                    Optimiser { settings: Settings { class, ..Settings::default() }, ..Optimiser::default() };
                // The least of three: other work on the machine only adds time.
                let times = (0..3).map(|_| {
                    let start = Instant::now();
                    after = size(&optimiser.run(&term).term);
                    start.elapsed().as_secs_f64()
                });
                times.fold(f64::INFINITY, f64::min)
            });
            let nodes = size(&term) as f64;
            let exponent = |which: usize| match last {
                Some((n, before)) => format!("{:.2}", (times[which] / before[which]).ln() / (nodes / n).ln()),
                None => String::new(),
            };
            println!(
                "| {} | {nodes} | {after} | {:.3} | {} | {:.3} | {} |",
                shape.name,
                times[0],
                exponent(0),
                times[1],
                exponent(1)
            );
            last = Some((nodes, times));
        }
    }
    Ok(())
}
