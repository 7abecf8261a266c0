(* The combinator mode is right for functions and recursion (see Adjoint.v): a closure is a run with its map back; a call weighs what running it
   again brings back to what was captured. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Triple Combinator Cotangent Transpose Adjoint.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Section Here.
Variable fuel : nat.
Variable U : NormedModule R_AbsRing.
Variables u0 h : U.
Notation diff f l := (@filterdiff R_AbsRing U R_NormedModule f (locally u0) l).
Notation near P := (@locally U u0 P).
Notation evR e := (ev RO fuel e).
Notation cdenR c := (cden RO fuel c).
Notation near2 := (@near2 U u0).
Notation near1 := (@near1 U u0).
Notation always := (@always U u0).
Notation here := (@here U u0).
Notation V := (V U u0 h).
Notation E := (E U u0).
Notation Back := (Back U u0 h).
Notation Image := (Image fuel U u0 h).
Section Functions.
Variables c a b : ty.
Variable oc : obs c.
(* what a call weighs: run again, what it brings back to the captured value weighs *)
Definition again (run : den R (runs c a b)) : obs (TFun a b) := fun x d w => gives (run x) (fun p => gives (snd p d) (fun q => weigh c oc (fst q) w)).
Variable F : U -> den R (TFun a b).
Variable run : den R (runs c a b).
Hypothesis Hrun : forall f1 g1 o1, V a f1 g1 o1 -> E (@Adjoint.Back U u0 h (TProd c a) (oc, o1) b) (fun u => F u (f1 u)) (run g1).
Lemma expose_ok : forall G (e : tm (D1 a :: G) (runs c a b)) r, (forall x, gives (evR e (x, r)) (eq run)) ->
  gives (evR (expose (c := c) (a := a) (b := b) e) r) (fun g => V (TFun a b) F g (again run)).
Proof.
  intros G e r He. unfold expose. w. intros f1 g1 o1 H1. eapply E_right; [|exact (Hrun _ _ _ H1)]. intros f2 (p & n & Ep & o2 & H2 & B2).
  w. eapply g_imp; [apply He|]. intros ? <-. w. exists p, n. split; [exact Ep|]. w. exists o2. split; [exact H2|]. intros d w Hd. cbn [snd]. w.
  destruct (B2 d w Hd) as (q & m & Eq & w1 & w2 & Q1 & Q2 & ->). exists q, m. split; [exact Eq|]. exists w1, w2. split; [|split; [exact Q2|reflexivity]].
  exists p, n. split; [exact Ep|]. exists q, m. split; [exact Eq|exact Q1].
Qed.
Lemma calls_ok : forall G (e : tm (TProd (D1 a) (D2 b) :: D2 c :: G) (runs c a b)) bag r w, (forall x acc, gives (evR e (x, (acc, r))) (eq run)) ->
  gives (evR bag r) (fun l => weigh (TFun a b) (again run) l w) -> gives (evR (calls (c := c) (a := a) (b := b) e bag) r) (fun d => weigh c oc d w).
Proof.
  intros G e bag r w He Hb. unfold calls. eapply w_bag; [exact Hb|]. intros x acc w1 Hx. w. eapply g_imp; [apply He|]. intros ? <-. w. eapply g_imp; [exact Hx|]. intros p Hp. w. exact Hp.
Qed.
Lemma closure_ok : forall G (r : env R G), gives (evR (closure (c := c) (a := a) (b := b)) (run, r)) (@Adjoint.Back U u0 h c oc (TFun a b) F).
Proof.
  intros G r. unfold closure. w. eapply g_imp; [apply expose_ok; intros x; w; reflexivity|]. intros g Hg. w. exists (again run). split; [exact Hg|].
  intros d w Hd. cbn [snd]. apply calls_ok; [intros x acc; w; reflexivity|]. w. exact Hd.
Qed.
End Functions.
Lemma i_curry : forall c a b F (D : image (TProd c a) b), Image F D -> @Adjoint.Image fuel U u0 h _ (TFun a b) (fun x => ret (fun y => F (x, y))) (d_curry D).
Proof.
  intros c a b F D H G r f g o HV. unfold d_curry. apply E_ret with (f := fun u y => F (f u, y)). w. apply closure_ok with (F := fun u y => F (f u, y)).
  intros f1 g1 o1 H1. apply e_at. w. eapply H with (f := fun u => (f u, f1 u)) (o := (o, o1)). split; assumption.
Qed.
Lemma kleene_ok : forall a b c (oc : obs c) (F : U -> (den R a -> M (den R b)) -> den R a -> M (den R b)) (J : den R (runs c a b) -> den R (runs c a b)),
  (forall K run, (forall f1 g1 o1, V a f1 g1 o1 -> E (@Adjoint.Back U u0 h (TProd c a) (oc, o1) b) (fun u => K u (f1 u)) (run g1)) ->
     forall f1 g1 o1, V a f1 g1 o1 -> E (@Adjoint.Back U u0 h (TProd c a) (oc, o1) b) (fun u => F u (K u) (f1 u)) (J run g1)) ->
  forall n f1 g1 o1, V a f1 g1 o1 -> E (@Adjoint.Back U u0 h (TProd c a) (oc, o1) b) (fun u => kleene n (F u) (f1 u)) (kleene n J g1).
Proof.
  intros a b c oc F J H n. induction n as [|n IH]; intros f1 g1 o1 H1; cbn [kleene].
  - intros a0 n0 H0. discriminate.
  - exact (H (fun u => kleene n (F u)) (kleene n J) IH f1 g1 o1 H1).
Qed.
Lemma i_fix : forall c a b F (D : image (TProd (TProd c (TFun a b)) a) b), Image F D ->
  @Adjoint.Image fuel U u0 h _ (TFun a b) (fun x => ret (kleene fuel (fun K y => F ((x, K), y)))) (d_fix D).
Proof.
  intros c a b F D H G r f g o HV. unfold d_fix. apply E_ret with (f := fun u => kleene fuel (fun K y => F ((f u, K), y))).
  w. apply closure_ok. apply kleene_ok with (F := fun u K y => F ((f u, K), y)).
  intros K run IH f1 g1 o1 H1. eapply e_then.
  - apply e_at. w. eapply g_imp; [eapply expose_ok with (oc := o) (F := K); [exact IH|intros x; w; reflexivity]|]. intros k Hk. w.
    eapply H with (f := fun u => ((f u, K u), f1 u)) (o := ((o, _), o1)). split; [split; [exact HV|exact Hk]|exact H1].
  - intros f2 [g2 b2] (o2 & H2 & B2). w. exists o2. split; [exact H2|]. intros d w Hd. cbn [snd]. w.
    eapply g_imp; [exact (B2 d w Hd)|]. intros q (w12 & w3 & (w1 & w2 & Q1 & Q2 & ->) & Q3 & ->). w.
    eapply g_imp; [apply w_plus with (o := o) (w := w1) (w' := w2); [w; exact Q1|eapply calls_ok; [intros x acc; w; reflexivity|w; exact Q2]]|].
    intros e He. w. exists (w1 + w2)%R, w3. split; [exact He|split; [exact Q3|reflexivity]].
Qed.
End Here.
