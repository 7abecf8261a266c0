//! The commands on compiled backends: the same results as on the reference evaluator, or a refusal that says what to do.

mod support;

use support::Folder;

const LINE: &str = "type params = { slope : real; offset : real }\n\
                    data points : (real * real)[] from \"points.csv\"\n\
                    let predict p x = p.slope * x + p.offset\n\
                    let loss p = mean (map (fun (x, y) -> (predict p x - y) ^ 2) points)\n\
                    let start = { slope = 1.0; offset = 0.0 }\n\
                    show loss start\n\
                    check loss start = 0.5\n\
                    show (1, Some 2.5, None, [| true; false |], [| (1, 2.0) |], (), [| [| 1.0; 2.0 |] |])\n";

fn folder(test: &str) -> Folder {
    // Residuals at slope 1, offset 0: 0, -1.
    Folder::new(test).with("line.gr", LINE).with("points.csv", "x,y\n1,1\n2,3\n")
}

const BACKENDS: [&str; 3] = ["reference", "native", "c"];

/// What the compiler refuses: a function at ever larger types.
const PERFECT: &str = "type 'a perfect = Zero of 'a | Succ of ('a * 'a) perfect\n\
    let rec size : 'a. 'a perfect -> int = fun t -> match t with Zero _ -> 1 | Succ p -> 2 * size p\n";

#[test]
fn programs_run_with_their_data() {
    let folder = folder("backend-run");
    for backend in BACKENDS {
        let shown = "0.5\n(1, Some 2.5, None, [| true; false |], [| (1, 2.0) |], (), [| [| 1.0; 2.0 |] |])\n";
        folder.run(&["run", "line.gr", "--backend", backend]).exits(0).prints(shown);
        folder
            .run(&["test", "line.gr", "--backend", backend])
            .exits(0)
            .prints("line.gr: 1 passed, 0 failed\n1 passed, 0 failed\n");
    }
}

#[test]
fn functions_are_called_and_differentiated() {
    let folder = folder("backend-call");
    let at = "{\"slope\": 1, \"offset\": 0}";
    for backend in BACKENDS {
        let run = |words: &[&str], prints: &str| {
            folder.run(&[words, &["--backend", backend]].concat()).exits(0).prints(prints);
        };
        run(&["eval", "grad (fun x -> x ^ 3) 2.0"], "12.0\n");
        run(&["eval", "fun x -> x + 1.0"], "<fun : real -> real>\n");
        run(&["call", "line.gr", "predict", "--arg", at, "--arg", "=start.slope"], "1.0\n");
        run(
            &["call", "line.gr", "(fun f x -> f (x + 1.0) + 0.0)", "--arg", "=fun x -> 2.0 * x", "--arg", "3"],
            "8.0\n",
        );
        // loss = ((s + o - 1)^2 + (2 s + o - 3)^2) / 2: gradient (-2, -1), Hessian (5, 3; 3, 2)
        run(
            &["grad", "line.gr", "loss", "--at", at],
            "{\"value\":0.5,\"gradient\":{\"slope\":-2.0,\"offset\":-1.0}}\n",
        );
        run(&["hessian", "line.gr", "loss", "--at", at], "[[5.0,3.0],[3.0,2.0]]\n");
        run(&["jacobian", "line.gr", "(fun (x, y) -> [| x * y; x |])", "--at", "[2, 3]"], "[[3.0,2.0],[1.0,0.0]]\n");
        let input = "let twice x = x * 2.0\ntwice 4.0\nshow twice 1.0\n";
        let printed = "twice : real -> real\n8.0 : real\n2.0\n";
        folder.run_with(&["repl", "--backend", backend], input).exits(0).prints(printed);
    }
}

#[test]
fn failures_are_reported_at_their_place() {
    let text = "let pick a i = a.(i) + 0.0\nshow pick [| 1.0; 2.0 |] 1\nshow pick [| 1.0; 2.0 |] 5\nshow 3\n";
    let folder = Folder::new("backend-failure").with("f.gr", text);
    for backend in BACKENDS {
        folder
            .run(&["run", "f.gr", "--backend", backend])
            .exits(1)
            .prints("2.0\n")
            .says("error[E0603]")
            .says("f.gr:1:16");
    }
}

#[test]
fn what_is_not_compiled_is_said() {
    let folder = folder("backend-refusal");
    folder.run(&["eval", "1", "--backend", "c", "--kinks=warn"]).exits(1).says("E0810").says("--backend reference");
    folder.run(&["eval", "1", "--backend", "c", "--ad", "forward"]).exits(1).says("E0810");
    folder.run(&["eval", "1", "--backend", "gpu"]).exits(2);
    // A term that is refused keeps no other from running.
    let folder = folder.with("mixed.gr", PERFECT.to_string() + "show 1.5\nshow size (Succ (Zero (1, 2)))\n");
    let ran = folder.run(&["run", "mixed.gr", "--backend", "c"]);
    ran.exits(1).prints("1.5\n").says("error[E0801]").says("--backend reference");
}

#[test]
fn a_missing_compiler_names_the_alternative() {
    let folder = Folder::new("backend-compiler");
    let ran = folder.run_where("CC", "there-is-no-such-compiler", &["eval", "0.125 * 3.0", "--backend", "c"]);
    ran.exits(1).says("there-is-no-such-compiler").says("--backend native");
}

#[test]
fn by_default_the_evaluator_does_what_is_not_compiled() {
    // Items and values of both kinds need each other.
    let items = "let ten = size (Succ (Zero (1, 2))) * 5\n\
                 let sums = build ten (fun i -> real i)\n\
                 show sum sums\n\
                 show size (Succ (Succ (Zero ((1, 2), (3, 4))))) + length sums\n\
                 show grad (fun x -> x * sum sums) 1.0\n\
                 let scaled x = x * real ten\n\
                 show taylor 9 scaled 1.0\n";
    let folder = Folder::new("backend-default").with("mixed.gr", PERFECT.to_string() + items);
    let taylor = "[| 10.0; 10.0; 0.0; 0.0; 0.0; 0.0; 0.0; 0.0; 0.0; 0.0 |]";
    folder.run(&["run", "mixed.gr"]).exits(0).prints(&format!("45.0\n14\n45.0\n{taylor}\n"));
    folder.run(&["grad", "mixed.gr", "scaled", "--at", "2"]).exits(0).prints("{\"value\":20.0,\"gradient\":10.0}\n");
    // Options of the evaluator, and what has a theorem.
    folder.run(&["eval", "grad abs 0.0", "--kinks", "error"]).exits(1).says("E0609");
    folder.run(&["eval", "grad (fun x -> x ^ 3) 2.0", "--ad", "forward"]).exits(0).prints("12.0\n");
    let certified = folder.run(&["grad", "mixed.gr", "(fun x -> x * 2.0)", "--at", "2", "--certify"]).exits(0).out();
    assert!(certified.contains("\"mode\":\"monadic\""), "{certified}");
    // What is too much to be compiled, since functions of functions are written out, and what has nothing to compute, for compiled code.
    let doubled: String = (1..30).map(|i| format!("let f{i} g x = f{} g (f{} g x)\n", i - 1, i - 1)).collect();
    let last = "let most (x : real) = f29 (fun y -> y + 0.5 * y) x\nlet f b x = if b then most x else x\n";
    let folder = folder.with("large.gr", format!("let f0 g x = g x\n{doubled}{last}"));
    folder.run(&["call", "large.gr", "f", "--arg", "false", "--arg", "2"]).exits(0).prints("2.0\n");
    folder.run(&["call", "large.gr", "most", "--arg", "2", "--backend", "native"]).exits(1).says("E0801");
    // Others are called, however much they would be.
    let doubled: String = (1..=20).map(|i| format!("let f{i} x = f{} (f{} x)\n", i - 1, i - 1)).collect();
    let folder = folder.with("called.gr", format!("let f0 x = x + 1.0\n{doubled}"));
    folder.run(&["call", "called.gr", "f20", "--arg", "2", "--backend", "native"]).exits(0).prints("1048578.0\n");
    folder.run(&["eval", "iterate (fun x -> Inl x) 1", "--max-steps", "1e4"]).exits(1).says("E0611");
}

#[test]
fn a_failure_is_told_as_by_the_evaluator() {
    let items = "let table = build 3 (fun i -> 2 * i)\n\
                 let unused = table.(7)\n\
                 let pick b = if b then unused else table.(1)\n\
                 show pick (length table > 5)\n\
                 show table.(4)\n\
                 show 1.5\n";
    let folder = Folder::new("backend-told").with("fails.gr", items);
    let (found, expected) =
        (folder.run(&["run", "fails.gr"]), folder.run(&["run", "fails.gr", "--backend", "reference"]));
    assert_eq!((found.out(), found.err()), (expected.out(), expected.err()));
    found.exits(1).prints("2\n").says("index 4 is outside an array of 3 elements");
    // The evaluator would take minutes to get there.
    let items = "let rec count (n : int) : int = if n = 0 then 0 else count (n - 1)\n\
                 show [| 1 |].(1 + count 300000000)\n";
    let folder = folder.with("late.gr", items);
    folder.run(&["run", "late.gr"]).exits(1).says("error[E0603]").says("late.gr:2:6");
    // Recursion that never ends, and a value that needs itself.
    let folder = folder.with("deep.gr", "let rec deep x = 1.0 + deep (x + 1.0)\nshow deep 0.0\n");
    folder.run(&["run", "deep.gr"]).exits(1).says("E0806").says("deep.gr:1:").says("never ends");
    let circle = "let f x = x * 2.0\nlet a = sum (build 3 (fun i -> grad f (real i)))\n\
                  derivative f x dy = a * dy\nshow a\n";
    let folder = folder.with("circle.gr", circle);
    for backend in ["auto", "native", "reference"] {
        folder.run(&["run", "circle.gr", "--backend", backend]).exits(1).says("E0615");
    }
}

#[test]
fn values_of_the_top_level_are_computed_once() {
    let folder = Folder::new("backend-once");
    let items = "let rec walk (n : int) (x : real) : real = if n = 0 then x else walk (n - 1) (0.5 * x + 1.0)\n\
                 let limit = walk 100000 0.0\n\
                 let f x = x * limit\n\
                 show f 1.0\n\
                 show grad f 1.0\n";
    let folder = folder.with("once.gr", items);
    for backend in ["auto", "native", "c"] {
        folder.run(&["run", "once.gr", "--backend", backend]).exits(0).prints("2.0\n2.0\n");
        // The limit is for each run of code: a call that walks again takes ten steps more than a walk.
        let call = ["call", "once.gr", "(fun n -> ifold n (fun _ x -> f x) 1.0)", "--arg", "10"];
        folder.run(&[&call[..], &["--backend", backend, "--max-steps", "100005"]].concat()).exits(0).prints("1024.0\n");
    }
}

#[test]
fn bench_measures_a_function_and_its_gradient() {
    let folder = folder("bench");
    let at = "{\"slope\": 1, \"offset\": 0}";
    for backend in BACKENDS {
        let words = ["bench", "line.gr", "loss", "--at", at, "--backend", backend, "--seconds", "0.01"];
        let text = folder.run(&words).exits(0).out();
        assert!(text.contains("times the function"), "{text}");
        let json = folder.run(&[&words[..], &["--format", "json"]].concat()).exits(0).out();
        let fields: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let number = |name: &str| fields[name].as_f64().unwrap_or(-1.0);
        for name in ["primal_ns", "gradient_ns", "ratio", "first_result_ms", "threads"] {
            assert!(number(name) > 0.0, "{name}: {json}");
        }
        assert!((number("ratio") * number("primal_ns") / number("gradient_ns") - 1.0).abs() < 1e-9);
        assert!(fields.get("peak_bytes").is_some() && fields["backend"] == backend && fields["threads"] == 1);
        let json = folder.run(&[&words[..], &["--format", "json", "--threads", "2"]].concat()).exits(0).out();
        let fields: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(fields["threads"], if backend == "reference" { 1 } else { 2 });
    }
    folder.run(&["bench", "line.gr", "predict", "--at", at]).exits(2);
    // By default it says what ran.
    let words = ["bench", "line.gr", "loss", "--at", at, "--seconds", "0.01", "--format", "json"];
    for (options, ran) in [(&[][..], "native"), (&["--ad", "forward"], "reference")] {
        let json = folder.run(&[&words[..], options].concat()).exits(0).out();
        let fields: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(fields["backend"], ran);
    }
}
