(* The oracle: reads one S-expression per line, answers with one (README.md has the format).  Everything that matters is extracted from
   the proofs; this file only parses, prints, numbers the inputs, and supplies floating-point arithmetic. *)
open Extracted

type sexp = A of string | L of sexp list
exception Bad of string
let read str =
  let n = String.length str in
  let pos = ref 0 in
  let rec skip () = if !pos < n && (str.[!pos] = ' ' || str.[!pos] = '\t') then (incr pos; skip ()) in
  let rec one () =
    skip ();
    if !pos >= n then raise (Bad "unexpected end");
    match str.[!pos] with
    | '(' -> incr pos; L (many ())
    | ')' -> raise (Bad "unexpected )")
    | _ ->
      let b = !pos in
      while !pos < n && (match str.[!pos] with ' ' | '\t' | '(' | ')' -> false | _ -> true) do incr pos done;
      A (String.sub str b (!pos - b))
  and many () =
    skip ();
    if !pos >= n then raise (Bad "missing )");
    if str.[!pos] = ')' then (incr pos; []) else let x = one () in x :: many () in
  let x = one () in
  skip ();
  if !pos < n then raise (Bad "more than one expression") else x
let show s =
  let out = Buffer.create 1024 in
  let rec go = function
    | A s -> Buffer.add_string out s
    | L l -> Buffer.add_char out '('; List.iteri (fun i x -> if i > 0 then Buffer.add_char out ' '; go x) l; Buffer.add_char out ')' in
  go s; Buffer.contents out

(* ---- names: each table is used in both directions ---- *)
let prims1 = ["neg",PNeg; "exp",PExp; "log",PLog; "sqrt",PSqrt; "sin",PSin; "cos",PCos; "tan",PTan; "asin",PAsin; "acos",PAcos; "atan",PAtan;
  "sinh",PSinh; "cosh",PCosh; "tanh",PTanh; "log1p",PLog1p; "expm1",PExpm1; "abs",PAbs; "erf",PErf; "lgamma",PLgamma]
let prims2 = ["add",PAdd; "sub",PSub; "mul",PMul; "div",PDiv; "pow",PPow; "atan2",PAtan2; "max",PMax; "min",PMin]
let primis = ["powi",PPowi; "polygamma",PPolygamma]
let roundings = ["floor",Floor; "round",Round; "truncate",Truncate]
let comparators = ["lt",CLt; "le",CLe; "eq",CEq]
let intcmps = ["ilt",CLt; "ile",CLe; "ieq",CEq]
let intops = ["iadd",IAdd; "isub",ISub; "imul",IMul; "idiv",IDiv; "imod",IMod; "imax",IMax; "imin",IMin; "ipow",IPow]
let name table x = fst (List.find (fun (_, y) -> y = x) table)

let rec rty = function
  | A "R" -> TR | A "U" -> TU | A "I" -> TI
  | L [A "*"; a; b] -> TProd (rty a, rty b) | L [A "+"; a; b] -> TSum (rty a, rty b) | L [A "->"; a; b] -> TFun (rty a, rty b)
  | L [A "arr"; a] -> TArr (rty a) | L [A "tree"; a] -> TTree (rty a)
  | s -> raise (Bad ("type " ^ show s))
let rec wty = function
  | TR -> A "R" | TU -> A "U" | TI -> A "I"
  | TProd (a, b) -> L [A "*"; wty a; wty b] | TSum (a, b) -> L [A "+"; wty a; wty b] | TFun (a, b) -> L [A "->"; wty a; wty b]
  | TArr a -> L [A "arr"; wty a] | TTree a -> L [A "tree"; wty a]
let int = function A s -> (try int_of_string s with _ -> raise (Bad ("integer " ^ s))) | s -> raise (Bad ("integer " ^ show s))

let rec rtm = function
  | L [A "v"; i] -> Rvar (int i) | L [A "lam"; t; b] -> Rlam (rty t, rtm b) | L [A "app"; f; x] -> Rapp (rtm f, rtm x)
  | L [A "let"; a; b] -> Rlet (rtm a, rtm b) | L [A "fix"; a; b; e] -> Rfix (rty a, rty b, rtm e) | L [A "case"; s; l; r] -> Rcase (rtm s, rtm l, rtm r)
  | L [A "unit"] -> Runit | L [A "int"; z] -> Rint (int z) | L [A "nil"; t] -> Rnil (rty t)
  | L [A "fst"; a] -> Rfst (rtm a) | L [A "snd"; a] -> Rsnd (rtm a) | L [A "inl"; t; a] -> Rinl (rty t, rtm a) | L [A "inr"; t; a] -> Rinr (rty t, rtm a)
  | L [A "len"; a] -> Rlen (rtm a) | L [A "unnode"; a] -> Runnode (rtm a) | L [A "pair"; a; b] -> Rpair (rtm a, rtm b)
  | L [A "get"; a; b] -> Rget (rtm a, rtm b) | L [A "cons"; a; b] -> Rcons (rtm a, rtm b) | L [A "snoc"; a; b] -> Rsnoc (rtm a, rtm b)
  | L [A "node"; a; b] -> Rnode (rtm a, rtm b) | L [A "zip"; a; b] -> Rzip (rtm a, rtm b) | L [A "gather"; a; b] -> Rgather (rtm a, rtm b)
  | L [A "set"; a; i; v] -> Rset (rtm a, rtm i, rtm v) | L [A "loop"; n; z; b] -> Rloop (rtm n, rtm z, rtm b)
  | L [A "build"; n; b] -> Rbuild (rtm n, rtm b) | L [A "map"; b; a] -> Rmap (rtm b, rtm a) | L [A "fold"; b; z; a] -> Rfold (rtm b, rtm z, rtm a)
  | L [A "lit"; m; e] -> Rlit (int m, int e) | L [A "real"; a] -> Rreal (rtm a)
  | L [A "sum"; a] -> Rsum (rtm a) | L [A "dot"; a; b] -> Rdot (rtm a, rtm b)
  | L [A p; a] when List.mem_assoc p prims1 -> Rprim1 (List.assoc p prims1, rtm a)
  | L [A p; a] when List.mem_assoc p roundings -> Rround (List.assoc p roundings, rtm a)
  | L [A p; a; n] when List.mem_assoc p primis -> Rprimi (List.assoc p primis, rtm a, rtm n)
  | L [A p; a; b] when List.mem_assoc p prims2 -> Rprim2 (List.assoc p prims2, rtm a, rtm b)
  | L [A p; a; b] when List.mem_assoc p comparators -> Rcmp (List.assoc p comparators, rtm a, rtm b)
  | L [A p; a; b] when List.mem_assoc p intcmps -> Rintcmp (List.assoc p intcmps, rtm a, rtm b)
  | L [A p; a; b] when List.mem_assoc p intops -> Rintop (List.assoc p intops, rtm a, rtm b)
  | s -> raise (Bad ("term " ^ show s))
let num z = A (string_of_int z)
let rec wtm r =
  let n1 s a = L [A s; wtm a] and n2 s a b = L [A s; wtm a; wtm b] in
  match r with
  | Rvar i -> L [A "v"; num i] | Rlam (t, b) -> L [A "lam"; wty t; wtm b] | Rapp (f, x) -> n2 "app" f x | Rlet (a, b) -> n2 "let" a b
  | Rfix (a, b, e) -> L [A "fix"; wty a; wty b; wtm e] | Rcase (s, l, r) -> L [A "case"; wtm s; wtm l; wtm r]
  | Runit -> L [A "unit"] | Rint z -> L [A "int"; num z] | Rnil t -> L [A "nil"; wty t]
  | Rfst a -> n1 "fst" a | Rsnd a -> n1 "snd" a | Rinl (t, a) -> L [A "inl"; wty t; wtm a] | Rinr (t, a) -> L [A "inr"; wty t; wtm a]
  | Rlen a -> n1 "len" a | Runnode a -> n1 "unnode" a | Rpair (a, b) -> n2 "pair" a b | Rget (a, b) -> n2 "get" a b | Rcons (a, b) -> n2 "cons" a b
  | Rsnoc (a, b) -> n2 "snoc" a b | Rnode (a, b) -> n2 "node" a b | Rzip (a, b) -> n2 "zip" a b | Rgather (a, b) -> n2 "gather" a b
  | Rintop (o, a, b) -> n2 (name intops o) a b | Rintcmp (c, a, b) -> n2 (name intcmps c) a b | Rset (a, i, v) -> L [A "set"; wtm a; wtm i; wtm v]
  | Rloop (n, z, b) -> L [A "loop"; wtm n; wtm z; wtm b] | Rbuild (n, b) -> n2 "build" n b | Rmap (b, a) -> n2 "map" b a
  | Rfold (b, z, a) -> L [A "fold"; wtm b; wtm z; wtm a] | Rlit (m, e) -> L [A "lit"; num m; num e]
  | Rprim1 (p, a) -> n1 (name prims1 p) a | Rprim2 (p, a, b) -> n2 (name prims2 p) a b | Rprimi (p, a, n) -> n2 (name primis p) a n
  | Rcmp (c, a, b) -> n2 (name comparators c) a b | Rround (k, a) -> n1 (name roundings k) a | Rreal a -> n1 "real" a
  | Rsum a -> n1 "sum" a | Rdot (a, b) -> n2 "dot" a b

(* ---- floating-point arithmetic ---- *)
(* a NaN was made elsewhere, so it is not outside a domain and not a tie *)
let pos x = not (x <= 0.)
let regular x = pos x || x <> Float.trunc x
let floats : float ops = {
  o_lit = (fun m e -> ldexp (float_of_int m) e);
  o_real = float_of_int;
  o_prim1 = Elementary.prim1;
  o_ok1 = (fun p x -> match p with PLog | PSqrt -> pos x | PTan -> cos x <> 0. | PAsin | PAcos -> pos (1. -. x *. x) | PLog1p -> pos (1. +. x)
    | PAbs -> x <> 0. | PLgamma -> regular x | _ -> true);
  o_prim2 = Elementary.prim2;
  o_ok2 = (fun p x y -> x <> x || y <> y || match p with PDiv -> y <> 0. | PPow -> pos (x -. 0x1p-1074) | PAtan2 -> x <> 0. || pos y | PMax | PMin -> x <> y | _ -> true);
  o_primi = Elementary.primi;
  o_oki = (fun p x k -> match p with PPowi -> k >= 0 || x <> 0. | PPolygamma -> x <> x || (k >= 0 && regular x));
  o_cmp = (fun x y -> if x < y then Lt else if x = y then Eq else Gt);
  o_round = Elementary.round;
  o_okround = (fun r x -> match r with Round -> Float.abs (x -. Float.trunc x) <> 0.5 | _ -> not (Float.is_integer x)) }

(* ---- values, by type ---- *)
let rec rval t s : Obj.t = match t, s with
  | TR, A x -> Obj.repr (try float_of_string x with _ -> raise (Bad ("real " ^ x)))
  | TU, L [] -> Obj.repr ()
  | TI, s -> Obj.repr (int s)
  | TProd (a, b), L [A "pair"; x; y] -> Obj.repr (rval a x, rval b y)
  | TSum (a, _), L [A "inl"; x] -> Obj.repr (Inl (rval a x))
  | TSum (_, b), L [A "inr"; x] -> Obj.repr (Inr (rval b x))
  | TArr a, L (A "arr" :: l) -> Obj.repr (List.map (rval a) l)
  | TTree a, L (A "node" :: x :: ts) -> Obj.repr (Node (rval a x, List.map (fun u -> Obj.obj (rval t u)) ts))
  | _ -> raise (Bad ("value " ^ show s))
let rec wval t (v : Obj.t) = match t with
  | TR -> A (Printf.sprintf "%h" (Obj.obj v : float)) | TU -> L [] | TI -> num (Obj.obj v)
  | TProd (a, b) -> let (x, y) = Obj.obj v in L [A "pair"; wval a x; wval b y]
  | TSum (a, b) -> (match Obj.obj v with Inl x -> L [A "inl"; wval a x] | Inr y -> L [A "inr"; wval b y])
  | TFun _ -> A "function"
  | TArr a -> L (A "arr" :: List.map (wval a) (Obj.obj v))
  | TTree a -> let Node (x, ts) = Obj.obj v in L (A "node" :: wval a x :: List.map (fun u -> wval t (Obj.repr u)) ts)
let rec envof ts vs : Obj.t = match ts, vs with
  | [], [] -> Obj.repr () | t :: ts, v :: vs -> Obj.repr (rval t v, envof ts vs) | _ -> raise (Bad "as many values as types")

(* ---- tapes: Deltas are trees, labelled Zero | Scale r | Add | Var i | Let i ---- *)
let var i : Obj.t = Obj.repr (Node (Inr (Inr (Inr (Inl i))), []))
let rec wdelta (v : Obj.t) = match (Obj.obj v : (unit, (float, (unit, (int, int) sum) sum) sum) sum tree) with
  | Node (Inl (), _) -> A "zero"
  | Node (Inr (Inl c), [u]) -> L [A "scale"; A (Printf.sprintf "%h" c); wdelta (Obj.repr u)]
  | Node (Inr (Inr (Inl ())), [u; v]) -> L [A "add"; wdelta (Obj.repr u); wdelta (Obj.repr v)]
  | Node (Inr (Inr (Inr (Inl i))), _) -> L [A "var"; num i]
  | _ -> raise (Bad "delta")
(* the input with an identifier at every real, left to right *)
let rec dual t (v : Obj.t) next : Obj.t = match t with
  | TR -> let i = !next in incr next; Obj.repr (v, var i)
  | TU | TI -> v
  | TProd (a, b) -> let (x, y) = Obj.obj v in let x = dual a x next in Obj.repr (x, dual b y next)
  | TSum (a, b) -> (match Obj.obj v with Inl x -> Obj.repr (Inl (dual a x next)) | Inr y -> Obj.repr (Inr (dual b y next)))
  | TFun _ -> raise (Bad "function in the input")
  | TArr a -> Obj.repr (List.map (fun x -> dual a x next) (Obj.obj v))
  | TTree a -> let rec go (Node (x, ts)) = let x = dual a x next in Node (x, List.map go ts) in Obj.repr (go (Obj.obj v))
let rec duals ts (v : Obj.t) next : Obj.t = match ts with
  | [] -> v | t :: ts -> let (x, r) = Obj.obj v in let x = dual t x next in Obj.repr (x, duals ts r next)
(* the output: a real with its Delta *)
let rec wdual t (v : Obj.t) = match t with
  | TR -> let (x, d) = Obj.obj v in L [A "dual"; wval TR x; wdelta d]
  | TProd (a, b) -> let (x, y) = Obj.obj v in L [A "pair"; wdual a x; wdual b y]
  | TSum (a, b) -> (match Obj.obj v with Inl x -> L [A "inl"; wdual a x] | Inr y -> L [A "inr"; wdual b y])
  | TArr a -> L (A "arr" :: List.map (wdual a) (Obj.obj v))
  | TTree a -> let rec go (Node (x, ts)) = L (A "node" :: wdual a x :: List.map go ts) in go (Obj.obj v)
  | _ -> wval t v

(* several questions about one program come in a row *)
let latest f =
  let known = ref None in
  fun x -> match !known with
    | Some (x', y) when x' = x -> y
    | _ -> let y = f x in known := Some (x, y); y
let names = ["add_comm",Add_comm; "add_zero",Add_zero; "add_neg",Add_neg; "mul_comm",Mul_comm; "distribute",Distribute; "mul_zero",Mul_zero;
  "mul_one",Mul_one; "add_zero_r",Add_zero_r; "mul_one_r",Mul_one_r; "mul_zero_r",Mul_zero_r; "sub_zero",Sub_zero; "sub_self",Sub_self;
  "div_one",Div_one; "neg_neg",Neg_neg; "sub_neg",Sub_neg; "sub_minus",Sub_minus; "minus_add",Minus_add; "neg_one",Neg_one; "neg_one_r",Neg_one_r;
  "neg_product",Neg_product; "neg_product_r",Neg_product_r; "neg_quotient",Neg_quotient; "neg_quotient_r",Neg_quotient_r; "double",Double;
  "power_one",Power_one; "power_zero",Power_zero; "square",Square; "zero_sub",Zero_sub; "zero_div",Zero_div; "neg_sub",Neg_sub;
  "add_assoc",Add_assoc; "add_assoc_r",Add_assoc_r; "mul_assoc",Mul_assoc; "mul_assoc_r",Mul_assoc_r; "distribute_sub",Distribute_sub;
  "distribute_one",Distribute_one; "sub_of_sum",Sub_of_sum; "div_mul",Div_mul; "div_div",Div_div; "log_exp",Log_exp;
  "add_comm_int",Add_comm_int; "mul_comm_int",Mul_comm_int; "add_assoc_int",Add_assoc_int; "add_zero_int",Add_zero_int; "zero_add_int",Zero_add_int;
  "sub_zero_int",Sub_zero_int; "mul_one_int",Mul_one_int; "one_mul_int",One_mul_int; "sub_self_int",Sub_self_int; "add_sub_int",Add_sub_int;
  "sub_add_int",Sub_add_int; "fold_add",Fold_add; "fold_mul",Fold_mul; "fold_int",Fold_int; "beta_let",Beta_let; "let_atom",Let_atom;
  "let_dead",Let_dead; "let_let",Let_let; "let_swap",Let_swap; "let_app",Let_app; "fst_pair",Fst_pair; "snd_pair",Snd_pair; "case_inl",Case_inl; "case_inr",Case_inr;
  "unnode_node",Unnode_node; "if_same",If_same; "if_truth",If_truth; "if_not",If_not; "loop_zero",Loop_zero; "loop_succ",Loop_succ;
  "loop_same",Loop_same; "get_first",Get_first; "get_next",Get_next; "get_build",Get_build; "fold_sub",Fold_sub; "fold_neg",Fold_neg;
  "fold_real",Fold_real; "fold_compare",Fold_compare; "fold_intcmp",Fold_intcmp; "equal_self",Equal_self; "less_self",Less_self; "let_out",Let_out; "let_out_2",Let_out_2;
  "let_out_3",Let_out_3; "build_items",Build_items; "mul_if",Mul_if; "mul_if_r",Mul_if_r; "mul_if_not",Mul_if_not; "mul_if_not_r",Mul_if_not_r; "div_if",Div_if;
  "neg_if",Neg_if; "add_if",Add_if]

(* ---- derivations: where a rule was used is found by trying, along the way to the first difference; [accepts] has the last word ---- *)
let parts = function
  | L [A ("v" | "int" | "lit"); _] | L [A ("unit" | "nil"); _] | L [A "lit"; _; _] | L [A "unit"] -> []
  | L [A ("lam" | "inl" | "inr"); _; e] -> [e]
  | L [A "fix"; _; _; e] -> [e]
  | L (A _ :: parts) -> parts
  | _ -> []
let head = function
  | L [A ("lam" | "inl" | "inr") as op; t; _] -> [op; t]
  | L [A "fix" as op; a; b; _] -> [op; a; b]
  | L (A ("v" | "int" | "lit" | "nil") :: _) as s -> [s]
  | L (op :: _) -> [op]
  | s -> [s]
(* the first place at which two texts differ: the parts there *)
let rec difference a b = match a, b with
  | L (x :: l), L (y :: l') when x = y && List.length l = List.length l' ->
    (match List.find_opt (fun (p, q) -> p <> q) (List.combine l l') with Some (L p, L q) -> difference (L p) (L q) | _ -> (a, b))
  | _ -> (a, b)
(* the places at which the difference can have been made: the deepest part that has all of it, those around it, and those inside it *)
let rec inside s = [] :: List.concat (List.mapi (fun i part -> List.map (fun place -> i :: place) (inside part)) (parts s))
let places around_first a b =
  let rec go a b =
    let differ = if head a <> head b then [] else
      List.filter (fun (_, x, y) -> x <> y) (List.mapi (fun i (x, y) -> (i, x, y)) (List.combine (parts a) (parts b))) in
    match differ with
    | [(i, x, y)] -> let (around, within) = go x y in (List.map (List.cons i) around @ [[]], List.map (List.cons i) within)
    | _ -> ([[]], List.tl (inside a)) in
  let (around, within) = go a b in
  if around_first then around @ within else List.hd around :: within @ List.tl around
(* short derivations first; each depth gives up after a number of tries *)
let search g e e' rules typed =
  let attempt (depth, around_first, rules, tries) =
    let left = ref tries in
    let rec go s (t, term) steps depth =
      if s = e' then Some (List.rev steps)
      else if depth = 0 then None
      else List.find_map (fun place -> List.find_map (fun rule ->
        if !left = 0 then None else begin
          decr left;
          match there (List.assoc rule names) place g t term with
          | None -> None
          | Some next -> go (wtm (erase g t next)) (t, next) ((rule, place) :: steps) (depth - 1)
        end) rules) (places around_first s e') in
    go e typed [] depth in
  (* lets change places in the end only *)
  let moving = List.mem "let_swap" rules in
  let few = List.filter (fun rule -> rule <> "let_swap") rules and moves = List.filter (fun rule -> rule <> "let_atom" && rule <> "beta_let") rules in
  List.find_map attempt
    (List.map (fun (depth, around_first) -> (depth, around_first, few, 6000)) [(1, true); (2, true)]
     @ (if moving then [(3, false, moves, 20000); (4, false, moves, 60000)] else [])
     @ List.map (fun (depth, around_first) -> (depth, around_first, few, 6000)) [(7, false); (9, false); (12, false); (4, true); (12, true)])

let elab = latest (fun (g, e) -> match infer g (rtm e) with Some (ExistT (t, e)) -> (t, e) | None -> raise (Bad "ill-typed"))
let elab g e = elab (g, e)
let monadic = latest (fun (g, e) -> let (t, e) = elab g e in mT g t e)
let types = function L l -> List.map rty l | s -> raise (Bad ("types " ^ show s))
let values = function L l -> l | s -> raise (Bad ("values " ^ show s))
let macro m g e = let g = types g in let (t, e) = elab g e in wtm (erase (List.map (d m) g) (d m t) (dT m g t e))
(* a monadic program, run with an identifier for each real of the input *)
let tape fuel g t vs e =
  let next = ref 0 in
  let r = duals g (envof g (values vs)) next in
  match ev floats (int fuel) (List.map mD g) (tM (mD t)) e (Obj.magic r) with
  | None -> A "undefined"
  | Some ((c, n), k) ->
    (match (Obj.magic c : (int * Obj.t list) -> (((Obj.t * (int * (int * Obj.t) list)) * int) * int) option) (!next, []) with
     | None -> A "undefined"
     | Some (((b, (_, binds)), n'), k') ->
       L [A "ok"; wdual t b; num (n + n'); num (k + k'); L (List.rev_map (fun (i, u) -> L [num i; wdelta u]) binds)])
let answer = function
  | L [A "type"; g; e] -> wty (fst (elab (types g) e))
  | L [A "forward"; g; e] -> macro fwd g e
  | L [A "vector"; n; g; e] -> macro (vec (int n)) g e
  | L [A "continuation"; n; g; e] -> macro (cont (int n)) g e
  | L [A "delta"; g; e] -> macro dlt g e
  | L [A "monadic"; g; e] -> let g = types g in let (t, _) = elab g e in wtm (erase (List.map mD g) (tM (mD t)) (monadic (g, e)))
  | L [A "agree"; A mode; g; e; ours] ->
    let g = types g in let (t, typed) = elab g e in
    let (g, t, theirs) = match mode with
      | "forward" -> (List.map (d fwd) g, d fwd t, dT fwd g t typed)
      | "monadic" -> (List.map mD g, tM (mD t), monadic (g, e))
      | _ -> raise (Bad ("mode " ^ mode)) in
    let text = erase g t theirs in
    if text = rtm ours then A "same" else let (there, here) = difference (wtm text) ours in L [A "differs"; there; here]
  | L [A "eval"; fuel; g; vs; e] ->
    let g = types g in let (t, e) = elab g e in
    (match ev floats (int fuel) g t e (Obj.magic (envof g (values vs))) with
     | None -> A "undefined"
     | Some ((v, n), k) -> L [A "ok"; wval t (Obj.magic v); num n; num k])
  | L [A "tape"; fuel; g; vs; e] -> let g = types g in tape fuel g (fst (elab g e)) vs (monadic (g, e))
  | L [A "rules"] -> L (List.map (fun (name, _) -> A name) names)
  | L [A "derive"; g; e; e'; L rules] ->
    let rules = List.map (function A rule when List.mem_assoc rule names -> rule | s -> raise (Bad ("rule " ^ show s))) rules in
    let g = types g in
    (match search g e e' rules (elab g e) with
     | None -> A "no"
     | Some steps ->
       if accepts g (rtm e) (rtm e') (List.map (fun (rule, place) -> (List.assoc rule names, place)) steps)
       then L (A "yes" :: List.map (fun (rule, _) -> A rule) steps) else A "no")
  | s -> raise (Bad ("command " ^ show s))
let () =
  (* transformed terms are large and short-lived *)
  Gc.set { (Gc.get ()) with Gc.minor_heap_size = 4_000_000; space_overhead = 300 };
  try while true do
    let line = input_line stdin in
    print_endline (show (try answer (read line) with Bad s -> L [A "error"; A (String.map (fun c -> if c = '(' || c = ')' || c = ' ' then '_' else c) s)] | Stack_overflow -> L [A "error"; A "stack"]))
  done with End_of_file -> ()
