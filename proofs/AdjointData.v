(* The combinator mode is right for constants, projections, injections and taking trees apart (see Adjoint.v); and what selection from an array
   has to do with changes of it. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Triple Combinator Cotangent Transpose Adjoint AdjointArray.
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

Lemma zero_back : forall c o G (r : env R G) w, w = 0%R -> gives (evR (zero c G) r) (fun e => weigh c o e w).
Proof. intros c o G r w ->. apply (w_zero fuel c o). auto. Qed.
Lemma empty_bag : forall a d w, weigh (TArr a) nil d w -> w = 0%R.
Proof.
  intros a d w H. inversion H as [|x l w1 w2 (o1 & Hs & _)]; [reflexivity|]. unfold sel in Hs. destruct (fst x <? 0)%Z; [discriminate|].
  destruct (Z.to_nat (fst x)); discriminate.
Qed.
Lemma i_op0 : forall c a (o : op0 a), Image (fun _ : den R c => ret (op0v R o)) (d_op0 o).
Proof.
  intros c a o G r f g oc HV. apply E_ret with (f := fun _ => op0v R o). unfold d_op0. destruct o; w.
  - exists tt. split; [exact I|]. intros d w Hd. apply zero_back, Hd.
  - exists tt. split; [apply always; reflexivity|]. intros d w Hd. apply zero_back, Hd.
  - exists nil. split; [exists nil; split; [apply always; reflexivity|split; [reflexivity|constructor]]|].
    intros d w Hd. apply zero_back. exact (@empty_bag a d w Hd).
Qed.
Lemma walk_into : forall A (a : A) ts i p t o, sel ts i = Some t -> walk p t = Some o -> walk (Node i [p]) (Node a ts) = Some o.
Proof. intros A a ts i p t o Hs Hw. simpl. now rewrite Hs. Qed.
Lemma i_op1 : forall a b (o : op1 a b), Image (fun x => op1v R o x) (d_op1 o).
Proof.
  intros a b o. destruct o; intros G r f g ob HV; cbn [op1v d_op1].
  - (* fst *) destruct HV as [H1 H2]. apply E_ret with (f := fun u => fst (f u)). w. exists (fst ob). split; [exact H1|].
    intros d w Hd. cbn [snd]. w. apply (w_zero fuel b (snd ob)). intros z Hz. exists w, 0%R. split; [exact Hd|split; [exact Hz|ring]].
  - (* snd *) destruct HV as [H1 H2]. apply E_ret with (f := fun u => snd (f u)). w. exists (snd ob). split; [exact H2|].
    intros d w Hd. cbn [snd]. w. apply (w_zero fuel a (fst ob)). intros z Hz. w. exists 0%R, w. split; [exact Hz|split; [exact Hd|ring]].
  - (* inl *) apply E_ret with (f := fun u => inl (f u)). w. exists (inl ob). split; [exists f; split; [apply always; reflexivity|exact HV]|].
    intros d w Hd. cbn [snd]. w. exact Hd.
  - (* inr *) apply E_ret with (f := fun u => inr (f u)). w. exists (inr ob). split; [exists f; split; [apply always; reflexivity|exact HV]|].
    intros d w Hd. cbn [snd]. w. exact Hd.
  - (* len *) destruct HV as (qs & L & Ho & HF). apply E_ret with (f := fun u => Z.of_nat (length (f u))). w. exists tt. split.
    + revert L. apply near1. intros u ->. rewrite map_length. exact (f_equal Z.of_nat (Forall2_len HF)).
    + intros d w Hd. apply zero_back, Hd.
  - (* unnode *) destruct HV as (qt & L & -> & HT). destruct HT as [q g1 qts gs Hq Hqs].
    apply E_germ with (F := fun u => ret (fst q u, map (tree_map (fun q => fst q u)) qts)).
    { revert L. apply near1. intros u ->. reflexivity. }
    apply E_ret with (f := fun u => (fst q u, map (tree_map (fun q => fst q u)) qts)). w. exists (snd q, map (tree_map snd) qts). split.
    + split; [exact Hq|]. exists (map (fun t => (fun u => tree_map (fun q => fst q u) t, tree_map snd t)) qts). split; [|split].
      * apply always. intros u. simpl. now rewrite map_map.
      * simpl. now rewrite map_map.
      * clear L. induction Hqs; simpl; constructor; auto. exists x. split; [apply always; reflexivity|split; [reflexivity|assumption]].
    + intros d w (w1 & w2 & Q1 & Q2 & ->). cbn [snd]. apply w_plus.
      * w. apply Bag_single. exists (snd q). split; [reflexivity|exact Q1].
      * eapply w_bag; [w; exact Q2|]. intros [i l] acc w3 (ot & Hs & Hl). eapply w_bag; [w; exact Hl|]. intros [p e] acc' w4 (o1 & Hw & He). w.
        apply Bag_single. exists o1. split; [exact (walk_into (snd q) _ _ _ Hs Hw)|exact He].
Qed.
Lemma sel_cons : forall A (x : A) l i y, sel (x :: l) i = Some y -> (i = 0%Z -> y = x) /\ (i <> 0%Z -> sel l (i - 1) = Some y).
Proof.
  intros A x l i y H. apply sel_is_nat in H as (n & -> & H). destruct n as [|n]; simpl in H.
  - split; [intros _; congruence|lia].
  - split; [lia|]. intros _. replace (Z.of_nat (S n) - 1)%Z with (Z.of_nat n) by lia. now rewrite sel_nat.
Qed.
Lemma sel_snoc : forall A (x : A) l i y, sel (l ++ [x]) i = Some y ->
  (i = Z.of_nat (length l) -> y = x) /\ (i <> Z.of_nat (length l) -> sel l i = Some y).
Proof.
  intros A x l i y H. apply sel_is_nat in H as (n & -> & H). rewrite sel_nat. split; intros E.
  - apply Nat2Z.inj in E. subst n. rewrite nth_error_app2, Nat.sub_diag in H by lia. simpl in H. congruence.
  - assert (n < length (l ++ [x])) as Hn by (apply nth_error_Some; congruence). rewrite app_length in Hn. simpl in Hn.
    rewrite nth_error_app1 in H by lia. exact H.
Qed.
Lemma sel_combine : forall A B (l : list A) (l' : list B) i p, sel (combine l l') i = Some p -> sel l i = Some (fst p) /\ sel l' i = Some (snd p).
Proof.
  intros A B l l' i p H. apply sel_is_nat in H as (n & -> & H). rewrite !sel_nat. revert l' n H.
  induction l as [|x l IH]; intros [|y l'] [|n] H; simpl in *; try discriminate; [inversion H; auto|apply IH, H].
Qed.
Lemma sel_update : forall A (l : list A) i x j y, (0 <= i)%Z -> sel (update l (Z.to_nat i) x) j = Some y ->
  (j = i -> y = x) /\ (j <> i -> sel l j = Some y).
Proof.
  intros A l i x j y Hi H. apply sel_is_nat in H as (n & -> & H). rewrite sel_nat.
  assert (forall (l : list A) k n, nth_error (update l k x) n = Some y -> (n = k -> y = x) /\ (n <> k -> nth_error l n = Some y)) as HU.
  { clear. induction l as [|z l IH]; intros [|k] [|n] H; simpl in *; try discriminate; try (split; [congruence|intros; try congruence; try lia]); auto; try lia.
    destruct (IH _ _ H) as [H1 H2]. split; intros; [apply H1|apply H2]; lia. }
  destruct (HU _ _ _ H) as [H1 H2]. split; intros E; [apply H1|apply H2]; lia.
Qed.
End Here.
