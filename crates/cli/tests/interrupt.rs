//! Ctrl-C, by a real signal to a process that runs.
#![cfg(unix)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use support::Folder;

/// It prints, and then runs for longer than anybody waits.
const FOREVER: &str = "\
let rec count (n : int) (x : real) : real = if n = 0 then x else 1.0 + count (n - 1) x
show 1.5
show 2.5
show iterate (fun x -> if x < 0.0 then Inr x else Inl (count 100 x)) 0.0
show 3.5
";

fn start(folder: &Folder, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.args(arguments).current_dir(folder.path()).env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    pipes.spawn().expect("the binary runs")
}

fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("a signal");
    assert!(sent.success());
}

fn line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).expect("a line");
    line
}

#[test]
fn a_run_stops_with_a_message_and_keeps_what_it_printed() {
    let folder = Folder::new("interrupt").with("forever.gr", FOREVER);
    for backend in ["auto", "reference", "native", "c"] {
        let mut child = start(&folder, &["run", "forever.gr", "--backend", backend]);
        let mut out = BufReader::new(child.stdout.take().expect("standard output"));
        assert_eq!((line(&mut out), line(&mut out)), ("1.5\n".to_string(), "2.5\n".to_string()));
        interrupt(&child);
        let (mut rest, mut err) = (String::new(), String::new());
        out.read_to_string(&mut rest).expect("text");
        child.stderr.take().expect("standard error").read_to_string(&mut err).expect("text");
        let status = child.wait().expect("it ends");
        assert_eq!((status.code(), rest.as_str()), (Some(130), ""), "{backend}: {err}");
        assert!(err.contains("E0613") && err.contains("interrupted") && err.contains("forever.gr"), "{backend}: {err}");
    }
}

#[test]
fn the_repl_goes_on() {
    let folder = Folder::new("interrupt-repl");
    let mut child = start(&folder, &["repl"]);
    let mut input = child.stdin.take().expect("standard input");
    let mut out = BufReader::new(child.stdout.take().expect("standard output"));
    input.write_all(b"1 + 1\niterate (fun x -> if x < 0.0 then Inr x else Inl (x + 1.0)) 0.0\n").expect("written");
    assert_eq!(line(&mut out), "2 : int\n");
    // The second expression is being evaluated, or about to be.
    std::thread::sleep(std::time::Duration::from_millis(500));
    interrupt(&child);
    input.write_all(b"2 + 2\n").expect("written");
    drop(input);
    assert_eq!(line(&mut out), "4 : int\n");
    assert!(child.wait().expect("it ends").success());
}
