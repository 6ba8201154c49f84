(** Every theorem that has hypotheses, applied: none of them is about nothing.

    What it says.  Nothing new.  Each theorem is used once on the rows of Vacuity.v, two
    tokens and exact rationals, with every hypothesis discharged; the statements are the
    theorems' own with nothing left to assume.  proofs/hypotheses.py fails on a theorem
    with hypotheses that is not used here (or, for floats, in FloatInstances.v).

    Source: ours. *)

From Coq Require Import Qcanon.
From mathcomp Require Import all_ssreflect all_algebra.
From Proofs Require Import Prob Single Round Loop Chain Leviathan Agreement Greedy Tree Siblings IidCandidates
  WithoutReplacement PointMass Mixtures Block Optimality Truncation Length Drift BayesRisk Rational Counterexamples
  Typical Medusa Vacuity.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma pP (h : seq two) : dist (p h). Proof. exact: rows_are_distributions.1. Qed.
Lemma qP (h : seq two) : dist (q h). Proof. exact: rows_are_distributions.2. Qed.
#[local] Hint Resolve pP qP : core.
Notation p0 := (p [::]).
Notation q0 := (q [::]).
Implicit Types (h : seq two) (f : two -> field).

(** One token. *)
Example used_acceptance : overlap p0 q0 = 1 - tv p0 q0.
Proof. exact: acceptance_is_one_minus_tv. Qed.
Example used_residual : dist (fun x => excess p0 q0 x / total (excess p0 q0)) <-> overlap p0 q0 < 1.
Proof. exact: residual_iff_used. Qed.
Example used_single_step : step_lossless p0 q0 (leviathan_step p0 q0).
Proof. exact: single_step. Qed.
Example used_keep_rate : keep_rate q0 (leviathan_step p0 q0) = overlap p0 q0.
Proof. exact: leviathan_keep_rate. Qed.
Example used_optimal : keep_rate q0 (agreement_step p0) <= overlap p0 q0.
Proof. by apply: acceptance_optimal => // [x|]; [apply: lawful_agreement | apply: agreement_step_lossless]. Qed.
Example used_below_ratio : total (fun x => p0 x * q0 x) <= overlap p0 q0.
Proof. exact: agreement_below_ratio. Qed.

(** Rounds and the loop. *)
Notation halt := (fun h : seq two => last false h).
Lemma lawful_leviathan_round g h : lawful (leviathan p q xpred0 g h).
Proof. by apply: lawful_chain => // h' x; apply: lawful_leviathan. Qed.
Example used_equivalence g h : lossless_given p h (leviathan p q xpred0 g h).
Proof. by apply/completed_iff_conditional => //; [apply: lawful_leviathan_round | apply: leviathan_lossless]. Qed.

Definition one_draft (_ : unit) h : law field (seq two * unit) := o <~ leviathan p q xpred0 1 h;; ret (o, tt).
Lemma one_draft_emits st h : surely (fun out => (0 < size out.1)%N) (one_draft st h).
Proof. by move=> f g e; apply: (leviathan_emits xpred0 pP qP 1 h) => o o0; apply: e. Qed.
Example used_loop n h k : loop xpred0 one_draft n n tt h k = target p n h k.
Proof.
apply: loop_lossless => // st h'; last exact: one_draft_emits.
exact: (leviathan_lossless xpred0 pP qP 1 h').
Qed.
Example used_loop_until n h k :
  loop halt one_draft n.+1 n tt h k = plain p halt n h k.
Proof.
have ok st h' : lossless p h' (out <~ one_draft st h';; ret out.1).
  exact: (leviathan_lossless xpred0 pP qP 1 h').
exact: (@loop_lossless_until _ _ _ _ pP halt one_draft ok one_draft_emits n.+1 n tt h k (leqnSn n)).
Qed.

(** Chains, with drafts that end early. *)
Example used_chain g h : lossless p h (chain p q halt (fun h => agreement_step (p h)) g h).
Proof.
apply: (chain_lossless pP (fun h _ => qP h)) => [h' x|h' _]; first exact: lawful_agreement.
exact: agreement_step_lossless.
Qed.
Example used_chain_length g :
  chain_length p q xpred0 (leviathan_at p q) g.+1 [::]
  = 1 + total (fun x => q0 x * leviathan_at p q [::] x (fun v => (~~ isSome v)%:R)
                        * chain_length p q xpred0 (leviathan_at p q) g [:: x]).
Proof.
have sP h x : lawful (leviathan_at p q h x) by apply: lawful_leviathan.
exact: (chain_length_rec (halt := xpred0) pP (fun h _ => qP h) sP).
Qed.
Example used_leviathan g h : lossless p h (leviathan p q halt g h).
Proof. exact: leviathan_lossless. Qed.
Example used_leviathan_emits g h : surely (fun o => (0 < size o)%N) (leviathan p q halt g h).
Proof. exact: leviathan_emits. Qed.
Example used_leviathan_length :
  chain_length p q xpred0 (leviathan_at p q) 1 [::]
  = 1 + total (fun x => Num.min (p0 x) (q0 x) * chain_length p q xpred0 (leviathan_at p q) 0 [:: x]).
Proof. exact: leviathan_length. Qed.
Example used_agreement g h : lossless p h (agreement p q halt g h).
Proof. exact: agreement_lossless. Qed.
Example used_block g h : lossless p h (block p q halt g h).
Proof. exact: block_lossless. Qed.
Example used_block_emits g h : surely (fun o => (0 < size o)%N) (block p q halt g h).
Proof. exact: block_emits. Qed.
Example used_block_length g h : block p q halt g h (fun o => (size o)%:R) = 1 + block_kept p q halt 1 g h.
Proof. exact: block_length. Qed.
Example used_block_length_ge g h : token_length p q halt g h <= block p q halt g h (fun o => (size o)%:R).
Proof. exact: block_length_ge_token. Qed.
Example used_block_optimal g h :
  rule_kept q xpred0 (ratio_rule h) g h <= block_kept p q xpred0 1 g h.
Proof. by have [a b c] := rival_instance g h; apply: block_optimal. Qed.
Example used_block_longest g h :
  rule_round q xpred0 (ratio_rule h) g h (fun o => (size o)%:R) <= block p q xpred0 g h (fun o => (size o)%:R).
Proof. by have [a b c] := rival_instance g h; apply: block_longest. Qed.
Example used_causal g h : lossless p h (leviathan p q (fun h => q h tok0 < 1//2) g h).
Proof. exact: causal_lossless. Qed.
Example used_stopping g h : lossless p h (leviathan p q (after_keeping (size h) halt) g h).
Proof. exact: stopping_lossless. Qed.
Example used_causal_block g h : lossless p h (block p q (fun h => q h tok0 < 1//2) g h).
Proof. exact: causal_block_lossless. Qed.
Example used_stopping_block g h : lossless p h (block p q (after_keeping (size h) halt) g h).
Proof. exact: stopping_block_lossless. Qed.

(** Several candidates. *)
Notation small_tree := (Node [:: (tok0, Node [:: (tok1, Node [::])]); (tok1, Node [::]); (tok0, Node [::])]).
Notation two_wide := (fun h : seq two => 2%N).
Example used_list : try_in_order p0 0 [:: tok1; tok1] (fun o => (o.1 == tok0)%:R) = pick p0 (fun x => (x == tok0)%:R).
Proof. exact: list_lossless. Qed.
Example used_point_ratio : accept p0 (fun x => (x == tok1)%:R) tok1 = p0 tok1.
Proof. by case: (point_mass_is_ratio_rule tok1 (pP [::])). Qed.
Example used_point_mass h : lossless p h (point_mass p h small_tree).
Proof. exact: point_mass_lossless. Qed.
Example used_agreement_tree h : lossless p h (agreement_walk p h small_tree).
Proof. exact: agreement_tree_lossless. Qed.
Example used_agreement_sampled g h : lossless p h (tree_round (agreement_node p) (fun h => draws (q h) 2) g h).
Proof. by apply: agreement_sampled_tree_lossless => // h'; apply: lawful_draws. Qed.
Example used_fixed_tree h : lossless p h (walk (agreement_node p) h small_tree).
Proof.
by apply: fixed_tree_lossless => //; try exact: lawful_agreement_node; try exact: agreement_node_child.
Qed.
Example used_tree g h : lossless p h (tree_round (agreement_node p) (fun h => draws (q h) 2) g h).
Proof.
apply: tree_lossless => //; try exact: lawful_agreement_node; try exact: agreement_node_swaps;
  try exact: agreement_node_child; try by move=> h'; apply: lawful_draws.
by move=> h' f; apply: (law_const (lawful_draws (qP h') 2)).
Qed.
Example used_judged : draft (fun _ => q0) xpred0 2 [::] (fun cs => judge (fun _ => q0) p0 [::] 0 cs (fun o => (o.1 == tok0)%:R))
  = pick p0 (fun x => (x == tok0)%:R).
Proof. by apply: judged_lossless. Qed.
Example used_siblings g h : lossless p h (siblings_tree p (fun h _ => q h) (fun _ => xpred0) two_wide g h).
Proof. by apply: siblings_tree_lossless => // h' d x; case: (qP h'). Qed.
Example used_iid g h : lossless p h (iid_candidates p q two_wide g h).
Proof. exact: iid_candidates_lossless. Qed.
Example used_without_replacement g h : lossless p h (without_replacement p q two_wide g h).
Proof. exact: without_replacement_lossless. Qed.
Example used_transport :
  accepted q0 2 of_two_drafts <= 1 + mass p0 (pred1 tok0) - mass q0 (pred1 tok0) ^+ 2.
Proof.
by have [lawful_rule lossless_rule] := transport_instance; apply: (transport_bound (qP [::])).
Qed.
Example used_transport_at_one :
  keep_rate q0 (leviathan_step p0 q0) = 1 + mass p0 (fun x => p0 x < q0 x) - mass q0 (fun x => p0 x < q0 x) ^+ 1.
Proof. exact: transport_bound_reached_at_one. Qed.

(** Mixtures, and greedy. *)
Example used_mixture h : lossless p h (g <~ coin (1//3);; leviathan p q xpred0 (if g then 1%N else 3%N) h).
Proof. by apply: mixture_lossless => [|g]; [apply: lawful_coin; vm_compute | apply: leviathan_lossless]. Qed.
Example used_random_drafter h :
  lossless p h (i <~ pick q0;; leviathan p (fun h => if i then q h else p h) xpred0 2 h).
Proof. by apply: random_drafter_lossless => // [|[] h'] //; apply: lawful_pick. Qed.
Example used_random_tree h : lossless p h (t <~ (x <~ pick q0;; ret (Node [:: (x, Node [::])]));; point_mass p h t).
Proof. by apply: random_tree_lossless => //; apply: lawful_bind => [|x]; [apply: lawful_pick | apply: lawful_ret]. Qed.
Example used_greedy n h : let argmax h := first_max tok0 (p h) in
  greedy_loop argmax (fun _ _ => [:: tok0]) (fun _ _ _ => tt) n.+1 n tt h = greedy_decode argmax n h.
Proof. by move=> argmax; apply: greedy_is_greedy. Qed.
Example used_first_max : q0 tok0 < q0 (first_max tok0 q0).
Proof. by apply: first_max_first; vm_compute. Qed.

(** Lengths and drift. *)
Notation flat_p := (fun _ : seq two => p0).
Notation flat_q := (fun _ : seq two => q0).
Notation a := (overlap p0 q0).
Lemma a_ge0 (i : nat) : 0 <= a. Proof. exact: overlap_ge0. Qed.
Example used_length_ge g h : nested (fun=> a) (size h) g <= expected_tokens flat_p flat_q g h.
Proof. by apply: length_ge => //; apply: a_ge0. Qed.
Example used_length_le g h : expected_tokens flat_p flat_q g h <= nested (fun=> a) (size h) g.
Proof. by apply: length_le => //; apply: a_ge0. Qed.
Example used_length_depth g h :
  expected_tokens flat_p flat_q g h = \sum_(0 <= i < g.+1) \prod_(0 <= j < i) (fun=> a) (size h + j)%N.
Proof. by apply: length_depth. Qed.
Example used_length_closed g h : (1 - a) * expected_tokens flat_p flat_q g h = 1 - a ^+ g.+1.
Proof. by apply: length_closed. Qed.
Example used_length_one h : expected_tokens p q 1 h = 1 + alpha p q h.
Proof. exact: length_one. Qed.
Example used_tv_events : tv p0 q0 = pick p0 (fun x => (q0 x < p0 x)%R%:R) - pick q0 (fun x => (q0 x < p0 x)%R%:R).
Proof. exact: (tv_events (pP [::]) (qP [::])).1. Qed.
Lemma test01 : unit_test (fun s : seq two => (s == [:: tok0; tok1])%:R : field).
Proof. by move=> s; case: eqP. Qed.
Example used_drift h : let f s := (s == [:: tok0; tok1])%:R in target p 2 h f - target nearby 2 h f <= 2%:R * (1//12).
Proof. by have [nearbyP close] := drift_instance; apply: (drift pP nearbyP close); apply: test01. Qed.
Example used_drift_stop h : let f s := (s == [:: tok0; tok1])%:R in
  plain p halt 2 h f - plain nearby halt 2 h f <= 2%:R * (1//12).
Proof. by have [nearbyP close] := drift_instance; apply: (drift_stop pP nearbyP close); apply: test01. Qed.

(** Features and heads. *)
Notation zero_one := (@bayes field two (fun y => (y != tok0)%:R) [:: fun y => (y != tok1)%:R]).
Definition told (b y : two) : field := if b == y then 1//4 else 0.
Example used_more_features : risk_fine (fun _ : two => told) zero_one <= risk_coarse (fun _ : two => told) zero_one.
Proof.
have [sup ext zero _] := zero_one_risk.
by apply: more_features_cannot_hurt => // _ b y; rewrite /told; case: ifP.
Qed.
Example used_sufficient : let mu (a b y : two) := q0 b * p [:: a] y in risk_fine mu zero_one = risk_coarse mu zero_one.
Proof.
have [_ ext _ hom] := zero_one_risk; move=> mu.
by apply: (sufficient_feature_equal (w := fun _ b => q0 b) (row := fun a => p [:: a])) => // _ b; case: (qP [::]).
Qed.
Example used_nullspace (L : 'cV[field]_1 -> field) (f : 'cV[field]_1) :
  L (0 *m (f + const_mx 1)) = L ((0 : 'M_(1, 1)) *m f).
Proof. by apply: nullspace_invisible; rewrite mul0mx. Qed.
Example used_fisher : total (fun y => ((y == tok0)%:R * p0 y - p0 tok0 * p0 y) * 1) = 0.
Proof. exact: softmax_fisher_singular. Qed.

(** Lossy modes. *)
Example used_forced : tv (point field tok0) p0 = 1 - p0 tok0.
Proof. exact: forced_token_tv. Qed.
Example used_forced_ge : 1 - 3//4 <= tv (point field tok1) p0.
Proof. by apply: forced_token_tv_ge => // -[]; vm_compute. Qed.
Example used_forced_word : tv (point field ((tok0, tok1) : pairs two two)) (joint p0 (fun x => p [:: x])) = 1 - p0 tok0 * p [:: tok0] tok1.
Proof. by apply: forced_word_tv. Qed.
Example used_threshold : tv (point field (threshold_emits true tok1 tok0)) p0 = 1 - p0 tok1.
Proof. exact: threshold_rule_tv. Qed.
Example used_threshold_exact : tv (point field tok1) p0 = 0 <-> p0 tok1 = 1.
Proof. exact: (threshold_exact_iff true tok1 tok0 (pP [::])). Qed.
Example used_nucleus_row : tv (nucleus_row p0 (pred1 tok0)) p0 = 1 - kept_mass p0 (pred1 tok0).
Proof. by apply: nucleus_row_tv => //; vm_compute. Qed.
Example used_nucleus_node m : tv (nucleus_node p0 tok1 m) p0 = (1 - p0 tok1) * (1 - (1 - p0 tok1) ^+ m).
Proof. exact: nucleus_node_tv. Qed.
Notation word := [:: tok0; tok1].
Example used_forced_output : (word == word)%:R - target p 2 [::] (fun s => (s == word)%:R) = 1 - word_prob p [::] word.
Proof. exact: (forced_output_tv pP [::] word).2. Qed.
Example used_forced_iff : lossless p [::] (ret word) <-> word_prob p [::] word = 1.
Proof. exact: forced_output_lossless_iff. Qed.
Notation medusa := (typical p (over p (fun _ => 1//5)) (fun h => first_max tok0 (p h)) [::] [:: (tok1, 0%N); (tok0, 1%N)]).
Example used_typical : (medusa == medusa)%:R - target p (size medusa) [::] (fun s => (s == medusa)%:R)
  = 1 - word_prob p [::] medusa.
Proof. exact: (typical_tv pP (over p (fun _ => 1//5)) (fun h => first_max tok0 (p h)) [::] [:: (tok1, 0%N); (tok0, 1%N)]).2. Qed.
Example used_typical_iff : lossless p [::] (ret medusa) <-> word_prob p [::] medusa = 1.
Proof. exact: typical_lossless_iff. Qed.
Notation twice := [:: [:: tok1]; [:: tok1; tok0]].
Example used_nucleus h f :
  nucleus_paths p false (fun _ => tok0) h twice (fun o => f (head tok1 o)) = pick (nucleus_node (p h) tok1 2) f.
Proof. exact: nucleus_first_token. Qed.
Example used_nucleus_tv h :
  tv (fun x => nucleus_paths p false (fun _ => tok0) h twice (fun o => (head tok1 o == x)%:R)) (p h)
  = (1 - p h tok1) * (1 - (1 - p h tok1) ^+ 2).
Proof. exact: nucleus_first_token_tv. Qed.
