(** Floats, end to end: block verification.

    What it says.  Rows of target and draft hold float32 numbers and miss 1 by at most [miss] <= 1/8; drafts are drawn
    down the tree of float64 sums; the prefix weights are those of FloatWeight.v.  From the far end inwards the machine
    tosses the coin n / d of the whole block or mass / (mass + d - n) of a shorter prefix, none where nothing is kept, and
    emits from what is left, or from p after the whole block.  Where less than 2^-300 is computed to be left, what is
    emitted may be [strange], that is anything.
    - [block_in_floats]  n tokens, blocks having at most m drafts, differ in no event from those of the normalised target
      by more than n [block_off]: m levels, a coin and a pick.
    Where blocks end, rows and memory of the drafter may depend on all that stands before.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.
    Runs in: refengine/engine/rules/block.py; refengine/commands/rounding.py has the number. *)

From Coq Require Import ZArith QArith Qcanon Qreals Reals Lra Lia.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept FloatSums FloatThreshold FloatDescent FloatRow FloatCoin.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Loop Chain Block Loops Drift Drifting Rational FloatMachine FloatsEndToEnd
  DriftingTrees FloatsGiven FloatNumbers Judged FloatRescaled FloatRefusal DriftingBlocks JudgedBlock BlockSums FloatWeight
  FloatLevel FloatBlock.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The coin of the whole block, and the pick after it. *)
Definition whole_off_at (size levels pick_bits coin_bits : nat) : rational :=
  coin_off_at 0 coin_bits + pick_off_at size levels 0 pick_bits.
Definition block_off_at (size levels longest pick_bits coin_bits : nat) (miss : rational) : rational :=
  longest%:R * level_off_at size levels pick_bits coin_bits miss + whole_off_at size levels pick_bits coin_bits.

Section Blocks.
Variables (V : vocab) (L b c : nat).
Implicit Types (w f : V -> rational) (x : V) (h xs : seq V).
Hypothesis some_token : tokens V <> [::].
Hypothesis tree_holds : (size_of_vocab V <= Nat.pow 2 L)%coq_nat.
Hypothesis b_bits : (b <= 53)%N.
Hypothesis c_bits : (c <= 24)%N.
Hypothesis levels : (L <= 64)%N.

Variables (S : Type) (p : seq V -> V -> rational) (stop : seq V -> bool) (miss : rational).
Hypothesis p_floats : forall h, float32_row (p h).
Hypothesis p_miss : forall h, `|total (p h) - 1| <= miss.
Hypothesis miss_eighth : miss <= 8%:R^-1.

Variables (m : nat) (q : S -> seq V -> seq V -> V -> rational) (halt : S -> seq V -> seq V -> bool) (gamma : S -> seq V -> nat).
Variable update : S -> seq V -> seq V -> seq V -> law rational S.
Variable strange : S -> seq V -> seq V -> V -> rational.
Hypothesis q_floats : forall st h0 h, float32_row (q st h0 h).
Hypothesis q_miss : forall st h0 h, `|total (q st h0 h) - 1| <= miss.
Hypothesis few : forall st h, (gamma st h <= m)%N.
Hypothesis updateP : forall st h xs o, lawful (update st h xs o).
Hypothesis strangeP : forall st h0 h, dist (strange st h0 h).

(** Whether nothing is kept yet, and the weight. *)
Definition prefix_state : Type := bool * (rational * rational).
Implicit Type s : prefix_state.
Definition at_start : prefix_state := (true, (1, 1)).
Definition stands_for s : rational := carried_weight s.2.
Definition sound s : Prop := holds_weight s.2 /\ (s.1 -> s.2 = (1, 1)).

Definition one_longer st h0 s h x : prefix_state :=
  (false, carry (level_wanted (p h) s.2.1 x) (level_supplied (q st h0 h) s.2.2 x)).
Definition here64 st h0 s h : rational := if s.1 then 1 else level_coin L c (p h) (q st h0 h) s.2.1 s.2.2.
Definition whole64 s : rational := coin_of c (real_of s.2.1) (real_of s.2.2).
Definition left64 st h0 s h : V -> rational := level_left L b (p h) (q st h0 h) s.2.1 s.2.2 (strange st h0 h).

Definition block_draw st h : law rational (seq V) := draft (fun h' => row_of L b (q st h h')) (halt st h) (gamma st h) h.
Definition block_answer st h xs : law rational (seq V) :=
  machine_verify (one_longer st h) (fun h => row_of L b (p h)) (here64 st h) whole64 (left64 st h) at_start h xs.
Definition block_round := drafted_round block_draw block_answer update.

Definition eps : rational := level_off V L b c miss.
Definition whole_off : rational := whole_off_at (size_of_vocab V) L b c.
Definition block_off : rational := block_off_at (size_of_vocab V) L m b c miss.

Lemma block_miss_small : miss < 1.
Proof. by apply: le_lt_trans miss_eighth _; vm_compute. Qed.
Lemma block_p h : dist (row_of L b (p h)).
Proof.
exact: (row_of_dist some_token tree_holds b_bits (levels_few levels) (p_floats h) (admitted block_miss_small (p_miss h))).
Qed.
Lemma block_q st h0 h : dist (row_of L b (q st h0 h)).
Proof.
exact: (row_of_dist some_token tree_holds b_bits (levels_few levels) (q_floats st h0 h)
  (admitted block_miss_small (q_miss st h0 h))).
Qed.
Lemma block_target h : dist (normal p h).
Proof. exact: (normal_dist p_floats p_miss block_miss_small). Qed.
Lemma left64_dist st h0 s h : sound s -> dist (left64 st h0 s h).
Proof.
move=> _; exact: (level_left_dist some_token tree_holds b_bits levels (p h) (q st h0 h) s.2.1 s.2.2 (strangeP st h0 h)).
Qed.
Lemma here64_unit st h0 s h : sound s -> 0 <= here64 st h0 s h <= 1.
Proof. by move=> _; rewrite /here64; case: s.1; [rewrite ler01 lexx | apply: coin_of01]. Qed.
Lemma whole64_unit s : sound s -> 0 <= whole64 s <= 1.
Proof. by move=> _; apply: coin_of01. Qed.

Lemma eps_pos : 0 <= eps.
Proof. exact: (level_off_pos V L b c (miss_pos p_miss)). Qed.
Lemma whole_off_pos : 0 <= whole_off.
Proof. exact: addr_ge0 (coin_off_pos c 0) (pick_off_pos V L b 0). Qed.
Lemma block_off_pos : 0 <= block_off.
Proof. exact: addr_ge0 (times_pos m eps_pos) whole_off_pos. Qed.

Lemma sound_start : sound at_start.
Proof. by split; [exact: full_weight |]. Qed.
Lemma start_one : stands_for at_start = 1.
Proof. by rewrite /stands_for /carried_weight /= divr1. Qed.
Lemma sound_next st h0 s h x : sound s -> sound (one_longer st h0 s h x).
Proof.
case: s => [first [n d]] [/= held _]; split=> //; apply: carry_holds.
by case: (wanted_row (p_floats h) held x).
Qed.

Lemma one_level_near st h0 s h f k : sound s -> unit_test f -> 0 <= k <= 1 ->
  pick (row_of L b (q st h0 h)) (fun x => stands_for (one_longer st h0 s h x) * f x
    + (1 - stands_for (one_longer st h0 s h x)) * (here64 st h0 s h * pick (left64 st h0 s h) f + (1 - here64 st h0 s h) * k))
  <= stands_for s * pick (normal p h) f + (1 - stands_for s) * k + eps.
Proof.
case: s => [first [n d]] [/= held one] f01 k01.
case: first one => [/(_ isT) [n1 d1]|_]; last first.
  exact: (level_near some_token tree_holds b_bits c_bits levels (p_floats h) (q_floats st h0 h) (p_miss h) (q_miss st h0 h)
    miss_eighth held (strangeP st h0 h) f01 k01).
exact: (first_near c some_token tree_holds b_bits levels (p_floats h) (q_floats st h0 h) (p_miss h) (q_miss st h0 h)
  miss_eighth held (strangeP st h0 h) n1 d1 f01 k01).
Qed.

Lemma whole_near s h f k : sound s -> unit_test f -> 0 <= k <= 1 ->
  whole64 s * pick (row_of L b (p h)) f + (1 - whole64 s) * k
  <= stands_for s * pick (normal p h) f + (1 - stands_for s) * k + whole_off.
Proof.
move=> [held _] f01 k01; have [_ /andP[n0 nd] /andP[half one]] := held; have ps := admitted block_miss_small (p_miss h).
have d0 := weight_bottom held; have same y : rounded 0 y y by rewrite /rounded /=; lra.
have least_half : least <= 2%:R^-1.
  by apply/val_le; rewrite val_least val_half (_ : Rinv (IZR 2) = bpow radix2 (-1)) //; apply: bpow_le.
have heavy : Rle (bpow radix2 (-900)) (real_of s.2.2) by rewrite -val_least; apply/val_le/(le_trans least_half).
have near := coin_of_near c_bits (i := 0) (j := 0) isT (same _) (same _) heavy n0 d0.
have v1 : s.2.1 / s.2.2 <= 1 by rewrite (ler_pdivr_mulr _ _ d0) mul1r.
rewrite (min_r v1) in near; have picked := pick01 (block_p h) f01.
apply: le_trans (coin_moved picked k01 near) _.
have row := row_of_near some_token tree_holds b_bits (levels_few levels) (p_floats h) ps f01.
have -> : stands_for s * pick (normal p h) f + (1 - stands_for s) * k + whole_off
  = s.2.1 / s.2.2 * pick (share (p h)) f + pick_off V L b 0 + (1 - s.2.1 / s.2.2) * k + coin_off_at 0 c.
  by rewrite /whole_off /whole_off_at /stands_for /carried_weight /normal /pick_off; ring.
have v0 : 0 <= s.2.1 / s.2.2 by apply: divr_ge0 n0 (ltW d0).
have pick0 := pick_off_pos V L b 0; do 2![rewrite ler_add2r].
apply: le_trans (ler_wpmul2l v0 row) _; rewrite mulrDr ler_add2l -[leRHS]mul1r.
exact: (ler_wpmul2r pick0 v1).
Qed.

Lemma block_near st h : drifts (normal p) block_off h (xs <~ block_draw st h;; block_answer st h xs).
Proof.
exact: (block_drifts block_target (good := sound) (next := one_longer st h) (fun h' _ => block_q st h h') block_p
  (@left64_dist st h) (@here64_unit st h) whole64_unit (@sound_next st h) eps_pos
  (fun s h' f k ok _ => @one_level_near st h s h' f k ok) whole_near h (few st h) sound_start start_one whole_off_pos).
Qed.

Lemma lawful_block_answer st h xs : lawful (block_answer st h xs).
Proof.
apply: lawful_bind => [|[o|]]; last 1 first.
- by apply: lawful_bind => [|y]; [apply: lawful_pick (block_p h) | apply: lawful_ret].
- exact: (lawful_machine_keep (good := sound) (next := one_longer st h) block_p (@left64_dist st h) (@here64_unit st h)
    whole64_unit (@sound_next st h) h xs sound_start).
exact: lawful_ret.
Qed.

Lemma block_answer_emits st h xs : surely (fun o => (0 < size o)%N) (block_answer st h xs).
Proof.
have emits := keep_some_emits (good := sound) (next := one_longer st h) block_p (@left64_dist st h) (@here64_unit st h)
  whole64_unit (@sound_next st h) h xs sound_start.
move=> f f' e; apply: emits => -[o|] /= some; first exact: e.
by apply: total_ext => y; rewrite /ret e.
Qed.

Theorem block_in_floats fuel n st h k : (n <= fuel)%N -> unit_test k ->
  `|loop stop block_round fuel n st h k - plain (normal p) stop n h k| <= n%:R * block_off.
Proof.
move=> le k01; have drawP st' h' : lawful (block_draw st' h') by apply: lawful_draft => h'' _; apply: block_q.
exact: (drafted_loop_near block_target block_off_pos stop drawP updateP lawful_block_answer block_answer_emits block_near
  st h le k01).
Qed.
End Blocks.
