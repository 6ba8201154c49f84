(** Trees: at every node several candidates, each with its own subtree.

    What it says.  [tree_lossless]: if at every history the candidates (however
    they are drawn, as many as one likes) together with a node rule emit the
    target's row, the whole tree is lossless.  The tree is grown first and
    verified afterwards; a subtree may depend on everything on its path.
    [fixed_tree_lossless]: the same for a tree that is simply given, as long as
    its choice does not look at the target's coins - adaptive trees, n-gram pools
    and beams included (a random choice of tree: Round.mixture_lossless).

    Source: SpecInfer (Miao et al. 2024) sec. 4; EAGLE-1/2; sequoia-style trees. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Round.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Finite programs commute with every expectation: Fubini. *)
Section Swap.
Variable R : realFieldType.

Definition swaps A (m : law R A) := forall B (n : law R B) (F : A -> B -> R),
  lawful n -> m (fun a => n (F a)) = n (fun b => m (F^~ b)).

Lemma swaps_ret A (a : A) : swaps (ret a).
Proof. by []. Qed.

Lemma swaps_bind A B (m : law R A) (k : A -> law R B) :
  (forall f g, f =1 g -> m f = m g) -> swaps m -> (forall a, swaps (k a)) -> swaps (bind m k).
Proof.
move=> ext mS kS C n F nP; rewrite /bind -(mS _ _ (fun a c => k a (F^~ c))) //.
by apply: ext => a; apply: kS.
Qed.

Lemma swaps_coin a : swaps (coin a : law R bool).
Proof. by move=> B n F nP; rewrite /coin (law_add nP) !(law_scale nP). Qed.

Lemma swaps_pick (V : vocab) (p : V -> R) : swaps (pick p).
Proof.
move=> B n F nP; rewrite /pick (law_total nP); apply: total_ext => x.
by rewrite (law_scale nP).
Qed.

(** Independent experiments, one per list entry. *)
Fixpoint each A B (m : A -> law R B) (s : seq A) : law R (seq B) :=
  if s is a :: s' then b <~ m a;; bs <~ each m s';; ret (b :: bs) else ret [::].

Lemma lawful_each A B (m : A -> law R B) s : (forall a, lawful (m a)) -> lawful (each m s).
Proof.
move=> mP; elim: s => [|a s IH] /=; first exact: lawful_ret.
by do 2![apply: lawful_bind => // ?]; apply: lawful_ret.
Qed.

(** One of them alone has its own law. *)
Lemma each_nth A B (m : A -> law R B) s a0 b0 j f : (forall a, lawful (m a)) -> (j < size s)%N ->
  each m s (fun bs => f (nth b0 bs j)) = m (nth a0 s j) f.
Proof.
move=> mP; elim: s j => [|a s IH] [|j] //= lt; rewrite /bind /ret /=.
  by apply: (law_ext (mP a)) => b; apply: (law_const (lawful_each _ mP)).
by rewrite -[RHS](law_const (mP a)); apply: (law_ext (mP a)) => b; apply: IH.
Qed.

Lemma each_size A B (m : A -> law R B) s : (forall a, lawful (m a)) ->
  surely (fun bs => size bs = size s) (each m s).
Proof.
move=> mP; elim: s => [|a s IH] f g e /=; first by rewrite /ret e.
apply: (law_ext (mP a)) => b; apply: IH => bs sz.
by rewrite /ret e //= sz.
Qed.

End Swap.

Section Tree.
Variables (R : realFieldType) (V : vocab).
Variable p : seq V -> V -> R.
Implicit Types (h cs : seq V) (x y : V) (k : seq V -> R).

(** The children of a node, each a candidate token with what was drafted after it. *)
Inductive tree := Node of seq (V * tree).
Definition children (t : tree) := let: Node cts := t in cts.

(** A node rule looks at the candidates and names the emitted token, and the
    child to go on from if it was one of them. *)
Definition choice := (V * option nat)%type.
Variable node : seq V -> seq V -> law R choice.

Definition child_of cs (o : choice) := if o.2 is Some j then (j < size cs)%N && (nth o.1 cs j == o.1) else true.
Hypothesis nodeP : forall h cs, lawful (node h cs).
Hypothesis node_swaps : forall h cs, swaps (node h cs).
Hypothesis node_child : forall h cs, surely (child_of cs) (node h cs).

Definition node_lossless h (cand : law R (seq V)) :=
  forall f, cand (fun cs => node h cs (fun o => f o.1)) = pick (p h) f.

Fixpoint walk h (t : tree) : law R (seq V) :=
  let: Node cts := t in
  let after := [seq walk (rcons h ct.1) ct.2 | ct <- cts] in
  o <~ node h [seq ct.1 | ct <- cts];;
  if o.2 is Some j then s <~ nth (ret [::]) after j;; ret (o.1 :: s) else ret [:: o.1].

(** ** A given tree *)

Lemma lawful_walk_node h cts :
  (forall j, lawful (nth (ret [::]) [seq walk (rcons h ct.1) ct.2 | ct <- cts] j)) -> lawful (walk h (Node cts)).
Proof.
move=> ok; apply: lawful_bind => // -[x [j|]] /=; last exact: lawful_ret.
by apply: lawful_bind => // s; apply: lawful_ret.
Qed.

Fixpoint height (t : tree) : nat := let: Node cts := t in (foldr maxn 0%N [seq height ct.2 | ct <- cts]).+1.

Lemma height_child (cts : seq (V * tree)) j : (j < size cts)%N -> forall ct0,
  (height (nth ct0 cts j).2 <= foldr maxn 0%N [seq height ct.2 | ct <- cts])%N.
Proof.
elim: cts j => [|ct cts IH] [|j] //= lt ct0; first exact: leq_maxl.
by rewrite (leq_trans (IH _ lt ct0)) // leq_maxr.
Qed.

Lemma lawful_walk h t : lawful (walk h t).
Proof.
have [n] := ubnP (height t); elim: n h t => // n IH h [cts] /= lt.
apply: lawful_walk_node => j; case: (ltnP j (size cts)) => [jlt|jge]; last first.
  by rewrite nth_default ?size_map //; apply: lawful_ret.
have ct0 : (V * tree)%type by case: (cts) jlt => [|ct ?].
rewrite (nth_map ct0) //; apply: IH.
exact: leq_ltn_trans (height_child jlt ct0) _.
Qed.

Definition candidates (t : tree) := [seq ct.1 | ct <- children t].

Theorem fixed_tree_lossless h t :
  (forall h cs, node_lossless h (ret cs)) -> lossless p h (walk h t).
Proof.
move=> ok; have [m] := ubnP (height t); elim: m h t => // m IH h [cts] lt [|n] k.
  exact: (law_const (lawful_walk h _)).
rewrite -[RHS](ok h [seq ct.1 | ct <- cts]); rewrite [LHS]/=; apply: node_child => -[x [j|]] /=.
  rewrite /child_of /= size_map => /andP[jlt /eqP e].
  have ct0 : (V * tree)%type by case: (cts) jlt => [|ct ?].
  rewrite (nth_map ct0) // in e; rewrite (nth_map ct0) // e /bind /ret /=.
  apply: (IH (rcons h x) _ _ n (fun s => k (x :: s))).
  exact: leq_ltn_trans (height_child jlt ct0) _.
by rewrite /ret complete_nil.
Qed.

(** ** A tree that is drawn *)

(** The candidates after a history, and how many levels. *)
Variable cand : seq V -> law R (seq V).
Hypothesis candP : forall h, lawful (cand h).

Fixpoint grow g h : law R tree :=
  if g is g'.+1 then
    cs <~ cand h;; ts <~ each (fun c => grow g' (rcons h c)) cs;; ret (Node (zip cs ts))
  else ret (Node [::]).

Definition tree_round g h : law R (seq V) := t <~ grow g h;; walk h t.

Lemma lawful_grow g h : lawful (grow g h).
Proof.
elim: g h => [|g IH] h /=; first exact: lawful_ret.
apply: lawful_bind => // cs; apply: lawful_bind => [|ts]; last exact: lawful_ret.
exact: lawful_each.
Qed.

Lemma lawful_tree_round g h : lawful (tree_round g h).
Proof. by apply: lawful_bind => [|t]; [apply: lawful_grow | apply: lawful_walk]. Qed.

Theorem tree_lossless g h :
  (forall h, node_lossless h (cand h)) -> (forall h, node_lossless h (ret [::])) ->
  lossless p h (tree_round g h).
Proof.
move=> ok none; elim: g h => [|g IH] h [|n] k; try exact: (law_const (lawful_tree_round _ _)).
  rewrite -[RHS](none h) [LHS]/=; apply: node_child => -[x [j|]] //; rewrite /child_of //= => _.
  by rewrite /ret complete_nil.
pose K y := target p n (rcons h y) (fun s => k (y :: s)).
have tailK y : complete p n.+1 h [:: y] k = K y by rewrite /= complete_nil.
rewrite -[RHS]/(pick (p h) K) -(ok h K) /tree_round {1}/bind [LHS]/=; apply: (law_ext (candP h)) => cs.
pose grown := each (fun c => grow g (rcons h c)) cs.
have gP : lawful grown by apply: lawful_each => c; apply: lawful_grow.
pose after ts (o : choice) := if o.2 is Some j
  then walk (rcons h o.1) (nth (Node [::]) ts j) (fun s => complete p n.+1 h (o.1 :: s) k) else K o.1.
transitivity (grown (fun ts => node h cs (after ts))).
  apply: each_size => [c|ts sz]; first exact: lawful_grow.
  rewrite /ret [LHS]/= {1}/bind -/unzip1 unzip1_zip ?sz //.
  apply: node_child => -[x [j|]]; rewrite /child_of; last by move=> _; apply: tailK.
  rewrite /= => /andP[jlt /eqP e].
  by rewrite (nth_map (x, Node [::])) ?size_zip ?sz ?minnn // nth_zip //= e.
rewrite -(node_swaps h cs) //; apply: node_child => -[x [j|]]; last first.
  by rewrite /after /= (law_const gP).
rewrite /child_of /after /= => /andP[jlt /eqP e].
pose deeper t := walk (rcons h x) t (fun s => complete p n.+1 h (x :: s) k).
apply: etrans (each_nth x (Node [::]) deeper _ jlt) _; first by move=> c; apply: lawful_grow.
by rewrite e; apply: (IH (rcons h x) n (fun s => k (x :: s))).
Qed.

Lemma walk_emits h t : surely (fun o => (0 < size o)%N) (walk h t).
Proof.
case: t => cts f g e /=; apply: (law_ext (nodeP h _)) => -[x [j|]] /=; last by rewrite /ret e.
rewrite /bind; case: (ltnP j (size cts)) => [jlt|jge]; last first.
  by rewrite nth_default ?size_map // /ret e.
have ct0 : (V * tree)%type by case: (cts) jlt => [|ct ?].
rewrite (nth_map ct0) //; apply: (law_ext (lawful_walk _ _)) => s.
by rewrite /ret e.
Qed.

End Tree.
