use gradus_source::*;
use gradus_syntax::*;
#[test]
fn scratch() {
    for f in std::env::var("GR").unwrap_or_default().split_whitespace() {
        let text = std::fs::read_to_string(f).unwrap();
        let p = parse_module(FileId(0), &text);
        let sf = SourceFile::new(f, text.as_str());
        println!("{f}: {} items {} errors", p.tree.items.len(), p.errors.len());
        for e in &p.errors {
            let d = e.diagnostic();
            let at = sf.position(e.span().start);
            println!("  {}:{} {} | {}", at.line, at.column, d.message, sf.line(at.line));
        }
    }
}
#[test]
fn deep() {
    for n in [1000usize, 9_900, 100_000] {
        let texts = [
            ("paren", "(".repeat(n) + "1" + &")".repeat(n)),
            ("plus", "1".to_string() + &" + 1".repeat(n)),
            ("cons", "1".to_string() + &" :: 1".repeat(n)),
            ("let", "let x = 1 in ".repeat(n) + "x"),
            ("neg", "- ".repeat(n) + "x"),
            ("list", "[".to_string() + &"1; ".repeat(n) + "1]"),
            ("app", "f".to_string() + &" x".repeat(n)),
            ("fun", "fun x -> ".repeat(n) + "x"),
            ("field", "x".to_string() + &".y".repeat(n)),
            ("if", "if a then b else ".repeat(n) + "x"),
            ("match", "match x with A -> ".repeat(n) + "x"),
            ("nestlist", "[".repeat(n) + &"]".repeat(n)),
            ("pat", "fun ".to_string() + &"(".repeat(n) + "x" + &")".repeat(n) + " -> 1"),
            ("patcons", "fun (".to_string() + &"x :: ".repeat(n) + "x) -> 1"),
            ("type", "(x : ".to_string() + &"a -> ".repeat(n) + "a)"),
            ("typel", "(x : ".to_string() + &"a ".repeat(n) + "a)"),
            ("letmissing", "let x = ".repeat(n) + "x"),
            ("open", "(".repeat(n)),
            ("brack", "[|(".repeat(n)),
            ("fields", "{ x = ".repeat(n)),
        ];
        for (name, t) in texts {
            let start = std::time::Instant::now();
            let p = parse_expr(FileId(0), &t);
            let took = start.elapsed();
            let errs: Vec<_> = p.errors.iter().take(2).map(|e| e.diagnostic().message).collect();
            println!("{name} {n} {:?} {:?}", took, errs);
            let p2 = std::thread::Builder::new()
                .stack_size(std::env::var("STACK").ok().and_then(|s| s.parse().ok()).unwrap_or(2 << 20))
                .spawn(move || {
                    let q = p;
                    drop(q)
                })
                .unwrap();
            p2.join().unwrap();
            let m = parse_module(FileId(0), &format!("let y = {t}\nlet x = 3"));
            assert!(m.tree.items.len() >= 2);
            std::mem::forget(m);
        }
    }
}
#[test]
fn mistakes() {
    let all = std::fs::read_to_string("/tmp/mistakes.txt").unwrap();
    for text in all.split("-----\n") {
        let mut map = SourceMap::default();
        map.add(SourceFile::new("t.gr", text));
        println!("=====\n{text}~~~~~");
        for e in parse_module(FileId(0), text).errors {
            println!("{}", render(&e.diagnostic(), &map, false));
        }
    }
}
#[test]
fn fmt() {
    for f in std::env::var("GR").unwrap_or_default().split_whitespace() {
        let text = std::fs::read_to_string(f).unwrap();
        let p = parse_module(FileId(0), &text);
        if !p.errors.is_empty() { println!("SKIP {f}"); continue; }
        let out = format_module(&text, &p);
        let q = parse_module(FileId(0), &out);
        let again = format_module(&out, &q);
        let a: Vec<_> = p.comments.iter().map(|c| c.text(&text)).collect();
        let b: Vec<_> = q.comments.iter().map(|c| c.text(&out)).collect();
        println!("{f} same={} idem={} comments={} printed={}", same_shape(&p.tree, &q.tree), out == again, a == b, { let t = print_module(&p.tree); let r = parse_module(FileId(0), &t); r.errors.is_empty() && same_shape(&r.tree, &p.tree) });
        let name = f.replace('/', "_");
        std::fs::create_dir_all("/tmp/fmt").unwrap();
        std::fs::write(format!("/tmp/fmt/{name}"), &out).unwrap();
    }
}
#[test]
fn slow() {
    let n = 100_000;
    for piece in ["(", "[", "{ x = ", "[|(", "let x = ", "if ", "match ", "fun (", "(x : (", "f (", "a.(", "begin ", "!", "1 + ", "|", ".y"] {
        let t = piece.repeat(n);
        let s = std::time::Instant::now();
        let m = parse_module(FileId(0), &t);
        let a = s.elapsed(); let s = std::time::Instant::now();
        let e = parse_expr(FileId(0), &t);
        let b = s.elapsed(); let s = std::time::Instant::now();
        print_module(&m.tree);
        let c = s.elapsed(); let s = std::time::Instant::now();
        print_expr(&e.tree);
        let d = s.elapsed(); let s = std::time::Instant::now();
        let mut map = SourceMap::default();
        map.add(SourceFile::new("t.gr", t.as_str()));
        for x in m.errors.iter().take(20) { render(&x.diagnostic(), &map, true); }
        println!("{piece:?} {a:?} {b:?} {c:?} {d:?} {:?}", s.elapsed());
    }
}
