(* Continuation mode (C Fig. 14): the tangent of a real is a function from a sensitivity to the array of its n partial
   derivatives.  [Rep d g]: applied to s, g returns an array whose inner product with the input velocities is s * d.  Stated against
   the derivative itself, not against forward mode as in C.  Only the run is bounded, not the continuation: it loses sharing. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Delta Reverse Vector.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Arguments Nat.mul : simpl never.

Definition cont (n : nat) : tangents :=
  {| tg := TFun TR (TArr TR);
     tg_zero := fun _ => tlam (vzero n);
     tg_scale := fun _ c k => let2 c k (tlam (tapp v1 (tmul v2 v0)));
     tg_add := fun _ k l => let2 k l (tlam (vadd (tapp v2 v0) (tapp v1 v0))) |}.
Section Correct.
Variable fuel n : nat.
Variable U : NormedModule R_AbsRing.
Variables u0 h : U.
Variable gam : nat -> R.
Definition KC : nat := 400.
Definition RepC (d : R) (g : den R (tg (cont n))) : Prop :=
  forall s, exists l c, g s = Some (l, c, 0) /\ length l = n /\ inner gam l 0 = (s * d)%R.
Lemma let2_some : forall G a b c (x : tm G a) (y : tm G b) (e : tm (b :: a :: G) c) r p q w n1 n2 n3,
  ev RO fuel x r = Some (p, n1, 0) -> ev RO fuel y r = Some (q, n2, 0) -> ev RO fuel e (q, (p, r)) = Some (w, n3, 0) ->
  ev RO fuel (let2 x y e) r = Some (w, 4 + (n1 + (n2 + n3)), 0).
Proof. intros G a b c x y e r p q w n1 n2 n3 H1 H2 H3. rewrite let2_ev, H1, H2. cbn [bind]. rewrite H3. reflexivity. Qed.
Lemma continuation_fundamental : forall G t (e : tm G t) f g, VE (cont n) U u0 h RepC KC G f g ->
  Es U u0 KC 0 (V (cont n) U u0 h RepC KC t) (fun u => ev RO fuel e (f u)) (ev RO fuel (DT (cont n) e) g).
Proof.
  intros G t e f g. apply fundamental with (KT := 10).
  - unfold KC. lia.
  - intros G0 r. eexists _, 1. split; [reflexivity|]. split; [|lia]. intros s. eexists _, _. split; [exact (vzero_ev fuel (TR :: G0) n (s, r))|].
    split; [rewrite map_length; apply seq_length|]. rewrite inner_zero. ring.
  - intros G0 c d r x k y n1 n2 Hc Hd Hk. 
    eexists _, _. split; [exact (@let2_some G0 TR (TFun TR (TArr TR)) (TFun TR (TArr TR)) c d (tlam (tapp v1 (tmul v2 v0))) r x k _ n1 n2 1 Hc Hd eq_refl)|]. split; [|lia]. intros s. destruct (Hk (x * s)%R) as (l & q & E & H1 & H2).
    simpl. rewrite E. eexists _, _. split; [reflexivity|]. split; [exact H1|]. rewrite H2. ring.
  - intros G0 c d r k k' y1 y2 n1 n2 Hc Hd Hk Hk'. 
    eexists _, _. split; [exact (@let2_some G0 (TFun TR (TArr TR)) (TFun TR (TArr TR)) (TFun TR (TArr TR)) c d (tlam (vadd (tapp v2 v0) (tapp v1 v0))) r k k' _ n1 n2 1 Hc Hd eq_refl)|]. split; [|lia]. intros s.
    destruct (Hk s) as (l & q & E & H1 & H2). destruct (Hk' s) as (l' & q' & E' & H3 & H4).
    destruct (@vadd_ev fuel (TR :: TFun TR (TArr TR) :: TFun TR (TArr TR) :: G0) (tapp v2 v0) (tapp v1 v0) (s, (k', (k, r))) l l' (S (1 + (1 + q))) (S (1 + (1 + q')))) as (m & Em & _).
    + simpl. rewrite E. reflexivity.
    + simpl. rewrite E'. reflexivity.
    + congruence.
    + eexists _, _. split; [exact Em|]. split.
      * rewrite map_length, combine_length, H1, H3. apply Nat.min_id.
      * rewrite inner_zip by congruence. rewrite H2, H4. ring.
Qed.
End Correct.
(* the inputs, each with s |-> s times its one-hot array *)
Fixpoint cont_seed (n m k : nat) : env R (reals m) -> env R (map (D (cont n)) (reals m)) :=
  match m return env R (reals m) -> env R (map (D (cont n)) (reals m)) with
  | O => fun _ => tt
  | S m => fun x => ((fst x, fun s => ret (map (fun y => s * y)%R (one_hot n k))), cont_seed n m (S k) (snd x))
  end.
Lemma cont_seed_ok : forall n (U : NormedModule R_AbsRing) (u0 h : U) gam m k f v, k + m <= n ->
  Derivs U u0 h (reals m) f v -> (forall i, i < m -> gam (k + i) = vector (flats (reals m) v) i) ->
  VE (cont n) U u0 h (@RepC n gam) KC (reals m) f (cont_seed n m k (f u0)).
Proof.
  intros n U u0 h gam m. induction m; intros k f v Hk Hd Hg; simpl in *; auto. destruct Hd as [(l & Hl & Hv) Hd]. split.
  - split; [reflexivity|]. exists l. split; [exact Hl|]. intros s. eexists _, _. split; [reflexivity|].
    split; [unfold one_hot; rewrite !map_length; apply seq_length|].
    rewrite inner_map, inner_one_hot by lia. specialize (Hg 0). rewrite Nat.add_0_r in Hg. rewrite Hg by lia. simpl. f_equal. symmetry. exact Hv.
  - apply (IHm (S k) (fun u => snd (f u)) (snd v)); auto; [lia|]. intros i Hi. specialize (Hg (S i)). rewrite Nat.add_succ_r in Hg. simpl. rewrite Hg by lia. reflexivity.
Qed.
Theorem continuation_correct : forall fuel n (e : tm (reals n) TR) (U : NormedModule R_AbsRing) (u0 h : U) f v y s,
  Derivs U u0 h (reals n) f v -> ev RO fuel e (f u0) = Some (y, s, 0) ->
  exists F dy g k,
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, s, 0)) /\ Deriv U u0 h TR F dy /\
    ev RO fuel (DT (cont n) e) (cont_seed n n 0 (f u0)) = Some ((y, g), k, 0) /\ k <= 401 * s /\
    forall w, exists l c, g w = Some (l, c, 0) /\ length l = n /\ inner (vector (flats (reals n) v)) l 0 = (w * dy)%R.
Proof.
  intros fuel n e U u0 h f v y s Hv He.
  pose proof (@cont_seed_ok n U u0 h (vector (flats (reals n) v)) n 0 f v (le_n _) Hv (fun i _ => eq_refl)) as HG.
  destruct (@continuation_fundamental fuel n U u0 h _ _ _ e _ _ HG _ _ He) as (F & [y' g] & k & L & E & (Hy & l & Hl & H1) & Hk).
  exists F, (l h), g, k. split; [exact L|]. split; [exists l; auto|]. split; [|split; [unfold KC in Hk; lia|exact H1]].
  simpl in Hy. subst y'. pose proof (@locally_singleton U u0 _ L) as X. simpl in X. rewrite He in X. inversion X. subst y. exact E.
Qed.
