//! The rules, one row each: `name; tags; left => right if condition`.
//!
//! The tags: `exact`, if both sides agree bit for bit, errors included, or `reassociates`, if they agree as real numbers but rounding, infinities,
//! NaN or the sign of zero may differ; how the rule is used: `simplify`, wherever its left side stands, `search`, in the e-graph only, or
//! `code`, when it needs more than a pattern, such as any number of components (the row then shows an instance); and the lemma of
//! `proofs/Laws.v` or `proofs/Rewrite.v` that proves it, if there is one. Every row of `simplify` that binds no variable serves the search too.

use crate::condition::Condition;
use crate::pattern::Pattern;
use gradus_source::bug;
use std::fmt;
use std::sync::LazyLock;

const TABLE: &str = "
// C Fig. 12 (a): algebraic laws, and their neighbours
add_comm;         exact search proved:add_comm;                  a + b => b + a if total a or total b
mul_comm;         exact search proved:mul_comm;                  a * b => b * a if total a or total b
mul_one;          exact simplify proved:mul_one;                 1.0 * a => a
mul_one_r;        exact simplify proved:mul_one_r;               a * 1.0 => a
div_one;          exact simplify proved:div_one;                 a / 1.0 => a
sub_zero;         exact simplify proved:sub_zero;                a - 0.0 => a
add_minus_zero;   exact simplify;                                a + -0.0 => a
neg_neg;          exact simplify proved:neg_neg;                 -(-a) => a
sub_neg;          exact simplify proved:sub_neg;                 a + -b => a - b
sub_minus;        exact simplify proved:sub_minus;               a - -b => a + b
minus_add;        exact simplify proved:minus_add;               -a + b => b - a if total a or total b
neg_one;          exact simplify proved:neg_one;                 -1.0 * a => -a
neg_one_r;        exact simplify proved:neg_one_r;               a * -1.0 => -a
neg_product;      exact simplify proved:neg_product;             -a * b => -(a * b)
neg_product_r;    exact simplify proved:neg_product_r;           a * -b => -(a * b)
neg_quotient;     exact simplify proved:neg_quotient;            -a / b => -(a / b)
neg_quotient_r;   exact simplify proved:neg_quotient_r;          a / -b => -(a / b)
double;           exact simplify proved:double;                  a + a => 2.0 * a if total a
power_one;        exact simplify proved:power_one;               a ^ 1 => a
power_zero;       exact simplify proved:power_zero;              a ^ 0 => 1.0 if total a
add_zero;         reassociates simplify proved:add_zero;         0.0 + a => a
add_zero_r;       reassociates simplify proved:add_zero_r;       a + 0.0 => a
zero_sub;         reassociates simplify proved:zero_sub;         0.0 - a => -a
mul_zero;         reassociates simplify proved:mul_zero;         0.0 * a => 0.0 if total a
mul_zero_r;       reassociates simplify proved:mul_zero_r;       a * 0.0 => 0.0 if total a
zero_div;         reassociates simplify proved:zero_div;         0.0 / a => 0.0 if total a
neg_zero;         reassociates simplify;                         -0.0 => 0.0
sub_self;         reassociates simplify proved:sub_self;         a - a => 0.0 if total a
add_neg;          reassociates simplify proved:add_neg;          a + -a => 0.0 if total a
neg_sub;          reassociates simplify proved:neg_sub;          -(a - b) => b - a if total a or total b
add_assoc;        reassociates search proved:add_assoc;          (a + b) + c => a + (b + c)
add_assoc_r;      reassociates search proved:add_assoc_r;        a + (b + c) => (a + b) + c
mul_assoc;        reassociates search proved:mul_assoc;          (a * b) * c => a * (b * c)
mul_assoc_r;      reassociates search proved:mul_assoc_r;        a * (b * c) => (a * b) * c
distribute;       reassociates search proved:distribute;         a * b + a * c => a * (b + c) if total a
distribute_sub;   reassociates search proved:distribute_sub;     a * b - a * c => a * (b - c) if total a
distribute_one;   reassociates search proved:distribute_one;     a * b + a => a * (b + 1.0) if total a
sub_of_sum;       reassociates search proved:sub_of_sum;         (a + b) - a => b if total a
div_mul;          reassociates search proved:div_mul;            (a / b) * c => (a * c) / b if total b or total c
mul_div;          reassociates search;                           (a * b) / a => b if total a
div_self;         reassociates search;                           a / a => 1.0 if total a
div_div;          reassociates search proved:div_div;            (a / b) / c => a / (b * c)
square;           exact search proved:square;                    a * a => a ^ 2 if total a
exp_log;          reassociates simplify;                         exp (log a) => a
log_exp;          reassociates simplify proved:log_exp;          log (exp a) => a
add_comm_int;     exact search proved:add_comm_int;              m + n => n + m if total m or total n
add_assoc_int;    exact search proved:add_assoc_int;             (k + m) + n => k + (m + n)
mul_comm_int;     exact search proved:mul_comm_int;              m * n => n * m if total m or total n
add_zero_int;     exact simplify proved:add_zero_int;            n + 0 => n
zero_add_int;     exact simplify proved:zero_add_int;            0 + n => n
sub_zero_int;     exact simplify proved:sub_zero_int;            n - 0 => n
mul_one_int;      exact simplify proved:mul_one_int;             n * 1 => n
one_mul_int;      exact simplify proved:one_mul_int;             1 * n => n
sub_self_int;     exact simplify proved:sub_self_int;            n - n => 0 if total n
add_sub_int;      exact simplify proved:add_sub_int;             (m + n) - n => m if total n
sub_add_int;      exact simplify proved:sub_add_int;             (m - n) + n => m if total n

// C Fig. 13: evaluation of known terms
fold_add;         exact code proved:fold_add;                    2.0 + 3.0 => 5.0
fold_mul;         exact code proved:fold_mul;                    2.0 * 3.0 => 6.0
fold_int;         exact code proved:fold_int;                    2 + 3 => 5
fold_sub;         exact code proved:fold_sub;                    5.0 - 3.0 => 2.0
fold_real;        exact code proved:fold_real;                   real 2 => 2.0
fold_compare;     exact code proved:fold_compare;                2 < 3 => true
constant;         exact code;                                    sqrt 4.0 => 2.0
beta;             exact simplify proved:beta_let;                (fun x -> y) z => let x = z in y
let_atom;         exact code proved:let_atom;                    let x = y in z => z[x := y] if atom y
let_dead;         exact code proved:let_dead;                    let x = y in z => z if total y, x not in z
let_once;         exact code;                                    let x = y in z => z[x := y] if total y, once x in z
let_next;         exact code;                                    let x = y in z => z[x := y] if next x in z
let_let;          exact code proved:let_let;                     let x = (let y = z in s) in t => let y = z in let x = s in t
let_out;          exact code proved:let_out;                     a + (let b = c in d) => let b = c in a + d if total a
let_app;          exact simplify proved:let_app;                 (let x = y in z) s => let x = y in z s
let_tuple;        exact code;                                    let x = (y, z) in (x.1, x.0) => let s = y in let t = z in (t, s)
call_known;       exact code;                                    let x = fun a -> a * a in x b + x c => let x = fun a -> a * a in (let d = b in d * d) + (let g = c in g * g)
let_element;      exact code;                                    let x = (build n (fun i -> (a, 0.0))).(k) in x.0 * x.1 => a[i := k] * 0.0 if total a, atom k, k < n
let_array;        exact code;                                    let u = [| a; b |] in u.(1) - u.(0) => let c = a in let d = b in d - c
share;            exact code;                                    sin (a + b) * sin (a + b) => let c = sin (a + b) in c * c if total a, total b
fst_pair;         exact simplify proved:fst_pair;                (x, y).0 => x if total y
snd_pair;         exact simplify proved:snd_pair;                (x, y).1 => y if total x
projection;       exact code;                                    (x, y, z).1 => y if total x, total z
component_last;   exact code;                                    (x, y).1 => let z = x in y
if_component;     exact code;                                    (if p then (x, y) else (z, s)).0 => if p then x else z if total y, total s
case_inl;         exact simplify proved:case_inl;                match Inl x with Inl y -> z | Inr s -> t => let y = x in z
case_inr;         exact simplify proved:case_inr;                match Inr x with Inl y -> z | Inr s -> t => let s = x in t
case_known;       exact code;                                    match Inr x with Inl y -> z | Inr s -> t => let s = x in t
if_true;          exact simplify proved:case_inl;                if true then x else y => x
if_false;         exact simplify proved:case_inr;                if false then x else y => y
if_same;          exact simplify proved:if_same;                 if p then x else x => x if total p
if_not;           exact simplify proved:if_not;                  if not p then x else y => if p then y else x
if_truth;         exact simplify proved:if_truth;                if p then true else false => p
if_again;         exact simplify;                                if p then (if p then x else y) else z => if p then x else z if total p
if_again_not;     exact simplify;                                if p then x else (if p then y else z) => if p then x else z if total p
not_not;          exact simplify proved:if_not;                  not (not p) => p
equal_self;       exact simplify proved:equal_self;              n = n => true if total n
equal_same;       exact simplify;                                m = n => true if same m n
unequal_same;     exact simplify;                                m <> n => false if same m n
less_self;        exact simplify proved:less_self;               n < n => false if total n
ifold_zero;       exact simplify proved:loop_zero;               ifold 0 (fun i x -> y) z => z
ifold_succ;       exact code proved:loop_succ;                   ifold 2 (fun i x -> y) z => let x = (let x = z in y[i := 0]) in y[i := 1]
build_literal;    exact code proved:build_items;                 build 2 (fun i -> x) => [| x[i := 0]; x[i := 1] |]
get_literal;      exact code;                                    [| a; b |].(1) => b if total a

// C Fig. 12 (d) and (e): fusion and fission of loops; with them map-map, map-reduce and transposes of transposes come out
get_build;        exact code proved:get_build;                   (build n (fun i -> x)).(k) => x[i := k] if total x, atom k, k < n
length_build;     exact simplify;                                length (build n (fun i -> x)) => n if total x, nonneg n
length_known;     exact code;                                    let u = build n (fun i -> a) in length u => let u = build n (fun i -> a) in n if atom n, total a
build_get;        exact simplify;                                build n (fun i -> u.(i)) => u if atom u, size u n
fuse_build;       exact code;                                    let u = build n (fun i -> a) in build n (fun j -> sin u.(j)) => build n (fun j -> sin (a[i := j])) if total a
check_source;     exact code;                                    let u = build (length v) (fun i -> a) in let w = check_size u n in b => let u = build (length v) (fun i -> a) in let w = check_size v n in b if w not in b, atom v
check_known;      exact simplify;                                check_size u n => u if size u n
fission;          exact code;                                    (ifold n (fun i x -> (a, b)) (c, d)).0 => ifold n (fun i x -> a) c if total b, total d
ifold_same;       exact simplify proved:loop_same;               ifold n (fun i x -> x) y => y if total n
ifold_count;      exact simplify;                                ifold n (fun i m -> m + k) l => l + k * n if nonneg n, total n, total k, i not in k, m not in k
hot_component;    reassociates code;                             (build n (fun i -> (a, if i = j then 1.0 else 0.0))).(k).1 => if k = j then 1.0 else 0.0 if total a, atom j, atom k, k < n
sum_one_hot;      reassociates code;                             ifold n (fun i a -> a + (if i = j then b else 0.0)) c => c + b[i := j] if total b, total c, atom j, j < n
sum_scale;        reassociates simplify;                         ifold n (fun i a -> a + b * c) 0.0 => b * ifold n (fun i a -> a + c) 0.0 if total b, i not in b, a not in b, a not in c
sum_scale_r;      reassociates simplify;                         ifold n (fun i a -> a + c * b) 0.0 => b * ifold n (fun i a -> a + c) 0.0 if total b, i not in b, a not in b, a not in c
sum_neg;          reassociates simplify;                         ifold n (fun i a -> a - b) 0.0 => -(ifold n (fun i a -> a + b) 0.0) if a not in b

// Zeros and ones of derivatives, under conditions: a one-hot direction is `if i = j then 1.0 else 0.0`
mul_if;           reassociates simplify proved:mul_if;           (if p then a else 0.0) * c => if p then a * c else 0.0 if total c
mul_if_r;         reassociates simplify proved:mul_if_r;         c * (if p then a else 0.0) => if p then c * a else 0.0 if total c, total p
mul_if_not;       reassociates simplify proved:mul_if_not;       (if p then 0.0 else a) * c => if p then 0.0 else a * c if total c
mul_if_not_r;     reassociates simplify proved:mul_if_not_r;     c * (if p then 0.0 else a) => if p then 0.0 else c * a if total c, total p
div_if;           reassociates simplify proved:div_if;           (if p then a else 0.0) / c => if p then a / c else 0.0 if total c
neg_if;           reassociates simplify proved:neg_if;           -(if p then a else 0.0) => if p then -a else 0.0
add_if;           reassociates simplify proved:add_if;           (if p then a else 0.0) + (if p then b else 0.0) => if p then a + b else 0.0 if total p, total a

// Linear maps: the vector-space operations
scale_one;        exact simplify;                                1.0 *> x => x
scale_real;       exact simplify;                                a *> b => a * b
vector_add_real;  exact simplify;                                a <+> b => a + b
vector_sub_real;  exact simplify;                                a <-> b => a - b
zero_like_real;   exact simplify;                                zero_like a => 0.0 if total a
zero_like_twice;  exact simplify;                                zero_like (zero_like x) => zero_like x
zero_like_scale;  exact simplify;                                zero_like (a *> x) => zero_like x if total a
inner_real;       reassociates simplify;                         a <.> b => a * b
inner_scale;      reassociates simplify;                         (a *> x) <.> y => a * (x <.> y) if total x or total a
inner_scale_r;    reassociates simplify;                         x <.> (a *> y) => a * (x <.> y) if total x or total a
scale_scale;      reassociates simplify;                         a *> (b *> x) => (a * b) *> x
scale_add;        reassociates simplify;                         (a *> x) <+> (a *> y) => a *> (x <+> y) if total a, total x
";

/// Whether both sides of a rule agree bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Class {
    /// Bit for bit, errors included; all NaN count as one.
    #[default]
    Exact,
    /// As real numbers; rounding, infinities, NaN and the sign of zero may differ.
    Reassociates,
}

/// How a rule is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Wherever the left side stands; in the search too.
    Simplify,
    /// In the e-graph only: the other direction may be better.
    Search,
    /// Wherever it applies, by a function of this crate.
    Code,
}

pub struct Rule {
    pub name: &'static str,
    pub left: &'static str,
    pub right: &'static str,
    /// Empty if there is none.
    pub condition: &'static str,
    pub class: Class,
    pub usage: Use,
    /// The lemma of `proofs/Laws.v` or `proofs/Rewrite.v`.
    pub proved: Option<&'static str>,
    /// The heading above the row.
    pub section: &'static str,
    pub(crate) left_pattern: Pattern,
    pub(crate) right_pattern: Pattern,
    pub(crate) conditions: Vec<Condition>,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All rules, in the order of the table.
pub fn rules() -> &'static [Rule] {
    static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        let mut section = "";
        let mut rules = Vec::new();
        for line in TABLE.lines().filter(|line| !line.is_empty()) {
            match line.strip_prefix("// ") {
                Some(heading) => section = heading,
                None => rules.push(row(line, section)),
            }
        }
        rules
    });
    &RULES
}

/// The rule of a name.
pub fn rule(name: &str) -> Option<&'static Rule> {
    rules().iter().find(|rule| rule.name == name)
}

fn row(line: &'static str, section: &'static str) -> Rule {
    let mut columns = line.splitn(3, ';').map(str::trim);
    let (Some(name), Some(tags), Some(text)) = (columns.next(), columns.next(), columns.next()) else {
        bug!("a row of the rule table: {line}")
    };
    let Some((left, right)) = text.split_once(" => ") else { bug!("no arrow: {line}") };
    // `if` inside the right side has a `then`; the condition, which comes last, has none.
    let (right, condition) = match right.rfind(" if ") {
        Some(at) if !right[at..].contains(" then ") => (&right[..at], &right[at + 4..]),
        _ => (right, ""),
    };
    let mut rule = Rule {
        name,
        left,
        right,
        condition,
        class: Class::Exact,
        usage: Use::Code,
        proved: None,
        section,
        left_pattern: Pattern::parse(left),
        right_pattern: Pattern::parse(right),
        conditions: Condition::parse(condition),
    };
    for tag in tags.split_whitespace() {
        match tag {
            "exact" => rule.class = Class::Exact,
            "reassociates" => rule.class = Class::Reassociates,
            "simplify" => rule.usage = Use::Simplify,
            "search" => rule.usage = Use::Search,
            "code" => rule.usage = Use::Code,
            _ => match tag.strip_prefix("proved:") {
                Some(lemma) => rule.proved = Some(lemma),
                None => bug!("the tag `{tag}`: {line}"),
            },
        }
    }
    rule
}
