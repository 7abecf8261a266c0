(* Fission of loops (C Fig. 12 (e)): a loop over pairs whose parts do not need each other is a pair of loops.  It is no refinement in every case:
   each turn of the one loop takes 6 steps more than those of the two loops together, but the two loops take 2 steps more to set up.  So steps are
   saved when the loop turns at least once, and lost when it is empty; [fission_exact] has the exact count, and [fission_empty] a program that takes longer. *)
From Coq Require Import Reals List Lia ZArith.
Require Import Language Primitive Substitution Improvement Lift.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

(* a from the first part, b from the second *)
Definition both {G s t} (a : tm (s :: TI :: G) s) (b : tm (t :: TI :: G) t) : tm (TProd s t :: TI :: G) (TProd s t) :=
  tpair (tlet (tfst v0) (rn a (up (@shift _ _)))) (tlet (tsnd v0) (rn b (up (@shift _ _)))).
Lemma bind_run : forall A B (m : M A) (f : A -> M B) a b n1 k1 n2 k2, m = Some (a, n1, k1) -> f a = Some (b, n2, k2) -> bind m f = Some (b, n1 + n2, k1 + k2).
Proof. intros A B m f a b n1 k1 n2 k2 -> E. cbn [bind]. now rewrite E. Qed.

Section Fuel.
Variable fuel : nat.
Notation evR e := (ev RO fuel e).
Lemma both_ev : forall G s t (a : tm (s :: TI :: G) s) (b : tm (t :: TI :: G) t) (r : env R (TI :: G)) (x : den R s) (y : den R t) v n k, evR (both a b) ((x, y), r) = Some (v, n, k) ->
  exists n1 k1 n2 k2, evR a (x, r) = Some (fst v, n1, k1) /\ evR b (y, r) = Some (snd v, n2, k2) /\ n = n1 + n2 + 7 /\ k = k1 + k2.
Proof.
  intros G s t a b r x y v n k E. unfold both in E. cbn [ev op1v op2v v0 look fst snd] in E. crack.
  match goal with H : ev _ _ (rn a _) _ = Some (_, ?n1, ?k1), H' : ev _ _ (rn b _) _ = Some (_, ?n2, ?k2) |- _ =>
    exists n1, k1, n2, k2; split; [exact (eq_trans (eq_sym (@up1_ok fuel (TI :: G) (TProd s t) s s a r (x, y) x)) H)|];
    split; [exact (eq_trans (eq_sym (@up1_ok fuel (TI :: G) (TProd s t) t t b r (x, y) y)) H')|] end. simpl in *. lia.
Qed.
Lemma loop_both : forall G s t (a : tm (s :: TI :: G) s) (b : tm (t :: TI :: G) t) (r : env R G) m (x : den R s) (y : den R t) v n k,
  miter m (fun i acc => evR (both a b) (acc, (Z.of_nat i, r))) (x, y) = Some (v, n, k) ->
  exists n1 k1 n2 k2, miter m (fun i acc => evR a (acc, (Z.of_nat i, r))) x = Some (fst v, n1, k1) /\
    miter m (fun i acc => evR b (acc, (Z.of_nat i, r))) y = Some (snd v, n2, k2) /\ n = n1 + n2 + 6 * m /\ k = k1 + k2.
Proof.
  intros G s t a b r. induction m as [|m IH]; intros x y v n k E; cbn [miter] in *.
  - crack. exists 0, 0, 0, 0. repeat split; lia.
  - crack. match goal with H : miter _ _ _ = Some (?w, _, _) |- _ => destruct w as [p q]; destruct (IH _ _ _ _ _ H) as (n1 & k1 & n2 & k2 & E1 & E2 & -> & ->) end.
    apply both_ev in E as (n3 & k3 & n4 & k4 & E3 & E4 & -> & ->). simpl fst in *. simpl snd in *.
    exists (n1 + S n3), (k1 + k3), (n2 + S n4), (k2 + k4). split; [exact (bind_run _ E1 (f_equal tick E3))|].
    split; [exact (bind_run _ E2 (f_equal tick E4))|lia].
Qed.
Theorem fission_exact : forall G s t (n : tm G TI) (c : tm G s) (d : tm G t) a b, atom n -> forall r v steps kinks,
  evR (tloop n (tpair c d) (both a b)) r = Some (v, steps, kinks) ->
  exists z steps', evR n r = Some (z, 1, 0) /\ evR (tpair (tloop n c a) (tloop n d b)) r = Some (v, steps', kinks) /\ steps' + 6 * Z.to_nat z = steps + 2.
Proof.
  intros G s t n c d a b Hn r v steps kinks E. destruct (@atom_value R RO fuel _ _ _ Hn r) as (z & Hz). cbn [ev op2v] in E. crack.
  match goal with H : ev _ _ n _ = _ |- _ => rewrite Hz in H; injection H as <- <- <- end.
  match goal with Hc : ev _ _ c _ = Some (?p, ?nc, ?kc), Hd : ev _ _ d _ = Some (?q, ?nd, ?kd) |- _ =>
    apply loop_both in E as (n1 & k1 & n2 & k2 & E1 & E2 & -> & ->);
    assert (evR (tloop n c a) r = Some (fst v, S (1 + (nc + n1)), 0 + (kc + k1))) as L1 by exact (f_equal tick (bind_run _ Hz (bind_run _ Hc E1)));
    assert (evR (tloop n d b) r = Some (snd v, S (1 + (nd + n2)), 0 + (kd + k2))) as L2 by exact (f_equal tick (bind_run _ Hz (bind_run _ Hd E2)));
    pose proof (f_equal tick (bind_run (fun x => bind (evR (tloop n d b) r) (fun y => ret (x, y))) L1 (bind_run (fun y => ret (fst v, y)) L2 eq_refl)) :
      evR (tpair (tloop n c a) (tloop n d b)) r = _) as L3 end.
  exists z. eexists. split; [exact Hz|]. split.
  - refine (eq_trans L3 _). cbn [tick]. destruct v as [p q]. cbn [fst snd]. apply f_equal. apply f_equal2; [reflexivity|lia].
  - lia.
Qed.
(* no loop at all *)
Theorem fission_empty : forall r : env R nil,
  (exists v, evR (tloop (tint nil 0) (tpair (lit 0) (lit 0)) (both (G := nil) (s := TR) (t := TR) v0 v0)) r = Some (v, 5, 0)) /\
  (exists v, evR (tpair (tloop (tint nil 0) (lit 0) v0) (tloop (tint nil 0) (lit 0) v0)) r = Some (v, 7, 0)).
Proof. intros r. split; eexists; reflexivity. Qed.
End Fuel.
