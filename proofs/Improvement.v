(* What a rewrite rule owes: whenever its left side returns, its right side returns the same value, in no more steps, with no more kinks.
   Here is the definition, in one environment, and how the equation of a run is taken apart and put together. *)
From Coq Require Import Reals List Lia ZArith.
Require Import Language Primitive.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

(* s more steps at most *)
Definition improves_by (fuel s : nat) {G t} (e e' : tm G t) : Prop := forall r v n k, ev RO fuel e r = Some (v, n, k) ->
  exists n' k', ev RO fuel e' r = Some (v, n', k') /\ n' <= n + s /\ k' <= k.

Lemma bindinv : forall A B (m : M A) (f : A -> M B) b n k, bind m f = Some (b, n, k) ->
  exists a n1 k1 n2 k2, m = Some (a, n1, k1) /\ f a = Some (b, n2, k2) /\ n = n1 + n2 /\ k = k1 + k2.
Proof.
  intros A B [[[a n1] k1]|] f b n k; simpl; try discriminate. destruct (f a) as [[[b' n2] k2]|] eqn:E; try discriminate.
  intros H. inversion H; subst. exists a, n1, k1, n2, k2. auto.
Qed.
Lemma tickinv : forall A (m : M A) b n k, tick m = Some (b, n, k) -> exists n1, m = Some (b, n1, k) /\ n = S n1.
Proof. intros A [[[a n1] k1]|] b n k; simpl; try discriminate. intros H. inversion H; subst. eauto. Qed.
Lemma retinv : forall A (a b : A) n k, ret a = Some (b, n, k) -> a = b /\ n = 0 /\ k = 0.
Proof. intros A a b n k H. inversion H. auto. Qed.
Ltac crack := repeat match goal with
  | H : tick _ = Some (_, _, _) |- _ => apply tickinv in H as (? & H & ->)
  | H : bind _ _ = Some (_, _, _) |- _ => apply bindinv in H as (? & ? & ? & ? & ? & ? & H & -> & ->)
  | H : ret _ = Some (_, _, _) |- _ => apply retinv in H as (<- & -> & ->)
  end.
Lemma mseq_nth : forall A B (f : A -> M B) L l n k j v, mseq f L = Some (l, n, k) -> nth_error l j = Some v ->
  exists x n' k', nth_error L j = Some x /\ f x = Some (v, n', k') /\ n' <= n /\ k' <= k.
Proof.
  intros A B f. induction L as [|x L IH]; intros l n k j v H Hj; simpl in H.
  - inversion H; subst. destruct j; discriminate.
  - crack. destruct j as [|j]; simpl in *.
    + inversion Hj; subst. eexists _, _, _. split; [reflexivity|]. split; [eassumption|lia].
    + match goal with H : mseq f L = Some _ |- _ => destruct (IH _ _ _ _ _ H Hj) as (y & n' & k' & P1 & P2 & P3 & P4) end.
      exists y, n', k'. repeat split; auto; lia.
Qed.
Lemma mseq_comp : forall A B C (g : A -> M B) (f : B -> M C) L l1 l2 n1 k1 n2 k2, mseq g L = Some (l1, n1, k1) -> mseq f l1 = Some (l2, n2, k2) ->
  mseq (fun x => bind (g x) f) L = Some (l2, n1 + n2, k1 + k2).
Proof.
  intros A B C g f. induction L as [|x L IH]; intros l1 l2 n1 k1 n2 k2 H1 H2; simpl in *.
  - inversion H1; subst. inversion H2; subst. reflexivity.
  - crack. simpl in H2. crack. match goal with H : g x = _ |- _ => rewrite H end. simpl.
    match goal with H : f _ = Some _ |- _ => rewrite H end.
    match goal with H : mseq g L = _, H' : mseq f _ = _ |- _ => rewrite (IH _ _ _ _ _ _ H H') end.
    simpl. apply f_equal. apply f_equal2; [apply f_equal2; [reflexivity|lia]|lia].
Qed.
Lemma tick_bind : forall A B (m : M A) (f : A -> M B), bind (tick m) f = tick (bind m f).
Proof. intros A B [[[a n] k]|] f; simpl; auto. destruct (f a) as [[[b n'] k']|]; auto. Qed.

Lemma tick_late : forall A B (m : M A) (f g : A -> M B), (forall a, f a = g a) -> tick (bind m f) = bind m (fun a => tick (g a)).
Proof.
  intros A B [[[a n] k]|] f g H; simpl; auto. rewrite H. destruct (g a) as [[[b n'] k']|]; simpl; auto. now rewrite Nat.add_succ_r.
Qed.
Lemma tbind : forall A B (m : M A) (f : A -> M B) a b n1 n2 k1 k2, m = Some (a, n1, k1) -> f a = Some (b, n2, k2) ->
  tick (bind m f) = Some (b, S (n1 + n2), k1 + k2).
Proof. intros A B m f a b n1 n2 k1 k2 -> H. simpl. now rewrite H. Qed.
Ltac back := repeat match goal with H : ev RO _ _ _ = Some (_, _, _) |- _ => rewrite H; clear H end.
