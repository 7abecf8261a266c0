(* The structure-preserving macro, once for every mode that keeps the shape of the program and replaces
   each real by a pair (value, tangent): forward (K Fig. 3, C Fig. 4, 8, 10), vector (K Fig. 5, C Fig. 15),
   continuation (C Fig. 14), delta (K Fig. 7).  A mode is a type of tangents with zero, scaling and addition.

   Why it is correct.  Fix a point u0 of a normed space U, a direction h, and for the mode a relation
   [Rep d g]: the tangent g stands for the real d.  A map f from U into values is related to ONE transformed
   value at u0; at type real this says that f is differentiable at u0 and the tangent stands for its
   derivative in direction h.  Only the germ of f at u0 matters, so conditionals on reals, partial
   primitives and recursion fit.  [fundamental] is then one induction over terms, and a mode has to show three
   facts only: its zero, scaling and addition compute what [Rep] says. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Substitution Activity.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Arguments Nat.mul : simpl never.

Record tangents : Type := {
  tg : ty;
  tg_zero : forall G, tm G tg;
  tg_scale : forall G, tm G TR -> tm G tg -> tm G tg;
  tg_add : forall G, tm G tg -> tm G tg -> tm G tg }.

(* ---- the macro -------------------------------------------------------------------- *)
Section Macro.
Variable T : tangents.
Fixpoint D (t : ty) : ty :=
  match t with
  | TR => TProd TR (tg T)
  | TU => TU | TI => TI
  | TProd a b => TProd (D a) (D b)
  | TSum a b => TSum (D a) (D b)
  | TFun a b => TFun (D a) (D b)
  | TArr a => TArr (D a)
  | TTree a => TTree (D a)
  end.
Fixpoint Dmem {t G} (m : mem t G) : mem (D t) (map D G) :=
  match m with Top => Top | Pop m => Pop (Dmem m) end.
Definition Dop0 {a} (o : op0 a) : op0 (D a) :=
  match o with OUnit => OUnit | OInt z => OInt z | ONil a => ONil (D a) end.
Definition Dop1 {a b} (o : op1 a b) : op1 (D a) (D b) :=
  match o with
  | OFst a b => OFst (D a) (D b) | OSnd a b => OSnd (D a) (D b)
  | OInl a b => OInl (D a) (D b) | OInr a b => OInr (D a) (D b)
  | OLen a => OLen (D a) | OUnnode a => OUnnode (D a)
  end.
Definition Dop2 {a b c} (o : op2 a b c) : op2 (D a) (D b) (D c) :=
  match o with
  | OPair a b => OPair (D a) (D b) | OGet a => OGet (D a) | OCons a => OCons (D a) | OSnoc a => OSnoc (D a) | ONode a => ONode (D a)
  | OZip a b => OZip (D a) (D b) | OGather a => OGather (D a) | OIntop o => OIntop o | OIntcmp c => OIntcmp c
  end.
Definition Dop3 {a b c d} (o : op3 a b c d) : op3 (D a) (D b) (D c) (D d) :=
  match o with OSet a => OSet (D a) end.
Definition cscale {G} (c : coef G) (d : tm G (tg T)) : tm G (tg T) :=
  match c with One => d | Coef t => tg_scale T t d end.
Definition dprim1 {G} (p : prim1) : tm (D TR :: G) (D TR) :=
  tpair (tprim1 p (tfst v0)) (tg_scale T (d1t p (tfst v0)) (tsnd v0)).
Definition dprim2 {G} (p : prim2) : tm (D TR :: D TR :: G) (D TR) :=
  let c := d2t p (tfst v1) (tfst v0) in
  tpair (tprim2 p (tfst v1) (tfst v0)) (tg_add T (cscale (fst c) (tsnd v1)) (cscale (snd c) (tsnd v0))).
Definition dprimi {G} (p : primi) : tm (TI :: D TR :: G) (D TR) :=
  tpair (tprimi p (tfst v1) v0) (tg_scale T (dit p (tfst v1) v0) (tsnd v1)).
Definition dsum {G} : tm (TArr (D TR) :: G) (D TR) :=
  tpair (tsum (tmap (tfst v0) v0)) (tfold (tg_add T v1 (tsnd v0)) (tg_zero T _) v0).
Definition ddot {G} : tm (TArr (D TR) :: TArr (D TR) :: G) (D TR) :=
  tpair (tdot (tmap (tfst v0) v1) (tmap (tfst v0) v0))
        (tfold (tg_add T v1 (tg_add T (tg_scale T (tfst (tsnd v0)) (tsnd (tfst v0)))
                                      (tg_scale T (tfst (tfst v0)) (tsnd (tsnd v0)))))
               (tg_zero T _) (tzip v1 v0)).
(* a primitive one of whose arguments is constant: no tangent of that one is made *)
Definition dprim2l {G} (p : prim2) : tm (TR :: D TR :: G) (D TR) :=
  tpair (tprim2 p (tfst v1) v0) (cscale (fst (d2t p (tfst v1) v0)) (tsnd v1)).
Definition dprim2r {G} (p : prim2) : tm (D TR :: TR :: G) (D TR) :=
  tpair (tprim2 p v1 (tfst v0)) (cscale (snd (d2t p v1 (tfst v0))) (tsnd v0)).
Definition dprimi0 {G} (p : primi) : tm (TI :: TR :: G) (D TR) := tpair (tprimi p v1 v0) (tg_zero T _).

(* constant parts keep their text (Activity.v) *)
Fixpoint same (t : ty) : option (D t = t) :=
  match t return option (D t = t) with
  | TU => Some eq_refl | TI => Some eq_refl
  | TProd a b => map2 (fun p q => eq2 TProd p q) (same a) (same b)
  | TSum a b => map2 (fun p q => eq2 TSum p q) (same a) (same b)
  | TArr a => option_map (fun p => eq1 TArr p) (same a)
  | TTree a => option_map (fun p => eq1 TTree p) (same a)
  | _ => None
  end.
(* zero beside the reals of a product, which can be written more than once *)
Fixpoint zeros (t : ty) : forall G, tm G t -> option (tm G (D t)) :=
  match t return forall G, tm G t -> option (tm G (D t)) with
  | TR => fun G e => Some (tpair e (tg_zero T G))
  | TU => fun _ e => Some e
  | TI => fun _ e => Some e
  | TProd a b => fun G e => map2 (fun x y => tpair x y) (@zeros a _ (tfst e)) (@zeros b _ (tsnd e))
  | TFun _ _ => fun _ _ => None
  | TSum a b => fun G e => option_map (fun H => cast (P := tm G) (eq_sym H) e) (same (TSum a b))
  | TArr a => fun G e => option_map (fun H => cast (P := tm G) (eq_sym H) e) (same (TArr a))
  | TTree a => fun G e => option_map (fun H => cast (P := tm G) (eq_sym H) e) (same (TTree a))
  end.
Definition lift (t : ty) : forall G, tm G t -> option (tm G (D t)) :=
  match same t with
  | Some H => fun G e => Some (cast (P := tm G) (eq_sym H) e)
  | None =>
    match t return forall G, tm G t -> option (tm G (D t)) with
    | TR => fun G e => Some (tpair e (tg_zero T G))
    | t => fun G e => if weight t <=? small then option_map (fun z => tlet e z) (@zeros t (t :: G) v0) else None
    end
  end.
Definition keeps {G t} (e : tm G t) : option (tm (map D G) t) := plain D (@Dmem) same e.
(* A decision needs no derivatives: what only decides is computed from primal values.  So each term of type real has two images, [DT], and [PV], which
   gives the value alone.  They are made together: otherwise the extracted macro would take time exponential in the depth of arithmetic. *)
Definition bare G t : Type := match t with TR => tm (map D G) TR | _ => unit end.
Definition value {G} t : tm (map D G) t -> bare G t :=
  match t return tm (map D G) t -> bare G t with TR => fun e => e | _ => fun _ => tt end.
Definition constant {G t} (e : tm G t) (kept : tm (map D G) t) : option (tm (map D G) (D t)) :=
  if computes e then @lift t _ kept else None.
Definition choose {G t} (e : tm G t) (rule : unit -> tm (map D G) (D t) * bare G t) : tm (map D G) (D t) * bare G t :=
  match keeps e with
  | Some kept => (match constant e kept with Some d => d | None => fst (rule tt) end, value kept)
  | None => rule tt
  end.
Definition first {G} t : tm (map D G) (D t) -> bare G t :=
  match t return tm (map D G) (D t) -> bare G t with TR => fun e => tfst e | _ => fun _ => tt end.
Definition twice {G t} (e : tm (map D G) (D t)) : tm (map D G) (D t) * bare G t := (e, first t e).
Arguments twice {G t} & e.
Fixpoint BD {G t} (e : tm G t) : tm (map D G) (D t) * bare G t :=
  choose e (fun _ =>
  match e in tm G t return tm (map D G) (D t) * bare G t with
  | tvar v => twice (tvar (Dmem v))
  | tlam b => twice (tlam (fst (BD b) : tm (map D (_ :: _)) _))
  | tapp f a => twice (tapp (fst (BD f)) (fst (BD a)))
  | tlet a b => twice (tlet (fst (BD a)) (fst (BD b) : tm (map D (_ :: _)) _))
  | tfix b => twice (tfix (fst (BD b) : tm (map D (_ :: _ :: _)) _))
  | tcase s a b => twice (tcase (fst (BD s)) (fst (BD a) : tm (map D (_ :: _)) _) (fst (BD b) : tm (map D (_ :: _)) _))
  | top0 G o => twice (top0 (map D G) (Dop0 o))
  | top1 o a => twice (top1 (Dop1 o) (fst (BD a)))
  | top2 o a b => twice (top2 (Dop2 o) (fst (BD a)) (fst (BD b)))
  | top3 o a b c => twice (top3 (Dop3 o) (fst (BD a)) (fst (BD b)) (fst (BD c)))
  | tloop n z b => twice (tloop (fst (BD n)) (fst (BD z)) (fst (BD b) : tm (map D (_ :: _ :: _)) _))
  | tbuild n b => twice (tbuild (fst (BD n)) (fst (BD b) : tm (map D (_ :: _)) _))
  | tmap b a => twice (tmap (fst (BD b) : tm (map D (_ :: _)) _) (fst (BD a)))
  | tfold b z a => twice (tfold (fst (BD b) : tm (map D (_ :: _ :: _)) _) (fst (BD z)) (fst (BD a)))
  | tlit G m x => (tpair (tlit (map D G) m x) (tg_zero T (map D G)), tlit (map D G) m x)
  | tprim1 p a => let A := BD a in (tlet (fst A) (dprim1 p), tprim1 p (snd A))
  | tprim2 p a b => let A := BD a in let B := BD b in
      (match keeps a, keeps b with
       | Some a, _ => tlet2 a (fst B) (dprim2r p)
       | None, Some b => tlet2 (fst A) b (dprim2l p)
       | None, None => tlet2 (fst A) (fst B) (dprim2 p)
       end, tprim2 p (snd A) (snd B))
  | tprimi p a n => let A := BD a in let N := fst (BD n) in
      (match keeps a with Some a => tlet2 a N (dprimi0 p) | None => tlet2 (fst A) N (dprimi p) end, tprimi p (snd A) N)
  | tcmp c a b => twice (tcmp c (snd (BD a)) (snd (BD b)))
  | tround k a => twice (tround k (snd (BD a)))
  | treal a => let A := fst (BD a) in (tlet A (tpair (treal v0) (tg_zero T _)), treal A)
  | tsum a => twice (tlet (fst (BD a)) dsum)
  | tdot a b => twice (tlet2 (fst (BD a)) (fst (BD b)) ddot)
  end).
Definition DT {G t} (e : tm G t) : tm (map D G) (D t) := fst (BD e).
Definition PV {G t} (e : tm G t) : bare G t := snd (BD e).
End Macro.

(* ---- evaluation of the terms that the rules are made of ----------------------------------- *)
Section Terms.
Variable fuel : nat.
Notation evR e := (ev RO fuel e).
Lemma pair_ev : forall G a b (x : tm G a) (y : tm G b) r p q n1 n2,
  evR x r = Some (p, n1, 0) -> evR y r = Some (q, n2, 0) -> evR (tpair x y) r = Some ((p, q), S (n1 + (n2 + 0)), 0).
Proof. intros G a b x y r p q n1 n2 H1 H2. cbn [ev]. rewrite H1, H2. reflexivity. Qed.
Lemma fst_ev : forall G a b (x : tm G (TProd a b)) r p n,
  evR x r = Some (p, n, 0) -> evR (tfst x) r = Some (fst p, S (n + 0), 0).
Proof. intros G a b x r p n H. cbn [ev]. rewrite H. reflexivity. Qed.
Lemma snd_ev : forall G a b (x : tm G (TProd a b)) r p n,
  evR x r = Some (p, n, 0) -> evR (tsnd x) r = Some (snd p, S (n + 0), 0).
Proof. intros G a b x r p n H. cbn [ev]. rewrite H. reflexivity. Qed.
Lemma let_ev : forall G a b (x : tm G a) (y : tm (a :: G) b) r p q n1 n2,
  evR x r = Some (p, n1, 0) -> evR y (p, r) = Some (q, n2, 0) -> evR (tlet x y) r = Some (q, S (n1 + n2), 0).
Proof. intros G a b x y r p q n1 n2 H1 H2. cbn [ev]. rewrite H1. cbn [bind]. rewrite H2. reflexivity. Qed.
Lemma inl_ev : forall G a b (x : tm G a) r p n, evR x r = Some (p, n, 0) -> evR (tinl b x) r = Some (inl p, S (n + 0), 0).
Proof. intros G a b x r p n H. cbn [ev]. rewrite H. reflexivity. Qed.
Lemma inr_ev : forall G a b (x : tm G b) r p n, evR x r = Some (p, n, 0) -> evR (tinr a x) r = Some (inr p, S (n + 0), 0).
Proof. intros G a b x r p n H. cbn [ev]. rewrite H. reflexivity. Qed.
Lemma casel_ev : forall G a b c (s : tm G (TSum a b)) (x : tm (a :: G) c) (y : tm (b :: G) c) r p q n1 n2,
  evR s r = Some (inl p, n1, 0) -> evR x (p, r) = Some (q, n2, 0) -> evR (tcase s x y) r = Some (q, S (n1 + n2), 0).
Proof. intros G a b c s x y r p q n1 n2 H1 H2. cbn [ev]. rewrite H1. cbn [bind]. rewrite H2. reflexivity. Qed.
Lemma caser_ev : forall G a b c (s : tm G (TSum a b)) (x : tm (a :: G) c) (y : tm (b :: G) c) r p q n1 n2,
  evR s r = Some (inr p, n1, 0) -> evR y (p, r) = Some (q, n2, 0) -> evR (tcase s x y) r = Some (q, S (n1 + n2), 0).
Proof. intros G a b c s x y r p q n1 n2 H1 H2. cbn [ev]. rewrite H1. cbn [bind]. rewrite H2. reflexivity. Qed.
Lemma cmp_ev : forall G c (a b : tm G TR) r x y v n1 n2 n3, evR a r = Some (x, n1, 0) -> evR b r = Some (y, n2, 0) ->
  guard (negb (tie (cmpR x y))) (boolv (decide c (cmpR x y))) = Some (v, n3, 0) ->
  evR (tcmp c a b) r = Some (v, S (n1 + (n2 + n3)), 0).
Proof. intros G c a b r x y v n1 n2 n3 H1 H2 H3. cbn [ev]. rewrite H1, H2. cbn [bind o_cmp RO]. rewrite H3. reflexivity. Qed.
Lemma round_ev : forall G k (a : tm G TR) r x v n1 n3, evR a r = Some (x, n1, 0) ->
  guard (okround k x) (roundR k x) = Some (v, n3, 0) -> evR (tround k a) r = Some (v, S (n1 + n3), 0).
Proof. intros G c a r x v n1 n3 H1 H3. cbn [ev]. rewrite H1. cbn [bind o_okround o_round RO]. rewrite H3. reflexivity. Qed.
Lemma real_ev : forall G (a : tm G TI) r x n, evR a r = Some (x, n, 0) -> evR (treal a) r = Some (IZR x, S (n + 0), 0).
Proof. intros G a r x n H. cbn [ev]. rewrite H. reflexivity. Qed.
Lemma mseq_pure : forall A B (f : A -> M B) (g : A -> B) c, (forall a, f a = Some (g a, c, 0)) ->
  forall l, mseq f l = Some (map g l, length l * c, 0).
Proof.
  intros A B f g c H. induction l; simpl; auto. rewrite H. simpl. rewrite IHl. simpl. rewrite Nat.add_0_r. reflexivity.
Qed.
Lemma mzip_eq : forall A B (l : list A) (l' : list B), length l = length l' ->
  mzip l l' = Some (combine l l', length l, 0).
Proof.
  induction l; intros [|b l'] H; simpl in *; try discriminate; auto. rewrite IHl by lia. simpl. now rewrite Nat.add_0_r.
Qed.
Lemma mzip_len : forall A B (l : list A) (l' : list B) r, mzip l l' = Some r -> length l = length l'.
Proof.
  induction l; intros [|b l'] r H; simpl in *; try discriminate; auto.
  destruct (mzip l l') as [[[q n] k]|] eqn:Eq; try discriminate. f_equal. eapply IHl. eauto.
Qed.
Lemma map_fst_ev : forall G b (a : tm G (TArr (TProd TR b))) r l n, evR a r = Some (l, n, 0) ->
  evR (tmap (tfst v0) a) r = Some (map fst l, S (n + length l * 3), 0).
Proof. intros G b a r l n H. cbn [ev]. rewrite H. cbn [bind]. rewrite (@mseq_pure _ _ _ (fun x : R * den R b => fst x) 3) by reflexivity. reflexivity. Qed.
Lemma fold_ev : forall G a b (e : tm (a :: b :: G) b) (z : tm G b) (l : tm G (TArr a)) r (pz q : den R b) (pl : list (den R a)) n1 n2 n3,
  evR z r = Some (pz, n1, 0) -> evR l r = Some (pl, n2, 0) ->
  mfold (fun x acc => evR e (x, (acc, r))) pl pz = Some (q, n3, 0) -> evR (tfold e z l) r = Some (q, S (n1 + (n2 + n3)), 0).
Proof. intros G a b e z l r pz q pl n1 n2 n3 H1 H2 H3. cbn [ev]. rewrite H1, H2. cbn [bind]. rewrite H3. reflexivity. Qed.
End Terms.
Lemma tlet2_ev : forall X (O : ops X) fuel G a b c (x : tm G a) (y : tm G b) (e : tm (b :: a :: G) c) r,
  ev O fuel (tlet2 x y e) r = ticks 2 (bind (ev O fuel x r) (fun p => bind (ev O fuel y r) (fun q => ev O fuel e (q, (p, r))))).
Proof.
  intros X O fuel G a b c x y e r. unfold tlet2. cbn [ev]. unfold ticks, tick, bind.
  destruct (ev O fuel x r) as [[[p n1] k1]|]; auto. rewrite wk_ok. destruct (ev O fuel y r) as [[[q n2] k2]|]; auto.
  simpl. destruct (ev O fuel e (q, (p, r))) as [[[w n3] k3]|]; auto. simpl.
  apply f_equal. apply f_equal2; [apply f_equal2; [reflexivity|]|]; lia.
Qed.
(* lia compares lengths syntactically; the element types are equal only by computation *)
Ltac name_length x L :=
  repeat match goal with
  | H : context [@length ?A x] |- _ => progress change (@length A x) with L in H
  | |- context [@length ?A x] => progress change (@length A x) with L
  end.
Section Curves.
Variable U : Type.
Lemma mdot_curve : forall (fs fs' : list (U -> R)), length fs = length fs' -> forall u,
  mdot RO (map (fun k => k u) fs) (map (fun k => k u) fs') =
  Some (fold_left Rplus (map (fun k => k u) (map (fun p u => fst p u * snd p u)%R (combine fs fs'))) 0%R, length fs + length fs, 0).
Proof.
  intros fs fs' Hl u. unfold mdot. rewrite mzip_eq by (now rewrite !map_length). cbn [bind]. unfold msum, ticks, ret, sumX.
  rewrite !map_length, combine_length, !map_length, <- Hl, Nat.min_id, Nat.add_0_r.
  apply f_equal. apply f_equal2; auto. apply f_equal2; auto. f_equal. rewrite map_map. clear.
  revert fs'. induction fs; intros [|b fs']; simpl; auto. f_equal. apply IHfs.
Qed.
End Curves.

(* ---- decisions on reals are constant near a point that is not a tie --------------------- *)
Section Decide.
Variable U : NormedModule R_AbsRing.
Variable u0 : U.
Variable K : nat.
Notation diff f l := (@filterdiff R_AbsRing U R_NormedModule f (locally u0) l).
Lemma E_compare : forall c f f' l l', diff f l -> diff f' l' ->
  Es U u0 K 0 (Bool U u0) (fun u => guard (negb (tie (cmpR (f u) (f' u)))) (boolv (decide c (cmpR (f u) (f' u)))))
    (guard (negb (tie (cmpR (f u0) (f' u0)))) (boolv (decide c (cmpR (f u0) (f' u0))))).
Proof.
  intros c f f' l l' Hd Hd' a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->).
  assert (tie (cmpR (f u0) (f' u0)) = false) as Ht by (destruct (tie (cmpR (f u0) (f' u0))); auto).
  pose proof (cmp_open Hd Hd' Ht) as L.
  exists (fun _ => boolv (decide c (cmpR (f u0) (f' u0)))), (boolv (decide c (cmpR (f u0) (f' u0)))), 0.
  split; [|split; [|split]].
  - revert L. apply filter_imp. intros u ->. now rewrite Ht.
  - now rewrite Ht.
  - apply (@Bool_const U u0 (fun _ => decide c (cmpR (f u0) (f' u0)))). apply always. reflexivity.
  - lia.
Qed.
Lemma E_rounding : forall k f l, diff f l ->
  Es U u0 K 0 (Const U u0) (fun u => guard (okround k (f u)) (roundR k (f u))) (guard (okround k (f u0)) (roundR k (f u0))).
Proof.
  intros k f l Hd a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->).
  exists (fun _ => roundR k (f u0)), (roundR k (f u0)), 0. split; [|split; [|split]].
  - generalize (diff_near Hd (round_open k _ Hok)). apply filter_imp. intros u [-> ->]. reflexivity.
  - now rewrite Hok.
  - apply always. reflexivity.
  - lia.
Qed.
End Decide.

(* ---- the relation ---------------------------------------------------------------------- *)
Section LR.
Variable T : tangents.
Variable fuel : nat.
Variable U : NormedModule R_AbsRing.
Variables u0 h : U.
Variable Rep : R -> den R (tg T) -> Prop.
Variable KT K : nat.
Hypothesis HK : 200 + 7 * KT <= K.
Hypothesis rep_zero : forall G r, exists g n, ev RO fuel (tg_zero T G) r = Some (g, n, 0) /\ Rep 0%R g /\ n <= KT.
Hypothesis rep_scale : forall G c d r x g y n1 n2,
  ev RO fuel c r = Some (x, n1, 0) -> ev RO fuel d r = Some (g, n2, 0) -> Rep y g ->
  exists g' n', ev RO fuel (@tg_scale T G c d) r = Some (g', n', 0) /\ Rep (x * y)%R g' /\ n' <= n1 + n2 + KT.
Hypothesis rep_add : forall G c d r g1 g2 y1 y2 n1 n2,
  ev RO fuel c r = Some (g1, n1, 0) -> ev RO fuel d r = Some (g2, n2, 0) -> Rep y1 g1 -> Rep y2 g2 ->
  exists g' n', ev RO fuel (@tg_add T G c d) r = Some (g', n', 0) /\ Rep (y1 + y2)%R g' /\ n' <= n1 + n2 + KT.
Notation diff f l := (@filterdiff R_AbsRing U R_NormedModule f (locally u0) l).
Notation near P := (@locally U u0 P).
Notation evR e := (ev RO fuel e).
Notation Es := (Es U u0 K).
Notation E := (Es 0).
Notation Arr := (Arr U u0).
Notation Tr := (Tr U u0).
Notation near2 := (@near2 U u0).
Notation near1 := (@near1 U u0).
Notation always := (@always U u0).
Notation here := (@here U u0).

Definition Real (f : U -> R) (g : den R (D T TR)) : Prop :=
  fst g = f u0 /\ exists l, diff f l /\ Rep (l h) (snd g).
Fixpoint V (t : ty) : (U -> den R t) -> den R (D T t) -> Prop :=
  match t return (U -> den R t) -> den R (D T t) -> Prop with
  | TR => Real
  | TU => fun _ _ => True
  | TI => Const U u0
  | TProd a b => fun f g => V a (fun u => fst (f u)) (fst g) /\ V b (fun u => snd (f u)) (snd g)
  | TSum a b => fun f g =>
      match g with
      | inl g1 => exists f1, near (fun u => f u = inl (f1 u)) /\ V a f1 g1
      | inr g1 => exists f1, near (fun u => f u = inr (f1 u)) /\ V b f1 g1
      end
  | TFun a b => fun f g => forall f1 g1, V a f1 g1 -> E (V b) (fun u => f u (f1 u)) (g g1)
  | TArr a => Arr (V a)
  | TTree a => Tr (V a)
  end.
Fixpoint VE (G : list ty) : (U -> env R G) -> env R (map (D T) G) -> Prop :=
  match G return (U -> env R G) -> env R (map (D T) G) -> Prop with
  | nil => fun _ _ => True
  | t :: G => fun f g => V t (fun u => fst (f u)) (fst g) /\ VE G (fun u => snd (f u)) (snd g)
  end.
Lemma V_germ : forall t f f' g, near (fun u => f u = f' u) -> V t f g -> V t f' g.
Proof.
  induction t; simpl; intros f f' g H HV; auto.
  - destruct HV as (H1 & l & H2 & H3). split; [now rewrite <- (here H)|].
    exists l. split; auto. eapply diff_germ; eauto.
  - revert H HV. apply near2. congruence.
  - destruct HV as [H1 H2]. split.
    + eapply IHt1; [|exact H1]. revert H. apply near1. intros u ->. reflexivity.
    + eapply IHt2; [|exact H2]. revert H. apply near1. intros u ->. reflexivity.
  - destruct g as [g|g]; destruct HV as (f1 & H1 & H2); exists f1; split; auto; revert H H1; apply near2; congruence.
  - intros f1 g1 H1. eapply E_germ; [|apply HV, H1]. revert H. apply near1. intros u ->. reflexivity.
  - destruct HV as (fs & H1 & H2). exists fs. split; auto. revert H H1. apply near2. congruence.
  - destruct HV as (ft & H1 & H2). exists ft. split; auto. revert H H1. apply near2. congruence.
Qed.

Lemma V_look : forall t G (m : mem t G) f g, VE G f g -> V t (fun u => look m (f u)) (look (Dmem T m) g).
Proof. induction m; simpl; intros f g [H1 H2]; auto. Qed.
Lemma E_kleene : forall a b n (F : U -> (den R a -> M (den R b)) -> den R a -> M (den R b)) J,
  (forall f g x y, V (TFun a b) f g -> V a x y -> E (V b) (fun r => F r (f r) (x r)) (J g y)) ->
  V (TFun a b) (fun r => kleene n (F r)) (kleene n J).
Proof.
  induction n; intros F J H f1 g1 H1; simpl.
  - intros a0 n0 H0. discriminate.
  - apply H; auto.
Qed.


(* ---- data operations ----------------------------------------------------------------------- *)
Lemma V_op0 : forall a (o : op0 a), V a (fun _ => op0v R o) (op0v R (Dop0 T o)).
Proof.
  intros a o. destruct o; simpl; auto.
  - apply always. auto.
  - exists nil. split; [apply always; auto|constructor].
Qed.
Lemma E_op1 : forall a b (o : op1 a b) f g, V a f g -> E (V b) (fun u => op1v R o (f u)) (op1v R (Dop1 T o) g).
Proof.
  intros a b o f g H. destruct o; simpl in *.
  - apply E_ret with (f := fun u => fst (f u)), H.
  - apply E_ret with (f := fun u => snd (f u)), H.
  - apply E_ret with (f := fun u => inl (f u)). exists f. split; auto. apply always. reflexivity.
  - apply E_ret with (f := fun u => inr (f u)). exists f. split; auto. apply always. reflexivity.
  - apply (@E_len U u0 K _ _ (V a) f g H).
  - apply (@E_unnode U u0 K _ _ (V a) f g H).
Qed.
Lemma E_op2 : forall a b c (o : op2 a b c) f g f' g', V a f g -> V b f' g' ->
  E (V c) (fun u => op2v R o (f u) (f' u)) (op2v R (Dop2 T o) g g').
Proof.
  intros a b c o f g f' g' H H'. destruct o; simpl in *.
  - apply E_ret with (f := fun u => (f u, f' u)). split; auto.
  - apply (@E_geta U u0 K _ _ (V a) f g f' g' H H').
  - apply (@E_cons U u0 K _ _ (V a) f g f' g' H H').
  - apply (@E_snoc U u0 K _ _ (V a) f g f' g' H H').
  - apply (@E_node U u0 K _ _ (V a) f g f' g' H H').
  - apply (@E_zipa U u0 K _ _ _ _ (V a) (V b) f g f' g' H H').
  - apply (@E_gather U u0 K _ _ (V a) f g f' g' H H').
  - exact (@E_intop U u0 K o f g f' g' H H').
  - apply E_ret with (f := fun u => boolv (decide c (f u ?= f' u)%Z)). apply (@Bool_const U u0 (fun u => decide c (f u ?= f' u)%Z)).
    revert H H'. apply near2. intros u -> ->. reflexivity.
Qed.
Lemma E_op3 : forall a b c d (o : op3 a b c d) f g f' g' f'' g'', V a f g -> V b f' g' -> V c f'' g'' ->
  E (V d) (fun u => op3v R o (f u) (f' u) (f'' u)) (op3v R (Dop3 T o) g g' g'').
Proof. intros a b c d o f g f' g' f'' g'' H H' H''. destruct o; simpl in *. apply (@E_seta U u0 K _ _ (V a) f g f' g' f'' g'' H H' H''). Qed.

(* ---- primitives ------------------------------------------------------------------------------ *)
Lemma cscale_ev : forall G (c : coef G) (d : tm G (tg T)) r x g y n,
  coef_ev fuel c r x -> evR d r = Some (g, n, 0) -> Rep y g ->
  exists g' n', evR (cscale T c d) r = Some (g', n', 0) /\ Rep (x * y)%R g' /\ n' <= n + KP + KT.
Proof.
  intros G [|t] d r x g y n Hc Hd Hr; simpl in *.
  - subst x. exists g, n. rewrite Rmult_1_l. repeat split; auto. lia.
  - destruct Hc as (m & Hm & Hb). destruct (rep_scale _ _ _ Hm Hd Hr) as (g' & n' & H1 & H2 & H3).
    exists g', n'. repeat split; auto. lia.
Qed.
Lemma E_prim1 : forall G (r : env R G) p f g, Real f g ->
  Es (100 + KT) Real (fun u => guard (ok1 p (f u)) (sem1 p (f u))) (evR (dprim1 T p) (g, r)).
Proof.
  intros G r p f [x d] (Hv & l & Hd & Hr) a0 n0 H0. simpl in Hv, Hr. subst x.
  apply guard_inv in H0 as (Hok & _ & ->).
  destruct (@prim1_coef fuel (D T TR :: G) p (tfst v0) ((f u0, d), r) (f u0) Hok eq_refl) as (n1 & E1 & B1).
  destruct (@rep_scale _ _ (tsnd v0) _ _ _ _ _ 2 E1 eq_refl Hr) as (g' & n2 & E2 & R2 & B2).
  exists (fun u => sem1 p (f u)), (sem1 p (f u0), g'). eexists. split; [|split; [|split]].
  - generalize (diff_near Hd (prim1_open p _ Hok)). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - eapply pair_ev; [|exact E2]. simpl. unfold guard. rewrite Hok. reflexivity.
  - split; [reflexivity|]. exists (fun k => d1R p (f u0) * l k)%R. split; [|exact R2].
    apply diff_comp; auto. apply prim1_derive, Hok.
  - unfold KP in *. lia.
Qed.
Lemma E_prim2 : forall G (r : env R G) p f g f' g', Real f g -> Real f' g' ->
  Es (180 + 3 * KT) Real (fun u => guard (ok2 p (f u) (f' u)) (sem2 p (f u) (f' u))) (evR (dprim2 T p) (g', (g, r))).
Proof.
  intros G r p f [x d] f' [x' d'] (Hv & l & Hd & Hr) (Hv' & l' & Hd' & Hr') a0 n0 H0.
  simpl in Hv, Hr, Hv', Hr'. subst x x'. apply guard_inv in H0 as (Hok & _ & ->).
  destruct (@prim2_coef fuel (D T TR :: D T TR :: G) p (tfst v1) (tfst v0) ((f' u0, d'), ((f u0, d), r)) (f u0) (f' u0) 2 2 Hok (le_n 2) (le_n 2) eq_refl eq_refl) as [C1 C2].
  destruct (@cscale_ev _ _ (tsnd v1) _ _ _ _ 2 C1 eq_refl Hr) as (g1 & n1 & E1 & R1 & B1).
  destruct (@cscale_ev _ _ (tsnd v0) _ _ _ _ 2 C2 eq_refl Hr') as (g2 & n2 & E2 & R2 & B2).
  destruct (rep_add _ _ _ E1 E2 R1 R2) as (g3 & n3 & E3 & R3 & B3).
  exists (fun u => sem2 p (f u) (f' u)), (sem2 p (f u0) (f' u0), g3). eexists. split; [|split; [|split]].
  - generalize (prim2_open p Hd Hd' Hok). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - eapply pair_ev; [|exact E3]. simpl. unfold guard. rewrite Hok. reflexivity.
  - split; [reflexivity|]. eexists. split; [exact (prim2_diff p Hd Hd' Hok)|exact R3].
  - unfold KP in *. lia.
Qed.
Lemma E_primi : forall G (r : env R G) p f g f' k, Real f g -> near (fun u => f' u = k) ->
  Es (180 + 3 * KT) Real (fun u => guard (oki p (f u) (f' u)) (semi p (f u) (f' u))) (evR (dprimi T p) (k, (g, r))).
Proof.
  intros G r p f [x d] f' k (Hv & l & Hd & Hr) Hk. apply E_germ with (F := fun u => guard (oki p (f u) k) (semi p (f u) k)).
  { revert Hk. apply near1. intros u ->. reflexivity. }
  intros a0 n0 H0. simpl in Hv, Hr. subst x. apply guard_inv in H0 as (Hok & _ & ->).
  destruct (@primi_coef fuel p (TI :: D T TR :: G) (tfst v1) v0 (k, ((f u0, d), r)) _ _ 2 1 Hok eq_refl eq_refl) as (n1 & E1 & B1).
  destruct (@rep_scale _ _ (tsnd v1) _ _ _ _ _ 2 E1 eq_refl Hr) as (g' & n2 & E2 & R2 & B2).
  exists (fun u => semi p (f u) k), (semi p (f u0) k, g'). eexists. split; [|split; [|split]].
  - generalize (diff_near Hd (primi_open _ _ _ Hok)). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - eapply pair_ev; [|exact E2]. simpl. unfold guard. rewrite Hok. reflexivity.
  - split; [reflexivity|]. exists (fun q => diR p (f u0) k * l q)%R. split; [|exact R2].
    apply diff_comp with (phi := fun x => semi p x k); auto. apply primi_derive, Hok.
  - unfold KP in *. lia.
Qed.
Lemma E_prim2l : forall G (r : env R G) p f g c, Real f g ->
  Es (180 + 3 * KT) Real (fun u => guard (ok2 p (f u) c) (sem2 p (f u) c)) (evR (dprim2l T p) (c, (g, r))).
Proof.
  intros G r p f [x d] c (Hv & l & Hd & Hr) a0 n0 H0. simpl in Hv, Hr. subst x. apply guard_inv in H0 as (Hok & _ & ->).
  destruct (@prim2_coef fuel (TR :: D T TR :: G) p (tfst v1) v0 (c, ((f u0, d), r)) (f u0) c 2 1 Hok (le_n 2) (le_S _ _ (le_n 1)) eq_refl eq_refl) as [C1 _].
  destruct (@cscale_ev _ _ (tsnd v1) _ _ _ _ 2 C1 eq_refl Hr) as (g1 & n1 & E1 & R1 & B1).
  pose proof (diff_const U u0 c) as Hc.
  exists (fun u => sem2 p (f u) c), (sem2 p (f u0) c, g1). eexists. split; [|split; [|split]].
  - generalize (prim2_open p Hd Hc Hok). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - eapply pair_ev; [|exact E1]. simpl. unfold guard. rewrite Hok. reflexivity.
  - split; [reflexivity|]. eexists. split; [exact (prim2_diff p Hd Hc Hok)|]. cbv beta. rewrite Rmult_0_r, Rplus_0_r. exact R1.
  - unfold KP in *. lia.
Qed.
Lemma E_prim2r : forall G (r : env R G) p c f g, Real f g ->
  Es (180 + 3 * KT) Real (fun u => guard (ok2 p c (f u)) (sem2 p c (f u))) (evR (dprim2r T p) (g, (c, r))).
Proof.
  intros G r p c f [x d] (Hv & l & Hd & Hr) a0 n0 H0. simpl in Hv, Hr. subst x. apply guard_inv in H0 as (Hok & _ & ->).
  destruct (@prim2_coef fuel (D T TR :: TR :: G) p v1 (tfst v0) ((f u0, d), (c, r)) c (f u0) 1 2 Hok (le_S _ _ (le_n 1)) (le_n 2) eq_refl eq_refl) as [_ C2].
  destruct (@cscale_ev _ _ (tsnd v0) _ _ _ _ 2 C2 eq_refl Hr) as (g1 & n1 & E1 & R1 & B1).
  pose proof (diff_const U u0 c) as Hc.
  exists (fun u => sem2 p c (f u)), (sem2 p c (f u0), g1). eexists. split; [|split; [|split]].
  - generalize (prim2_open p Hc Hd Hok). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - eapply pair_ev; [|exact E1]. simpl. unfold guard. rewrite Hok. reflexivity.
  - split; [reflexivity|]. eexists. split; [exact (prim2_diff p Hc Hd Hok)|]. cbv beta. rewrite Rmult_0_r, Rplus_0_l. exact R1.
  - unfold KP in *. lia.
Qed.
Lemma E_primi0 : forall G (r : env R G) p c f' k, near (fun u => f' u = k) ->
  Es (180 + 3 * KT) Real (fun u => guard (oki p c (f' u)) (semi p c (f' u))) (evR (dprimi0 T p) (k, (c, r))).
Proof.
  intros G r p c f' k Hk. apply E_germ with (F := fun u => guard (oki p c k) (semi p c k)).
  { revert Hk. apply near1. intros u ->. reflexivity. }
  intros a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->).
  destruct (@rep_zero (TI :: TR :: G) (k, (c, r))) as (gz & nz & Ez & Rz & Bz).
  exists (fun u => semi p c k), (semi p c k, gz). eexists. split; [|split; [|split]].
  - apply always. intros u. unfold guard. now rewrite Hok.
  - eapply pair_ev; [|exact Ez]. simpl. unfold guard. rewrite Hok. reflexivity.
  - split; [reflexivity|]. exists (fun _ => 0%R). split; [apply diff_const|exact Rz].
  - lia.
Qed.
Lemma Real_const : forall c g, Rep 0%R g -> Real (fun _ => c) (c, g).
Proof. intros c g H. split; [reflexivity|]. exists (fun _ => 0%R). split; [apply diff_const|exact H]. Qed.

(* ---- array primitives with their own rule ------------------------------------------------------ *)
(* an element adds, within c steps, the derivative of its curve to the accumulated tangent *)
Definition adds {B} (c : nat) (J : B -> den R (tg T) -> M (den R (tg T))) (f : U -> R) (b : B) : Prop :=
  exists l, diff f l /\ forall acc y, Rep y acc ->
    exists acc' n, J b acc = Some (acc', n, 0) /\ Rep (y + l h)%R acc' /\ n <= c.
Lemma fold_adds : forall B c (J : B -> den R (tg T) -> M (den R (tg T))) fs bs, Forall2 (adds c J) fs bs ->
  forall z lz acc, diff z lz -> Rep (lz h) acc ->
  exists l acc' n, diff (fun u => fold_left Rplus (map (fun k => k u) fs) (z u)) l /\
    mfold J bs acc = Some (acc', n, 0) /\ Rep (l h) acc' /\ n <= length bs * (c + 1).
Proof.
  intros B c J fs bs H. induction H as [|f b fs bs (l & Hl & Ha) HF IH]; intros z lz acc Hz Hr; simpl.
  - exists lz, acc, 0. auto.
  - destruct (Ha _ _ Hr) as (acc1 & n1 & E1 & R1 & B1).
    destruct (IH (fun u => z u + f u)%R (fun k => lz k + l k)%R acc1 (diff_plus Hz Hl) R1) as (l2 & acc2 & n2 & D2 & E2 & R2 & B2).
    exists l2, acc2, (S n1 + n2). rewrite E1. simpl. rewrite E2. split; [exact D2|split; [reflexivity|split; [exact R2|]]]. rewrite Nat.mul_succ_l. lia.
Qed.
Definition JS {G} (r : env R G) (x : den R (D T TR)) (acc : den R (tg T)) := evR (tg_add T v1 (tsnd v0)) (x, (acc, r)).
Lemma adds_sum : forall G (r : env R G) f g, Real f g -> adds (KT + 3) (JS r) f g.
Proof.
  intros G r f [x d] (Hv & l & Hd & Hr). exists l. split; auto. intros acc y Hy.
  destruct (@rep_add (D T TR :: tg T :: G) v1 (tsnd v0) ((x, d), (acc, r)) _ _ _ _ 1 2 eq_refl eq_refl Hy Hr) as (g' & n & E1 & R1 & B1).
  exists g', n. repeat split; auto. lia.
Qed.
Lemma E_sum : forall G (r : env R G) f g, V (TArr TR) f g ->
  Es (100 + KT) Real (fun u => msum RO (f u)) (evR (dsum T) (g, r)).
Proof.
  intros G r f g (fs & L & HF).
  apply E_germ with (F := fun u => msum RO (map (fun k => k u) fs)); [revert L; apply near1; intros u ->; reflexivity|].
  intros a0 n0 H0. unfold msum in H0. simpl in H0. inversion H0; subst. clear H0. rewrite map_length, Nat.add_0_r.
  destruct (@rep_zero (TArr (D T TR) :: G) (g, r)) as (gz & nz & Ez & Rz & Bz).
  assert (Forall2 (adds (KT + 3) (@JS (TArr (D T TR) :: G) (g, r))) fs g) as HA.
  { generalize ((g, r) : env R (TArr (D T TR) :: G)). intros rr. clear Ez L. induction HF; constructor; auto. now apply adds_sum. }
  destruct (fold_adds HA (diff_const U u0 0) Rz) as (l & acc & n & Dl & Ea & Ra & Ba).
  exists (fun u => fold_left Rplus (map (fun k => k u) fs) 0%R), (fold_left Rplus (map fst g) 0%R, acc). eexists. split; [|split; [|split]].
  - apply always. intros u. unfold msum, sumX, ticks, ret. rewrite map_length, Nat.add_0_r. reflexivity.
  - eapply pair_ev; [|eapply fold_ev; [exact Ez|reflexivity|exact Ea]].
    cbn [ev]. pose proof (@map_fst_ev fuel (TArr (TProd TR (tg T)) :: G) (tg T) v0 (g, r) g 1 eq_refl) as Em. cbn [ev] in Em. rewrite Em.
    cbn [bind]. unfold msum. cbn [ticks ret tick]. reflexivity.
  - split; [|exists l; auto]. simpl. f_equal. clear - HF. induction HF as [|f g fs gs [Hv _] HF IH]; simpl; congruence.
  - pose proof (Forall2_len HF) as Hl. rewrite map_length.
    set (N := @length (den R (D T TR)) g) in Hl. set (N' := @length (U -> den R TR) fs) in Hl. name_length g N. name_length fs N'.
    clearbody N N'. subst N'. pose proof (Nat.mul_le_mono_r _ _ N HK). lia.
Qed.
Definition JD {G} (r : env R G) (x : den R (TProd (D T TR) (D T TR))) (acc : den R (tg T)) :=
  evR (tg_add T v1 (tg_add T (tg_scale T (tfst (tsnd v0)) (tsnd (tfst v0))) (tg_scale T (tfst (tfst v0)) (tsnd (tsnd v0))))) (x, (acc, r)).
Lemma adds_dot : forall G (r : env R G) f g f' g', Real f g -> Real f' g' ->
  adds (4 * KT + 20) (JD r) (fun u => f u * f' u)%R (g, g').
Proof.
  intros G r f [x d] f' [x' d'] (Hv & l & Hd & Hr) (Hv' & l' & Hd' & Hr'). simpl in *. subst x x'.
  eexists. split; [apply (diff_mult Hd Hd')|]. intros acc y Hy. simpl.
  set (rr := (((f u0, d), (f' u0, d')), (acc, r)) : env R (TProd (D T TR) (D T TR) :: tg T :: G)).
  destruct (@rep_scale _ (tfst (tsnd v0)) (tsnd (tfst v0)) rr _ _ _ 3 3 eq_refl eq_refl Hr) as (g1 & n1 & E1 & R1 & B1).
  destruct (@rep_scale _ (tfst (tfst v0)) (tsnd (tsnd v0)) rr _ _ _ 3 3 eq_refl eq_refl Hr') as (g2 & n2 & E2 & R2 & B2).
  destruct (rep_add _ _ _ E1 E2 R1 R2) as (g3 & n3 & E3 & R3 & B3).
  destruct (@rep_add _ v1 _ rr _ _ _ _ 1 _ eq_refl E3 Hy R3) as (g4 & n4 & E4 & R4 & B4).
  exists g4, n4. repeat split; auto. lia.
Qed.
Lemma E_dot : forall G (r : env R G) f g f' g', V (TArr TR) f g -> V (TArr TR) f' g' ->
  Es (100 + KT) Real (fun u => mdot RO (f u) (f' u)) (evR (ddot T) (g', (g, r))).
Proof.
  intros G r f g f' g' (fs & L & HF) (fs' & L' & HF').
  apply E_germ with (F := fun u => mdot RO (map (fun k => k u) fs) (map (fun k => k u) fs')).
  { revert L L'. apply near2. intros u -> ->. reflexivity. }
  intros a0 n0 H0.
  assert (length fs = length fs') as Hl.
  { unfold mdot in H0. apply bind_inv in H0 as (q & n1 & n2 & H1 & _). apply mzip_len in H1. now rewrite !map_length in H1. }
  pose proof (Forall2_len HF) as Hl1. pose proof (Forall2_len HF') as Hl2.
  assert (forall u, mdot RO (map (fun k => k u) fs) (map (fun k => k u) fs') =
    Some (fold_left Rplus (map (fun k => k u) (map (fun p u => fst p u * snd p u)%R (combine fs fs'))) 0%R, length fs + length fs, 0)) as HM.
  { exact (mdot_curve fs fs' Hl). }
  rewrite HM in H0. inversion H0; subst. clear H0.
  destruct (@rep_zero (TArr (D T TR) :: TArr (D T TR) :: G) (g', (g, r))) as (gz & nz & Ez & Rz & Bz).
  assert (Forall2 (adds (4 * KT + 20) (@JD (TArr (D T TR) :: TArr (D T TR) :: G) (g', (g, r)))) (map (fun p u => fst p u * snd p u)%R (combine fs fs')) (combine g g')) as HA.
  { generalize ((g', (g, r)) : env R (TArr (D T TR) :: TArr (D T TR) :: G)). intros rr. clear - HF HF' HK rep_zero rep_add rep_scale. revert fs' g' HF'.
    induction HF; intros fs' gs' HF'; destruct HF'; simpl; constructor; auto. now apply adds_dot. }
  destruct (fold_adds HA (diff_const U u0 0) Rz) as (l & acc & n & Dl & Ea & Ra & Ba).
  assert (@length (den R (D T TR) * den R (D T TR)) (combine g g') = length fs) as Hc 
    by (rewrite combine_length; exact (eq_trans (f_equal2 Nat.min (eq_sym Hl1) (eq_trans (eq_sym Hl2) (eq_sym Hl))) (Nat.min_id _))).
  assert (n <= length fs * (4 * KT + 20 + 1)) as Ba' by (rewrite <- Hc; exact Ba). clear Ba Hc.
  eexists _, (fold_left Rplus (map (fun p => fst p * snd p)%R (combine (map fst g) (map fst g'))) 0%R, acc), _.
  split; [|split; [|split]].
  - apply always. intros u. apply HM.
  - eapply pair_ev; [|eapply fold_ev; [exact Ez| |exact Ea]].
    + pose proof (@map_fst_ev fuel (TArr (TProd TR (tg T)) :: TArr (TProd TR (tg T)) :: G) (tg T) v1 (g', (g, r)) g 1 eq_refl) as Em.
      pose proof (@map_fst_ev fuel (TArr (TProd TR (tg T)) :: TArr (TProd TR (tg T)) :: G) (tg T) v0 (g', (g, r)) g' 1 eq_refl) as Em'.
      cbn [ev] in *. rewrite Em, Em'. cbn [bind]. unfold mdot. rewrite mzip_eq by (rewrite !map_length; exact (eq_trans (eq_sym Hl1) (eq_trans Hl Hl2))).
      cbn [bind]. unfold msum. cbn [ticks ret tick bind]. reflexivity.
    + simpl. rewrite mzip_eq by exact (eq_trans (eq_sym Hl1) (eq_trans Hl Hl2)). reflexivity.
  - split; [|exists l; auto]. simpl. f_equal. clear - HF HF'. revert fs' g' HF'.
    induction HF as [|f g fs gs [Hv _] HF IH]; intros fs' gs' HF'; destruct HF' as [|f' g' fs' gs' [Hv' _] HF']; simpl; auto.
    f_equal; auto. congruence.
  - rewrite ?map_length, ?combine_length, ?map_length.
    set (N := @length (den R (D T TR)) g) in *. set (N' := @length (den R (D T TR)) g') in *. set (N1 := @length (U -> den R TR) fs) in *.
    set (N1' := @length (U -> den R TR) fs') in *. name_length g N. name_length g' N'. name_length fs N1. name_length fs' N1'.
    clearbody N N' N1 N1'. subst N N' N1'. pose proof (Nat.mul_le_mono_r _ _ N1 HK). lia.
Qed.

(* ---- constant parts -------------------------------------------------------------------------------- *)
Lemma V_same : forall t H f g, same T t = Some H -> V t f g -> near (fun u => f u = cast (P := den R) H g).
Proof.
  induction t; simpl; intros H f g Hs HV; try discriminate.
  - apply some_inj in Hs. subst H. apply always. intros u. simpl. destruct (f u), g. reflexivity.
  - apply some_inj in Hs. subst H. exact HV.
  - apply map2_some in Hs as (p & q & H1 & H2 & ->). destruct HV as [V1 V2].
    generalize (IHt1 _ _ _ H1 V1) (IHt2 _ _ _ H2 V2). apply near2. intros u E1 E2.
    exact (eq_trans (surjective_pairing (f u)) (eq_trans (f_equal2 pair E1 E2) (eq_sym (cast_pair p q g)))).
  - apply map2_some in Hs as (p & q & H1 & H2 & ->).
    destruct g as [g|g]; destruct HV as (f1 & L & V1); [generalize (IHt1 _ _ _ H1 V1)|generalize (IHt2 _ _ _ H2 V1)];
      revert L; apply near2; intros u E1 E2; rewrite E1;
      [exact (eq_trans (f_equal inl E2) (eq_sym (cast_sum p q (inl g))))|exact (eq_trans (f_equal inr E2) (eq_sym (cast_sum p q (inr g))))].
  - apply option_map_some in Hs as (p & H1 & ->). rewrite cast_array. exact (@Arr_near U u0 _ _ (V t) (fun x => cast (P := den R) p x) (fun f g => IHt p f g H1) f g HV).
  - apply option_map_some in Hs as (p & H1 & ->). rewrite cast_tree. exact (@Tr_near U u0 _ _ (V t) (fun x => cast (P := den R) p x) (fun f g => IHt p f g H1) f g HV).
Qed.
Lemma V_same_const : forall t H v, same T t = Some H -> V t (fun _ => v) (cast (P := den R) (eq_sym H) v).
Proof.
  induction t; simpl; intros H v Hs; try discriminate; auto.
  - apply some_inj in Hs. subst H. apply always. reflexivity.
  - apply map2_some in Hs as (p & q & H1 & H2 & ->). rewrite cast_pair_sym. split; simpl; auto.
  - apply map2_some in Hs as (p & q & H1 & H2 & ->). rewrite cast_sum_sym.
    destruct v as [v|v]; exists (fun _ => v); (split; [apply always; reflexivity|auto]).
  - apply option_map_some in Hs as (p & H1 & ->). rewrite cast_array_sym. exact (@Arr_const U u0 _ _ (V t) (fun x => cast (P := den R) (eq_sym p) x) (fun v => IHt p v H1) v).
  - apply option_map_some in Hs as (p & H1 & ->). rewrite cast_tree_sym. exact (@Tr_const U u0 _ _ (V t) (fun x => cast (P := den R) (eq_sym p) x) (fun v => IHt p v H1) v).
Qed.
Lemma VE_same : forall G f g, VE G f g ->
  near (fun u => forall t (m : mem t G) H, same T t = Some H -> look m (f u) = cast (P := den R) H (look (Dmem T m) g)).
Proof.
  induction G as [|a G IH]; intros f g HG.
  - apply always. intros u t m. inversion m.
  - destruct HG as [Ha HG]. simpl in Ha.
    assert (near (fun u => forall H, same T a = Some H -> fst (f u) = cast (P := den R) H (fst g))) as La.
    { destruct (same T a) as [H|] eqn:Es.
      - generalize (@V_same _ _ _ _ Es Ha). apply near1. intros u E1 H' E2. apply some_inj in E2. subst H'. exact E1.
      - apply always. discriminate. }
    generalize (IH _ _ HG). revert La. apply near2. intros u H1 H2 t m. revert H1 H2. generalize (f u) as r. clear - g. intros r H1 H2.
    revert g r H1 H2. apply (mem_inv (fun a m => forall (g : env R (map (D T) (a :: G))) (r : env R (a :: G)),
      (forall H, same T a = Some H -> fst r = cast (P := den R) H (fst g)) ->
      (forall t (m : mem t G) H, same T t = Some H -> look m (snd r) = cast (P := den R) H (look (Dmem T m) (snd g))) ->
      forall H, same T t = Some H -> look m r = cast (P := den R) H (look (Dmem T m) g))); simpl; auto.
Qed.
Lemma keeps_near : forall G t (e : tm G t) e' f g, VE G f g -> keeps T e = Some e' -> near (fun u => evR e (f u) = evR e' g).
Proof.
  intros G t e e' f g HG He. generalize (@VE_same _ _ _ HG). apply near1. intros u Hu. symmetry.
  unfold keeps, plain in He. destruct (active 0 e); [discriminate|]. eapply prn_ok; [exact He|]. apply keep_ok. intros t0 m H. apply Hu.
Qed.
(* how long it takes: each real needs a zero, and is reached by as many projections as there are pairs around it *)
Lemma zeros_ok : forall t G (e : tm G t) d r v n, @zeros T t G e = Some d -> evR e r = Some (v, n, 0) ->
  exists g n', evR d r = Some (g, n', 0) /\ V t (fun _ => v) g /\ n' <= weight t * KT + (1 + 2 * weight t) * (n + weight t + 2).
Proof.
  induction t; intros G e d r v n Hd He; cbn [zeros] in Hd; try discriminate Hd;
    try (apply option_map_some in Hd as (H & Es & ->); exists (cast (P := den R) (eq_sym H) v), n;
    (split; [exact (@ev_cast _ _ _ _ _ _ (eq_sym H) _ _ _ _ _ He)|split; [exact (@V_same_const _ _ v Es)|cbn [weight]; lia]])).
  - inversion Hd; subst. destruct (@rep_zero G r) as (gz & nz & Ez & Rz & Bz).
    exists (v, gz). eexists. split; [exact (pair_ev fuel _ _ _ He Ez)|]. split; [apply Real_const, Rz|]. cbn [weight]. lia.
  - apply some_inj in Hd. subst d. exists v, n. split; [exact He|]. split; [exact I|cbn [weight]; lia].
  - apply some_inj in Hd. subst d. exists v, n. split; [exact He|]. split; [apply always; reflexivity|cbn [weight]; lia].
  - apply map2_some in Hd as (x & y & H1 & H2 & ->).
    destruct (IHt1 _ _ _ r (fst v) (S (n + 0)) H1) as (g1 & n1 & E1 & V1 & B1); [exact (fst_ev fuel _ _ He)|].
    destruct (IHt2 _ _ _ r (snd v) (S (n + 0)) H2) as (g2 & n2 & E2 & V2 & B2); [exact (snd_ev fuel _ _ He)|].
    exists (g1, g2). eexists. split; [exact (pair_ev fuel _ _ _ E1 E2)|]. split; [split; assumption|]. cbn [weight].
    generalize dependent (weight t1). generalize dependent (weight t2). clear. intros w2 B2 w1 B1. nia.
Qed.
Lemma lift_ok : forall t G (e : tm G t) d r v n, @lift T t G e = Some d -> evR e r = Some (v, n, 0) ->
  exists g n', evR d r = Some (g, n', 0) /\ V t (fun _ => v) g /\ n' <= n + 7 * KT + 160.
Proof.
  intros t G e d r v n Hd He.
  assert (forall w, w <= small -> w * KT + (1 + 2 * w) * (1 + w + 2) <= 7 * KT + 150) as Hb.
  { intros w H. unfold small in H. do 8 (destruct w as [|w]; [lia|]). lia. }
  assert (forall t G (e : tm G t) r v n d, (if weight t <=? small then option_map (fun z => tlet e z) (@zeros T t (t :: G) v0) else None) = Some d -> evR e r = Some (v, n, 0) ->
    exists g n', evR d r = Some (g, n', 0) /\ V t (fun _ => v) g /\ n' <= n + 7 * KT + 160) as HA.
  { clear t G e d r v n Hd He. intros t G e r v n d Hd He. destruct (weight t <=? small) eqn:Hw; [|discriminate Hd]. apply Nat.leb_le in Hw.
    apply option_map_some in Hd as (z & Hz & ->).
    destruct (@zeros_ok _ _ _ _ ((v, r) : env R (t :: G)) v 1 Hz eq_refl) as (g & n' & E1 & V1 & B1).
    exists g. eexists. split; [exact (let_ev fuel _ _ _ He E1)|]. split; [exact V1|]. specialize (Hb _ Hw). lia. }
  destruct t; unfold lift in Hd;
    match type of Hd with context [same T ?t] => destruct (same T t) as [H|] eqn:Es end;
    try (inversion Hd; subst; exists (cast (P := den R) (eq_sym H) v), n;
      split; [exact (@ev_cast _ _ _ _ _ _ (eq_sym H) _ _ _ _ _ He)|split; [exact (@V_same_const _ _ v Es)|lia]]);
    try (exact (HA _ _ _ _ _ _ _ Hd He)).
  inversion Hd; subst. destruct (@rep_zero G r) as (gz & nz & Ez & Rz & Bz).
    exists (v, gz). eexists. split; [exact (pair_ev fuel _ _ _ He Ez)|]. split; [apply Real_const, Rz|]. lia.
Qed.
Lemma E_constant : forall G t (e : tm G t) e' d f g, VE G f g -> keeps T e = Some e' -> constant T e e' = Some d -> E (V t) (fun u => evR e (f u)) (evR d g).
Proof.
  intros G t e e' d f g HG Hk Hc a0 n0 H0. unfold constant in Hc. destruct (computes e); [|discriminate].
  pose proof (@keeps_near _ _ _ _ _ _ HG Hk) as L.
  rewrite (here L) in H0. destruct (@lift_ok _ _ _ _ _ _ _ Hc H0) as (g' & n' & E1 & V1 & B1).
  exists (fun _ => a0), g', n'. split; [|split; [exact E1|split; [exact V1|]]].
  - revert L. apply near1. intros u ->. exact H0.
  - pose proof (@ev_step _ _ _ _ _ _ _ _ _ _ H0) as Hn.
    destruct n0 as [|n1]; [lia|]. rewrite Nat.mul_succ_r. assert (n1 <= K * n1) by (destruct K; [lia|rewrite Nat.mul_succ_l; lia]). lia.
Qed.
(* the value of a constant argument *)
Lemma E_keeps : forall G t (e : tm G t) e' f g, VE G f g -> keeps T e = Some e' ->
  E (fun F v => near (fun u => F u = v)) (fun u => evR e (f u)) (evR e' g).
Proof.
  intros G t e e' f g HG Hk a0 n0 H0. pose proof (@keeps_near _ _ _ _ _ _ HG Hk) as L. rewrite (here L) in H0.
  exists (fun _ => a0), a0, n0. split; [revert L; apply near1; intros u ->; exact H0|].
  split; [exact H0|split; [apply always; reflexivity|]]. pose proof (Nat.mul_le_mono_r 1 K n0). lia.
Qed.

(* ---- images without a tangent ---------------------------------------------------------------------- *)
Definition Val (f : U -> R) (x : R) : Prop := x = f u0 /\ exists l, diff f l.
Definition EV (t : ty) (G : list ty) : (U -> M (den R t)) -> bare T G t -> env R (map (D T) G) -> Prop :=
  match t return (U -> M (den R t)) -> bare T G t -> env R (map (D T) G) -> Prop with
  | TR => fun F e g => Es 1 Val F (evR e g)
  | _ => fun _ _ _ => True
  end.
Lemma EV_first : forall t G F (e : tm (map (D T) G) (D T t)) g, E (V t) F (evR e g) -> EV t G F (first T t e) g.
Proof.
  intros t G F e g H. destruct t; simpl; auto. intros a0 n0 H0. destruct (H _ _ H0) as (f & [x d] & n & L & E1 & (Hv & l & Hd & _) & B). simpl in Hv. subst x.
  exists f, (f u0). eexists. split; [exact L|split; [exact (fst_ev fuel _ _ E1)|split; [split; eauto|lia]]].
Qed.
Lemma EV_keeps : forall G t (e : tm G t) e' f g, VE G f g -> keeps T e = Some e' -> EV t G (fun u => evR e (f u)) (value T e') g.
Proof.
  intros G t e e' f g HG Hk. destruct t; simpl; auto. intros a0 n0 H0.
  destruct (@E_keeps _ TR _ _ _ _ HG Hk _ _ H0) as (F & v & n & L & E1 & N & B). exists F, v, n. split; [exact L|split; [exact E1|split; [|lia]]].
  split; [symmetry; exact (here N)|]. exists (fun _ => 0%R). apply (diff_germ (f := fun _ => v)); [revert N; apply near1; auto|apply diff_const].
Qed.
Lemma E_choose : forall G t (e : tm G t) rule f g, VE G f g -> E (V t) (fun u => evR e (f u)) (evR (fst (rule tt)) g) ->
  E (V t) (fun u => evR e (f u)) (evR (fst (choose T e rule)) g).
Proof.
  intros G t e rule f g HG H. unfold choose. destruct (keeps T e) as [e'|] eqn:Hk; [|exact H]. cbn [fst].
  destruct (constant T e e') as [d|] eqn:Hc; [|exact H]. exact (@E_constant _ _ _ _ _ _ _ HG Hk Hc).
Qed.
Lemma EV_choose : forall G t (e : tm G t) rule f g, VE G f g -> EV t G (fun u => evR e (f u)) (snd (rule tt)) g ->
  EV t G (fun u => evR e (f u)) (snd (choose T e rule)) g.
Proof. intros G t e rule f g HG H. unfold choose. destruct (keeps T e) as [e'|] eqn:Hk; [|exact H]. exact (@EV_keeps _ _ _ _ _ _ HG Hk). Qed.
Lemma Es_more : forall s s' A B (P : (U -> A) -> B -> Prop) F m, s <= s' -> Es s P F m -> Es s' P F m.
Proof.
  intros s s' A B P F m Hs H a0 n0 H0. destruct (H _ _ H0) as (f & g & n & H1 & H2 & H3 & H4). exists f, g, n. repeat (split; auto). lia.
Qed.
(* a step whose arguments are given with a little more than they are due *)
Lemma EV_bind : forall s A B A' B' (P : (U -> A) -> B -> Prop) (Q : (U -> A') -> B' -> Prop) F H m k,
  Es 1 P F m -> (forall f x, P f x -> Es s Q (fun u => H u (f u)) (k x)) -> Es (s + 1) Q (fun u => bind (F u) (H u)) (bind m k).
Proof.
  intros s A B A' B' P Q F H m k H1 H2 a0 n0 H0. apply bind_inv in H0 as (a1 & n1 & n2 & E1 & E2 & ->).
  destruct (H1 _ _ E1) as (f & x & n & L & Em & HP & B1).
  assert (f u0 = a1) by (pose proof (here L) as Q0; simpl in Q0; congruence). subst a1.
  destruct (H2 _ _ HP _ _ E2) as (f' & x' & n' & L' & Ek & HQ & B2).
  exists f', x', (n + n'). split; [|split; [exact (bind_eq _ Em Ek)|split; [exact HQ|rewrite Nat.mul_add_distr_l; lia]]].
  revert L L'. apply near2. intros u -> X. simpl. now rewrite X.
Qed.
Lemma EV_tick : forall s A B (P : (U -> A) -> B -> Prop) F m, s <= 3 -> Es s P F m -> E P (fun u => tick (F u)) (tick m).
Proof.
  intros s A B P F m Hs H a0 n0 H0. apply tick_inv in H0 as (n1 & H0 & ->). destruct (H _ _ H0) as (f & g & n & H1 & H2 & H3 & H4).
  exists f, g, (S n). split; [revert H1; apply near1; intros u ->; reflexivity|]. split; [now rewrite H2|split; [exact H3|]]. rewrite Nat.mul_succ_r. lia.
Qed.
Lemma Val_prim1 : forall p f x, Val f x -> Es 0 Val (fun u => guard (ok1 p (f u)) (sem1 p (f u))) (guard (ok1 p x) (sem1 p x)).
Proof.
  intros p f x (-> & l & Hd) a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->). exists (fun u => sem1 p (f u)), (sem1 p (f u0)), 0. split; [|split; [|split; [|lia]]].
  - generalize (diff_near Hd (prim1_open p _ Hok)). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - unfold guard. now rewrite Hok.
  - split; [reflexivity|]. eexists. apply diff_comp; eauto. apply prim1_derive, Hok.
Qed.
Lemma Val_prim2 : forall p f x f' x', Val f x -> Val f' x' -> Es 0 Val (fun u => guard (ok2 p (f u) (f' u)) (sem2 p (f u) (f' u))) (guard (ok2 p x x') (sem2 p x x')).
Proof.
  intros p f x f' x' (-> & l & Hd) (-> & l' & Hd') a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->).
  exists (fun u => sem2 p (f u) (f' u)), (sem2 p (f u0) (f' u0)), 0. split; [|split; [|split; [|lia]]].
  - generalize (prim2_open p Hd Hd' Hok). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - unfold guard. now rewrite Hok.
  - split; [reflexivity|]. eexists. exact (prim2_diff p Hd Hd' Hok).
Qed.
Lemma Val_primi : forall p f x f' k, Val f x -> near (fun u => f' u = k) ->
  Es 0 Val (fun u => guard (oki p (f u) (f' u)) (semi p (f u) (f' u))) (guard (oki p x k) (semi p x k)).
Proof.
  intros p f x f' k (-> & l & Hd) Hk. apply E_germ with (F := fun u => guard (oki p (f u) k) (semi p (f u) k)).
  { revert Hk. apply near1. intros u ->. reflexivity. }
  intros a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->). exists (fun u => semi p (f u) k), (semi p (f u0) k), 0. split; [|split; [|split; [|lia]]].
  - generalize (diff_near Hd (primi_open _ _ _ Hok)). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - unfold guard. now rewrite Hok.
  - split; [reflexivity|]. eexists. apply diff_comp with (phi := fun x => semi p x k); eauto. apply primi_derive, Hok.
Qed.
Lemma Val_const : forall c, Val (fun _ => c) c.
Proof. intros c. split; [reflexivity|]. exists (fun _ => 0%R). apply diff_const. Qed.

(* ---- the fundamental theorem ---------------------------------------------------------------------- *)
Definition Good {G t} (e : tm G t) : Prop :=
  (forall f g, VE G f g -> E (V t) (fun u => evR e (f u)) (evR (DT T e) g)) /\
  (forall f g, VE G f g -> EV t G (fun u => evR e (f u)) (PV T e) g).
Lemma Good_twice : forall G t (e : tm G t) d, BD T e = choose T e (fun _ => twice T d) ->
  (forall f g, VE G f g -> E (V t) (fun u => evR e (f u)) (evR d g)) -> Good e.
Proof.
  intros G t e d H HM. split; intros f g HG; [unfold DT; rewrite H; apply E_choose; [exact HG|exact (HM f g HG)]|].
  unfold PV. rewrite H. apply EV_choose; [exact HG|]. apply EV_first, HM, HG.
Qed.
Ltac refold := cbn [twice fst snd]; repeat match goal with
  | |- context [fst (@BD T ?G ?t ?e)] => change (fst (@BD T G t e)) with (@DT T G t e)
  | |- context [snd (@BD T ?G ?t ?e)] => change (snd (@BD T G t e)) with (@PV T G t e)
  end.
Ltac start := unfold DT; cbn [BD]; apply E_choose; [assumption|]; refold; try rewrite tlet2_ev; cbn [ev].
Ltac startp := unfold PV; cbn [BD]; apply EV_choose; [assumption|]; refold; cbn [EV ev]; apply Es_more with (s := 0); [lia|].
Ltac whole := eapply Good_twice; [cbn [BD]; reflexivity|]; intros f g HG; refold; try rewrite tlet2_ev; cbn [ev].
Theorem good : forall G t (e : tm G t), Good e.
Proof.
  induction e; repeat match goal with IH : Good ?e |- _ => let P := fresh IH "P" in destruct IH as [IH P] end.
  - (* var *) whole. apply E_tick0 with (F := fun u => ret _). apply E_ret with (f := fun u => look m (f u)). apply V_look, HG.
  - (* lam *) whole. apply E_tick0 with (F := fun u => ret _). apply E_ret with (f := fun r x => evR e (x, f r)).
    intros f1 g1 H1. apply IHe with (f := fun u => (f1 u, f u)). split; auto.
  - (* app *) whole. apply E_tick0 with (F := fun u => bind _ _).
    eapply E_bind with (H := fun u g => bind (evR e2 (f u)) (fun y => g y)); [apply IHe1, HG|].
    intros f1 g1 H1. eapply E_bind with (H := fun u y => f1 u y); [apply IHe2, HG|]. intros f2 g2 H2. apply H1, H2.
  - (* let *) whole. apply E_tick0 with (F := fun u => bind _ _).
    eapply E_bind with (H := fun u y => evR e2 (y, f u)); [apply IHe1, HG|].
    intros f1 g1 H1. apply IHe2 with (f := fun u => (f1 u, f u)). split; auto.
  - (* fix *) whole. apply E_tick0 with (F := fun u => ret _).
    apply E_ret with (f := fun r => kleene fuel (fun F x => evR e (x, (F, f r)))).
    apply E_kleene with (F := fun r F x => evR e (x, (F, f r))).
    intros f1 g1 x y H1 H2. apply IHe with (f := fun r => (x r, (f1 r, f r))). split; auto. split; auto.
  - (* case *) whole. apply E_tick0 with (F := fun u => bind _ _).
    eapply E_bind with (H := fun u v => match v with inl y => evR e2 (y, f u) | inr y => evR e3 (y, f u) end); [apply IHe1, HG|].
    intros f1 [g1|g1] (k & L & H1); simpl.
    + eapply E_germ; [|apply IHe2 with (f := fun u => (k u, f u)); split; eauto]. revert L. apply near1. intros u ->. reflexivity.
    + eapply E_germ; [|apply IHe3 with (f := fun u => (k u, f u)); split; eauto]. revert L. apply near1. intros u ->. reflexivity.
  - (* op0 *) whole. apply E_tick0 with (F := fun u => ret _). apply E_ret with (f := fun _ => op0v R o). apply V_op0.
  - (* op1 *) whole. apply E_tick0 with (F := fun u => bind _ _).
    eapply E_bind with (H := fun u x => op1v R o x); [apply IHe, HG|]. intros f1 g1 H1. apply E_op1, H1.
  - (* op2 *) whole. apply E_tick0 with (F := fun u => bind _ _).
    eapply E_bind with (H := fun u x => bind (evR e2 (f u)) (fun y => op2v R o x y)); [apply IHe1, HG|]. intros f1 g1 H1.
    eapply E_bind with (H := fun u y => op2v R o (f1 u) y); [apply IHe2, HG|]. intros f2 g2 H2. apply E_op2; auto.
  - (* op3 *) whole. apply E_tick0 with (F := fun u => bind _ _).
    eapply E_bind with (H := fun u x => bind (evR e2 (f u)) (fun y => bind (evR e3 (f u)) (fun z => op3v R o x y z))); [apply IHe1, HG|].
    intros f1 g1 H1. eapply E_bind with (H := fun u y => bind (evR e3 (f u)) (fun z => op3v R o (f1 u) y z)); [apply IHe2, HG|].
    intros f2 g2 H2. eapply E_bind with (H := fun u z => op3v R o (f1 u) (f2 u) z); [apply IHe3, HG|].
    intros f3 g3 H3. apply E_op3; auto.
  - (* loop *) whole. apply E_tick0 with (F := fun u => bind _ _).
    eapply E_bind with (H := fun u k => bind (evR e2 (f u)) (fun a => miter (Z.to_nat k) (fun i acc => evR e3 (acc, (Z.of_nat i, f u))) a)); [apply IHe1, HG|].
    intros fn n Hn. eapply E_bind with (H := fun u a => miter (Z.to_nat (fn u)) (fun i acc => evR e3 (acc, (Z.of_nat i, f u))) a); [apply IHe2, HG|].
    intros fz z Hz. simpl in Hn.
    eapply E_germ with (F := fun u => miter (Z.to_nat n) (fun i acc => evR e3 (acc, (Z.of_nat i, f u))) (fz u)).
    { revert Hn. apply near1. intros u ->. reflexivity. }
    apply E_iter with (F := fun u i acc => evR e3 (acc, (Z.of_nat i, f u))); auto.
    intros i f1 g1 H1. apply IHe3 with (f := fun u => (f1 u, (Z.of_nat i, f u))). split; [auto|split; [|auto]].
    simpl. apply always. reflexivity.
  - (* build *) whole. apply E_tick0 with (F := fun u => bind _ _).
    eapply E_bind with (H := fun u k => mseq (fun i => tick (evR e2 (Z.of_nat i, f u))) (seq 0 (Z.to_nat k))); [apply IHe1, HG|].
    intros fn n Hn. simpl in Hn.
    eapply E_germ with (F := fun u => mseq (fun i => tick (evR e2 (Z.of_nat i, f u))) (map (fun k => k u) (map (fun i _ => i) (seq 0 (Z.to_nat n))))).
    { revert Hn. apply near1. intros u ->. now rewrite map_map, map_id. }
    apply E_seq with (F := fun u i => tick (evR e2 (Z.of_nat i, f u))) (R0 := fun f i => f = fun _ => i).
    + intros k i ->. apply E_tick0 with (F := fun u => evR e2 (Z.of_nat i, f u)).
      apply IHe2 with (f := fun u => (Z.of_nat i, f u)). split; [simpl; apply always; reflexivity|exact HG].
    + induction (seq 0 (Z.to_nat n)); simpl; constructor; auto.
  - (* map *) whole. apply E_tick0 with (F := fun u => bind _ _).
    eapply E_bind with (H := fun u l => mseq (fun x => tick (evR e1 (x, f u))) l); [apply IHe2, HG|].
    intros fl l (fs & L & HF). eapply E_germ with (F := fun u => mseq (fun x => tick (evR e1 (x, f u))) (map (fun k => k u) fs)).
    { revert L. apply near1. intros u ->. reflexivity. }
    apply E_seq with (F := fun u x => tick (evR e1 (x, f u))) (R0 := V a); auto.
    intros f1 g1 H1. apply E_tick0 with (F := fun u => evR e1 (f1 u, f u)). apply IHe1 with (f := fun u => (f1 u, f u)). split; auto.
  - (* fold *) whole. apply E_tick0 with (F := fun u => bind _ _).
    eapply E_bind with (H := fun u z => bind (evR e3 (f u)) (fun l => mfold (fun x acc => evR e1 (x, (acc, f u))) l z)); [apply IHe2, HG|].
    intros fz z Hz. eapply E_bind with (H := fun u l => mfold (fun x acc => evR e1 (x, (acc, f u))) l (fz u)); [apply IHe3, HG|].
    intros fl l (fs & L & HF). eapply E_germ with (F := fun u => mfold (fun x acc => evR e1 (x, (acc, f u))) (map (fun k => k u) fs) (fz u)).
    { revert L. apply near1. intros u ->. reflexivity. }
    apply E_fold with (F := fun u x acc => evR e1 (x, (acc, f u))) (R0 := V a); auto.
    intros f1 g1 f2 g2 H1 H2. apply IHe1 with (f := fun u => (f1 u, (f2 u, f u))). split; auto. split; auto.
  - (* literal *) split.
    { intros f g HG. start. destruct (@rep_zero (map (D T) G) g) as (gz & nz & Ez & Rz & Bz). cbn [ev op2v bind tick ret]. rewrite Ez.
    intros a0 n0 H0. inversion H0; subst. exists (fun _ => litR z z0), (litR z z0, gz). eexists. split; [|split; [|split]].
    + apply always. reflexivity.
    + reflexivity.
    + apply Real_const, Rz.
    + lia. }
    { intros f g HG. startp. apply E_tick0 with (F := fun u => ret _). apply E_ret with (f := fun _ => litR z z0). apply Val_const. }
  - (* unary primitives *) split.
    { intros f g HG. start. apply E_tick with (F := fun u => bind _ _) (s := 100 + KT); [lia|].
    eapply E_bind with (H := fun u x => guard (ok1 p x) (sem1 p x)); [apply IHe, HG|]. intros f1 g1 H1. apply E_prim1, H1. }
    { intros f g HG. startp. apply EV_tick with (s := 0 + 1); [lia|].
      apply (@EV_bind 0 _ _ _ _ Val Val (fun u => evR e (f u)) (fun u x => guard (ok1 p x) (sem1 p x))); [exact (IHeP f g HG)|]. intros f1 x H1. apply Val_prim1, H1. }
  - (* binary primitives *) split.
    { intros f g HG. start. destruct (keeps T e1) as [e1'|] eqn:Hk1; [|destruct (keeps T e2) as [e2'|] eqn:Hk2];
      rewrite tlet2_ev; cbn [ev]; apply E_ticks with (F := fun u => bind _ _) (s := 180 + 3 * KT); try lia.
    { eapply E_bind with (H := fun u x => bind (evR e2 (f u)) (fun y => guard (ok2 p x y) (sem2 p x y))); [exact (@E_keeps _ TR _ _ _ _ HG Hk1)|].
      intros f1 c H1. eapply E_bind with (H := fun u y => guard (ok2 p (f1 u) y) (sem2 p (f1 u) y)); [apply IHe2, HG|].
      intros f2 g2 H2. eapply E_germ; [|apply E_prim2r, H2]. revert H1. apply near1. intros u ->. reflexivity. }
    { eapply E_bind with (H := fun u x => bind (evR e2 (f u)) (fun y => guard (ok2 p x y) (sem2 p x y))); [apply IHe1, HG|].
      intros f1 g1 H1. eapply E_bind with (H := fun u y => guard (ok2 p (f1 u) y) (sem2 p (f1 u) y)); [exact (@E_keeps _ TR _ _ _ _ HG Hk2)|].
      intros f2 c H2. eapply E_germ; [|apply E_prim2l, H1]. revert H2. apply near1. intros u ->. reflexivity. }
    eapply E_bind with (H := fun u x => bind (evR e2 (f u)) (fun y => guard (ok2 p x y) (sem2 p x y))); [apply IHe1, HG|].
    intros f1 g1 H1. eapply E_bind with (H := fun u y => guard (ok2 p (f1 u) y) (sem2 p (f1 u) y)); [apply IHe2, HG|].
    intros f2 g2 H2. apply E_prim2; auto. }
    { intros f g HG. startp. apply EV_tick with (s := (0 + 1) + 1); [lia|].
      apply (@EV_bind (0 + 1) _ _ _ _ Val Val (fun u => evR e1 (f u)) (fun u x => bind (evR e2 (f u)) (fun y => guard (ok2 p x y) (sem2 p x y)))); [exact (IHe1P f g HG)|]. intros f1 x H1.
      apply (@EV_bind 0 _ _ _ _ Val Val (fun u => evR e2 (f u)) (fun u y => guard (ok2 p (f1 u) y) (sem2 p (f1 u) y))); [exact (IHe2P f g HG)|]. intros f2 y H2. apply Val_prim2; assumption. }
  - (* primitives with an integer *) split.
    { intros f g HG. start. destruct (keeps T e1) as [e1'|] eqn:Hk1; rewrite tlet2_ev; cbn [ev]; apply E_ticks with (F := fun u => bind _ _) (s := 180 + 3 * KT); try lia.
    { eapply E_bind with (H := fun u x => bind (evR e2 (f u)) (fun y => guard (oki p x y) (semi p x y))); [exact (@E_keeps _ TR _ _ _ _ HG Hk1)|].
      intros f1 c H1. eapply E_bind with (H := fun u y => guard (oki p (f1 u) y) (semi p (f1 u) y)); [apply IHe2, HG|].
      intros f2 k H2. eapply E_germ; [|apply (@E_primi0 _ g p c f2 k H2)]. revert H1. apply near1. intros u ->. reflexivity. }
    eapply E_bind with (H := fun u x => bind (evR e2 (f u)) (fun y => guard (oki p x y) (semi p x y))); [apply IHe1, HG|].
    intros f1 g1 H1. eapply E_bind with (H := fun u y => guard (oki p (f1 u) y) (semi p (f1 u) y)); [apply IHe2, HG|].
    intros f2 g2 H2. apply E_primi; auto. }
    { intros f g HG. startp. apply EV_tick with (s := (0 + 1) + 1); [lia|].
      apply (@EV_bind (0 + 1) _ _ _ _ Val Val (fun u => evR e1 (f u)) (fun u x => bind (evR e2 (f u)) (fun y => guard (oki p x y) (semi p x y)))); [exact (IHe1P f g HG)|]. intros f1 x H1.
      apply (@EV_bind 0 _ _ _ _ (V TI) Val (fun u => evR e2 (f u)) (fun u y => guard (oki p (f1 u) y) (semi p (f1 u) y))); [apply Es_more with (s := 0); [lia|exact (IHe2 f g HG)]|]. intros f2 y H2. apply Val_primi; assumption. }
  - (* comparison *) whole. apply EV_tick with (s := (0 + 1) + 1); [lia|].
    apply (@EV_bind (0 + 1) _ _ _ _ Val (V TB) (fun u => evR e1 (f u)) (fun u x => bind (evR e2 (f u)) (fun y => guard (negb (tie (cmpR x y))) (boolv (decide c (cmpR x y)))))); [exact (IHe1P f g HG)|].
    intros f1 x (-> & l & Hd).
    apply (@EV_bind 0 _ _ _ _ Val (V TB) (fun u => evR e2 (f u)) (fun u y => guard (negb (tie (cmpR (f1 u) y))) (boolv (decide c (cmpR (f1 u) y))))); [exact (IHe2P f g HG)|].
    intros f2 y (-> & l' & Hd'). exact (E_compare K c Hd Hd').
  - (* rounding *) whole. apply EV_tick with (s := 0 + 1); [lia|].
    apply (@EV_bind 0 _ _ _ _ Val (V TI) (fun u => evR e (f u)) (fun u x => guard (okround r x) (roundR r x))); [exact (IHeP f g HG)|].
    intros f1 x (-> & l & Hd). exact (E_rounding K r Hd).
  - (* real of int *) split.
    { intros f g HG. start.
    intros a0 n0 H0. apply tick_inv in H0 as (n1 & H0 & ->). apply bind_inv in H0 as (x & m1 & m2 & H1 & H0 & ->).
    inversion H0; subst. destruct (IHe _ _ HG _ _ H1) as (fa & ga & na & La & Ea & Va & Ca). simpl in Va.
    destruct (@rep_zero (TI :: map (D T) G) (ga, g)) as (gz & nz & Ez & Rz & Bz).
    exists (fun u => IZR (fa u)), (IZR ga, gz). eexists. split; [|split; [|split]].
    + revert La. apply near1. intros u ->. reflexivity.
    + exact (let_ev fuel _ _ _ Ea (pair_ev fuel _ _ _ (@real_ev fuel (TI :: map (D T) G) v0 (ga, g) ga 1 eq_refl) Ez)).
    + apply (V_germ TR) with (f := fun _ => IZR ga); [revert Va; apply near1; intros u ->; reflexivity|]. apply Real_const, Rz.
    + rewrite Nat.mul_succ_r, !Nat.mul_add_distr_l. lia. }
    { intros f g HG. startp. apply EV_tick with (s := 0 + 1); [lia|].
      apply (@EV_bind 0 _ _ _ _ (V TI) Val (fun u => evR e (f u)) (fun u x => ret (IZR x))); [apply Es_more with (s := 0); [lia|exact (IHe f g HG)]|]. intros f1 x H1.
      apply E_germ with (F := fun u => ret (IZR x)); [revert H1; apply near1; intros u ->; reflexivity|]. apply E_ret with (f := fun _ => IZR x). apply Val_const. }
  - (* sum *) whole. apply E_tick with (F := fun u => bind _ _) (s := 100 + KT); [lia|].
    eapply E_bind with (H := fun u x => msum RO x); [apply IHe, HG|]. intros f1 g1 H1. apply E_sum, H1.
  - (* dot *) whole. apply E_ticks with (F := fun u => bind _ _) (s := 100 + KT); [lia|].
    eapply E_bind with (H := fun u x => bind (evR e2 (f u)) (fun y => mdot RO x y)); [apply IHe1, HG|].
    intros f1 g1 H1. eapply E_bind with (H := fun u y => mdot RO (f1 u) y); [apply IHe2, HG|].
    intros f2 g2 H2. apply E_dot; auto.
Qed.
Theorem fundamental : forall G t (e : tm G t) f g, VE G f g ->
  E (V t) (fun u => evR e (f u)) (evR (DT T e) g).
Proof. intros G t e. exact (proj1 (good e)). Qed.
End LR.
