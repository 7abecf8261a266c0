(* Normal forms: what a term computes, in which order, without the words in between.  Two texts of the same program that differ in their `let`s, in
   functions that are known where they are applied, in pairs that are taken apart where they are made and in the order of steps that do not need each
   other have the same normal form. *)
From Coq Require Import List ZArith Bool Lia.
Require Import Language Substitution Data Elaborate Checker Same.
Require Activity.
Import ListNotations.
Set Implicit Arguments.
Unset Asymmetric Patterns.

(* ---- values: terms that only put together and take apart ------------------------------------------ *)
(* arrays and trees are steps, so that a long tape is written down once *)
Definition is_nil {G t} (e : tm G t) : bool := match e with top0 _ o => match o with ONil _ => true | _ => false end | _ => false end.
Definition makes {G a b c} (o : op2 a b c) (y : tm G b) : bool := match o with OPair _ _ => true | ONode _ => is_nil y | _ => false end.
Fixpoint value {G t} (e : tm G t) : bool :=
  match e with
  | tvar _ | tlam _ | tfix _ | tlit _ _ _ | top0 _ _ => true
  | top1 _ a => value a
  | top2 o a b => if makes o b then if value a then value b else false else false
  | _ => false
  end.
Fixpoint eta (t : ty) {G} : tm G t -> tm G t :=
  match t return tm G t -> tm G t with
  | TProd a b => fun e => tpair (eta (tfst e)) (eta (tsnd e))
  | TU => fun _ => tunit G
  | _ => fun e => e
  end.
Arguments eta {t G} _.

(* ---- parts of known values -------------------------------------------------------------------------- *)
Definition pairs G t : Type := match t with TProd a b => option (tm G a * tm G b) | _ => unit end.
Definition sides G t : Type := match t with TSum a b => option (tm G a + tm G b) | _ => unit end.
Definition nodes G t : Type := match t with TTree a => option (tm G a * tm G (TArr (TTree a))) | _ => unit end.
Definition bodies G t : Type := match t with TFun a b => option (tm (a :: G) b) | _ => unit end.
Definition no_pair {G t} : pairs G t := match t with TProd _ _ => None | _ => tt end.
Definition no_side {G t} : sides G t := match t with TSum _ _ => None | _ => tt end.
Definition no_node {G t} : nodes G t := match t with TTree _ => None | _ => tt end.
Definition no_body {G t} : bodies G t := match t with TFun _ _ => None | _ => tt end.
Definition pair_of {G t} (e : tm G t) : pairs G t :=
  match e in tm G t return pairs G t with
  | top2 o x y => match o in op2 a b c return tm _ a -> tm _ b -> pairs _ c with OPair _ _ => fun x y => Some (x, y) | _ => fun _ _ => no_pair end x y
  | _ => no_pair
  end.
Definition side_of {G t} (e : tm G t) : sides G t :=
  match e in tm G t return sides G t with
  | top1 o x => match o in op1 a b return tm _ a -> sides _ b with OInl _ _ => fun x => Some (inl x) | OInr _ _ => fun x => Some (inr x) | _ => fun _ => no_side end x
  | _ => no_side
  end.
Definition node_of {G t} (e : tm G t) : nodes G t :=
  match e in tm G t return nodes G t with
  | top2 o x y => match o in op2 a b c return tm _ a -> tm _ b -> nodes _ c with ONode _ => fun x y => Some (x, y) | _ => fun _ _ => no_node end x y
  | _ => no_node
  end.
Definition body_of {G t} (e : tm G t) : bodies G t :=
  match e in tm G t return bodies G t with tlam b => Some b | _ => no_body end.
Definition simp1 {G a b} (o : op1 a b) : tm G a -> tm G b :=
  match o in op1 a b return tm G a -> tm G b with
  | OFst a b => fun e => match pair_of e with Some p => fst p | None => tfst e end
  | OSnd a b => fun e => match pair_of e with Some p => snd p | None => tsnd e end
  | OUnnode a => fun e => match node_of e with Some p => tpair (fst p) (snd p) | None => eta (top1 (OUnnode a) e) end
  | OInl a b => fun e => tinl b e
  | OInr a b => fun e => tinr a e
  | OLen a => fun e => tlen e
  end.

(* ---- substitution that takes known pairs apart: a pair of which one part is wanted would otherwise be written down as a whole ---- *)
Definition simp {G a b} (o : op1 a b) (e : tm G a) : tm G b := if value e then simp1 o e else top1 o e.
Fixpoint put {G H t} (e : tm G t) : sub G H -> tm H t :=
  match e in tm G t return sub G H -> tm H t with
  | tvar v => fun r => r _ v
  | tlam b => fun r => tlam (put b (ups r))
  | tapp f a => fun r => tapp (put f r) (put a r)
  | tlet a b => fun r => tlet (put a r) (put b (ups r))
  | tfix b => fun r => tfix (put b (ups (ups r)))
  | tcase s a b => fun r => tcase (put s r) (put a (ups r)) (put b (ups r))
  | top0 _ o => fun _ => top0 H o
  | top1 o a => fun r => simp o (put a r)
  | top2 o a b => fun r => top2 o (put a r) (put b r)
  | top3 o a b c => fun r => top3 o (put a r) (put b r) (put c r)
  | tloop n z b => fun r => tloop (put n r) (put z r) (put b (ups (ups r)))
  | tbuild n b => fun r => tbuild (put n r) (put b (ups r))
  | tmap b a => fun r => tmap (put b (ups r)) (put a r)
  | tfold b z a => fun r => tfold (put b (ups (ups r))) (put z r) (put a r)
  | tlit _ m x => fun _ => tlit H m x
  | tprim1 p a => fun r => tprim1 p (put a r)
  | tprim2 p a b => fun r => tprim2 p (put a r) (put b r)
  | tprimi p a b => fun r => tprimi p (put a r) (put b r)
  | tcmp c a b => fun r => tcmp c (put a r) (put b r)
  | tround k a => fun r => tround k (put a r)
  | treal a => fun r => treal (put a r)
  | tsum a => fun r => tsum (put a r)
  | tdot a b => fun r => tdot (put a r) (put b r)
  end.

(* ---- one block: no binder is entered ------------------------------------------------------------------ *)
(* What stands for a variable, in the context in which it was found, and the way from there to here: it is moved once, however many steps lie between. *)
Record entry H t : Type := Entry { from : list ty; found : tm from t; way : ren from H }.
Definition table G H : Type := forall t, mem t G -> entry H t.
Definition moved {G H} (s : table G H) : sub G H := fun t m => match s t m with @Entry _ _ _ v w => rn v w end.
Definition after {G H K} (s : table G H) (r : ren H K) : table G K := fun t m =>
  match s t m with @Entry _ _ _ v w => Entry v (fun u x => r u (w u x)) end.
Definition more {G H a} (s : table G H) (v : tm H a) : table (a :: G) H := fun t m =>
  match m in mem _ G' return match G' with nil => unit | s' :: G0 => table G0 H -> tm H s' -> entry H t end with
  | Top => fun _ v => Entry v (fun _ w => w)
  | Pop m => fun s _ => s _ m
  end s v.
Definition etas {G} : table G G := fun t m => Entry (eta (tvar m)) (fun _ w => w).
(* what comes after e, given its value *)
Definition rest G a b : Type := forall H, ren G H -> tm H a -> tm H b.
Definition name {G a b} (e : tm G a) (k : rest G a b) : tm G b :=
  if value e then k G (fun _ m => m) e else tlet e (k _ (@shift G a) (eta v0)).
Fixpoint andthen {G a} (e : tm G a) {b} : rest G a b -> tm G b :=
  match e in tm G a return rest G a b -> tm G b with
  | tlet x y => fun k => tlet x (andthen y (fun H r => k H (fun t m => r t (Pop m))))
  | e => fun k => name e k
  end.
Arguments andthen {G a} e {b} k.
Fixpoint block (n : nat) {G H t} (e : tm G t) {struct n} : table G H -> tm H t :=
  match n with
  | O => fun s => put e (moved s)
  | S n =>
    match e in tm G t return table G H -> tm H t with
    | tvar v => fun s => moved s v
    | tlam b => fun s => tlam (put b (ups (moved s)))
    | tfix b => fun s => tfix (put b (ups (ups (moved s))))
    | tapp f x => fun s =>
        match body_of f with
        | Some b => andthen (block n x s) (fun _ r x => block n b (more (after s r) x))
        | None => andthen (block n f s) (fun _ r f => andthen (block n x (after s r)) (fun _ r x =>
            let f := rn f r in match body_of f with Some b => block n b (more etas x) | None => tapp f x end))
        end
    | tlet a b => fun s => andthen (block n a s) (fun _ r a => block n b (more (after s r) a))
    | tcase c x y => fun s => andthen (block n c s) (fun _ r c =>
        match side_of c with
        | Some (inl a) => block n x (more (after s r) a)
        | Some (inr b) => block n y (more (after s r) b)
        | None => tcase c (put x (ups (moved (after s r)))) (put y (ups (moved (after s r))))
        end)
    | top0 _ o => fun _ => top0 H o
    | top1 o a => fun s => andthen (block n a s) (fun _ r a => simp1 o a)
    | top2 o a b => fun s => andthen (block n a s) (fun _ r a => andthen (block n b (after s r)) (fun _ r b => top2 o (rn a r) b))
    | top3 o a b c => fun s => andthen (block n a s) (fun _ r a => andthen (block n b (after s r)) (fun _ r' b =>
        andthen (block n c (after (after s r) r')) (fun _ r'' c => top3 o (rn (rn a r') r'') (rn b r'') c)))
    | tloop k z b => fun s => andthen (block n k s) (fun _ r k => andthen (block n z (after s r)) (fun _ r' z =>
        tloop (rn k r') z (put b (ups (ups (moved (after (after s r) r')))))))
    | tbuild k b => fun s => andthen (block n k s) (fun _ r k => tbuild k (put b (ups (moved (after s r)))))
    | tmap b a => fun s => andthen (block n a s) (fun _ r a => tmap (put b (ups (moved (after s r)))) a)
    | tfold b z a => fun s => andthen (block n z s) (fun _ r z => andthen (block n a (after s r)) (fun _ r' a =>
        tfold (put b (ups (ups (moved (after (after s r) r'))))) (rn z r') a))
    | tlit _ m x => fun _ => tlit H m x
    | tprim1 p a => fun s => andthen (block n a s) (fun _ r a => tprim1 p a)
    | tprim2 p a b => fun s => andthen (block n a s) (fun _ r a => andthen (block n b (after s r)) (fun _ r b => tprim2 p (rn a r) b))
    | tprimi p a b => fun s => andthen (block n a s) (fun _ r a => andthen (block n b (after s r)) (fun _ r b => tprimi p (rn a r) b))
    | tcmp p a b => fun s => andthen (block n a s) (fun _ r a => andthen (block n b (after s r)) (fun _ r b => tcmp p (rn a r) b))
    | tround p a => fun s => andthen (block n a s) (fun _ r a => tround p a)
    | treal a => fun s => andthen (block n a s) (fun _ r a => treal a)
    | tsum a => fun s => andthen (block n a s) (fun _ r a => tsum a)
    | tdot a b => fun s => andthen (block n a s) (fun _ r a => andthen (block n b (after s r)) (fun _ r b => tdot (rn a r) b))
    end
  end.

(* ---- what is computed twice: only steps without kinks, so that their number stays --------------------------- *)
Definition steady {a b c} (o : op2 a b c) : bool :=
  match o with OGet _ | OCons _ | OSnoc _ | ONode _ | OIntop _ | OIntcmp _ => true | _ => false end.
Definition calm {G t} (e : tm G t) : bool :=
  match e with
  | top2 o a b => if steady o then if value a then value b else false else false
  | treal a => value a
  | _ => false
  end.
(* the text of a step, with its variables numbered from the outside, so that it stays the same under more binders: only a hint where to look *)
Fixpoint outward (n d : nat) (g : raw) : raw :=
  match g with
  | Rvar i => if i <? d then Rvar i else Rvar (d + (n - (i - d)))
  | Runit | Rint _ | Rnil _ | Rlit _ _ => g
  | Rlam a b => Rlam a (outward n (S d) b)
  | Rapp a b => Rapp (outward n d a) (outward n d b)
  | Rlet a b => Rlet (outward n d a) (outward n (S d) b)
  | Rfix a b e => Rfix a b (outward n (S (S d)) e)
  | Rcase a b c => Rcase (outward n d a) (outward n (S d) b) (outward n (S d) c)
  | Rfst a => Rfst (outward n d a)
  | Rsnd a => Rsnd (outward n d a)
  | Rinl t a => Rinl t (outward n d a)
  | Rinr t a => Rinr t (outward n d a)
  | Rlen a => Rlen (outward n d a)
  | Runnode a => Runnode (outward n d a)
  | Rpair a b => Rpair (outward n d a) (outward n d b)
  | Rget a b => Rget (outward n d a) (outward n d b)
  | Rcons a b => Rcons (outward n d a) (outward n d b)
  | Rsnoc a b => Rsnoc (outward n d a) (outward n d b)
  | Rnode a b => Rnode (outward n d a) (outward n d b)
  | Rzip a b => Rzip (outward n d a) (outward n d b)
  | Rgather a b => Rgather (outward n d a) (outward n d b)
  | Rintop o a b => Rintop o (outward n d a) (outward n d b)
  | Rintcmp c a b => Rintcmp c (outward n d a) (outward n d b)
  | Rset a b c => Rset (outward n d a) (outward n d b) (outward n d c)
  | Rloop a b c => Rloop (outward n d a) (outward n d b) (outward n (S (S d)) c)
  | Rbuild a b => Rbuild (outward n d a) (outward n (S d) b)
  | Rmap b a => Rmap (outward n (S d) b) (outward n d a)
  | Rfold b z a => Rfold (outward n (S (S d)) b) (outward n d z) (outward n d a)
  | Rprim1 p a => Rprim1 p (outward n d a)
  | Rprim2 p a b => Rprim2 p (outward n d a) (outward n d b)
  | Rprimi p a b => Rprimi p (outward n d a) (outward n d b)
  | Rcmp c a b => Rcmp c (outward n d a) (outward n d b)
  | Rround k a => Rround k (outward n d a)
  | Rreal a => Rreal (outward n d a)
  | Rsum a => Rsum (outward n d a)
  | Rdot a b => Rdot (outward n d a) (outward n d b)
  end.
(* the steps so far: hint, text, name *)
Definition names G : Type := list {c : ty & (raw * (unit -> tm G c) * mem c G)%type}.
Definition below {G} (a : ty) (k : names G) : names (a :: G) :=
  map (fun n => match n with existT _ c (h, z, m) => existT _ c (h, (fun u => wk a (z u)), Pop m) end) k.
Fixpoint find {G a} (h : raw) (x : tm G a) (k : names G) : option (mem a G) :=
  match k with
  | nil => None
  | existT _ c (h', z, m) :: k =>
      if raw_dec h' h then
        match ty_dec c a with
        | left H => if raw_dec (erase (z tt)) (erase x) then Some (match H in _ = a return mem a G with eq_refl => m end) else find h x k
        | right _ => find h x k
        end
      else find h x k
  end.
(* What is done again has the same result; all that comes later uses the first one. The step itself stays where it can meet a kink.
   r: what stands now for the variables of the rest. *)
Definition onto {G H a} (m : mem a H) (r : ren G H) : ren (a :: G) H := fun t n =>
  match n in mem _ G' return match G' with nil => unit | a :: G => mem a H -> ren G H -> mem t H end with
  | Top => fun m _ => m
  | Pop n => fun _ r => r _ n
  end m r.
Fixpoint share (fuel : nat) {G H t} (e : tm G t) : names H -> ren G H -> tm H t :=
  match fuel with
  | O => fun _ r => rn e r
  | S fuel =>
      match e in tm G t return names H -> ren G H -> tm H t with
      | @tlet G a _ x y => fun k r =>
          let x := rn x r in
          let h := outward (length H) 0 (erase x) in
          match find h x k with
          | Some m => if calm x then share fuel y k (onto m r) else tlet x (share fuel y (below a k) (onto (Pop m) (fun t n => Pop (r t n))))
          | None => tlet x (share fuel y (existT _ a (h, (fun _ => wk a x), Top) :: below a k) (up r))
          end
      | e => fun _ r => rn e r
      end
  end.

(* ---- under binders -------------------------------------------------------------------------------------- *)
Definition rewriting : Type := forall G t, tm G t -> tm G t.
Fixpoint inside (f : rewriting) {G t} (e : tm G t) : tm G t :=
  match e with
  | tvar v => tvar v
  | tlam b => tlam (f _ _ b)
  | tfix b => tfix (f _ _ b)
  | tapp g x => tapp (inside f g) (inside f x)
  | tlet a b => tlet (inside f a) (inside f b)
  | tcase c x y => tcase (inside f c) (f _ _ x) (f _ _ y)
  | top0 G o => top0 G o
  | top1 o a => top1 o (inside f a)
  | top2 o a b => top2 o (inside f a) (inside f b)
  | top3 o a b c => top3 o (inside f a) (inside f b) (inside f c)
  | tloop k z b => tloop (inside f k) (inside f z) (f _ _ b)
  | tbuild k b => tbuild (inside f k) (f _ _ b)
  | tmap b a => tmap (f _ _ b) (inside f a)
  | tfold b z a => tfold (f _ _ b) (inside f z) (inside f a)
  | tlit G m x => tlit G m x
  | tprim1 p a => tprim1 p (inside f a)
  | tprim2 p a b => tprim2 p (inside f a) (inside f b)
  | tprimi p a b => tprimi p (inside f a) (inside f b)
  | tcmp p a b => tcmp p (inside f a) (inside f b)
  | tround p a => tround p (inside f a)
  | treal a => treal (inside f a)
  | tsum a => tsum (inside f a)
  | tdot a b => tdot (inside f a) (inside f b)
  end.
(* what is done twice is looked for again, since it may have been said in two ways *)
Definition shared (fuel : nat) {G t} (e : tm G t) : tm G t := share fuel e nil (fun _ m => m).
Fixpoint normal (fuel depth : nat) {G t} (e : tm G t) : tm G t :=
  match depth with
  | O => e
  | S depth => shared fuel (inside (fun G t e => normal fuel depth e) (shared fuel (andthen (block fuel e etas) (fun _ _ v => v))))
  end.

(* ---- steps in the order of another text ------------------------------------------------------------------- *)
Definition lower_one {G} (s : ty) : Activity.pren (s :: G) G := fun t m =>
  match m in mem _ G' return match G' with nil => unit | _ :: G0 => option (mem t G0) end with Top => None | Pop m => Some m end.
Definition exchange {G a b} : ren (a :: b :: G) (b :: a :: G) := fun t m =>
  match m in mem _ G' return match G' with a :: b :: G => mem t (b :: a :: G) | _ => unit end with
  | @Top _ G' => match G' return match G' with b :: G => mem t (b :: t :: G) | _ => unit end with nil => tt | _ :: _ => Pop Top end
  | @Pop _ G' a m => match m in mem _ G' return match G' with b :: G => mem t (b :: a :: G) | _ => unit end with Top => Top | Pop m => Pop (Pop m) end
  end.
Definition first_two {G t} (e : tm G t) : option (tm G t) :=
  match e in tm G t return option (tm G t) with
  | @tlet G a t x y =>
      match y in tm G' t return match G' with nil => unit | a :: G => tm G a -> option (tm G t) end with
      | @tlet G' b t z w =>
          match G' return tm G' b -> tm (b :: G') t -> match G' with nil => unit | a :: G => tm G a -> option (tm G t) end with
          | nil => fun _ _ => tt
          | a :: G => fun z w x => match Activity.prn z (@lower_one G a) with Some z => Some (tlet z (tlet (wk b x) (rn w exchange))) | None => None end
          end z w
      | @tvar G' _ _ | @tlam G' _ _ _ | @tapp G' _ _ _ _ | @tfix G' _ _ _ | @tcase G' _ _ _ _ _ _ | @top0 G' _ _ | @top1 G' _ _ _ _ | @top2 G' _ _ _ _ _ _
      | @top3 G' _ _ _ _ _ _ _ _ | @tloop G' _ _ _ _ | @tbuild G' _ _ _ | @tmap G' _ _ _ _ | @tfold G' _ _ _ _ _ | @tlit G' _ _ | @tprim1 G' _ _ | @tprim2 G' _ _ _
      | @tprimi G' _ _ _ | @tcmp G' _ _ _ | @tround G' _ _ | @treal G' _ | @tsum G' _ | @tdot G' _ _ =>
          match G' with nil => tt | _ :: _ => fun _ => None end
      end x
  | _ => None
  end.
(* the k-th step of a block before the others *)
Fixpoint bring (k : nat) {G t} (e : tm G t) : option (tm G t) :=
  match k with
  | O => Some e
  | S k => match e in tm G t return option (tm G t) with
      | tlet x y => match bring k y with Some y => first_two (tlet x y) | None => None end
      | _ => None
      end
  end.
Definition parts (g : raw) : list raw :=
  match g with
  | Rvar _ | Runit | Rint _ | Rnil _ | Rlit _ _ => []
  | Rlam _ a | Rfix _ _ a | Rfst a | Rsnd a | Rinl _ a | Rinr _ a | Rlen a | Runnode a | Rprim1 _ a | Rround _ a | Rreal a | Rsum a => [a]
  | Rapp a b | Rlet a b | Rpair a b | Rget a b | Rcons a b | Rsnoc a b | Rnode a b | Rzip a b | Rgather a b | Rintop _ a b | Rintcmp _ a b | Rbuild a b
  | Rmap a b | Rprim2 _ a b | Rprimi _ a b | Rcmp _ a b | Rdot a b => [a; b]
  | Rcase a b c | Rset a b c | Rloop a b c | Rfold a b c => [a; b; c]
  end.
Definition part (i : nat) (g : raw) : raw := nth i (parts g) Runit.
Fixpoint within (f : raw -> rewriting) {G t} (e : tm G t) (g : raw) : tm G t :=
  match e with
  | tvar v => tvar v
  | tlam b => tlam (f (part 0 g) _ _ b)
  | tfix b => tfix (f (part 0 g) _ _ b)
  | tapp a b => tapp (within f a (part 0 g)) (within f b (part 1 g))
  | tlet a b => tlet a b
  | tcase c x y => tcase (within f c (part 0 g)) (f (part 1 g) _ _ x) (f (part 2 g) _ _ y)
  | top0 G o => top0 G o
  | top1 o a => top1 o (within f a (part 0 g))
  | top2 o a b => top2 o (within f a (part 0 g)) (within f b (part 1 g))
  | top3 o a b c => top3 o (within f a (part 0 g)) (within f b (part 1 g)) (within f c (part 2 g))
  | tloop k z b => tloop (within f k (part 0 g)) (within f z (part 1 g)) (f (part 2 g) _ _ b)
  | tbuild k b => tbuild (within f k (part 0 g)) (f (part 1 g) _ _ b)
  | tmap b a => tmap (f (part 0 g) _ _ b) (within f a (part 1 g))
  | tfold b z a => tfold (f (part 0 g) _ _ b) (within f z (part 1 g)) (within f a (part 2 g))
  | tlit G m x => tlit G m x
  | tprim1 p a => tprim1 p (within f a (part 0 g))
  | tprim2 p a b => tprim2 p (within f a (part 0 g)) (within f b (part 1 g))
  | tprimi p a b => tprimi p (within f a (part 0 g)) (within f b (part 1 g))
  | tcmp p a b => tcmp p (within f a (part 0 g)) (within f b (part 1 g))
  | tround p a => tround p (within f a (part 0 g))
  | treal a => treal (within f a (part 0 g))
  | tsum a => tsum (within f a (part 0 g))
  | tdot a b => tdot (within f a (part 0 g)) (within f b (part 1 g))
  end.
(* the first step made alike, if it can be *)
Definition alike (f : raw -> rewriting) (g : raw) {G t} (e : tm G t) : option (tm G t) :=
  match e in tm G t return option (tm G t) with
  | tlet x y => let x := within f x g in if raw_dec (erase x) g then Some (tlet x y) else None
  | _ => None
  end.
(* the k-th step, said before the others, if it does not need them; only a hint where to look *)
Fixpoint lowered (k : nat) {G t} (e : tm G t) : option {c : ty & tm G c} :=
  match e in tm G t return option {c : ty & tm G c} with
  | @tlet G a _ x y =>
      match k with
      | O => Some (existT _ a x)
      | S k => match lowered k y with
          | Some (existT _ c z) => match Activity.prn z (@lower_one G a) with Some z => Some (existT _ c z) | None => None end
          | None => None
          end
      end
  | _ => None
  end.
Definition kin {G t} (e : tm G t) (g : raw) : bool :=
  match e, g with
  | tapp _ _, Rapp _ _ | tcase _ _ _, Rcase _ _ _ | top3 _ _ _ _, Rset _ _ _ | tloop _ _ _, Rloop _ _ _ | tbuild _ _, Rbuild _ _ | tmap _ _, Rmap _ _
  | tfold _ _ _, Rfold _ _ _ | tprim1 _ _, Rprim1 _ _ | tprim2 _ _ _, Rprim2 _ _ _ | tprimi _ _ _, Rprimi _ _ _ | tcmp _ _ _, Rcmp _ _ _
  | tround _ _, Rround _ _ | treal _, Rreal _ | tsum _, Rsum _ | tdot _ _, Rdot _ _ => true
  | top2 _ _ _, (Rcons _ _ | Rnode _ _ | Rget _ _ | Rsnoc _ _ | Rzip _ _ | Rgather _ _ | Rintop _ _ _ | Rintcmp _ _ _) => true
  | _, _ => false
  end.
Definition fitting (f : raw -> rewriting) (g : raw) (k : nat) {G t} (e : tm G t) : bool :=
  match lowered k e with
  | Some (existT _ c z) => if kin z g then if raw_dec (erase (within f z g)) g then true else false else false
  | None => false
  end.
Fixpoint pick (f : raw -> rewriting) (g : raw) (k tries : nat) {G t} (e : tm G t) : option (tm G t) :=
  match tries with
  | O => None
  | S tries => if fitting f g k e then match bring k e with Some e => alike f g e | None => None end else pick f g (S k) tries e
  end.
Definition choose (f : raw -> rewriting) (g : raw) (tries : nat) {G t} (e : tm G t) : option (tm G t) :=
  match alike f g e with Some e => Some e | None => pick f g 1 tries e end.
Fixpoint steps {G t} (e : tm G t) : nat := match e with tlet _ y => S (steps y) | _ => O end.
Fixpoint align (fuel : nat) (g : raw) {G t} (e : tm G t) : tm G t :=
  match fuel with
  | O => e
  | S fuel =>
      match g with
      | Rlet gx gy =>
          match choose (fun g G t e => align fuel g e) gx (steps e) e with
          | Some e => match e with tlet x y => tlet x (align fuel gy y) | e => e end
          | None => e
          end
      | _ => within (fun g G t e => align fuel g e) e g
      end
  end.
Definition agree (fuel : nat) {G t} (e e' : tm G t) : bool :=
  let g := erase (normal fuel fuel e) in if raw_dec (erase (align fuel g (normal fuel fuel e'))) g then true else false.

(* ---- why this keeps the meaning -------------------------------------------------------------------------------- *)
Section Sound.
Variable X : Type.
Variable O : ops X.
Variable fuel : nat.
Notation evX e := (ev O fuel e).
Notation same := (same X).
Notation same_env := (same_env X).
Notation stands := (stands O fuel).

Lemma value_ok : forall G t (e : tm G t) (r : env X G), value e = true -> exists x n, evX e r = Some (x, n, 0).
Proof.
  induction e; intros env Hv; cbn [value] in Hv; try discriminate; try (eexists _, _; reflexivity).
  - destruct (IHe env Hv) as (x & n & E). cbn [ev]. rewrite E. cbn [bind]. destruct o; try (destruct x); eexists _, _; reflexivity.
  - destruct (makes o e2) eqn:Ho; [|discriminate]. destruct (value e1); [|discriminate].
    destruct (IHe1 env eq_refl) as (x & n & E). destruct (IHe2 env Hv) as (y & m & E'). cbn [ev]. rewrite E, E'. cbn [bind].
    destruct o; try discriminate; eexists _, _; reflexivity.
Qed.
Lemma eta_ok : forall t G (e : tm G t) r x n, evX e r = Some (x, n, 0) -> exists n', evX (eta e) r = Some (x, n', 0).
Proof.
  induction t; intros G e r x n E; cbn [eta]; eauto.
  - destruct x. eexists. reflexivity.
  - destruct (IHt1 G (tfst e) r (fst x) (S (n + 0))) as (n1 & E1); [cbn [ev]; rewrite E; reflexivity|].
    destruct (IHt2 G (tsnd e) r (snd x) (S (n + 0))) as (n2 & E2); [cbn [ev]; rewrite E; reflexivity|].
    cbn [ev]. rewrite E1. cbn [bind]. rewrite E2. destruct x. eexists. reflexivity.
Qed.
Ltac known := cbn; match goal with
  | |- True => exact I
  | |- match ?t with TR => _ | _ => _ end _ => destruct t; try exact I; cbn; intros ? E; discriminate E
  | |- forall _, _ => intros ? E; first [discriminate E|inversion E; subst; reflexivity]
  end.
Ltac look_inside e := destruct e; try match goal with o : op0 _ |- _ => destruct o | o : op1 _ _ |- _ => destruct o | o : op2 _ _ _ |- _ => destruct o | o : op3 _ _ _ _ |- _ => destruct o end; known.
Lemma pair_of_ok : forall G a b (e : tm G (TProd a b)) p, pair_of e = Some p -> e = tpair (fst p) (snd p).
Proof.
  assert (forall G t (e : tm G t), match t as t return tm G t -> Prop with
    | TProd a b => fun e => forall p, (pair_of e : pairs G (TProd a b)) = Some p -> e = tpair (fst p) (snd p) | _ => fun _ => True end e) as H
    by (intros G t e; look_inside e).
  intros G a b e. exact (H G (TProd a b) e).
Qed.
Lemma node_of_ok : forall G a (e : tm G (TTree a)) p, node_of e = Some p -> e = tnode (fst p) (snd p).
Proof.
  assert (forall G t (e : tm G t), match t as t return tm G t -> Prop with
    | TTree a => fun e => forall p, (node_of e : nodes G (TTree a)) = Some p -> e = tnode (fst p) (snd p) | _ => fun _ => True end e) as H
    by (intros G t e; look_inside e).
  intros G a e. exact (H G (TTree a) e).
Qed.
Lemma body_of_ok : forall G a b (e : tm G (TFun a b)) c, body_of e = Some c -> e = tlam c.
Proof.
  assert (forall G t (e : tm G t), match t as t return tm G t -> Prop with
    | TFun a b => fun e => forall c, (body_of e : bodies G (TFun a b)) = Some c -> e = tlam c | _ => fun _ => True end e) as H
    by (intros G t e; look_inside e).
  intros G a b e. exact (H G (TFun a b) e).
Qed.
Lemma side_of_ok : forall G a b (e : tm G (TSum a b)) s, side_of e = Some s -> e = match s with inl x => tinl b x | inr y => tinr a y end.
Proof.
  assert (forall G t (e : tm G t), match t as t return tm G t -> Prop with
    | TSum a b => fun e => forall s, (side_of e : sides G (TSum a b)) = Some s -> e = match s with inl x => tinl b x | inr y => tinr a y end
    | _ => fun _ => True end e) as H by (intros G t e; look_inside e).
  intros G a b e. exact (H G (TSum a b) e).
Qed.
(* the value of a known part *)
Lemma pair_run : forall G a b (x : tm G a) (y : tm G b) r p n, evX (tpair x y) r = Some (p, n, 0) ->
  exists n1 n2, evX x r = Some (fst p, n1, 0) /\ evX y r = Some (snd p, n2, 0).
Proof.
  intros G a b x y r p n E. cbn [ev] in E. destruct (evX x r) as [[[u n1] k1]|]; [|discriminate]. cbn [bind] in E.
  destruct (evX y r) as [[[v n2] k2]|]; [|discriminate]. cbn in E. inversion E; subst.
  destruct k1; [|discriminate]. destruct k2; [|discriminate]. eauto.
Qed.
Lemma node_run : forall G a (x : tm G a) ts r p n, evX (tnode x ts) r = Some (p, n, 0) ->
  exists u us n1 n2, p = Node u us /\ evX x r = Some (u, n1, 0) /\ evX ts r = Some (us, n2, 0).
Proof.
  intros G a x y r p n E. cbn [ev] in E. destruct (evX x r) as [[[u n1] k1]|]; [|discriminate]. cbn [bind] in E.
  destruct (evX y r) as [[[v n2] k2]|]; [|discriminate]. cbn in E. inversion E; subst.
  destruct k1; [|discriminate]. destruct k2; [|discriminate]. eauto 8.
Qed.
Lemma side_run : forall G a b (x : tm G a) r p n, evX (tinl b x) r = Some (p, n, 0) -> exists u n1, p = inl u /\ evX x r = Some (u, n1, 0).
Proof. intros G a b x r p n E. cbn [ev] in E. destruct (evX x r) as [[[u n1] k1]|]; [|discriminate]. cbn in E. inversion E; subst. destruct k1; [|discriminate]. eauto. Qed.
Lemma side_run_r : forall G a b (x : tm G b) r p n, evX (tinr a x) r = Some (p, n, 0) -> exists u n1, p = inr u /\ evX x r = Some (u, n1, 0).
Proof. intros G a b x r p n E. cbn [ev] in E. destruct (evX x r) as [[[u n1] k1]|]; [|discriminate]. cbn in E. inversion E; subst. destruct k1; [|discriminate]. eauto. Qed.
Lemma simp1_ok : forall G a b (o : op1 a b) (e : tm G a) r x y n, evX e r = Some (x, n, 0) -> same a x y -> same_run (same b) (evX (simp1 o e) r) (op1v X o y).
Proof.
  intros G a b o e r x y n E H.
  assert (same_run (same b) (evX (top1 o e) r) (op1v X o y)) as Q.
  { cbn [ev]. rewrite E. cbn [bind]. pose proof (@s_op1 X _ _ o x y H) as S. destruct (op1v X o x) as [[[u i] j]|], (op1v X o y) as [[[v i'] j']|]; exact S. }
  destruct o; cbn [simp1]; try exact Q.
  - destruct (pair_of e) as [p|] eqn:Ep; [|exact Q]. apply pair_of_ok in Ep. subst e. apply pair_run in E as (n1 & n2 & E1 & E2). rewrite E1. split; [apply H|reflexivity].
  - destruct (pair_of e) as [p|] eqn:Ep; [|exact Q]. apply pair_of_ok in Ep. subst e. apply pair_run in E as (n1 & n2 & E1 & E2). rewrite E2. split; [apply H|reflexivity].
  - destruct (node_of e) as [p|] eqn:Ep.
    + apply node_of_ok in Ep. subst e. apply node_run in E as (u & us & n1 & n2 & -> & E1 & E2). cbn [ev]. rewrite E1. cbn [bind]. rewrite E2. inversion H; subst. cbn. auto.
    + destruct x as [u us]. assert (evX (top1 (OUnnode a) e) r = Some ((u, us), S (n + 0), 0)) as E1 by (cbn [ev]; rewrite E; reflexivity).
      destruct (eta_ok _ _ E1) as (n' & E2). rewrite E2. rewrite E1 in Q. exact Q.
Qed.

Theorem put_ok : forall G t (e : tm G t) H (s : sub G H) r r', stands s r r' -> same_run (same t) (evX (put e s) r') (evX e r).
Proof.
  induction e; intros H s r1 r2 Hs; cbn [put]; [cbn [ev]; now apply stands_run|..];
    try (to_parts; auto; repeat intro; match goal with IH : _ |- _ => solve [apply IH; repeat (apply stands_ups; [|assumption]); assumption] end).
  unfold simp. destruct (value (put e s)) eqn:Hv; [|apply c_op1; auto]. destruct (value_ok _ r2 Hv) as (x & n & E). specialize (IHe H s r1 r2 Hs). rewrite E in IHe.
  cbn [ev]. apply s_right. destruct (evX e r1) as [[[y m] k]|]; [|contradiction]. destruct IHe as [Hx <-].
  pose proof (@simp1_ok _ _ _ o _ _ _ _ _ E Hx) as Q. cbn [bind]. destruct (op1v X o y) as [[[z i] j]|]; exact Q.
Qed.

(* ---- a block ---------------------------------------------------------------------------------------------------- *)
Lemma pulled : forall K H (rho : ren K H) (r : env X H), exists a, rok X rho a r.
Proof.
  induction K as [|t K IH]; intros H rho r.
  - exists tt. intros u m. inversion m.
  - destruct (IH H (fun u m => rho u (Pop m)) r) as (a & Ha). exists (look (rho t Top) r, a). intros u m. revert rho Ha.
    apply (mem_inv (fun v m => forall rho : ren (v :: K) H, rok X (fun u m => rho u (Pop m)) a r ->
      look (rho u m) r = @look X _ (v :: K) m (look (rho v Top) r, a))); intros; [apply (H0 u)|reflexivity].
Qed.
Lemma stands_after : forall G H K (s : table G H) (rho : ren H K) r r' r'', stands (moved s) r r' -> rok X rho r' r'' -> stands (moved (after s rho)) r r''.
Proof.
  intros G H K s rho r r' r'' Hs Hr t m. destruct (Hs t m) as (x & n & E & Hx). exists x, n. split; [|exact Hx]. rewrite <- E. unfold moved, after. destruct (s t m) as [K0 v w]. cbn [found way].
  destruct (pulled w r') as (a & Ha). rewrite (@rn_ok X O fuel _ _ v _ w a r' Ha). apply rn_ok. intros u x0. rewrite Hr. apply Ha.
Qed.
Lemma unmoved : forall G t (e : tm G t) (r : env X G), evX (rn e (fun _ w => w)) r = evX e r.
Proof. intros. apply rn_ok. intros u w. reflexivity. Qed.
Lemma stands_more : forall G H a (s : table G H) (v : tm H a) r r' x y n, stands (moved s) r r' -> evX v r' = Some (x, n, 0) -> same a x y ->
  @Same.stands X O fuel (a :: G) H (moved (more s v)) (y, r) r'.
Proof.
  intros G H a s v r r' x y n Hs E Hx t m. revert s v r x y E Hs Hx.
  apply (mem_inv (fun u m => forall (s : table G H) (v : tm H u) r x y, evX v r' = Some (x, n, 0) -> stands (moved s) r r' -> same u x y ->
    exists z k, evX (moved (more s v) m) r' = Some (z, k, 0) /\ same t z (@look X _ (u :: G) m (y, r)))).
  - intros m0 u s v r x y E Hs Hx. exact (Hs _ m0).
  - intros s v r x y E Hs Hx. exists x, n. split; [|exact Hx]. unfold moved. cbn [more found way]. rewrite unmoved. exact E.
Qed.
Lemma stands_etas : forall G (r r' : env X G), same_env G r' r -> stands (moved etas) r r'.
Proof.
  intros G r r' Hr t m. destruct (@eta_ok t G (tvar m) r' (look m r') 1 eq_refl) as (n & E). exists (look m r'), n. split; [|now apply s_look].
  unfold moved, etas. cbn [found way]. rewrite unmoved. exact E.
Qed.
Definition fits {G a b} (k : rest G a b) (r : env X G) (F : den X a -> M (den X b)) : Prop :=
  forall H (rho : ren G H) (v : tm H a) r' x y n, rok X rho r r' -> same_env H r' r' -> evX v r' = Some (x, n, 0) -> same a x y ->
  same_run (same b) (evX (k H rho v) r') (F y).
Lemma name_ok : forall G a b (e : tm G a) (k : rest G a b) r m F, same_env G r r ->
  same_run (same a) (evX e r) m -> fits k r F -> same_run (same b) (evX (name e k) r) (bind m F).
Proof.
  intros G a b e k r m F Hg Hm Hk. unfold name. destruct (value e) eqn:Hv.
  - destruct (value_ok _ r Hv) as (x & n & E). rewrite E in Hm. destruct m as [[[y n'] k']|]; [|contradiction]. destruct Hm as [Hx <-].
    assert (same_run (same b) (evX (k G (fun _ m => m) e) r) (F y)) as Q by (eapply Hk; [intros ? ?; reflexivity|exact Hg|exact E|exact Hx]).
    cbn [bind]. destruct (F y) as [[[w i] j]|]; exact Q.
  - cbn [ev]. apply s_left. eapply s_bind; [exact Hm|]. intros x y Hx.
    destruct (@eta_ok a (a :: G) v0 (x, r) x 1 eq_refl) as (n & E). eapply Hk; [|split; [eapply same_self, Hx|exact Hg]|exact E|exact Hx]. intros t w. reflexivity.
Qed.
Lemma andthen_ok : forall G a (e : tm G a) b (k : rest G a b) r m F, same_env G r r ->
  same_run (same a) (evX e r) m -> fits k r F -> same_run (same b) (evX (andthen e k) r) (bind m F).
Proof.
  induction e; intros w k r0 mm F Hg Hm Hk; try (apply name_ok; assumption). cbn [andthen ev] in *. apply s_left.
  pose proof (@same_ev X O fuel _ _ e1 r0 r0 Hg) as H1.
  destruct (evX e1 r0) as [[[x n] j]|] eqn:E1; cbn [bind tick] in *.
  - destruct H1 as [H1 _].
    assert (fits (fun H r => k H (fun t m => r t (Pop m))) ((x, r0) : env X (_ :: _)) F) as Hk'.
    { intros H rho v r' p q i Hr Hg' E Hp. eapply Hk; [|exact Hg'|exact E|exact Hp]. intros t u. apply (Hr t (Pop u)). }
    destruct (evX e2 (x, r0)) as [[[y n'] j']|] eqn:E2; cbn [bind tick] in *; destruct mm as [[[z n''] j'']|]; try contradiction; cbn [bind].
    + destruct Hm as [Hz <-].
      pose proof (fun Hm => IHe2 _ _ ((x, r0) : env X (_ :: _)) (Some (z, 0, j')) F (conj H1 Hg) Hm Hk') as Q. rewrite E2 in Q. specialize (Q (conj Hz eq_refl)).
      cbn [bind] in Q. destruct (evX (andthen e2 _) _) as [[[p i] l]|], (F z) as [[[q i'] l']|]; cbn in *; try contradiction; auto.
      destruct Q as [Q ->]. split; [exact Q|lia].
    + pose proof (fun Hm => IHe2 _ _ ((x, r0) : env X (_ :: _)) None F (conj H1 Hg) Hm Hk') as Q. rewrite E2 in Q. specialize (Q I).
      cbn [bind] in Q. destruct (evX (andthen e2 _) _) as [[[p i] l]|]; cbn in *; auto.
  - destruct mm as [[[z n''] j'']|]; [contradiction|exact I].
Qed.
Lemma carried : forall G H t (v : tm G t) (rho : ren G H) r r' x n, rok X rho r r' -> evX v r = Some (x, n, 0) -> evX (rn v rho) r' = Some (x, n, 0).
Proof. intros G H t v rho r r' x n Hr E. rewrite (@rn_ok X O fuel _ _ v _ rho r r' Hr). exact E. Qed.
Lemma feed : forall A B C (P : B -> C -> Prop) (x : A) n f m, same_run P (f x) m -> same_run P (bind (Some (x, n, 0)) f) m.
Proof. intros A B C P x n f m H. cbn [bind]. destruct (f x) as [[[y i] j]|]; exact H. Qed.
Ltac part_1 IH := cbn [ev]; apply s_right; eapply andthen_ok; [eassumption|apply IH; eassumption|]; cbv beta.
Ltac part_2 IH := eapply andthen_ok; [eassumption|apply IH; [eassumption|eapply stands_after; eassumption]|]; cbv beta.
Theorem block_ok : forall n G t (e : tm G t) H (s : table G H) r r', same_env H r' r' -> stands (moved s) r r' -> same_run (same t) (evX (block n e s) r') (evX e r).
Proof.
  induction n as [|n IH]; intros G t e H s r r' Hg Hs; [now apply put_ok|].
  destruct e; cbn [block].
  - now apply stands_run.
  - apply c_lam. intros x y Hx. apply put_ok, stands_ups; auto.
  - (* application *)
    destruct (body_of e1) as [b0|] eqn:Eb.
    + apply body_of_ok in Eb. subst e1. cbn [ev]. apply s_right. cbn [tick ret].
      replace (bind (Some (fun x => evX b0 (x, r), 1, 0)) (fun g => bind (evX e2 r) (fun x => g x))) with (ticks 1 (bind (evX e2 r) (fun x => evX b0 (x, r)))).
      2: { cbn [bind]. destruct (evX e2 r) as [[[u i] j]|]; cbn [bind ticks]; [|reflexivity]. destruct (evX b0 (u, r)) as [[[v i'] j']|]; reflexivity. }
      assert (forall A B (P : A -> B -> Prop) m m', same_run P m m' -> same_run P m (ticks 1 m')) as Ht by (intros A B P [[[? ?] ?]|] [[[? ?] ?]|]; auto).
      apply Ht. eapply andthen_ok; [exact Hg|apply IH; eassumption|]. intros K rho v r1 x y m Hr Hg' E Hx. apply IH; [exact Hg'|]. eapply stands_more; eauto. eapply stands_after; eauto.
    + cbn [ev]. apply s_right. eapply andthen_ok; [exact Hg|apply IH; eassumption|]. intros K rho v r1 x y m Hr Hg1 E Hx.
      eapply andthen_ok; [exact Hg1|apply IH; [exact Hg1|eapply stands_after; eassumption]|]. intros K' rho' v' r2 x' y' m' Hr' Hg2 E' Hx'.
      pose proof (carried _ Hr' E) as Er.
      destruct (body_of (rn v rho')) as [b0|] eqn:Ec.
      * apply body_of_ok in Ec. rewrite Ec in Er. cbn [ev tick ret] in Er. inversion Er; subst.
        eapply run_trans with (P := same _) (Q := same _); [apply same_trans|apply IH with (r := (x', r2)); [exact Hg2|]|exact (Hx _ _ Hx')].
        eapply stands_more; [apply stands_etas, Hg2|exact E'|eapply same_self, Hx'].
      * cbn [ev]. rewrite Er, E'. cbn [bind tick]. specialize (Hx _ _ Hx'). destruct (x x') as [[[? ?] ?]|], (y y') as [[[? ?] ?]|]; exact Hx.
  - (* let *) part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. apply IH; [exact Hg1|]. eapply stands_more; eauto. eapply stands_after; eauto.
  - apply c_fix. intros x y z w Hx Hz. apply put_ok, stands_ups, Hx. apply stands_ups, Hz. exact Hs.
  - (* case *) part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. pose proof (@stands_after _ _ _ _ _ _ _ _ Hs Hr) as Ha.
    destruct (side_of v) as [[w|w]|] eqn:Ev.
    + apply side_of_ok in Ev. subst v. apply side_run in E as (u & i & -> & E). destruct y as [y|y]; [|contradiction].
      apply IH; [exact Hg1|]. eapply stands_more; eauto.
    + apply side_of_ok in Ev. subst v. apply side_run_r in E as (u & i & -> & E). destruct y as [y|y]; [contradiction|].
      apply IH; [exact Hg1|]. eapply stands_more; eauto.
    + cbn [ev]. apply s_left. rewrite E. apply feed. destruct x as [x|x], y as [y|y]; try contradiction; apply put_ok, stands_ups; assumption.
  - split; [apply s_op0|reflexivity].
  - part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. eapply simp1_ok; eassumption.
  - part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. part_2 IH. intros K' rho' v' r2 x' y' m' Hr' Hg2 E' Hx'.
    cbn [ev]. apply s_left. rewrite (carried _ Hr' E). apply feed. rewrite E'. apply feed. apply s_op2; assumption.
  - part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. part_2 IH. intros K' rho' v' r2 x' y' m' Hr' Hg2 E' Hx'.
    eapply andthen_ok; [eassumption|apply IH; [eassumption|eapply stands_after; [eapply stands_after; eassumption|eassumption]]|]; cbv beta.
    intros K'' rho'' v'' r3 x'' y'' m'' Hr'' Hg3 E'' Hx''. cbn [ev]. apply s_left. rewrite (carried _ Hr'' (carried _ Hr' E)). apply feed.
    rewrite (carried _ Hr'' E'). apply feed. rewrite E''. apply feed. apply s_op3; assumption.
  - (* loop *) part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. part_2 IH. intros K' rho' v' r2 x' y' m' Hr' Hg2 E' Hx'.
    cbn [ev]. apply s_left. rewrite (carried _ Hr' E). apply feed. rewrite E'. apply feed. cbn in Hx. subst y. apply s_iter; [|exact Hx'].
    intros i p q Hp. apply put_ok, (@stands_ups X O fuel), Hp. apply (@stands_ups X O fuel); [|reflexivity]. eapply stands_after; [eapply stands_after; eassumption|eassumption].
  - (* build *) part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. cbn [ev]. apply s_left. rewrite E. apply feed. cbn in Hx. subst y. eapply s_seq with (P := eq).
    + intros i j ->. apply s_tick, put_ok, (@stands_ups X O fuel); [|reflexivity]. eapply stands_after; eassumption.
    + induction (seq 0 (Z.to_nat x)); constructor; auto.
  - (* map *) part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. cbn [ev]. apply s_left. rewrite E. apply feed. eapply s_seq; [|exact Hx].
    intros p q Hp. apply s_tick, put_ok, stands_ups; [|exact Hp]. eapply stands_after; eassumption.
  - (* fold *) part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. part_2 IH. intros K' rho' v' r2 x' y' m' Hr' Hg2 E' Hx'.
    cbn [ev]. apply s_left. rewrite (carried _ Hr' E). apply feed. rewrite E'. apply feed. eapply s_fold; [|exact Hx'|exact Hx].
    intros p q u w Hp Hu. apply put_ok, stands_ups, Hp. apply stands_ups, Hu. eapply stands_after; [eapply stands_after; eassumption|eassumption].
  - split; reflexivity.
  - part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. cbn [ev]. apply s_left. rewrite E. apply feed. cbn in Hx. subst. apply s_eq.
  - part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. part_2 IH. intros K' rho' v' r2 x' y' m' Hr' Hg2 E' Hx'.
    cbn [ev]. apply s_left. rewrite (carried _ Hr' E). apply feed. rewrite E'. apply feed. cbn in Hx, Hx'. subst. apply s_eq.
  - part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. part_2 IH. intros K' rho' v' r2 x' y' m' Hr' Hg2 E' Hx'.
    cbn [ev]. apply s_left. rewrite (carried _ Hr' E). apply feed. rewrite E'. apply feed. cbn in Hx, Hx'. subst. apply s_eq.
  - part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. part_2 IH. intros K' rho' v' r2 x' y' m' Hr' Hg2 E' Hx'.
    cbn [ev]. apply s_left. rewrite (carried _ Hr' E). apply feed. rewrite E'. apply feed. cbn in Hx, Hx'. subst. apply s_bool. unfold boolv. destruct (decide c _); reflexivity.
  - part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. cbn [ev]. apply s_left. rewrite E. apply feed. cbn in Hx. subst. apply s_eq.
  - part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. cbn [ev]. apply s_left. rewrite E. apply feed. cbn in Hx. subst. apply s_eq.
  - part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. cbn [ev]. apply s_left. rewrite E. apply feed. apply forall2_eq in Hx. subst. apply s_eq.
  - part_1 IH. intros K rho v r1 x y m Hr Hg1 E Hx. part_2 IH. intros K' rho' v' r2 x' y' m' Hr' Hg2 E' Hx'.
    cbn [ev]. apply s_left. rewrite (carried _ Hr' E). apply feed. rewrite E'. apply feed. apply forall2_eq in Hx, Hx'. subst. apply s_eq.
Qed.

(* ---- under binders, and in another order ---------------------------------------------------------------------------- *)
Definition keeps (f : rewriting) : Prop := forall G t (e : tm G t) r r', same_env G r' r -> same_run (same t) (evX (f G t e) r') (evX e r).
Ltac extended := first [split; assumption|split; [assumption|split; assumption]].
Lemma inside_ok : forall f, keeps f -> keeps (@inside f).
Proof.
  intros f Hf G t e. induction e; intros r1 r2 Hr; cbn [inside]; first [apply same_ev, Hr|to_parts]; auto; repeat intro; (apply Hf || apply IHe2); extended.
Qed.
Lemma within_ok : forall f, (forall g, keeps (f g)) -> forall g, keeps (fun G t e => within f e g).
Proof.
  intros f Hf g G t e. revert g. induction e; intros g r1 r2 Hr; cbn [within]; first [apply same_ev, Hr|to_parts]; auto; repeat intro; apply Hf; extended.
Qed.
Lemma run_chain : forall t m m' m'', same_run (same t) m m' -> same_run (same t) m' m'' -> same_run (same t) m m''.
Proof. intros t. apply run_trans, same_trans. Qed.
Definition sim {G t} (e' e : tm G t) : Prop := forall r r', same_env G r' r -> same_run (same t) (evX e' r') (evX e r).
Lemma sim_trans : forall G t (e1 e2 e3 : tm G t), sim e1 e2 -> sim e2 e3 -> sim e1 e3.
Proof. intros G t e1 e2 e3 H1 H2 r r' Hr. eapply run_chain; [apply H1, (@env_self X _ _ _ Hr)|apply H2, Hr]. Qed.
Lemma sim_refl : forall G t (e : tm G t), sim e e.
Proof. intros G t e r r' Hr. apply same_ev, Hr. Qed.
Lemma sim_sym : forall G t (e e' : tm G t), sim e e' -> sim e' e.
Proof. intros G t e e' H r r' Hr. apply (@run_sym _ (same t) (same t) (@same_sym X t)). apply H, env_sym, Hr. Qed.
Lemma sim_sym_run : forall t m m', same_run (same t) m' m -> same_run (same t) m m'.
Proof. intros t m m'. apply run_sym, same_sym. Qed.
(* sharing *)
Definition known {G} (k : names G) (r : env X G) : Prop :=
  Forall (fun n => match n with existT _ c (_, z, m) => exists i j, evX (z tt) r = Some (look m r, i, j) end) k.
Lemma known_below : forall G a (k : names G) r (x : den X a), known k r -> @known (a :: G) (below a k) (x, r).
Proof.
  intros G a k r x H. induction H as [|[c [[h z] m]] k (i & j & Hi) H IH]; constructor; auto. exists i, j. rewrite wk_ok. exact Hi.
Qed.
Lemma find_ok : forall G a h (x : tm G a) (k : names G) r m, known k r -> find h x k = Some m -> exists i j, evX x r = Some (look m r, i, j).
Proof.
  intros G a h x k r m H. induction H as [|[c [[h' z] w]] k (i & j & Hi) H IH]; cbn [find]; [discriminate|].
  destruct (raw_dec h' h); [|exact IH].
  destruct (ty_dec c a) as [E|]; [|exact IH]. destruct E. destruct (raw_dec (erase (z tt)) (erase x)) as [E|]; [|exact IH].
  intros Hm. inversion Hm; subst. apply erase_inj in E. rewrite E in Hi. eauto.
Qed.
Lemma steady_ok : forall a b c (o : op2 a b c) x y z n k, steady o = true -> op2v X o x y = Some (z, n, k) -> k = 0.
Proof.
  intros a b c o x y z n k Ho E. destruct o; try discriminate Ho; cbn [op2v] in E; try (unfold ret in E; inversion E; reflexivity).
  - unfold mget in E. destruct (y <? 0)%Z; [discriminate|]. destruct (nth_error x (Z.to_nat y)); inversion E; reflexivity.
  - destruct o; cbn [intopv] in E; try (unfold ret in E; inversion E; reflexivity); destruct (_ : bool) in E; try discriminate; unfold ret in E; inversion E; reflexivity.
Qed.
Lemma calm_ok : forall G t (e : tm G t) r x n k, calm e = true -> evX e r = Some (x, n, k) -> k = 0.
Proof.
  intros G t e r x n k Hc E. destruct e; cbn [calm] in Hc; try discriminate Hc.
  - destruct (steady o) eqn:Ho; [|discriminate]. destruct (value e1) eqn:H1; [|discriminate].
    destruct (value_ok _ r H1) as (u & i & E1). destruct (value_ok _ r Hc) as (v & j & E2). cbn [ev] in E. rewrite E1 in E. cbn [bind] in E. rewrite E2 in E. cbn [bind] in E.
    destruct (op2v X o u v) as [[[z p] q]|] eqn:Eo; [|discriminate]. apply steady_ok in Eo; [|exact Ho]. subst q. cbn in E. inversion E; subst; reflexivity.
  - destruct (value_ok _ r Hc) as (u & i & E1). cbn [ev] in E. rewrite E1 in E. cbn in E. inversion E; subst; reflexivity.
Qed.
Lemma run_exact : forall t m m' m'', same_run (same t) m m' -> same_run eq m' m'' -> same_run (same t) m m''.
Proof. intros t. apply run_trans. intros x y z H <-. exact H. Qed.
Lemma onto_ok : forall G H a (m : mem a H) (r : ren G H) (g : env X G) (h : env X H), @rok X G H r g h -> @rok X (a :: G) H (onto m r) (look m h, g) h.
Proof.
  intros G H a m r g h Hr t n. revert m. apply (mem_inv (fun u n => forall m : mem u H, look (onto m r n) h = @look X _ (u :: G) n (look m h, g))).
  - intros n0 u m. apply Hr.
  - reflexivity.
Qed.
Lemma share_ok : forall n G t (e : tm G t) H k (r : ren G H) g h, @rok X G H r g h -> known k h -> same_run eq (evX (share n e k r) h) (evX e g).
Proof.
  induction n as [|n IH]; intros G t e H k r g h Hr Hk; cbn [share]; [rewrite (@rn_ok X O fuel _ _ e _ r g h Hr); apply s_eq|].
  destruct e; try (rewrite (@rn_ok X O fuel _ _ _ _ r g h Hr); apply s_eq).
  pose proof (@rn_ok X O fuel _ _ e1 _ r g h Hr) as E1. set (x := rn e1 r) in *. cbv zeta.
  destruct (find _ x k) as [m|] eqn:Em.
  - destruct (find_ok _ _ Hk Em) as (i & j & Ei). pose proof Ei as Ex. rewrite E1 in Ex. destruct (calm x) eqn:Hc.
    + pose proof (calm_ok _ _ Hc Ei) as ->. eapply run_trans with (P := eq) (Q := eq); [intros; congruence|exact (IH _ _ e2 _ k _ _ _ (@onto_ok _ _ a m r g h Hr) Hk)|].
      cbn [ev]. rewrite Ex. cbn [bind]. apply s_right. destruct (evX e2 (look m h, g)) as [[[y p] l]|]; cbn; auto.
    + cbn [ev]. rewrite Ei, Ex. cbn [bind]. apply s_tick.
      assert (@rok X (a :: G) (a :: H) (onto (Pop m) (fun t n => Pop (r t n))) (look m h, g) (look m h, h)) as Hr'
        by exact (@onto_ok G (a :: H) a (Pop m) (fun t n => Pop (r t n)) g (look m h, h) Hr).
      pose proof (IH _ _ e2 _ _ _ _ _ Hr' (@known_below H a k h (look m h) Hk)) as Q.
      destruct (evX (share n _ _ _) _) as [[[u p] q]|], (evX e2 _) as [[[v p'] q']|]; cbn in *; try contradiction; auto. destruct Q as [-> ->]. auto.
  - cbn [ev]. rewrite E1. apply s_tick. destruct (evX e1 g) as [[[y i] j]|] eqn:Ex; cbn [bind]; [|exact I].
    match goal with |- context [share n e2 ?k' _] =>
      assert (same_run eq (evX (share n e2 k' (up r)) ((y, h) : env X (a :: H))) (evX e2 ((y, g) : env X (a :: G)))) as Q end.
    { apply IH; [apply (@up_ok X), Hr|]. constructor; [|apply known_below, Hk]. exists i, j. rewrite wk_ok, E1. reflexivity. }
    destruct (evX (share n e2 _ _) _) as [[[u p] q]|], (evX e2 _) as [[[v p'] q']|]; cbn in *; try contradiction; auto. destruct Q as [-> ->]. auto.
Qed.
Lemma shared_ok : forall n G t (e : tm G t), sim (shared n e) e.
Proof.
  intros n G t e r r' Hr. apply sim_sym_run. eapply run_exact; [apply same_ev, env_sym, Hr|]. apply run_sym with (P := eq); [intros; congruence|].
  apply share_ok; [intros u m; reflexivity|constructor].
Qed.
Theorem normal_ok : forall n depth, keeps (@normal n depth).
Proof.
  intros n. induction depth as [|depth IH]; intros G t e; change (sim (normal n depth e) e) || idtac; cbn [normal]; [apply sim_refl|].
  eapply sim_trans; [apply shared_ok|]. eapply sim_trans; [exact (@inside_ok (fun G t e => normal n depth e) IH _ _ _)|]. eapply sim_trans; [apply shared_ok|].
  intros r r' Hr. pose proof (@env_self X _ _ _ Hr) as Hg.
  replace (evX e r) with (bind (evX e r) ret) by (destruct (evX e r) as [[[x i] j]|]; cbn; [now rewrite !Nat.add_0_r|reflexivity]).
  apply andthen_ok; [exact Hg|apply block_ok; [exact Hg|now apply stands_etas]|]. intros H rho v r1 x y m Hr1 Hg1 E Hx. rewrite E. split; [exact Hx|reflexivity].
Qed.
Lemma exchange_ok : forall G a b (r : env X G) (x : den X a) (y : den X b), @rok X (b :: a :: G) (a :: b :: G) exchange (y, (x, r)) (x, (y, r)).
Proof.
  intros G a b r x y t m. revert y.
  apply (mem_inv (G := a :: G) (fun u m => forall y : den X u, @look X _ (a :: u :: G) (exchange m) (x, (y, r)) = @look X _ (u :: a :: G) m (y, (x, r)))); [|reflexivity].
  intros m0 u y. revert x. apply (mem_inv (fun v m0 => forall x : den X v, @look X _ (v :: u :: G) (exchange (Pop m0)) (x, (y, r)) = @look X _ (v :: G) m0 (x, r))); reflexivity.
Qed.
Lemma lower_one_ok : forall G a (r : env X G) (x : den X a), @Activity.pok X (a :: G) G (@lower_one G a) (x, r) r.
Proof.
  intros G a r x t m. revert x. apply (mem_inv (fun u m => forall (x : den X u) m', lower_one m = Some m' -> look m' r = @look X _ (u :: G) m (x, r))).
  - intros m0 u x m' E. inversion E. reflexivity.
  - intros x m' E. discriminate E.
Qed.
Lemma swap_ok : forall G a b t (x : tm G a) (z : tm (a :: G) b) (w : tm (b :: a :: G) t) z', Activity.prn z (@lower_one G a) = Some z' ->
  sim (tlet z' (tlet (wk b x) (rn w exchange))) (tlet x (tlet z w)).
Proof.
  intros G a b t x z w z' Hz. apply sim_sym. intros r r' Hr.
  eapply run_chain; [apply same_ev, Hr|]. pose proof (@same_ev X O fuel _ _ (tlet x (tlet z w)) r r (@env_self X _ _ _ (@env_sym X _ _ _ Hr))) as Q. revert Q. cbn [ev].
  destruct (evX x r) as [[[u n] k]|] eqn:Ex; cbn [bind tick].
  - rewrite <- (@Activity.prn_ok X O fuel _ _ z _ _ z' _ r Hz (@lower_one_ok G a r u)).
    destruct (evX z' r) as [[[v n'] k']|]; cbn [bind tick]; [|auto]. rewrite wk_ok, Ex. cbn [bind tick].
    match goal with |- context [ev O fuel w ?c] => match goal with |- context [ev O fuel (rn w exchange) ?d] =>
      assert (ev O fuel (rn w exchange) d = ev O fuel w c) as -> by exact (@rn_ok X O fuel _ _ w _ exchange (v, (u, r)) _ (exchange_ok r u v));
      destruct (ev O fuel w c) as [[[p i] j]|] end end; cbn [bind tick same_run]; [|auto]. intros [Q _]. split; [exact Q|lia].
  - intros _. destruct (evX z' r) as [[[v n'] k']|]; cbn [bind tick]; [|exact I]. rewrite wk_ok, Ex. exact I.
Qed.
Lemma first_two_ok : forall G t (e e' : tm G t), first_two e = Some e' -> sim e' e.
Proof.
  assert (forall G' t (y : tm G' t), match G' as G' return tm G' t -> Prop with
    | nil => fun _ => True | a :: G => fun y => forall (x : tm G a) e', first_two (tlet x y) = Some e' -> sim e' (tlet x y) end y) as H.
  { destruct y; (destruct G as [|a0 G]; [exact I|]); cbn; intros x e' E; try discriminate E.
    destruct (Activity.prn y1 _) as [z|] eqn:Ez; inversion E; subst. now apply swap_ok. }
  intros G t e e' E. destruct e; try discriminate E. exact (H _ _ e2 e1 e' E).
Qed.
Lemma bring_ok : forall k G t (e e' : tm G t), bring k e = Some e' -> sim e' e.
Proof.
  induction k; intros G t e e' E; cbn [bring] in E; [inversion E; subst; apply sim_refl|].
  destruct e; try discriminate E. destruct (bring k e2) as [y|] eqn:Ey; [|discriminate E]. apply IHk in Ey. apply first_two_ok in E.
  apply sim_trans with (1 := E). intros r r' Hr. apply c_let; [apply same_ev, Hr|]. intros p q Hp. apply Ey. split; assumption.
Qed.
Lemma alike_ok : forall f g, (forall g, keeps (f g)) -> forall G t (e e' : tm G t), alike f g e = Some e' -> sim e' e.
Proof.
  intros f g Hf G t e e' E. destruct e; try discriminate E. cbn [alike] in E. destruct (raw_dec _ g); inversion E; subst.
  intros r r' Hr. apply c_let; [exact (@within_ok f Hf g _ _ e1 _ _ Hr)|]. intros p q Hp. apply same_ev. split; assumption.
Qed.
Lemma pick_ok : forall f g, (forall g, keeps (f g)) -> forall tries k G t (e e' : tm G t), pick f g k tries e = Some e' -> sim e' e.
Proof.
  intros f g Hf. induction tries; intros k G t e e' E; cbn [pick] in E; [discriminate E|].
  destruct (fitting f g k e); [|eapply IHtries; exact E]. destruct (bring k e) as [e1|] eqn:Eb; [|discriminate E].
  apply sim_trans with e1; [eapply alike_ok; eassumption|eapply bring_ok; eassumption].
Qed.
Lemma choose_ok : forall f g, (forall g, keeps (f g)) -> forall tries G t (e e' : tm G t), choose f g tries e = Some e' -> sim e' e.
Proof.
  intros f g Hf tries G t e e' E. unfold choose in E. destruct (alike f g e) as [e1|] eqn:Ea; [inversion E; subst; eapply alike_ok; eassumption|].
  eapply pick_ok; eassumption.
Qed.
Theorem align_ok : forall n g, keeps (@align n g).
Proof.
  induction n as [|n IH]; intros g G t e; change (sim (align (S n) g e) e) || change (sim (align 0 g e) e); cbn [align]; [apply sim_refl|].
  assert (sim (within (fun g G t e => align n g e) e g) e) as Q by exact (@within_ok (fun g G t e => align n g e) (fun g => IH g) g _ _ e).
  destruct g as [?|? ?|? ?|ga gb|? ? ?|? ? ?| |?|?|?|?|? ?|? ?|?|?|? ?|? ?|? ?|? ?|? ?|? ?|? ?|? ? ?|? ? ?|? ? ?|? ? ?|? ?|? ?|? ? ?|? ?|? ?|? ? ?|? ? ?|? ? ?|? ?|?|?|? ?]; try exact Q.
  destruct (choose _ ga _ e) as [e'|] eqn:Ep; [|apply sim_refl]. apply choose_ok in Ep; [|exact (fun g => IH g)].
  destruct e'; try exact Ep. apply sim_trans with (2 := Ep). intros r r' Hr. apply c_let; [apply same_ev, Hr|]. intros p q Hp. apply IH. split; assumption.
Qed.
Theorem agree_ok : forall n G t (e e' : tm G t), agree n e e' = true -> sim e e'.
Proof.
  intros n G t e e' H. unfold agree in H. destruct (raw_dec _ _) as [E|]; [|discriminate]. apply erase_inj in E.
  apply sim_trans with (normal n n e); [apply sim_sym; exact (normal_ok n n e)|]. rewrite <- E.
  apply sim_trans with (normal n n e'); [exact (align_ok n _ _)|exact (normal_ok n n e')].
Qed.
(* what this says about data *)
Corollary agree_data : forall n G t (e e' : tm G t), agree n e e' = true -> datas G = true -> data t = true ->
  forall r, same_run eq (evX e r) (evX e' r).
Proof.
  intros n G t e e' H HG Ht r. apply (@run_imp _ _ (same t) eq); [intros x y; now apply data_same|]. exact (@agree_ok _ _ _ _ _ H _ _ (@data_env X G HG r)).
Qed.
Corollary agree_computation : forall n G s t, data s = true -> forall e e' : tm G (TFun s t), agree n e e' = true -> datas G = true -> data t = true ->
  forall r x, same_run eq (bind (evX e r) (fun c => c x)) (bind (evX e' r) (fun c => c x)).
Proof.
  intros n G s t Hs e e' H HG Ht r x. apply (@run_imp _ _ (same t) eq); [intros u v; now apply data_same|].
  eapply s_bind; [exact (@agree_ok _ _ _ _ _ H _ _ (@data_env X G HG r))|]. intros f g Hf. apply Hf. now apply data_same.
Qed.
End Sound.
