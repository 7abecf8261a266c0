(* The combinator mode is right for loops and folds (see Adjoint.v): the maps back of the steps form a chain of observers, and the sweep along
   it keeps the weight of cotangents of the captured value, of the state, and of the elements that were read. *)
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

(* ---- loops: maps back in a chain, each from the observer of a state to that of the state before ---------------- *)
Inductive Chain {X O} (link : list X -> O -> X -> O -> Prop) (o0 : O) : list X -> O -> Prop :=
| Chain_nil : Chain link o0 nil o0
| Chain_cons : forall x xs o o', Chain link o0 xs o -> link xs o x o' -> Chain link o0 (x :: xs) o'.
Lemma sweep : forall X O S (link : list X -> O -> X -> O -> Prop) o0 (J : X -> S -> M S) (inv : O -> S -> R -> Prop),
  (forall xs o x o' st w, link xs o x o' -> inv o' st w -> gives (J x st) (fun st => inv o st w)) ->
  forall xs o, Chain link o0 xs o -> forall st w, inv o st w -> gives (mfold J xs st) (fun st => inv o0 st w).
Proof.
  intros X O S link o0 J inv HJ xs o HC. induction HC as [|x xs o o' HC IH HL]; intros st w Hw; cbn [mfold].
  - apply g_ret, Hw.
  - apply g_bind, g_tick. eapply g_imp; [exact (HJ _ _ _ _ _ _ HL Hw)|]. intros st' Hst'. apply IH, Hst'.
Qed.
Lemma i_loop : forall c a F (D : image (TProd (TProd c TI) a) a), Image F D ->
  @Adjoint.Image fuel U u0 h (TProd c (TProd TI a)) a
    (fun p => miter (Z.to_nat (fst (snd p))) (fun i acc => F ((fst p, Z.of_nat i), acc)) (snd (snd p))) (d_loop D).
Proof.
  intros c a F D H G r f [gc [k ga]] [oc [on oa]] [Hc [Hk Ha]]. cbn [fst snd] in Hc, Hk, Ha. unfold d_loop.
  apply E_germ with (F := fun u => miter (Z.to_nat k) (fun i acc => F ((fst (f u), Z.of_nat i), acc)) (snd (snd (f u)))).
  { revert Hk. apply near1. intros u Hu. cbv beta. now rewrite Hu. }
  set (link := fun (_ : list (den R (TFun (D2 a) (D2 (TProd (TProd c TI) a))))) (o : obs a) m (o' : obs a) => 
    forall d w, weigh a o' d w -> gives (m d) (fun e => weigh (TProd (TProd c TI) a) ((oc, tt), o) e w)).
  eapply e_then with (P := fun f1 st => exists o, V a f1 (fst st) o /\ Chain link oa (snd st) o).
  - eapply E_right; [intros f2 H2; apply w_loop; w; exact H2|].
    apply E_iter with (F := fun u i acc => F ((fst (f u), Z.of_nat i), acc)).
    + intros i f1 [g1 ms] (o1 & H1 & HC). eapply e_then.
      * apply e_at. w. eapply H with (f := fun u => ((fst (f u), Z.of_nat i), f1 u)) (o := ((oc, tt), o1)).
        split; [split; [exact Hc|apply always; reflexivity]|exact H1].
      * intros f2 [g2 b2] (o2 & H2 & B2). w. exists o2. split; [exact H2|]. econstructor; [exact HC|exact B2].
    + exists oa. split; [exact Ha|constructor].
  - intros f2 [g2 ms] (o2 & H2 & HC). w. exists o2. split; [exact H2|]. intros d w Hd. cbn [snd]. w. apply w_fold. w.
    apply (w_zero fuel c oc). intros z Hz. w.
    eapply g_imp; [eapply sweep with (inv := fun o st w => weigh (TProd c a) (oc, o) st w) (w := w); [|exact HC|exists 0%R, w; split; [exact Hz|split; [exact Hd|ring]]]|].
    + intros xs o m o' st w0 HL (w1 & w2 & Q1 & Q2 & ->). w. eapply g_imp; [exact (HL _ _ Q2)|]. intros q (w12 & w3 & (w4 & w5 & P1 & P2 & ->) & P3 & ->). w.
      eapply g_imp; [apply w_plus with (o := oc) (w := w1) (w' := w4); w; assumption|]. intros e He. w.
      exists (w1 + w4)%R, w3. split; [exact He|split; [exact P3|]]. simpl in P2. rewrite P2. ring.
    + intros st (w1 & w2 & Q1 & Q2 & ->). w. exists w1, w2. split; [exact Q1|split; [|reflexivity]]. exists 0%R, w2. split; [reflexivity|split; [exact Q2|ring]].
Qed.
Lemma i_fold : forall c a b F (D : image (TProd (TProd c b) a) b), Image F D ->
  @Adjoint.Image fuel U u0 h (TProd c (TProd b (TArr a))) b
    (fun p => mfold (fun y acc => F ((fst p, acc), y)) (snd (snd p)) (fst (snd p))) (d_fold D).
Proof.
  intros c a b F D H G r f [gc [gb gl]] [oc [ob os]] [Hc [Hb (qs & L & Hos & HF)]]. cbn [fst snd] in Hc, Hb, L, Hos, HF. unfold d_fold.
  apply E_germ with (F := fun u => mfold (fun y acc => F ((fst (f u), acc), y)) (map (fun q => fst q u) qs) (fst (snd (f u)))).
  { revert L. apply near1. intros u Hu. cbv beta. now rewrite Hu. }
  set (link := fun (xs : list (den R (TProd TI (TFun (D2 b) (D2 (TProd (TProd c b) a)))))) (o : obs b) x (o' : obs b) => 
    exists oe, sel os (fst x) = Some oe /\
    forall d w, weigh b o' d w -> gives (snd x d) (fun e => weigh (TProd (TProd c b) a) ((oc, o), oe) e w)).
  eapply e_then with (P := fun f1 st => exists o, V b f1 (fst st) o /\ Chain link ob (snd st) o).
  - eapply E_right; [intros f2 H2; apply w_fold; w; exact H2|].
    match goal with |- Adjoint.E _ _ _ _ (mfold ?J0 _ _) => set (J := J0) end.
    assert (forall gs (qs : list ((U -> den R a) * obs a)), Forall2 (fun q g => V a (fst q) g (snd q)) qs gs ->
      forall pre fz (st : den R (TProd (D1 b) (TArr (TProd TI (TFun (D2 b) (D2 (TProd (TProd c b) a))))))) o, V b fz (fst st) o -> Chain link ob (snd st) o ->
      os = pre ++ map snd qs -> length (snd st) = length pre ->
      E (fun f1 (st : den R (TProd (D1 b) (TArr (TProd TI (TFun (D2 b) (D2 (TProd (TProd c b) a))))))) => exists o, V b f1 (fst st) o /\ Chain link ob (snd st) o)
        (fun u => mfold (fun y acc => F ((fst (f u), acc), y)) (map (fun q => fst q u) qs) (fz u))
        (mfold J gs st)) as Hloop.
    { clear - H Hc. intros gs qs HF. induction HF as [|q g qs gs Hq HF IH]; intros pre fz st o Hz HC Hos Hlen; cbn [map mfold].
      - apply E_ret, g_ret. exists o. split; assumption.
      - eapply E_bind with (H := fun u z => mfold (fun y acc => F ((fst (f u), acc), y)) (map (fun q => fst q u) qs) z)
          (P := fun f1 (st' : den R (TProd (D1 b) (TArr (TProd TI (TFun (D2 b) (D2 (TProd (TProd c b) a))))))) => exists o, V b f1 (fst st') o /\ Chain link ob (snd st') o /\ length (snd st') = S (length pre)).
        + apply E_tick with (F := fun u => F ((fst (f u), fz u), fst q u)). eapply E_right; [intros ?; apply g_tick|]. unfold J. eapply e_then.
          * apply e_at. w. eapply H with (f := fun u => ((fst (f u), fz u), fst q u)) (o := ((oc, o), snd q)). split; [split; [exact Hc|exact Hz]|exact Hq].
          * intros f2 [g2 b2] (o2 & H2 & B2). w. exists o2. split; [exact H2|]. split; [|simpl; f_equal; exact Hlen].
            econstructor; [exact HC|]. exists (snd q). split; [|exact B2]. 
            assert (forall n, n = length pre -> sel os (Z.of_nat n) = Some (snd q)) as Hsel; [|exact (Hsel _ Hlen)].
            intros n ->. rewrite sel_nat, Hos, nth_error_app2, Nat.sub_diag by lia. reflexivity.
        + intros f2 st' (o2 & H2 & HC2 & Hl2). eapply IH with (pre := pre ++ [snd q]); [exact H2|exact HC2| |].
          * rewrite <- app_assoc. exact Hos.
          * rewrite app_length, Nat.add_1_r. exact Hl2. }
    apply Hloop with (pre := nil) (o := ob); [exact HF|exact Hb|constructor|exact Hos|reflexivity].
  - intros f2 [g2 ms] (o2 & H2 & HC). w. exists o2. split; [exact H2|]. intros d w Hd. cbn [snd]. w. apply w_fold. w.
    apply (w_zero fuel c oc). intros z Hz. w. apply (w_zero fuel (TArr a) os). intros z' Hz'. w.
    eapply g_imp; [eapply sweep with (inv := fun o st w => weigh (TProd (TProd c (TArr a)) b) ((oc, os), o) st w) (w := w);
      [|exact HC|exists 0%R, w; split; [exists 0%R, 0%R; split; [exact Hz|split; [exact Hz'|ring]]|split; [exact Hd|ring]]]|].
    + intros xs o m o' st w0 (oe & Hs & HL) (w12 & w3 & (w1 & w2 & Q1 & Q2 & ->) & Q3 & ->). w. eapply g_imp; [exact (HL _ _ Q3)|].
      intros q (w45 & w6 & (w4 & w5 & P1 & P2 & ->) & P3 & ->). w.
      eapply g_imp; [apply w_plus with (o := oc) (w := w1) (w' := w4); w; assumption|]. intros e He. w.
      exists ((w1 + w4) + (w6 + w2))%R, w5. split; [|split; [exact P2|ring]]. exists (w1 + w4)%R, (w6 + w2)%R. split; [exact He|split; [|reflexivity]].
      constructor; [exists oe; split; [exact Hs|exact P3]|exact Q2].
    + intros st (w12 & w3 & (w1 & w2 & Q1 & Q2 & ->) & Q3 & ->). w. exists w1, (w3 + w2)%R. split; [exact Q1|split; [|ring]].
      exists w3, w2. split; [exact Q3|split; [exact Q2|reflexivity]].
Qed.
End Here.
