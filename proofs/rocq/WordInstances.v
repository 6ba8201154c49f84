(** Whole words, races and trees judged from their leaves, applied: none is about nothing.

    What it says.  Nothing new.  The rows of Vacuity.v with two words to a chain and leaves
    that share a word; two tokens that race with weights 3 : 1 and 1 : 3; trees of two
    siblings a node, drawn independently and without replacement.

    Source: ours. *)

From Coq Require Import Qcanon.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Range Single Round Chain Leviathan Agreement Greedy Coupled Tree Siblings
  WithoutReplacement Block Traversal Drift Race Gumbel Rational Counterexamples Typical Medusa KeptWord Nucleus Vacuity.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Implicit Types (h : seq two) (f : seq two -> field).

Lemma pP h : dist (p h). Proof. exact: rows_are_distributions.1. Qed.
Lemma qP h : dist (q h). Proof. exact: rows_are_distributions.2. Qed.
#[local] Hint Resolve pP qP : core.

(** ** The nucleus mode *)

Notation draft_word := [:: tok0; tok1].
Notation forked := [:: [:: tok0; tok1; tok0]; [:: tok0; tok1; tok1]].
Lemma test01 : unit_test (fun s : seq two => (s == [:: tok0; tok0])%:R : field).
Proof. by move=> s; case: eqP. Qed.

Notation along_draft := (agreeing p [::] draft_word).
Lemma along_draft_reached i : (i <= size draft_word)%N -> word_prob p [::] (take i draft_word) = 0 ->
  prob along_draft (fun k => k == i) = 0.
Proof.
apply: (@reached _ _ p _ _ draft_word (fun i => word_prob p [::] (take i draft_word))) => //; first exact: lawful_agreeing.
by move=> j le; apply: agreeing_tail.
Qed.
Example used_kept : exists2 j, (j <= 2)%N & (forall f, unit_test f ->
  kept_law p [::] draft_word along_draft 3 f - target p 3 [::] f <= kept_gain p [::] draft_word along_draft j).
Proof.
exact: (kept_word_tv pP (lawful_agreeing pP _ _) (@agreeing_size _ _ p [::] draft_word) along_draft_reached (n := 3) isT).1.
Qed.
Example used_word : let n := 2%N in let emits f := nucleus_paths p false (fun _ => tok0) [::] forked (fun o => complete p n [::] o f) in
  emits (fun t => (begins [:: tok0; tok1] t)%:R) - target p n [::] (fun t => (begins [:: tok0; tok1] t)%:R)
  = word_gain p 2 [::] draft_word 2.
Proof. exact: ((@nucleus_word_tv _ _ p (fun _ => tok0) pP [::] draft_word forked isT isT).2 2%N). Qed.
Example used_fast (f : two -> field) : let b := tried 2 (p [::] tok0) in
  nucleus_paths p true (fun _ => tok1) [::] forked (fun o => f (head tok0 o)) = b * f tok0 + (1 - b) * f tok1.
Proof. exact: (@nucleus_first_token_fast _ _ p (fun _ => tok1) pP [::] forked tok0 f isT). Qed.
Example used_chain_word : let emits f := nucleus_paths p false (fun _ => tok0) [::] [:: draft_word] (fun o => complete p 3 [::] o f) in
  emits (fun t => (begins [:: tok0; tok1] t)%:R) - target p 3 [::] (fun t => (begins [:: tok0; tok1] t)%:R)
  = chain_gain p tok0 [::] draft_word 2.
Proof. exact: ((@nucleus_chain_tv _ _ p (fun _ => tok0) pP tok0 [::] draft_word 3 isT).2 2%N). Qed.
(** The word shows what its first token does not. *)
Example the_word_shows_more : chain_gain p tok0 [::] draft_word 1 = 3//16 /\ chain_gain p tok0 [::] draft_word 2 = 7//24.
Proof. by rewrite /chain_gain !big_nat_recr ?big_geq //=; split; apply/eqP; vm_compute. Qed.

Definition likeliest h : pred two := kept (1//2) (p h).
Lemma likeliestP h : 2//3 <= kept_mass (p h) (likeliest h).
Proof. by rewrite /likeliest /p; case: (odd (size h)); vm_compute. Qed.
Lemma likeliest_some h : kept_mass (p h) (likeliest h) != 0.
Proof. by apply: lt0r_neq0; apply: lt_le_trans (likeliestP h). Qed.
Example used_text n h : prob (target (nuclei p likeliest) n h) (along likeliest h)
  - prob (target p n h) (along likeliest h) = 1 - stays p likeliest n h.
Proof. exact: (nucleus_text_tv pP likeliest_some n h).2. Qed.
Example used_text_le n h : let f s := (s == [:: tok0; tok0])%:R in
  target (nuclei p likeliest) n h f - target p n h f <= 1 - (2//3) ^+ n.
Proof.
apply: nucleus_text_le; try exact: likeliest_some; try exact: likeliestP; try exact: test01; last by vm_compute.
exact: pP.
Qed.
Example used_far : exists2 j, (j <= 2)%N & (forall f, unit_test f ->
  nucleus_paths (nuclei p likeliest) false (fun _ => tok0) [::] [:: draft_word] (fun o => complete (nuclei p likeliest) 3 [::] o f)
  - target p 3 [::] f <= chain_gain (nuclei p likeliest) tok0 [::] draft_word j + (1 - stays p likeliest 3 [::])).
Proof. exact: (@nucleus_word_far _ _ p likeliest pP likeliest_some (fun _ => tok0) tok0 [::] draft_word 3 isT). Qed.

(** ** Races *)

Definition weights3 h (v : two) : nat := if odd (size h) (+) v then 1%N else 3%N.
Definition weights1 (v : two) : nat := if v then 3%N else 1%N.
Definition of_two (w : two -> nat) (E : two -> nat) : two :=
  if (w tok1 * E tok0 <= w tok0 * E tok1)%N then tok0 else tok1.
Notation slow_clocks := (1//2 : field).
Lemma slow01 : 0 <= slow_clocks <= 1. Proof. by vm_compute. Qed.
Lemma of_twoP w : (0 < w tok0)%N -> (0 < w tok1)%N -> writes_first w (of_two w).
Proof.
move=> w0 w1 E; rewrite /of_two; case: (leqP (w tok1 * E tok0) (w tok0 * E tok1)) => le; split=> //.
  by apply/allP => -[].
by apply/allP => -[] _ //; apply: ltnW.
Qed.
Lemma weights3P h : writes_first (weights3 h) (of_two (weights3 h)).
Proof. by apply: of_twoP; rewrite /weights3; case: (_ (+) _). Qed.
Lemma weights1P : writes_first weights1 (of_two weights1).
Proof. exact: of_twoP. Qed.
Lemma sum_two (w : two -> nat) : weight_sum w = (w tok0 + w tok1)%N.
Proof. by rewrite /weight_sum (_ : tokens two = [:: tok0; tok1]) // !big_cons big_nil addn0. Qed.
Lemma weights3_light h : (weight_sum (weights3 h) <= 12)%N.
Proof. by rewrite sum_two /weights3; case: (odd _). Qed.
Lemma joint_light h i : (weight_sum (joint_weight (weights3 h) weights1 i) <= 12)%N.
Proof. by rewrite sum_two /joint_weight /weights3; case: (odd _); case: i. Qed.

Example used_race :
  ((weights3 [::] tok0)%:R / (weight_sum (weights3 [::]))%:R) * (slow_clocks ^+ 12 * (1 - slow_clocks ^+ 3))
  <= prob (raced slow_clocks 3 12) (alone (weights3 [::]) tok0).
Proof.
have runs : (0 < weights3 [::] tok0)%N by [].
exact: (race_first 3 slow01 runs (weights3_light [::])).1.
Qed.
Example used_race_tv h : tv (weight_row field (weights3 h)) (written slow_clocks 3 12 (of_two (weights3 h)))
  <= 12%:R * (1 - slow_clocks) + (1 + 3%:R * (1 - slow_clocks))^-1.
Proof. by apply: race_tv; [exact: slow01 | exact: weights3P | exact: weights3_light]. Qed.
(** The drafter looks at the clocks of the places that it drafts. *)
Definition peeking_draft (places : nat -> two -> nat) (st : nat) h : seq two :=
  [seq of_two weights1 (places i) | i <- iota (size h) st].
Example used_race_text n h :
  target (fun h => weight_row field (weights3 h)) n h (fun s => (s == [:: tok0; tok0])%:R)
  - drawn (raced slow_clocks 3 12) (size h) n (fun _ _ => 0%N)
      (fun places => (greedy_loop (chosen (fun h => of_two (weights3 h)) places)
         (peeking_draft places) (fun st _ _ => st.+1) n n 2%N h == [:: tok0; tok0])%:R)
  <= n%:R * (12%:R * (1 - slow_clocks) + (1 + 3%:R * (1 - slow_clocks))^-1).
Proof.
apply: (@race_text _ _ _ 3 12 slow01 weights3 (fun h => of_two (weights3 h)) nat peeking_draft (fun _ st _ _ => st.+1)
  (fun _ _ => 0%N) n 2%N h (fun s => (s == [:: tok0; tok0])%:R)).
- exact: weights3P.
- exact: weights3_light.
- exact: test01.
Qed.
Example used_agreement_between :
  (1 - tv (p [::]) (q [::])) / (1 + tv (p [::]) (q [::])) <= coupling_odds (p [::]) (q [::]).
Proof. exact: (agreement_between (pP [::]) (qP [::])).1. Qed.
Example used_race_agreement h :
  coupling_odds (weight_row field (weights3 h)) (weight_row field weights1) - (12%:R * (1 - slow_clocks) + (1 + 3%:R * (1 - slow_clocks))^-1)
  <= agreed slow_clocks 3 12 (of_two (weights3 h)) (of_two weights1).
Proof. exact: (race_agreement 3 slow01 (weights3P h) weights1P (joint_light h)).1. Qed.
Example coupling_is : coupling_odds (row2 (3//4) (1//4) : two -> field) (row2 (1//4) (3//4)) = 1//2.
Proof. by apply/eqP; vm_compute. Qed.

(** ** Trees from their leaves *)

Definition by_rank h (d : seq two) : two -> field := if d is [::] then q h else p h.
Lemma by_rankP h d : dist (by_rank h d).
Proof. by case: d => [|x d]; [exact: qP | exact: pP]. Qed.
Notation few := (fun h d : seq two => (size h + size d > 4)%N).
Notation varied := (fun h : seq two => (size h %% 3).+1).
Example used_traversal g h : lossless p h (traversal p by_rank few varied g h).
Proof. by apply: traversal_lossless => // [h' d _|h' d x]; [apply: by_rankP | case: (by_rankP h' d)]. Qed.
Example used_traversal_emits g h : surely (fun o => (0 < size o)%N) (traversal p by_rank few varied g h).
Proof. by apply: traversal_emits => // [h' d _|h' d x]; [apply: by_rankP | case: (by_rankP h' d)]. Qed.
Example used_traversal_chain h f :
  traverse p by_rank h (chain_branches [:: tok1; tok0]) f = block_verify p (fun h => by_rank h [::]) h [:: tok1; tok0] f.
Proof. exact: traversal_chain. Qed.
Example used_traversal_iid g h : lossless p h (traversal p (fun h _ => q h) (fun _ => xpred0) varied g h).
Proof. exact: traversal_iid_lossless. Qed.
Example used_traversal_distinct g h : lossless p h (traversal p (renormalised q) (exhausted q) varied g h).
Proof. exact: traversal_distinct_lossless. Qed.
