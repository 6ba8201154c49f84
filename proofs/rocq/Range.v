(** Means of sums over a range of numbers.

    What it says.  [law_sum]: the mean of a sum is the sum of the means.

    Source: none; used by KeptWord.v and Race.v. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma law_sum (R : realFieldType) B (m : law R B) (F : nat -> B -> R) k : lawful m ->
  m (fun b => \sum_(0 <= i < k) F i b) = \sum_(0 <= i < k) m (F i).
Proof.
move=> mP; elim: k => [|k IH].
  by rewrite big_geq // -[RHS](law_const mP); apply: (law_ext mP) => b; rewrite big_geq.
by rewrite big_nat_recr //= -IH -(law_add mP); apply: (law_ext mP) => b; rewrite big_nat_recr.
Qed.
