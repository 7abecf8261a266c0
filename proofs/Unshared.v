(* The mode `delta` (K Fig. 7, 8): the tangent of a real is a Delta term, built without sharing.  Correct, but the term, and with it the
   backward evaluation, can be exponential in the run (K section 7): only the run itself is bounded.  [Rep d g]: the Delta g denotes d. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Delta Reverse.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Arguments Nat.mul : simpl never.

Section Correct.
Variable fuel n : nat.
Variable U : NormedModule R_AbsRing.
Variables u0 h : U.
Variable gam : nat -> R.
Definition KD : nat := 400.
Definition RepD (d : R) (g : den R (tg dlt)) : Prop := exists u, g = enc u /\ scoped n u /\ dden u gam = d.
Lemma delta_fundamental : forall G t (e : tm G t) f g, VE dlt U u0 h RepD KD G f g ->
  Es U u0 KD 0 (V dlt U u0 h RepD KD t) (fun u => ev RO fuel e (f u)) (ev RO fuel (DT dlt e) g).
Proof.
  intros G t e f g. apply fundamental with (KT := 20).
  - unfold KD. lia.
  - intros G0 r. exists (enc DZero). eexists. split; [reflexivity|]. split; [|lia]. exists DZero. simpl. auto.
  - intros G0 c d r x g0 y n1 n2 Hc Hd (u & -> & Hs & <-).
    assert (exists k, ev RO fuel (dscale c d) r = Some (enc (DScale x u), k, 0) /\ k <= n1 + n2 + 20) as (k & E & B).
    { unfold dscale. change (tg dlt) with TDelta in d. cbn [ev op0v op1v op2v]. rewrite Hc. cbn [bind tick ret].
      pose proof (Hd : ev RO fuel d r = Some (enc u, n2, 0)) as Hd'. rewrite Hd'. simpl. eexists. split; [reflexivity|lia]. }
    exists (enc (DScale x u)), k. split; [exact E|]. split; [|exact B]. exists (DScale x u). simpl. auto.
  - intros G0 c d r g1 g2 y1 y2 n1 n2 Hc Hd (u & -> & Hs & <-) (v & -> & Hs' & <-).
    assert (exists k, ev RO fuel (dadd c d) r = Some (enc (DAdd u v), k, 0) /\ k <= n1 + n2 + 20) as (k & E & B).
    { unfold dadd. change (tg dlt) with TDelta in c, d. cbn [ev op0v op1v op2v bind tick ret].
      pose proof (Hc : ev RO fuel c r = Some (enc u, n1, 0)) as Hc'. pose proof (Hd : ev RO fuel d r = Some (enc v, n2, 0)) as Hd'.
      rewrite Hc', Hd'. simpl. eexists. split; [reflexivity|lia]. }
    exists (enc (DAdd u v)), k. split; [exact E|]. split; [|exact B]. exists (DAdd u v). simpl. auto.
Qed.
End Correct.
(* the inputs, each with its identifier *)
Fixpoint delta_seed (m k : nat) : env R (reals m) -> env R (map (D dlt) (reals m)) :=
  match m return env R (reals m) -> env R (map (D dlt) (reals m)) with
  | O => fun _ => tt
  | S m => fun x => ((fst x, enc (DVar k)), delta_seed m (S k) (snd x))
  end.
Lemma delta_seed_ok : forall n (U : NormedModule R_AbsRing) (u0 h : U) gam m k f v, k + m <= n ->
  Derivs U u0 h (reals m) f v -> (forall i, i < m -> gam (k + i) = vector (flats (reals m) v) i) ->
  VE dlt U u0 h (RepD n gam) KD (reals m) f (delta_seed m k (f u0)).
Proof.
  intros n U u0 h gam m. induction m; intros k f v Hk Hd Hg; simpl in *; auto. destruct Hd as [(l & Hl & Hv) Hd]. split.
  - split; [reflexivity|]. exists l. split; [exact Hl|]. exists (DVar k). simpl. split; [reflexivity|]. split; [lia|].
    specialize (Hg 0). rewrite Nat.add_0_r in Hg. rewrite Hg by lia. simpl. symmetry. exact Hv.
  - apply (IHm (S k) (fun u => snd (f u)) (snd v)); auto; [lia|]. intros i Hi. specialize (Hg (S i)). rewrite Nat.add_succ_r in Hg. simpl. rewrite Hg by lia. reflexivity.
Qed.
Theorem delta_correct : forall fuel n (e : tm (reals n) TR) (U : NormedModule R_AbsRing) (u0 h : U) f v y s w,
  Derivs U u0 h (reals n) f v -> ev RO fuel e (f u0) = Some (y, s, 0) ->
  exists F dy u k,
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, s, 0)) /\ Deriv U u0 h TR F dy /\
    ev RO fuel (DT dlt e) (delta_seed n 0 (f u0)) = Some ((y, enc u), k, 0) /\ k <= 401 * s /\
    dot n (fst (eval w u emptyMap)) (vector (flats (reals n) v)) = (w * dy)%R.
Proof.
  intros fuel n e U u0 h f v y s w Hv He.
  pose proof (@delta_seed_ok n U u0 h (vector (flats (reals n) v)) n 0 f v (le_n _) Hv (fun i _ => eq_refl)) as HG.
  destruct (@delta_fundamental fuel n U u0 h _ _ _ e _ _ HG _ _ He) as (F & [y' g] & k & L & E & (Hy & l & Hl & u & Hu & Hs & Hd) & Hk).
  simpl in Hy, Hu. subst y' g. exists F, (l h), u, k. split; [exact L|]. split; [exists l; auto|]. split; [|split; [unfold KD in Hk; lia|]].
  - pose proof (@locally_singleton U u0 _ L) as X. simpl in X. rewrite He in X. inversion X. subst y. exact E.
  - destruct (@eval_dot u n w emptyMap (vector (flats (reals n) v)) Hs (fun _ _ => eq_refl)) as [H1 _]. rewrite H1, dot_empty, Hd. ring.
Qed.
