(** The loop theorems of Loops.v, applied: none of them is about nothing.

    What it says.  Nothing new.  The state counts rejected drafts; it chooses between two
    drafters and sets lengths, widths and trees.  The text ends with the first [tok1].

    Source: ours. *)

From Coq Require Import Qcanon.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Loop Chain Leviathan Agreement Greedy Tree Siblings IidCandidates
  WithoutReplacement PointMass Block Truncation Loops Rational Counterexamples Vacuity.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Implicit Types (st n : nat) (h xs o : seq two) (k : seq two -> field).
Notation ends := (fun h : seq two => last false h).

Definition drafter st h0 h : two -> field := if odd (st + size h0) then q h else p h.
Definition most st h : nat := ((st + size h) %% 3)%N.
Definition rejected st h xs o : law field nat := ret (st + size xs - (size o).-1)%N.
Definition larger st h (t : tree two) o : law field nat := ret (st + size (children t))%N.
Definition comb st h : law field (tree two) :=
  x <~ pick (q h);; ret (Node (nseq st (x, Node [:: (tok1, Node [::])]))).

Lemma pP h : dist (p h). Proof. exact: rows_are_distributions.1. Qed.
Lemma drafterP st h0 h : dist (drafter st h0 h).
Proof. by rewrite /drafter; case: ifP => _; [apply: rows_are_distributions.2 | apply: pP]. Qed.
Lemma rejectedP st h xs o : lawful (rejected st h xs o). Proof. exact: lawful_ret. Qed.
Lemma largerP st h t o : lawful (larger st h t o). Proof. exact: lawful_ret. Qed.
Lemma combP st h : lawful (comb st h).
Proof. by apply: lawful_bind => [|x]; [apply/lawful_pick/rows_are_distributions.2 | apply: lawful_ret]. Qed.
#[local] Hint Resolve pP drafterP rejectedP largerP combP : core.

Notation drawn := (chain_draw drafter (fun st _ h => (odd st && last false h)) most).

Example used_leviathan_loop n st h k :
  loop ends (drafted_round drawn (fun st h => verify p (leviathan_at p (drafter st h)) h) rejected) n n st h k
  = plain p ends n h k.
Proof. exact: leviathan_loop_lossless. Qed.
Example used_agreement_loop n st h k :
  loop ends (drafted_round drawn (fun st h => verify p (fun h => agreement_step (p h)) h) rejected) n n st h k
  = plain p ends n h k.
Proof. exact: agreement_loop_lossless. Qed.
Example used_block_loop n st h k :
  loop ends (drafted_round drawn (fun st h => block_verify p (drafter st h) h) rejected) n n st h k = plain p ends n h k.
Proof. exact: block_loop_lossless. Qed.

Example used_point_mass_loop n st h k :
  loop ends (drafted_round comb (fun=> point_mass p) larger) n n st h k = plain p ends n h k.
Proof. exact: point_mass_loop_lossless. Qed.
Example used_agreement_tree_loop n st h k :
  loop ends (drafted_round comb (fun=> agreement_walk p) larger) n n st h k = plain p ends n h k.
Proof. exact: agreement_tree_loop_lossless. Qed.
(** The rule as such: any draft, any rule that is lossless with it and emits. *)
Example used_drafted_loop n st h k :
  loop ends (drafted_round comb (fun=> point_mass p) larger) n.+1 n st h k = plain p ends n h k.
Proof.
apply: drafted_loop_lossless => // [st' h' t|st' h'].
  by apply: walk_emits => *; apply: lawful_try.
by apply: mixture_lossless => // t; apply: point_mass_lossless.
Qed.

Notation widths := (fun st h0 h => (st %% 3)%N).
Example used_iid_loop n st h k :
  loop ends (drafted_round (iid_draw drafter widths most)
    (fun st h => walk (judge_node p (same_row (drafter st h))) h) larger) n n st h k = plain p ends n h k.
Proof. exact: iid_candidates_loop_lossless. Qed.
Example used_without_replacement_loop n st h k :
  loop ends (drafted_round (without_replacement_draw drafter widths most)
    (fun st h => walk (judge_node p (renormalised (drafter st h))) h) larger) n n st h k = plain p ends n h k.
Proof. exact: without_replacement_loop_lossless. Qed.

Notation top h := (first_max tok0 (p h)).
Example used_greedy_loop n st h k :
  loop ends (drafted_round drawn (fun _ h xs => ret (greedy (fun h => top h) h xs)) rejected) n n st h k
  = plain (onehot_row field (fun h => top h)) ends n h k.
Proof. by apply: greedy_loop_lossless => // st' h'; apply: lawful_chain_draw. Qed.
Example used_greedy_tree_loop n st h k :
  loop ends (drafted_round comb (fun _ => greedy_walk (fun h => top h)) larger) n n st h k
  = plain (onehot_row field (fun h => top h)) ends n h k.
Proof. exact: greedy_tree_loop_lossless. Qed.

Notation doubt := (fun st h0 h => drafter st h0 h tok0).
Notation bar := (fun st => if odd st then 1//2 else 1//3).
Example used_causal_loop n st h k :
  loop ends (drafted_round (chain_draw drafter (fun st h0 h => doubt st h0 h < bar st) most)
    (fun st h => verify p (leviathan_at p (drafter st h)) h) rejected) n n st h k = plain p ends n h k.
Proof. exact: causal_loop_lossless. Qed.
Example used_stopping_loop n st h k :
  loop ends (drafted_round (chain_draw drafter (fun st h0 => after_keeping (size h0) ends) most)
    (fun st h => verify p (leviathan_at p (drafter st h)) h) rejected) n n st h k = plain p ends n h k.
Proof. exact: (stopping_loop_lossless _ _ pP drafterP rejectedP (fun _ => ends)). Qed.
Example used_causal_block_loop n st h k :
  loop ends (drafted_round (chain_draw drafter (fun st h0 h => doubt st h0 h < bar st) most)
    (fun st h => block_verify p (drafter st h) h) rejected) n n st h k = plain p ends n h k.
Proof. exact: causal_block_loop_lossless. Qed.
Example used_stopping_block_loop n st h k :
  loop ends (drafted_round (chain_draw drafter (fun st h0 => after_keeping (size h0) ends) most)
    (fun st h => block_verify p (drafter st h) h) rejected) n n st h k = plain p ends n h k.
Proof. exact: (stopping_block_loop_lossless _ _ pP drafterP rejectedP (fun _ => ends)). Qed.
