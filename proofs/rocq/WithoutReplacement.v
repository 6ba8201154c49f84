(** Rule [without_replacement]: siblings drawn from q without replacement.

    What it says.  The next sibling is drawn from q renormalised over the tokens
    not drawn yet, and judged against that row; where q supports fewer than k
    tokens the list is shorter.  [without_replacement_lossless]: p comes out, on
    trees of any depth.

    Source: EAGLE-1's sampling tree; recursive rejection sampling, Jeon et al. 2024.
    Runs in: refengine/exact/rules/without_replacement.py. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Chain Tree Siblings.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section WithoutReplacement.
Variables (R : realFieldType) (V : vocab).
Variables (p q : seq V -> V -> R) (width : seq V -> nat).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, dist (q h).
Implicit Types (h d : seq V) (x : V).

Definition left_over h d x : R := if x \in d then 0 else q h x.
Definition renormalised h d x : R := left_over h d x / total (left_over h d).
Definition exhausted h d : bool := total (left_over h d) == 0.

Definition without_replacement g h : law R (seq V) :=
  siblings_tree p renormalised exhausted width g h.

Lemma left_over_ge0 h d x : 0 <= left_over h d x.
Proof. by rewrite /left_over; case: ifP => // _; case: (qP h). Qed.

Lemma renormalised_ge0 h d x : 0 <= renormalised h d x.
Proof. by rewrite divr_ge0 ?left_over_ge0 // total_ge0 // => y; apply: left_over_ge0. Qed.

Lemma renormalised_dist h d : ~~ exhausted h d -> dist (renormalised h d).
Proof. by move=> more; split=> [x|]; [apply: renormalised_ge0 | rewrite /renormalised total_scaler mulfV]. Qed.

Theorem without_replacement_lossless g h : lossless p h (without_replacement g h).
Proof. by apply: siblings_tree_lossless => // [h' d x|h' d]; [apply: renormalised_ge0 | apply: renormalised_dist]. Qed.

(** No token is proposed twice. *)
Lemma refused_not_redrawn h d x : x \in d -> renormalised h d x = 0.
Proof. by rewrite /renormalised /left_over => ->; rewrite mul0r. Qed.

End WithoutReplacement.
