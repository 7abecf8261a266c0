(* The laws of arithmetic that an optimiser uses, each an improvement (Improvement.v).  A law may drop or repeat a term: it is in the
   same environment on both sides, so it returns the same each time.  Laws that hold only where a term is not zero, such as
   a / a = 1, are not here: over the reals both sides have a value there, and not the same. *)
From Coq Require Import Reals List Lia Lra ZArith.
Require Import Language Primitive Substitution Activity Improvement.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Notation tneg a := (tprim1 PNeg a).
Notation tiadd a b := (top2 (OIntop IAdd) a b).
Notation tisub a b := (top2 (OIntop ISub) a b).
Notation timul a b := (top2 (OIntop IMul) a b).

Inductive law : forall G t, tm G t -> tm G t -> Prop :=
(* C Fig. 12 (a) *)
| add_comm : forall G (a b : tm G TR), law (tadd a b) (tadd b a)
| add_zero : forall G (a : tm G TR), law (tadd (lit 0) a) a
| add_neg : forall G (a : tm G TR), law (tadd a (tneg a)) (lit 0)
| mul_comm : forall G (a b : tm G TR), law (tmul a b) (tmul b a)
| distribute : forall G (a b c : tm G TR), law (tadd (tmul a b) (tmul a c)) (tmul a (tadd b c))
| mul_zero : forall G (a : tm G TR), law (tmul (lit 0) a) (lit 0)
| mul_one : forall G (a : tm G TR), law (tmul (lit 1) a) a
(* their mirror images and neighbours *)
| add_zero_r : forall G (a : tm G TR), law (tadd a (lit 0)) a
| mul_one_r : forall G (a : tm G TR), law (tmul a (lit 1)) a
| mul_zero_r : forall G (a : tm G TR), law (tmul a (lit 0)) (lit 0)
| sub_zero : forall G (a : tm G TR), law (tsub a (lit 0)) a
| sub_self : forall G (a : tm G TR), law (tsub a a) (lit 0)
| div_one : forall G (a : tm G TR), law (tdiv a (lit 1)) a
| neg_neg : forall G (a : tm G TR), law (tneg (tneg a)) a
| sub_neg : forall G (a b : tm G TR), law (tadd a (tneg b)) (tsub a b)
| sub_minus : forall G (a b : tm G TR), law (tsub a (tneg b)) (tadd a b)
| minus_add : forall G (a b : tm G TR), law (tadd (tneg a) b) (tsub b a)
| neg_one : forall G (a : tm G TR), law (tmul (lit (-1)) a) (tneg a)
| neg_one_r : forall G (a : tm G TR), law (tmul a (lit (-1))) (tneg a)
| neg_product : forall G (a b : tm G TR), law (tmul (tneg a) b) (tneg (tmul a b))
| neg_product_r : forall G (a b : tm G TR), law (tmul a (tneg b)) (tneg (tmul a b))
| neg_quotient : forall G (a b : tm G TR), law (tdiv (tneg a) b) (tneg (tdiv a b))
| neg_quotient_r : forall G (a b : tm G TR), law (tdiv a (tneg b)) (tneg (tdiv a b))
| double : forall G (a : tm G TR), law (tadd a a) (tmul (lit 2) a)
| power_one : forall G (a : tm G TR), law (tpowi a (tint G 1)) a
| power_zero : forall G (a : tm G TR), law (tpowi a (tint G 0)) (lit 1)
| square : forall G (a : tm G TR), law (tmul a a) (tpowi a (tint G 2))
| zero_sub : forall G (a : tm G TR), law (tsub (lit 0) a) (tneg a)
| zero_div : forall G (a : tm G TR), law (tdiv (lit 0) a) (lit 0)
| neg_sub : forall G (a b : tm G TR), law (tneg (tsub a b)) (tsub b a)
| add_assoc : forall G (a b c : tm G TR), law (tadd (tadd a b) c) (tadd a (tadd b c))
| add_assoc_r : forall G (a b c : tm G TR), law (tadd a (tadd b c)) (tadd (tadd a b) c)
| mul_assoc : forall G (a b c : tm G TR), law (tmul (tmul a b) c) (tmul a (tmul b c))
| mul_assoc_r : forall G (a b c : tm G TR), law (tmul a (tmul b c)) (tmul (tmul a b) c)
| distribute_sub : forall G (a b c : tm G TR), law (tsub (tmul a b) (tmul a c)) (tmul a (tsub b c))
| distribute_one : forall G (a b : tm G TR), law (tadd (tmul a b) a) (tmul a (tadd b (lit 1)))
| sub_of_sum : forall G (a b : tm G TR), law (tsub (tadd a b) a) b
| div_mul : forall G (a b c : tm G TR), law (tmul (tdiv a b) c) (tdiv (tmul a c) b)
| div_div : forall G (a b c : tm G TR), law (tdiv (tdiv a b) c) (tdiv a (tmul b c))
| log_exp : forall G (a : tm G TR), law (tprim1 PLog (tprim1 PExp a)) a
(* integers *)
| add_comm_int : forall G (a b : tm G TI), law (tiadd a b) (tiadd b a)
| mul_comm_int : forall G (a b : tm G TI), law (timul a b) (timul b a)
| add_assoc_int : forall G (a b c : tm G TI), law (tiadd (tiadd a b) c) (tiadd a (tiadd b c))
| add_zero_int : forall G (a : tm G TI), law (tiadd a (tint G 0)) a
| zero_add_int : forall G (a : tm G TI), law (tiadd (tint G 0) a) a
| sub_zero_int : forall G (a : tm G TI), law (tisub a (tint G 0)) a
| mul_one_int : forall G (a : tm G TI), law (timul a (tint G 1)) a
| one_mul_int : forall G (a : tm G TI), law (timul (tint G 1) a) a
| sub_self_int : forall G (a : tm G TI), law (tisub a a) (tint G 0)
| add_sub_int : forall G (a b : tm G TI), law (tisub (tiadd a b) b) a
| sub_add_int : forall G (a b : tm G TI), law (tiadd (tisub a b) b) a.

Lemma nz_opp : forall x, nz (- x) = nz x.
Proof. intros x. unfold nz. destruct (Req_EM_T (- x) 0), (Req_EM_T x 0); auto; lra. Qed.
Lemma nz_mult : forall x y, nz (x * y) = andb (nz x) (nz y).
Proof.
  intros x y. unfold nz. destruct (Req_EM_T (x * y) 0) as [E|E], (Req_EM_T x 0) as [Ex|Ex], (Req_EM_T y 0) as [Ey|Ey]; auto.
  - apply Rmult_integral in E. tauto.
  - subst. lra.
  - subst. lra.
  - subst. lra.
Qed.

Section Fuel.
Variable fuel : nat.
(* one term returns the same everywhere, after at least one step *)
Ltac unify_runs := repeat match goal with
  | H : ev RO fuel ?a ?r = Some (?x, ?n, ?k), H' : ev RO fuel ?a ?r = Some (?y, ?n', ?k') |- _ => rewrite H in H'; injection H' as <- <- <-
  end; repeat match goal with
  | H : ev RO fuel _ _ = Some (_, ?n, _) |- _ => lazymatch goal with P : 1 <= n |- _ => fail | _ => pose proof (@ev_step _ _ _ _ _ _ _ _ _ _ H) end
  end.
Ltac count := repeat rewrite ?nz_opp, ?nz_mult; repeat match goal with |- context [nz ?x] => destruct (nz x) end; simpl; lia.
Ltac value := cbn [o_prim1 o_prim2 o_primi o_lit RO sem1 sem2 semi litR].
Ltac solve_law := unify_runs; repeat match goal with H : ev RO fuel ?a _ = Some _ |- context [ev RO fuel ?a _] => rewrite H end;
  cbn [tick bind ret guard intopv o_ok1 o_ok2 o_oki RO ok1 ok2 oki]; unfold guard; eexists _, _;
  (split; [refine (f_equal (fun v => Some (v, _, _)) _); value|split; [simpl; lia|cbn [negb orb andb]; count]]).
Theorem law_sound : forall G t (e e' : tm G t), law e e' -> improves_by fuel 0 e e'.
Proof.
  destruct 1; intros r0 vr n0 k0 E; cbn [ev lit op0v op1v op2v intopv] in E; crack;
    repeat match goal with H : guard _ _ = Some (_, _, _) |- _ => unfold guard in H; injection H as <- <- <- end; cbn [ev lit op0v op1v op2v]; solve_law;
    cbn [den] in *; try (unfold Rdiv; ring);
    try lia.
  - (* div_one *) field.
  - (* neg_quotient_r *) unfold Rdiv. now rewrite Rinv_opp, Ropp_mult_distr_r.
  - (* power_one *) now rewrite powerRZ_1.
  - (* power_zero *) now rewrite powerRZ_O.
  - (* square *) unfold powerRZ. simpl. now rewrite Rmult_1_r.
  - (* div_div *) unfold Rdiv. now rewrite Rinv_mult, Rmult_assoc.
  - (* log_exp *) now rewrite ln_exp.
Qed.
End Fuel.
