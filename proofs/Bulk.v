(* The bulk array operations of the standard library, which are sum, dot, map, reduce, gather, scatter-add, transpose, matrix times vector, matrix product.
   In Gradus they are no primitives and have no rule of their own: they are functions of library/prelude.gr, made of [build], [ifold], [a.(i)],
   [set] and arithmetic, and it is their text that is differentiated.  Here is that text (a test compares the quotations with the library), so every
   theorem covers them; and they are shown to compute what their names say.  ([sum] and [dot] exist also as constructs with a rule, in
   Language.v, and compute the same.) *)
From Coq Require Import Reals List Lia Lra ZArith.
Require Import Language Primitive Germ Macro.
Import ListNotations.
Open Scope nat_scope.
Set Implicit Arguments.
Unset Asymmetric Patterns.
Arguments Nat.mul : simpl never.

Notation TMat := (TArr (TArr TR)).
(* library: ifold (length a) (fun i total -> total + a.(i)) 0.0 *)
Definition sum {G} (a : tm G (TArr TR)) : tm G TR :=
  tlet a (tloop (tlen v0) (lit 0) (tadd v0 (tget v2 v1))).
(* library: ifold (length a) (fun i total -> total + a.(i) * b.(i)) 0.0 *)
Definition dot {G} (a b : tm G (TArr TR)) : tm G TR :=
  let2 a b (tloop (tlen v1) (lit 0) (tadd v0 (tmul (tget v3 v1) (tget v2 v1)))).
(* library: build (length a) (fun i -> f a.(i)) *)
Definition map_ {G a b} (f : tm G (TFun a b)) (x : tm G (TArr a)) : tm G (TArr b) :=
  let2 f x (tbuild (tlen v0) (tapp v2 (tget v1 v0))).
(* library: ifold (length a) (fun i total -> join total a.(i)) neutral *)
Definition reduce {G a} (join : tm G (TFun a (TFun a a))) (neutral : tm G a) (x : tm G (TArr a)) : tm G a :=
  tapp (let2 join neutral (tlam (tloop (tlen v0) v1 (tapp (tapp (tvar (Pop (Pop (Pop (Pop Top))))) v0) (tget v2 v1))))) x.
(* library: map (fun i -> a.(i)) places *)
Definition gather {G a} (x : tm G (TArr a)) (places : tm G (TArr TI)) : tm G (TArr a) :=
  let2 x places (map_ (tlam (tget v2 v0)) v0).
(* library: ifold (length places) (fun k b -> let i = places.(k) in set b i (b.(i) <+> values.(k))) a
   here of reals, at which <+> is + *)
Definition scatter_add {G} (x : tm G (TArr TR)) (places : tm G (TArr TI)) (values : tm G (TArr TR)) : tm G (TArr TR) :=
  tapp (let2 x places (tlam (tloop (tlen v1) v2 (tlet (tget v3 v1) (top3 (OSet TR) v1 v0 (tadd (tget v1 v0) (tget v3 v2))))))) values.
(* library: let columns = if length a = 0 then 0 else length a.(0) in
   library: build columns (fun j -> build (length a) (fun i -> a.(i).(j))) *)
Definition transpose {G a} (x : tm G (TArr (TArr a))) : tm G (TArr (TArr a)) :=
  tlet x (tlet (tif (top2 (OIntcmp CEq) (tlen v0) (tint _ 0)) (tint _ 0) (tlen (tget v1 (tint _ 0))))
    (tbuild v0 (tbuild (tlen v2) (tget (tget v3 v0) v1)))).
(* library: map (fun row -> dot row x) a *)
Definition matvec {G} (a : tm G TMat) (x : tm G (TArr TR)) : tm G (TArr TR) := let2 a x (map_ (tlam (dot v0 v1)) v1).
(* library: let columns = transpose b in
   library: map (fun row -> map (fun column -> dot row column) columns) a *)
Definition matmul {G} (a b : tm G TMat) : tm G TMat :=
  let2 a b (tlet (transpose v0) (map_ (tlam (map_ (tlam (dot v1 v0)) v1)) v2)).

Definition dotR (x y : list R) : R := fold_left Rplus (map (fun p => fst p * snd p)%R (combine x y)) 0%R.
(* column j of a matrix whose rows are long enough *)
Definition columnR (j : nat) (rows : list (list R)) : list R := map (fun row => nth j row 0%R) rows.
Fixpoint scatterR (l : list R) (is : list Z) (us : list R) : list R :=
  match is, us with i :: is, u :: us => scatterR (update l (Z.to_nat i) (nth (Z.to_nat i) l 0 + u)%R) is us | _, _ => l end.

Lemma mget_nth : forall A (l : list A) d i, i < length l -> mget l (Z.of_nat i) = ret (nth i l d).
Proof.
  intros A l d i H. unfold mget. destruct (Z.ltb_spec (Z.of_nat i) 0) as [?|_]; [lia|]. rewrite Nat2Z.id, (nth_error_nth' l d H). reflexivity.
Qed.
Lemma mseq_value : forall A B (f : A -> M B) (g : A -> B) l, (forall a, In a l -> exists n, f a = Some (g a, n, 0)) ->
  exists n, mseq f l = Some (map g l, n, 0).
Proof.
  intros A B f g. induction l as [|a l IH]; intros H; simpl; [eexists; reflexivity|].
  destruct (H a) as (n1 & E1); [now left|]. destruct IH as (n2 & E2); [intros b Hb; apply H; now right|].
  rewrite E1. cbn [bind]. rewrite E2. eexists. reflexivity.
Qed.
(* a loop is a fold over the indices; P holds of every state *)
Lemma miter_value : forall A (body : nat -> A -> M A) (g : nat -> A -> A) (P : A -> Prop) n z, P z ->
  (forall i a, i < n -> P a -> P (g i a) /\ exists c, body i a = Some (g i a, c, 0)) ->
  exists c, miter n body z = Some (fold_left (fun a i => g i a) (seq 0 n) z, c, 0) /\ P (fold_left (fun a i => g i a) (seq 0 n) z).
Proof.
  intros A body g P n z Hz. induction n as [|n IH]; intros H; [eexists; split; [reflexivity|exact Hz]|].
  destruct IH as (c & E & HP); [intros i a Hi; apply H; lia|]. rewrite seq_S, fold_left_app. cbn [miter fold_left]. rewrite E. cbn [bind].
  destruct (H n _ (Nat.lt_succ_diag_r n) HP) as (HP' & c' & E'). cbn [Nat.add]. rewrite E'. eexists. split; [reflexivity|exact HP'].
Qed.
Lemma seq_nths : forall A (l : list A) d, map (fun i => nth i l d) (seq 0 (length l)) = l.
Proof.
  intros A l d. induction l as [|a l IH]; [reflexivity|]. cbn [length seq map]. rewrite <- seq_shift, map_map. cbn [nth]. now rewrite IH.
Qed.
Lemma fold_nths : forall A B (f : B -> A -> B) (l : list A) d z, fold_left (fun b i => f b (nth i l d)) (seq 0 (length l)) z = fold_left f l z.
Proof.
  intros A B f l d z. rewrite <- (seq_nths l d) at 2. generalize (seq 0 (length l)). intros is. revert z. induction is; intros z; simpl; auto.
Qed.
Lemma bind_some : forall A B (m : M A) (f : A -> M B) a b n, m = Some (a, n, 0) -> (exists c, f a = Some (b, c, 0)) -> exists c, bind m f = Some (b, c, 0).
Proof. intros A B m f a b n -> (c & E). cbn [bind]. rewrite E. eexists. reflexivity. Qed.
Lemma tick_some : forall A (m : M A) a, (exists c, m = Some (a, c, 0)) -> exists c, tick m = Some (a, c, 0).
Proof. intros A m a (c & ->). eexists. reflexivity. Qed.

Lemma nth_products : forall x y i, length x = length y -> nth i (map (fun p => fst p * snd p)%R (combine x y)) 0%R = (nth i x 0 * nth i y 0)%R.
Proof. induction x as [|a x IH]; intros [|b y] [|i] H; try discriminate; simpl; try ring. apply IH. simpl in H. lia. Qed.

Section Meaning.
Variable fuel : nat.
Notation evR e := (ev RO fuel e).
Notation returns e r v := (exists n, evR e r = Some (v, n, 0)).
Lemma let_value : forall G a b (x : tm G a) (e : tm (a :: G) b) r p v, returns x r p -> returns e (p, r) v -> returns (tlet x e) r v.
Proof. intros G a b x e r p v (n & E) H. cbn [ev]. apply tick_some. eapply bind_some; eassumption. Qed.
Lemma let2_value : forall G a b c (x : tm G a) (y : tm G b) (e : tm (b :: a :: G) c) r p q v, returns x r p -> returns y r q ->
  returns e (q, (p, r)) v -> returns (let2 x y e) r v.
Proof.
  intros G a b c x y e r p q v (n1 & E1) (n2 & E2) (n3 & E3). rewrite let2_ev, E1, E2. cbn [bind]. rewrite E3. eexists. reflexivity.
Qed.
Lemma loop_value : forall G a (n : tm G TI) (z : tm G a) (b : tm (a :: TI :: G) a) r k x v, returns n r (Z.of_nat k) -> returns z r x ->
  (exists c, miter k (fun i acc => evR b (acc, (Z.of_nat i, r))) x = Some (v, c, 0)) -> returns (tloop n z b) r v.
Proof.
  intros G a n z b r k x v (n1 & E1) (n2 & E2) H. cbn [ev]. apply tick_some. eapply bind_some; [exact E1|]. eapply bind_some; [exact E2|].
  rewrite Nat2Z.id. exact H.
Qed.
Lemma build_value : forall G a (n : tm G TI) (b : tm (TI :: G) a) r k v, returns n r (Z.of_nat k) ->
  (exists c, mseq (fun i => tick (evR b (Z.of_nat i, r))) (seq 0 k) = Some (v, c, 0)) -> returns (tbuild n b) r v.
Proof. intros G a n b r k v (n1 & E1) H. cbn [ev]. apply tick_some. eapply bind_some; [exact E1|]. rewrite Nat2Z.id. exact H. Qed.
Lemma app_value : forall G a b (f : tm G (TFun a b)) (x : tm G a) r F p v, returns f r F -> returns x r p ->
  (exists c, F p = Some (v, c, 0)) -> returns (tapp f x) r v.
Proof. intros G a b f x r F p v (n1 & E1) (n2 & E2) H. cbn [ev]. apply tick_some. eapply bind_some; [exact E1|]. eapply bind_some; [exact E2|exact H]. Qed.
Lemma get_value : forall G a (x : tm G (TArr a)) (i : tm G TI) r (l : list (den R a)) k d, returns x r l -> returns i r (Z.of_nat k) -> k < length l ->
  returns (tget x i) r (nth k l d).
Proof.
  intros G a x i r l k d (n1 & E1) (n2 & E2) H. cbn [ev]. apply tick_some. eapply bind_some; [exact E1|]. eapply bind_some; [exact E2|].
  exists 0. exact (mget_nth l d H).
Qed.
Lemma set_value : forall G a (x : tm G (TArr a)) (i : tm G TI) (e : tm G a) r (l : list (den R a)) k w, returns x r l -> returns i r (Z.of_nat k) -> returns e r w ->
  k < length l -> returns (top3 (OSet a) x i e) r (update l k w).
Proof.
  intros G a x i e r l k w (n1 & E1) (n2 & E2) (n3 & E3) H. cbn [ev]. apply tick_some. eapply bind_some; [exact E1|]. eapply bind_some; [exact E2|].
  eapply bind_some; [exact E3|]. exists 0.
  rewrite <- (Nat2Z.id k) at 2. exact (f_equal (fun m => bind m (fun _ => ret (update l (Z.to_nat (Z.of_nat k)) w))) (mget_nth l w H)).
Qed.
Lemma add_value : forall G (a b : tm G TR) r x y, returns a r x -> returns b r y -> returns (tadd a b) r (x + y)%R.
Proof. intros G a b r x y (n1 & E1) (n2 & E2). cbn [ev]. rewrite E1, E2. eexists. reflexivity. Qed.
Theorem sum_value : forall G (a : tm G (TArr TR)) r (l : list R), returns a r l -> returns (sum a) r (fold_left Rplus l 0%R).
Proof.
  intros G a r l H. apply let_value with (p := l); [exact H|]. apply loop_value with (k := length l) (x := 0%R); [eexists; reflexivity|eexists; reflexivity|].
  rewrite <- (fold_nths Rplus l 0%R 0%R).
  destruct (@miter_value R (fun i acc => evR (tadd v0 (tget v2 v1)) ((acc, (Z.of_nat i, (l, r))) : env R (TR :: TI :: TArr TR :: G)))
    (fun i acc => acc + nth i l 0)%R (fun _ => True) (length l) 0%R I) as (c & E & _).
  - intros i acc Hi _. split; [exact I|]. cbn [ev v0 v1 v2 look fst snd bind ret tick op2v]. rewrite (mget_nth l 0%R Hi). eexists. reflexivity.
  - eexists. exact E.
Qed.
Theorem dot_value : forall G (a b : tm G (TArr TR)) r (x y : list R), returns a r x -> returns b r y -> length x = length y -> returns (dot a b) r (dotR x y).
Proof.
  intros G a b r x y Ha Hb Hl. apply let2_value with (p := x) (q := y); auto. apply loop_value with (k := length x) (x := 0%R); [eexists; reflexivity|eexists; reflexivity|].
  destruct (@miter_value R (fun i acc => evR (tadd v0 (tmul (tget v3 v1) (tget v2 v1))) ((acc, (Z.of_nat i, (y, (x, r)))) : env R (TR :: TI :: TArr TR :: TArr TR :: G)))
    (fun i acc => acc + nth i x 0 * nth i y 0)%R (fun _ => True) (length x) 0%R I) as (c & E & _).
  - intros i acc Hi _. split; [exact I|]. cbn [ev v0 v1 v2 v3 look fst snd bind ret tick op2v].
    rewrite (mget_nth x 0%R Hi), (@mget_nth _ y 0%R i) by lia. eexists. reflexivity.
  - exists c. refine (eq_trans E _). apply (f_equal (fun w => Some (w, c, 0))). clear E. unfold dotR.
    assert (length (map (fun p => fst p * snd p)%R (combine x y)) = length x) as Hc by (rewrite map_length, combine_length; lia).
    rewrite <- (fold_nths Rplus _ 0%R 0%R), Hc.
    assert (forall i, i < length x -> nth i (map (fun p => fst p * snd p)%R (combine x y)) 0%R = (nth i x 0 * nth i y 0)%R) as En.
    { intros i _. apply nth_products, Hl. }
    clear c Hc. revert En. generalize (map (fun p => fst p * snd p)%R (combine x y)). intros l En.
    assert (forall n, n <= length x -> fold_left (fun a i => (a + nth i x 0 * nth i y 0)%R) (seq 0 n) 0%R = fold_left (fun b i => (b + nth i l 0)%R) (seq 0 n) 0%R) as F.
    { induction n; intros Hn; [reflexivity|]. rewrite seq_S, !fold_left_app, IHn by lia. cbn [fold_left Nat.add]. rewrite En by lia. reflexivity. }
    apply F. lia.
Qed.
(* f is given by what it returns on the elements *)
Theorem map_value : forall G a b (f : tm G (TFun a b)) (x : tm G (TArr a)) r F l (h : den R a -> den R b), returns f r F -> returns x r l ->
  (forall p, In p l -> exists n, F p = Some (h p, n, 0)) -> returns (map_ f x) r (map h l).
Proof.
  intros G a b f x r F l h Hf Hx H. apply let2_value with (p := F) (q := l); auto. apply build_value with (k := length l); [eexists; reflexivity|].
  destruct l as [|d l0]; [eexists; reflexivity|]. set (l := d :: l0) in *.
  destruct (@mseq_value _ _ (fun i => tick (evR (tapp v2 (tget v1 v0)) ((Z.of_nat i, (l, (F, r))) : env R (TI :: TArr a :: TFun a b :: G)))) (fun i => h (nth i l d)) (seq 0 (length l))) as (n & E).
  - intros i Hi. apply in_seq in Hi. apply tick_some. eapply app_value; [eexists; reflexivity| |].
    + apply get_value with (d := d) (l := l); [eexists; reflexivity|eexists; reflexivity|lia].
    + apply H, nth_In. lia.
  - exists n. rewrite <- (seq_nths l d) at 2. rewrite map_map. exact E.
Qed.
Lemma lam_value : forall G a b (e : tm (a :: G) b) r, returns (tlam e) r (fun x => evR e (x, r)).
Proof. intros. eexists. reflexivity. Qed.
Theorem gather_value : forall G (x : tm G (TArr TR)) (places : tm G (TArr TI)) r (l : list R) (is : list Z), returns x r l -> returns places r is ->
  (forall k, In k is -> (0 <= k < Z.of_nat (length l))%Z) -> returns (gather x places) r (map (fun k => nth (Z.to_nat k) l 0%R) is).
Proof.
  intros G x places r l is Hx Hp Hk. apply let2_value with (p := l) (q := is); auto.
  eapply (@map_value _ TI TR); [apply lam_value|eexists; reflexivity|].
  intros k Hi. specialize (Hk k Hi). assert (Z.to_nat k < length l) as Hn by lia.
  refine (@get_value _ TR v2 v0 ((k, (is, (l, r))) : env R (TI :: TArr TI :: TArr TR :: G)) l (Z.to_nat k) 0%R _ _ Hn); [eexists; reflexivity|].
  rewrite Z2Nat.id by lia. eexists. reflexivity.
Qed.
Theorem matvec_value : forall G (a : tm G TMat) (x : tm G (TArr TR)) r (rows : list (list R)) (v : list R), returns a r rows -> returns x r v ->
  (forall row, In row rows -> length row = length v) -> returns (matvec a x) r (map (fun row => dotR row v) rows).
Proof.
  intros G a x r rows v Ha Hx Hl. apply let2_value with (p := rows) (q := v); auto.
  eapply (@map_value _ (TArr TR) TR); [apply lam_value|eexists; reflexivity|].
  intros row Hr. apply dot_value; [eexists; reflexivity|eexists; reflexivity|]. apply Hl, Hr.
Qed.
(* a matrix without rows has no columns *)
Theorem transpose_value : forall G (x : tm G TMat) r (rows : list (list R)) m, returns x r rows -> (forall row, In row rows -> length row = m) ->
  returns (transpose x) r (map (fun j => columnR j rows) (seq 0 (match rows with nil => 0 | _ => m end))).
Proof.
  intros G x r rows m Hx Hm. apply let_value with (p := rows); auto.
  apply let_value with (p := Z.of_nat (match rows with nil => 0 | _ => m end)).
  - destruct rows as [|row rows]; [eexists; reflexivity|]. rewrite <- (Hm row) by (now left). eexists. reflexivity.
  - apply build_value with (k := match rows with nil => 0 | _ => m end); [eexists; reflexivity|].
    destruct (@mseq_value _ _ (fun j => tick (evR (tbuild (tlen v2) (tget (tget v3 v0) v1)) ((Z.of_nat j, (Z.of_nat (match rows with nil => 0 | _ => m end), (rows, r))) : env R (TI :: TI :: TMat :: G))))
      (fun j => columnR j rows) (seq 0 (match rows with nil => 0 | _ => m end))) as (n & E); [|exists n; exact E].
    intros j Hj. apply in_seq in Hj. assert (j < m) as Hjm by (destruct rows; lia). apply tick_some.
    apply build_value with (k := length rows); [eexists; reflexivity|].
    destruct (@mseq_value _ _ (fun i => tick (evR (tget (tget v3 v0) v1) ((Z.of_nat i, (Z.of_nat j, (Z.of_nat (match rows with nil => 0 | _ => m end), (rows, r)))) : env R (TI :: TI :: TI :: TMat :: G))))
      (fun i => nth j (nth i rows nil) 0%R) (seq 0 (length rows))) as (n & E).
    + intros i Hi. apply in_seq in Hi. apply tick_some. apply get_value with (l := nth i rows nil); [|eexists; reflexivity|].
      * apply get_value with (l := rows); [eexists; reflexivity|eexists; reflexivity|exact (proj2 Hi)].
      * assert (In (nth i rows nil) rows) as Hr by (apply nth_In; exact (proj2 Hi)). pose proof (Hm _ Hr) as El.
        exact (eq_ind_r (fun n => j < n) Hjm El).
    + exists n. unfold columnR. rewrite <- (seq_nths rows nil) at 2. rewrite map_map. exact E.
Qed.
(* a times b, where b has m columns and as many rows as a has columns *)
Theorem matmul_value : forall G (a b : tm G TMat) r (A B : list (list R)) m, returns a r A -> returns b r B -> (forall row, In row A -> length row = length B) ->
  (forall row, In row B -> length row = m) -> B <> nil ->
  returns (matmul a b) r (map (fun row => map (fun j => dotR row (columnR j B)) (seq 0 m)) A).
Proof.
  intros G a b r A B m Ha Hb HA HB Hn. apply let2_value with (p := A) (q := B); auto.
  apply let_value with (p := map (fun j => columnR j B) (seq 0 m)).
  { destruct B as [|row B]; [contradiction|]. exact (@transpose_value _ v0 ((row :: B, (A, r)) : env R (TMat :: TMat :: G)) (row :: B) m (ex_intro _ 1 eq_refl) HB). }
  eapply (@map_value _ (TArr TR) (TArr TR)); [apply lam_value|eexists; reflexivity|].
  intros row Hr.
  rewrite <- (map_map (fun j => columnR j B) (fun column => dotR row column)).
  eapply (@map_value _ (TArr TR) TR); [apply lam_value|eexists; reflexivity|].
  intros column Hc. apply dot_value; [eexists; reflexivity|eexists; reflexivity|].
  apply in_map_iff in Hc as (j & <- & _). cbn [look fst snd]. unfold columnR. rewrite map_length. apply HA, Hr.
Qed.
Lemma update_len : forall A (l : list A) i v, length (update l i v) = length l.
Proof. induction l; intros [|i] v; simpl; auto. Qed.
Theorem scatter_value : forall G (b : tm G (TArr TR)) (i : tm G (TArr TI)) (u : tm G (TArr TR)) r (l : list R) (is : list Z) (us : list R),
  returns b r l -> returns i r is -> returns u r us -> length is = length us ->
  (forall k, In k is -> (0 <= k < Z.of_nat (length l))%Z) -> returns (scatter_add b i u) r (scatterR l is us).
Proof.
  intros G b i u r l is us Hb Hi (nu & Hu) Hl Hk.
  assert (returns (let2 b i (tlam (tloop (tlen v1) v2 (tlet (tget v3 v1) (top3 (OSet TR) v1 v0 (tadd (tget v1 v0) (tget v3 v2))))))) r
    (fun us => evR (tloop (tlen v1) v2 (tlet (tget v3 v1) (top3 (OSet TR) v1 v0 (tadd (tget v1 v0) (tget v3 v2))))) ((us, (is, (l, r))) : env R (TArr TR :: TArr TI :: TArr TR :: G)))) as (nf & Hf).
  { apply let2_value with (p := l) (q := is); auto. apply lam_value. }
  unfold scatter_add. eapply app_value; [eexists; exact Hf|eexists; exact Hu|].
  refine (@loop_value (TArr TR :: TArr TI :: TArr TR :: G) (TArr TR) _ _ _ _ (length is) l _ _ _ _); [eexists; reflexivity|eexists; reflexivity|].
  destruct (@miter_value (list R) (fun k acc => evR (tlet (tget v3 v1) (top3 (OSet TR) v1 v0 (tadd (tget v1 v0) (tget v3 v2)))) ((acc, (Z.of_nat k, (us, (is, (l, r))))) : env R (TArr TR :: TI :: TArr TR :: TArr TI :: TArr TR :: G)))
    (fun k acc => update acc (Z.to_nat (nth k is 0%Z)) (nth (Z.to_nat (nth k is 0%Z)) acc 0 + nth k us 0)%R) (fun acc => length acc = length l) (length is) l eq_refl) as (c & E & _).
  - intros k acc Hi' Ha. split; [now rewrite update_len|].
    assert (In (nth k is 0%Z) is) as Hin by (apply nth_In; lia). specialize (Hk _ Hin).
    assert (Z.to_nat (nth k is 0%Z) < length acc) as Hz by lia. assert (k < length us) as Hu' by lia.
    refine (@let_value _ TI (TArr TR) _ _ _ (nth k is 0%Z) _ _ _); [refine (@get_value _ TI _ _ _ is k 0%Z _ _ Hi'); eexists; reflexivity|].
    assert (forall e : tm (TI :: TArr TR :: TI :: TArr TR :: TArr TI :: TArr TR :: G) TI, e = v0 -> returns e ((nth k is 0%Z, (acc, (Z.of_nat k, (us, (is, (l, r)))))) : env R (TI :: TArr TR :: TI :: TArr TR :: TArr TI :: TArr TR :: G)) (Z.of_nat (Z.to_nat (nth k is 0%Z)))) as Hv.
    { intros e ->. rewrite Z2Nat.id by lia. eexists. reflexivity. }
    refine (@set_value _ TR _ _ _ _ acc _ _ _ (Hv _ eq_refl) _ Hz); [eexists; reflexivity|]. apply add_value.
    + refine (@get_value _ TR _ _ _ acc _ 0%R _ (Hv _ eq_refl) Hz). eexists. reflexivity.
    + refine (@get_value _ TR _ _ _ us k 0%R _ _ Hu'); eexists; reflexivity.
  - exists c. refine (eq_trans E _). apply (f_equal (fun w => Some (w, c, 0))). clear E. clear - Hl. revert us Hl l. induction is as [|z is IH]; intros [|w us] Hl l; try discriminate; [reflexivity|].
    cbn [length seq fold_left scatterR nth]. rewrite <- (IH us) by (simpl in Hl; lia). rewrite <- seq_shift.
    generalize (update l (Z.to_nat z) (nth (Z.to_nat z) l 0 + w)%R). generalize (seq 0 (length is)). intros s. induction s; intros q; simpl; auto.
Qed.
(* f x y, as curried *)
Theorem reduce_value : forall G a (join : tm G (TFun a (TFun a a))) (neutral : tm G a) (x : tm G (TArr a)) r J z l (h : den R a -> den R a -> den R a),
  returns join r J -> returns neutral r z -> returns x r l ->
  (forall p q, exists n F n', J p = Some (F, n, 0) /\ F q = Some (h p q, n', 0)) -> returns (reduce join neutral x) r (fold_left h l z).
Proof.
  intros G a join neutral x r J z l h Hj Hz (nx & Hx) H.
  set (body := tloop (tlen v0) v1 (tapp (tapp (tvar (Pop (Pop (Pop (Pop Top))))) v0) (tget v2 v1)) : tm (TArr a :: a :: TFun a (TFun a a) :: G) a).
  assert (returns (let2 join neutral (tlam body)) r (fun l => evR body ((l, (z, (J, r))) : env R (TArr a :: a :: TFun a (TFun a a) :: G)))) as (nf & Hf).
  { apply let2_value with (p := J) (q := z); auto. apply lam_value. }
  unfold reduce. eapply app_value; [eexists; exact Hf|eexists; exact Hx|]. unfold body.
  refine (@loop_value (TArr a :: a :: TFun a (TFun a a) :: G) a _ _ _ _ (length l) z _ _ _ _); [eexists; reflexivity|eexists; reflexivity|]. rewrite <- (fold_nths h l z z).
  destruct (@miter_value (den R a) (fun k acc => evR (tapp (tapp (tvar (Pop (Pop (Pop (Pop Top))))) v0) (tget v2 v1)) ((acc, (Z.of_nat k, (l, (z, (J, r))))) : env R (a :: TI :: TArr a :: a :: TFun a (TFun a a) :: G)))
    (fun k acc => h acc (nth k l z)) (fun _ => True) (length l) z I) as (c & E & _).
  - intros k acc Hk _. split; [exact I|].
    destruct (H acc (nth k l z)) as (n & F & n' & E1 & E2).
    eapply app_value; [eapply app_value; [eexists; reflexivity|eexists; reflexivity|eexists; exact E1]| |eexists; exact E2].
    apply get_value with (l := l); [eexists; reflexivity|eexists; reflexivity|exact Hk].
  - eexists. exact E.
Qed.
End Meaning.
