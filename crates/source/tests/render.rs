//! How diagnostics look, on a terminal and as JSON.

use gradus_source::{render, to_json, Diagnostic, FileId, SourceFile, SourceMap, Span};

fn map(texts: &[(&str, &str)]) -> SourceMap {
    let mut map = SourceMap::default();
    for (name, text) in texts {
        map.add(SourceFile::new(*name, *text));
    }
    map
}

/// The span of the n-th occurrence of a word in a file.
fn find(map: &SourceMap, file: u32, word: &str, nth: usize) -> Span {
    let text = &map.file(FileId(file)).unwrap().text;
    let (start, _) = text.match_indices(word).nth(nth).unwrap();
    Span::new(FileId(file), start as u32, (start + word.len()) as u32)
}

#[track_caller]
fn check(diagnostic: &Diagnostic, map: &SourceMap, expected: &str) {
    assert_eq!(render(diagnostic, map, false), expected);
}

#[test]
fn labels_in_several_lines_with_notes_and_help() {
    let map = map(&[("a.gr", "let x = 1\nlet yy = x +. x\n\n\nlet z = yy\n")]);
    let diagnostic = Diagnostic::error("E0999", "something is wrong")
        .label(find(&map, 0, "+.", 0), "this one")
        .label(find(&map, 0, "x", 0), "named here")
        .label(find(&map, 0, "yy", 0), "")
        .label(find(&map, 0, "yy", 1), "used here")
        .note("a note\nof two lines")
        .help("do better");
    check(
        &diagnostic,
        &map,
        "\
error[E0999]: something is wrong
 --> a.gr:2:12
  |
1 | let x = 1
  |     - named here
2 | let yy = x +. x
  |            ^^ this one
  |     --
...
5 | let z = yy
  |         -- used here
  = note: a note
          of two lines
  = help: do better
",
    );
}

#[test]
fn several_files() {
    let map = map(&[("a.gr", "import B\nshow f 1"), ("b.gr", "let f x = x")]);
    let diagnostic =
        Diagnostic::warning("E0999", "odd").label(find(&map, 0, "f", 0), "here").label(find(&map, 1, "f", 0), "there");
    check(
        &diagnostic,
        &map,
        "\
warning[E0999]: odd
 --> a.gr:2:6
  |
2 | show f 1
  |      ^ here
 ::: b.gr:1:5
  |
1 | let f x = x
  |     - there
",
    );
}

#[test]
fn a_place_behind_the_end_a_span_of_two_lines_and_no_place() {
    let map = map(&[("a.gr", "let x =")]);
    let end = Diagnostic::error("E0999", "ended").label(Span::new(FileId(0), 7, 7), "here");
    check(&end, &map, "error[E0999]: ended\n --> a.gr:1:8\n  |\n1 | let x =\n  |        ^ here\n");
    let far = Diagnostic::error("E0999", "far").label(Span::new(FileId(0), 700, 900), "here");
    check(&far, &map, "error[E0999]: far\n --> a.gr:1:8\n  |\n1 | let x =\n  |        ^ here\n");
    let unknown = Diagnostic::error("E0999", "unknown").label(Span::new(FileId(7), 0, 1), "here");
    check(&unknown, &map, "error[E0999]: unknown\n");
    check(&Diagnostic::error("E0999", "none").help("h"), &map, "error[E0999]: none\n = help: h\n");

    let two = self::map(&[("a.gr", "let x = 1 +\n  2")]);
    let lines = Diagnostic::error("E0999", "lines").label(find(&two, 0, "1 +\n  2", 0), "here");
    check(&lines, &two, "error[E0999]: lines\n --> a.gr:1:9\n  |\n1 | let x = 1 +\n  |         ^^^ here\n");
}

#[test]
fn tabs_wide_characters_and_controls() {
    let map = map(&[("a.gr", "\tlet é = \"日本\" x\u{1b}[31m\r\n")]);
    let diagnostic = Diagnostic::error("E0999", "m\u{1b}").label(find(&map, 0, "x", 0), "here");
    check(
        &diagnostic,
        &map,
        "error[E0999]: m\u{fffd}\n --> a.gr:1:15\n  |\n1 |     let é = \"日本\" x\u{fffd}[31m\n  |                    ^ here\n",
    );
}

#[test]
fn a_long_line_is_cut_round_the_span() {
    let text = format!("{}HERE{}", "a ".repeat(5_000_000), " b".repeat(5_000_000));
    let map = map(&[("a.gr", &text)]);
    let diagnostic = Diagnostic::error("E0999", "long").label(find(&map, 0, "HERE", 0), "here");
    let shown = render(&diagnostic, &map, false);
    assert!(shown.lines().all(|line| line.len() < 140), "{shown}");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[1], " --> a.gr:1:10000001");
    assert_eq!(lines[3].find("HERE"), lines[4].find("^^^^"));
}

#[test]
fn colours_only_when_asked_for() {
    let map = map(&[("a.gr", "x")]);
    let diagnostic = Diagnostic::error("E0999", "m").label(find(&map, 0, "x", 0), "");
    assert!(!render(&diagnostic, &map, false).contains('\x1b'));
    assert!(render(&diagnostic, &map, true).starts_with("\x1b[1;31merror[E0999]\x1b[0m"));
}

#[test]
fn json_has_every_field() {
    let map = map(&[("a\"b.gr", "let\nxy")]);
    let diagnostic =
        Diagnostic::error("E0999", "line\n\u{1}\\").label(find(&map, 0, "xy", 0), "t").note("n1").note("n2").help("h");
    assert_eq!(
        to_json(&diagnostic, &map),
        r#"{"severity":"error","code":"E0999","message":"line\n\u0001\\","file":"a\"b.gr","line":2,"column":1,"end_line":2,"end_column":3,"labels":[{"file":"a\"b.gr","line":2,"column":1,"end_line":2,"end_column":3,"text":"t"}],"notes":["n1","n2"],"help":"h"}"#
    );
    assert_eq!(
        to_json(&Diagnostic::warning("E0999", "m"), &map),
        r#"{"severity":"warning","code":"E0999","message":"m","file":null,"line":null,"column":null,"end_line":null,"end_column":null,"labels":[],"notes":[],"help":null}"#
    );
}
