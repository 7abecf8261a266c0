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
    let text = "type 'a perfect = Zero of 'a | Succ of ('a * 'a) perfect\n\
                let rec size : 'a. 'a perfect -> int = fun t -> match t with Zero _ -> 1 | Succ p -> 2 * size p\n\
                show 1.5\n\
                show size (Succ (Zero (1, 2)))\n";
    let folder = folder.with("mixed.gr", text);
    let ran = folder.run(&["run", "mixed.gr", "--backend", "c"]);
    ran.exits(1).prints("1.5\n").says("error[E0801]").says("--backend reference");
}

#[test]
fn a_missing_compiler_names_the_alternative() {
    let folder = Folder::new("backend-compiler");
    let ran = folder.run_where("CC", "there-is-no-such-compiler", &["eval", "0.125 * 3.0", "--backend", "c"]);
    ran.exits(1).says("there-is-no-such-compiler").says("--backend reference");
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
}
