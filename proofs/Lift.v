(* A [let] moves out of an operation: op (let x = a in b) c becomes let x = a in op b c, for every construct and every part of it that is
   evaluated exactly once and not under a binder.  Steps and kinks stay the same; only the order of evaluation changes. *)
From Coq Require Import Reals List Lia ZArith.
Require Import Language Primitive Substitution Improvement.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

Definition unlet {G t} (e : tm G t) : option {a : ty & (tm G a * tm (a :: G) t)%type} :=
  match e in tm G t return option {a : ty & (tm G a * tm (a :: G) t)%type} with
  | tlet x y => Some (existT _ _ (x, y))
  | _ => None
  end.
Lemma unlet_ok : forall G t (e : tm G t) a x y, unlet e = Some (existT _ a (x, y)) -> e = tlet x y.
Proof.
  intros G t e a x y H. destruct e; try discriminate. cbn [unlet] in H.
  assert (forall G b (p q : {a : ty & (tm G a * tm (a :: G) b)%type}), p = q ->
    tlet (fst (projT2 p)) (snd (projT2 p)) = tlet (fst (projT2 q)) (snd (projT2 q))) as L by (intros; now subst).
  inversion H as [H0]. exact (L _ _ (existT _ _ (e1, e2)) (existT _ a (x, y)) (f_equal (fun o => match o with Some p => p | None => existT _ _ (e1, e2) end) H)).
Qed.
(* the let around what remains *)
Definition out {G t u} (e : tm G t) (f : forall a, tm (a :: G) t -> tm (a :: G) u) : option (tm G u) :=
  match unlet e with Some (existT _ a (x, y)) => Some (tlet x (f a y)) | None => None end.
Notation up1 e := (rn e (up (@shift _ _))).
Notation up2 e := (rn e (up (up (@shift _ _)))).
(* part i, counted in the order of writing *)
Definition lift_let (i : nat) {G t} (e : tm G t) : option (tm G t) :=
  match e in tm G t return option (tm G t) with
  | tapp f x => match i with O => out f (fun a f => tapp f (wk a x)) | _ => out x (fun a x => tapp (wk a f) x) end
  | tcase s l r => out s (fun a s => tcase s (up1 l) (up1 r))
  | top1 o x => out x (fun a x => top1 o x)
  | top2 o x y => match i with O => out x (fun a x => top2 o x (wk a y)) | _ => out y (fun a y => top2 o (wk a x) y) end
  | top3 o x y z => match i with
      | O => out x (fun a x => top3 o x (wk a y) (wk a z))
      | 1 => out y (fun a y => top3 o (wk a x) y (wk a z))
      | _ => out z (fun a z => top3 o (wk a x) (wk a y) z) end
  | tloop n z b => match i with O => out n (fun a n => tloop n (wk a z) (up2 b)) | _ => out z (fun a z => tloop (wk a n) z (up2 b)) end
  | tbuild n b => out n (fun a n => tbuild n (up1 b))
  | tmap b l => out l (fun a l => tmap (up1 b) l)
  | tfold b z l => match i with 1 => out z (fun a z => tfold (up2 b) z (wk a l)) | _ => out l (fun a l => tfold (up2 b) (wk a z) l) end
  | tprim1 p x => out x (fun a x => tprim1 p x)
  | tprim2 p x y => match i with O => out x (fun a x => tprim2 p x (wk a y)) | _ => out y (fun a y => tprim2 p (wk a x) y) end
  | tprimi p x y => match i with O => out x (fun a x => tprimi p x (wk a y)) | _ => out y (fun a y => tprimi p (wk a x) y) end
  | tcmp c x y => match i with O => out x (fun a x => tcmp c x (wk a y)) | _ => out y (fun a y => tcmp c (wk a x) y) end
  | tround k x => out x (fun a x => tround k x)
  | treal x => out x (fun a x => treal x)
  | tsum x => out x (fun a x => tsum x)
  | tdot x y => match i with O => out x (fun a x => tdot x (wk a y)) | _ => out y (fun a y => tdot (wk a x) y) end
  | _ => None
  end.
Lemma out_ok : forall G t u (e : tm G t) (f : forall a, tm (a :: G) t -> tm (a :: G) u) e', out e f = Some e' ->
  exists a (x : tm G a) y, e = tlet x y /\ e' = tlet x (f a y).
Proof.
  intros G t u e f e' H. unfold out in H. destruct (unlet e) as [[a [x y]]|] eqn:E; [|discriminate]. apply unlet_ok in E.
  inversion H. exists a, x, y. auto.
Qed.

Section Fuel.
Variable fuel : nat.
Notation evR e := (ev RO fuel e).
Lemma up1_ok : forall G a b c (f : tm (b :: G) c) (r : env R G) (x : den R a) (y : den R b), evR (up1 f : tm (b :: a :: G) c) (y, (x, r)) = evR f (y, r).
Proof. intros. apply rn_ok. apply (@up_ok R). intros t m. reflexivity. Qed.
Lemma up2_ok : forall G a b b' c (f : tm (b' :: b :: G) c) (r : env R G) (x : den R a) (y : den R b) (z : den R b'),
  evR (up2 f : tm (b' :: b :: a :: G) c) (z, (y, (x, r))) = evR f (z, (y, r)).
Proof. intros. apply rn_ok. repeat apply (@up_ok R). intros t m. reflexivity. Qed.
Ltac goal_runs := repeat match goal with
  | |- context [ev RO fuel (wk _ _) _] => rewrite wk_ok
  | H : ev RO fuel ?e ?r = Some _ |- context [ev RO fuel ?e ?r] => rewrite H
  end; cbn [bind tick].
Lemma miter_ext : forall A n (f g : nat -> A -> M A) z, (forall i a, f i a = g i a) -> miter n f z = miter n g z.
Proof. induction n; intros f g z H; simpl; auto. rewrite (IHn f g) by auto. destruct (miter n g z) as [[[a c] k]|]; simpl; auto. now rewrite H. Qed.
Lemma mseq_ext : forall A B (f g : A -> M B) l, (forall a, f a = g a) -> mseq f l = mseq g l.
Proof. induction l; intros H; simpl; auto. now rewrite H, IHl. Qed.
Lemma mfold_ext : forall A B (f g : A -> B -> M B) l z, (forall a b, f a b = g a b) -> mfold f l z = mfold g l z.
Proof. induction l; intros z H; simpl; auto. rewrite H. destruct (tick (g a z)) as [[[b n] k]|]; simpl; auto. now rewrite IHl. Qed.
Theorem lift_let_sound : forall i G t (e e' : tm G t), lift_let i e = Some e' -> improves_by fuel 0 e e'.
Proof.
  intros i G t e e' H r v n k E.
  destruct e; cbn [lift_let] in H; try discriminate; try (destruct i as [|[|i]]); apply out_ok in H as (a' & x & y & Hlet & ->); subst;
    cbn [ev] in E; crack; cbn [ev]; repeat (goal_runs);
    try (match type of E with ?m = Some _ => match goal with |- context [m] => rewrite E end end; cbn [bind tick]; eexists _, _; (split; [reflexivity|lia])).
  all: try (eexists _, _; split; [reflexivity|lia]).
  all: try match goal with v : den R (TSum _ _) |- _ => destruct v; cbn iota in E |- * end.
  all: match type of E with _ = ?result => match goal with
    | |- context [miter ?n ?f ?z] => assert (miter n f z = result) as E' by (erewrite miter_ext; [exact E|intros; apply up2_ok])
    | |- context [mfold ?f ?l ?z] => assert (mfold f l z = result) as E' by (erewrite mfold_ext; [exact E|intros; apply up2_ok])
    | |- context [mseq ?f ?l] => assert (mseq f l = result) as E' by (refine (eq_trans (@mseq_ext _ _ _ _ _ _) E); intros; apply (f_equal (@tick _)); apply up1_ok)
    | |- context [ev RO fuel ?e ?q] => assert (ev RO fuel e q = result) as E' by (rewrite up1_ok; exact E)
    end; rewrite E'; cbn [bind tick]; eexists _, _; split; [reflexivity|lia] end.
Qed.
End Fuel.
