(* The reverse transformation of combinators (C Fig. 20): the image of a combinator from a to b is a term that takes a value of type
   [D1 a] to its result of type [D1 b] together with the map back from cotangents of the result to cotangents of the argument.  C keeps primal
   and map back apart, as two combinators; run together, as here and in the code, nothing is run again on the way back, except the body of a
   function whose own cotangent is asked for.  Images are terms of Language.v, so that the result of the mode is again a program.

   A function value is a run that also returns its map back ([expose]); what it captured gets its cotangent from the bag of its calls, by
   running them again ([calls]).  Recursion is the same with the run recursive: calls inside are in the bag of the recursive function. *)
From Coq Require Import Reals List ZArith.
Require Import Language Primitive Combinator Triple Cotangent.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

(* a result and its map back; an image, which finds its argument in v0 *)
Definition run_ty (a b : ty) : ty := TProd (D1 b) (TFun (D2 b) (D2 a)).
Definition image (a b : ty) : Type := forall G, tm (D1 a :: G) (run_ty a b).
Definition at_ {a b G} (e : tm G (D1 a)) (f : image a b) : tm G (run_ty a b) := tlet e (f G).

(* ---- functions -------------------------------------------------------------------------------- *)
(* runs of a function that captured a c *)
Definition runs (c a b : ty) : ty := TFun (D1 a) (run_ty (TProd c a) b).
Definition expose {c a b G} (f : tm (D1 a :: G) (runs c a b)) : tm G (D1 (TFun a b)) :=
  tlam (tlet (tapp f v0) (tpair (tfst v0) (tlam (tsnd (tapp (tsnd v1) v0))))).
Definition calls {c a b G} (f : tm (TProd (D1 a) (D2 b) :: D2 c :: G) (runs c a b)) (bag : tm G (D2 (TFun a b))) : tm G (D2 c) :=
  tbag c (tfst (tapp (tsnd (tapp f (tfst v0))) (tsnd v0))) bag.
Definition closure {c a b G} : tm (runs c a b :: G) (run_ty c (TFun a b)) :=
  tpair (expose (c := c) (a := a) (b := b) v1) (tlam (calls (c := c) (a := a) (b := b) v3 v0)).
Definition d_curry {c a b} (f : image (TProd c a) b) : image c (TFun a b) := fun G =>
  tlet (tlam (at_ (a := TProd c a) (tpair v1 v0) f)) (closure (c := c) (a := a) (b := b)).
Definition d_fix {c a b} (f : image (TProd (TProd c (TFun a b)) a) b) : image c (TFun a b) := fun G =>
  tlet (tfix (tlet (at_ (a := TProd (TProd c (TFun a b)) a) (tpair (tpair v2 (expose (c := c) (a := a) (b := b) v2)) v0) f)
                (tpair (tfst v0) (tlam (tlet (tapp (tsnd v1) v0)
                   (tpair (plus c (tfst (tfst v0)) (calls (c := c) (a := a) (b := b) v6 (tsnd (tfst v0)))) (tsnd v0)))))))
       closure.
Definition d_ev {a b} : image (TProd (TFun a b) a) b := fun G =>
  tlet (tapp (tfst v0) (tsnd v0)) (tpair (tfst v0) (tlam (tpair (tsingle (tpair (tsnd v2) v0)) (tapp (tsnd v1) v0)))).

(* ---- structure ---------------------------------------------------------------------------------- *)
Definition d_id {a} : image a a := fun G => tpair v0 (tlam v0).
Definition d_seq {a b c} (f : image a b) (g : image b c) : image a c := fun G =>
  tlet (f G) (tlet (at_ (tfst v0) g) (tpair (tfst v0) (tlam (tapp (tsnd v2) (tapp (tsnd v1) v0))))).
Definition d_pair {a b c} (f : image a b) (g : image a c) : image a (TProd b c) := fun G =>
  tlet (f G) (tlet (at_ v1 g)
    (tpair (tpair (tfst v1) (tfst v0)) (tlam (plus a (tapp (tsnd v2) (tfst v0)) (tapp (tsnd v1) (tsnd v0)))))).
Definition d_case {c a b d} (f : image (TProd c a) d) (g : image (TProd c b) d) : image (TProd c (TSum a b)) d := fun G =>
  tcase (tsnd v0)
    (tlet (at_ (a := TProd c a) (tpair (tfst v1) v0) f)
       (tpair (tfst v0) (tlam (tlet (tapp (tsnd v1) v0) (tpair (tfst v0) (tpair (tsnd v0) (zero b _)))))))
    (tlet (at_ (a := TProd c b) (tpair (tfst v1) v0) g)
       (tpair (tfst v0) (tlam (tlet (tapp (tsnd v1) v0) (tpair (tfst v0) (tpair (zero a _) (tsnd v0))))))).

(* ---- loops: the maps back of all steps are kept, the latest first ---------------------------------- *)
Definition d_loop {c a} (f : image (TProd (TProd c TI) a) a) : image (TProd c (TProd TI a)) a := fun G =>
  tlet (tloop (tfst (tsnd v0)) (tpair (tsnd (tsnd v0)) (tnil _ (TFun (D2 a) (D2 (TProd (TProd c TI) a)))))
          (tlet (at_ (a := TProd (TProd c TI) a) (tpair (tpair (tfst v2) v1) (tfst v0)) f) (tpair (tfst v0) (tcons (tsnd v0) (tsnd v1)))))
    (tpair (tfst v0) (tlam
       (tlet (tfold (tlet (tapp v0 (tsnd v1)) (tpair (plus c (tfst v2) (tfst (tfst v0))) (tsnd v0))) (tpair (zero c _) v0) (tsnd v1))
          (tpair (tfst v0) (tpair (tunit _) (tsnd v0)))))).
(* in a fold each with the index of its element *)
Definition d_fold {c a b} (f : image (TProd (TProd c b) a) b) : image (TProd c (TProd b (TArr a))) b := fun G =>
  tlet (tfold (tlet (at_ (a := TProd (TProd c b) a) (tpair (tpair (tfst v2) (tfst v1)) v0) f)
                 (tpair (tfst v0) (tcons (tpair (tlen (tsnd v2)) (tsnd v0)) (tsnd v2))))
          (tpair (tfst (tsnd v0)) (tnil _ (TProd TI (TFun (D2 b) (D2 (TProd (TProd c b) a)))))) (tsnd (tsnd v0)))
    (tpair (tfst v0) (tlam
       (tlet (tfold (tlet (tapp (tsnd v0) (tsnd v1))
                       (tpair (tpair (plus c (tfst (tfst v2)) (tfst (tfst v0))) (tcons (tpair (tfst v1) (tsnd v0)) (tsnd (tfst v2)))) (tsnd (tfst v0))))
                (tpair (tpair (zero c _) (zero (TArr a) _)) v0) (tsnd v1))
          (tpair (tfst (tfst v0)) (tpair (tsnd v0) (tsnd (tfst v0))))))).
Definition d_build {c a} (f : image (TProd c TI) a) : image (TProd c TI) (TArr a) := fun G =>
  tlet (tbuild (tsnd v0) (at_ (a := TProd c TI) (tpair (tfst v1) v0) f))
    (tpair (tmap (tfst v0) v0) (tlam (tbag (TProd c TI) (i := TProd TI (D2 a)) (tapp (tsnd (tget v3 (tfst v0))) (tsnd v0)) v0))).
Definition d_map {c a b} (f : image (TProd c a) b) : image (TProd c (TArr a)) (TArr b) := fun G =>
  tlet (tmap (at_ (a := TProd c a) (tpair (tfst v1) v0) f) (tsnd v0))
    (tpair (tmap (tfst v0) v0) (tlam (tbag (TProd c (TArr a)) (i := TProd TI (D2 b))
       (tlet (tapp (tsnd (tget v3 (tfst v0))) (tsnd v0)) (tpair (tfst v0) (tsingle (tpair (tfst v1) (tsnd v0))))) v0))).

(* ---- data --------------------------------------------------------------------------------------------- *)
Definition d_op0 {c a} (o : op0 a) : image c a := fun G =>
  tpair (match o in op0 a return tm (D1 c :: G) (D1 a) with OUnit => tunit _ | OInt z => tint _ z | ONil a => tnil _ (D1 a) end) (tlam (zero c _)).
Definition d_op1 {a b} (o : op1 a b) : image a b :=
  match o with
  | OFst a b => fun G => tpair (tfst v0) (tlam (tpair v0 (zero b _)))
  | OSnd a b => fun G => tpair (tsnd v0) (tlam (tpair (zero a _) v0))
  | OInl a b => fun G => tpair (tinl (D1 b) v0) (tlam (tfst v0))
  | OInr a b => fun G => tpair (tinr (D1 a) v0) (tlam (tsnd v0))
  | OLen a => fun G => tpair (tlen v0) (tlam (zero (TArr a) _))
  | OUnnode a => fun G => tpair (top1 (OUnnode (D1 a)) v0)
      (tlam (plus (TTree a) (tsingle (tpair (tnode (tint _ 0) (tnil _ TPath)) (tfst v0)))
               (tbag (TTree a) (i := TProd TI (D2 (TTree a)))
                  (tbag (TTree a) (i := TProd TPath (D2 a)) (tsingle (tpair (tnode (tfst v2) (tsingle (tfst v0))) (tsnd v0))) (tsnd v0))
                  (tsnd v0))))
  end.
Definition d_op2 {a b c} (o : op2 a b c) : image (TProd a b) c :=
  match o with
  | OPair a b => fun G => tpair v0 (tlam v0)
  | OGet a => fun G => tpair (tget (tfst v0) (tsnd v0)) (tlam (tpair (tsingle (tpair (tsnd v1) v0)) (tunit _)))
  | OCons a => fun G => tpair (tcons (tfst v0) (tsnd v0)) (tlam (tbag (TProd a (TArr a)) (i := TProd TI (D2 a))
      (tif (tieq (tfst v0) (tint _ 0))
         (tpair (tsnd v1) (zero (TArr a) _))
         (tpair (zero a _) (tsingle (tpair (top2 (OIntop ISub) (tfst v1) (tint _ 1)) (tsnd v1))))) v0))
  | OSnoc a => fun G => tpair (tsnoc (tfst v0) (tsnd v0)) (tlam (tbag (TProd (TArr a) a) (i := TProd TI (D2 a))
      (tif (tieq (tfst v0) (tlen (tfst v3))) (tpair (zero (TArr a) _) (tsnd v1)) (tpair (tsingle v1) (zero a _))) v0))
  | ONode a => fun G => tpair (tnode (tfst v0) (tsnd v0)) (tlam (tbag (TProd a (TArr (TTree a))) (i := TProd TPath (D2 a))
      (tlet (top1 (OUnnode TI) (tfst v0)) (tif (tieq (tlen (tsnd v0)) (tint _ 0))
         (tpair (tsnd v2) (zero (TArr (TTree a)) _))
         (tpair (zero a _) (tsingle (tpair (tfst v1) (tsingle (tpair (tget (tsnd v1) (tint _ 0)) (tsnd v2)))))))) v0))
  | OZip a b => fun G => tpair (tzip (tfst v0) (tsnd v0)) (tlam (tbag (TProd (TArr a) (TArr b)) (i := TProd TI (TProd (D2 a) (D2 b)))
      (tpair (tsingle (tpair (tfst v0) (tfst (tsnd v0)))) (tsingle (tpair (tfst v0) (tsnd (tsnd v0))))) v0))
  | OGather a => fun G => tpair (top2 (OGather (D1 a)) (tfst v0) (tsnd v0)) (tlam (tbag (TProd (TArr a) (TArr TI)) (i := TProd TI (D2 a))
      (tpair (tsingle (tpair (tget (tsnd v3) (tfst v0)) (tsnd v0))) (zero (TArr TI) _)) v0))
  | OIntop o => fun G => tpair (top2 (OIntop o) (tfst v0) (tsnd v0)) (tlam (tpair (tunit _) (tunit _)))
  | OIntcmp c => fun G => tpair (top2 (OIntcmp c) (tfst v0) (tsnd v0)) (tlam (tpair (tunit _) (tunit _)))
  end.
Definition d_op3 {a b c d} (o : op3 a b c d) : image (TProd (TProd a b) c) d :=
  match o with
  | OSet a => fun G => tpair (top3 (OSet (D1 a)) (tfst (tfst v0)) (tsnd (tfst v0)) (tsnd v0))
      (tlam (tbag (TProd (TProd (TArr a) TI) a) (i := TProd TI (D2 a))
         (tif (tieq (tfst v0) (tsnd (tfst v3)))
            (tpair (tpair (zero (TArr a) _) (tunit _)) (tsnd v1)) (tpair (tpair (tsingle v1) (tunit _)) (zero a _))) v0))
  end.

(* ---- numbers -------------------------------------------------------------------------------------------- *)
Definition tscale {G} (c : coef G) (d : tm G TR) : tm G TR := match c with One => d | Coef t => tmul t d end.
Definition d_prim1 (p : prim1) : image TR TR := fun G =>
  tlet (tpair (tprim1 p v0) v0) (tpair (tfst v0) (tlam (tmul (d1t p (tsnd v1)) v0))).
Definition d_prim2 (p : prim2) : image (TProd TR TR) TR := fun G =>
  tpair (tprim2 p (tfst v0) (tsnd v0))
    (tlam (tpair (tscale (fst (d2t p (tfst v1) (tsnd v1))) v0) (tscale (snd (d2t p (tfst v1) (tsnd v1))) v0))).
Definition d_primi (p : primi) : image (TProd TR TI) TR := fun G =>
  tpair (tprimi p (tfst v0) (tsnd v0)) (tlam (tpair (tmul (dit p (tfst v1) (tsnd v1)) v0) (tunit _))).
Definition d_cmp (c : comparator) : image (TProd TR TR) TB := fun G =>
  tpair (tcmp c (tfst v0) (tsnd v0)) (tlam (zero (TProd TR TR) _)).
Definition d_round (k : rounding) : image TR TI := fun G => tpair (tround k v0) (tlam (zero TR _)).
Definition d_real : image TI TR := fun G => tpair (treal v0) (tlam (zero TI _)).
Definition d_sum : image (TArr TR) TR := fun G => tpair (tsum v0) (tlam (tbuild (tlen v1) (tpair v0 v1))).
Definition d_dot : image (TProd (TArr TR) (TArr TR)) TR := fun G =>
  tpair (tdot (tfst v0) (tsnd v0))
    (tlam (tpair (tbuild (tlen (tfst v1)) (tpair v0 (tmul (tget (tsnd v2) v0) v1)))
                 (tbuild (tlen (tsnd v1)) (tpair v0 (tmul (tget (tfst v2) v0) v1))))).

Fixpoint DC {a b} (c : comb a b) : image a b :=
  match c in comb a b return image a b with
  | cid _ => d_id
  | cseq f g => d_seq (DC f) (DC g)
  | cpair f g => d_pair (DC f) (DC g)
  | cstep f => DC f
  | cev _ _ => d_ev
  | ccurry f => d_curry (DC f)
  | cfix f => d_fix (DC f)
  | ccase f g => d_case (DC f) (DC g)
  | cop0 _ o => d_op0 o
  | cop1 o => d_op1 o
  | cop2 o => d_op2 o
  | cop3 o => d_op3 o
  | cloop f => d_loop (DC f)
  | cbuild f => d_build (DC f)
  | cmap f => d_map (DC f)
  | cfold f => d_fold (DC f)
  | clit _ m e => fun G => tpair (tlit _ m e) (tlam (zero _ _))
  | cprim1 p => d_prim1 p
  | cprim2 p => d_prim2 p
  | cprimi p => d_primi p
  | ccmp c => d_cmp c
  | cround k => d_round k
  | creal => d_real
  | csum => d_sum
  | cdot => d_dot
  end.
