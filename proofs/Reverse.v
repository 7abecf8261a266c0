(* The reverse-mode wrapper (K Fig. 11, 15): number the reals of the input, run the monadic program, wrap the weighted
   outputs in the bindings ([runDelta]), evaluate backwards once, read the partial derivatives off the map.

   [reverse_correct] is K Theorem 3/5 with its cost; [gradient_frechet] says that one sweep gives the total
   derivative; [adjoint] is K Lemma 1.  Inputs and outputs may be any data: their reals are taken in order ([flat]). *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Forward Delta Substitution Monadic.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Arguments Nat.mul : simpl never.

(* ---- the reals of a value, in order -------------------------------------------------------- *)
Section Flat.
Variables A B : Type.
Variable f : A -> list B.
Fixpoint tree_flat (t : tree A) : list B := match t with Node a ts => f a ++ flat_map tree_flat ts end.
End Flat.
Fixpoint flat (t : ty) : den R t -> list R :=
  match t return den R t -> list R with
  | TR => fun x => [x]
  | TU | TI => fun _ => []
  | TProd a b => fun x => flat a (fst x) ++ flat b (snd x)
  | TSum a b => fun x => match x with inl y => flat a y | inr y => flat b y end
  | TFun a b => fun _ => []
  | TArr a => flat_map (flat a)
  | TTree a => tree_flat (flat a)
  end.
Fixpoint flats (G : list ty) : env R G -> list R :=
  match G return env R G -> list R with nil => fun _ => [] | t :: G => fun x => flat t (fst x) ++ flats G (snd x) end.

(* ---- initVars: every real with the identifier of its position -------------------------------- *)
Definition number_list {A B} (f : A -> nat -> B * nat) := fix go (l : list A) (k : nat) : list B * nat :=
  match l with nil => (nil, k) | x :: l => let (y, k1) := f x k in let (ys, k2) := go l k1 in (y :: ys, k2) end.
Fixpoint number_tree {A B} (f : A -> nat -> B * nat) (t : tree A) (k : nat) : tree B * nat :=
  match t with Node a ts => let (b, k1) := f a k in let (us, k2) := number_list (number_tree f) ts k1 in (Node b us, k2) end.
Fixpoint initVars (t : ty) : den R t -> nat -> den R (MD t) * nat :=
  match t return den R t -> nat -> den R (MD t) * nat with
  | TR => fun x k => ((x, enc (DVar k)), S k)
  | TU | TI => fun x k => (x, k)
  | TProd a b => fun x k => let p := initVars a (fst x) k in let q := initVars b (snd x) (snd p) in ((fst p, fst q), snd q)
  | TSum a b => fun x k =>
      match x with
      | inl y => let p := initVars a y k in (inl (fst p), snd p)
      | inr y => let p := initVars b y k in (inr (fst p), snd p)
      end
  | TFun a b => fun _ k => (fun _ => None, k)
  | TArr a => number_list (initVars a)
  | TTree a => number_tree (initVars a)
  end.
Fixpoint initAll (G : list ty) : env R G -> nat -> env R (map MD G) * nat :=
  match G return env R G -> nat -> env R (map MD G) * nat with
  | nil => fun _ k => (tt, k)
  | t :: G => fun x k => let p := initVars t (fst x) k in let q := initAll G (snd x) (snd p) in ((fst p, fst q), snd q)
  end.

(* ---- reading the result ------------------------------------------------------------------------ *)
Fixpoint mprimal (t : ty) : den R (MD t) -> den R t :=
  match t return den R (MD t) -> den R t with
  | TR => fun g => fst g
  | TU | TI => fun g => g
  | TProd a b => fun g => (mprimal a (fst g), mprimal b (snd g))
  | TSum a b => fun g => match g with inl x => inl (mprimal a x) | inr y => inr (mprimal b y) end
  | TFun a b => fun _ _ => None
  | TArr a => map (mprimal a)
  | TTree a => tree_map (mprimal a)
  end.
Fixpoint leaves (t : ty) : den R (MD t) -> list (den R TDelta) :=
  match t return den R (MD t) -> list (den R TDelta) with
  | TR => fun g => [snd g]
  | TU | TI => fun _ => []
  | TProd a b => fun g => leaves a (fst g) ++ leaves b (snd g)
  | TSum a b => fun g => match g with inl x => leaves a x | inr y => leaves b y end
  | TFun a b => fun _ => []
  | TArr a => flat_map (leaves a)
  | TTree a => tree_flat (leaves a)
  end.
Fixpoint dec (t : den R TDelta) : delta :=
  match t with
  | Node (inr (inl r)) (u :: _) => DScale r (dec u)
  | Node (inr (inr (inl _))) (u :: v :: _) => DAdd (dec u) (dec v)
  | Node (inr (inr (inr (inl i)))) _ => DVar (Z.to_nat i)
  | Node (inr (inr (inr (inr i)))) (u :: v :: _) => DLet (Z.to_nat i) (dec u) (dec v)
  | _ => DZero
  end.
Lemma dec_enc : forall u, dec (enc u) = u.
Proof. induction u; simpl; rewrite ?Nat2Z.id; congruence. Qed.
Fixpoint weigh (ws : list R) (us : list delta) : delta :=
  match ws, us with w :: ws, u :: us => DAdd (DScale w u) (weigh ws us) | _, _ => DZero end.
Fixpoint weighted (ws ds : list R) : R :=
  match ws, ds with w :: ws, d :: ds => w * d + weighted ws ds | _, _ => 0 end%R.

(* K Fig. 11 and 15: value, partial derivatives by position, and total cost *)
Definition reverse (fuel : nat) {G t} (e : tm G t) (x : env R G) (ws : list R) : option (den R t * deltamap * nat) :=
  let (s0, n) := initAll G x 0 in
  match run fuel (MT e) s0 (Z.of_nat n, []) with
  | Some ((b, st), k, _) =>
      let u := runDelta n (map (fun p => dec (snd p)) (snd st)) (weigh ws (map dec (leaves t b))) in
      let (m, k') := eval 1 u emptyMap in
      Some (mprimal t b, m, k + k')
  | None => None
  end.

(* ---- the wrapper establishes and uses the relation of Monadic.v -------------------------------------- *)
Definition listed (gam : nat -> R) (k : nat) (l : list R) : Prop := forall i, i < length l -> gam (k + i) = nth i l 0%R.
Lemma listed_app : forall gam k l l', listed gam k (l ++ l') -> listed gam k l /\ listed gam (k + length l) l'.
Proof.
  intros gam k l l' H. split; intros i Hi.
  - rewrite H by (rewrite app_length; lia). now rewrite app_nth1.
  - rewrite <- Nat.add_assoc, H by (rewrite app_length; lia). rewrite app_nth2 by lia. f_equal. lia.
Qed.
Section Correct.
Variable base fuel : nat.
Variable U : NormedModule R_AbsRing.
Variables u0 h : U.
Variable gam : nat -> R.
Notation near P := (@locally U u0 P).
Notation diff f l := (@filterdiff R_AbsRing U R_NormedModule f (locally u0) l).
Notation VKn := (VK base U u0 h gam).
Notation Dv := (Deriv U u0 h).

Definition numbered {A B} (num : A -> nat -> B * nat) (fl : A -> list R) (D : (U -> A) -> A -> Prop) (V : (U -> A) -> B -> Prop) : Prop :=
  forall f v k, D f v -> listed gam k (fl v) -> k + length (fl v) <= base ->
    V f (fst (num (f u0) k)) /\ snd (num (f u0) k) = k + length (fl v).
Lemma number_list_ok : forall A B (num : A -> nat -> B * nat) fl D V, numbered num fl D V ->
  forall fs vs k, Forall2 D fs vs -> listed gam k (flat_map fl vs) -> k + length (flat_map fl vs) <= base ->
    Forall2 V fs (fst (number_list num (map (fun q => q u0) fs) k)) /\
    snd (number_list num (map (fun q => q u0) fs) k) = k + length (flat_map fl vs).
Proof.
  intros A B num fl D V H fs vs k HF. revert k. induction HF as [|f v fs vs Hf HF IH]; intros k Hl Hb; simpl in *.
  - split; [constructor|lia].
  - apply listed_app in Hl as [Hl1 Hl2]. rewrite app_length in Hb. destruct (H f v k Hf Hl1) as [H1 H2]; [lia|].
    destruct (num (f u0) k) as [y k1]. simpl in *. subst k1. destruct (IH (k + length (fl v)) Hl2) as [H3 H4]; [lia|].
    destruct (number_list num (map (fun q => q u0) fs) (k + length (fl v))) as [ys k2]. simpl in *. rewrite app_length.
    split; [constructor; auto|lia].
Qed.
Lemma number_tree_ok : forall A B (num : A -> nat -> B * nat) fl D V, numbered num fl D V ->
  forall ft v k, tree2 D ft v -> listed gam k (tree_flat fl v) -> k + length (tree_flat fl v) <= base ->
    tree2 V ft (fst (number_tree num (tree_at U ft u0) k)) /\
    snd (number_tree num (tree_at U ft u0) k) = k + length (tree_flat fl v).
Proof.
  intros A B num fl D V H. induction ft as [f fts IH] using tree_ind'. intros v k HT. inversion HT as [? d ? vs Hf HF]; subst. simpl.
  intros Hl Hb. apply listed_app in Hl as [Hl1 Hl2]. rewrite app_length in Hb. destruct (H f d k Hf Hl1) as [H1 H2]; [lia|].
  destruct (num (f u0) k) as [y k1]. simpl in *. subst k1.
  assert (forall k, listed gam k (flat_map (tree_flat fl) vs) -> k + length (flat_map (tree_flat fl) vs) <= base ->
    Forall2 (tree2 V) fts (fst (number_list (number_tree num) (map (fun t => tree_at U t u0) fts) k)) /\
    snd (number_list (number_tree num) (map (fun t => tree_at U t u0) fts) k) = k + length (flat_map (tree_flat fl) vs)) as HL.
  { clear - IH HF. revert vs HF. induction IH as [|ft fts Hft _ IHl]; intros vs HF k Hl Hb; inversion HF as [|? v ? vs' Hv HF']; subst; simpl in *.
    - split; [constructor|lia].
    - apply listed_app in Hl as [Hl1 Hl2]. rewrite app_length in Hb. destruct (Hft v k Hv Hl1) as [H1 H2]; [lia|].
      destruct (number_tree num (tree_at U ft u0) k) as [y k1]. simpl in *. subst k1.
      destruct (IHl vs' HF' (k + length (tree_flat fl v)) Hl2) as [H3 H4]; [lia|].
      destruct (number_list (number_tree num) (map (fun t => tree_at U t u0) fts) (k + length (tree_flat fl v))) as [ys k2]. simpl in *.
      rewrite app_length. split; [constructor; auto|lia]. }
  destruct (HL (k + length (fl d)) Hl2) as [H3 H4]; [lia|].
  destruct (number_list (number_tree num) (map (fun t => tree_at U t u0) fts) (k + length (fl d))) as [us k2]. simpl in *.
  rewrite app_length. split; [constructor; auto|lia].
Qed.
Lemma initVars_ok : forall t, data t = true -> numbered (initVars t) (flat t) (Dv t) (VKn t []).
Proof.
  induction t; simpl; intros Ht f v k Hf Hl Hb; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]).
  - destruct Hf as (l & Hd & Hv). split; [|simpl; lia]. split; [reflexivity|]. exists l. split; [exact Hd|].
    simpl in Hb. exists (DVar k). simpl. split; [reflexivity|]. split; [unfold fresh; simpl; lia|]. split; [|lia].
    rewrite Hv. specialize (Hl 0). rewrite Nat.add_0_r in Hl. apply Hl. simpl. lia.
  - split; [exact I|simpl; lia].
  - split; [|simpl; lia]. pose proof (@locally_singleton U u0 _ Hf) as Hs. simpl in Hs. rewrite Hs. exact Hf.
  - destruct Hf as [H1 H2]. apply listed_app in Hl as [Hl1 Hl2]. rewrite app_length in Hb.
    destruct (IHt1 Ht1 _ _ _ H1 Hl1) as [A1 A2]; [lia|].
    destruct (IHt2 Ht2 _ _ _ H2 (eq_ind_r (fun q => listed gam q (flat t2 (snd v))) Hl2 A2)) as [B1 B2]; [lia|].
    rewrite app_length. split; [split; [exact A1|exact B1]|]. refine (eq_trans B2 _). rewrite A2. lia.
  - destruct v as [v|v]; destruct Hf as (f1 & L & H1); rewrite (@locally_singleton U u0 _ L).
    + destruct (IHt1 Ht1 _ _ _ H1 Hl) as [A1 A2]; [lia|]. split; [exists f1; auto|exact A2].
    + destruct (IHt2 Ht2 _ _ _ H1 Hl) as [A1 A2]; [lia|]. split; [exists f1; auto|exact A2].
  - destruct Hf as (fs & L & HF). rewrite (@locally_singleton U u0 _ L).
    destruct (number_list_ok (IHt Ht) HF Hl Hb) as [A1 A2]. split; [|exact A2]. exists fs. auto.
  - destruct Hf as (fs & L & HF). rewrite (@locally_singleton U u0 _ L).
    destruct (number_tree_ok (IHt Ht) HF Hl Hb) as [A1 A2]. split; [|exact A2]. exists fs. auto.
Qed.
Lemma initAll_ok : forall G, datas G = true -> numbered (initAll G) (flats G) (Derivs U u0 h G) (VKE base U u0 h gam G []).
Proof.
  induction G as [|t G IH]; simpl; intros HG f v k Hf Hl Hb.
  - split; [exact I|simpl; lia].
  - apply andb_prop in HG as [H1 H2]. destruct Hf as [F1 F2]. apply listed_app in Hl as [Hl1 Hl2]. rewrite app_length in Hb.
    destruct (@initVars_ok t H1 (fun u => fst (f u)) (fst v) k F1 Hl1) as [A1 A2].
    { refine (Nat.le_trans _ _ _ _ Hb). apply Nat.add_le_mono_l, Nat.le_add_r. }
    destruct (IH H2 (fun u => snd (f u)) _ _ F2 (eq_ind_r (fun q => listed gam q (flats G (snd v))) Hl2 A2)) as [B1 B2].
    { refine (eq_ind_r (fun q => q + _ <= base) _ A2). rewrite <- Nat.add_assoc. exact Hb. }
    rewrite app_length. split; [split; [exact A1|exact B1]|].
    refine (eq_trans B2 (eq_trans (f_equal (fun q => q + _) A2) _)). symmetry. apply Nat.add_assoc.
Qed.

(* every real of the result has a Delta for its derivative *)
Notation Rep C := (fun g d => RepS base gam C 1 d g).
Definition read {A B} (C : tape) (pr : B -> A) (lv : B -> list (den R TDelta)) (fl : A -> list R) (D : (U -> A) -> A -> Prop) (V : (U -> A) -> B -> Prop) : Prop :=
  forall f b, V f b -> pr b = f u0 /\ exists d, D f d /\ Forall2 (Rep C) (lv b) (fl d).
Lemma read_list : forall A B C (pr : B -> A) lv fl D V, read C pr lv fl D V ->
  forall fs bs, Forall2 V fs bs -> map pr bs = map (fun q => q u0) fs /\ exists ds, Forall2 D fs ds /\ Forall2 (Rep C) (flat_map lv bs) (flat_map fl ds).
Proof.
  intros A B C pr lv fl D V H fs bs HF. induction HF as [|f b fs bs Hf HF (IH1 & ds & IH2 & IH3)].
  - split; [reflexivity|]. exists []. split; constructor.
  - destruct (H _ _ Hf) as (H1 & d & H2 & H3). simpl. split; [congruence|]. exists (d :: ds). split; [constructor; auto|]. simpl. apply Forall2_app; auto.
Qed.
Lemma read_tree : forall A B C (pr : B -> A) lv fl D V, read C pr lv fl D V ->
  forall ft b, tree2 V ft b -> tree_map pr b = tree_at U ft u0 /\ exists d, tree2 D ft d /\ Forall2 (Rep C) (tree_flat lv b) (tree_flat fl d).
Proof.
  intros A B C pr lv fl D V H. induction ft as [f fts IH] using tree_ind'. intros b HT. inversion HT as [? b0 ? bs Hf HF]; subst.
  destruct (H _ _ Hf) as (H1 & d & H2 & H3).
  assert (map (tree_map pr) bs = map (fun t => tree_at U t u0) fts /\
    exists ds, Forall2 (tree2 D) fts ds /\ Forall2 (Rep C) (flat_map (tree_flat lv) bs) (flat_map (tree_flat fl) ds)) as (K1 & ds & K2 & K3).
  { clear - IH HF. revert bs HF. induction IH as [|ft fts Hft _ IHl]; intros bs HF; inversion HF as [|? b ? bs' Hb HF']; subst.
    - split; [reflexivity|]. exists []. split; constructor.
    - destruct (Hft _ Hb) as (H1 & d & H2 & H3). destruct (IHl _ HF') as (H4 & ds & H5 & H6). simpl.
      split; [congruence|]. exists (d :: ds). split; [constructor; auto|]. simpl. apply Forall2_app; auto. }
  simpl. split; [congruence|]. exists (Node d ds). split; [constructor; auto|]. simpl. apply Forall2_app; auto.
Qed.
Lemma read_ok : forall t C, data t = true -> read C (mprimal t) (leaves t) (flat t) (Dv t) (VKn t C).
Proof.
  induction t; simpl; intros C Ht f b Hb; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]).
  - destruct Hb as (H1 & l & H2 & H3). split; [exact H1|]. exists (l h). split; [exists l; auto|]. constructor; auto.
  - split; [destruct b, (f u0); reflexivity|]. exists tt. split; [exact I|constructor].
  - split; [symmetry; exact (@locally_singleton U u0 _ Hb)|]. exists b. split; [exact Hb|constructor].
  - destruct Hb as [Ha Hb]. destruct (IHt1 C Ht1 _ _ Ha) as (A1 & d1 & A2 & A3). destruct (IHt2 C Ht2 _ _ Hb) as (B1 & d2 & B2 & B3).
    split; [rewrite A1, B1; now destruct (f u0)|]. exists (d1, d2). split; [split; auto|]. apply Forall2_app; auto.
  - destruct b as [b|b]; destruct Hb as (f1 & L & H1); rewrite (@locally_singleton U u0 _ L).
    + destruct (IHt1 C Ht1 _ _ H1) as (A1 & d1 & A2 & A3). split; [exact (f_equal inl A1)|]. exists (inl d1). split; [exists f1; auto|exact A3].
    + destruct (IHt2 C Ht2 _ _ H1) as (A1 & d1 & A2 & A3). split; [exact (f_equal inr A1)|]. exists (inr d1). split; [exists f1; auto|exact A3].
  - destruct Hb as (fs & L & HF). rewrite (@locally_singleton U u0 _ L). destruct (read_list (IHt C Ht) HF) as (A1 & ds & A2 & A3).
    split; [exact A1|]. exists ds. split; [exists fs; auto|exact A3].
  - destruct Hb as (fs & L & HF). rewrite (@locally_singleton U u0 _ L). destruct (read_tree (IHt C Ht) HF) as (A1 & ds & A2 & A3).
    split; [exact A1|]. exists ds. split; [exists fs; auto|exact A3].
Qed.
Lemma weigh_ok : forall C gs ds, Forall2 (Rep C) gs ds -> forall ws,
  scoped (fresh base C) (weigh ws (map dec gs)) /\ dden (weigh ws (map dec gs)) (tan base C gam) = weighted ws ds /\
  size (weigh ws (map dec gs)) <= 3 * length gs + 1.
Proof.
  intros C gs ds H. induction H as [|g d gs ds (u & -> & H1 & H2 & H3) HF IH]; intros [|w ws]; simpl; auto; try (repeat split; auto; lia).
  rewrite dec_enc. destruct (IH ws) as (A1 & A2 & A3). split; [split; [exact H1|exact A1]|]. split; [exact (f_equal2 Rplus (f_equal (Rmult w) H2) A2)|].
  assert (forall a b n, a <= 1 -> b <= 3 * n + 1 -> S (S a + b) <= 3 * S n + 1) as Har by (intros; lia).
  exact (Har _ _ _ H3 A3).
Qed.
End Correct.
Lemma dec_tape : forall base C, map (fun p => dec (snd p)) (encB base C) = C.
Proof. induction C; simpl; auto. f_equal; [apply dec_enc|exact IHC]. Qed.

(* ---- the theorems -------------------------------------------------------------------------------------- *)
Definition vector (l : list R) (i : nat) : R := nth i l 0%R.
Theorem reverse_correct : forall fuel (U : NormedModule R_AbsRing) (u0 h : U) G t (e : tm G t) f v y n ws,
  datas G = true -> data t = true -> Derivs U u0 h G f v ->
  ev RO fuel e (f u0) = Some (y, n, 0) ->
  exists F dy m cost,
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, n, 0)) /\
    Deriv U u0 h t F dy /\
    reverse fuel e (f u0) ws = Some (y, m, cost) /\
    dot (length (flats G v)) m (vector (flats G v)) = weighted ws (flat t dy) /\
    cost <= (KM + KS) * n + 3 * length (flat t dy) + 1.
Proof.
  intros fuel U u0 h G t e f v y n ws HG Ht Hv He. set (base := length (flats G v)). set (gam := vector (flats G v)).
  destruct (@initAll_ok base U u0 h gam G HG f v 0 Hv) as [H1 H2].
  { intros i Hi. reflexivity. }
  { subst base. lia. }
  unfold reverse. destruct (initAll G (f u0) 0) as [s0 n0]. simpl in H1, H2. fold base in H2. subst n0.
  destruct (@monadic_fundamental base fuel U u0 h gam G t e [] f s0 H1 _ _ He I) as (F & b & L & k & L1 & E1 & P1 & W1 & B1 & S1).
  rewrite app_nil_r in *.
  assert (run fuel (MT e) s0 (Z.of_nat base, []) = Some ((b, encS base L), k, 0)) as E2.
  { assert (encS base [] = (Z.of_nat base, [])) as Hb by (unfold encS, fresh; simpl; now rewrite Nat.add_0_r).
    exact (eq_trans (f_equal (run fuel (MT e) s0) (eq_sym Hb)) E1). }
  rewrite E2. unfold encS. simpl snd. rewrite dec_tape.
  destruct (@read_ok base U u0 h gam t L Ht F b P1) as (R1 & dy & R2 & R3).
  destruct (@weigh_ok base gam L _ _ R3 ws) as (Q1 & Q2 & Q3). set (w := weigh ws (map dec (leaves t b))) in *.
  pose proof (@runDelta_scoped base L w W1 Q1) as Hs.
  destruct (@eval_dot (runDelta base L w) base 1%R emptyMap gam Hs (fun _ _ => eq_refl)) as [D1 D2].
  pose proof (eval_cost (runDelta base L w) 1%R emptyMap) as C1. rewrite runDelta_size in C1.
  destruct (eval 1 (runDelta base L w) emptyMap) as [m k']. simpl in D1, C1.
  exists F, dy, m, (k + k'). split; [exact L1|]. split; [exact R2|]. split; [|split].
  - rewrite R1. pose proof (@locally_singleton U u0 _ L1) as X. simpl in X. rewrite He in X. congruence.
  - rewrite D1, dot_empty, runDelta_den, Q2. ring.
  - pose proof (Forall2_len R3) as Hl. rewrite Hl in Q3. rewrite Nat.mul_add_distr_r. lia.
Qed.

(* ---- total derivatives ------------------------------------------------------------------------------------- *)
(* R^n, with a last coordinate that nothing depends on *)
Fixpoint Rn (n : nat) : NormedModule R_AbsRing :=
  match n with O => R_NormedModule | S k => prod_NormedModule R_AbsRing R_NormedModule (Rn k) end.
Fixpoint reals (n : nat) : list ty := match n with O => nil | S k => TR :: reals k end.
Fixpoint point (n : nat) : Rn n -> env R (reals n) :=
  match n return Rn n -> env R (reals n) with O => fun _ => tt | S k => fun u => (fst u, point k (snd u)) end.
Definition coords (n : nat) (h : Rn n) : nat -> R := vector (flats (reals n) (point n h)).
Lemma reals_data : forall n, datas (reals n) = true.
Proof. induction n; simpl; auto. Qed.
Lemma reals_len : forall n x, length (flats (reals n) x) = n.
Proof. induction n; intros x; simpl; auto. Qed.
Lemma point_deriv : forall n (V : NormedModule R_AbsRing) (v0 h : V) (p : V -> Rn n), is_linear p ->
  Derivs V v0 h (reals n) (fun u => point n (p u)) (point n (p h)).
Proof.
  induction n; intros V v0 h p Hp; simpl; auto. split.
  - exists (fun u => fst (p u)). split; [|reflexivity].
    apply (@filterdiff_linear R_AbsRing V R_NormedModule (locally v0)) with (l := fun u => fst (p u)).
    apply (@is_linear_comp R_AbsRing V (prod_NormedModule R_AbsRing R_NormedModule (Rn n)) R_NormedModule p (fun u => fst u) Hp).
    apply is_linear_fst.
  - apply (IHn V v0 h (fun u => snd (p u))).
    apply (@is_linear_comp R_AbsRing V (prod_NormedModule R_AbsRing R_NormedModule (Rn n)) (Rn n) p (fun u => snd u) Hp).
    apply is_linear_snd.
Qed.
(* a map has at most one differential: compare along a line *)
Lemma diff_unique : forall (V : NormedModule R_AbsRing) (x : V) (f : V -> R) l l',
  @filterdiff R_AbsRing V R_NormedModule f (locally x) l -> @filterdiff R_AbsRing V R_NormedModule f (locally x) l' -> forall h, l h = l' h.
Proof.
  intros V x f l l' H H' h.
  assert (forall l, @filterdiff R_AbsRing V R_NormedModule f (locally x) l -> is_derive (fun t : R => f (plus x (scal t h))) 0%R (l h)) as HL.
  { intros q Hq. unfold is_derive. eapply filterdiff_ext_lin.
    - apply (@filterdiff_comp' R_AbsRing R_NormedModule V R_NormedModule (fun t : R => plus x (scal t h)) f 0%R (fun t : R => scal t h) q).
      + apply filterdiff_ext_lin with (l1 := fun t : R => plus zero (scal t h)).
        * apply (@filterdiff_plus_fct R_AbsRing R_NormedModule V (locally 0%R) _ (fun _ => x) (fun t : R => scal t h) (fun _ => zero) (fun t : R => scal t h)).
          { exact (@filterdiff_const R_AbsRing R_NormedModule V (locally 0%R) _ x). }
          apply (@filterdiff_linear R_AbsRing R_NormedModule V (locally 0%R) (fun t : R => scal t h)). exact (@is_linear_scal_l R_AbsRing V h).
        * intros y. apply plus_zero_l.
      + assert (plus x (scal (0%R : R_AbsRing) h) = x) as Hx by exact (eq_trans (f_equal (plus x) (@scal_zero_l R_AbsRing V h)) (plus_zero_r x)).
        exact (eq_ind_r (fun z => @filterdiff R_AbsRing V R_NormedModule f (locally z) q) Hq Hx).
    - intros t. simpl. destruct Hq as [Hlin _]. apply (linear_scal q Hlin). }
  rewrite <- (is_derive_unique _ _ _ (HL l H)). apply is_derive_unique, HL, H'.
Qed.
Theorem gradient_frechet : forall fuel n (e : tm (reals n) TR) (x : Rn n) y s,
  ev RO fuel e (point n x) = Some (y, s, 0) ->
  exists F m cost,
    locally x (fun u => ev RO fuel e (point n u) = Some (F u, s, 0)) /\
    reverse fuel e (point n x) [1%R] = Some (y, m, cost) /\
    @filterdiff R_AbsRing (Rn n) R_NormedModule F (locally x) (fun h => dot n m (coords n h)) /\
    cost <= (KM + KS) * s + 4.
Proof.
  intros fuel n e x y s H.
  assert (forall h, exists F l m cost, locally x (fun u => ev RO fuel e (point n u) = Some (F u, s, 0)) /\
     @filterdiff R_AbsRing (Rn n) R_NormedModule F (locally x) l /\ reverse fuel e (point n x) [1%R] = Some (y, m, cost) /\
     dot n m (coords n h) = l h /\ cost <= (KM + KS) * s + 4) as HR.
  { intros h. destruct (@reverse_correct fuel (Rn n) x h (reals n) TR e (point n) (point n h) y s [1%R] (reals_data n) eq_refl) as (F & dy & m & cost & L & (l & Hl & Hd) & E & D & C).
    - apply (@point_deriv n (Rn n) x h (fun u => u)). apply is_linear_id.
    - exact H.
    - exists F, l, m, cost. split; [exact L|split; [exact Hl|split; [exact E|split]]].
      + rewrite reals_len in D. refine (eq_trans D _). simpl. rewrite Hd. ring.
      + change (length (flat TR dy)) with 1 in C. lia. }
  destruct (HR zero) as (F & l & m & cost & L & Hl & E & _ & C). exists F, m, cost.
  split; [exact L|split; [exact E|split; [|exact C]]]. eapply filterdiff_ext_lin; [exact Hl|]. intros h.
  destruct (HR h) as (F' & l' & m' & cost' & L' & Hl' & E' & D' & _). rewrite E in E'. inversion E'; subst m' cost'.
  rewrite D'. apply (@diff_unique (Rn n) x F); [exact Hl|].
  eapply filterdiff_ext_locally; [|exact Hl']. generalize (filter_and _ _ L L'). apply filter_imp. intros u [A B]. congruence.
Qed.

(* derivatives at data types are unique, so that forward and reverse mode speak of the same one *)
Section Unique.
Variable U : NormedModule R_AbsRing.
Variables u0 h : U.
Notation near P := (@locally U u0 P).
Definition unique {A} (D : (U -> A) -> A -> Prop) (fl : A -> list R) : Prop :=
  forall f f' d d', D f d -> D f' d' -> near (fun u => f u = f' u) -> fl d = fl d'.
Lemma unique_list : forall A (D : (U -> A) -> A -> Prop) fl, unique D fl -> forall fs ds, Forall2 D fs ds -> forall fs' ds', Forall2 D fs' ds' ->
  near (fun u => map (fun k => k u) fs = map (fun k => k u) fs') -> flat_map fl ds = flat_map fl ds'.
Proof.
  intros A D fl H fs ds HF. induction HF as [|f d fs ds Hf HF IH]; intros fs' ds' HF' L; pose proof (@locally_singleton U u0 _ L) as E.
  - destruct HF'; [reflexivity|discriminate].
  - destruct HF' as [|f' d' fs' ds' Hf' HF']; [discriminate|]. simpl. f_equal.
    + apply (H f f'); auto. revert L. apply filter_imp. intros u Hu. simpl in Hu. injection Hu. auto.
    + apply (IH fs'); auto. revert L. apply filter_imp. intros u Hu. simpl in Hu. injection Hu. auto.
Qed.
Lemma unique_tree : forall A (D : (U -> A) -> A -> Prop) fl, unique D fl -> forall ft d, tree2 D ft d -> forall ft' d', tree2 D ft' d' ->
  near (fun u => tree_at U ft u = tree_at U ft' u) -> tree_flat fl d = tree_flat fl d'.
Proof.
  intros A D fl H. induction ft as [f fts IH] using tree_ind'. intros d Hd ft' d' Hd' L. destruct Hd' as [f' d' fts' ds' Hf' HF'].
  inversion Hd as [? d0 ? ds Hf HF]; subst. simpl. f_equal.
  - apply (H f f'); auto. revert L. apply filter_imp. intros u Hu. simpl in Hu. injection Hu. auto.
  - assert (near (fun u => map (fun t => tree_at U t u) fts = map (fun t => tree_at U t u) fts')) as L'.
    { revert L. apply filter_imp. intros u Hu. simpl in Hu. injection Hu. auto. }
    clear L Hd Hf Hf'. revert ds HF fts' ds' HF' L'. induction IH as [|ft fts Hft _ IHl]; intros ds HF fts' ds' HF' L';
      pose proof (@locally_singleton U u0 _ L') as E; destruct HF' as [|ft' d1' fts' ds' Hv' HF']; try discriminate; inversion HF as [|? d1 ? ds1 Hv HF1]; subst; [reflexivity|].
    simpl. f_equal.
    + apply (Hft _ Hv _ _ Hv'). revert L'. apply filter_imp. intros u Hu. simpl in Hu. injection Hu. auto.
    + apply (IHl _ HF1 _ _ HF'). revert L'. apply filter_imp. intros u Hu. simpl in Hu. injection Hu. auto.
Qed.
Lemma Deriv_unique : forall t, unique (Deriv U u0 h t) (flat t).
Proof.
  induction t; simpl; intros f f' d d' Hd Hd' L; auto.
  - destruct Hd as (l & Hl & <-), Hd' as (l' & Hl' & <-). f_equal. apply (@diff_unique U u0 f'); [|exact Hl'].
    eapply filterdiff_ext_locally; [exact L|exact Hl].
  - destruct Hd as [A1 A2], Hd' as [B1 B2]. f_equal.
    + apply (IHt1 _ _ _ _ A1 B1). revert L. apply filter_imp. intros u ->. reflexivity.
    + apply (IHt2 _ _ _ _ A2 B2). revert L. apply filter_imp. intros u ->. reflexivity.
  - destruct d as [d|d], d' as [d'|d']; destruct Hd as (f1 & L1 & H1), Hd' as (f2 & L2 & H2);
      pose proof (@locally_singleton U u0 _ L) as E0; pose proof (@locally_singleton U u0 _ L1) as E1; pose proof (@locally_singleton U u0 _ L2) as E2; cbv beta in E0, E1, E2;
      try (rewrite E0, E2 in E1; discriminate).
    + apply (IHt1 _ _ _ _ H1 H2). generalize (filter_and _ _ L (filter_and _ _ L1 L2)). apply filter_imp. intros u (A & B & C).
      pose proof (eq_trans (eq_sym B) (eq_trans A C)) as X. injection X. auto.
    + apply (IHt2 _ _ _ _ H1 H2). generalize (filter_and _ _ L (filter_and _ _ L1 L2)). apply filter_imp. intros u (A & B & C).
      pose proof (eq_trans (eq_sym B) (eq_trans A C)) as X. injection X. auto.
  - destruct Hd as (fs & L1 & H1), Hd' as (fs' & L2 & H2). apply (unique_list IHt H1 H2).
    generalize (filter_and _ _ L (filter_and _ _ L1 L2)). apply filter_imp. intros u (A & B & C). exact (eq_trans (eq_sym B) (eq_trans A C)).
  - destruct Hd as (fs & L1 & H1), Hd' as (fs' & L2 & H2). apply (unique_tree IHt H1 H2).
    generalize (filter_and _ _ L (filter_and _ _ L1 L2)). apply filter_imp. intros u (A & B & C). exact (eq_trans (eq_sym B) (eq_trans A C)).
Qed.
End Unique.

(* ---- K Lemma 1: dt . F(s, ds) = R(s, dt) . ds ------------------------------------------------------------------ *)
Theorem adjoint : forall fuel (U : NormedModule R_AbsRing) (u0 h : U) G t (e : tm G t) f g y n ws,
  datas G = true -> data t = true -> primals G g = f u0 -> Derivs U u0 h G f (deltas G g) ->
  ev RO fuel e (f u0) = Some (y, n, 0) ->
  exists g' k m cost,
    ev RO fuel (forward e) g = Some (g', k, 0) /\ primal t g' = y /\
    reverse fuel e (f u0) ws = Some (y, m, cost) /\
    dot (length (flats G (deltas G g))) m (vector (flats G (deltas G g))) = weighted ws (flat t (Forward.delta t g')).
Proof.
  intros fuel U u0 h G t e f g y n ws HG Ht Hp Hd He.
  destruct (@forward_correct fuel U u0 h G t e f g y n HG Ht Hp Hd He) as (F & g' & k & L & E & P & HF & _).
  destruct (@reverse_correct fuel U u0 h G t e f (deltas G g) y n ws HG Ht Hd He) as (F' & dy & m & cost & L' & HF' & E' & D & _).
  exists g', k, m, cost. split; [exact E|split; [exact P|split; [exact E'|]]]. refine (eq_trans D _). f_equal.
  apply (@Deriv_unique U u0 h t F' F _ _ HF' HF). generalize (filter_and _ _ L L'). apply filter_imp. intros u [A B]. congruence.
Qed.
