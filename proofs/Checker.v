(* A checker of derivations: an optimiser says which rule it used where, and [replay] does the same with the rules of Rewrite.v.  If it ends in the
   optimiser's term, that term refines the original ([checked]).

   No typed term is taken apart by hand.  The erasure of the term at the place says which instance of the rule is meant; the
   instance is built from its parts, which are inferred again, together with its proof; and it is used if its left side
   erases to that very term, since erasure forgets nothing ([erase_inj]). *)
From Coq Require Import Reals List ZArith Lia Lra Eqdep_dec Bool.
Require Import Language Primitive Substitution Laws Lift Rewrite Elaborate.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

(* ---- erasure forgets nothing --------------------------------------------------------------- *)
Lemma mem_at_index : forall t G (m : mem t G), mem_at G (index m) = Some (existT _ t m).
Proof. induction m; simpl; auto. now rewrite IHm. Qed.
Lemma check_same : forall G t (e : tm G t), check t (Some (existT _ t e)) = Some e.
Proof. intros. unfold check. destruct (ty_dec t t) as [H|H]; [|contradiction]. rewrite (UIP_dec ty_dec H eq_refl). reflexivity. Qed.
Theorem infer_erase : forall G t (e : tm G t), infer G (erase e) = Some (existT _ t e).
Proof.
  induction e; try (destruct o); cbn [erase erase0 erase1 erase2 infer]; unfold with1, with2;
    repeat first [rewrite mem_at_index | rewrite IHe | rewrite IHe1 | rewrite IHe2 | rewrite IHe3 | rewrite check_same]; reflexivity.
Qed.
Lemma erase_inj : forall G t (e e' : tm G t), erase e = erase e' -> e = e'.
Proof.
  intros G t e e' H. pose proof (infer_erase e) as E. rewrite H, infer_erase in E. injection E as E.
  symmetry. exact (inj_pair2_eq_dec _ ty_dec _ _ _ _ E).
Qed.
(* by the comparison that extraction knows, not one by one *)
Definition nat_dec (a b : nat) : {a = b} + {a <> b} :=
  (if Nat.eqb a b as c return Nat.eqb a b = c -> {a = b} + {a <> b}
   then fun H => left (proj1 (Nat.eqb_eq a b) H) else fun H => right (proj1 (Nat.eqb_neq a b) H)) eq_refl.
Definition raw_dec : forall a b : raw, {a = b} + {a <> b}.
Proof. decide equality; try apply ty_dec; try apply Z.eq_dec; try apply nat_dec; decide equality. Defined.

(* ---- pieces of instances ------------------------------------------------------------------- *)
Record instance (G : list ty) : Type := Instance { at_type : ty; left_side : tm G at_type; right_side : tm G at_type; holds : rule left_side right_side }.
Definition thus {G t} {l r : tm G t} (H : rule l r) : option (instance G) := Some (Instance H).
Definition lawful {G t} {l r : tm G t} (H : law l r) : option (instance G) := thus (by_law H).
Definition being {A G} (t : ty) (r : raw) (k : tm G t -> option A) : option A := match check t (infer G r) with Some e => k e | None => None end.
Arguments being {A G} t r k.
Definition any {A G} (r : raw) (k : forall t, tm G t -> option A) : option A := match infer G r with Some (existT _ t e) => k t e | None => None end.
Definition real2 {A G} (a b : raw) (k : tm G TR -> tm G TR -> option A) : option A := being TR a (fun a => being TR b (fun b => k a b)).
Definition real3 {A G} (a b c : raw) (k : tm G TR -> tm G TR -> tm G TR -> option A) : option A := real2 a b (fun a b => being TR c (fun c => k a b c)).
Definition int2 {A G} (a b : raw) (k : tm G TI -> tm G TI -> option A) : option A := being TI a (fun a => being TI b (fun b => k a b)).
Definition atomic {G t} (e : tm G t) : option (atom e) :=
  match e as e0 in tm G t return option (atom e0) with
  | tvar m => Some (atom_var m) | tlam b => Some (atom_lam b) | tfix b => Some (atom_fix b)
  | tlit G m x => Some (atom_lit G m x) | top0 G o => Some (atom_op0 G o) | _ => None
  end.
(* a guess: the term without variable d, which it does not mention *)
Fixpoint lower (d : nat) (r : raw) : raw :=
  match r with
  | Rvar i => if d <? i then Rvar (pred i) else Rvar i
  | Rlam a b => Rlam a (lower (S d) b) | Rapp f x => Rapp (lower d f) (lower d x) | Rlet a b => Rlet (lower d a) (lower (S d) b)
  | Rfix a b e => Rfix a b (lower (S (S d)) e) | Rcase s l r => Rcase (lower d s) (lower (S d) l) (lower (S d) r)
  | Runit => Runit | Rint z => Rint z | Rnil a => Rnil a
  | Rfst a => Rfst (lower d a) | Rsnd a => Rsnd (lower d a) | Rinl b x => Rinl b (lower d x) | Rinr a x => Rinr a (lower d x)
  | Rlen a => Rlen (lower d a) | Runnode a => Runnode (lower d a)
  | Rpair a b => Rpair (lower d a) (lower d b) | Rget a i => Rget (lower d a) (lower d i) | Rcons x l => Rcons (lower d x) (lower d l)
  | Rsnoc l x => Rsnoc (lower d l) (lower d x) | Rnode x ts => Rnode (lower d x) (lower d ts) | Rzip a b => Rzip (lower d a) (lower d b)
  | Rgather a i => Rgather (lower d a) (lower d i) | Rintop o a b => Rintop o (lower d a) (lower d b) | Rintcmp c a b => Rintcmp c (lower d a) (lower d b)
  | Rset a i v => Rset (lower d a) (lower d i) (lower d v) | Rloop n z b => Rloop (lower d n) (lower d z) (lower (S (S d)) b)
  | Rbuild n b => Rbuild (lower d n) (lower (S d) b) | Rmap b a => Rmap (lower (S d) b) (lower d a) | Rfold b z a => Rfold (lower (S (S d)) b) (lower d z) (lower d a)
  | Rlit m e => Rlit m e | Rprim1 p a => Rprim1 p (lower d a) | Rprim2 p a b => Rprim2 p (lower d a) (lower d b) | Rprimi p a n => Rprimi p (lower d a) (lower d n)
  | Rcmp c a b => Rcmp c (lower d a) (lower d b) | Rround k a => Rround k (lower d a) | Rreal a => Rreal (lower d a) | Rsum a => Rsum (lower d a)
  | Rdot a b => Rdot (lower d a) (lower d b)
  end.

(* ---- literals as the implementation writes them: m * 2^e with m odd, but a whole number as itself -------- *)
Lemma litR_eq : forall m e, litR m e = (IZR m * powerRZ 2 e)%R.
Proof. intros m [|p|p]; unfold litR; auto. unfold powerRZ. now rewrite Rmult_1_r. Qed.
Fixpoint strip (fuel : nat) (m e : Z) : Z * Z :=
  match fuel with
  | O => (m, e)
  | S fuel => if Z.eqb m 0 then (0, 0)%Z else if Z.even m then strip fuel (m / 2) (e + 1) else (m, e)
  end.
Lemma strip_ok : forall fuel m e, litR (fst (strip fuel m e)) (snd (strip fuel m e)) = litR m e.
Proof.
  induction fuel as [|fuel IH]; intros m e; simpl; auto. destruct (Z.eqb_spec m 0) as [->|Hm].
  - simpl. rewrite litR_eq. ring.
  - destruct (Z.even m) eqn:Em; auto. rewrite IH, !litR_eq. apply Zeven_bool_iff, Zeven_div2 in Em. rewrite Z.div2_div in Em.
    rewrite Em at 2. rewrite mult_IZR, powerRZ_add by lra. rewrite powerRZ_1. ring.
Qed.
Definition aligned (m e e0 : Z) : Z := m * 2 ^ (e - e0).
Lemma aligned_ok : forall m e e0, (e0 <= e)%Z -> litR (aligned m e e0) e0 = litR m e.
Proof.
  intros m e e0 H. rewrite !litR_eq. unfold aligned. rewrite mult_IZR, <- (Z2Nat.id (e - e0)) by lia.
  rewrite <- pow_IZR, pow_powerRZ, Z2Nat.id, Rmult_assoc, <- powerRZ_add by (lia || lra). f_equal. f_equal. lia.
Qed.
Fixpoint spread (fuel : nat) (m e : Z) : Z * Z :=
  match fuel with
  | O => (m, e)
  | S fuel => if andb (0 <? e)%Z (Z.abs m <? 2 ^ 52)%Z then spread fuel (m * 2) (e - 1) else (m, e)
  end.
Lemma spread_ok : forall fuel m e, litR (fst (spread fuel m e)) (snd (spread fuel m e)) = litR m e.
Proof.
  induction fuel as [|fuel IH]; intros m e; simpl; auto. destruct (andb _ _); auto. rewrite IH, !litR_eq, mult_IZR.
  replace e with ((e - 1) + 1)%Z at 2 by lia. rewrite powerRZ_add, powerRZ_1 by lra. ring.
Qed.
Definition digits : nat := 110.
Definition written (m e : Z) : Z * Z := let p := strip digits m e in spread digits (fst p) (snd p).
Lemma written_ok : forall m e, litR (fst (written m e)) (snd (written m e)) = litR m e.
Proof. intros. unfold written. now rewrite spread_ok, strip_ok. Qed.
Definition plus_lit (m e m' e' : Z) : Z * Z := let e0 := Z.min e e' in written (aligned m e e0 + aligned m' e' e0) e0.
Definition times_lit (m e m' e' : Z) : Z * Z := written (m * m') (e + e').
Lemma plus_lit_ok : forall m e m' e', litR (fst (plus_lit m e m' e')) (snd (plus_lit m e m' e')) = (litR m e + litR m' e')%R.
Proof.
  intros. unfold plus_lit. rewrite written_ok, <- (@aligned_ok m e (Z.min e e')), <- (@aligned_ok m' e' (Z.min e e')) by lia.
  rewrite !litR_eq, plus_IZR. ring.
Qed.
Lemma times_lit_ok : forall m e m' e', litR (fst (times_lit m e m' e')) (snd (times_lit m e m' e')) = (litR m e * litR m' e')%R.
Proof. intros. unfold times_lit. rewrite written_ok, !litR_eq, mult_IZR, powerRZ_add by lra. ring. Qed.

Lemma minus_lit_ok : forall m e m' e', litR (fst (plus_lit m e (- m') e')) (snd (plus_lit m e (- m') e')) = (litR m e - litR m' e')%R.
Proof. intros. rewrite plus_lit_ok, !litR_eq, opp_IZR. ring. Qed.
Lemma neg_lit_ok : forall m e, litR (fst (written (- m) e)) (snd (written (- m) e)) = (- litR m e)%R.
Proof. intros. rewrite written_ok, !litR_eq, opp_IZR. ring. Qed.
Lemma real_lit_ok : forall z, litR (fst (written z 0)) (snd (written z 0)) = IZR z.
Proof. intros. rewrite written_ok, litR_eq, powerRZ_O. ring. Qed.
(* literals are compared as integers, on a common scale *)
Definition compare_lit (m e m' e' : Z) : comparison := let e0 := Z.min e e' in (aligned m e e0 ?= aligned m' e' e0)%Z.
Lemma compare_lit_ok : forall m e m' e', cmpR (litR m e) (litR m' e') = compare_lit m e m' e'.
Proof.
  intros. unfold compare_lit. rewrite <- (@aligned_ok m e (Z.min e e')), <- (@aligned_ok m' e' (Z.min e e')) by lia. rewrite !litR_eq.
  assert (0 < powerRZ 2 (Z.min e e'))%R as Hp by (apply powerRZ_lt; lra). set (q := powerRZ 2 (Z.min e e')) in *.
  generalize (aligned m e (Z.min e e')), (aligned m' e' (Z.min e e')). intros x y.
  destruct (Z.compare_spec x y) as [->|H|H].
  - unfold cmpR. destruct (total_order_T _ _) as [[?|?]|?]; auto; lra.
  - apply cmpR_lt. apply IZR_lt in H. nra.
  - apply cmpR_gt. apply IZR_lt in H. nra.
Qed.
Lemma fold_compare_lit : forall G c m e m' e', rule (tcmp c (tlit G m e) (tlit G m' e')) (truth G (decide c (compare_lit m e m' e'))).
Proof. intros. rewrite <- compare_lit_ok. apply fold_compare. Qed.

(* ---- the instance of a rule at a term ------------------------------------------------------------ *)
Inductive name : Set :=
| Add_comm | Add_zero | Add_neg | Mul_comm | Distribute | Mul_zero | Mul_one | Add_zero_r | Mul_one_r | Mul_zero_r | Sub_zero | Sub_self | Div_one
| Neg_neg | Sub_neg | Sub_minus | Minus_add | Neg_one | Neg_one_r | Neg_product | Neg_product_r | Neg_quotient | Neg_quotient_r | Double
| Power_one | Power_zero | Square | Zero_sub | Zero_div | Neg_sub | Add_assoc | Add_assoc_r | Mul_assoc | Mul_assoc_r | Distribute_sub
| Distribute_one | Sub_of_sum | Div_mul | Div_div | Log_exp
| Add_comm_int | Mul_comm_int | Add_assoc_int | Add_zero_int | Zero_add_int | Sub_zero_int | Mul_one_int | One_mul_int | Sub_self_int
| Add_sub_int | Sub_add_int
| Fold_add | Fold_mul | Fold_int | Fold_sub | Fold_neg | Fold_real | Fold_compare | Fold_intcmp | Equal_self | Less_self | Let_out | Let_out_2 | Let_out_3 | Build_items
| Mul_if | Mul_if_r | Mul_if_not | Mul_if_not_r | Div_if | Neg_if | Add_if | Beta_let | Let_atom | Let_dead | Let_let | Let_swap | Let_app | Fst_pair | Snd_pair | Case_inl | Case_inr | Unnode_node
| If_same | If_truth | If_not | Loop_zero | Loop_succ | Loop_same | Get_first | Get_next | Get_build.
Definition lifted {G} (i : nat) (r : raw) : option (instance G) := any r (fun t e =>
  match lift_let i e as q return lift_let i e = q -> option (instance G) with Some e' => fun H => thus (let_out i _ H) | None => fun _ => None end eq_refl).
Definition instance_of (n : name) (G : list ty) (r : raw) : option (instance G) :=
  match n, r with
  | Add_comm, Rprim2 _ a b => real2 a b (fun a b => lawful (add_comm a b))
  | Add_zero, Rprim2 _ _ a => being TR a (fun a => lawful (add_zero a))
  | Add_neg, Rprim2 _ a _ => being TR a (fun a => lawful (add_neg a))
  | Mul_comm, Rprim2 _ a b => real2 a b (fun a b => lawful (mul_comm a b))
  | Distribute, Rprim2 _ (Rprim2 _ a b) (Rprim2 _ _ c) => real3 a b c (fun a b c => lawful (distribute a b c))
  | Mul_zero, Rprim2 _ _ a => being TR a (fun a => lawful (mul_zero a))
  | Mul_one, Rprim2 _ _ a => being TR a (fun a => lawful (mul_one a))
  | Add_zero_r, Rprim2 _ a _ => being TR a (fun a => lawful (add_zero_r a))
  | Mul_one_r, Rprim2 _ a _ => being TR a (fun a => lawful (mul_one_r a))
  | Mul_zero_r, Rprim2 _ a _ => being TR a (fun a => lawful (mul_zero_r a))
  | Sub_zero, Rprim2 _ a _ => being TR a (fun a => lawful (sub_zero a))
  | Sub_self, Rprim2 _ a _ => being TR a (fun a => lawful (sub_self a))
  | Div_one, Rprim2 _ a _ => being TR a (fun a => lawful (div_one a))
  | Neg_neg, Rprim1 _ (Rprim1 _ a) => being TR a (fun a => lawful (neg_neg a))
  | Sub_neg, Rprim2 _ a (Rprim1 _ b) => real2 a b (fun a b => lawful (sub_neg a b))
  | Sub_minus, Rprim2 _ a (Rprim1 _ b) => real2 a b (fun a b => lawful (sub_minus a b))
  | Minus_add, Rprim2 _ (Rprim1 _ a) b => real2 a b (fun a b => lawful (minus_add a b))
  | Neg_one, Rprim2 _ _ a => being TR a (fun a => lawful (neg_one a))
  | Neg_one_r, Rprim2 _ a _ => being TR a (fun a => lawful (neg_one_r a))
  | Neg_product, Rprim2 _ (Rprim1 _ a) b => real2 a b (fun a b => lawful (neg_product a b))
  | Neg_product_r, Rprim2 _ a (Rprim1 _ b) => real2 a b (fun a b => lawful (neg_product_r a b))
  | Neg_quotient, Rprim2 _ (Rprim1 _ a) b => real2 a b (fun a b => lawful (neg_quotient a b))
  | Neg_quotient_r, Rprim2 _ a (Rprim1 _ b) => real2 a b (fun a b => lawful (neg_quotient_r a b))
  | Double, Rprim2 _ a _ => being TR a (fun a => lawful (double a))
  | Power_one, Rprimi _ a _ => being TR a (fun a => lawful (power_one a))
  | Power_zero, Rprimi _ a _ => being TR a (fun a => lawful (power_zero a))
  | Square, Rprim2 _ a _ => being TR a (fun a => lawful (square a))
  | Zero_sub, Rprim2 _ _ a => being TR a (fun a => lawful (zero_sub a))
  | Zero_div, Rprim2 _ _ a => being TR a (fun a => lawful (zero_div a))
  | Neg_sub, Rprim1 _ (Rprim2 _ a b) => real2 a b (fun a b => lawful (neg_sub a b))
  | Add_assoc, Rprim2 _ (Rprim2 _ a b) c => real3 a b c (fun a b c => lawful (add_assoc a b c))
  | Add_assoc_r, Rprim2 _ a (Rprim2 _ b c) => real3 a b c (fun a b c => lawful (add_assoc_r a b c))
  | Mul_assoc, Rprim2 _ (Rprim2 _ a b) c => real3 a b c (fun a b c => lawful (mul_assoc a b c))
  | Mul_assoc_r, Rprim2 _ a (Rprim2 _ b c) => real3 a b c (fun a b c => lawful (mul_assoc_r a b c))
  | Distribute_sub, Rprim2 _ (Rprim2 _ a b) (Rprim2 _ _ c) => real3 a b c (fun a b c => lawful (distribute_sub a b c))
  | Distribute_one, Rprim2 _ (Rprim2 _ a b) _ => real2 a b (fun a b => lawful (distribute_one a b))
  | Sub_of_sum, Rprim2 _ (Rprim2 _ a b) _ => real2 a b (fun a b => lawful (sub_of_sum a b))
  | Div_mul, Rprim2 _ (Rprim2 _ a b) c => real3 a b c (fun a b c => lawful (div_mul a b c))
  | Div_div, Rprim2 _ (Rprim2 _ a b) c => real3 a b c (fun a b c => lawful (div_div a b c))
  | Log_exp, Rprim1 _ (Rprim1 _ a) => being TR a (fun a => lawful (log_exp a))
  | Add_comm_int, Rintop _ a b => int2 a b (fun a b => lawful (add_comm_int a b))
  | Mul_comm_int, Rintop _ a b => int2 a b (fun a b => lawful (mul_comm_int a b))
  | Add_assoc_int, Rintop _ (Rintop _ a b) c => int2 a b (fun a b => being TI c (fun c => lawful (add_assoc_int a b c)))
  | Add_zero_int, Rintop _ a _ => being TI a (fun a => lawful (add_zero_int a))
  | Zero_add_int, Rintop _ _ a => being TI a (fun a => lawful (zero_add_int a))
  | Sub_zero_int, Rintop _ a _ => being TI a (fun a => lawful (sub_zero_int a))
  | Mul_one_int, Rintop _ a _ => being TI a (fun a => lawful (mul_one_int a))
  | One_mul_int, Rintop _ _ a => being TI a (fun a => lawful (one_mul_int a))
  | Sub_self_int, Rintop _ a _ => being TI a (fun a => lawful (sub_self_int a))
  | Add_sub_int, Rintop _ (Rintop _ a b) _ => int2 a b (fun a b => lawful (add_sub_int a b))
  | Sub_add_int, Rintop _ (Rintop _ a b) _ => int2 a b (fun a b => lawful (sub_add_int a b))
  | Fold_add, Rprim2 _ (Rlit m e) (Rlit m' e') => thus (@fold_add G m e m' e' _ _ (plus_lit_ok m e m' e'))
  | Fold_mul, Rprim2 _ (Rlit m e) (Rlit m' e') => thus (@fold_mul G m e m' e' _ _ (times_lit_ok m e m' e'))
  | Fold_sub, Rprim2 _ (Rlit m e) (Rlit m' e') => thus (@fold_sub G m e m' e' _ _ (minus_lit_ok m e m' e'))
  | Fold_neg, Rprim1 _ (Rlit m e) => thus (@fold_neg G m e _ _ (neg_lit_ok m e))
  | Fold_real, Rreal (Rint z) => thus (@fold_real G z _ _ (real_lit_ok z))
  | Fold_compare, Rcmp c (Rlit m e) (Rlit m' e') => thus (@fold_compare_lit G c m e m' e')
  | Fold_intcmp, Rintcmp c (Rint x) (Rint y) => thus (@fold_intcmp G c x y)
  | Equal_self, Rintcmp _ a _ => being TI a (fun a => thus (equal_self a))
  | Less_self, Rintcmp _ a _ => being TI a (fun a => thus (less_self a))
  | Let_out, r => lifted 0 r
  | Let_out_2, r => lifted 1 r
  | Let_out_3, r => lifted 2 r
  | Build_items, Rbuild (Rint n) b => @any _ (TI :: G) b (fun a b => thus (build_items (Z.to_nat n) b))
  | Mul_if, Rprim2 _ (Rcase p a _) c => being TB p (fun p => @being _ (TU :: G) TR a (fun a => being TR c (fun c => thus (mul_if p a c))))
  | Mul_if_r, Rprim2 _ c (Rcase p a _) => being TB p (fun p => @being _ (TU :: G) TR a (fun a => being TR c (fun c => thus (mul_if_r p a c))))
  | Mul_if_not, Rprim2 _ (Rcase p _ a) c => being TB p (fun p => @being _ (TU :: G) TR a (fun a => being TR c (fun c => thus (mul_if_not p a c))))
  | Mul_if_not_r, Rprim2 _ c (Rcase p _ a) => being TB p (fun p => @being _ (TU :: G) TR a (fun a => being TR c (fun c => thus (mul_if_not_r p a c))))
  | Div_if, Rprim2 _ (Rcase p a _) c => being TB p (fun p => @being _ (TU :: G) TR a (fun a => being TR c (fun c => thus (div_if p a c))))
  | Neg_if, Rprim1 _ (Rcase p a _) => being TB p (fun p => @being _ (TU :: G) TR a (fun a => thus (neg_if p a)))
  | Add_if, Rprim2 _ (Rcase p a _) (Rcase _ b _) => being TB p (fun p => @being _ (TU :: G) TR a (fun a => @being _ (TU :: G) TR b (fun b => thus (add_if p a b))))
  | Fold_int, Rintop o (Rint x) (Rint y) =>
      match intopv o x y as q return intopv o x y = q -> option (instance G) with
      | Some (z, O, O) => fun H => thus (@fold_int G o x y z H) | _ => fun _ => None
      end eq_refl
  | Beta_let, Rapp (Rlam a b) x => @any _ (a :: G) b (fun u b => being a x (fun x => thus (beta_let b x)))
  | Let_atom, Rlet x b => any x (fun t x => @any _ (t :: G) b (fun u b => match atomic x with Some H => thus (let_atom b H) | None => None end))
  | Let_dead, Rlet x b => any x (fun t x => any (lower 0 b) (fun u b => thus (let_dead x b)))
  | Let_let, Rlet (Rlet x y) e => any x (fun a x => @any _ (a :: G) y (fun b y => @any _ (b :: G) e (fun c e => thus (let_let x y e))))
  | Let_swap, Rlet x (Rlet y e) => any x (fun a x => any (lower 0 y) (fun b y => @any _ (b :: a :: G) e (fun c e => thus (let_swap x y e))))
  | Let_app, Rapp (Rlet x f) y => any x (fun a x => @any _ (a :: G) f (fun t =>
      match t with TFun b c => fun f => being b y (fun y => thus (let_app x f y)) | _ => fun _ => None end))
  | Fst_pair, Rfst (Rpair x y) => any x (fun a x => any y (fun b y => thus (fst_pair x y)))
  | Snd_pair, Rsnd (Rpair x y) => any x (fun a x => any y (fun b y => thus (snd_pair x y)))
  | Case_inl, Rcase (Rinl b x) l r => any x (fun a x => @any _ (a :: G) l (fun c l => @being _ (b :: G) c r (fun r => thus (case_inl x l r))))
  | Case_inr, Rcase (Rinr a x) l r => any x (fun b x => @any _ (a :: G) l (fun c l => @being _ (b :: G) c r (fun r => thus (case_inr x l r))))
  | Unnode_node, Runnode (Rnode x ts) => any x (fun a x => being (TArr (TTree a)) ts (fun ts => thus (unnode_node x ts)))
  | If_same, Rcase p x _ => any p (fun t => match t with TSum a b => fun p => any (lower 0 x) (fun c x => thus (if_same p x)) | _ => fun _ => None end)
  | If_truth, Rcase p _ _ => being TB p (fun p => thus (if_truth p))
  | If_not, Rcase (Rcase p _ _) x y => being TB p (fun p => @any _ (TU :: G) x (fun c x => @being _ (TU :: G) c y (fun y => thus (if_not p x y))))
  | Loop_zero, Rloop _ z b => any z (fun a z => @being _ (a :: TI :: G) a b (fun b => thus (loop_zero z b)))
  | Loop_succ, Rloop (Rint n) z b => any z (fun a z => @being _ (a :: TI :: G) a b (fun b =>
      match Z_le_dec 0 (n - 1) with left H => thus (loop_succ z b H) | right _ => None end))
  | Loop_same, Rloop n z _ => being TI n (fun n => any z (fun a z => thus (loop_same n z)))
  | Get_first, Rget (Rcons x l) _ => any x (fun a x => being (TArr a) l (fun l => thus (get_first x l)))
  | Get_next, Rget (Rcons x l) (Rint n) => any x (fun a x => being (TArr a) l (fun l =>
      match Z_le_dec 0 (n - 1) with left H => thus (get_next x l H) | right _ => None end))
  | Get_build, Rget (Rbuild n b) i => being TI n (fun n => @any _ (TI :: G) b (fun a b => being TI i (fun i => thus (get_build n b i))))
  | _, _ => None
  end.

(* ---- one step, at a path: which part, counted in the order of writing -------------------------------- *)
Definition here (n : name) {G t} (e : tm G t) : option (tm G t) :=
  match instance_of n G (erase e) with
  | Some i =>
      match ty_dec (at_type i) t with
      | left H => if raw_dec (erase (left_side i)) (erase e) then Some (cast H (right_side i)) else None
      | right _ => None
      end
  | None => None
  end.
Lemma here_ok : forall n G t (e e' : tm G t), here n e = Some e' -> rule e e'.
Proof.
  intros n G t e e' H. unfold here in H. destruct (instance_of n G (erase e)) as [[u l r Hr]|]; [|discriminate]. simpl in H.
  destruct (ty_dec u t) as [E|]; [|discriminate]. subst u. destruct (raw_dec (erase l) (erase e)) as [E|]; [|discriminate].
  apply erase_inj in E. subst l. inversion H; subst. exact Hr.
Qed.
Fixpoint there (n : name) (p : list nat) {G t} (e : tm G t) {struct e} : option (tm G t) :=
  match p with
  | nil => here n e
  | i :: p =>
    match e in tm G t return option (tm G t) with
    | tlam b => option_map (fun b => tlam b) (there n p b)
    | tapp f a => match i with O => option_map (fun f => tapp f a) (there n p f) | _ => option_map (fun a => tapp f a) (there n p a) end
    | tlet a b => match i with O => option_map (fun a => tlet a b) (there n p a) | _ => option_map (fun b => tlet a b) (there n p b) end
    | tfix b => option_map (fun b => tfix b) (there n p b)
    | tcase s a b => match i with
        | O => option_map (fun s => tcase s a b) (there n p s)
        | 1 => option_map (fun a => tcase s a b) (there n p a)
        | _ => option_map (fun b => tcase s a b) (there n p b) end
    | top1 o a => option_map (fun a => top1 o a) (there n p a)
    | top2 o a b => match i with O => option_map (fun a => top2 o a b) (there n p a) | _ => option_map (fun b => top2 o a b) (there n p b) end
    | top3 o a b c => match i with
        | O => option_map (fun a => top3 o a b c) (there n p a)
        | 1 => option_map (fun b => top3 o a b c) (there n p b)
        | _ => option_map (fun c => top3 o a b c) (there n p c) end
    | tloop m z b => match i with
        | O => option_map (fun m => tloop m z b) (there n p m)
        | 1 => option_map (fun z => tloop m z b) (there n p z)
        | _ => option_map (fun b => tloop m z b) (there n p b) end
    | tbuild m b => match i with O => option_map (fun m => tbuild m b) (there n p m) | _ => option_map (fun b => tbuild m b) (there n p b) end
    | tmap b a => match i with O => option_map (fun b => tmap b a) (there n p b) | _ => option_map (fun a => tmap b a) (there n p a) end
    | tfold b z a => match i with
        | O => option_map (fun b => tfold b z a) (there n p b)
        | 1 => option_map (fun z => tfold b z a) (there n p z)
        | _ => option_map (fun a => tfold b z a) (there n p a) end
    | tprim1 q a => option_map (fun a => tprim1 q a) (there n p a)
    | tprim2 q a b => match i with O => option_map (fun a => tprim2 q a b) (there n p a) | _ => option_map (fun b => tprim2 q a b) (there n p b) end
    | tprimi q a b => match i with O => option_map (fun a => tprimi q a b) (there n p a) | _ => option_map (fun b => tprimi q a b) (there n p b) end
    | tcmp q a b => match i with O => option_map (fun a => tcmp q a b) (there n p a) | _ => option_map (fun b => tcmp q a b) (there n p b) end
    | tround q a => option_map (fun a => tround q a) (there n p a)
    | treal a => option_map (fun a => treal a) (there n p a)
    | tsum a => option_map (fun a => tsum a) (there n p a)
    | tdot a b => match i with O => option_map (fun a => tdot a b) (there n p a) | _ => option_map (fun b => tdot a b) (there n p b) end
    | tvar _ | top0 _ _ | tlit _ _ _ => None
    end
  end.
Lemma mapped : forall A B (f : A -> B) x y, option_map f x = Some y -> exists a, x = Some a /\ f a = y.
Proof. intros A B f [a|] y H; inversion H. eauto. Qed.
Ltac part IH := match goal with H : option_map _ _ = Some _ |- _ => apply mapped in H as (? & H & <-); apply IH in H end.
Lemma there_ok : forall n G t (e : tm G t) p e', there n p e = Some e' -> rw e e'.
Proof.
  intros n G t e. induction e; intros [|i path] e' H; try exact (rw_rule (@here_ok n _ _ _ _ H)); cbn [there] in H; try discriminate.
  - part IHe. now apply rw_lam.
  - destruct i; [part IHe1|part IHe2]; apply rw_app; auto using rw_refl.
  - destruct i; [part IHe1|part IHe2]; apply rw_let; auto using rw_refl.
  - part IHe. now apply rw_fix.
  - destruct i as [|[|i]]; [part IHe1|part IHe2|part IHe3]; apply rw_case; auto using rw_refl.
  - part IHe. now apply rw_op1.
  - destruct i; [part IHe1|part IHe2]; apply rw_op2; auto using rw_refl.
  - destruct i as [|[|i]]; [part IHe1|part IHe2|part IHe3]; apply rw_op3; auto using rw_refl.
  - destruct i as [|[|i]]; [part IHe1|part IHe2|part IHe3]; apply rw_loop; auto using rw_refl.
  - destruct i; [part IHe1|part IHe2]; apply rw_build; auto using rw_refl.
  - destruct i; [part IHe1|part IHe2]; apply rw_map; auto using rw_refl.
  - destruct i as [|[|i]]; [part IHe1|part IHe2|part IHe3]; apply rw_fold; auto using rw_refl.
  - part IHe. now apply rw_prim1.
  - destruct i; [part IHe1|part IHe2]; apply rw_prim2; auto using rw_refl.
  - destruct i; [part IHe1|part IHe2]; apply rw_primi; auto using rw_refl.
  - destruct i; [part IHe1|part IHe2]; apply rw_cmp; auto using rw_refl.
  - part IHe. now apply rw_round.
  - part IHe. now apply rw_real.
  - part IHe. now apply rw_sum.
  - destruct i; [part IHe1|part IHe2]; apply rw_dot; auto using rw_refl.
Qed.

(* ---- whole derivations ---------------------------------------------------------------------------------- *)
Fixpoint replay (steps : list (name * list nat)) {G t} (e : tm G t) : option (tm G t) :=
  match steps with
  | nil => Some e
  | (n, p) :: steps => match there n p e with Some e => replay steps e | None => None end
  end.
Lemma replay_ok : forall steps G t (e e' : tm G t), replay steps e = Some e' -> rewrites e e'.
Proof.
  induction steps as [|[n p] steps IH]; intros G t e e' H; simpl in H.
  - inversion H; subst. constructor.
  - destruct (there n p e) as [e1|] eqn:E; [|discriminate]. econstructor; [eapply there_ok, E|apply IH, H].
Qed.
(* two terms as they travel, and the steps from one to the other *)
Definition accepts (G : list ty) (r r' : raw) (steps : list (name * list nat)) : bool :=
  match infer G r with
  | Some (existT _ t e) => match replay steps e with Some e' => if raw_dec (erase e') r' then true else false | None => false end
  | None => false
  end.
Theorem accepted : forall G r r' steps, accepts G r r' steps = true ->
  exists t (e e' : tm G t), infer G r = Some (existT _ t e) /\ infer G r' = Some (existT _ t e') /\ rewrites e e'.
Proof.
  intros G r r' steps H. unfold accepts in H. destruct (infer G r) as [[t e]|]; [|discriminate]. destruct (replay steps e) as [e'|] eqn:E; [|discriminate].
  destruct (raw_dec (erase e') r') as [<-|]; [|discriminate]. exists t, e, e'. rewrite infer_erase. split; [reflexivity|]. split; [reflexivity|]. eapply replay_ok, E.
Qed.
