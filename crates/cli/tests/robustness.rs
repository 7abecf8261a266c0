//! No input makes the tool panic or run out of stack: each gets a located error and exit status 1.

mod support;

use std::io::Read;
use std::process::{Command, Stdio};
use support::Folder;

#[test]
fn an_empty_file_is_an_empty_program() {
    Folder::new("empty").with("e.gr", "").run(&["run", "e.gr"]).exits(0).prints("");
    Folder::new("blank").with("e.gr", "\n\n(* nothing *)\n").run(&["run", "e.gr"]).exits(0).prints("");
}

#[test]
fn binary_files_and_invalid_utf8() {
    let bytes: Vec<u8> = (0..4000u32).map(|i| (i * 7919 % 256) as u8).collect();
    Folder::new("binary").with("b.gr", &bytes).run(&["run", "b.gr"]).exits(1).says("b.gr:");
    let folder = Folder::new("utf8").with("u.gr", b"let a = 1\nlet b = \"\xff\"\n").with("i.gr", "import U\nshow 1");
    folder.run(&["run", "u.gr"]).exits(1).says("error[E0154]").says("u.gr:2:10");
    folder.run(&["run", "i.gr"]).exits(1).says("u.gr:2:10");
    folder.run(&["fmt", "u.gr"]).exits(1).says("u.gr:2:10");
    let zeros = vec![0u8; 100_000];
    Folder::new("zeros").with("z.gr", &zeros).run(&["check", "z.gr"]).exits(1).says("z.gr:1:1");
}

#[test]
fn source_nested_a_hundred_thousand_deep() {
    let n = 100_000;
    let nested = [
        format!("show {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("show {}1{}", "[".repeat(n), "]".repeat(n)),
        format!("show {}1", "- ".repeat(n)),
        format!("show {}true", "not ".repeat(n)),
        format!("show {}0", "if true then 1 else ".repeat(n)),
        format!("show {}0", "let x = 1 in ".repeat(n)),
        format!("let f = {}0", "fun x -> ".repeat(n)),
        format!("show 1{}", " + 1".repeat(n)),
        format!("show {}[]", "1 :: ".repeat(n)),
        format!("let f (x : {}int{}) = x", "(".repeat(n), ")".repeat(n)),
        format!("let f (x : int{}) = x", " list".repeat(n)),
        format!("let f x = match x with {}_ -> 1", "Some (".repeat(n)),
        "(".repeat(n),
        "(*".repeat(n),
    ];
    for (i, text) in nested.iter().enumerate() {
        let folder = Folder::new(&format!("deep-{i}")).with("d.gr", text);
        let ran = folder.run(&["run", "d.gr"]);
        let code = if ran.err().is_empty() { 0 } else { 1 };
        let ran = ran.exits(code);
        assert!(code == 0 || ran.err().contains("d.gr:1:"), "{}", &ran.err()[..ran.err().len().min(500)]);
        assert!(!ran.err().contains("internal error"), "{}", ran.err());
    }
}

#[test]
fn a_line_of_ten_megabytes() {
    let sum = format!("show {}1", "1 + ".repeat(100_000));
    let long = format!("(* {} *) show 2", "x".repeat(10_000_000));
    Folder::new("long").with("l.gr", long).run(&["run", "l.gr"]).exits(0).prints("2\n");
    let wrong = format!("show \"{}\" + 1", "x".repeat(10_000_000));
    let said = Folder::new("wrong").with("w.gr", wrong).run(&["run", "w.gr"]).exits(1).says("w.gr:1:").err();
    assert!(said.len() < 2000, "the message shows too much of the line: {} bytes", said.len());
    let ran = Folder::new("sum").with("s.gr", sum).run(&["run", "s.gr"]);
    assert!(!ran.err().contains("internal error"), "{}", ran.err());
}

#[test]
fn files_that_are_not_there() {
    let folder = Folder::new("missing").with("d.gr", "data x : real[] from \"nowhere.csv\"\nshow x");
    folder.run(&["run", "nothing.gr"]).exits(1).says("nothing.gr").says("there is no such file");
    folder.run(&["run", "."]).exits(1).says("it is a folder");
    folder.run(&["run", "d.gr"]).exits(1).says("error[E0702]").says("nowhere.csv").says("d.gr:1:22");
    folder.run(&["check", "d.gr"]).exits(0);
    folder.run(&["call", "d.gr", "sum", "--arg", "@gone.json"]).exits(1).says("cannot read gone.json");
}

#[test]
fn data_of_the_wrong_shape() {
    let folder = Folder::new("shape")
        .with("short.csv", "x,y\n1,2\n3\n")
        .with("short.gr", "data p : (real * real)[] from \"short.csv\"\nshow p")
        .with("deep.json", "[".repeat(100_000))
        .with("deep.gr", "data d : real list from \"deep.json\"\nshow d")
        .with("wrong.json", "{\"points\": [1, 2, {\"x\": \"abc\"}]}")
        .with("wrong.gr", "type t = { points : real[] }\ndata d : t from \"wrong.json\"\nshow d");
    folder.run(&["run", "short.gr"]).exits(1).says("short.csv, row 2 (line 3): expected 2 fields, found 1 field");
    folder.run(&["run", "deep.gr"]).exits(1).says("deep.json");
    folder.run(&["run", "wrong.gr"]).exits(1).says("wrong.json, $.points[2]: expected a number, found an object");
}

#[test]
fn not_a_number_and_infinities_go_in_and_out() {
    let folder = Folder::new("nan")
        .with("v.json", "[\"nan\", \"inf\", \"-inf\", -0.0]")
        .with("v.gr", "data v : real[] from \"v.json\"\nshow v\nlet f (x : real) = x * 2.0\n");
    folder.run(&["run", "v.gr"]).exits(0).prints("[| nan; inf; -inf; -0.0 |]\n");
    folder.run(&["run", "v.gr", "--format", "json"]).exits(0).prints("[\"nan\",\"inf\",\"-inf\",-0.0]\n");
    folder.run(&["call", "v.gr", "f", "--arg", "\"-inf\""]).exits(0).prints("\"-inf\"\n");
    folder.run(&["grad", "v.gr", "f", "--at", "\"nan\""]).exits(0).prints("{\"value\":\"nan\",\"gradient\":2.0}\n");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let folder = Folder::new("pipe").with("p.gr", "show iota 100000\nshow iota 100000\nshow iota 100000");
    let mut child = Command::new(env!("CARGO_BIN_EXE_gradus"))
        .args(["run", "p.gr", "--format", "json"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let status = child.wait().expect("the binary ends");
    let mut said = String::new();
    child.stderr.take().expect("standard error").read_to_string(&mut said).expect("text");
    assert!(status.success() && said.is_empty(), "{status:?} {said}");
}

#[test]
fn deep_values_are_printed_and_read_back() {
    let program = "type t = Leaf | Node of t\nlet rec deep n t = if n = 0 then t else deep (n - 1) (Node t)\n\
                   let rec depth (n : int) t = match t with Leaf -> n | Node t -> depth (n + 1) t\nlet measure t = depth 0 t\n\
                   show deep 100000 Leaf\n";
    let folder = Folder::new("deep-values").with("d.gr", program);
    folder.run(&["run", "d.gr"]).exits(0);
    let json = folder.run(&["run", "d.gr", "--format", "json"]).exits(0).out();
    let folder = folder.with("t.json", json);
    folder.run(&["call", "d.gr", "measure", "--arg", "@t.json"]).exits(0).prints("100000\n");
}
