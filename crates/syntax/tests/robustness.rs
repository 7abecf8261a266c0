//! No text makes the parser, the formatter or the renderer panic, run out of stack or take more than linear time.

mod common;

use common::random::{self, Random};
use gradus_source::{render, to_json, FileId, SourceFile, SourceMap};
use gradus_syntax::{format_module, parse_expr, parse_module, print_expr, print_module, DEPTH_LIMIT};
use std::time::{Duration, Instant};

/// Reads the text every way there is; what is said about it must be about places in it.
fn survive(text: &str) {
    let mut map = SourceMap::default();
    map.add(SourceFile::new("t.gr", text));
    let module = parse_module(FileId(0), text);
    let expr = parse_expr(FileId(0), text);
    for error in module.errors.iter().chain(&expr.errors).take(20) {
        let diagnostic = error.diagnostic();
        for label in &diagnostic.labels {
            let span = label.span;
            assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} in {text:?}");
        }
        assert!(!render(&diagnostic, &map, true).is_empty());
        assert!(!to_json(&diagnostic, &map).is_empty());
    }
    let formatted = format_module(text, &module);
    if !module.errors.is_empty() {
        assert_eq!(formatted, text);
    }
    print_module(&module.tree);
    print_expr(&expr.tree);
}

#[test]
fn odd_texts() {
    let odd = [
        "",
        " ",
        "\n",
        "\t",
        "\r\n",
        "\u{feff}",
        "\u{feff}let x = 1",
        "\0",
        "\0\u{1}\u{2}\u{7f}",
        "é",
        "日本",
        "'",
        "'a",
        "\"",
        "\"\\",
        "\"\\\n",
        "(*",
        "(*)",
        "(**)",
        "*)",
        "let",
        "let x",
        "let x =",
        "type",
        "type t",
        "type t =",
        "data",
        "show",
        "check",
        "plot",
        "import",
        "open",
        "derivative",
        "tangent",
        "in",
        "|",
        "[|",
        "|]",
        "->",
        "1.",
        "1..2",
        "0x",
        "0xffffffffffffffffffffffffffffffffffff",
        "1e",
        "1e+",
        "a.",
        "a.(",
        "A.",
        "A.B.",
        "A.(",
        "{",
        "{ x",
        "{ x with",
        "(:",
        "fun",
        "function",
        "match",
        "match x with",
        "if",
        "if a",
        "if a then",
        "let rec",
        "let x = 1 and",
        "let open",
        "let open M",
        "real[n",
        "let f : 'a.",
        "let f : 'a. =",
        "\u{202e}let x = 1",
        "let x = 1\r\nlet y = 2\r\n",
        "let x = \u{1f600}",
        "let ü = 1",
        "\\u{}",
        "\"\\u{110000}\"",
        "\"\\u{",
    ];
    for text in odd {
        survive(text);
        survive(&format!("let a = 1\n{text}"));
        survive(&format!("{text}\nlet a = 1"));
        survive(&format!("let a = ({text}) + [{text}]"));
    }
}

const WORDS: &[&str] = &[
    "let",
    "rec",
    "and",
    "in",
    "fun",
    "function",
    "match",
    "with",
    "if",
    "then",
    "else",
    "type",
    "of",
    "open",
    "begin",
    "end",
    "as",
    "when",
    "for",
    "mod",
    "true",
    "x",
    "f",
    "data",
    "show",
    "check",
    "plot",
    "derivative",
    "tangent",
    "import",
    "from",
    "to",
    "A",
    "M.x",
    "'a",
    "1",
    "2.5",
    "\"s\"",
    "(",
    ")",
    "[",
    "]",
    "[|",
    "|]",
    "{",
    "}",
    ",",
    ";",
    ":",
    ".",
    "->",
    "|",
    "_",
    "|>",
    "||",
    "&&",
    "=",
    "<>",
    "<",
    "@",
    "::",
    "+",
    "-",
    "<+>",
    "*",
    "*>",
    "<.>",
    "^",
    "**",
    "==",
    "+.",
    ":=",
    "<-",
    "=>",
    "!",
    ";;",
    "~",
    "\\",
    "..",
    "while",
    "return",
    "elif",
    "try",
    "mutable",
    "or",
    "(* c *)",
    "// c\n",
    "\n",
    "\n",
    "\n  ",
    "$",
    "'x'",
    "\"open",
    "(*",
];

#[test]
fn soup_of_tokens() {
    for seed in 0..4000 {
        let mut random = Random::new(seed);
        let length = 1 + random.below(60);
        let mut text = String::new();
        for _ in 0..length {
            text += *random.pick(WORDS);
            text += *random.pick(&["", " ", " ", " "]);
        }
        survive(&text);
    }
}

#[test]
fn mutated_programs() {
    for seed in 0..2000 {
        let mut random = Random::new(seed);
        let mut text: Vec<char> = print_module(&random::module(&mut random, 4)).chars().collect();
        for _ in 0..1 + random.below(6) {
            let (at, other) = (random.below(text.len()), random.below(text.len()));
            match random.below(4) {
                0 => {
                    text.remove(at);
                }
                1 => text.swap(at, other),
                2 => text.insert(at, *random.pick(&['(', ')', '"', '*', '|', '\n', 'é', '\0', '.', ';', '='])),
                _ => text.truncate(at.max(1)),
            }
            if text.is_empty() {
                text.push(' ');
            }
        }
        survive(&text.into_iter().collect::<String>());
    }
}

#[test]
fn deep_nesting_is_an_error_not_a_crash() {
    let n = 100_000;
    let many = |piece: &str| piece.repeat(n);
    let deep = [
        many("(") + "1" + &many(")"),
        many("[") + &many("]"),
        many("[|") + &many("|]"),
        "1".to_string() + &many(" + 1"),
        "1".to_string() + &many(" :: 1"),
        many("let x = 1 in ") + "x",
        many("- ") + "x",
        many("fun x -> ") + "x",
        "x".to_string() + &many(".y"),
        "x".to_string() + &many(".(0)"),
        many("if a then b else ") + "x",
        many("if ") + "x",
        many("match x with A -> ") + "x",
        "fun ".to_string() + &many("(") + "x" + &many(")") + " -> 1",
        "fun (".to_string() + &many("x :: ") + "x) -> 1",
        "(x : ".to_string() + &many("a -> ") + "a)",
        "(x : ".to_string() + &many("a ") + "a)",
        "(x : a".to_string() + &many("[]") + ")",
        "(x : ".to_string() + &many("(") + "a" + &many(")") + ")",
        "{ x = ".repeat(n) + "1" + &many("}"),
        many("begin ") + "1" + &many(" end"),
        many("M.(") + "1" + &many(")"),
        "fun (x".to_string() + &many(" as y") + ") -> 1",
    ];
    for text in deep {
        let parsed = parse_expr(FileId(0), &text);
        let said: Vec<&str> = parsed.errors.iter().map(|error| error.diagnostic().code).collect();
        assert_eq!(said.first(), Some(&"E0025"), "{} {said:?}", &text[..20]);
        // The item before and the one behind are read.
        let module = parse_module(FileId(0), &format!("let a = 1\nlet y = {text}\nlet b = 2\n"));
        assert_eq!(module.tree.items.len(), 3, "{}", &text[..20]);
        print_expr(&parsed.tree);
    }
    // Broken as well as deep.
    for piece in [
        "(", "[", "{ x = ", "[|(", "let x = ", "if ", "match ", "fun (", "(x : (", "f (", "a.(", "begin ", "!", "1 + ",
        "|",
    ] {
        survive(&many(piece));
        survive(&format!("let x = {}", many(piece)));
    }
}

/// Just within the limit everything works: parsing, comparing, printing, formatting, dropping.
#[test]
fn as_deep_as_allowed() {
    let n = DEPTH_LIMIT * 9 / 10;
    for (start, piece, end) in
        [("", "1 + ", "1"), ("", "let x = 1 in ", "x"), ("", "1 :: ", "[]"), ("", "fun x -> ", "x"), ("x", ".y", "")]
    {
        let text = format!("let y = {start}{}{end}\n", piece.repeat(n));
        let parsed = parse_module(FileId(0), &text);
        assert!(parsed.errors.is_empty(), "{piece}: {}", common::complaints(&text, &parsed.errors));
        let formatted = format_module(&text, &parsed);
        let again = parse_module(FileId(0), &formatted);
        assert!(gradus_syntax::same_shape(&parsed.tree, &again.tree), "{piece}");
    }
}

#[test]
fn wide_is_not_deep() {
    let n = 100_000;
    for text in [
        format!("[{}1]", "1; ".repeat(n)),
        format!("f{}", " x".repeat(n)),
        format!("({}1)", "1, ".repeat(n)),
        format!("match x with {}", "| A -> 1 ".repeat(n)),
        format!("{{ {} }}", "x = 1; ".repeat(n)),
    ] {
        let parsed = parse_expr(FileId(0), &text);
        assert!(parsed.errors.is_empty());
    }
}

/// Two megabytes are read in seconds even on a busy machine; anything quadratic would take minutes.
#[test]
fn time_is_linear() {
    let pieces = [
        "let f x = let y = x + 1 in (y * 2, [y; 1.5])\n",
        "let f x =\n  let y = x + 1\n  y * 2\n",
        "x ",
        "(",
        "((1)",
        "\"",
        "let x = ",
        "let x = 1 ",
        "show ",
        "(* ",
        "(* \" \\\" *) ",
        "1 + ",
        ") ",
        "$",
        "{ x = ",
        "[1;",
        "'a",
        "type t = A | B\n",
        "if x then ",
        "match x with | ",
        "\u{e9}",
    ];
    let time = |text: &str| {
        let start = Instant::now();
        std::hint::black_box(parse_module(FileId(0), text));
        start.elapsed()
    };
    for piece in pieces {
        for separator in ["", "\n"] {
            let text = |bytes: usize| format!("{piece}{separator}").repeat(bytes / (piece.len() + separator.len()));
            let (small, large) = (time(&text(200_000)), time(&text(2_000_000)));
            assert!(large < small * 40 + Duration::from_secs(10), "{piece:?}: {small:?} then {large:?}");
        }
    }
}
