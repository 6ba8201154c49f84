(** Rule [agreement]: accept iff equal to the target's own draw.

    What it says.  [agreement_lossless]: drawing y ~ p and going on while the
    draft equals y is lossless for every drafter; [agreement_keep_rate]: it
    keeps a token with probability sum_x p x * q x, never more than the ratio
    rule's sum_x min(p,q) ([agreement_below_ratio]).  What is emitted is always
    the target's own draw, so even a draft that shares the target's noise is
    harmless ([agreement_any_coupling]: the emitted token is y whatever x was);
    under the ratio rule shared noise is fatal (Counterexamples.v).

    Source: sampler matching in DFlash, mlx-lm; disputed in public, settled here.
    Runs in: refengine/exact/rules/agreement.py. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Chain Tree.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Step.
Variables (R : realFieldType) (V : vocab).
Implicit Types (p q : V -> R) (x y : V).

(** The verdict on draft x when the target's own draw is y. *)
Definition agree x y : verdict V := if y == x then None else Some y.

Definition agreement_step p x : law R (verdict V) := y <~ pick p;; ret (agree x y).

(** Whatever joint law draft and target draw have, the target's draw comes out. *)
Theorem agreement_any_coupling x y : emitted x (agree x y) = y.
Proof. by rewrite /agree /emitted; case: eqP. Qed.

Lemma agreement_step_lossless p q : dist p -> dist q -> step_lossless p q (agreement_step p).
Proof.
move=> pP qP f; rewrite -[RHS](law_const (lawful_pick qP)); apply: total_ext => x; congr (_ * _).
by apply: total_ext => y; rewrite /ret agreement_any_coupling.
Qed.

Lemma lawful_agreement p x : dist p -> lawful (agreement_step p x).
Proof. by move=> pP; apply: lawful_bind => [|y]; [apply: lawful_pick | apply: lawful_ret]. Qed.

Theorem agreement_keep_rate p q : keep_rate q (agreement_step p) = total (fun x => p x * q x).
Proof.
apply: total_ext => x; rewrite mulrC; congr (_ * _).
rewrite -(total_pick x p); apply: total_ext => y; rewrite /ret /agree mulrC.
by case: eqP.
Qed.

Theorem agreement_below_ratio p q : dist p -> dist q -> total (fun x => p x * q x) <= overlap p q.
Proof.
move=> pP qP; rewrite -agreement_keep_rate; apply: acceptance_optimal => // [x|].
  exact: lawful_agreement.
exact: agreement_step_lossless.
Qed.

End Step.

Section Agreement.
Variables (R : realFieldType) (V : vocab).
Variables (p q : seq V -> V -> R) (halt : seq V -> bool).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, dist (q h).

Definition agreement g h : law R (seq V) := chain p q halt (fun h => agreement_step (p h)) g h.

Theorem agreement_lossless g h : lossless p h (agreement g h).
Proof.
apply: chain_lossless => // [h' x|h' _]; first exact: lawful_agreement.
exact: agreement_step_lossless.
Qed.

End Agreement.

(** On trees: go to the first candidate that equals the target's draw.  Greedy
    verification of a tree is the case where p is a point mass on the argmax. *)
Section Trees.
Variables (R : realFieldType) (V : vocab).
Variable p : seq V -> V -> R.
Hypothesis pP : forall h, dist (p h).
Implicit Types (h cs : seq V).

Definition agreement_node h cs : law R (choice V) :=
  y <~ pick (p h);; ret (y, if y \in cs then Some (index y cs) else None).

Definition agreement_walk h (t : tree V) : law R (seq V) := walk agreement_node h t.

Lemma lawful_agreement_node h cs : lawful (agreement_node h cs).
Proof. by apply: lawful_bind => [|y]; [apply: lawful_pick | apply: lawful_ret]. Qed.

Lemma agreement_node_swaps h cs : swaps (agreement_node h cs).
Proof.
by move=> B n F nP; apply: (swaps_pick (p h) (fun y => F (y, if y \in cs then Some (index y cs) else None)) nP).
Qed.

Lemma agreement_node_child h cs : surely (child_of cs) (agreement_node h cs).
Proof.
move=> f g e; apply: total_ext => y; congr (_ * _); apply: e; rewrite /child_of /=.
by case: ifP => // yin; rewrite index_mem yin nth_index ?eqxx.
Qed.

Theorem agreement_tree_lossless h t : lossless p h (agreement_walk h t).
Proof.
apply: fixed_tree_lossless => //.
- exact: lawful_agreement_node.
- exact: agreement_node_child.
Qed.

(** Sampled trees: any law of candidates, any depth. *)
Theorem agreement_sampled_tree_lossless (cand : seq V -> law R (seq V)) g h :
  (forall h, lawful (cand h)) -> lossless p h (tree_round agreement_node cand g h).
Proof.
move=> candP; apply: tree_lossless => //.
- exact: lawful_agreement_node.
- exact: agreement_node_swaps.
- exact: agreement_node_child.
- move=> h' f; exact: (law_const (candP h') (pick (p h') f)).
Qed.

End Trees.
