(** The ten theorems, unfolded, in the order in which the papers came to them.

    What it says.  For readers who know the papers and not this development.  [V] is any
    finite vocabulary, [R] any ordered field (rationals and reals alike); [total f] is
    the sum of f over V.  The target [p] and the draft [q] give a row after every
    history, of any kind: each is nonnegative and sums to one ([dist]), nothing more is
    asked.  A law is what it does to a test function: [m f] is the mean of f under m, so
    two laws are the same where all means are.
    [target p n h] draws n tokens after h from p, one by one; [complete p n h o] is o,
    cut to n tokens or topped up to n with draws of p.

    Source: each theorem names its own, and the file where it is proved. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Loop Chain Leviathan Block Optimality Tree PointMass WithoutReplacement
  Siblings Greedy Drift Python Translated Running.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Main.
Variables (R : realFieldType) (V : vocab).
Variables (p q : seq V -> V -> R).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, dist (q h).

(** 1. A draft token is kept with probability 1 - TV (Leviathan et al. 2023, Thm 3.5). *)
Theorem kept_with_one_minus_tv h :
  total (fun x => q h x * (if p h x < q h x then p h x / q h x else if 0 < p h x then 1 else 0))
  = 1 - 2%:R^-1 * total (fun x => `|p h x - q h x|).
Proof. by have := leviathan_keep_rate (pP h) (qP h); rewrite acceptance_is_one_minus_tv // => <-; apply: total_ext => x;
  rewrite /leviathan_step /bind /coin /ret /= mulr1 (law_const (lawful_pick (residual_dist (q h) (pP h)))) mulr0 addr0. Qed.

(** 2. Keep x, or else draw from what the target wants beyond the draft: p comes out (App. A.1). *)
Theorem one_token h (f : V -> R) :
  let a x := if p h x < q h x then p h x / q h x else if 0 < p h x then 1 else 0 in
  let e x := Num.max (p h x - q h x) 0 in
  let r x := if total e == 0 then p h x else e x / total e in
  total (fun x => q h x * (a x * f x + (1 - a x) * total (fun y => r y * f y))) = total (fun x => p h x * f x).
Proof. exact: (single_step (pP h) (qP h) f). Qed.

(** 3. No step that emits p keeps the draft token more often (maximal coupling). *)
Theorem no_step_keeps_more h (step : V -> law R (verdict V)) : (forall x, lawful (step x)) ->
  (forall f, pick (q h) (fun x => step x (fun o => f (odflt x o))) = pick (p h) f) ->
  pick (q h) (fun x => step x (fun o => (~~ isSome o)%:R)) <= total (fun x => Num.min (p h x) (q h x)).
Proof. exact: (acceptance_optimal (pP h) (qP h)). Qed.

(** 4. Speculative sampling: a round of at most g drafts, cut short by [halt] or not (Leviathan et al. 2023, Alg. 1). *)
Theorem speculative_sampling halt g h n (f : seq V -> R) :
  leviathan p q halt g h (fun o => complete p n h o f) = target p n h f.
Proof. exact: (leviathan_lossless halt pP qP g h n f). Qed.

(** 5. Any such rounds in a loop, from any state, until [stop] or n tokens, write what p writes. *)
Theorem the_loop S stop (round : S -> seq V -> law R (seq V * S)) n st h (f : seq V -> R) :
  (forall st h n f, round st h (fun out => complete p n h out.1 f) = target p n h f) ->
  (forall st h, surely (fun out => (0 < size out.1)%N) (round st h)) ->
  loop stop round n n st h f = plain p stop n h f.
Proof. by move=> ok emits; apply: loop_lossless_until => // st' h' m k; apply: ok. Qed.

(** 6. Block verification is lossless and emits at least as much (Sun et al. 2024, Thm 1). *)
Theorem block_verification halt g h :
  (forall n (f : seq V -> R), block p q halt g h (fun o => complete p n h o f) = target p n h f)
  /\ leviathan p q halt g h (fun o => (size o)%:R) <= block p q halt g h (fun o => (size o)%:R).
Proof. by split; [apply: block_lossless | apply: block_length_ge_token]. Qed.

(** 7. In one round no round-lossless rule keeps more of the draft, whatever it looks at (Thm 2, for more rules). *)
Theorem no_rule_keeps_more halt g h (rule : seq V -> law R (nat * V)) : (forall xs, lawful (rule xs)) ->
  (forall xs, surely (fun r => (r.1 <= size xs)%N) (rule xs)) ->
  (forall n (f : seq V -> R),
     draft q halt g h (fun xs => rule xs (fun r => complete p n h (rcons (take r.1 xs) r.2) f)) = target p n h f) ->
  draft q halt g h (fun xs => rule xs (fun r => r.1%:R)) <= block p q halt g h (fun o => (size o)%:R) - 1.
Proof.
by move=> ruleP keeps ok; rewrite (block_length halt pP qP) addrC addKr; apply: block_optimal.
Qed.

(** 8. Trees: given candidates one by one (EAGLE-2), and drawn without replacement (EAGLE-1). *)
Theorem candidates_on_trees h n (f : seq V -> R) :
  (forall t, point_mass p h t (fun o => complete p n h o f) = target p n h f)
  /\ forall width g, without_replacement p q width g h (fun o => complete p n h o f) = target p n h f.
Proof. by split=> [t|width g]; [apply: point_mass_lossless | apply: without_replacement_lossless]. Qed.

(** 9. The programs refengine/exact/rules/leviathan.py and block.py themselves, as translated from their text. *)
Theorem the_programs_that_run raised halt g h n (f : seq V -> R) :
  let rows xs := [seq p (h ++ take i xs) | i <- iota 0 (size xs).+1] in
  let drafted xs := FlatBlock xs (iota 0 (size xs)) [seq Some (q (h ++ take i xs)) | i <- iota 0 (size xs)] in
  let emits program := draft q halt g h (fun xs => program (rows xs) (drafted xs) (fun o => complete p n h o.1 f)) in
  emits (py_leviathan raised) = target p n h f /\ emits (py_block raised) = target p n h f.
Proof. by split; [apply: leviathan_program_lossless | apply: block_program_lossless]. Qed.

(** 10. Rows that are off by eps in TV move no event about n tokens by more than n eps. *)
Theorem rows_that_drift (p' : seq V -> V -> R) eps n h (f : seq V -> R) : (forall h, dist (p' h)) ->
  (forall h, 2%:R^-1 * total (fun x => `|p h x - p' h x|) <= eps) -> (forall o, 0 <= f o <= 1) ->
  target p n h f - target p' n h f <= n%:R * eps.
Proof. by move=> p'P close f01; apply: drift. Qed.

End Main.
