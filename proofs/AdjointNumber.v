(* The combinator mode is right for numbers (see Adjoint.v), by the tables of Primitive.v: literals, primitives, comparisons, rounding, sums and
   inner products. *)
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

Lemma w_prim1 : forall G p (x : tm G TR) r (P : R -> Prop), gives (evR x r) (fun x => ok1 p x = true /\ P (sem1 p x)) -> gives (evR (tprim1 p x) r) P.
Proof. intros G p x r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros y [H1 H2]. apply g_guard; assumption. Qed.
Lemma w_prim2 : forall G p (x y : tm G TR) r (P : R -> Prop),
  gives (evR x r) (fun x => gives (evR y r) (fun y => ok2 p x y = true /\ P (sem2 p x y))) -> gives (evR (tprim2 p x y) r) P.
Proof.
  intros G p x y r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros z Hz. cbv beta in *. apply g_bind. eapply g_imp; [exact Hz|].
  intros z' [H1 H2]. apply g_guard; assumption.
Qed.
Lemma w_primi : forall G p (x : tm G TR) (y : tm G TI) r (P : R -> Prop),
  gives (evR x r) (fun x => gives (evR y r) (fun y => oki p x y = true /\ P (semi p x y))) -> gives (evR (tprimi p x y) r) P.
Proof.
  intros G p x y r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros z Hz. cbv beta in *. apply g_bind. eapply g_imp; [exact Hz|].
  intros z' [H1 H2]. apply g_guard; assumption.
Qed.
Lemma w_cmp : forall G c (x y : tm G TR) r (P : den R TB -> Prop),
  gives (evR x r) (fun x => gives (evR y r) (fun y => negb (tie (cmpR x y)) = true /\ P (boolv (decide c (cmpR x y))))) -> gives (evR (tcmp c x y) r) P.
Proof.
  intros G c x y r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros z Hz. cbv beta in *. apply g_bind. eapply g_imp; [exact Hz|].
  intros z' [H1 H2]. apply g_guard; assumption.
Qed.
Lemma w_round : forall G k (x : tm G TR) r (P : Z -> Prop), gives (evR x r) (fun x => okround k x = true /\ P (roundR k x)) -> gives (evR (tround k x) r) P.
Proof. intros G p x r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros y [H1 H2]. apply g_guard; assumption. Qed.
Lemma w_real : forall G (x : tm G TI) r (P : R -> Prop), gives (evR x r) (fun z => P (IZR z)) -> gives (evR (treal x) r) P.
Proof. intros G x r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros y Hy. apply g_ret, Hy. Qed.
Lemma w_sum : forall G (x : tm G (TArr TR)) r (P : R -> Prop), gives (evR x r) (fun l => P (fold_left Rplus l 0%R)) -> gives (evR (tsum x) r) P.
Proof. intros G x r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros y Hy. apply g_ticks, g_ret, Hy. Qed.
Lemma w_dot : forall G (x y : tm G (TArr TR)) r (P : R -> Prop),
  gives (evR x r) (fun l => gives (evR y r) (fun l' => gives (mdot RO l l') P)) -> gives (evR (tdot x y) r) P.
Proof. intros G x y r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros z Hz. apply g_bind, Hz. Qed.
Lemma w_scale : forall G (c : coef G) (d : tm G TR) r x (P : R -> Prop), coef_ev fuel c r x -> gives (evR d r) (fun y => P (x * y)%R) ->
  gives (evR (tscale c d) r) P.
Proof.
  intros G [|t] d r x P Hc Hd; simpl in *.
  - subst x. eapply g_imp; [exact Hd|]. intros y Hy. exact (eq_ind _ P Hy _ (Rmult_1_l y)).
  - destruct Hc as (n & En & _). apply w_mul. eapply g_eq; [exact En|exact Hd].
Qed.
Lemma i_lit : forall c m e, @Adjoint.Image fuel U u0 h c TR (fun _ => ret (litR m e)) (fun G => tpair (tlit _ m e) (tlam (zero _ _))).
Proof.
  intros c m e G r f g o HV. apply E_ret with (f := fun _ => litR m e). w. exists 0%R. split; [split; [reflexivity|exists (fun _ => 0%R); split; [apply diff_const|reflexivity]]|].
  intros d w Hd. apply zero_back. simpl in Hd. rewrite Hd. ring.
Qed.
Lemma i_prim1 : forall p, @Adjoint.Image fuel U u0 h TR TR (fun x => guard (ok1 p x) (sem1 p x)) (d_prim1 p).
Proof.
  intros p G r f g o (Hg & l & Hl & Ho). simpl in g, o, Hg, Ho. subst g o. intros a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->).
  exists (fun u => sem1 p (f u)). split; [generalize (diff_near Hl (prim1_open p _ Hok)); apply near1; intros u Hu; unfold guard; now rewrite Hu|].
  unfold d_prim1. w. apply w_prim1. w. split; [exact Hok|]. w. exists (d1R p (f u0) * l h)%R. split.
  - split; [reflexivity|]. exists (fun k => d1R p (f u0) * l k)%R. split; [|reflexivity]. apply diff_comp; [exact Hl|]. apply prim1_derive, Hok.
  - intros d w Hd. cbn [snd]. apply w_mul.
    match goal with |- gives (ev _ _ (d1t p ?e) ?r') _ => destruct (@prim1_coef fuel _ p e r' (f u0) Hok eq_refl) as (n1 & E1 & _) end.
    eapply g_eq; [exact E1|]. w. simpl in *. rewrite Hd. ring.
Qed.
Lemma i_prim2 : forall p, @Adjoint.Image fuel U u0 h (TProd TR TR) TR (fun x => guard (ok2 p (fst x) (snd x)) (sem2 p (fst x) (snd x))) (d_prim2 p).
Proof.
  intros p G r f [g g'] [o o'] [(Hg & l & Hl & Ho) (Hg' & l' & Hl' & Ho')]. cbn [fst snd] in *. subst g g' o o'.
  intros a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->).
  exists (fun u => sem2 p (fst (f u)) (snd (f u))). split; [generalize (prim2_open p Hl Hl' Hok); apply near1; intros u Hu; unfold guard; now rewrite Hu|].
  unfold d_prim2. w. apply w_prim2. w. split; [exact Hok|]. w. eexists. split.
  - split; [reflexivity|]. eexists. split; [exact (prim2_diff p Hl Hl' Hok)|reflexivity].
  - intros d w Hd. cbn [snd]. w.
    match goal with |- gives (ev _ _ (tscale (fst (d2t p ?a ?b)) _) ?r') _ => 
      destruct (@prim2_coef fuel _ p a b r' (fst (f u0)) (snd (f u0)) 2 2 Hok (le_n 2) (le_n 2) eq_refl eq_refl) as [C1 C2] end.
    eapply w_scale; [exact C1|]. w. eapply w_scale; [exact C2|]. w. eexists _, _. split; [reflexivity|split; [reflexivity|]].
    simpl in *. rewrite Hd. ring.
Qed.
Lemma i_primi : forall p, @Adjoint.Image fuel U u0 h (TProd TR TI) TR (fun x => guard (oki p (fst x) (snd x)) (semi p (fst x) (snd x))) (d_primi p).
Proof.
  intros p G r f [g k] [o ok] [(Hg & l & Hl & Ho) Hk]. cbn [fst snd] in *. subst g o.
  apply E_germ with (F := fun u => guard (oki p (fst (f u)) k) (semi p (fst (f u)) k)).
  { revert Hk. apply near1. intros u Hu. cbv beta. now rewrite Hu. }
  intros a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->).
  exists (fun u => semi p (fst (f u)) k). split; [generalize (diff_near Hl (primi_open _ _ _ Hok)); apply near1; intros u Hu; unfold guard; now rewrite Hu|].
  unfold d_primi. w. apply w_primi. w. split; [exact Hok|]. w. exists (diR p (fst (f u0)) k * l h)%R. split.
  - split; [reflexivity|]. exists (fun q => diR p (fst (f u0)) k * l q)%R. split; [|reflexivity].
    apply diff_comp with (phi := fun x => semi p x k); [exact Hl|]. apply primi_derive, Hok.
  - intros d w Hd. cbn [snd]. w.
    match goal with |- gives (ev _ _ (dit p ?a ?b) ?r') _ => 
      destruct (@primi_coef fuel p _ a b r' (fst (f u0)) k 2 2 Hok eq_refl eq_refl) as (n1 & E1 & _) end.
    eapply g_eq; [exact E1|]. w. eexists _, 0%R. split; [reflexivity|split; [reflexivity|]]. simpl in *. rewrite Hd. ring.
Qed.
Lemma i_cmp : forall c, @Adjoint.Image fuel U u0 h (TProd TR TR) TB
  (fun x => guard (negb (tie (cmpR (fst x) (snd x)))) (boolv (decide c (cmpR (fst x) (snd x))))) (d_cmp c).
Proof.
  intros c G r f [g g'] [o o'] [(Hg & l & Hl & Ho) (Hg' & l' & Hl' & Ho')]. cbn [fst snd] in *. subst g g' o o'.
  intros a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->).
  assert (tie (cmpR (fst (f u0)) (snd (f u0))) = false) as Ht by (destruct (tie (cmpR (fst (f u0)) (snd (f u0)))); [discriminate|reflexivity]).
  pose proof (cmp_open Hl Hl' Ht) as L. set (b := decide c (cmpR (fst (f u0)) (snd (f u0)))).
  exists (fun _ => boolv b). split; [revert L; apply near1; intros u ->; rewrite Ht; reflexivity|].
  unfold d_cmp. w. apply w_cmp. w. split; [exact Hok|]. w. exists (boolv b). split.
  - fold b. destruct b; exists (fun _ => tt); split; try exact I; apply always; reflexivity.
  - intros d w Hd. apply zero_back. destruct b; exact Hd.
Qed.
Lemma i_round : forall k, @Adjoint.Image fuel U u0 h TR TI (fun x => guard (okround k x) (roundR k x)) (d_round k).
Proof.
  intros k G r f g o (Hg & l & Hl & Ho). simpl in g, o, Hg, Ho. subst g o. intros a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->).
  exists (fun _ => roundR k (f u0)). split; [generalize (diff_near Hl (round_open k _ Hok)); apply near1; intros u [E1 E2]; unfold guard; now rewrite E1, E2|].
  unfold d_round. w. apply w_round. w. split; [exact Hok|]. w. exists tt. split; [apply always; reflexivity|].
  intros d w Hd. apply zero_back, Hd.
Qed.
Lemma i_real : @Adjoint.Image fuel U u0 h TI TR (fun z => ret (IZR z)) d_real.
Proof.
  intros G r f g o Hg. simpl in Hg. apply E_ret with (f := fun u => IZR (f u)). unfold d_real. w. apply w_real. w. exists 0%R. split.
  - split; [now rewrite (here Hg)|]. exists (fun _ => 0%R). split; [|reflexivity]. eapply diff_germ; [|apply (diff_const U u0 (IZR g))].
    revert Hg. apply near1. intros u ->. reflexivity.
  - intros d w Hd. apply zero_back. simpl in Hd. rewrite Hd. ring.
Qed.

(* ---- sums and inner products -------------------------------------------------------------------------- *)
Definition total (l : list R) : R := fold_right Rplus 0%R l.
Lemma fold_diff : forall (qs : list ((U -> R) * R)), List.Forall (fun q => exists l : U -> R, diff (fst q) l /\ snd q = l h) qs -> forall (z lz : U -> R), diff z lz ->
  exists l : U -> R, diff (fun u => fold_left Rplus (map (fun q => fst q u) qs) (z u)) l /\ l h = (lz h + total (map snd qs))%R.
Proof.
  intros qs H. induction H as [|[qf qo] qs (l & Hl & Ho) HF IH]; intros z lz Hz; simpl.
  - exists lz. split; [exact Hz|ring].
  - simpl in Hl, Ho. subst qo. destruct (IH (fun u => z u + qf u)%R (fun k => lz k + l k)%R (diff_plus Hz Hl)) as (l2 & H2 & E2).
    exists l2. split; [exact H2|]. rewrite E2. ring.
Qed.
Lemma values : forall (qs : list ((U -> R) * R)) gs, Forall2 (fun q g => V TR (fst q) g (snd q)) qs gs ->
  gs = map (fun q => fst q u0) qs /\ List.Forall (fun q => exists l : U -> R, diff (fst q) l /\ snd q = l h) qs.
Proof. intros qs gs H. induction H as [|q g qs gs (E1 & HV) HF [E2 IH]]; simpl; [auto|]. split; [now rewrite E1, E2|constructor; auto]. Qed.
Lemma seq_gives : forall B (f : nat -> M B) (k : nat -> B) n j, (forall i, j <= i < j + n -> gives (f i) (eq (k i))) ->
  gives (mseq f (seq j n)) (eq (map k (seq j n))).
Proof.
  intros B f k n. induction n; intros j H; simpl; [apply g_ret; reflexivity|]. apply g_bind. eapply g_imp; [apply H; lia|]. intros b <-.
  apply g_bind. eapply g_imp; [apply IHn; intros i Hi; apply H; lia|]. intros l <-. apply g_ret. reflexivity.
Qed.
Fixpoint lin (os : list R) (k : nat -> R) (j : nat) : R := match os with nil => 0%R | o :: os => (o * k j + lin os k (S j))%R end.
Lemma lin_const : forall os d j, lin os (fun _ => d) j = (total os * d)%R.
Proof. induction os as [|o os IH]; intros d j; simpl; [ring|]. rewrite IH. ring. Qed.
Lemma lin_ext : forall os (k k' : nat -> R) j, (forall i, j <= i -> k i = k' i) -> lin os k j = lin os k' j.
Proof. induction os as [|o os IH]; intros k k' j H; simpl; auto. rewrite (H j), (IH k k' (S j)) by (intros; try apply H; lia). reflexivity. Qed.
Lemma Bag_lin : forall k os pre, weigh (TArr TR) (pre ++ os) (map (fun i => (Z.of_nat i, k i)) (seq (length pre) (length os))) (lin os k (length pre)).
Proof.
  intros k. induction os as [|o os IH]; intros pre; simpl; [constructor|]. constructor.
  - exists o. split; [|reflexivity]. cbn [fst]. rewrite sel_nat, nth_error_app2, Nat.sub_diag by lia. reflexivity.
  - specialize (IH (pre ++ [o])). rewrite app_length, Nat.add_1_r, <- app_assoc in IH. exact IH.
Qed.
Lemma indexed : forall (os : list R) (f : nat -> M (den R (TProd TI TR))) k w n, n = length os -> (forall i, i < n -> gives (f i) (eq (Z.of_nat i, k i))) ->
  w = lin os k 0 -> gives (mseq f (seq 0 n)) (fun e => weigh (TArr TR) os e w).
Proof.
  intros os f k w n -> H ->. eapply g_imp; [apply seq_gives with (k := fun i => (Z.of_nat i, k i)); intros i Hi; apply H; lia|].
  intros e <-. exact (Bag_lin k os nil).
Qed.
Lemma i_sum : @Adjoint.Image fuel U u0 h (TArr TR) TR (fun l => msum RO l) d_sum.
Proof.
  intros G r f g o (qs & L & Ho & HF). destruct (values HF) as [Eg HD]. subst o.
  apply E_germ with (F := fun u => msum RO (map (fun q => fst q u) qs)); [revert L; apply near1; intros u Hu; cbv beta; now rewrite Hu|].
  intros a0 n0 H0. unfold msum in H0. cbn [ticks ret] in H0. inversion H0; subst n0. clear H0 a0 H1.
  destruct (fold_diff HD (diff_const U u0 0)) as (l & Hl & El).
  exists (fun u => fold_left Rplus (map (fun q => fst q u) qs) 0%R). split.
  - apply always. intros u. unfold msum, ticks, ret. now rewrite !map_length.
  - unfold d_sum. w. apply w_sum. w. exists (l h). split.
    + split; [exact (f_equal (fun gs => fold_left Rplus gs 0%R) Eg)|]. exists l. split; [exact Hl|reflexivity].
    + intros d w Hd. cbn [snd]. apply w_build. w. rewrite Nat2Z.id.
      apply indexed with (k := fun _ => d); [rewrite map_length; symmetry; exact (Forall2_len HF)|intros i Hi; apply g_tick; w; reflexivity|].
      simpl in Hd. rewrite Hd, El, lin_const. exact (f_equal (fun t => (t * d)%R) (Rplus_0_l _)).
Qed.
Lemma lin_dot : forall d (a b : list ((U -> R) * R)) j, length b = length a ->
  (total (map snd (map (fun p => (fun u => fst (fst p) u * fst (snd p) u, fst (snd p) u0 * snd (fst p) + fst (fst p) u0 * snd (snd p))) (combine a b))) * d =
   lin (map snd a) (fun i => nth (i - j) (map (fun q => fst q u0) b) 0 * d) j + lin (map snd b) (fun i => nth (i - j) (map (fun q => fst q u0) a) 0 * d) j)%R.
Proof.
  intros d. induction a as [|[qf qo] a IH]; intros [|[qf' qo'] b] j Hl; simpl in *; try discriminate; [ring|].
  rewrite (@lin_ext (map snd a) _ (fun i => nth (i - S j) (map (fun q => fst q u0) b) 0 * d)%R (S j)) by (intros i Hi; replace (i - j) with (S (i - S j)) by lia; reflexivity).
  rewrite (@lin_ext (map snd b) _ (fun i => nth (i - S j) (map (fun q => fst q u0) a) 0 * d)%R (S j)) by (intros i Hi; replace (i - j) with (S (i - S j)) by lia; reflexivity).
  rewrite Nat.sub_diag, Rmult_plus_distr_r, (IH b (S j)) by lia. ring.
Qed.
Lemma i_dot : @Adjoint.Image fuel U u0 h (TProd (TArr TR) (TArr TR)) TR (fun p => mdot RO (fst p) (snd p)) d_dot.
Proof.
  intros G r f [g g'] [o o'] [(qs & L & Ho & HF) (qs' & L' & Ho' & HF')]. cbn [fst snd] in *. destruct (values HF) as [Eg HD], (values HF') as [Eg' HD']. subst o o'.
  apply E_germ with (F := fun u => mdot RO (map (fun k => k u) (map fst qs)) (map (fun k => k u) (map fst qs'))).
  { revert L L'. apply near2. intros u E1 E2. cbv beta. rewrite E1, E2, !map_map. reflexivity. }
  intros a0 n0 H0.
  assert (length (map fst qs) = length (map fst qs')) as Hl.
  { unfold mdot in H0. apply bind_inv in H0 as (q & n1 & n2 & H1 & _). apply mzip_len in H1. now rewrite !map_length in *. }
  rewrite (mdot_curve _ _ Hl) in H0. inversion H0; subst n0. clear H0 a0 H1. rewrite !map_length in Hl.
  set (ps := map (fun p => (fun u => (fst (fst p) u * fst (snd p) u)%R, (fst (snd p) u0 * snd (fst p) + fst (fst p) u0 * snd (snd p))%R)) (combine qs qs')).
  assert (List.Forall (fun q => exists l : U -> R, diff (fst q) l /\ snd q = l h) ps) as HP.
  { subst ps. clear - HD HD'. revert qs' HD'. induction HD as [|[qf qo] qs (l & Hl & Ho) HD IH]; intros [|[qf' qo'] qs'] HD'; simpl; constructor.
    - inversion HD' as [|? ? (l' & Hl' & Ho') ?]; subst. simpl in *. subst qo qo'. eexists. split; [apply (diff_mult Hl Hl')|reflexivity].
    - inversion HD'; subst. apply IH. assumption. }
  destruct (fold_diff HP (diff_const U u0 0)) as (l & Hd & El).
  exists (fun u => fold_left Rplus (map (fun k => k u) (map (fun p u => fst p u * snd p u)%R (combine (map fst qs) (map fst qs')))) 0%R). split.
  - apply always. intros u. exact (mdot_curve _ _ (eq_trans (map_length _ _) (eq_trans Hl (eq_sym (map_length _ _)))) u).
  - unfold d_dot. w. apply w_dot. w.
    assert (mdot RO g g' = mdot RO (map (fun k => k u0) (map fst qs)) (map (fun k => k u0) (map fst qs'))) as Em
      by (rewrite !map_map; exact (f_equal2 (mdot RO) Eg Eg')).
    eapply g_eq; [exact (eq_trans Em (mdot_curve _ _ (eq_trans (map_length _ _) (eq_trans Hl (eq_sym (map_length _ _)))) u0))|]. w. exists (l h). split.
    + split; [reflexivity|]. exists l. split; [|reflexivity]. eapply diff_germ; [|exact Hd]. apply always. intros u. f_equal. subst ps. clear - Hl.
      revert qs' Hl. induction qs; intros [|q' qs'] Hl; simpl in *; try discriminate; auto. f_equal. apply IHqs. lia.
    + intros d w Hw. cbn [snd]. simpl in Hw.
      assert (forall i, i < length qs -> sel g (Z.of_nat i) = Some (nth i g 0%R) /\ sel g' (Z.of_nat i) = Some (nth i g' 0%R)) as Hsel.
      { pose proof (eq_sym (Forall2_len HF)) as H1. pose proof (eq_sym (Forall2_len HF')) as H2. simpl in g, g', H1, H2. intros i Hi.
        rewrite !sel_nat. split; apply nth_error_nth'; [exact (eq_ind_r (fun n => i < n) Hi H1)|exact (eq_ind_r (fun n => i < n) (eq_ind _ (fun n => i < n) Hi _ Hl) H2)]. }
      w. apply w_build. w. rewrite Nat2Z.id. eapply g_imp.
      { apply indexed with (os := map snd qs) (k := fun i => (nth i g' 0 * d)%R); [rewrite map_length; symmetry; exact (Forall2_len HF)| |reflexivity].
        intros i Hi. apply g_tick. w. eapply g_get; [apply Hsel; exact (eq_ind_r (fun n => i < n) Hi (Forall2_len HF))|]. w. reflexivity. }
      intros e He. apply w_build. w. rewrite Nat2Z.id. eapply g_imp.
      { apply indexed with (os := map snd qs') (k := fun i => (nth i g 0 * d)%R); [rewrite map_length; symmetry; exact (Forall2_len HF')| |reflexivity].
        intros i Hi. apply g_tick. w. eapply g_get; [apply Hsel; exact (eq_ind_r (fun n => i < n) Hi (eq_trans Hl (Forall2_len HF')))|]. w. reflexivity. }
      intros e' He'. eexists _, _. split; [exact He|split; [exact He'|]]. rewrite Hw, El. subst ps g g'. clear - Hl.
      pose proof (@lin_dot d qs qs' 0 (eq_sym Hl)) as HT. rewrite Rplus_0_l. refine (eq_trans HT _).
      f_equal; apply lin_ext; intros i _; now rewrite Nat.sub_0_r.
Qed.
End Here.
