//! What derivatives cost, in steps of the evaluator.

use crate::session::Session;
use gradus_core::Mode;

fn steps(session: &Session, text: &str) -> f64 {
    let (_, _, report) = session.eval(text).unwrap_or_else(|e| panic!("{e}"));
    report.steps as f64
}

/// K section 7: let x1 = x + x in let x2 = x1 + x1 in .. : linear in `monadic`, exponential in `delta`.
#[test]
fn doubling_chain() {
    let program = |n: usize| {
        let lets: String = (1..=n).map(|i| format!("let x{i} = x{} + x{} in ", i - 1, i - 1)).collect();
        format!("let f x0 = {lets} x{n}")
    };
    let cost = |mode: Mode, n: usize| {
        let session = Session::new(&program(n), mode).unwrap_or_else(|e| panic!("{e}"));
        let (data, _, _) = session.eval("grad f 1.0").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(crate::session::reals(&data), [2f64.powi(n as i32)]);
        steps(&session, "grad f 1.0")
    };
    let monadic: Vec<f64> = [100, 200, 400].map(|n| cost(Mode::Monadic, n)).to_vec();
    let (first, second) = (monadic[1] - monadic[0], monadic[2] - monadic[1]);
    assert!((second / first - 2.0).abs() < 0.05, "not linear: {monadic:?}");
    let delta: Vec<f64> = [8, 10, 12].map(|n| cost(Mode::Delta, n)).to_vec();
    assert!(delta[2] - delta[1] > 3.5 * (delta[1] - delta[0]), "not exponential: {delta:?}");
}

/// The steps of the gradient over those of the function, at growing sizes: bounded, on every kind of program.
#[test]
fn monadic_gradients_cost_a_constant_factor() {
    let program = "
        import List
        type tree = Leaf of real | Node of tree * tree
        let chain n x = loop n (fun y -> sin y + x) x
        let rec list n = if n = 0 then [] else 0.5 :: list (n - 1)
        let rec over_list xs = match xs with [] -> 1.0 | x :: rest -> x * 0.9 + cos (over_list rest)
        let rec empty_checks xs = if xs = [] then 1.0 else (match xs with [] -> 0.0 | x :: rest -> x + empty_checks rest)
        let rec tree n = if n = 0 then Leaf 0.3 else Node (tree (n - 1), tree (n - 1))
        let rec over_tree t = match t with Leaf x -> x * x | Node (a, b) -> over_tree a * 0.5 + over_tree b
        let over_array a = ifold (length a) (fun i s -> s * 0.9 + a.(i) * a.(i)) 0.0
        let mapped a = sum (map (fun x -> exp (-x)) a)
        let rewritten a = let b = ifold (length a - 1) (fun i b -> set b (i + 1) (b.(i) * 0.5 + b.(i + 1))) a in b.(length a - 1)
        let higher_order xs = List.fold (fun f x -> (fun y -> y * 0.5 + x)) (fun y -> y) xs 1.0
        let iterated n x = iterate (fun (i, y) -> if i = n then Inr y else Inl (i + 1, y * 0.99 + x)) (0, x)
    ";
    let session = Session::new(program, Mode::Monadic).unwrap_or_else(|e| panic!("{e}"));
    type At = fn(usize) -> String;
    let programs: [(&str, At); 10] = [
        ("chain_at", |n| format!("(chain {n})|0.3")),
        ("over_list", |n| format!("over_list|(list {n})")),
        ("empty_checks", |n| format!("empty_checks|(list {n})")),
        ("over_tree", |n| format!("over_tree|(tree {})", n.ilog2())),
        ("over_array", |n| format!("over_array|(replicate {n} 0.4)")),
        ("mapped", |n| format!("mapped|(replicate {n} 0.4)")),
        ("rewritten", |n| format!("rewritten|(replicate {n} 0.4)")),
        ("higher_order", |n| format!("higher_order|(list {n})")),
        ("iterated", |n| format!("(iterated {n})|0.01")),
        ("sum", |n| format!("sum|(replicate {n} 0.4)")),
    ];
    let mut table = Vec::new();
    for (name, at) in programs {
        let ratios: Vec<f64> = [256, 1024, 4096]
            .map(|n| {
                let text = at(n);
                let (function, point) = text.split_once('|').unwrap_or(("", ""));
                let input = steps(&session, &format!("let x = {point} in ()"));
                let value = steps(&session, &format!("let x = {point} in {function} x")) - input;
                (steps(&session, &format!("let x = {point} in grad ({function}) x")) - input) / value
            })
            .to_vec();
        assert!(ratios[2] < 60.0 && ratios[2] < 1.2 * ratios[0], "{name}: {ratios:?}");
        table.push(format!("{name}: {ratios:.1?}"));
    }
    println!("{}", table.join("\n"));
}

/// `checkpoint` keeps the bindings of one block at a time: with sqrt(n) blocks of sqrt(n) steps, the memory of the gradient grows like sqrt(n).
#[test]
fn checkpoints_save_memory() {
    let program = "
        let chain n x = ifold n (fun i y -> sin y + 0.1 * y) x
        let plain n x = ifold n (fun i y -> chain n y) x
        let saved n x = ifold n (fun i y -> checkpoint (chain n) y) x
        let nested n x = checkpoint (fun z -> ifold n (fun i y -> checkpoint (chain n) y) z) x
    ";
    for mode in [Mode::Monadic, Mode::Combinator] {
        let session = Session::new(program, mode).unwrap_or_else(|e| panic!("{e}"));
        let run = |text: &str| session.eval(text).unwrap_or_else(|e| panic!("{mode}: {e}"));
        let peak = |text: &str| run(text).2.peak_memory as f64;
        let value = |text: &str| crate::session::reals(&run(text).0);
        assert_eq!(value("grad (plain 20) 0.7"), value("grad (saved 20) 0.7"));
        assert_eq!(value("grad (plain 20) 0.7"), value("grad (nested 20) 0.7"));
        let (plain, saved) = (peak("grad (plain 60) 0.7"), peak("grad (saved 60) 0.7"));
        println!("{mode}: {plain} bytes without checkpoints, {saved} with");
        assert!(saved * 8.0 < plain, "{mode}: {plain} bytes without checkpoints, {saved} with");
        let small = peak("grad (saved 30) 0.7");
        assert!(saved < 3.0 * small, "{mode}: {small} bytes for 900 steps, {saved} for 3600");
    }
}
