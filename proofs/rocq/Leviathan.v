(** Rule [leviathan]: the ratio rule on chains.

    What it says.  [leviathan_lossless]: accept x_i with probability
    min(1, p_i x_i / q_i x_i), at the first rejection draw from norm(max(p_i-q_i,0)),
    after gamma acceptances draw a bonus from p: every block length, every history-
    dependent p and q, every causal truncation.  [leviathan_length]: its expected
    length obeys E = 1 + sum_x min(p,q)(x) E[after x], exactly.

    Source: Leviathan et al. 2023, Alg. 1, App. A.1; Chen et al. 2023, Alg. 2, Thm 1.
    Runs in: refengine/exact/rules/leviathan.py. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Chain.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Leviathan.
Variables (R : realFieldType) (V : vocab).
Variables (p q : seq V -> V -> R) (halt : seq V -> bool).
Implicit Types (h : seq V) (x : V).

Definition leviathan_at h x := leviathan_step (p h) (q h) x.
Definition leviathan g h : law R (seq V) := chain p q halt leviathan_at g h.

(** Asked of every row, also of those after [halt], where nothing is drawn ([Chain.chain_lossless] asks less). *)
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, dist (q h).

Lemma lawful_leviathan_at h x : lawful (leviathan_at h x).
Proof. exact: lawful_leviathan. Qed.

Theorem leviathan_lossless g h : lossless p h (leviathan g h).
Proof.
apply: chain_lossless => // [h' x|h' _]; first exact: lawful_leviathan_at.
exact: single_step.
Qed.

Theorem leviathan_emits g h : surely (fun o => (0 < size o)%N) (leviathan g h).
Proof. by apply: chain_emits => // h'; exact: lawful_leviathan_at. Qed.

Theorem leviathan_length g h : ~~ halt h ->
  chain_length p q halt leviathan_at g.+1 h =
  1 + total (fun x => Num.min (p h x) (q h x) * chain_length p q halt leviathan_at g (rcons h x)).
Proof.
move=> go; rewrite chain_length_rec //; last by move=> h' x; exact: lawful_leviathan_at.
congr (_ + _); apply: total_ext => x; congr (_ * _).
have [p0 p1] := pP h; have [q0 q1] := qP h.
rewrite -accept_mass //; congr (_ * _).
rewrite /leviathan_at /leviathan_step /bind /coin /ret /= mulr1.
by rewrite (law_const (lawful_pick (residual_dist (q h) (pP h)))) mulr0 addr0.
Qed.

End Leviathan.

(** The hypotheses have an instance: p and q point masses. *)
Lemma leviathan_instance (R : realFieldType) (V : vocab) (c : V) :
  let row (_ : seq V) x := (x == c)%:R : R in forall h, dist (row h).
Proof. by move=> row h; apply: dist_onehot. Qed.
