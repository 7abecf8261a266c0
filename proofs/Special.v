(* The error function, the logarithm of the gamma function and the polygamma functions, with their derivatives.

   No gamma function is at hand in the libraries, so [lgamma] is its Weierstrass product, under a logarithm: a series that converges wherever
   gamma has no pole, on the negative axis too, and that is differentiated term by term.  Its derivatives are the series of digamma, trigamma and so on.
   [lgamma_one], [lgamma_succ] and [trigamma_pos] say that it is the function meant: by the theorem of Bohr and Mollerup a function f on the positive reals with
   f 1 = 0, f (x + 1) = f x + ln x and f convex is the logarithm of gamma. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Open Scope R_scope.

(* ---- series that are differentiated term by term -------------------------------------- *)
Definition inside (x : R) (r : posreal) (y : R) : Prop := Rabs (y - x) < r.
Lemma inside_open : forall x r, open (inside x r).
Proof.
  intros x r y Hy. unfold inside in *. assert (0 < r - Rabs (y - x)) as Hp by lra. exists (mkposreal _ Hp). intros z Hz.
  unfold ball in Hz; simpl in Hz; unfold AbsRing_ball, abs, minus, plus, opp in Hz; simpl in Hz.
  replace (z - x) with ((z + - y) + (y - x)) by ring. eapply Rle_lt_trans; [apply Rabs_triang|]. lra.
Qed.
Lemma inside_connected : forall x r, is_connected (inside x r).
Proof.
  intros x r a b y Ha Hb Hy. unfold inside in *. apply Rabs_def1; apply Rabs_def2 in Ha; apply Rabs_def2 in Hb; lra.
Qed.
Lemma uniform : forall (g : nat -> R -> R) (D : R -> Prop) b N,
  (forall n y, (N <= n)%nat -> D y -> Rabs (g n y) <= b n) -> ex_series b ->
  CVU_cauchy (fun n y => sum_n (fun k => g k y) n) D.
Proof.
  intros g D b N Hb Hs eps. destruct (Cauchy_ex_series _ Hs eps) as (N' & HN). exists (max N N').
  assert (forall n m y, D y -> (max N N' <= n)%nat -> (n <= m)%nat ->
    Rabs (sum_n (fun k => g k y) m - sum_n (fun k => g k y) n) < eps) as H.
  { intros n m y Hy Hn Hm. set (h := fun k => g k y).
    change (sum_n h m - sum_n h n) with (minus (sum_n h m) (sum_n h n)). rewrite <- sum_n_m_sum_n by exact Hm. unfold h. clear h.
    eapply Rle_lt_trans; [apply (norm_sum_n_m (V := R_NormedModule))|].
    apply Rle_lt_trans with (sum_n_m b (S n) m).
    - rewrite (sum_n_m_ext_loc _ (fun j => if (N <=? j)%nat then Rabs (g j y) else b j)).
      + apply sum_n_m_le. intros j. destruct (Nat.leb_spec N j); [apply Hb; auto|apply Rle_refl].
      + intros j Hj. destruct (Nat.leb_spec N j); [reflexivity|lia].
    - eapply Rle_lt_trans; [apply Rle_abs|]. apply (HN (S n) m); lia. }
  intros n m y Hy Hn Hm. destruct (Nat.le_ge_cases n m) as [L|L].
  - rewrite Rabs_minus_sym. apply H; auto; lia.
  - apply H; auto; lia.
Qed.
Lemma series_derive : forall (f f' : nat -> R -> R) x (r : posreal) b N,
  (forall n y, inside x r y -> is_derive (f n) y (f' n y)) -> (forall n y, inside x r y -> ex_derive (f' n) y) ->
  (forall n y, (N <= n)%nat -> inside x r y -> Rabs (f n y) <= b n /\ Rabs (f' n y) <= b n) -> ex_series b ->
  is_derive (fun y => Series (fun n => f n y)) x (Series (fun n => f' n x)).
Proof.
  intros f f' x r b N Hd Hd' Hb Hs.
  assert (inside x r x) as Hx by (unfold inside; rewrite Rminus_eq_0, Rabs_R0; apply cond_pos).
  assert (forall n y, inside x r y -> is_derive (fun y => sum_n (fun k => f k y) n) y (sum_n (fun k => f' k y) n)) as HD.
  { intros n y Hy. apply @is_derive_sum_n. intros k _. apply Hd, Hy. }
  assert (forall n y, inside x r y -> Derive (fun y => sum_n (fun k => f k y) n) y = sum_n (fun k => f' k y) n) as HE.
  { intros n y Hy. apply is_derive_unique, HD, Hy. }
  unfold Series.
  rewrite (Lim_seq_ext (sum_n (fun n => f' n x)) (fun n => Derive (fun y => sum_n (fun k => f k y) n) x)) by (intros n; now rewrite HE).
  apply (CVU_Derive (fun n y => sum_n (fun k => f k y) n) (inside x r)); auto using inside_open, inside_connected.
  - apply CVU_dom_cauchy. apply uniform with (b := b) (N := N); auto. intros n y Hn Hy. apply Hb; auto.
  - intros n y Hy. eexists. apply HD, Hy.
  - intros n y Hy. apply continuity_pt_filterlim.
    apply continuous_ext_loc with (g := fun y => sum_n (fun k => f' k y) n).
    + generalize (@inside_open x r y Hy). apply filter_imp. intros z Hz. symmetry. apply HE, Hz.
    + apply (@ex_derive_continuous R_AbsRing R_NormedModule). apply @ex_derive_sum_n. intros k _. apply Hd', Hy.
  - apply CVU_dom_cauchy. intros eps. destruct (@uniform f' (inside x r) b N (fun n y Hn Hy => proj2 (Hb n y Hn Hy)) Hs eps) as (M & HM).
    exists M. intros n m y Hy Hn Hm. rewrite !HE by exact Hy. apply HM; auto.
Qed.

(* ---- what the series are compared with ------------------------------------------------ *)
Definition index (n : nat) : R := INR (S n).
Lemma index_pos : forall n, 0 < index n.
Proof. intros n. apply lt_0_INR. lia. Qed.
Lemma index_succ : forall n, index (S n) = index n + 1.
Proof. intros n. unfold index. now rewrite (S_INR (S n)). Qed.
Lemma INR_index : forall n, INR n = index n - 1.
Proof. intros n. unfold index. rewrite S_INR. ring. Qed.
Lemma index_large : is_lim_seq (fun n => / index n) 0.
Proof.
  replace (Finite 0) with (Rbar_inv p_infty) by reflexivity. apply is_lim_seq_inv; [|discriminate].
  apply (is_lim_seq_incr_1 INR), is_lim_seq_INR.
Qed.
Lemma telescope : forall (u : nat -> R) (l : R), is_lim_seq u l -> is_series (fun n => u n - u (S n)) (u O - l).
Proof.
  intros u l H. assert (forall n, sum_n (fun n => u n - u (S n)) n = u O - u (S n)) as E.
  { induction n; [now rewrite sum_O|]. rewrite sum_Sn, IHn. unfold plus; simpl. ring. }
  change (is_lim_seq (sum_n (fun n => u n - u (S n))) (Finite (u O - l))).
  apply (is_lim_seq_ext (fun n => u O - u (S n))); [intros n; now rewrite E|].
  apply is_lim_seq_minus'; [apply is_lim_seq_const|apply is_lim_seq_incr_1 in H; exact H].
Qed.
Lemma squares : ex_series (fun n => / (index n * index n)).
Proof.
  apply (@ex_series_le R_AbsRing R_CompleteNormedModule _ (fun n => 2 * (/ index n - / index (S n)))).
  - intros n. pose proof (index_pos n). change (norm (/ (index n * index n))) with (Rabs (/ (index n * index n))).
    rewrite Rabs_pos_eq by (left; apply Rinv_0_lt_compat; nra). rewrite index_succ.
    replace (2 * (/ index n - / (index n + 1))) with (/ (index n * ((index n + 1) / 2))) by (field; lra).
    assert (1 <= index n) by (unfold index; rewrite S_INR; pose proof (pos_INR n); lra).
    apply Rinv_le_contravar; nra.
  - apply (@ex_series_scal R_AbsRing R_NormedModule). eexists. apply (telescope index_large).
Qed.
Lemma scaled_squares : forall c, ex_series (fun n => c * / (index n * index n)).
Proof. intros c. apply (@ex_series_scal R_AbsRing R_NormedModule), squares. Qed.

(* ---- the functions --------------------------------------------------------------------- *)
Definition euler : R := Series (fun n => / index n - ln (1 + / index n)).
Definition lgamma (x : R) : R := - euler * (x - 1) + Series (fun n => (x - 1) / index n - ln (Rabs ((INR n + x) / index n))).
Definition polygamma (k : nat) (x : R) : R :=
  match k with
  | O => - euler + Series (fun n => / index n - / (INR n + x))
  | _ => (-1) ^ S k * INR (fact k) * Series (fun n => / (INR n + x) ^ S k)
  end.
Definition nopole (x : R) : Prop := forall n, INR n + x <> 0.

(* far out the terms are as small as those of [squares], near x *)
Definition far (x : R) (N : nat) : Prop := 2 * Rabs x + 4 <= INR N.
Lemma far_ex : forall x, exists N, far x N.
Proof. intros x. destruct (nfloor_ex (2 * Rabs x + 4)) as (N & HN); [pose proof (Rabs_pos x); lra|]. exists (S N). unfold far. rewrite S_INR. lra. Qed.
Lemma far_terms : forall x (r : posreal) N, r <= 1 -> far x N -> forall n y, (N <= n)%nat -> inside x r y ->
  index n / 2 <= INR n + y /\ 1 <= INR n + y /\ Rabs (y - 1) <= Rabs x + 2.
Proof.
  intros x r N Hr HN n y Hn Hy. unfold far, inside in *. apply le_INR in Hn. rewrite (INR_index n) in *. apply Rabs_def2 in Hy as [Hy1 Hy2].
  unfold Rabs in *. destruct (Rcase_abs x), (Rcase_abs (y - 1)); repeat split; lra.
Qed.
Lemma inv_far : forall i z, 0 < i -> i / 2 <= z -> / z <= 2 * / i.
Proof. intros i z Hi Hz. replace (2 * / i) with (/ (i / 2)) by (field; lra). apply Rinv_le_contravar; lra. Qed.
Lemma log_bounds : forall t, 0 < 1 + t -> t / (1 + t) <= ln (1 + t) <= t.
Proof.
  assert (forall t, 0 < 1 + t -> ln (1 + t) <= t) as H.
  { intros t Ht. rewrite <- (ln_exp t) at 2. destruct (Req_dec t 0) as [->|Hz]; [rewrite Rplus_0_r, exp_0; lra|].
    left. apply ln_increasing; [exact Ht|]. apply exp_ineq1, Hz. }
  intros t Ht. split; [|apply H, Ht]. pose proof (Rinv_0_lt_compat _ Ht).
  assert (ln (/ (1 + t)) <= / (1 + t) - 1) as L by (replace (/ (1 + t)) with (1 + (/ (1 + t) - 1)) at 1 by ring; apply H; lra).
  rewrite ln_Rinv in L by exact Ht. replace (t / (1 + t)) with (1 - / (1 + t)) by (field; lra). lra.
Qed.
Lemma bound_digamma : forall i z d m, 0 < i -> i / 2 <= z -> z = i + d -> Rabs d <= m -> Rabs (/ i - / z) <= 2 * m * / (i * i).
Proof.
  intros i z d m Hi Hz -> Hd. replace (/ i - / (i + d)) with (d * (/ i * / (i + d))) by (field; lra).
  rewrite Rabs_mult. rewrite (Rabs_pos_eq (/ i * / (i + d))) by (left; apply Rmult_lt_0_compat; apply Rinv_0_lt_compat; lra).
  replace (2 * m * / (i * i)) with (m * (/ i * (2 * / i))) by (field; lra).
  pose proof (Rinv_0_lt_compat _ Hi). assert (0 < / (i + d)) by (apply Rinv_0_lt_compat; lra).
  apply Rmult_le_compat; [apply Rabs_pos|nra|exact Hd|]. apply Rmult_le_compat_l; [lra|]. apply inv_far; lra.
Qed.
Lemma bound_lgamma : forall i z d m, 0 < i -> i / 2 <= z -> z = i + d -> Rabs d <= m ->
  Rabs (d / i - ln (Rabs (z / i))) <= 2 * (m * m) * / (i * i).
Proof.
  intros i z d m Hi Hz -> Hd. assert (0 < / i) by (apply Rinv_0_lt_compat; lra).
  replace ((i + d) / i) with (1 + d / i) by (field; lra). set (t := d / i).
  assert (/ 2 <= 1 + t) as Ht.
  { unfold t. replace (1 + d / i) with ((i + d) * / i) by (field; lra). replace (/ 2) with (i / 2 * / i) by (field; lra). apply Rmult_le_compat_r; lra. }
  rewrite (Rabs_pos_eq (1 + t)) by lra. destruct (@log_bounds t) as [L1 L2]; [lra|].
  rewrite Rabs_pos_eq by lra. apply Rle_trans with (t - t / (1 + t)); [lra|].
  replace (t - t / (1 + t)) with (t * t * / (1 + t)) by (field; lra).
  apply Rle_trans with (t * t * 2).
  - apply Rmult_le_compat_l; [nra|]. replace 2 with (/ / 2) by (field; lra). apply Rinv_le_contravar; lra.
  - unfold t. replace (d / i * (d / i) * 2) with (2 * (d * d) * / (i * i)) by (field; lra).
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; nra|]. apply Rmult_le_compat_l; [lra|].
    apply Rsqr_le_abs_1. rewrite (Rabs_pos_eq m); [exact Hd|]. pose proof (Rabs_pos d). lra.
Qed.
Lemma bound_power : forall i z k, 0 < i -> i / 2 <= z -> 1 <= z -> Rabs (/ z ^ S (S k)) <= 4 * / (i * i).
Proof.
  intros i z k Hi Hz H1. assert (1 <= z ^ k) by (apply pow_R1_Rle; lra).
  assert (0 < z ^ S (S k)) by (apply pow_lt; lra). rewrite Rabs_pos_eq by (left; apply Rinv_0_lt_compat; lra).
  apply Rle_trans with (/ (z * z)).
  - apply Rinv_le_contravar; [nra|]. simpl. rewrite <- Rmult_assoc. rewrite <- (Rmult_1_r (z * z)) at 1. apply Rmult_le_compat_l; nra.
  - replace (4 * / (i * i)) with (/ (i / 2 * (i / 2))) by (field; lra). apply Rinv_le_contravar; nra.
Qed.
Lemma pole_ball : forall x, locally x nopole -> exists r : posreal, r <= 1 /\ forall y, inside x r y -> nopole y.
Proof.
  intros x [e He]. assert (0 < Rmin e 1) as Hp by (apply Rmin_glb_lt; [apply cond_pos|lra]).
  exists (mkposreal _ Hp). split; [apply Rmin_r|]. intros y Hy. apply He. unfold inside in Hy; simpl in Hy.
  unfold ball; simpl; unfold AbsRing_ball, abs, minus, plus, opp; simpl. eapply Rlt_le_trans; [exact Hy|apply Rmin_l].
Qed.
Lemma is_derive_inv_shift : forall n y, INR n + y <> 0 -> is_derive (fun y => - / (INR n + y)) y (/ (INR n + y) ^ 2).
Proof. intros n y H. auto_derive; auto. field. auto. Qed.
Theorem lgamma_derive : forall x, locally x nopole -> is_derive lgamma x (polygamma 0 x).
Proof.
  intros x Hx. destruct (pole_ball Hx) as (r & Hr & Hp). destruct (far_ex x) as (N & HN).
  unfold lgamma, polygamma. apply @is_derive_plus.
  - auto_derive; auto. ring.
  - apply series_derive with (f := fun n x => (x - 1) / index n - ln (Rabs ((INR n + x) / index n))) (f' := fun n x => / index n - / (INR n + x))
      (r := r) (N := N) (b := fun n => 2 * ((Rabs x + 2) * (Rabs x + 2)) * / (index n * index n)).
    + intros n y Hy. pose proof (Hp _ Hy n) as Hz. pose proof (index_pos n).
      assert ((INR n + y) / index n <> 0) as Hq by (apply Rmult_integral_contrapositive; split; [exact Hz|apply Rinv_neq_0_compat; lra]).
      auto_derive; [split; [exact Hq|split; [now apply Rabs_pos_lt|auto]]|].
      destruct (Rdichotomy _ _ Hq) as [Hs|Hs]; unfold Rdiv in Hs.
      * rewrite (sign_eq_m1 _ Hs), (Rabs_left _ Hs). field. repeat split; lra.
      * rewrite (sign_eq_1 _ Hs), (Rabs_pos_eq _ (Rlt_le _ _ Hs)). field. repeat split; lra.
    + intros n y Hy. pose proof (Hp _ Hy n) as Hz. auto_derive. exact Hz.
    + intros n y Hn Hy. destruct (@far_terms x r N Hr HN n y Hn Hy) as (H1 & H2 & H3). pose proof (index_pos n) as Hi.
      assert (INR n + y = index n + (y - 1)) as E by (rewrite INR_index; ring). split.
      * apply bound_lgamma; auto.
      * eapply Rle_trans; [apply (@bound_digamma (index n) (INR n + y) (y - 1) (Rabs x + 2)); auto|].
        apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; nra|]. pose proof (Rabs_pos x). nra.
    + apply scaled_squares.
Qed.
Theorem polygamma_derive : forall k x, locally x nopole -> is_derive (polygamma k) x (polygamma (S k) x).
Proof.
  intros k x Hx. destruct (pole_ball Hx) as (r & Hr & Hp). destruct (far_ex x) as (N & HN). destruct k as [|k].
  - unfold polygamma. replace ((-1) ^ 2 * INR (fact 1) * Series (fun n => / (INR n + x) ^ 2)) with (0 + Series (fun n => / (INR n + x) ^ 2)) by (simpl; ring).
    apply @is_derive_plus; [apply @is_derive_const|].
    apply series_derive with (f := fun n x => / index n - / (INR n + x)) (f' := fun n x => / (INR n + x) ^ 2)
      (r := r) (N := N) (b := fun n => (2 * (Rabs x + 2)) * / (index n * index n)).
    + intros n y Hy. pose proof (Hp _ Hy n) as Hz. pose proof (index_pos n). auto_derive; auto. field. auto.
    + intros n y Hy. pose proof (Hp _ Hy n) as Hz. auto_derive. simpl. now repeat apply Rmult_integral_contrapositive_currified.
    + intros n y Hn Hy. destruct (@far_terms x r N Hr HN n y Hn Hy) as (H1 & H2 & H3). pose proof (index_pos n) as Hi. split.
      * apply (@bound_digamma (index n) (INR n + y) (y - 1)); auto. rewrite INR_index. ring.
      * eapply Rle_trans; [apply (@bound_power (index n) (INR n + y) 0); auto|].
        apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; nra|]. pose proof (Rabs_pos x). lra.
    + apply scaled_squares.
  - change (polygamma (S (S k)) x) with ((-1) ^ S (S (S k)) * INR (fact (S (S k))) * Series (fun n => / (INR n + x) ^ S (S (S k)))).
    replace ((-1) ^ S (S (S k)) * INR (fact (S (S k))) * Series (fun n => / (INR n + x) ^ S (S (S k))))
      with ((-1) ^ S (S k) * INR (fact (S k)) * Series (fun n => - INR (S (S k)) * / (INR n + x) ^ S (S (S k)))).
    2: { rewrite Series_scal_l. change (fact (S (S k))) with (S (S k) * fact (S k))%nat. rewrite mult_INR. simpl pow. ring. }
    apply (is_derive_scal (fun x => Series (fun n => / (INR n + x) ^ S (S k)))).
    apply series_derive with (f := fun n x => / (INR n + x) ^ S (S k)) (f' := fun n x => - INR (S (S k)) * / (INR n + x) ^ S (S (S k)))
      (r := r) (N := N) (b := fun n => (INR (S (S k)) * 4) * / (index n * index n)).
    + intros n y Hy. pose proof (Hp _ Hy n) as Hz. pose proof (pow_nonzero _ k Hz) as Hk.
      auto_derive; [exact (pow_nonzero _ (S (S k)) Hz)|].
      change (pred (S (S k))) with (S k). rewrite <- !tech_pow_Rmult. change (match k with O => 1 | S _ => INR k + 1 end) with (INR (S k)). rewrite !S_INR. revert Hk. generalize ((INR n + y) ^ k). intros w Hk. field. auto.
    + intros n y Hy. pose proof (Hp _ Hy n) as Hz. auto_derive. exact (pow_nonzero _ (S (S (S k))) Hz).
    + intros n y Hn Hy. destruct (@far_terms x r N Hr HN n y Hn Hy) as (H1 & H2 & H3). pose proof (index_pos n) as Hi.
      assert (1 <= INR (S (S k))) by (rewrite S_INR; pose proof (pos_INR (S k)); lra).
      assert (0 < / (index n * index n)) by (apply Rinv_0_lt_compat; nra). split.
      * eapply Rle_trans; [apply (@bound_power (index n) (INR n + y) k); auto|]. apply Rmult_le_compat_r; lra.
      * rewrite Rabs_mult, Rabs_Ropp, (Rabs_pos_eq (INR (S (S k)))) by lra. rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|].
        apply (@bound_power (index n) (INR n + y) (S k)); auto.
    + apply scaled_squares.
Qed.

(* ---- that these are the functions meant --------------------------------------------------- *)
Lemma terms_converge : forall x, nopole x -> ex_series (fun n => (x - 1) / index n - ln (Rabs ((INR n + x) / index n))).
Proof.
  intros x _. destruct (far_ex x) as (N & HN). apply ex_series_incr_n with (n := N).
  apply (@ex_series_le R_AbsRing R_CompleteNormedModule) with (b := fun n => 2 * ((Rabs x + 2) * (Rabs x + 2)) * / (index (N + n) * index (N + n))).
  - intros n. assert (inside x (mkposreal 1 Rlt_0_1) x) as Hi by (unfold inside; rewrite Rminus_eq_0, Rabs_R0; simpl; lra).
    destruct (@far_terms x (mkposreal 1 Rlt_0_1) N (Rle_refl 1) HN (N + n)%nat x) as (H1 & H2 & H3); [lia|exact Hi|].
    apply bound_lgamma; auto using index_pos. rewrite INR_index. ring.
  - apply (ex_series_incr_n (fun n => 2 * ((Rabs x + 2) * (Rabs x + 2)) * / (index n * index n))), scaled_squares.
Qed.
Lemma euler_converges : ex_series (fun n => / index n - ln (1 + / index n)).
Proof.
  apply (@ex_series_le R_AbsRing R_CompleteNormedModule) with (b := fun n => 2 * (1 * 1) * / (index n * index n)); [|apply scaled_squares].
  intros n. pose proof (index_pos n). assert (0 < / index n) by (apply Rinv_0_lt_compat; lra).
  replace (/ index n - ln (1 + / index n)) with (1 / index n - ln (Rabs ((index n + 1) / index n))).
  - apply (@bound_lgamma (index n) (index n + 1) 1 1); auto; try lra. rewrite Rabs_R1; lra.
  - replace ((index n + 1) / index n) with (1 + / index n) by (field; lra). rewrite Rabs_pos_eq by lra. unfold Rdiv. now rewrite Rmult_1_l.
Qed.
Theorem lgamma_one : lgamma 1 = 0.
Proof.
  unfold lgamma. rewrite Rminus_eq_0, Rmult_0_r, Rplus_0_l. rewrite <- (@Series_ext (fun _ => 0 * 0)).
  - rewrite Series_scal_l. ring.
  - intros n. pose proof (index_pos n). rewrite INR_index. replace ((index n - 1 + 1) / index n) with 1 by (field; lra). rewrite Rabs_R1, ln_1. field. lra.
Qed.
Theorem lgamma_succ : forall x, nopole x -> lgamma (x + 1) = lgamma x + ln (Rabs x).
Proof.
  intros x Hx. assert (nopole (x + 1)) as Hx1.
  { intros n. replace (INR n + (x + 1)) with (INR (S n) + x) by (rewrite S_INR; ring). apply Hx. }
  (* the difference of the terms is that of the sequence u, and a term of Euler's constant *)
  set (u := fun n => ln (Rabs ((INR n + x) / index n))).
  assert (is_lim_seq u 0) as Hu.
  { assert (ln (Rabs 1) = 0) as E1 by (rewrite Rabs_R1; exact ln_1). rewrite <- E1.
    apply (is_lim_seq_continuous (fun z => ln (Rabs z)) (fun n => (INR n + x) / index n) 1).
    - apply continuity_pt_filterlim. apply (@ex_derive_continuous R_AbsRing R_NormedModule (fun z => ln (Rabs z)) 1). auto_derive. rewrite Rabs_R1. repeat split; lra.
    - apply is_lim_seq_ext with (fun n => 1 + (x - 1) * / index n).
      + intros n. pose proof (index_pos n). rewrite INR_index. field. lra.
      + replace (Finite 1) with (Finite (1 + (x - 1) * 0)) by (f_equal; ring).
        apply is_lim_seq_plus'; [apply is_lim_seq_const|]. apply (is_lim_seq_scal_l _ (x - 1) 0), index_large. }
  pose proof (telescope Hu) as Ht. apply is_series_unique in Ht as Es.
  unfold lgamma. rewrite (@Series_ext (fun n => (x + 1 - 1) / index n - ln (Rabs ((INR n + (x + 1)) / index n)))
     (fun n => ((x - 1) / index n - ln (Rabs ((INR n + x) / index n))) + ((u n - u (S n)) + (/ index n - ln (1 + / index n))))).
  - rewrite !Series_plus; auto using terms_converge, euler_converges.
    + rewrite Es. unfold u, euler. change (INR 0) with 0. change (index 0) with 1. replace ((0 + x) / 1) with x by field. ring.
    + eexists. exact Ht.
    + apply (@ex_series_plus R_AbsRing R_NormedModule); [eexists; exact Ht|apply euler_converges].
  - intros n. unfold u. pose proof (index_pos n) as Hi. assert (0 < / index n) by (apply Rinv_0_lt_compat; lra).
    pose proof (Hx1 n) as Hn. rewrite (S_INR n). replace (INR n + 1 + x) with (INR n + (x + 1)) by ring.
    assert (ln (Rabs ((INR n + (x + 1)) / index n)) = ln (Rabs ((INR n + (x + 1)) / index (S n))) + ln (1 + / index n)) as ->.
    + rewrite index_succ. rewrite <- (Rabs_pos_eq (1 + / index n)) by lra. rewrite <- ln_mult.
      * rewrite <- Rabs_mult. do 2 f_equal. field. lra.
      * apply Rabs_pos_lt. apply Rmult_integral_contrapositive_currified; [exact Hn|apply Rinv_neq_0_compat; lra].
      * apply Rabs_pos_lt. lra.
    + rewrite INR_index. field. lra.
Qed.
Theorem trigamma_pos : forall x, 0 < x -> 0 < polygamma 1 x.
Proof.
  intros x Hx. unfold polygamma. replace ((-1) ^ 2 * INR (fact 1)) with 1 by (simpl; ring). rewrite Rmult_1_l.
  assert (forall n, 0 < / (INR n + x) ^ 2) as Hp.
  { intros n. apply Rinv_0_lt_compat, pow_lt. pose proof (pos_INR n). lra. }
  assert (ex_series (fun n => / (INR n + x) ^ 2)) as He.
  { destruct (far_ex x) as (N & HN). apply ex_series_incr_n with (n := N).
    apply (@ex_series_le R_AbsRing R_CompleteNormedModule) with (b := fun n => 4 * / (index (N + n) * index (N + n))).
    - intros n. assert (inside x (mkposreal 1 Rlt_0_1) x) as Hi by (unfold inside; rewrite Rminus_eq_0, Rabs_R0; simpl; lra).
      destruct (@far_terms x (mkposreal 1 Rlt_0_1) N (Rle_refl 1) HN (N + n)%nat x) as (H1 & H2 & H3); [lia|exact Hi|].
      apply (@bound_power _ _ 0); auto using index_pos.
    - apply (ex_series_incr_n (fun n => 4 * / (index n * index n))), scaled_squares. }
  rewrite Series_incr_1 by exact He. pose proof (Hp O).
  assert (0 <= Series (fun k => / (INR (S k) + x) ^ 2)); [|lra].
  rewrite <- (Rmult_0_l (Series (fun _ => 0))), <- Series_scal_l. apply Series_le.
  - intros n. rewrite Rmult_0_l. split; [lra|]. left. apply Hp.
  - apply (ex_series_incr_1 (fun n => / (INR n + x) ^ 2)), He.
Qed.

(* ---- the error function ---------------------------------------------------------------- *)
Definition bell (t : R) : R := exp (- (t * t)).
Lemma bell_continuous : forall t, continuous bell t.
Proof. intros t. apply (@ex_derive_continuous R_AbsRing R_NormedModule). unfold bell. auto_derive. auto. Qed.
Lemma bell_derive : forall x, is_derive (RInt bell 0) x (bell x).
Proof.
  intros x. apply (@is_derive_RInt R_NormedModule) with (a := 0); [|apply bell_continuous].
  apply filter_forall. intros y. apply (@RInt_correct R_CompleteNormedModule). apply ex_RInt_continuous. intros z _. apply bell_continuous.
Qed.
