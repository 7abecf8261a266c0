(* Structured inputs and outputs: data types (no function inside), and what it means for a map into a
   data type to be differentiable.  A tangent of a value has the type and the shape of the value: its reals are
   derivatives, its integers and constructors are those of the value (K Fig. 15 writes δA for this type). *)
From Coq Require Import Reals List Lia ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro.
Import ListNotations.
Set Implicit Arguments.
Unset Asymmetric Patterns.

Fixpoint data (t : ty) : bool :=
  match t with
  | TR | TU | TI => true
  | TProd a b | TSum a b => andb (data a) (data b)
  | TFun _ _ => false
  | TArr a | TTree a => data a
  end.
Definition datas (G : list ty) : bool := forallb data G.


Section Deriv.
Variable U : NormedModule R_AbsRing.
Variables u0 h : U.
Notation near P := (@locally U u0 P).
Notation diff f l := (@filterdiff R_AbsRing U R_NormedModule f (locally u0) l).

(* [Deriv t f d]: near u0 the shape of f does not change, and d is the derivative of f at u0 in direction h *)
Fixpoint Deriv (t : ty) : (U -> den R t) -> den R t -> Prop :=
  match t return (U -> den R t) -> den R t -> Prop with
  | TR => fun f d => exists l, diff f l /\ l h = d
  | TU => fun _ _ => True
  | TI => fun f d => near (fun u => f u = d)
  | TProd a b => fun f d => Deriv a (fun u => fst (f u)) (fst d) /\ Deriv b (fun u => snd (f u)) (snd d)
  | TSum a b => fun f d =>
      match d with
      | inl d1 => exists f1, near (fun u => f u = inl (f1 u)) /\ Deriv a f1 d1
      | inr d1 => exists f1, near (fun u => f u = inr (f1 u)) /\ Deriv b f1 d1
      end
  | TFun a b => fun _ _ => False
  | TArr a => fun f d => exists fs, near (fun u => f u = map (fun k => k u) fs) /\ Forall2 (Deriv a) fs d
  | TTree a => fun f d => exists ft, near (fun u => f u = tree_at U ft u) /\ tree2 (Deriv a) ft d
  end.
Fixpoint Derivs (G : list ty) : (U -> env R G) -> env R G -> Prop :=
  match G return (U -> env R G) -> env R G -> Prop with
  | nil => fun _ _ => True
  | t :: G => fun f d => Deriv t (fun u => fst (f u)) (fst d) /\ Derivs G (fun u => snd (f u)) (snd d)
  end.
End Deriv.
