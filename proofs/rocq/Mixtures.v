(** Mixtures: which drafter, which length, which tree may be left to chance.

    What it says.
    - [random_drafter_lossless]  a drafter, a length or a halting policy chosen at
                                 random before the round;
    - [random_tree_lossless]     a random tree of deterministic candidates.
    Round.mixture_lossless says it of any rounds.  Choices that follow from what earlier
    rounds saw are the state of Loops.v.

    Source: ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Chain Leviathan Tree PointMass.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Mixtures.
Variables (R : realFieldType) (V : vocab).
Variable p : seq V -> V -> R.
Hypothesis pP : forall h, dist (p h).

Theorem random_drafter_lossless I (m : law R I) (q : I -> seq V -> V -> R) (halt : I -> seq V -> bool)
    (gamma : I -> nat) h :
  lawful m -> (forall i h, dist (q i h)) ->
  lossless p h (i <~ m;; leviathan p (q i) (halt i) (gamma i) h).
Proof. by move=> mP qP; apply: mixture_lossless => // i; apply: leviathan_lossless. Qed.

Theorem random_tree_lossless (m : law R (tree V)) h :
  lawful m -> lossless p h (t <~ m;; point_mass p h t).
Proof. by move=> mP; apply: mixture_lossless => // t; apply: point_mass_lossless. Qed.

End Mixtures.
