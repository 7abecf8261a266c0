(* The language.  One intrinsically typed calculus serves as source and as target of every
   transformation: higher-order functions, products, sums, integers, loops, run-time-sized arrays,
   first-order inductive types, general recursion, and the scalar primitives of Gradus.

   Its meaning is an instrumented denotation in the monad [M]: failure (fuel, index out of bounds),
   a step count, and a count of *kinks*, the executed primitives that are not differentiable where
   they were executed.  Values of type real are those of any [ops X], so syntax, transformations and
   evaluator extract without the real numbers; the proofs take X := R (Primitive.v).

   Three choices keep every later induction short.  Variables are membership evidence and environments
   nested pairs, so no substitution is needed to evaluate.  Recursion is Kleene iteration bounded by
   fuel, so no domain theory.  Everything that merely moves data (projections, array access, integer
   arithmetic, constructors) is an [op], a family indexed by its type: one case per arity instead of one per name. *)
From Coq Require Import List ZArith.
Import ListNotations.
Set Implicit Arguments.

Inductive ty : Set :=
| TR | TU | TI
| TProd (a b : ty) | TSum (a b : ty) | TFun (a b : ty)
| TArr (a : ty)
| TTree (a : ty).            (* finitely branching trees with labels in a *)
Definition TB : ty := TSum TU TU.     (* booleans: inl is true *)

Inductive mem (t : ty) : list ty -> Type :=
| Top : forall G, mem t (t :: G)
| Pop : forall G s, mem t G -> mem t (s :: G).
Arguments Top {t G}.
Arguments Pop {t G s} _.

(* ---- primitives (their mathematics is in Primitive.v) ---------------------- *)
Inductive prim1 : Set :=
| PNeg | PExp | PLog | PSqrt | PSin | PCos | PTan | PAsin | PAcos | PAtan
| PSinh | PCosh | PTanh | PLog1p | PExpm1 | PAbs | PErf | PLgamma.
Inductive prim2 : Set := PAdd | PSub | PMul | PDiv | PPow | PAtan2 | PMax | PMin.
Inductive primi : Set := PPowi | PPolygamma.                  (* indexed by an integer *)
Inductive rounding : Set := Floor | Round | Truncate.
Inductive comparator : Set := CLt | CLe | CEq.
Inductive intop : Set := IAdd | ISub | IMul | IDiv | IMod | IMax | IMin | IPow.

(* ---- operations that only move data ----------------------------------------- *)
Inductive op0 : ty -> Type :=
| OUnit : op0 TU
| OInt (z : Z) : op0 TI
| ONil a : op0 (TArr a).
Inductive op1 : ty -> ty -> Type :=
| OFst a b : op1 (TProd a b) a
| OSnd a b : op1 (TProd a b) b
| OInl a b : op1 a (TSum a b)
| OInr a b : op1 b (TSum a b)
| OLen a : op1 (TArr a) TI
| OUnnode a : op1 (TTree a) (TProd a (TArr (TTree a))).
Inductive op2 : ty -> ty -> ty -> Type :=
| OPair a b : op2 a b (TProd a b)
| OGet a : op2 (TArr a) TI a
| OCons a : op2 a (TArr a) (TArr a)
| OSnoc a : op2 (TArr a) a (TArr a)
| ONode a : op2 a (TArr (TTree a)) (TTree a)
| OZip a b : op2 (TArr a) (TArr b) (TArr (TProd a b))
| OGather a : op2 (TArr a) (TArr TI) (TArr a)
| OIntop (o : intop) : op2 TI TI TI
| OIntcmp (c : comparator) : op2 TI TI TB.
Inductive op3 : ty -> ty -> ty -> ty -> Type :=
| OSet a : op3 (TArr a) TI a (TArr a).

Inductive tm : list ty -> ty -> Type :=
| tvar : forall G t, mem t G -> tm G t
| tlam : forall G a b, tm (a :: G) b -> tm G (TFun a b)
| tapp : forall G a b, tm G (TFun a b) -> tm G a -> tm G b
| tlet : forall G a b, tm G a -> tm (a :: G) b -> tm G b
| tfix : forall G a b, tm (a :: TFun a b :: G) b -> tm G (TFun a b)
| tcase : forall G a b c, tm G (TSum a b) -> tm (a :: G) c -> tm (b :: G) c -> tm G c
| top0 : forall G a, op0 a -> tm G a
| top1 : forall G a b, op1 a b -> tm G a -> tm G b
| top2 : forall G a b c, op2 a b c -> tm G a -> tm G b -> tm G c
| top3 : forall G a b c d, op3 a b c d -> tm G a -> tm G b -> tm G c -> tm G d
| tloop : forall G a, tm G TI -> tm G a -> tm (a :: TI :: G) a -> tm G a
| tbuild : forall G a, tm G TI -> tm (TI :: G) a -> tm G (TArr a)
| tmap : forall G a b, tm (a :: G) b -> tm G (TArr a) -> tm G (TArr b)
| tfold : forall G a b, tm (a :: b :: G) b -> tm G b -> tm G (TArr a) -> tm G b
| tlit : forall G, Z -> Z -> tm G TR                        (* m * 2^e: every finite float, exactly *)
| tprim1 : forall G, prim1 -> tm G TR -> tm G TR
| tprim2 : forall G, prim2 -> tm G TR -> tm G TR -> tm G TR
| tprimi : forall G, primi -> tm G TR -> tm G TI -> tm G TR
| tcmp : forall G, comparator -> tm G TR -> tm G TR -> tm G TB
| tround : forall G, rounding -> tm G TR -> tm G TI
| treal : forall G, tm G TI -> tm G TR
| tsum : forall G, tm G (TArr TR) -> tm G TR
| tdot : forall G, tm G (TArr TR) -> tm G (TArr TR) -> tm G TR.

(* ---- the monad: failure, steps, kinks ---------------------------------------- *)
Definition M (A : Type) : Type := option (A * nat * nat).
Definition ret {A} (a : A) : M A := Some (a, 0, 0).
Definition bind {A B} (m : M A) (f : A -> M B) : M B :=
  match m with
  | None => None
  | Some (a, n, k) =>
      match f a with
      | None => None
      | Some (b, n', k') => Some (b, n + n', k + k')
      end
  end.
Definition tick {A} (m : M A) : M A :=
  match m with None => None | Some (a, n, k) => Some (a, S n, k) end.
Definition ticks {A} (j : nat) (m : M A) : M A :=
  match m with None => None | Some (a, n, k) => Some (a, j + n, k) end.
(* a result that is fine only where [ok] holds *)
Definition guard {A} (ok : bool) (a : A) : M A := Some (a, 0, if ok then 0 else 1).

Fixpoint mseq {A B} (f : A -> M B) (l : list A) : M (list B) :=
  match l with
  | nil => ret nil
  | a :: l => bind (f a) (fun b => bind (mseq f l) (fun r => ret (b :: r)))
  end.
Fixpoint miter {A} (n : nat) (body : nat -> A -> M A) (z : A) : M A :=
  match n with
  | O => ret z
  | S k => bind (miter k body z) (fun a => tick (body k a))
  end.
Fixpoint mfold {A B} (f : A -> B -> M B) (l : list A) (z : B) : M B :=
  match l with
  | nil => ret z
  | a :: l => bind (tick (f a z)) (fun z => mfold f l z)
  end.
Fixpoint kleene {A B} (fuel : nat) (F : (A -> M B) -> A -> M B) : A -> M B :=
  match fuel with O => fun _ => None | S k => F (kleene k F) end.

(* ---- values -------------------------------------------------------------------- *)
Inductive tree (A : Type) : Type := Node : A -> list (tree A) -> tree A.
Arguments Node {A} _ _.
Fixpoint tree_map {A B} (f : A -> B) (t : tree A) : tree B :=
  match t with Node a ts => Node (f a) (map (tree_map f) ts) end.

Section Den.
Variable X : Type.           (* the reals *)
Fixpoint den (t : ty) : Type :=
  match t with
  | TR => X | TU => unit | TI => Z
  | TProd a b => den a * den b
  | TSum a b => den a + den b
  | TFun a b => den a -> M (den b)
  | TArr a => list (den a)
  | TTree a => tree (den a)
  end.
Fixpoint env (G : list ty) : Type :=
  match G with nil => unit | t :: G => den t * env G end.
Fixpoint look {t G} (m : mem t G) : env G -> den t :=
  match m with Top => fun e => fst e | Pop m => fun e => look m (snd e) end.

Record ops : Type := {
  o_lit : Z -> Z -> X;
  o_real : Z -> X;
  o_prim1 : prim1 -> X -> X;  o_ok1 : prim1 -> X -> bool;
  o_prim2 : prim2 -> X -> X -> X;  o_ok2 : prim2 -> X -> X -> bool;
  o_primi : primi -> X -> Z -> X;  o_oki : primi -> X -> Z -> bool;
  o_cmp : X -> X -> comparison;
  o_round : rounding -> X -> Z;  o_okround : rounding -> X -> bool }.

Definition boolv (b : bool) : unit + unit := if b then inl tt else inr tt.
Definition decide (c : comparator) (o : comparison) : bool :=
  match c, o with CLt, Lt => true | CLe, Lt => true | CLe, Eq => true | CEq, Eq => true | _, _ => false end.
Definition tie (o : comparison) : bool := match o with Eq => true | _ => false end.
Definition intopv (o : intop) (x y : Z) : M Z :=
  match o with
  | IAdd => ret (x + y) | ISub => ret (x - y) | IMul => ret (x * y)
  | IDiv => if Z.eqb y 0 then None else ret (Z.quot x y)
  | IMod => if Z.eqb y 0 then None else ret (Z.rem x y)
  | IMax => ret (Z.max x y) | IMin => ret (Z.min x y)
  | IPow => if Z.ltb y 0 then None else ret (Z.pow x y)
  end%Z.
Definition mget {A} (l : list A) (i : Z) : M A :=
  if (i <? 0)%Z then None else
  match nth_error l (Z.to_nat i) with Some a => ret a | None => None end.
Fixpoint update {A} (l : list A) (i : nat) (v : A) : list A :=
  match l, i with
  | nil, _ => nil
  | _ :: l, O => v :: l
  | a :: l, S i => a :: update l i v
  end.
Definition mset {A} (l : list A) (i : Z) (v : A) : M (list A) :=
  bind (mget l i) (fun _ => ret (update l (Z.to_nat i) v)).
Fixpoint mzip {A B} (l : list A) (l' : list B) : M (list (A * B)) :=
  match l, l' with
  | nil, nil => ret nil
  | a :: l, b :: l' => bind (tick (mzip l l')) (fun r => ret ((a, b) :: r))
  | _, _ => None
  end.

Definition op0v {a} (o : op0 a) : den a :=
  match o with OUnit => tt | OInt z => z | ONil _ => nil end.
Definition op1v {a b} (o : op1 a b) : den a -> M (den b) :=
  match o with
  | OFst _ _ => fun p => ret (fst p)
  | OSnd _ _ => fun p => ret (snd p)
  | OInl _ _ => fun x => ret (inl x)
  | OInr _ _ => fun x => ret (inr x)
  | OLen _ => fun l => ret (Z.of_nat (length l))
  | OUnnode _ => fun t => match t with Node x ts => ret (x, ts) end
  end.
Definition op2v {a b c} (o : op2 a b c) : den a -> den b -> M (den c) :=
  match o with
  | OPair _ _ => fun x y => ret (x, y)
  | OGet _ => fun l i => mget l i
  | OCons _ => fun x l => ret (x :: l)
  | OSnoc _ => fun l x => ret (l ++ [x])
  | ONode _ => fun x ts => ret (Node x ts)
  | OZip _ _ => fun l l' => mzip l l'
  | OGather _ => fun l is => mseq (fun i => tick (mget l i)) is
  | OIntop o => fun x y => intopv o x y
  | OIntcmp c => fun x y => ret (boolv (decide c (x ?= y)%Z))
  end.
Definition op3v {a b c d} (o : op3 a b c d) : den a -> den b -> den c -> M (den d) :=
  match o with OSet _ => fun l i v => mset l i v end.

(* ---- evaluation ------------------------------------------------------------------ *)
Variable O : ops.
Definition zeroX : X := o_lit O 0 0.
Definition addX (x y : X) : X := o_prim2 O PAdd x y.
Definition mulX (x y : X) : X := o_prim2 O PMul x y.
Definition sumX (l : list X) : X := fold_left addX l zeroX.
Definition msum (l : list X) : M X := ticks (length l) (ret (sumX l)).
Definition mdot (l l' : list X) : M X :=
  bind (mzip l l') (fun ps => msum (map (fun p => mulX (fst p) (snd p)) ps)).

Variable fuel : nat.
Fixpoint ev {G t} (e : tm G t) : env G -> M (den t) :=
  match e in tm G t return env G -> M (den t) with
  | tvar v => fun r => tick (ret (look v r))
  | tlam b => fun r => tick (ret (fun x => ev b (x, r)))
  | tapp f a => fun r => tick (bind (ev f r) (fun g => bind (ev a r) (fun x => g x)))
  | tlet a b => fun r => tick (bind (ev a r) (fun x => ev b (x, r)))
  | tfix b => fun r => tick (ret (kleene fuel (fun F x => ev b (x, (F, r)))))
  | tcase s a b => fun r => tick (bind (ev s r) (fun v =>
        match v with inl x => ev a (x, r) | inr y => ev b (y, r) end))
  | top0 _ o => fun r => tick (ret (op0v o))
  | top1 o a => fun r => tick (bind (ev a r) (fun x => op1v o x))
  | top2 o a b => fun r => tick (bind (ev a r) (fun x => bind (ev b r) (fun y => op2v o x y)))
  | top3 o a b c => fun r => tick (bind (ev a r) (fun x => bind (ev b r) (fun y => bind (ev c r) (fun z => op3v o x y z))))
  | tloop n z b => fun r => tick (bind (ev n r) (fun k => bind (ev z r) (fun a =>
        miter (Z.to_nat k) (fun i acc => ev b (acc, (Z.of_nat i, r))) a)))
  | tbuild n b => fun r => tick (bind (ev n r) (fun k =>
        mseq (fun i => tick (ev b (Z.of_nat i, r))) (seq 0 (Z.to_nat k))))
  | tmap b a => fun r => tick (bind (ev a r) (fun l => mseq (fun x => tick (ev b (x, r))) l))
  | tfold b z a => fun r => tick (bind (ev z r) (fun z => bind (ev a r) (fun l =>
        mfold (fun x acc => ev b (x, (acc, r))) l z)))
  | tlit _ m e => fun r => tick (ret (o_lit O m e))
  | tprim1 p a => fun r => tick (bind (ev a r) (fun x => guard (o_ok1 O p x) (o_prim1 O p x)))
  | tprim2 p a b => fun r => tick (bind (ev a r) (fun x => bind (ev b r) (fun y =>
        guard (o_ok2 O p x y) (o_prim2 O p x y))))
  | tprimi p a n => fun r => tick (bind (ev a r) (fun x => bind (ev n r) (fun k =>
        guard (o_oki O p x k) (o_primi O p x k))))
  | tcmp c a b => fun r => tick (bind (ev a r) (fun x => bind (ev b r) (fun y =>
        guard (negb (tie (o_cmp O x y))) (boolv (decide c (o_cmp O x y))))))
  | tround k a => fun r => tick (bind (ev a r) (fun x => guard (o_okround O k x) (o_round O k x)))
  | treal a => fun r => tick (bind (ev a r) (fun z => ret (o_real O z)))
  | tsum a => fun r => tick (bind (ev a r) (fun l => msum l))
  | tdot a b => fun r => tick (bind (ev a r) (fun l => bind (ev b r) (fun l' => mdot l l')))
  end.
End Den.
Arguments look {X t G} _ _.
Arguments boolv : simpl never.
Arguments guard : simpl never.

(* ---- notation for terms ------------------------------------------------------------ *)
Definition v0 {a G} : tm (a :: G) a := tvar Top.
Definition v1 {a b G} : tm (b :: a :: G) a := tvar (Pop Top).
Definition v2 {a b c G} : tm (c :: b :: a :: G) a := tvar (Pop (Pop Top)).
Definition v3 {a b c d G} : tm (d :: c :: b :: a :: G) a := tvar (Pop (Pop (Pop Top))).
Notation tunit G := (top0 G OUnit).
Notation tint G z := (top0 G (OInt z)).
Notation tnil G a := (top0 G (ONil a)).
Notation tpair a b := (top2 (OPair _ _) a b).
Notation tfst a := (top1 (OFst _ _) a).
Notation tsnd a := (top1 (OSnd _ _) a).
Notation tinl b a := (top1 (OInl _ b) a).
Notation tinr a b := (top1 (OInr a _) b).
Notation tget a i := (top2 (OGet _) a i).
Notation tcons a l := (top2 (OCons _) a l).
Notation tsnoc l a := (top2 (OSnoc _) l a).
Notation tnode a l := (top2 (ONode _) a l).
Notation tzip a b := (top2 (OZip _ _) a b).
Notation tlen a := (top1 (OLen _) a).
Notation tadd a b := (tprim2 PAdd a b).
Notation tsub a b := (tprim2 PSub a b).
Notation tmul a b := (tprim2 PMul a b).
Notation tdiv a b := (tprim2 PDiv a b).
Notation tpowi a n := (tprimi PPowi a n).
(* a two-argument let that needs no weakening of its second argument *)
Definition let2 {G a b c} (x : tm G a) (y : tm G b) (body : tm (b :: a :: G) c) : tm G c :=
  tapp (tapp (tlam (tlam body)) x) y.
Definition tif {G c} (b : tm G TB) (x : tm (TU :: G) c) (y : tm (TU :: G) c) : tm G c := tcase b x y.
