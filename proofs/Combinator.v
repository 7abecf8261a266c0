(* The combinator language (C section 6.1, Fig. 16-18) for the one language of all proofs: programs without variables, and the
   translation of the terms of Language.v into it.  A typing context is a nested product, a term in it a combinator from that
   product.  Meanings are in the same monad of failure, steps and kinks.  Combinators take no steps of their own: [cstep] marks what was
   a node of the program, so that the translation preserves values, steps and kinks exactly ([comp_ok]), in functions too.

   The reverse transformation is in Transpose.v, the types of its cotangents in Cotangent.v. *)
From Coq Require Import List ZArith Lia FunctionalExtensionality.
Require Import Language.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

Inductive comb : ty -> ty -> Type :=
| cid : forall a, comb a a
| cseq : forall a b c, comb a b -> comb b c -> comb a c
| cpair : forall a b c, comb a b -> comb a c -> comb a (TProd b c)
| cstep : forall a b, comb a b -> comb a b
| cev : forall a b, comb (TProd (TFun a b) a) b
| ccurry : forall c a b, comb (TProd c a) b -> comb c (TFun a b)
| cfix : forall c a b, comb (TProd (TProd c (TFun a b)) a) b -> comb c (TFun a b)
| ccase : forall c a b d, comb (TProd c a) d -> comb (TProd c b) d -> comb (TProd c (TSum a b)) d
| cop0 : forall c a, op0 a -> comb c a
| cop1 : forall a b, op1 a b -> comb a b
| cop2 : forall a b c, op2 a b c -> comb (TProd a b) c
| cop3 : forall a b c d, op3 a b c d -> comb (TProd (TProd a b) c) d
| cloop : forall c a, comb (TProd (TProd c TI) a) a -> comb (TProd c (TProd TI a)) a
| cbuild : forall c a, comb (TProd c TI) a -> comb (TProd c TI) (TArr a)
| cmap : forall c a b, comb (TProd c a) b -> comb (TProd c (TArr a)) (TArr b)
| cfold : forall c a b, comb (TProd (TProd c b) a) b -> comb (TProd c (TProd b (TArr a))) b
| clit : forall c, Z -> Z -> comb c TR
| cprim1 : prim1 -> comb TR TR
| cprim2 : prim2 -> comb (TProd TR TR) TR
| cprimi : primi -> comb (TProd TR TI) TR
| ccmp : comparator -> comb (TProd TR TR) TB
| cround : rounding -> comb TR TI
| creal : comb TI TR
| csum : comb (TArr TR) TR
| cdot : comb (TProd (TArr TR) (TArr TR)) TR.

Section Den.
Variable X : Type.
Variable O : ops X.
Variable fuel : nat.
Notation den := (den X).
Fixpoint cden {a b} (c : comb a b) : den a -> M (den b) :=
  match c in comb a b return den a -> M (den b) with
  | cid _ => fun x => ret x
  | cseq f g => fun x => bind (cden f x) (fun y => cden g y)
  | cpair f g => fun x => bind (cden f x) (fun y => bind (cden g x) (fun z => ret (y, z)))
  | cstep f => fun x => tick (cden f x)
  | cev _ _ => fun p => fst p (snd p)
  | ccurry f => fun x => ret (fun y => cden f (x, y))
  | cfix f => fun x => ret (kleene fuel (fun F y => cden f ((x, F), y)))
  | ccase f g => fun p => match snd p with inl y => cden f (fst p, y) | inr y => cden g (fst p, y) end
  | cop0 _ o => fun _ => ret (op0v X o)
  | cop1 o => fun x => op1v X o x
  | cop2 o => fun p => op2v X o (fst p) (snd p)
  | cop3 o => fun p => op3v X o (fst (fst p)) (snd (fst p)) (snd p)
  | cloop f => fun p => miter (Z.to_nat (fst (snd p))) (fun i acc => cden f ((fst p, Z.of_nat i), acc)) (snd (snd p))
  | cbuild f => fun p => mseq (fun i => tick (cden f (fst p, Z.of_nat i))) (seq 0 (Z.to_nat (snd p)))
  | cmap f => fun p => mseq (fun y => tick (cden f (fst p, y))) (snd p)
  | cfold f => fun p => mfold (fun y acc => cden f ((fst p, acc), y)) (snd (snd p)) (fst (snd p))
  | clit _ m e => fun _ => ret (o_lit O m e)
  | cprim1 p => fun x => guard (o_ok1 O p x) (o_prim1 O p x)
  | cprim2 p => fun x => guard (o_ok2 O p (fst x) (snd x)) (o_prim2 O p (fst x) (snd x))
  | cprimi p => fun x => guard (o_oki O p (fst x) (snd x)) (o_primi O p (fst x) (snd x))
  | ccmp c => fun x => guard (negb (tie (o_cmp O (fst x) (snd x)))) (boolv (decide c (o_cmp O (fst x) (snd x))))
  | cround k => fun x => guard (o_okround O k x) (o_round O k x)
  | creal => fun z => ret (o_real O z)
  | csum => fun l => msum O l
  | cdot => fun p => mdot O (fst p) (snd p)
  end.
End Den.

(* ---- terms to combinators ------------------------------------------------------------------ *)
Fixpoint cx (G : list ty) : ty := match G with nil => TU | t :: G => TProd (cx G) t end.
Fixpoint cv {t G} (m : mem t G) : comb (cx G) t :=
  match m with Top => cop1 (OSnd _ _) | Pop m => cseq (cop1 (OFst _ _)) (cv m) end.
(* a term for the context itself and one more value *)
Definition cwith {c a b} (f : comb c a) (g : comb (TProd c a) b) : comb c b := cseq (cpair (cid c) f) g.
Fixpoint comp {G t} (e : tm G t) : comb (cx G) t :=
  match e in tm G t return comb (cx G) t with
  | tvar v => cstep (cv v)
  | tlam b => cstep (ccurry (comp b : comb (cx (_ :: _)) _))
  | tapp f a => cstep (cseq (cpair (comp f) (comp a)) (cev _ _))
  | tlet a b => cstep (cwith (comp a) (comp b : comb (cx (_ :: _)) _))
  | tfix b => cstep (cfix (comp b : comb (cx (_ :: _ :: _)) _))
  | tcase s a b => cstep (cwith (comp s) (ccase (comp a : comb (cx (_ :: _)) _) (comp b : comb (cx (_ :: _)) _)))
  | top0 _ o => cstep (cop0 _ o)
  | top1 o a => cstep (cseq (comp a) (cop1 o))
  | top2 o a b => cstep (cseq (cpair (comp a) (comp b)) (cop2 o))
  | top3 o a b c => cstep (cseq (cpair (cpair (comp a) (comp b)) (comp c)) (cop3 o))
  | tloop n z b => cstep (cwith (cpair (comp n) (comp z)) (cloop (comp b : comb (cx (_ :: _ :: _)) _)))
  | tbuild n b => cstep (cwith (comp n) (cbuild (comp b : comb (cx (_ :: _)) _)))
  | tmap b a => cstep (cwith (comp a) (cmap (comp b : comb (cx (_ :: _)) _)))
  | tfold b z a => cstep (cwith (cpair (comp z) (comp a)) (cfold (comp b : comb (cx (_ :: _ :: _)) _)))
  | tlit _ m e => cstep (clit _ m e)
  | tprim1 p a => cstep (cseq (comp a) (cprim1 p))
  | tprim2 p a b => cstep (cseq (cpair (comp a) (comp b)) (cprim2 p))
  | tprimi p a n => cstep (cseq (cpair (comp a) (comp n)) (cprimi p))
  | tcmp c a b => cstep (cseq (cpair (comp a) (comp b)) (ccmp c))
  | tround k a => cstep (cseq (comp a) (cround k))
  | treal a => cstep (cseq (comp a) creal)
  | tsum a => cstep (cseq (comp a) csum)
  | tdot a b => cstep (cseq (cpair (comp a) (comp b)) cdot)
  end.

(* ---- the translation preserves values, steps and kinks -------------------------------------- *)
Lemma bind_ret : forall A B (a : A) (f : A -> M B), bind (ret a) f = f a.
Proof. intros A B a f. unfold bind, ret. destruct (f a) as [[[b n] k]|]; reflexivity. Qed.
Lemma bind_bind : forall A B C (m : M A) (f : A -> M B) (g : B -> M C), bind (bind m f) g = bind m (fun a => bind (f a) g).
Proof.
  intros A B C [[[a n] k]|] f g; auto. simpl. destruct (f a) as [[[b n1] k1]|]; auto. simpl.
  destruct (g b) as [[[c n2] k2]|]; auto. now rewrite <- !Nat.add_assoc.
Qed.
Lemma bind_ext : forall A B (m : M A) (f g : A -> M B), (forall a, f a = g a) -> bind m f = bind m g.
Proof. intros A B [[[a n] k]|] f g H; auto. simpl. now rewrite H. Qed.
Lemma mseq_ext : forall A B (f g : A -> M B) l, (forall a, f a = g a) -> mseq f l = mseq g l.
Proof. intros A B f g l H. induction l; simpl; auto. now rewrite H, IHl. Qed.

Section Preserved.
Variable X : Type.
Variable O : ops X.
Variable fuel : nat.
Fixpoint pack (G : list ty) : env X G -> den X (cx G) :=
  match G return env X G -> den X (cx G) with nil => fun r => r | t :: G => fun r => (pack G (snd r), fst r) end.
Lemma cv_ok : forall t G (m : mem t G) r, cden O fuel (cv m) (pack G r) = ret (look m r).
Proof. induction m; intros r; simpl; [reflexivity|]. rewrite IHm. reflexivity. Qed.
Ltac binds := repeat first [reflexivity | refine (eq_trans (bind_bind _ _ _) _) | refine (eq_trans (bind_ret _ _) _) | apply bind_ext; intros ?; cbn [fst snd]].
Theorem comp_ok : forall G t (e : tm G t) r, cden O fuel (comp e) (pack G r) = ev O fuel e r.
Proof.
  induction e; intros env; cbn [comp cden ev]; try apply (f_equal (@tick _)); unfold cwith; cbn [cden];
    rewrite ?bind_ret, ?IHe, ?IHe1, ?IHe2, ?IHe3; try solve [reflexivity | binds].
  - apply cv_ok.
  - f_equal. apply functional_extensionality. intros x. exact (IHe (x, env)).
  - binds. exact (IHe2 (_, env)).
  - f_equal. f_equal. do 2 (apply functional_extensionality; intros ?). exact (IHe (_, (_, env))).
  - binds. destruct a0; [exact (IHe2 (_, env))|exact (IHe3 (_, env))].
  - binds. f_equal. do 2 (apply functional_extensionality; intros ?). exact (IHe3 (_, (_, env))).
  - binds. apply mseq_ext. intros i. apply (f_equal (@tick _)). exact (IHe2 (_, env)).
  - binds. apply mseq_ext. intros i. apply (f_equal (@tick _)). exact (IHe1 (_, env)).
  - binds. f_equal. do 2 (apply functional_extensionality; intros ?). exact (IHe1 (_, (_, env))).
Qed.
End Preserved.
