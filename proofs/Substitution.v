(* Renaming and substitution, as plain recursive functions on typed terms, and why they preserve meaning.
   Renaming preserves it exactly.  Substitution does so for *atoms*, terms that evaluate in one step to a value
   without effect (variables, literals, functions): then value, steps and kinks are all unchanged.  That is what
   an optimiser may inline without counting occurrences; other terms must stay behind a [let]. *)
From Coq Require Import List ZArith FunctionalExtensionality.
Require Import Language.
Import ListNotations.
Set Implicit Arguments.

Definition ren G H := forall t, mem t G -> mem t H.
Definition sub G H := forall t, mem t G -> tm H t.
Definition shift {G} (s : ty) : ren G (s :: G) := fun t m => Pop m.
Definition up {G H} (s : ty) (r : ren G H) : ren (s :: G) (s :: H) := fun t m =>
  match m in mem _ G' return match G' with nil => unit | s' :: G0 => ren G0 H -> mem t (s' :: H) end with
  | Top => fun _ => Top
  | Pop m => fun r => Pop (r _ m)
  end r.
Fixpoint rn {G H t} (e : tm G t) : ren G H -> tm H t :=
  match e in tm G t return ren G H -> tm H t with
  | tvar v => fun r => tvar (r _ v)
  | tlam b => fun r => tlam (rn b (up r))
  | tapp f a => fun r => tapp (rn f r) (rn a r)
  | tlet a b => fun r => tlet (rn a r) (rn b (up r))
  | tfix b => fun r => tfix (rn b (up (up r)))
  | tcase s a b => fun r => tcase (rn s r) (rn a (up r)) (rn b (up r))
  | top0 _ o => fun _ => top0 H o
  | top1 o a => fun r => top1 o (rn a r)
  | top2 o a b => fun r => top2 o (rn a r) (rn b r)
  | top3 o a b c => fun r => top3 o (rn a r) (rn b r) (rn c r)
  | tloop n z b => fun r => tloop (rn n r) (rn z r) (rn b (up (up r)))
  | tbuild n b => fun r => tbuild (rn n r) (rn b (up r))
  | tmap b a => fun r => tmap (rn b (up r)) (rn a r)
  | tfold b z a => fun r => tfold (rn b (up (up r))) (rn z r) (rn a r)
  | tlit _ m x => fun _ => tlit H m x
  | tprim1 p a => fun r => tprim1 p (rn a r)
  | tprim2 p a b => fun r => tprim2 p (rn a r) (rn b r)
  | tprimi p a b => fun r => tprimi p (rn a r) (rn b r)
  | tcmp c a b => fun r => tcmp c (rn a r) (rn b r)
  | tround k a => fun r => tround k (rn a r)
  | treal a => fun r => treal (rn a r)
  | tsum a => fun r => tsum (rn a r)
  | tdot a b => fun r => tdot (rn a r) (rn b r)
  end.
Definition wk {G t} (s : ty) (e : tm G t) : tm (s :: G) t := rn e (@shift G s).
(* two things bound one after the other, the second without the first *)
Definition tlet2 {G a b c} (x : tm G a) (y : tm G b) (body : tm (b :: a :: G) c) : tm G c := tlet x (tlet (wk a y) body).
Definition ups {G H} (s : ty) (r : sub G H) : sub (s :: G) (s :: H) := fun t m =>
  match m in mem _ G' return match G' with nil => unit | s' :: G0 => sub G0 H -> tm (s' :: H) t end with
  | Top => fun _ => tvar Top
  | Pop m => fun r => wk _ (r _ m)
  end r.
Fixpoint sb {G H t} (e : tm G t) : sub G H -> tm H t :=
  match e in tm G t return sub G H -> tm H t with
  | tvar v => fun r => r _ v
  | tlam b => fun r => tlam (sb b (ups r))
  | tapp f a => fun r => tapp (sb f r) (sb a r)
  | tlet a b => fun r => tlet (sb a r) (sb b (ups r))
  | tfix b => fun r => tfix (sb b (ups (ups r)))
  | tcase s a b => fun r => tcase (sb s r) (sb a (ups r)) (sb b (ups r))
  | top0 _ o => fun _ => top0 H o
  | top1 o a => fun r => top1 o (sb a r)
  | top2 o a b => fun r => top2 o (sb a r) (sb b r)
  | top3 o a b c => fun r => top3 o (sb a r) (sb b r) (sb c r)
  | tloop n z b => fun r => tloop (sb n r) (sb z r) (sb b (ups (ups r)))
  | tbuild n b => fun r => tbuild (sb n r) (sb b (ups r))
  | tmap b a => fun r => tmap (sb b (ups r)) (sb a r)
  | tfold b z a => fun r => tfold (sb b (ups (ups r))) (sb z r) (sb a r)
  | tlit _ m x => fun _ => tlit H m x
  | tprim1 p a => fun r => tprim1 p (sb a r)
  | tprim2 p a b => fun r => tprim2 p (sb a r) (sb b r)
  | tprimi p a b => fun r => tprimi p (sb a r) (sb b r)
  | tcmp c a b => fun r => tcmp c (sb a r) (sb b r)
  | tround k a => fun r => tround k (sb a r)
  | treal a => fun r => treal (sb a r)
  | tsum a => fun r => tsum (sb a r)
  | tdot a b => fun r => tdot (sb a r) (sb b r)
  end.
(* one term for the innermost variable *)
Definition one {G s} (e : tm G s) : sub (s :: G) G := fun t m =>
  match m in mem _ G' return match G' with nil => unit | s' :: G0 => tm G0 s' -> tm G0 t end with
  | Top => fun e => e
  | Pop m => fun _ => tvar m
  end e.
Inductive atom : forall G t, tm G t -> Prop :=
| atom_var : forall G t (m : mem t G), atom (tvar m)
| atom_lam : forall G a b (e : tm (a :: G) b), atom (tlam e)
| atom_fix : forall G a b (e : tm (a :: TFun a b :: G) b), atom (tfix e)
| atom_lit : forall G m x, atom (tlit G m x)
| atom_op0 : forall G a (o : op0 a), atom (top0 G o).

Lemma mem_inv : forall t s G (P : forall u, mem t (u :: G) -> Prop),
  (forall (m : mem t G) u, P u (Pop m)) -> P t Top -> forall m : mem t (s :: G), P s m.
Proof.
  intros t s G P HP HT m.
  refine (match m as m0 in mem _ G' return
            match G' as G'' return mem t G'' -> Prop with
            | nil => fun _ => True
            | u :: G0 => fun m1 => forall P : forall u, mem t (u :: G0) -> Prop,
                (forall (m : mem t G0) u, P u (Pop m)) -> P t Top -> P u m1
            end m0 with Top => _ | Pop _ => _ end P HP HT); auto.
Qed.

Section Meaning.
Variable X : Type.
Variable O : ops X.
Variable fuel : nat.
Notation evX e := (ev O fuel e).
Definition rok {G H} (r : ren G H) (a : env X G) (b : env X H) := forall t (m : mem t G), look (r _ m) b = look m a.
Definition sok {G H} (r : sub G H) (a : env X G) (b : env X H) :=
  forall t (m : mem t G), evX (r _ m) b = tick (ret (look m a)).
Lemma up_ok : forall G H (r : ren G H) s a b x, rok r a b -> @rok (s :: G) (s :: H) (up r) (x, a) (x, b).
Proof.
  intros G H r s a b x Hr t m. revert r a b x Hr.
  apply (mem_inv (fun u m => forall (r : ren G H) a b (x : den X u), rok r a b ->
    @look X _ (u :: H) (up (s:=u) r m) (x, b) = @look X _ (u :: G) m (x, a))); simpl; auto.
Qed.
(* the cases of both theorems: rewrite with the hypotheses, then under binders *)
Ltac under IH up_ok Hr := repeat (apply functional_extensionality; intros); apply IH; repeat apply up_ok; exact Hr.
Theorem rn_ok : forall G t (e : tm G t) H (r : ren G H) a b, rok r a b -> evX (rn e r) b = evX e a.
Proof.
  induction e; intros H rr x y Hr; cbn [ev rn]; f_equal;
  repeat match goal with
  | [ IH : forall H r a b, rok r a b -> evX (rn ?e r) b = evX ?e a |- context [evX (rn ?e rr) y] ] => rewrite (IH _ rr x y Hr)
  end; auto.
  - rewrite Hr. reflexivity.
  - f_equal. under IHe up_ok Hr.
  - f_equal. under IHe2 up_ok Hr.
  - f_equal. f_equal. under IHe up_ok Hr.
  - f_equal. apply functional_extensionality. intros [v|v]; [under IHe2 up_ok Hr|under IHe3 up_ok Hr].
  - f_equal. apply functional_extensionality. intros k. f_equal. apply functional_extensionality. intros w. f_equal. under IHe3 up_ok Hr.
  - f_equal. apply functional_extensionality. intros k. f_equal. apply functional_extensionality. intros i. f_equal. under IHe2 up_ok Hr.
  - f_equal. apply functional_extensionality. intros k. f_equal. apply functional_extensionality. intros i. f_equal. under IHe1 up_ok Hr.
  - f_equal. apply functional_extensionality. intros k. f_equal. apply functional_extensionality. intros w. f_equal. under IHe1 up_ok Hr.
Qed.
Lemma wk_ok : forall G s t (e : tm G t) (a : env X G) (x : den X s), evX (wk s e) (x, a) = evX e a.
Proof. intros. apply rn_ok. intros u m. reflexivity. Qed.
Lemma ups_ok : forall G H (r : sub G H) s a b x, sok r a b -> @sok (s :: G) (s :: H) (ups r) (x, a) (x, b).
Proof.
  intros G H r s a b x Hr t m. revert r a b x Hr.
  apply (mem_inv (fun u m => forall (r : sub G H) a b (x : den X u), sok r a b ->
    evX (ups (s := u) r m) ((x, b) : env X (u :: H)) = tick (ret (@look X _ (u :: G) m (x, a))))); simpl; auto.
  intros m0 u r a b x Hr. simpl. rewrite wk_ok. apply Hr.
Qed.
Theorem sb_ok : forall G t (e : tm G t) H (r : sub G H) a b, sok r a b -> evX (sb e r) b = evX e a.
Proof.
  induction e; intros H rr x y Hr; cbn [ev sb]; [apply Hr|..]; f_equal;
  repeat match goal with
  | [ IH : forall H r a b, sok r a b -> evX (sb ?e r) b = evX ?e a |- context [evX (sb ?e rr) y] ] => rewrite (IH _ rr x y Hr)
  end; auto.
  - f_equal. under IHe ups_ok Hr.
  - f_equal. under IHe2 ups_ok Hr.
  - f_equal. f_equal. under IHe ups_ok Hr.
  - f_equal. apply functional_extensionality. intros [v|v]; [under IHe2 ups_ok Hr|under IHe3 ups_ok Hr].
  - f_equal. apply functional_extensionality. intros k. f_equal. apply functional_extensionality. intros w. f_equal. under IHe3 ups_ok Hr.
  - f_equal. apply functional_extensionality. intros k. f_equal. apply functional_extensionality. intros i. f_equal. under IHe2 ups_ok Hr.
  - f_equal. apply functional_extensionality. intros k. f_equal. apply functional_extensionality. intros i. f_equal. under IHe1 ups_ok Hr.
  - f_equal. apply functional_extensionality. intros k. f_equal. apply functional_extensionality. intros w. f_equal. under IHe1 ups_ok Hr.
Qed.
(* the value of an atom *)
Lemma atom_value : forall G t (v : tm G t), atom v -> forall r : env X G, exists w, evX v r = tick (ret w).
Proof. destruct 1; intros; simpl; eexists; reflexivity. Qed.
Lemma one_ok : forall G s (e : tm G s) (a : env X G) v, evX e a = tick (ret v) -> @sok (s :: G) G (one e) (v, a) a.
Proof.
  intros G s e a v H t m. revert e v H.
  apply (mem_inv (fun u m => forall (e : tm G u) (v : den X u), evX e a = tick (ret v) ->
    evX (one e m) a = tick (ret (@look X _ (u :: G) m (v, a))))); simpl; auto.
Qed.
End Meaning.
