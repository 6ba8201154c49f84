(** Machines that judge several candidates: how far a round on a tree drifts.

    What it says.
    - [coin_moved]          a coin that is off by d moves what it decides by at most d;
    - [walk_drifts_narrow]  a given tree drifts by d if each of its nodes does, on at most m siblings.
    The depth of the tree does not enter: a token is judged at one node.

    Source: ours (a hybrid argument over tokens). *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Loop Chain Tree Drift Drifting.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The coin turns from t to a; what it decides between lies in [0, 1]. *)
Lemma coin_moved (R : realFieldType) (a t x y d : R) : 0 <= x <= 1 -> 0 <= y <= 1 -> `|a - t| <= d ->
  a * x + (1 - a) * y <= t * x + (1 - t) * y + d.
Proof.
move=> x01 y01 near; rewrite -ler_subl_addl.
have -> : a * x + (1 - a) * y - (t * x + (1 - t) * y) = (a - t) * (x - y) by ring.
apply: le_trans (ler_norm _) _; rewrite normrM -[leRHS]mulr1; apply: ler_pmul => //.
exact: apart.
Qed.

Lemma lawful_same (R : realFieldType) A (m m' : law R A) : (forall f, m f = m' f) -> lawful m' -> lawful m.
Proof. by move=> e [ext add sc le one]; split=> [f g fg|f g|s f|f g fg|]; rewrite !e; auto. Qed.

Section Trees.
Variables (R : realFieldType) (V : vocab) (p : seq V -> V -> R) (d : R).
Hypothesis pP : forall h, dist (p h).
Variable node : seq V -> seq V -> law R (choice V).
Hypothesis nodeP : forall h cs, lawful (node h cs).
Hypothesis node_child : forall h cs, surely (child_of cs) (node h cs).

(** The most siblings anywhere. *)
Fixpoint widest (t : tree V) : nat :=
  let: Node cts := t in maxn (size cts) (foldr maxn 0%N [seq widest ct.2 | ct <- cts]).

Variable m : nat.
Hypothesis d0 : 0 <= d.
Hypothesis node_near : forall h cs f, (size cs <= m)%N -> unit_test f -> node h cs (fun c => f c.1) <= pick (p h) f + d.

(** The node where it is narrow, and else the target itself. *)
Definition narrow_node h cs : law R (choice V) :=
  if (size cs <= m)%N then node h cs else y <~ pick (p h);; ret (y, None).

Lemma walk_narrow h t : (widest t <= m)%N -> walk node h t = walk narrow_node h t.
Proof.
have [k] := ubnP (height t); elim: k h t => // k IH h [cts]; rewrite /= geq_max => lt /andP[sz rest].
rewrite /narrow_node size_map sz; suff -> : [seq walk node (rcons h ct.1) ct.2 | ct <- cts]
  = [seq walk narrow_node (rcons h ct.1) ct.2 | ct <- cts] by [].
elim: cts {sz} lt rest => [|ct cts IHc] //=.
by rewrite ltnS gtn_max geq_max => /andP[lt lts] /andP[ok oks]; rewrite IH // IHc.
Qed.

Lemma walk_drifts_narrow h t : (widest t <= m)%N -> drifts p d h (walk node h t).
Proof.
move=> narrow; rewrite walk_narrow //; apply: walk_drifts => // h' cs.
- rewrite /narrow_node; case: ifP => _ //.
  by apply: lawful_bind => [|y]; [apply: lawful_pick | apply: lawful_ret].
- rewrite /narrow_node; case: ifP => _ //.
  by move=> f g e; apply: total_ext => y; rewrite /ret e.
move=> f f01; rewrite /narrow_node; case: ifP => ok; first exact: node_near.
by rewrite /bind /ret ler_addl.
Qed.

(** ... drawn by anything that draws no wide ones. *)
Lemma drawn_drifts_narrow h (draw : law R (tree V)) : lawful draw -> surely (fun t => (widest t <= m)%N) draw ->
  drifts p d h (t <~ draw;; walk node h t).
Proof.
move=> dP few n k k01; set most := leRHS.
have -> : (t <~ draw;; walk node h t) ((allowed p d n h)^~ k)
  = draw (fun t => if (widest t <= m)%N then walk node h t ((allowed p d n h)^~ k) else most).
  by apply: few => t ->.
rewrite -[leRHS](law_const dP); apply: (law_le dP) => t; case: ifP => // narrow.
exact: walk_drifts_narrow.
Qed.
End Trees.
