(* The primitives are differentiable on their domains, with the derivatives that the table of Primitive.v
   states.  Binary primitives are handled by composition: each is, near a point of its domain, built from
   sums, products and unary functions, so the chain rule does the rest. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Special Primitive.
Import ListNotations.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Open Scope R_scope.

(* ---- unary primitives ------------------------------------------------------------- *)
Lemma open_pos : forall x, 0 < x -> locally x (fun y => 0 < y).
Proof. intros x H. exact (open_gt 0 x H). Qed.
Lemma open_neg : forall x, x < 0 -> locally x (fun y => y < 0).
Proof. intros x H. exact (open_lt 0 x H). Qed.
Lemma open_nz : forall x, x <> 0 -> locally x (fun y => y <> 0).
Proof. intros x H. exact (open_neq 0 x H). Qed.

(* ---- away from the integers ------------------------------------------------------------- *)
Lemma Int_part_spec : forall x z, IZR z <= x < IZR z + 1 -> Int_part x = z.
Proof. intros x z H. unfold Int_part. rewrite <- (tech_up x (z + 1)); [lia| |]; rewrite plus_IZR; lra. Qed.
Lemma Int_part_open : forall x, frac_part x <> 0 ->
  locally x (fun y => Int_part y = Int_part x /\ frac_part y <> 0).
Proof.
  intros x H. destruct (base_fp x) as [H1 H2]. unfold frac_part in *.
  assert (locally x (fun y => 0 < y - IZR (Int_part x))) as L1.
  { apply (@continuous_minus R_UniformSpace R_AbsRing R_NormedModule (fun y => y) (fun _ => IZR (Int_part x)) x (continuous_id x) (continuous_const _ x)).
    apply open_pos. unfold minus, plus, opp; simpl. lra. }
  assert (locally x (fun y => y - IZR (Int_part x) < 1)) as L2.
  { apply (@continuous_minus R_UniformSpace R_AbsRing R_NormedModule (fun y => y) (fun _ => IZR (Int_part x)) x (continuous_id x) (continuous_const _ x) (fun z => z < 1)).
    apply (open_lt 1). unfold minus, plus, opp; simpl. lra. }
  generalize (filter_and _ _ L1 L2). apply filter_imp. intros y [A B].
  assert (Int_part y = Int_part x) as E by (apply Int_part_spec; lra). rewrite E. split; [auto|lra].
Qed.
Lemma regular_open : forall x, regular x = true -> locally x (fun y => regular y = true).
Proof.
  intros x H. unfold regular in *. apply Bool.orb_true_iff in H as [H|H].
  - apply pos_true, open_pos in H. revert H. apply filter_imp. intros y Hy. apply Bool.orb_true_iff. left. now apply pos_true.
  - apply nz_true, Int_part_open in H. revert H. apply filter_imp. intros y [_ Hy]. apply Bool.orb_true_iff. right. now apply nz_true.
Qed.
Lemma regular_nopole : forall x, regular x = true -> nopole x.
Proof.
  intros x H n Hn. unfold regular in H. apply Bool.orb_true_iff in H as [H|H].
  - apply pos_true in H. pose proof (pos_INR n). lra.
  - apply nz_true in H. apply H. assert (x = IZR (- Z.of_nat n)) as -> by (rewrite opp_IZR, <- INR_IZR_INZ; lra).
    unfold frac_part. rewrite (@Int_part_spec _ (- Z.of_nat n)); lra.
Qed.

Section Maps.
Variable U : NormedModule R_AbsRing.
Variable u0 : U.
Notation diff f l := (@filterdiff R_AbsRing U R_NormedModule f (locally u0) l).

Lemma diff_const : forall c : R, diff (fun _ => c) (fun _ => 0).
Proof. intros c. exact (@filterdiff_const R_AbsRing U R_NormedModule (locally u0) _ c). Qed.
Lemma diff_ext : forall (f l l' : U -> R), diff f l -> (forall h, l h = l' h) -> diff f l'.
Proof. intros f l l' H E. eapply filterdiff_ext_lin; eauto. Qed.
Lemma diff_germ : forall (f f' l : U -> R), locally u0 (fun u => f u = f' u) -> diff f l -> diff f' l.
Proof. intros f f' l E H. eapply filterdiff_ext_locally; eauto. Qed.
Lemma diff_plus : forall (f g lf lg : U -> R), diff f lf -> diff g lg ->
  diff (fun u => f u + g u) (fun h => lf h + lg h).
Proof. intros f g lf lg Hf Hg. exact (filterdiff_plus_fct f g lf lg Hf Hg). Qed.
Lemma diff_mult : forall (f g lf lg : U -> R), diff f lf -> diff g lg ->
  diff (fun u => f u * g u) (fun h => g u0 * lf h + f u0 * lg h).
Proof.
  intros f g lf lg Hf Hg. eapply diff_ext.
  - apply (@filterdiff_mult_fct R_AbsRing U f g u0 lf lg Rmult_comm Hf Hg).
  - intros h. unfold plus, mult; simpl. ring.
Qed.
Lemma diff_comp : forall (f lf : U -> R) (phi : R -> R) d, diff f lf -> is_derive phi (f u0) d ->
  diff (fun u => phi (f u)) (fun h => d * lf h).
Proof.
  intros f lf phi d Hf Hp. eapply diff_ext.
  - apply (@filterdiff_comp' R_AbsRing U R_NormedModule R_NormedModule f phi u0 lf _ Hf Hp).
  - intros h. unfold scal; simpl; unfold mult; simpl. ring.
Qed.
Lemma diff_cont : forall (f l : U -> R), diff f l -> @continuous U R_UniformSpace f u0.
Proof. intros f l H. apply (@filterdiff_continuous R_AbsRing U R_NormedModule f u0). exists l. exact H. Qed.
Lemma diff_near : forall (f l : U -> R) (P : R -> Prop), diff f l -> locally (f u0) P -> locally u0 (fun u => P (f u)).
Proof. intros f l P H HP. exact (diff_cont H HP). Qed.
End Maps.

Lemma prim1_open : forall p x, ok1 p x = true -> locally x (fun y => ok1 p y = true).
Proof.
  assert (forall (f : R -> R) x, continuous f x -> nz (f x) = true -> locally x (fun y => nz (f y) = true)) as Hn.
  { intros f x Hc H. apply nz_true, open_nz, Hc in H. unfold filtermap in H. revert H. apply filter_imp. intros y Hy. now apply nz_true. }
  assert (forall (f : R -> R) x, continuous f x -> pos (f x) = true -> locally x (fun y => pos (f y) = true)) as Hp.
  { intros f x Hc H. apply pos_true, open_pos, Hc in H. unfold filtermap in H. revert H. apply filter_imp. intros y Hy. now apply pos_true. }
  intros p x H. destruct p; simpl in *; try (apply filter_forall; reflexivity).
  1, 2: apply Hp with (f := fun x => x); auto; apply continuous_id.
  - apply Hn with (f := cos); auto. apply continuous_cos.
  - apply Hp with (f := fun x => 1 - x * x); auto. apply (@ex_derive_continuous R_AbsRing R_NormedModule). auto_derive; auto.
  - apply Hp with (f := fun x => 1 - x * x); auto. apply (@ex_derive_continuous R_AbsRing R_NormedModule). auto_derive; auto.
  - apply Hp with (f := fun x => 1 + x); auto. apply (@ex_derive_continuous R_AbsRing R_NormedModule). auto_derive; auto.
  - apply Hn with (f := fun x => x); auto. apply continuous_id.
  - apply regular_open, H.
Qed.
Lemma cosh_pos : forall x, 0 < cosh x.
Proof. intros x. unfold cosh. pose proof (exp_pos x). pose proof (exp_pos (- x)). lra. Qed.
Lemma prim1_derive : forall p x, ok1 p x = true -> is_derive (sem1 p) x (d1R p x).
Proof.
  intros p x H. destruct p; simpl in *; dom.
  - auto_derive; auto.
  - auto_derive; auto; ring.
  - auto_derive; [exact H|]. field; lra.
  - apply sqrt_lt_R0 in H as H'. replace (1 * powerRZ 2 (-1)) with (/ 2) by (unfold powerRZ; simpl; field). auto_derive; [exact H|]. field; lra.
  - auto_derive; auto; ring.
  - auto_derive; auto; ring.
  - evar_last; [apply is_derive_tan, H|]. ring.
  - assert (-1 < x < 1) as Hx by nra. apply is_derive_Reals.
    pose proof (derive_pt_asin x Hx) as E. apply derive_pt_eq_1 in E. unfold Rsqr in E. rewrite factored in E. exact E.
  - assert (-1 < x < 1) as Hx by nra. apply is_derive_Reals.
    pose proof (derive_pt_acos x Hx) as E. apply derive_pt_eq_1 in E. unfold Rsqr in E. rewrite factored in E. exact E.
  - evar_last; [apply is_derive_atan|]. unfold Rsqr. field. nra.
  - apply is_derive_Reals, derivable_pt_lim_sinh.
  - apply is_derive_Reals, derivable_pt_lim_cosh.
  - pose proof (cosh_pos x) as Hc.
    assert (is_derive (fun x => sinh x * / cosh x) x (1 - tanh x * tanh x)) as E; [|exact E].
    evar_last.
    + apply (@is_derive_mult R_AbsRing sinh (fun x => / cosh x) x).
      * apply is_derive_Reals, derivable_pt_lim_sinh.
      * apply is_derive_inv; [apply is_derive_Reals, derivable_pt_lim_cosh|lra].
      * intros; apply Rmult_comm.
    + unfold plus, mult; simpl. unfold tanh. field. lra.
  - auto_derive; [exact H|]. field; lra.
  - auto_derive; auto; ring.
  - destruct (@cmpR_spec x 0 H) as [[-> Hx]|[-> Hx]]; evar_last; try apply is_derive_Rabs with (f := fun x => x); auto;
      try apply @is_derive_id; unfold one; simpl.
    + rewrite sign_eq_m1 by auto. ring.
    + rewrite sign_eq_1 by auto. ring.
  - evar_last; [apply is_derive_scal, bell_derive|]. reflexivity.
  - apply lgamma_derive. generalize (regular_open _ H). apply filter_imp. exact regular_nopole.
Qed.
Lemma powerRZ_derive : forall x k, okpowi x k = true -> is_derive (fun x => powerRZ x k) x (dpowiR x k).
Proof.
  intros x k H. unfold dpowiR, okpowi in *. destruct k as [|p|p]; simpl Z.eqb; cbv iota.
  - apply is_derive_ext with (f := fun _ => 1); [reflexivity|]. apply @is_derive_const.
  - apply is_derive_ext with (f := fun x => x ^ Pos.to_nat p); [reflexivity|].
    replace (Zpos p - 1)%Z with (Z.of_nat (pred (Pos.to_nat p))) by lia.
    rewrite <- pow_powerRZ. auto_derive; auto.
    rewrite INR_IZR_INZ. replace (Z.of_nat (Pos.to_nat p)) with (Zpos p) by lia. ring.
  - simpl in H. dom.
    apply is_derive_ext with (f := fun x => / x ^ Pos.to_nat p); [reflexivity|].
    replace (Zneg p - 1)%Z with (- Z.of_nat (S (Pos.to_nat p)))%Z by lia.
    rewrite powerRZ_neg'. rewrite <- pow_powerRZ.
    pose proof (pow_nonzero x (Pos.to_nat p) H) as Hz.
    auto_derive; auto. rewrite INR_IZR_INZ. replace (Z.of_nat (Pos.to_nat p)) with (Zpos p) by lia.
    replace (Zneg p) with (- Zpos p)%Z by lia. rewrite opp_IZR.
    replace (x ^ Pos.to_nat p) with (x * x ^ pred (Pos.to_nat p)) by (rewrite tech_pow_Rmult; f_equal; lia).
    replace (x ^ S (Pos.to_nat p)) with (x * (x * x ^ pred (Pos.to_nat p))).
    2: { simpl. f_equal. rewrite tech_pow_Rmult. f_equal; lia. }
    pose proof (pow_nonzero x (pred (Pos.to_nat p)) H) as Hq. revert Hq.
    generalize (x ^ pred (Pos.to_nat p)). generalize (IZR (Zpos p)). intros c q Hq. field. auto.
Qed.
Lemma powi_open : forall x k, okpowi x k = true -> locally x (fun y => okpowi y k = true).
Proof.
  intros x k H. unfold okpowi in *. destruct (0 <=? k)%Z; simpl in *.
  - apply filter_forall. reflexivity.
  - apply nz_true, open_nz in H. revert H. apply filter_imp. intros y Hy. now apply nz_true.
Qed.

Lemma primi_derive : forall p x k, oki p x k = true -> is_derive (fun x => semi p x k) x (diR p x k).
Proof.
  intros [|] x k H; [exact (powerRZ_derive _ _ H)|]. apply Bool.andb_true_iff in H as [_ H].
  apply polygamma_derive. generalize (regular_open _ H). apply filter_imp. exact regular_nopole.
Qed.
Lemma primi_open : forall p x k, oki p x k = true -> locally x (fun y => oki p y k = true).
Proof.
  intros [|] x k H; [exact (powi_open _ _ H)|]. cbn [oki] in *. destruct (0 <=? k)%Z; [|discriminate]. exact (regular_open _ H).
Qed.

(* ---- binary primitives --------------------------------------------------------------- *)
Section Binary.
Variable U : NormedModule R_AbsRing.
Variable u0 : U.
Notation diff f l := (@filterdiff R_AbsRing U R_NormedModule f (locally u0) l).

Lemma diff_minus : forall (f g lf lg : U -> R), diff f lf -> diff g lg -> diff (fun u => f u - g u) (fun h => lf h - lg h).
Proof. intros f g lf lg Hf Hg. exact (filterdiff_minus_fct f g lf lg Hf Hg). Qed.
Lemma diff_div : forall (f g lf lg : U -> R), diff f lf -> diff g lg -> g u0 <> 0 ->
  diff (fun u => f u / g u) (fun h => 1 / g u0 * lf h + - (f u0 / g u0 / g u0) * lg h).
Proof.
  intros f g lf lg Hf Hg Hz. eapply diff_ext.
  - apply diff_mult; [exact Hf|]. apply diff_comp with (phi := Rinv); [exact Hg|].
    apply is_derive_inv; [apply @is_derive_id|exact Hz].
  - intros h. unfold one; simpl. field. exact Hz.
Qed.
Lemma prim2_open : forall p (f g lf lg : U -> R), diff f lf -> diff g lg -> ok2 p (f u0) (g u0) = true ->
  locally u0 (fun u => ok2 p (f u) (g u) = true).
Proof.
  intros p f g lf lg Hf Hg H. destruct p; simpl in *; try (apply filter_forall; reflexivity).
  - apply nz_true, open_nz in H. apply (diff_near Hg) in H. revert H. apply filter_imp. intros u Hu. now apply nz_true.
  - apply pos_true, open_pos in H. apply (diff_near (diff_minus Hf (diff_const U u0 _))) in H. revert H. apply filter_imp. intros u Hu. now apply pos_true.
  - apply Bool.orb_true_iff in H as [H|H].
    + apply nz_true, open_nz in H. apply (diff_near Hf) in H. revert H. apply filter_imp.
      intros u Hu. apply Bool.orb_true_iff. left. now apply nz_true.
    + apply pos_true, open_pos in H. apply (diff_near Hg) in H. revert H. apply filter_imp.
      intros u Hu. apply Bool.orb_true_iff. right. now apply pos_true.
  - apply nz_true, open_nz in H. apply (diff_near (diff_minus Hf Hg)) in H. revert H. apply filter_imp. intros u Hu. now apply nz_true.
  - apply nz_true, open_nz in H. apply (diff_near (diff_minus Hf Hg)) in H. revert H. apply filter_imp. intros u Hu. now apply nz_true.
Qed.
Lemma atan2_pos : forall y x, 0 < y -> atan2 y x = PI / 2 - atan (x / y).
Proof. intros y x H. unfold atan2. destruct (total_order_T y 0) as [[?|?]|?]; lra. Qed.
Lemma atan2_neg : forall y x, y < 0 -> atan2 y x = - (PI / 2) - atan (x / y).
Proof. intros y x H. unfold atan2. destruct (total_order_T y 0) as [[?|?]|?]; lra. Qed.
Lemma atan2_right : forall y x, 0 < x -> atan2 y x = atan (y / x).
Proof.
  intros y x H. unfold atan2. destruct (total_order_T y 0) as [[Hy|Hy]|Hy].
  - replace (y / x) with (- / (x / - y)) by (field; lra). rewrite atan_opp, atan_inv.
    + replace (x / - y) with (- (x / y)) by (field; lra). rewrite atan_opp. lra.
    + apply Rdiv_lt_0_compat; lra.
  - subst. destruct (Rlt_dec x 0); [lra|]. unfold Rdiv. rewrite Rmult_0_l, atan_0. reflexivity.
  - replace (y / x) with (/ (x / y)) by (field; lra). rewrite atan_inv; [reflexivity|].
    apply Rdiv_lt_0_compat; lra.
Qed.
Lemma diff_atan : forall (f lf : U -> R), diff f lf -> diff (fun u => atan (f u)) (fun h => / (1 + f u0 * f u0) * lf h).
Proof. intros f lf H. apply diff_comp with (phi := atan); [exact H|]. apply is_derive_atan. Qed.
Lemma prim2_diff : forall p (f g lf lg : U -> R), diff f lf -> diff g lg -> ok2 p (f u0) (g u0) = true ->
  diff (fun u => sem2 p (f u) (g u)) (fun h => fst (d2R p (f u0) (g u0)) * lf h + snd (d2R p (f u0) (g u0)) * lg h).
Proof.
  intros p f g lf lg Hf Hg H. destruct p; simpl in *.
  - eapply diff_ext; [apply diff_plus; eauto|]. intros h; simpl. ring.
  - eapply diff_ext; [apply diff_minus; eauto|]. intros h; simpl. ring.
  - apply diff_mult; auto.
  - dom. apply diff_div; auto.
  - (* x^y = exp (y ln x) *) dom. change (1 * powerRZ 2 (-1074)) with tiny in H. pose proof tiny_pos as Ht.
    assert (0 < f u0) as H0 by lra. clear H Ht. eapply diff_ext.
    + apply diff_comp with (phi := exp) (f := fun u => g u * ln (f u)).
      * apply diff_mult; [exact Hg|]. apply diff_comp with (phi := ln); [exact Hf|]. apply is_derive_ln, H0.
      * apply is_derive_exp.
    + intros h. cbv beta. change (exp (g u0 * ln (f u0))) with (Rpower (f u0) (g u0)).
      replace (Rpower (f u0) (g u0 - 1)) with (Rpower (f u0) (g u0) * / f u0).
      * ring.
      * unfold Rminus. rewrite Rpower_plus, Rpower_Ropp, Rpower_1; auto.
  - (* atan2 *)
    assert (f u0 < 0 \/ 0 < f u0 \/ (f u0 = 0 /\ 0 < g u0)) as [Hy|[Hy|[Hy Hx]]].
    { apply Bool.orb_true_iff in H as [H|H]; dom; destruct (Rtotal_order (f u0) 0) as [?|[?|?]]; auto. right; right; split; auto; lra. }
    + assert (f u0 * f u0 + g u0 * g u0 <> 0) by nra.
      apply diff_germ with (f := fun u => - (PI / 2) - atan (g u / f u)).
      { generalize (diff_near Hf (open_neg Hy)). apply filter_imp. intros u Hu. now rewrite atan2_neg. }
      eapply diff_ext; [apply diff_minus; [apply diff_const|apply diff_atan, diff_div; [exact Hg|exact Hf|lra]]|].
      intros h; simpl. field. repeat split; nra.
    + assert (f u0 * f u0 + g u0 * g u0 <> 0) by nra.
      apply diff_germ with (f := fun u => PI / 2 - atan (g u / f u)).
      { generalize (diff_near Hf (open_pos Hy)). apply filter_imp. intros u Hu. now rewrite atan2_pos. }
      eapply diff_ext; [apply diff_minus; [apply diff_const|apply diff_atan, diff_div; [exact Hg|exact Hf|lra]]|].
      intros h; simpl. field. repeat split; nra.
    + assert (f u0 * f u0 + g u0 * g u0 <> 0) by nra.
      apply diff_germ with (f := fun u => atan (f u / g u)).
      { generalize (diff_near Hg (open_pos Hx)). apply filter_imp. intros u Hu. now rewrite atan2_right. }
      eapply diff_ext; [apply diff_atan, diff_div; [exact Hf|exact Hg|lra]|].
      intros h; simpl. field. repeat split; nra.
  - (* max *) dom. assert (g u0 <> f u0) as Hn by lra. unfold below. destruct (cmpR_spec Hn) as [[-> Hlt]|[-> Hlt]].
    + apply diff_germ with (f := f).
      { generalize (@diff_near U u0 _ _ (fun z => 0 < z) (diff_minus Hf Hg)). intros L. cbv beta in L.
        assert (0 < f u0 - g u0) as Hm by lra. specialize (L (open_pos Hm)). revert L. apply filter_imp. intros u Hu. rewrite Rmax_left; lra. }
      eapply diff_ext; [exact Hf|]. intros h; simpl; ring.
    + apply diff_germ with (f := g).
      { generalize (@diff_near U u0 _ _ (fun z => z < 0) (diff_minus Hf Hg)). intros L. cbv beta in L.
        assert (f u0 - g u0 < 0) as Hm by lra. specialize (L (open_neg Hm)). revert L. apply filter_imp. intros u Hu. rewrite Rmax_right; lra. }
      eapply diff_ext; [exact Hg|]. intros h; simpl; ring.
  - (* min *) dom. assert (f u0 <> g u0) as Hn by lra. unfold below. destruct (cmpR_spec Hn) as [[-> Hlt]|[-> Hlt]].
    + apply diff_germ with (f := f).
      { generalize (@diff_near U u0 _ _ (fun z => z < 0) (diff_minus Hf Hg)). intros L. cbv beta in L.
        assert (f u0 - g u0 < 0) as Hm by lra. specialize (L (open_neg Hm)). revert L. apply filter_imp. intros u Hu. rewrite Rmin_left; lra. }
      eapply diff_ext; [exact Hf|]. intros h; simpl; ring.
    + apply diff_germ with (f := g).
      { generalize (@diff_near U u0 _ _ (fun z => 0 < z) (diff_minus Hf Hg)). intros L. cbv beta in L.
        assert (0 < f u0 - g u0) as Hm by lra. specialize (L (open_pos Hm)). revert L. apply filter_imp. intros u Hu. rewrite Rmin_right; lra. }
      eapply diff_ext; [exact Hg|]. intros h; simpl; ring.
Qed.

(* comparisons are decided the same way nearby, unless at a tie *)
Lemma cmp_open : forall (f g lf lg : U -> R), diff f lf -> diff g lg -> tie (cmpR (f u0) (g u0)) = false ->
  locally u0 (fun u => cmpR (f u) (g u) = cmpR (f u0) (g u0)).
Proof.
  intros f g lf lg Hf Hg H. apply cmpR_tie in H. destruct (cmpR_spec H) as [[-> Hlt]|[-> Hlt]].
  - generalize (@diff_near U u0 _ _ (fun z => z < 0) (diff_minus Hf Hg)). intros L. cbv beta in L.
    assert (f u0 - g u0 < 0) as Hm by lra. specialize (L (open_neg Hm)). revert L. apply filter_imp. intros u Hu. apply cmpR_lt; lra.
  - generalize (@diff_near U u0 _ _ (fun z => 0 < z) (diff_minus Hf Hg)). intros L. cbv beta in L.
    assert (0 < f u0 - g u0) as Hm by lra. specialize (L (open_pos Hm)). revert L. apply filter_imp. intros u Hu. apply cmpR_gt; lra.
Qed.
End Binary.

(* ---- rounding: locally constant away from the jumps ------------------------------------ *)
Lemma frac_opp : forall x, frac_part x <> 0 -> frac_part (- x) <> 0.
Proof.
  intros x H. destruct (base_fp x) as [H1 H2]. unfold frac_part in *.
  rewrite (@Int_part_spec (- x) (- Int_part x - 1)); rewrite minus_IZR, opp_IZR; lra.
Qed.
Lemma round_open : forall r x, okround r x = true ->
  locally x (fun y => roundR r y = roundR r x /\ okround r y = true).
Proof.
  intros r x H. destruct r; simpl in *; dom.
  - generalize (Int_part_open H). apply filter_imp. intros y [A B]. split; auto. now apply nz_true.
  - assert (continuous (fun y => y + / 2) x) as Hc.
    { apply (@ex_derive_continuous R_AbsRing R_NormedModule). auto_derive; auto. }
    generalize (Hc _ (Int_part_open H)). unfold filtermap. apply filter_imp. intros y [A B]. split; auto. now apply nz_true.
  - assert (x <> 0) as Hx.
    { intros ->. apply H. unfold frac_part. rewrite (@Int_part_spec 0 0); lra. }
    destruct (Rtotal_order x 0) as [Hs|[Hs|Hs]]; [|contradiction|].
    + assert (continuous Ropp x) as Hc.
      { apply (@ex_derive_continuous R_AbsRing R_NormedModule). auto_derive; auto. }
      pose proof (Hc _ (Int_part_open (frac_opp H))) as L. unfold filtermap in L.
      generalize (filter_and _ _ L (filter_and _ _ (open_neg Hs) (Int_part_open H))).
      apply filter_imp. intros y [[A B] [C [D1 D2]]]. split; [|now apply nz_true].
      destruct (Rlt_dec x 0); [|lra]. destruct (Rlt_dec y 0); [|lra]. congruence.
    + generalize (filter_and _ _ (open_pos Hs) (Int_part_open H)).
      apply filter_imp. intros y [C [D1 D2]]. split; [|now apply nz_true].
      destruct (Rlt_dec x 0); [lra|]. destruct (Rlt_dec y 0); [lra|]. congruence.
Qed.
