(** The theorems on floats end to end, applied: none of them is about nothing.

    What it says.  Nothing new.  Rows over two tokens that depend on the history, hold
    float32 numbers and miss 1 by up to 1/8; a drafter that remembers what was rejected; 53
    and 24 bits, as in the engine; and a machine that is off by nothing.

    Source: ours. *)

From Coq Require Import ZArith QArith Qcanon Qreals Reals Lra Lia.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Loop Chain Leviathan Tree Agreement Loops Drift Drifting Rational
  PointMass Greedy Counterexamples FloatMachine FloatsEndToEnd DriftingTrees FloatsGiven
  FloatsDrawn FloatsBlock.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Implicit Types (st : nat) (h xs o : seq two).
Definition rough h : two -> rational := if odd (size h) then row2 (5//8) (1//2) else row2 (3//4) (1//4).
Definition rough_draft st h0 h : two -> rational :=
  if odd (st + size h0) || last false h then row2 (1//2) (1//2) else row2 (1//4) (5//8).
Definition at_most st h : nat := ((st + size h) %% 3)%N.
Definition turned_down st h xs o : law rational nat := ret (st + size xs - (size o).-1)%N.
Definition ends_there h := last false h.

Lemma val_eighths (a : nat) : real_of (a // 8) = Rmult (IZR (Z.of_nat a)) (bpow radix2 (-3)).
Proof. by rewrite /n_d /frac /real_of val_red. Qed.
Lemma eighths (a : nat) : (a < 9)%N -> float32 (real_of (a // 8)).
Proof.
move=> small; rewrite val_eighths; apply: generic_format_FLT.
by apply: (FLT_spec _ _ _ _ (Float radix2 (Z.of_nat a) (-3))) => //; move/ssrnat.ltP: small; rewrite /=; lia.
Qed.
Lemma row_of_eighths (a d : nat) : (a < 9)%N -> (d < 9)%N -> float32_row (row2 (a // 8) (d // 8) : two -> rational).
Proof.
have pos m : 0 <= (m // 8 : rational).
  apply/val_le; rewrite val0 val_eighths; apply: Rmult_le_pos; last exact: bpow_ge_0.
  by apply: IZR_le; apply: Nat2Z.is_nonneg.
by move=> a9 d9; case; split; rewrite /row2; do ?[exact: pos | exact: eighths].
Qed.
Lemma in_eighths : [/\ 1//2 = 4//8, 3//4 = 6//8 & 1//4 = 2//8].
Proof. by split; apply: Qc_is_canon; vm_compute. Qed.

Lemma rough_floats h : float32_row (rough h).
Proof. by rewrite /rough; have [-> -> ->] := in_eighths; case: ifP => _; apply: row_of_eighths. Qed.
Lemma rough_miss h : `|total (rough h) - 1| <= 1//8.
Proof. by rewrite /rough; case: ifP => _; vm_compute. Qed.
Lemma rough_draft_floats st h0 h : float32_row (rough_draft st h0 h).
Proof. by rewrite /rough_draft; have [-> _ ->] := in_eighths; case: ifP => _; apply: row_of_eighths. Qed.
Lemma rough_draft_miss st h0 h : `|total (rough_draft st h0 h) - 1| <= 1//8.
Proof. by rewrite /rough_draft; case: ifP => _; vm_compute. Qed.

Lemma two_tokens : tokens two <> [::]. Proof. by []. Qed.
Lemma two_fit : (size_of_vocab two <= Nat.pow 2 1)%coq_nat. Proof. exact: le_n. Qed.
Lemma bits53 : (53 <= 53)%N. Proof. by []. Qed.
Lemma bits24 : (24 <= 24)%N. Proof. by []. Qed.
Lemma level1 : (1 <= 1000)%N. Proof. by []. Qed.
Lemma below_one : (1//8 : rational) < 1. Proof. by vm_compute. Qed.

(** The event that the text ends with the second token. *)
Definition second_last h : rational := (last false h)%:R.
Lemma second_last_test : unit_test second_last.
Proof. by move=> h; rewrite /second_last; case: (last _ _). Qed.

Example used_leviathan_in_floats n st h :
  `|loop ends_there (machine_round 1 53 rough 24 rough_draft (fun st _ h => odd st && last false h) at_most turned_down)
      n n st h second_last - plain (normal rough) ends_there n h second_last| <= n%:R * ratio_off two 1 53 24 (1//8).
Proof.
have lawful_state st' h' xs o : lawful (turned_down st' h' xs o) by apply: lawful_ret.
exact: (leviathan_in_floats two_tokens two_fit bits53 level1 _ rough_floats rough_miss below_one _ _ bits24
  rough_draft_floats rough_draft_miss lawful_state _ _ (leqnn n) second_last_test).
Qed.

Definition one_comb st h : law rational (tree two) :=
  x <~ pick (row_of 1 53 (rough h));; ret (Node (nseq st (x, Node [:: (tok1, Node [::])]))).
Definition next_state st h (t : tree two) o : law rational nat := ret st.+1.
Example used_agreement_in_floats n st h :
  `|loop ends_there (drafted_round one_comb (fun=> agreement_walk (fun h => row_of 1 53 (rough h))) next_state)
      n n st h second_last - plain (normal rough) ends_there n h second_last| <= n%:R * pick_off two 1 53 0.
Proof.
have lawful_comb st' h' : lawful (one_comb st' h').
  apply: lawful_bind => [|x]; last exact: lawful_ret.
  by apply: lawful_pick; apply: (row_p_dist two_tokens two_fit bits53 level1 rough_floats rough_miss below_one).
have lawful_state st' h' t o : lawful (next_state st' h' t o) by apply: lawful_ret.
exact: (agreement_in_floats two_tokens two_fit bits53 level1 _ rough_floats rough_miss below_one lawful_comb lawful_state
  _ _ (leqnn n) second_last_test).
Qed.

(** Trees with at most two siblings, one of them twice, below a token that is drawn. *)
Definition two_teeth (st : nat) h : law rational (tree two) :=
  x <~ pick (row_of 1 53 (rough h));;
  ret (Node [:: (x, Node [:: (tok1, Node [::]); (tok1, Node [::])]); (tok0, Node [::])]).
Lemma lawful_teeth st h : lawful (two_teeth st h).
Proof.
apply: lawful_bind => [|x]; last exact: lawful_ret.
by apply: lawful_pick; apply: (row_p_dist two_tokens two_fit bits53 level1 rough_floats rough_miss below_one).
Qed.
Lemma narrow_teeth st h : surely (fun t => (widest t <= 2)%N) (two_teeth st h).
Proof. by move=> f g e; apply: total_ext => x; congr (_ * _); apply: e. Qed.
Lemma lawful_next st h t o : lawful (next_state st h t o). Proof. exact: lawful_ret. Qed.

Example used_point_mass_in_floats n st h :
  `|loop ends_there (drafted_round two_teeth (fun=> walk (point_node 1 53 24 rough)) next_state) n n st h second_last
    - plain (normal rough) ends_there n h second_last| <= n%:R * point_off two 1 53 24 2.
Proof.
exact: (point_mass_in_floats two_tokens two_fit bits53 bits24 level1 _ rough_floats rough_miss below_one lawful_teeth
  lawful_next _ _ narrow_teeth (leqnn n) second_last_test).
Qed.

Example used_greedy_in_floats n st h k :
  loop ends_there (drafted_round two_teeth (fun=> greedy_walk (argmax64 rough tok0)) next_state) n n st h k
  = plain (@onehot_row rational two (fun h => first_max tok0 (normal rough h))) ends_there n h k.
Proof. exact: (greedy_in_floats _ rough_floats rough_miss below_one lawful_teeth lawful_next _ _ _ _ (leqnn n)). Qed.

(** Up to two siblings, drawn at every node from a row that remembers what was rejected. *)
Definition up_to_two st h0 h : nat := ((st + size h0 + size h) %% 3)%N.
Lemma at_most_two st h0 h : (up_to_two st h0 h <= 2)%N. Proof. by rewrite -ltnS ltn_pmod. Qed.
Lemma level_of_64 : (1 <= 64)%N. Proof. by []. Qed.

Example used_iid_candidates_in_floats n st h :
  `|loop ends_there (drawn_round 1 53 24 rough (iid_pool rough_draft) (fun _ _ _ _ => 1) up_to_two at_most next_state)
      n n st h second_last - plain (normal rough) ends_there n h second_last| <= n%:R * iid_off_at 2 1 2 53 24 (1//8).
Proof.
exact: (iid_candidates_in_floats two_tokens two_fit bits53 bits24 level_of_64 _ rough_floats rough_miss below_one _
  rough_draft_floats at_most_two lawful_next _ _ rough_draft_miss (leqnn n) second_last_test).
Qed.

Example used_without_replacement_in_floats n st h :
  `|loop ends_there (drawn_round 1 53 24 rough (without_pool rough_draft) (without_norm 1 rough_draft) up_to_two at_most
      next_state) n n st h second_last - plain (normal rough) ends_there n h second_last|
  <= n%:R * without_off_at 2 1 2 53 24 (1//8).
Proof.
exact: (without_replacement_in_floats two_tokens two_fit bits53 bits24 level_of_64 _ rough_floats rough_miss below_one _
  rough_draft_floats at_most_two lawful_next _ _ (leqnn n) second_last_test).
Qed.

(** Blocks of at most two drafts, some of which end early; where next to nothing is left, the second token. *)
Definition odd_second st h0 h : bool := odd st && last false h.
Lemma at_most_few st h : (at_most st h <= 2)%N. Proof. by rewrite -ltnS ltn_pmod. Qed.
Definition the_second st h0 h (x : two) : rational := (x == tok1)%:R.
Lemma the_second_dist st h0 h : dist (the_second st h0 h).
Proof. by split; [case; vm_compute | apply: Qc_is_canon; vm_compute]. Qed.
Lemma lawful_turned_down st h xs o : lawful (turned_down st h xs o). Proof. exact: lawful_ret. Qed.
Lemma an_eighth : (1//8 : rational) <= 8%:R^-1. Proof. by vm_compute. Qed.

Example used_block_in_floats n st h :
  `|loop ends_there (block_round 1 53 24 rough rough_draft odd_second at_most turned_down the_second) n n st h second_last
    - plain (normal rough) ends_there n h second_last| <= n%:R * block_off_at 2 1 2 53 24 (1//8).
Proof.
exact: (block_in_floats two_tokens two_fit bits53 bits24 level_of_64 _ rough_floats rough_miss an_eighth odd_second
  rough_draft_floats rough_draft_miss at_most_few lawful_turned_down the_second_dist _ _ (leqnn n) second_last_test).
Qed.

(** A machine that is off by nothing: what the two sums differ by is left. *)
Lemma rough_some h : 0 < total (rough h).
Proof. by rewrite /rough; case: ifP => _; vm_compute. Qed.
Lemma rough_pos h x : 0 <= rough h x.
Proof. by have [] := rough_floats h x. Qed.
Example used_machine_row_tv h : tv (row_of 1 53 (rough h)) (share (rough h)) <= pick_off two 1 53 0.
Proof.
have heavy_row := row_heavy two_tokens two_fit bits53 level1 (rough_floats h) (rough_some h).
exact: (machine_row_tv two_tokens two_fit bits53 level1 (leq0n 1) (values_exact (rough_floats h)) heavy_row).
Qed.
Lemma near_itself (r : two -> rational) : near 0 r r.
Proof. by move=> f _; rewrite addr0. Qed.

Example used_ratio_step :
  pick (share (rough [:: tok0])) (fun x => machine_step (wanted (rough [::]) (rough [:: tok0])) (accept (rough [::])
    (rough [:: tok0])) x (fun v => (emitted x v == tok1)%:R))
  <= pick (share (rough [::])) (fun x => (x == tok1)%:R) + (0 + 0 + 0 + mismatch (rough [::]) (rough [:: tok0])).
Proof.
have qP : dist (share (rough [:: tok0])) by apply: share_dist; [apply: rough_pos | apply: rough_some].
have kept01 x : 0 <= accept (rough [::]) (rough [:: tok0]) x <= 1 by case: x; vm_compute.
have same x : `|accept (rough [::]) (rough [:: tok0]) x - accept (rough [::]) (rough [:: tok0]) x| <= 0.
  by rewrite subrr normr0.
have f01 : unit_test (fun x : two => (x == tok1)%:R : rational) by case; vm_compute.
exact: (ratio_step_drifts (rough_pos [::]) (rough_pos [:: tok0]) (rough_some [::]) (rough_some [:: tok0]) qP kept01
  (near_itself _) same (near_itself _) (lexx 0) f01).
Qed.

(** Rounds that are the target's own. *)
Definition own_round (st : nat) h : law rational (seq two * nat) := y <~ pick (normal rough h);; ret ([:: y], st).
Example used_loop_near n st h :
  `|loop ends_there own_round n n st h second_last - plain (normal rough) ends_there n h second_last| <= n%:R * 0.
Proof.
have nP h' : dist (normal rough h') by apply: share_dist; [apply: rough_pos | apply: rough_some].
apply: (loop_near nP) => [|st' h'|st' h'|st' h' m k k01||] //.
- by apply: lawful_bind => [|y]; [apply: lawful_pick | apply: lawful_ret].
- by move=> f g e; apply: total_ext => y; congr (_ * _); apply: e.
- have none : m%:R * (0 : rational) = 0 by apply: mulr0.
  rewrite {}none addr0; case: m => [|m]; last first.
    rewrite le_eqVlt; apply/orP; left; apply/eqP; apply: total_ext => y; congr (_ * _).
    by rewrite -[LHS]/(Drifting.allowed (normal rough) 0 m.+1 h' [:: y] k) allowed_one mulr0 addr0.
  rewrite -[leRHS](law_const (lawful_pick (nP h'))); apply: (law_le (lawful_pick (nP h'))) => y.
  by rewrite -[leLHS]/(Drifting.allowed (normal rough) 0 0 h' [:: y] k) allowed_none.
- exact: second_last_test.
Qed.

(** ** The numbers themselves: [refengine.commands.rounding] is held to these (proofs/test_rounding.py) *)

Example ratio_of_2 : ratio_off_at 2 1 3 4 (frac 1 8) =
  frac 7951668092076095 10133099161583616.
Proof. by apply/eqP; vm_compute. Qed.
Example ratio_of_5 : ratio_off_at 5 3 53 24 (frac 1 10000) =
  frac 9009883879286603 45040499873332330496.
Proof. by apply/eqP; vm_compute. Qed.
Example ratio_of_64 : ratio_off_at 64 6 53 24 (frac 0 1) =
  frac 4194359 70368744177664.
Proof. by apply/eqP; vm_compute. Qed.
Example ratio_of_1000 : ratio_off_at 1000 10 20 10 (frac 3 1000) =
  frac 2503033931055893 282319401640787968.
Proof. by apply/eqP; vm_compute. Qed.
Example pick_of_1 : pick_off_at 1 0 0 53 =
  frac 5 9007199254740992.
Proof. by apply/eqP; vm_compute. Qed.
Example pick_of_3 : pick_off_at 3 2 1 5 =
  frac 105553116266505 1125899906842624.
Proof. by apply/eqP; vm_compute. Qed.
Example pick_of_1024 : pick_off_at 1024 10 0 53 =
  frac 85 8796093022208.
Proof. by apply/eqP; vm_compute. Qed.
Example pick_of_1025 : pick_off_at 1025 11 1 53 =
  frac 99425 9007199254740992.
Proof. by apply/eqP; vm_compute. Qed.
Example point_of_5 : point_off_at 5 3 2 53 24 =
  frac 1073742001 9007199254740992.
Proof. by apply/eqP; vm_compute. Qed.
Example point_of_1000 : point_off_at 1000 10 7 20 10 =
  frac 17540646457941 2251799813685248.
Proof. by apply/eqP; vm_compute. Qed.
Example iid_of_5 : iid_off_at 5 3 2 53 24 (frac 1 10000) =
  frac 1689520949230811 5629499534213120000.
Proof. by apply/eqP; vm_compute. Qed.
Example iid_of_2 : iid_off_at 2 1 3 3 4 (frac 1 8) =
  frac 3799912185593907 2251799813685248.
Proof. by apply/eqP; vm_compute. Qed.
Example iid_of_1000 : iid_off_at 1000 10 7 20 10 (frac 0 1) =
  frac 16286516070495 1125899906842624.
Proof. by apply/eqP; vm_compute. Qed.
Example without_of_5 : without_off_at 5 3 2 53 24 (frac 1 10000) =
  frac 563621042403187 5629499534213120000.
Proof. by apply/eqP; vm_compute. Qed.
Example without_of_1024 : without_off_at 1024 10 4 53 24 (frac 0 1) =
  frac 33561239 140737488355328.
Proof. by apply/eqP; vm_compute. Qed.
Example without_of_1025 : without_off_at 1025 11 3 20 10 (frac 3 1000) =
  frac 1384822016181359 140737488355328000.
Proof. by apply/eqP; vm_compute. Qed.
Example block_of_5 : block_off_at 5 3 2 53 24 (frac 1 10000) =
  frac 1126101233732499 1125899906842624000.
Proof. by apply/eqP; vm_compute. Qed.
Example block_of_2 : block_off_at 2 1 1 3 4 (frac 1 8) =
  frac 22517998136852819 9007199254740992.
Proof. by apply/eqP; vm_compute. Qed.
Example block_of_1000 : block_off_at 1000 10 7 20 10 (frac 3 1000) =
  frac 34637296424929029 225179981368524800.
Proof. by apply/eqP; vm_compute. Qed.
Example block_of_1025 : block_off_at 1025 11 0 53 24 (frac 1 8) =
  frac 536966241 9007199254740992.
Proof. by apply/eqP; vm_compute. Qed.
