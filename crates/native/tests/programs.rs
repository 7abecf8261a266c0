//! Programs from source text: what is refused and where, failures with their places, deep recursion, long loops, what gradients are made of.

mod support;

use gradus_native::flow::Failure;
use gradus_native::{Data, Entry, Layout, Leaf, Limits, RunError};
use std::path::Path;
use support::{entry, natives, program};

fn entries(text: &str, names: &[&str]) -> (gradus_core::Program, Vec<Entry>) {
    let program = program("test.gr", text, Path::new("."));
    let entries = names.iter().map(|n| entry(&program, n)).collect();
    (program, entries)
}

#[test]
fn failures_have_their_place() {
    let text = "let f (a : real[]) (i : int) : real = sum (map (fun x -> x * a.(i)) a)\n\
                let g (a : real[]) (i : int) : real[] = grad (fun a -> f a i) a\n\
                let h (n : int) (m : int) : int = n / m";
    for native in natives(text, &["f", "g", "h"]) {
        let a = Leaf::reals([1.0, 2.0, 3.0]);
        // f = (sum a) a_i, so the gradient is a_i everywhere, and the sum besides at i.
        assert_eq!(native.call(0, &[a.clone(), Leaf::Int(1)]), Ok(vec![Leaf::Real(12.0)]));
        assert_eq!(native.call(1, &[a.clone(), Leaf::Int(1)]), Ok(vec![Leaf::reals([2.0, 8.0, 2.0])]));
        for entry in [0, 1] {
            for i in [-1, 3, i64::MAX, i64::MIN] {
                match native.call(entry, &[a.clone(), Leaf::Int(i)]) {
                    Err(RunError::Failed(site)) => {
                        assert_eq!(site.failure, Failure::Index);
                        assert_eq!(&text[site.span.start as usize..site.span.end as usize], "a.(i)");
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(native.call(2, &[Leaf::Int(-7), Leaf::Int(2)]), Ok(vec![Leaf::Int(-3)]));
        assert!(
            matches!(native.call(2, &[Leaf::Int(1), Leaf::Int(0)]), Err(RunError::Failed(site)) if site.failure == Failure::DivisionByZero)
        );
        let wrong = native.call(2, &[Leaf::Real(1.0), Leaf::Int(0)]);
        assert!(matches!(wrong, Err(RunError::Arguments { .. })));
    }
}

#[test]
fn what_differs_in_shape_fails() {
    let text = "type r = { w : real[]; b : real }\n\
                let rows (x : real) : real = sum (map sum (build 3 (fun i -> build (i + 1) (fun j -> x))))\n\
                let many (x : real) : real = sum (map sum (build 30 (fun i -> build (i + 1) (fun j -> x))))\n\
                let both (x : real) : real = let f (a : real[]) (b : real[]) = let m = [| a; b |] in sum m.(0) * sum m.(1) in f (build 3 real) (build (round x) real)\n\
                let elements (x : real) : real = fold (fun s l -> s + sum l.w * l.b) 0.0 (build 3 (fun i -> { w = build (i + 1) (fun j -> x); b = x }))\n\
                let tangent (x : real) : real = jvp (fun o -> match o with None -> 0.0 | Some y -> y * y) (Some x) None\n\
                let cotangent (x : real) : real = vjp (fun y -> Some (y * y)) x None\n\
                let derived (x : real) : real = grad rows x";
    let rows = ["rows", "many", "both", "elements", "derived"];
    for (names, failure) in [(&rows[..], Failure::Rows), (&["tangent", "cotangent"], Failure::Shape)] {
        for native in natives(text, names) {
            for (entry, name) in names.iter().enumerate() {
                match native.call(entry, &[Leaf::Real(2.0)]) {
                    Err(RunError::Failed(site)) => assert_eq!(site.failure, failure, "{name}"),
                    other => panic!("{name}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn the_first_failure_is_the_one() {
    let text = "let f ((x, y) : real[] * real[]) : real = sum (map (fun v -> exp (v * v) * sin v * y.(5)) x) + x.(9)\n\
                let by_f (x : real[]) (y : real[]) : real * (real[] * real[]) = value_and_grad f (x, y)";
    for native in natives(text, &["by_f"]) {
        match native.call(0, &[Leaf::reals([1.0, 2.0]), Leaf::reals([1.0])]) {
            Err(RunError::Failed(site)) => {
                assert_eq!(&text[site.span.start as usize..site.span.end as usize], "y.(5)");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn gradients_are_collected_not_added_up() {
    let text = "let neighbours (x : real[]) : real =\n\
                \x20 let times (y : real[]) = build (length x) (fun i -> if i = 0 then y.(0) else x.(i) * y.(i - 1)) in\n\
                \x20 sum (times (times (times x)))\n\
                let vector (x : real[]) : real[] = grad neighbours x\n\
                let matrix (w : real[][]) (x : real[]) : real * real[][] =\n\
                \x20 value_and_grad (fun w -> sum (map square (matvec w x))) w";
    let (program, entries) = entries(text, &["vector", "matrix"]);
    for (entry, sums) in entries.into_iter().zip([0, 2]) {
        let (module, _, _) = gradus_native::lower(&program, &[entry]).expect("is compiled");
        let text = gradus_native::flow::print::module(&module);
        // No zeros to add to, and no sums but of the squares and of a row.
        assert_eq!((text.matches("fill").count(), text.matches("accumulate").count()), (0, sums), "{text}");
    }
}

#[test]
fn the_way_back_through_a_layer_is_products() {
    let text = "let layer ((w, b, xs) : real[][] * real[] * real[][]) : real =\n\
                \x20 sum (map (fun h -> sum (map square h)) (map (fun x -> map2 (fun r c -> tanh (dot r x + c)) w b) xs))\n\
                let scores ((q, k) : real[][] * real[][]) : real =\n\
                \x20 sum (map (fun a -> square (sum (map tanh (map (fun b -> dot a b) k)))) q)\n\
                let by_layer (p : real[][] * real[] * real[][]) : real * (real[][] * real[] * real[][]) = value_and_grad layer p\n\
                let by_scores (p : real[][] * real[][]) : real * (real[][] * real[][]) = value_and_grad scores p";
    let (program, entries) = entries(text, &["by_layer", "by_scores"]);
    for entry in entries {
        let (module, _, _) = gradus_native::lower(&program, &[entry]).expect("is compiled");
        let text = gradus_native::flow::print::module(&module);
        // Computed once: what a layer collects is read on the way back, and the value of `scores` is computed there.
        assert_eq!(text.matches("tanh").count(), 1, "{text}");
        // One product on the way there and two on the way back.
        assert_eq!(text.matches("product sums").count(), 1, "{text}");
        assert_eq!(text.matches("product x_adj").count(), 2, "{text}");
    }
}

#[test]
fn layers_on_a_batch_are_products() {
    let text = "let net ((w, v, xs) : real[][] * real[][] * real[][]) : real =\n\
                \x20 sum (map (fun x -> logsumexp (matvec v (map tanh (matvec w x)))) xs)\n\
                let by_net (p : real[][] * real[][] * real[][]) : real * (real[][] * real[][] * real[][]) = value_and_grad net p\n\
                let squares ((a, b) : real[][] * real[][]) : real = sum (map (fun r -> sum (map square r)) (matmul a b))\n\
                let by_squares (p : real[][] * real[][]) : real * (real[][] * real[][]) = value_and_grad squares p";
    let (program, entries) = entries(text, &["by_net", "by_squares"]);
    let printed = entries.into_iter().map(|entry| {
        let (module, _, _) = gradus_native::lower(&program, &[entry]).expect("is compiled");
        gradus_native::flow::print::module(&module)
    });
    let printed: Vec<String> = printed.collect();
    let products = |text: &str| {
        text.lines().filter(|line| line.trim_start().starts_with("product ") && line.contains("+=")).count()
    };
    assert_eq!(products(&printed[1]), 3, "{}", printed[1]);
    let text = &printed[0];
    // Two on the way there and three on the way back, by the weights of both layers and by the inputs; nothing is computed twice.
    let functions = ["tanh", "exp"].map(|function| text.matches(&format!("= {function} ")).count());
    assert_eq!((products(text), functions), (5, [1, 1]), "{text}");
}

/// Of sums of cubes, so that what is multiplied on the way back differs from element to element. All numbers are whole, so every sum is exact.
#[test]
fn slopes_of_large_products() {
    let text = "let cubes (a : real[][]) (b : real[][]) : real = sum (map (fun row -> sum (map (fun x -> x ^ 3) row)) (matmul a b))\n\
                let by_left (a : real[][]) (b : real[][]) : real[][] = grad (fun a -> cubes a b) a\n\
                let by_right (a : real[][]) (b : real[][]) : real[][] = grad (fun b -> cubes a b) b";
    let natives = natives(text, &["by_left", "by_right"]);
    for (n, k, m) in [(21, 35, 18), (70, 66, 5), (9, 130, 67)] {
        let left = |i: usize, l: usize| ((i + 2 * l) % 5) as f64;
        let right = |l: usize, j: usize| ((3 * l + j) % 4) as f64;
        let product = |i: usize, j: usize| (0..k).map(|l| left(i, l) * right(l, j)).sum::<f64>();
        let slopes: Vec<Vec<f64>> =
            (0..n).map(|i| (0..m).map(|j| 3.0 * product(i, j) * product(i, j)).collect()).collect();
        let matrix = |rows: usize, columns: usize, at: &dyn Fn(usize, usize) -> f64| {
            let items = (0..rows * columns).map(|place| at(place / columns, place % columns));
            Leaf::matrix(rows, columns, items.collect::<Vec<_>>())
        };
        let by_left = matrix(n, k, &|i, l| (0..m).map(|j| slopes[i][j] * right(l, j)).sum());
        let by_right = matrix(k, m, &|l, j| (0..n).map(|i| slopes[i][j] * left(i, l)).sum());
        let arguments = [matrix(n, k, &left), matrix(k, m, &right)];
        for native in &natives {
            assert_eq!(native.call(0, &arguments), Ok(vec![by_left.clone()]), "{n} {k} {m}");
            assert_eq!(native.call(1, &arguments), Ok(vec![by_right.clone()]), "{n} {k} {m}");
        }
    }
}

#[test]
fn matrices_with_rows_and_columns_exchanged_are_not_made_on_the_way_back() {
    let text = "let steps (n : int) ((a, c) : real[][] * real[][]) : real =\n\
                \x20 sum (map sum (loop n (fun c -> matmul (transpose a) (matmul c a)) c))\n\
                let by_steps (p : real[][] * real[][]) : real * (real[][] * real[][]) = value_and_grad (steps 5) p\n\
                let solved (n : int) ((a, c) : real[][] * real[][]) : real =\n\
                \x20 let step k (c, all) =\n\
                \x20   let d = solve_many (matmul a c) a in\n\
                \x20   (matmul (transpose a) (matmul c d), set all (n - 1 - k) d) in\n\
                \x20 let (c, all) = ifold n step (c, replicate n a) in\n\
                \x20 sum (map sum c) + sum (map (fun d -> d.(0).(0)) all)\n\
                let by_solved (p : real[][] * real[][]) : real * (real[][] * real[][]) = value_and_grad (solved 5) p";
    let (program, entries) = entries(text, &["by_steps", "by_solved"]);
    let printed = entries.into_iter().map(|entry| {
        let (module, _, _) = gradus_native::lower(&program, &[entry]).expect("is compiled");
        gradus_native::flow::print::module(&module)
    });
    let printed: Vec<String> = printed.collect();
    // The adjoint of an exchanged product is added to that of the product.
    assert_eq!(printed[0].matches(" = fill ").count(), 7, "{}", printed[0]);
    // The trace has no matrix twice.
    let trace = printed[1].lines().find(|line| line.contains("trace")).unwrap_or_default();
    assert_eq!(trace.matches("real[2]").count(), 10, "{}", printed[1]);
}

#[test]
fn loops_that_count_are_loops_over_a_range() {
    let text = "let rec up (i : int) (n : int) (s : real) (x : real) : real = if i >= n then s else up (i + 1) n (s * x) x\n\
                let rec beyond (i : int) (n : int) (s : real) (x : real) : real = if i <= n then beyond (i + 1) n (s * x) x else s\n\
                let rec down (i : int) (s : real) (x : real) : real = if i < 0 then s else down (i - 1) (s * x) x\n\
                let all (a : real[]) : real =\n\
                \x20 iterate (fun (i, s) -> if i = length a then Inr (exp s) else Inl (i + 1, s * a.(i))) (0, 1.0)\n\
                let rec shorter (a : real[]) : real =\n\
                \x20 if length a = 1 then a.(0) else shorter (build (length a - 1) (fun i -> a.(i) + a.(i + 1)))\n\
                let rec longer (x : real) (a : real[]) : real =\n\
                \x20 if length a >= 5 then sum a else longer x (build (length a + 1) (fun i -> if i = 0 then x else x * a.(i - 1)))\n\
                let rec early (i : int) (x : real) : real = if i >= 10 || x > 100.0 then x else early (i + 1) (x * x)\n\
                let rec by_two (i : int) (x : real) : real = if i >= 10 then x else by_two (i + 2) (x * x)\n\
                let rec never (a : real[]) : real =\n\
                \x20 if length a = 3 then a.(0) else never (build (length a - 1) (fun i -> a.(i) + a.(i + 1)))";
    let names = ["up", "beyond", "down", "all", "shorter", "longer", "early", "by_two", "never"];
    let (program, entries) = entries(text, &names);
    for (entry, whiles) in entries.into_iter().zip([0, 0, 0, 0, 0, 0, 1, 1, 1]) {
        let (module, _, _) = gradus_native::lower(&program, &[entry]).expect("is compiled");
        let text = gradus_native::flow::print::module(&module);
        assert_eq!(text.matches("while").count(), whiles, "{text}");
        // A result that is there when the loop stops is not handed on before.
        assert!(!text.contains("result"), "{text}");
    }
    for native in natives(text, &["shorter", "never"]) {
        let numbers = |n: i32| [Leaf::reals((0..n).map(f64::from).collect::<Vec<f64>>())];
        // The numbers of the third row of Pascal's triangle.
        assert_eq!(native.call(0, &numbers(4)), Ok(vec![Leaf::Real(3.0 + 6.0 + 3.0)]));
        assert_eq!(native.call(0, &numbers(1)), Ok(vec![Leaf::Real(0.0)]));
        assert_eq!(native.call(1, &numbers(4)), Ok(vec![Leaf::Real(1.0)]));
        // What has no number less than none fails where it would be made.
        for (function, n) in [(0, 0), (1, 0), (1, 2)] {
            match native.call(function, &numbers(n)) {
                Err(RunError::Failed(site)) => {
                    assert!(text[site.span.start as usize..].starts_with("build (length a - 1)"), "{site:?}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Arrays of 20,000 places that a loop changes in 60,000 steps, under conditions, several places at once, or by rows: a gradient that kept an array for
/// each step, or only copied one, would need gigabytes, or go through as many.
#[test]
fn gradients_of_loops_that_change_arrays() {
    let text = "let of_three (x : real[]) : real[] =\n\
                \x20 ifold (3 * length x) (fun k x -> let i = k mod length x in\n\
                \x20   if x.(i) > 0.7 then set x i (0.9 * x.(i)) else if x.(i) > 0.3 then set x i (0.5 * x.(i)) else x) x\n\
                let until (x : real[]) : real[] =\n\
                \x20 iterate (fun (k, x) -> if k >= 3 * length x || x.(0) < 0.0 then Inr x else\n\
                \x20   let i = k mod length x in Inl (k + 1, set x i (x.(i) * (if x.(i) > 0.7 then 0.9 else 0.5)))) (0, x)\n\
                let rows (x : real[]) : real[] =\n\
                \x20 let m = map (fun v -> [| v; v |]) x in\n\
                \x20 let step k m = let i = k mod length m in\n\
                \x20   if m.(i).(0) > 0.7 then set m i (map (fun v -> 0.9 * v) m.(i)) else set m i (set m.(i) 0 (0.5 * m.(i).(0))) in\n\
                \x20 map (fun r -> r.(0)) (ifold (3 * length m) step m)\n\
                let exchanged (x : real[]) : real[] =\n\
                \x20 let x = of_three x in\n\
                \x20 ifold (length x - 1) (fun i x -> if x.(i) < 1.0 then set (set x i x.(i + 1)) (i + 1) x.(i) else x) x\n\
                let by_three (x : real[]) : real[] = grad (fun x -> sum (of_three x)) x\n\
                let by_until (x : real[]) : real[] = grad (fun x -> sum (until x)) x\n\
                let by_rows (x : real[]) : real[] = grad (fun x -> sum (rows x)) x\n\
                let by_exchanged (x : real[]) : real[] = grad (fun x -> sum (exchanged x)) x\n\
                let powers (x : real[]) : real =\n\
                \x20 let n = length x in\n\
                \x20 let start = build n (fun _ -> replicate (n + 1) 1.0) in\n\
                \x20 let t = ifold n (fun i t -> ifold n (fun j t -> set t i (set t.(i) (j + 1) (t.(i).(j) * x.(i)))) t) start in\n\
                \x20 sum (map (fun r -> r.(n)) t)\n\
                let by_powers (x : real[]) : real[] = grad powers x";
    let limits = Limits { max_memory: Some(64_000_000), ..Limits::default() };
    for native in natives(text, &["by_three", "by_until", "by_rows", "by_exchanged", "by_powers"]) {
        // In a loop in a loop, a table of 300 by 300.
        assert_eq!(native.call_within(4, &[Leaf::reals([1.0; 300])], &limits), Ok(vec![Leaf::reals([300.0; 300])]));
        for entry in 0..4 {
            let found = native.call_within(entry, &[Leaf::reals([0.8; 20_000])], &limits);
            let Ok([Leaf::Reals { data, .. }]) = found.as_deref() else { panic!("{entry}: {found:?}") };
            // 0.8, 0.72, 0.648, 0.324
            assert!(
                data.len() == 20_000 && data.iter().all(|d| (d - 0.405).abs() < 1e-15),
                "{entry}: {:?}",
                &data[..4]
            );
        }
    }
}

#[test]
fn recursion_beyond_the_machine_stack() {
    let text = "let rec count (n : int) : int = if n = 0 then 0 else 1 + count (n - 1)\n\
                let rec product (n : int) (x : real) : real = if n = 0 then 1.0 else x * product (n - 1) x\n\
                let slope (n : int) (x : real) : real = diff (fun x -> product n x) x\n\
                let reverse_slope (n : int) (x : real) : real = grad (fun x -> product n x) x\n\
                let rec mixed (n : int) : int = if n = 0 then 1 else (3 * mixed (n - 1) + n) mod 1009";
    for native in natives(text, &["count", "slope", "reverse_slope", "mixed"]) {
        assert_eq!(native.call(0, &[Leaf::Int(1_000_000)]), Ok(vec![Leaf::Int(1_000_000)]));
        // A C compiler makes a loop of `count`, but not of this.
        let too_deep = native.call(3, &[Leaf::Int(1_000_000_000)]);
        assert!(matches!(too_deep, Err(RunError::TooDeep { .. })));
        assert_eq!(native.call(0, &[Leaf::Int(10)]), Ok(vec![Leaf::Int(10)]));
        // At 1 the slope of x^n is n.
        assert_eq!(native.call(1, &[Leaf::Int(100_000), Leaf::Real(1.0)]), Ok(vec![Leaf::Real(100_000.0)]));
        assert_eq!(native.call(2, &[Leaf::Int(1000), Leaf::Real(1.0)]), Ok(vec![Leaf::Real(1000.0)]));
    }
}

#[test]
fn long_loops_and_their_gradients() {
    let text = "let f (n : int) (x : real) : real =\n\
                  iterate (fun (i, y) -> if i = n then Inr y else Inl (i + 1, y + x / real n)) (0, 0.0)\n\
                let g (n : int) (x : real) : real = grad (f n) x\n\
                let rec descend (n : int) (x : real) : real = if n = 0 then x else descend (n - 1) (x - 0.1 * grad (fun y -> y * y) x)";
    for native in natives(text, &["g", "descend"]) {
        let Ok(found) = native.call(0, &[Leaf::Int(1_000_000), Leaf::Real(3.0)]) else { panic!("runs") };
        assert!(matches!(found[..], [Leaf::Real(x)] if (x - 1.0).abs() < 1e-9), "{found:?}");
        // Each step multiplies by 0.8.
        let Ok(found) = native.call(1, &[Leaf::Int(3), Leaf::Real(1.0)]) else { panic!("runs") };
        assert!(matches!(found[..], [Leaf::Real(x)] if (x - 0.512).abs() < 1e-15), "{found:?}");
    }
}

#[test]
fn records_variants_and_arrays_of_them() {
    let text = "type shape = Point | Circle of real | Box of real * real\n\
                type model = { scale : real; shapes : shape[]; pairs : (real * int)[] }\n\
                let area s = match s with Point -> 0.0 | Circle r -> pi * r * r | Box (w, h) -> w * h\n\
                let total (m : model) : real =\n\
                  m.scale * sum (map area m.shapes) + sum (map (fun (x, k) -> x * real k) m.pairs)\n\
                let gradient (m : model) : model = grad total m\n\
                let curvature (m : model) : real[][] = hessian total m\n\
                let squares (a : real[]) : real[] = map square a\n\
                let by_columns (a : real[]) : real[][] = jacobian squares a\n\
                let cubes (a : real[][]) : real = sum (map (fun r -> sum (map (fun x -> x ^ 3) r)) a)\n\
                let second (a : real[][]) : real[][] = hessian cubes a\n\
                let by_rows (a : real[][]) : real[][] = jacobian (fun a -> (cubes a, a.(0).(1))) a";
    let (program, entries) = entries(text, &["total", "gradient"]);
    let shape = |tag, args: &[f64]| Data::Variant { tag, args: args.iter().map(|x| Data::Real(*x)).collect() };
    let model = Data::tuple(vec![
        Data::Real(2.0),
        Data::array(vec![shape(2, &[3.0, 4.0]), shape(0, &[]), shape(2, &[1.0, 5.0])]),
        Data::array(vec![Data::tuple(vec![Data::Real(0.5), Data::Int(4)])]),
    ]);
    let layout = Layout::of(&program, &support::parts(&entries[0].ty).0).expect("flat");
    let leaves = layout.flatten(&model).expect("fits");
    let expected = Data::tuple(vec![
        Data::Real(17.0),
        Data::array(vec![shape(2, &[8.0, 6.0]), shape(0, &[]), shape(2, &[10.0, 2.0])]),
        Data::array(vec![Data::tuple(vec![Data::Real(4.0), Data::Int(4)])]),
    ]);
    for native in natives(text, &["total", "gradient"]) {
        assert_eq!(native.call(0, &leaves), Ok(vec![Leaf::Real(2.0 * 17.0 + 2.0)]));
        let gradient = native.call(1, &leaves).expect("runs");
        assert_eq!(layout.unflatten(&mut gradient.into_iter()).expect("fits"), expected);
    }
    // The reals in their order: the scale s, the boxes' w, h, w', h', and the first of the pair; total = s (w h + w' h') + 4 p.
    let rows = [
        [0.0, 4.0, 3.0, 5.0, 1.0, 0.0],
        [4.0, 0.0, 2.0, 0.0, 0.0, 0.0],
        [3.0, 2.0, 0.0, 0.0, 0.0, 0.0],
        [5.0, 0.0, 0.0, 0.0, 2.0, 0.0],
        [1.0, 0.0, 0.0, 2.0, 0.0, 0.0],
        [0.0; 6],
    ];
    for native in natives(text, &["curvature"]) {
        assert_eq!(native.call(0, &leaves), Ok(vec![Leaf::matrix(6, 6, rows.concat())]));
    }
    for native in natives(text, &["by_columns", "second", "by_rows"]) {
        let found = native.call(0, &[Leaf::reals([1.0, 2.0])]);
        assert_eq!(found, Ok(vec![Leaf::matrix(2, 2, [2.0, 0.0, 0.0, 4.0])]));
        let a = [Leaf::matrix(2, 2, [1.0, 2.0, 3.0, 4.0])];
        let diagonal = [6.0, 0.0, 0.0, 0.0, 0.0, 12.0, 0.0, 0.0, 0.0, 0.0, 18.0, 0.0, 0.0, 0.0, 0.0, 24.0];
        assert_eq!(native.call(1, &a), Ok(vec![Leaf::matrix(4, 4, diagonal)]));
        let rows = [3.0, 12.0, 27.0, 48.0, 0.0, 1.0, 0.0, 0.0];
        assert_eq!(native.call(2, &a), Ok(vec![Leaf::matrix(2, 4, rows)]));
    }
}

/// Large functions keep values in other places than small ones: all the steps are one function, and what the way back uses was made long before.
#[test]
fn gradients_of_long_straight_programs() {
    const STEPS: usize = 120;
    let mut text =
        String::from("let f (w : real[]) (x : real) : real =\n  let s = map (fun v -> v * x) w in\n  let y0 = x in\n");
    for k in 0..STEPS {
        let step = match k % 3 {
            0 => format!("y{k} + sin (w.({}) * y{k})", k % 2),
            1 => format!("if y{k} > 0.0 then cos y{k} * w.(0) else y{k} * w.(1)"),
            _ => format!("ifold 2 (fun i a -> a * 0.5 + y{k} * s.(i)) 0.1"),
        };
        text.push_str(&format!("  let y{} = {step} in\n", k + 1));
    }
    text.push_str(&format!("  y{STEPS} + s.(0)\n"));
    text.push_str("let g (w : real[]) (x : real) : real[] * real = grad (fun (w, x) -> f w x) (w, x)\n");
    let (w, x) = ([0.7_f64, 0.4], 0.3_f64);
    // The same by hand.
    let s = [w[0] * x, w[1] * x];
    let mut ys = vec![x];
    for k in 0..STEPS {
        let y = ys[k];
        ys.push(match k % 3 {
            0 => y + (w[k % 2] * y).sin(),
            1 if y > 0.0 => y.cos() * w[0],
            1 => y * w[1],
            _ => (0.1 * 0.5 + y * s[0]) * 0.5 + y * s[1],
        });
    }
    let (mut w_adj, mut s_adj, mut y_adj) = ([0.0; 2], [1.0, 0.0], 1.0);
    for k in (0..STEPS).rev() {
        let y = ys[k];
        match k % 3 {
            0 => {
                let slope = (w[k % 2] * y).cos() * y_adj;
                w_adj[k % 2] += y * slope;
                y_adj += w[k % 2] * slope;
            }
            1 if y > 0.0 => {
                w_adj[0] += y.cos() * y_adj;
                y_adj *= -y.sin() * w[0];
            }
            1 => {
                w_adj[1] += y * y_adj;
                y_adj *= w[1];
            }
            _ => {
                s_adj[0] += 0.5 * y * y_adj;
                s_adj[1] += y * y_adj;
                y_adj *= 0.5 * s[0] + s[1];
            }
        }
    }
    let x_adj = y_adj + w[0] * s_adj[0] + w[1] * s_adj[1];
    let expected = [ys[STEPS] + s[0], w_adj[0] + x * s_adj[0], w_adj[1] + x * s_adj[1], x_adj];
    for native in natives(&text, &["f", "g"]) {
        let arguments = [Leaf::reals(w), Leaf::Real(x)];
        let mut found = native.call(0, &arguments).expect("runs");
        found.extend(native.call(1, &arguments).expect("runs"));
        let [Leaf::Real(y), Leaf::Reals { data, .. }, Leaf::Real(x_adj)] = &found[..] else { panic!("{found:?}") };
        let found = [*y, data[0], data[1], *x_adj];
        let close = |(f, e): (&f64, &f64)| (f - e).abs() <= 1e-12 * e.abs().max(1.0);
        assert!(found.iter().zip(&expected).all(close), "{found:?} instead of {expected:?}");
    }
}

/// Of zeros the last one counts, and what is no number stays, wherever in a vector they are.
#[test]
fn extremes_of_zeros_and_of_what_is_no_number() {
    let text = "let top (xs : real[]) : real = max xs\n\
                let bottom (xs : real[]) : real = min (map (fun x -> x * 2.0) xs)\n\
                let grown (xs : real[]) : real = max (map (fun x -> sin x - 3.0) xs)";
    let choices = [[0.0, -0.0, 0.0, -0.0], [0.0, -0.0, -1.0, -2.5], [0.0, -0.0, 1.0, 2.5], [4.0, 0.5, f64::NAN, -7.0]];
    let top = |x: f64, y: f64| if x > y || x.is_nan() { x } else { y };
    let bottom = |x: f64, y: f64| if x < y || x.is_nan() { x } else { y };
    let same = |found: &[Leaf], expected: f64| match found {
        [Leaf::Real(x)] => x.to_bits() == expected.to_bits() || x.is_nan() && expected.is_nan(),
        _ => false,
    };
    for native in natives(text, &["top", "bottom", "grown"]) {
        for (count, of) in (1..70).flat_map(|count| choices.map(|of| (count, of))) {
            // Without a pattern, so that each is in each place once.
            let xs: Vec<f64> = (0..count).map(|i| of[(i * i * 7 + count * 5 + i / 3) % 4]).collect();
            let found = |entry: usize| native.call(entry, &[Leaf::reals(xs.clone())]).unwrap();
            let (most, least) = (xs.iter().copied().reduce(top), xs.iter().map(|x| 2.0 * x).reduce(bottom));
            assert!(same(&found(0), most.unwrap()), "the maximum of {xs:?} is not {:?}", found(0));
            assert!(same(&found(1), least.unwrap()), "the minimum of {xs:?}, doubled, is not {:?}", found(1));
            let most = xs.iter().map(|x| x.sin() - 3.0).reduce(top).unwrap();
            let [Leaf::Real(grown)] = found(2)[..] else { panic!("no real") };
            assert!((grown - most).abs() < 1e-14 || grown.is_nan() && most.is_nan(), "{xs:?}: {grown}, not {most}");
        }
    }
}
