(* The scalar primitives over the reals: for each its meaning, the open set on which it is smooth, its
   partial derivatives as terms of the language, and the proofs that these fit together.

   A new unary primitive is one constructor in Language.v and one line in each of [sem1], [ok1], [d1t], [d1R] below; the three
   lemmas [prim1_open], [prim1_derive] (Calculus.v), [prim1_coef] then ask for a line each.

   Differentiability is Fréchet differentiability (Coquelicot's [filterdiff]) of a map from an arbitrary
   normed space U: with U = R the theorems speak of curves, with U = R^n of total derivatives. *)
From Coq Require Import Reals List Lia Lra ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Special Substitution.
Import ListNotations.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Open Scope R_scope.

(* ---- meaning ------------------------------------------------------------------ *)
Definition pos (x : R) : bool := if Rlt_dec 0 x then true else false.
Definition nz (x : R) : bool := if Req_EM_T x 0 then false else true.
Definition litR (m e : Z) : R := match e with Z0 => IZR m | _ => IZR m * powerRZ 2 e end.
Arguments powerRZ : simpl never.
Definition cmpR (x y : R) : comparison :=
  match total_order_T x y with inleft (left _) => Lt | inleft (right _) => Eq | inright _ => Gt end.
(* the error function is normalised by a literal, the float nearest to 2 / sqrt pi, so that its derivative is a term *)
Definition erf_factor : Z := 5081767996463981.
Definition erf (x : R) : R := litR erf_factor (-52) * RInt bell 0 x.
(* no pole of gamma: not 0, -1, -2, ... *)
Definition regular (x : R) : bool := orb (pos x) (nz (frac_part x)).
Definition sem1 (p : prim1) : R -> R :=
  match p with
  | PNeg => Ropp | PExp => exp | PLog => ln | PSqrt => sqrt | PSin => sin | PCos => cos | PTan => tan
  | PAsin => asin | PAcos => acos | PAtan => atan | PSinh => sinh | PCosh => cosh | PTanh => tanh
  | PLog1p => fun x => ln (1 + x) | PExpm1 => fun x => exp x - 1 | PAbs => Rabs
  | PErf => erf | PLgamma => lgamma
  end.
Definition ok1 (p : prim1) (x : R) : bool :=
  match p with
  | PLog | PSqrt => pos x
  | PTan => nz (cos x)
  | PAsin | PAcos => pos (1 - x * x)
  | PLog1p => pos (1 + x)
  | PAbs => nz x
  | PLgamma => regular x
  | _ => true
  end.
Definition atan2 (y x : R) : R :=
  match total_order_T y 0 with
  | inleft (left _) => - (PI / 2) - atan (x / y)
  | inleft (right _) => if Rlt_dec x 0 then PI else 0
  | inright _ => PI / 2 - atan (x / y)
  end.
Definition sem2 (p : prim2) : R -> R -> R :=
  match p with
  | PAdd => Rplus | PSub => Rminus | PMul => Rmult | PDiv => Rdiv | PPow => Rpower
  | PAtan2 => atan2 | PMax => Rmax | PMin => Rmin
  end.
Definition ok2 (p : prim2) (x y : R) : bool :=
  match p with
  | PDiv => nz y
  | PPow => pos (x - litR 1 (-1074))
  | PAtan2 => orb (nz x) (pos y)
  | PMax | PMin => nz (x - y)
  | _ => true
  end.
Definition okpowi (x : R) (k : Z) : bool := orb (0 <=? k)%Z (nz x).
Definition semi (p : primi) (x : R) (k : Z) : R :=
  match p with PPowi => powerRZ x k | PPolygamma => polygamma (Z.to_nat k) x end.
Definition oki (p : primi) (x : R) (k : Z) : bool :=
  match p with PPowi => okpowi x k | PPolygamma => andb (0 <=? k)%Z (regular x) end.
Definition roundR (r : rounding) (x : R) : Z :=
  match r with
  | Floor => Int_part x
  | Round => Int_part (x + / 2)
  | Truncate => if Rlt_dec x 0 then (- Int_part (- x))%Z else Int_part x
  end.
Definition okround (r : rounding) (x : R) : bool :=
  match r with
  | Floor | Truncate => nz (frac_part x)
  | Round => nz (frac_part (x + / 2))
  end.
Definition RO : ops R :=
  {| o_lit := litR; o_real := IZR; o_prim1 := sem1; o_ok1 := ok1; o_prim2 := sem2; o_ok2 := ok2;
     o_primi := semi; o_oki := oki; o_cmp := cmpR; o_round := roundR; o_okround := okround |}.

(* ---- derivatives: as terms, and the reals these terms compute -------------------- *)
Definition lit {G} (m : Z) : tm G TR := tlit G m 0.
(* a partial derivative: absent when it is the constant one, so that sums need no products *)
Inductive coef (G : list ty) : Type := One | Coef (t : tm G TR).
Arguments One {G}.
(* abs: 0 at 0, which is a kink *)
Definition tsign {G} (x : tm G TR) : tm G TR :=
  tif (tcmp CLt x (lit 0)) (lit (-1)) (tif (tcmp CLt (lit 0) (wk TU x)) (lit 1) (lit 0)).
Definition d1t {G} (p : prim1) (x : tm G TR) : tm G TR :=
  match p with
  | PNeg => lit (-1)
  | PExp => tprim1 PExp x
  | PLog => tdiv (lit 1) x
  | PSqrt => tdiv (tlit _ 1 (-1)) (tprim1 PSqrt x)
  | PSin => tprim1 PCos x
  | PCos => tprim1 PNeg (tprim1 PSin x)
  | PTan => tadd (lit 1) (tmul (tprim1 PTan x) (tprim1 PTan x))
  | PAsin => tdiv (lit 1) (tprim1 PSqrt (tmul (tsub (lit 1) x) (tadd (lit 1) x)))
  | PAcos => tdiv (lit (-1)) (tprim1 PSqrt (tmul (tsub (lit 1) x) (tadd (lit 1) x)))
  | PAtan => tdiv (lit 1) (tadd (lit 1) (tmul x x))
  | PSinh => tprim1 PCosh x
  | PCosh => tprim1 PSinh x
  | PTanh => tsub (lit 1) (tmul (tprim1 PTanh x) (tprim1 PTanh x))
  | PLog1p => tdiv (lit 1) (tadd (lit 1) x)
  | PExpm1 => tprim1 PExp x
  | PAbs => tsign x
  | PErf => tmul (tlit _ erf_factor (-52)) (tprim1 PExp (tprim1 PNeg (tmul x x)))
  | PLgamma => tprimi PPolygamma x (tint _ 0)
  end.
Definition d1R (p : prim1) (x : R) : R :=
  match p with
  | PNeg => -1 | PExp => exp x | PLog => 1 / x | PSqrt => litR 1 (-1) / sqrt x
  | PSin => cos x | PCos => - sin x | PTan => 1 + tan x * tan x
  | PAsin => 1 / sqrt ((1 - x) * (1 + x)) | PAcos => -1 / sqrt ((1 - x) * (1 + x)) | PAtan => 1 / (1 + x * x)
  | PSinh => cosh x | PCosh => sinh x | PTanh => 1 - tanh x * tanh x
  | PLog1p => 1 / (1 + x) | PExpm1 => exp x
  | PAbs => match cmpR x 0 with Lt => -1 | _ => 1 end
  | PErf => litR erf_factor (-52) * exp (- (x * x)) | PLgamma => polygamma 0 x
  end.
Definition tnorm2 {G} (x y : tm G TR) : tm G TR := tadd (tmul x x) (tmul y y).
Definition tbelow {G} (x y : tm G TR) (yes no : Z) : coef G := Coef (tif (tcmp CLt x y) (lit yes) (lit no)).
(* x^y by y: 0 where the base is not positive, so that a constant exponent does no harm there.  [tiny] is the smallest
   positive float: of the floats exactly the positive ones are not below it *)
Definition tiny : R := litR 1 (-1074).
Definition tpowlog {G} (x y : tm G TR) : tm G TR :=
  tif (tcmp CLe (tlit _ 1 (-1074)) x) (tmul (tprim1 PLog (wk TU x)) (tprim2 PPow (wk TU x) (wk TU y))) (lit 0).
(* x^y by x: y x^(y-1), and 0 for y = 0 also at x = 0 *)
Definition tpowslope {G} (x y : tm G TR) : tm G TR :=
  tif (tif (tcmp CLt x (tlit _ 1 (-1074))) (tcmp CEq (wk TU y) (lit 0)) (tinr TU (tunit _))) (lit 0)
      (tmul (wk TU y) (tprim2 PPow (wk TU x) (tsub (wk TU y) (lit 1)))).
Definition d2t {G} (p : prim2) (x y : tm G TR) : coef G * coef G :=
  match p with
  | PAdd => (One, One)
  | PSub => (One, Coef (lit (-1)))
  | PMul => (Coef y, Coef x)
  | PDiv => (Coef (tdiv (lit 1) y), Coef (tprim1 PNeg (tdiv (tdiv x y) y)))
  | PPow => (Coef (tpowslope x y), Coef (tpowlog x y))
  | PAtan2 => (Coef (tdiv y (tnorm2 x y)), Coef (tprim1 PNeg (tdiv x (tnorm2 x y))))
  | PMax => (tbelow y x 1 0, tbelow y x 0 1)
  | PMin => (tbelow x y 1 0, tbelow x y 0 1)
  end.
Definition below (x y a b : R) : R := match cmpR x y with Lt => a | _ => b end.
Definition d2R (p : prim2) (x y : R) : R * R :=
  match p with
  | PAdd => (1, 1) | PSub => (1, -1) | PMul => (y, x)
  | PDiv => (1 / y, - (x / y / y))
  | PPow => (y * Rpower x (y - 1), ln x * Rpower x y)
  | PAtan2 => (y / (x * x + y * y), - (x / (x * x + y * y)))
  | PMax => (below y x 1 0, below y x 0 1)
  | PMin => (below x y 1 0, below x y 0 1)
  end.
(* integer power: k x^(k-1), and 0 for k = 0 also at x = 0 *)
Definition dpowit {G} (x : tm G TR) (k : tm G TI) : tm G TR :=
  tif (top2 (OIntcmp CEq) k (tint _ 0)) (lit 0)
      (tmul (treal (wk TU k)) (tpowi (wk TU x) (top2 (OIntop ISub) (wk TU k) (tint _ 1)))).
Definition dpowiR (x : R) (k : Z) : R := if Z.eqb k 0 then 0 else IZR k * powerRZ x (k - 1).
Definition dit {G} (p : primi) (x : tm G TR) (k : tm G TI) : tm G TR :=
  match p with PPowi => dpowit x k | PPolygamma => tprimi PPolygamma x (top2 (OIntop IAdd) k (tint _ 1)) end.
Definition diR (p : primi) (x : R) (k : Z) : R :=
  match p with PPowi => dpowiR x k | PPolygamma => polygamma (S (Z.to_nat k)) x end.

(* ---- reading the Boolean domains ---------------------------------------------------- *)
Lemma pos_true : forall x, pos x = true <-> 0 < x.
Proof. intros x. unfold pos. destruct (Rlt_dec 0 x); split; auto; discriminate || lra. Qed.
Lemma nz_true : forall x, nz x = true <-> x <> 0.
Proof. intros x. unfold nz. destruct (Req_EM_T x 0); split; auto; discriminate || lra. Qed.
Lemma cmpR_lt : forall x y, x < y -> cmpR x y = Lt.
Proof. intros x y H. unfold cmpR. destruct (total_order_T x y) as [[?|?]|?]; auto; lra. Qed.
Lemma cmpR_gt : forall x y, y < x -> cmpR x y = Gt.
Proof. intros x y H. unfold cmpR. destruct (total_order_T x y) as [[?|?]|?]; auto; lra. Qed.
Lemma cmpR_spec : forall x y, x <> y -> (cmpR x y = Lt /\ x < y) \/ (cmpR x y = Gt /\ y < x).
Proof. intros x y H. destruct (Rtotal_order x y) as [?|[?|?]]; [left|contradiction|right]; split; auto using cmpR_lt, cmpR_gt. Qed.
Lemma cmpR_tie : forall x y, tie (cmpR x y) = false -> x <> y.
Proof. intros x y. unfold cmpR. destruct (total_order_T x y) as [[?|?]|?]; simpl; try discriminate; lra. Qed.

(* ---- the coefficient terms compute their reals, in bounded time, without kinks -------- *)
Definition KP : nat := 60.     (* steps of a coefficient term whose arguments take two steps *)
Lemma norm2_pos : forall x y, x <> 0 \/ y <> 0 -> x * x + y * y <> 0.
Proof. intros x y H. pose proof (Rle_0_sqr x). pose proof (Rle_0_sqr y). unfold Rsqr in *. destruct H; nra. Qed.
Ltac dom := repeat match goal with
  | H : pos _ = true |- _ => apply pos_true in H
  | H : nz _ = true |- _ => apply nz_true in H
  | H : orb _ _ = true |- _ => apply Bool.orb_true_iff in H
  | |- pos _ = true => apply pos_true
  | |- nz _ = true => apply nz_true
  end.
Lemma factored : forall x, 1 - x * x = (1 - x) * (1 + x).
Proof. intros. ring. Qed.
Lemma tiny_pos : 0 < tiny.
Proof. unfold tiny, litR. rewrite Rmult_1_l. apply powerRZ_lt. lra. Qed.
Section Coef.
Variable fuel : nat.
Lemma prim1_coef : forall G p (e : tm G TR) r x, ok1 p x = true -> ev RO fuel e r = Some (x, 2, 0)%nat ->
  exists n, ev RO fuel (d1t p e) r = Some (d1R p x, n, 0)%nat /\ (n <= KP)%nat.
Proof.
  intros G p e r x Hok He. unfold KP.
  destruct p; cbn [d1t d1R]; simpl in *; rewrite ?wk_ok, ?He; simpl; unfold guard, boolv; simpl; rewrite ?Hok; simpl;
    try (eexists; split; [reflexivity|lia]).
  - replace (nz x) with true by (symmetry; dom; lra). eexists; split; [reflexivity|lia].
  - replace (nz (sqrt x)) with true by (symmetry; dom; apply sqrt_lt_R0 in Hok; lra).
    eexists; split; [reflexivity|lia].
  - rewrite factored in Hok. rewrite Hok. replace (nz (sqrt ((1 - x) * (1 + x)))) with true by (symmetry; dom; apply sqrt_lt_R0 in Hok; lra).
    eexists; split; [reflexivity|lia].
  - rewrite factored in Hok. rewrite Hok. replace (nz (sqrt ((1 - x) * (1 + x)))) with true by (symmetry; dom; apply sqrt_lt_R0 in Hok; lra).
    eexists; split; [reflexivity|lia].
  - replace (nz (1 + x * x)) with true by (symmetry; dom; nra). eexists; split; [reflexivity|lia].
  - replace (nz (1 + x)) with true by (symmetry; dom; lra). eexists; split; [reflexivity|lia].
  - dom. destruct (@cmpR_spec x 0 Hok) as [[-> _]|[-> Hx]]; simpl; [|rewrite wk_ok, He; simpl; rewrite (cmpR_lt Hx); simpl]; eexists; split; [reflexivity|lia|reflexivity|lia].
Qed.
Definition coef_ev {G} (c : coef G) (r : env R G) (d : R) : Prop :=
  match c with
  | One => d = 1
  | Coef t => exists n, ev RO fuel t r = Some (d, n, 0)%nat /\ (n <= KP)%nat
  end.
Lemma prim2_coef : forall G p (a b : tm G TR) r x y n1 n2, ok2 p x y = true -> (n1 <= 2)%nat -> (n2 <= 2)%nat ->
  ev RO fuel a r = Some (x, n1, 0)%nat -> ev RO fuel b r = Some (y, n2, 0)%nat ->
  coef_ev (fst (d2t p a b)) r (fst (d2R p x y)) /\ coef_ev (snd (d2t p a b)) r (snd (d2R p x y)).
Proof.
  intros G p a b r x y n1 n2 Hok Hn1 Hn2 Ha Hb. unfold KP.
  destruct p; simpl in *; rewrite ?wk_ok, ?Ha, ?Hb; simpl; unfold guard, boolv; simpl; rewrite ?Hok; simpl; auto;
    try (split; eexists; (split; [reflexivity|unfold KP; lia])).
  - change (1 * powerRZ 2 (-1074)) with tiny in *. pose proof tiny_pos as Ht. pose proof Hok as Hx. apply pos_true in Hx.
    assert (pos x = true) as Hp by (apply pos_true; lra).
    rewrite (@cmpR_lt tiny x) by lra. rewrite (@cmpR_gt x tiny) by lra. simpl. rewrite !wk_ok, Ha, Hb. simpl. rewrite Hok, Hp. simpl.
    split; eexists; (split; [reflexivity|unfold KP; lia]).
  - assert (x * x + y * y <> 0) as Hn by (apply norm2_pos; dom; destruct Hok; dom; [left|right]; lra).
    replace (nz (x * x + y * y)) with true by (symmetry; dom; auto).
    split; eexists; (split; [reflexivity|unfold KP; lia]).
  - dom. unfold below. destruct (@cmpR_spec y x) as [[-> _]|[-> _]]; try lra; simpl; split; eexists; (split; [reflexivity|unfold KP; lia]).
  - dom. unfold below. destruct (@cmpR_spec x y) as [[-> _]|[-> _]]; try lra; simpl; split; eexists; (split; [reflexivity|unfold KP; lia]).
Qed.
Lemma powi_coef : forall G (a : tm G TR) (b : tm G TI) r x k n1 n2, okpowi x k = true ->
  ev RO fuel a r = Some (x, n1, 0)%nat -> ev RO fuel b r = Some (k, n2, 0)%nat ->
  exists n, ev RO fuel (dpowit a b) r = Some (dpowiR x k, n, 0)%nat /\ (n <= n1 + 3 * n2 + KP)%nat.
Proof.
  intros G a b r x k n1 n2 Hok Ha Hb. unfold dpowit, tif. cbn [ev]. rewrite Hb. simpl. unfold dpowiR, boolv, guard.
  assert (k <> 0 -> okpowi x (k - 1) = true)%Z as H1.
  { intros Hk. unfold okpowi in *. apply Bool.orb_true_iff in Hok as [Hok|Hok]; apply Bool.orb_true_iff; [left; lia|right; auto]. }
  destruct (Z.compare_spec k 0) as [->|Hk|Hk]; simpl.
  - eexists; split; [reflexivity|unfold KP; lia].
  - rewrite !wk_ok, Ha, Hb. simpl. rewrite H1 by lia. replace (k =? 0)%Z with false by lia. eexists; split; [reflexivity|unfold KP; lia].
  - rewrite !wk_ok, Ha, Hb. simpl. rewrite H1 by lia. replace (k =? 0)%Z with false by lia. eexists; split; [reflexivity|unfold KP; lia].
Qed.
Lemma primi_coef : forall p G (a : tm G TR) (b : tm G TI) r x k n1 n2, oki p x k = true ->
  ev RO fuel a r = Some (x, n1, 0)%nat -> ev RO fuel b r = Some (k, n2, 0)%nat ->
  exists n, ev RO fuel (dit p a b) r = Some (diR p x k, n, 0)%nat /\ (n <= n1 + 3 * n2 + KP)%nat.
Proof.
  intros [|] G a b r x k n1 n2 Hok Ha Hb; [exact (@powi_coef _ _ _ _ _ _ _ _ Hok Ha Hb)|].
  cbn [dit ev op2v op0v intopv]. rewrite Ha, Hb. cbn [bind tick ret o_oki o_primi RO oki semi diR] in *.
  apply Bool.andb_true_iff in Hok as [Hk Hx]. rewrite Hx. replace (0 <=? k + 1)%Z with true by lia. cbn [andb]. unfold guard.
  replace (Z.to_nat (k + 1)) with (S (Z.to_nat k)) by lia. eexists. split; [reflexivity|unfold KP; lia].
Qed.
End Coef.
