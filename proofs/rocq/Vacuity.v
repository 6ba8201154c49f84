(** No theorem here is empty: every hypothesis has an instance.

    What it says.  For each set of hypotheses in the other files, one concrete,
    non-degenerate model over two tokens and exact rationals satisfies them; where
    a theorem is about a rule that somebody else brings, such a rule is brought.

    Source: ours; proofs about nothing are the usual failure of such work. *)

From Coq Require Import Qcanon.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
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

(** Block verification does reject, keep and stop on these rows: nothing is degenerate. *)
Theorem rows_are_not_degenerate :
  [/\ 0 < overlap (p [::]) (q [::]), overlap (p [::]) (q [::]) < 1 & p [::] tok0 != q [::] tok0].
Proof. by split; vm_compute. Qed.

(** For Optimality: the ratio rule as a rival.  It keeps drafts, and fewer than block verification. *)
Fixpoint ratio_rule (h xs : seq two) : law field (nat * two) :=
  if xs is x :: xs' then
    v <~ leviathan_at p q h x;;
    if v is Some y then ret (0%N, y) else r <~ ratio_rule (rcons h x) xs';; ret (r.1.+1, r.2)
  else y <~ pick (p h);; ret (0%N, y).

Lemma ratio_rule_verifies h xs k :
  verify p (leviathan_at p q) h xs k = ratio_rule h xs (fun r => k (rcons (take r.1 xs) r.2)).
Proof.
have [pP qP] := rows_are_distributions.
elim: xs h k => [|x xs IH] h k //=; apply: (law_ext (lawful_leviathan_at pP qP h x)) => -[y|] //.
exact: (IH (rcons h x) (fun o => k (x :: o))).
Qed.

Theorem rival_instance g h :
  [/\ forall xs, lawful (ratio_rule h xs),
      forall xs, surely (fun r => (r.1 <= size xs)%N) (ratio_rule h xs)
    & lossless p h (rule_round q xpred0 (ratio_rule h) g h)].
Proof.
have [pP qP] := rows_are_distributions.
have sP h' x : lawful (leviathan_at p q h' x) by apply: lawful_leviathan_at pP qP h' x.
have rP xs h' : lawful (ratio_rule h' xs).
  elim: xs h' => [|x xs IH] h'.
    by apply: (lawful_bind (lawful_pick (pP h'))) => y; apply: lawful_ret.
  by apply: lawful_bind => [|[y|]]; [apply: sP | apply: lawful_ret | apply: lawful_bind => // r; apply: lawful_ret].
split=> [xs|xs|n k]; first exact: rP.
  elim: xs h => [|x xs IH] h f f' e /=; first by apply: total_ext => y; rewrite /ret e.
  by apply: (law_ext (sP h x)) => -[y|]; [rewrite /ret e | apply: IH => r le; rewrite /ret e].
rewrite -(leviathan_lossless xpred0 pP qP g h n k).
by apply: (law_ext (lawful_drafts xpred0 qP g h)) => xs; rewrite ratio_rule_verifies.
Qed.

Theorem rival_keeps : let kept := rule_kept q xpred0 (ratio_rule [::]) 2 [::] in
  0 < kept /\ kept < block_kept p q xpred0 1 2 [::].
Proof. by split; vm_compute. Qed.

(** For transport: a rule that reads its two drafts, and keeps one of them at times but not always. *)
Definition of_two_drafts (cs : seq two) : law field two :=
  o <~ judge (fun _ => q [::]) (p [::]) [::] 0 cs;; ret o.1.

Theorem transport_instance : (forall cs, lawful (of_two_drafts cs))
  /\ forall f, draws (q [::]) 2 (fun cs => of_two_drafts cs f) = pick (p [::]) f.
Proof.
have [pP qP] := rows_are_distributions.
split=> [cs|f]; last exact: (@judged_lossless _ _ (fun _ => q [::]) xpred0 (fun _ _ => qP [::]) 2 [::] 0 _ f (pP [::])).
apply: lawful_bind => [|o]; last exact: lawful_ret.
by apply: lawful_judge; [case: (qP [::]) | apply: pP].
Qed.

Theorem transport_reads : law2 (of_two_drafts [:: tok0; tok0]) = (1, 0)
  /\ law2 (of_two_drafts [:: tok1; tok1]) = (11//16, 5//16).
Proof. by split; apply/eqP; vm_compute. Qed.

(** Acceptance that depends on depth alone, and rows within eps of each other. *)
Theorem length_instance :
  let p0 (_ : seq two) := p [::] in let q0 (_ : seq two) := q [::] in
  forall h, alpha p0 q0 h = (fun _ : nat => overlap (p [::]) (q [::])) (size h).
Proof. by []. Qed.

Definition nearby (h : seq two) : two -> field := if odd (size h) then row2 (1//4) (3//4) else row2 (4//5) (1//5).

Theorem drift_instance : (forall h, dist (nearby h)) /\ forall h, tv (p h) (nearby h) <= 1//12.
Proof.
split=> h; rewrite /nearby /p; case: (odd (size h)).
1-2: by apply: row2_dist; [vm_compute | vm_compute | apply/eqP; vm_compute].
all: by vm_compute.
Qed.

(** 0-1 loss over two decisions is an uncertainty in the sense of BayesRisk. *)
Theorem zero_one_risk : let G := @bayes field two (fun y => (y != tok0)%:R) [:: fun y => (y != tok1)%:R] in
  [/\ superadditive G, respects G, 0 <= G (fun _ => 0)
    & forall c v, 0 <= c -> G (fun y => c * v y) = c * G v].
Proof.
suff anywhere (R : realFieldType) : let G := @bayes R two (fun y => (y != tok0)%:R) [:: fun y => (y != tok1)%:R] in
  [/\ superadditive G, respects G, 0 <= G (fun _ => 0) & forall c v, 0 <= c -> G (fun y => c * v y) = c * G v].
  exact: (anywhere [realFieldType of Qc]).
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
