(** Choosing by sums that round: no token without weight is chosen.

    What it says.  The engine's [choose_below] takes the first token that has weight
    and whose prefix sum is above the bar, and where there is none the last token that
    has weight.  [chosen_has_weight]: whatever the sums and the bar are - rounded in
    any way, not monotone, not a number's sums at all - what it takes has weight,
    as soon as some token has.

    Source: ours; refengine/engine/coins.py, choose_below. *)

From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Choose.
Variables (R : realFieldType) (n : nat) (weights sums : nat -> R) (bar : R).

Definition weighty : seq nat := [seq i <- iota 0 n | 0 < weights i].
Definition above : seq nat := [seq i <- weighty | bar < sums i].
Definition chosen_below : nat := head (last n weighty) above.

Theorem chosen_has_weight i : (i < n)%N -> 0 < weights i -> (chosen_below < n)%N /\ 0 < weights chosen_below.
Proof.
move=> lt wi; suff : chosen_below \in weighty by rewrite mem_filter mem_iota => /andP[w /andP[_ le]].
have : i \in weighty by rewrite mem_filter wi mem_iota.
rewrite /chosen_below; case e: above => [|j s] /=.
  by case: weighty => // a s _; rewrite /= mem_last.
by move=> _; have : j \in above by [rewrite e mem_head]; rewrite mem_filter => /andP[].
Qed.

End Choose.
