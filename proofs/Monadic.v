(* The monadic reverse mode (K Fig. 9, 10, 14 and section 10.2; recursion as in N): a real becomes a value and a Delta,
   functions return computations in a state monad whose state is a supply of identifiers and a list of Delta bindings.

   The target is the language itself: Delta is a tree type, M a is S -> a * S, and [mpure], [mbind], [deltaLet] write terms of it, so
   [monadic] can be applied to its own output.  Each equation of Fig. 9 is one arm of [BT].  Where the figure is
   silent (loops, arrays, folds) the state is threaded through the loop.  What binds nothing is translated to a value, without the state: [MT] returns it.
   Functions of the state are applied where they are written ([applied]): the text is that of crates/derive/src/monadic, word for word.

   Why it is correct.  As in Macro.v a map from U is related to one transformed value, now in a *world*: the tape of
   bindings made so far.  A Delta of size one stands for a real, given the tangents of all identifiers; running a
   related computation extends the tape, by at most [KS] nodes per step of the source program. *)
From Coq Require Import Reals List Lia Lra ZArith FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Substitution Activity Macro Delta.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Arguments Nat.mul : simpl never.

(* ---- the monad, in the language ---------------------------------------------------------- *)
Definition TS : ty := TProd TI (TArr (TProd TI TDelta)).
Definition TM (a : ty) : ty := TFun TS (TProd a TS).
Definition skip2 {G a b} : ren G (a :: b :: G) := fun t m => Pop (Pop m).
(* a renaming that sends the innermost variable where it is told to *)
Definition into {G H s} (m : mem s H) (r : ren G H) : ren (s :: G) H := fun t v =>
  match v in mem _ G' return match G' with nil => unit | s' :: G0 => mem s' H -> ren G0 H -> mem t H end with
  | Top => fun m _ => m
  | Pop v => fun _ r => r _ v
  end m r.
Definition skip4 {G a b c d} : ren G (a :: b :: c :: d :: G) := fun t m => Pop (Pop (Pop (Pop m))).
(* a function applied to a new variable, by beta reduction where it is written out: nearly every computation is, so that no state is passed but by [let] *)
Definition applied_var {G t} : tm G t -> match t with TFun a b => tm (a :: G) b | _ => unit end :=
  match t return tm G t -> match t with TFun a b => tm (a :: G) b | _ => unit end with
  | TFun a b => fun f => tapp (wk a f) v0
  | _ => fun _ => tt
  end.
Definition applied_any {G t} (f : tm G t) : match t with TFun a b => tm (a :: G) b | _ => unit end :=
  match f in tm G t return match t with TFun a b => tm (a :: G) b | _ => unit end with
  | tlam b => b
  | other => applied_var other
  end.
Definition applied {G a b} (f : tm G (TFun a b)) : tm (a :: G) b := @applied_any G (TFun a b) f.
(* the pair of a value and a state, at the end of each branch *)
Fixpoint giving {G a} (e : tm G a) : forall H, ren G H -> mem TS H -> tm H (TProd a TS) :=
  match e in tm G a return forall H, ren G H -> mem TS H -> tm H (TProd a TS) with
  | tlet x y => fun H r s => tlet (rn x r) (giving y (up r) (Pop s))
  | tcase c x y => fun H r s => tcase (rn c r) (giving x (up r) (Pop s)) (giving y (up r) (Pop s))
  | other => fun H r s => tpair (rn other r) (tvar s)
  end.
(* evaluating one of these computes nothing: all is done when the state comes *)
Definition mpure {G a} (e : tm G a) : tm G (TM a) := tlam (giving e (@shift G TS) Top).
Definition mbind {G a b} (m : tm G (TM a)) (k : tm (a :: G) (TM b)) : tm G (TM b) :=
  tlam (tlet (applied m) (tlet (tfst v0) (tlet (tsnd v1) (rn (applied k) (into Top (into (Pop Top) skip4)))))).
(* a value needs no state *)
Definition vbind {G a b} (x : tm G a) (k : tm (a :: G) (TM b)) : tm G (TM b) :=
  tlam (tlet (wk TS x) (rn (applied k) (into (Pop Top) (into Top skip2)))).
Definition ibind {G a b} (i : tm G a + tm G (TM a)) (k : tm (a :: G) (TM b)) : tm G (TM b) :=
  match i with inl x => vbind x k | inr m => mbind m k end.
Definition iwk {G a} (s : ty) (i : tm G a + tm G (TM a)) : tm (s :: G) a + tm (s :: G) (TM a) :=
  match i with inl x => inl (wk s x) | inr m => inr (wk s m) end.
(* a choice between computations *)
Definition mcase {G a b c} (s : tm G (TSum a b)) (x : tm (a :: G) (TM c)) (y : tm (b :: G) (TM c)) : tm G (TM c) :=
  tlam (tcase (wk TS s) (rn (applied x) (into (Pop Top) (into Top skip2))) (rn (applied y) (into (Pop Top) (into Top skip2)))).
(* K Fig. 10: binds a Delta to the next identifier; a number goes with it, for its own sake *)
Definition deltaLet {G} (v : tm G TR) (u : tm G TDelta) : tm G (TM (TProd TR TDelta)) :=
  tlam (tlet (wk TS v) (tpair (tpair v0 (dvar (tfst v1)))
    (tpair (top2 (OIntop IAdd) (tfst v1) (tint _ 1)) (tcons (tpair (tfst v1) (rn u skip2)) (tsnd v1))))).

(* ---- types and data operations -------------------------------------------------------------- *)
Fixpoint MD (t : ty) : ty :=
  match t with
  | TR => TProd TR TDelta
  | TU => TU | TI => TI
  | TProd a b => TProd (MD a) (MD b)
  | TSum a b => TSum (MD a) (MD b)
  | TFun a b => TFun (MD a) (TM (MD b))
  | TArr a => TArr (MD a)
  | TTree a => TTree (MD a)
  end.
Fixpoint Mmem {t G} (m : mem t G) : mem (MD t) (map MD G) :=
  match m with Top => Top | Pop m => Pop (Mmem m) end.
Definition Mop0 {a} (o : op0 a) : op0 (MD a) :=
  match o with OUnit => OUnit | OInt z => OInt z | ONil a => ONil (MD a) end.
Definition Mop1 {a b} (o : op1 a b) : op1 (MD a) (MD b) :=
  match o with
  | OFst a b => OFst (MD a) (MD b) | OSnd a b => OSnd (MD a) (MD b)
  | OInl a b => OInl (MD a) (MD b) | OInr a b => OInr (MD a) (MD b)
  | OLen a => OLen (MD a) | OUnnode a => OUnnode (MD a)
  end.
Definition Mop2 {a b c} (o : op2 a b c) : op2 (MD a) (MD b) (MD c) :=
  match o with
  | OPair a b => OPair (MD a) (MD b) | OGet a => OGet (MD a) | OCons a => OCons (MD a) | OSnoc a => OSnoc (MD a)
  | ONode a => ONode (MD a) | OZip a b => OZip (MD a) (MD b) | OGather a => OGather (MD a)
  | OIntop o => OIntop o | OIntcmp c => OIntcmp c
  end.
Definition Mop3 {a b c d} (o : op3 a b c d) : op3 (MD a) (MD b) (MD c) (MD d) :=
  match o with OSet a => OSet (MD a) end.

(* ---- constant parts keep their text (Activity.v) ---------------------------------------------- *)
Fixpoint sameM (t : ty) : option (MD t = t) :=
  match t return option (MD t = t) with
  | TU => Some eq_refl | TI => Some eq_refl
  | TProd a b => map2 (fun p q => eq2 TProd p q) (sameM a) (sameM b)
  | TSum a b => map2 (fun p q => eq2 TSum p q) (sameM a) (sameM b)
  | TArr a => option_map (fun p => eq1 TArr p) (sameM a)
  | TTree a => option_map (fun p => eq1 TTree p) (sameM a)
  | _ => None
  end.
Fixpoint zerosM (t : ty) : forall G, tm G t -> option (tm G (MD t)) :=
  match t return forall G, tm G t -> option (tm G (MD t)) with
  | TR => fun G e => Some (tpair e dzero)
  | TU => fun _ e => Some e
  | TI => fun _ e => Some e
  | TProd a b => fun G e => map2 (fun x y => tpair x y) (@zerosM a _ (tfst e)) (@zerosM b _ (tsnd e))
  | TFun _ _ => fun _ _ => None
  | TSum a b => fun G e => option_map (fun H => cast (P := tm G) (eq_sym H) e) (sameM (TSum a b))
  | TArr a => fun G e => option_map (fun H => cast (P := tm G) (eq_sym H) e) (sameM (TArr a))
  | TTree a => fun G e => option_map (fun H => cast (P := tm G) (eq_sym H) e) (sameM (TTree a))
  end.
Definition liftM (t : ty) : forall G, tm G t -> option (tm G (MD t)) :=
  match sameM t with
  | Some H => fun G e => Some (cast (P := tm G) (eq_sym H) e)
  | None =>
    match t return forall G, tm G t -> option (tm G (MD t)) with
    | TR => fun G e => Some (tpair e dzero)
    | t => fun G e => if weight t <=? small then option_map (fun z => tlet e z) (@zerosM t (t :: G) v0) else None
    end
  end.
Definition keepsM {G t} (e : tm G t) : option (tm (map MD G) t) := plain MD (@Mmem) sameM e.
Definition constantM {G t} (e : tm G t) (kept : tm (map MD G) t) : option (tm (map MD G) (MD t)) :=
  if computes e then @liftM t _ kept else None.

(* ---- loops with the state threaded through --------------------------------------------------- *)
(* build and map: the accumulator is the array so far, and the state *)
Definition skip3 {G a b c} : ren G (a :: b :: c :: G) := fun t m => Pop (Pop (Pop m)).
Definition skip5 {G a b c d e} : ren G (a :: b :: c :: d :: e :: G) := fun t m => Pop (Pop (Pop (Pop (Pop m)))).
Definition each {G a b w} (k : tm (a :: G) (TM b)) : tm (a :: TProd (TArr b) TS :: TS :: w :: G) (TProd (TArr b) TS) :=
  tlet (tapp (rn k (up skip3)) (tsnd v1)) (tpair (tsnoc (tfst v2) (tfst v0)) (tsnd v0)).
Definition mapM {G a b w} (k : tm (a :: G) (TM b)) (l : tm (TS :: w :: G) (TArr a)) : tm (w :: G) (TM (TArr b)) :=
  tlam (tfold (each k) (tpair (tnil _ b) v0) l).
Definition foldM {G a b} (k : tm (a :: b :: G) (TM b)) : tm (TArr a :: b :: G) (TM b) :=
  tlam (tfold (tlet (tfst v1) (tlet v1 (tapp (rn k (up (up skip5))) (tsnd v3)))) (tpair v2 v0) v1).
Definition loop_step {G a} (k : tm (a :: TI :: G) (TM a)) : tm (TProd a TS :: TI :: TS :: a :: TI :: G) (TProd a TS) :=
  tlet (tfst v0) (tlet (tsnd v1) (rn (applied k) (into Top (into (Pop Top) (into (Pop (Pop (Pop Top))) (fun t m => skip4 (skip3 m))))))).
Definition loopM {G a} (k : tm (a :: TI :: G) (TM a)) : tm (a :: TI :: G) (TM a) := tlam (tloop v2 (tpair v1 v0) (loop_step k)).

(* build: the first element fills the array, then each of the others is put in its place, which a machine can do without a copy *)
Definition v4 {G a b c d e} : tm (a :: b :: c :: d :: e :: G) e := tvar (Pop (Pop (Pop (Pop Top)))).
Definition v5 {G a b c d e f} : tm (a :: b :: c :: d :: e :: f :: G) f := tvar (Pop (Pop (Pop (Pop (Pop Top))))).
Definition put_next {G b} : tm (TProd (TArr b) TS :: TI :: TProd b TS :: TU :: TFun TI (TM b) :: G) (TProd (TArr b) TS) :=
  tlet (top2 (OIntop IAdd) v1 (tint _ 1)) (tlet (tapp (tapp v5 v0) (tsnd v1)) (tpair (top3 (OSet b) (tfst v2) v1 (tfst v0)) (tsnd v0))).
Definition buildM {G b} (k : tm (TI :: G) (TM b)) : tm (TI :: G) (TM (TArr b)) :=
  tlam (tlet (tlam (rn k (up skip2)))
    (tcase (top2 (OIntcmp CLe) v2 (tint _ 0))
      (tpair (tbuild v3 (tget (tnil _ b) v0)) v2)
      (tlet (tapp (tapp v1 (tint _ 0)) v2)
        (tloop (top2 (OIntop ISub) v4 (tint _ 1)) (tpair (tbuild v4 (tfst v1)) (tsnd v0)) put_next)))).

(* ---- the translation (K Fig. 9) ----------------------------------------------------------------- *)
Notation MR := (TProd TR TDelta).
Definition mprim1 {G} (p : prim1) : tm (MR :: G) (TM MR) :=
  deltaLet (tprim1 p (tfst v0)) (dscale (d1t p (tfst v0)) (tsnd v0)).
Definition mprim2 {G} (p : prim2) : tm (MR :: MR :: G) (TM MR) :=
  let c := d2t p (tfst v1) (tfst v0) in
  deltaLet (tprim2 p (tfst v1) (tfst v0)) (dadd (cscale dlt (fst c) (tsnd v1)) (cscale dlt (snd c) (tsnd v0))).
Definition mprimi {G} (p : primi) : tm (TI :: MR :: G) (TM MR) :=
  deltaLet (tprimi p (tfst v1) v0) (dscale (dit p (tfst v1) v0) (tsnd v1)).
Definition msumT {G} : tm (TArr MR :: G) (TM MR) :=
  deltaLet (tsum (tmap (tfst v0) v0)) (tfold (dadd v1 (tsnd v0)) dzero v0).
Definition mdotT {G} : tm (TArr MR :: TArr MR :: G) (TM MR) :=
  deltaLet (tdot (tmap (tfst v0) v1) (tmap (tfst v0) v0))
    (tfold (dadd v1 (dadd (dscale (tfst (tsnd v0)) (tsnd (tfst v0))) (dscale (tfst (tfst v0)) (tsnd (tsnd v0))))) dzero (tzip v1 v0)).
(* An image is a value, if nothing is bound on the way to it, or a computation. *)
Definition image G t : Type := tm (map MD G) (MD t) + tm (map MD G) (TM (MD t)).
Definition comp {G t} (i : image G t) : tm (map MD G) (TM (MD t)) := match i with inl e => mpure e | inr m => m end.
(* A decision needs no derivatives: what only decides is computed from primal values, and scalar arithmetic there binds nothing.
   So each term of type real has two translations: [MT], and [PT], which gives the value alone. They are made together, and what both use
   is made once: otherwise the extracted translation would take time exponential in the depth of arithmetic. *)
Definition number G : Type := tm (map MD G) TR + tm (map MD G) (TM TR).
Definition ncomp {G} (i : number G) : tm (map MD G) (TM TR) := match i with inl e => mpure e | inr m => m end.
Definition valued G t : Type := match t with TR => number G | _ => unit end.
Definition drop {G} t : image G t -> valued G t :=
  match t return image G t -> valued G t with
  | TR => fun i => match i with inl e => inl (tfst e) | inr m => inr (mbind m (mpure (tfst v0))) end
  | _ => fun _ => tt
  end.
Definition both {G t} (i : image G t) : image G t * valued G t := (i, drop i).
Arguments both {G t} & i.
(* a constant of type real is its own value *)
Definition number_of {G} t : tm (map MD G) t -> valued G t :=
  match t return tm (map MD G) t -> valued G t with TR => fun e => inl e | _ => fun _ => tt end.
Definition choose {G t} (e : tm G t) (rule : unit -> image G t * valued G t) : image G t * valued G t :=
  match keepsM e with
  | Some kept => (match constantM e kept with Some d => inl d | None => fst (rule tt) end, number_of kept)
  | None => rule tt
  end.
(* one step more *)
Definition map_image {G a b} (i : tm G a + tm G (TM a)) (now : tm G a -> tm G b) (later : tm (a :: G) b) : tm G b + tm G (TM b) :=
  match i with inl e => inl (now e) | inr m => inr (mbind m (mpure later)) end.
Definition map_images {G a b c} (i : tm G a + tm G (TM a)) (j : tm G b + tm G (TM b)) (now : tm G a -> tm G b -> tm G c) (later : tm (b :: a :: G) c) : tm G c + tm G (TM c) :=
  match i, j with
  | inl x, inl y => inl (now x y)
  | _, _ => inr (ibind i (ibind (iwk _ j) (mpure later)))
  end.
Fixpoint BT {G t} (e : tm G t) : image G t * valued G t :=
  choose e (fun _ =>
  match e in tm G t return image G t * valued G t with
  | tvar v => both (inl (tvar (Mmem v)))
  | tlam b => both (inl (tlam (comp (fst (BT b)) : tm (map MD (_ :: _)) _)))
  | tapp f a => both (inr (match fst (BT f), fst (BT a) with
      | inl f, inl x => tlam (tapp (tapp (wk _ f) (wk _ x)) v0)
      | F, A => ibind F (ibind (iwk _ A) (tlam (tapp (tapp v2 v1) v0))) end))
  | tlet a b => both (match fst (BT a), fst (BT b) with
      | inl x, inl y => inl (tlet x (y : tm (map MD (_ :: _)) _))
      | A, B => inr (ibind A (comp B : tm (map MD (_ :: _)) _)) end)
  | tfix b => both (inl (tfix (comp (fst (BT b)) : tm (map MD (_ :: _ :: _)) _)))
  | tcase s a b => both (match fst (BT a), fst (BT b) with
      | inl x, inl y => map_image (fst (BT s)) (fun s => tcase s (x : tm (map MD (_ :: _)) _) (y : tm (map MD (_ :: _)) _))
          (tcase v0 (rn (x : tm (map MD (_ :: _)) _) (up (@shift _ _))) (rn (y : tm (map MD (_ :: _)) _) (up (@shift _ _))))
      | A, B => inr (match fst (BT s) with
          | inl s => mcase s (comp A : tm (map MD (_ :: _)) _) (comp B : tm (map MD (_ :: _)) _)
          | inr m => mbind m (mcase v0 (rn (comp A : tm (map MD (_ :: _)) _) (up (@shift _ _))) (rn (comp B : tm (map MD (_ :: _)) _) (up (@shift _ _)))) end) end)
  | top0 G o => both (inl (top0 (map MD G) (Mop0 o)))
  | top1 o a => both (map_image (fst (BT a)) (fun x => top1 (Mop1 o) x) (top1 (Mop1 o) v0))
  | top2 o a b => both (map_images (fst (BT a)) (fst (BT b)) (fun x y => top2 (Mop2 o) x y) (top2 (Mop2 o) v1 v0))
  | top3 o a b c => both (match fst (BT a), fst (BT b), fst (BT c) with
      | inl x, inl y, inl z => inl (top3 (Mop3 o) x y z)
      | A, B, C => inr (ibind A (ibind (iwk _ B) (ibind (iwk _ (iwk _ C)) (mpure (top3 (Mop3 o) v2 v1 v0))))) end)
  | tloop n z b => both (inr (ibind (fst (BT n)) (ibind (iwk _ (fst (BT z))) (loopM (comp (fst (BT b)) : tm (map MD (_ :: _ :: _)) _)))))
  | tbuild n b => both (match fst (BT b) with
      | inl x => map_image (fst (BT n)) (fun n => tbuild n (x : tm (map MD (_ :: _)) _)) (tbuild v0 (rn (x : tm (map MD (_ :: _)) _) (up (@shift _ _))))
      | inr m => inr (ibind (fst (BT n)) (buildM (m : tm (map MD (_ :: _)) _))) end)
  | tmap b a => both (inr (ibind (fst (BT a)) (mapM (comp (fst (BT b)) : tm (map MD (_ :: _)) _) v1)))
  | tfold b z a => both (inr (ibind (fst (BT z)) (ibind (iwk _ (fst (BT a))) (foldM (comp (fst (BT b)) : tm (map MD (_ :: _ :: _)) _)))))
  | tlit G m x => (inl (tpair (tlit (map MD G) m x) dzero), inl (tlit (map MD G) m x))
  | tprim1 p a => let A := BT a in (inr (ibind (fst A) (mprim1 p)), map_image (snd A) (fun x => tprim1 p x) (tprim1 p v0))
  | tprim2 p a b => let A := BT a in let B := BT b in
      (inr (ibind (fst A) (ibind (iwk _ (fst B)) (mprim2 p))), map_images (snd A) (snd B) (fun x y => tprim2 p x y) (tprim2 p v1 v0))
  | tprimi p a n => let A := BT a in let N := fst (BT n) in
      (match keepsM a with
       | Some a => map_images (inl a) N (fun x k => tpair (tprimi p x k) dzero) (tpair (tprimi p v1 v0) dzero)
       | None => inr (ibind (fst A) (ibind (iwk _ N) (mprimi p))) end, map_images (snd A) N (fun x k => tprimi p x k) (tprimi p v1 v0))
  | tcmp c a b => both (map_images (snd (BT a)) (snd (BT b)) (fun x y => tcmp c x y) (tcmp c v1 v0))
  | tround k a => both (map_image (snd (BT a)) (fun x => tround k x) (tround k v0))
  | treal a => let A := fst (BT a) in (map_image A (fun x => tpair (treal x) dzero) (tpair (treal v0) dzero), map_image A (fun x => treal x) (treal v0))
  | tsum a => both (inr (ibind (fst (BT a)) msumT))
  | tdot a b => both (inr (ibind (fst (BT a)) (ibind (iwk _ (fst (BT b))) mdotT)))
  end).
Definition MT {G t} (e : tm G t) : tm (map MD G) (TM (MD t)) := comp (fst (BT e)).
Definition PT {G t} (e : tm G t) : valued G t := snd (BT e).
Notation monadic := MT.

(* ---- the relation --------------------------------------------------------------------------------- *)
Section LR.
Variable base fuel : nat.
Variable U : NormedModule R_AbsRing.
Variables u0 h : U.
Variable gam : nat -> R.        (* the derivatives of the inputs in direction h *)
Definition KM : nat := 500.
Definition KS : nat := 8.
Notation diff f l := (@filterdiff R_AbsRing U R_NormedModule f (locally u0) l).
Notation near P := (@locally U u0 P).
Notation evR e := (ev RO fuel e).

(* evaluate a term of monadic type and run the computation *)
Definition run {G a} (m : tm G (TM a)) (r : env R G) (s : den R TS) : M (den R a * den R TS) :=
  bind (evR m r) (fun c => c s).

(* what a Delta of at most sz nodes stands for in world C *)
Definition RepS (C : tape) (sz : nat) (y : R) (g : den R TDelta) : Prop :=
  exists u, g = enc u /\ scoped (fresh base C) u /\ dden u (tan base C gam) = y /\ size u <= sz.
Definition RealM (C : tape) (f : U -> R) (g : den R MR) : Prop :=
  fst g = f u0 /\ exists l, diff f l /\ RepS C 1 (l h) (snd g).
(* computations, up to s steps and z nodes over the bound *)
Definition EKs (s z : nat) {A B} (P : tape -> (U -> A) -> B -> Prop) (C : tape) (F : U -> M A)
    (G : den R TS -> M (B * den R TS)) : Prop :=
  forall a0 n0, F u0 = Some (a0, n0, 0) -> wf base C ->
  exists a b L n',
    near (fun u => F u = Some (a u, n0, 0)) /\
    G (encS base C) = Some ((b, encS base (L ++ C)), n', 0) /\ P (L ++ C) a b /\ wf base (L ++ C) /\
    n' <= KM * n0 + s /\ nodes L <= KS * n0 + z.
Notation EK := (EKs 0 0).
Fixpoint VK (t : ty) (C : tape) : (U -> den R t) -> den R (MD t) -> Prop :=
  match t return (U -> den R t) -> den R (MD t) -> Prop with
  | TR => RealM C
  | TU => fun _ _ => True
  | TI => Const U u0
  | TProd a b => fun f g => VK a C (fun u => fst (f u)) (fst g) /\ VK b C (fun u => snd (f u)) (snd g)
  | TSum a b => fun f g =>
      match g with
      | inl g1 => exists f1, near (fun u => f u = inl (f1 u)) /\ VK a C f1 g1
      | inr g1 => exists f1, near (fun u => f u = inr (f1 u)) /\ VK b C f1 g1
      end
  | TFun a b => fun f g => forall L f1 g1, VK a (L ++ C) f1 g1 ->
      EK (VK b) (L ++ C) (fun u => f u (f1 u)) (fun s => bind (g g1) (fun c => c s))
  | TArr a => Arr U u0 (VK a C)
  | TTree a => Tr U u0 (VK a C)
  end.
Fixpoint VKE (G : list ty) (C : tape) : (U -> env R G) -> env R (map MD G) -> Prop :=
  match G return (U -> env R G) -> env R (map MD G) -> Prop with
  | nil => fun _ _ => True
  | t :: G => fun f g => VK t C (fun u => fst (f u)) (fst g) /\ VKE G C (fun u => snd (f u)) (snd g)
  end.
Notation near2 := (@near2 U u0).
Notation near1 := (@near1 U u0).
Notation always := (@always U u0).
Notation here := (@here U u0).

(* K Lemma 10: stability under extension of the tape *)
Lemma RepS_mono : forall C L y g, RepS C 1 y g -> RepS (L ++ C) 1 y g.
Proof.
  intros C L y g (u & H1 & H2 & H3 & H4). exists u. split; auto. split; [apply scoped_mono; auto|]. split; auto.
  rewrite <- H3. apply dden_ext with (n := fresh base C).
  - exact H2.
  - intros i Hi. apply tan_ext, Hi.
Qed.
Lemma VK_mono : forall t C L f g, VK t C f g -> VK t (L ++ C) f g.
Proof.
  induction t; simpl; intros C L f g H; auto.
  - destruct H as (H1 & l & H2 & H3). split; auto. exists l. split; auto. apply RepS_mono, H3.
  - destruct H; split; auto.
  - destruct g; destruct H as (f1 & H1 & H2); exists f1; auto.
  - intros L' f1 g1 H1. rewrite app_assoc in *. apply H, H1.
  - destruct H as (fs & H1 & H2). exists fs. split; auto. clear H1. induction H2; constructor; auto.
  - destruct H as (ft & H1 & H2). exists ft. split; auto. revert H2. apply tree2_imp. auto.
Qed.
Lemma VKE_mono : forall G C L f g, VKE G C f g -> VKE G (L ++ C) f g.
Proof. induction G; simpl; intros C L f g H; auto. destruct H; split; auto. apply VK_mono; auto. Qed.
Lemma EK_germ : forall s z A B (P : tape -> (U -> A) -> B -> Prop) C F F' G,
  near (fun u => F u = F' u) -> EKs s z P C F G -> EKs s z P C F' G.
Proof.
  intros s z A B P C F F' G H HE a0 n0 H0 Hw.
  rewrite <- (here H) in H0. destruct (HE _ _ H0 Hw) as (a & b & L & n' & H1 & H2).
  exists a, b, L, n'. split; auto. revert H H1. apply near2. intros u E1 E2. now rewrite <- E1.
Qed.
Lemma VK_germ : forall t C f f' g, near (fun u => f u = f' u) -> VK t C f g -> VK t C f' g.
Proof.
  induction t; simpl; intros C f f' g H HV; auto.
  - destruct HV as (H1 & l & H2 & H3). split; [now rewrite <- (here H)|].
    exists l. split; auto. eapply diff_germ; eauto.
  - revert H HV. apply near2. congruence.
  - destruct HV as [H1 H2]. split.
    + eapply IHt1; [|exact H1]. revert H. apply near1. intros u ->. reflexivity.
    + eapply IHt2; [|exact H2]. revert H. apply near1. intros u ->. reflexivity.
  - destruct g as [g|g]; destruct HV as (f1 & H1 & H2); exists f1; split; auto; revert H H1; apply near2; congruence.
  - intros L f1 g1 H1. eapply EK_germ; [|apply HV, H1]. revert H. apply near1. intros u ->. reflexivity.
  - destruct HV as (fs & H1 & H2). exists fs. split; auto. revert H H1. apply near2. congruence.
  - destruct HV as (ft & H1 & H2). exists ft. split; auto. revert H H1. apply near2. congruence.
Qed.

(* ---- monad lemmas ------------------------------------------------------------------------------------ *)
Lemma into_ok : forall G H s (m : mem s H) (r : ren G H) (x : den R s) a b, look m b = x -> rok R r a b -> @rok R (s :: G) H (into m r) (x, a) b.
Proof.
  intros G H s m r x a b Hm Hr t v. revert m r x a Hm Hr.
  apply (mem_inv (fun s v => forall (m : mem s H) (r : ren G H) (x : den R s) a, look m b = x -> rok R r a b -> look (into m r v) b = @look R _ (s :: G) v (x, a))); simpl; auto.
Qed.
Lemma applied_ev : forall G a b (f : tm G (TFun a b)) r x q n, bind (evR f r) (fun c => c x) = Some (q, n, 0) ->
  exists n', evR (applied f) ((x, r) : env R (a :: G)) = Some (q, n', 0) /\ n' <= n + 2.
Proof.
  assert (forall G a b (f : tm G (TFun a b)) r x q n, bind (evR f r) (fun c => c x) = Some (q, n, 0) ->
    exists n', evR (tapp (wk a f) v0) ((x, r) : env R (a :: G)) = Some (q, n', 0) /\ n' <= n + 2) as HV.
  { intros G a b f r x q n H. apply bind_inv in H as (c & n1 & n2 & E1 & E2 & ->). cbn [ev]. rewrite wk_ok, E1. cbn. rewrite E2. cbn. eexists. split; [reflexivity|lia]. }
  enough (forall G t (f : tm G t), match t return tm G t -> Prop with
    | TFun a b => fun f => forall r x q n, bind (evR f r) (fun c => c x) = Some (q, n, 0) ->
        exists n', evR (applied f) ((x, r) : env R (a :: G)) = Some (q, n', 0) /\ n' <= n + 2
    | _ => fun _ => True end f) as HE by (intros G a b f; exact (HE G (TFun a b) f)).
  assert (forall G t (f : tm G t), applied_any f = applied_var f -> match t return tm G t -> Prop with
    | TFun a b => fun f => forall r x q n, bind (evR f r) (fun c => c x) = Some (q, n, 0) ->
        exists n', evR (applied f) ((x, r) : env R (a :: G)) = Some (q, n', 0) /\ n' <= n + 2
    | _ => fun _ => True end f) as HO.
  { intros G t f Hf. destruct t; try exact I. intros r x q n H. unfold applied. rewrite Hf. now apply HV. }
  destruct f; try exact I; try (apply HO; reflexivity).
  - intros r x q n H. cbn [applied applied_any].
    change (tick (evR f ((x, r) : env R (a :: G))) = Some (q, n, 0)) in H. apply tick_inv in H as (n1 & H & ->). exists n1. split; [exact H|lia].
  - exact (HO G (TFun a b) (tfix f) eq_refl).
Qed.
Lemma giving_ev : forall G a (e : tm G a) H (r : ren G H) (s : mem TS H) x y v n, rok R r x y -> evR e x = Some (v, n, 0) ->
  exists n', evR (giving e r s) y = Some ((v, look s y), n', 0) /\ n' <= n + 2.
Proof.
  assert (forall G a (e : tm G a) H (r : ren G H) (s : mem TS H) x y v n, rok R r x y -> evR e x = Some (v, n, 0) ->
    exists n', evR (tpair (rn e r) (tvar s)) y = Some ((v, look s y), n', 0) /\ n' <= n + 2) as HP.
  { intros G a e H r s x y v n Hr He. cbn [ev]. rewrite (@rn_ok R RO fuel _ _ e _ r x y Hr), He. cbn. eexists. split; [reflexivity|lia]. }
  induction e; intros H rr s x y v n' Hr He; try (apply (HP _ _ _ _ rr s x y v n' Hr); exact He).
  - cbn [ev] in He. apply tick_inv in He as (n1 & He & ->). apply bind_inv in He as (p & m1 & m2 & E1 & E2 & ->).
    rewrite <- (@rn_ok R RO fuel _ _ e1 _ rr x y Hr) in E1.
    destruct (IHe2 _ (up rr) (Pop s) ((p, x) : env R (a :: G)) ((p, y) : env R (a :: H)) _ _ (@up_ok R _ _ rr _ _ _ _ Hr) E2) as (n3 & E3 & B3).
    eexists. split; [exact (let_ev fuel _ _ _ E1 E3)|lia].
  - cbn [ev] in He. apply tick_inv in He as (n1 & He & ->). apply bind_inv in He as (p & m1 & m2 & E1 & E2 & ->).
    rewrite <- (@rn_ok R RO fuel _ _ e1 _ rr x y Hr) in E1. destruct p as [p|p].
    + destruct (IHe2 _ (up rr) (Pop s) ((p, x) : env R (a :: G)) ((p, y) : env R (a :: H)) _ _ (@up_ok R _ _ rr _ _ _ _ Hr) E2) as (n3 & E3 & B3).
      eexists. split; [exact (casel_ev fuel _ _ _ _ E1 E3)|lia].
    + destruct (IHe3 _ (up rr) (Pop s) ((p, x) : env R (b :: G)) ((p, y) : env R (b :: H)) _ _ (@up_ok R _ _ rr _ _ _ _ Hr) E2) as (n3 & E3 & B3).
      eexists. split; [exact (caser_ev fuel _ _ _ _ E1 E3)|lia].
Qed.
Lemma app_ev : forall G a b (e : tm G (TFun a b)) (e' : tm G a) r c x q n1 n2 n3, evR e r = Some (c, n1, 0) -> evR e' r = Some (x, n2, 0) ->
  c x = Some (q, n3, 0) -> evR (tapp e e') r = Some (q, S (n1 + (n2 + n3)), 0).
Proof. intros G a b e e' r c x q n1 n2 n3 H1 H2 H3. cbn [ev]. rewrite H1, H2. cbn [bind]. rewrite H3. reflexivity. Qed.
Lemma run_lam : forall G a (b : tm (TS :: G) (TProd a TS)) r s q n, evR b ((s, r) : env R (TS :: G)) = Some (q, n, 0) -> run (tlam b) r s = Some (q, S n, 0).
Proof. intros G a b r s q n H. exact (f_equal (fun m => bind (tick (ret tt)) (fun _ => m)) H). Qed.
Lemma run_pure : forall G a (e : tm G a) r s v n, evR e r = Some (v, n, 0) ->
  exists n', run (mpure e) r s = Some ((v, s), n', 0) /\ n' <= n + 10.
Proof.
  intros G a e r s v n H.
  destruct (@giving_ev _ _ e _ (@shift G TS) Top r ((s, r) : env R (TS :: G)) v n ltac:(intros t m; reflexivity) H) as (n' & E1 & B1).
  eexists. split; [exact (run_lam _ _ _ E1)|lia].
Qed.
(* running what a computation was bound in, with its value and state where the renaming says *)
Lemma run_rest : forall G H a b (k : tm (a :: G) (TM b)) (rr : ren (TS :: a :: G) H) r s x y q n, @rok R (TS :: a :: G) H rr (s, (x, r)) y ->
  run k (x, r) s = Some (q, n, 0) -> exists n', evR (rn (applied k) rr) y = Some (q, n', 0) /\ n' <= n + 2.
Proof.
  intros G H a b k rr r s x y q n Hr Hk. destruct (@applied_ev _ _ _ k _ _ _ _ Hk) as (n' & E1 & B1).
  exists n'. split; [|exact B1]. rewrite (@rn_ok R RO fuel _ _ (applied k) _ rr _ _ Hr). exact E1.
Qed.
Lemma run_bind : forall G a b (m : tm G (TM a)) (k : tm (a :: G) (TM b)) r s x s1 n1 q n2,
  run m r s = Some ((x, s1), n1, 0) -> run k (x, r) s1 = Some (q, n2, 0) ->
  exists n', run (mbind m k) r s = Some (q, n', 0) /\ n' <= n1 + n2 + 20.
Proof.
  intros G a b m k r s x s1 n1 q n2 H1 H2. destruct (@applied_ev _ _ _ m _ _ _ _ H1) as (m1 & E1 & B1).
  destruct (@run_rest G (TS :: a :: TProd a TS :: TS :: G) a b k (into Top (into (Pop Top) skip4)) r s1 x (s1, (x, ((x, s1), (s, r)))) q n2) as (m2 & E2 & B2);
    [apply into_ok; [reflexivity|]; apply into_ok; [reflexivity|]; intros t v; reflexivity|exact H2|].
  eexists. split; [|shelve]. apply run_lam. eapply let_ev; [exact E1|]. eapply let_ev; [reflexivity|]. eapply let_ev; [reflexivity|exact E2].
  Unshelve. lia.
Qed.
Lemma run_vbind : forall G a b (e : tm G a) (k : tm (a :: G) (TM b)) r s x n1 q n2,
  evR e r = Some (x, n1, 0) -> run k (x, r) s = Some (q, n2, 0) -> exists n', run (vbind e k) r s = Some (q, n', 0) /\ n' <= n1 + n2 + 10.
Proof.
  intros G a b e k r s x n1 q n2 H1 H2.
  destruct (@run_rest G (a :: TS :: G) a b k (into (Pop Top) (into Top skip2)) r s x (x, (s, r)) q n2) as (m2 & E2 & B2);
    [apply into_ok; [reflexivity|]; apply into_ok; [reflexivity|]; intros t v; reflexivity|exact H2|].
  eexists. split; [|shelve]. apply run_lam. eapply let_ev; [rewrite wk_ok; exact H1|exact E2].
  Unshelve. lia.
Qed.
Lemma EK_pure : forall s z G A a (P : tape -> (U -> A) -> den R a -> Prop) C F (e : tm G a) r,
  (forall a0 n0, F u0 = Some (a0, n0, 0) -> exists f v n, near (fun u => F u = Some (f u, n0, 0)) /\
     evR e r = Some (v, n, 0) /\ P C f v /\ n + 10 <= KM * n0 + s) ->
  EKs s z P C F (run (mpure e) r).
Proof.
  intros s z G A a P C F e r H a0 n0 H0 Hw. destruct (H _ _ H0) as (f & v & n & L & E1 & HP & Hn).
  destruct (run_pure e r (encS base C) E1) as (n' & E2 & B2).
  exists f, v, nil, n'. split; [exact L|split; [exact E2|split; [exact HP|split; [exact Hw|split; [lia|simpl; lia]]]]].
Qed.
Lemma EK_ret : forall G A a (P : tape -> (U -> A) -> den R a -> Prop) C f (e : tm G a) r v n,
  evR e r = Some (v, n, 0) -> n <= 90 -> P C f v -> EKs 100 0 P C (fun u => ret (f u)) (run (mpure e) r).
Proof.
  intros G A a P C f e r v n E1 Hn HP. apply EK_pure. intros a0 n0 H0. inversion H0; subst.
  exists f, v, n. split; [apply always; reflexivity|split; [exact E1|split; [exact HP|lia]]].
Qed.
Lemma EK_tick : forall s z A B (P : tape -> (U -> A) -> B -> Prop) C F G, s <= KM -> z <= KS ->
  EKs s z P C F G -> EK P C (fun u => tick (F u)) G.
Proof.
  intros s z A B P C F G Hs Hz H a0 n0 H0 Hw. apply tick_inv in H0 as (n1 & H0 & ->).
  destruct (H _ _ H0 Hw) as (a & b & L & n' & H1 & H2 & H3 & H4 & H5 & H6).
  exists a, b, L, n'. split; [|split; [exact H2|split; [exact H3|split; [exact H4|]]]].
  - revert H1. apply near1. intros x ->. reflexivity.
  - rewrite !Nat.mul_succ_r. lia.
Qed.
Lemma EK_bind : forall s z A a b A' (P : tape -> (U -> A) -> den R a -> Prop) (Q : tape -> (U -> A') -> den R b -> Prop)
    C F H G (m : tm G (TM a)) (k : tm (a :: G) (TM b)) r,
  EK P C F (run m r) -> (forall L f g, P (L ++ C) f g -> EKs s z Q (L ++ C) (fun u => H u (f u)) (run k (g, r))) ->
  EKs (s + 20) z Q C (fun u => bind (F u) (H u)) (run (mbind m k) r).
Proof.
  intros s z A a b A' P Q C F H G m k r HF HH a0 n0 H0 Hw.
  apply bind_inv in H0 as (a1 & n1 & n2 & H1 & H2 & ->).
  destruct (HF _ _ H1 Hw) as (f & g & L & n' & L1 & E1 & P1 & W1 & C1 & S1).
  assert (f u0 = a1) by (pose proof (here L1) as X; simpl in X; congruence). subst a1.
  destruct (HH _ _ _ P1 _ _ H2 W1) as (f' & g' & L' & n'' & L2 & E2 & P2 & W2 & C2 & S2).
  destruct (run_bind _ _ _ _ E1 E2) as (n3 & E3 & B3).
  exists f', g', (L' ++ L), n3. rewrite <- !app_assoc. split; [|split; [exact E3|split; [exact P2|split; [exact W2|split]]]].
  - revert L1 L2. apply near2. intros x -> X. simpl. now rewrite X.
  - rewrite Nat.mul_add_distr_l. lia.
  - rewrite nodes_app, Nat.mul_add_distr_l. lia.
Qed.
Lemma run_rn : forall G H a (m : tm G (TM a)) (r : ren G H) x y s, rok R r x y -> run (rn m r) y s = run m x s.
Proof. intros. unfold run. rewrite (@rn_ok R RO fuel _ _ m _ r x y); auto. Qed.
Lemma EK_eq : forall s z A B (P : tape -> (U -> A) -> B -> Prop) C F G G', (forall s, G s = G' s) -> EKs s z P C F G -> EKs s z P C F G'.
Proof. intros s z A B P C F G G' H HE a0 n0 H0 Hw. rewrite <- H. exact (HE _ _ H0 Hw). Qed.
Lemma EK_wk : forall s z A a (P : tape -> (U -> A) -> den R a -> Prop) C F G b (m : tm G (TM a)) (x : den R b) r,
  EKs s z P C F (run m r) -> EKs s z P C F (run (wk b m) (x, r)).
Proof. intros. eapply EK_eq; [|eassumption]. intros st. symmetry. apply run_rn. intros t v. reflexivity. Qed.
Lemma VK_look : forall t G (m : mem t G) C f g, VKE G C f g -> VK t C (fun u => look m (f u)) (look (Mmem m) g).
Proof. induction m; simpl; intros C f g [H1 H2]; auto. Qed.

(* rules for computations that are not of the form [run] *)
Lemma EK_step : forall s z c A B (P : tape -> (U -> A) -> B -> Prop) C F G G',
  (forall st q n, G st = Some (q, n, 0) -> exists n', G' st = Some (q, n', 0) /\ n' <= n + c) ->
  EKs s z P C F G -> EKs (s + c) z P C F G'.
Proof.
  intros s z c A B P C F G G' H HE a0 n0 H0 Hw. destruct (HE _ _ H0 Hw) as (a & b & L & n' & H1 & H2 & H3 & H4 & H5 & H6).
  destruct (H _ _ _ H2) as (n'' & H7 & H8). exists a, b, L, n''.
  split; [exact H1|split; [exact H7|split; [exact H3|split; [exact H4|lia]]]].
Qed.
Lemma EK_bind' : forall s z A B A' B' (P : tape -> (U -> A) -> B -> Prop) (Q : tape -> (U -> A') -> B' -> Prop) C F H G J,
  EK P C F G -> (forall L f g, P (L ++ C) f g -> EKs s z Q (L ++ C) (fun u => H u (f u)) (fun st => J (g, st))) ->
  EKs s z Q C (fun u => bind (F u) (H u)) (fun st => bind (G st) J).
Proof.
  intros s z A B A' B' P Q C F H G J HF HH a0 n0 H0 Hw.
  apply bind_inv in H0 as (a1 & n1 & n2 & H1 & H2 & ->).
  destruct (HF _ _ H1 Hw) as (f & g & L & n' & L1 & E1 & P1 & W1 & C1 & S1).
  assert (f u0 = a1) by (pose proof (here L1) as X; simpl in X; congruence). subst a1.
  destruct (HH _ _ _ P1 _ _ H2 W1) as (f' & g' & L' & n'' & L2 & E2 & P2 & W2 & C2 & S2).
  exists f', g', (L' ++ L), (n' + n''). rewrite <- !app_assoc.
  split; [|split; [exact (bind_eq _ E1 E2)|split; [exact P2|split; [exact W2|split]]]].
  - revert L1 L2. apply near2. intros x -> X. simpl. now rewrite X.
  - rewrite Nat.mul_add_distr_l. lia.
  - rewrite nodes_app, Nat.mul_add_distr_l. lia.
Qed.
Lemma EK_ttick : forall s z A B (P : tape -> (U -> A) -> B -> Prop) C F G, s + 1 <= KM -> z <= KS ->
  EKs s z P C F G -> EK P C (fun u => tick (F u)) (fun st => tick (G st)).
Proof.
  intros s z A B P C F G Hs Hz H. apply EK_tick with (s := s + 1) (z := z); auto. eapply EK_step; [|exact H].
  intros st q n E1. rewrite E1. simpl. eexists. split; [reflexivity|lia].
Qed.
Lemma EK_iter : forall t n C (F : U -> nat -> den R t -> M (den R t)) (J : nat -> den R (MD t) * den R TS -> M (den R (MD t) * den R TS)) z z',
  (forall L i f g, VK t (L ++ C) f g -> EKs 100 0 (VK t) (L ++ C) (fun u => F u i (f u)) (fun s => J i (g, s))) ->
  VK t C z z' -> EK (VK t) C (fun u => miter n (F u) (z u)) (fun s => miter n J (z', s)).
Proof.
  induction n; intros C F J z z' HF Hz; simpl.
  - intros a0 n0 H0 Hw. inversion H0; subst. exists z, z', nil, 0. simpl. split; [apply always; reflexivity|]. repeat split; auto; lia.
  - apply EK_bind' with (P := VK t) (H := fun u a => tick (F u n a)) (G := fun s => miter n J (z', s)) (J := fun p => tick (J n p)).
    + apply IHn; auto.
    + intros L f g Hfg. apply EK_ttick with (F := fun u => F u n (f u)) (G := fun s => J n (g, s)) (s := 100) (z := 0); auto; unfold KM, KS; lia.
Qed.
Section Lists.
Variables A B : Type.
Variable R0 : tape -> (U -> A) -> B -> Prop.
Hypothesis R0_mono : forall C L f g, R0 C f g -> R0 (L ++ C) f g.
Lemma R0s_mono : forall C L fs gs, Forall2 (R0 C) fs gs -> Forall2 (R0 (L ++ C)) fs gs.
Proof. intros C L fs gs H. induction H; constructor; auto. Qed.
Lemma EK_fold : forall t (F : U -> A -> den R t -> M (den R t)) (J : B -> den R (MD t) * den R TS -> M (den R (MD t) * den R TS)) fs gs C,
  (forall L f g z z', R0 (L ++ C) f g -> VK t (L ++ C) z z' -> EKs 100 0 (VK t) (L ++ C) (fun u => F u (f u) (z u)) (fun s => J g (z', s))) ->
  Forall2 (R0 C) fs gs -> forall z z', VK t C z z' ->
  EK (VK t) C (fun u => mfold (F u) (map (fun k => k u) fs) (z u)) (fun s => mfold J gs (z', s)).
Proof.
  intros t F J. induction fs as [|f fs IH]; intros gs C HF HL z z' Hz; inversion HL as [|? g ? gs' Hg HL']; subst; simpl.
  - intros a0 n0 H0 Hw. inversion H0; subst. exists z, z', nil, 0. simpl. split; [apply always; reflexivity|]. repeat split; auto; lia.
  - apply EK_bind' with (P := VK t) (H := fun u z => mfold (F u) (map (fun k => k u) fs) z) (G := fun s => tick (J g (z', s))) (J := fun p => mfold J gs' p).
    + apply EK_ttick with (F := fun u => F u (f u) (z u)) (G := fun s => J g (z', s)) (s := 100) (z := 0); try (unfold KM, KS; lia).
      apply (HF nil); auto.
    + intros L z1 z2 H1. apply IH; auto; [|apply R0s_mono, HL'].
      intros L' f1 g1 w w' Q1 Q2. rewrite app_assoc in *. apply HF; auto.
Qed.
(* an array of results, built while the state is threaded through *)
Lemma EK_mapM : forall t (F : U -> A -> M (den R t)) (J0 : B -> den R TS -> M (den R (MD t) * den R TS))
    (J : B -> list (den R (MD t)) * den R TS -> M (list (den R (MD t)) * den R TS)),
  (forall g acc s v s' n, J0 g s = Some ((v, s'), n, 0) -> exists n', J g (acc, s) = Some ((acc ++ [v], s'), n', 0) /\ n' <= n + 60) ->
  forall fs gs C, (forall L f g, R0 (L ++ C) f g -> EK (VK t) (L ++ C) (fun u => F u (f u)) (J0 g)) ->
  Forall2 (R0 C) fs gs -> forall facc gacc, VK (TArr t) C facc gacc ->
  EK (VK (TArr t)) C (fun u => bind (mseq (fun x => tick (F u x)) (map (fun k => k u) fs)) (fun r => ret (facc u ++ r))) (fun s => mfold J gs (gacc, s)).
Proof.
  intros t F J0 J HJ. induction fs as [|f fs IH]; intros gs C HF HL facc gacc Hacc; inversion HL as [|? g ? gs' Hg HL']; subst; simpl.
  - intros a0 n0 H0 Hw. inversion H0; subst. exists facc, gacc, nil, 0. simpl.
    split; [apply always; intros u; now rewrite app_nil_r|]. repeat split; auto; lia.
  - eapply EK_germ with (F := fun u => bind (tick (F u (f u))) (fun b => bind (mseq (fun x => tick (F u x)) (map (fun k => k u) fs)) (fun r => ret ((facc u ++ [b]) ++ r)))).
    { apply always. intros u. destruct (tick (F u (f u))) as [[[b n] k]|]; simpl; auto.
      destruct (mseq (fun x => tick (F u x)) (map (fun k => k u) fs)) as [[[r n'] k']|]; simpl; auto.
      rewrite <- app_assoc. simpl. now rewrite !Nat.add_0_r. }
    apply EK_bind' with (P := fun C' f' q => VK (TArr t) C' (fun u => facc u ++ [f' u]) q)
      (H := fun u b => bind (mseq (fun x => tick (F u x)) (map (fun k => k u) fs)) (fun r => ret ((facc u ++ [b]) ++ r)))
      (G := fun s => tick (J g (gacc, s))) (J := fun p => mfold J gs' p).
    + apply EK_ttick with (F := fun u => F u (f u)) (G := fun s => J g (gacc, s)) (s := 60) (z := 0); try (unfold KM, KS; lia).
      intros a0 n0 H0 Hw. destruct (HF nil _ _ Hg _ _ H0 Hw) as (a & b & L & n' & H1 & H2 & H3 & H4 & H5 & H6).
      destruct (HJ _ gacc _ _ _ _ H2) as (n'' & H7 & H8). exists a, (gacc ++ [b]), L, n''.
      split; [exact H1|split; [exact H7|split; [|split; [exact H4|lia]]]].
      apply (VK_mono (TArr t)) with (L := L) in Hacc. destruct Hacc as (fs' & L' & HF'). exists (fs' ++ [a]). split.
      * revert L'. apply near1. intros u ->. now rewrite map_app.
      * apply Forall2_app; auto.
    + intros L f1 g1 H1. apply IH; auto; [|apply R0s_mono, HL'].
      intros L' f2 g2 Q1. rewrite app_assoc in *. apply HF; auto.
Qed.
End Lists.
Lemma EK_kleene : forall a b n C (F : U -> (den R a -> M (den R b)) -> den R a -> M (den R b)) (J : (den R (MD a) -> M (den R (TM (MD b)))) -> den R (MD a) -> M (den R (TM (MD b)))),
  (forall L f g x y, VK (TFun a b) (L ++ C) f g -> VK a (L ++ C) x y ->
       EK (VK b) (L ++ C) (fun r => F r (f r) (x r)) (fun s => bind (J g y) (fun c => c s))) ->
  VK (TFun a b) C (fun r => kleene n (F r)) (kleene n J).
Proof.
  induction n; intros C F J H L f1 g1 H1; simpl.
  - intros a0 n0 H0. discriminate.
  - apply H; auto. apply (VK_mono (TFun a b)). apply IHn. exact H.
Qed.

(* ---- data operations --------------------------------------------------------------------------------- *)
(* steps of a value per step of the program: a computation that only returns it takes ten more *)
Definition Kp : nat := 399.
Notation E := (Es U u0 Kp 0).
Lemma VK_op0 : forall C a (o : op0 a), VK a C (fun _ => op0v R o) (op0v R (Mop0 o)).
Proof.
  intros C a o. destruct o; simpl; auto.
  - apply always. auto.
  - exists nil. split; [apply always; auto|constructor].
Qed.
Lemma E_op1 : forall C a b (o : op1 a b) f g, VK a C f g -> E (VK b C) (fun u => op1v R o (f u)) (op1v R (Mop1 o) g).
Proof.
  intros C a b o f g H. destruct o; simpl in *.
  - apply E_ret with (f := fun u => fst (f u)), H.
  - apply E_ret with (f := fun u => snd (f u)), H.
  - apply E_ret with (f := fun u => inl (f u)). exists f. split; auto. apply always. reflexivity.
  - apply E_ret with (f := fun u => inr (f u)). exists f. split; auto. apply always. reflexivity.
  - apply (@E_len U u0 Kp _ _ (VK a C) f g H).
  - apply (@E_unnode U u0 Kp _ _ (VK a C) f g H).
Qed.
Lemma E_op2 : forall C a b c (o : op2 a b c) f g f' g', VK a C f g -> VK b C f' g' ->
  E (VK c C) (fun u => op2v R o (f u) (f' u)) (op2v R (Mop2 o) g g').
Proof.
  intros C a b c o f g f' g' H H'. destruct o; simpl in *.
  - apply E_ret with (f := fun u => (f u, f' u)). split; auto.
  - apply (@E_geta U u0 Kp _ _ (VK a C) f g f' g' H H').
  - apply (@E_cons U u0 Kp _ _ (VK a C) f g f' g' H H').
  - apply (@E_snoc U u0 Kp _ _ (VK a C) f g f' g' H H').
  - apply (@E_node U u0 Kp _ _ (VK a C) f g f' g' H H').
  - apply (@E_zipa U u0 Kp _ _ _ _ (VK a C) (VK b C) f g f' g' H H').
  - apply (@E_gather U u0 Kp _ _ (VK a C) f g f' g' H H').
  - exact (@E_intop U u0 Kp o f g f' g' H H').
  - apply E_ret with (f := fun u => boolv (decide c (f u ?= f' u)%Z)). apply (@Bool_const U u0 (fun u => decide c (f u ?= f' u)%Z)).
    revert H H'. apply near2. intros u -> ->. reflexivity.
Qed.
Lemma E_op3 : forall C a b c d (o : op3 a b c d) f g f' g' f'' g'', VK a C f g -> VK b C f' g' -> VK c C f'' g'' ->
  E (VK d C) (fun u => op3v R o (f u) (f' u) (f'' u)) (op3v R (Mop3 o) g g' g'').
Proof. intros C a b c d o f g f' g' f'' g'' H H' H''. destruct o; simpl in *. apply (@E_seta U u0 Kp _ _ (VK a C) f g f' g' f'' g'' H H' H''). Qed.
Lemma EK_op : forall G t C F (m : M (den R (MD t))) (e : tm G (MD t)) r j, E (VK t C) F m -> evR e r = ticks j m -> j <= 80 ->
  EKs 100 0 (VK t) C F (run (mpure e) r).
Proof.
  intros G t C F m e r j H E1 Hj. apply EK_pure. intros a0 n0 H0. destruct (H _ _ H0) as (f & v & n & L & E2 & HP & Hn).
  rewrite E2 in E1. exists f, v, (j + n). split; [exact L|split; [exact E1|split; [exact HP|unfold KM, Kp in *; lia]]].
Qed.

(* ---- primitives ---------------------------------------------------------------------------------------- *)
Lemma zero_ev : forall G (r : env R G) C, exists n, evR dzero r = Some (enc DZero, n, 0) /\ n <= 5 /\ RepS C 1 0%R (enc DZero).
Proof. intros G r C. simpl. eexists. split; [reflexivity|]. split; [lia|]. exists DZero. simpl. auto. Qed.
Lemma scale_ev : forall G (c : tm G TR) (d : tm G TDelta) r C x g y sz n1 n2,
  evR c r = Some (x, n1, 0) -> evR d r = Some (g, n2, 0) -> RepS C sz y g ->
  exists g' n', evR (dscale c d) r = Some (g', n', 0) /\ RepS C (S sz) (x * y)%R g' /\ n' <= n1 + n2 + 10.
Proof.
  intros G c d r C x g y sz n1 n2 H1 H2 (u & -> & Hs & <- & Hz). unfold dscale. cbn [ev]. rewrite H1, H2. simpl.
  eexists _, _. split; [reflexivity|]. split; [|lia]. exists (DScale x u). simpl. repeat split; auto. lia.
Qed.
Lemma add_ev : forall G (c d : tm G TDelta) r C g1 g2 y1 y2 s1 s2 n1 n2,
  evR c r = Some (g1, n1, 0) -> evR d r = Some (g2, n2, 0) -> RepS C s1 y1 g1 -> RepS C s2 y2 g2 ->
  exists g' n', evR (dadd c d) r = Some (g', n', 0) /\ RepS C (S (s1 + s2)) (y1 + y2)%R g' /\ n' <= n1 + n2 + 15.
Proof.
  intros G c d r C g1 g2 y1 y2 s1 s2 n1 n2 H1 H2 (u & -> & Hs & <- & Hz) (v & -> & Hs' & <- & Hz').
  unfold dadd. cbn [ev]. rewrite H1, H2. simpl.
  eexists _, _. split; [reflexivity|]. split; [|lia]. exists (DAdd u v). simpl. repeat split; auto. lia.
Qed.
Lemma cscale_ev : forall G (c : coef G) (d : tm G TDelta) r C x g y n,
  coef_ev fuel c r x -> evR d r = Some (g, n, 0) -> RepS C 1 y g ->
  exists g' n', evR (cscale dlt c d) r = Some (g', n', 0) /\ RepS C 2 (x * y)%R g' /\ n' <= n + KP + 10.
Proof.
  intros G [|t] d r C x g y n Hc Hd Hr; simpl in *.
  - subst x. exists g, n. rewrite Rmult_1_l. split; [exact Hd|]. split; [|lia].
    destruct Hr as (u & H1 & H2 & H3 & H4). exists u. repeat split; auto.
  - destruct Hc as (m & Hm & Hb). destruct (scale_ev _ _ _ Hm Hd Hr) as (g' & n' & H1 & H2 & H3).
    exists g', n'. split; [exact H1|split; [exact H2|lia]].
Qed.
(* binding one Delta and returning its identifier: the only place where the tape grows *)
Lemma EK_push : forall G (r : env R G) C (f : U -> R) l (u : tm G TDelta) (v : tm G TR) g sz n1 n2 F n s,
  near (fun x => F x = Some (f x, n, 0)) ->
  diff f l -> evR u r = Some (g, n1, 0) -> RepS C sz (l h) g ->
  evR v r = Some (f u0, n2, 0) -> n1 + n2 + 100 <= KM * n + s -> sz + 1 <= KS * n + KS ->
  EKs s KS RealM C F (run (deltaLet v u) r).
Proof.
  intros G r C f l u v g sz n1 n2 F n s HF Hd E1 (w & -> & Hs & Hy & Hz) E2 Hn Hsz a0 n0 H0 Hw.
  rewrite (here HF) in H0. inversion H0; subst. clear H0.
  assert (exists n3, run (deltaLet v u) r (encS base C) = Some (((f u0, enc (DVar (fresh base C))), encS base (w :: C)), n3, 0) /\ n3 <= n1 + n2 + 60) as (n5 & E5 & B5).
  { unfold run, deltaLet. cbn [ev tick ret bind]. rewrite wk_ok, E2. cbn [bind tick ret].
    match goal with |- context [@ev ?A ?B ?m ?I ?J (@rn ?a1 ?a2 ?a3 u ?b) ?z] =>
      assert (@ev A B m I J (@rn a1 a2 a3 u b) z = Some (enc w, n1, 0)) as -> by (rewrite <- E1; apply rn_ok; intros t q; reflexivity) end.
    unfold encS, fresh. simpl. eexists. split; [|shelve].
    replace (Z.of_nat (base + length C) + 1)%Z with (Z.of_nat (base + S (length C))) by lia. reflexivity.
    Unshelve. lia. }
  exists f, (f u0, enc (DVar (fresh base C))), [w], n5.
  split; [exact HF|split; [exact E5|split; [|split; [|split]]]].
  - split; [reflexivity|]. exists l. split; [exact Hd|]. exists (DVar (fresh base C)). simpl. repeat split; auto; try (unfold fresh; simpl; lia).
    unfold upd. rewrite Nat.eqb_refl. exact Hy.
  - simpl. auto.
  - lia.
  - simpl. lia.
Qed.
Lemma EK_prim1 : forall G (r : env R G) C p f g, RealM C f g ->
  EKs 400 KS RealM C (fun u => guard (ok1 p (f u)) (sem1 p (f u))) (run (mprim1 p) (g, r)).
Proof.
  intros G r C p f [x d] (Hv & l & Hd & Hr) a0 n0 H0. simpl in Hv, Hr. subst x. pose proof H0 as H1.
  apply guard_inv in H1 as (Hok & _ & ->). revert a0 H0.
  destruct (@prim1_coef fuel (MR :: G) p (tfst v0) ((f u0, d), r) (f u0) Hok eq_refl) as (n1 & E1 & B1).
  destruct (@scale_ev _ _ (tsnd v0) _ _ _ _ _ 1 _ 2 E1 eq_refl Hr) as (g' & n2 & E2 & R2 & B2).
  intros a0 H0 Hw. eapply EK_push with (f := fun u => sem1 p (f u)) (l := fun q => (d1R p (f u0) * l q)%R) (n := 0) (n2 := 3); [| |exact E2|exact R2| | | |exact H0|exact Hw].
  - generalize (diff_near Hd (prim1_open p _ Hok)). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - apply diff_comp; auto. apply prim1_derive, Hok.
  - simpl. unfold guard. rewrite Hok. reflexivity.
  - unfold KP in *. lia.
  - unfold KS. lia.
Qed.
Lemma EK_prim2 : forall G (r : env R G) C p f g f' g', RealM C f g -> RealM C f' g' ->
  EKs 400 KS RealM C (fun u => guard (ok2 p (f u) (f' u)) (sem2 p (f u) (f' u))) (run (mprim2 p) (g', (g, r))).
Proof.
  intros G r C p f [x d] f' [x' d'] (Hv & l & Hd & Hr) (Hv' & l' & Hd' & Hr') a0 n0 H0. simpl in Hv, Hr, Hv', Hr'. subst x x'.
  pose proof H0 as H1. apply guard_inv in H1 as (Hok & _ & ->). revert a0 H0.
  destruct (@prim2_coef fuel (MR :: MR :: G) p (tfst v1) (tfst v0) ((f' u0, d'), ((f u0, d), r)) (f u0) (f' u0) 2 2 Hok (le_n 2) (le_n 2) eq_refl eq_refl) as [C1 C2].
  destruct (@cscale_ev _ _ (tsnd v1) _ _ _ _ _ 2 C1 eq_refl Hr) as (g1 & n1 & E1 & R1 & B1).
  destruct (@cscale_ev _ _ (tsnd v0) _ _ _ _ _ 2 C2 eq_refl Hr') as (g2 & n2 & E2 & R2 & B2).
  destruct (add_ev _ _ _ E1 E2 R1 R2) as (g3 & n3 & E3 & R3 & B3).
  intros a0 H0 Hw. eapply EK_push with (f := fun u => sem2 p (f u) (f' u)) (n := 0) (n2 := 5) (l := fun q => (fst (d2R p (f u0) (f' u0)) * l q + snd (d2R p (f u0) (f' u0)) * l' q)%R);
    [| |exact E3|exact R3| | | |exact H0|exact Hw].
  - generalize (prim2_open p Hd Hd' Hok). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - exact (prim2_diff p Hd Hd' Hok).
  - simpl. unfold guard. rewrite Hok. reflexivity.
  - unfold KP in *. lia.
  - unfold KS. lia.
Qed.
Lemma EK_primi : forall G (r : env R G) p C f g f' k, RealM C f g -> near (fun u => f' u = k) ->
  EKs 400 KS RealM C (fun u => guard (oki p (f u) (f' u)) (semi p (f u) (f' u))) (run (mprimi p) (k, (g, r))).
Proof.
  intros G r p C f [x d] f' k (Hv & l & Hd & Hr) Hk. apply EK_germ with (F := fun u => guard (oki p (f u) k) (semi p (f u) k)).
  { revert Hk. apply near1. intros u ->. reflexivity. }
  intros a0 n0 H0. simpl in Hv, Hr. subst x. pose proof H0 as H1. apply guard_inv in H1 as (Hok & _ & ->). revert a0 H0.
  destruct (@primi_coef fuel p (TI :: MR :: G) (tfst v1) v0 (k, ((f u0, d), r)) _ _ 2 1 Hok eq_refl eq_refl) as (n1 & E1 & B1).
  destruct (@scale_ev _ _ (tsnd v1) _ _ _ _ _ 1 _ 2 E1 eq_refl Hr) as (g' & n2 & E2 & R2 & B2).
  intros a0 H0 Hw. eapply EK_push with (f := fun u => semi p (f u) k) (l := fun q => (diR p (f u0) k * l q)%R) (n := 0) (n2 := 4); [| |exact E2|exact R2| | | |exact H0|exact Hw].
  - generalize (diff_near Hd (primi_open _ _ _ Hok)). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - apply diff_comp with (phi := fun x => semi p x k); auto. apply primi_derive, Hok.
  - simpl. unfold guard. rewrite Hok. reflexivity.
  - unfold KP in *. lia.
  - unfold KS. lia.
Qed.

Lemma RealM_const : forall C c, RealM C (fun _ => c) (c, enc DZero).
Proof.
  intros C c. split; [reflexivity|]. exists (fun _ => 0%R). split; [apply diff_const|]. exists DZero. simpl. auto.
Qed.

(* ---- array primitives with their own rule: one binding for the whole array ------------------------------ *)
Definition adds {B} (C : tape) (c d : nat) (J : B -> den R TDelta -> M (den R TDelta)) (f : U -> R) (b : B) : Prop :=
  exists l, diff f l /\ forall acc y sz, RepS C sz y acc ->
    exists acc' n, J b acc = Some (acc', n, 0) /\ RepS C (sz + c) (y + l h)%R acc' /\ n <= d.
Lemma fold_adds : forall B C c d (J : B -> den R TDelta -> M (den R TDelta)) fs bs, Forall2 (adds C c d J) fs bs ->
  forall z lz acc sz, diff z lz -> RepS C sz (lz h) acc ->
  exists l acc' n, diff (fun u => fold_left Rplus (map (fun k => k u) fs) (z u)) l /\
    mfold J bs acc = Some (acc', n, 0) /\ RepS C (sz + length bs * c) (l h) acc' /\ n <= length bs * (d + 1).
Proof.
  intros B C c d J fs bs H. induction H as [|f b fs bs (l & Hl & Ha) HF IH]; intros z lz acc sz Hz Hr; simpl.
  - exists lz, acc, 0. split; [exact Hz|split; [reflexivity|split; [|lia]]].
    replace (sz + 0 * c) with sz by lia. exact Hr.
  - destruct (Ha _ _ _ Hr) as (acc1 & n1 & E1 & R1 & B1).
    destruct (IH (fun u => z u + f u)%R (fun k => lz k + l k)%R acc1 _ (diff_plus Hz Hl) R1) as (l2 & acc2 & n2 & D2 & E2 & R2 & B2).
    exists l2, acc2, (S n1 + n2).
    split; [exact D2|split; [exact (bind_eq (fun z => mfold J bs z) (f_equal tick E1) E2)|split; [|rewrite Nat.mul_succ_l; lia]]].
    replace (sz + S (length bs) * c) with (sz + c + length bs * c) by lia. exact R2.
Qed.
Lemma sum_ev : forall G (a : tm G (TArr TR)) r l n, evR a r = Some (l, n, 0) ->
  evR (tsum a) r = Some (fold_left Rplus l 0%R, S (n + (length l + 0)), 0).
Proof. intros G a r l n H. cbn [ev]. rewrite H. reflexivity. Qed.
Lemma dot_ev : forall G (a b : tm G (TArr TR)) r l l' n n', evR a r = Some (l, n, 0) -> evR b r = Some (l', n', 0) -> length l = length l' ->
  evR (tdot a b) r = Some (fold_left Rplus (map (fun p => fst p * snd p)%R (combine l l')) 0%R,
    S (n + (n' + (length l + (length l + 0)))), 0).
Proof.
  intros G a b r l l' n n' H H' Hl. cbn [ev]. rewrite H, H'. cbn [bind]. unfold mdot. rewrite mzip_eq by exact Hl.
  cbn [bind]. unfold msum, ticks, ret. rewrite map_length, combine_length, <- Hl, Nat.min_id. reflexivity.
Qed.
Definition JS {G} (r : env R G) (x : den R MR) (acc : den R TDelta) := evR (dadd v1 (tsnd v0)) (x, (acc, r)).
Lemma adds_sum : forall G (r : env R G) C f g, RealM C f g -> adds C 2 20 (JS r) f g.
Proof.
  intros G r C f [x d] (Hv & l & Hd & Hr). exists l. split; [exact Hd|]. intros acc y sz Hy.
  destruct (@add_ev (MR :: TDelta :: G) v1 (tsnd v0) ((x, d), (acc, r)) _ _ _ _ _ _ _ 1 2 eq_refl eq_refl Hy Hr) as (g' & n & E1 & R1 & B1).
  exists g', n. split; [exact E1|split; [|lia]]. replace (sz + 2) with (S (sz + 1)) by lia. exact R1.
Qed.
Definition JD {G} (r : env R G) (x : den R (TProd MR MR)) (acc : den R TDelta) :=
  evR (dadd v1 (dadd (dscale (tfst (tsnd v0)) (tsnd (tfst v0))) (dscale (tfst (tfst v0)) (tsnd (tsnd v0))))) (x, (acc, r)).
Lemma adds_dot : forall G (r : env R G) C f g f' g', RealM C f g -> RealM C f' g' ->
  adds C 6 80 (JD r) (fun u => f u * f' u)%R (g, g').
Proof.
  intros G r C f [x d] f' [x' d'] (Hv & l & Hd & Hr) (Hv' & l' & Hd' & Hr'). simpl in Hv, Hr, Hv', Hr'. subst x x'.
  eexists. split; [apply (diff_mult Hd Hd')|]. intros acc y sz Hy. simpl.
  set (rr := (((f u0, d), (f' u0, d')), (acc, r)) : env R (TProd MR MR :: TDelta :: G)).
  destruct (@scale_ev _ (tfst (tsnd v0)) (tsnd (tfst v0)) rr _ _ _ _ _ 3 3 eq_refl eq_refl Hr) as (g1 & n1 & E1 & R1 & B1).
  destruct (@scale_ev _ (tfst (tfst v0)) (tsnd (tsnd v0)) rr _ _ _ _ _ 3 3 eq_refl eq_refl Hr') as (g2 & n2 & E2 & R2 & B2).
  destruct (add_ev _ _ _ E1 E2 R1 R2) as (g3 & n3 & E3 & R3 & B3).
  destruct (@add_ev _ v1 _ rr _ _ _ _ _ _ _ 1 _ eq_refl E3 Hy R3) as (g4 & n4 & E4 & R4 & B4).
  exists g4, n4. split; [exact E4|split; [|lia]]. replace (sz + 6) with (S (sz + 5)) by lia. exact R4.
Qed.
Lemma EK_sum : forall G (r : env R G) C f g, VK (TArr TR) C f g ->
  EKs 400 KS RealM C (fun u => msum RO (f u)) (run msumT (g, r)).
Proof.
  intros G r C f g (fs & L & HF).
  apply EK_germ with (F := fun u => msum RO (map (fun k => k u) fs)); [revert L; apply near1; intros u ->; reflexivity|].
  destruct (@zero_ev (TArr MR :: G) (g, r) C) as (nz & Ez & Bz & Rz).
  assert (Forall2 (adds C 2 20 (@JS (TArr MR :: G) (g, r))) fs g) as HA.
  { generalize ((g, r) : env R (TArr MR :: G)). intros rr. clear Ez L. induction HF; constructor; auto. now apply adds_sum. }
  destruct (fold_adds HA (diff_const U u0 0) Rz) as (l & acc & n & Dl & Ea & Ra & Ba).
  pose proof (Forall2_len HF) as Hl.
  set (N := @length (den R MR) g) in *. set (N' := @length (U -> den R TR) fs) in *.
  assert (evR (tfold (dadd v1 (tsnd v0)) dzero v0) ((g, r) : env R (TArr MR :: G)) = Some (acc, S (nz + (1 + n)), 0)) as Eu.
  { eapply fold_ev; [exact Ez|reflexivity|exact Ea]. }
  pose proof (@map_fst_ev fuel (TArr MR :: G) TDelta v0 (g, r) g 1 eq_refl) as Em.
  eapply EK_push with (f := fun u => fold_left Rplus (map (fun k => k u) fs) 0%R) (n := N'); [| |exact Eu|exact Ra| | |].
  - apply always. intros u. unfold msum, sumX, ticks, ret. rewrite map_length, Nat.add_0_r. reflexivity.
  - exact Dl.
  - refine (eq_trans (sum_ev _ _ Em) (f_equal (fun x => Some (x, _, 0)) _)). f_equal. clear - HF.
    induction HF as [|f g fs gs [Hv _] HF IH]; simpl; [reflexivity|]. f_equal; [exact Hv|exact IH].
  - rewrite map_length. name_length g N. name_length fs N'. clearbody N N'. subst N'. unfold KM. lia.
  - name_length g N. name_length fs N'. clearbody N N'. subst N'. unfold KS. lia.
Qed.
Lemma EK_dot : forall G (r : env R G) C f g f' g', VK (TArr TR) C f g -> VK (TArr TR) C f' g' ->
  EKs 400 KS RealM C (fun u => mdot RO (f u) (f' u)) (run mdotT (g', (g, r))).
Proof.
  intros G r C f g f' g' (fs & L & HF) (fs' & L' & HF').
  apply EK_germ with (F := fun u => mdot RO (map (fun k => k u) fs) (map (fun k => k u) fs')).
  { revert L L'. apply near2. intros u -> ->. reflexivity. }
  intros a0 n0 H0.
  assert (length fs = length fs') as Hl.
  { unfold mdot in H0. apply bind_inv in H0 as (q & n1 & n2 & H1 & _). apply mzip_len in H1. now rewrite !map_length in H1. }
  revert a0 n0 H0. pose proof (Forall2_len HF) as Hl1. pose proof (Forall2_len HF') as Hl2.
  pose proof (mdot_curve fs fs' Hl) as HM.
  set (ps := map (fun p u => fst p u * snd p u)%R (combine fs fs')) in *.
  destruct (@zero_ev (TArr MR :: TArr MR :: G) (g', (g, r)) C) as (nz & Ez & Bz & Rz).
  assert (Forall2 (adds C 6 80 (@JD (TArr MR :: TArr MR :: G) (g', (g, r)))) ps (combine g g')) as HA.
  { subst ps. generalize ((g', (g, r)) : env R (TArr MR :: TArr MR :: G)). intros rr. clear - HF HF'. revert fs' g' HF'.
    induction HF; intros fs' gs' HF'; destruct HF'; simpl; constructor; auto. now apply adds_dot. }
  destruct (fold_adds HA (diff_const U u0 0) Rz) as (l & acc & n & Dl & Ea & Ra & Ba).
  assert (@length (den R MR * den R MR) (combine g g') = length fs) as Hc
    by (rewrite combine_length; exact (eq_trans (f_equal2 Nat.min (eq_sym Hl1) (eq_trans (eq_sym Hl2) (eq_sym Hl))) (Nat.min_id _))).
  assert (n <= length fs * (80 + 1)) as Ba' by (rewrite <- Hc; exact Ba). clear Ba.
  assert (RepS C (1 + length fs * 6) (l h) acc) as Ra' by (rewrite <- Hc; exact Ra). clear Ra Hc.
  assert (evR (tfold (dadd v1 (dadd (dscale (tfst (tsnd v0)) (tsnd (tfst v0))) (dscale (tfst (tfst v0)) (tsnd (tsnd v0))))) dzero (tzip v1 v0))
            ((g', (g, r)) : env R (TArr MR :: TArr MR :: G)) = Some (acc, S (nz + (S (1 + (1 + length g)) + n)), 0)) as Eu.
  { eapply fold_ev; [exact Ez| |exact Ea]. simpl. rewrite mzip_eq by exact (eq_trans (eq_sym Hl1) (eq_trans Hl Hl2)). reflexivity. }
  pose proof (@map_fst_ev fuel (TArr MR :: TArr MR :: G) TDelta v1 (g', (g, r)) g 1 eq_refl) as Em.
  pose proof (@map_fst_ev fuel (TArr MR :: TArr MR :: G) TDelta v0 (g', (g, r)) g' 1 eq_refl) as Em'.
  enough (EKs 400 KS RealM C (fun u => mdot RO (map (fun k => k u) fs) (map (fun k => k u) fs'))
            (run mdotT ((g', (g, r)) : env R (TArr MR :: TArr MR :: G)))) as HE by exact HE.
  eapply EK_push with (f := fun u => fold_left Rplus (map (fun k => k u) ps) 0%R) (n := length fs + length fs); [| |exact Eu|exact Ra'| | |].
  - apply always. exact HM.
  - exact Dl.
  - refine (eq_trans (dot_ev _ _ _ Em Em' _) (f_equal (fun x => Some (x, _, 0)) _)).
    { rewrite !map_length. exact (eq_trans (eq_sym Hl1) (eq_trans Hl Hl2)). }
    f_equal. subst ps. clear - HF HF'. revert fs' g' HF'.
    induction HF as [|f g fs gs [Hv _] HF IH]; intros fs' gs' HF'; destruct HF' as [|f' g' fs' gs' [Hv' _] HF']; simpl; auto.
    f_equal; [|apply IH, HF']. simpl in Hv, Hv'. rewrite Hv, Hv'. reflexivity.
  - rewrite ?map_length, ?combine_length, ?map_length. pose proof (eq_sym Hl1) as Hl1'. pose proof (eq_sym Hl2) as Hl2'.
    set (N := @length (den R MR) g) in *. set (N' := @length (den R MR) g') in *. set (N1 := @length (U -> den R TR) fs) in *.
    set (N1' := @length (U -> den R TR) fs') in *. name_length g N. name_length g' N'. name_length fs N1. name_length fs' N1'.
    clearbody N N' N1 N1'. subst N N' N1'. unfold KM. lia.
  - set (N1 := @length (U -> den R TR) fs) in *. name_length fs N1. clearbody N1. unfold KS. lia.
Qed.

(* ---- the fundamental theorem (K Theorem 4) ------------------------------------------------------------------ *)
Lemma op1_ticks : forall G a b (o : op1 a b) (x : den R a) (r : env R G), evR (top1 o v0) (x, r) = ticks 2 (op1v R o x).
Proof. intros. simpl. destruct (op1v R o x) as [[[v n] k]|]; reflexivity. Qed.
Lemma op2_ticks : forall G a b c (o : op2 a b c) (x : den R a) (y : den R b) (r : env R G), evR (top2 o v1 v0) (y, (x, r)) = ticks 3 (op2v R o x y).
Proof. intros. simpl. destruct (op2v R o x y) as [[[v n] k]|]; reflexivity. Qed.
Lemma op3_ticks : forall G a b c d (o : op3 a b c d) (x : den R a) (y : den R b) (w : den R c) (r : env R G),
  evR (top3 o v2 v1 v0) (w, (y, (x, r))) = ticks 4 (op3v R o x y w).
Proof. intros. simpl. destruct (op3v R o x y w) as [[[v n] k]|]; reflexivity. Qed.
Lemma run_app : forall G a b (g : den R (TFun a (TM b))) x (r : env R G) st q n,
  bind (g x) (fun c => c st) = Some (q, n, 0) ->
  exists n', run (tlam (tapp (tapp v2 v1) v0)) ((x, (g, r)) : env R (a :: TFun a (TM b) :: G)) st = Some (q, n', 0) /\ n' <= n + 10.
Proof.
  intros G a b g x r st q n H. apply bind_inv in H as (c & n1 & n2 & E1 & E2 & ->).
  unfold run. simpl. rewrite E1. simpl. rewrite E2. eexists. split; [reflexivity|lia].
Qed.
Lemma mcase_run : forall G a b c (e : tm G (TSum a b)) (x : tm (a :: G) (TM c)) (y : tm (b :: G) (TM c)) r s v n1 q n2,
  evR e r = Some (v, n1, 0) ->
  match v with inl v => run x ((v, r) : env R (a :: G)) s | inr v => run y ((v, r) : env R (b :: G)) s end = Some (q, n2, 0) ->
  exists n', run (mcase e x y) r s = Some (q, n', 0) /\ n' <= n1 + n2 + 10.
Proof.
  intros G a b c e x y r s v n1 q n2 He Hv. assert (evR (wk TS e) ((s, r) : env R (TS :: G)) = Some (v, n1, 0)) as He' by (rewrite wk_ok; exact He).
  destruct v as [v|v].
  - destruct (@run_rest G (a :: TS :: G) a c x (into (Pop Top) (into Top skip2)) r s v (v, (s, r)) q n2) as (m2 & E2 & B2);
      [repeat (apply into_ok; [reflexivity|]); intros t w; reflexivity|exact Hv|].
    eexists. split; [apply run_lam; exact (casel_ev fuel _ _ _ _ He' E2)|lia].
  - destruct (@run_rest G (b :: TS :: G) b c y (into (Pop Top) (into Top skip2)) r s v (v, (s, r)) q n2) as (m2 & E2 & B2);
      [repeat (apply into_ok; [reflexivity|]); intros t w; reflexivity|exact Hv|].
    eexists. split; [apply run_lam; exact (caser_ev fuel _ _ _ _ He' E2)|lia].
Qed.
Lemma mfold_ticks : forall A B (J : A -> B -> M B) l z v n, mfold (fun x p => ticks 3 (J x p)) l z = Some (v, n, 0) ->
  exists n', mfold J l z = Some (v, n', 0) /\ n' + 3 * length l <= n.
Proof.
  intros A B J. induction l as [|x l IH]; intros z v n H; simpl in *.
  - exists n. split; [exact H|lia].
  - apply bind_inv in H as (w & n1 & n2 & E1 & E2 & ->). destruct (IH _ _ _ E2) as (n3 & E3 & B3).
    destruct (J x z) as [[[w' m] k]|]; simpl in *; inversion E1; subst. rewrite E3. eexists. split; [reflexivity|lia].
Qed.
Lemma mseq_map : forall A B B' (f : B -> M B') (g : A -> B) l, mseq f (map g l) = mseq (fun x => f (g x)) l.
Proof. intros A B B' f g. induction l as [|x l IH]; simpl; auto. now rewrite IH. Qed.
Lemma bind_nil : forall A (m : M (list A)), bind m (fun r => ret ([] ++ r)) = m.
Proof. intros A [[[r n] k]|]; simpl; auto. now rewrite !Nat.add_0_r. Qed.
(* bodies of the threaded loops *)
Lemma each_ev : forall G a b w (k : tm (a :: G) (TM b)) x acc st s0 (y : den R w) (r : env R G) v st' n,
  run k (x, r) st = Some ((v, st'), n, 0) ->
  exists n', evR (each k) ((x, ((acc, st), (s0, (y, r)))) : env R (a :: TProd (TArr b) TS :: TS :: w :: G)) = Some ((acc ++ [v], st'), n', 0) /\ n' <= n + 50.
Proof.
  intros G a b w k x acc st s0 y r v st' n H. unfold run in H. apply bind_inv in H as (c & n1 & n2 & E1 & E2 & ->).
  unfold each. cbn [ev].
  rewrite (@rn_ok R RO fuel _ _ k _ (up skip3) (x, r) _) by (apply up_ok; intros t m; reflexivity).
  rewrite E1. simpl. rewrite E2. simpl. eexists. split; [reflexivity|lia].
Qed.
Lemma fold_body : forall G a b (k : tm (a :: b :: G) (TM b)) x acc st s0 l z (r : env R G) q n,
  run k (x, (acc, r)) st = Some (q, n, 0) ->
  exists n', evR (tlet (tfst v1) (tlet v1 (tapp (rn k (up (up skip5))) (tsnd v3))))
    ((x, ((acc, st), (s0, (l, (z, r))))) : env R (a :: TProd b TS :: TS :: TArr a :: b :: G)) = Some (q, n', 0) /\ n' <= n + 30.
Proof.
  intros G a b k x acc st s0 l z r q n H. unfold run in H. apply bind_inv in H as (c & n1 & n2 & E1 & E2 & ->).
  cbn [ev bind tick ret op1v look fst snd v0 v1 v2 v3].
  rewrite (@rn_ok R RO fuel _ _ k _ (up (up skip5)) (x, (acc, r)) _) by (apply up_ok, up_ok; intros t m; reflexivity).
  rewrite E1. simpl. rewrite E2. simpl. eexists. split; [reflexivity|lia].
Qed.
Lemma loop_body : forall G a (k : tm (a :: TI :: G) (TM a)) i acc st s0 z w (r : env R G) q n,
  run k (acc, (i, r)) st = Some (q, n, 0) ->
  exists n', evR (loop_step k) (((acc, st), (i, (s0, (z, (w, r))))) : env R (TProd a TS :: TI :: TS :: a :: TI :: G)) = Some (q, n', 0) /\ n' <= n + 30.
Proof.
  intros G a k i acc st s0 z w r q n H.
  destruct (@run_rest (TI :: G) (TS :: a :: TProd a TS :: TI :: TS :: a :: TI :: G) a a k
    (into Top (into (Pop Top) (into (Pop (Pop (Pop Top))) (fun t m => skip4 (skip3 m))))) (i, r) st acc (st, (acc, ((acc, st), (i, (s0, (z, (w, r))))))) q n) as (m2 & E2 & B2);
    [repeat (apply into_ok; [reflexivity|]); intros t v; reflexivity|exact H|].
  eexists. split; [|shelve]. eapply let_ev; [reflexivity|]. eapply let_ev; [reflexivity|exact E2].
  Unshelve. lia.
Qed.

Lemma loop_run : forall G a (k : tm (a :: TI :: G) (TM a)) z n (r : env R G) s q n',
  miter (Z.to_nat n) (fun i p => evR (loop_step k)
    ((p, (Z.of_nat i, (s, (z, (n, r))))) : env R (TProd a TS :: TI :: TS :: a :: TI :: G))) (z, s) = Some (q, n', 0) ->
  exists n'', run (loopM k) (z, (n, r)) s = Some (q, n'', 0) /\ n'' <= n' + 20.
Proof.
  intros G a k z n r s q n' H. exists (1 + S (1 + (3 + n'))). split.
  - match type of H with ?X = _ =>
      change (bind (tick (ret tt)) (fun _ => tick (bind (tick (ret n)) (fun _ => bind (Some ((z, s), 3, 0)) (fun _ => X)))) = Some (q, 1 + S (1 + (3 + n')), 0)) end.
    rewrite H. reflexivity.
  - lia.
Qed.
Lemma map_run : forall G a b w (k : tm (a :: G) (TM b)) (l : tm (TS :: w :: G) (TArr a)) (y : den R w) (r : env R G) s gs n1 q n',
  evR l (s, (y, r)) = Some (gs, n1, 0) ->
  mfold (fun x p => evR (each k) ((x, (p, (s, (y, r)))) : env R (a :: TProd (TArr b) TS :: TS :: w :: G))) gs ([], s) = Some (q, n', 0) ->
  exists n'', run (mapM k l) (y, r) s = Some (q, n'', 0) /\ n'' <= n1 + n' + 20.
Proof.
  intros G a b w k l y r s gs n1 q n' E1 H. exists (1 + S (3 + (n1 + n'))). split.
  - change (bind (tick (ret tt)) (fun _ => tick (bind (Some (([], s), 3, 0)) (fun z => bind (evR l (s, (y, r))) (fun gs =>
      mfold (fun x p => evR (each k) ((x, (p, (s, (y, r)))) : env R (a :: TProd (TArr b) TS :: TS :: w :: G))) gs z)))) = Some (q, 1 + S (3 + (n1 + n')), 0)).
    rewrite E1. cbn [bind tick ret]. rewrite H. reflexivity.
  - lia.
Qed.
(* the elements of [buildM], appended one by one *)
Definition appends {B S} (J : Z -> S -> M (B * S)) (i : Z) (p : list B * S) : M (list B * S) := ticks 60 (bind (J i (snd p)) (fun q => ret (fst p ++ [fst q], snd q))).
Lemma mfold_app : forall A B (f : A -> B -> M B) l l' z, mfold f (l ++ l') z = bind (mfold f l z) (fun z => mfold f l' z).
Proof.
  intros A B f. induction l as [|x l IH]; intros l' z; simpl; [destruct (mfold f l' z) as [[[a n] k]|]; reflexivity|].
  destruct (tick (f x z)) as [[[w n] k]|]; simpl; [|reflexivity]. rewrite IH. destruct (mfold f l w) as [[[y n'] k']|]; simpl; [|reflexivity].
  destruct (mfold f l' y) as [[[a n''] k'']|]; simpl; [|reflexivity]. now rewrite !Nat.add_assoc.
Qed.
Lemma update_end : forall A (l : list A) x l' v, update (l ++ x :: l') (length l) v = l ++ v :: l'.
Proof. intros A. induction l; simpl; intros; auto. now rewrite IHl. Qed.
Lemma nth_end : forall A (l : list A) x l', nth_error (l ++ x :: l') (length l) = Some x.
Proof. intros A. induction l; simpl; auto. Qed.
Lemma map_const : forall A B (v : B) (l : list A), map (fun _ => v) l = repeat v (length l).
Proof. intros A B v. induction l; simpl; auto. now rewrite IHl. Qed.
Lemma build_loop : forall B S (J : Z -> S -> M (B * S)) (body : nat -> list B * S -> M (list B * S)) N x,
  (forall i acc l s v s' n, J (Z.of_nat (Datatypes.S i)) s = Some ((v, s'), n, 0) -> length acc = Datatypes.S i ->
     exists n', body i (acc ++ x :: l, s) = Some ((acc ++ v :: l, s'), n', 0) /\ n' <= n + 55) ->
  forall k s1 acc s c, Datatypes.S k <= N -> mfold (appends J) (map Z.of_nat (seq 1 k)) ([x], s1) = Some ((acc, s), c, 0) ->
  length acc = Datatypes.S k /\ exists c', miter k body (repeat x N, s1) = Some ((acc ++ repeat x (N - Datatypes.S k), s), c', 0) /\ c' + 5 * k <= c.
Proof.
  intros B S J body N x Hb. induction k as [|k IH]; intros s1 acc s c HN H.
  - simpl in H. inversion H; subst. split; [reflexivity|]. exists 0. split; [|lia]. destruct N as [|N]; [lia|]. simpl. now rewrite Nat.sub_0_r.
  - rewrite seq_S, map_app, mfold_app in H. apply bind_inv in H as ([acc1 s2] & c1 & c2 & E1 & E2 & ->).
    destruct (IH _ _ _ _ ltac:(lia) E1) as (L1 & c' & M1 & B1).
    cbn [map mfold] in E2. unfold appends at 1 in E2. cbn [fst snd] in E2. destruct (J (Z.of_nat (1 + k)) s2) as [[[[v s3] n] q]|] eqn:EJ; [|discriminate E2].
    cbn in E2. inversion E2; subst. clear E2. destruct q; [|discriminate].
    split; [rewrite app_length; simpl; lia|].
    replace (N - Datatypes.S k) with (Datatypes.S (N - Datatypes.S (Datatypes.S k))) in M1 by lia. cbn [repeat] in M1.
    destruct (Hb k acc1 (repeat x (N - Datatypes.S (Datatypes.S k))) _ _ _ _ EJ L1) as (n' & Hn & Bn).
    cbn [miter]. rewrite M1. cbn [bind]. rewrite Hn. cbn [tick]. eexists. split; [rewrite <- app_assoc; reflexivity|lia].
Qed.
Lemma put_next_ev : forall G b (f : den R (TFun TI (TM b))) i acc x l st p u (r : env R G) v st' n,
  bind (f (Z.of_nat (S i))) (fun c => c st) = Some ((v, st'), n, 0) -> length acc = S i ->
  exists n', evR put_next (((acc ++ x :: l, st), (Z.of_nat i, (p, (u, (f, r))))) : env R (TProd (TArr b) TS :: TI :: TProd b TS :: TU :: TFun TI (TM b) :: G))
    = Some ((acc ++ v :: l, st'), n', 0) /\ n' <= n + 55.
Proof.
  intros G b f i acc x l st p u r v st' n H HL. apply bind_inv in H as (c & n1 & n2 & E1 & E2 & ->).
  unfold put_next. cbn [ev look fst snd v0 v1 v2 v3 v4 v5 bind tick ret op0v op1v op2v op3v intopv].
  replace (Z.of_nat i + 1)%Z with (Z.of_nat (S i)) by lia. rewrite E1. cbn [bind tick ret ev look fst snd op1v]. rewrite E2. cbn [bind tick ret ev look fst snd op1v].
  unfold mset, mget. replace (Z.of_nat (S i) <? 0)%Z with false by (symmetry; apply Z.ltb_ge; lia). rewrite Nat2Z.id, <- HL, nth_end.
  cbn [bind ret]. rewrite update_end. cbn [bind tick ret]. eexists. split; [reflexivity|lia].
Qed.
Lemma build_run : forall G b (k : tm (TI :: G) (TM b)) n (r : env R G) s q n',
  mfold (appends (fun i => run k ((i, r) : env R (TI :: G)))) (map Z.of_nat (seq 0 (Z.to_nat n))) ([], s) = Some (q, n', 0) ->
  exists n'', run (buildM k) ((n, r) : env R (TI :: G)) s = Some (q, n'', 0) /\ n'' <= n' + 60.
Proof.
  intros G b k n r s q n' H.
  pose (f := (fun i => evR (rn k (up skip2)) ((i, (s, (n, r))) : env R (TI :: TS :: TI :: G))) : den R (TFun TI (TM b))).
  assert (forall i, f i = evR k (i, r)) as Hf by (intros i; apply rn_ok, up_ok; intros t m; reflexivity).
  unfold run, buildM. cbn [ev look fst snd v0 v1 v2 v3 v4 v5 bind tick ret op0v op1v op2v]. fold f. destruct (Z.leb_spec n 0) as [Hn|Hn].
  - replace (decide CLe (n ?= 0)%Z) with true by (symmetry; unfold Z.le in Hn; destruct (n ?= 0)%Z; auto; congruence).
    replace (Z.to_nat n) with 0 in * by lia. cbn in H. inversion H; subst. unfold boolv. cbn. eexists. split; [reflexivity|lia].
  - replace (decide CLe (n ?= 0)%Z) with false by (symmetry; unfold Z.lt in Hn; destruct (n ?= 0)%Z eqn:E; auto; rewrite Z.compare_antisym, E in Hn; discriminate).
    destruct (Z.to_nat n) as [|N] eqn:EN; [lia|]. cbn [seq map mfold] in H. apply bind_inv in H as ([acc s2] & c1 & c2 & E1 & E2 & ->).
    unfold appends in E1. cbn [fst snd app] in E1. change (Z.of_nat 0) with 0%Z in E1.
    destruct (run k ((0%Z, r) : env R (TI :: G)) s) as [[[[v s1] n1] k1]|] eqn:Er; [|discriminate E1].
    cbn in E1. injection E1 as <- <- <- Hk. assert (k1 = 0) by lia. subst k1.
    unfold run in Er. apply bind_inv in Er as (c & m1 & m2 & F1 & F2 & ->).
    pose (body := fun i p => evR (@put_next (TS :: TI :: G) b) ((p, (Z.of_nat i, ((v, s1), (tt, (f, (s, (n, r))))))) : env R (TProd (TArr b) TS :: TI :: TProd b TS :: TU :: TFun TI (TM b) :: TS :: TI :: G))).
    destruct q as [l s3].
    destruct (@build_loop _ _ (fun i => run k ((i, r) : env R (TI :: G))) body (S N) v) with (k := N) (2 := le_n (S N)) (3 := E2) as (_ & c' & Hl & Hc).
    { intros i acc0 l0 st w st' m Hm HL. apply put_next_ev; [|exact HL]. rewrite Hf. exact Hm. }
    rewrite Nat.sub_diag, app_nil_r in Hl. unfold boolv.
    cbn [ev look fst snd v0 v1 v2 v3 v4 v5 bind tick ret op0v op1v op2v intopv]. 
    match goal with |- context [@ev ?A ?B ?m ?I ?J (@rn ?a1 ?a2 ?a3 k ?w) ?z] =>
      assert (@ev A B m I J (@rn a1 a2 a3 k w) z = Some (c, m1, 0)) as -> by (rewrite <- F1; apply rn_ok, (@up_ok R); intros t q0; reflexivity) end.
    cbn [bind tick ret ev look fst snd]. rewrite F2.
    cbn [ev look fst snd v0 v1 v2 v3 v4 v5 bind tick ret op0v op1v op2v intopv].
    rewrite (@mseq_pure _ _ _ (fun _ => v) 3) by reflexivity. cbn [bind tick ret ev look fst snd op1v op2v].
    rewrite map_const, seq_length.
    replace (Z.to_nat (n - 1)) with N by lia. 
    match goal with |- context [@miter ?T ?x ?B ?z] => assert (@miter T x B z = Some ((l, s3), c', 0)) as -> by exact Hl end. cbn [bind tick ret]. eexists. split; [reflexivity|lia].
Qed.
Lemma fold_run : forall G a b (k : tm (a :: b :: G) (TM b)) l z (r : env R G) s q n',
  mfold (fun x p => evR (tlet (tfst v1) (tlet v1 (tapp (rn k (up (up skip5))) (tsnd v3))))
    ((x, (p, (s, (l, (z, r))))) : env R (a :: TProd b TS :: TS :: TArr a :: b :: G))) l (z, s) = Some (q, n', 0) ->
  exists n'', run (foldM k) (l, (z, r)) s = Some (q, n'', 0) /\ n'' <= n' + 20.
Proof.
  intros G a b k l z r s q n' H. exists (1 + S (3 + (1 + n'))). split.
  - match type of H with ?X = _ =>
      change (bind (tick (ret tt)) (fun _ => tick (bind (Some ((z, s), 3, 0)) (fun _ => bind (tick (ret l)) (fun _ => X)))) = Some (q, 1 + S (3 + (1 + n')), 0)) end.
    rewrite H. reflexivity.
  - lia.
Qed.

(* ---- constant parts ------------------------------------------------------------------------------------ *)
Lemma VK_same : forall t C H f g, sameM t = Some H -> VK t C f g -> near (fun u => f u = cast (P := den R) H g).
Proof.
  induction t; simpl; intros C H f g Hs HV; try discriminate.
  - apply some_inj in Hs. subst H. apply always. intros u. simpl. destruct (f u), g. reflexivity.
  - apply some_inj in Hs. subst H. exact HV.
  - apply map2_some in Hs as (p & q & H1 & H2 & ->). destruct HV as [V1 V2].
    generalize (IHt1 _ _ _ _ H1 V1) (IHt2 _ _ _ _ H2 V2). apply near2. intros u E1 E2.
    exact (eq_trans (surjective_pairing (f u)) (eq_trans (f_equal2 pair E1 E2) (eq_sym (cast_pair p q g)))).
  - apply map2_some in Hs as (p & q & H1 & H2 & ->).
    destruct g as [g|g]; destruct HV as (f1 & L & V1); [generalize (IHt1 _ _ _ _ H1 V1)|generalize (IHt2 _ _ _ _ H2 V1)];
      revert L; apply near2; intros u E1 E2; rewrite E1;
      [exact (eq_trans (f_equal inl E2) (eq_sym (cast_sum p q (inl g))))|exact (eq_trans (f_equal inr E2) (eq_sym (cast_sum p q (inr g))))].
  - apply option_map_some in Hs as (p & H1 & ->). rewrite cast_array. exact (@Arr_near U u0 _ _ (VK t C) (fun x => cast (P := den R) p x) (fun f g => IHt C p f g H1) f g HV).
  - apply option_map_some in Hs as (p & H1 & ->). rewrite cast_tree. exact (@Tr_near U u0 _ _ (VK t C) (fun x => cast (P := den R) p x) (fun f g => IHt C p f g H1) f g HV).
Qed.
Lemma VK_same_const : forall t C H v, sameM t = Some H -> VK t C (fun _ => v) (cast (P := den R) (eq_sym H) v).
Proof.
  induction t; simpl; intros C H v Hs; try discriminate; auto.
  - apply some_inj in Hs. subst H. apply always. reflexivity.
  - apply map2_some in Hs as (p & q & H1 & H2 & ->). rewrite cast_pair_sym. split; simpl; auto.
  - apply map2_some in Hs as (p & q & H1 & H2 & ->). rewrite cast_sum_sym.
    destruct v as [v|v]; exists (fun _ => v); (split; [apply always; reflexivity|auto]).
  - apply option_map_some in Hs as (p & H1 & ->). rewrite cast_array_sym. exact (@Arr_const U u0 _ _ (VK t C) (fun x => cast (P := den R) (eq_sym p) x) (fun v => IHt C p v H1) v).
  - apply option_map_some in Hs as (p & H1 & ->). rewrite cast_tree_sym. exact (@Tr_const U u0 _ _ (VK t C) (fun x => cast (P := den R) (eq_sym p) x) (fun v => IHt C p v H1) v).
Qed.
Lemma VKE_same : forall G C f g, VKE G C f g ->
  near (fun u => forall t (m : mem t G) H, sameM t = Some H -> look m (f u) = cast (P := den R) H (look (Mmem m) g)).
Proof.
  induction G as [|a G IH]; intros C f g HG.
  - apply always. intros u t m. inversion m.
  - destruct HG as [Ha HG]. simpl in Ha.
    assert (near (fun u => forall H, sameM a = Some H -> fst (f u) = cast (P := den R) H (fst g))) as La.
    { destruct (sameM a) as [H|] eqn:Es.
      - generalize (@VK_same _ _ _ _ _ Es Ha). apply near1. intros u E1 H' E2. apply some_inj in E2. subst H'. exact E1.
      - apply always. discriminate. }
    generalize (IH _ _ _ HG). revert La. apply near2. intros u H1 H2 t m. revert H1 H2. generalize (f u) as r. clear - g. intros r H1 H2.
    revert g r H1 H2. apply (mem_inv (fun a m => forall (g : env R (map (MD) (a :: G))) (r : env R (a :: G)),
      (forall H, sameM a = Some H -> fst r = cast (P := den R) H (fst g)) ->
      (forall t (m : mem t G) H, sameM t = Some H -> look m (snd r) = cast (P := den R) H (look (Mmem m) (snd g))) ->
      forall H, sameM t = Some H -> look m r = cast (P := den R) H (look (Mmem m) g))); simpl; auto.
Qed.
Lemma keeps_near : forall G t (e : tm G t) e' C f g, VKE G C f g -> keepsM e = Some e' -> near (fun u => evR e (f u) = evR e' g).
Proof.
  intros G t e e' C f g HG He. generalize (@VKE_same _ _ _ _ HG). apply near1. intros u Hu. symmetry.
  unfold keepsM, plain in He. destruct (active 0 e); [discriminate|]. eapply prn_ok; [exact He|]. apply keep_ok. intros t0 m H. apply Hu.
Qed.
Lemma zeros_ok : forall t G (e : tm G t) d C r v n, @zerosM t G e = Some d -> evR e r = Some (v, n, 0) ->
  exists g n', evR d r = Some (g, n', 0) /\ VK t C (fun _ => v) g /\ n' <= (1 + 2 * weight t) * (n + weight t + 6).
Proof.
  induction t; intros G e d C r v n Hd He; cbn [zerosM] in Hd; try discriminate Hd;
    try (apply option_map_some in Hd as (H & Es & ->); exists (cast (P := den R) (eq_sym H) v), n;
    (split; [exact (@ev_cast _ _ _ _ _ _ (eq_sym H) _ _ _ _ _ He)|split; [exact (@VK_same_const _ _ _ v Es)|cbn [weight]; lia]])).
  - inversion Hd; subst. destruct (@zero_ev G r C) as (nz & Ez & Bz & Rz).
    exists (v, enc DZero). eexists. split; [exact (pair_ev fuel _ _ _ He Ez)|]. split; [apply RealM_const|]. cbn [weight]. lia.
  - apply some_inj in Hd. subst d. exists v, n. split; [exact He|]. split; [exact I|cbn [weight]; lia].
  - apply some_inj in Hd. subst d. exists v, n. split; [exact He|]. split; [apply always; reflexivity|cbn [weight]; lia].
  - apply map2_some in Hd as (x & y & H1 & H2 & ->).
    destruct (IHt1 _ _ _ C r (fst v) (S (n + 0)) H1) as (g1 & n1 & E1 & V1 & B1); [exact (fst_ev fuel _ _ He)|].
    destruct (IHt2 _ _ _ C r (snd v) (S (n + 0)) H2) as (g2 & n2 & E2 & V2 & B2); [exact (snd_ev fuel _ _ He)|].
    exists (g1, g2). eexists. split; [exact (pair_ev fuel _ _ _ E1 E2)|]. split; [split; assumption|]. cbn [weight].
    generalize dependent (weight t1). generalize dependent (weight t2). clear. intros w2 B2 w1 B1. nia.
Qed.
Lemma lift_ok : forall t G (e : tm G t) d C r v n, @liftM t G e = Some d -> evR e r = Some (v, n, 0) ->
  exists g n', evR d r = Some (g, n', 0) /\ VK t C (fun _ => v) g /\ n' <= n + 220.
Proof.
  intros t G e d C r v n Hd He.
  assert (forall w, w <= small -> (1 + 2 * w) * (1 + w + 6) <= 210) as Hb.
  { intros w H. unfold small in H. do 8 (destruct w as [|w]; [lia|]). lia. }
  assert (forall t G (e : tm G t) r v n d, (if weight t <=? small then option_map (fun z => tlet e z) (@zerosM t (t :: G) v0) else None) = Some d -> evR e r = Some (v, n, 0) ->
    exists g n', evR d r = Some (g, n', 0) /\ VK t C (fun _ => v) g /\ n' <= n + 220) as HA.
  { clear t G e d r v n Hd He. intros t G e r v n d Hd He. destruct (weight t <=? small) eqn:Hw; [|discriminate Hd]. apply Nat.leb_le in Hw.
    apply option_map_some in Hd as (z & Hz & ->).
    destruct (@zeros_ok _ _ _ _ C ((v, r) : env R (t :: G)) v 1 Hz eq_refl) as (g & n' & E1 & V1 & B1).
    exists g. eexists. split; [exact (let_ev fuel _ _ _ He E1)|]. split; [exact V1|]. specialize (Hb _ Hw). lia. }
  destruct t; unfold liftM in Hd;
    match type of Hd with context [sameM ?t] => destruct (sameM t) as [H|] eqn:Es end;
    try (inversion Hd; subst; exists (cast (P := den R) (eq_sym H) v), n;
      split; [exact (@ev_cast _ _ _ _ _ _ (eq_sym H) _ _ _ _ _ He)|split; [exact (@VK_same_const _ _ _ v Es)|lia]]);
    try (exact (HA _ _ _ _ _ _ _ Hd He)).
  inversion Hd; subst. destruct (@zero_ev G r C) as (nz & Ez & Bz & Rz).
    exists (v, enc DZero). eexists. split; [exact (pair_ev fuel _ _ _ He Ez)|]. split; [apply RealM_const|]. lia.
Qed.
Lemma E_constant : forall G t (e : tm G t) e' d C f g, VKE G C f g -> keepsM e = Some e' -> constantM e e' = Some d ->
  E (VK t C) (fun u => evR e (f u)) (evR d g).
Proof.
  intros G t e e' d C f g HG Hk Hc. unfold constantM in Hc. destruct (computes e); [|discriminate].
  pose proof (@keeps_near _ _ _ _ _ _ _ HG Hk) as L.
  intros a0 n0 H0. rewrite (here L) in H0.
  destruct (@lift_ok _ _ _ _ C _ _ _ Hc H0) as (g' & n' & E1 & V1 & B1).
  exists (fun _ => a0), g', n'. split; [|split; [exact E1|split; [exact V1|]]].
  - revert L. apply near1. intros u ->. exact H0.
  - pose proof (@ev_step _ _ _ _ _ _ _ _ _ _ H0) as Hn. unfold Kp. lia.
Qed.

(* ---- values without Deltas --------------------------------------------------------------------------- *)
Definition RealP (C : tape) (f : U -> R) (v : R) : Prop := v = f u0 /\ exists l, diff f l.
Lemma EK_more : forall s s' z A B (P : tape -> (U -> A) -> B -> Prop) C F G, s <= s' -> EKs s z P C F G -> EKs s' z P C F G.
Proof.
  intros s s' z A B P C F G Hs H a0 n0 H0 Hw. destruct (H _ _ H0 Hw) as (a & b & L & n' & H1 & H2 & H3 & H4 & H5 & H6).
  exists a, b, L, n'. split; [exact H1|split; [exact H2|split; [exact H3|split; [exact H4|lia]]]].
Qed.
Lemma EK_bind_s : forall s0 s z A a b A' (P : tape -> (U -> A) -> den R a -> Prop) (Q : tape -> (U -> A') -> den R b -> Prop)
    C F H G (m : tm G (TM a)) (k : tm (a :: G) (TM b)) r,
  EKs s0 0 P C F (run m r) -> (forall L f g, P (L ++ C) f g -> EKs s z Q (L ++ C) (fun u => H u (f u)) (run k (g, r))) ->
  EKs (s0 + (s + 20)) z Q C (fun u => bind (F u) (H u)) (run (mbind m k) r).
Proof.
  intros s0 s z A a b A' P Q C F H G m k r HF HH a0 n0 H0 Hw.
  apply bind_inv in H0 as (a1 & n1 & n2 & H1 & H2 & ->).
  destruct (HF _ _ H1 Hw) as (f & g & L & n' & L1 & E1 & P1 & W1 & C1 & S1).
  assert (f u0 = a1) by (pose proof (here L1) as X; simpl in X; congruence). subst a1.
  destruct (HH _ _ _ P1 _ _ H2 W1) as (f' & g' & L' & n'' & L2 & E2 & P2 & W2 & C2 & S2).
  destruct (run_bind _ _ _ _ E1 E2) as (n3 & E3 & B3).
  exists f', g', (L' ++ L), n3. rewrite <- !app_assoc. split; [|split; [exact E3|split; [exact P2|split; [exact W2|split]]]].
  - revert L1 L2. apply near2. intros x -> X. simpl. now rewrite X.
  - rewrite Nat.mul_add_distr_l. lia.
  - rewrite nodes_app, Nat.mul_add_distr_l. lia.
Qed.
Lemma RealP_mono : forall C L f v, RealP C f v -> RealP (L ++ C) f v.
Proof. intros C L f v H. exact H. Qed.
(* what an image does: a value is there within its steps and s more, a computation within sz more *)
Definition EG (s sz : nat) {G A a} (P : tape -> (U -> A) -> den R a -> Prop) (C : tape) (F : U -> M A) (i : tm G a + tm G (TM a)) (g : env R G) : Prop :=
  match i with inl e => Es U u0 Kp s (P C) F (evR e g) | inr m => EKs sz 0 P C F (run m g) end.
Definition EI (t : ty) (G : list ty) (C : tape) (F : U -> M (den R t)) (i : image G t) (g : env R (map MD G)) : Prop := EG 0 0 (VK t) C F i g.
Arguments EI : clear implicits.
Definition EP (t : ty) : forall G, tape -> (U -> M (den R t)) -> valued G t -> env R (map MD G) -> Prop :=
  match t return forall G, tape -> (U -> M (den R t)) -> valued G t -> env R (map MD G) -> Prop with
  | TR => fun G C F i g => @EG 1 32 (map MD G) R TR RealP C F i g
  | _ => fun _ _ _ _ _ => True
  end.
Lemma EG_weak : forall G A a (P : tape -> (U -> A) -> den R a -> Prop) C F (i : tm G a + tm G (TM a)) g, EG 0 0 P C F i g -> EG 1 32 P C F i g.
Proof.
  intros G A a P C F [e|m] g H; simpl in *; [|eapply EK_more; [|exact H]; lia].
  intros a0 n0 H0. destruct (H _ _ H0) as (f & v & n & L & E1 & HP & B). exists f, v, n. repeat (split; auto). lia.
Qed.
Lemma EI_run : forall G t (e : tm G t) C f (i : image G t) g, EI t G C (fun u => evR e (f u)) i g -> EK (VK t) C (fun u => evR e (f u)) (run (comp i) g).
Proof.
  intros G t e C f [x|m] g H; [|exact H]. apply (@EK_pure 0 0 (map MD G) (den R t) (MD t) (VK t)). intros a0 n0 H0.
  destruct (H _ _ H0) as (fa & v & n & L & E1 & HP & B). pose proof (@ev_step _ _ _ _ _ _ _ _ _ _ H0) as Hn.
  exists fa, v, n. split; [exact L|split; [exact E1|split; [exact HP|unfold KM, Kp in *; lia]]].
Qed.
Lemma EK_ibind : forall s0 sz0 s z G A a b A' (P : tape -> (U -> A) -> den R a -> Prop) (Q : tape -> (U -> A') -> den R b -> Prop)
    C F H (i : tm G a + tm G (TM a)) (k : tm (a :: G) (TM b)) r, s0 <= 1 ->
  EG s0 sz0 P C F i r -> (forall L f g, P (L ++ C) f g -> EKs s z Q (L ++ C) (fun u => H u (f u)) (run k (g, r))) ->
  EKs (sz0 + (s + 20)) z Q C (fun u => bind (F u) (H u)) (run (ibind i k) r).
Proof.
  intros s0 sz0 s z G A a b A' P Q C F H [e|m] k r Hs HF HH; [|exact (@EK_bind_s sz0 s z A a b A' P Q C F H G m k r HF HH)].
  intros a0 n0 H0 Hw. apply bind_inv in H0 as (a1 & n1 & n2 & H1 & H2 & ->).
  destruct (HF _ _ H1) as (f & g & n' & L1 & E1 & P1 & B1).
  assert (f u0 = a1) by (pose proof (here L1) as X; simpl in X; congruence). subst a1.
  destruct (HH nil _ _ P1 _ _ H2 Hw) as (f' & g' & L' & n'' & L2 & E2 & P2 & W2 & C2 & S2).
  destruct (run_vbind e k _ _ E1 E2) as (n3 & E3 & B3).
  exists f', g', L', n3. split; [|split; [exact E3|split; [exact P2|split; [exact W2|split]]]].
  - revert L1 L2. apply near2. intros x -> X. simpl. now rewrite X.
  - rewrite Nat.mul_add_distr_l. unfold KM, Kp in *. lia.
  - rewrite Nat.mul_add_distr_l. simpl in S2. lia.
Qed.
Lemma EK_ibind0 : forall s z G A a b A' (P : tape -> (U -> A) -> den R a -> Prop) (Q : tape -> (U -> A') -> den R b -> Prop)
    C F H (i : tm G a + tm G (TM a)) (k : tm (a :: G) (TM b)) r,
  EG 0 0 P C F i r -> (forall L f g, P (L ++ C) f g -> EKs s z Q (L ++ C) (fun u => H u (f u)) (run k (g, r))) ->
  EKs (s + 20) z Q C (fun u => bind (F u) (H u)) (run (ibind i k) r).
Proof. intros s z G A a b A' P Q C F H i k r HF HH. exact (@EK_ibind 0 0 s z G A a b A' P Q C F H i k r (Nat.le_0_l 1) HF HH). Qed.
Lemma EG_wk : forall s sz G A a b (P : tape -> (U -> A) -> den R a -> Prop) C F (i : tm G a + tm G (TM a)) (x : den R b) r,
  EG s sz P C F i r -> EG s sz P C F (iwk b i) (x, r).
Proof.
  intros s sz G A a b P C F [e|m] x r H; simpl in *; [|apply EK_wk, H].
  intros a0 n0 H0. destruct (H _ _ H0) as (f & v & n & L & E1 & HP & B). exists f, v, n. split; [exact L|split; [|split; [exact HP|exact B]]].
  rewrite wk_ok. exact E1.
Qed.
Lemma EP_drop : forall t G C F (i : image G t) g, EI t G C F i g -> EP t G C F (drop i) g.
Proof.
  intros t G C F i g H. destruct t; simpl; auto. destruct i as [e|m].
  - intros a0 n0 H0. destruct (H _ _ H0) as (f & [x d] & n & L & E1 & (Hv & l & Hd & _) & B). simpl in Hv. subst x.
    exists f, (f u0). eexists. split; [exact L|split; [exact (fst_ev fuel _ _ E1)|split; [split; eauto|lia]]].
  - simpl. apply EK_more with (s := 0 + (12 + 20)); [lia|].
    apply EK_germ with (F := fun u => bind (F u) (fun x => ret x)).
    { apply always. intros u. destruct (F u) as [[[v n] k]|]; simpl; auto. now rewrite !Nat.add_0_r. }
    apply (@EK_bind_s 0 12 0 _ MR TR _ (VK TR) RealP C F (fun u x => ret x)); [exact H|].
    intros L f [x d] (Hv & l & Hd & _). simpl in Hv. subst x. apply EK_pure. intros a0 n0 H0. inversion H0; subst.
    exists f, (f u0), 2. split; [apply always; reflexivity|split; [reflexivity|split; [split; eauto|lia]]].
Qed.
(* one step more *)
Lemma EG_map : forall s sz G A a b A' (P : tape -> (U -> A) -> den R a -> Prop) (Q : tape -> (U -> A') -> den R b -> Prop) C F H
    (i : tm G a + tm G (TM a)) (now : tm G a -> tm G b) (later : tm (a :: G) b) g, sz <= 32 ->
  EG s sz P C F i g ->
  (forall e, Es U u0 Kp s (P C) F (evR e g) -> E (Q C) (fun u => tick (bind (F u) (H u))) (evR (now e) g)) ->
  (forall L f x, P (L ++ C) f x -> EKs 100 0 Q (L ++ C) (fun u => H u (f u)) (run (mpure later) (x, g))) ->
  EG 0 0 Q C (fun u => tick (bind (F u) (H u))) (map_image i now later) g.
Proof.
  intros s sz G A a b A' P Q C F H [e|m] now later g Hz Hi Hn Hl; simpl in *; [apply Hn, Hi|].
  apply EK_tick with (F := fun u => bind (F u) (H u)) (s := sz + (100 + 20)) (z := 0); try (unfold KM, KS; lia).
  eapply EK_bind_s; [exact Hi|exact Hl].
Qed.
Lemma EG_maps : forall s s' sz sz' G A a B b c A' (P : tape -> (U -> A) -> den R a -> Prop) (P' : tape -> (U -> B) -> den R b -> Prop) (Q : tape -> (U -> A') -> den R c -> Prop) C F F' H
    (i : tm G a + tm G (TM a)) (j : tm G b + tm G (TM b)) (now : tm G a -> tm G b -> tm G c) (later : tm (b :: a :: G) c) g, s <= 1 -> s' <= 1 -> sz <= 32 -> sz' <= 32 ->
  EG s sz P C F i g -> (forall L, EG s' sz' P' (L ++ C) F' j g) -> (forall C L f x, P C f x -> P (L ++ C) f x) ->
  (forall e e', Es U u0 Kp s (P C) F (evR e g) -> Es U u0 Kp s' (P' C) F' (evR e' g) ->
     E (Q C) (fun u => tick (bind (F u) (fun x => bind (F' u) (fun y => H u x y)))) (evR (now e e') g)) ->
  (forall L f x f' x', P (L ++ C) f x -> P' (L ++ C) f' x' -> EKs 100 0 Q (L ++ C) (fun u => H u (f u) (f' u)) (run (mpure later) (x', (x, g)))) ->
  EG 0 0 Q C (fun u => tick (bind (F u) (fun x => bind (F' u) (fun y => H u x y)))) (map_images i j now later) g.
Proof.
  intros s s' sz sz' G A a B b c A' P P' Q C F F' H i j now later g H1 H2 H3 H4 Hi Hj Hm Hn Hl.
  assert (EKs 0 0 Q C (fun u => tick (bind (F u) (fun x => bind (F' u) (fun y => H u x y)))) (run (ibind i (ibind (iwk _ j) (mpure later))) g)) as HM.
  { apply EK_tick with (F := fun u => bind _ _) (s := 32 + ((32 + (100 + 20)) + 20)) (z := 0); try (unfold KM, KS; lia).
    apply EK_more with (s := sz + ((sz' + (100 + 20)) + 20)); [lia|].
    apply (@EK_ibind s sz (sz' + (100 + 20)) 0 G A a c A' P Q C F (fun u x => bind (F' u) (fun y => H u x y))); [exact H1|exact Hi|]. intros L f x Hx.
    apply (@EK_ibind s' sz' 100 0 (a :: G) B b c A' P' Q (L ++ C) F' (fun u y => H u (f u) y)); [exact H2|apply EG_wk; exact (Hj L)|]. intros L' f' x' Hx'.
    rewrite app_assoc in *. apply Hl; [rewrite <- app_assoc; apply Hm, Hx|exact Hx']. }
  destruct i as [e|m], j as [e'|m']; simpl; try exact HM. apply Hn; [exact Hi|exact (Hj nil)].
Qed.
(* a primitive of values *)
Lemma EP_guard : forall G C (F : U -> M R) (f : U -> R) (e : tm G TR) r n,
  (forall a0 n0, F u0 = Some (a0, n0, 0) -> n0 = 0 /\ near (fun u => F u = Some (f u, 0, 0)) /\ evR e r = Some (f u0, n, 0) /\ exists l, diff f l) ->
  EKs (n + 10) 0 RealP C F (run (mpure e) r).
Proof.
  intros G C F f e r n H. apply (@EK_pure (n + 10) 0 G R TR RealP). intros a0 n0 H0. destruct (H _ _ H0) as (-> & L & E1 & l & Hd).
  exists f, (f u0), n. split; [exact L|split; [exact E1|split; [split; eauto|lia]]].
Qed.
Lemma EP_prim1 : forall G (r : env R G) C p f v, RealP C f v ->
  EKs 12 0 RealP C (fun u => guard (ok1 p (f u)) (sem1 p (f u))) (run (mpure (tprim1 p v0)) (v, r)).
Proof.
  intros G r C p f v (-> & l & Hd). apply (@EP_guard (TR :: G)) with (n := 2) (f := fun u => sem1 p (f u)). intros a0 n0 H0.
  apply guard_inv in H0 as (Hok & _ & ->). split; auto. split; [|split].
  - generalize (diff_near Hd (prim1_open p _ Hok)). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - simpl. unfold guard. rewrite Hok. reflexivity.
  - eexists. apply diff_comp; eauto. apply prim1_derive, Hok.
Qed.
Lemma EP_prim2 : forall G (r : env R G) C p f v f' v', RealP C f v -> RealP C f' v' ->
  EKs 13 0 RealP C (fun u => guard (ok2 p (f u) (f' u)) (sem2 p (f u) (f' u))) (run (mpure (tprim2 p v1 v0)) (v', (v, r))).
Proof.
  intros G r C p f v f' v' (-> & l & Hd) (-> & l' & Hd'). apply (@EP_guard (TR :: TR :: G)) with (n := 3) (f := fun u => sem2 p (f u) (f' u)). intros a0 n0 H0.
  apply guard_inv in H0 as (Hok & _ & ->). split; auto. split; [|split].
  - generalize (prim2_open p Hd Hd' Hok). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - simpl. unfold guard. rewrite Hok. reflexivity.
  - eexists. exact (prim2_diff p Hd Hd' Hok).
Qed.
Lemma EP_primi : forall G (r : env R G) p C f v f' k, RealP C f v -> near (fun u => f' u = k) ->
  EKs 13 0 RealP C (fun u => guard (oki p (f u) (f' u)) (semi p (f u) (f' u))) (run (mpure (tprimi p v1 v0)) (k, (v, r))).
Proof.
  intros G r p C f v f' k (-> & l & Hd) Hk. apply EK_germ with (F := fun u => guard (oki p (f u) k) (semi p (f u) k)).
  { revert Hk. apply near1. intros u ->. reflexivity. }
  apply (@EP_guard (TI :: TR :: G)) with (n := 3) (f := fun u => semi p (f u) k). intros a0 n0 H0.
  apply guard_inv in H0 as (Hok & _ & ->). split; auto. split; [|split].
  - generalize (diff_near Hd (primi_open _ _ _ Hok)). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - simpl. unfold guard. rewrite Hok. reflexivity.
  - eexists. apply diff_comp with (phi := fun x => semi p x k); eauto. apply primi_derive, Hok.
Qed.
Lemma EP_const : forall G (r : env R G) C c (e : tm G TR) n, evR e r = Some (c, n, 0) ->
  EKs (n + 10) 0 RealP C (fun _ => ret c) (run (mpure e) r).
Proof.
  intros G r C c e n H. apply EP_guard with (f := fun _ => c). intros a0 n0 H0. inversion H0; subst. split; auto. split; [apply always; reflexivity|].
  split; [exact H|]. exists (fun _ => 0%R). apply diff_const.
Qed.
(* a constant argument *)
Lemma E_keeps : forall G t (e : tm G t) e' C f g, VKE G C f g -> keepsM e = Some e' ->
  E ((fun _ (F : U -> den R t) v => near (fun u => F u = v)) C) (fun u => evR e (f u)) (evR e' g).
Proof.
  intros G t e e' C f g HG Hk a0 n0 H0. pose proof (@keeps_near _ _ _ _ _ _ _ HG Hk) as L. rewrite (here L) in H0.
  exists (fun _ => a0), a0, n0. split; [revert L; apply near1; intros u ->; exact H0|split; [exact H0|split; [apply always; reflexivity|unfold Kp; lia]]].
Qed.
Lemma EK_primi0 : forall G (r : env R G) p C c k,
  EKs 100 0 RealM C (fun _ => guard (oki p c k) (semi p c k)) (run (mpure (tpair (tprimi p v1 v0) dzero)) (k, (c, r))).
Proof.
  intros G r p C c k. apply (@EK_pure 100 0 (TI :: TR :: G) R MR RealM). intros a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->).
  exists (fun _ => semi p c k), (semi p c k, enc DZero). eexists. split; [|split; [|split; [apply RealM_const|]]].
  - apply always. intros u. unfold guard. now rewrite Hok.
  - simpl. unfold guard. rewrite Hok. reflexivity.
  - lia.
Qed.
(* one step of values, from arguments that may have taken one step more than they are due *)
Lemma E_bind_s : forall s s' A B A' B' (P : (U -> A) -> B -> Prop) (Q : (U -> A') -> B' -> Prop) F G H J,
  Es U u0 Kp s P F G -> (forall f g, P f g -> Es U u0 Kp s' Q (fun u => H u (f u)) (J g)) -> Es U u0 Kp (s + s') Q (fun u => bind (F u) (H u)) (bind G J).
Proof.
  intros s s' A B A' B' P Q F G H J H1 H2 a0 n0 H0. apply bind_inv in H0 as (a1 & n1 & n2 & E1 & E2 & ->).
  destruct (H1 _ _ E1) as (f & x & n & L & Em & HP & B1).
  assert (f u0 = a1) by (pose proof (here L) as X; simpl in X; congruence). subst a1.
  destruct (H2 _ _ HP _ _ E2) as (f' & x' & n' & L' & Ek & HQ & B2).
  exists f', x', (n + n'). split; [|split; [exact (bind_eq _ Em Ek)|split; [exact HQ|rewrite Nat.mul_add_distr_l; lia]]].
  revert L L'. apply near2. intros u -> X. simpl. now rewrite X.
Qed.
Lemma E_tick_s : forall s A B (P : (U -> A) -> B -> Prop) F m, s <= 50 -> Es U u0 Kp s P F m -> E P (fun u => tick (F u)) (tick m).
Proof. intros s A B P F m Hs H. eapply E_tick; [|exact H]. unfold Kp. lia. Qed.
Lemma V_prim1 : forall C p f x, RealP C f x -> E (RealP C) (fun u => guard (ok1 p (f u)) (sem1 p (f u))) (guard (ok1 p x) (sem1 p x)).
Proof.
  intros C p f x (-> & l & Hd) a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->). exists (fun u => sem1 p (f u)), (sem1 p (f u0)), 0. split; [|split; [|split; [|lia]]].
  - generalize (diff_near Hd (prim1_open p _ Hok)). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - unfold guard. now rewrite Hok.
  - split; [reflexivity|]. eexists. apply diff_comp; eauto. apply prim1_derive, Hok.
Qed.
Lemma V_prim2 : forall C p f x f' x', RealP C f x -> RealP C f' x' -> E (RealP C) (fun u => guard (ok2 p (f u) (f' u)) (sem2 p (f u) (f' u))) (guard (ok2 p x x') (sem2 p x x')).
Proof.
  intros C p f x f' x' (-> & l & Hd) (-> & l' & Hd') a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->).
  exists (fun u => sem2 p (f u) (f' u)), (sem2 p (f u0) (f' u0)), 0. split; [|split; [|split; [|lia]]].
  - generalize (prim2_open p Hd Hd' Hok). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - unfold guard. now rewrite Hok.
  - split; [reflexivity|]. eexists. exact (prim2_diff p Hd Hd' Hok).
Qed.
Lemma V_primi : forall C p f x f' k, RealP C f x -> near (fun u => f' u = k) ->
  E (RealP C) (fun u => guard (oki p (f u) (f' u)) (semi p (f u) (f' u))) (guard (oki p x k) (semi p x k)).
Proof.
  intros C p f x f' k (-> & l & Hd) Hk. apply E_germ with (F := fun u => guard (oki p (f u) k) (semi p (f u) k)).
  { revert Hk. apply near1. intros u ->. reflexivity. }
  intros a0 n0 H0. apply guard_inv in H0 as (Hok & _ & ->). exists (fun u => semi p (f u) k), (semi p (f u0) k), 0. split; [|split; [|split; [|lia]]].
  - generalize (diff_near Hd (primi_open _ _ _ Hok)). apply near1. intros u Hu. unfold guard. now rewrite Hu.
  - unfold guard. now rewrite Hok.
  - split; [reflexivity|]. eexists. apply diff_comp with (phi := fun x => semi p x k); eauto. apply primi_derive, Hok.
Qed.
Definition Good {G t} (e : tm G t) : Prop :=
  (forall C f g, VKE G C f g -> EI t G C (fun u => evR e (f u)) (fst (BT e)) g) /\
  (forall C f g, VKE G C f g -> EP t G C (fun u => evR e (f u)) (snd (BT e)) g).
(* a constant, or what the rule gives *)
Lemma EI_choose : forall G t (e : tm G t) rule C f g, VKE G C f g -> EI t G C (fun u => evR e (f u)) (fst (rule tt)) g ->
  EI t G C (fun u => evR e (f u)) (fst (choose e rule)) g.
Proof.
  intros G t e rule C f g HG HR. unfold choose. destruct (keepsM e) as [e'|] eqn:Hk; [|exact HR]. cbn [fst].
  destruct (constantM e e') as [d|] eqn:Hc; [|exact HR]. exact (@E_constant _ _ _ _ _ C _ _ HG Hk Hc).
Qed.
Lemma EP_choose : forall G t (e : tm G t) rule C f g, VKE G C f g -> EP t G C (fun u => evR e (f u)) (snd (rule tt)) g ->
  EP t G C (fun u => evR e (f u)) (snd (choose e rule)) g.
Proof.
  intros G t e rule C f g HG HR. unfold choose. destruct (keepsM e) as [e'|] eqn:Hk; [|exact HR]. cbn [snd]. destruct t; try exact I.
  intros a0 n0 H0. destruct (@E_keeps _ _ _ _ C _ _ HG Hk _ _ H0) as (fa & v & n & L & E1 & V1 & B1).
  exists (fun _ => v), v, n. split; [|split; [exact E1|split; [split; [reflexivity|exists (fun _ => 0%R); apply diff_const]|lia]]].
  generalize (filter_and _ _ L V1). apply filter_imp. intros u [-> ->]. reflexivity.
Qed.
Lemma Good_both : forall G t (e : tm G t) i, BT e = choose e (fun _ => both i) ->
  (forall C f g, VKE G C f g -> EI t G C (fun u => evR e (f u)) i g) -> Good e.
Proof.
  intros G t e i H HM. split; intros C f g HG; rewrite H.
  - apply EI_choose; [exact HG|]. exact (HM C f g HG).
  - apply EP_choose; [exact HG|]. apply EP_drop, HM, HG.
Qed.
Lemma Good_run : forall G t (e : tm G t), Good e -> forall C f g, VKE G C f g -> EK (VK t) C (fun u => evR e (f u)) (run (MT e) g).
Proof. intros G t e [H _] C f g HG. apply EI_run, H, HG. Qed.

(* ---- the fundamental theorem --------------------------------------------------------------------------- *)
Ltac refold := cbn [both fst snd]; repeat match goal with
  | |- context [comp (fst (@BT ?G ?t ?e))] => change (comp (fst (@BT G t e))) with (@MT G t e)
  end.
Ltac start := cbn [BT]; apply EI_choose; [assumption|]; cbn [ev]; refold.
Ltac startp := cbn [BT]; apply EP_choose; [assumption|]; cbn [ev]; refold; cbn [EP]; apply EG_weak.
Ltac whole := eapply Good_both; [cbn [BT]; reflexivity|]; intros C f g HG; cbn [ev]; refold.
Theorem monadic_good : forall G t (e : tm G t), Good e.
Proof.
  induction e; repeat match goal with IH : Good ?e |- _ =>
    let I := fresh IH "I" in let P := fresh IH "P" in let H := fresh in pose proof (proj1 IH) as I; pose proof (proj2 IH) as P; pose proof (Good_run IH) as H; clear IH; rename H into IH end.
  - (* var *) whole. apply E_tick0 with (F := fun u => ret _). apply E_ret with (f := fun u => look m (f u)). apply VK_look, HG.
  - (* lam *) whole. apply E_tick0 with (F := fun u => ret _). apply E_ret with (f := fun r x => evR e (x, f r)).
    intros L f1 g1 H1. apply (IHe (L ++ C) (fun u => (f1 u, f u)) (g1, g)). split; auto. apply VKE_mono, HG.
  - (* app *) whole. unfold EI. cbn [EG]. apply EK_tick with (F := fun u => bind _ _) (s := 10 + 20 + 20) (z := 0); try (unfold KM, KS; lia).
    assert (EKs (10 + 20 + 20) 0 (VK b) C (fun u => bind (evR e1 (f u)) (fun g => bind (evR e2 (f u)) (fun y => g y)))
      (run (ibind (fst (BT e1)) (ibind (iwk _ (fst (BT e2))) (tlam (tapp (tapp v2 v1) v0)))) g)) as HM.
    { eapply EK_ibind0 with (H := fun u g => bind (evR e2 (f u)) (fun y => g y)); [exact (IHe1I C f g HG)|]. intros L f1 g1 H1.
      eapply EK_ibind0 with (H := fun u y => f1 u y); [apply EG_wk; exact (IHe2I (L ++ C) f g (@VKE_mono _ _ L _ _ HG))|]. intros L' f2 g2 H2.
      apply EK_step with (s := 0) (c := 10) (G := fun s => bind (g1 g2) (fun c => c s)); [intros; now apply run_app|apply H1, H2]. }
    revert IHe1I IHe2I HM. generalize (fst (BT e1)) (fst (BT e2)). intros [x|m] [y|m'] I1 I2 HM; try exact HM. clear HM.
    intros a0 n0 H0 Hw. apply bind_inv in H0 as (a1 & n1 & n2 & H1 & H0 & ->). apply bind_inv in H0 as (a2 & n3 & n4 & H2 & H0 & ->).
    destruct (I1 C f g HG _ _ H1) as (f1 & g1 & m1 & L1 & E1 & V1 & B1). destruct (I2 C f g HG _ _ H2) as (f2 & g2 & m2 & L2 & E2 & V2 & B2).
    assert (f1 u0 = a1) by (pose proof (here L1) as X; simpl in X; congruence). assert (f2 u0 = a2) by (pose proof (here L2) as X; simpl in X; congruence). subst a1 a2.
    destruct (V1 nil f2 g2 V2 _ _ H0 Hw) as (f3 & g3 & L' & m3 & L3 & E3 & V3 & W3 & C3 & S3).
    apply bind_inv in E3 as (c & k1 & k2 & E3 & E4 & ->). exists f3, g3, L'. eexists. split; [|split; [|split; [exact V3|split; [exact W3|split]]]].
    + generalize (filter_and _ _ L1 (filter_and _ _ L2 L3)). apply filter_imp. intros u (-> & -> & X). simpl. rewrite X. reflexivity.
    + apply run_lam. eapply app_ev; [eapply app_ev; [rewrite wk_ok; exact E1|rewrite wk_ok; exact E2|exact E3]|reflexivity|exact E4].
    + unfold KM, Kp in *. lia.
    + lia.
  - (* let *) whole.
    assert (EK (VK b) C (fun u => tick (bind (evR e1 (f u)) (fun x => evR e2 (x, f u)))) (run (ibind (fst (BT e1)) (MT e2 : tm (map MD (_ :: _)) _)) g)) as HM.
    { apply EK_tick with (F := fun u => bind _ _) (s := 0 + 20) (z := 0); try (unfold KM, KS; lia).
    eapply EK_ibind0 with (H := fun u y => evR e2 (y, f u)); [exact (IHe1I C f g HG)|]. intros L f1 g1 H1.
    apply (IHe2 (L ++ C) (fun u => (f1 u, f u)) (g1, g)). split; auto. apply VKE_mono, HG. }
    revert IHe1I IHe2I HM. unfold MT. generalize (fst (BT e1)) (fst (BT e2)). intros [x|m] [y|m'] I1 I2 HM; try exact HM.
    apply E_tick0 with (F := fun u => bind _ _). eapply E_bind with (H := fun u y => evR e2 (y, f u)); [exact (I1 C f g HG)|].
    intros f1 g1 H1. exact (I2 C (fun u => (f1 u, f u)) (g1, g) (conj H1 HG)).
  - (* fix *) whole. apply E_tick0 with (F := fun u => ret _). apply E_ret with (f := fun r => kleene fuel (fun F x => evR e (x, (F, f r)))).
    apply EK_kleene with (F := fun r F x => evR e (x, (F, f r))).
    intros L f1 g1 x y H1 H2. apply (IHe (L ++ C) (fun r => (x r, (f1 r, f r))) (y, (g1, g))). split; auto. split; auto. apply VKE_mono, HG.
  - (* case *) whole.
    assert (EK (VK c) C (fun u => tick (bind (evR e1 (f u)) (fun v => match v with inl y => evR e2 (y, f u) | inr y => evR e3 (y, f u) end)))
      (run (match fst (BT e1) with inl s => mcase s (MT e2 : tm (map MD (_ :: _)) _) (MT e3 : tm (map MD (_ :: _)) _)
        | inr m => mbind m (mcase v0 (rn (MT e2 : tm (map MD (_ :: _)) _) (up (@shift _ _))) (rn (MT e3 : tm (map MD (_ :: _)) _) (up (@shift _ _)))) end) g)) as HM.
    { apply EK_tick with (F := fun u => bind _ _) (s := 15 + 20) (z := 0); try (unfold KM, KS; lia).
      assert (forall C f1 g1, VKE G C f g -> VK (TSum a b) C f1 g1 -> EK (VK c) C (fun u => match f1 u with inl y => evR e2 (y, f u) | inr y => evR e3 (y, f u) end)
        (fun st => match g1 with inl y => run (MT e2) ((y, g) : env R (map MD (a :: G))) st | inr y => run (MT e3) ((y, g) : env R (map MD (b :: G))) st end)) as HC.
      { intros C' f1 [g1|g1] HG' (k & Lo & H1).
        - eapply EK_germ with (F := fun u => evR e2 (k u, f u)); [revert Lo; apply near1; intros u ->; reflexivity|].
          apply (IHe2 C' (fun u => (k u, f u)) (g1, g)). split; auto.
        - eapply EK_germ with (F := fun u => evR e3 (k u, f u)); [revert Lo; apply near1; intros u ->; reflexivity|].
          apply (IHe3 C' (fun u => (k u, f u)) (g1, g)). split; auto. }
      revert IHe1I. generalize (fst (BT e1)). intros [x|m] I1.
      - intros a0 n0 H0 Hw. apply bind_inv in H0 as (a1 & n1 & n2 & H1 & H0 & ->).
        destruct (I1 C f g HG _ _ H1) as (f1 & g1 & m1 & L1 & E1 & V1 & B1).
        assert (f1 u0 = a1) by (pose proof (here L1) as X; simpl in X; congruence). subst a1.
        destruct (HC C f1 g1 HG V1 _ _ H0 Hw) as (f3 & g3 & L' & m3 & L3 & E3 & V3 & W3 & C3 & S3).
        destruct (@mcase_run (map MD G) (MD a) (MD b) (MD c) x (MT e2 : tm (map MD (_ :: _)) _) (MT e3 : tm (map MD (_ :: _)) _) g (encS base C) g1 m1 _ m3 E1 E3) as (m4 & E4 & B4).
        exists f3, g3, L', m4. split; [|split; [exact E4|split; [exact V3|split; [exact W3|split]]]].
        + revert L1 L3. apply near2. intros u -> X. simpl. rewrite X. reflexivity.
        + unfold KM, Kp in *. lia.
        + lia.
      - eapply EK_bind with (H := fun u v => match v with inl y => evR e2 (y, f u) | inr y => evR e3 (y, f u) end); [exact (I1 C f g HG)|].
        intros L f1 g1 H1. apply EK_step with (s := 0) (c := 15) (G := fun st => match g1 with
          inl y => run (MT e2) ((y, g) : env R (map MD (a :: G))) st | inr y => run (MT e3) ((y, g) : env R (map MD (b :: G))) st end);
          [|exact (HC (L ++ C) f1 g1 (@VKE_mono _ _ L _ _ HG) H1)]. intros st q n Hq.
        destruct (@mcase_run (MD (TSum a b) :: map MD G) (MD a) (MD b) (MD c) v0 (rn (MT e2 : tm (map MD (_ :: _)) _) (up (@shift _ _))) (rn (MT e3 : tm (map MD (_ :: _)) _) (up (@shift _ _))) (g1, g) st g1 1 q n eq_refl) as (m4 & E4 & B4).
        { destruct g1 as [g1|g1]; (refine (eq_trans _ Hq); apply run_rn, (@up_ok R); intros t v; reflexivity). }
        exists m4. split; [exact E4|lia]. }
    revert IHe2I IHe3I HM. unfold MT. generalize (fst (BT e2)) (fst (BT e3)). intros [x|m] [y|m'] I2 I3 HM; try exact HM. clear HM.
    apply (@EG_map 0 0 _ _ (MD (TSum a b)) (MD c) _ (VK (TSum a b)) (VK c) C (fun u => evR e1 (f u))
      (fun u v => match v with inl y => evR e2 (y, f u) | inr y => evR e3 (y, f u) end)); [lia|exact (IHe1I C f g HG)| |].
    + intros p Hp. apply E_tick0 with (F := fun u => bind _ _).
      eapply E_bind with (H := fun u v => match v with inl y => evR e2 (y, f u) | inr y => evR e3 (y, f u) end); [exact Hp|].
      intros f1 [g1|g1] (k & L & H1); simpl.
      * eapply E_germ; [|exact (I2 C (fun u => (k u, f u)) (g1, g) (conj H1 HG))]. revert L. apply near1. intros u ->. reflexivity.
      * eapply E_germ; [|exact (I3 C (fun u => (k u, f u)) (g1, g) (conj H1 HG))]. revert L. apply near1. intros u ->. reflexivity.
    + intros L f1 [g1|g1] (k & Lo & H1).
      * eapply EK_germ with (F := fun u => evR e2 (k u, f u)); [revert Lo; apply near1; intros u ->; reflexivity|].
        apply EK_pure. intros a0 n0 H0. destruct (I2 (L ++ C) (fun u => (k u, f u)) (g1, g) (conj H1 (@VKE_mono _ _ L _ _ HG)) _ _ H0) as (fa & v & n & La & E1 & V1 & B1).
        exists fa, v, (S (1 + n)). split; [exact La|split; [|split; [exact V1|unfold KM, Kp in *; lia]]]. cbn [ev look v0 fst snd tick ret bind].
        match goal with |- context [@ev ?A ?B ?nn ?I ?J (@rn ?a1 ?a2 ?a3 x ?w) ?z] => assert (@ev A B nn I J (@rn a1 a2 a3 x w) z = Some (v, n, 0)) as -> by (rewrite <- E1; apply rn_ok, (@up_ok R); intros t q0; reflexivity) end.
        reflexivity.
      * eapply EK_germ with (F := fun u => evR e3 (k u, f u)); [revert Lo; apply near1; intros u ->; reflexivity|].
        apply EK_pure. intros a0 n0 H0. destruct (I3 (L ++ C) (fun u => (k u, f u)) (g1, g) (conj H1 (@VKE_mono _ _ L _ _ HG)) _ _ H0) as (fa & v & n & La & E1 & V1 & B1).
        exists fa, v, (S (1 + n)). split; [exact La|split; [|split; [exact V1|unfold KM, Kp in *; lia]]]. cbn [ev look v0 fst snd tick ret bind].
        match goal with |- context [@ev ?A ?B ?nn ?I ?J (@rn ?a1 ?a2 ?a3 y ?w) ?z] => assert (@ev A B nn I J (@rn a1 a2 a3 y w) z = Some (v, n, 0)) as -> by (rewrite <- E1; apply rn_ok, (@up_ok R); intros t q0; reflexivity) end.
        reflexivity.
  - (* op0 *) whole. apply E_tick0 with (F := fun u => ret _). apply E_ret with (f := fun _ => op0v R o). apply VK_op0.
  - (* op1 *) whole. apply (@EG_map 0 0 _ _ (MD a) (MD b) _ (VK a) (VK b) C (fun u => evR e (f u)) (fun u x => op1v R o x)); [lia|exact (IHeI C f g HG)| |].
    + intros x Hx. apply E_tick0 with (F := fun u => bind _ _). eapply E_bind with (H := fun u x => op1v R o x); [exact Hx|]. intros f1 g1 H1. apply E_op1, H1.
    + intros L f1 g1 H1. eapply EK_op; [apply E_op1, H1|apply op1_ticks|lia].
  - (* op2 *) whole. apply (@EG_maps 0 0 0 0 _ _ (MD a) _ (MD b) (MD c) _ (VK a) (VK b) (VK c) C (fun u => evR e1 (f u)) (fun u => evR e2 (f u)) (fun u x y => op2v R o x y)); try lia;
      [exact (IHe1I C f g HG)|intros L; apply IHe2I, VKE_mono, HG|intros; now apply VK_mono| |].
    + intros x y Hx Hy. apply E_tick0 with (F := fun u => bind _ _). eapply E_bind with (H := fun u x => bind (evR e2 (f u)) (fun y => op2v R o x y)); [exact Hx|]. intros f1 g1 H1.
      eapply E_bind with (H := fun u y => op2v R o (f1 u) y); [exact Hy|]. intros f2 g2 H2. apply E_op2; assumption.
    + intros L f1 g1 f2 g2 H1 H2. eapply EK_op; [apply E_op2; [exact H1|exact H2]|apply op2_ticks|lia].
  - (* op3 *) whole.
    assert (EK (VK d) C (fun u => tick (bind (evR e1 (f u)) (fun x => bind (evR e2 (f u)) (fun y => bind (evR e3 (f u)) (fun z => op3v R o x y z)))))
      (run (ibind (fst (BT e1)) (ibind (iwk _ (fst (BT e2))) (ibind (iwk _ (iwk _ (fst (BT e3)))) (mpure (top3 (Mop3 o) v2 v1 v0))))) g)) as HM.
    { apply EK_tick with (F := fun u => bind _ _) (s := 100 + 20 + 20 + 20) (z := 0); try (unfold KM, KS; lia).
    eapply EK_ibind0 with (H := fun u x => bind (evR e2 (f u)) (fun y => bind (evR e3 (f u)) (fun z => op3v R o x y z))); [exact (IHe1I C f g HG)|]. intros L f1 g1 H1.
    eapply EK_ibind0 with (H := fun u y => bind (evR e3 (f u)) (fun z => op3v R o (f1 u) y z)); [apply EG_wk; exact (IHe2I (L ++ C) f g (@VKE_mono _ _ L _ _ HG))|]. intros L' f2 g2 H2.
    eapply EK_ibind0 with (H := fun u z => op3v R o (f1 u) (f2 u) z); [apply EG_wk, EG_wk; exact (IHe3I _ f g (@VKE_mono _ _ L' _ _ (@VKE_mono _ _ L _ _ HG)))|]. intros L'' f3 g3 H3.
    eapply EK_op; [apply E_op3; [apply VK_mono, VK_mono, H1|apply VK_mono, H2|exact H3]|apply op3_ticks|lia]. }
    revert IHe1I IHe2I IHe3I HM. unfold MT. generalize (fst (BT e1)) (fst (BT e2)) (fst (BT e3)). intros [x|m] [y|m'] [z|m''] I1 I2 I3 HM; try exact HM.
    apply E_tick0 with (F := fun u => bind _ _).
    eapply E_bind with (H := fun u x => bind (evR e2 (f u)) (fun y => bind (evR e3 (f u)) (fun z => op3v R o x y z))); [exact (I1 C f g HG)|]. intros f1 g1 H1.
    eapply E_bind with (H := fun u y => bind (evR e3 (f u)) (fun z => op3v R o (f1 u) y z)); [exact (I2 C f g HG)|]. intros f2 g2 H2.
    eapply E_bind with (H := fun u z => op3v R o (f1 u) (f2 u) z); [exact (I3 C f g HG)|]. intros f3 g3 H3. apply E_op3; assumption.
  - (* loop *) whole. unfold EI. cbn [EG]. apply EK_tick with (F := fun u => bind _ _) (s := 20 + 20 + 20) (z := 0); try (unfold KM, KS; lia).
    eapply EK_ibind0 with (H := fun u k => bind (evR e2 (f u)) (fun a => miter (Z.to_nat k) (fun i acc => evR e3 (acc, (Z.of_nat i, f u))) a)); [exact (IHe1I C f g HG)|].
    intros L fn n Hn. eapply EK_ibind0 with (H := fun u a => miter (Z.to_nat (fn u)) (fun i acc => evR e3 (acc, (Z.of_nat i, f u))) a); [apply EG_wk; exact (IHe2I (L ++ C) f g (@VKE_mono _ _ L _ _ HG))|].
    intros L' fz z Hz.
    eapply EK_germ with (F := fun u => miter (Z.to_nat n) (fun i acc => evR e3 (acc, (Z.of_nat i, f u))) (fz u)).
    { revert Hn. apply near1. intros u ->. reflexivity. }
    intros a0 n0 H0 Hw.
    enough (forall s0, EK (VK a) (L' ++ L ++ C) (fun u => miter (Z.to_nat n) (fun i acc => evR e3 (acc, (Z.of_nat i, f u))) (fz u))
      (fun s => miter (Z.to_nat n) (fun i p => evR (loop_step (MT e3))
         ((p, (Z.of_nat i, (s0, (z, (n, g))))) : env R (TProd (MD a) TS :: TI :: TS :: MD a :: TI :: map MD G))) (z, s))) as HE.
    { destruct (HE (encS base (L' ++ L ++ C)) _ _ H0 Hw) as (fa & b & L2 & n' & H1 & H2 & H3). 
      destruct (loop_run (MT e3) _ _ _ _ H2) as (n2 & E2 & B2). exists fa, b, L2, n2. split; [exact H1|]. split; [exact E2|]. intuition lia. }
    intros s0. apply EK_iter with (F := fun u i acc => evR e3 (acc, (Z.of_nat i, f u))); auto.
    intros L2 i f1 g1 H1. eapply EK_step with (s := 0) (c := 100) (G := run (MT e3) ((g1, (Z.of_nat i, g)) : env R (map MD (a :: TI :: G)))).
    { intros st q n1 Hq. destruct (@loop_body (map MD G) (MD a) (MT e3) (Z.of_nat i) g1 st s0 z n g q n1 Hq) as (n2 & E2 & B2). exists n2. split; [exact E2|lia]. }
    apply (IHe3 _ (fun u => (f1 u, (Z.of_nat i, f u))) (g1, (Z.of_nat i, g))). split; [exact H1|split; [apply always; reflexivity|]].
    simpl. rewrite !app_assoc. apply VKE_mono, HG.
  - (* build *) whole. revert IHe2I. clear IHe2 IHe2P. generalize (fst (BT e2)). intros [x|m] I2.
    { assert (forall C k, VKE G C f g -> E (VK (TArr a) C) (fun u => mseq (fun i => tick (evR e2 (Z.of_nat i, f u))) (seq 0 k)) (mseq (fun i => tick (evR x (Z.of_nat i, g))) (seq 0 k))) as HB.
      { intros C' k HG'. eapply E_germ with (F := fun u => mseq (fun i => tick (evR e2 (Z.of_nat i, f u))) (map (fun k => k u) (map (fun i _ => i) (seq 0 k)))).
        { apply always. intros u. now rewrite map_map, map_id. }
        apply E_seq with (F := fun u i => tick (evR e2 (Z.of_nat i, f u))) (R0 := fun f i => f = fun _ => i).
        - intros q i ->. apply E_tick0 with (F := fun u => evR e2 (Z.of_nat i, f u)).
          apply (I2 C' (fun u => (Z.of_nat i, f u)) (Z.of_nat i, g)). split; [simpl; apply always; reflexivity|exact HG'].
        - induction (seq 0 k); simpl; constructor; auto. }
      apply (@EG_map 0 0 _ _ TI (TArr (MD a)) _ (VK TI) (VK (TArr a)) C (fun u => evR e1 (f u)) (fun u k => mseq (fun i => tick (evR e2 (Z.of_nat i, f u))) (seq 0 (Z.to_nat k))));
        [lia|exact (IHe1I C f g HG)| |].
      - intros p Hp. apply E_tick0 with (F := fun u => bind _ _).
        eapply E_bind with (H := fun u k => mseq (fun i => tick (evR e2 (Z.of_nat i, f u))) (seq 0 (Z.to_nat k))); [exact Hp|]. intros fn n Hn.
        eapply E_germ; [|exact (HB C (Z.to_nat n) HG)]. revert Hn. apply near1. intros u ->. reflexivity.
      - intros L fn n Hn. eapply EK_germ with (F := fun u => mseq (fun i => tick (evR e2 (Z.of_nat i, f u))) (seq 0 (Z.to_nat n))).
        { revert Hn. apply near1. intros u ->. reflexivity. }
        apply EK_pure. intros a0 n0 H0. destruct (HB (L ++ C) (Z.to_nat n) (@VKE_mono _ _ L _ _ HG) _ _ H0) as (fa & v & k & La & E1 & V1 & B1).
        exists fa, v, (S (1 + k)). split; [exact La|split; [|split; [exact V1|unfold KM, Kp in *; lia]]]. cbn [ev look v0 fst snd tick ret bind].
        match goal with |- context [mseq ?F ?l] => assert (mseq F l = Some (v, k, 0)) as ->; [rewrite <- E1; f_equal; apply functional_extensionality; intros i; f_equal;
          apply rn_ok, (@up_ok R); intros t q0; reflexivity|] end. reflexivity. }
    unfold EI. cbn [EG]. apply EK_tick with (F := fun u => bind _ _) (s := 100 + 20) (z := 0); try (unfold KM, KS; lia).
    eapply EK_ibind0 with (H := fun u k => mseq (fun i => tick (evR e2 (Z.of_nat i, f u))) (seq 0 (Z.to_nat k))); [exact (IHe1I C f g HG)|].
    intros L fn n Hn.
    set (is := map Z.of_nat (seq 0 (Z.to_nat n))).
    eapply EK_germ with (F := fun u => bind (mseq (fun i => tick (evR e2 (i, f u))) (map (fun k => k u) (map (fun i _ => i) is))) (fun r => ret ([] ++ r))).
    { revert Hn. apply near1. intros u ->. rewrite bind_nil, map_map, map_id. subst is. apply mseq_map. }
    pose (J0 := fun i => run (m) ((i, g) : env R (map MD (TI :: G)))).
    eapply EK_step with (s := 0) (c := 100) (G := fun s => mfold (appends J0) is ([], s)).
    { intros st q n1 Hq. destruct (build_run (m) _ _ _ Hq) as (n2 & E2 & B2). exists n2. split; [exact E2|lia]. }
    apply EK_mapM with (R0 := fun _ f i => f = fun _ : U => i) (F := fun u i => evR e2 (i, f u)) (J0 := J0) (facc := fun _ => []); auto.
    + intros i acc s1 v s' n1 Hq. unfold appends. cbn [fst snd]. rewrite Hq. cbn. eexists. split; [reflexivity|lia].
    + intros L2 k i ->. apply (I2 _ (fun u => (i, f u)) (i, g)). split; [apply always; reflexivity|]. simpl. rewrite !app_assoc. apply VKE_mono, HG.
    + clear. induction is; simpl; constructor; auto.
    + exists nil. split; [apply always; reflexivity|constructor].
  - (* map *) whole. unfold EI. cbn [EG]. apply EK_tick with (F := fun u => bind _ _) (s := 100 + 20) (z := 0); try (unfold KM, KS; lia).
    eapply EK_ibind0 with (H := fun u l => mseq (fun x => tick (evR e1 (x, f u))) l); [exact (IHe2I C f g HG)|].
    intros L fl l (fs & Lo & HF).
    eapply EK_germ with (F := fun u => bind (mseq (fun i => tick (evR e1 (i, f u))) (map (fun k => k u) fs)) (fun r => ret ([] ++ r))).
    { revert Lo. apply near1. intros u ->. apply bind_nil. }
    pose (J := fun s0 x p => evR (each (MT e1)) ((x, (p, (s0, (l, g)))) : env R (MD a :: TProd (TArr (MD b)) TS :: TS :: TArr (MD a) :: map MD G))).
    enough (forall s0, EK (VK (TArr b)) (L ++ C) (fun u => bind (mseq (fun i => tick (evR e1 (i, f u))) (map (fun k => k u) fs)) (fun r => ret ([] ++ r)))
      (fun s => mfold (J s0) l ([], s))) as HE.
    { intros a0 n0 H0 Hw. destruct (HE (encS base (L ++ C)) _ _ H0 Hw) as (fa & b' & L2 & n' & H1 & H2 & H3 & H4 & H5 & H6).
      destruct (@map_run (map MD G) (MD a) (MD b) (TArr (MD a)) (MT e1) v1 l g (encS base (L ++ C)) l 1 _ _ eq_refl H2) as (n3 & E3 & B3).
      exists fa, b', L2, n3. split; [exact H1|]. split; [exact E3|split; [exact H3|split; [exact H4|split; lia]]]. }
    intros s0. apply EK_mapM with (R0 := VK a) (F := fun u i => evR e1 (i, f u)) (J0 := fun i => run (MT e1) ((i, g) : env R (map MD (a :: G))))
      (facc := fun _ => []); auto.
    + intros. now apply VK_mono.
    + intros i acc s1 v s' n1 Hq. destruct (@each_ev (map MD G) (MD a) (MD b) (TArr (MD a)) (MT e1) i acc s1 s0 l g v s' n1 Hq) as (n2 & E2 & B2).
      exists n2. split; [exact E2|lia].
    + intros L2 k i Hk. apply (IHe1 _ (fun u => (k u, f u)) (i, g)). split; [exact Hk|]. simpl. rewrite !app_assoc. apply VKE_mono, HG.
    + exists nil. split; [apply always; reflexivity|constructor].
  - (* fold *) whole. unfold EI. cbn [EG]. apply EK_tick with (F := fun u => bind _ _) (s := 100 + 20 + 20) (z := 0); try (unfold KM, KS; lia).
    eapply EK_ibind0 with (H := fun u z => bind (evR e3 (f u)) (fun l => mfold (fun x acc => evR e1 (x, (acc, f u))) l z)); [exact (IHe2I C f g HG)|].
    intros L fz z Hz. eapply EK_ibind0 with (H := fun u l => mfold (fun x acc => evR e1 (x, (acc, f u))) l (fz u)); [apply EG_wk; exact (IHe3I (L ++ C) f g (@VKE_mono _ _ L _ _ HG))|].
    intros L' fl l (fs & Lo & HF). eapply EK_germ with (F := fun u => mfold (fun x acc => evR e1 (x, (acc, f u))) (map (fun k => k u) fs) (fz u)).
    { revert Lo. apply near1. intros u ->. reflexivity. }
    pose (J := fun s0 x p => evR (tlet (tfst v1) (tlet v1 (tapp (rn (MT e1) (up (up skip5))) (tsnd v3))))
         ((x, (p, (s0, (l, (z, g))))) : env R (MD a :: TProd (MD b) TS :: TS :: TArr (MD a) :: MD b :: map MD G))).
    enough (forall s0, EK (VK b) (L' ++ L ++ C) (fun u => mfold (fun x acc => evR e1 (x, (acc, f u))) (map (fun k => k u) fs) (fz u))
      (fun s => mfold (J s0) l (z, s))) as HE.
    { intros a0 n0 H0 Hw. destruct (HE (encS base (L' ++ L ++ C)) _ _ H0 Hw) as (fa & b' & L2 & n' & H1 & H2 & H3 & H4 & H5 & H6).
      destruct (@fold_run (map MD G) (MD a) (MD b) (MT e1) l z g (encS base (L' ++ L ++ C)) _ _ H2) as (n3 & E3 & B3).
      exists fa, b', L2, n3. split; [exact H1|]. split; [exact E3|split; [exact H3|split; [exact H4|split; lia]]]. }
    intros s0. apply EK_fold with (R0 := VK a) (F := fun u x acc => evR e1 (x, (acc, f u))); auto.
    + intros. now apply VK_mono.
    + intros L2 f1 g1 w w' H1 H2. eapply EK_step with (s := 0) (c := 100) (G := run (MT e1) ((g1, (w', g)) : env R (map MD (a :: b :: G)))).
      { intros st q n1 Hq. destruct (@fold_body (map MD G) (MD a) (MD b) (MT e1) g1 w' st s0 l z g q n1 Hq) as (n2 & E2 & B2). exists n2. split; [exact E2|lia]. }
      apply (IHe1 _ (fun u => (f1 u, (w u, f u))) (g1, (w', g))). split; [exact H1|split; [exact H2|]]. simpl. rewrite !app_assoc. apply VKE_mono, HG.
    + apply VK_mono, Hz.
  - (* literal *) split.
    { intros C f g HG. start. intros a0 n0 H0. inversion H0; subst. exists (fun _ => litR z z0), (litR z z0, enc DZero). eexists. split; [apply always; reflexivity|].
      split; [reflexivity|split; [apply RealM_const|unfold Kp; lia]]. }
    { intros C f g HG. startp. apply E_tick0 with (F := fun u => ret _). apply E_ret with (f := fun _ => litR z z0). split; [reflexivity|]. exists (fun _ => 0%R). apply diff_const. }
  - (* unary primitives *) split.
    { intros C f g HG. start. unfold EI. cbn [EG]. apply EK_tick with (F := fun u => bind _ _) (s := 400 + 20) (z := KS); try (unfold KM, KS; lia).
    eapply EK_ibind0 with (H := fun u x => guard (ok1 p x) (sem1 p x)); [exact (IHeI C f g HG)|]. intros L f1 g1 H1. apply EK_prim1, H1. }
    { intros C f g HG. startp. apply (@EG_map 1 32 _ _ TR TR _ RealP RealP C (fun u => evR e (f u)) (fun u x => guard (ok1 p x) (sem1 p x))); [lia|exact (IHeP C f g HG)| |].
      - intros x Hx. apply (@E_tick_s (1 + 0)) with (F := fun u => bind _ _); [lia|]. eapply E_bind_s with (H := fun u x => guard (ok1 p x) (sem1 p x)); [exact Hx|]. intros f1 g1 H1. apply V_prim1, H1.
      - intros L f1 g1 H1. apply EK_more with (s := 12); [lia|]. apply EP_prim1, H1. }
  - (* binary primitives *) split.
    { intros C f g HG. start. unfold EI. cbn [EG]. apply EK_tick with (F := fun u => bind _ _) (s := 400 + 20 + 20) (z := KS); try (unfold KM, KS; lia).
    eapply EK_ibind0 with (H := fun u x => bind (evR e2 (f u)) (fun y => guard (ok2 p x y) (sem2 p x y))); [exact (IHe1I C f g HG)|]. intros L f1 g1 H1.
    eapply EK_ibind0 with (H := fun u y => guard (ok2 p (f1 u) y) (sem2 p (f1 u) y)); [apply EG_wk; exact (IHe2I (L ++ C) f g (@VKE_mono _ _ L _ _ HG))|]. intros L' f2 g2 H2.
    apply EK_prim2; [apply (VK_mono TR), H1|exact H2]. }
    { intros C f g HG. startp.
      apply (@EG_maps 1 1 32 32 _ _ TR _ TR TR _ RealP RealP RealP C (fun u => evR e1 (f u)) (fun u => evR e2 (f u)) (fun u x y => guard (ok2 p x y) (sem2 p x y))); try lia;
        [exact (IHe1P C f g HG)|intros L; exact (IHe2P (L ++ C) f g (@VKE_mono _ _ _ _ _ HG))|intros C' L f1 x H1; exact H1| |].
      - intros x y Hx Hy. apply (@E_tick_s (1 + (1 + 0))) with (F := fun u => bind _ _); [lia|].
        eapply E_bind_s with (H := fun u x => bind (evR e2 (f u)) (fun y => guard (ok2 p x y) (sem2 p x y))); [exact Hx|]. intros f1 g1 H1.
        eapply E_bind_s with (H := fun u y => guard (ok2 p (f1 u) y) (sem2 p (f1 u) y)); [exact Hy|]. intros f2 g2 H2. apply V_prim2; assumption.
      - intros L f1 g1 f2 g2 H1 H2. apply EK_more with (s := 13); [lia|]. apply EP_prim2; assumption. }
  - (* integer power *) split.
    { intros C f g HG. start. destruct (keepsM e1) as [e1'|] eqn:Hk1.
      { apply (@EG_maps 0 0 0 0 _ _ TR _ TI MR _ (fun _ (F : U -> R) v => near (fun u => F u = v)) (VK TI) RealM C (fun u => evR e1 (f u)) (fun u => evR e2 (f u)) (fun u x y => guard (oki p x y) (semi p x y))); try lia;
          [exact (@E_keeps _ TR _ _ C _ _ HG Hk1)|intros L; apply IHe2I, VKE_mono, HG|intros C' L f1 x H1; exact H1| |].
        - intros x y Hx Hy a0 n0 H0. apply tick_inv in H0 as (n1 & H0 & ->). apply bind_inv in H0 as (xv & m1 & m2 & H1 & H0 & ->). apply bind_inv in H0 as (yv & m3 & m4 & H2 & H0 & ->).
          destruct (Hx _ _ H1) as (fx & gx & nx & Lx & Ex & Vx & Bx). destruct (Hy _ _ H2) as (fy & gy & ny & Ly & Ey & Vy & By).
          assert (fx u0 = xv) as <- by (pose proof (here Lx) as Q; simpl in Q; congruence). assert (fy u0 = yv) as <- by (pose proof (here Ly) as Q; simpl in Q; congruence).
          rewrite (here Vx), (here Vy) in H0. apply guard_inv in H0 as (Hok & Ha & ->). exists (fun _ => semi p gx gy), (semi p gx gy, enc DZero). eexists. split; [|split; [|split; [apply RealM_const|]]].
          + generalize (filter_and _ _ (filter_and _ _ Lx Ly) (filter_and _ _ Vx Vy)). apply filter_imp. intros u [[-> ->] [-> ->]]. cbn [bind tick]. unfold guard. rewrite Hok. cbn. now rewrite !Nat.add_0_r.
          + cbn [ev]. rewrite Ex, Ey. cbn [bind tick o_oki o_primi RO]. unfold guard. rewrite Hok. reflexivity.
          + unfold Kp in *. lia.
        - intros L f1 c f2 k H1 H2. apply EK_germ with (F := fun u => guard (oki p c k) (semi p c k)); [revert H1 H2; apply near2; intros u -> ->; reflexivity|].
          apply EK_primi0. }
      unfold EI. cbn [EG]. apply EK_tick with (F := fun u => bind _ _) (s := 400 + 20 + 20) (z := KS); try (unfold KM, KS; lia).
      eapply EK_ibind0 with (H := fun u x => bind (evR e2 (f u)) (fun y => guard (oki p x y) (semi p x y))); [exact (IHe1I C f g HG)|]. intros L f1 g1 H1.
      eapply EK_ibind0 with (H := fun u y => guard (oki p (f1 u) y) (semi p (f1 u) y)); [apply EG_wk; exact (IHe2I (L ++ C) f g (@VKE_mono _ _ L _ _ HG))|]. intros L' f2 g2 H2.
      apply EK_primi; [apply (VK_mono TR), H1|exact H2]. }
    { intros C f g HG. startp.
      apply (@EG_maps 1 0 32 0 _ _ TR _ TI TR _ RealP (VK TI) RealP C (fun u => evR e1 (f u)) (fun u => evR e2 (f u)) (fun u x y => guard (oki p x y) (semi p x y))); try lia;
        [exact (IHe1P C f g HG)|intros L; apply IHe2I, VKE_mono, HG|intros C' L f1 x H1; exact H1| |].
      - intros x y Hx Hy. apply (@E_tick_s (1 + (0 + 0))) with (F := fun u => bind _ _); [lia|].
        eapply E_bind_s with (H := fun u x => bind (evR e2 (f u)) (fun y => guard (oki p x y) (semi p x y))); [exact Hx|]. intros f1 g1 H1.
        eapply E_bind_s with (H := fun u y => guard (oki p (f1 u) y) (semi p (f1 u) y)); [exact Hy|]. intros f2 g2 H2. apply V_primi; assumption.
      - intros L f1 g1 f2 g2 H1 H2. apply EK_more with (s := 13); [lia|]. apply EP_primi; assumption. }
  - (* comparison *) whole.
    apply (@EG_maps 1 1 32 32 _ _ TR _ TR (MD TB) _ RealP RealP (VK TB) C (fun u => evR e1 (f u)) (fun u => evR e2 (f u)) (fun u x y => guard (negb (tie (cmpR x y))) (boolv (decide c (cmpR x y))))); try lia;
      [exact (IHe1P C f g HG)|intros L; exact (IHe2P (L ++ C) f g (@VKE_mono _ _ _ _ _ HG))|intros C' L f1 x H1; exact H1| |].
    + intros x y Hx Hy. apply (@E_tick_s (1 + (1 + 0))) with (F := fun u => bind _ _); [lia|].
      eapply E_bind_s with (H := fun u x => bind (evR e2 (f u)) (fun y => guard (negb (tie (cmpR x y))) (boolv (decide c (cmpR x y))))); [exact Hx|]. intros f1 g1 (-> & l & Hd).
      eapply E_bind_s with (H := fun u y => guard (negb (tie (cmpR (f1 u) y))) (boolv (decide c (cmpR (f1 u) y)))); [exact Hy|]. intros f2 g2 (-> & l' & Hd'). exact (E_compare Kp c Hd Hd').
    + intros L f1 x f2 x' (-> & l & Hd) (-> & l' & Hd').
      eapply (@EK_op _ TB) with (j := 3); [exact (E_compare Kp c Hd Hd')| |lia].
      cbn [ev bind tick ret op1v look fst snd v0 v1 o_cmp RO]. unfold guard, ticks. reflexivity.
  - (* rounding *) whole.
    apply (@EG_map 1 32 _ _ TR TI _ RealP (VK TI) C (fun u => evR e (f u)) (fun u x => guard (okround r x) (roundR r x))); [lia|exact (IHeP C f g HG)| |].
    + intros x Hx. apply (@E_tick_s (1 + 0)) with (F := fun u => bind _ _); [lia|]. eapply E_bind_s with (H := fun u x => guard (okround r x) (roundR r x)); [exact Hx|].
      intros f1 g1 (-> & l & Hd). exact (E_rounding Kp r Hd).
    + intros L f1 x (-> & l & Hd). eapply (@EK_op _ TI) with (j := 2); [exact (E_rounding Kp r Hd)| |lia].
      cbn [ev bind tick ret op1v look fst snd v0 v1 o_round o_okround RO]. unfold guard, ticks. reflexivity.
  - (* real of int *) split.
    { intros C f g HG. start. apply (@EG_map 0 0 _ _ TI MR _ (VK TI) RealM C (fun u => evR e (f u)) (fun u x => ret (IZR x))); [lia|exact (IHeI C f g HG)| |].
      - intros x Hx a0 n0 H0. apply tick_inv in H0 as (n1 & H0 & ->). apply bind_inv in H0 as (xv & m1 & m2 & H1 & H0 & ->). inversion H0; subst.
        destruct (Hx _ _ H1) as (fx & gx & nx & Lx & Ex & Vx & Bx). exists (fun u => IZR (fx u)), (IZR gx, enc DZero). eexists. split; [|split; [|split]].
        + revert Lx. apply near1. intros u ->. reflexivity.
        + cbn [ev]. rewrite Ex. reflexivity.
        + apply (VK_germ TR C) with (f := fun _ => IZR gx); [revert Vx; apply near1; intros u ->; reflexivity|]. apply RealM_const.
        + unfold Kp in *. lia.
      - intros L f1 g1 H1. eapply EK_germ with (F := fun u => ret (IZR g1)); [revert H1; apply near1; intros u ->; reflexivity|].
        eapply EK_ret with (f := fun _ => IZR g1) (n := 7); [reflexivity|lia|apply RealM_const]. }
    { intros C f g HG. startp. apply (@EG_map 0 0 _ _ TI TR _ (VK TI) RealP C (fun u => evR e (f u)) (fun u x => ret (IZR x))); [lia|exact (IHeI C f g HG)| |].
      - intros x Hx. apply E_tick0 with (F := fun u => bind _ _). eapply E_bind with (H := fun u x => ret (IZR x)); [exact Hx|]. intros f1 g1 H1.
        apply E_germ with (F := fun u => ret (IZR g1)); [revert H1; apply near1; intros u ->; reflexivity|]. apply E_ret with (f := fun _ => IZR g1).
        split; [reflexivity|]. exists (fun _ => 0%R). apply diff_const.
      - intros L f1 g1 H1. apply EK_germ with (F := fun u => ret (IZR g1)); [revert H1; apply near1; intros u ->; reflexivity|]. apply EK_more with (s := 12); [lia|].
        apply (@EP_const (TI :: map MD G) (g1, g) (L ++ C) (IZR g1) (treal v0) 2 eq_refl). }
  - (* sum *) whole. unfold EI. cbn [EG]. apply EK_tick with (F := fun u => bind _ _) (s := 400 + 20) (z := KS); try (unfold KM, KS; lia).
    eapply EK_ibind0 with (H := fun u x => msum RO x); [exact (IHeI C f g HG)|]. intros L f1 g1 H1. apply EK_sum, H1.
  - (* dot *) whole. unfold EI. cbn [EG]. apply EK_tick with (F := fun u => bind _ _) (s := 400 + 20 + 20) (z := KS); try (unfold KM, KS; lia).
    eapply EK_ibind0 with (H := fun u x => bind (evR e2 (f u)) (fun y => mdot RO x y)); [exact (IHe1I C f g HG)|]. intros L f1 g1 H1.
    eapply EK_ibind0 with (H := fun u y => mdot RO (f1 u) y); [apply EG_wk; exact (IHe2I (L ++ C) f g (@VKE_mono _ _ L _ _ HG))|]. intros L' f2 g2 H2.
    apply EK_dot; [apply (VK_mono (TArr TR)), H1|exact H2].
Qed.
Theorem monadic_fundamental : forall G t (e : tm G t) C f g, VKE G C f g ->
  EK (VK t) C (fun u => evR e (f u)) (run (MT e) g).
Proof. intros G t e. exact (Good_run (monadic_good e)). Qed.
End LR.
