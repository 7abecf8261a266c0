(* Bulk array operations that are programs of the language rather than constructs: matrix product and scatter-add.  Being programs, every
   theorem covers them; here they are shown to mean what their names say.  The product uses [dot], whose reverse rule makes one binding
   for each element of the result. *)
From Coq Require Import Reals List Lia Lra ZArith.
Require Import Language Primitive Germ Macro.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Arguments Nat.mul : simpl never.

Notation TMat := (TArr (TArr TR)).
(* the second matrix is given by its columns *)
Definition matvec {G} (a : tm G TMat) (x : tm G (TArr TR)) : tm G (TArr TR) := let2 a x (tmap (tdot v0 v1) v1).
Definition matmul {G} (a b : tm G TMat) : tm G TMat := let2 a b (tmap (tmap (tdot v1 v0) v1) v1).
(* base, with each update added at its index, in order *)
Definition scatter_add {G} (base : tm G (TArr TR)) (is : tm G (TArr TI)) (us : tm G (TArr TR)) : tm G (TArr TR) :=
  tfold (top3 (OSet TR) v1 (tfst v0) (tadd (tget v1 (tfst v0)) (tsnd v0))) base (tzip is us).

Definition dotR (x y : list R) : R := fold_left Rplus (map (fun p => fst p * snd p)%R (combine x y)) 0%R.
Section Meaning.
Variable fuel : nat.
Notation evR e := (ev RO fuel e).
Lemma mdot_eq : forall x y, length x = length y -> mdot RO x y = Some (dotR x y, length x + (length x + 0), 0).
Proof.
  intros x y H. unfold mdot. rewrite mzip_eq by exact H. cbn [bind]. unfold msum, ticks, ret, sumX.
  rewrite map_length, combine_length, <- H, Nat.min_id. reflexivity.
Qed.
Lemma mseq_value : forall A B (f : A -> M B) (g : A -> B) l, (forall a, In a l -> exists n, f a = Some (g a, n, 0)) ->
  exists n, mseq f l = Some (map g l, n, 0).
Proof.
  intros A B f g. induction l as [|a l IH]; intros H; simpl; [eexists; reflexivity|].
  destruct (H a) as (n1 & E1); [now left|]. destruct IH as (n2 & E2); [intros b Hb; apply H; now right|].
  rewrite E1. cbn [bind]. rewrite E2. eexists. reflexivity.
Qed.
Theorem matvec_value : forall G (a : tm G TMat) (x : tm G (TArr TR)) r rows v n1 n2, evR a r = Some (rows, n1, 0) -> evR x r = Some (v, n2, 0) ->
  (forall row, In row rows -> length row = length v) ->
  exists n, evR (matvec a x) r = Some (map (fun row => dotR row v) rows, n, 0).
Proof.
  intros G a x r rows v n1 n2 H1 H2 Hl. unfold matvec. rewrite let2_ev, H1, H2. cbn [bind ev look v0 v1 fst snd tick ret].
  destruct (@mseq_value _ _ (fun row : list R => tick (tick (bind (Some (row, 1, 0)) (fun l => bind (Some (v, 1, 0)) (fun l' => mdot RO l l'))))) (fun row => dotR row v) rows) as (n & E).
  - intros row Hr. cbn [bind]. rewrite mdot_eq by auto. eexists. reflexivity.
  - eexists. refine (eq_trans (f_equal (ticks 4) (f_equal (fun m => bind (Some (rows, n1, 0)) (fun _ => bind (Some (v, n2, 0)) (fun _ => tick (bind (Some (rows, 1, 0)) (fun _ => m))))) E)) _). reflexivity.
Qed.
Theorem matmul_value : forall G (a b : tm G TMat) r rows cols n1 n2, evR a r = Some (rows, n1, 0) -> evR b r = Some (cols, n2, 0) ->
  (forall row col, In row rows -> In col cols -> length row = length col) ->
  exists n, evR (matmul a b) r = Some (map (fun row => map (fun col => dotR row col) cols) rows, n, 0).
Proof.
  intros G a b r rows cols n1 n2 H1 H2 Hl. unfold matmul. rewrite let2_ev, H1, H2. cbn [bind ev look v0 v1 fst snd tick ret].
  destruct (@mseq_value _ _ (fun row : list R => tick (tick (bind (Some (cols, 1, 0)) (fun cs => mseq (fun col : list R =>
      tick (tick (bind (Some (row, 1, 0)) (fun l => bind (Some (col, 1, 0)) (fun l' => mdot RO l l'))))) cs)))) (fun row => map (fun col => dotR row col) cols) rows) as (n & E).
  - intros row Hr. destruct (@mseq_value _ _ (fun col : list R => tick (tick (bind (Some (row, 1, 0)) (fun l => bind (Some (col, 1, 0)) (fun l' => mdot RO l l'))))) (fun col => dotR row col) cols) as (m & Em).
    + intros col Hc. cbn [bind]. rewrite mdot_eq by auto. eexists. reflexivity.
    + cbn [bind] in *. rewrite Em. eexists. reflexivity.
  - eexists. refine (eq_trans (f_equal (ticks 4) (f_equal (fun m => bind (Some (rows, n1, 0)) (fun _ => bind (Some (cols, n2, 0)) (fun _ => tick (bind (Some (rows, 1, 0)) (fun _ => m))))) E)) _). reflexivity.
Qed.
(* the meaning of scatter-add, one update at a time *)
Fixpoint scatterR (l : list R) (is : list Z) (us : list R) : list R :=
  match is, us with i :: is, u :: us => scatterR (update l (Z.to_nat i) (nth (Z.to_nat i) l 0 + u)%R) is us | _, _ => l end.
Lemma update_len : forall A (l : list A) i v, length (update l i v) = length l.
Proof. induction l; intros [|i] v; simpl; auto. Qed.
Theorem scatter_value : forall G (b : tm G (TArr TR)) (i : tm G (TArr TI)) (u : tm G (TArr TR)) r l is us n1 n2 n3,
  evR b r = Some (l, n1, 0) -> evR i r = Some (is, n2, 0) -> evR u r = Some (us, n3, 0) -> length is = length us ->
  (forall k, In k is -> (0 <= k < Z.of_nat (length l))%Z) ->
  exists n, evR (scatter_add b i u) r = Some (scatterR l is us, n, 0).
Proof.
  intros G b i u r l is us n1 n2 n3 H1 H2 H3 Hl Hk. unfold scatter_add.
  set (J := fun (p : Z * R) (acc : list R) => evR (top3 (OSet TR) v1 (tfst v0) (tadd (tget v1 (tfst v0)) (tsnd v0))) ((p, (acc, r)) : env R (TProd TI TR :: TArr TR :: G))).
  assert (exists n, mfold J (combine is us) l = Some (scatterR l is us, n, 0)) as (n & E).
  { clear H1 H2 H3. revert us l Hl Hk. induction is as [|k is IH]; intros [|w us] l Hl Hk; simpl in *; try discriminate; [eexists; reflexivity|].
    assert (0 <= k < Z.of_nat (length l))%Z as Hb by (apply Hk; now left).
    assert (nth_error l (Z.to_nat k) = Some (nth (Z.to_nat k) l 0%R)) as Hn by (apply nth_error_nth'; lia).
    assert (exists m, J (k, w) l = Some (update l (Z.to_nat k) (nth (Z.to_nat k) l 0 + w)%R, m, 0)) as (m & Em).
    { unfold J. simpl. unfold mset, mget. replace (k <? 0)%Z with false by lia. simpl. rewrite !Hn. simpl. rewrite ?Hn. simpl. eexists. reflexivity. }
    destruct (IH us (update l (Z.to_nat k) (nth (Z.to_nat k) l 0 + w)%R)) as (n & E); [lia|intros q Hq; rewrite update_len; apply Hk; now right|].
    rewrite Em. cbn [bind tick]. rewrite E. eexists. reflexivity. }
  eexists. eapply fold_ev; [exact H1| |exact E]. cbn [ev op2v]. rewrite H2, H3. cbn [bind]. rewrite mzip_eq by exact Hl. reflexivity.
Qed.
End Meaning.
