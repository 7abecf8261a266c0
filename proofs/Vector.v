(* Vector mode (K Fig. 5, 6; C Fig. 15; N with vect = R^k): the tangent of a real is the array of its partial
   derivatives with respect to the n inputs.  [Rep d g]: the inner product of g with the input velocities is d. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Delta Reverse.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Arguments Nat.mul : simpl never.

(* inner product with the velocities gam k, gam (k+1), ... *)
Fixpoint inner (gam : nat -> R) (l : list R) (k : nat) : R :=
  match l with nil => 0 | x :: l => x * gam k + inner gam l (S k) end%R.
Lemma inner_map : forall gam c l k, inner gam (map (fun x => c * x)%R l) k = (c * inner gam l k)%R.
Proof. induction l; intros k; simpl; [ring|rewrite IHl; ring]. Qed.
Lemma inner_zero : forall gam (l : list nat) k, inner gam (map (fun _ => 0%R) l) k = 0%R.
Proof. induction l; intros k; simpl; [ring|rewrite IHl; ring]. Qed.
Lemma inner_zip : forall gam u v k, length u = length v ->
  inner gam (map (fun p => fst p + snd p)%R (combine u v)) k = (inner gam u k + inner gam v k)%R.
Proof. induction u; intros [|y v] k H; simpl in *; try discriminate; [ring|]. rewrite IHu by lia. ring. Qed.
Definition one_hot (n i : nat) : list R := map (fun j => if Nat.eqb j i then 1%R else 0%R) (seq 0 n).
Lemma inner_one_hot : forall gam n i, i < n -> inner gam (one_hot n i) 0 = gam i.
Proof.
  intros gam n i Hi. unfold one_hot.
  assert (forall n j, inner gam (map (fun j => if Nat.eqb j i then 1%R else 0%R) (seq j n)) j = if andb (j <=? i) (i <? j + n) then gam i else 0%R) as H.
  { clear. induction n; intros j; simpl.
    - destruct (Nat.leb_spec j i), (Nat.ltb_spec i (j + 0)); simpl; auto; lia.
    - rewrite IHn. destruct (Nat.eqb_spec j i), (Nat.leb_spec (S j) i), (Nat.leb_spec j i), (Nat.ltb_spec i (S j + n)), (Nat.ltb_spec i (j + S n)); simpl; subst; try lia; ring. }
  rewrite H. destruct (Nat.leb_spec 0 i), (Nat.ltb_spec i (0 + n)); simpl; auto; lia.
Qed.

(* vectors as terms *)
Definition vzero {G} (n : nat) : tm G (TArr TR) := tbuild (tint G (Z.of_nat n)) (lit 0).
Definition vscale {G} (c : tm G TR) (u : tm G (TArr TR)) : tm G (TArr TR) := let2 c u (tmap (tmul v2 v0) v0).
Definition vadd {G} (u v : tm G (TArr TR)) : tm G (TArr TR) := tmap (tadd (tfst v0) (tsnd v0)) (tzip u v).
Section Terms.
Variable fuel : nat.
Notation evR e := (ev RO fuel e).
Lemma vzero_ev : forall G n (r : env R G), evR (vzero n) r = Some (map (fun _ => 0%R) (seq 0 n), S (1 + n * 2), 0).
Proof.
  intros G n r. unfold vzero. cbn [ev bind tick ret op0v]. rewrite Nat2Z.id.
  rewrite (@mseq_pure _ _ _ (fun _ : nat => 0%R) 2) by reflexivity. rewrite seq_length. reflexivity.
Qed.
Lemma vscale_ev : forall G (c : tm G TR) (u : tm G (TArr TR)) r x l n1 n2, evR c r = Some (x, n1, 0) -> evR u r = Some (l, n2, 0) ->
  exists n, evR (vscale c u) r = Some (map (fun y => x * y)%R l, n, 0) /\ n <= n1 + n2 + 10 + length l * 5.
Proof.
  intros G c u r x l n1 n2 H1 H2. unfold vscale. rewrite let2_ev, H1, H2. cbn [ev bind tick ret look fst snd v0 v1 v2].
  rewrite (@mseq_pure _ _ _ (fun y => x * y)%R 4) by reflexivity. cbn [bind tick ticks]. eexists. split; [reflexivity|lia].
Qed.
Lemma vadd_ev : forall G (u v : tm G (TArr TR)) r l l' n1 n2, evR u r = Some (l, n1, 0) -> evR v r = Some (l', n2, 0) -> length l = length l' ->
  exists n, evR (vadd u v) r = Some (map (fun p => fst p + snd p)%R (combine l l'), n, 0) /\ n <= n1 + n2 + 10 + length l * 8.
Proof.
  intros G u v r l l' n1 n2 H1 H2 Hl. unfold vadd. cbn [ev op2v]. rewrite H1, H2. cbn [bind tick]. rewrite mzip_eq by exact Hl. cbn [bind tick].
  rewrite (@mseq_pure _ _ _ (fun p : R * R => fst p + snd p)%R 6) by reflexivity. rewrite combine_length, <- Hl, Nat.min_id.
  cbn [bind tick]. eexists. split; [reflexivity|lia].
Qed.
End Terms.

Definition vec (n : nat) : tangents :=
  {| tg := TArr TR; tg_zero := fun _ => vzero n; tg_scale := fun _ c u => vscale c u; tg_add := fun _ u v => vadd u v |}.
Section Correct.
Variable fuel n : nat.
Variable U : NormedModule R_AbsRing.
Variables u0 h : U.
Variable gam : nat -> R.
Definition KV : nat := 400 + 60 * n.
Definition RepV (d : R) (g : den R (tg (vec n))) : Prop := length g = n /\ inner gam g 0 = d.
Lemma vector_fundamental : forall G t (e : tm G t) f g, VE (vec n) U u0 h RepV KV G f g ->
  Es U u0 KV 0 (V (vec n) U u0 h RepV KV t) (fun u => ev RO fuel e (f u)) (ev RO fuel (DT (vec n) e) g).
Proof.
  intros G t e f g. apply fundamental with (KT := 20 + 8 * n).
  - unfold KV. lia.
  - intros G0 r. exists (map (fun _ => 0%R) (seq 0 n)), (S (1 + n * 2)). split; [exact (vzero_ev fuel _ n r)|].
    split; [split; [rewrite map_length; apply seq_length|apply inner_zero]|lia].
  - intros G0 c d r x l y n1 n2 Hc Hd [H1 H2]. destruct (vscale_ev fuel c d r Hc Hd) as (k & E & B).
    exists (map (fun y => x * y)%R l), k. split; [exact E|]. split; [split; [rewrite map_length; exact H1|rewrite inner_map; now rewrite H2]|].
    simpl in H1. rewrite H1 in B. lia.
  - intros G0 c d r l l' y1 y2 n1 n2 Hc Hd [H1 H2] [H3 H4]. destruct (vadd_ev fuel c d r Hc Hd) as (k & E & B).
    { exact (eq_trans H1 (eq_sym H3)). }
    eexists _, k. split; [exact E|]. split; [split|].
    + rewrite map_length, combine_length. simpl in *. rewrite H1, H3. apply Nat.min_id.
    + rewrite inner_zip by exact (eq_trans H1 (eq_sym H3)). simpl in *. now rewrite H2, H4.
    + simpl in H1. rewrite H1 in B. lia.
Qed.
End Correct.

(* the inputs, each with its one-hot array *)
Fixpoint vec_seed (n m k : nat) : env R (reals m) -> env R (map (D (vec n)) (reals m)) :=
  match m return env R (reals m) -> env R (map (D (vec n)) (reals m)) with
  | O => fun _ => tt
  | S m => fun x => ((fst x, one_hot n k), vec_seed n m (S k) (snd x))
  end.
Lemma vec_seed_ok : forall n (U : NormedModule R_AbsRing) (u0 h : U) gam m k f v, k + m <= n ->
  Derivs U u0 h (reals m) f v -> (forall i, i < m -> gam (k + i) = vector (flats (reals m) v) i) ->
  VE (vec n) U u0 h (@RepV n gam) (KV n) (reals m) f (vec_seed n m k (f u0)).
Proof.
  intros n U u0 h gam m. induction m; intros k f v Hk Hd Hg; simpl in *; auto. destruct Hd as [(l & Hl & Hv) Hd]. split.
  - split; [reflexivity|]. exists l. split; [exact Hl|]. split; [unfold one_hot; simpl; rewrite map_length; apply seq_length|].
    simpl. rewrite inner_one_hot by lia. specialize (Hg 0). rewrite Nat.add_0_r in Hg. rewrite Hg by lia. simpl. symmetry. exact Hv.
  - apply (IHm (S k) (fun u => snd (f u)) (snd v)); auto; [lia|]. intros i Hi. specialize (Hg (S i)). rewrite Nat.add_succ_r in Hg. simpl. rewrite Hg by lia. reflexivity.
Qed.
Theorem vector_correct : forall fuel n (e : tm (reals n) TR) (U : NormedModule R_AbsRing) (u0 h : U) f v y s,
  Derivs U u0 h (reals n) f v -> ev RO fuel e (f u0) = Some (y, s, 0) ->
  exists F dy g k,
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, s, 0)) /\ Deriv U u0 h TR F dy /\
    ev RO fuel (DT (vec n) e) (vec_seed n n 0 (f u0)) = Some ((y, g), k, 0) /\
    length g = n /\ inner (vector (flats (reals n) v)) g 0 = dy /\ k <= (401 + 60 * n) * s.
Proof.
  intros fuel n e U u0 h f v y s Hv He.
  pose proof (@vec_seed_ok n U u0 h (vector (flats (reals n) v)) n 0 f v (le_n _) Hv (fun i _ => eq_refl)) as HG.
  destruct (@vector_fundamental fuel n U u0 h _ _ _ e _ _ HG _ _ He) as (F & [y' g] & k & L & E & (Hy & l & Hl & H1 & H2) & Hk).
  exists F, (l h), g, k. split; [exact L|]. split; [exists l; auto|]. split; [|split; [exact H1|split; [exact H2|unfold KV in Hk; lia]]].
  simpl in Hy. subst y'. pose proof (@locally_singleton U u0 _ L) as X. simpl in X. rewrite He in X. inversion X. subst y. exact E.
Qed.
