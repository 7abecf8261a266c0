(* The combinator mode (C section 6, Fig. 16-20): a program becomes a combinator, and each combinator a primal and a linear map back
   from cotangents.  C left its correctness unproved.  This file is about a total sublanguage of its own (functions, products, sums,
   reals with +, *, sin, exp); see the README for what that leaves out.

   Linear arrows denote plain functions, and the tensor !A (x) B plain lists of pairs.  No setoids, no finite maps, no decidable
   equality on keys: the relation only ever observes cotangents through a linear functional into R, and a linear functional of a
   fold is a fold of reals ([lin_fold]), which is all the algebra that is needed. *)
From Coq Require Import Reals List Lra FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
Import ListNotations.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Open Scope R_scope.

Inductive ty : Set := TR | TU | TProd (a b : ty) | TSum (a b : ty) | TFun (a b : ty).
Inductive comb : ty -> ty -> Type :=
| cid : forall a, comb a a
| cseq : forall a b c, comb a b -> comb b c -> comb a c
| ccross : forall a b c d, comb a b -> comb c d -> comb (TProd a c) (TProd b d)
| cneg : forall a, comb a TU
| cexl : forall a b, comb (TProd a b) a
| cexr : forall a b, comb (TProd a b) b
| cdupl : forall a, comb a (TProd a a)
| cev : forall a b, comb (TProd (TFun a b) a) b
| ccurry : forall a b c, comb (TProd a b) c -> comb a (TFun b c)
| cinl : forall a b, comb a (TSum a b)
| cinr : forall a b, comb b (TSum a b)
| ccase : forall c a b d, comb (TProd c a) d -> comb (TProd c b) d -> comb (TProd c (TSum a b)) d
| cadd : comb (TProd TR TR) TR
| cmul : comb (TProd TR TR) TR
| csin : comb TR TR | cexp : comb TR TR
| crval : R -> comb TU TR.

Fixpoint den (t : ty) : Type :=
  match t with TR => R | TU => unit | TProd a b => (den a * den b)%type | TSum a b => (den a + den b)%type | TFun a b => den a -> den b end.
Fixpoint cden {a b} (c : comb a b) : den a -> den b :=
  match c in comb a b return den a -> den b with
  | cid _ => fun x => x
  | cseq f g => fun x => cden g (cden f x)
  | ccross f g => fun p => (cden f (fst p), cden g (snd p))
  | cneg _ => fun _ => tt
  | cexl _ _ => fun p => fst p
  | cexr _ _ => fun p => snd p
  | cdupl _ => fun x => (x, x)
  | cev _ _ => fun p => (fst p) (snd p)
  | ccurry f => fun x y => cden f (x, y)
  | cinl _ _ => fun x => inl x
  | cinr _ _ => fun x => inr x
  | ccase f g => fun p => match snd p with inl x => cden f (fst p, x) | inr y => cden g (fst p, y) end
  | cadd => fun p => fst p + snd p
  | cmul => fun p => fst p * snd p
  | csin => sin | cexp => exp
  | crval r => fun _ => r
  end.

(* ---- target language ---------------------------------------------------- *)
Inductive tty : Set := QR | QU | QProd (a b : tty) | QSum (a b : tty) | QFun (a b : tty) | QLin (a b : tty) | QTen (a b : tty).
Inductive tgt : tty -> tty -> Type :=
| qid : forall a, tgt a a
| qseq : forall a b c, tgt a b -> tgt b c -> tgt a c
| qfork : forall a b c, tgt a b -> tgt a c -> tgt a (QProd b c)
| qneg : forall a, tgt a QU
| qexl : forall a b, tgt (QProd a b) a
| qexr : forall a b, tgt (QProd a b) b
| qev : forall a b, tgt (QProd (QFun a b) a) b
| qcurry : forall a b c, tgt (QProd a b) c -> tgt a (QFun b c)
| qinl : forall a b, tgt a (QSum a b)
| qinr : forall a b, tgt b (QSum a b)
| qcase : forall c a b d e, tgt (QProd (QProd c a) e) d -> tgt (QProd (QProd c b) e) d -> tgt (QProd (QProd c (QSum a b)) e) d
| qadd : tgt (QProd QR QR) QR | qmul : tgt (QProd QR QR) QR
| qsin : tgt QR QR | qcos : tgt QR QR | qexp : tgt QR QR
| qrval : forall a, R -> tgt a QR
| qevl : forall a b, tgt (QProd (QLin a b) a) b
| qcurryl : forall a b c, tgt (QProd a b) c -> tgt a (QLin b c)
| qzero : forall a b, tgt a b
| qplus : forall a, tgt (QProd a a) a
| qsingle : forall a b, tgt (QProd a b) (QTen a b)
| qfold : forall a b c d, tgt (QProd d (QProd a b)) c -> tgt (QProd d (QTen a b)) c.

Fixpoint qd (t : tty) : Type :=
  match t with
  | QR => R | QU => unit | QProd a b => (qd a * qd b)%type | QSum a b => (qd a + qd b)%type
  | QFun a b => qd a -> qd b | QLin a b => qd a -> qd b
  | QTen a b => list (qd a * qd b)
  end.
Fixpoint z0 (t : tty) : qd t :=
  match t with
  | QR => 0 | QU => tt | QProd a b => (z0 a, z0 b) | QSum a b => inl (z0 a)   (* junk, never used as a cotangent *)
  | QFun a b => fun _ => z0 b | QLin a b => fun _ => z0 b | QTen a b => nil
  end.
Fixpoint pl (t : tty) : qd t -> qd t -> qd t :=
  match t with
  | QR => Rplus | QU => fun _ _ => tt
  | QProd a b => fun p q => (pl a (fst p) (fst q), pl b (snd p) (snd q))
  | QSum a b => fun x _ => x
  | QFun a b => fun f g x => pl b (f x) (g x)
  | QLin a b => fun f g x => pl b (f x) (g x)
  | QTen a b => fun l l' => l ++ l'
  end.
Fixpoint qden {a b} (c : tgt a b) : qd a -> qd b :=
  match c in tgt a b return qd a -> qd b with
  | qid _ => fun x => x
  | qseq f g => fun x => qden g (qden f x)
  | qfork f g => fun x => (qden f x, qden g x)
  | qneg _ => fun _ => tt
  | qexl _ _ => fun p => fst p
  | qexr _ _ => fun p => snd p
  | qev _ _ => fun p => (fst p) (snd p)
  | qcurry f => fun x y => qden f (x, y)
  | qinl _ _ => fun x => inl x
  | qinr _ _ => fun x => inr x
  | qcase f g => fun p => match snd (fst p) with
      | inl x => qden f ((fst (fst p), x), snd p) | inr y => qden g ((fst (fst p), y), snd p) end
  | qadd => fun p => fst p + snd p
  | qmul => fun p => fst p * snd p
  | qsin => sin | qcos => cos | qexp => exp
  | qrval _ r => fun _ => r
  | qevl _ _ => fun p => (fst p) (snd p)
  | qcurryl f => fun x y => qden f (x, y)
  | qzero _ b => fun _ => z0 b
  | qplus a => fun p => pl a (fst p) (snd p)
  | qsingle _ _ => fun p => [p]
  | @qfold a b c d f => fun p => fold_right (fun q acc => pl c (qden f (fst p, q)) acc) (z0 c) (snd p)
  end.

(* ---- the macro ------------------------------------------------------------ *)
Fixpoint D1 (t : ty) : tty :=
  match t with
  | TR => QR | TU => QU | TProd a b => QProd (D1 a) (D1 b) | TSum a b => QSum (D1 a) (D1 b)
  | TFun a b => QFun (D1 a) (QProd (D1 b) (QLin (D2 b) (D2 a)))
  end
with D2 (t : ty) : tty :=
  match t with
  | TR => QR | TU => QU | TProd a b => QProd (D2 a) (D2 b) | TSum a b => QProd (D2 a) (D2 b)
  | TFun a b => QTen (D1 a) (D2 b)
  end.
Definition fst2 {a b c} : tgt (QProd (QProd a b) c) a := qseq (qexl _ _) (qexl _ _).
Definition snd2 {a b c} : tgt (QProd (QProd a b) c) b := qseq (qexl _ _) (qexr _ _).
Fixpoint Dp {a b} (c : comb a b) : tgt (D1 a) (D1 b) :=
  match c in comb a b return tgt (D1 a) (D1 b) with
  | cid _ => qid _
  | cseq f g => qseq (Dp f) (Dp g)
  | ccross f g => qfork (qseq (qexl _ _) (Dp f)) (qseq (qexr _ _) (Dp g))
  | cneg _ => qneg _
  | cexl _ _ => qexl _ _
  | cexr _ _ => qexr _ _
  | cdupl _ => qfork (qid _) (qid _)
  | cev _ _ => qseq (qev _ _) (qexl _ _)
  | ccurry f => qcurry (qfork (Dp f) (qcurryl (qseq (Dr f) (qexr _ _))))
  | cinl _ _ => qinl _ _
  | cinr _ _ => qinr _ _
  | ccase f g => qseq (qfork (qid _) (qneg _)) (qcase (qseq (qexl _ _) (Dp f)) (qseq (qexl _ _) (Dp g)))
  | cadd => qadd | cmul => qmul | csin => qsin | cexp => qexp
  | crval r => qrval _ r
  end
with Dr {a b} (c : comb a b) : tgt (QProd (D1 a) (D2 b)) (D2 a) :=
  match c in comb a b return tgt (QProd (D1 a) (D2 b)) (D2 a) with
  | cid _ => qexr _ _
  | cseq f g => qseq (qfork (qexl _ _) (qseq (qfork (qseq (qexl _ _) (Dp f)) (qexr _ _)) (Dr g))) (Dr f)
  | ccross f g => qfork (qseq (qfork fst2 (qseq (qexr _ _) (qexl _ _))) (Dr f))
                        (qseq (qfork snd2 (qseq (qexr _ _) (qexr _ _))) (Dr g))
  | cneg _ => qzero _ _
  | cexl _ _ => qfork (qexr _ _) (qzero _ _)
  | cexr _ _ => qfork (qzero _ _) (qexr _ _)
  | cdupl _ => qseq (qexr _ _) (qplus _)
  | cev _ _ => qfork (qseq (qfork snd2 (qexr _ _)) (qsingle _ _))
                     (qseq (qfork (qseq (qexl _ _) (qseq (qev _ _) (qexr _ _))) (qexr _ _)) (qevl _ _))
  | ccurry f => qfold (qseq (qseq (qfork (qfork (qexl _ _) (qseq (qexr _ _) (qexl _ _))) (qseq (qexr _ _) (qexr _ _)))
                                  (Dr f)) (qexl _ _))
  | cinl _ _ => qseq (qexr _ _) (qexl _ _)
  | cinr _ _ => qseq (qexr _ _) (qexr _ _)
  | ccase f g => qcase (qseq (Dr f) (qfork (qexl _ _) (qfork (qexr _ _) (qzero _ _))))
                       (qseq (Dr g) (qfork (qexl _ _) (qfork (qzero _ _) (qexr _ _))))
  | cadd => qfork (qexr _ _) (qexr _ _)
  | cmul => qfork (qseq (qfork snd2 (qexr _ _)) qmul) (qseq (qfork fst2 (qexr _ _)) qmul)
  | csin => qseq (qfork (qseq (qexl _ _) qcos) (qexr _ _)) qmul
  | cexp => qseq (qfork (qseq (qexl _ _) qexp) (qexr _ _)) qmul
  | crval r => qneg _
  end.

(* ---- logical relation ------------------------------------------------------ *)
Section LR.
Variable t0 : R.
Definition lin (t : tty) (h : qd t -> R) : Prop :=
  h (z0 t) = 0 /\ forall x y, h (pl t x y) = h x + h y.
Fixpoint S (t : ty) : (R -> den t) -> qd (D1 t) -> (qd (D2 t) -> R) -> Prop :=
  match t return (R -> den t) -> qd (D1 t) -> (qd (D2 t) -> R) -> Prop with
  | TR => fun f g h => g = f t0 /\ exists d, is_derive f t0 d /\ forall x, h x = d * x
  | TU => fun f g h => forall x, h x = 0
  | TProd a b => fun f g h => exists h1 h2,
      S a (fun x => fst (f x)) (fst g) h1 /\ S b (fun x => snd (f x)) (snd g) h2 /\
      forall p, h p = h1 (fst p) + h2 (snd p)
  | TSum a b => fun f g h => match g with
      | inl g1 => exists f1 h1, locally t0 (fun x => f x = inl (f1 x)) /\ S a f1 g1 h1 /\ forall p, h p = h1 (fst p)
      | inr g1 => exists f1 h1, locally t0 (fun x => f x = inr (f1 x)) /\ S b f1 g1 h1 /\ forall p, h p = h1 (snd p)
      end
  | TFun a b => fun f g h => lin (D2 (TFun a b)) h /\
      forall f1 g1 h1, S a f1 g1 h1 ->
        S b (fun x => f x (f1 x)) (fst (g g1)) (fun db => h [(g1, db)] + h1 (snd (g g1) db))
  end.
Lemma S_ext : forall t f g h h', (forall x, h x = h' x) -> S t f g h -> S t f g h'.
Proof.
  induction t; simpl; intros f g h h' He H.
  - destruct H as (H1 & d & H2 & H3). split; auto. exists d. split; auto. intros x. now rewrite <- He.
  - intros x. now rewrite <- He.
  - destruct H as (h1 & h2 & H1 & H2 & H3). exists h1, h2. split; [|split]; auto. intros p. now rewrite <- He.
  - destruct g as [g|g]; destruct H as (f1 & h1 & H1 & H2 & H3); exists f1, h1; (split; [|split]); auto;
      intros p; now rewrite <- He.
  - destruct H as [[L1 L2] H]. split.
    + split; intros; rewrite <- !He; auto.
    + intros f1 g1 h1 H1. eapply IHt2; [|apply H, H1]. intros x; simpl. now rewrite He.
Qed.
(* only the germ of the curve matters *)
Lemma S_germ : forall t f f' g h, locally t0 (fun x => f x = f' x) -> S t f g h -> S t f' g h.
Proof.
  induction t; simpl; intros f f' g h He H; auto.
  - destruct H as (H1 & d & H2 & H3). split; [rewrite H1; exact (locally_singleton _ _ He)|].
    exists d. split; [|exact H3]. eapply is_derive_ext_loc; eauto.
  - destruct H as (h1 & h2 & H1 & H2 & H3). exists h1, h2. split; [|split; [|exact H3]].
    + eapply IHt1; [|exact H1]. revert He. apply filter_imp. intros x ->. reflexivity.
    + eapply IHt2; [|exact H2]. revert He. apply filter_imp. intros x ->. reflexivity.
  - destruct g as [g|g]; destruct H as (f1 & h1 & H1 & H2 & H3); exists f1, h1; (split; [|split]); auto;
      generalize (filter_and _ _ He H1); apply filter_imp; intros x [A B]; congruence.
  - destruct H as [HL H]. split; auto. intros f1 g1 h1 H1. eapply IHt2; [|apply H, H1].
    revert He. apply filter_imp. intros x ->. reflexivity.
Qed.
(* the thesis's Lemma 3 *)
Lemma S_lin : forall t f g h, S t f g h -> lin (D2 t) h.
Proof.
  induction t; simpl; intros f g h H.
  - destruct H as (_ & d & _ & H). split; intros; rewrite !H; simpl; ring.
  - split; intros; rewrite !H; ring.
  - destruct H as (h1 & h2 & H1 & H2 & H3).
    destruct (IHt1 _ _ _ H1) as [A1 A2]. destruct (IHt2 _ _ _ H2) as [B1 B2].
    split; intros; rewrite !H3.
    + change (h1 (z0 (D2 t1)) + h2 (z0 (D2 t2)) = 0). rewrite A1, B1. ring.
    + change (h1 (pl (D2 t1) (fst x) (fst y)) + h2 (pl (D2 t2) (snd x) (snd y))
              = h1 (fst x) + h2 (snd x) + (h1 (fst y) + h2 (snd y))). rewrite A2, B2. ring.
  - destruct g as [g|g]; destruct H as (f1 & h1 & H1 & H2 & H3).
    + destruct (IHt1 _ _ _ H2) as [A1 A2]. split; intros; rewrite !H3; [exact A1|apply A2].
    + destruct (IHt2 _ _ _ H2) as [A1 A2]. split; intros; rewrite !H3; [exact A1|apply A2].
  - apply H.
Qed.
(* a linear functional of a fold is a fold of reals: this is all the algebra needed *)
Lemma lin_fold : forall t (h : qd t -> R) A (k : A -> qd t) l, lin t h ->
  h (fold_right (fun q acc => pl t (k q) acc) (z0 t) l) = fold_right (fun q acc => h (k q) + acc) 0 l.
Proof. intros t h A k l [H1 H2]. induction l; simpl; auto. now rewrite H2, IHl. Qed.
Lemma fold_app : forall A (k : A -> R) l l',
  fold_right (fun q acc => k q + acc) 0 (l ++ l') =
  fold_right (fun q acc => k q + acc) 0 l + fold_right (fun q acc => k q + acc) 0 l'.
Proof. induction l; intros; simpl; [ring|rewrite IHl; ring]. Qed.

Theorem fundamental : forall a b (c : comb a b) f g h, S a f g h ->
  S b (fun x => cden c (f x)) (qden (Dp c) g) (fun db => h (qden (Dr c) (g, db))).
Proof.
  induction c; intros f g h H.
  - (* id *) exact H.
  - (* seq *) exact (IHc2 _ _ _ (IHc1 _ _ _ H)).
  - (* cross *) destruct H as (h1 & h2 & H1 & H2 & H3). simpl.
    exists (fun db => h1 (qden (Dr c2) (fst g, db))), (fun db => h2 (qden (Dr c3) (snd g, db))).
    split; [exact (IHc1 _ _ _ H1)|split; [exact (IHc2 _ _ _ H2)|]]. intros p. now rewrite H3.
  - (* neg *) simpl. intros _. apply (proj1 (S_lin _ _ _ _ H)).
  - (* exl *) destruct H as (h1 & h2 & H1 & H2 & H3). simpl.
    eapply S_ext; [|exact H1]. intros x. rewrite H3. change (h1 x = h1 x + h2 (z0 (D2 b))). rewrite (proj1 (S_lin _ _ _ _ H2)). ring.
  - (* exr *) destruct H as (h1 & h2 & H1 & H2 & H3). simpl.
    eapply S_ext; [|exact H2]. intros x. rewrite H3. change (h2 x = h1 (z0 (D2 a)) + h2 x). rewrite (proj1 (S_lin _ _ _ _ H1)). ring.
  - (* dupl *) simpl. exists h, h. split; [exact H|split; [exact H|]]. intros p.
    apply (proj2 (S_lin _ _ _ _ H)).
  - (* ev *) destruct H as (h1 & h2 & [HL H1] & H2 & H3). simpl.
    eapply S_ext; [|exact (H1 _ _ _ H2)]. intros x. rewrite H3. reflexivity.
  - (* curry *) simpl. pose proof (S_lin _ _ _ _ H) as HL. split.
    + split; simpl.
      * apply (proj1 HL).
      * intros x y. rewrite !lin_fold by exact HL. apply fold_app.
    + intros f1 g1 h1 H1.
      assert (S (TProd a b) (fun x => (f x, f1 x)) (g, g1) (fun p => h (fst p) + h1 (snd p))) as HP.
      { exists h, h1. auto. }
      eapply S_ext; [|exact (IHc _ _ _ HP)]. intros x.
      change (h (fst (qden (Dr c0) (g, g1, x))) + h1 (snd (qden (Dr c0) (g, g1, x)))
            = h (pl (D2 a) (fst (qden (Dr c0) (g, g1, x))) (z0 (D2 a))) + h1 (snd (qden (Dr c0) (g, g1, x)))).
      rewrite (proj2 HL), (proj1 HL). ring.
  - (* inl *) simpl. exists f, h. split; [apply filter_forall; reflexivity|split; [exact H|reflexivity]].
  - (* inr *) simpl. exists f, h. split; [apply filter_forall; reflexivity|split; [exact H|reflexivity]].
  - (* case *) destruct H as (h1 & h2 & H1 & H2 & H3). simpl in H2.
    destruct g as [gc [ga|gb]]; simpl in H2; destruct H2 as (f1 & k & L & HS & Hk).
    + assert (S (TProd c1 a) (fun x => (fst (f x), f1 x)) (gc, ga) (fun p => h1 (fst p) + k (snd p))) as HP
        by (exists h1, k; auto).
      eapply S_germ; [|eapply S_ext; [|exact (IHc1 _ _ _ HP)]].
      * revert L. apply filter_imp. intros x Hx. simpl. now rewrite Hx.
      * intros x. simpl. rewrite H3, Hk. reflexivity.
    + assert (S (TProd c1 b) (fun x => (fst (f x), f1 x)) (gc, gb) (fun p => h1 (fst p) + k (snd p))) as HP
        by (exists h1, k; auto).
      eapply S_germ; [|eapply S_ext; [|exact (IHc2 _ _ _ HP)]].
      * revert L. apply filter_imp. intros x Hx. simpl. now rewrite Hx.
      * intros x. simpl. rewrite H3, Hk. reflexivity.
  - (* add *) destruct H as (h1 & h2 & (G1 & d1 & E1 & L1) & (G2 & d2 & E2 & L2) & H3). simpl in *.
    split; [congruence|]. exists (d1 + d2). split; [apply (@is_derive_plus R_AbsRing R_NormedModule); auto|].
    intros x. rewrite H3. simpl. rewrite L1, L2. ring.
  - (* mul *) destruct H as (h1 & h2 & (G1 & d1 & E1 & L1) & (G2 & d2 & E2 & L2) & H3). simpl in *.
    split; [congruence|]. exists (d1 * snd (f t0) + fst (f t0) * d2). split.
    + apply (@is_derive_mult R_AbsRing (fun x => fst (f x)) (fun x => snd (f x)) t0); auto. intros; apply Rmult_comm.
    + intros x. rewrite H3. simpl. rewrite L1, L2, G1, G2. ring.
  - (* sin *) destruct H as (G1 & d & E1 & L1). simpl in *. subst g. split; auto.
    exists (d * cos (f t0)). split; [|intros x; rewrite L1; ring].
    apply (is_derive_comp sin f t0); auto. apply is_derive_Reals, derivable_pt_lim_sin.
  - (* exp *) destruct H as (G1 & d & E1 & L1). simpl in *. subst g. split; auto.
    exists (d * exp (f t0)). split; [|intros x; rewrite L1; ring].
    apply (is_derive_comp exp f t0); auto. apply is_derive_Reals, derivable_pt_lim_exp.
  - (* const *) simpl in *. split; auto. exists 0. split; [apply @is_derive_const|].
    intros x. rewrite H. ring.
Qed.
End LR.

(* ---- STLC to combinators, and the theorem for open lambda terms -------------- *)
Inductive mem (t : ty) : list ty -> Type :=
| Top : forall G, mem t (t :: G) | Pop : forall G s, mem t G -> mem t (s :: G).
Inductive tm : list ty -> ty -> Type :=
| tvar : forall G t, mem t G -> tm G t
| tlam : forall G a b, tm (a :: G) b -> tm G (TFun a b)
| tapp : forall G a b, tm G (TFun a b) -> tm G a -> tm G b
| tpair : forall G a b, tm G a -> tm G b -> tm G (TProd a b)
| tfst : forall G a b, tm G (TProd a b) -> tm G a
| tsnd : forall G a b, tm G (TProd a b) -> tm G b
| tinl : forall G a b, tm G a -> tm G (TSum a b)
| tinr : forall G a b, tm G b -> tm G (TSum a b)
| tcase : forall G a b c, tm G (TSum a b) -> tm (a :: G) c -> tm (b :: G) c -> tm G c
| tconst : forall G, R -> tm G TR
| tadd : forall G, tm G TR -> tm G TR -> tm G TR
| tmul : forall G, tm G TR -> tm G TR -> tm G TR
| tsin : forall G, tm G TR -> tm G TR
| texp : forall G, tm G TR -> tm G TR.
Fixpoint cx (G : list ty) : ty := match G with nil => TU | t :: G => TProd (cx G) t end.
Fixpoint look {t G} (m : mem t G) : den (cx G) -> den t :=
  match m with Top _ _ => fun e => snd e | Pop _ m => fun e => look m (fst e) end.
Fixpoint tden {G t} (e : tm G t) : den (cx G) -> den t :=
  match e in tm G t return den (cx G) -> den t with
  | tvar v => fun r => look v r
  | tlam b => fun r x => tden b (r, x)
  | tapp f a => fun r => tden f r (tden a r)
  | tpair a b => fun r => (tden a r, tden b r)
  | tfst a => fun r => fst (tden a r)
  | tsnd a => fun r => snd (tden a r)
  | tinl _ a => fun r => inl (tden a r)
  | tinr _ a => fun r => inr (tden a r)
  | tcase s a b => fun r => match tden s r with inl x => tden a (r, x) | inr y => tden b (r, y) end
  | tconst _ c => fun _ => c
  | tadd a b => fun r => tden a r + tden b r
  | tmul a b => fun r => tden a r * tden b r
  | tsin a => fun r => sin (tden a r)
  | texp a => fun r => exp (tden a r)
  end.
Definition fork {a b c} (f : comb a b) (g : comb a c) : comb a (TProd b c) := cseq (cdupl a) (ccross f g).
Fixpoint cv {t G} (m : mem t G) : comb (cx G) t :=
  match m with Top _ _ => cexr _ _ | Pop _ m => cseq (cexl _ _) (cv m) end.
Fixpoint comp {G t} (e : tm G t) : comb (cx G) t :=
  match e in tm G t return comb (cx G) t with
  | tvar v => cv v
  | tlam b => ccurry (comp b)
  | tapp f a => cseq (fork (comp f) (comp a)) (cev _ _)
  | tpair a b => fork (comp a) (comp b)
  | tfst a => cseq (comp a) (cexl _ _)
  | tsnd a => cseq (comp a) (cexr _ _)
  | tinl _ a => cseq (comp a) (cinl _ _)
  | tinr _ a => cseq (comp a) (cinr _ _)
  | tcase s a b => cseq (fork (cid _) (comp s)) (ccase (comp a) (comp b))
  | tconst _ c => cseq (cneg _) (crval c)
  | tadd a b => cseq (fork (comp a) (comp b)) cadd
  | tmul a b => cseq (fork (comp a) (comp b)) cmul
  | tsin a => cseq (comp a) csin
  | texp a => cseq (comp a) cexp
  end.
Lemma cv_ok : forall t G (m : mem t G) r, cden (cv m) r = look m r.
Proof. induction m; simpl; auto. Qed.
(* curve of environments against an n-fold product of reals *)
Fixpoint reals (n : nat) : list ty := match n with O => nil | Datatypes.S k => TR :: reals k end.
Fixpoint prim (n : nat) : den (cx (reals n)) -> qd (D1 (cx (reals n))) :=
  match n return den (cx (reals n)) -> qd (D1 (cx (reals n))) with
  | O => fun x => x | Datatypes.S k => fun p => (prim k (fst p), snd p) end.
(* velocity vector, and its inner product with a cotangent *)
Fixpoint vel (n : nat) (t0 : R) : (R -> den (cx (reals n))) -> qd (D2 (cx (reals n))) -> Prop :=
  match n return (R -> den (cx (reals n))) -> qd (D2 (cx (reals n))) -> Prop with
  | O => fun _ _ => True
  | Datatypes.S k => fun f v => vel k t0 (fun x => fst (f x)) (fst v) /\ is_derive (fun x => snd (f x)) t0 (snd v)
  end.
Fixpoint inner (n : nat) : qd (D2 (cx (reals n))) -> qd (D2 (cx (reals n))) -> R :=
  match n return qd (D2 (cx (reals n))) -> qd (D2 (cx (reals n))) -> R with
  | O => fun _ _ => 0
  | Datatypes.S k => fun u v => inner k (fst u) (fst v) + snd u * snd v
  end.
Lemma vel_S : forall n t0 f v, vel n t0 f v -> S t0 (cx (reals n)) f (prim n (f t0)) (inner n v).
Proof.
  induction n; simpl; auto. intros t0 f v [H1 H2].
  exists (inner n (fst v)), (fun x => snd v * x). split; [exact (IHn _ _ _ H1)|split; [|auto]].
  split; auto. exists (snd v). split; auto.
Qed.
Theorem combinator_map_correct : forall n (c : comb (cx (reals n)) TR) t0 f v s, vel n t0 f v ->
  qden (Dp c) (prim n (f t0)) = cden c (f t0) /\
  exists dy, is_derive (fun x => cden c (f x)) t0 dy /\
             inner n v (qden (Dr c) (prim n (f t0), s)) = dy * s.
Proof.
  intros n c t0 f v s H. destruct (@fundamental t0 _ _ c _ _ _ (@vel_S n t0 f v H)) as (H1 & dy & H2 & H3).
  split; [exact H1|]. exists dy. split; [exact H2|exact (H3 s)].
Qed.
Lemma comp_ok : forall G t (e : tm G t) r, cden (comp e) r = tden e r.
Proof.
  induction e; intros env; simpl; try (rewrite ?IHe, ?IHe1, ?IHe2; reflexivity).
  - apply cv_ok.
  - apply functional_extensionality. intros x. apply (IHe (env, x)).
  - rewrite IHe1. destruct (tden e1 env); auto.
Qed.
(* reverse derivative of an open lambda term: gradient . velocity = derivative * seed *)
Theorem combinator_correct : forall n (e : tm (reals n) TR) t0 f v s, vel n t0 f v ->
  qden (Dp (comp e)) (prim n (f t0)) = tden e (f t0) /\
  exists dy, is_derive (fun x => tden e (f x)) t0 dy /\
             inner n v (qden (Dr (comp e)) (prim n (f t0), s)) = dy * s.
Proof.
  intros n e t0 f v s H. destruct (@combinator_map_correct n (comp e) t0 f v s H) as (H1 & dy & H2 & H3).
  rewrite comp_ok in H1. split; auto. exists dy. split; auto.
  eapply is_derive_ext; [|exact H2]. intros x. exact (comp_ok e (f x)).
Qed.
