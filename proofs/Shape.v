(* The wrapper of reverse mode in the shape of the input (K Fig. 15, [lookup]): the partial derivatives are read back into a value that
   has the constructors and integers of the input and a partial derivative in the place of each real. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Delta Monadic Reverse.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

(* K's lookup: the accumulated sensitivity of each identifier that initVars gave out *)
Fixpoint lookup (m : deltamap) (t : ty) : den R (MD t) -> den R t :=
  match t return den R (MD t) -> den R t with
  | TR => fun g => match dec (snd g) with DVar i => lookupOrZero i m | _ => 0%R end
  | TU | TI => fun g => g
  | TProd a b => fun g => (lookup m a (fst g), lookup m b (snd g))
  | TSum a b => fun g => match g with inl x => inl (lookup m a x) | inr y => inr (lookup m b y) end
  | TFun a b => fun _ _ => None
  | TArr a => map (lookup m a)
  | TTree a => tree_map (lookup m a)
  end.
Fixpoint lookups (m : deltamap) (G : list ty) : env R (map MD G) -> env R G :=
  match G return env R (map MD G) -> env R G with
  | nil => fun g => g | t :: G => fun g => (lookup m t (fst g), lookups m G (snd g)) end.

(* a value without its reals *)
Fixpoint shape (t : ty) : den R t -> den R t :=
  match t return den R t -> den R t with
  | TR => fun _ => 0%R
  | TU | TI => fun x => x
  | TProd a b => fun x => (shape a (fst x), shape b (snd x))
  | TSum a b => fun x => match x with inl y => inl (shape a y) | inr y => inr (shape b y) end
  | TFun a b => fun x => x
  | TArr a => map (shape a)
  | TTree a => tree_map (shape a)
  end.
Fixpoint shapes (G : list ty) : env R G -> env R G :=
  match G return env R G -> env R G with nil => fun x => x | t :: G => fun x => (shape t (fst x), shapes G (snd x)) end.

Definition entries (m : deltamap) (k n : nat) : list R := map (fun i => lookupOrZero i m) (seq k n).
Lemma entries_app : forall m k n n', entries m k (n + n') = entries m k n ++ entries m (k + n) n'.
Proof. intros. unfold entries. now rewrite seq_app, map_app. Qed.

(* what initVars followed by lookup does to a part *)
Definition restores {A B} (m : deltamap) (num : A -> nat -> B * nat) (back : B -> A) (fl : A -> list R) (sh : A -> A) : Prop :=
  forall x k, snd (num x k) = k + length (fl x) /\
    fl (back (fst (num x k))) = entries m k (length (fl x)) /\ sh (back (fst (num x k))) = sh x.
Lemma restores_list : forall A B m (num : A -> nat -> B * nat) back fl sh, restores m num back fl sh ->
  restores m (number_list num) (map back) (flat_map fl) (map sh).
Proof.
  intros A B m num back fl sh H. intros l. induction l as [|x l IH]; intros k; simpl.
  - split; [lia|split; reflexivity].
  - destruct (H x k) as (H1 & H2 & H3). destruct (num x k) as [y k1]. simpl in *. subst k1.
    destruct (IH (k + length (fl x))) as (I1 & I2 & I3). destruct (number_list num l (k + length (fl x))) as [ys k2]. simpl in *. subst k2.
    rewrite app_length, entries_app. split; [lia|split; [now rewrite H2, I2|now rewrite H3, I3]].
Qed.
Lemma restores_tree : forall A B m (num : A -> nat -> B * nat) back fl sh, restores m num back fl sh ->
  restores m (number_tree num) (tree_map back) (tree_flat fl) (tree_map sh).
Proof.
  intros A B m num back fl sh H. intros t. induction t as [a ts IH] using tree_ind'. intros k. simpl.
  destruct (H a k) as (H1 & H2 & H3). destruct (num a k) as [b k1]. simpl in *. subst k1.
  assert (forall k, snd (number_list (number_tree num) ts k) = k + length (flat_map (tree_flat fl) ts) /\
    flat_map (tree_flat fl) (map (tree_map back) (fst (number_list (number_tree num) ts k))) = entries m k (length (flat_map (tree_flat fl) ts)) /\
    map (tree_map sh) (map (tree_map back) (fst (number_list (number_tree num) ts k))) = map (tree_map sh) ts) as HL.
  { clear - IH. induction IH as [|t ts Ht _ IHl]; intros k; simpl.
    - split; [lia|split; reflexivity].
    - destruct (Ht k) as (H1 & H2 & H3). destruct (number_tree num t k) as [y k1]. simpl in *. subst k1.
      destruct (IHl (k + length (tree_flat fl t))) as (I1 & I2 & I3).
      destruct (number_list (number_tree num) ts (k + length (tree_flat fl t))) as [ys k2]. simpl in *. subst k2.
      rewrite app_length, entries_app. split; [lia|split; [now rewrite H2, I2|now rewrite H3, I3]]. }
  destruct (HL (k + length (fl a))) as (I1 & I2 & I3).
  destruct (number_list (number_tree num) ts (k + length (fl a))) as [us k2]. simpl in *. subst k2.
  rewrite app_length, entries_app. split; [lia|split; [now rewrite H2, I2|now rewrite H3, I3]].
Qed.
Lemma restores_ok : forall m t, data t = true -> restores m (initVars t) (lookup m t) (flat t) (shape t).
Proof.
  intros m. induction t; simpl; intros Ht; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]).
  - intros x k. simpl. rewrite Nat2Z.id. split; [lia|split; reflexivity].
  - intros x k. simpl. split; [lia|split; reflexivity].
  - intros x k. simpl. split; [lia|split; reflexivity].
  - intros x k. destruct (IHt1 Ht1 (fst x) k) as (H1 & H2 & H3).
    destruct (IHt2 Ht2 (snd x) (snd (initVars t1 (fst x) k))) as (I1 & I2 & I3). simpl. rewrite app_length, entries_app.
    split; [refine (eq_trans I1 _); rewrite H1; exact (eq_sym (Nat.add_assoc _ _ _))|split; [|exact (f_equal2 pair H3 I3)]].
    refine (eq_trans (f_equal2 (@app R) H2 I2) _). rewrite H1. reflexivity.
  - intros [x|x] k; simpl.
    + destruct (IHt1 Ht1 x k) as (H1 & H2 & H3). split; [exact H1|split; [exact H2|exact (f_equal inl H3)]].
    + destruct (IHt2 Ht2 x k) as (H1 & H2 & H3). split; [exact H1|split; [exact H2|exact (f_equal inr H3)]].
  - apply restores_list, IHt, Ht.
  - apply restores_tree, IHt, Ht.
Qed.
Lemma restores_all : forall m G, datas G = true -> restores m (initAll G) (lookups m G) (flats G) (shapes G).
Proof.
  intros m. induction G as [|t G IH]; simpl; intros HG x k; simpl.
  - destruct x. split; [lia|split; reflexivity].
  - apply andb_prop in HG as [H1 H2]. destruct (restores_ok m t H1 (fst x) k) as (A1 & A2 & A3).
    destruct (IH H2 (snd x) (snd (initVars t (fst x) k))) as (B1 & B2 & B3). rewrite app_length, entries_app.
    split; [refine (eq_trans B1 _); rewrite A1; exact (eq_sym (Nat.add_assoc _ _ _))|split; [|exact (f_equal2 pair A3 B3)]].
    refine (eq_trans (f_equal2 (@app R) A2 B2) _). rewrite A1. reflexivity.
Qed.

(* ---- the inner product by position is the inner product of the values -------------------------- *)
Lemma weighted_snoc : forall a b x y, length a = length b -> weighted (a ++ [x]) (b ++ [y]) = (weighted a b + x * y)%R.
Proof.
  induction a as [|w a IH]; intros [|d b] x y H; simpl in *; try discriminate; [ring|]. rewrite IH by lia. ring.
Qed.
Lemma dot_entries : forall m l, dot (length l) m (vector l) = weighted (entries m 0 (length l)) l.
Proof.
  intros m l. induction l as [|y l IH] using rev_ind; auto. rewrite app_length. cbn [length]. rewrite Nat.add_1_r. cbn [dot].
  unfold entries in *. rewrite seq_S, map_app. cbn [map Nat.add]. rewrite weighted_snoc by (now rewrite map_length, seq_length). rewrite <- IH. f_equal.
  - apply dot_ext. intros i Hi. unfold vector. now rewrite app_nth1.
  - f_equal. unfold vector. rewrite app_nth2 by lia. now rewrite Nat.sub_diag.
Qed.

(* the wrapper of K Fig. 15: value and cotangent of the input, for weights of the outputs *)
Definition pullback (fuel : nat) {G t} (e : tm G t) (x : env R G) (ws : list R) : option (den R t * env R G * nat) :=
  match reverse fuel e x ws with
  | Some (y, m, cost) => Some (y, lookups m G (fst (initAll G x 0)), cost)
  | None => None
  end.
Theorem pullback_correct : forall fuel (U : NormedModule R_AbsRing) (u0 h : U) G t (e : tm G t) f v y n ws,
  datas G = true -> data t = true -> Derivs U u0 h G f v ->
  ev RO fuel e (f u0) = Some (y, n, 0) ->
  exists F dy dx cost,
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, n, 0)) /\
    Deriv U u0 h t F dy /\
    pullback fuel e (f u0) ws = Some (y, dx, cost) /\
    shapes G dx = shapes G (f u0) /\
    weighted (flats G dx) (flats G v) = weighted ws (flat t dy) /\
    cost <= 508 * n + 3 * length (flat t dy) + 1.
Proof.
  intros fuel U u0 h G t e f v y n ws HG Ht HD He.
  destruct (@reverse_correct fuel U u0 h G t e f v y n ws HG Ht HD He) as (F & dy & m & cost & L & HF & Hr & Hd & Hc).
  destruct (restores_all m G HG (f u0) 0) as (R1 & R2 & R3).
  assert (length (flats G (f u0)) = length (flats G v)) as Hl.
  { destruct (@initAll_ok (length (flats G v)) U u0 h (vector (flats G v)) G HG f v 0 HD) as [_ H2]; [|lia|].
    - intros i Hi. reflexivity.
    - rewrite R1 in H2. exact H2. }
  exists F, dy, (lookups m G (fst (initAll G (f u0) 0))), cost. unfold pullback. rewrite Hr.
  split; [exact L|split; [exact HF|split; [reflexivity|split; [exact R3|split; [|exact Hc]]]]].
  rewrite R2, Hl, <- dot_entries. exact Hd.
Qed.
