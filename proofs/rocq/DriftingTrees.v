(** Machines that judge several candidates: how far a round on a tree drifts.

    What it says.
    - [coin_moved]          a coin that is off by d moves what it decides by at most d;
    - [walk_drifts_narrow]  a given tree drifts by d if each of its nodes does, on at most m siblings;
    - [tree_drifts]         so does a tree of sampled candidates, if candidates and node do together.
    The depth of the tree does not enter: a token is judged at one node.

    Source: ours (a hybrid argument over tokens). *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
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

(** ** Given trees without wide nodes *)

(** The most siblings anywhere. *)
Fixpoint widest (t : tree V) : nat :=
  let: Node cts := t in maxn (size cts) (foldr maxn 0%N [seq widest ct.2 | ct <- cts]).

Section Given.
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
End Given.

(** ** Trees that are drawn *)

Section Drawn.
Variable cand : seq V -> law R (seq V).
Hypothesis node_swaps : forall h cs, swaps (node h cs).
Hypothesis candP : forall h, lawful (cand h).
Hypothesis near : forall h f, unit_test f -> cand h (fun cs => node h cs (fun o => f o.1)) <= pick (p h) f + d.
Hypothesis near_none : forall h f, unit_test f -> node h [::] (fun o => f o.1) <= pick (p h) f + d.

Lemma leaf_drifts h : drifts p d h (walk node h (Node [::])).
Proof.
move=> n k k01; pose r f := node h [::] (fun o => f o.1).
have -> : walk node h (Node [::]) ((allowed p d n h)^~ k) = r (fun y => allowed p d n h [:: y] k).
  by apply: node_child => -[x [j|]].
apply: one_more_drifts => // [|f]; last exact: near_none.
by apply: (lawful_bind (nodeP h [::])) => o; apply: lawful_ret.
Qed.

(** What the emitted token and the subtree below it are worth. *)
Definition going_on n h k (ts : seq (tree V)) (o : choice V) : R :=
  if o.2 is Some j then walk node (rcons h o.1) (nth (Node [::]) ts j) (fun s => allowed p d n.+1 h (o.1 :: s) k)
  else allowed p d n.+1 h [:: o.1] k.

Lemma walk_going_on n h k cs ts : size ts = size cs ->
  walk node h (Node (zip cs ts)) ((allowed p d n.+1 h)^~ k) = node h cs (going_on n h k ts).
Proof.
move=> sz; rewrite [LHS]/= {1}/bind -/unzip1 unzip1_zip ?sz //.
apply: node_child => -[x [j|]]; rewrite /child_of // /= => /andP[jlt /eqP e].
by rewrite (nth_map (x, Node [::])) ?size_zip ?sz ?minnn // nth_zip //= e.
Qed.

Lemma tree_drifts g h : drifts p d h (tree_round node cand g h).
Proof.
elim: g h => [|g IH] h; first exact: leaf_drifts.
have tP g' h' := lawful_tree_round nodeP candP g' h'.
move=> [|n] k k01.
  by rewrite mul0r addr0 -[leRHS](law_const (tP g.+1 h)); apply: (law_le (tP _ _)) => o; rewrite allowed_none.
pose K := after p n h k; have K01 : unit_test K by apply: unit_after.
rewrite -drift_more; apply: le_trans (_ : cand h (fun cs => node h cs (fun o => K o.1)) + n%:R * d <= _); last first.
  by rewrite ler_add2r; apply: near.
rewrite -[X in _ + X](law_const (candP h)) -(law_add (candP h)); apply: (law_le (candP h)) => cs.
pose grown := each (fun c => grow cand g (rcons h c)) cs.
have gP : lawful grown by apply: lawful_each => c; apply: lawful_grow.
have -> : (ts <~ grown;; ret (Node (zip cs ts))) (fun t => walk node h t ((allowed p d n.+1 h)^~ k))
        = grown (fun ts => node h cs (going_on n h k ts)).
  apply: each_size => [c|ts sz]; first exact: lawful_grow.
  exact: walk_going_on.
rewrite -(node_swaps h cs) // -[X in _ + X](law_const (nodeP h cs)) -(law_add (nodeP h cs)).
pose good (o : choice V) F := if child_of cs o then F else 0 : R.
set go := (X in node h cs X <= _); set bar := (X in _ <= node h cs X).
have -> : node h cs go = node h cs (fun o => good o (go o)) by apply: node_child => o ok; rewrite /good ok.
have -> : node h cs bar = node h cs (fun o => good o (bar o)) by apply: node_child => o ok; rewrite /good ok.
apply: (law_le (nodeP h cs)) => -[x j]; rewrite /good; case: ifP => // ok; rewrite /go /bar /going_on {go bar good} /=.
case: j ok => [j|_] /=; last by rewrite (law_const gP) allowed_one.
rewrite /child_of /= => /andP[jlt /eqP e].
pose deeper t := walk node (rcons h x) t (fun s => allowed p d n (rcons h x) s (fun s => k (x :: s))).
have -> : grown (fun ts => walk node (rcons h x) (nth (Node [::]) ts j) (fun s => allowed p d n.+1 h (x :: s) k))
        = grow cand g (rcons h (nth x cs j)) deeper.
  by apply: (each_nth x (Node [::]) deeper _ jlt) => c; apply: lawful_grow.
by rewrite e; apply: (IH (rcons h x) n (fun s => k (x :: s))) => s; apply: k01.
Qed.
End Drawn.
End Trees.
