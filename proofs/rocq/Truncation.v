(** Confidence truncation in its two lossless forms.

    What it says.  A drafter may end its block
    - before position k, from a confidence computed before x_k is known
      ([causal_lossless]: DSpark's threshold policy), or
    - after keeping x_k, for any reason, x_k's value included
      ([stopping_lossless]: transformers' ConfidenceCriteria, a stop token).
    It may not drop x_k for its value, nor because of a later confidence that
    depends on it ([retrospective], the whole block first and then the length that
    promises most): Counterexamples.dropping_by_value, retrospective_is_lossy.

    Source: ours; refengine/exact/rules/truncation.py runs all three forms. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
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

(** Lossy: the scheduler that looks back over a finished block. *)
Section Retrospective.
Variables (R : realFieldType) (V : vocab).
Variables (p q : seq V -> V -> R) (confidence : seq V -> R) (cost : nat -> R).
Implicit Types (h xs : seq V).

(** Expected tokens of the first n drafts: 1 + c_0 (1 + c_1 (1 + ...)). *)
Fixpoint promised n h xs : R :=
  match n, xs with
  | n'.+1, x :: xs' => 1 + confidence h * promised n' (rcons h x) xs'
  | _, _ => 1
  end.
(** The length of most promised tokens per cost, the shortest of those. *)
Definition best_length gamma h xs : nat :=
  foldl (fun best n => if promised best h xs / cost best < promised n h xs / cost n then n else best)
    0%N (iota 1 gamma).
Definition retrospective gamma h : law R (seq V) :=
  xs <~ draft q xpred0 gamma h;; verify p (leviathan_at p q) h (take (best_length gamma h xs) xs).

End Retrospective.
