(* Cotangents of the combinator mode (C section 6.2, Fig. 19): for each type t the type [D1 t] of its values in transformed programs and
   the type [D2 t] of its cotangents, both types of Language.v; zero and sum of cotangents as terms; and how cotangents are observed.

   A cotangent of a function is a bag of the calls (argument, cotangent of the result), C's tensor !A (x) B; that of an array a bag of
   (index, cotangent of the element), that of a tree a bag of (path, cotangent of the label); that of a sum has a part for each side.  Bags
   are arrays, and their sum is concatenation: no setoids, no finite maps, no decidable equality on keys.  None is needed, because the
   proofs observe cotangents only through a linear functional into R.

   Such a functional is given by an *observer*, a value in the shape of the observed one that has a derivative in the place of each real.
   [weigh t o d w]: cotangent d, observed by o, weighs w.  It is a relation, not a function: a bag that speaks of an index out of range, or
   of a call that does not end, weighs nothing, and nothing is claimed of it.  All the algebra is that weighing is linear
   ([zero_weighs], [plus_weighs]), and so a fold over a bag weighs the sum of the weights ([bag_weighs]). *)
From Coq Require Import Reals List Lia Lra ZArith.
Require Import Language Primitive Germ Triple.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

(* a path into a tree: Node i [p] is i followed by p, a node without children is the empty path *)
Definition TPath : ty := TTree TI.
Fixpoint D1 (t : ty) : ty :=
  match t with
  | TR => TR | TU => TU | TI => TI
  | TProd a b => TProd (D1 a) (D1 b)
  | TSum a b => TSum (D1 a) (D1 b)
  | TFun a b => TFun (D1 a) (TProd (D1 b) (TFun (D2 b) (D2 a)))
  | TArr a => TArr (D1 a)
  | TTree a => TTree (D1 a)
  end
with D2 (t : ty) : ty :=
  match t with
  | TR => TR | TU => TU | TI => TU
  | TProd a b | TSum a b => TProd (D2 a) (D2 b)
  | TFun a b => TArr (TProd (D1 a) (D2 b))
  | TArr a => TArr (TProd TI (D2 a))
  | TTree a => TArr (TProd TPath (D2 a))
  end.

(* ---- terms ---------------------------------------------------------------------------------- *)
Definition tappend {G a} (x y : tm G (TArr a)) : tm G (TArr a) := tfold (tsnoc v1 v0) x y.
Fixpoint zero (t : ty) : forall G, tm G (D2 t) :=
  match t return forall G, tm G (D2 t) with
  | TR => fun G => lit 0
  | TU | TI => fun G => tunit G
  | TProd a b | TSum a b => fun G => tpair (zero a G) (zero b G)
  | TFun a b => fun G => tnil G (TProd (D1 a) (D2 b))
  | TArr a => fun G => tnil G (TProd TI (D2 a))
  | TTree a => fun G => tnil G (TProd TPath (D2 a))
  end.
Definition pairwise {G a b} (f : forall G, tm G a -> tm G a -> tm G a) (g : forall G, tm G b -> tm G b -> tm G b) (x y : tm G (TProd a b)) :=
  let2 x y (tpair (f _ (tfst v1) (tfst v0)) (g _ (tsnd v1) (tsnd v0))).
Fixpoint plus (t : ty) : forall G, tm G (D2 t) -> tm G (D2 t) -> tm G (D2 t) :=
  match t return forall G, tm G (D2 t) -> tm G (D2 t) -> tm G (D2 t) with
  | TR => fun G x y => tadd x y
  | TU | TI => fun G _ _ => tunit G
  | TProd a b | TSum a b => fun G => pairwise (plus a) (plus b)
  | TFun _ _ | TArr _ | TTree _ => fun G => tappend
  end.
(* C's mfold: the sum of [body] over the items of a bag; in the body v0 is the item, v1 the sum so far *)
Definition tbag (t : ty) {G i} (body : tm (i :: D2 t :: G) (D2 t)) (bag : tm G (TArr i)) : tm G (D2 t) :=
  tfold (plus t v1 body) (zero t G) bag.

(* ---- observers -------------------------------------------------------------------------------- *)
Definition sel {A} (l : list A) (i : Z) : option A := if (i <? 0)%Z then None else nth_error l (Z.to_nat i).
Fixpoint walk {A} (p : tree Z) (t : tree A) : option A :=
  match p, t with
  | Node i ps, Node a ts =>
      match ps with
      | nil => Some a
      | p :: _ => match sel ts i with Some t => walk p t | None => None end
      end
  end.
Inductive Bag {I} (item : I -> R -> Prop) : list I -> R -> Prop :=
| Bag_nil : Bag item nil 0
| Bag_cons : forall x l w w', item x w -> Bag item l w' -> Bag item (x :: l) (w + w').
Fixpoint obs (t : ty) : Type :=
  match t with
  | TR => R
  | TU | TI => unit
  | TProd a b => obs a * obs b
  | TSum a b => obs a + obs b
  | TFun a b => den R (D1 a) -> den R (D2 b) -> R -> Prop      (* what a call weighs *)
  | TArr a => list (obs a)
  | TTree a => tree (obs a)
  end.
Fixpoint weigh (t : ty) : obs t -> den R (D2 t) -> R -> Prop :=
  match t return obs t -> den R (D2 t) -> R -> Prop with
  | TR => fun o d w => w = (o * d)%R
  | TU | TI => fun _ _ w => w = 0%R
  | TProd a b => fun o d w => exists w1 w2, weigh a (fst o) (fst d) w1 /\ weigh b (snd o) (snd d) w2 /\ w = (w1 + w2)%R
  | TSum a b => fun o d w => match o with inl o => weigh a o (fst d) w | inr o => weigh b o (snd d) w end
  | TFun a b => fun o => Bag (fun q => o (fst q) (snd q))
  | TArr a => fun o => Bag (fun q w => exists o1, sel o (fst q) = Some o1 /\ weigh a o1 (snd q) w)
  | TTree a => fun o => Bag (fun q w => exists o1, walk (fst q) o = Some o1 /\ weigh a o1 (snd q) w)
  end.
Lemma Bag_app : forall I (item : I -> R -> Prop) l w l' w', Bag item l w -> Bag item l' w' -> Bag item (l ++ l') (w + w').
Proof.
  intros I item l w l' w' H H'. induction H; simpl; [now rewrite Rplus_0_l|]. rewrite Rplus_assoc. constructor; auto.
Qed.
Lemma Bag_single : forall I (item : I -> R -> Prop) x w, item x w -> Bag item [x] w.
Proof. intros I item x w H. rewrite <- (Rplus_0_r w). constructor; [exact H|constructor]. Qed.

(* ---- weighing is linear ----------------------------------------------------------------------- *)
Fixpoint zerov (t : ty) : den R (D2 t) :=
  match t return den R (D2 t) with
  | TR => 0%R | TU | TI => tt
  | TProd a b | TSum a b => (zerov a, zerov b)
  | TFun _ _ | TArr _ | TTree _ => nil
  end.
Fixpoint plusv (t : ty) : den R (D2 t) -> den R (D2 t) -> den R (D2 t) :=
  match t return den R (D2 t) -> den R (D2 t) -> den R (D2 t) with
  | TR => Rplus
  | TU | TI => fun _ _ => tt
  | TProd a b | TSum a b => fun x y => (plusv a (fst x) (fst y), plusv b (snd x) (snd y))
  | TFun _ _ | TArr _ | TTree _ => fun x y => x ++ y
  end.
Lemma zerov_weighs : forall t o, weigh t o (zerov t) 0.
Proof.
  induction t; simpl; intros o; try constructor.
  - ring.
  - exists 0%R, 0%R. split; [auto|split; [auto|ring]].
  - destruct o; auto.
Qed.
Lemma plusv_weighs : forall t o x y w w', weigh t o x w -> weigh t o y w' -> weigh t o (plusv t x y) (w + w').
Proof.
  induction t; simpl; intros o x y w w' H H'; try (now apply Bag_app).
  - subst. ring.
  - subst. ring.
  - subst. ring.
  - destruct H as (w1 & w2 & H1 & H2 & ->). destruct H' as (w1' & w2' & H1' & H2' & ->).
    exists (w1 + w1')%R, (w2 + w2')%R. split; [auto|split; [auto|ring]].
  - destruct o; auto.
Qed.
Section Weigh.
Variable fuel : nat.
Notation evR e := (ev RO fuel e).
Lemma append_gives : forall G a (x y : tm G (TArr a)) r l l',
  gives (evR x r) (eq l) -> gives (evR y r) (eq l') -> gives (evR (tappend x y) r) (eq (l ++ l')).
Proof.
  intros G a x y r l l' H H'. unfold tappend. apply w_fold. eapply g_imp; [exact H|]. intros x1 <-.
  eapply g_imp; [exact H'|]. intros y1 <-. clear. revert l. induction l' as [|b l' IH]; intros l; cbn [mfold].
  - apply g_ret. apply app_nil_r.
  - apply g_bind, g_tick. w. eapply g_imp; [apply IH|]. intros z <-. now rewrite <- app_assoc.
Qed.
Lemma zero_gives : forall t G r, gives (evR (zero t G) r) (eq (zerov t)).
Proof.
  induction t; intros G r; simpl zero; try (w; reflexivity).
  - w. eapply g_imp; [apply IHt1|]. intros x <-. eapply g_imp; [apply IHt2|]. intros y <-. reflexivity.
  - w. eapply g_imp; [apply IHt1|]. intros x <-. eapply g_imp; [apply IHt2|]. intros y <-. reflexivity.
Qed.
Lemma pairwise_gives : forall a b (f : forall G, tm G a -> tm G a -> tm G a) (g : forall G, tm G b -> tm G b -> tm G b) fv gv,
  (forall G (x y : tm G a) r u v, gives (evR x r) (eq u) -> gives (evR y r) (eq v) -> gives (evR (f G x y) r) (eq (fv u v))) ->
  (forall G (x y : tm G b) r u v, gives (evR x r) (eq u) -> gives (evR y r) (eq v) -> gives (evR (g G x y) r) (eq (gv u v))) ->
  forall G (x y : tm G (TProd a b)) r u v, gives (evR x r) (eq u) -> gives (evR y r) (eq v) ->
  gives (evR (pairwise f g x y) r) (eq (fv (fst u) (fst v), gv (snd u) (snd v))).
Proof.
  intros a b f g fv gv Hf Hg G x y r u v Hx Hy. unfold pairwise. w.
  eapply g_imp; [exact Hx|]. intros x1 <-. eapply g_imp; [exact Hy|]. intros y1 <-. w.
  eapply g_imp; [apply Hf; w; reflexivity|]. intros z1 <-. eapply g_imp; [apply Hg; w; reflexivity|]. intros z2 <-. reflexivity.
Qed.
Lemma plus_gives : forall t G (x y : tm G (D2 t)) r u v, gives (evR x r) (eq u) -> gives (evR y r) (eq v) ->
  gives (evR (plus t x y) r) (eq (plusv t u v)).
Proof.
  induction t; intros G x y r u v Hx Hy; simpl plus; try (w; reflexivity).
  - apply w_add. eapply g_imp; [exact Hx|]. intros x1 <-. eapply g_imp; [exact Hy|]. intros y1 <-. reflexivity.
  - exact (@pairwise_gives _ _ _ _ _ _ IHt1 IHt2 _ _ _ _ _ _ Hx Hy).
  - exact (@pairwise_gives _ _ _ _ _ _ IHt1 IHt2 _ _ _ _ _ _ Hx Hy).
  - apply append_gives; assumption.
  - apply append_gives; assumption.
  - apply append_gives; assumption.
Qed.
(* used through the rules of Triple.v *)
Lemma w_zero : forall t o G r (P : den R (D2 t) -> Prop), (forall d, weigh t o d 0 -> P d) -> gives (evR (zero t G) r) P.
Proof. intros t o G r P H. eapply g_imp; [apply zero_gives|]. intros d <-. apply H, zerov_weighs. Qed.
Lemma w_plus : forall t o G (x y : tm G (D2 t)) r w w', gives (evR x r) (fun d => weigh t o d w) -> gives (evR y r) (fun d => weigh t o d w') ->
  gives (evR (plus t x y) r) (fun d => weigh t o d (w + w')).
Proof.
  intros t o G x y r w w' (d & n & E & H) (d' & n' & E' & H'). eapply g_imp; [apply plus_gives; eexists _, _; eauto|].
  intros q <-. now apply plusv_weighs.
Qed.
(* a fold over a bag weighs the sum of the weights: this is all the algebra that is needed *)
Lemma fold_weighs : forall t o I (item : I -> R -> Prop) (J : I -> den R (D2 t) -> M (den R (D2 t))),
  (forall x z w w0, item x w -> weigh t o z w0 -> gives (J x z) (fun d => weigh t o d (w0 + w))) ->
  forall l w, Bag item l w -> forall z w0, weigh t o z w0 -> gives (mfold J l z) (fun d => weigh t o d (w0 + w)).
Proof.
  intros t o I item J HJ l w HB. induction HB as [|x l w w' Hx HB IH]; intros z w0 Hz; cbn [mfold].
  - apply g_ret. now rewrite Rplus_0_r.
  - apply g_bind, g_tick. eapply g_imp; [apply HJ; eauto|]. intros z1 Hz1. rewrite <- Rplus_assoc. apply IH, Hz1.
Qed.
Lemma w_bag : forall t o G i (item : den R i -> R -> Prop) (body : tm (i :: D2 t :: G) (D2 t)) (e : tm G (TArr i)) r w,
  gives (evR e r) (fun l => Bag item l w) ->
  (forall x acc w, item x w -> gives (evR body (x, (acc, r))) (fun d => weigh t o d w)) ->
  gives (evR (tbag t body e) r) (fun d => weigh t o d w).
Proof.
  intros t o G i item body e r w He Hb. unfold tbag. apply w_fold. apply (w_zero t o). intros z Hz.
  eapply g_imp; [exact He|]. intros l HB. rewrite <- (Rplus_0_l w). eapply fold_weighs; [|exact HB|exact Hz].
  intros x z1 w1 w0 Hx Hz1. apply w_plus; [apply w_v1; exact Hz1|apply Hb, Hx].
Qed.
End Weigh.
