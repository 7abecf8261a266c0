(* Reverse mode of forward mode: one backward evaluation of the transformed program gives a product of the Hessian with a vector.
   The output of forward mode is again a program, which ends near the point without kinks; so the theorem about reverse mode applies to it. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Forward Delta Monadic Reverse.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

(* n reals, each with its tangent *)
Notation pairs n := (map (D fwd) (reals n)).
Fixpoint paired (n : nat) : Rn n -> Rn n -> env R (pairs n) :=
  match n return Rn n -> Rn n -> env R (pairs n) with O => fun _ _ => tt | S k => fun u v => ((fst u, fst v), paired k (snd u) (snd v)) end.
Lemma pairs_data : forall n, datas (pairs n) = true.
Proof. induction n; simpl; auto. Qed.
Lemma paired_primals : forall n u v, primals (reals n) (paired n u v) = point n u.
Proof. induction n; intros u v; simpl; auto. f_equal. apply IHn. Qed.
Lemma paired_deltas : forall n u v, deltas (reals n) (paired n u v) = point n v.
Proof. induction n; intros u v; simpl; auto. f_equal. apply IHn. Qed.
Lemma Rn_zero : forall n, Rn n.
Proof. intros n. exact zero. Defined.
(* the point moves, the vector stays *)
Lemma paired_deriv : forall n (V : NormedModule R_AbsRing) (v0 h : V) (p : V -> Rn n) (w : Rn n), is_linear p ->
  Derivs V v0 h (pairs n) (fun u => paired n (p u) w) (paired n (p h) zero).
Proof.
  induction n; intros V v0 h p w Hp; simpl; auto. split; [split|].
  - exists (fun u => fst (p u)). split; [|reflexivity].
    apply (@filterdiff_linear R_AbsRing V R_NormedModule (locally v0)) with (l := fun u => fst (p u)).
    apply (@is_linear_comp R_AbsRing V (prod_NormedModule R_AbsRing R_NormedModule (Rn n)) R_NormedModule p (fun u => fst u) Hp).
    apply is_linear_fst.
  - exists (fun _ => 0%R). split; [apply diff_const|reflexivity].
  - apply (IHn V v0 h (fun u => snd (p u)) (snd w)).
    apply (@is_linear_comp R_AbsRing V (prod_NormedModule R_AbsRing R_NormedModule (Rn n)) (Rn n) p (fun u => snd u) Hp).
    apply is_linear_snd.
Qed.
(* the directional derivative of the program at u along w, which its transform computes *)
Definition directional (fuel n : nat) (e : tm (reals n) TR) (w u : Rn n) : R :=
  match ev RO fuel (forward e) (paired n u w) with Some ((_, d), _, _) => d | None => 0%R end.
Lemma directional_ok : forall fuel n (e : tm (reals n) TR) (w u : Rn n) y s, ev RO fuel e (point n u) = Some (y, s, 0) ->
  exists F l k, locally u (fun x => ev RO fuel e (point n x) = Some (F x, s, 0)) /\
    @filterdiff R_AbsRing (Rn n) R_NormedModule F (locally u) l /\ l w = directional fuel n e w u /\
    ev RO fuel (forward e) (paired n u w) = Some ((y, directional fuel n e w u), k, 0) /\ k <= KF * s.
Proof.
  intros fuel n e w u y s H.
  destruct (@forward_correct fuel (Rn n) u w (reals n) TR e (point n) (paired n u w) y s (reals_data n) eq_refl) as (F & [p d] & k & L & E & P & (l & Hl & Hd) & B).
  - apply paired_primals.
  - rewrite paired_deltas. apply (@point_deriv n (Rn n) u w (fun x => x)). apply is_linear_id.
  - exact H.
  - simpl in P, Hd. subst p. assert (directional fuel n e w u = d) as Ed by exact (f_equal (fun o : M (R * R) => match o with Some ((_, d), _, _) => d | None => 0%R end) E).
    exists F, l, k. rewrite Ed. auto.
Qed.
Theorem hessian_vector : forall fuel n (e : tm (reals n) TR) (x w : Rn n) y s,
  ev RO fuel e (point n x) = Some (y, s, 0) ->
  exists m cost,
    reverse fuel (forward e) (paired n x w) [0%R; 1%R] = Some ((y, directional fuel n e w x), m, cost) /\
    @filterdiff R_AbsRing (Rn n) R_NormedModule (directional fuel n e w) (locally x) (fun h => dot (2 * n) m (vector (flats (pairs n) (paired n h zero)))) /\
    cost <= (KM + KS) * (KF * s) + 7.
Proof.
  intros fuel n e x w y s H.
  destruct (@directional_ok fuel n e w x y s H) as (F0 & l0 & k & L0 & _ & _ & E0 & B0).
  assert (forall u v, length (flats (pairs n) (paired n u v)) = 2 * n) as Hlen.
  { clear. induction n as [|n IH]; intros u v; [reflexivity|]. simpl. rewrite IH. lia. }
  assert (forall h, exists l m cost, @filterdiff R_AbsRing (Rn n) R_NormedModule (directional fuel n e w) (locally x) l /\
     reverse fuel (forward e) (paired n x w) [0%R; 1%R] = Some ((y, directional fuel n e w x), m, cost) /\
     dot (2 * n) m (vector (flats (pairs n) (paired n h zero))) = l h /\ cost <= (KM + KS) * k + 7) as HR.
  { intros h.
    destruct (@reverse_correct fuel (Rn n) x h (pairs n) (TProd TR TR) (forward e) (fun u => paired n u w) (paired n h zero) (y, directional fuel n e w x) k [0%R; 1%R]
      (pairs_data n) eq_refl) as (F & dy & m & cost & L & [(l1 & Hl1 & Hd1) (l2 & Hl2 & Hd2)] & E & Dt & C).
    - apply (@paired_deriv n (Rn n) x h (fun u => u) w). apply is_linear_id.
    - exact E0.
    - exists l2, m, cost. split; [|split; [exact E|split]].
      + eapply filterdiff_ext_locally; [|exact Hl2]. generalize (filter_and _ _ L L0). apply filter_imp. intros u [Hu Hu0].
        destruct (@directional_ok fuel n e w u _ _ Hu0) as (_ & _ & k' & _ & _ & _ & Eu & _).
        pose proof (eq_trans (eq_sym Hu) Eu) as X. injection X. intros _ ->. reflexivity.
      + rewrite Hlen in Dt. refine (eq_trans Dt _). simpl. simpl in Hd2. rewrite <- Hd2. destruct dy as [d1 d2]. simpl. ring.
      + change (length (flat (TProd TR TR) dy)) with 2 in C. lia. }
  destruct (HR zero) as (l & m & cost & Hl & E & _ & C). exists m, cost.
  split; [exact E|split].
  - eapply filterdiff_ext_lin; [exact Hl|]. intros h. destruct (HR h) as (l' & m' & cost' & Hl' & E' & D' & _). rewrite E in E'. inversion E'; subst m' cost'.
    rewrite D'. exact (@diff_unique (Rn n) x _ _ _ Hl Hl' h).
  - apply Nat.le_trans with (1 := C). apply Nat.add_le_mono_r, Nat.mul_le_mono_l, B0.
Qed.
