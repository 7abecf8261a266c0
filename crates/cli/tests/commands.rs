//! Every command, run as a user would run it.

mod support;

use support::Folder;

const LINE: &str = "type params = { slope : real; offset : real }\n\
                    let predict p x = p.slope * x + p.offset\n\
                    let loss p = (predict p 2.0 - 3.0) ^ 2\n";

fn folder(test: &str) -> Folder {
    Folder::new(test).with("line.gr", LINE)
}

#[test]
fn run_shows_checks_and_plots() {
    let program =
        "show 1 + 1\nshow { a = 1.5; b = [| 1.0; 2.0 |] }\ncheck 1 < 2\nplot [| 1.0; 2.0 |] to \"chart.svg\"\n";
    let program = format!("type t = {{ a : real; b : real[] }}\n{program}");
    let folder = Folder::new("run").with("p.gr", program);
    folder.run(&["run", "p.gr"]).exits(0).prints("2\n{ a = 1.5; b = [| 1.0; 2.0 |] }\n").says("wrote chart.svg");
    let chart = std::fs::read_to_string(folder.path().join("chart.svg")).expect("a chart");
    assert!(chart.starts_with("<svg") && chart.ends_with("</svg>\n"));
    folder.run(&["run", "p.gr", "--format", "json"]).exits(0).prints("2\n{\"a\":1.5,\"b\":[1.0,2.0]}\n");
}

#[test]
fn a_plot_without_file_is_drawn_in_the_terminal() {
    let folder = Folder::new("plot").with("p.gr", "plot [| for i < 10 -> real i |]");
    let drawn = folder.run(&["run", "p.gr"]).exits(0).out();
    assert!(drawn.lines().count() > 10 && drawn.contains('⠤') | drawn.contains('⡠') | drawn.contains('⢀'), "{drawn}");
}

#[test]
fn a_failed_check_does_not_stop_the_run() {
    let folder = Folder::new("failed").with("p.gr", "check 1 + 1 = 3\nshow 7\n");
    folder.run(&["run", "p.gr"]).exits(1).prints("7\n").says("left:  2").says("right: 3");
}

#[test]
fn eval_with_and_without_a_file() {
    let folder = folder("eval");
    folder.run(&["eval", "2.0 * 3.5"]).exits(0).prints("7.0\n");
    folder.run(&["eval", "grad (fun x -> x ^ 3) 2.0"]).exits(0).prints("12.0\n");
    folder.run(&["eval", "predict { slope = 2.0; offset = 1.0 } 3.0", "--in", "line.gr"]).exits(0).prints("7.0\n");
    folder.run(&["eval", "fun x -> x"]).exits(0).prints("<fun : 'a -> 'a>\n");
    folder.run(&["eval", "1 +"]).exits(1).says("error[");
}

#[test]
fn check_is_silent_when_all_is_well() {
    let folder = folder("check").with("bad.gr", "let f x = x + \"a\"");
    folder.run(&["check", "line.gr"]).exits(0).prints("");
    folder
        .run(&["check", "--types", "line.gr"])
        .exits(0)
        .prints("predict : params -> real -> real\nloss : params -> real\n");
    folder.run(&["check", "line.gr", "bad.gr"]).exits(1).says("bad.gr:1:15");
}

#[test]
fn check_rules_finds_wrong_rules() {
    let right = "let f x = x ^ 3 + 0.0\nderivative f x dy = 3.0 * x ^ 2 * dy\ntangent f x dx = 3.0 * x ^ 2 * dx\n";
    let wrong = "let g x y = x * log y\nderivative g x y dz = (log y * dz, x * dz)\n";
    let folder = Folder::new("rules").with("right.gr", right).with("wrong.gr", wrong);
    folder.run(&["check", "--rules", "right.gr"]).exits(0).says("derivative f: agrees").says("tangent f: agrees");
    folder.run(&["check", "--rules", "wrong.gr"]).exits(1).says("the derivative rule of `g` disagrees");
}

/// Newton's method for a square root settles on nothing where there is none.
#[test]
fn check_rules_needs_no_derivative_where_there_is_none() {
    let root = "let root a = loop 40 (fun y -> 0.5 * (y + a / y)) 1.0\nderivative root a dy = dy / (2.0 * root a)\n";
    let folder = Folder::new("rules_outside").with("root.gr", root);
    folder.run(&["check", "--rules", "root.gr"]).exits(0).says("derivative root: agrees");
}

#[test]
fn call_takes_json_files_and_expressions() {
    let folder = folder("call").with("params.json", "{\"slope\": 2, \"offset\": 1}");
    for first in ["{\"slope\": 2, \"offset\": 1}", "@params.json", "={ slope = 2.0; offset = 1.0 }"] {
        folder.run(&["call", "line.gr", "predict", "--arg", first, "--arg", "=3"]).exits(0).prints("7.0\n");
    }
    folder.run(&["call", "line.gr", "(fun x -> -x)", "--arg", "-2"]).exits(0).prints("2.0\n");
    folder.run(&["call", "line.gr", "predict", "--arg", "1", "--arg", "3"]).exits(1).says("$: expected an object");
    folder.run(&["call", "line.gr", "predict"]).exits(2).says("give --arg 2 times");
    folder.run(&["call", "line.gr", "predcit", "--arg", "1"]).exits(1).says("did you mean `predict`?");
}

#[test]
fn grad_prints_value_and_gradient() {
    // loss at slope 1, offset 0: residual -1; gradient 2 * -1 * (2, 1)
    let folder = folder("grad");
    let at = "{\"slope\": 1, \"offset\": 0}";
    let expected = "{\"value\":1.0,\"gradient\":{\"slope\":-4.0,\"offset\":-2.0}}\n";
    folder.run(&["grad", "line.gr", "loss", "--at", at]).exits(0).prints(expected);
    for mode in gradus::Mode::ALL.map(gradus::Mode::key) {
        folder.run(&["grad", "line.gr", "loss", "--at", at, "--ad", mode]).exits(0).prints(expected);
    }
    folder
        .run(&["grad", "line.gr", "predict", "--at", at, "--at", "5", "--wrt", "1"])
        .exits(0)
        .prints("{\"value\":5.0,\"gradient\":1.0}\n");
    let verified = folder.run(&["grad", "line.gr", "loss", "--at", at, "--verify"]).exits(0).out();
    assert!(verified.contains("\"largest_relative_difference\":"), "{verified}");
    folder.run(&["grad", "line.gr", "(fun x -> (x + 0.0, x))", "--at", "1"]).exits(1).says("returns a real");
}

#[test]
fn a_point_without_its_sign_is_told() {
    let folder = Folder::new("point").with("p.gr", "let f x = x ^ 2 + 0.0\nlet here = 3.0\n");
    folder
        .run(&["grad", "p.gr", "f", "--at", "here"])
        .exits(1)
        .says("what the program calls `here` is written '=here'");
}

#[test]
fn verify_fails_on_a_wrong_rule() {
    let folder = Folder::new("verify").with("w.gr", "let f x = x ^ 2 + 0.0\nderivative f x dy = 3.0 * x * dy\n");
    folder.run(&["grad", "w.gr", "f", "--at", "2", "--verify"]).exits(1).says("disagrees with finite differences");
    let shapes = "type shape = Round of real | Box of real * real
let double x = 2.0 * x
derivative double x dy = 3.0 * dy
let area (s, k) = match s with Round r -> k * r | Box (w, h) -> w + k * double h
";
    let folder = Folder::new("verify_variant").with("shapes.gr", shapes);
    let at = "=(Box (1.0, 1.0), 1.0)";
    folder.run(&["grad", "shapes.gr", "area", "--at", at, "--verify"]).exits(1).says("$[0].Box[1]");
}

#[test]
fn certify_says_whether_a_theorem_covers_the_gradient() {
    let source = "let f x = if x < 1.0 then x * x else 1.0\n\
                  let g x = stop_gradient x + 0.0\n\
                  let h x = x ^ 2\nderivative h x dy = 2.0 * x * dy\n\
                  let k x = diff (fun y -> y ^ 3) x\n\
                  let l x = abs x + x\n\
                  let m x = erf x + lgamma x + polygamma 1 x\n\
                  let rec grow : 'a. int -> 'a -> real = fun n a -> if n <= 0 then 1.0 else grow (n - 1) (a, a)\n\
                  let p x = x * grow 2 x\n";
    let folder = Folder::new("certify").with("c.gr", source);
    let covered = folder.run(&["grad", "c.gr", "f", "--at", "0.5", "--certify"]).exits(0).out();
    assert!(covered.contains("\"covered\":true,\"theorem\":\"K_reverse_mode\""), "{covered}");
    // `if`, `<`, `x`, `1.0` and `*`, `x`, `x`
    assert!(covered.contains("\"steps\":7,"), "{covered}");
    let forward = folder.run(&["grad", "c.gr", "f", "--at", "0.5", "--certify", "--ad", "forward"]).exits(0).out();
    assert!(forward.contains("\"theorem\":\"K_forward_mode\""), "{forward}");
    let combinator =
        folder.run(&["grad", "c.gr", "f", "--at", "0.5", "--certify", "--ad", "combinator"]).exits(0).out();
    assert!(combinator.contains("\"theorem\":\"C_combinator_mode\""), "{combinator}");
    let special = folder.run(&["grad", "c.gr", "m", "--at", "-0.5", "--certify"]).exits(0).out();
    assert!(special.contains("\"covered\":true"), "{special}");
    let fails = |function: &str, at: &str, says: &str| {
        folder.run(&["grad", "c.gr", function, "--at", at, "--certify"]).exits(1).says(says);
    };
    fails("f", "1.0", "kinks met: 1 (`<` at c.gr:1:");
    fails("l", "0.0", "kinks met: 1 (`abs` at c.gr:");
    fails("g", "0.5", "`stop_gradient` at c.gr:2:");
    fails("m", "-2.0", "kinks met: 2 (`lgamma` at c.gr:");
    fails("h", "0.5", "the custom derivative of `h` at c.gr:3:");
    fails("p", "0.5", "polymorphic recursion at c.gr:8:");
    fails("k", "0.5", "a derivative inside the function at c.gr:5:");
    folder
        .run(&["grad", "c.gr", "f", "--at", "0.5", "--certify", "--ad", "trace"])
        .exits(1)
        .says("no theorem covers the mode `trace`");
}

#[test]
fn jacobian_and_hessian() {
    let folder =
        Folder::new("matrices").with("m.gr", "let f (x, y) = [| x * y; x + y; x |]\nlet g (x, y) = x ^ 2 * y\n");
    folder.run(&["jacobian", "m.gr", "f", "--at", "[2, 3]"]).exits(0).prints("[[3.0,2.0],[1.0,1.0],[1.0,0.0]]\n");
    folder.run(&["hessian", "m.gr", "g", "--at", "[1, 2]"]).exits(0).prints("[[4.0,2.0],[2.0,0.0]]\n");
}

#[test]
fn transform_prints_a_program_that_gives_the_derivative() {
    let folder = folder("transform");
    for mode in gradus::Mode::ALL.map(gradus::Mode::key) {
        for optimise in [&[][..], &["-O"]] {
            let arguments = [&["transform", "line.gr", "loss", "--ad", mode][..], optimise].concat();
            let source = folder.run(&arguments).exits(0).out();
            let file = Folder::new(&format!("transformed-{mode}-{}", optimise.len())).with("t.gr", &source);
            file.run(&["check", "t.gr"]).exits(0);
            let at = "loss_value_and_grad { slope = 1.0; offset = 0.0 }";
            let value = file.run(&["eval", at, "--in", "t.gr", "--format", "json"]).exits(0).out();
            assert_eq!(value, "[1.0,{\"slope\":-4.0,\"offset\":-2.0}]\n", "{mode}\n{source}");
        }
    }
}

#[test]
fn an_optimised_derivative_reads_as_a_person_would_write_it() {
    let folder = Folder::new("readable").with("r.gr", "let f x = x ^ 2 + sin x\n");
    let expected = "let f_value_and_grad (x : real) : real * real = (x ^ 2 + sin x, 2.0 * x + cos x)\n";
    folder.run(&["transform", "r.gr", "f", "-O"]).exits(0).prints(expected);
    let explained = folder.run(&["transform", "r.gr", "f", "-O", "--explain"]).exits(0).out();
    assert!(explained.starts_with(expected), "{explained}");
    // The steps that are peculiar to this derivative; the rest is unfolding.
    for step in ["power_one\n      x ^ 1\n      =>\n      x\n", "if_true", "get_literal"] {
        assert!(explained.contains(step), "{step} is not in\n{explained}");
    }
}

#[test]
fn a_derivative_is_a_function_that_transform_knows() {
    let text = "let second x = diff (diff sin) x\nlet named x = let slope = diff sin in diff slope x\n";
    let folder = Folder::new("second").with("s.gr", text);
    let source = folder.run(&["transform", "s.gr", "second"]).exits(0).out();
    let file = Folder::new("transformed-second").with("t.gr", &source);
    let agrees = "norm (second_value_and_grad 0.5 <+> (sin 0.5, cos 0.5)) < 1e-12";
    file.run(&["eval", agrees, "--in", "t.gr"]).exits(0).prints("true\n");
    folder.run(&["transform", "s.gr", "named"]).exits(1).says("E0730").says("s.gr:2:44");
}

/// Forward mode runs the function once for each element of `a`; what is left of that after optimisation is `b`.
#[test]
fn the_gradient_of_a_dot_product_is_the_other_vector() {
    let text = "let g ((a, b) : real[] * real[]) : real[] = grad (fun x -> dot x b) a\n";
    let folder = Folder::new("itself").with("d.gr", text);
    let arguments = ["transform", "d.gr", "g", "--itself", "--ad", "forward", "-O"];
    let expected = "let g (x : real[] * real[]) : real[] =\n  let x' : real[] = snd x in let _ = check_size x' (length (fst x)) in x'\n";
    folder.run(&arguments).exits(0).prints(expected);
    let optimised = Folder::new("itself-optimised").with("d.gr", expected);
    for file in [&folder, &optimised] {
        let value = file.run(&["eval", "g ([| 1.0; 2.0 |], [| 5.0; 7.0 |])", "--in", "d.gr", "--format", "json"]);
        value.exits(0).prints("[5.0,7.0]\n");
        file.run(&["eval", "g ([| 1.0 |], [| 5.0; 7.0 |])", "--in", "d.gr"]).exits(1).says("E0606");
    }
    let explained = folder.run(&[&arguments[..], &["--explain"]].concat()).exits(0).out();
    assert!(explained.contains("sum_one_hot"), "{explained}");
}

#[test]
fn fmt_formats_and_checks() {
    let folder = Folder::new("fmt").with("f.gr", "let  f x=x+1.0 (* kept *)").with("broken.gr", "let = 3");
    folder.run(&["fmt", "--check", "f.gr"]).exits(1).prints("f.gr is not formatted\n");
    folder.run(&["fmt", "f.gr"]).exits(0).prints("formatted f.gr\n");
    folder.run(&["fmt", "--check", "f.gr"]).exits(0).prints("");
    let text = std::fs::read_to_string(folder.path().join("f.gr")).expect("the file");
    assert!(text.contains("let f x = x + 1.0") && text.contains("(* kept *)"), "{text}");
    folder.run_with(&["fmt", "--stdin"], "let  y=2").exits(0).prints("let y = 2\n");
    folder.run(&["fmt", "broken.gr"]).exits(1).says("broken.gr:1");
    folder.run(&["fmt"]).exits(2);
}

#[test]
fn test_counts_checks() {
    let folder = Folder::new("test").with("a.gr", "check true\ncheck 1 < 2\n").with("b.gr", "check 1 > 2\nshow 3\n");
    folder.run(&["test", "a.gr"]).exits(0).prints("a.gr: 2 passed, 0 failed\n2 passed, 0 failed\n");
    let all = folder.run(&["test"]).exits(1).says("left:  1").out();
    assert!(all.ends_with("2 passed, 1 failed\n"), "{all}");
}

#[test]
fn repl_reads_definitions_expressions_and_commands() {
    let input = "let twice x = x * 2.0\ntwice 4.0\nlet h y =\n  y + 1.0\n\nh 1.0\n:type twice\nnonsense\nshow h 2.0\n:quit\nnever\n";
    Folder::new("repl")
        .run_with(&["repl"], input)
        .exits(0)
        .prints("twice : real -> real\n8.0 : real\nh : real -> real\n2.0 : real\nreal -> real\n3.0\n")
        .says("unknown variable `nonsense`");
}

#[test]
fn kinks_and_domains() {
    let folder = Folder::new("kinks")
        .with("k.gr", "let relu x = if x < 0.0 then 0.0 else x\nshow grad relu 0.0\nshow log (-1.0)\n");
    folder.run(&["run", "k.gr"]).exits(0).prints("1.0\nnan\n");
    folder
        .run(&["run", "k.gr", "--kinks=warn"])
        .exits(0)
        .prints("1.0\nnan\n")
        .says("warning[W0609]")
        .says("k.gr:1:17")
        .says("once");
    folder.run(&["run", "k.gr", "--kinks=error"]).exits(1).prints("").says("error[E0609]").says("k.gr:1:17");
    folder.run(&["eval", "grad abs 0.0", "--kinks=warn"]).exits(0).prints("0.0\n").says("W0609");
    let folder = folder.with("f.gr", "let f x = abs x");
    folder.run(&["grad", "f.gr", "f", "--at", "0", "--kinks=warn"]).exits(0).says("f.gr:1:11");
    folder.run(&["run", "k.gr", "--domain=error"]).exits(1).prints("1.0\n").says("error[E0610]").says("k.gr:3:6");
}

#[test]
fn limits_end_a_program_at_its_place() {
    let folder = Folder::new("limits").with("l.gr", "let rec spin n = spin (n + 1)\nshow spin 0\n");
    folder.run(&["run", "l.gr", "--max-steps", "1e5"]).exits(1).says("error[E0611]").says("l.gr:1:");
    let grow = "let rec grow l = grow (1 :: l)\nshow grow []\n";
    Folder::new("memory").with("m.gr", grow).run(&["run", "m.gr", "--max-memory", "20M"]).exits(1).says("error[E0612]");
}

#[test]
fn diagnostics_in_json_are_one_object_per_line() {
    let folder = Folder::new("json").with("e.gr", "let a = x\nlet b = y\n");
    let said = folder.run(&["check", "e.gr", "--format", "json"]).exits(1).err();
    let lines: Vec<serde_json::Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert_eq!(lines[1]["file"], "e.gr");
    assert_eq!((&lines[1]["line"], &lines[1]["column"]), (&2.into(), &9.into()));
    assert!(lines[1]["code"].as_str().is_some_and(|code| code.starts_with('E')));
}

#[test]
fn a_wrong_command_line_is_2() {
    let folder = Folder::new("usage").with("p.gr", "show 1");
    folder.run(&["run", "p.gr", "--frobnicate"]).exits(2).says("--frobnicate");
    folder.run(&["frobnicate"]).exits(2);
    folder.run(&[]).exits(2);
    folder.run(&["grad", "p.gr", "f"]).exits(2).says("--at");
    folder.run(&["run", "p.gr", "--max-memory", "lots"]).exits(2);
    folder.run(&["run", "p.gr", "--ad", "magic"]).exits(2).says("monadic");
    folder.run(&["run", "p.gr", "--format", "svg"]).exits(2);
    folder.run(&["--help"]).exits(0);
}

#[test]
fn every_example_runs() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = Folder::new("examples");
    for programs in ["examples", "bench/programs/numbers", "bench/programs/cells"] {
        let mut files: Vec<_> =
            std::fs::read_dir(root.join(programs)).expect(programs).filter_map(|e| Some(e.ok()?.path())).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "gr"));
        files.sort();
        assert!(!files.is_empty());
        for file in files {
            folder.run(&["run", &file.display().to_string()]).exits(0);
        }
    }
}

#[test]
fn trace_writes_the_delta_program() {
    // x * y + x at (2, 3): x2 = 3 x0 + 2 x1, x3 = x2 + x0
    let folder = Folder::new("trace").with("t.gr", "let f (x, y) = x * y + x\n");
    let text = folder.run(&["trace", "t.gr", "f", "--at", "[2, 3]"]).exits(0).out();
    assert_eq!(
        text,
        "x0: input, 2.0\nx1: input, 3.0\nx2 = 3.0 * x0 + 2.0 * x1\nx3 = x2 + x0\nresult = x3, value 8.0\n"
    );
    let dot = folder.run(&["trace", "t.gr", "f", "--at", "[2, 3]", "--format", "dot"]).exits(0).out();
    assert!(dot.starts_with("digraph") && dot.contains("x0 -> x2 [label=\"3\"]"), "{dot}");
    let svg = folder.run(&["trace", "t.gr", "f", "--at", "[2, 3]", "--format", "svg"]).exits(0).out();
    assert!(svg.starts_with("<svg") && !svg.contains("NaN"), "{svg}");
}

/// A Fig. 4 to 6 on x * y + x at (2, 3). With W = 1: + hands it on to both sides; * gives W times the partial derivative by each argument.
#[test]
fn trace_writes_the_trace_term_and_its_derivative() {
    let folder =
        Folder::new("trace-term").with("t.gr", "let f (x, y) = x * y + x\nlet g x = if x > 0.0 then 2.0 else x\n");
    let text = folder.run(&["trace", "t.gr", "f", "--at", "[2, 3]", "--ad", "trace"]).exits(0).out();
    assert_eq!(
        text,
        "x0: input, 2.0\nx1: input, 3.0\nlet x2 = x0 * x1 in\nlet x3 = x2 + x0 in\nx3\nvalue 8.0\n\nits derivative:\n\
         let x4 = d1[*] x0 x1 in\nlet x5 = 1.0 * x4 in\nlet x6 = 1.0 + x5 in\nlet x7 = d2[*] x0 x1 in\nlet x8 = 1.0 * x7 in\n\
         (x6, x8)\n"
    );
    let constant = folder.run(&["trace", "t.gr", "g", "--at", "1", "--ad", "trace"]).exits(0).out();
    assert_eq!(constant, "x0: input, 1.0\n2.0\nvalue 2.0\n\nits derivative:\n0.0\n");
    let json =
        folder.run(&["trace", "t.gr", "f", "--at", "[2, 3]", "--ad", "trace", "--format", "json"]).exits(0).out();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["trace"][0], serde_json::json!({ "id": 2, "operation": "*", "arguments": ["x0", "x1"] }));
    assert_eq!(json["gradient"], serde_json::json!(["x6", "x8"]));
    let dot = folder.run(&["trace", "t.gr", "f", "--at", "[2, 3]", "--ad", "trace", "--format", "dot"]).exits(0).out();
    assert!(dot.contains("x0 -> x2;") && dot.contains("x3 -> result;"), "{dot}");
    let svg = folder.run(&["trace", "t.gr", "f", "--at", "[2, 3]", "--ad", "trace", "--format", "svg"]).exits(0).out();
    assert!(svg.starts_with("<svg") && svg.contains("x2: *"), "{svg}");
    folder.run(&["trace", "t.gr", "f", "--at", "[2, 3]", "--ad", "forward"]).exits(2).says("writes nothing down");
}

#[test]
fn a_function_with_a_rule_is_an_operation_of_the_trace() {
    let turn = "let turn (x, y) = (x * y, x - y)\nderivative turn (x, y) (a, b) = (a * y + b, a * x - b)\n\
                let f (x, y) = let (p, q) = turn (x, y) in p * q\n";
    let folder = Folder::new("trace-rule").with("t.gr", turn);
    let text = folder.run(&["trace", "t.gr", "f", "--at", "[2, 3]", "--ad", "trace"]).exits(0).out();
    assert!(text.contains("let x2, x3 = turn(x0, x1) in\nlet x4 = x2 * x3 in\nx4\n"), "{text}");
    assert!(text.contains("turn_r(x0, x1, "), "{text}");
    // x^2 y - x y^2
    let expected = "{\"value\":-6.0,\"gradient\":[3.0,-8.0]}\n";
    folder.run(&["grad", "t.gr", "f", "--at", "[2, 3]", "--ad", "trace"]).exits(0).prints(expected);
}

/// C section 6 on x * sin y.
#[test]
fn transform_shows_the_steps_of_the_combinator_route() {
    let folder = Folder::new("steps").with("s.gr", "let f (x, y) = x * sin y\n");
    let text = folder.run(&["transform", "s.gr", "f", "--ad", "combinator", "--steps"]).exits(0).out();
    for part in [
        "-- the function\n\nlet f ((x, y) : real * real) : real = x * sin y\n",
        "-- as a combinator\n\nf : unit -> real * real -> real\nf = curry (",
        "[sin]",
        "primal : unit * (real * real) -> real\n",
        "linear : (unit * (real * real)) * real -o unit * (real * real)\n",
        "[*]'",
        "== the code\n",
        "let f_value_and_grad (x : real * real)",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    folder.run(&["transform", "s.gr", "f", "--steps"]).exits(2).says("--ad combinator");
}
