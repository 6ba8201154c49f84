(** Rule [iid_candidates]: k independent draws from one q at every node.

    What it says.  [iid_candidates_lossless]: judged one after the other, each as
    a trial of its own (a token drawn twice is judged twice), they emit p; trees
    of any depth, widths and rows that depend on the path.

    Source: SpecInfer (Miao et al. 2024), multi-step speculative sampling.
    Runs in: refengine/exact/rules/iid_candidates.py. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Chain Tree Siblings.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section IidCandidates.
Variables (R : realFieldType) (V : vocab).
Variables (p q : seq V -> V -> R) (width : seq V -> nat).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, dist (q h).

Definition same_row h (d : seq V) : V -> R := q h.
Definition iid_candidates g h : law R (seq V) := siblings_tree p same_row (fun _ => xpred0) width g h.

Theorem iid_candidates_lossless g h : lossless p h (iid_candidates g h).
Proof.
apply: siblings_tree_lossless => // [h' d x|h' d _]; rewrite /same_row //.
by case: (qP h').
Qed.

End IidCandidates.
