(* Forward mode (K Fig. 3, 4, 15; C Fig. 4, 8, 10; N Fig. 4.9): a real becomes a value and a tangent, which is one
   real.  The instance of Macro.v whose tangents are reals; [Rep d g] is g = d. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

Definition fwd : tangents :=
  {| tg := TR; tg_zero := fun _ => lit 0; tg_scale := fun _ c d => tmul c d; tg_add := fun _ c d => tadd c d |}.
Notation DF := (D fwd).
Notation forward := (DT fwd).
Definition KF : nat := 208.     (* steps of the transformed run per step of the source run *)

(* K Fig. 15: primal and delta select the components of every dual number *)
Fixpoint primal (t : ty) : den R (DF t) -> den R t :=
  match t return den R (DF t) -> den R t with
  | TR => fun g => fst g
  | TU | TI => fun g => g
  | TProd a b => fun g => (primal a (fst g), primal b (snd g))
  | TSum a b => fun g => match g with inl x => inl (primal a x) | inr y => inr (primal b y) end
  | TFun a b => fun _ _ => None
  | TArr a => map (primal a)
  | TTree a => tree_map (primal a)
  end.
Fixpoint delta (t : ty) : den R (DF t) -> den R t :=
  match t return den R (DF t) -> den R t with
  | TR => fun g => snd g
  | TU | TI => fun g => g
  | TProd a b => fun g => (delta a (fst g), delta b (snd g))
  | TSum a b => fun g => match g with inl x => inl (delta a x) | inr y => inr (delta b y) end
  | TFun a b => fun _ _ => None
  | TArr a => map (delta a)
  | TTree a => tree_map (delta a)
  end.
Fixpoint primals (G : list ty) : env R (map DF G) -> env R G :=
  match G return env R (map DF G) -> env R G with
  | nil => fun g => g | t :: G => fun g => (primal t (fst g), primals G (snd g)) end.
Fixpoint deltas (G : list ty) : env R (map DF G) -> env R G :=
  match G return env R (map DF G) -> env R G with
  | nil => fun g => g | t :: G => fun g => (delta t (fst g), deltas G (snd g)) end.

Section Correct.
Variable fuel : nat.
Variable U : NormedModule R_AbsRing.
Variables u0 h : U.
Definition RepF (d : R) (g : den R (tg fwd)) : Prop := g = d.
Notation VF := (V fwd U u0 h RepF 207).
Notation VEF := (VE fwd U u0 h RepF 207).
Notation near P := (@locally U u0 P).

Lemma forward_fundamental : forall G t (e : tm G t) f g, VEF G f g ->
  Es U u0 207 0 (VF t) (fun u => ev RO fuel e (f u)) (ev RO fuel (forward e) g).
Proof.
  intros G t e f g. apply fundamental with (KT := 1).
  - lia.
  - intros G0 r. exists 0%R, 1. repeat split; auto.
  - intros G0 c d r x y' y n1 n2 Hc Hd <-. simpl in *. rewrite Hc, Hd. eexists _, _. repeat split. lia.
  - intros G0 c d r x y y1 y2 n1 n2 Hc Hd <- <-. simpl in *. rewrite Hc, Hd. eexists _, _. repeat split. lia.
Qed.

(* at data types the relation says: primal value and derivative *)
Lemma lists : forall A B C (P : (U -> A) -> B -> Prop) (Q : (U -> A) -> C -> Prop) (p : B -> A) (q : B -> C) g,
  (forall b f, P f b <-> p b = f u0 /\ Q f (q b)) ->
  forall fs, Forall2 P fs g <-> map p g = map (fun k => k u0) fs /\ Forall2 Q fs (map q g).
Proof.
  intros A B C P Q p q g H. induction g as [|b g IH]; intros fs; split.
  - intros HF. inversion HF; subst. split; [reflexivity|constructor].
  - intros [E HF]. simpl in *. inversion HF; subst. constructor.
  - intros HF. inversion HF as [|? ? ? ? H3 H4]; subst. apply H in H3 as [H3 H3']. apply IH in H4 as [H4 H4']. simpl.
    split; [congruence|constructor; auto].
  - intros [E HF]. simpl in *. inversion HF; subst. simpl in E. inversion E.
    constructor; [apply H; auto|apply IH; auto].
Qed.
Lemma tree_lists : forall A B C (P : (U -> A) -> B -> Prop) (Q : (U -> A) -> C -> Prop) (p : B -> A) (q : B -> C),
  (forall b f, P f b <-> p b = f u0 /\ Q f (q b)) ->
  forall g ft, tree2 P ft g <-> tree_map p g = tree_at U ft u0 /\ tree2 Q ft (tree_map q g).
Proof.
  intros A B C P Q p q H. induction g as [b gs IH] using tree_ind'. intros [k ts].
  assert (forall ts, Forall2 (tree2 P) ts gs <-> map (tree_map p) gs = map (fun t => tree_at U t u0) ts /\
                     Forall2 (tree2 Q) ts (map (tree_map q) gs)) as HL.
  { clear ts. induction IH as [|g gs Hg _ IHgs]; intros ts; split.
    - intros HF. inversion HF; subst. split; [reflexivity|constructor].
    - intros [E HF]. simpl in *. inversion HF; subst. constructor.
    - intros HF. inversion HF as [|? ? ? ? H2 H3]; subst. apply Hg in H2 as [H2 H2']. apply IHgs in H3 as [H3 H3']. simpl.
      split; [congruence|constructor; auto].
    - intros [E HF]. simpl in *. inversion HF; subst. simpl in E. inversion E.
      constructor; [apply Hg; auto|apply IHgs; auto]. }
  split.
  - intros HT. inversion HT as [? ? ? ? H3 H5]; subst. apply H in H3 as [H3 H3']. apply HL in H5 as [H5 H5'].
    split; [simpl; congruence|]. simpl. constructor; auto.
  - intros [E HT]. simpl in *. inversion E. inversion HT; subst. constructor; [apply H; auto|apply HL; auto].
Qed.
Lemma V_data : forall t, data t = true -> forall g f, VF t f g <-> primal t g = f u0 /\ Deriv U u0 h t f (delta t g).
Proof.
  induction t; simpl; intros Ht g f; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]).
  - unfold Real, RepF. split.
    + intros (H1 & l & H2 & H3). split; [exact H1|]. exists l. auto.
    + intros (H1 & l & H2 & H3). split; [exact H1|]. exists l. auto.
  - destruct g, (f u0). tauto.
  - split; [|tauto]. intros H. split; auto. symmetry. exact (@locally_singleton U u0 _ H).
  - rewrite (IHt1 Ht1), (IHt2 Ht2). split.
    + intros [[A1 B1] [A2 B2]]. split; [|auto]. rewrite A1, A2. now destruct (f u0).
    + intros [A [B1 B2]]. rewrite <- A. simpl. auto.
  - destruct g as [g|g]; split.
    + intros (f1 & L & H). apply (IHt1 Ht1) in H as [H1 H2]. split.
      * rewrite (@locally_singleton U u0 _ L). exact (f_equal inl H1).
      * exists f1. auto.
    + intros (E & f1 & L & H). exists f1. split; auto. apply IHt1; auto. split; auto.
      pose proof (eq_trans E (@locally_singleton U u0 _ L)) as X. injection X. auto.
    + intros (f1 & L & H). apply (IHt2 Ht2) in H as [H1 H2]. split.
      * rewrite (@locally_singleton U u0 _ L). exact (f_equal inr H1).
      * exists f1. auto.
    + intros (E & f1 & L & H). exists f1. split; auto. apply IHt2; auto. split; auto.
      pose proof (eq_trans E (@locally_singleton U u0 _ L)) as X. injection X. auto.
  - split.
    + intros (fs & L & H). apply (lists _ _ (primal t) (delta t) _ (IHt Ht)) in H as [H1 H2]. split.
      * rewrite (@locally_singleton U u0 _ L). exact H1.
      * exists fs. auto.
    + intros (E & fs & L & H). exists fs. split; auto. apply (lists _ _ (primal t) (delta t) _ (IHt Ht)). split; auto.
      rewrite E. exact (@locally_singleton U u0 _ L).
  - split.
    + intros (fs & L & H). apply (tree_lists _ _ (primal t) (delta t) (IHt Ht)) in H as [H1 H2]. split.
      * rewrite (@locally_singleton U u0 _ L). exact H1.
      * exists fs. auto.
    + intros (E & fs & L & H). exists fs. split; auto. apply (tree_lists _ _ (primal t) (delta t) (IHt Ht)). split; auto.
      rewrite E. exact (@locally_singleton U u0 _ L).
Qed.
Lemma VE_data : forall G, datas G = true -> forall g f,
  VEF G f g <-> primals G g = f u0 /\ Derivs U u0 h G f (deltas G g).
Proof.
  induction G as [|t G IH]; simpl; intros HG g f.
  - destruct g, (f u0). tauto.
  - apply andb_prop in HG as [H1 H2]. rewrite (V_data t H1), (IH H2). split.
    + intros [[A1 B1] [A2 B2]]. split; [|auto]. rewrite A1, A2. now destruct (f u0).
    + intros [A [B1 B2]]. rewrite <- A. simpl. auto.
Qed.

(* If the program, run at the point, terminates after n steps and meets no kink, then nearby it terminates after
   as many; the transformed program terminates within KF * n steps without kinks; and it returns the value and
   the derivative, at every data type. *)
Theorem forward_correct : forall G t (e : tm G t) f g y n, datas G = true -> data t = true ->
  primals G g = f u0 -> Derivs U u0 h G f (deltas G g) ->
  ev RO fuel e (f u0) = Some (y, n, 0) ->
  exists F g' n',
    near (fun u => ev RO fuel e (f u) = Some (F u, n, 0)) /\
    ev RO fuel (forward e) g = Some (g', n', 0) /\
    primal t g' = y /\ Deriv U u0 h t F (delta t g') /\ n' <= KF * n.
Proof.
  intros G t e f g y n HG Ht Hp Hd He.
  assert (VEF G f g) as HV by (apply VE_data; auto).
  destruct (@forward_fundamental G t e f g HV _ _ He) as (F & g' & n' & L & Eg & HF & Hc).
  apply (V_data t Ht) in HF as [H1 H2]. exists F, g', n'. split; [exact L|split; [exact Eg|split; [|split; [exact H2|unfold KF; lia]]]].
  pose proof (@locally_singleton U u0 _ L) as X. simpl in X. rewrite He in X. congruence.
Qed.
End Correct.
