(* Rewrite rules (C Fig. 12, 13 and those of an optimiser): each is a refinement of the partial language.  Whenever the left side
   returns, the right side returns the same value, in no more steps, with no more kinks; and so does any program in which rules have
   been applied anywhere, any number of times ([rewriting_sound]).

   A rule relates two terms in the *same* environment ([improves]), which is a preorder and easy to prove.  Rewriting under a
   binder changes functions, so the congruence closure goes through the logical relation of Refinement.v; at data types that
   relation is equality again, and there chains of rewrites compose.

   Duplicating work is not a refinement: beta and let substitute atoms only, other arguments stay in a let.  Fission is here for loops that
   turn at least once; Fission.v has the exact cost for all. *)
From Coq Require Import Reals List Lia Lra ZArith.
Require Import Language Primitive Germ Data Substitution Activity Refinement Improvement Lift Fission Laws.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.

Notation ttrue G := (tinl TU (tunit G)).
Notation tfalse G := (tinr TU (tunit G)).
Definition truth G (b : bool) : tm G TB := if b then ttrue G else tfalse G.
(* the elements of an array of known size *)
Fixpoint items {G a} (b : tm (TI :: G) a) (i : Z) (n : nat) : tm G (TArr a) :=
  match n with O => tnil G a | S n => tcons (sb b (one (tint G i))) (items b (i + 1) n) end.

Section Fuel.
Variable fuel : nat.
Notation evR e := (ev RO fuel e).
Notation improves := (improves_by fuel 0).
Inductive rule : forall G t, tm G t -> tm G t -> Prop :=
| by_law : forall G t (e e' : tm G t), law e e' -> rule e e'
(* C Fig. 13: evaluation of known terms *)
| fold_add : forall G m e m' e' m'' e'', litR m'' e'' = (litR m e + litR m' e')%R -> rule (tadd (tlit G m e) (tlit G m' e')) (tlit G m'' e'')
| fold_mul : forall G m e m' e' m'' e'', litR m'' e'' = (litR m e * litR m' e')%R -> rule (tmul (tlit G m e) (tlit G m' e')) (tlit G m'' e'')
| fold_int : forall G o x y z, intopv o x y = ret z -> rule (top2 (OIntop o) (tint G x) (tint G y)) (tint G z)
| fold_sub : forall G m e m' e' m'' e'', litR m'' e'' = (litR m e - litR m' e')%R -> rule (tsub (tlit G m e) (tlit G m' e')) (tlit G m'' e'')
| fold_neg : forall G m e m' e', litR m' e' = (- litR m e)%R -> rule (tprim1 PNeg (tlit G m e)) (tlit G m' e')
| fold_real : forall G z m e, litR m e = IZR z -> rule (treal (tint G z)) (tlit G m e)
| fold_compare : forall G c m e m' e', rule (tcmp c (tlit G m e) (tlit G m' e')) (truth G (decide c (cmpR (litR m e) (litR m' e'))))
| fold_intcmp : forall G c x y, rule (top2 (OIntcmp c) (tint G x) (tint G y)) (truth G (decide c (x ?= y)%Z))
| equal_self : forall G (a : tm G TI), rule (top2 (OIntcmp CEq) a a) (ttrue G)
| less_self : forall G (a : tm G TI), rule (top2 (OIntcmp CLt) a a) (tfalse G)
| let_out : forall i G t (e e' : tm G t), lift_let i e = Some e' -> rule e e'
| build_items : forall G a n (b : tm (TI :: G) a), rule (tbuild (tint G (Z.of_nat n)) b) (items b 0 n)
(* zeros of derivatives, under conditions *)
| mul_if : forall G (p : tm G TB) a (c : tm G TR), rule (tmul (tcase p a (lit 0)) c) (tcase p (tmul a (wk TU c)) (lit 0))
| mul_if_r : forall G (p : tm G TB) a (c : tm G TR), rule (tmul c (tcase p a (lit 0))) (tcase p (tmul (wk TU c) a) (lit 0))
| mul_if_not : forall G (p : tm G TB) a (c : tm G TR), rule (tmul (tcase p (lit 0) a) c) (tcase p (lit 0) (tmul a (wk TU c)))
| mul_if_not_r : forall G (p : tm G TB) a (c : tm G TR), rule (tmul c (tcase p (lit 0) a)) (tcase p (lit 0) (tmul (wk TU c) a))
| div_if : forall G (p : tm G TB) a (c : tm G TR), rule (tdiv (tcase p a (lit 0)) c) (tcase p (tdiv a (wk TU c)) (lit 0))
| neg_if : forall G (p : tm G TB) a, rule (tprim1 PNeg (tcase p a (lit 0))) (tcase p (tprim1 PNeg a) (lit 0))
| add_if : forall G (p : tm G TB) a b, rule (tadd (tcase p a (lit 0)) (tcase p b (lit 0))) (tcase p (tadd a b) (lit 0))
| beta : forall G a b (e : tm (a :: G) b) v, atom v -> rule (tapp (tlam e) v) (sb e (one v))
| beta_let : forall G a b (e : tm (a :: G) b) x, rule (tapp (tlam e) x) (tlet x e)
| let_atom : forall G a b (e : tm (a :: G) b) v, atom v -> rule (tlet v e) (sb e (one v))
| let_dead : forall G a b (x : tm G a) (e : tm G b), rule (tlet x (wk a e)) e
| let_let : forall G a b c (x : tm G a) (y : tm (a :: G) b) (e : tm (b :: G) c), rule (tlet (tlet x y) e) (tlet x (tlet y (rn e (up (@shift G a)))))
| let_swap : forall G a b c (x : tm G a) (y : tm G b) (e : tm (b :: a :: G) c),
    rule (tlet x (tlet (wk a y) e)) (tlet y (tlet (wk b x) (sb (rn e (up (up (@shift G b)))) (one v1))))
| fst_pair : forall G a b (x : tm G a) (y : tm G b), rule (tfst (tpair x y)) x
| snd_pair : forall G a b (x : tm G a) (y : tm G b), rule (tsnd (tpair x y)) y
| case_inl : forall G a b c (x : tm G a) (l : tm (a :: G) c) (r : tm (b :: G) c), rule (tcase (tinl b x) l r) (tlet x l)
| case_inr : forall G a b c (x : tm G b) (l : tm (a :: G) c) (r : tm (b :: G) c), rule (tcase (tinr a x) l r) (tlet x r)
| unnode_node : forall G a (x : tm G a) ts, rule (top1 (OUnnode a) (tnode x ts)) (tpair x ts)
| if_same : forall G a b c (p : tm G (TSum a b)) (e : tm G c), rule (tcase p (wk a e) (wk b e)) e
| if_truth : forall G (p : tm G TB), rule (tcase p (tinl TU (tunit _)) (tinr TU (tunit _))) p
| if_not : forall G c (p : tm G TB) (x y : tm (TU :: G) c), rule (tcase (tcase p (tinr TU (tunit _)) (tinl TU (tunit _))) x y) (tcase p y x)
| let_app : forall G a b c (x : tm G a) (f : tm (a :: G) (TFun b c)) (y : tm G b), rule (tapp (tlet x f) y) (tlet x (tapp f (wk a y)))
| loop_zero : forall G a (z : tm G a) b, rule (tloop (tint G 0) z b) z
| loop_succ : forall G a n (z : tm G a) (b : tm (a :: TI :: G) a), (0 <= n)%Z ->
    rule (tloop (tint G (n + 1)) z b) (tlet (tloop (tint G n) z b) (sb b (ups (one (tint G n)))))
| loop_same : forall G a (n : tm G TI) (z : tm G a), rule (tloop n z v0) z
| get_first : forall G a (x : tm G a) l, rule (tget (tcons x l) (tint G 0)) x
| get_next : forall G a (x : tm G a) l n, (0 <= n)%Z -> rule (tget (tcons x l) (tint G (n + 1))) (tget l (tint G n))
(* C Fig. 12 (d): loop fusion; and its relatives for map *)
| get_build : forall G a (n : tm G TI) (b : tm (TI :: G) a) i, rule (tget (tbuild n b) i) (tlet i b)
| map_map : forall G a b c (g : tm (a :: G) b) (f : tm (b :: G) c) l, rule (tmap f (tmap g l)) (tmap (tlet g (rn f (up (@shift G a)))) l)
| map_build : forall G b c (n : tm G TI) (g : tm (TI :: G) b) (f : tm (b :: G) c), rule (tmap f (tbuild n g)) (tbuild n (tlet g (rn f (up (@shift G TI)))))
(* C Fig. 12 (e) *)
| fission : forall G s t z (c : tm G s) (d : tm G t) a b, (0 < z)%Z ->
    rule (tloop (tint G z) (tpair c d) (both a b)) (tpair (tloop (tint G z) c a) (tloop (tint G z) d b)).

Lemma rn_up : forall G a b c (f : tm (b :: G) c) (r : env R G) (x : den R a) (y : den R b),
  evR (rn f (up (@shift G a))) (y, (x, r)) = evR f (y, r).
Proof. intros. apply rn_ok. apply (@up_ok R). intros t m. reflexivity. Qed.
Lemma get_build_ok : forall G a (b : tm (TI :: G) a) (i : tm G TI) r N l n2 k2 z n3 k3 v n4 k4,
  mseq (fun i => tick (evR b (Z.of_nat i, r))) (seq 0 N) = Some (l, n2, k2) -> evR i r = Some (z, n3, k3) -> mget l z = Some (v, n4, k4) ->
  exists n' k', tick (bind (evR i r) (fun x => evR b (x, r))) = Some (v, n', k') /\ n' <= S (n3 + n2) /\ k' <= k3 + k2.
Proof.
  intros G a b i r N l n2 k2 z n3 k3 v n4 k4 Hs Hz E. unfold mget in E. destruct (Z.ltb_spec z 0) as [?|Hi]; [discriminate|].
  destruct (nth_error l (Z.to_nat z)) as [w|] eqn:Ew; [|discriminate]. crack.
  destruct (mseq_nth _ _ _ Hs Ew) as (j & n' & k' & P1 & P2 & P3 & P4). crack.
  assert (j = Z.to_nat z) as ->.
  { pose proof (nth_error_Some (seq 0 N) (Z.to_nat z)) as Q. rewrite P1 in Q. rewrite seq_length in Q.
    assert (Z.to_nat z < N) by (apply Q; discriminate). rewrite (nth_error_nth' _ 0) in P1 by (now rewrite seq_length).
    rewrite seq_nth in P1 by auto. inversion P1. reflexivity. }
  rewrite Z2Nat.id in P2 by lia. eexists _, _. split; [exact (@tbind _ _ _ _ _ _ _ _ _ _ Hz P2)|lia].
Qed.
Lemma map_map_ok : forall A G a b c (g : tm (a :: G) b) (f : tm (b :: G) c) (h : A -> den R a) r l l1 l2 n1 k1 n2 k2,
  mseq (fun x => tick (evR g (h x, r))) l = Some (l1, n1, k1) -> mseq (fun x => tick (evR f (x, r))) l1 = Some (l2, n2, k2) ->
  mseq (fun x => tick (evR (tlet g (rn f (up (@shift G a)))) (h x, r))) l = Some (l2, n1 + n2, k1 + k2).
Proof.
  intros A G a b c g f h r l l1 l2 n1 k1 n2 k2 H1 H2. rewrite <- (mseq_comp _ _ _ H1 H2). clear.
  induction l as [|z q IH]; [reflexivity|]. cbn [mseq]. rewrite IH. f_equal. cbn [ev]. rewrite tick_bind. f_equal.
  apply tick_late. intros y. apply rn_up.
Qed.
Lemma items_ok : forall G a (b : tm (TI :: G) a) r n i l s k, mseq (fun j => tick (evR b (Z.of_nat j, r))) (seq i n) = Some (l, s, k) ->
  evR (items b (Z.of_nat i) n) r = Some (l, S s, k).
Proof.
  induction n as [|n IH]; intros i l s k H; cbn [seq mseq items] in *; [inversion H; subst; reflexivity|]. crack. cbn [ev].
  match goal with H : mseq _ _ = Some _ |- _ => apply IH in H as H1 end. replace (Z.of_nat i + 1)%Z with (Z.of_nat (S i)) by lia.
  rewrite (@sb_ok R RO fuel _ _ b _ (one (tint G (Z.of_nat i))) (Z.of_nat i, r) r) by (apply one_ok; reflexivity).
  match goal with H : ev _ _ b _ = _ |- _ => rewrite H end. cbn [bind]. rewrite H1. cbn [bind tick op2v ret].
  apply f_equal. apply f_equal2; [apply f_equal2; [reflexivity|lia]|lia].
Qed.
(* a run of a condition, decided *)
Ltac branch := match goal with H : ev RO fuel ?p _ = Some (?v, _, _), E : match ?v with inl _ => _ | inr _ => _ end = _ |- _ => destruct v as [[]|[]] end.
Ltac unite := repeat match goal with
  | H : ev RO fuel ?a ?r = Some (?x, ?n, ?k), H' : ev RO fuel ?a ?r = Some (?y, ?n', ?k') |- _ => rewrite H in H'; injection H' as <- <- <-
  end.
Ltac conditional close := unite; branch; cbn [ev lit op0v] in *; crack;
  repeat match goal with H : ev RO fuel ?e ?r = Some _ |- context [ev RO fuel ?e ?r] => rewrite H end; cbn [bind tick ev lit];
  rewrite ?wk_ok; repeat match goal with H : ev RO fuel ?e ?r = Some _ |- context [ev RO fuel ?e ?r] => rewrite H end; cbn [bind tick ret];
  unfold guard; eexists _, _; (split; [refine (f_equal (fun w => Some (w, _, _)) _); cbn [o_prim1 o_prim2 o_lit RO sem1 sem2 litR]; cbn [den] in *; close
    |split; [simpl; lia|cbn [o_ok1 o_ok2 RO ok1 ok2]; repeat match goal with |- context [nz ?x] => destruct (nz x) end; simpl; lia]]).
Lemma fission_ok : forall G s t z (c : tm G s) (d : tm G t) a b, (0 < z)%Z ->
  improves (tloop (tint G z) (tpair c d) (both a b)) (tpair (tloop (tint G z) c a) (tloop (tint G z) d b)).
Proof.
  intros G s t z c d a b Hz r v n k E. destruct (@fission_exact fuel _ _ _ _ _ _ _ _ (atom_op0 _ _) _ _ _ _ E) as (w & n' & Ew & E' & Hn).
  inversion Ew; subst w. exists n', k. split; [exact E'|]. assert (1 <= Z.to_nat z) by lia. lia.
Qed.
Theorem rule_sound : forall G t (e e' : tm G t), rule e e' -> improves e e'.
Proof.
  destruct 1; [..|apply fission_ok; assumption]; intros r0 vr n0 k0 E; cbn [ev lit op0v op1v op2v] in E; crack;
    repeat match goal with H : guard _ _ = Some (_, _, _) |- _ => unfold guard in H; injection H as <- <- <- end; cbn [ev lit op0v op1v op2v].
  - (* by_law *) exact (@law_sound fuel _ _ _ _ H _ _ _ _ E).
  - (* fold_add *) eexists _, _. split; [|split]; [simpl; rewrite H; reflexivity| |]; lia.
  - (* fold_mul *) eexists _, _. split; [|split]; [simpl; rewrite H; reflexivity| |]; lia.
  - (* fold_int *) rewrite H in E. crack. eexists _, _. split; [reflexivity|lia].
  - (* fold_sub *) eexists _, _. split; [|split]; [simpl; rewrite H; reflexivity| |]; lia.
  - (* fold_neg *) eexists _, _. split; [|split]; [simpl; rewrite H; reflexivity| |]; lia.
  - (* fold_real *) eexists _, _. split; [|split]; [simpl; rewrite H; reflexivity| |]; lia.
  - (* fold_compare *) cbn [o_cmp o_lit RO]. unfold truth, boolv. destruct (decide c _); eexists _, _; (split; [reflexivity|split; [lia|apply Nat.le_0_l]]).
  - (* fold_intcmp *) unfold truth, boolv. destruct (decide c _); eexists _, _; (split; [reflexivity|lia]).
  - (* equal_self *) unite. rewrite Z.compare_refl. match goal with H : ev _ _ a _ = _ |- _ => pose proof (@Activity.ev_step _ _ _ _ _ _ _ _ _ _ H) end. eexists _, _. split; [reflexivity|lia].
  - (* less_self *) unite. rewrite Z.compare_refl. match goal with H : ev _ _ a _ = _ |- _ => pose proof (@Activity.ev_step _ _ _ _ _ _ _ _ _ _ H) end. eexists _, _. split; [reflexivity|lia].
  - (* let_out *) exact (@lift_let_sound fuel _ _ _ _ _ H _ _ _ _ E).
  - (* build_items *) rewrite Nat2Z.id in E. apply (@items_ok _ _ b r0 n 0) in E. eexists _, _. split; [exact E|lia].
  - (* mul_if *) conditional ltac:(ring).
  - (* mul_if_r *) conditional ltac:(ring).
  - (* mul_if_not *) conditional ltac:(ring).
  - (* mul_if_not_r *) conditional ltac:(ring).
  - (* div_if *) conditional ltac:(unfold Rdiv; ring).
  - (* neg_if *) conditional ltac:(ring).
  - (* add_if *) conditional ltac:(ring).
  - (* beta *) destruct (@atom_value R RO fuel _ _ _ H r0) as (w & Hw).
    rewrite (@sb_ok R RO fuel _ _ e _ (one v) (w, r0) r0) by (apply one_ok, Hw).
    match goal with H1 : ev _ _ v _ = Some _ |- _ => rewrite Hw in H1; inversion H1; subst end.
    eexists _, _. split; [eassumption|lia].
  - (* beta_let *) back. simpl. match goal with H : ev _ _ e _ = _ |- _ => rewrite H end. eexists _, _. split; [reflexivity|lia].
  - (* let_atom *) destruct (@atom_value R RO fuel _ _ _ H r0) as (w & Hw).
    rewrite (@sb_ok R RO fuel _ _ e _ (one v) (w, r0) r0) by (apply one_ok, Hw).
    match goal with H1 : ev _ _ v _ = Some _ |- _ => rewrite Hw in H1; inversion H1; subst end.
    eexists _, _. split; [eassumption|lia].
  - (* let_dead *) rewrite wk_ok in E. eexists _, _. split; [eassumption|lia].
  - (* let_let *) match goal with H : ev _ _ x _ = _ |- _ => rewrite H end. simpl. match goal with H : ev _ _ y _ = _ |- _ => rewrite H end. simpl.
    rewrite rn_up, E. eexists _, _. split; [reflexivity|lia].
  - (* let_swap *) match goal with H : ev _ _ (wk _ y) _ = _ |- _ => rewrite wk_ok in H; rewrite H end. cbn [bind]. rewrite wk_ok.
    match goal with H : ev _ _ x _ = Some (?p, _, _), H' : ev _ _ y _ = Some (?q, _, _) |- _ => rewrite H; cbn [bind];
      assert (@sok R RO fuel (b :: a :: b :: G) (a :: b :: G) (one v1) (q, (p, (q, r0))) (p, (q, r0))) as S1 by (apply one_ok; reflexivity);
      assert (@rok R (b :: a :: G) (b :: a :: b :: G) (up (up (@shift G b))) (q, (p, r0)) (q, (p, (q, r0)))) as S2 by (repeat apply (@up_ok R); intros ? ?; reflexivity) end.
    match type of E with _ = ?result => match goal with |- context [ev RO fuel (sb ?s ?o) ?d] =>
      assert (ev RO fuel (sb s o) d = result) as Q by exact (eq_trans (@sb_ok R RO fuel _ _ _ _ _ _ _ S1) (eq_trans (@rn_ok R RO fuel _ _ e _ _ _ _ S2) E)) end end.
    rewrite Q. eexists _, _. split; [reflexivity|lia].
  - (* fst_pair *) eexists _, _. split; [eassumption|lia].
  - (* snd_pair *) eexists _, _. split; [eassumption|lia].
  - (* case_inl *) match goal with H : ev _ _ x _ = _ |- _ => eexists _, _; split; [exact (@tbind _ _ _ _ _ _ _ _ _ _ H E)|lia] end.
  - (* case_inr *) match goal with H : ev _ _ x _ = _ |- _ => eexists _, _; split; [exact (@tbind _ _ _ _ _ _ _ _ _ _ H E)|lia] end.
  - (* unnode_node *) back. eexists _, _. split; [simpl; reflexivity|simpl; lia].
  - (* if_same *) match goal with H : ev _ _ p _ = Some (?v, _, _) |- _ => destruct v end; rewrite wk_ok in E; eexists _, _; (split; [eassumption|lia]).
  - (* if_truth *) match goal with H : ev _ _ p _ = Some (?v, _, _) |- _ => destruct v as [[]|[]] end; cbn [ev op0v op1v] in E; crack;
      eexists _, _; (split; [eassumption|lia]).
  - (* if_not *) match goal with H : ev _ _ p _ = Some (?v, _, _) |- _ => rewrite H; destruct v as [[]|[]] end; crack; cbn [tick bind];
      rewrite E; eexists _, _; (split; [reflexivity|lia]).
  - (* let_app *) match goal with H : ev _ _ x _ = Some (?v, _, _), H' : ev _ _ y _ = _ |- _ => rewrite H; cbn [bind]; rewrite wk_ok, H' end.
    match goal with H : ev _ _ f _ = _ |- _ => rewrite H end. cbn [bind]. rewrite E. eexists _, _. split; [reflexivity|lia].
  - (* loop_zero *) simpl in E. crack. eexists _, _. split; [eassumption|lia].
  - (* loop_succ *) rewrite Z2Nat.inj_add in E by lia. rewrite Nat.add_1_r in E. cbn [miter] in E. crack. rewrite Z2Nat.id in E by lia.
    match goal with Hz : ev _ _ z _ = _, Hm : miter _ _ _ = Some (?w, _, _) |- _ => rewrite Hz; cbn [tick bind ret]; rewrite Hm; cbn [tick bind];
      rewrite (@sb_ok R RO fuel _ _ b _ (ups (one (tint G n))) (w, (n, r0)) (w, r0)) by (apply ups_ok, one_ok; reflexivity) end.
    rewrite E. eexists _, _. split; [reflexivity|lia].
  - (* loop_same *) match goal with H : ev _ _ z _ = Some (?w, ?m, ?q), Hm : miter _ _ _ = _ |- _ => assert (w = vr) as <-; [|exists m, q; split; [exact H|lia]] end.
    match goal with Hm : miter ?N _ _ = _ |- _ => clear - Hm; revert Hm; generalize N end. intros N. revert vr x7 x8.
    induction N as [|N IH]; cbn [miter]; intros vr n1 k1 E; crack; auto. inversion E; subst. eapply IH. eassumption.
  - (* get_first *) cbn in E. crack. eexists _, _. split; [eassumption|lia].
  - (* get_next *) unfold mget in *. assert ((n + 1 <? 0)%Z = false) as Q by (apply Z.ltb_ge; lia). rewrite Q in E.
    rewrite Z2Nat.inj_add, Nat.add_1_r in E by lia. cbn [nth_error] in E. assert ((n <? 0)%Z = false) as Q' by (apply Z.ltb_ge; lia).
    match goal with H : ev _ _ l _ = _ |- _ => rewrite H end. cbn [tick bind ret]. rewrite Q'.
    destruct (nth_error _ _) in *; crack; try discriminate. eexists _, _. split; [reflexivity|lia].
  - (* get_build *)
    match goal with H : mseq _ _ = _, H' : ev _ _ i _ = _ |- _ => destruct (@get_build_ok _ _ b i _ _ _ _ _ _ _ _ _ _ _ H H' E) as (n' & k' & P1 & P2 & P3) end.
    exists n', k'. split; [exact P1|lia].
  - (* map_map *) match goal with H : ev _ _ l _ = _, H' : mseq _ _ = Some (?q, _, _), H'' : mseq _ ?q = _ |- _ =>
      eexists _, _; split; [exact (@tbind _ _ _ _ _ _ _ _ _ _ H (@map_map_ok _ _ _ _ _ g f (fun x => x) _ _ _ _ _ _ _ _ H' H''))|lia] end.
  - (* map_build *) match goal with H : ev _ _ n _ = _, H' : mseq _ _ = Some (?q, _, _), H'' : mseq _ ?q = _ |- _ =>
      eexists _, _; split; [exact (@tbind _ _ _ _ _ _ _ _ _ _ H (@map_map_ok _ _ _ _ _ g f Z.of_nat _ _ _ _ _ _ _ _ H' H''))|lia] end.
Qed.

(* ---- rewriting anywhere ------------------------------------------------------------------------------------ *)
Definition atmost (a b : nat) : Prop := a <= b.
Notation leV := (le R atmost atmost).
Notation leR := (leE R atmost atmost).
Notation leC := (leM atmost atmost).
Definition refines {G t} (e e' : tm G t) : Prop := forall r r', leR G r r' -> leC (leV t) (evR e r) (evR e' r').
Lemma am_refl : forall n, atmost n n.
Proof. unfold atmost. auto. Qed.
Lemma am_plus : forall a b c d, atmost a b -> atmost c d -> atmost (a + c) (b + d).
Proof. unfold atmost. lia. Qed.
Lemma self : forall G t (e : tm G t), refines e e.
Proof. intros G t e r r' Hr. exact (@fundamental_le R RO atmost atmost am_refl am_refl am_plus am_plus fuel fuel (le_n _) G t e r r' Hr). Qed.

Inductive rw : forall G t, tm G t -> tm G t -> Prop :=
| rw_rule : forall G t (e e' : tm G t), rule e e' -> rw e e'
| rw_refl : forall G t (e : tm G t), rw e e
| rw_lam : forall G a b (e e' : tm (a :: G) b), rw e e' -> rw (tlam e) (tlam e')
| rw_app : forall G a b (f f' : tm G (TFun a b)) x x', rw f f' -> rw x x' -> rw (tapp f x) (tapp f' x')
| rw_let : forall G a b (x x' : tm G a) (e e' : tm (a :: G) b), rw x x' -> rw e e' -> rw (tlet x e) (tlet x' e')
| rw_fix : forall G a b (e e' : tm (a :: TFun a b :: G) b), rw e e' -> rw (tfix e) (tfix e')
| rw_case : forall G a b c (s s' : tm G (TSum a b)) (l l' : tm (a :: G) c) (r r' : tm (b :: G) c), rw s s' -> rw l l' -> rw r r' -> rw (tcase s l r) (tcase s' l' r')
| rw_op1 : forall G a b (o : op1 a b) (x x' : tm G a), rw x x' -> rw (top1 o x) (top1 o x')
| rw_op2 : forall G a b c (o : op2 a b c) (x x' : tm G a) y y', rw x x' -> rw y y' -> rw (top2 o x y) (top2 o x' y')
| rw_op3 : forall G a b c d (o : op3 a b c d) (x x' : tm G a) y y' z z', rw x x' -> rw y y' -> rw z z' -> rw (top3 o x y z) (top3 o x' y' z')
| rw_loop : forall G a (n n' : tm G TI) (z z' : tm G a) b b', rw n n' -> rw z z' -> rw b b' -> rw (tloop n z b) (tloop n' z' b')
| rw_build : forall G a (n n' : tm G TI) (b b' : tm (TI :: G) a), rw n n' -> rw b b' -> rw (tbuild n b) (tbuild n' b')
| rw_map : forall G a b (f f' : tm (a :: G) b) l l', rw f f' -> rw l l' -> rw (tmap f l) (tmap f' l')
| rw_fold : forall G a b (f f' : tm (a :: b :: G) b) z z' l l', rw f f' -> rw z z' -> rw l l' -> rw (tfold f z l) (tfold f' z' l')
| rw_prim1 : forall G p (x x' : tm G TR), rw x x' -> rw (tprim1 p x) (tprim1 p x')
| rw_prim2 : forall G p (x x' y y' : tm G TR), rw x x' -> rw y y' -> rw (tprim2 p x y) (tprim2 p x' y')
| rw_primi : forall G p (x x' : tm G TR) y y', rw x x' -> rw y y' -> rw (tprimi p x y) (tprimi p x' y')
| rw_cmp : forall G c (x x' y y' : tm G TR), rw x x' -> rw y y' -> rw (tcmp c x y) (tcmp c x' y')
| rw_round : forall G k (x x' : tm G TR), rw x x' -> rw (tround k x) (tround k x')
| rw_real : forall G (x x' : tm G TI), rw x x' -> rw (treal x) (treal x')
| rw_sum : forall G (x x' : tm G (TArr TR)), rw x x' -> rw (tsum x) (tsum x')
| rw_dot : forall G (x x' y y' : tm G (TArr TR)), rw x x' -> rw y y' -> rw (tdot x y) (tdot x' y').
(* apply a lemma of Refinement.v, whose hypotheses on counts hold for [atmost] *)
Ltac L lem := eapply lem; try exact am_refl; try exact am_plus.
Ltac lb H := eapply le_bind; try exact am_refl; try exact am_plus; [apply H; eassumption|].
Theorem rw_sound : forall G t (e e' : tm G t), rw e e' -> refines e e'.
Proof.
  induction 1; intros r1 r2 Hr;
    try (cbn [ev]; L le_tick).
  - intros v n k E. destruct (@rule_sound _ _ _ _ H r1 _ _ _ E) as (n' & k' & E' & H1 & H2).
    destruct (@self _ _ e' r1 r2 Hr _ _ _ E') as (w & n'' & k'' & E'' & H3 & H4 & H5). exists w, n'', k''. unfold atmost in *. split; auto. split; auto. lia.
  - intros v n k E. exact (@self _ _ e r1 r2 Hr _ _ _ E).
  - L le_ret. intros x y Hxy. apply IHrw. split; auto.
  - lb IHrw1. intros f1 g1 Hf. lb IHrw2. intros x1 y1 Hx. apply Hf, Hx.
  - lb IHrw1. intros x1 y1 Hx. apply IHrw2. split; auto.
  - L le_ret. L le_kleene; [auto|]. intros f g x y Hf Hx. apply IHrw. split; [exact Hx|split; [exact Hf|exact Hr]].
  - lb IHrw1. intros [x|x] [y|y] Hx; simpl in Hx; try contradiction; [apply IHrw2|apply IHrw3]; split; auto.
  - lb IHrw. intros x1 y1 Hx. L le_op1. exact Hx.
  - lb IHrw1. intros x1 y1 Hx. lb IHrw2. intros x2 y2 Hy. L le_op2; auto.
  - lb IHrw1. intros x1 y1 Hx. lb IHrw2. intros x2 y2 Hy. lb IHrw3. intros x3 y3 Hz. L le_op3; auto.
  - lb IHrw1. intros x y ->. lb IHrw2. intros u v Hu. L le_iter; [|exact Hu].
    intros i p q Hp. apply IHrw3. split; [exact Hp|split; [reflexivity|exact Hr]].
  - lb IHrw1. intros x y ->. eapply le_seq with (P := eq); try exact am_refl; try exact am_plus.
    + intros i j ->. L le_tick. apply IHrw2. split; [reflexivity|exact Hr].
    + induction (seq 0 (Z.to_nat y)); constructor; auto.
  - lb IHrw2. intros x y Hx. L le_seq; [|exact Hx]. intros p q Hp. L le_tick. apply IHrw1. split; auto.
  - lb IHrw2. intros u v Hu. lb IHrw3. intros x y Hx. L le_fold; [|exact Hx|exact Hu].
    intros p q w z0 Hp Hw. apply IHrw1. split; [exact Hp|split; [exact Hw|exact Hr]].
  - lb IHrw. intros x1 y1 ->. L le_same.
  - lb IHrw1. intros x1 y1 ->. lb IHrw2. intros x2 y2 ->. L le_same.
  - lb IHrw1. intros x1 y1 ->. lb IHrw2. intros x2 y2 ->. L le_same.
  - lb IHrw1. intros x1 y1 ->. lb IHrw2. intros x2 y2 ->.
    intros a n0 k0 E. exists a, n0, k0. split; auto. split; [|unfold atmost; auto]. destruct a as [[]|[]]; exact (eq_refl tt).
  - lb IHrw. intros x1 y1 ->. L le_same.
  - lb IHrw. intros x1 y1 ->. L le_same.
  - lb IHrw. intros x1 y1 Hx. apply reals_eq in Hx. subst. L le_same.
  - lb IHrw1. intros x1 y1 Hx. lb IHrw2. intros x2 y2 Hy. apply reals_eq in Hx. apply reals_eq in Hy. subst. L le_same.
Qed.

(* at data types, related is equal *)
Lemma le_data : forall t, data t = true -> forall x y, leV t x y <-> x = y.
Proof.
  induction t; simpl; intros Ht x y; try discriminate; try (apply andb_prop in Ht as [Ht1 Ht2]); try tauto.
  - destruct x as [x1 x2], y as [y1 y2]. simpl. rewrite (IHt1 Ht1), (IHt2 Ht2). split; [intros [-> ->]; auto|intros E; inversion E; auto].
  - destruct x as [x|x], y as [y|y]; try rewrite (IHt1 Ht1); try rewrite (IHt2 Ht2); split; intros E; try contradiction; try discriminate; try (inversion E; auto); congruence.
  - revert y. induction x as [|x l IH]; intros y; split; intros E.
    + inversion E; auto.
    + subst. constructor.
    + inversion E as [|? y' ? l' Hy Hl]; subst. f_equal; [now apply IHt|now apply IH].
    + subst. constructor; [now apply IHt|now apply IH].
  - revert y. induction x as [x l IH] using tree_ind'. intros [y l'].
    assert (forall l', Forall2 (tree2 (leV t)) l l' <-> l = l') as HL.
    { clear y l'. induction IH as [|z l Hz _ IHl]; intros l'; split; intros E.
      - inversion E; auto.
      - subst. constructor.
      - inversion E as [|? z' ? l2 Hy Hl]; subst. f_equal; [now apply Hz|now apply IHl].
      - subst. constructor; [now apply Hz|now apply IHl]. }
    split; intros E.
    + inversion E as [? ? ? ? E1 E2]; subst. f_equal; [now apply IHt|now apply HL].
    + inversion E; subst. constructor; [now apply IHt|now apply HL].
Qed.
Lemma leE_data : forall G, datas G = true -> forall r, leR G r r.
Proof. induction G as [|t G IH]; simpl; intros H r; auto. apply andb_prop in H as [H1 H2]. split; auto. now apply le_data. Qed.
Inductive rewrites : forall G t, tm G t -> tm G t -> Prop :=
| rewrites_done : forall G t (e : tm G t), rewrites e e
| rewrites_step : forall G t (e e1 e2 : tm G t), rw e e1 -> rewrites e1 e2 -> rewrites e e2.
Theorem rewriting_sound : forall G t (e e' : tm G t), rewrites e e' -> datas G = true -> data t = true ->
  forall r v n k, evR e r = Some (v, n, k) -> exists n' k', evR e' r = Some (v, n', k') /\ n' <= n /\ k' <= k.
Proof.
  induction 1 as [|G t e e1 e2 H1 H2 IH]; intros HG Ht r v n k E.
  - exists n, k. auto.
  - destruct (@rw_sound _ _ _ _ H1 r r (leE_data G HG r) _ _ _ E) as (w & n1 & k1 & E1 & Hw & B1 & B2). apply (le_data t Ht) in Hw. subst w.
    destruct (IH HG Ht _ _ _ _ E1) as (n2 & k2 & E2 & B3 & B4). exists n2, k2. unfold atmost in *. split; [exact E2|lia].
Qed.
End Fuel.
