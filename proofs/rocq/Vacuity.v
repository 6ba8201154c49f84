(** No theorem here is empty: every hypothesis has an instance.

    What it says.  For each set of hypotheses in the other files, one concrete,
    non-degenerate model over two tokens and exact rationals satisfies them; where
    a theorem is about a rule that somebody else brings, such a rule is brought.

    Source: ours; proofs about nothing are the usual failure of such work. *)

From Coq Require Import Qcanon.
From mathcomp Require Import all_ssreflect all_algebra.
From Proofs Require Import Prob Single Round Loop Chain Leviathan Tree Agreement Siblings WithoutReplacement
  Block Optimality Length Drift BayesRisk Rational Counterexamples.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Notation field := [realFieldType of Qc].

(** Rows that depend on the history and are no point masses. *)
Definition p (h : seq two) : two -> field := if odd (size h) then row2 (1//3) (2//3) else row2 (3//4) (1//4).
Definition q (h : seq two) : two -> field := if last false h then row2 (1//2) (1//2) else row2 (1//5) (4//5).

Lemma row2_dist (a b : Qc) : 0 <= a -> 0 <= b -> a + b = 1 -> dist (row2 a b : two -> field).
Proof. by move=> a0 b0 e; split=> [[]|] //; rewrite /total /= addr0. Qed.

Theorem rows_are_distributions : (forall h, dist (p h)) /\ (forall h, dist (q h)).
Proof.
split=> h; rewrite /p /q; case: ifP => _; apply: row2_dist; try by vm_compute.
all: by apply/eqP; vm_compute.
Qed.

Let pP := rows_are_distributions.1.
Let qP := rows_are_distributions.2.

(** Block verification does reject, keep and stop on these rows: nothing is degenerate. *)
Theorem rows_are_not_degenerate :
  [/\ 0 < overlap (p [::]) (q [::]), overlap (p [::]) (q [::]) < 1 & p [::] tok0 != q [::] tok0].
Proof. by split; vm_compute. Qed.

(** For Optimality: a rival that keeps nothing, which is the worst there is. *)
Definition keep_nothing (h xs : seq two) : law field (nat * two) := y <~ pick (p h);; ret (0%N, y).

Theorem rival_instance g h :
  [/\ forall xs, lawful (keep_nothing h xs),
      forall xs, surely (fun r => (r.1 <= size xs)%N) (keep_nothing h xs)
    & lossless p h (rule_round q xpred0 (keep_nothing h) g h)].
Proof.
split=> [xs|xs f f' e|n k].
- by apply: lawful_bind => [|y]; [apply: lawful_pick; apply: pP | apply: lawful_ret].
- by apply: total_ext => y; congr (_ * _); apply: e.
case: n => [|n].
  have dP := @lawful_drafts _ _ q xpred0 qP g h.
  rewrite -[RHS](law_const dP); apply: (law_ext dP) => xs.
  exact: (law_const (lawful_pick (pP h))).
have dP := @lawful_drafts _ _ q xpred0 qP g h.
rewrite -[RHS](law_const dP); apply: (law_ext dP) => xs.
rewrite -(bonus_lossless p n h k); apply: total_ext => y.
by rewrite /ret take0.
Qed.

Theorem transport_instance (f : two -> field) :
  draws (q [::]) 2 (fun _ => pick (p [::]) f) = pick (p [::]) f.
Proof. exact: (law_const (lawful_draws (qP [::]) 2)). Qed.

(** Acceptance that depends on depth alone, and rows within eps of each other. *)
Theorem length_instance :
  let p0 (_ : seq two) := p [::] in let q0 (_ : seq two) := q [::] in
  forall h, alpha p0 q0 h = (fun _ : nat => overlap (p [::]) (q [::])) (size h).
Proof. by []. Qed.

Theorem drift_instance : let p' (h : seq two) := q h in forall h, tv (p h) (p' h) <= 1.
Proof.
move=> p' h; have := overlap_ge0 (pP h) (qP h).
by rewrite acceptance_is_one_minus_tv ?subr_ge0 //; [apply: pP | apply: qP].
Qed.

(** 0-1 loss over two decisions is an uncertainty in the sense of BayesRisk. *)
Theorem zero_one_risk : let G := @bayes field two (fun y => (y != tok0)%:R) [:: fun y => (y != tok1)%:R] in
  [/\ superadditive G, respects G, 0 <= G (fun _ => 0)
    & forall c v, 0 <= c -> G (fun y => c * v y) = c * G v].
Proof.
split=> [|u v e||c v c0]; first exact: bayes_superadditive.
- by congr Num.min; apply: total_ext => y; rewrite e.
- by rewrite /= /expected_loss !(total_ext (g := fun _ => 0)) ?total0 ?minxx // => y; rewrite mul0r.
rewrite /= minr_pmulr // /expected_loss -!total_scale.
by congr Num.min; apply: total_ext => y; rewrite mulrA.
Qed.

(** More features can help: b names the token, a says nothing. *)
Theorem features_can_help :
  let G := @bayes field two (fun y => (y != tok0)%:R) [:: fun y => (y != tok1)%:R] in
  let mu (_ : two) (b y : two) : field := if b == y then 1//4 else 0 in
  (risk_fine mu G, risk_coarse mu G) = (0, 1//2).
Proof. compute_law. Qed.
