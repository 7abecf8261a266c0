(* The combinator mode is right for operations on arrays and trees (see Adjoint.v): each takes the items of a bag to where they came from. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Triple Combinator Cotangent Transpose Adjoint AdjointArray AdjointData.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Section Here.
Variable fuel : nat.
Variable U : NormedModule R_AbsRing.
Variables u0 h : U.
Notation diff f l := (@filterdiff R_AbsRing U R_NormedModule f (locally u0) l).
Notation near P := (@locally U u0 P).
Notation evR e := (ev RO fuel e).
Notation cdenR c := (cden RO fuel c).
Notation near2 := (@near2 U u0).
Notation near1 := (@near1 U u0).
Notation always := (@always U u0).
Notation here := (@here U u0).
Notation V := (V U u0 h).
Notation E := (E U u0).
Notation Back := (Back U u0 h).
Notation Image := (Image fuel U u0 h).

Lemma o_get : forall a, @Adjoint.Image fuel U u0 h (TProd (TArr a) TI) a (fun p => mget (fst p) (snd p)) (d_op2 (OGet a)).
Proof.
  intros a G r f [gl i] [ol oi] [(qs & L & Ho & HF) Hi]. cbn [fst snd] in *. subst ol.
  apply E_germ with (F := fun u => mget (map (fun q => fst q u) qs) i).
  { revert L Hi. apply near2. intros u E1 E2. cbv beta. now rewrite E1, E2. }
  intros a0 n0 H0. rewrite mget_sel, sel_map in H0. destruct (sel qs i) as [q|] eqn:Hq; [|discriminate]. inversion H0; subst.
  destruct (Forall2_sel _ HF Hq) as (g1 & Hg & HV). exists (fst q). split.
  - apply always. intros u. now rewrite mget_sel, sel_map, Hq.
  - cbn [d_op2]. w. eapply g_get; [exact Hg|]. w. exists (snd q). split; [exact HV|]. intros d w Hd. cbn [snd]. w.
    exists w, 0%R. split; [|split; [reflexivity|ring]]. apply Bag_single. exists (snd q). split; [exact (sel_some_map snd _ _ Hq)|exact Hd].
Qed.
Lemma o_cons : forall a, @Adjoint.Image fuel U u0 h (TProd a (TArr a)) (TArr a) (fun p => ret (fst p :: snd p)) (d_op2 (OCons a)).
Proof.
  intros a G r f [g gl] [o ol] [Hx (qs & L & Ho & HF)]. cbn [fst snd] in *. subst ol. apply E_ret with (f := fun u => fst (f u) :: snd (f u)).
  cbn [d_op2]. w. exists (o :: map snd qs). split.
  - exists ((fun u => fst (f u), o) :: qs). split; [|split; [reflexivity|constructor; assumption]]. revert L. apply near1. intros u ->. reflexivity.
  - intros d w Hd. cbn [snd]. eapply w_bag; [w; exact Hd|]. intros [i e] acc w1 (o1 & Hs & He). apply sel_cons in Hs as [S1 S2]. cbn [fst snd] in *. w. split; intros Hi.
    + rewrite (S1 Hi) in He. w. apply (w_zero fuel (TArr a) (map snd qs)). intros z Hz. exists w1, 0%R. split; [exact He|split; [exact Hz|ring]].
    + w. apply (w_zero fuel a o). intros z Hz. w. exists 0%R, w1. split; [exact Hz|split; [|ring]]. apply Bag_single. exists o1. split; [exact (S2 Hi)|exact He].
Qed.
Lemma o_snoc : forall a, @Adjoint.Image fuel U u0 h (TProd (TArr a) a) (TArr a) (fun p => ret (fst p ++ [snd p])) (d_op2 (OSnoc a)).
Proof.
  intros a G r f [gl g] [ol o] [(qs & L & Ho & HF) Hx]. cbn [fst snd] in *. subst ol. apply E_ret with (f := fun u => fst (f u) ++ [snd (f u)]).
  cbn [d_op2]. w. exists (map snd qs ++ [o]). split.
  - exists (qs ++ [(fun u => snd (f u), o)]). split; [|split; [now rewrite map_app|]].
    + revert L. apply near1. intros u ->. now rewrite map_app.
    + apply Forall2_app; [exact HF|]. constructor; [exact Hx|constructor].
  - assert (length (map snd qs) = length gl) as Hlen by (rewrite map_length; exact (Forall2_len HF)).
    intros d w Hd. cbn [snd]. eapply w_bag; [w; exact Hd|]. intros [i e] acc w1 (o1 & Hs & He). apply sel_snoc in Hs as [S1 S2]. cbn [fst snd] in *. w. split; intros Hi.
    + assert (o1 = o) as E1 by (apply S1; refine (eq_trans Hi (f_equal Z.of_nat (eq_sym Hlen)))). rewrite E1 in He.
      w. apply (w_zero fuel (TArr a) (map snd qs)). intros z Hz. w. exists 0%R, w1. split; [exact Hz|split; [exact He|ring]].
    + assert (sel (map snd qs) i = Some o1) as E1 by (apply S2; intros E2; apply Hi; refine (eq_trans E2 (f_equal Z.of_nat Hlen))).
      w. apply (w_zero fuel a o). intros z Hz. exists w1, 0%R. split; [|split; [exact Hz|ring]]. apply Bag_single. exists o1. split; [exact E1|exact He].
Qed.
Lemma forest : forall a (qs : list ((U -> tree (den R a)) * tree (obs a))) gs, Forall2 (fun q g => V (TTree a) (fst q) g (snd q)) qs gs ->
  exists qts, near (fun u => map (fun q => fst q u) qs = map (tree_map (fun q => fst q u)) qts) /\ map snd qs = map (tree_map snd) qts /\
    Forall2 (tree2 (fun q g => V a (fst q) g (snd q))) qts gs.
Proof.
  intros a qs gs H. induction H as [|q g qs gs (qt & L & Ho & HT) HF (qts & L' & Ho' & IH)].
  - exists nil. split; [apply always; reflexivity|split; [reflexivity|constructor]].
  - exists (qt :: qts). split; [|split; [|constructor; assumption]].
    + revert L L'. apply near2. intros u E1 E2. exact (f_equal2 cons E1 E2).
    + exact (f_equal2 cons Ho Ho').
Qed.
Lemma o_node : forall a, @Adjoint.Image fuel U u0 h (TProd a (TArr (TTree a))) (TTree a) (fun p => ret (Node (fst p) (snd p))) (d_op2 (ONode a)).
Proof.
  intros a G r f [g gl] [o ol] [Hx (qs & L & Ho & HF)]. cbn [fst snd] in *. subst ol. apply E_ret with (f := fun u => Node (fst (f u)) (snd (f u))).
  cbn [d_op2]. w. exists (Node o (map snd qs)). split.
  - destruct (forest HF) as (qts & L' & Ho' & HT). exists (Node (fun u => fst (f u), o) qts). split; [|split; [|constructor; assumption]].
    + revert L L'. apply near2. intros u E1 E2. rewrite E1. simpl. exact (f_equal (Node (fst (f u))) E2).
    + exact (f_equal (Node o) Ho').
  - intros d w Hd. cbn [snd]. eapply w_bag; [w; exact Hd|]. intros [[i ps] e] acc w1 (o1 & Hs & He). cbn [fst snd] in *. destruct ps as [|p ps]; cbn [walk] in Hs.
    + inversion Hs; subst o1. w. split; intros Hi; [|exfalso; apply Hi; reflexivity].
      w. apply (w_zero fuel (TArr (TTree a)) (map snd qs)). intros z Hz. exists w1, 0%R. split; [exact He|split; [exact Hz|ring]].
    + destruct (sel (map snd qs) i) as [ot|] eqn:Hot; [|discriminate]. w. split; intros Hi; [simpl in Hi; lia|].
      w. apply (w_zero fuel a o). intros z Hz. w. eapply g_get; [reflexivity|]. w. exists 0%R, w1. split; [exact Hz|split; [|ring]].
      apply Bag_single. exists ot. split; [exact Hot|]. apply Bag_single. exists o1. split; [exact Hs|exact He].
Qed.
Lemma o_zip : forall a b, @Adjoint.Image fuel U u0 h (TProd (TArr a) (TArr b)) (TArr (TProd a b)) (fun p => mzip (fst p) (snd p)) (d_op2 (OZip a b)).
Proof.
  intros a b G r f [gl gl'] [ol ol'] [(qs & L & Ho & HF) (qs' & L' & Ho' & HF')]. cbn [fst snd] in *. subst ol ol'.
  apply E_germ with (F := fun u => mzip (map (fun q => fst q u) qs) (map (fun q => fst q u) qs')).
  { revert L L'. apply near2. intros u E1 E2. cbv beta. now rewrite E1, E2. }
  intros a0 n0 H0. pose proof (mzip_len _ _ H0) as Hl. rewrite !map_length in Hl.
  rewrite mzip_eq in H0 by (now rewrite !map_length). rewrite map_length in H0. inversion H0; subst. clear H0.
  exists (fun u => combine (map (fun q => fst q u) qs) (map (fun q => fst q u) qs')). split.
  - apply always. intros u. rewrite mzip_eq by (now rewrite !map_length). now rewrite map_length.
  - cbn [d_op2]. w. apply w_op2. w. cbn [op2v]. rewrite mzip_eq by exact (eq_trans (eq_sym (Forall2_len HF)) (eq_trans Hl (Forall2_len HF'))).
    eapply g_eq; [reflexivity|]. w. exists (combine (map snd qs) (map snd qs')). split.
    + exists (map (fun p => (fun u => (fst (fst p) u, fst (snd p) u), (snd (fst p), snd (snd p)))) (combine qs qs')).
      split; [|split].
      * apply always. intros u. clear - Hl. revert qs' Hl. induction qs; intros [|q' qs'] Hl; simpl in *; try discriminate; auto. f_equal. apply IHqs. lia.
      * clear - Hl. revert qs' Hl. induction qs; intros [|q' qs'] Hl; simpl in *; try discriminate; auto. f_equal. apply IHqs. lia.
      * clear - HF HF'. revert qs' gl' HF'. induction HF as [|q g qs gl Hq HF IH]; intros qs' gl' HF'; destruct HF' as [|q' g' qs' gl' Hq' HF']; simpl; try constructor.
        -- exact (conj Hq Hq').
        -- apply IH, HF'.
    + intros d w Hd. cbn [snd]. eapply w_bag; [w; exact Hd|]. intros [i [e e']] acc w1 ([o1 o2] & Hs & (w2 & w3 & Q1 & Q2 & ->)). cbn [fst snd] in *. w.
      apply sel_combine in Hs as [S1 S2]. exists w2, w3. split; [|split; [|reflexivity]]; apply Bag_single; eexists; (split; [eassumption|assumption]).
Qed.
Lemma ints : forall (qs : list ((U -> Z) * unit)) gs, Forall2 (fun q g => V TI (fst q) g (snd q)) qs gs -> near (fun u => map (fun q => fst q u) qs = gs).
Proof.
  intros qs gs H. induction H as [|q g qs gs Hq HF IH]; [apply always; reflexivity|]. revert Hq IH. apply near2. intros u E1 E2. exact (f_equal2 cons E1 E2).
Qed.
Lemma o_gather : forall a, @Adjoint.Image fuel U u0 h (TProd (TArr a) (TArr TI)) (TArr a)
  (fun p => mseq (fun i => tick (mget (fst p) i)) (snd p)) (d_op2 (OGather a)).
Proof.
  intros a G r f [gl is] [ol oi] [(qs & L & Ho & HF) (qi & L' & Ho' & HI)]. cbn [fst snd] in *. subst ol oi.
  apply E_germ with (F := fun u => mseq (fun i => tick (mget (map (fun q => fst q u) qs) i)) is).
  { generalize (filter_and _ _ L (filter_and _ _ L' (ints HI))). apply filter_imp. intros u (E1 & E2 & E3). cbv beta. rewrite E1. now rewrite (eq_trans E2 E3). }
  cbn [d_op2]. eapply E_right; [intros f2 H2; apply w_pair, w_op2; w; cbn [op2v]; exact H2|].
  assert (E (fun f1 l => exists zs, map fst zs = is /\ near (fun u => f1 u = map (fun z => snd z u) zs) /\
     Forall2 (fun z g1 => exists q, sel qs (fst z) = Some q /\ snd z = fst q /\ V a (fst q) g1 (snd q)) zs l)
     (fun u => mseq (fun i => tick (mget (map (fun q => fst q u) qs) i)) is) (mseq (fun i => tick (mget gl i)) is)) as HE.
  { eapply E_each with (R0 := eq) (P := fun i f1 g1 => exists q, sel qs i = Some q /\ f1 = fst q /\ V a (fst q) g1 (snd q))
      (F := fun u i => tick (mget (map (fun q => fst q u) qs) i)); [|apply Forall2_eq].
    intros i ? <-. apply E_tick with (F := fun u => mget (map (fun q => fst q u) qs) i). eapply E_right; [intros ?; apply g_tick|].
    intros a0 n0 H0. rewrite mget_sel, sel_map in H0. destruct (sel qs i) as [q|] eqn:Hq; [|discriminate]. inversion H0; subst.
    destruct (Forall2_sel _ HF Hq) as (g1 & Hg & HV). exists (fst q). split.
    - apply always. intros u. now rewrite mget_sel, sel_map, Hq.
    - eapply g_get; [exact Hg|]. exists q. auto. }
  eapply E_right; [|exact HE]. intros f1 H1. eapply g_imp; [exact H1|]. clear HE H1. intros l (zs & Ez & L1 & HZ).
  destruct (choose _ HZ) as (ts & Et & HT). w. exists (map (fun t => snd (snd t)) ts). split.
  - exists (map snd ts). split; [|split; [now rewrite map_map|]].
    + revert L1. apply near1. intros u ->. rewrite <- Et, !map_map. clear - HT. induction HT as [|t g1 ts l (_ & E1 & _) HT IH]; simpl; auto.
      exact (f_equal2 cons (f_equal (fun k => k u) E1) IH).
    + clear - HT. induction HT as [|t g1 ts l (_ & _ & HV) HT IH]; simpl; constructor; auto.
  - intros d w Hd. cbn [snd]. eapply w_bag; [w; exact Hd|]. intros [i e] acc w1 (o1 & Hs & He). cbn [fst snd] in *.
    apply sel_map_some in Hs as (t & Hs & ->). destruct (Forall2_sel _ HT Hs) as (g1 & _ & Hq & _).
    assert (sel is i = Some (fst (fst t))) as Hi by (rewrite <- Ez, <- Et; exact (sel_some_map fst _ _ (sel_some_map fst _ _ Hs))).
    w. eapply g_get; [exact Hi|]. w. apply (w_zero fuel (TArr TI) (map snd qi)). intros z Hz. exists w1, 0%R. split; [|split; [exact Hz|ring]].
    apply Bag_single. exists (snd (snd t)). split; [exact (sel_some_map snd _ _ Hq)|exact He].
Qed.
Lemma i_op2 : forall a b c (o : op2 a b c), @Adjoint.Image fuel U u0 h (TProd a b) c (fun p => op2v R o (fst p) (snd p)) (d_op2 o).
Proof.
  intros a b c o. destruct o; cbn [op2v].
  - intros G r f g [o o'] [H1 H2]. apply E_ret with (f := fun u => (fst (f u), snd (f u))). cbn [d_op2]. w. exists (o, o').
    split; [split; [exact H1|exact H2]|]. intros d w Hd. cbn [snd]. w. exact Hd.
  - apply o_get.
  - apply o_cons.
  - apply o_snoc.
  - apply o_node.
  - apply o_zip.
  - apply o_gather.
  - intros G r f [i j] [oi oj] [H1 H2]. cbn [fst snd] in *. apply E_germ with (F := fun _ => intopv o i j).
    { revert H1 H2. apply near2. intros u E1 E2. cbv beta. now rewrite E1, E2. }
    intros a0 n0 H0. exists (fun _ => a0). split; [apply always; intros _; exact H0|]. cbn [d_op2]. w. apply w_op2. w. eapply g_eq; [exact H0|].
    w. exists tt. split; [apply always; reflexivity|]. intros d w Hd. cbn [snd]. w. exists 0%R, 0%R. split; [reflexivity|split; [reflexivity|simpl in Hd; rewrite Hd; ring]].
  - intros G r f [i j] [oi oj] [H1 H2]. cbn [fst snd] in *. apply E_germ with (F := fun _ => ret (boolv (decide c (i ?= j)%Z))).
    { revert H1 H2. apply near2. intros u E1 E2. cbv beta. now rewrite E1, E2. }
    apply E_ret with (f := fun _ => boolv (decide c (i ?= j)%Z)). cbn [d_op2]. w. apply w_op2. w. cbn [op2v]. w.
    exists (boolv (decide c (i ?= j)%Z)). split; [destruct (decide c (i ?= j)%Z); exists (fun _ => tt); split; try exact I; apply always; reflexivity|].
    intros d w Hd. cbn [snd]. w. exists 0%R, 0%R. split; [reflexivity|split; [reflexivity|]].
    destruct (decide c (i ?= j)%Z); simpl in Hd; rewrite Hd; ring.
Qed.
Lemma w_op3 : forall G a b c d (o : op3 a b c d) (x : tm G a) (y : tm G b) (z : tm G c) r P,
  gives (evR x r) (fun x => gives (evR y r) (fun y => gives (evR z r) (fun z => gives (op3v R o x y z) P))) -> gives (evR (top3 o x y z) r) P.
Proof.
  intros G a b c d o x y z r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros p Hp. cbv beta in *. apply g_bind. eapply g_imp; [exact Hp|].
  intros q Hq. cbv beta in *. apply g_bind, Hq.
Qed.
Lemma i_op3 : forall a b c d (o : op3 a b c d),
  @Adjoint.Image fuel U u0 h (TProd (TProd a b) c) d (fun p => op3v R o (fst (fst p)) (snd (fst p)) (snd p)) (d_op3 o).
Proof.
  intros a b c d o. destruct o. intros G r f [[gl i] g] [[ol oi] o] [[(qs & L & Ho & HF) Hi] Hx]. cbn [fst snd op3v d_op3] in *. subst ol.
  apply E_germ with (F := fun u => mset (map (fun q => fst q u) qs) i (snd (f u))).
  { revert L Hi. apply near2. intros u E1 E2. cbv beta. now rewrite E1, E2. }
  intros a0 n0 H0. unfold mset in H0. rewrite mget_sel, sel_map in H0. destruct (sel qs i) as [q|] eqn:Hq; [|discriminate]. inversion H0; subst.
  destruct (Forall2_sel _ HF Hq) as (g1 & Hg & HV).
  assert (0 <= i)%Z as Hpos by (unfold sel in Hq; destruct (Z.ltb_spec i 0); [discriminate|lia]).
  exists (fun u => update (map (fun q => fst q u) qs) (Z.to_nat i) (snd (f u))). split.
  - apply always. intros u. unfold mset. rewrite mget_sel, sel_map, Hq. reflexivity.
  - w. apply w_op3. w. cbn [op3v]. unfold mset. apply g_bind. eapply g_get; [exact Hg|]. w.
    exists (update (map snd qs) (Z.to_nat i) o). split.
    + exists (update qs (Z.to_nat i) (fun u => snd (f u), o)). split; [|split].
      * apply always. intros u. symmetry. exact (map_update (fun q => fst q u) qs (Z.to_nat i) (fun u => snd (f u), o)).
      * symmetry. exact (map_update snd qs (Z.to_nat i) (fun u => snd (f u), o)).
      * apply Forall2_update; [exact HF|exact Hx].
    + intros d w Hd. cbn [snd]. eapply w_bag; [w; exact Hd|]. intros [j e] acc w1 (o1 & Hs & He). cbn [fst snd] in *.
      destruct (sel_update _ _ _ Hpos Hs) as [S1 S2]. w. split; intros Hj.
      * rewrite (S1 Hj) in He. w. apply (w_zero fuel (TArr a) (map snd qs)). intros z Hz. w. exists 0%R, w1. split; [|split; [exact He|ring]].
        exists 0%R, 0%R. split; [exact Hz|split; [reflexivity|ring]].
      * w. apply (w_zero fuel a o). intros z Hz. exists w1, 0%R. split; [|split; [exact Hz|ring]]. exists w1, 0%R. split; [|split; [reflexivity|ring]].
        apply Bag_single. exists o1. split; [exact (S2 Hj)|exact He].
Qed.
End Here.
