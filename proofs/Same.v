(* Sameness: two runs with the same outcome.  [same_run]: both are undefined, or both return related values and met as many kinks; steps do not matter.
   Like refinement (Refinement.v) it is a logical relation, at data types it is equality, and it holds over any number type.

   The lemmas about single constructs relate a term to another one in another context, so that they serve substitution as well as rewriting. *)
From Coq Require Import List ZArith Lia.
Require Import Language Germ Substitution Data.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

Section Same.
Variable X : Type.
Variable O : ops X.
Variable fuel : nat.
Notation evX e := (ev O fuel e).

Definition same_run {A B} (P : A -> B -> Prop) (m : M A) (m' : M B) : Prop :=
  match m, m' with
  | Some (a, _, k), Some (b, _, k') => P a b /\ k = k'
  | None, None => True
  | _, _ => False
  end.
Fixpoint same (t : ty) : den X t -> den X t -> Prop :=
  match t return den X t -> den X t -> Prop with
  | TR => eq | TU => eq | TI => eq
  | TProd a b => fun x y => same a (fst x) (fst y) /\ same b (snd x) (snd y)
  | TSum a b => fun x y => match x, y with
      | inl x, inl y => same a x y | inr x, inr y => same b x y | _, _ => False end
  | TFun a b => fun f g => forall x y, same a x y -> same_run (same b) (f x) (g y)
  | TArr a => Forall2 (same a)
  | TTree a => tree2 (same a)
  end.
Fixpoint same_env (G : list ty) : env X G -> env X G -> Prop :=
  match G return env X G -> env X G -> Prop with
  | nil => fun _ _ => True
  | t :: G => fun x y => same t (fst x) (fst y) /\ same_env G (snd x) (snd y)
  end.

Lemma s_ret : forall A B (P : A -> B -> Prop) a b, P a b -> same_run P (ret a) (ret b).
Proof. simpl. auto. Qed.
Lemma s_left : forall A B (P : A -> B -> Prop) m m', same_run P m m' -> same_run P (tick m) m'.
Proof. intros A B P [[[a n] k]|] [[[b n'] k']|]; simpl; auto. Qed.
Lemma s_right : forall A B (P : A -> B -> Prop) m m', same_run P m m' -> same_run P m (tick m').
Proof. intros A B P [[[a n] k]|] [[[b n'] k']|]; simpl; auto. Qed.
Lemma s_tick : forall A B (P : A -> B -> Prop) m m', same_run P m m' -> same_run P (tick m) (tick m').
Proof. intros. apply s_left, s_right, H. Qed.
Lemma s_bind : forall A B A' B' (P : A -> B -> Prop) (Q : A' -> B' -> Prop) m m' f g,
  same_run P m m' -> (forall x y, P x y -> same_run Q (f x) (g y)) -> same_run Q (bind m f) (bind m' g).
Proof.
  intros A B A' B' P Q [[[a n] k]|] [[[b n'] k']|] f g H HF; simpl in *; try contradiction; auto.
  destruct H as [H ->]. specialize (HF _ _ H). destruct (f a) as [[[x i] j]|], (g b) as [[[y i'] j']|]; simpl in *; try contradiction; auto.
  destruct HF as [HF ->]. auto.
Qed.
Lemma s_eq : forall A (m : M A), same_run eq m m.
Proof. intros A [[[a n] k]|]; simpl; auto. Qed.
Lemma s_bool : forall A B (P : A -> B -> Prop) ok a b, P a b -> same_run P (guard ok a) (guard ok b).
Proof. intros. unfold guard. simpl. auto. Qed.
Lemma run_imp : forall A B (P Q : A -> B -> Prop), (forall x y, P x y -> Q x y) -> forall m m', same_run P m m' -> same_run Q m m'.
Proof. intros A B P Q H [[[a n] k]|] [[[b n'] k']|]; simpl; auto. intros [H1 ->]. auto. Qed.
Lemma s_look : forall t G (m : mem t G) x y, same_env G x y -> same t (look m x) (look m y).
Proof. induction m; simpl; intros x y [H1 H2]; auto. Qed.
Lemma s_iter : forall A B (P : A -> B -> Prop) n f g z z', (forall i x y, P x y -> same_run P (f i x) (g i y)) -> P z z' ->
  same_run P (miter n f z) (miter n g z').
Proof.
  induction n; intros f g z z' H Hz; simpl; [auto|].
  eapply s_bind; [apply IHn; eauto|]. intros x y Hxy. apply s_tick, H, Hxy.
Qed.
Lemma s_seq : forall A B A' B' (P : A -> B -> Prop) (Q : A' -> B' -> Prop) f g l l', (forall x y, P x y -> same_run Q (f x) (g y)) -> Forall2 P l l' ->
  same_run (Forall2 Q) (mseq f l) (mseq g l').
Proof.
  intros A B A' B' P Q f g l l' H HF. induction HF; simpl; [auto|].
  eapply s_bind; [apply H; eassumption|]. intros a b Hab. eapply s_bind; [exact IHHF|]. intros r s Hr. apply s_ret. constructor; auto.
Qed.
Lemma s_fold : forall A B A' B' (P : A -> B -> Prop) (Q : A' -> B' -> Prop) f g l l', (forall x y z w, P x y -> Q z w -> same_run Q (f x z) (g y w)) ->
  Forall2 P l l' -> forall z w, Q z w -> same_run Q (mfold f l z) (mfold g l' w).
Proof.
  intros A B A' B' P Q f g l l' H HF. induction HF; intros z w Hz; simpl; [auto|].
  eapply s_bind; [apply s_tick, H; eauto|]. intros z1 w1 H1. apply IHHF, H1.
Qed.
Lemma s_kleene : forall a b k F G,
  (forall f g x y, same (TFun a b) f g -> same a x y -> same_run (same b) (F f x) (G g y)) -> same (TFun a b) (kleene k F) (kleene k G).
Proof.
  induction k; intros F G H x y Hxy; simpl; [exact I|]. apply H; auto.
Qed.
Lemma s_get : forall A B (P : A -> B -> Prop) l l' i, Forall2 P l l' -> same_run P (mget l i) (mget l' i).
Proof.
  intros A B P l l' i H. unfold mget. destruct (i <? 0)%Z; [exact I|]. generalize (Z.to_nat i). clear i.
  induction H; intros [|n]; simpl; auto; try exact (IHForall2 n).
Qed.
Lemma s_zip : forall A B A' B' (P : A -> B -> Prop) (Q : A' -> B' -> Prop) l m, Forall2 P l m -> forall l' m', Forall2 Q l' m' ->
  same_run (Forall2 (fun x y => P (fst x) (fst y) /\ Q (snd x) (snd y))) (mzip l l') (mzip m m').
Proof.
  intros A B A' B' P Q l m H. induction H; intros l0 m0 H'; destruct H'; simpl; auto.
  eapply s_bind; [apply s_tick, IHForall2; assumption|]. intros r s Hr. apply s_ret. constructor; auto.
Qed.
Lemma forall2_eq : forall A (l l' : list A), Forall2 eq l l' -> l = l'.
Proof. induction 1; congruence. Qed.
Lemma s_op0 : forall a (o : op0 a), same a (op0v X o) (op0v X o).
Proof. intros a o. destruct o; simpl; auto. Qed.
Lemma s_op1 : forall a b (o : op1 a b) x y, same a x y -> same_run (same b) (op1v X o x) (op1v X o y).
Proof.
  intros a b o x y H. destruct o; simpl in *; auto; try (split; [apply H|reflexivity]).
  - split; [|reflexivity]. f_equal. apply (Forall2_len H).
  - destruct H. simpl. auto.
Qed.
Lemma s_op2 : forall a b c (o : op2 a b c) x y x' y', same a x y -> same b x' y' -> same_run (same c) (op2v X o x x') (op2v X o y y').
Proof.
  intros a b c o x y x' y' H H'. destruct o; simpl in *; auto.
  - subst. apply s_get, H.
  - split; [|reflexivity]. apply Forall2_app; auto.
  - split; [|reflexivity]. constructor; auto.
  - apply (s_zip H H').
  - apply forall2_eq in H'. subst. eapply s_seq with (P := eq); [|clear; induction y'; constructor; auto].
    intros i j ->. apply s_tick, s_get, H.
  - subst. apply s_eq.
  - subst. split; [|reflexivity]. unfold boolv. destruct (decide c (y ?= y')%Z); reflexivity.
Qed.
Lemma s_op3 : forall a b c d (o : op3 a b c d) x y x' y' x'' y'', same a x y -> same b x' y' -> same c x'' y'' ->
  same_run (same d) (op3v X o x x' x'') (op3v X o y y' y'').
Proof.
  intros a b c d o x y x' y' x'' y'' H H' H''. destruct o; simpl in *. subst. unfold mset.
  eapply s_bind; [apply s_get, H|]. intros p q _. apply s_ret. simpl. apply Forall2_update; auto.
Qed.

(* ---- one lemma for each construct ------------------------------------------------------------------------ *)
Section Constructs.
Variables G H : list ty.
Variable r : env X G.
Variable r' : env X H.
Notation "e' ~ e" := (same_run (same _) (evX e' r') (evX e r)) (at level 70).
Definition under1 {a t} (b' : tm (a :: H) t) (b : tm (a :: G) t) : Prop :=
  forall x y, same a x y -> same_run (same t) (evX b' (x, r')) (evX b (y, r)).
Definition under2 {a c t} (b' : tm (a :: c :: H) t) (b : tm (a :: c :: G) t) : Prop :=
  forall x y z w, same a x y -> same c z w -> same_run (same t) (evX b' (x, (z, r'))) (evX b (y, (w, r))).
Lemma c_lam : forall a t (b' : tm (a :: H) t) b, under1 b' b -> tlam b' ~ tlam b.
Proof. intros a t b' b Hb. split; [exact Hb|reflexivity]. Qed.
Lemma c_fix : forall a t (b' : tm (a :: TFun a t :: H) t) b, under2 b' b -> tfix b' ~ tfix b.
Proof. intros a t b' b Hb. split; [|reflexivity]. apply s_kleene. intros f g x y Hf Hx. apply Hb; assumption. Qed.
Lemma c_app : forall a t (f' : tm H (TFun a t)) f x' x, f' ~ f -> x' ~ x -> tapp f' x' ~ tapp f x.
Proof. intros. cbn [ev]. apply s_tick. eapply s_bind; [eassumption|]. intros p q Hp. eapply s_bind; [eassumption|]. intros u v Hu. apply Hp, Hu. Qed.
Lemma c_let : forall a t (x' : tm H a) x (b' : tm (a :: H) t) b, x' ~ x -> under1 b' b -> tlet x' b' ~ tlet x b.
Proof. intros. cbn [ev]. apply s_tick. eapply s_bind; [eassumption|]. auto. Qed.
Lemma c_case : forall a b t (c' : tm H (TSum a b)) c (x' : tm (a :: H) t) x (y' : tm (b :: H) t) y,
  c' ~ c -> under1 x' x -> under1 y' y -> tcase c' x' y' ~ tcase c x y.
Proof. intros. cbn [ev]. apply s_tick. eapply s_bind; [eassumption|]. intros [p|p] [q|q] Hp; simpl in Hp; try contradiction; auto. Qed.
Lemma c_op1 : forall a t (o : op1 a t) x' x, x' ~ x -> top1 o x' ~ top1 o x.
Proof. intros. cbn [ev]. apply s_tick. eapply s_bind; [eassumption|]. intros. now apply s_op1. Qed.
Lemma c_op2 : forall a b t (o : op2 a b t) x' x y' y, x' ~ x -> y' ~ y -> top2 o x' y' ~ top2 o x y.
Proof. intros. cbn [ev]. apply s_tick. eapply s_bind; [eassumption|]. intros. eapply s_bind; [eassumption|]. intros. now apply s_op2. Qed.
Lemma c_op3 : forall a b c t (o : op3 a b c t) x' x y' y z' z, x' ~ x -> y' ~ y -> z' ~ z -> top3 o x' y' z' ~ top3 o x y z.
Proof. intros. cbn [ev]. apply s_tick. do 3 (eapply s_bind; [eassumption|]; intros). now apply s_op3. Qed.
Lemma c_loop : forall a k' k (z' : tm H a) z b' b, k' ~ k -> z' ~ z -> under2 b' b -> tloop k' z' b' ~ tloop k z b.
Proof.
  intros a k' k z' z b' b Hk Hz Hb. cbn [ev]. apply s_tick. eapply s_bind; [exact Hk|]. intros n m ->. eapply s_bind; [exact Hz|]. intros p q Hp.
  apply s_iter; auto. intros i u v Hu. apply Hb; [exact Hu|reflexivity].
Qed.
Lemma c_build : forall a k' k (b' : tm (TI :: H) a) b, k' ~ k -> under1 b' b -> tbuild k' b' ~ tbuild k b.
Proof.
  intros a k' k b' b Hk Hb. cbn [ev]. apply s_tick. eapply s_bind; [exact Hk|]. intros n m ->. eapply s_seq with (P := eq).
  - intros i j ->. apply s_tick, Hb. reflexivity.
  - induction (seq 0 (Z.to_nat m)); constructor; auto.
Qed.
Lemma c_map : forall a t (b' : tm (a :: H) t) b x' x, under1 b' b -> x' ~ x -> tmap b' x' ~ tmap b x.
Proof. intros a t b' b x' x Hb Hx. cbn [ev]. apply s_tick. eapply s_bind; [exact Hx|]. intros l m Hl. eapply s_seq; [|exact Hl]. intros. apply s_tick, Hb. assumption. Qed.
Lemma c_fold : forall a t (b' : tm (a :: t :: H) t) b z' z x' x, under2 b' b -> z' ~ z -> x' ~ x -> tfold b' z' x' ~ tfold b z x.
Proof.
  intros a t b' b z' z x' x Hb Hz Hx. cbn [ev]. apply s_tick. eapply s_bind; [exact Hz|]. intros p q Hp. eapply s_bind; [exact Hx|]. intros l m Hl.
  eapply s_fold; [|exact Hl|exact Hp]. intros. apply Hb; assumption.
Qed.
Lemma c_prim1 : forall p x' x, x' ~ x -> tprim1 p x' ~ tprim1 p x.
Proof. intros. cbn [ev]. apply s_tick. eapply s_bind; [eassumption|]. intros u v ->. apply s_eq. Qed.
Lemma c_prim2 : forall p x' x y' y, x' ~ x -> y' ~ y -> tprim2 p x' y' ~ tprim2 p x y.
Proof. intros. cbn [ev]. apply s_tick. eapply s_bind; [eassumption|]. intros u v ->. eapply s_bind; [eassumption|]. intros u v' ->. apply s_eq. Qed.
Lemma c_primi : forall p x' x y' y, x' ~ x -> y' ~ y -> tprimi p x' y' ~ tprimi p x y.
Proof. intros. cbn [ev]. apply s_tick. eapply s_bind; [eassumption|]. intros u v ->. eapply s_bind; [eassumption|]. intros u v' ->. apply s_eq. Qed.
Lemma c_cmp : forall p x' x y' y, x' ~ x -> y' ~ y -> tcmp p x' y' ~ tcmp p x y.
Proof.
  intros. cbn [ev]. apply s_tick. eapply s_bind; [eassumption|]. intros u v ->. eapply s_bind; [eassumption|]. intros u v' ->.
  apply s_bool. unfold boolv. destruct (decide p (o_cmp O v v')); reflexivity.
Qed.
Lemma c_round : forall p x' x, x' ~ x -> tround p x' ~ tround p x.
Proof. intros. cbn [ev]. apply s_tick. eapply s_bind; [eassumption|]. intros u v ->. apply s_eq. Qed.
Lemma c_real : forall x' x, x' ~ x -> treal x' ~ treal x.
Proof. intros. cbn [ev]. apply s_tick. eapply s_bind; [eassumption|]. intros u v ->. apply s_eq. Qed.
Lemma c_sum : forall x' x, x' ~ x -> tsum x' ~ tsum x.
Proof. intros. cbn [ev]. apply s_tick. eapply s_bind; [eassumption|]. intros u v Hu. apply forall2_eq in Hu. subst. apply s_eq. Qed.
Lemma c_dot : forall x' x y' y, x' ~ x -> y' ~ y -> tdot x' y' ~ tdot x y.
Proof.
  intros. cbn [ev]. apply s_tick. eapply s_bind; [eassumption|]. intros u v Hu. eapply s_bind; [eassumption|]. intros p q Hp.
  apply forall2_eq in Hu, Hp. subst. apply s_eq.
Qed.
End Constructs.
End Same.

(* from a construct to its parts *)
Ltac to_parts := match goal with
  | |- same_run _ (ev _ _ (tlam _) _) _ => apply c_lam
  | |- same_run _ (ev _ _ (tapp _ _) _) _ => apply c_app
  | |- same_run _ (ev _ _ (tlet _ _) _) _ => apply c_let
  | |- same_run _ (ev _ _ (tfix _) _) _ => apply c_fix
  | |- same_run _ (ev _ _ (tcase _ _ _) _) _ => apply c_case
  | |- same_run _ (ev _ _ (top0 _ _) _) _ => split; [apply s_op0|reflexivity]
  | |- same_run _ (ev _ _ (top1 _ _) _) _ => apply c_op1
  | |- same_run _ (ev _ _ (top2 _ _ _) _) _ => apply c_op2
  | |- same_run _ (ev _ _ (top3 _ _ _ _) _) _ => apply c_op3
  | |- same_run _ (ev _ _ (tloop _ _ _) _) _ => apply c_loop
  | |- same_run _ (ev _ _ (tbuild _ _) _) _ => apply c_build
  | |- same_run _ (ev _ _ (tmap _ _) _) _ => apply c_map
  | |- same_run _ (ev _ _ (tfold _ _ _) _) _ => apply c_fold
  | |- same_run _ (ev _ _ (tlit _ _ _) _) _ => split; reflexivity
  | |- same_run _ (ev _ _ (tprim1 _ _) _) _ => apply c_prim1
  | |- same_run _ (ev _ _ (tprim2 _ _ _) _) _ => apply c_prim2
  | |- same_run _ (ev _ _ (tprimi _ _ _) _) _ => apply c_primi
  | |- same_run _ (ev _ _ (tcmp _ _ _) _) _ => apply c_cmp
  | |- same_run _ (ev _ _ (tround _ _) _) _ => apply c_round
  | |- same_run _ (ev _ _ (treal _) _) _ => apply c_real
  | |- same_run _ (ev _ _ (tsum _) _) _ => apply c_sum
  | |- same_run _ (ev _ _ (tdot _ _) _) _ => apply c_dot
  end.

Section Same.
Variable X : Type.
Variable O : ops X.
Variable fuel : nat.
Notation evX e := (ev O fuel e).
Notation same := (same X).
Notation same_env := (same_env X).

(* ---- substitution of values ---------------------------------------------------------------------------------- *)
Definition stands {G H} (s : sub G H) (r : env X G) (r' : env X H) : Prop :=
  forall t (m : mem t G), exists x n, evX (s t m) r' = Some (x, n, 0) /\ same t x (look m r).
Lemma stands_ups : forall G H (s : sub G H) a r r' x y, stands s r r' -> same a x y -> @stands (a :: G) (a :: H) (ups s) (y, r) (x, r').
Proof.
  intros G H s a r r' x y Hs Hx t m. revert s r r' x y Hs Hx.
  apply (mem_inv (fun u m => forall (s : sub G H) r r' (x y : den X u), stands s r r' -> same u x y ->
    exists z n, evX (ups (s := u) s m) ((x, r') : env X (u :: H)) = Some (z, n, 0) /\ same t z (@look X _ (u :: G) m (y, r)))).
  - intros m0 u s r r' x y Hs Hx. destruct (Hs _ m0) as (z & n & E & Hz). exists z, n. split; [|exact Hz]. cbn [ups]. rewrite wk_ok. exact E.
  - intros s r r' x y Hs Hx. exists x, 1. split; [reflexivity|exact Hx].
Qed.
Lemma stands_run : forall G H (s : sub G H) r r' t (m : mem t G), stands s r r' -> same_run (same t) (evX (s t m) r') (tick (ret (look m r))).
Proof. intros G H s r r' t m Hs. destruct (Hs _ m) as (x & n & -> & Hx). simpl. auto. Qed.
Theorem sb_same : forall G t (e : tm G t) H (s : sub G H) r r', stands s r r' -> same_run (same t) (evX (sb e s) r') (evX e r).
Proof.
  induction e; intros H s r1 r2 Hs; cbn [sb]; [cbn [ev]; now apply stands_run|..]; to_parts; auto; repeat intro;
    match goal with IH : _ |- _ => solve [apply IH; repeat (apply stands_ups; [|assumption]); assumption] end.
Qed.
Theorem same_ev : forall G t (e : tm G t) r r', same_env G r r' -> same_run (same t) (evX e r) (evX e r').
Proof.
  intros G t e r r' Hr. rewrite <- (@sb_ok X O fuel _ _ e G (fun t m => tvar m) r r) by (intros ? ?; reflexivity).
  apply sb_same. intros u m. exists (look m r), 1. split; [reflexivity|]. now apply s_look.
Qed.

(* ---- it is symmetric and transitive, and at data types it is equality ------------------------------------------ *)
Lemma run_sym : forall A (P Q : A -> A -> Prop), (forall x y, P x y -> Q y x) -> forall m m', same_run P m m' -> same_run Q m' m.
Proof. intros A P Q H [[[a n] k]|] [[[b n'] k']|]; simpl; auto. intros [H1 ->]. auto. Qed.
Lemma run_trans : forall A (P Q R : A -> A -> Prop), (forall x y z, P x y -> Q y z -> R x z) ->
  forall m m' m'', same_run P m m' -> same_run Q m' m'' -> same_run R m m''.
Proof. intros A P Q R H [[[a n] k]|] [[[b n'] k']|] [[[c n''] k'']|]; simpl; try contradiction; auto. intros [H1 ->] [H2 ->]. eauto. Qed.
Lemma same_sym : forall t x y, same t x y -> same t y x.
Proof.
  induction t; simpl; intros x y H; auto.
  - destruct H; auto.
  - destruct x, y; auto.
  - intros u v Hu. eapply run_sym; [exact IHt2|]. apply H, IHt1, Hu.
  - induction H; constructor; auto.
  - revert y H. induction x as [u ts IH] using tree_ind'. intros y H. inversion H; subst. constructor; auto.
    clear H. revert us H4. induction IH; intros us H4; inversion H4; subst; constructor; auto.
Qed.
Lemma same_trans : forall t x y z, same t x y -> same t y z -> same t x z.
Proof.
  induction t; simpl; intros x y z H1 H2; try congruence.
  - destruct H1, H2; eauto.
  - destruct x, y, z; try contradiction; eauto.
  - intros u v Hu. eapply run_trans; [exact IHt2|apply H1, Hu|]. apply H2. eapply IHt1; [apply same_sym, Hu|exact Hu].
  - revert z H2. induction H1; intros w H2; inversion H2; subst; constructor; eauto.
  - revert y z H1 H2. induction x as [u ts IH] using tree_ind'. intros y z H1 H2. inversion H1 as [a1 b1 ts1 us1 P1 Q1]; subst.
    inversion H2 as [a2 b2 ts2 us2 P2 Q2]; subst. constructor; [eauto|]. clear H1 H2. revert us1 us2 Q1 Q2.
    induction IH as [|w ts Hw _ IH]; intros us1 us2 Q1 Q2; inversion Q1; subst; inversion Q2; subst; constructor; eauto.
Qed.
Lemma same_self : forall t x y, same t x y -> same t x x.
Proof. intros t x y H. eapply same_trans; [exact H|apply same_sym, H]. Qed.
Lemma env_self : forall G r r', same_env G r r' -> same_env G r r.
Proof. induction G; simpl; auto. intros r r' [H1 H2]. split; [eapply same_self, H1|eauto]. Qed.
Lemma env_sym : forall G r r', same_env G r r' -> same_env G r' r.
Proof. induction G; simpl; auto. intros r r' [H1 H2]. split; [apply same_sym, H1|auto]. Qed.
Lemma data_same : forall t, data t = true -> forall x y, same t x y <-> x = y.
Proof.
  induction t; simpl; intros Ht x y; try discriminate; try tauto.
  - apply Bool.andb_true_iff in Ht as [H1 H2]. rewrite (IHt1 H1), (IHt2 H2). destruct x, y; simpl. split; [intros [-> ->]; reflexivity|intros E; inversion E; auto].
  - apply Bool.andb_true_iff in Ht as [H1 H2]. destruct x, y; rewrite ?(IHt1 H1), ?(IHt2 H2); split; intros E; try congruence; try contradiction.
  - split; [induction 1; [reflexivity|f_equal; [now apply IHt|assumption]]|intros <-; induction x; constructor; auto; now apply IHt].
  - split.
    + revert y. induction x as [u ts IH] using tree_ind'. intros y H. inversion H; subst. f_equal; [now apply IHt|].
      clear H. revert us H4. induction IH; intros us H4; inversion H4; subst; f_equal; auto.
    + intros <-. induction x as [u ts IH] using tree_ind'. constructor; [now apply IHt|]. induction IH; constructor; auto.
Qed.
Lemma data_env : forall G, datas G = true -> forall r, same_env G r r.
Proof.
  induction G; simpl; auto. intros H r. apply Bool.andb_true_iff in H as [H1 H2]. split; auto. now apply data_same.
Qed.
End Same.
