//! How expressions are read: precedences and forms.

mod common;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(common::read_expr(text), expected, "{text}");
}

#[test]
fn arithmetic_binds_as_in_mathematics() {
    check("1 + 2 * 3", "(+ 1 (* 2 3))");
    check("1 - 2 - 3", "(- (- 1 2) 3)");
    check("2 ^ 3 ^ 4", "(^ 2 (^ 3 4))");
    check("a ** b ^ c", "(** a (^ b c))");
    check("a * b ^ 2", "(* a (^ b 2))");
    check("a / b * c", "(* (/ a b) c)");
    check("a mod b * c", "(* (mod a b) c)");
    check("p <-> 0.1 *> g", "(<-> p (*> 0.1 g))");
    check("a <+> b <.> c", "(<+> a (<.> b c))");
    check("a <+> b <-> c", "(<-> (<+> a b) c)");
}

#[test]
fn minus_is_unary_where_an_operand_is_due() {
    check("-x ^ 2", "(- (^ x 2))");
    check("-x * y", "(* (- x) y)");
    check("- x + y", "(+ (- x) y)");
    check("a - b", "(- a b)");
    check("a -b", "(- a b)");
    check("a - -b", "(- a (- b))");
    check("f (-1)", "(f (- 1))");
    check("f -1", "(- f 1)");
    check("2 ^ -x", "(^ 2 (- x))");
    check("2 ^ -x ^ 2 * y", "(* (^ 2 (- (^ x 2))) y)");
    check("-f x", "(- (f x))");
    check("-r.x", "(- r.x)");
    check("x < -1", "(< x (- 1))");
    check("- - 1", "(- (- 1))");
}

#[test]
fn comparisons_logic_pipes_and_lists() {
    check("a + 1 < b && c || d", "(|| (&& (< (+ a 1) b) c) d)");
    check("a || b || c", "(|| a (|| b c))");
    check("a && b && c", "(&& a (&& b c))");
    check("a = b <> c", "(<> (= a b) c)");
    check("not a && b", "(&& (not a) b)");
    check("x |> f |> g", "(|> (|> x f) g)");
    check("xs |> sum = 3.0", "(= (|> xs sum) 3.0)");
    check("a && x |> f", "(&& a (|> x f))");
    check("1 :: 2 :: []", "(:: 1 (:: 2 (list)))");
    check("a @ b @ c", "(@ a (@ b c))");
    check("1 :: a @ b", "(@ (:: 1 a) b)");
    check("1 + 2 :: a", "(:: (+ 1 2) a)");
    check("a :: b = c", "(= (:: a b) c)");
}

#[test]
fn application_binds_tighter_than_operators() {
    check("f a b + g c", "(+ (f a b) (g c))");
    check("f a.x b.(i)", "(f a.x (index b i))");
    check("a.(i, j) * 2", "(* (index a i j) 2)");
    check("a.((i, j))", "(index a (, i j))");
    check("a.(i).(j).x.y", "(index (index a i) j).x.y");
    check("Some x :: l", "(:: (Some x) l)");
    check("Node (Leaf 1, Leaf 2)", "(Node (, (Leaf 1) (Leaf 2)))");
    check("f () \"s\\n\" true [||] []", "(f () \"s\\n\" true (array) (list))");
    check("(f x) y", "((f x) y)");
    check("f begin g x end", "(f (g x))");
    check("( + ) 1", "((op +) 1)");
    check("fold ( *> ) ( ** ) (-) (mod) ( :: )", "(fold (op *>) (op **) (op -) (op mod) (op ::))");
}

#[test]
fn names_and_modules() {
    check("Optim.descend x", "(Optim.descend x)");
    check("A.B.c", "A.B.c");
    check("Tree.Leaf", "Tree.Leaf");
    check("r.Geometry.x", "r.Geometry.x");
    check("M.r.x", "M.r.x");
    check("M.(x + y)", "(open M (+ x y))");
    check("A.B.(f) z", "((open A.B f) z)");
    check("let open M.N in x", "(open M.N x)");
    check("x' + _y", "(+ x' _y)");
    check("data + show * from to", "(+ data (* show (from to)))");
}

#[test]
fn numerals_are_exact() {
    check("1_000 0xff 0b101 0o17", "(1000 255 5 15)");
    check("1. 1.5 1e-6 2.5E+3 1_0.0_1", "(1. 1.5 1e-6 2.5E+3 10.01)");
    check("123456789012345678901234567890", "123456789012345678901234567890");
}

#[test]
fn forms_that_begin_with_a_word_reach_to_the_right() {
    check("fun x -> x + 1", "(fun x (+ x 1))");
    check("fun x (y, z) _ -> x, y", "(fun x (, y z) _ (, x y))");
    check("x |> fun y -> y |> f", "(|> x (fun y (|> y f)))");
    check("1 + if a then b else c + d", "(+ 1 (if a b (+ c d)))");
    check("if a then b, c else d, e", "(if a (, b c) (, d e))");
    check("if a then b else if c then d else e", "(if a b (if c d e))");
    check("let x = 1 in x, x", "(let (x 1) (, x x))");
    check("let x = 1 and y = 2 in x", "(let (x 1) (y 2) x)");
    check("let rec f x = g x and g y = f y in f", "(let rec (f x (g x)) (g y (f y)) f)");
    check("let a, b = p in a", "(let ((, a b) p) a)");
    check("let f (x : real) : real = x in f", "(let (f (: x real) :real x) f)");
    check("let { x; y = z } = r in x", "(let ((record x y=z) r) x)");
    check("let x =\n  let y = 1 in y in x", "(let (x (let (y 1) y)) x)");
    check("1 * let x = 2 in x + 3", "(* 1 (let (x 2) (+ x 3)))");
}

#[test]
fn matches() {
    check("match x with A -> 1 | B -> 2", "(match x (A 1) (B 2))");
    check("match x with | A | B when c -> 1, 2 | _ -> 3", "(match x ((| A B) (when c) (, 1 2)) (_ 3))");
    check("match a, b with x, y -> x", "(match (, a b) ((, x y) x))");
    check("function [] -> 0 | x :: _ -> x", "(function ((list) 0) ((:: x _) x))");
    check("match a with A -> match b with B -> 1 | C -> 2 | D -> 3", "(match a (A (match b (B 1) (C 2) (D 3))))");
    check("match a with A -> (match b with B -> 1) | C -> 2", "(match a (A (match b (B 1))) (C 2))");
    check("begin match a with A -> 1 end", "(match a (A 1))");
}

#[test]
fn patterns() {
    let check = |text: &str, expected: &str| {
        assert_eq!(common::read_expr(&format!("fun ({text}) -> 0")), format!("(fun {expected} 0)"), "{text}");
    };
    check("x, y as p", "(as (, x y) p)");
    check("A | B, C as q", "(as (| A (, B C)) q)");
    check("a :: b :: c", "(:: a (:: b c))");
    check("A x :: B (y, z)", "(:: (A x) (B (, y z)))");
    check("-1", "-1");
    check("-1.5, 2, \"s\", true, ()", "(, -1.5 2 \"s\" true ())");
    check("[a; b], [| c |], []", "(, (list a b) (array c) (list))");
    check("{ x; M.y = 0; _ }", "(record x M.y=0 _)");
    check("(x : real[n][m]), M.N.C y", "(, (: x (array n (array m real))) (M.N.C y))");
    check("Some (Some _)", "(Some (Some _))");
}

#[test]
fn types() {
    let check = |text: &str, expected: &str| {
        assert_eq!(common::read_expr(&format!("(x : {text})")), format!("(: x {expected})"), "{text}");
    };
    check("a -> b -> c", "(-> a (-> b c))");
    check("(a -> b) -> c", "(-> (-> a b) c)");
    check("a * b * c -> d", "(-> (* a b c) d)");
    check("a * (b * c)", "(* a (* b c))");
    check("'a tree list", "(list (tree 'a))");
    check("(real, int) either", "(either real int)");
    check("(real * real)[]", "(array ? (* real real))");
    check("real[n][m]", "(array n (array m real))");
    check("real[3] list[]", "(array ? (list (array 3 real)))");
    check("Geometry.point[2]", "(array 2 Geometry.point)");
    check("_ option", "(option _)");
}

#[test]
fn records_arrays_comprehensions() {
    check("{ x = 1; y }", "(record x=1 y)");
    check("{ M.x = 1; y = a; }", "(record M.x=1 y=a)");
    check("{ r with x = 1; y = 2 }", "(with r x=1 y=2)");
    check("{ a.(i) with x = 1 }", "(with (index a i) x=1)");
    check("{ (f x) with x = (1, 2) }", "(with (f x) x=(, 1 2))");
    check("[| 1; 2; |]", "(array 1 2)");
    check("[1, 2; 3, 4]", "(list (, 1 2) (, 3 4))");
    check("[| for i < n -> i * i |]", "(for i<n (* i i))");
    check("[| for i < n + 1, j < m -> a.(i, j) |]", "(for i<(+ n 1) j<m (index a i j))");
    check("[| for i < n -> match i with 0 -> 1 | _ -> 2 |]", "(for i<n (match i (0 1) (_ 2)))");
    check("[|x|>f|]", "(array (|> x f))");
}

#[test]
fn comments_nest_and_are_kept() {
    let text = "1 (* a (* b *) c *) + (* \"d *) 2";
    check(text, "(+ 1 2)");
    let parsed = gradus_syntax::parse_expr(gradus_source::FileId(0), text);
    let comments: Vec<_> = parsed.comments.iter().map(|comment| comment.text(text)).collect();
    assert_eq!(comments, ["(* a (* b *) c *)", "(* \"d *)"]);
}

#[test]
fn spans_are_exact() {
    let text = "f (a + b).x (1, 2) - g";
    let parsed = gradus_syntax::parse_expr(gradus_source::FileId(0), text);
    use gradus_syntax::ast::ExprKind::*;
    let slice = |e: &gradus_syntax::ast::Expr| &text[e.span.start as usize..e.span.end as usize];
    let Binary(_, op, left, right) = &parsed.tree.kind else { panic!() };
    assert_eq!(slice(&parsed.tree), text);
    assert_eq!(&text[op.start as usize..op.end as usize], "-");
    assert_eq!(slice(right), "g");
    assert_eq!(slice(left), "f (a + b).x (1, 2)");
    let App(_, args) = &left.kind else { panic!() };
    assert_eq!(slice(&args[0]), "(a + b).x");
    assert_eq!(slice(&args[1]), "(1, 2)");
    let Field(sum, _) = &args[0].kind else { panic!() };
    assert_eq!(slice(sum), "a + b");
}
