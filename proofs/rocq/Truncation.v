(** Confidence truncation in its two lossless forms.

    What it says.  A drafter may end its block
    - before position k, from a confidence computed before x_k is known
      ([causal_lossless]: DSpark's threshold policy), or
    - after keeping x_k, for any reason, x_k's value included
      ([stopping_lossless]: transformers' ConfidenceCriteria, a stop token).
    It may not drop x_k for its value, nor because of a later confidence that
    depends on it: Counterexamples.dropping_by_value, retrospective_scheduler.

    Source: ours; refengine/exact/rules/truncation.py runs all three forms. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Proofs Require Import Prob Single Round Chain Leviathan Block.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Truncation.
Variables (R : realFieldType) (V : vocab).
Variables (p q : seq V -> V -> R).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, dist (q h).
Implicit Types (h : seq V).

(** [confidence h] is that of the position after [h]; it cannot see the token there. *)
Theorem causal_lossless (confidence : seq V -> R) (threshold : R) gamma h :
  lossless p h (leviathan p q (fun h => confidence h < threshold) gamma h).
Proof. exact: leviathan_lossless. Qed.

(** [last] sees the token that was just kept; nothing is asked before the first. *)
Definition after_keeping (start : nat) (last : seq V -> bool) h : bool := (start < size h)%N && last h.

Theorem stopping_lossless (last : seq V -> bool) gamma h :
  lossless p h (leviathan p q (after_keeping (size h) last) gamma h).
Proof. exact: leviathan_lossless. Qed.

(** Both hold for block verification too. *)
Theorem causal_block_lossless (confidence : seq V -> R) (threshold : R) gamma h :
  lossless p h (block p q (fun h => confidence h < threshold) gamma h).
Proof. exact: block_lossless. Qed.

Theorem stopping_block_lossless (last : seq V -> bool) gamma h :
  lossless p h (block p q (after_keeping (size h) last) gamma h).
Proof. exact: block_lossless. Qed.

End Truncation.
