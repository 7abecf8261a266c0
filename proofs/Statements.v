(* What is proved, for a reader who trusts nothing else: each theorem in full, under the name that the papers give it, with its proof a
   reference to the file that has it.  `make` prints the assumptions of each and compares them with assumptions.txt.

   Reading guide.  [ev RO fuel e r = Some (y, n, 0)]: program e, run over the reals in environment r, returns y after n steps and met no
   kink.  [locally u0 P]: P holds near u0.  [Deriv U u0 h t F d]: near u0 the map F : U -> [[t]] keeps its shape, and is differentiable at
   u0 with derivative d in direction h (Data.v).  With U = R these are curves, with U = R^n points.  [datas G], [data t]: no functions inside. *)
From Coq Require Import Reals List Lia ZArith.
From Coquelicot Require Import Coquelicot.
Require Import Language Primitive Calculus Germ Macro Data Forward Second Substitution Delta Monadic Reverse Hessian Shape Vector Continuation Unshared Refinement Rewrite.
Require Import Combinator Transpose CombinatorMode Collect.
Require Elaborate Checker Bulk Fission.
Import ListNotations.
Open Scope nat_scope.
Unset Asymmetric Patterns.

(* K section 3, C Theorem 1: forward mode computes value and derivative, at a bounded cost *)
Theorem K_forward_mode : forall fuel (U : NormedModule R_AbsRing) (u0 h : U) G t (e : tm G t) f g y n, datas G = true -> data t = true ->
  primals G g = f u0 -> Derivs U u0 h G f (deltas G g) ->
  ev RO fuel e (f u0) = Some (y, n, 0) ->
  exists F g' n',
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, n, 0)) /\
    ev RO fuel (forward e) g = Some (g', n', 0) /\
    primal t g' = y /\ Deriv U u0 h t F (Forward.delta t g') /\ n' <= 208 * n.
Proof. exact forward_correct. Qed.

(* K Theorems 3 and 5, and the cost claim of K section 7: the reverse derivative, for weights ws of the outputs, is their combination
   with the Jacobian; run, bindings and backward evaluation together take at most 508 steps per step of the program *)
Theorem K_reverse_mode : forall fuel (U : NormedModule R_AbsRing) (u0 h : U) G t (e : tm G t) f v y n ws,
  datas G = true -> data t = true -> Derivs U u0 h G f v ->
  ev RO fuel e (f u0) = Some (y, n, 0) ->
  exists F dy m cost,
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, n, 0)) /\
    Deriv U u0 h t F dy /\
    reverse fuel e (f u0) ws = Some (y, m, cost) /\
    dot (length (flats G v)) m (vector (flats G v)) = weighted ws (flat t dy) /\
    cost <= 508 * n + 3 * length (flat t dy) + 1.
Proof. exact reverse_correct. Qed.

(* K Fig. 15: the same with the partial derivatives in the shape of the input, and inner products of values *)
Theorem K_figure_15 : forall fuel (U : NormedModule R_AbsRing) (u0 h : U) G t (e : tm G t) f v y n ws,
  datas G = true -> data t = true -> Derivs U u0 h G f v ->
  ev RO fuel e (f u0) = Some (y, n, 0) ->
  exists F dy dx cost,
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, n, 0)) /\
    Deriv U u0 h t F dy /\
    pullback fuel e (f u0) ws = Some (y, dx, cost) /\
    shapes G dx = shapes G (f u0) /\
    weighted (flats G dx) (flats G v) = weighted ws (flat t dy) /\
    cost <= 508 * n + 3 * length (flat t dy) + 1.
Proof. exact pullback_correct. Qed.

(* K Lemma 6: evaluating a Delta backwards adds x times its value to the inner product of accumulators and tangents *)
Theorem K_lemma_6 : forall u n x m e, scoped n u -> (forall j, n <= j -> m j = None) ->
  dot n (fst (eval x u m)) e = (dot n m e + x * dden u e)%R /\ forall j, n <= j -> fst (eval x u m) j = None.
Proof. exact eval_dot. Qed.

(* K Lemma 10: the relation is stable under extension of the tape *)
Theorem K_lemma_10 : forall base (U : NormedModule R_AbsRing) (u0 h : U) gam t C L f g,
  VK base U u0 h gam t C f g -> VK base U u0 h gam t (L ++ C) f g.
Proof. exact VK_mono. Qed.

(* K Theorem 4: the fundamental theorem of the monadic translation; at most 8 nodes of tape per step *)
Theorem K_theorem_4 : forall base fuel (U : NormedModule R_AbsRing) (u0 h : U) gam G t (e : tm G t) C f g, VKE base U u0 h gam G C f g ->
  EKs base U u0 0 0 (VK base U u0 h gam t) C (fun u => ev RO fuel e (f u)) (run fuel (MT e) g).
Proof. exact monadic_fundamental. Qed.

(* K Lemma 1: dt . F(s, ds) = R(s, dt) . ds *)
Theorem K_lemma_1 : forall fuel (U : NormedModule R_AbsRing) (u0 h : U) G t (e : tm G t) f g y n ws,
  datas G = true -> data t = true -> primals G g = f u0 -> Derivs U u0 h G f (deltas G g) ->
  ev RO fuel e (f u0) = Some (y, n, 0) ->
  exists g' k m cost,
    ev RO fuel (forward e) g = Some (g', k, 0) /\ primal t g' = y /\
    reverse fuel e (f u0) ws = Some (y, m, cost) /\
    dot (length (flats G (deltas G g))) m (vector (flats G (deltas G g))) = weighted ws (flat t (Forward.delta t g')).
Proof. exact adjoint. Qed.

(* one backward evaluation gives the total (Fréchet) derivative, at 508 times the cost of the program *)
Theorem gradient : forall fuel n (e : tm (reals n) TR) (x : Rn n) y s,
  ev RO fuel e (point n x) = Some (y, s, 0) ->
  exists F m cost,
    locally x (fun u => ev RO fuel e (point n u) = Some (F u, s, 0)) /\
    reverse fuel e (point n x) [1%R] = Some (y, m, cost) /\
    @filterdiff R_AbsRing (Rn n) R_NormedModule F (locally x) (fun h => dot n m (coords n h)) /\
    cost <= 508 * s + 4.
Proof. exact gradient_frechet. Qed.

(* K section 10.4, left open there: forward mode of forward mode gives the second derivative *)
Theorem K_second_derivative : forall fuel (e : tm [TR] TR) x y s, ev RO fuel e (x, tt) = Some (y, s, 0) ->
  exists d2 k,
    locally x (fun t => ev RO fuel e (t, tt) = Some (fn fuel e t, s, 0) /\ is_derive (fn fuel e) t (fn1 fuel e t)) /\
    is_derive (fn1 fuel e) x d2 /\
    ev RO fuel (forward (forward e)) (((x, 1%R), (1%R, 0%R)), tt) = Some (((y, fn1 fuel e x), (fn1 fuel e x, d2)), k, 0) /\
    k <= 208 * (208 * s).
Proof. exact second_derivative. Qed.

(* second derivatives of many variables, by reverse mode of forward mode: one backward evaluation of the transformed program, at the point x paired with the
   vector w, returns the total derivative of the directional derivative along w, that is the product of the Hessian with w (the entries of m that belong to x), at
   a bounded multiple of the cost of the program *)
Theorem hessian_vector_product : forall fuel n (e : tm (reals n) TR) (x w : Rn n) y s,
  ev RO fuel e (point n x) = Some (y, s, 0) ->
  locally x (fun u => exists F l y', locally u (fun z => ev RO fuel e (point n z) = Some (F z, s, 0)) /\
    ev RO fuel e (point n u) = Some (y', s, 0) /\
    @filterdiff R_AbsRing (Rn n) R_NormedModule F (locally u) l /\ l w = directional fuel n e w u) /\
  exists m cost,
    reverse fuel (forward e) (Hessian.paired n x w) [0%R; 1%R] = Some ((y, directional fuel n e w x), m, cost) /\
    @filterdiff R_AbsRing (Rn n) R_NormedModule (directional fuel n e w) (locally x)
      (fun h => dot (2 * n) m (vector (flats (map (D fwd) (reals n)) (Hessian.paired n h zero)))) /\
    cost <= 508 * (208 * s) + 7.
Proof.
  intros fuel n e x w y s H. split; [|exact (hessian_vector fuel n e x w H)].
  destruct (directional_ok fuel n e w x H) as (F0 & _ & _ & L & _). revert L. apply filter_imp. intros u Hu.
  destruct (directional_ok fuel n e w u Hu) as (F & l & k & A & B & C & _). exists F, l, (F0 u). auto.
Qed.

(* K Fig. 5, C Fig. 15: the tangent is the array of all partial derivatives *)
Theorem K_vector_mode : forall fuel n (e : tm (reals n) TR) (U : NormedModule R_AbsRing) (u0 h : U) f v y s,
  Derivs U u0 h (reals n) f v -> ev RO fuel e (f u0) = Some (y, s, 0) ->
  exists F dy g k,
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, s, 0)) /\ Deriv U u0 h TR F dy /\
    ev RO fuel (DT (vec n) e) (vec_seed n n 0 (f u0)) = Some ((y, g), k, 0) /\
    length g = n /\ inner (vector (flats (reals n) v)) g 0 = dy /\ k <= (401 + 60 * n) * s.
Proof. exact vector_correct. Qed.

(* C section 5, Proposition 1 (there only against forward mode): the continuation-based macro *)
Theorem C_continuation_mode : forall fuel n (e : tm (reals n) TR) (U : NormedModule R_AbsRing) (u0 h : U) f v y s,
  Derivs U u0 h (reals n) f v -> ev RO fuel e (f u0) = Some (y, s, 0) ->
  exists F dy g k,
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, s, 0)) /\ Deriv U u0 h TR F dy /\
    ev RO fuel (DT (cont n) e) (cont_seed n n 0 (f u0)) = Some ((y, g), k, 0) /\ k <= 401 * s /\
    forall w, exists l c, g w = Some (l, c, 0) /\ length l = n /\ inner (vector (flats (reals n) v)) l 0 = (w * dy)%R.
Proof. exact continuation_correct. Qed.

(* K section 6, Fig. 7 and 8: unshared Delta terms *)
Theorem K_delta_mode : forall fuel n (e : tm (reals n) TR) (U : NormedModule R_AbsRing) (u0 h : U) f v y s w,
  Derivs U u0 h (reals n) f v -> ev RO fuel e (f u0) = Some (y, s, 0) ->
  exists F dy u k,
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, s, 0)) /\ Deriv U u0 h TR F dy /\
    ev RO fuel (DT dlt e) (delta_seed n 0 (f u0)) = Some ((y, enc u), k, 0) /\ k <= 401 * s /\
    dot n (fst (eval w u emptyMap)) (vector (flats (reals n) v)) = (w * dy)%R.
Proof. exact delta_correct. Qed.

(* C section 6.1, Fig. 16-18: lambda terms to combinators; the translation preserves values, steps and kinks, of functions too *)
Theorem C_section_6_1 : forall X (O : ops X) fuel G t (e : tm G t) r, cden O fuel (comp e) (pack X G r) = ev O fuel e r.
Proof. exact comp_ok. Qed.

(* C Fig. 19 and 20: the program [combinator e] returns the value and a map back from cotangents of the result to cotangents of the inputs;
   what this returns for a cotangent dt, given in the shape of the result, paired with the velocity v of the inputs, is dt paired with the
   derivative ([value], [seed], [paired]: CombinatorMode.v) *)
Theorem C_figure_20 : forall fuel (U : NormedModule R_AbsRing) (u0 h : U) G t (e : tm G t) f v y n,
  datas G = true -> data t = true -> Derivs U u0 h G f v ->
  ev RO fuel e (f u0) = Some (y, n, 0) ->
  exists F dy back k,
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, n, 0)) /\
    Deriv U u0 h t F dy /\
    ev RO fuel (combinator e) (value (cx G) (pack R G (f u0)), tt) = Some ((value t y, back), k, 0) /\
    forall dt, shape t dt = shape t dy -> exists dx c,
      back (seed t dt) = Some (dx, c, 0) /\ paired (cx G) (pack R G v) dx = paired t dy (seed t dt).
Proof. exact combinator_correct. Qed.

(* C section 6, left unproved there and without arrays, loops, sums and recursion: the same with the cotangent of the inputs read back into their
   shape ([pulled]: Collect.v), and inner products of values *)
Theorem C_combinator_mode : forall fuel (U : NormedModule R_AbsRing) (u0 h : U) G t (e : tm G t) f v y n dt,
  datas G = true -> data t = true -> Derivs U u0 h G f v ->
  ev RO fuel e (f u0) = Some (y, n, 0) -> shape t dt = shape t y ->
  exists F dy dx,
    locally u0 (fun u => ev RO fuel e (f u) = Some (F u, n, 0)) /\
    Deriv U u0 h t F dy /\
    pulled fuel e (f u0) dt = Some (value t y, dx) /\
    shapes G dx = shapes G (f u0) /\
    weighted (flats G dx) (flats G v) = weighted (flat t dt) (flat t dy).
Proof. exact pulled_correct. Qed.

(* C Theorem 2: soundness of program transformations, here as refinement of a partial language *)
Theorem C_theorem_2 : forall fuel G t (e e' : tm G t), rewrites e e' -> datas G = true -> data t = true ->
  forall r v n k, ev RO fuel e r = Some (v, n, k) -> exists n' k', ev RO fuel e' r = Some (v, n', k') /\ n' <= n /\ k' <= k.
Proof. exact rewriting_sound. Qed.

(* C Fig. 12 (e), fission of loops.  The rule of C saves steps only if the loop turns at least once (then it is among the rules of C_theorem_2);
   in general: same value, same kinks, and exactly 2 steps more less 6 for each turn *)
Theorem C_fission : forall fuel G s t (n : tm G TI) (c : tm G s) (d : tm G t) a b, atom n -> forall r v steps kinks,
  ev RO fuel (tloop n (tpair c d) (Fission.both a b)) r = Some (v, steps, kinks) ->
  exists z steps', ev RO fuel n r = Some (z, 1, 0) /\
    ev RO fuel (tpair (tloop n c a) (tloop n d b)) r = Some (v, steps', kinks) /\ steps' + 6 * Z.to_nat z = steps + 2.
Proof. exact Fission.fission_exact. Qed.

(* what the extracted checker accepts: r and r' are terms as they travel, steps says which rule was used where *)
Theorem checked_derivations : forall fuel G r r' steps, Checker.accepts G r r' steps = true ->
  exists t (e e' : tm G t), Elaborate.infer G r = Some (existT _ t e) /\ Elaborate.infer G r' = Some (existT _ t e') /\
    (datas G = true -> data t = true -> forall x v n k, ev RO fuel e x = Some (v, n, k) ->
     exists n' k', ev RO fuel e' x = Some (v, n', k') /\ n' <= n /\ k' <= k).
Proof.
  intros fuel G r r' steps H. destruct (Checker.accepted _ _ _ _ H) as (t & e & e' & H1 & H2 & H3). exists t, e, e'.
  split; [exact H1|]. split; [exact H2|]. intros HG Ht. exact (C_theorem_2 fuel G t e e' H3 HG Ht).
Qed.

(* more fuel changes neither value nor steps nor kinks *)
Theorem fuel_is_only_definedness : forall X (O : ops X) k k' (e : tm nil TR) y n s, k <= k' ->
  ev O k e tt = Some (y, n, s) -> ev O k' e tt = Some (y, n, s).
Proof. exact fuel_mono. Qed.

(* the matrix product of the standard library, a program like any other, is the matrix product: B has m columns *)
Theorem library_matmul : forall fuel G (a b : tm G (TArr (TArr TR))) r (A B : list (list R)) m,
  (exists n, ev RO fuel a r = Some (A, n, 0)) -> (exists n, ev RO fuel b r = Some (B, n, 0)) ->
  (forall row, In row A -> length row = length B) -> (forall row, In row B -> length row = m) -> B <> nil ->
  exists n, ev RO fuel (Bulk.matmul a b) r =
    Some (map (fun row => map (fun j => Bulk.dotR row (Bulk.columnR j B)) (seq 0 m)) A, n, 0).
Proof. exact Bulk.matmul_value. Qed.

(* and so is its scatter-add: each value is added at its place, one after the other *)
Theorem library_scatter_add : forall fuel G (a : tm G (TArr TR)) (places : tm G (TArr TI)) (values : tm G (TArr TR)) r (l : list R) (is : list Z) (us : list R),
  (exists n, ev RO fuel a r = Some (l, n, 0)) -> (exists n, ev RO fuel places r = Some (is, n, 0)) ->
  (exists n, ev RO fuel values r = Some (us, n, 0)) -> length is = length us ->
  (forall k, In k is -> (0 <= k < Z.of_nat (length l))%Z) ->
  exists n, ev RO fuel (Bulk.scatter_add a places values) r = Some (Bulk.scatterR l is us, n, 0).
Proof. exact Bulk.scatter_value. Qed.

Print Assumptions K_forward_mode.
Print Assumptions K_reverse_mode.
Print Assumptions K_figure_15.
Print Assumptions K_lemma_6.
Print Assumptions K_lemma_10.
Print Assumptions K_theorem_4.
Print Assumptions K_lemma_1.
Print Assumptions gradient.
Print Assumptions K_second_derivative.
Print Assumptions hessian_vector_product.
Print Assumptions K_vector_mode.
Print Assumptions C_continuation_mode.
Print Assumptions K_delta_mode.
Print Assumptions C_section_6_1.
Print Assumptions C_figure_20.
Print Assumptions C_combinator_mode.
Print Assumptions C_theorem_2.
Print Assumptions C_fission.
Print Assumptions checked_derivations.
Print Assumptions fuel_is_only_definedness.
Print Assumptions library_matmul.
Print Assumptions library_scatter_add.
