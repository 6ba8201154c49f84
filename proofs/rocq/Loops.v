(** Every rule of refengine/exact, through the loop.

    What it says.  A round is a draft, a rule's answer to it and a new state:
    [draw] proposes - a chain, a tree, anything - from a state and the history,
    [answer] answers, [update] makes the next state, from finitely many outcomes at random if it likes, from the
    whole draft, rejected tokens included, and from what was emitted: n-gram pools,
    bandits over gamma, dynamic trees, drafters trained online.
    [drafted_loop_lossless]: if draft and rule together are lossless and the rule
    always emits, the loop writes the target's text: cut at n tokens where the last
    round overshoots, ended by the first [stop] wherever in a round it falls.
    Then each lossless rule, by name: [<rule>_loop_lossless].  Rows, halting, lengths,
    widths and trees depend on the state, on where the round started and on the path;
    the target's rows on the whole history.
    A drafter may look at anything but the coins of the round that it starts.

    Source: Leviathan et al. 2023, Alg. 1 repeated; Lookahead, prompt lookup, online
    speculative decoding (Liu et al. 2024), EAGLE-2's dynamic trees; the state is ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Loop Chain Leviathan Agreement Greedy Tree Siblings IidCandidates
  WithoutReplacement PointMass Block Truncation.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Drafted.
Variables (R : realFieldType) (V : vocab) (S D : Type).
Variables (p : seq V -> V -> R) (stop : seq V -> bool).
Variables (draw : S -> seq V -> law R D) (answer : S -> seq V -> D -> law R (seq V)).
Variable update : S -> seq V -> D -> seq V -> law R S.

Definition drafted_round st h : law R (seq V * S) :=
  d <~ draw st h;; o <~ answer st h d;; st' <~ update st h d o;; ret (o, st').

Hypothesis pP : forall h, dist (p h).
Hypothesis drawP : forall st h, lawful (draw st h).
Hypothesis updateP : forall st h d o, lawful (update st h d o).
Hypothesis answer_emits : forall st h d, surely (fun o => (0 < size o)%N) (answer st h d).
Hypothesis round_lossless : forall st h, lossless p h (d <~ draw st h;; answer st h d).

Theorem drafted_loop_lossless fuel n st h k : (n <= fuel)%N ->
  loop stop drafted_round fuel n st h k = plain p stop n h k.
Proof.
apply: loop_lossless_until => // st' h'.
  move=> m f; rewrite -(round_lossless st' h' m f); apply: (law_ext (drawP st' h')) => d.
  apply: answer_emits => o _; exact: (law_const (updateP st' h' d o) (complete p m h' o f)).
move=> f f' e; apply: (law_ext (drawP st' h')) => d; apply: answer_emits => o o0.
by apply: (law_ext (updateP _ _ _ _)) => st''; apply: e.
Qed.

End Drafted.

Section Rules.
Variables (R : realFieldType) (V : vocab) (S : Type).
Variables (p : seq V -> V -> R) (stop : seq V -> bool).
Hypothesis pP : forall h, dist (p h).
Implicit Types (h xs o : seq V) (st : S) (k : seq V -> R).

(** ** Chains *)

Section Chains.
(** What state and start of the round give: the draft's rows, where it halts, how long it may be. *)
Variables (q : S -> seq V -> seq V -> V -> R) (halt : S -> seq V -> seq V -> bool) (gamma : S -> seq V -> nat).
Variable update : S -> seq V -> seq V -> seq V -> law R S.
Hypothesis qP : forall st h0 h, dist (q st h0 h).
Hypothesis updateP : forall st h xs o, lawful (update st h xs o).

Definition chain_draw st h : law R (seq V) := draft (q st h) (halt st h) (gamma st h) h.

Lemma lawful_chain_draw st h : lawful (chain_draw st h).
Proof. by apply: lawful_draft => h' _; apply: qP. Qed.

Lemma verify_emits (step : seq V -> V -> law R (verdict V)) h xs :
  (forall h x, lawful (step h x)) -> surely (fun o => (0 < size o)%N) (verify p step h xs).
Proof.
move=> stepP f g e; case: xs => [|x xs] /=; first by apply: total_ext => y; rewrite /ret e.
apply: (law_ext (stepP h x)) => -[y|]; first by rewrite /ret e.
by apply: (law_ext (Chain.lawful_verify pP stepP _ _)) => o; rewrite /ret e.
Qed.

Theorem leviathan_loop_lossless fuel n st h k : (n <= fuel)%N ->
  loop stop (drafted_round chain_draw (fun st h => verify p (leviathan_at p (q st h)) h) update) fuel n st h k
  = plain p stop n h k.
Proof.
apply: drafted_loop_lossless => // [st' h'|st' h' xs|st' h'].
- exact: lawful_chain_draw.
- by apply: verify_emits => h'' x; apply: lawful_leviathan_at.
- exact: leviathan_lossless.
Qed.

Theorem agreement_loop_lossless fuel n st h k : (n <= fuel)%N ->
  loop stop (drafted_round chain_draw (fun st h => verify p (fun h => agreement_step (p h)) h) update) fuel n st h k
  = plain p stop n h k.
Proof.
apply: drafted_loop_lossless => // [st' h'|st' h' xs|st' h'].
- exact: lawful_chain_draw.
- by apply: verify_emits => h'' x; apply: lawful_agreement.
- exact: agreement_lossless.
Qed.

Lemma block_verify_emits (q' : seq V -> V -> R) h xs : (forall h, dist (q' h)) ->
  surely (fun o => (0 < size o)%N) (block_verify p q' h xs).
Proof.
move=> q'P f g e; apply: (keep_emits pP q'P h xs (one01 R)) => -[s|] /= ok; first exact: e.
by apply: total_ext => y; rewrite /ret e.
Qed.

Theorem block_loop_lossless fuel n st h k : (n <= fuel)%N ->
  loop stop (drafted_round chain_draw (fun st h => block_verify p (q st h) h) update) fuel n st h k
  = plain p stop n h k.
Proof.
apply: drafted_loop_lossless => // [st' h'|st' h' xs|st' h'].
- exact: lawful_chain_draw.
- exact: block_verify_emits.
- exact: block_lossless.
Qed.

End Chains.

(** ** Trees that are given, or drawn in any way that does not see the target's coins *)

Section GivenTrees.
Variables (draw : S -> seq V -> law R (tree V)) (update : S -> seq V -> tree V -> seq V -> law R S).
Hypothesis drawP : forall st h, lawful (draw st h).
Hypothesis updateP : forall st h t o, lawful (update st h t o).

Theorem point_mass_loop_lossless fuel n st h k : (n <= fuel)%N ->
  loop stop (drafted_round draw (fun=> point_mass p) update) fuel n st h k = plain p stop n h k.
Proof.
apply: drafted_loop_lossless => // [st' h' t|st' h'].
  by apply: walk_emits => *; apply: lawful_try.
by apply: mixture_lossless => // t; apply: point_mass_lossless.
Qed.

Theorem agreement_tree_loop_lossless fuel n st h k : (n <= fuel)%N ->
  loop stop (drafted_round draw (fun=> agreement_walk p) update) fuel n st h k = plain p stop n h k.
Proof.
apply: drafted_loop_lossless => // [st' h' t|st' h'].
  by apply: walk_emits; apply: lawful_agreement_node.
by apply: mixture_lossless => // t; apply: agreement_tree_lossless.
Qed.

End GivenTrees.

(** ** Trees of sampled candidates *)

Section SampledTrees.
Variables (q : S -> seq V -> seq V -> V -> R) (width : S -> seq V -> seq V -> nat) (depth : S -> seq V -> nat).
Variable update : S -> seq V -> tree V -> seq V -> law R S.
Hypothesis qP : forall st h0 h, dist (q st h0 h).
Hypothesis updateP : forall st h t o, lawful (update st h t o).

Definition iid_draw st h : law R (tree V) :=
  grow (candidates_at (same_row (q st h)) (fun _ => xpred0) (width st h)) (depth st h) h.

Theorem iid_candidates_loop_lossless fuel n st h k : (n <= fuel)%N ->
  loop stop (drafted_round iid_draw (fun st h => walk (judge_node p (same_row (q st h))) h) update) fuel n st h k
  = plain p stop n h k.
Proof.
have ge0 st' h0 h' d x : 0 <= same_row (q st' h0) h' d x by rewrite /same_row; case: (qP st' h0 h').
apply: drafted_loop_lossless => // [st' h'|st' h' t|st' h'].
- by apply: lawful_grow => h''; apply: lawful_draft => d _; apply: qP.
- by apply: walk_emits => h'' cs; apply: lawful_judge.
- exact: iid_candidates_lossless.
Qed.

Definition without_replacement_draw st h : law R (tree V) :=
  grow (candidates_at (renormalised (q st h)) (exhausted (q st h)) (width st h)) (depth st h) h.

Theorem without_replacement_loop_lossless fuel n st h k : (n <= fuel)%N ->
  loop stop (drafted_round without_replacement_draw (fun st h => walk (judge_node p (renormalised (q st h))) h) update)
    fuel n st h k
  = plain p stop n h k.
Proof.
apply: drafted_loop_lossless => // [st' h'|st' h' t|st' h'].
- by apply: lawful_grow => h''; apply: lawful_draft => d; apply: renormalised_dist.
- by apply: walk_emits => h'' cs; apply: lawful_judge => // d x; apply: renormalised_ge0.
- exact: without_replacement_lossless.
Qed.

End SampledTrees.

End Rules.

(** ** Greedy: no probability is left, whatever proposes *)

Section GreedyLoop.
Variables (R : realFieldType) (V : vocab) (S : Type) (argmax : seq V -> V) (stop : seq V -> bool).
Notation p := (@onehot_row R V argmax).

Theorem greedy_loop_lossless (draw : S -> seq V -> law R (seq V)) (update : S -> seq V -> seq V -> seq V -> law R S)
    fuel n st h k :
  (forall st h, lawful (draw st h)) -> (forall st h xs o, lawful (update st h xs o)) -> (n <= fuel)%N ->
  loop stop (drafted_round draw (fun _ h xs => ret (greedy argmax h xs)) update) fuel n st h k = plain p stop n h k.
Proof.
move=> drawP updateP; apply: drafted_loop_lossless => // [h'|st' h' xs f g e|st' h'].
- exact: dist_onehot.
- by rewrite /ret e // greedy_emits.
- by apply: mixture_lossless => // xs; apply: greedy_lossless.
Qed.

Theorem greedy_tree_loop_lossless (draw : S -> seq V -> law R (tree V)) (update : S -> seq V -> tree V -> seq V -> law R S)
    fuel n st h k :
  (forall st h, lawful (draw st h)) -> (forall st h t o, lawful (update st h t o)) -> (n <= fuel)%N ->
  loop stop (drafted_round draw (fun _ => greedy_walk argmax) update) fuel n st h k = plain p stop n h k.
Proof. by move=> drawP updateP; apply: agreement_tree_loop_lossless => // h'; apply: dist_onehot. Qed.

End GreedyLoop.

(** ** Truncated drafts: the confidence is asked before a token is drawn, or the block ends after one that is kept *)

Section TruncatedLoop.
Variables (R : realFieldType) (V : vocab) (S : Type) (p : seq V -> V -> R) (stop : seq V -> bool).
Variables (q : S -> seq V -> seq V -> V -> R) (gamma : S -> seq V -> nat).
Variable update : S -> seq V -> seq V -> seq V -> law R S.
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall st h0 h, dist (q st h0 h).
Hypothesis updateP : forall st h xs o, lawful (update st h xs o).

(** The threshold may be the state's, as in a scheduler that follows the load. *)
Theorem causal_loop_lossless (confidence : S -> seq V -> seq V -> R) (threshold : S -> R) fuel n st h k : (n <= fuel)%N ->
  loop stop (drafted_round (chain_draw q (fun st h0 h => confidence st h0 h < threshold st) gamma)
    (fun st h => verify p (leviathan_at p (q st h)) h) update) fuel n st h k = plain p stop n h k.
Proof. exact: leviathan_loop_lossless. Qed.

Theorem stopping_loop_lossless (last : S -> seq V -> bool) fuel n st h k : (n <= fuel)%N ->
  loop stop (drafted_round (chain_draw q (fun st h0 => after_keeping (size h0) (last st)) gamma)
    (fun st h => verify p (leviathan_at p (q st h)) h) update) fuel n st h k = plain p stop n h k.
Proof. exact: leviathan_loop_lossless. Qed.

Theorem causal_block_loop_lossless (confidence : S -> seq V -> seq V -> R) (threshold : S -> R) fuel n st h k :
  (n <= fuel)%N ->
  loop stop (drafted_round (chain_draw q (fun st h0 h => confidence st h0 h < threshold st) gamma)
    (fun st h => block_verify p (q st h) h) update) fuel n st h k = plain p stop n h k.
Proof. exact: block_loop_lossless. Qed.

Theorem stopping_block_loop_lossless (last : S -> seq V -> bool) fuel n st h k : (n <= fuel)%N ->
  loop stop (drafted_round (chain_draw q (fun st h0 => after_keeping (size h0) (last st)) gamma)
    (fun st h => block_verify p (q st h) h) update) fuel n st h k = plain p stop n h k.
Proof. exact: block_loop_lossless. Qed.

End TruncatedLoop.
