(* Which parts of a program cannot carry a derivative, and what a transformation writes for them: the part itself, with zero
   beside its reals.  A part is constant if the only variables from outside that it mentions have types without reals and
   functions; whatever it binds inside does not matter.

   [plain] moves such a part to the transformed context, where those variables have the same types.  A transformation enters
   only through its action F on types, so that Macro.v and Monadic.v share this file. *)
From Coq Require Import List ZArith FunctionalExtensionality Lia.
Require Import Language Substitution.
Import ListNotations.
Set Implicit Arguments.

(* ---- renamings that keep only some variables -------------------------------------------- *)
Definition pren G H := forall t, mem t G -> option (mem t H).
Definition pup {G H} (s : ty) (r : pren G H) : pren (s :: G) (s :: H) := fun t m =>
  match m in mem _ G' return match G' with nil => unit | s' :: G0 => pren G0 H -> option (mem t (s' :: H)) end with
  | Top => fun _ => Some Top
  | Pop m => fun r => option_map (fun m' => Pop m') (r _ m)
  end r.
Definition map2 {A B C} (f : A -> B -> C) (x : option A) (y : option B) : option C :=
  match x, y with Some a, Some b => Some (f a b) | _, _ => None end.
Definition map3 {A B C D} (f : A -> B -> C -> D) (x : option A) (y : option B) (z : option C) : option D :=
  match x, y, z with Some a, Some b, Some c => Some (f a b c) | _, _, _ => None end.
Fixpoint prn {G H t} (e : tm G t) : pren G H -> option (tm H t) :=
  match e in tm G t return pren G H -> option (tm H t) with
  | tvar v => fun r => option_map (fun m => tvar m) (r _ v)
  | tlam b => fun r => option_map (fun b => tlam b) (prn b (pup r))
  | tapp f a => fun r => map2 (fun f a => tapp f a) (prn f r) (prn a r)
  | tlet a b => fun r => map2 (fun a b => tlet a b) (prn a r) (prn b (pup r))
  | tfix b => fun r => option_map (fun b => tfix b) (prn b (pup (pup r)))
  | tcase s a b => fun r => map3 (fun s a b => tcase s a b) (prn s r) (prn a (pup r)) (prn b (pup r))
  | top0 _ o => fun _ => Some (top0 H o)
  | top1 o a => fun r => option_map (fun a => top1 o a) (prn a r)
  | top2 o a b => fun r => map2 (fun a b => top2 o a b) (prn a r) (prn b r)
  | top3 o a b c => fun r => map3 (fun a b c => top3 o a b c) (prn a r) (prn b r) (prn c r)
  | tloop n z b => fun r => map3 (fun n z b => tloop n z b) (prn n r) (prn z r) (prn b (pup (pup r)))
  | tbuild n b => fun r => map2 (fun n b => tbuild n b) (prn n r) (prn b (pup r))
  | tmap b a => fun r => map2 (fun b a => tmap b a) (prn b (pup r)) (prn a r)
  | tfold b z a => fun r => map3 (fun b z a => tfold b z a) (prn b (pup (pup r))) (prn z r) (prn a r)
  | tlit _ m x => fun _ => Some (tlit H m x)
  | tprim1 p a => fun r => option_map (fun a => tprim1 p a) (prn a r)
  | tprim2 p a b => fun r => map2 (fun a b => tprim2 p a b) (prn a r) (prn b r)
  | tprimi p a b => fun r => map2 (fun a b => tprimi p a b) (prn a r) (prn b r)
  | tcmp c a b => fun r => map2 (fun a b => tcmp c a b) (prn a r) (prn b r)
  | tround k a => fun r => option_map (fun a => tround k a) (prn a r)
  | treal a => fun r => option_map (fun a => treal a) (prn a r)
  | tsum a => fun r => option_map (fun a => tsum a) (prn a r)
  | tdot a b => fun r => map2 (fun a b => tdot a b) (prn a r) (prn b r)
  end.

Section Meaning.
Variable X : Type.
Variable O : ops X.
Variable fuel : nat.
Notation evX e := (ev O fuel e).
Definition pok {G H} (r : pren G H) (a : env X G) (b : env X H) :=
  forall t (m : mem t G) m', r _ m = Some m' -> look m' b = look m a.
Lemma pup_ok : forall G H (r : pren G H) s a b x, pok r a b -> @pok (s :: G) (s :: H) (pup r) (x, a) (x, b).
Proof.
  intros G H r s a b x Hr t m. revert r a b x Hr.
  apply (mem_inv (fun u m => forall (r : pren G H) a b (x : den X u), pok r a b -> forall m', pup (s:=u) r m = Some m' ->
    @look X _ (u :: H) m' (x, b) = @look X _ (u :: G) m (x, a))); simpl.
  - intros m0 u r a b x Hr m' E. destruct (r t m0) as [m1|] eqn:E1; inversion E; subst. simpl. exact (Hr _ _ _ E1).
  - intros r a b x Hr m' E. inversion E. reflexivity.
Qed.
Lemma option_map_some : forall A B (f : A -> B) x y, option_map f x = Some y -> exists a, x = Some a /\ y = f a.
Proof. intros A B f [a|] y H; inversion H; eauto. Qed.
Lemma map2_some : forall A B C (f : A -> B -> C) x y z, map2 f x y = Some z -> exists a b, x = Some a /\ y = Some b /\ z = f a b.
Proof. intros A B C f [a|] [b|] z H; inversion H; eauto. Qed.
Lemma map3_some : forall A B C D (f : A -> B -> C -> D) x y z w, map3 f x y z = Some w ->
  exists a b c, x = Some a /\ y = Some b /\ z = Some c /\ w = f a b c.
Proof. intros A B C D f [a|] [b|] [c|] w H; inversion H; eauto 8. Qed.
Ltac inv := repeat match goal with
  | H : option_map _ _ = Some _ |- _ => apply option_map_some in H as (? & ? & ->)
  | H : map2 _ _ _ = Some _ |- _ => apply map2_some in H as (? & ? & ? & ? & ->)
  | H : map3 _ _ _ _ = Some _ |- _ => apply map3_some in H as (? & ? & ? & ? & ? & ? & ->)
  | H : Some _ = Some _ |- _ => inversion H; clear H; subst
  end.
Ltac same := match goal with
  | [ IH : forall H r e' a b, prn ?e r = Some e' -> pok r a b -> evX e' b = evX ?e a, H : prn ?e ?r = Some ?e' |- context [evX ?e' ?y] ] =>
      rewrite (IH _ r e' _ y H ltac:(eassumption || (repeat apply pup_ok; eassumption)))
  end.
Ltac under IH := repeat (apply functional_extensionality; intros); eapply IH; [eassumption|repeat apply pup_ok; assumption].
Theorem prn_ok : forall G t (e : tm G t) H (r : pren G H) e' a b, prn e r = Some e' -> pok r a b -> evX e' b = evX e a.
Proof.
  induction e; intros H rr e' x y HE Hr; cbn [prn] in HE; inv; cbn [ev]; repeat same; auto.
  - f_equal. f_equal. apply Hr. assumption.
  - f_equal. f_equal. under IHe.
  - f_equal. f_equal. under IHe2.
  - f_equal. f_equal. f_equal. under IHe.
  - f_equal. f_equal. apply functional_extensionality. intros [v|v]; [under IHe2|under IHe3].
  - f_equal. f_equal. apply functional_extensionality. intros k. f_equal. apply functional_extensionality. intros w. f_equal. under IHe3.
  - f_equal. f_equal. apply functional_extensionality. intros k. f_equal. apply functional_extensionality. intros i. f_equal. under IHe2.
  - f_equal. f_equal. apply functional_extensionality. intros k. f_equal. apply functional_extensionality. intros i. f_equal. under IHe1.
  - f_equal. f_equal. apply functional_extensionality. intros k. f_equal. apply functional_extensionality. intros w. f_equal. under IHe1.
Qed.
Lemma ev_step : forall G t (e : tm G t) r v n k, evX e r = Some (v, n, k) -> 1 <= n.
Proof.
  assert (forall A (m : M A) v n k, tick m = Some (v, n, k) -> 1 <= n) as H.
  { intros A [[[w n'] k']|] v n k H; inversion H. lia. }
  destruct e; intros r0 v n k Hr; cbn [ev] in Hr; eapply H; exact Hr.
Qed.
End Meaning.


(* ---- types that a transformation does not change ------------------------------------------------ *)
Definition cast {P : ty -> Type} {a b : ty} (H : a = b) (x : P a) : P b := match H with eq_refl => x end.
Lemma ev_cast : forall X (O : ops X) fuel G a b (H : a = b) (e : tm G a) r v n k, ev O fuel e r = Some (v, n, k) ->
  ev O fuel (cast (P := tm G) H e) r = Some (cast (P := den X) H v, n, k).
Proof. intros. destruct H. exact H0. Qed.
Lemma look_cast : forall X G a b (H : a = b) (m : mem a G) (r : env X G),
  look (cast (P := fun t => mem t G) H m) r = cast (P := den X) H (look m r).
Proof. intros. destruct H. reflexivity. Qed.
Definition eq2 (C : ty -> ty -> ty) {a a' b b'} (p : a' = a) (q : b' = b) : C a' b' = C a b :=
  match p, q with eq_refl, eq_refl => eq_refl end.
Lemma cast_pair : forall X a a' b b' (p : a' = a) (q : b' = b) (g : den X (TProd a' b')),
  cast (P := den X) (eq2 TProd p q) g = (cast (P := den X) p (fst g), cast (P := den X) q (snd g)).
Proof. intros. destruct p, q, g. reflexivity. Qed.
Lemma cast_pair_sym : forall X a a' b b' (p : a' = a) (q : b' = b) (g : den X (TProd a b)),
  cast (P := den X) (eq_sym (eq2 TProd p q)) g = (cast (P := den X) (eq_sym p) (fst g), cast (P := den X) (eq_sym q) (snd g)).
Proof. intros. destruct p, q, g. reflexivity. Qed.
Lemma cast_sum : forall X a a' b b' (p : a' = a) (q : b' = b) (g : den X (TSum a' b')),
  cast (P := den X) (eq2 TSum p q) g = match g with inl x => inl (cast (P := den X) p x) | inr y => inr (cast (P := den X) q y) end.
Proof. intros. destruct p, q, g; reflexivity. Qed.
Lemma cast_sum_sym : forall X a a' b b' (p : a' = a) (q : b' = b) (g : den X (TSum a b)),
  cast (P := den X) (eq_sym (eq2 TSum p q)) g =
  match g with inl x => inl (cast (P := den X) (eq_sym p) x) | inr y => inr (cast (P := den X) (eq_sym q) y) end.
Proof. intros. destruct p, q, g; reflexivity. Qed.
Definition eq1 (C : ty -> ty) {a a'} (p : a' = a) : C a' = C a := match p with eq_refl => eq_refl end.
Lemma cast_array : forall X a a' (p : a' = a) (g : den X (TArr a')), cast (P := den X) (eq1 TArr p) g = map (fun x => cast (P := den X) p x) g.
Proof. intros. destruct p. simpl. symmetry. apply map_id. Qed.
Lemma cast_array_sym : forall X a a' (p : a' = a) (g : den X (TArr a)),
  cast (P := den X) (eq_sym (eq1 TArr p)) g = map (fun x => cast (P := den X) (eq_sym p) x) g.
Proof. intros. destruct p. simpl. symmetry. apply map_id. Qed.
Lemma tree_map_id : forall A (t : tree A), tree_map (fun x => x) t = t.
Proof.
  fix go 2. intros A [a ts]. simpl. f_equal. induction ts as [|t ts IH]; [reflexivity|]. simpl. f_equal; [apply go|exact IH].
Qed.
Lemma cast_tree : forall X a a' (p : a' = a) (g : den X (TTree a')), cast (P := den X) (eq1 TTree p) g = tree_map (fun x => cast (P := den X) p x) g.
Proof. intros. destruct p. simpl. symmetry. apply tree_map_id. Qed.
Lemma cast_tree_sym : forall X a a' (p : a' = a) (g : den X (TTree a)),
  cast (P := den X) (eq_sym (eq1 TTree p)) g = tree_map (fun x => cast (P := den X) (eq_sym p) x) g.
Proof. intros. destruct p. simpl. symmetry. apply tree_map_id. Qed.

Lemma some_inj : forall A (a b : A), Some a = Some b -> a = b.
Proof. intros A a b H. change (match Some a with Some x => x | None => a end = b). rewrite H. reflexivity. Qed.

(* a cheap test before the work: whether a variable from outside with another type is mentioned *)
Fixpoint leaf (t : ty) : bool :=
  match t with TU | TI => true | TProd a b | TSum a b => if leaf a then leaf b else false | TArr a | TTree a => leaf a | TR | TFun _ _ => false end.
Fixpoint position {t G} (m : mem t G) : nat := match m with Top => O | Pop m => S (position m) end.
Fixpoint active {G t} (n : nat) (e : tm G t) : bool :=
  match e with
  | @tvar _ t v => if leaf t then false else n <=? position v
  | top0 _ _ | tlit _ _ _ => false
  | tlam b => active (S n) b
  | tfix b => active (S (S n)) b
  | tapp a b | top2 _ a b | tprim2 _ a b | tprimi _ a b | tcmp _ a b | tdot a b => if active n a then true else active n b
  | tlet a b | tbuild a b => if active n a then true else active (S n) b
  | tmap b a => if active n a then true else active (S n) b
  | tcase s a b => if active n s then true else if active (S n) a then true else active (S n) b
  | top1 _ a | tprim1 _ a | tround _ a | treal a | tsum a => active n a
  | top3 _ a b c => if active n a then true else if active n b then true else active n c
  | tloop a b c => if active n a then true else if active n b then true else active (S (S n)) c
  | tfold c a b => if active n a then true else if active n b then true else active (S (S n)) c
  end.

(* a part whose free variables have such types, in the transformed context *)
Section Plain.
Variable F : ty -> ty.
Variable Fmem : forall t G, mem t G -> mem (F t) (map F G).
Variable same : forall t, option (F t = t).
Definition keep G : pren G (map F G) := fun t m =>
  match same t with Some H => Some (cast (P := fun t => mem t (map F G)) H (Fmem m)) | None => None end.
Definition plain {G t} (e : tm G t) : option (tm (map F G) t) := if active 0 e then None else prn e (@keep G).
Lemma keep_ok : forall X G (a : env X G) (b : env X (map F G)),
  (forall t (m : mem t G) H, same t = Some H -> look m a = cast (P := den X) H (look (Fmem m) b)) -> pok X (@keep G) a b.
Proof.
  intros X G a b H t m m' E. unfold keep in E. destruct (same t) as [Ht|] eqn:Es; inversion E; subst.
  rewrite look_cast. symmetry. apply H, Es.
Qed.
End Plain.
(* Whether a part computes something itself: constructors, and a name for a variable without reals or for a part of one, only stand around what does. *)
Fixpoint path {G t} (e : tm G t) : bool :=
  match e with tvar _ => true | top1 (OFst _ _) a | top1 (OSnd _ _) a => path a | _ => false end.
Definition computes {G t} (e : tm G t) : bool :=
  match e with
  | top2 (OPair _ _) _ _ | top1 (OInl _ _) _ | top1 (OInr _ _) _ => false
  | @tlet _ a _ x _ => negb (andb (leaf a) (path x))
  | _ => true
  end.
(* products of reals and of what has none: how many reals and pairs these are *)
Fixpoint weight (t : ty) : nat := match t with TR => 1 | TProd a b => S (weight a + weight b) | _ => 0 end.
(* up to which a constant is given zeros: in constant time *)
Definition small : nat := 7.
