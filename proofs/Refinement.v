(* Refinement: one run is at least as good as another.  [refines e e']: in related environments, whenever e returns, e' returns
   a related value, with steps related by rs and kinks by rk.  It is a logical relation, so every construct preserves it
   ([fundamental_le]); at data types related means equal.  With rs = rk = equality and more fuel on the right this is [fuel_mono];
   with [<=] it is what a rewrite rule must satisfy (Rewrite.v).  Holds over any number type. *)
From Coq Require Import List Lia ZArith.
Require Import Language Germ.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

Section Refinement.
Variable X : Type.
Variable O : ops X.
Variables rs rk : nat -> nat -> Prop.     (* right count, left count *)
Hypothesis rs_refl : forall n, rs n n.
Hypothesis rk_refl : forall n, rk n n.
Hypothesis rs_plus : forall a b c d, rs a b -> rs c d -> rs (a + c) (b + d).
Hypothesis rk_plus : forall a b c d, rk a b -> rk c d -> rk (a + c) (b + d).

Definition leM {A B} (P : A -> B -> Prop) (m : M A) (m' : M B) : Prop :=
  forall a n k, m = Some (a, n, k) -> exists b n' k', m' = Some (b, n', k') /\ P a b /\ rs n' n /\ rk k' k.
Fixpoint le (t : ty) : den X t -> den X t -> Prop :=
  match t return den X t -> den X t -> Prop with
  | TR => eq | TU => eq | TI => eq
  | TProd a b => fun x y => le a (fst x) (fst y) /\ le b (snd x) (snd y)
  | TSum a b => fun x y => match x, y with
      | inl x, inl y => le a x y | inr x, inr y => le b x y | _, _ => False end
  | TFun a b => fun f g => forall x y, le a x y -> leM (le b) (f x) (g y)
  | TArr a => Forall2 (le a)
  | TTree a => tree2 (le a)
  end.
Fixpoint leE (G : list ty) : env X G -> env X G -> Prop :=
  match G return env X G -> env X G -> Prop with
  | nil => fun _ _ => True
  | t :: G => fun x y => le t (fst x) (fst y) /\ leE G (snd x) (snd y)
  end.
Lemma le_ret : forall A B (P : A -> B -> Prop) a b, P a b -> leM P (ret a) (ret b).
Proof. intros A B P a b H x n k E. inversion E; subst. exists b, 0, 0. auto. Qed.
Lemma le_tick : forall A B (P : A -> B -> Prop) m m', leM P m m' -> leM P (tick m) (tick m').
Proof.
  intros A B P m m' H a n k E. destruct m as [[[x n1] k1]|]; try discriminate. inversion E; subst.
  destruct (H _ _ _ eq_refl) as (b & n' & k' & -> & Hb & H1 & H2). exists b, (S n'), k'. repeat split; auto.
  apply (rs_plus (rs_refl 1) H1).
Qed.
Lemma le_bind : forall A B A' B' (P : A -> B -> Prop) (Q : A' -> B' -> Prop) m m' f g,
  leM P m m' -> (forall x y, P x y -> leM Q (f x) (g y)) -> leM Q (bind m f) (bind m' g).
Proof.
  intros A B A' B' P Q m m' f g H HF a n k E. destruct m as [[[x n1] k1]|]; try discriminate. simpl in E.
  destruct (f x) as [[[a' n2] k2]|] eqn:Ef; try discriminate. inversion E; subst.
  destruct (H _ _ _ eq_refl) as (y & n1' & k1' & -> & Hy & H1 & H2). destruct (HF _ _ Hy _ _ _ Ef) as (b & n2' & k2' & Eb & Hb & H3 & H4).
  exists b, (n1' + n2'), (k1' + k2'). simpl. rewrite Eb. auto.
Qed.
Lemma le_same : forall A (m : M A), leM eq m m.
Proof. intros A m a n k E. exists a, n, k. auto. Qed.
Lemma le_look : forall t G (m : mem t G) x y, leE G x y -> le t (look m x) (look m y).
Proof. induction m; simpl; intros x y [H1 H2]; auto. Qed.
Lemma le_iter : forall A B (P : A -> B -> Prop) n f g z z', (forall i x y, P x y -> leM P (f i x) (g i y)) -> P z z' ->
  leM P (miter n f z) (miter n g z').
Proof.
  induction n; intros f g z z' H Hz; simpl; [apply le_ret, Hz|].
  eapply le_bind; [apply IHn; eauto|]. intros x y Hxy. apply le_tick, H, Hxy.
Qed.
Lemma le_seq : forall A B A' B' (P : A -> B -> Prop) (Q : A' -> B' -> Prop) f g l l', (forall x y, P x y -> leM Q (f x) (g y)) -> Forall2 P l l' ->
  leM (Forall2 Q) (mseq f l) (mseq g l').
Proof.
  intros A B A' B' P Q f g l l' H HF. induction HF; simpl; [apply le_ret; constructor|].
  eapply le_bind; [apply H; eassumption|]. intros a b Hab. eapply le_bind; [exact IHHF|]. intros r s Hr. apply le_ret. constructor; auto.
Qed.
Lemma le_fold : forall A B A' B' (P : A -> B -> Prop) (Q : A' -> B' -> Prop) f g l l', (forall x y z w, P x y -> Q z w -> leM Q (f x z) (g y w)) ->
  Forall2 P l l' -> forall z w, Q z w -> leM Q (mfold f l z) (mfold g l' w).
Proof.
  intros A B A' B' P Q f g l l' H HF. induction HF; intros z w Hz; simpl; [apply le_ret, Hz|].
  eapply le_bind; [apply le_tick, H; eauto|]. intros z1 w1 H1. apply IHHF, H1.
Qed.
Lemma le_kleene : forall a b k k' F G, k <= k' ->
  (forall f g x y, le (TFun a b) f g -> le a x y -> leM (le b) (F f x) (G g y)) ->
  le (TFun a b) (kleene k F) (kleene k' G).
Proof.
  induction k; intros k' F G Hk H x y Hxy; simpl.
  - intros a0 n k E. discriminate.
  - destruct k'; [lia|]. simpl. apply H; auto. apply IHk; auto. lia.
Qed.
Lemma le_get : forall A B (P : A -> B -> Prop) l l' i, Forall2 P l l' -> leM P (mget l i) (mget l' i).
Proof.
  intros A B P l l' i H. unfold mget. destruct (i <? 0)%Z; [intros a n k E; discriminate|].
  destruct (nth_error l (Z.to_nat i)) as [a|] eqn:Ea; [|intros b n k E; discriminate].
  destruct (Forall2_nth _ H Ea) as (b & -> & Hb). apply le_ret, Hb.
Qed.
Lemma le_zip : forall A B A' B' (P : A -> B -> Prop) (Q : A' -> B' -> Prop) l m, Forall2 P l m -> forall l' m', Forall2 Q l' m' ->
  leM (Forall2 (fun x y => P (fst x) (fst y) /\ Q (snd x) (snd y))) (mzip l l') (mzip m m').
Proof.
  intros A B A' B' P Q l m H. induction H; intros l0 m0 H'; destruct H'; simpl; try (intros a n k E; discriminate).
  - apply le_ret. constructor.
  - eapply le_bind; [apply le_tick, IHForall2, H'|]. intros r s Hr. apply le_ret. constructor; auto.
Qed.
Lemma le_op0 : forall a (o : op0 a), le a (op0v X o) (op0v X o).
Proof. intros a o. destruct o; simpl; auto. Qed.
Lemma ints_eq : forall l l' : list Z, Forall2 eq l l' -> l = l'.
Proof. induction 1; congruence. Qed.
Lemma le_op1 : forall a b (o : op1 a b) x y, le a x y -> leM (le b) (op1v X o x) (op1v X o y).
Proof.
  intros a b o x y H. destruct o; simpl in *; try (apply le_ret; try apply H; auto).
  - simpl. f_equal. apply (Forall2_len H).
  - destruct H. apply le_ret. simpl. auto.
Qed.
Lemma le_op2 : forall a b c (o : op2 a b c) x y x' y', le a x y -> le b x' y' -> leM (le c) (op2v X o x x') (op2v X o y y').
Proof.
  intros a b c o x y x' y' H H'. destruct o; simpl in *.
  - apply le_ret. simpl. auto.
  - subst. apply le_get, H.
  - apply le_ret. constructor; auto.
  - apply le_ret. simpl. apply Forall2_app; auto.
  - apply le_ret. constructor; auto.
  - apply (le_zip H H').
  - apply ints_eq in H'. subst. eapply le_seq with (P := eq); [|clear; induction y'; constructor; auto].
    intros i j ->. apply le_tick, le_get, H.
  - subst. apply le_same.
  - subst. intros v n k E. inversion E; subst. exists (boolv (decide c (y ?= y')%Z)), 0, 0. split; auto. split; auto. unfold boolv. destruct (decide c (y ?= y')%Z); reflexivity.
Qed.
Lemma le_op3 : forall a b c d (o : op3 a b c d) x y x' y' x'' y'', le a x y -> le b x' y' -> le c x'' y'' ->
  leM (le d) (op3v X o x x' x'') (op3v X o y y' y'').
Proof.
  intros a b c d o x y x' y' x'' y'' H H' H''. destruct o; simpl in *. subst. unfold mset.
  eapply le_bind; [apply le_get, H|]. intros p q _. apply le_ret. simpl. apply Forall2_update; auto.
Qed.
Lemma reals_eq : forall l l' : list X, Forall2 eq l l' -> l = l'.
Proof. induction 1; congruence. Qed.

Theorem fundamental_le : forall k k', k <= k' -> forall G t (e : tm G t) r r', leE G r r' ->
  leM (le t) (ev O k e r) (ev O k' e r').
Proof.
  intros k k' Hk. induction e; intros r1 r2 Hr; cbn [ev]; apply le_tick.
  - apply le_ret, le_look, Hr.
  - apply le_ret. intros x y Hxy. apply IHe. split; auto.
  - eapply le_bind; [apply IHe1, Hr|]. intros f g Hf. eapply le_bind; [apply IHe2, Hr|]. intros x y Hx. apply Hf, Hx.
  - eapply le_bind; [apply IHe1, Hr|]. intros x y Hx. apply IHe2. split; auto.
  - apply le_ret. apply le_kleene; auto. intros f g x y Hf Hx. apply IHe. split; [exact Hx|split; [exact Hf|exact Hr]].
  - eapply le_bind; [apply IHe1, Hr|]. intros [x|x] [y|y] Hx; simpl in Hx; try contradiction.
    + apply IHe2. split; auto.
    + apply IHe3. split; auto.
  - apply le_ret, le_op0.
  - eapply le_bind; [apply IHe, Hr|]. intros x y Hx. apply le_op1, Hx.
  - eapply le_bind; [apply IHe1, Hr|]. intros x y Hx. eapply le_bind; [apply IHe2, Hr|]. intros u v Hu. apply le_op2; auto.
  - eapply le_bind; [apply IHe1, Hr|]. intros x y Hx. eapply le_bind; [apply IHe2, Hr|]. intros u v Hu.
    eapply le_bind; [apply IHe3, Hr|]. intros p q Hp. apply le_op3; auto.
  - eapply le_bind; [apply IHe1, Hr|]. intros x y ->. eapply le_bind; [apply IHe2, Hr|]. intros u v Hu.
    apply le_iter; auto. intros i p q Hp. apply IHe3. split; [exact Hp|split; [reflexivity|exact Hr]].
  - eapply le_bind; [apply IHe1, Hr|]. intros x y ->. eapply le_seq with (P := eq).
    + intros i j ->. apply le_tick, IHe2. split; [reflexivity|exact Hr].
    + induction (seq 0 (Z.to_nat y)); constructor; auto.
  - eapply le_bind; [apply IHe2, Hr|]. intros x y Hx. eapply le_seq; [|exact Hx]. intros p q Hp. apply le_tick, IHe1. split; auto.
  - eapply le_bind; [apply IHe2, Hr|]. intros u v Hu. eapply le_bind; [apply IHe3, Hr|]. intros x y Hx.
    eapply le_fold; [|exact Hx|exact Hu]. intros p q w z0 Hp Hw. apply IHe1. split; [exact Hp|split; [exact Hw|exact Hr]].
  - apply le_ret. reflexivity.
  - eapply le_bind; [apply IHe, Hr|]. intros x y ->. apply le_same.
  - eapply le_bind; [apply IHe1, Hr|]. intros x y ->. eapply le_bind; [apply IHe2, Hr|]. intros u v ->. apply le_same.
  - eapply le_bind; [apply IHe1, Hr|]. intros x y ->. eapply le_bind; [apply IHe2, Hr|]. intros u v ->. apply le_same.
  - eapply le_bind; [apply IHe1, Hr|]. intros x y ->. eapply le_bind; [apply IHe2, Hr|]. intros u v ->.
    intros a n0 k0 E. exists a, n0, k0. split; auto. split; auto. inversion E. unfold boolv. destruct (decide c (o_cmp O y v)); reflexivity.
  - eapply le_bind; [apply IHe, Hr|]. intros x y ->. apply le_same.
  - eapply le_bind; [apply IHe, Hr|]. intros x y ->. apply le_same.
  - eapply le_bind; [apply IHe, Hr|]. intros x y Hx. apply reals_eq in Hx. subst. apply le_same.
  - eapply le_bind; [apply IHe1, Hr|]. intros x y Hx. eapply le_bind; [apply IHe2, Hr|]. intros u v Hu.
    apply reals_eq in Hx. apply reals_eq in Hu. subst. apply le_same.
Qed.
End Refinement.

(* fuel only matters for definedness: more of it changes neither value, nor steps, nor kinks *)
Theorem fuel_mono : forall X (O : ops X) k k' (e : tm nil TR) y n s, k <= k' ->
  ev O k e tt = Some (y, n, s) -> ev O k' e tt = Some (y, n, s).
Proof.
  intros X O k k' e y n s Hk E.
  destruct (@fundamental_le X O eq eq (@eq_refl nat) (@eq_refl nat) (fun a b c d H1 H2 => f_equal2 Nat.add H1 H2) (fun a b c d H1 H2 => f_equal2 Nat.add H1 H2)
              k k' Hk nil TR e tt tt I _ _ _ E) as (b & n' & k0 & Eb & Hb & -> & ->).
  simpl in Hb. now subst.
Qed.
