(** The rules that run and the ten theorems, applied to rows, a chain and a tree.

    What it says.  Nothing new: their hypotheses have instances.

    Source: ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Loop Chain Leviathan Agreement Greedy Tree Siblings IidCandidates PointMass
  WithoutReplacement Block Optimality Rational Counterexamples Vacuity Typical Medusa Python Translated Running
  RunningTrees RunningSiblings RunningTypical RunningNucleus RunningLoop Main.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma rows_p (h : seq two) : dist (p h). Proof. exact: rows_are_distributions.1. Qed.
Lemma rows_q (h : seq two) : dist (q h). Proof. exact: rows_are_distributions.2. Qed.
#[local] Hint Resolve rows_p rows_q : core.

(** A chain, and a tree with a repeated sibling. *)
Notation chain_of := [:: tok1; tok0].
Lemma chain_drawable : drawable q [::] chain_of.
Proof. by apply/andP; split; [|apply/andP; split]; vm_compute. Qed.
Example used_leviathan_runs (raised : answer field two) (f : outcome two -> field) :
  py_leviathan raised (rows_of_chain p [::] chain_of) (drafted_chain q [::] chain_of) f
  = verify p (leviathan_at p q) [::] chain_of (fun o => f (o, iota 0 (size o).-1)).
Proof. exact: (leviathan_runs raised rows_p rows_q f chain_drawable). Qed.
Example used_block_runs (raised : answer field two) (f : outcome two -> field) :
  py_block raised (rows_of_chain p [::] chain_of) (drafted_chain q [::] chain_of) f
  = block_verify p q [::] chain_of (returned f).
Proof. exact: (block_runs raised rows_p rows_q tok0 f chain_drawable). Qed.
Notation flat_tokens := [:: tok1; tok0; tok1; tok0].
Notation flat_parents := [:: 0; 1; 1; 0]%N.
Lemma flat_first j : (j < 4)%N -> (parent_at flat_parents j <= j)%N.
Proof. by case: j => [|[|[|[|j]]]]. Qed.
Example used_agreement_runs (raised : answer field two) (g : seq two -> field) :
  py_agreement raised (rows_of flat_tokens flat_parents tok0 p [::]) (flat flat_tokens flat_parents [::]) (fun o => g o.1)
  = agreement_walk p [::] (tree_of flat_tokens flat_parents tok0) g.
Proof. by apply: agreement_runs => // *; exact: flat_first. Qed.
Example used_greedy_runs (raised : answer field two) (g : seq two -> field) :
  py_greedy raised (rows_of flat_tokens flat_parents tok0 p [::]) (flat flat_tokens flat_parents [::]) (fun o => g o.1)
  = greedy_walk (fun h => first_max tok0 (p h)) [::] (tree_of flat_tokens flat_parents tok0) g.
Proof. by apply: greedy_runs => // *; exact: flat_first. Qed.
Example used_point_mass_runs (raised : answer field two) (g : seq two -> field) :
  py_point_mass raised (rows_of flat_tokens flat_parents tok0 p [::]) (flat flat_tokens flat_parents [::]) (fun o => g o.1)
  = point_mass p [::] (tree_of flat_tokens flat_parents tok0) g.
Proof. by apply: point_mass_runs => // *; exact: flat_first. Qed.
Lemma flat_drawn j : (j < 4)%N ->
  0 < q ([::] ++ word flat_tokens flat_parents tok0 (parent_at flat_parents j)) (token_at flat_tokens tok0 j).
Proof. by case: j => [|[|[|[|j]]]] //; vm_compute. Qed.
Example used_iid_runs (raised : answer field two) (g : seq two -> field) :
  py_iid_candidates raised (rows_of flat_tokens flat_parents tok0 p [::])
    (flat flat_tokens flat_parents (rows_drawn flat_tokens flat_parents tok0 [::] q)) (fun o => g o.1)
  = walk (judge_node p (same_row q)) [::] (tree_of flat_tokens flat_parents tok0) g.
Proof. by apply: iid_candidates_runs => // *; [apply: flat_first | apply: flat_drawn]. Qed.
Lemma flat_once i j : (i < j)%N -> (j < 4)%N -> parent_at flat_parents i = parent_at flat_parents j ->
  token_at flat_tokens tok0 i != token_at flat_tokens tok0 j.
Proof. by case: i => [|[|[|i]]]; case: j => [|[|[|[|j]]]]. Qed.
Example used_without_replacement_runs (raised : answer field two) (g : seq two -> field) :
  py_without_replacement raised (rows_of flat_tokens flat_parents tok0 p [::])
    (flat flat_tokens flat_parents (rows_drawn flat_tokens flat_parents tok0 [::] q)) (fun o => g o.1)
  = walk (judge_node p (renormalised q)) [::] (tree_of flat_tokens flat_parents tok0) g.
Proof. by apply: without_replacement_runs => // *; [apply: flat_first | apply: flat_drawn | apply: flat_once]. Qed.
(** A threshold that looks at the row: three quarters of the weight of a [tok0], or what is given if that is less. *)
Definition bar (r : two -> field) (epsilon delta inside_log : field) : field := Num.min epsilon (3//4 * r tok0).
Notation top_of := (fun h => first_max tok0 (p h)).
Example used_typical_runs (raised : answer field two) (epsilon : field) :
  py_typical raised bar (1//100) (rows_of flat_tokens flat_parents tok0 p [::]) (flat flat_tokens flat_parents [::]) epsilon 1
  = let passes := over p (fun h => bar (p h) epsilon 1 (1//100)) in
    ret (typical p passes top_of [::] (placed flat_tokens flat_parents),
         @ancestry field two (flat flat_tokens flat_parents [::]) (longest_node flat_tokens flat_parents tok0 p [::] passes)).
Proof. by apply: typical_runs => // *; exact: flat_first. Qed.
Example used_typical_inclusive_runs (raised : answer field two) (epsilon : field) :
  py_typical_inclusive raised bar (rows_of flat_tokens flat_parents tok0 p [::]) (flat flat_tokens flat_parents [::]) epsilon 1
  = let passes := at_least p (fun h => bar (p h) epsilon 1 0) in
    ret (typical p passes top_of [::] (placed flat_tokens flat_parents),
         @ancestry field two (flat flat_tokens flat_parents [::]) (longest_node flat_tokens flat_parents tok0 p [::] passes)).
Proof. by apply: typical_inclusive_runs => // *; exact: flat_first. Qed.
Example used_nucleus_runs (raised : answer field two) fast (g : seq two -> field) :
  py_nucleus raised (rows_of flat_tokens flat_parents tok0 p [::]) (flat flat_tokens flat_parents [::]) (3//4) fast
    (fun o => g o.1)
  = nucleus (filtered (3//4) p) fast (fun h => first_max tok0 (filtered (3//4) p h)) [::]
      (placed flat_tokens flat_parents) g.
Proof. by apply: nucleus_runs => // *; exact: flat_first. Qed.
Example used_nucleus_path_runs (raised : answer field two) fast (f : outcome two -> field) :
  py_nucleus raised (rows_of flat_tokens flat_parents tok0 p [::]) (flat flat_tokens flat_parents [::]) (3//4) fast f
  = nucleus_nodes flat_tokens flat_parents [::] tok0 p [::] (3//4) fast f.
Proof. by apply: nucleus_path_runs => // *; exact: flat_first. Qed.
Example used_programs (raised : answer field two) halt g h :
  lossless p h (round_of p q (py_leviathan raised) halt g h) /\ lossless p h (round_of p q (py_block raised) halt g h).
Proof. by split; [apply: leviathan_program_lossless | apply: block_program_lossless]. Qed.

(** The loop: chains that halt after a [tok1], longer and longer ones; the text ends with a [tok1]. *)
Notation at_one := (fun x : two => x == tok1).
Notation proposes := (chain_drafter (fun _ => q) (fun _ => last false) size).
Example used_plain_runs (raised : law field (seq two)) prompt n k :
  py_plain raised p prompt n at_one k = plain p (ends at_one) n prompt k.
Proof. exact: plain_runs. Qed.
Example used_leviathan_generates (raised : law field (seq two)) (raised' : answer field two) prompt n k :
  py_generate raised p proposes (py_leviathan raised') prompt n at_one k = py_plain raised p prompt n at_one k.
Proof. exact: leviathan_generates. Qed.
Example used_block_generates (raised : law field (seq two)) (raised' : answer field two) prompt n k :
  py_generate raised p proposes (py_block raised') prompt n at_one k = py_plain raised p prompt n at_one k.
Proof. exact: block_generates. Qed.
(** A rule that draws one token, whatever was proposed. *)
Definition one_draw (rows : seq (two -> field)) (b : flat_block field two) : law field (outcome two) :=
  y <~ pick (nth (p [::]) rows 0);; ret ([:: y], [::]).
Lemma one_draw_emits h : surely (fun out => (0 < size out.1)%N) (loop_round p proposes one_draw tt h).
Proof.
move=> f f' e; apply: (draft_drawable (q := q)) => // xs _.
by apply: total_ext => y; congr (_ * _); apply: e.
Qed.
Lemma one_draw_lossless h : lossless p h (out <~ loop_round p proposes one_draw tt h;; ret out.1).
Proof.
move=> n k; rewrite -[RHS](target_lossless rows_p 1 h n k).
have drawP : lawful (draft q (last false) (size h) h) by apply: lawful_draft.
rewrite -[RHS](law_const drawP); apply: (law_ext drawP) => xs.
by rewrite /bind /ret; apply: total_ext => y; rewrite /= cats0.
Qed.
Example used_generate_runs (raised : law field (seq two)) prompt n k :
  py_generate raised p proposes one_draw prompt n at_one k = loop (ends at_one) (loop_round p proposes one_draw) n n tt prompt k.
Proof. exact: (generate_runs raised at_one prompt one_draw_emits). Qed.
Example used_generate_is_plain (raised : law field (seq two)) prompt n k :
  py_generate raised p proposes one_draw prompt n at_one k = py_plain raised p prompt n at_one k.
Proof. by apply: generate_is_plain; [apply: rows_p | apply: one_draw_emits | apply: one_draw_lossless]. Qed.

(** The ten theorems. *)
Example used_1 h := kept_with_one_minus_tv rows_p rows_q h.
Example used_2 h := one_token rows_p rows_q h.
Lemma steps h x : lawful (leviathan_step (p h) (q h) x). Proof. exact: lawful_leviathan. Qed.
Example used_3 h := no_step_keeps_more rows_p rows_q (steps h) (single_step (rows_p h) (rows_q h)).
Example used_4 := speculative_sampling rows_p rows_q xpred0.
Definition one_round (_ : unit) h : law field (seq two * unit) := o <~ leviathan p q xpred0 1 h;; ret (o, tt).
Lemma one_round_lossless st h n (f : seq two -> field) : one_round st h (fun out => complete p n h out.1 f) = target p n h f.
Proof. exact: (leviathan_lossless xpred0 rows_p rows_q 1 h n f). Qed.
Lemma one_round_emits st h : surely (fun out => (0 < size out.1)%N) (one_round st h).
Proof. by move=> f g e; apply: (leviathan_emits xpred0 rows_p rows_q 1 h) => o o0; apply: e. Qed.
Example used_5 n st h (f : seq two -> field) :=
  the_loop rows_p (fun h => last false h) n st h f one_round_lossless one_round_emits.
Example used_6 := block_verification rows_p rows_q xpred0.
Example used_7 (g : nat) h := let: And3 rule keeps ok := rival_instance g h in no_rule_keeps_more rows_p rows_q rule keeps ok.
Example used_8 := candidates_on_trees rows_p rows_q.
Example used_9 := the_programs_that_run rows_p rows_q.
Lemma rows_nearby h : dist (nearby h). Proof. exact: drift_instance.1. Qed.
Lemma rows_differ h : 2%:R^-1 * total (fun x => `|p h x - nearby h x|) <= 1//12. Proof. exact: drift_instance.2. Qed.
Example used_10 n h :=
  @rows_that_drift field two p rows_p nearby (1//12) n h (fun _ => 1) rows_nearby rows_differ (fun _ => one01 field).
