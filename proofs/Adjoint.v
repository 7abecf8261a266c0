(* The combinator mode is right: the map back of a combinator is the adjoint of its derivative.

   The relation [V t f g o] compares a map f from a normed space U into values with ONE value g of the transformed program and an observer o
   of its cotangents: at type real, f is differentiable, g is its value at u0 and o its derivative in direction h.  Only the germ of f at u0
   matters (Germ.v), so comparisons, partial primitives and recursion fit.  A combinator takes related arguments to runs that end
   near u0 whenever the run at u0 ends without kinks, and whose map back keeps weights: what it returns weighs, for the observer of the
   argument, what it was given weighs for the observer of the result.  Then no fact about cotangents is needed but that weighing is linear.

   The observer of a function says what a call of it weighs: what the cotangent of the captured variables weighs that one gets by running
   the call again.  For recursion the observers follow the Kleene iterates. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Triple Combinator Cotangent Transpose.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

(* ---- selection ---------------------------------------------------------------------------------- *)
Lemma mget_sel : forall A (l : list A) i, mget l i = match sel l i with Some a => ret a | None => None end.
Proof. intros A l i. unfold mget, sel. destruct (i <? 0)%Z; reflexivity. Qed.
Lemma sel_map : forall A B (f : A -> B) l i, sel (map f l) i = option_map f (sel l i).
Proof. intros A B f l i. unfold sel. destruct (i <? 0)%Z; [reflexivity|]. apply nth_error_map. Qed.
Lemma sel_map_some : forall A B (f : A -> B) l i b, sel (map f l) i = Some b -> exists a, sel l i = Some a /\ b = f a.
Proof. intros A B f l i b H. rewrite sel_map in H. destruct (sel l i) as [a|]; [|discriminate]. inversion H. eauto. Qed.
Lemma Forall2_sel : forall A B (P : A -> B -> Prop) l l' i a, Forall2 P l l' -> sel l i = Some a -> exists b, sel l' i = Some b /\ P a b.
Proof. intros A B P l l' i a H. unfold sel. destruct (i <? 0)%Z; [discriminate|]. apply Forall2_nth, H. Qed.
Lemma sel_nat : forall A (l : list A) i, sel l (Z.of_nat i) = nth_error l i.
Proof. intros A l i. unfold sel. destruct (Z.ltb_spec (Z.of_nat i) 0); [lia|]. now rewrite Nat2Z.id. Qed.
Lemma sel_is_nat : forall A (l : list A) i a, sel l i = Some a -> exists n, i = Z.of_nat n /\ nth_error l n = Some a.
Proof. intros A l i a. unfold sel. destruct (Z.ltb_spec i 0); [discriminate|]. intros E. exists (Z.to_nat i). split; [lia|exact E]. Qed.
Lemma g_get : forall A (l : list A) i a (P : A -> Prop), sel l i = Some a -> P a -> gives (mget l i) P.
Proof. intros A l i a P E H. rewrite mget_sel, E. apply g_ret, H. Qed.

Section Adjoint.
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

(* ---- runs near u0 and one run of the transformed program, whose cost is not bounded --------------- *)
Definition E {A B} (P : (U -> A) -> B -> Prop) (F : U -> M A) (G : M B) : Prop :=
  forall a0 n0, F u0 = Some (a0, n0, 0) -> exists a, near (fun u => F u = Some (a u, n0, 0)) /\ gives G (P a).
Lemma E_germ : forall A B (P : (U -> A) -> B -> Prop) F F' G, near (fun u => F u = F' u) -> E P F G -> E P F' G.
Proof.
  intros A B P F F' G H HE a0 n0 H0. rewrite <- (here H) in H0. destruct (HE _ _ H0) as (a & L & HG).
  exists a. split; [|exact HG]. revert H L. apply near2. intros u E1 E2. now rewrite <- E1.
Qed.
Lemma E_ret : forall A B (P : (U -> A) -> B -> Prop) f G, gives G (P f) -> E P (fun u => ret (f u)) G.
Proof. intros A B P f G H a0 n0 H0. inversion H0; subst. exists f. split; [apply always; reflexivity|exact H]. Qed.
Lemma E_tick : forall A B (P : (U -> A) -> B -> Prop) F G, E P F G -> E P (fun u => tick (F u)) G.
Proof.
  intros A B P F G H a0 n0 H0. apply tick_inv in H0 as (n1 & H0 & ->). destruct (H _ _ H0) as (a & L & HG).
  exists a. split; [|exact HG]. revert L. apply near1. intros u ->. reflexivity.
Qed.
Lemma E_right : forall A B B' (P : (U -> A) -> B -> Prop) (P' : (U -> A) -> B' -> Prop) F G G',
  (forall f, gives G (P f) -> gives G' (P' f)) -> E P F G -> E P' F G'.
Proof. intros A B B' P P' F G G' HG HE a0 n0 H0. destruct (HE _ _ H0) as (a & L & H). exists a. split; auto. Qed.
Lemma E_bind : forall A B A' B' (P : (U -> A) -> B -> Prop) (Q : (U -> A') -> B' -> Prop) F G H J,
  E P F G -> (forall f g, P f g -> E Q (fun u => H u (f u)) (J g)) -> E Q (fun u => bind (F u) (H u)) (bind G J).
Proof.
  intros A B A' B' P Q F G H J HF HH a0 n0 H0. apply bind_inv in H0 as (a1 & n1 & n2 & H1 & H2 & ->).
  destruct (HF _ _ H1) as (a & L & (g & n & -> & Hg)).
  assert (a u0 = a1) by (pose proof (here L) as X; simpl in X; congruence). subst a1.
  destruct (HH _ _ Hg _ _ H2) as (a' & L' & HG). exists a'. split; [|apply g_bind; exists g, n; split; [reflexivity|exact HG]].
  revert L L'. apply near2. intros u -> E2. simpl. now rewrite E2.
Qed.
Lemma E_iter : forall A B (P : (U -> A) -> B -> Prop) n (F : U -> nat -> A -> M A) (J : nat -> B -> M B) z z',
  (forall i f g, P f g -> E P (fun u => F u i (f u)) (J i g)) -> P z z' -> E P (fun u => miter n (F u) (z u)) (miter n J z').
Proof.
  intros A B P. induction n; intros F J z z' HF Hz; cbn [miter].
  - apply E_ret, g_ret, Hz.
  - eapply E_bind with (H := fun u a => tick (F u n a)); [apply IHn; auto|].
    intros f g Hfg. apply E_tick with (F := fun u => F u n (f u)). eapply E_right; [intros f1; apply g_tick|]. apply HF, Hfg.
Qed.
(* both programs go on with a value; only the transformed one does *)
Lemma e_let : forall A A' a b (P : (U -> A) -> den R a -> Prop) (Q : (U -> A') -> den R b -> Prop) F G (e : tm G a) (e' : tm (a :: G) b) r H,
  E P F (evR e r) -> (forall f g, P f g -> E Q (fun u => H u (f u)) (evR e' (g, r))) -> E Q (fun u => bind (F u) (H u)) (evR (tlet e e') r).
Proof. intros A A' a b P Q F G e e' r H HF HH. eapply E_right; [intros ?; apply g_tick|]. exact (@E_bind _ _ _ _ P Q F _ H _ HF HH). Qed.
Lemma e_then : forall A a b (P : (U -> A) -> den R a -> Prop) (Q : (U -> A) -> den R b -> Prop) F G (e : tm G a) (e' : tm (a :: G) b) r,
  E P F (evR e r) -> (forall f g, P f g -> gives (evR e' (g, r)) (Q f)) -> E Q F (evR (tlet e e') r).
Proof. intros A a b P Q F G e e' r HE HJ. eapply E_right; [|exact HE]. intros f Hf. apply w_let. eapply g_imp; [exact Hf|]. apply HJ. Qed.
Lemma e_at : forall A a b (Q : (U -> A) -> den R (run_ty a b) -> Prop) F G (e : tm G (D1 a)) (D : image a b) r,
  gives (evR e r) (fun x => E Q F (evR (D G) (x, r))) -> E Q F (evR (at_ e D) r).
Proof.
  intros A a b Q F G e D r (x & n & Hx & HE). eapply E_right; [|exact HE]. intros f Hf. unfold at_. apply w_let. exists x, n. split; [exact Hx|exact Hf].
Qed.
Lemma e_inl : forall A a b c (Q : (U -> A) -> den R c -> Prop) F G (s : tm G (TSum a b)) (x : tm (a :: G) c) (y : tm (b :: G) c) r (p : den R a),
  gives (evR s r) (eq (inl p)) -> E Q F (evR x (p, r)) -> E Q F (evR (tcase s x y) r).
Proof. intros A a b c Q F G s x y r p Hs HE. eapply E_right; [|exact HE]. intros f Hf. apply w_case. eapply g_imp; [exact Hs|]. intros ? <-. exact Hf. Qed.
Lemma e_inr : forall A a b c (Q : (U -> A) -> den R c -> Prop) F G (s : tm G (TSum a b)) (x : tm (a :: G) c) (y : tm (b :: G) c) r (p : den R b),
  gives (evR s r) (eq (inr p)) -> E Q F (evR y (p, r)) -> E Q F (evR (tcase s x y) r).
Proof. intros A a b c Q F G s x y r p Hs HE. eapply E_right; [|exact HE]. intros f Hf. apply w_case. eapply g_imp; [exact Hs|]. intros ? <-. exact Hf. Qed.
(* ---- the relation ----------------------------------------------------------------------------------- *)
(* a result with its map back, which keeps weights: W d e w says that e, gone back to from d, weighs w *)
Definition Run (a b : ty) (Vb : (U -> den R b) -> den R (D1 b) -> obs b -> Prop) (W : den R (D2 b) -> den R (D2 a) -> R -> Prop)
    (f : U -> den R b) (p : den R (run_ty a b)) : Prop :=
  exists o, Vb f (fst p) o /\ forall d w, weigh b o d w -> gives (snd p d) (fun e => W d e w).
Fixpoint V (t : ty) : (U -> den R t) -> den R (D1 t) -> obs t -> Prop :=
  match t return (U -> den R t) -> den R (D1 t) -> obs t -> Prop with
  | TR => fun f g o => g = f u0 /\ exists l, diff f l /\ o = l h
  | TU => fun _ _ _ => True
  | TI => fun f g _ => near (fun u => f u = g)
  | TProd a b => fun f g o => V a (fun u => fst (f u)) (fst g) (fst o) /\ V b (fun u => snd (f u)) (snd g) (snd o)
  | TSum a b => fun f g o =>
      match g, o with
      | inl g1, inl o1 => exists f1, near (fun u => f u = inl (f1 u)) /\ V a f1 g1 o1
      | inr g1, inr o1 => exists f1, near (fun u => f u = inr (f1 u)) /\ V b f1 g1 o1
      | _, _ => False
      end
  | TFun a b => fun f g o => forall f1 g1 o1, V a f1 g1 o1 ->
      E (B := den R (run_ty a b)) (@Run a b (V b) (fun d e w => exists w1 w2, o g1 d w1 /\ weigh a o1 e w2 /\ w = (w1 + w2)%R)) (fun u => f u (f1 u)) (g g1)
  | TArr a => fun f g o => exists qs, near (fun u => f u = map (fun q => fst q u) qs) /\ o = map snd qs /\
      Forall2 (fun q g => V a (fst q) g (snd q)) qs g
  | TTree a => fun f g o => exists qt, near (fun u => f u = tree_map (fun q => fst q u) qt) /\ o = tree_map snd qt /\
      tree2 (fun q g => V a (fst q) g (snd q)) qt g
  end.
Lemma V_germ : forall t f f' g o, near (fun u => f u = f' u) -> V t f g o -> V t f' g o.
Proof.
  induction t; simpl; intros f f' g o H HV; auto.
  - destruct HV as (H1 & l & H2 & H3). split; [now rewrite <- (here H)|]. exists l. split; auto. eapply diff_germ; eauto.
  - revert H HV. apply near2. congruence.
  - destruct HV as [H1 H2]. split.
    + eapply IHt1; [|exact H1]. revert H. apply near1. intros u ->. reflexivity.
    + eapply IHt2; [|exact H2]. revert H. apply near1. intros u ->. reflexivity.
  - destruct g as [g|g], o as [o|o]; auto; destruct HV as (f1 & H1 & H2); exists f1; split; auto; revert H H1; apply near2; congruence.
  - intros f1 g1 o1 H1. eapply E_germ; [|apply HV, H1]. revert H. apply near1. intros u ->. reflexivity.
  - destruct HV as (fs & H1 & H2). exists fs. split; auto. revert H H1. apply near2. congruence.
  - destruct HV as (ft & H1 & H2). exists ft. split; auto. revert H H1. apply near2. congruence.
Qed.
(* the image of a combinator, at an argument whose cotangents are observed by o *)
Definition Back {a} (o : obs a) {b} : (U -> den R b) -> den R (run_ty a b) -> Prop :=
  @Run a b (V b) (fun _ e w => weigh a o e w).
Definition Image {a b} (F : den R a -> M (den R b)) (D : image a b) : Prop :=
  forall G (r : env R G) f g o, V a f g o -> E (Back o) (fun u => F (f u)) (evR (D G) (g, r)).

(* ---- structure ----------------------------------------------------------------------------------------- *)
Lemma i_id : forall a, Image (fun x : den R a => ret x) d_id.
Proof. intros a G r f g o H. apply E_ret. unfold d_id. w. exists o. split; [exact H|]. intros d w Hd. cbn [snd]. w. exact Hd. Qed.
Lemma i_seq : forall a b c F (D : image a b) F' (D' : image b c), Image F D -> Image F' D' ->
  Image (fun x => bind (F x) (fun y => F' y)) (d_seq D D').
Proof.
  intros a b c F D F' D' H H' G r f g o HV. unfold d_seq.
  eapply e_let with (H := fun u y => F' y); [apply H, HV|]. intros f1 [g1 b1] (o1 & H1 & B1).
  eapply e_then; [apply e_at; w; eapply H'; exact H1|]. intros f2 [g2 b2] (o2 & H2 & B2). w. exists o2. split; [exact H2|].
  intros d w Hd. cbn [snd]. w. eapply g_imp; [exact (B2 d w Hd)|]. intros e He. exact (B1 e w He).
Qed.
Lemma i_pair : forall a b c F (D : image a b) F' (D' : image a c), Image F D -> Image F' D' ->
  Image (b := TProd b c) (fun x => bind (F x) (fun y => bind (F' x) (fun z => ret (y, z)))) (d_pair D D').
Proof.
  intros a b c F D F' D' H H' G r f g o HV. unfold d_pair.
  eapply e_let with (H := fun u y => bind (F' (f u)) (fun z => ret (y, z))); [apply H, HV|]. intros f1 [g1 b1] (o1 & H1 & B1).
  eapply e_let with (H := fun u z => ret (f1 u, z)); [apply e_at; w; eapply H'; exact HV|]. intros f2 [g2 b2] (o2 & H2 & B2).
  apply E_ret with (f := fun u => (f1 u, f2 u)). w. exists (o1, o2). split; [split; [exact H1|exact H2]|].
  intros d w (w1 & w2 & Hd1 & Hd2 & ->). cbn [snd]. apply w_plus; w; [exact (B1 _ _ Hd1)|exact (B2 _ _ Hd2)].
Qed.
Lemma i_case : forall c a b d F (D : image (TProd c a) d) F' (D' : image (TProd c b) d), Image F D -> Image F' D' ->
  Image (a := TProd c (TSum a b)) (fun p => match snd p with inl y => F (fst p, y) | inr y => F' (fst p, y) end) (d_case D D').
Proof.
  intros c a b d F D F' D' H H' G r f [gc gs] [oc os] [Hc Hs]. unfold d_case.
  destruct gs as [g1|g1], os as [o1|o1]; try contradiction; destruct Hs as (k & L & Hk).
  - apply E_germ with (F := fun u => F (fst (f u), k u)); [revert L; apply near1; intros u Hu; cbv beta; now rewrite Hu|].
    eapply e_inl; [w; reflexivity|].
    eapply e_then; [apply e_at; w; eapply H with (f := fun u => (fst (f u), k u)) (o := (oc, o1)); split; assumption|].
    intros f2 [g2 b2] (o2 & H2 & B2). w. exists o2. split; [exact H2|]. intros e w He. cbn [snd]. w.
    eapply g_imp; [exact (B2 e w He)|]. intros q (w1 & w2 & Q1 & Q2 & ->). w. eapply g_imp; [apply zero_gives|]. intros z _.
    exists w1, w2. split; [exact Q1|split; [exact Q2|reflexivity]].
  - apply E_germ with (F := fun u => F' (fst (f u), k u)); [revert L; apply near1; intros u Hu; cbv beta; now rewrite Hu|].
    eapply e_inr; [w; reflexivity|].
    eapply e_then; [apply e_at; w; eapply H' with (f := fun u => (fst (f u), k u)) (o := (oc, o1)); split; assumption|].
    intros f2 [g2 b2] (o2 & H2 & B2). w. exists o2. split; [exact H2|]. intros e w He. cbn [snd]. w.
    eapply g_imp; [exact (B2 e w He)|]. intros q (w1 & w2 & Q1 & Q2 & ->). w. eapply g_imp; [apply zero_gives|]. intros z _. w.
    exists w1, w2. split; [exact Q1|split; [exact Q2|reflexivity]].
Qed.

(* ---- functions ---------------------------------------------------------------------------------------------- *)
Lemma i_ev : forall a b, Image (a := TProd (TFun a b) a) (fun p => fst p (snd p)) d_ev.
Proof.
  intros a b G r f [gf ga] [of oa] [Hf Ha]. unfold d_ev. cbn [fst snd] in Hf, Ha.
  eapply e_then; [eapply E_right; [intros f2 H2; apply w_app; w; exact H2|apply (Hf _ _ _ Ha)]|].
  intros f2 [g2 b2] (o2 & H2 & B2). w. exists o2. split; [exact H2|].
  intros d w Hd. cbn [snd]. w. eapply g_imp; [exact (B2 d w Hd)|]. intros e (w1 & w2 & Q1 & Q2 & ->).
  exists w1, w2. split; [apply Bag_single; exact Q1|split; [exact Q2|reflexivity]].
Qed.
End Adjoint.
