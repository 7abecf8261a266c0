(* Cotangents of the combinator mode read back into the shape of the inputs: the items of a bag are summed where they belong.  [pulled_correct] is
   the theorem of CombinatorMode.v in these terms, with inner products of values, as K Fig. 15 has it for the monadic mode. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Delta Monadic Reverse Shape Triple Combinator Cotangent Transpose.
Require Import Adjoint AdjointArray AdjointData CombinatorMode.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

(* ---- sums over bags ----------------------------------------------------------------------------- *)
Definition summed {I} (k : I -> R) (l : list I) : R := fold_right (fun q w => (k q + w)%R) 0%R l.
Lemma summed_app : forall I (k : I -> R) l l', summed k (l ++ l') = (summed k l + summed k l')%R.
Proof. induction l; intros; simpl; [ring|]. rewrite IHl. ring. Qed.
Lemma summed_plus : forall I (k k1 k2 : I -> R) l, (forall q, k q = (k1 q + k2 q)%R) -> summed k l = (summed k1 l + summed k2 l)%R.
Proof. intros I k k1 k2 l H. induction l; simpl; [ring|]. rewrite IHl, H. ring. Qed.
Lemma summed_zero : forall I (k : I -> R) l, (forall q, k q = 0%R) -> summed k l = 0%R.
Proof. intros I k l H. induction l; simpl; auto. rewrite IHl, H. ring. Qed.
Lemma summed_ext : forall I (k k' : I -> R) l, (forall q, k q = k' q) -> summed k l = summed k' l.
Proof. intros I k k' l H. induction l; simpl; auto. now rewrite IHl, H. Qed.
Lemma paired_zero : forall t, data t = true -> forall v, paired t v (zerov t) = 0%R.
Proof.
  induction t; simpl; intros Ht v; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]); auto.
  - ring.
  - rewrite IHt1, IHt2 by auto. ring.
  - destruct v; auto.
Qed.
Lemma paired_plus : forall t, data t = true -> forall v x y, paired t v (plusv t x y) = (paired t v x + paired t v y)%R.
Proof.
  induction t; simpl; intros Ht v x y; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]); try ring.
  - rewrite IHt1, IHt2 by auto. ring.
  - destruct v; auto.
  - apply summed_app.
  - apply summed_app.
Qed.

(* ---- back into the shape of the value -------------------------------------------------------------- *)
(* the sum of the items at some keys *)
Definition pick (t : ty) {K} (p : K -> bool) (l : list (K * den R (D2 t))) : den R (D2 t) :=
  fold_right (fun q s => if p (fst q) then plusv t (snd q) s else s) (zerov t) l.
Definition is_end (p : tree Z) : bool := match p with Node _ nil => true | _ => false end.
(* what speaks of the child i *)
Definition below {B} (i : nat) (l : list (tree Z * B)) : list (tree Z * B) :=
  flat_map (fun q => match fst q with Node j (p :: _) => if Z.eqb j (Z.of_nat i) then [(p, snd q)] else [] | _ => [] end) l.
Definition each {A B} (f : nat -> A -> B) := fix go (i : nat) (l : list A) : list B := match l with nil => nil | x :: l => f i x :: go (S i) l end.
Fixpoint collect_tree {A B C} (here : list (tree Z * C) -> B -> A) (x : tree B) (d : list (tree Z * C)) : tree A :=
  match x with Node y ys => Node (here d y) (each (fun i y => collect_tree here y (below i d)) 0 ys) end.
Fixpoint collect (t : ty) : den R t -> den R (D2 t) -> den R t :=
  match t return den R t -> den R (D2 t) -> den R t with
  | TR => fun _ d => d
  | TU | TI => fun x _ => x
  | TProd a b => fun x d => (collect a (fst x) (fst d), collect b (snd x) (snd d))
  | TSum a b => fun x d => match x with inl y => inl (collect a y (fst d)) | inr y => inr (collect b y (snd d)) end
  | TFun a b => fun x _ => x
  | TArr a => fun x d => each (fun i y => collect a y (pick a (Z.eqb (Z.of_nat i)) d)) 0 x
  | TTree a => fun x d => collect_tree (fun d y => collect a y (pick a is_end d)) x d
  end.
Lemma summed_below : forall B (k : tree Z * B -> R) j l, summed k (below j l) =
  summed (fun q => match fst q with Node i (p :: _) => if Z.eqb i (Z.of_nat j) then k (p, snd q) else 0%R | _ => 0%R end) l.
Proof.
  intros B k j l. induction l as [|q l IH]; simpl; auto. unfold below in *. simpl. rewrite summed_app, IH. destruct (fst q) as [i [|p ps]]; simpl; [ring|].
  destruct (Z.eqb i (Z.of_nat j)); simpl; ring.
Qed.
Lemma paired_pick : forall t, data t = true -> forall K (p : K -> bool) v l,
  paired t v (pick t p l) = summed (fun q => if p (fst q) then paired t v (snd q) else 0%R) l.
Proof.
  intros t Ht K p v l. induction l as [|q l IH]; simpl; [apply paired_zero, Ht|]. destruct (p (fst q)); [rewrite paired_plus, IH by auto|rewrite IH]; ring.
Qed.
Lemma weighted_app : forall a b a' b', length a = length b -> weighted (a ++ a') (b ++ b') = (weighted a b + weighted a' b')%R.
Proof. induction a as [|x a IH]; intros [|y b] a' b' H; simpl in *; try discriminate; [ring|]. rewrite IH by lia. ring. Qed.
Lemma map_each : forall A B C (k : B -> C) (f : nat -> A -> B) (k' : A -> C) l i, (forall i x, In x l -> k (f i x) = k' x) -> map k (each f i l) = map k' l.
Proof. intros A B C k f k' l. induction l as [|x l IH]; intros i H; simpl; auto. rewrite H, IH; simpl; auto. intros; apply H; simpl; auto. Qed.
Lemma collect_shape : forall t, data t = true -> forall x d, shape t (collect t x d) = shape t x.
Proof.
  induction t; simpl; intros Ht x d; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]); auto.
  - now rewrite IHt1, IHt2.
  - destruct x; [now rewrite IHt1|now rewrite IHt2].
  - apply map_each. intros i y _. apply IHt, Ht.
  - revert d. induction x as [y ys IH] using tree_ind'. intros d. simpl. f_equal; [apply IHt, Ht|].
    apply map_each. intros i s Hs. rewrite List.Forall_forall in IH. apply IH, Hs.
Qed.
Lemma flat_length : forall t, data t = true -> forall x y, shape t x = shape t y -> length (flat t x) = length (flat t y).
Proof.
  induction t; simpl; intros Ht x y H; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]); auto.
  - inversion H as [[H1 H2]]. rewrite !app_length, (IHt1 Ht1 _ _ H1), (IHt2 Ht2 _ _ H2). reflexivity.
  - destruct x, y; try discriminate; inversion H as [[H1]]; auto.
  - revert y H. induction x as [|z x IH]; intros [|z' y] H; simpl in *; try discriminate; auto. inversion H as [[H1 H2]].
    rewrite !app_length, (IHt Ht _ _ H1), (IH _ H2). reflexivity.
  - revert y H. induction x as [z zs IH] using tree_ind'. intros [z' zs'] H. simpl in H. inversion H as [[H1 H2]]. simpl.
    rewrite !app_length, (IHt Ht _ _ H1). f_equal. clear - IH H2. revert zs' H2. induction IH as [|s zs Hs _ IHz]; intros [|s' zs'] H2; simpl in *; try discriminate; auto.
    inversion H2 as [[E1 E2]]. rewrite !app_length, (Hs _ E1), (IHz _ E2). reflexivity.
Qed.
Lemma sel_shift : forall A (x : A) l i j, sel (x :: l) (i - Z.of_nat j) = if Z.eqb (Z.of_nat j) i then Some x else sel l (i - Z.of_nat (S j)).
Proof.
  intros A x l i j. unfold sel. destruct (Z.eqb_spec (Z.of_nat j) i) as [<-|H].
  - rewrite Z.sub_diag. reflexivity.
  - destruct (Z.ltb_spec (i - Z.of_nat j) 0), (Z.ltb_spec (i - Z.of_nat (S j)) 0); try lia; auto.
    replace (Z.to_nat (i - Z.of_nat j)) with (S (Z.to_nat (i - Z.of_nat (S j)))) by lia. reflexivity.
Qed.
Lemma sel_none : forall A i, @sel A nil i = None.
Proof. intros A i. unfold sel. destruct (i <? 0)%Z; auto. destruct (Z.to_nat i); reflexivity. Qed.
Lemma collect_paired : forall t, data t = true -> forall x v d, shape t x = shape t v -> weighted (flat t (collect t x d)) (flat t v) = paired t v d.
Proof.
  induction t; simpl; intros Ht x v d H; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]); auto.
  - ring.
  - inversion H as [[H1 H2]]. rewrite weighted_app by (apply flat_length; auto; rewrite collect_shape; auto). now rewrite IHt1, IHt2.
  - destruct x, v; try discriminate; inversion H as [[H1]]; auto.
  - assert (forall x v j, map (shape t) x = map (shape t) v ->
      weighted (flat_map (flat t) (each (fun i y => collect t y (pick t (Z.eqb (Z.of_nat i)) d)) j x)) (flat_map (flat t) v) =
      summed (fun q => match sel v (fst q - Z.of_nat j) with Some v1 => paired t v1 (snd q) | None => 0%R end) d) as HL.
    { clear x v H. induction x as [|y x IH]; intros [|z v] j H; simpl in H; try discriminate.
      - simpl. symmetry. apply summed_zero. intros q. now rewrite sel_none.
      - inversion H as [[H1 H2]]. cbn [each flat_map]. rewrite weighted_app by (apply flat_length; auto; rewrite collect_shape; auto).
        rewrite IHt, (IH v (S j) H2), (@paired_pick t Ht) by auto. symmetry. apply summed_plus. intros q. rewrite sel_shift.
        destruct (Z.eqb_spec (Z.of_nat j) (fst q)) as [E|E]; [|ring]. 
        replace (sel v (fst q - Z.of_nat (S j))) with (@None (den R t)) by (unfold sel; destruct (Z.ltb_spec (fst q - Z.of_nat (S j)) 0); [reflexivity|lia]). ring. }
    refine (eq_trans (HL x v 0 H) (summed_ext _ _ _ _)). intros q. now rewrite Z.sub_0_r.
  - revert v d H. induction x as [y ys IH] using tree_ind'. intros [z zs] d H. simpl in H. inversion H as [[H1 H2]]. simpl.
    rewrite weighted_app by (apply flat_length; auto; rewrite collect_shape; auto). rewrite IHt, (@paired_pick t Ht) by auto.
    assert (forall ys zs j, List.Forall (fun x => forall v d, tree_map (shape t) x = tree_map (shape t) v ->
        weighted (tree_flat (flat t) (collect_tree (fun d y => collect t y (pick t is_end d)) x d)) (tree_flat (flat t) v) =
        summed (fun q => match walk (fst q) v with Some v1 => paired t v1 (snd q) | None => 0%R end) d) ys ->
      map (tree_map (shape t)) ys = map (tree_map (shape t)) zs ->
      weighted (flat_map (tree_flat (flat t)) (each (fun i y => collect_tree (fun d y => collect t y (pick t is_end d)) y (below i d)) j ys)) (flat_map (tree_flat (flat t)) zs) =
      summed (fun q => match fst q with
        | Node i (p :: _) => match sel zs (i - Z.of_nat j) with Some s => match walk p s with Some v1 => paired t v1 (snd q) | None => 0%R end | None => 0%R end
        | _ => 0%R end) d) as HL.
    { clear - IHt Ht. induction ys as [|s ys IHys]; intros [|s' zs] j HF H; simpl in H; try discriminate.
      - simpl. symmetry. apply summed_zero. intros q. destruct (fst q) as [i [|p ps]]; auto. now rewrite sel_none.
      - inversion H as [[E1 E2]]. inversion HF as [|? ? Hs HF']; subst. cbn [each flat_map].
        rewrite weighted_app by (apply (@flat_length (TTree t) Ht); exact (eq_trans (@collect_shape (TTree t) Ht s (below j d)) E1)).
        rewrite (Hs s' (below j d) E1), (IHys zs (S j) HF' E2), summed_below. symmetry. apply summed_plus. intros q. destruct (fst q) as [i [|p ps]]; [ring|].
        rewrite sel_shift, (Z.eqb_sym i). destruct (Z.eqb_spec (Z.of_nat j) i) as [E|E]; [|ring].
        replace (sel zs (i - Z.of_nat (S j))) with (@None (tree (den R t))) by (unfold sel; destruct (Z.ltb_spec (i - Z.of_nat (S j)) 0); [reflexivity|lia]). simpl. ring. }
    rewrite (HL ys zs 0 IH H2). symmetry.
    apply (@summed_plus _ (fun q => match walk (fst q) (Node z zs) with Some v1 => paired t v1 (snd q) | None => 0%R end)).
    intros q. destruct (fst q) as [i [|p ps]]; simpl; [ring|]. rewrite Z.sub_0_r. destruct (sel zs i); ring.
Qed.
Fixpoint collects (G : list ty) : env R G -> den R (D2 (cx G)) -> env R G :=
  match G return env R G -> den R (D2 (cx G)) -> env R G with
  | nil => fun x _ => x
  | t :: G => fun x d => (collect t (fst x) (snd d), collects G (snd x) (fst d))
  end.
Lemma collects_shape : forall G, datas G = true -> forall x d, shapes G (collects G x d) = shapes G x.
Proof.
  induction G as [|t G IH]; simpl; intros HG x d; auto. apply andb_prop in HG as [H1 H2].
  exact (f_equal2 pair (@collect_shape t H1 _ _) (IH H2 _ _)).
Qed.
Lemma collects_paired : forall G, datas G = true -> forall x v d, shapes G x = shapes G v ->
  weighted (flats G (collects G x d)) (flats G v) = paired (cx G) (pack R G v) d.
Proof.
  induction G as [|t G IH]; simpl; intros HG x v d H; auto. apply andb_prop in HG as [H1 H2].
  assert (shape t (fst x) = shape t (fst v)) as E1 by exact (f_equal fst H). assert (shapes G (snd x) = shapes G (snd v)) as E2 by exact (f_equal snd H).
  rewrite weighted_app by (apply flat_length; auto; rewrite collect_shape; auto). rewrite (@collect_paired t H1) by auto. rewrite (IH H2) by auto. apply Rplus_comm.
Qed.
(* the weighted sum of a seed *)
Lemma summed_map : forall I J (k : J -> R) (f : I -> J) l, summed k (map f l) = summed (fun x => k (f x)) l.
Proof. intros I J k f l. induction l; simpl; auto. now rewrite IHl. Qed.
Lemma sel_at : forall A (pre : list A) x l, sel (pre ++ x :: l) (Z.of_nat (length pre)) = Some x.
Proof. intros A pre x l. rewrite sel_nat, nth_error_app2, Nat.sub_diag by lia. reflexivity. Qed.
Lemma seed_weighted : forall t, data t = true -> forall d v, shape t d = shape t v -> paired t v (seed t d) = weighted (flat t d) (flat t v).
Proof.
  induction t; simpl; intros Ht d v H; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]); auto.
  - ring.
  - inversion H as [[H1 H2]]. rewrite weighted_app by (apply flat_length; auto). now rewrite IHt1, IHt2.
  - destruct d as [d|d], v as [v|v]; try discriminate; inversion H as [[H1]]; [exact (IHt1 Ht1 _ _ H1)|exact (IHt2 Ht2 _ _ H1)].
  - assert (forall d v pre, map (shape t) d = map (shape t) v ->
      summed (fun q => match sel (pre ++ v) (fst q) with Some v1 => paired t v1 (snd q) | None => 0%R end) (indexed (seed t) (length pre) d) =
      weighted (flat_map (flat t) d) (flat_map (flat t) v)) as HL.
    { clear d v H. induction d as [|x d IH]; intros [|y v] pre H; simpl in H; try discriminate; [reflexivity|]. inversion H as [[H1 H2]].
      cbn [indexed flat_map summed fold_right fst snd]. rewrite weighted_app by (apply flat_length; auto). rewrite sel_at, (IHt Ht) by auto.
      rewrite <- (IH v (pre ++ [y]) H2), <- app_assoc, app_length, Nat.add_1_r. reflexivity. }
    exact (HL d v nil H).
  - revert v H. induction d as [x ds IH] using tree_ind'. intros [y vs] H. simpl in H. inversion H as [[H1 H2]]. simpl.
    rewrite weighted_app by (apply flat_length; auto). rewrite (IHt Ht) by auto. f_equal.
    assert (forall ds vs pre, List.Forall (fun d => forall v, tree_map (shape t) d = tree_map (shape t) v ->
        summed (fun q => match walk (fst q) v with Some v1 => paired t v1 (snd q) | None => 0%R end) (paths (seed t) d) = weighted (tree_flat (flat t) d) (tree_flat (flat t) v)) ds ->
      map (tree_map (shape t)) ds = map (tree_map (shape t)) vs ->
      summed (fun q => match walk (fst q) (Node y (pre ++ vs)) with Some v1 => paired t v1 (snd q) | None => 0%R end)
        ((fix go i ts := match ts with nil => nil | d :: ts => map (fun q => (Node (Z.of_nat i) [fst q], snd q)) (paths (seed t) d) ++ go (S i) ts end) (length pre) ds) =
      weighted (flat_map (tree_flat (flat t)) ds) (flat_map (tree_flat (flat t)) vs)) as HL.
    { clear - Ht. induction ds as [|d ds IHds]; intros [|v vs] pre HF H; simpl in H; try discriminate; [reflexivity|]. inversion H as [[E1 E2]].
      inversion HF as [|? ? Hd HF']; subst. cbn [flat_map]. rewrite weighted_app by (apply (@flat_length (TTree t) Ht); exact E1).
      rewrite summed_app, summed_map, <- (Hd v E1), <- (IHds vs (pre ++ [v]) HF' E2), <- app_assoc, app_length, Nat.add_1_r. f_equal.
      apply summed_ext. intros q. cbn [fst snd walk]. now rewrite sel_at. }
    exact (HL ds vs nil IH H2).
Qed.

(* the derivative has the shape of the value *)
Lemma Deriv_shape : forall (U : NormedModule R_AbsRing) (u0 h : U) t, data t = true -> forall f v, Deriv U u0 h t f v -> shape t (f u0) = shape t v.
Proof.
  intros U u0 h. induction t; simpl; intros Ht f v H; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]); auto.
  - destruct (f u0), v. reflexivity.
  - exact (locally_singleton _ _ H).
  - destruct H as [H1 H2]. exact (f_equal2 pair (IHt1 Ht1 _ _ H1) (IHt2 Ht2 _ _ H2)).
  - destruct v as [v|v]; destruct H as (f1 & L & H1); rewrite (locally_singleton _ _ L); [exact (f_equal inl (IHt1 Ht1 _ _ H1))|exact (f_equal inr (IHt2 Ht2 _ _ H1))].
  - destruct H as (fs & L & HF). rewrite (locally_singleton _ _ L). clear L. induction HF as [|k d fs ds Hk HF IH]; simpl; auto. exact (f_equal2 cons (IHt Ht _ _ Hk) IH).
  - destruct H as (ft & L & HT). rewrite (locally_singleton _ _ L). clear L. revert v HT. induction ft as [k ts IH] using tree_ind'. intros v HT.
    inversion HT as [? b ? us Hk Hts]; subst. simpl. f_equal; [exact (IHt Ht _ _ Hk)|]. clear - IH Hts. revert us Hts.
    induction IH as [|s ts Hs _ IHts]; intros us Hts; inversion Hts; subst; simpl; auto. exact (f_equal2 cons (Hs _ H1) (IHts _ H3)).
Qed.
Lemma Derivs_shapes : forall (U : NormedModule R_AbsRing) (u0 h : U) G, datas G = true -> forall f v, Derivs U u0 h G f v -> shapes G (f u0) = shapes G v.
Proof.
  intros U u0 h. induction G as [|t G IH]; simpl; intros HG f v H; [destruct (f u0), v; reflexivity|]. apply andb_prop in HG as [H1 H2]. destruct H as [D1' D2'].
  exact (f_equal2 pair (@Deriv_shape U u0 h t H1 _ _ D1') (IH H2 _ _ D2')).
Qed.
(* value, and for a cotangent of the result, in the shape of the result, the cotangent of the inputs, in the shape of the inputs *)
Definition pulled (fuel : nat) {G t} (e : tm G t) (x : env R G) (dt : den R t) : option (den R (D1 t) * env R G) :=
  match ev RO fuel (combinator e) (value (cx G) (pack R G x), tt) with
  | Some ((y, back), _, _) => match back (seed t dt) with Some (dx, _, _) => Some (y, collects G x dx) | None => None end
  | None => None
  end.
Theorem pulled_correct : forall fuel (U : NormedModule R_AbsRing) (u0 h : U) G t (e : tm G t) f v y n dt,
  datas G = true -> data t = true -> Derivs U u0 h G f v -> ev RO fuel e (f u0) = Some (y, n, 0) -> shape t dt = shape t y ->
  exists F dy dx,
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, n, 0)) /\
    Deriv U u0 h t F dy /\
    pulled fuel e (f u0) dt = Some (value t y, dx) /\
    shapes G dx = shapes G (f u0) /\
    weighted (flats G dx) (flats G v) = weighted (flat t dt) (flat t dy).
Proof.
  intros fuel U u0 h G t e f v y n dt HG Ht HD He Hs.
  destruct (@combinator_correct fuel U u0 h G t e f v y n HG Ht HD He) as (F & dy & back & k & L & HF & Ek & HB).
  assert (F u0 = y) as Ey by (pose proof (locally_singleton _ _ L) as X; simpl in X; congruence).
  assert (shape t dt = shape t dy) as Hs' by (rewrite Hs, <- Ey; exact (@Deriv_shape U u0 h t Ht _ _ HF)).
  destruct (HB dt Hs') as (dx & c & Ec & Hc). exists F, dy, (collects G (f u0) dx). unfold pulled. rewrite Ek, Ec.
  split; [exact L|split; [exact HF|split; [reflexivity|split; [apply collects_shape, HG|]]]].
  rewrite collects_paired by (auto; exact (@Derivs_shapes U u0 h G HG _ _ HD)). rewrite Hc. exact (@seed_weighted t Ht _ _ Hs').
Qed.
