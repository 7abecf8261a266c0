//! `gradus explain`: what the compiler made of a function, with the places of the source.

mod support;

use support::Folder;

const PROGRAM: &str = "\
let flat (x : real) : real = x * x + 1.0

let orbit (x : real) : real =
  ifold 1000 (fun _ y -> sin y * x) x

let total (a : real[]) : real =
  sum (map (fun x -> exp x) a)

let relax (a : real[]) : real =
  sum (ifold 1000 (fun _ b -> build (length b) (fun i -> if i = 0 then b.(0) else sin b.(i) * b.(i - 1))) a)

let grow (a : real[]) : real =
  sum (ifold 100 (fun _ b -> build (length b + 1) (fun i -> sin b.(i / 2))) a)

type tree = Leaf of real | Node of tree * tree

let rec product (t : tree) : real = match t with
  | Leaf x -> x * x
  | Node (l, r) -> product l * product r

let chosen (x : real) : real =
  let fs = map (fun k -> if k > 0.5 then (fun y -> y * x) else (fun y -> sin y)) [|x; 2.0|] in
  fs.(0) (fs.(1) x)

let orbits (a : real[]) : real =
  sum (map orbit a)
";

/// What is said about a function and about its gradient.
fn explained(folder: &Folder, function: &str) -> (String, String) {
    let all = folder.run(&["explain", "e.gr", function]).exits(0).out();
    let (own, gradient) = all.split_once("gradient by parameter 0\n").expect("both");
    (own.to_string(), gradient.to_string())
}

#[test]
fn places_loops_and_what_they_save() {
    let folder = Folder::new("explain").with("e.gr", PROGRAM);
    let straight = "  straight code: no loops, nothing saved, nothing on the heap\n";
    assert_eq!(explained(&folder, "flat"), (format!("flat : real -> real\n{straight}"), straight.to_string()));

    // The state of each iteration is needed on the way back, and the sine.
    let (own, gradient) = explained(&folder, "orbit");
    assert!(own.contains("e.gr:4:3: a loop: carries y: real\n") && !own.contains("saves"), "{own}");
    assert!(
        gradient.contains("e.gr:4:3: one loop there, one back; saves of each iteration sin: real, y: real\n"),
        "{gradient}"
    );

    // One for each element: both loops are those of the program, and that they go side by side is said apart.
    let (own, gradient) = explained(&folder, "orbits");
    let remark = "e.gr:26:3: the loops inside take each step for up to 128 iterations at once\n";
    assert!(own.contains(remark) && gradient.contains(remark), "{own}{gradient}");
    assert!(own.contains("e.gr:4:3: a loop: carries y: real\n"), "{own}");
    assert!(
        gradient.contains(
            "e.gr:4:3: on the way back: one loop runs again, one back; saves of each iteration sin: real, y: real\n"
        ),
        "{gradient}"
    );

    // Independent iterations need nothing of each other. `map` and `sum` come from the library: the place is that of the call.
    let (own, gradient) = explained(&folder, "total");
    assert!(own.contains("e.gr:7:3: a loop of independent iterations: adds up; on all cores"), "{own}");
    assert!(
        gradient.contains("on all cores if there is enough to do; nothing is saved") && !gradient.contains("library"),
        "{gradient}"
    );

    // A whole array for each iteration.
    let (_, gradient) = explained(&folder, "relax");
    assert!(gradient.contains("real[]\n"), "{gradient}");
    assert!(gradient.contains("e.gr:10:8: if it is long, it saves a segment of its steps at a time"), "{gradient}");
    // Also if its length changes.
    let (_, gradient) = explained(&folder, "grow");
    assert!(gradient.contains("saves of each iteration b: real[]\n") && !gradient.contains("heap"), "{gradient}");
}

#[test]
fn recursion_cells_and_unknown_functions() {
    let folder = Folder::new("explain-heap").with("e.gr", PROGRAM);
    let (own, gradient) = explained(&folder, "product");
    assert!(own.contains("`product` calls itself") && !own.contains("heap"), "{own}");
    assert!(gradient.contains("leaves a trace on the tape for the way back"), "{gradient}");
    assert!(gradient.contains("makes cells for derivatives of `tree`"), "{gradient}");
    let (own, _) = explained(&folder, "chosen");
    assert!(own.contains("e.gr:22:26: makes a function that is only known when the program runs"), "{own}");
    assert!(own.contains("e.gr:23:3: calls a function that is only known when the program runs"), "{own}");
}

#[test]
fn programs_after_passes() {
    let folder = Folder::new("explain-dump").with("e.gr", PROGRAM);
    let shown = |pass: &str| folder.run(&["explain", "e.gr", "orbit", "--dump", pass]).exits(0).out();
    assert!(shown("core").contains("ifold 1000"));
    assert!(!shown("flow").contains("y_saved") && shown("derivative-flow").contains("y_saved"));
    let of_total = |pass: &str| folder.run(&["explain", "e.gr", "total", "--dump", pass]).exits(0).out();
    assert!(of_total("derivative").lines().count() > of_total("derivative-flow").lines().count());
    assert!(shown("lowered").contains("fun orbit(x: real) -> (real)"));
    assert!(shown("cranelift").contains("function u0:") && shown("c").contains("int entry("));
    folder.run(&["explain", "e.gr", "orbit", "--dump", "llvm"]).exits(2);
    let json = folder.run(&["explain", "e.gr", "orbit", "--format", "json"]).exits(0).out();
    for line in json.lines() {
        let fields: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert!(fields["line"] == 4 && fields["text"].is_string(), "{line}");
    }
}
