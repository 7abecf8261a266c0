(* The combinator mode is right for arrays that are computed element by element (see Adjoint.v): a cotangent at an index goes back through the
   map of the run that made the element. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Triple Combinator Cotangent Transpose Adjoint.
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

(* ---- arrays of runs ------------------------------------------------------------------------------------------------ *)
Lemma E_each : forall A B A' B' (P : A -> (U -> A') -> B' -> Prop) (R0 : A -> B -> Prop) (F : U -> A -> M A') (J : B -> M B') xs ys,
  (forall x y, R0 x y -> E (P x) (fun u => F u x) (J y)) -> Forall2 R0 xs ys ->
  E (fun f l => exists zs, map fst zs = xs /\ near (fun u => f u = map (fun z => snd z u) zs) /\ Forall2 (fun z p => P (fst z) (snd z) p) zs l)
    (fun u => mseq (F u) xs) (mseq J ys).
Proof.
  intros A B A' B' P R0 F J xs ys H HF. induction HF as [|x y xs ys Hxy HF IH]; cbn [mseq].
  - apply E_ret with (f := fun _ => nil), g_ret. exists nil. split; [reflexivity|split; [apply always; reflexivity|constructor]].
  - eapply E_bind with (H := fun u a => bind (mseq (F u) xs) (fun r => ret (a :: r))); [apply H, Hxy|].
    intros f1 g1 H1. eapply E_bind with (H := fun u r => ret (f1 u :: r)); [apply IH|].
    intros fr gr (zs & Ez & L & Hf). apply E_ret with (f := fun u => f1 u :: fr u), g_ret. exists ((x, f1) :: zs).
    split; [exact (f_equal (cons x) Ez)|split; [|constructor; auto]]. revert L. apply near1. intros u ->. reflexivity.
Qed.
Lemma choose : forall A B O (Q : A -> O -> B -> Prop) l m, Forall2 (fun x y => exists o, Q x o y) l m ->
  exists ts : list (A * O), map fst ts = l /\ Forall2 (fun t y => Q (fst t) (snd t) y) ts m.
Proof.
  intros A B O Q l m H. induction H as [|x y l m (o & Ho) HF (ts & E1 & IH)]; [exists nil; split; [reflexivity|constructor]|].
  exists ((x, o) :: ts). split; [exact (f_equal (cons x) E1)|constructor; auto].
Qed.
(* an array of results with their maps back is an array of results, whose cotangents go back through the map at their index *)
Lemma array_of : forall X a b (W : X -> den R (D2 b) -> den R (D2 a) -> R -> Prop) (f : U -> den R (TArr b)) (zs : list (X * (U -> den R b))) (l : list (den R (run_ty a b))),
  near (fun u => f u = map (fun z => snd z u) zs) -> Forall2 (fun z p => @Run U a b (V b) (W (fst z)) (snd z) p) zs l ->
  exists os, V (TArr b) f (map fst l) os /\ forall i o, sel os i = Some o ->
    exists z p, sel zs i = Some z /\ sel l i = Some p /\ forall d w, weigh b o d w -> gives (snd p d) (fun e => W (fst z) d e w).
Proof.
  intros X a b W f zs l L HF. destruct (choose _ HF) as (ts & Et & HT). exists (map snd ts). split.
  - exists (map (fun t => (snd (fst t), snd t)) ts). split; [|split; [now rewrite map_map|]].
    + revert L. apply near1. intros u ->. rewrite <- Et, !map_map. reflexivity.
    + clear - HT. induction HT as [|t p ts l [H1 _] HT IH]; simpl; constructor; auto.
  - intros i o Hs. apply sel_map_some in Hs as (t & Hs & ->). destruct (Forall2_sel _ HT Hs) as (p & Hp & _ & B).
    exists (fst t), p. split; [|split; [exact Hp|exact B]]. rewrite <- Et, sel_map, Hs. reflexivity.
Qed.
Lemma w_firsts : forall G a b (e : tm G (TArr (run_ty a b))) r (P : den R (TArr (D1 b)) -> Prop),
  gives (evR e r) (fun l => P (map fst l)) -> gives (evR (tmap (tfst v0) e) r) P.
Proof.
  intros G a b e r P H. apply w_map. eapply g_imp; [exact H|]. intros l Hl.
  rewrite (@mseq_pure _ _ _ (fun x : den R (run_ty a b) => fst x) 3) by reflexivity. eexists _, _. split; [reflexivity|exact Hl].
Qed.
Lemma sel_some_map : forall A B (f : A -> B) l i a, sel l i = Some a -> sel (map f l) i = Some (f a).
Proof. intros A B f l i a H. now rewrite sel_map, H. Qed.
Lemma Forall2_eq : forall A (l : list A), Forall2 eq l l.
Proof. induction l; constructor; auto. Qed.
Lemma i_build : forall c a F (D : image (TProd c TI) a), Image F D ->
  @Adjoint.Image fuel U u0 h (TProd c TI) (TArr a) (fun p => mseq (fun i => tick (F (fst p, Z.of_nat i))) (seq 0 (Z.to_nat (snd p)))) (d_build D).
Proof.
  intros c a F D H G r f [gc k] [oc on] [Hc Hk]. cbn [fst snd] in Hc, Hk. unfold d_build.
  apply E_germ with (F := fun u => mseq (fun i => tick (F (fst (f u), Z.of_nat i))) (seq 0 (Z.to_nat k))).
  { revert Hk. apply near1. intros u Hu. cbv beta. now rewrite Hu. }
  eapply e_then.
  - eapply E_right; [intros f2 H2; apply w_build; w; exact H2|].
    eapply E_each with (R0 := eq) (P := fun _ => @Adjoint.Back U u0 h (TProd c TI) (oc, on) a) (F := fun u i => tick (F (fst (f u), Z.of_nat i))); [|apply Forall2_eq].
    intros i ? <-. apply E_tick with (F := fun u => F (fst (f u), Z.of_nat i)). eapply E_right; [intros ?; apply g_tick|].
    apply e_at. w. eapply H with (f := fun u => (fst (f u), Z.of_nat i)) (o := (oc, on)). split; [exact Hc|apply always; reflexivity].
  - intros f1 l (zs & _ & L & HF).
    destruct (@array_of nat (TProd c TI) a (fun _ _ e w => weigh (TProd c TI) (oc, on) e w) f1 zs l L HF) as (os & HV & B).
    w. apply w_firsts. w. exists os. split; [exact HV|]. intros d w Hd. cbn [snd]. w.
    eapply w_bag; [w; exact Hd|]. intros [i e] acc w1 (o1 & Hs & He). destruct (B i o1 Hs) as (z & p & _ & Hp & B1). w.
    eapply g_get; [exact Hp|]. w. exact (B1 e w1 He).
Qed.
Lemma mseq_map : forall A B C (f : B -> M C) (k : A -> B) l, mseq f (map k l) = mseq (fun x => f (k x)) l.
Proof. intros A B C f k l. induction l; simpl; auto. now rewrite IHl. Qed.
Lemma i_map : forall c a b F (D : image (TProd c a) b), Image F D ->
  @Adjoint.Image fuel U u0 h (TProd c (TArr a)) (TArr b) (fun p => mseq (fun y => tick (F (fst p, y))) (snd p)) (d_map D).
Proof.
  intros c a b F D H G r f [gc gl] [oc os0] [Hc (qs & L0 & Hos & HQ)]. cbn [fst snd] in Hc, L0, Hos, HQ. unfold d_map. subst os0.
  apply E_germ with (F := fun u => mseq (fun q => tick (F (fst (f u), fst q u))) qs).
  { revert L0. apply near1. intros u Hu. cbv beta. rewrite Hu. symmetry. exact (mseq_map (fun y => tick (F (fst (f u), y))) (fun q => fst q u) qs). }
  eapply e_then.
  - eapply E_right; [intros f2 H2; apply w_map; w; exact H2|].
    eapply E_each with (P := fun q => @Adjoint.Back U u0 h (TProd c a) (oc, snd q) b) (F := fun u q => tick (F (fst (f u), fst q u))); [|exact HQ].
    intros q g1 Hq. apply E_tick with (F := fun u => F (fst (f u), fst q u)). eapply E_right; [intros ?; apply g_tick|].
    apply e_at. w. eapply H with (f := fun u => (fst (f u), fst q u)) (o := (oc, snd q)). split; [exact Hc|exact Hq].
  - intros f1 l (zs & Ez & L & HF).
    destruct (@array_of _ (TProd c a) b (fun q _ e w => weigh (TProd c a) (oc, snd q) e w) f1 zs l L HF) as (os & HV & B).
    w. apply (@w_firsts _ (TProd c a) b). w. exists os. split; [exact HV|]. intros d w Hd. cbn [snd]. w.
    eapply w_bag; [w; exact Hd|]. intros [i e] acc w1 (o1 & Hs & He). destruct (B i o1 Hs) as (z & p & Hz & Hp & B1). w.
    eapply g_get; [exact Hp|]. w. eapply g_imp; [exact (B1 e w1 He)|]. intros q (w2 & w3 & Q1 & Q2 & ->). w.
    exists w2, w3. split; [exact Q1|split; [|reflexivity]]. apply Bag_single. exists (snd (fst z)). split; [|exact Q2].
    rewrite <- Ez. exact (sel_some_map snd _ _ (sel_some_map fst _ _ Hz)).
Qed.
End Here.
