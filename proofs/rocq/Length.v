(** Expected tokens per round.

    What it says.  For the ratio rule on chains of gamma drafts, with
    alpha(h) = sum_x min(p,q)(h) the acceptance after history h:
    - [length_depth]    if alpha depends on depth alone, E = sum_i prod_{j<i} alpha_j
                        (emitted tokens: accepted ones plus one);
    - [length_closed]   constant alpha: (1 - alpha) E = 1 - alpha^(gamma+1);
    - [length_one]      gamma = 1 (one MTP module): E = 1 + A, no assumption at all;
    - [length_le], [length_ge]  bounds when alpha only varies inside an interval.
    Without any such assumption E obeys Leviathan.leviathan_length.

    Source: Leviathan et al. 2023, eq. 1; DeepSeek-V3 (1 + A_2); seed 004
    (sum of products), which needs the assumption that seed 004 leaves out. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Chain Leviathan.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Length.
Variables (R : realFieldType) (V : vocab).
Variables (p q : seq V -> V -> R).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, dist (q h).
Implicit Types (h : seq V) (a : nat -> R).

Definition alpha h : R := overlap (p h) (q h).
Definition expected_tokens g h : R := chain_length p q xpred0 (leviathan_at p q) g h.

(** 1 + a_d (1 + a_{d+1} (1 + ...)), g factors. *)
Fixpoint nested a d g : R := if g is g'.+1 then 1 + a d * nested a d.+1 g' else 1.

Lemma nested_sum a d g : nested a d g = \sum_(0 <= i < g.+1) \prod_(0 <= j < i) a (d + j)%N.
Proof.
elim: g d => [|g IH] d; first by rewrite big_nat1 big_geq.
rewrite big_nat_recl // big_geq //= IH; congr (_ + _); rewrite mulr_sumr.
apply: eq_bigr => i _; rewrite [in RHS]big_nat_recl // addn0; congr (_ * _).
by apply: eq_bigr => j _; rewrite addSnnS.
Qed.

Lemma nested_ge0 a d g : (forall i, 0 <= a i) -> 0 <= nested a d g.
Proof. by move=> a0; elim: g d => [|g IH] d /=; rewrite ?ler01 // addr_ge0 ?ler01 ?mulr_ge0. Qed.

Lemma expected0 h : expected_tokens 0 h = 1.
Proof. by apply: chain_length_halt; rewrite ?orbT. Qed.

Lemma expected_rec g h : expected_tokens g.+1 h =
  1 + total (fun x => Num.min (p h x) (q h x) * expected_tokens g (rcons h x)).
Proof. exact: leviathan_length. Qed.

Lemma min_ge0 h x : 0 <= Num.min (p h x) (q h x).
Proof. by have [p0 _] := pP h; have [q0 _] := qP h; rewrite le_minr p0 q0. Qed.

Theorem length_ge a g h : (forall i, 0 <= a i) -> (forall h, a (size h) <= alpha h) ->
  nested a (size h) g <= expected_tokens g h.
Proof.
move=> a0 le; elim: g h => [|g IH] h; first by rewrite expected0.
rewrite expected_rec /= ler_add2l; apply: le_trans (ler_wpmul2r (nested_ge0 _ _ a0) (le h)) _.
rewrite -total_scaler; apply: total_le => x; apply: ler_wpmul2l; first exact: min_ge0.
by rewrite -(size_rcons h x).
Qed.

Theorem length_le a g h : (forall i, 0 <= a i) -> (forall h, alpha h <= a (size h)) ->
  expected_tokens g h <= nested a (size h) g.
Proof.
move=> a0 le; elim: g h => [|g IH] h; first by rewrite expected0.
rewrite expected_rec /= ler_add2l; apply: le_trans _ (ler_wpmul2r (nested_ge0 _ _ a0) (le h)).
rewrite -total_scaler; apply: total_le => x; apply: ler_wpmul2l; first exact: min_ge0.
by rewrite -(size_rcons h x).
Qed.

Theorem length_depth a g h : (forall h, alpha h = a (size h)) ->
  expected_tokens g h = \sum_(0 <= i < g.+1) \prod_(0 <= j < i) a (size h + j)%N.
Proof.
move=> eqa; rewrite -nested_sum; elim: g h => [|g IH] h; first by rewrite expected0.
rewrite expected_rec /= -eqa -total_scaler; congr (_ + _); apply: total_ext => x.
by rewrite IH size_rcons.
Qed.

Theorem length_closed (c : R) g h : (forall h, alpha h = c) ->
  (1 - c) * expected_tokens g h = 1 - c ^+ g.+1.
Proof.
move=> eqc; elim: g h => [|g IH] h; first by rewrite expected0 expr1 mulr1.
rewrite expected_rec mulrDr -total_scale (total_ext (g := fun x => Num.min (p h x) (q h x) * (1 - c ^+ g.+1))).
  by rewrite total_scaler -/(overlap _ _) -/(alpha h) eqc !exprS; ring.
by move=> x; rewrite -(IH (rcons h x)); ring.
Qed.

Theorem length_one h : expected_tokens 1 h = 1 + alpha h.
Proof. by rewrite expected_rec; congr (_ + _); apply: total_ext => x; rewrite expected0 mulr1. Qed.

End Length.
