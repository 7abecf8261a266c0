(* The combinator mode as a whole (C section 6): compile to combinators, transpose, and put data in and out.  [combinator_correct]: the
   program that comes out is a term of Language.v; at a point where the source ends without kinks it returns the value and a map back,
   and what the map returns, paired with any velocity of the inputs, is the cotangent of the result paired with the derivative. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Delta Monadic Reverse Shape Triple Combinator Cotangent Transpose.
Require Import Adjoint AdjointFunction AdjointLoop AdjointArray AdjointData AdjointOp AdjointNumber.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

Definition combinator {G t} (e : tm G t) : tm [D1 (cx G)] (run_ty (cx G) t) := DC (comp e) nil.

(* ---- data in and out --------------------------------------------------------------------------- *)
(* data are what they were *)
Fixpoint value (t : ty) : den R t -> den R (D1 t) :=
  match t return den R t -> den R (D1 t) with
  | TR | TU | TI => fun x => x
  | TProd a b => fun x => (value a (fst x), value b (snd x))
  | TSum a b => fun x => match x with inl y => inl (value a y) | inr y => inr (value b y) end
  | TFun a b => fun _ _ => None
  | TArr a => map (value a)
  | TTree a => tree_map (value a)
  end.
(* a cotangent that is given in the shape of the value *)
Fixpoint indexed {A B} (f : A -> B) (i : nat) (l : list A) : list (Z * B) :=
  match l with nil => nil | x :: l => (Z.of_nat i, f x) :: indexed f (S i) l end.
Fixpoint paths {A B} (f : A -> B) (t : tree A) : list (tree Z * B) :=
  match t with
  | Node a ts => (Node 0%Z nil, f a) ::
      (fix go i ts := match ts with nil => nil | t :: ts => map (fun q => (Node (Z.of_nat i) [fst q], snd q)) (paths f t) ++ go (S i) ts end) 0 ts
  end.
Fixpoint seed (t : ty) : den R t -> den R (D2 t) :=
  match t return den R t -> den R (D2 t) with
  | TR => fun x => x
  | TU | TI => fun _ => tt
  | TProd a b => fun x => (seed a (fst x), seed b (snd x))
  | TSum a b => fun x => match x with inl y => (seed a y, zerov b) | inr y => (zerov a, seed b y) end
  | TFun a b => fun _ => nil
  | TArr a => indexed (seed a) 0
  | TTree a => paths (seed a)
  end.
(* a cotangent paired with a tangent *)
Fixpoint paired (t : ty) : den R t -> den R (D2 t) -> R :=
  match t return den R t -> den R (D2 t) -> R with
  | TR => Rmult
  | TU | TI => fun _ _ => 0%R
  | TProd a b => fun v d => (paired a (fst v) (fst d) + paired b (snd v) (snd d))%R
  | TSum a b => fun v d => match v with inl v => paired a v (fst d) | inr v => paired b v (snd d) end
  | TFun a b => fun _ _ => 0%R
  | TArr a => fun v => fold_right (fun q w => (match sel v (fst q) with Some v1 => paired a v1 (snd q) | None => 0 end + w)%R) 0%R
  | TTree a => fun v => fold_right (fun q w => (match walk (fst q) v with Some v1 => paired a v1 (snd q) | None => 0 end + w)%R) 0%R
  end.
(* the observer that pairs with a tangent *)
Fixpoint watch (t : ty) : den R t -> obs t :=
  match t return den R t -> obs t with
  | TR => fun v => v
  | TU | TI => fun _ => tt
  | TProd a b => fun v => (watch a (fst v), watch b (snd v))
  | TSum a b => fun v => match v with inl v => inl (watch a v) | inr v => inr (watch b v) end
  | TFun a b => fun _ _ _ _ => False
  | TArr a => map (watch a)
  | TTree a => tree_map (watch a)
  end.
Lemma walk_map : forall A B (f : A -> B) p t, walk p (tree_map f t) = option_map f (walk p t).
Proof.
  intros A B f. induction p as [i ps IH] using tree_ind'. intros [a ts]. simpl. destruct ps as [|p ps]; [reflexivity|].
  rewrite sel_map. destruct (sel ts i); [|reflexivity]. simpl. inversion IH; subst. auto.
Qed.
Lemma watch_paired : forall t, data t = true -> forall v d w, weigh t (watch t v) d w -> paired t v d = w.
Proof.
  induction t; simpl; intros Ht v d w H; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]); auto.
  - destruct H as (w1 & w2 & H1 & H2 & ->). now rewrite (IHt1 Ht1 _ _ _ H1), (IHt2 Ht2 _ _ _ H2).
  - destruct v as [v|v]; [apply (IHt1 Ht1 _ _ _ H)|apply (IHt2 Ht2 _ _ _ H)].
  - induction H as [|q l w w' (o & Hs & Ho) HB IH]; simpl; [reflexivity|]. apply sel_map_some in Hs as (v1 & Hs & ->).
    refine (f_equal2 Rplus (eq_trans (f_equal (fun s => match s with Some v1 => paired t v1 (snd q) | None => 0%R end) Hs) (IHt Ht _ _ _ Ho)) IH).
  - induction H as [|q l w w' (o & Hs & Ho) HB IH]; simpl; [reflexivity|]. rewrite walk_map in Hs.
    destruct (walk (fst q) v) as [v1|] eqn:Hv; [|discriminate]. apply (f_equal (fun s => match s with Some o => o | None => o end)) in Hs. simpl in Hs. subst o.
    refine (f_equal2 Rplus (eq_trans (f_equal (fun s => match s with Some v1 => paired t v1 (snd q) | None => 0%R end) Hv) (IHt Ht _ _ _ Ho)) IH).
Qed.
Lemma Bag_map : forall I J (item : I -> R -> Prop) (item' : J -> R -> Prop) (f : I -> J) l w,
  (forall x w, item x w -> item' (f x) w) -> Bag item l w -> Bag item' (map f l) w.
Proof. intros I J item item' f l w H HB. induction HB; simpl; constructor; auto. Qed.
Lemma seed_weighs : forall t, data t = true -> forall d v, shape t d = shape t v -> exists w, weigh t (watch t v) (seed t d) w.
Proof.
  induction t; simpl; intros Ht d v Hs; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]).
  - eexists. reflexivity.
  - eexists. reflexivity.
  - eexists. reflexivity.
  - inversion Hs as [[H1 H2]]. destruct (IHt1 Ht1 _ _ H1) as (w1 & Hw1). destruct (IHt2 Ht2 _ _ H2) as (w2 & Hw2).
    exists (w1 + w2)%R, w1, w2. auto.
  - destruct d as [d|d], v as [v|v]; try discriminate; inversion Hs as [[H1]]; [apply (IHt1 Ht1 _ _ H1)|apply (IHt2 Ht2 _ _ H1)].
  - assert (forall (d v : list (den R t)) pre, map (shape t) d = map (shape t) v -> exists w, weigh (TArr t) (pre ++ map (watch t) v) (indexed (seed t) (length pre) d) w) as HL.
    { clear d v Hs. induction d as [|x d IH]; intros [|y v] pre Hs; simpl in *; try discriminate; [exists 0%R; constructor|].
      inversion Hs as [[H1 H2]]. destruct (IHt Ht _ _ H1) as (w1 & Hw1). destruct (IH v (pre ++ [watch t y]) H2) as (w2 & Hw2).
      rewrite app_length, Nat.add_1_r, <- app_assoc in Hw2. exists (w1 + w2)%R. constructor; [|exact Hw2].
      exists (watch t y). split; [|exact Hw1]. cbn [fst]. rewrite sel_nat, nth_error_app2, Nat.sub_diag by lia. reflexivity. }
    exact (HL d v nil Hs).
  - revert v Hs. induction d as [x ds IH] using tree_ind'. intros [y vs] Hs. simpl in Hs. inversion Hs as [[H1 H2]].
    destruct (IHt Ht _ _ H1) as (w1 & Hw1). simpl.
    assert (forall pre ds vs, List.Forall (fun d => forall v, tree_map (shape t) d = tree_map (shape t) v -> exists w, weigh (TTree t) (tree_map (watch t) v) (paths (seed t) d) w) ds ->
      map (tree_map (shape t)) ds = map (tree_map (shape t)) vs -> exists w, weigh (TTree t) (Node (watch t y) (pre ++ map (tree_map (watch t)) vs))
       ((fix go i ts := match ts with nil => nil | d :: ts => map (fun q => (Node (Z.of_nat i) [fst q], snd q)) (paths (seed t) d) ++ go (S i) ts end) (length pre) ds) w) as HL.
    { clear. intros pre ds. revert pre. induction ds as [|d ds IHds]; intros pre [|v vs] HF Hs; simpl in Hs; try discriminate; [exists 0%R; constructor|].
      inversion HF as [|? ? Hd HF']; subst. assert (tree_map (shape t) d = tree_map (shape t) v) as E1 by congruence.
      assert (map (tree_map (shape t)) ds = map (tree_map (shape t)) vs) as E2 by congruence.
      destruct (Hd v E1) as (w1 & Hw1). destruct (IHds (pre ++ [tree_map (watch t) v]) vs HF' E2) as (w2 & Hw2).
      rewrite app_length, Nat.add_1_r, <- app_assoc in Hw2. exists (w1 + w2)%R. apply Bag_app; [|exact Hw2].
      eapply Bag_map; [|exact Hw1]. intros q w (o & Hw & Ho). exists o. split; [|exact Ho]. cbn [fst].
      apply walk_into with (t := tree_map (watch t) v); [|exact Hw]. rewrite sel_nat, nth_error_app2, Nat.sub_diag by lia. reflexivity. }
    destruct (HL nil ds vs IH H2) as (w2 & Hw2). exists (w1 + w2)%R. constructor; [|exact Hw2]. exists (watch t y). split; [reflexivity|exact Hw1].
Qed.

Section Mode.
Variable fuel : nat.
Variable U : NormedModule R_AbsRing.
Variables u0 h : U.
Notation near P := (@locally U u0 P).
Theorem fundamental : forall a b (c : comb a b), Image fuel U u0 h (fun x => cden RO fuel c x) (DC c).
Proof.
  induction c; cbn [cden DC].
  - apply i_id.
  - exact (i_seq IHc1 IHc2).
  - exact (i_pair IHc1 IHc2).
  - intros G r f g o HV. apply E_tick with (F := fun u => cden RO fuel c (f u)). apply IHc, HV.
  - apply i_ev.
  - exact (i_curry IHc).
  - exact (i_fix IHc).
  - exact (i_case IHc1 IHc2).
  - apply i_op0.
  - apply i_op1.
  - apply i_op2.
  - apply i_op3.
  - exact (i_loop IHc).
  - exact (i_build IHc).
  - exact (i_map IHc).
  - exact (i_fold IHc).
  - apply i_lit.
  - apply i_prim1.
  - apply i_prim2.
  - apply i_primi.
  - apply i_cmp.
  - apply i_round.
  - apply i_real.
  - apply i_sum.
  - apply i_dot.
Qed.
Lemma Deriv_V : forall t, data t = true -> forall f v, Deriv U u0 h t f v -> V U u0 h t f (value t (f u0)) (watch t v).
Proof.
  induction t; simpl; intros Ht f v H; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]); auto.
  - destruct H as (l & Hl & E). split; [reflexivity|]. exists l. auto.
  - pose proof (locally_singleton _ _ H) as E. simpl in E. rewrite E. exact H.
  - destruct H as [H1 H2]. split; [exact (IHt1 Ht1 _ _ H1)|exact (IHt2 Ht2 _ _ H2)].
  - destruct v as [v|v]; destruct H as (f1 & L & H1); rewrite (locally_singleton _ _ L); exists f1; split; auto.
  - destruct H as (fs & L & HF). rewrite (locally_singleton _ _ L).
    assert (exists qs : list ((U -> den R t) * obs t), (forall u, map (fun k => k u) fs = map (fun q => fst q u) qs) /\ map (watch t) v = map snd qs /\
      Forall2 (fun q g => V U u0 h t (fst q) g (snd q)) qs (map (value t) (map (fun k => k u0) fs))) as (qs & E1 & E2 & HQ).
    { clear L. induction HF as [|k d fs ds Hk HF (qs & E1 & E2 & IH)]; [exists nil; split; [reflexivity|split; [reflexivity|constructor]]|].
      exists ((k, watch t d) :: qs). split; [intros u; exact (f_equal (cons (k u)) (E1 u))|split; [exact (f_equal (cons _) E2)|]].
      constructor; [exact (IHt Ht _ _ Hk)|exact IH]. }
    exists qs. split; [|split; [exact E2|exact HQ]]. revert L. apply near1. intros u ->. apply E1.
  - destruct H as (ft & L & HT). rewrite (locally_singleton _ _ L).
    assert (exists qt : tree ((U -> den R t) * obs t), (forall u, tree_at U ft u = tree_map (fun q => fst q u) qt) /\ tree_map (watch t) v = tree_map snd qt /\
      tree2 (fun q g => V U u0 h t (fst q) g (snd q)) qt (tree_map (value t) (tree_at U ft u0))) as (qt & E1 & E2 & HQ).
    { clear L. revert v HT. induction ft as [k ts IH] using tree_ind'. intros v HT. inversion HT as [? b ? us Hk Hts]; subst. clear HT.
      assert (exists qts : list (tree ((U -> den R t) * obs t)), (forall u, map (fun s => tree_at U s u) ts = map (tree_map (fun q => fst q u)) qts) /\
        map (tree_map (watch t)) us = map (tree_map snd) qts /\
        Forall2 (tree2 (fun q g => V U u0 h t (fst q) g (snd q))) qts (map (tree_map (value t)) (map (fun s => tree_at U s u0) ts))) as (qts & E1 & E2 & HQ).
      { revert us Hts. induction IH as [|s ts Hs _ IHts]; intros us Hts; inversion Hts; subst; [exists nil; split; [reflexivity|split; [reflexivity|constructor]]|].
        destruct (Hs _ H1) as (qt & A1 & A2 & A3). destruct (IHts _ H3) as (qts & B1 & B2 & B3). exists (qt :: qts).
        split; [intros u; exact (f_equal2 cons (A1 u) (B1 u))|split; [exact (f_equal2 cons A2 B2)|constructor; assumption]]. }
      exists (Node (k, watch t b) qts). split; [intros u; exact (f_equal (Node (k u)) (E1 u))|split; [exact (f_equal (Node _) E2)|]].
      constructor; [exact (IHt Ht _ _ Hk)|exact HQ]. }
    exists qt. split; [|split; [exact E2|exact HQ]]. revert L. apply near1. intros u ->. apply E1.
Qed.
Lemma V_Deriv : forall t, data t = true -> forall f g o, V U u0 h t f g o ->
  exists v, Deriv U u0 h t f v /\ o = watch t v /\ g = value t (f u0).
Proof.
  induction t; simpl; intros Ht f g o H; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]).
  - destruct H as (E & l & Hl & Eo). exists (l h). split; [exists l; auto|auto].
  - exists tt. destruct o, g, (f u0). auto.
  - exists g. split; [exact H|]. destruct o. split; [reflexivity|]. symmetry. exact (locally_singleton _ _ H).
  - destruct H as [H1 H2]. destruct (IHt1 Ht1 _ _ _ H1) as (v1 & A1 & A2 & A3). destruct (IHt2 Ht2 _ _ _ H2) as (v2 & B1 & B2 & B3).
    exists (v1, v2). split; [split; [exact A1|exact B1]|]. split; [rewrite (surjective_pairing o); exact (f_equal2 pair A2 B2)|rewrite (surjective_pairing g); exact (f_equal2 pair A3 B3)].
  - destruct g as [g|g], o as [o|o]; try contradiction; destruct H as (f1 & L & H1); rewrite (locally_singleton _ _ L).
    + destruct (IHt1 Ht1 _ _ _ H1) as (v & A1 & A2 & A3). exists (inl v). split; [exists f1; auto|]. split; [exact (f_equal inl A2)|exact (f_equal inl A3)].
    + destruct (IHt2 Ht2 _ _ _ H1) as (v & A1 & A2 & A3). exists (inr v). split; [exists f1; auto|]. split; [exact (f_equal inr A2)|exact (f_equal inr A3)].
  - destruct H as (qs & L & -> & HF). rewrite (locally_singleton _ _ L).
    assert (exists vs, Forall2 (Deriv U u0 h t) (map fst qs) vs /\ map snd qs = map (watch t) vs /\ g = map (value t) (map (fun q => fst q u0) qs)) as (vs & A1 & A2 & A3).
    { clear L. induction HF as [|q g1 qs g Hq HF (vs & A1 & A2 & A3)]; [exists nil; split; [constructor|split; reflexivity]|].
      destruct (IHt Ht _ _ _ Hq) as (v & B1 & B2 & B3). exists (v :: vs). split; [constructor; assumption|].
      split; [exact (f_equal2 cons B2 A2)|exact (f_equal2 cons B3 A3)]. }
    exists vs. split; [exists (map fst qs); split; [|exact A1]|split; assumption]. revert L. apply near1. intros u ->. now rewrite map_map.
  - destruct H as (qt & L & -> & HT). rewrite (locally_singleton _ _ L).
    assert (exists vt, tree2 (Deriv U u0 h t) (tree_map fst qt) vt /\ tree_map snd qt = tree_map (watch t) vt /\ g = tree_map (value t) (tree_map (fun q => fst q u0) qt) /\
      forall u, tree_at U (tree_map fst qt) u = tree_map (fun q => fst q u) qt) as (vt & A1 & A2 & A3 & A4).
    { clear L. revert g HT. induction qt as [q qts IH] using tree_ind'. intros g HT. inversion HT as [? b ? us Hq Hqs]; subst. clear HT.
      destruct (IHt Ht _ _ _ Hq) as (v & B1 & B2 & B3).
      assert (exists vts, Forall2 (tree2 (Deriv U u0 h t)) (map (tree_map fst) qts) vts /\ map (tree_map snd) qts = map (tree_map (watch t)) vts /\
        us = map (tree_map (value t)) (map (tree_map (fun q => fst q u0)) qts) /\
        forall u, map (fun s => tree_at U s u) (map (tree_map fst) qts) = map (tree_map (fun q => fst q u)) qts) as (vts & C1 & C2 & C3 & C4).
      { revert us Hqs. induction IH as [|s ts Hs _ IHts]; intros us Hts; inversion Hts; subst; [exists nil; split; [constructor|split; [reflexivity|split; reflexivity]]|].
        destruct (Hs _ H1) as (vt & D1 & D2 & D3 & D4). destruct (IHts _ H3) as (vts & E1 & E2 & E3 & E4). exists (vt :: vts).
        split; [constructor; assumption|split; [exact (f_equal2 cons D2 E2)|split; [exact (f_equal2 cons D3 E3)|]]]. intros u. exact (f_equal2 cons (D4 u) (E4 u)). }
      exists (Node v vts). split; [constructor; assumption|split; [exact (f_equal2 (@Node _) B2 C2)|split; [exact (f_equal2 (@Node _) B3 C3)|]]].
      intros u. exact (f_equal (Node (fst q u)) (C4 u)). }
    exists vt. split; [exists (tree_map fst qt); split; [|exact A1]|split; assumption]. revert L. apply near1. intros u ->. symmetry. apply A4.
Qed.
Lemma Derivs_pack : forall G f v, Derivs U u0 h G f v -> Deriv U u0 h (cx G) (fun u => pack R G (f u)) (pack R G v).
Proof. induction G as [|t G IH]; simpl; intros f v H; [exact I|]. destruct H as [H1 H2]. split; [exact (IH _ _ H2)|exact H1]. Qed.
Lemma datas_cx : forall G, datas G = true -> data (cx G) = true.
Proof. induction G as [|t G IH]; simpl; intros H; auto. apply andb_prop in H as [H1 H2]. apply andb_true_intro. auto. Qed.
End Mode.

Theorem combinator_correct : forall fuel (U : NormedModule R_AbsRing) (u0 h : U) G t (e : tm G t) f v y n,
  datas G = true -> data t = true -> Derivs U u0 h G f v -> ev RO fuel e (f u0) = Some (y, n, 0) ->
  exists F dy back k,
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, n, 0)) /\
    Deriv U u0 h t F dy /\
    ev RO fuel (combinator e) (value (cx G) (pack R G (f u0)), tt) = Some ((value t y, back), k, 0) /\
    forall dt, shape t dt = shape t dy -> exists dx c,
      back (seed t dt) = Some (dx, c, 0) /\ paired (cx G) (pack R G v) dx = paired t dy (seed t dt).
Proof.
  intros fuel U u0 h G t e f v y n HG Ht HD He. pose proof (datas_cx G HG) as HX.
  pose proof (@Deriv_V U u0 h (cx G) HX _ _ (@Derivs_pack U u0 h G f v HD)) as HV.
  rewrite <- comp_ok in He. destruct (@fundamental fuel U u0 h _ _ (comp e) nil tt _ _ _ HV _ _ He) as (F & L & [g back] & k & Ek & o & Ho & HB).
  destruct (@V_Deriv U u0 h t Ht _ _ _ Ho) as (dy & HF & -> & Eg). simpl in Eg.
  assert (F u0 = y) as Ey by (pose proof (locally_singleton _ _ L) as X; simpl in X; congruence). subst y. subst g.
  exists F, dy, back, k. split; [revert L; apply near1; intros u E1; rewrite <- comp_ok; exact E1|]. split; [exact HF|]. split; [exact Ek|].
  intros dt Hs. destruct (@seed_weighs t Ht dt dy Hs) as (w & Hw). destruct (HB _ _ Hw) as (dx & c & Ec & Hc). exists dx, c. split; [exact Ec|].
  rewrite (@watch_paired _ HX _ _ _ Hc). symmetry. exact (@watch_paired t Ht _ _ _ Hw).
Qed.
