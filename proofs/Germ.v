(* Germs of runs.  The relation of every mode compares the runs of the source program near a point u0 with one run of
   the transformed program.  This file has what does not depend on the mode: facts about the monad, the relation [Es] on
   computations with its rules (return, step, bind, loop, fold, recursion), and the rules for arrays and trees, whose
   shape must be constant near u0.  Everything here holds because only the germ of the source run at u0 is looked at. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Arguments Nat.mul : simpl never.

(* ---- facts about the monad shared with the other modes -------------------------------- *)
Lemma bind_inv : forall A B (m : M A) (f : A -> M B) b n,
  bind m f = Some (b, n, 0) ->
  exists a n1 n2, m = Some (a, n1, 0) /\ f a = Some (b, n2, 0) /\ n = n1 + n2.
Proof.
  intros A B [[[a n1] k1]|] f b n; simpl; try discriminate.
  destruct (f a) as [[[b' n2] k2]|] eqn:Ef; try discriminate.
  intros H. inversion H; subst. exists a, n1, n2.
  assert (k1 = 0 /\ k2 = 0) as [-> ->] by lia. auto.
Qed.
Lemma bind_eq : forall A B (m : M A) (f : A -> M B) a b n1 n2,
  m = Some (a, n1, 0) -> f a = Some (b, n2, 0) -> bind m f = Some (b, n1 + n2, 0).
Proof. intros A B m f a b n1 n2 -> H. simpl. now rewrite H. Qed.
Lemma tick_inv : forall A (m : M A) b n,
  tick m = Some (b, n, 0) -> exists n1, m = Some (b, n1, 0) /\ n = S n1.
Proof. intros A [[[a n1] k1]|] b n; simpl; try discriminate. intros H. inversion H; subst. eauto. Qed.
Lemma guard_inv : forall A ok (a b : A) n, guard ok a = Some (b, n, 0) -> ok = true /\ a = b /\ n = 0.
Proof. intros A [] a b n H; inversion H; auto. Qed.
Lemma tick_ticks : forall A (m : M A), tick m = ticks 1 m.
Proof. intros A [[[a n] k]|]; reflexivity. Qed.
Lemma let2_ev : forall X (O : ops X) fuel G a b c (x : tm G a) (y : tm G b) (e : tm (b :: a :: G) c) r,
  ev O fuel (let2 x y e) r =
  ticks 4 (bind (ev O fuel x r) (fun p => bind (ev O fuel y r) (fun q => ev O fuel e (q, (p, r))))).
Proof.
  intros X O fuel G a b c x y e r. unfold let2. cbn [ev]. unfold ticks, tick, bind, ret.
  destruct (ev O fuel x r) as [[[p n1] k1]|]; auto. destruct (ev O fuel y r) as [[[q n2] k2]|]; auto.
  simpl. destruct (ev O fuel e (q, (p, r))) as [[[w n3] k3]|]; auto. simpl. apply f_equal. apply f_equal2; [apply f_equal2; [reflexivity|]|]; lia.
Qed.
Lemma Forall2_len : forall A B (P : A -> B -> Prop) l l', Forall2 P l l' -> length l = length l'.
Proof. induction 1; simpl; congruence. Qed.
Lemma Forall2_nth : forall A B (P : A -> B -> Prop) l l' i a, Forall2 P l l' ->
  nth_error l i = Some a -> exists b, nth_error l' i = Some b /\ P a b.
Proof.
  intros A B P l l' i a H. revert i. induction H; intros [|i] Hi; simpl in *; try discriminate.
  - inversion Hi; subst. eauto.
  - apply IHForall2, Hi.
Qed.
Lemma Forall2_update : forall A B (P : A -> B -> Prop) l l' i a b, Forall2 P l l' -> P a b ->
  Forall2 P (update l i a) (update l' i b).
Proof. intros A B P l l' i a b H Hab. revert i. induction H; intros [|i]; simpl; constructor; auto. Qed.
Lemma map_update : forall A B (f : A -> B) l i a, map f (update l i a) = update (map f l) i (f a).
Proof. induction l; intros [|i] b; simpl; auto. f_equal; auto. Qed.

Inductive tree2 {A B} (P : A -> B -> Prop) : tree A -> tree B -> Prop :=
| tree2_node : forall a b ts us, P a b -> Forall2 (tree2 P) ts us -> tree2 P (Node a ts) (Node b us).
Section TreeInd.
Variable A : Type.
Variable P : tree A -> Prop.
Hypothesis H : forall a ts, List.Forall P ts -> P (Node a ts).
Fixpoint tree_ind' (t : tree A) : P t :=
  match t with
  | Node a ts => H a ((fix go ts : List.Forall P ts :=
      match ts with nil => @List.Forall_nil _ P | t :: ts => @List.Forall_cons _ P t ts (tree_ind' t) (go ts) end) ts)
  end.
End TreeInd.
Lemma tree2_imp : forall A B (P Q : A -> B -> Prop), (forall a b, P a b -> Q a b) ->
  forall t u, tree2 P t u -> tree2 Q t u.
Proof.
  intros A B P Q HPQ. induction t as [a ts IH] using tree_ind'. intros u H. inversion H; subst. constructor; auto.
  clear H. revert us H4. induction IH; intros us H4; inversion H4; subst; constructor; auto.
Qed.

(* ---- computations near a point ------------------------------------------------------------ *)
Section Germ.
Variable U : NormedModule R_AbsRing.
Variable u0 : U.
Variable K : nat.
Notation near P := (@locally U u0 P).

(* computations: the primal run near u0, and one transformed run, up to s steps over the bound *)
Definition Es (s : nat) {A B} (P : (U -> A) -> B -> Prop) (F : U -> M A) (G : M B) : Prop :=
  forall a0 n0, F u0 = Some (a0, n0, 0) ->
  exists a b n',
    near (fun u => F u = Some (a u, n0, 0)) /\
    G = Some (b, n', 0) /\ P a b /\ n' <= S K * n0 + s.
Notation E := (Es 0).
Fixpoint tree_at {A} (t : tree (U -> A)) (u : U) : tree A :=
  match t with Node a ts => Node (a u) (map (fun t => tree_at t u) ts) end.
Lemma here : forall (P : U -> Prop), near P -> P u0.
Proof. intros P H. exact (locally_singleton _ _ H). Qed.
Lemma always : forall (P : U -> Prop), (forall u, P u) -> near P.
Proof. intros P H. apply filter_forall, H. Qed.
Lemma near2 : forall (P Q S : U -> Prop), (forall u, P u -> Q u -> S u) -> near P -> near Q -> near S.
Proof. intros P Q S H HP HQ. generalize (filter_and _ _ HP HQ). apply filter_imp. intros u []. auto. Qed.
Lemma near1 : forall (P Q : U -> Prop), (forall u, P u -> Q u) -> near P -> near Q.
Proof. intros P Q H HP. revert HP. apply filter_imp, H. Qed.
(* arrays and trees of constant shape *)
Definition Arr {A B} (P : (U -> A) -> B -> Prop) (f : U -> list A) (g : list B) : Prop :=
  exists fs, near (fun u => f u = map (fun k => k u) fs) /\ Forall2 P fs g.
Definition Tr {A B} (P : (U -> A) -> B -> Prop) (f : U -> tree A) (g : tree B) : Prop :=
  exists ft, near (fun u => f u = tree_at ft u) /\ tree2 P ft g.
(* such values of constant parts are constant *)
Lemma Arr_near : forall A B (P : (U -> A) -> B -> Prop) (c : B -> A), (forall f g, P f g -> near (fun u => f u = c g)) ->
  forall f g, Arr P f g -> near (fun u => f u = map c g).
Proof.
  intros A B P c H f g (fs & L & HF). assert (near (fun u => map (fun k => k u) fs = map c g)) as L'.
  { clear L. induction HF as [|k x fs g Hk HF IH]; [apply always; reflexivity|]. generalize (H _ _ Hk) IH. apply near2. intros u E1 E2. simpl. f_equal; assumption. }
  revert L L'. apply near2. congruence.
Qed.
Lemma Tr_near : forall A B (P : (U -> A) -> B -> Prop) (c : B -> A), (forall f g, P f g -> near (fun u => f u = c g)) ->
  forall f g, Tr P f g -> near (fun u => f u = tree_map c g).
Proof.
  intros A B P c H f g (ft & L & HF). assert (near (fun u => tree_at ft u = tree_map c g)) as L'.
  { clear L. revert g HF. induction ft as [a ts IH] using tree_ind'. intros g HF. inversion HF as [? b ? us Ha Hs]; subst. clear HF.
    assert (near (fun u => map (fun t => tree_at t u) ts = map (tree_map c) us)) as Ls.
    { revert us Hs. induction IH as [|t ts It Is IHs]; intros us Hs; inversion Hs; subst; [apply always; reflexivity|].
      generalize (It _ H2) (IHs _ H4). apply near2. intros u E1 E2. simpl. f_equal; [exact E1|exact E2]. }
    generalize (H _ _ Ha) Ls. apply near2. intros u E1 E2. simpl. f_equal; [exact E1|exact E2]. }
  revert L L'. apply near2. congruence.
Qed.
Lemma Arr_const : forall A B (P : (U -> A) -> B -> Prop) (c : A -> B), (forall v, P (fun _ => v) (c v)) -> forall v, Arr P (fun _ => v) (map c v).
Proof.
  intros A B P c H v. exists (map (fun x _ => x) v). split.
  - apply always. intros u. rewrite map_map, map_id. reflexivity.
  - induction v; simpl; constructor; auto.
Qed.
Lemma Tr_const : forall A B (P : (U -> A) -> B -> Prop) (c : A -> B), (forall v, P (fun _ => v) (c v)) -> forall v, Tr P (fun _ => v) (tree_map c v).
Proof.
  intros A B P c H v. exists (tree_map (fun x _ => x) v). split.
  - apply always. intros u. induction v as [a ts IH] using tree_ind'. simpl. f_equal. rewrite map_map. induction IH as [|t ts It Is IHs]; simpl; [reflexivity|]. f_equal; assumption.
  - induction v as [a ts IH] using tree_ind'. simpl. constructor; [apply H|]. induction IH as [|t ts It Is IHs]; simpl; constructor; assumption.
Qed.
Definition Pair {A B A' B'} (P : (U -> A) -> B -> Prop) (Q : (U -> A') -> B' -> Prop) (f : U -> A * A') (g : B * B') : Prop :=
  P (fun u => fst (f u)) (fst g) /\ Q (fun u => snd (f u)) (snd g).
Definition Const {A} (f : U -> A) (g : A) : Prop := near (fun u => f u = g).
Lemma Arr_germ : forall A B (P : (U -> A) -> B -> Prop) f f' g, near (fun u => f u = f' u) -> Arr P f g -> Arr P f' g.
Proof. intros A B P f f' g H (fs & H1 & H2). exists fs. split; auto. revert H H1. apply near2. congruence. Qed.
Lemma Tr_germ : forall A B (P : (U -> A) -> B -> Prop) f f' g, near (fun u => f u = f' u) -> Tr P f g -> Tr P f' g.
Proof. intros A B P f f' g H (fs & H1 & H2). exists fs. split; auto. revert H H1. apply near2. congruence. Qed.

(* everything depends only on the germ *)
Lemma E_germ : forall s A B (P : (U -> A) -> B -> Prop) F F' G,
  near (fun u => F u = F' u) -> Es s P F G -> Es s P F' G.
Proof.
  intros s A B P F F' G H HE a0 n0 H0.
  rewrite <- (here H) in H0. destruct (HE _ _ H0) as (a & b & n' & H1 & H2 & H3 & H4).
  exists a, b, n'. repeat split; auto. revert H H1. apply near2. intros u E1 E2. now rewrite <- E1.
Qed.
Lemma E_ret : forall s A B (P : (U -> A) -> B -> Prop) f g, P f g -> Es s P (fun u => ret (f u)) (ret g).
Proof.
  intros s A B P f g H a0 n0 H0. inversion H0; subst.
  exists f, g, 0. repeat split; auto; try lia. apply always. reflexivity.
Qed.
Lemma E_ticks : forall s j A B (P : (U -> A) -> B -> Prop) F G, s + j <= S K ->
  Es s P F G -> E P (fun u => tick (F u)) (ticks j G).
Proof.
  intros s j A B P F G Hs H a0 n0 H0. apply tick_inv in H0 as (n1 & H0 & ->).
  destruct (H _ _ H0) as (a & b & n' & H1 & -> & H3 & H4).
  exists a, b, (j + n'). repeat split; auto.
  - revert H1. apply near1. intros x ->. reflexivity.
  - rewrite Nat.mul_succ_r. lia.
Qed.
Lemma E_tick : forall s A B (P : (U -> A) -> B -> Prop) F G, s + 1 <= S K ->
  Es s P F G -> E P (fun u => tick (F u)) (tick G).
Proof. intros. rewrite tick_ticks. eapply E_ticks; eauto. Qed.
Lemma E_tick0 : forall A B (P : (U -> A) -> B -> Prop) F G,
  E P F G -> E P (fun u => tick (F u)) (tick G).
Proof. intros. eapply E_tick; eauto. lia. Qed.
Lemma E_bind : forall s A B A' B' (P : (U -> A) -> B -> Prop) (Q : (U -> A') -> B' -> Prop) F G H J,
  E P F G -> (forall f g, P f g -> Es s Q (fun u => H u (f u)) (J g)) ->
  Es s Q (fun u => bind (F u) (H u)) (bind G J).
Proof.
  intros s A B A' B' P Q F G H J HF HH a0 n0 H0.
  apply bind_inv in H0 as (a1 & n1 & n2 & H1 & H2 & ->).
  destruct (HF _ _ H1) as (a & b & n' & L1 & -> & H3 & H4).
  assert (a u0 = a1) by (pose proof (here L1) as X; simpl in X; congruence). subst a1.
  destruct (HH _ _ H3 _ _ H2) as (a' & b' & n'' & L2 & H5 & H6 & H7).
  exists a', b', (n' + n''). simpl. rewrite H5. repeat split; auto.
  - revert L1 L2. apply near2. intros u -> E2. simpl. now rewrite E2.
  - rewrite Nat.mul_add_distr_l. lia.
Qed.
Lemma E_iter : forall A B (P : (U -> A) -> B -> Prop) n (F : U -> nat -> A -> M A) (J : nat -> B -> M B) z z',
  (forall i f g, P f g -> E P (fun u => F u i (f u)) (J i g)) ->
  P z z' -> E P (fun u => miter n (F u) (z u)) (miter n J z').
Proof.
  intros A B P. induction n; intros F J z z' HF Hz; simpl.
  - apply E_ret, Hz.
  - eapply E_bind with (H := fun u a => tick (F u n a)).
    + apply IHn; auto.
    + intros f g Hfg. apply E_tick0 with (F := fun u => F u n (f u)). apply HF, Hfg.
Qed.
(* sequences and folds over lists whose elements are related by R0 *)
Lemma E_seq : forall A B A' B' (P : (U -> A') -> B' -> Prop) (R0 : (U -> A) -> B -> Prop) (F : U -> A -> M A') (J : B -> M B') fs gs,
  (forall f g, R0 f g -> E P (fun u => F u (f u)) (J g)) -> Forall2 R0 fs gs ->
  E (Arr P) (fun u => mseq (F u) (map (fun k => k u) fs)) (mseq J gs).
Proof.
  intros A B A' B' P R0 F J fs gs H HF. induction HF as [|f g fs gs Hfg HF IH]; simpl.
  - apply E_ret with (f := fun _ => nil). exists nil. split; [apply always; reflexivity|constructor].
  - eapply E_bind with (H := fun u a => bind (mseq (F u) (map (fun k => k u) fs)) (fun r => ret (a :: r))); [apply H, Hfg|].
    intros f1 g1 H1. eapply E_bind with (H := fun u r => ret (f1 u :: r)); [apply IH|].
    intros fr gr (fs' & L & Hf). apply E_ret with (f := fun u => f1 u :: fr u).
    exists (f1 :: fs'). split; [|constructor; auto]. revert L. apply near1. intros u ->. reflexivity.
Qed.
Lemma E_fold : forall A B A' B' (P : (U -> A') -> B' -> Prop) (R0 : (U -> A) -> B -> Prop) (F : U -> A -> A' -> M A')
    (J : B -> B' -> M B') fs gs,
  (forall f g z z', R0 f g -> P z z' -> E P (fun u => F u (f u) (z u)) (J g z')) -> Forall2 R0 fs gs ->
  forall z z', P z z' -> E P (fun u => mfold (F u) (map (fun k => k u) fs) (z u)) (mfold J gs z').
Proof.
  intros A B A' B' P R0 F J fs gs H HF. induction HF as [|f g fs gs Hfg HF IH]; intros z z' Hz; simpl.
  - apply E_ret, Hz.
  - eapply E_bind with (H := fun u z => mfold (F u) (map (fun k => k u) fs) z).
    + apply E_tick0 with (F := fun u => F u (f u) (z u)). apply H; auto.
    + intros z1 z2 H1. apply IH, H1.
Qed.

(* ---- data operations ------------------------------------------------------------------------ *)
Lemma E_get : forall A B (P : (U -> A) -> B -> Prop) fs gs i, Forall2 P fs gs ->
  E P (fun u => mget (map (fun k => k u) fs) i) (mget gs i).
Proof.
  intros A B P fs gs i HF a0 n0 H0. unfold mget in *. destruct (i <? 0)%Z; [discriminate|].
  rewrite nth_error_map in H0.
  destruct (nth_error fs (Z.to_nat i)) as [k|] eqn:Eh; simpl in H0; try discriminate. inversion H0; subst.
  destruct (Forall2_nth _ HF Eh) as (b & Hb & HV). exists k, b, 0. repeat split; auto; try lia.
  - apply always. intros u. now rewrite nth_error_map, Eh.
  - exact (f_equal (fun o => match o with Some a => ret a | None => None end) Hb).
Qed.
Lemma E_set : forall A B (P : (U -> A) -> B -> Prop) fs gs i f g, Forall2 P fs gs -> P f g ->
  E (Arr P) (fun u => mset (map (fun k => k u) fs) i (f u)) (mset gs i g).
Proof.
  intros A B P fs gs i f g HF Hfg. unfold mset.
  eapply E_bind with (H := fun u _ => ret (update (map (fun k => k u) fs) (Z.to_nat i) (f u))); [apply E_get, HF|].
  intros f1 g1 _. apply E_ret with (f := fun u => update (map (fun k => k u) fs) (Z.to_nat i) (f u)).
  exists (update fs (Z.to_nat i) f). split; [|apply Forall2_update; auto].
  apply always. intros u. symmetry. apply (map_update (fun k => k u)).
Qed.
Lemma E_zip : forall A B A' B' (P : (U -> A) -> B -> Prop) (Q : (U -> A') -> B' -> Prop) fs gs, Forall2 P fs gs ->
  forall fs' gs', Forall2 Q fs' gs' ->
  E (Arr (Pair P Q)) (fun u => mzip (map (fun k => k u) fs) (map (fun k => k u) fs')) (mzip gs gs').
Proof.
  intros A B A' B' P Q fs gs H. induction H as [|f g fs gs Hfg HF IH]; intros fs' gs' H'; destruct H' as [|f' g' fs' gs' Hfg' HF']; simpl;
    try (intros a0 n0 H0; discriminate).
  - apply E_ret with (f := fun _ => nil). exists nil. split; [apply always; reflexivity|constructor].
  - eapply E_bind with (H := fun u r => ret ((f u, f' u) :: r)).
    + apply E_tick0 with (F := fun u => mzip (map (fun k => k u) fs) (map (fun k => k u) fs')). apply IH, HF'.
    + intros fr gr (fs1 & L & Hf). apply E_ret with (f := fun u => (f u, f' u) :: fr u).
      exists ((fun u => (f u, f' u)) :: fs1). split.
      * revert L. apply near1. intros u ->. reflexivity.
      * constructor; auto. split; auto.
Qed.
Lemma trees : forall A B (P : (U -> A) -> B -> Prop) fs us, Forall2 (Tr P) fs us ->
  exists ts, near (fun u => map (fun k => k u) fs = map (fun t => tree_at t u) ts) /\ Forall2 (tree2 P) ts us.
Proof.
  intros A B P fs us H. induction H as [|f g fs us (ft & L & Hf) HF (ts & L' & IH)].
  - exists nil. split; [apply always; reflexivity|constructor].
  - exists (ft :: ts). split; [|constructor; auto]. revert L L'. apply near2. intros u E1 E2. simpl. f_equal; [exact E1|exact E2].
Qed.
Lemma E_node : forall A B (P : (U -> A) -> B -> Prop) f g f' g', P f g -> Arr (Tr P) f' g' ->
  E (Tr P) (fun u => ret (Node (f u) (f' u))) (ret (Node g g')).
Proof.
  intros A B P f g f' g' H (fs & L & HF). destruct (trees HF) as (ts & L' & HT).
  apply E_ret with (f := fun u => Node (f u) (f' u)). exists (Node f ts). split; [|constructor; auto].
  revert L L'. apply near2. intros u -> E2. simpl. f_equal. exact E2.
Qed.
Lemma E_unnode : forall A B (P : (U -> A) -> B -> Prop) f g, Tr P f g ->
  E (Pair P (Arr (Tr P))) (fun u => match f u with Node x ts => ret (x, ts) end) (match g with Node x ts => ret (x, ts) end).
Proof.
  intros A B P f g (ft & L & H). destruct H as [k b ts us Hk Ht].
  apply E_germ with (F := fun u => ret (k u, map (fun t => tree_at t u) ts)).
  { revert L. apply near1. intros u ->. reflexivity. }
  apply E_ret with (f := fun u => (k u, map (fun t => tree_at t u) ts)). split; [exact Hk|].
  exists (map tree_at ts). split; [apply always; intros u; simpl; now rewrite map_map|].
  clear L. induction Ht; simpl; constructor; auto. exists x. split; auto. apply always. reflexivity.
Qed.
Lemma E_cons : forall A B (P : (U -> A) -> B -> Prop) f g f' g', P f g -> Arr P f' g' ->
  E (Arr P) (fun u => ret (f u :: f' u)) (ret (g :: g')).
Proof.
  intros A B P f g f' g' H (fs & L & HF). apply E_ret with (f := fun u => f u :: f' u). exists (f :: fs). split; [|constructor; auto].
  revert L. apply near1. intros u ->. reflexivity.
Qed.
Lemma E_snoc : forall A B (P : (U -> A) -> B -> Prop) f g f' g', Arr P f g -> P f' g' ->
  E (Arr P) (fun u => ret (f u ++ [f' u])) (ret (g ++ [g'])).
Proof.
  intros A B P f g f' g' (fs & L & HF) H. apply E_ret with (f := fun u => f u ++ [f' u]). exists (fs ++ [f']). split.
  - revert L. apply near1. intros u ->. rewrite map_app. reflexivity.
  - apply Forall2_app; auto.
Qed.
Lemma E_geta : forall A B (P : (U -> A) -> B -> Prop) f g i j, Arr P f g -> Const i j ->
  E P (fun u => mget (f u) (i u)) (mget g j).
Proof.
  intros A B P f g i j (fs & L & HF) Hi. apply E_germ with (F := fun u => mget (map (fun k => k u) fs) j).
  { revert L Hi. apply near2. intros u -> ->. reflexivity. }
  apply E_get, HF.
Qed.
Lemma E_seta : forall A B (P : (U -> A) -> B -> Prop) f g i j f' g', Arr P f g -> Const i j -> P f' g' ->
  E (Arr P) (fun u => mset (f u) (i u) (f' u)) (mset g j g').
Proof.
  intros A B P f g i j f' g' (fs & L & HF) Hi H. apply E_germ with (F := fun u => mset (map (fun k => k u) fs) j (f' u)).
  { revert L Hi. apply near2. intros u -> ->. reflexivity. }
  apply E_set; auto.
Qed.
Lemma E_zipa : forall A B A' B' (P : (U -> A) -> B -> Prop) (Q : (U -> A') -> B' -> Prop) f g f' g', Arr P f g -> Arr Q f' g' ->
  E (Arr (Pair P Q)) (fun u => mzip (f u) (f' u)) (mzip g g').
Proof.
  intros A B A' B' P Q f g f' g' (fs & L & HF) (fs' & L' & HF').
  eapply E_germ with (F := fun u => mzip (map (fun k => k u) fs) (map (fun k => k u) fs')); [|apply (E_zip HF HF')].
  revert L L'. apply near2. intros u -> ->. reflexivity.
Qed.
(* integer lists are constant near u0 *)
Lemma ints : forall (fs : list (U -> Z)) gs, Forall2 Const fs gs -> near (fun u => map (fun k => k u) fs = gs).
Proof.
  intros fs gs H. induction H as [|f g fs gs Hfg HF IH]; [apply always; reflexivity|].
  revert Hfg IH. apply near2. intros u E1 E2. simpl. f_equal; [exact E1|exact E2].
Qed.
Lemma E_gather : forall A B (P : (U -> A) -> B -> Prop) f g f' g', Arr P f g -> Arr (@Const Z) f' g' ->
  E (Arr P) (fun u => mseq (fun i => tick (mget (f u) i)) (f' u)) (mseq (fun i => tick (mget g i)) g').
Proof.
  intros A B P f g f' g' (fs & L & HF) (fs' & L' & HF').
  apply E_germ with (F := fun u => mseq (fun i => tick (mget (map (fun k => k u) fs) i)) g').
  { generalize (filter_and _ _ L (filter_and _ _ L' (ints HF'))). apply filter_imp. intros u (E1 & E2 & E3). rewrite E1, (eq_trans E2 E3). reflexivity. }
  clear HF'. eapply E_germ with (F := fun u => mseq (fun i => tick (mget (map (fun k => k u) fs) i)) (map (fun k => k u) (map (fun i _ => i) g'))).
  { apply always. intros u. rewrite map_map, map_id. reflexivity. }
  apply E_seq with (F := fun u i => tick (mget (map (fun k => k u) fs) i)) (R0 := fun f i => f = fun _ => i).
  - intros f0 i ->. apply E_tick0 with (F := fun u => mget (map (fun k => k u) fs) i). apply E_get, HF.
  - clear. induction g'; simpl; constructor; auto.
Qed.
Lemma E_len : forall A B (P : (U -> A) -> B -> Prop) f g, Arr P f g ->
  E Const (fun u => ret (Z.of_nat (length (f u)))) (ret (Z.of_nat (length g))).
Proof.
  intros A B P f g (fs & L & HF). apply E_ret with (f := fun u => Z.of_nat (length (f u))).
  revert L. apply near1. intros u ->. rewrite map_length. f_equal. apply (Forall2_len HF).
Qed.
Lemma E_intop : forall o f g f' g', Const f g -> Const f' g' -> E Const (fun u => intopv o (f u) (f' u)) (intopv o g g').
Proof.
  intros o f g f' g' H H'. apply E_germ with (F := fun _ => intopv o g g').
  { revert H H'. apply near2. intros u -> ->. reflexivity. }
  intros a0 n0 H0. exists (fun _ => a0), a0, n0. repeat split; auto; try (apply always; auto). nia.
Qed.
(* Booleans whose decision is constant near u0 *)
Definition Bool (f : U -> unit + unit) (g : unit + unit) : Prop :=
  match g with
  | inl g1 => exists f1 : U -> unit, near (fun u => f u = inl (f1 u)) /\ True
  | inr g1 => exists f1 : U -> unit, near (fun u => f u = inr (f1 u)) /\ True
  end.
Lemma Bool_const : forall (f : U -> bool) b, near (fun u => f u = b) -> Bool (fun u => boolv (f u)) (boolv b).
Proof.
  intros f b H. unfold boolv, Bool. destruct b; exists (fun _ => tt); split; auto; revert H; apply near1; intros u ->; reflexivity.
Qed.
End Germ.
