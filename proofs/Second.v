(* Second derivatives: forward mode applied to its own output (K section 10.4 leaves this open).
   The premise of forward mode, terminated and met no kink, holds near the point if it holds at it, and the transformed program
   meets it too; so the theorem for the program and the theorem for its transform compose. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Forward.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

Lemma diff_derive : forall (f : R -> R) x l, @filterdiff R_AbsRing R_NormedModule R_NormedModule f (locally x) l -> is_derive f x (l 1%R).
Proof.
  intros f x l H. unfold is_derive. eapply filterdiff_ext_lin; [exact H|]. intros y. destruct H as [Hl _].
  rewrite <- (linear_scal l Hl y 1%R). f_equal. exact (eq_sym (Rmult_1_r y)).
Qed.
Lemma diff_id : forall x : R, @filterdiff R_AbsRing R_NormedModule R_NormedModule (fun u => u) (locally x) (fun h => h).
Proof. intros x. exact (@filterdiff_id R_AbsRing R_NormedModule (locally x)). Qed.
Section Second.
Variable fuel : nat.
Variable e : tm [TR] TR.
(* the function that the program computes, and the one that its transform computes *)
Definition fn (t : R) : R := match ev RO fuel e (t, tt) with Some (y, _, _) => y | None => 0%R end.
Definition fn1 (t : R) : R := match ev RO fuel (forward e) ((t, 1%R), tt) with Some ((_, d), _, _) => d | None => 0%R end.
Lemma first : forall t y s, ev RO fuel e (t, tt) = Some (y, s, 0) ->
  locally t (fun u => ev RO fuel e (u, tt) = Some (fn u, s, 0)) /\ is_derive fn t (fn1 t) /\
  exists k, ev RO fuel (forward e) ((t, 1%R), tt) = Some ((y, fn1 t), k, 0) /\ k <= KF * s.
Proof.
  intros t y s H.
  destruct (@forward_correct fuel R_NormedModule t 1%R [TR] TR e (fun u => (u, tt)) ((t, 1%R), tt) y s eq_refl eq_refl eq_refl) as (F & [p d] & k & L & E & P & (l & Hl & Hd) & B).
  - split; [|exact I]. exists (fun h => h). split; [apply diff_id|reflexivity].
  - exact H.
  - simpl in P, Hd. subst p. assert (fn1 t = d) as Hf by exact (f_equal (fun o : M (R * R) => match o with Some ((_, d), _, _) => d | None => 0%R end) E).
    assert (locally t (fun u => F u = fn u)) as LF. { revert L. apply filter_imp. intros u Hu. exact (eq_sym (f_equal (fun o : M R => match o with Some (y, _, _) => y | None => 0%R end) Hu)). }
    split; [|split].
    + generalize (filter_and _ _ L LF). apply filter_imp. intros u [A B']. rewrite <- B'. exact A.
    + rewrite Hf, <- Hd. apply diff_derive. eapply filterdiff_ext_locally; [exact LF|exact Hl].
    + exists k. split; [|exact B]. rewrite Hf. exact E.
Qed.
Theorem second_derivative : forall x y s, ev RO fuel e (x, tt) = Some (y, s, 0) ->
  exists d2 k,
    locally x (fun t => ev RO fuel e (t, tt) = Some (fn t, s, 0) /\ is_derive fn t (fn1 t)) /\
    is_derive fn1 x d2 /\
    ev RO fuel (forward (forward e)) (((x, 1%R), (1%R, 0%R)), tt) = Some (((y, fn1 x), (fn1 x, d2)), k, 0) /\
    k <= KF * (KF * s).
Proof.
  intros x y s H. destruct (@first _ _ _ H) as (L & Hd & k1 & E1 & B1).
  destruct (@forward_correct fuel R_NormedModule x 1%R [TProd TR TR] (TProd TR TR) (forward e) (fun u => ((u, 1%R), tt)) (((x, 1%R), (1%R, 0%R)), tt)
              (y, fn1 x) k1 eq_refl eq_refl eq_refl) as (F & [[p d] [q d2]] & k & L2 & E2 & P & [(l1 & Hl1 & Hd1) (l2 & Hl2 & Hd2)] & B2).
  - split; [|exact I]. split.
    + exists (fun h => h). split; [apply diff_id|reflexivity].
    + exists (fun _ => 0%R). split; [exact (diff_const R_NormedModule x 1%R)|reflexivity].
  - exact E1.
  - simpl in P, Hd1, Hd2. inversion P; subst p q. exists d2, k.
    assert (locally x (fun u => fst (F u) = fn u /\ snd (F u) = fn1 u)) as LF.
    { generalize (filter_and _ _ L L2). apply filter_imp. intros u [Hu Hu2].
      destruct (@first _ _ _ Hu) as (_ & _ & ku & Eu & _). pose proof (eq_trans (eq_sym Hu2) Eu) as X. injection X. intros _ ->. simpl. auto. }
    assert (d = fn1 x) as ->.
    { rewrite <- Hd1. rewrite <- (is_derive_unique _ _ _ Hd). symmetry. apply is_derive_unique.
      apply diff_derive. eapply filterdiff_ext_locally; [|exact Hl1]. revert LF. apply filter_imp. intros u [A _]. exact A. }
    split; [|split; [|split]].
    + revert L. apply filter_imp. intros u Hu. split; [exact Hu|]. apply (@first _ _ _ Hu).
    + rewrite <- Hd2. apply diff_derive. eapply filterdiff_ext_locally; [|exact Hl2]. revert LF. apply filter_imp. intros u [_ A]. exact A.
    + exact E2.
    + apply Nat.le_trans with (1 := B2). apply Nat.mul_le_mono_l, B1.
Qed.
End Second.
