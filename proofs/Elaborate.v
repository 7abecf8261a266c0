(* Untyped terms as they travel to and from the implementation, a type checker into the typed terms of Language.v, and erasure back.
   [infer] accepts only what it can build, so whatever the oracle transforms or runs is a typed term of the proved language. *)
From Coq Require Import List ZArith.
Require Import Language.
Import ListNotations.
Set Implicit Arguments.

Inductive raw : Type :=
| Rvar (i : nat) | Rlam (a : ty) (b : raw) | Rapp (f x : raw) | Rlet (a b : raw) | Rfix (a b : ty) (e : raw) | Rcase (s l r : raw)
| Runit | Rint (z : Z) | Rnil (a : ty)
| Rfst (a : raw) | Rsnd (a : raw) | Rinl (b : ty) (x : raw) | Rinr (a : ty) (x : raw) | Rlen (a : raw) | Runnode (a : raw)
| Rpair (a b : raw) | Rget (a i : raw) | Rcons (x l : raw) | Rsnoc (l x : raw) | Rnode (x ts : raw) | Rzip (a b : raw) | Rgather (a i : raw)
| Rintop (o : intop) (a b : raw) | Rintcmp (c : comparator) (a b : raw) | Rset (a i v : raw)
| Rloop (n z b : raw) | Rbuild (n b : raw) | Rmap (b a : raw) | Rfold (b z a : raw)
| Rlit (m e : Z) | Rprim1 (p : prim1) (a : raw) | Rprim2 (p : prim2) (a b : raw) | Rprimi (p : primi) (a n : raw) | Rcmp (c : comparator) (a b : raw)
| Rround (k : rounding) (a : raw) | Rreal (a : raw) | Rsum (a : raw) | Rdot (a b : raw).

Definition ty_dec : forall a b : ty, {a = b} + {a <> b}.
Proof. decide equality. Defined.
Fixpoint mem_at (G : list ty) (i : nat) : option {t : ty & mem t G} :=
  match G, i with
  | nil, _ => None
  | t :: G, O => Some (existT _ t Top)
  | s :: G, S i => match mem_at G i with Some (existT _ t m) => Some (existT _ t (Pop m)) | None => None end
  end.
Definition typed G := {t : ty & tm G t}.
Definition cast {G a b} (H : a = b) (e : tm G a) : tm G b := match H with eq_refl => e end.
Definition check {G} (t : ty) (o : option (typed G)) : option (tm G t) :=
  match o with
  | Some (existT _ t' e) => match ty_dec t' t with left H => Some (cast H e) | right _ => None end
  | None => None
  end.
Definition pk {G t} (e : tm G t) : option (typed G) := Some (existT _ t e).
Definition with1 {G} (t : ty) (o : option (typed G)) {u} (f : tm G t -> tm G u) : option (typed G) :=
  match check t o with Some a => pk (f a) | None => None end.
Definition with2 {G} (t u : ty) (o o' : option (typed G)) {w} (f : tm G t -> tm G u -> tm G w) : option (typed G) :=
  match check t o, check u o' with Some a, Some b => pk (f a b) | _, _ => None end.

Fixpoint infer (G : list ty) (r : raw) : option (typed G) :=
  match r with
  | Rvar i => match mem_at G i with Some (existT _ t m) => pk (tvar m) | None => None end
  | Rlam a b => match infer (a :: G) b with Some (existT _ t e) => pk (tlam e) | None => None end
  | Rapp f x => match infer G f with
      | Some (existT _ (TFun a b) f) => match check a (infer G x) with Some x => pk (tapp f x) | None => None end
      | _ => None end
  | Rlet a b => match infer G a with
      | Some (existT _ t a) => match infer (t :: G) b with Some (existT _ u b) => pk (tlet a b) | None => None end
      | None => None end
  | Rfix a b e => match check b (infer (a :: TFun a b :: G) e) with Some e => pk (tfix e) | None => None end
  | Rcase s l r => match infer G s with
      | Some (existT _ (TSum a b) s) =>
          match infer (a :: G) l with
          | Some (existT _ c l) => match check c (infer (b :: G) r) with Some r => pk (tcase s l r) | None => None end
          | None => None end
      | _ => None end
  | Runit => pk (tunit G)
  | Rint z => pk (tint G z)
  | Rnil a => pk (tnil G a)
  | Rfst a => match infer G a with Some (existT _ (TProd t u) a) => pk (tfst a) | _ => None end
  | Rsnd a => match infer G a with Some (existT _ (TProd t u) a) => pk (tsnd a) | _ => None end
  | Rinl b x => match infer G x with Some (existT _ t x) => pk (tinl b x) | None => None end
  | Rinr a x => match infer G x with Some (existT _ t x) => pk (tinr a x) | None => None end
  | Rlen a => match infer G a with Some (existT _ (TArr t) a) => pk (tlen a) | _ => None end
  | Runnode a => match infer G a with Some (existT _ (TTree t) a) => pk (top1 (OUnnode t) a) | _ => None end
  | Rpair a b => match infer G a, infer G b with
      | Some (existT _ t a), Some (existT _ u b) => pk (tpair a b) | _, _ => None end
  | Rget a i => match infer G a, check TI (infer G i) with
      | Some (existT _ (TArr t) a), Some i => pk (tget a i) | _, _ => None end
  | Rcons x l => match infer G x with
      | Some (existT _ t x) => match check (TArr t) (infer G l) with Some l => pk (tcons x l) | None => None end
      | None => None end
  | Rsnoc l x => match infer G x with
      | Some (existT _ t x) => match check (TArr t) (infer G l) with Some l => pk (tsnoc l x) | None => None end
      | None => None end
  | Rnode x l => match infer G x with
      | Some (existT _ t x) => match check (TArr (TTree t)) (infer G l) with Some l => pk (tnode x l) | None => None end
      | None => None end
  | Rzip a b => match infer G a, infer G b with
      | Some (existT _ (TArr t) a), Some (existT _ (TArr u) b) => pk (tzip a b) | _, _ => None end
  | Rgather a i => match infer G a, check (TArr TI) (infer G i) with
      | Some (existT _ (TArr t) a), Some i => pk (top2 (OGather t) a i) | _, _ => None end
  | Rintop o a b => with2 (infer G a) (infer G b) (fun (a : tm G TI) (b : tm G TI) => top2 (OIntop o) a b)
  | Rintcmp c a b => with2 (infer G a) (infer G b) (fun (a : tm G TI) (b : tm G TI) => top2 (OIntcmp c) a b)
  | Rset a i v => match infer G a, check TI (infer G i) with
      | Some (existT _ (TArr t) a), Some i => match check t (infer G v) with Some v => pk (top3 (OSet t) a i v) | None => None end
      | _, _ => None end
  | Rloop n z b => match check TI (infer G n), infer G z with
      | Some n, Some (existT _ a z) => match check a (infer (a :: TI :: G) b) with Some b => pk (tloop n z b) | None => None end
      | _, _ => None end
  | Rbuild n b => match check TI (infer G n), infer (TI :: G) b with
      | Some n, Some (existT _ a b) => pk (tbuild n b) | _, _ => None end
  | Rmap b a => match infer G a with
      | Some (existT _ (TArr t) a) => match infer (t :: G) b with Some (existT _ u b) => pk (tmap b a) | None => None end
      | _ => None end
  | Rfold b z a => match infer G z, infer G a with
      | Some (existT _ u z), Some (existT _ (TArr t) a) => match check u (infer (t :: u :: G) b) with Some b => pk (tfold b z a) | None => None end
      | _, _ => None end
  | Rlit m e => pk (tlit G m e)
  | Rprim1 p a => with1 (infer G a) (fun a : tm G TR => tprim1 p a)
  | Rprim2 p a b => with2 (infer G a) (infer G b) (fun (a : tm G TR) (b : tm G TR) => tprim2 p a b)
  | Rprimi p a n => with2 (infer G a) (infer G n) (fun (a : tm G TR) (n : tm G TI) => tprimi p a n)
  | Rcmp c a b => with2 (infer G a) (infer G b) (fun (a : tm G TR) (b : tm G TR) => tcmp c a b)
  | Rround k a => with1 (infer G a) (fun a : tm G TR => tround k a)
  | Rreal a => with1 (infer G a) (fun a : tm G TI => treal a)
  | Rsum a => with1 (infer G a) (fun a : tm G (TArr TR) => tsum a)
  | Rdot a b => with2 (infer G a) (infer G b) (fun (a : tm G (TArr TR)) (b : tm G (TArr TR)) => tdot a b)
  end.

Fixpoint index {t G} (m : mem t G) : nat := match m with Top => O | Pop m => S (index m) end.
Definition erase0 {a} (o : op0 a) : raw := match o with OUnit => Runit | OInt z => Rint z | ONil a => Rnil a end.
Definition erase1 {a b} (o : op1 a b) (x : raw) : raw :=
  match o with
  | OFst _ _ => Rfst x | OSnd _ _ => Rsnd x | OInl _ b => Rinl b x | OInr a _ => Rinr a x | OLen _ => Rlen x | OUnnode _ => Runnode x
  end.
Definition erase2 {a b c} (o : op2 a b c) (x y : raw) : raw :=
  match o with
  | OPair _ _ => Rpair x y | OGet _ => Rget x y | OCons _ => Rcons x y | OSnoc _ => Rsnoc x y | ONode _ => Rnode x y
  | OZip _ _ => Rzip x y | OGather _ => Rgather x y | OIntop o => Rintop o x y | OIntcmp c => Rintcmp c x y
  end.
Fixpoint erase {G t} (e : tm G t) : raw :=
  match e with
  | tvar v => Rvar (index v)
  | @tlam _ a _ e => Rlam a (erase e)
  | tapp f a => Rapp (erase f) (erase a)
  | tlet a b => Rlet (erase a) (erase b)
  | @tfix _ a b e => Rfix a b (erase e)
  | tcase s l r => Rcase (erase s) (erase l) (erase r)
  | top0 _ o => erase0 o
  | top1 o a => erase1 o (erase a)
  | top2 o a b => erase2 o (erase a) (erase b)
  | top3 o a b c => Rset (erase a) (erase b) (erase c)
  | tloop n z b => Rloop (erase n) (erase z) (erase b)
  | tbuild n b => Rbuild (erase n) (erase b)
  | tmap b a => Rmap (erase b) (erase a)
  | tfold b z a => Rfold (erase b) (erase z) (erase a)
  | tlit _ m x => Rlit m x
  | tprim1 p a => Rprim1 p (erase a)
  | tprim2 p a b => Rprim2 p (erase a) (erase b)
  | tprimi p a n => Rprimi p (erase a) (erase n)
  | tcmp c a b => Rcmp c (erase a) (erase b)
  | tround k a => Rround k (erase a)
  | treal a => Rreal (erase a)
  | tsum a => Rsum (erase a)
  | tdot a b => Rdot (erase a) (erase b)
  end.
