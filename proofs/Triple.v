(* Runs that end without kinks: [gives m P] says that m ends without a kink in a value that satisfies P.  One rule for each construct
   of the language says what has to be shown of its parts, without unfolding the evaluator, and the tactic [w] applies them as far as a
   term is known.  Costs are left out. *)
From Coq Require Import Reals List Lia ZArith.
Require Import Language Primitive Germ.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

Definition gives {A} (m : M A) (P : A -> Prop) : Prop := exists a n, m = Some (a, n, 0) /\ P a.
Lemma g_ret : forall A (a : A) (P : A -> Prop), P a -> gives (ret a) P.
Proof. intros A a P H. exists a, 0. auto. Qed.
Lemma g_tick : forall A (m : M A) P, gives m P -> gives (tick m) P.
Proof. intros A m P (a & n & -> & H). exists a, (S n). auto. Qed.
Lemma g_ticks : forall A j (m : M A) P, gives m P -> gives (ticks j m) P.
Proof. intros A j m P (a & n & -> & H). exists a, (j + n). auto. Qed.
Lemma g_bind : forall A B (m : M A) (f : A -> M B) P, gives m (fun a => gives (f a) P) -> gives (bind m f) P.
Proof. intros A B m f P (a & n & -> & b & n' & E & HQ). exists b, (n + n'). simpl. rewrite E. auto. Qed.
Lemma g_imp : forall A (m : M A) (P Q : A -> Prop), gives m P -> (forall a, P a -> Q a) -> gives m Q.
Proof. intros A m P Q (a & n & E & H) HPQ. exists a, n. auto. Qed.
Lemma g_guard : forall A ok (a : A) (P : A -> Prop), ok = true -> P a -> gives (guard ok a) P.
Proof. intros A ok a P -> H. exists a, 0. auto. Qed.
Lemma g_eq : forall A (m : M A) a n (P : A -> Prop), m = Some (a, n, 0) -> P a -> gives m P.
Proof. intros A m a n P E H. exists a, n. auto. Qed.

Section Rules.
Variable fuel : nat.
Notation evR e := (ev RO fuel e).
Lemma w_v0 : forall a G (x : den R a) (r : env R G) (P : den R a -> Prop), P x -> gives (evR (@v0 a G) (x, r)) P.
Proof. intros. apply g_tick, g_ret. assumption. Qed.
Lemma w_v1 : forall a b G (x : den R a) (y : den R b) (r : env R G) (P : den R a -> Prop), P x -> gives (evR (@v1 a b G) (y, (x, r))) P.
Proof. intros. apply g_tick, g_ret. assumption. Qed.
Lemma w_v2 : forall a b c G (x : den R a) (y : den R b) (z : den R c) (r : env R G) (P : den R a -> Prop), P x ->
  gives (evR (@v2 a b c G) (z, (y, (x, r)))) P.
Proof. intros. apply g_tick, g_ret. assumption. Qed.
Lemma w_v3 : forall a b c d G (x : den R a) (y : den R b) (z : den R c) (z' : den R d) (r : env R G) (P : den R a -> Prop), P x ->
  gives (evR (@v3 a b c d G) (z', (z, (y, (x, r))))) P.
Proof. intros. apply g_tick, g_ret. assumption. Qed.
Definition v4 {a b c d e G} : tm (e :: d :: c :: b :: a :: G) a := tvar (Pop (Pop (Pop (Pop Top)))).
Definition v6 {a b c d e f g G} : tm (g :: f :: e :: d :: c :: b :: a :: G) a := tvar (Pop (Pop (Pop (Pop (Pop (Pop Top)))))).
Lemma w_v4 : forall a b c d e G (x : den R a) (y : den R b) (z : den R c) (z' : den R d) (z'' : den R e) (r : env R G) (P : den R a -> Prop), P x ->
  gives (evR (@v4 a b c d e G) (z'', (z', (z, (y, (x, r)))))) P.
Proof. intros. apply g_tick, g_ret. assumption. Qed.
Lemma w_v6 : forall a b c d e f g G (x : den R a) (y : den R b) (z : den R c) (x' : den R d) (y' : den R e) (z' : den R f) (x'' : den R g)
    (r : env R G) (P : den R a -> Prop), P x -> gives (evR (@v6 a b c d e f g G) (x'', (z', (y', (x', (z, (y, (x, r)))))))) P.
Proof. intros. apply g_tick, g_ret. assumption. Qed.
Lemma w_lam : forall G a b (e : tm (a :: G) b) r (P : den R (TFun a b) -> Prop), P (fun x => evR e (x, r)) -> gives (evR (tlam e) r) P.
Proof. intros. apply g_tick, g_ret. assumption. Qed.
Lemma w_app : forall G a b (f : tm G (TFun a b)) x r P,
  gives (evR f r) (fun g => gives (evR x r) (fun y => gives (g y) P)) -> gives (evR (tapp f x) r) P.
Proof. intros G a b f x r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros g Hg. apply g_bind, Hg. Qed.
Lemma w_let : forall G a b (e : tm G a) (e' : tm (a :: G) b) r P,
  gives (evR e r) (fun x => gives (evR e' (x, r)) P) -> gives (evR (tlet e e') r) P.
Proof. intros. apply g_tick, g_bind. assumption. Qed.
Lemma w_fix : forall G a b (e : tm (a :: TFun a b :: G) b) r (P : den R (TFun a b) -> Prop),
  P (kleene fuel (fun F x => evR e (x, (F, r)))) -> gives (evR (tfix e) r) P.
Proof. intros. apply g_tick, g_ret. assumption. Qed.
Lemma w_loop : forall G a (n : tm G TI) (z : tm G a) (e : tm (a :: TI :: G) a) r P,
  gives (evR n r) (fun k => gives (evR z r) (fun z => gives (miter (Z.to_nat k) (fun i acc => evR e (acc, (Z.of_nat i, r))) z) P)) ->
  gives (evR (tloop n z e) r) P.
Proof. intros G a n z e r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros x Hx. apply g_bind, Hx. Qed.
Lemma w_build : forall G a (n : tm G TI) (e : tm (TI :: G) a) r P,
  gives (evR n r) (fun k => gives (mseq (fun i => tick (evR e (Z.of_nat i, r))) (seq 0 (Z.to_nat k))) P) -> gives (evR (tbuild n e) r) P.
Proof. intros G a n e r P H. apply g_tick, g_bind, H. Qed.
Lemma w_map : forall G a b (e : tm (a :: G) b) (l : tm G (TArr a)) r P,
  gives (evR l r) (fun l => gives (mseq (fun x => tick (evR e (x, r))) l) P) -> gives (evR (tmap e l) r) P.
Proof. intros G a b e l r P H. apply g_tick, g_bind, H. Qed.
Lemma w_op0 : forall G a (o : op0 a) r (P : den R a -> Prop), P (op0v R o) -> gives (evR (top0 G o) r) P.
Proof. intros. apply g_tick, g_ret. assumption. Qed.
Lemma w_op1 : forall G a b (o : op1 a b) (x : tm G a) r P, gives (evR x r) (fun x => gives (op1v R o x) P) -> gives (evR (top1 o x) r) P.
Proof. intros. apply g_tick, g_bind. assumption. Qed.
Lemma w_op2 : forall G a b c (o : op2 a b c) (x : tm G a) (y : tm G b) r P,
  gives (evR x r) (fun x => gives (evR y r) (fun y => gives (op2v R o x y) P)) -> gives (evR (top2 o x y) r) P.
Proof. intros G a b c o x y r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros z Hz. apply g_bind, Hz. Qed.
Lemma w_fst : forall G a b (x : tm G (TProd a b)) r (P : den R a -> Prop), gives (evR x r) (fun p => P (fst p)) -> gives (evR (tfst x) r) P.
Proof. intros G a b x r P H. apply w_op1. eapply g_imp; [exact H|]. intros p Hp. apply g_ret, Hp. Qed.
Lemma w_snd : forall G a b (x : tm G (TProd a b)) r (P : den R b -> Prop), gives (evR x r) (fun p => P (snd p)) -> gives (evR (tsnd x) r) P.
Proof. intros G a b x r P H. apply w_op1. eapply g_imp; [exact H|]. intros p Hp. apply g_ret, Hp. Qed.
Lemma w_inl : forall G a b (x : tm G a) r (P : den R (TSum a b) -> Prop), gives (evR x r) (fun p => P (inl p)) -> gives (evR (tinl b x) r) P.
Proof. intros G a b x r P H. apply w_op1. eapply g_imp; [exact H|]. intros p Hp. apply g_ret, Hp. Qed.
Lemma w_inr : forall G a b (x : tm G b) r (P : den R (TSum a b) -> Prop), gives (evR x r) (fun p => P (inr p)) -> gives (evR (tinr a x) r) P.
Proof. intros G a b x r P H. apply w_op1. eapply g_imp; [exact H|]. intros p Hp. apply g_ret, Hp. Qed.
Lemma w_len : forall G a (x : tm G (TArr a)) r (P : Z -> Prop), gives (evR x r) (fun p => P (Z.of_nat (length p))) -> gives (evR (tlen x) r) P.
Proof. intros G a x r P H. apply w_op1. eapply g_imp; [exact H|]. intros p Hp. apply g_ret, Hp. Qed.
Lemma w_pair : forall G a b (x : tm G a) (y : tm G b) r (P : den R (TProd a b) -> Prop),
  gives (evR x r) (fun x => gives (evR y r) (fun y => P (x, y))) -> gives (evR (tpair x y) r) P.
Proof.
  intros G a b x y r P H. apply w_op2. eapply g_imp; [exact H|]. intros p Hp. cbv beta in *. eapply g_imp; [exact Hp|]. intros q Hq. apply g_ret, Hq.
Qed.
Lemma w_cons : forall G a (x : tm G a) (y : tm G (TArr a)) r (P : den R (TArr a) -> Prop),
  gives (evR x r) (fun x => gives (evR y r) (fun y => P (x :: y))) -> gives (evR (tcons x y) r) P.
Proof.
  intros G a x y r P H. apply w_op2. eapply g_imp; [exact H|]. intros p Hp. cbv beta in *. eapply g_imp; [exact Hp|]. intros q Hq. apply g_ret, Hq.
Qed.
Lemma w_snoc : forall G a (x : tm G (TArr a)) (y : tm G a) r (P : den R (TArr a) -> Prop),
  gives (evR x r) (fun x => gives (evR y r) (fun y => P (x ++ [y]))) -> gives (evR (tsnoc x y) r) P.
Proof.
  intros G a x y r P H. apply w_op2. eapply g_imp; [exact H|]. intros p Hp. cbv beta in *. eapply g_imp; [exact Hp|]. intros q Hq. apply g_ret, Hq.
Qed.
Lemma w_node : forall G a (x : tm G a) (y : tm G (TArr (TTree a))) r (P : den R (TTree a) -> Prop),
  gives (evR x r) (fun x => gives (evR y r) (fun y => P (Node x y))) -> gives (evR (tnode x y) r) P.
Proof.
  intros G a x y r P H. apply w_op2. eapply g_imp; [exact H|]. intros p Hp. cbv beta in *. eapply g_imp; [exact Hp|]. intros q Hq. apply g_ret, Hq.
Qed.
Lemma w_get : forall G a (x : tm G (TArr a)) (y : tm G TI) r P,
  gives (evR x r) (fun l => gives (evR y r) (fun i => gives (mget l i) P)) -> gives (evR (tget x y) r) P.
Proof. intros G a x y r P H. apply w_op2. exact H. Qed.
Lemma w_fold : forall G a b (e : tm (a :: b :: G) b) (z : tm G b) (l : tm G (TArr a)) r P,
  gives (evR z r) (fun z => gives (evR l r) (fun l => gives (mfold (fun x acc => evR e (x, (acc, r))) l z) P)) -> gives (evR (tfold e z l) r) P.
Proof. intros G a b e z l r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros x Hx. apply g_bind, Hx. Qed.
Lemma w_lit : forall G m e r (P : R -> Prop), P (litR m e) -> gives (evR (tlit G m e) r) P.
Proof. intros. apply g_tick, g_ret. assumption. Qed.
Lemma w_mul : forall G (x y : tm G TR) r (P : R -> Prop), gives (evR x r) (fun x => gives (evR y r) (fun y => P (x * y)%R)) -> gives (evR (tmul x y) r) P.
Proof.
  intros G x y r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros p Hp. cbv beta in *. apply g_bind. eapply g_imp; [exact Hp|].
  intros q Hq. apply g_guard; [reflexivity|exact Hq].
Qed.
Lemma w_add : forall G (x y : tm G TR) r (P : R -> Prop), gives (evR x r) (fun x => gives (evR y r) (fun y => P (x + y)%R)) -> gives (evR (tadd x y) r) P.
Proof.
  intros G x y r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros p Hp. cbv beta in *. apply g_bind. eapply g_imp; [exact Hp|].
  intros q Hq. apply g_guard; [reflexivity|exact Hq].
Qed.
Lemma w_let2 : forall G a b c (x : tm G a) (y : tm G b) (e : tm (b :: a :: G) c) r P,
  gives (evR x r) (fun p => gives (evR y r) (fun q => gives (evR e (q, (p, r))) P)) -> gives (evR (let2 x y e) r) P.
Proof. intros G a b c x y e r P H. rewrite let2_ev. apply g_ticks, g_bind. eapply g_imp; [exact H|]. intros p Hp. apply g_bind, Hp. Qed.
Lemma w_case : forall G a b c (s : tm G (TSum a b)) (x : tm (a :: G) c) (y : tm (b :: G) c) r P,
  gives (evR s r) (fun v => match v with inl p => gives (evR x (p, r)) P | inr q => gives (evR y (q, r)) P end) -> gives (evR (tcase s x y) r) P.
Proof. intros G a b c s x y r P H. apply g_tick, g_bind. eapply g_imp; [exact H|]. intros [p|q] Hp; exact Hp. Qed.
Lemma w_isub : forall G (x y : tm G TI) r (P : Z -> Prop), gives (evR x r) (fun x => gives (evR y r) (fun y => P (x - y)%Z)) ->
  gives (evR (top2 (OIntop ISub) x y) r) P.
Proof.
  intros G x y r P H. apply w_op2. eapply g_imp; [exact H|]. intros p Hp. cbv beta in *. eapply g_imp; [exact Hp|]. intros q Hq. apply g_ret, Hq.
Qed.
Lemma w_unnode : forall G a (x : tm G (TTree a)) r (P : den R (TProd a (TArr (TTree a))) -> Prop),
  gives (evR x r) (fun t => match t with Node y ts => P (y, ts) end) -> gives (evR (top1 (OUnnode a) x) r) P.
Proof. intros G a x r P H. apply w_op1. eapply g_imp; [exact H|]. intros [y ts] Hp. apply g_ret, Hp. Qed.
Definition tieq {G} (x y : tm G TI) : tm G TB := top2 (OIntcmp CEq) x y.
(* a choice by the equality of two integers *)
Lemma w_ifeq : forall G a (x y : tm G TI) (yes no : tm (TU :: G) a) r P,
  gives (evR x r) (fun i => gives (evR y r) (fun j => (i = j -> gives (evR yes (tt, r)) P) /\ (i <> j -> gives (evR no (tt, r)) P))) ->
  gives (evR (tif (tieq x y) yes no) r) P.
Proof.
  intros G a x y yes no r P H. apply g_tick, g_bind. unfold tieq. apply w_op2. eapply g_imp; [exact H|]. intros i Hi. cbv beta in *. eapply g_imp; [exact Hi|].
  intros j [Hy Hn]. apply g_ret. destruct (Z.compare_spec i j) as [E|E|E]; cbn [decide boolv];
    [apply Hy, E|apply Hn; lia|apply Hn; lia].
Qed.
End Rules.
Definition tsingle {G a} (x : tm G a) : tm G (TArr a) := tcons x (tnil G a).
Ltac w1 :=
  match goal with
  | |- gives (ret _) _ => apply g_ret
  | |- gives (ev _ _ ?e _) _ =>
      match e with
      | v0 => apply w_v0 | v1 => apply w_v1 | v2 => apply w_v2 | v3 => apply w_v3 | v4 => apply w_v4 | v6 => apply w_v6
      | tlam _ => apply w_lam | tfix _ => apply w_fix
      | tapp _ _ => apply w_app
      | tlet _ _ => apply w_let
      | let2 _ _ _ => apply w_let2
      | tfst _ => apply w_fst | tsnd _ => apply w_snd | tinl _ _ => apply w_inl | tinr _ _ => apply w_inr | tlen _ => apply w_len
      | tpair _ _ => apply w_pair | tcons _ _ => apply w_cons | tsnoc _ _ => apply w_snoc | tnode _ _ => apply w_node | tget _ _ => apply w_get
      | tsingle _ => unfold tsingle
      | top0 _ _ => apply w_op0
      | lit _ => unfold lit | tlit _ _ _ => apply w_lit
      | tmul _ _ => apply w_mul | tadd _ _ => apply w_add
      | tif (tieq _ _) _ _ => apply w_ifeq
      | top2 (OIntop ISub) _ _ => apply w_isub
      | top1 (OUnnode _) _ => apply w_unnode
      end
  end.
Ltac w := cbv beta; repeat (w1; cbn [fst snd op0v]).
