(* Delta programs (K Fig. 10): the data type, its reading as a linear map, and backward evaluation with its cost.

   In the language a Delta is a tree (an ordinary data type), so the transformed programs of Monadic.v are ordinary
   programs.  Here its values are decoded to the inductive type [delta].  The heart is [eval_dot] (K Lemma 6): evaluating
   backwards with sensitivity x adds x times the value of the Delta to the inner product of accumulators and tangents. *)
From Coq Require Import Reals List Lia Lra ZArith.
Require Import Language Primitive Germ Macro.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

Inductive delta : Type :=
| DZero | DScale (r : R) (u : delta) | DAdd (u v : delta) | DVar (i : nat) | DLet (i : nat) (u v : delta).

(* ---- as a data type of the language --------------------------------------------------- *)
(* labels: Zero | Scale r | Add | Var i | Let i; the children are the sub-Deltas *)
Definition TLabel : ty := TSum TU (TSum TR (TSum TU (TSum TI TI))).
Definition TDelta : ty := TTree TLabel.
Definition dzero {G} : tm G TDelta := tnode (tinl (TSum TR (TSum TU (TSum TI TI))) (tunit G)) (tnil G TDelta).
Definition dscale {G} (c : tm G TR) (u : tm G TDelta) : tm G TDelta :=
  tnode (tinr TU (tinl (TSum TU (TSum TI TI)) c)) (tcons u (tnil G TDelta)).
Definition dadd {G} (u v : tm G TDelta) : tm G TDelta :=
  tnode (tinr TU (tinr TR (tinl (TSum TI TI) (tunit G)))) (tcons u (tcons v (tnil G TDelta))).
Definition dvar {G} (i : tm G TI) : tm G TDelta :=
  tnode (tinr TU (tinr TR (tinr TU (tinl TI i)))) (tnil G TDelta).
Fixpoint enc (u : delta) : den R TDelta :=
  match u with
  | DZero => Node (inl tt) []
  | DScale r u => Node (inr (inl r)) [enc u]
  | DAdd u v => Node (inr (inr (inl tt))) [enc u; enc v]
  | DVar i => Node (inr (inr (inr (inl (Z.of_nat i))))) []
  | DLet i u v => Node (inr (inr (inr (inr (Z.of_nat i))))) [enc u; enc v]
  end.
(* the tangent structure of the modes delta and monadic *)
Definition dlt : tangents :=
  {| tg := TDelta; tg_zero := fun _ => dzero; tg_scale := fun _ c u => dscale c u; tg_add := fun _ u v => dadd u v |}.

(* ---- forward reading: a Delta denotes a real, given one for every identifier -------------- *)
Definition upd {A} (m : nat -> A) (i : nat) (v : A) : nat -> A := fun j => if Nat.eqb j i then v else m j.
Fixpoint dden (u : delta) (e : nat -> R) : R :=
  match u with
  | DZero => 0
  | DScale r u => r * dden u e
  | DAdd u v => dden u e + dden v e
  | DVar i => e i
  | DLet i u v => dden v (upd e i (dden u e))
  end%R.
(* identifiers below n are free; a Let binds the next one *)
Fixpoint scoped (n : nat) (u : delta) : Prop :=
  match u with
  | DZero => True
  | DScale _ u => scoped n u
  | DAdd u v => scoped n u /\ scoped n v
  | DVar i => i < n
  | DLet i u v => i = n /\ scoped n u /\ scoped (S n) v
  end.
Fixpoint size (u : delta) : nat :=
  match u with
  | DZero | DVar _ => 1 | DScale _ u => S (size u) | DAdd u v | DLet _ u v => S (size u + size v)
  end.

(* ---- backward evaluation, with the number of constructors visited -------------------------- *)
Definition deltamap := nat -> option R.
Definition emptyMap : deltamap := fun _ => None.
Definition lookupOrZero (i : nat) (m : deltamap) : R := match m i with Some x => x | None => 0%R end.
Definition addDelta (i : nat) (x : R) (m : deltamap) : deltamap := upd m i (Some (lookupOrZero i m + x)%R).
Definition delete (i : nat) (m : deltamap) : deltamap := upd m i None.
Fixpoint eval (x : R) (u : delta) (m : deltamap) : deltamap * nat :=
  match u with
  | DZero => (m, 1)
  | DScale y u => let (m', k) := eval (x * y)%R u m in (m', S k)
  | DAdd u v => let (m1, k1) := eval x u m in let (m2, k2) := eval x v m1 in (m2, S (k1 + k2))
  | DVar i => (addDelta i x m, 1)
  | DLet i u v =>
      let (m1, k1) := eval x v m in
      match m1 i with
      | None => (m1, S k1)
      | Some y => let (m2, k2) := eval y u (delete i m1) in (m2, S (k1 + k2))
      end
  end.
Lemma eval_cost : forall u x m, snd (eval x u m) <= size u.
Proof.
  induction u; intros x m; simpl; auto.
  - specialize (IHu (x * r)%R m). destruct (eval (x * r) u m). simpl in *. lia.
  - specialize (IHu1 x m). destruct (eval x u1 m) as [m1 k1]. specialize (IHu2 x m1).
    destruct (eval x u2 m1). simpl in *. lia.
  - specialize (IHu2 x m). destruct (eval x u2 m) as [m1 k1]. destruct (m1 i) as [y|]; simpl in *; [|lia].
    specialize (IHu1 y (delete i m1)). destruct (eval y u1 (delete i m1)). simpl in *. lia.
Qed.

(* ---- the inner product of accumulators and tangents ------------------------------------------ *)
Fixpoint dot (n : nat) (m : deltamap) (e : nat -> R) : R :=
  match n with O => 0 | S k => dot k m e + lookupOrZero k m * e k end%R.
Lemma dot_out : forall n m m' e, (forall i, i < n -> m i = m' i) -> dot n m e = dot n m' e.
Proof. induction n; intros m m' e H; simpl; auto. unfold lookupOrZero. rewrite (IHn m m'), (H n); auto. Qed.
Lemma dot_ext : forall n m e e', (forall i, i < n -> e i = e' i) -> dot n m e = dot n m e'.
Proof. induction n; intros m e e' H; simpl; auto. rewrite (IHn m e e'), (H n); auto. Qed.
Lemma dot_add : forall n m i x e, i < n -> dot n (addDelta i x m) e = (dot n m e + x * e i)%R.
Proof.
  induction n; intros m i x e H; [lia|]. simpl. destruct (Nat.eq_dec i n) as [->|Hn].
  - rewrite (@dot_out n _ m). 2: { intros j Hj. unfold addDelta, upd. destruct (Nat.eqb_spec j n); [lia|auto]. }
    unfold lookupOrZero at 1, addDelta, upd. rewrite Nat.eqb_refl. ring.
  - rewrite IHn by lia. unfold lookupOrZero at 1, addDelta, upd. destruct (Nat.eqb_spec n i); [lia|].
    unfold lookupOrZero. ring.
Qed.
Lemma dot_empty : forall n e, dot n emptyMap e = 0%R.
Proof. induction n; intros e; simpl; auto. rewrite IHn. unfold lookupOrZero, emptyMap. ring. Qed.
Lemma dden_ext : forall u n e e', scoped n u -> (forall i, i < n -> e i = e' i) -> dden u e = dden u e'.
Proof.
  induction u; simpl; intros n e e' Hs H; auto.
  - f_equal. eauto.
  - destruct Hs. f_equal; eauto.
  - destruct Hs as (-> & H1 & H2). apply IHu2 with (n := S n); auto. intros j Hj. unfold upd.
    destruct (Nat.eqb_spec j n); [eauto|]. apply H. lia.
Qed.
Theorem eval_dot : forall u n x m e, scoped n u -> (forall j, n <= j -> m j = None) ->
  dot n (fst (eval x u m)) e = (dot n m e + x * dden u e)%R /\ forall j, n <= j -> fst (eval x u m) j = None.
Proof.
  induction u; simpl; intros n x m e Hs Hm.
  - split; auto. ring.
  - destruct (IHu n (x * r)%R m e Hs Hm) as [H1 H2]. destruct (eval (x * r) u m). simpl in *. rewrite H1. split; auto. ring.
  - destruct Hs as [Ha Hb]. destruct (IHu1 n x m e Ha Hm) as [H1 H2]. destruct (eval x u1 m) as [m1 k1]. simpl in *.
    destruct (IHu2 n x m1 e Hb H2) as [H3 H4]. destruct (eval x u2 m1). simpl in *. rewrite H3, H1. split; auto. ring.
  - split; [now apply dot_add|]. intros j Hj. unfold addDelta, upd. destruct (Nat.eqb_spec j i); [lia|auto].
  - destruct Hs as (-> & Ha & Hb).
    assert (forall j, S n <= j -> m j = None) as Hm' by (intros; apply Hm; lia).
    destruct (IHu2 (S n) x m (upd e n (dden u1 e)) Hb Hm') as [H1 H2].
    destruct (eval x u2 m) as [m1 k1]. simpl in *.
    assert (forall w, dot n w (upd e n (dden u1 e)) = dot n w e) as Hu.
    { intros w. apply dot_ext. intros j Hj. unfold upd. destruct (Nat.eqb_spec j n); [lia|auto]. }
    assert (upd e n (dden u1 e) n = dden u1 e) as Hn by (unfold upd; now rewrite Nat.eqb_refl).
    rewrite !Hu, Hn in H1.
    assert (lookupOrZero n m = 0%R) as Hz by (unfold lookupOrZero; rewrite Hm; auto). rewrite Hz in H1.
    unfold lookupOrZero in H1. destruct (m1 n) as [y|] eqn:Ey; simpl.
    + assert (forall j, n <= j -> delete n m1 j = None) as Hd.
      { intros j Hj. unfold delete, upd. destruct (Nat.eqb_spec j n); auto. apply H2. lia. }
      destruct (IHu1 n y (delete n m1) e Ha Hd) as [H3 H4]. destruct (eval y u1 (delete n m1)) as [m2 k2]. simpl in *.
      split; auto. rewrite H3. rewrite (@dot_out n _ m1); [|intros j Hj; unfold delete, upd; destruct (Nat.eqb_spec j n); [lia|auto]].
      lra.
    + split; [lra|]. intros j Hj. destruct (Nat.eq_dec j n) as [->|]; auto. apply H2. lia.
Qed.

(* ---- bindings, newest first; runDelta wraps a Delta in them (K Fig. 10) ------------------------ *)
Section Tape.
Variable base : nat.                 (* the first fresh identifier: the inputs are below *)
Definition tape := list delta.
Definition fresh (C : tape) : nat := base + length C.
Fixpoint tan (C : tape) (g : nat -> R) : nat -> R :=
  match C with nil => g | u :: C => upd (tan C g) (fresh C) (dden u (tan C g)) end.
Fixpoint wf (C : tape) : Prop :=
  match C with nil => True | u :: C => scoped (fresh C) u /\ wf C end.
Fixpoint nodes (C : tape) : nat := match C with nil => 0 | u :: C => S (size u + nodes C) end.
Fixpoint runDelta (C : tape) (u : delta) : delta :=
  match C with nil => u | v :: C => runDelta C (DLet (fresh C) v u) end.
Lemma runDelta_den : forall C u g, dden (runDelta C u) g = dden u (tan C g).
Proof. induction C as [|v C IH]; intros u g; simpl; auto. rewrite IH. reflexivity. Qed.
Lemma runDelta_scoped : forall C u, wf C -> scoped (fresh C) u -> scoped base (runDelta C u).
Proof.
  induction C as [|v C IH]; intros u Hw Hu; simpl.
  - unfold fresh in Hu. simpl in Hu. now rewrite Nat.add_0_r in Hu.
  - destruct Hw as [H1 H2]. apply IH; auto. simpl. split; auto. split; auto.
    replace (S (fresh C)) with (fresh (v :: C)) by (unfold fresh; simpl; lia). exact Hu.
Qed.
Lemma runDelta_size : forall C u, size (runDelta C u) = nodes C + size u.
Proof. induction C as [|v C IH]; intros u; simpl; auto. rewrite IH. simpl. lia. Qed.
Lemma tan_ext : forall L C g i, i < fresh C -> tan (L ++ C) g i = tan C g i.
Proof.
  induction L; intros C g i H; simpl; auto. unfold upd.
  destruct (Nat.eqb_spec i (fresh (L ++ C))) as [->|]; auto. unfold fresh in H. rewrite app_length in H. lia.
Qed.
Lemma scoped_mono : forall C L u, scoped (fresh C) u -> size u <= 1 -> scoped (fresh (L ++ C)) u.
Proof.
  intros C L u H Hs. destruct u; simpl in *; auto; try lia; try (destruct u; simpl in *; lia); try (destruct u1; simpl in *; lia).
  unfold fresh in *. rewrite app_length. lia.
Qed.
Lemma nodes_app : forall L C, nodes (L ++ C) = nodes L + nodes C.
Proof. induction L; intros C; simpl; auto. rewrite IHL. lia. Qed.
(* the bindings as a value of the language: pairs of identifier and Delta, with the next identifier *)
Fixpoint encB (C : tape) : list (Z * den R TDelta) :=
  match C with nil => nil | u :: C => (Z.of_nat (fresh C), enc u) :: encB C end.
Definition encS (C : tape) : Z * list (Z * den R TDelta) := (Z.of_nat (fresh C), encB C).
End Tape.
