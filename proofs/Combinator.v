(* The combinator mode (C section 6, Fig. 16-20): a program becomes a combinator, and each combinator a primal and a linear map back
   from cotangents.  C left its correctness unproved, and has neither arrays nor loops here.  This file is about a total language of its
   own: functions, products, sums, arrays of known size, loops, and the primitives of the table that are smooth everywhere.

   Linear arrows denote plain functions, and the tensor !A (x) B plain lists of pairs.  No setoids, no finite maps, no decidable
   equality on keys: the relation only ever observes cotangents through a linear functional into R, and a linear functional of a
   fold is a fold of reals ([lin_fold]), which is all the algebra that is needed.  The reverse of [build] sums over the indices, that of
   [get] is a one-hot array, that of a loop runs the primal states again, backwards. *)
From Coq Require Import Reals List Lra FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From Coq Require Fin.
Require Language Primitive Calculus.
Import ListNotations.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Open Scope R_scope.

(* an array of type [TArr n a] has n + 1 elements, and [TIx n] is the type of its indices *)
Inductive ty : Set := TR | TU | TN | TIx (n : nat) | TArr (n : nat) (a : ty) | TProd (a b : ty) | TSum (a b : ty) | TFun (a b : ty).
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
| cprim : forall p, (forall x, Primitive.ok1 p x = true) -> comb TR TR
| cnat : nat -> comb TU TN
| cix : forall n, Fin.t (S n) -> comb TU (TIx n)
| cbuild : forall n c a, comb (TProd c (TIx n)) a -> comb c (TArr n a)
| cget : forall n a, comb (TProd (TArr n a) (TIx n)) a
| cloop : forall c a, comb (TProd c a) a -> comb (TProd c (TProd TN a)) a
| crval : R -> comb TU TR.

Fixpoint den (t : ty) : Type :=
  match t with TR => R | TU => unit | TN => nat | TIx n => Fin.t (S n) | TArr n a => Fin.t (S n) -> den a | TProd a b => (den a * den b)%type | TSum a b => (den a + den b)%type | TFun a b => den a -> den b end.
Fixpoint loop {A} (n : nat) (f : A -> A) (x : A) : A := match n with O => x | S k => loop k f (f x) end.
Fixpoint all (m : nat) : list (Fin.t m) := match m with O => nil | S k => Fin.F1 :: map Fin.FS (all k) end.
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
  | cprim p _ => Primitive.sem1 p
  | cnat n => fun _ => n
  | cix i => fun _ => i
  | cbuild f => fun x i => cden f (x, i)
  | cget _ _ => fun p => (fst p) (snd p)
  | cloop f => fun p => loop (fst (snd p)) (fun y => cden f (fst p, y)) (snd (snd p))
  | crval r => fun _ => r
  end.

(* ---- target language ---------------------------------------------------- *)
Inductive tty : Set := QR | QU | QN | QIx (n : nat) | QArr (n : nat) (a : tty) | QProd (a b : tty) | QSum (a b : tty) | QFun (a b : tty) | QLin (a b : tty) | QTen (a b : tty).
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
| qprim : Language.prim1 -> tgt QR QR | qdprim : Language.prim1 -> tgt QR QR      (* a primitive and its derivative *)
| qnat : forall a, nat -> tgt a QN
| qix : forall a n, Fin.t (S n) -> tgt a (QIx n)
| qbuild : forall n c a, tgt (QProd c (QIx n)) a -> tgt c (QArr n a)
| qget : forall n a, tgt (QProd (QArr n a) (QIx n)) a
| qhot : forall n a, tgt (QProd (QIx n) a) (QArr n a)
| qsumix : forall n d c, tgt (QProd d (QIx n)) c -> tgt d c
| qloop : forall c a, tgt (QProd c a) a -> tgt (QProd c (QProd QN a)) a
| qback : forall c a b d, tgt (QProd c a) a -> tgt (QProd (QProd c a) b) (QProd d b) -> tgt (QProd (QProd c (QProd QN a)) b) (QProd d (QProd QU b))
| qrval : forall a, R -> tgt a QR
| qevl : forall a b, tgt (QProd (QLin a b) a) b
| qcurryl : forall a b c, tgt (QProd a b) c -> tgt a (QLin b c)
| qzero : forall a b, tgt a b
| qplus : forall a, tgt (QProd a a) a
| qsingle : forall a b, tgt (QProd a b) (QTen a b)
| qfold : forall a b c d, tgt (QProd d (QProd a b)) c -> tgt (QProd d (QTen a b)) c.

Fixpoint qd (t : tty) : Type :=
  match t with
  | QR => R | QU => unit | QN => nat | QIx n => Fin.t (S n) | QArr n a => Fin.t (S n) -> qd a | QProd a b => (qd a * qd b)%type | QSum a b => (qd a + qd b)%type
  | QFun a b => qd a -> qd b | QLin a b => qd a -> qd b
  | QTen a b => list (qd a * qd b)
  end.
Fixpoint z0 (t : tty) : qd t :=
  match t with
  | QR => 0 | QU => tt | QN => O | QIx n => Fin.F1 | QArr n a => fun _ => z0 a | QProd a b => (z0 a, z0 b) | QSum a b => inl (z0 a)   (* junk, never used as a cotangent *)
  | QFun a b => fun _ => z0 b | QLin a b => fun _ => z0 b | QTen a b => nil
  end.
Fixpoint pl (t : tty) : qd t -> qd t -> qd t :=
  match t with
  | QR => Rplus | QU => fun _ _ => tt | QN => fun x _ => x | QIx n => fun x _ => x
  | QArr n a => fun f g i => pl a (f i) (g i)
  | QProd a b => fun p q => (pl a (fst p) (fst q), pl b (snd p) (snd q))
  | QSum a b => fun x _ => x
  | QFun a b => fun f g x => pl b (f x) (g x)
  | QLin a b => fun f g x => pl b (f x) (g x)
  | QTen a b => fun l l' => l ++ l'
  end.
(* the backward pass of a loop: the states in order on the way in, their cotangents on the way out *)
Fixpoint back {A B C} (plus : C -> C -> C) (zero : C) (step : A -> A) (rev : A -> B -> C * B) (n : nat) (x : A) (db : B) : C * B :=
  match n with
  | O => (zero, db)
  | S k => let p := back plus zero step rev k (step x) db in let q := rev x (snd p) in (plus (fst p) (fst q), snd q)
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
  | qprim p => Primitive.sem1 p | qdprim p => Primitive.d1R p
  | qnat _ n => fun _ => n
  | qix _ i => fun _ => i
  | qbuild f => fun x i => qden f (x, i)
  | qget _ _ => fun p => (fst p) (snd p)
  | qhot n a => fun p i => if Fin.eq_dec i (fst p) then snd p else z0 a
  | @qsumix n d c f => fun x => fold_right (fun i acc => pl c (qden f (x, i)) acc) (z0 c) (all (S n))
  | qloop f => fun p => loop (fst (snd p)) (fun y => qden f (fst p, y)) (snd (snd p))
  | @qback c a b d f rv => fun p =>
      let q := back (pl d) (z0 d) (fun y => qden f (fst (fst p), y)) (fun y db => qden rv ((fst (fst p), y), db))
                 (fst (snd (fst p))) (snd (snd (fst p))) (snd p) in (fst q, (tt, snd q))
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
  | TR => QR | TU => QU | TN => QN | TIx n => QIx n | TArr n a => QArr n (D1 a) | TProd a b => QProd (D1 a) (D1 b) | TSum a b => QSum (D1 a) (D1 b)
  | TFun a b => QFun (D1 a) (QProd (D1 b) (QLin (D2 b) (D2 a)))
  end
with D2 (t : ty) : tty :=
  match t with
  | TR => QR | TU => QU | TN => QU | TIx n => QU | TArr n a => QArr n (D2 a) | TProd a b => QProd (D2 a) (D2 b) | TSum a b => QProd (D2 a) (D2 b)
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
  | cadd => qadd | cmul => qmul | cprim p _ => qprim p
  | cnat n => qnat _ n | cix i => qix _ i
  | cbuild f => qbuild (Dp f)
  | cget _ _ => qget _ _
  | cloop f => qloop (Dp f)
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
  | cprim p _ => qseq (qfork (qseq (qexl _ _) (qdprim p)) (qexr _ _)) qmul
  | cnat _ => qneg _ | cix _ => qneg _
  | cbuild f => qsumix (qseq (qfork (qfork fst2 (qexr _ _)) (qseq (qfork snd2 (qexr _ _)) (qget _ _))) (qseq (Dr f) (qexl _ _)))
  | cget _ _ => qfork (qseq (qfork snd2 (qexr _ _)) (qhot _ _)) (qneg _)
  | cloop f => qback (Dp f) (Dr f)
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
  | TN => fun f g h => locally t0 (fun x => f x = g) /\ forall x, h x = 0
  | TIx n => fun f g h => locally t0 (fun x => f x = g) /\ forall x, h x = 0
  | TArr n a => fun f g h => exists hs, (forall i, S a (fun x => f x i) (g i) (hs i)) /\
      forall x, h x = fold_right (fun i acc => hs i (x i) + acc) 0 (all (Datatypes.S n))
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
  - destruct H as [H1 H2]. split; auto. intros x. now rewrite <- He.
  - destruct H as [H1 H2]. split; auto. intros x. now rewrite <- He.
  - destruct H as (hs & H1 & H2). exists hs. split; auto. intros x. now rewrite <- He.
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
  - destruct H as [H1 H2]. split; auto. generalize (filter_and _ _ He H1). apply filter_imp. intros x [A B]. congruence.
  - destruct H as [H1 H2]. split; auto. generalize (filter_and _ _ He H1). apply filter_imp. intros x [A B]. congruence.
  - destruct H as (hs & H1 & H2). exists hs. split; auto. intros i. eapply IHt; [|apply H1]. revert He. apply filter_imp. intros x ->. reflexivity.
  - destruct H as (h1 & h2 & H1 & H2 & H3). exists h1, h2. split; [|split; [|exact H3]].
    + eapply IHt1; [|exact H1]. revert He. apply filter_imp. intros x ->. reflexivity.
    + eapply IHt2; [|exact H2]. revert He. apply filter_imp. intros x ->. reflexivity.
  - destruct g as [g|g]; destruct H as (f1 & h1 & H1 & H2 & H3); exists f1, h1; (split; [|split]); auto;
      generalize (filter_and _ _ He H1); apply filter_imp; intros x [A B]; congruence.
  - destruct H as [HL H]. split; auto. intros f1 g1 h1 H1. eapply IHt2; [|apply H, H1].
    revert He. apply filter_imp. intros x ->. reflexivity.
Qed.
Lemma sum_zero : forall A (F : A -> R) l, (forall i, F i = 0) -> fold_right (fun i acc => F i + acc) 0 l = 0.
Proof. intros A F l H. induction l; simpl; auto. rewrite H, IHl. ring. Qed.
Lemma sum_plus : forall A (F G K : A -> R) l, (forall i, F i = G i + K i) ->
  fold_right (fun i acc => F i + acc) 0 l = fold_right (fun i acc => G i + acc) 0 l + fold_right (fun i acc => K i + acc) 0 l.
Proof. intros A F G K l H. induction l; simpl; [ring|]. rewrite H, IHl. ring. Qed.
Lemma sum_ext : forall A (F G : A -> R) l, (forall i, F i = G i) -> fold_right (fun i acc => F i + acc) 0 l = fold_right (fun i acc => G i + acc) 0 l.
Proof. intros A F G l H. induction l; simpl; auto. now rewrite H, IHl. Qed.
Lemma sum_map : forall A B (g : B -> A) (F : A -> R) l, fold_right (fun i acc => F i + acc) 0 (map g l) = fold_right (fun i acc => F (g i) + acc) 0 l.
Proof. intros A B g F l. induction l; simpl; auto. now rewrite IHl. Qed.
(* a sum with one term *)
Lemma sum_hot : forall m (j : Fin.t m) (F : Fin.t m -> R), fold_right (fun i acc => (if Fin.eq_dec i j then F i else 0) + acc) 0 (all m) = F j.
Proof.
  intros m j. induction j as [m|m j IH]; intros F; simpl.
  - destruct (Fin.eq_dec Fin.F1 Fin.F1) as [_|N]; [|contradiction N; reflexivity].
    rewrite (sum_map _ (fun i => if Fin.eq_dec i Fin.F1 then F i else 0)), sum_zero; [ring|]. intros i. destruct (Fin.eq_dec (Fin.FS i) Fin.F1); [discriminate|reflexivity].
  - destruct (Fin.eq_dec Fin.F1 (Fin.FS j)); [discriminate|]. rewrite (sum_map _ (fun i => if Fin.eq_dec i (Fin.FS j) then F i else 0)).
    rewrite <- (IH (fun i => F (Fin.FS i))). rewrite Rplus_0_l. apply sum_ext. intros i.
    destruct (Fin.eq_dec i j) as [E0|N], (Fin.eq_dec (Fin.FS i) (Fin.FS j)) as [E|N']; auto.
    + contradiction N'. now rewrite E0.
    + apply Fin.FS_inj in E. contradiction.
Qed.
(* the thesis's Lemma 3 *)
Lemma S_lin : forall t f g h, S t f g h -> lin (D2 t) h.
Proof.
  induction t; simpl; intros f g h H.
  - destruct H as (_ & d & _ & H). split; intros; rewrite !H; simpl; ring.
  - split; intros; rewrite !H; ring.
  - destruct H as [_ H]. split; intros; rewrite !H; ring.
  - destruct H as [_ H]. split; intros; rewrite !H; ring.
  - destruct H as (hs & H1 & H2). split; intros; rewrite !H2.
    + exact (sum_zero (fun i => hs i (z0 (D2 t))) (all (Datatypes.S n)) (fun i => proj1 (IHt _ _ _ (H1 i)))).
    + exact (sum_plus (fun i => hs i (pl (D2 t) (x i) (y i))) (fun i => hs i (x i)) (fun i => hs i (y i)) (all (Datatypes.S n))
               (fun i => proj2 (IHt _ _ _ (H1 i)) (x i) (y i))).
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
  - (* primitive *) destruct H as (G1 & d & E1 & L1). simpl in *. subst g. split; auto.
    exists (d * Primitive.d1R p (f t0)). split; [|intros x; rewrite L1; ring].
    apply (is_derive_comp (Primitive.sem1 p) f t0); auto. apply Calculus.prim1_derive, e.
  - (* nat *) simpl. split; [apply filter_forall; reflexivity|]. intros x. apply H.
  - (* index *) simpl. split; [apply filter_forall; reflexivity|]. intros x. apply H.
  - (* build *) simpl. pose proof (S_lin _ _ _ _ H) as HL. exists (fun i db => h (fst (qden (Dr c0) ((g, i), db)))). split.
    + intros i. assert (S (TProd c (TIx n)) (fun x => (f x, i)) (g, i) (fun p => h (fst p) + 0)) as HP.
      { exists h, (fun _ => 0). split; [exact H|split; [|reflexivity]]. split; [apply filter_forall; reflexivity|reflexivity]. }
      eapply S_ext; [|exact (IHc _ _ _ HP)]. intros x. apply Rplus_0_r.
    + intros x. exact (@lin_fold (D2 c) h _ (fun i => fst (qden (Dr c0) ((g, i), x i))) (all (Datatypes.S n)) HL).
  - (* get *) destruct H as (h1 & h2 & (hs & A1 & A2) & [B1 B2] & H3). simpl.
    eapply S_germ with (f := fun x => fst (f x) (snd g)); [revert B1; apply filter_imp; intros x ->; reflexivity|].
    eapply S_ext; [|exact (A1 (snd g))]. intros x. rewrite H3. simpl. rewrite B2, A2, Rplus_0_r. symmetry.
    rewrite <- (sum_hot (snd g) (fun i => hs i x)). apply sum_ext. intros i. simpl. destruct (Fin.eq_dec i (snd g)); auto.
    exact (proj1 (S_lin _ _ _ _ (A1 i))).
  - (* loop *) destruct H as (hc & h2 & Hc & (hN & ha & [N1 N2] & Ha & H4) & H3). simpl in *.
    pose proof (S_lin _ _ _ _ Hc) as HL.
    eapply S_germ with (f := fun x => loop (fst (snd g)) (fun y => cden c0 (fst (f x), y)) (snd (snd (f x)))); [revert N1; apply filter_imp; intros x ->; reflexivity|].
    eapply S_ext with (h := fun db => hc (fst (back (pl (D2 c)) (z0 (D2 c)) (fun y => qden (Dp c0) (fst g, y)) (fun y db => qden (Dr c0) ((fst g, y), db)) (fst (snd g)) (snd (snd g)) db))
                         + ha (snd (back (pl (D2 c)) (z0 (D2 c)) (fun y => qden (Dp c0) (fst g, y)) (fun y db => qden (Dr c0) ((fst g, y), db)) (fst (snd g)) (snd (snd g)) db))).
    { intros x. rewrite H3, H4, N2, Rplus_0_l. reflexivity. }
    assert (forall k ha fa ga, S a fa ga ha ->
      S a (fun x => loop k (fun y => cden c0 (fst (f x), y)) (fa x)) (loop k (fun y => qden (Dp c0) (fst g, y)) ga)
        (fun db => hc (fst (back (pl (D2 c)) (z0 (D2 c)) (fun y => qden (Dp c0) (fst g, y)) (fun y db => qden (Dr c0) ((fst g, y), db)) k ga db))
                 + ha (snd (back (pl (D2 c)) (z0 (D2 c)) (fun y => qden (Dp c0) (fst g, y)) (fun y db => qden (Dr c0) ((fst g, y), db)) k ga db)))) as Hloop.
    { clear - HL Hc IHc. induction k as [|k IH]; intros ha fa ga Ha.
      - eapply S_ext; [|exact Ha]. intros x. simpl. rewrite (proj1 HL). ring.
      - assert (S (TProd c a) (fun x => (fst (f x), fa x)) (fst g, ga) (fun p => hc (fst p) + ha (snd p))) as HP by (exists hc, ha; auto).
        eapply S_ext; [|exact (IH _ _ _ (IHc _ _ _ HP))]. intros x. cbn [back fst snd]. rewrite (proj2 HL). cbn [back fst snd]. rewrite Rplus_assoc. reflexivity. }
    exact (Hloop (fst (snd g)) ha _ _ Ha).
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
| tprim : forall G p, (forall x, Primitive.ok1 p x = true) -> tm G TR -> tm G TR
| tnat : forall G, nat -> tm G TN
| tix : forall G n, Fin.t (Datatypes.S n) -> tm G (TIx n)
| tbuild : forall G n a, tm (TIx n :: G) a -> tm G (TArr n a)
| tget : forall G n a, tm G (TArr n a) -> tm G (TIx n) -> tm G a
| tnrec : forall G a, tm G TN -> tm G a -> tm (a :: G) a -> tm G a.
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
  | @tprim _ p _ a => fun r => Primitive.sem1 p (tden a r)
  | tnat _ n => fun _ => n
  | tix _ i => fun _ => i
  | tbuild b => fun r i => tden b (r, i)
  | tget a i => fun r => tden a r (tden i r)
  | tnrec n z b => fun r => loop (tden n r) (fun y => tden b (r, y)) (tden z r)
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
  | @tprim _ p H a => cseq (comp a) (cprim p H)
  | tnat _ n => cseq (cneg _) (cnat n)
  | tix _ i => cseq (cneg _) (cix i)
  | tbuild b => cbuild (comp b)
  | tget a i => cseq (fork (comp a) (comp i)) (cget _ _)
  | tnrec n z b => cseq (fork (cid _) (fork (comp n) (comp z))) (cloop (comp b))
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
  - apply functional_extensionality. intros x. apply (IHe (env, x)).
  - rewrite IHe1, IHe2. f_equal. apply functional_extensionality. intros y. apply (IHe3 (env, y)).
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
