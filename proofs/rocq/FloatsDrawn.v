(** Floats, end to end: the rules that judge several drawn candidates.

    What it says.  Rows of target and draft hold float32 numbers and the target's miss 1 by at most [miss]; at
    every node siblings are drawn one after the other down the tree of float64 sums, and judged as in
    FloatSiblings.v, the row that is left going from one to the next.
    - [iid_candidates_in_floats]       k draws from q, which misses 1 by at most [miss] too;
    - [without_replacement_in_floats]  draws from what is left of q, whose float64 sum is multiplied with:
    n tokens, where no node has more than m siblings, differ in no event from those of the normalised target by
    more than n [candidates_off]: m (a pick, a coin, [spare] and (4 L + 28) 2^-53), [miss] and a last pick.
    Depth, widths, rows and memory of the drafter may depend on all that stands before.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.
    Runs in: refengine/engine/rules/iid_candidates.py, without_replacement.py; refengine/commands/rounding.py has the number. *)

From Coq Require Import ZArith QArith Qcanon Qreals Reals Lra Lia.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept FloatRow.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Loop Chain Tree Siblings WithoutReplacement Loops Drift Drifting Rational
  FloatMachine FloatsEndToEnd DriftingTrees FloatsGiven FloatNumbers Judged FloatRescaled FloatRefusal FloatSiblings.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** What m siblings lose, where norm is the sum of a pool but for [spare] of it, and the last pick. *)
Definition candidates_off_at (size levels siblings pick_bits coin_bits : nat) (miss spare : rational) : rational :=
  miss + siblings%:R * (pick_off_at size levels 0 pick_bits + coin_off_at 0 coin_bits + spare
    + (4 * levels + 28)%N%:R / 2%:R ^+ 53) + pick_off_at size levels 0 pick_bits.
(** Draws from q itself: its sum is taken for 1. *)
Definition iid_off_at size levels siblings pick_bits coin_bits miss : rational :=
  candidates_off_at size levels siblings pick_bits coin_bits miss miss.
(** Draws from what is left of q: its sum is added up. *)
Definition without_off_at size levels siblings pick_bits coin_bits miss : rational :=
  candidates_off_at size levels siblings pick_bits coin_bits miss ((4 * levels)%N%:R / 2%:R ^+ 53).


Section Drawn.
Variables (V : vocab) (L b c : nat).
Implicit Types (w f : V -> rational) (x : V) (h d cs : seq V).
Hypothesis some_token : tokens V <> [::].
Hypothesis tree_holds : (size_of_vocab V <= Nat.pow 2 L)%coq_nat.
Hypothesis b_bits : (b <= 53)%N.
Hypothesis c_bits : (c <= 24)%N.
Hypothesis levels : (L <= 64)%N.

Variables (S : Type) (p : seq V -> V -> rational) (stop : seq V -> bool) (miss : rational).
Hypothesis p_floats : forall h, float32_row (p h).
Hypothesis p_miss : forall h, `|total (p h) - 1| <= miss.
Hypothesis miss_small : miss < 1.

Lemma float_row32 w : float32_row w -> float_row w.
Proof. by move=> wf x; have [w0 xf] := wf x; split=> //; apply: float32_64. Qed.

Lemma row_stands h : stands miss (p h) 1.
Proof.
have some := admitted miss_small (p_miss h); split; rewrite ?mulr1 //.
- exact: float_row32.
- exact: one_piece (float32_total (p_floats h) some).
- exact: sealed_small.
Qed.

Lemma target_dist h : dist (normal p h).
Proof. exact: (normal_dist p_floats p_miss miss_small). Qed.

Section Round.
(** What a state, the start of the round and the path give: the rows to draw from, their sums, widths, the depth. *)
Variables (pool : S -> seq V -> seq V -> seq V -> V -> rational) (norm : S -> seq V -> seq V -> seq V -> rational).
Variables (spare : rational) (m : nat) (width : S -> seq V -> seq V -> nat) (depth : S -> seq V -> nat).
Variable update : S -> seq V -> tree V -> seq V -> law rational S.
Hypothesis pool_floats : forall st h0 h d, float32_row (pool st h0 h d).
Hypothesis norm_some : forall st h0 h d, ~~ nothing_left (pool st h0 h) d -> piece <= norm st h0 h d.
Hypothesis pool_near : forall st h0 h d, ~~ nothing_left (pool st h0 h) d ->
  `|total (pool st h0 h d) - norm st h0 h d| <= spare * norm st h0 h d.
Hypothesis spare0 : 0 <= spare.
Hypothesis spare1 : spare <= 1.
Hypothesis few : forall st h0 h, (width st h0 h <= m)%N.
Hypothesis updateP : forall st h t o, lawful (update st h t o).

Definition siblings64 st h0 h : law rational (seq V) := candidates64 L b (pool st h0 h) (width st h0 h).
Definition node64 st h0 h cs : law rational (choice V) := judge64 L b c (pool st h0 h) (norm st h0 h) (p h) 1 [::] 0 cs.
Definition drawn_round :=
  drafted_round (fun st h => grow (siblings64 st h) (depth st h) h) (fun st h t => walk (node64 st h) h t) update.

Definition candidates_off : rational := candidates_off_at (size_of_vocab V) L m b c miss spare.

Lemma candidates_offE n : miss + n%:R * sibling_off V L b c spare + pick_off V L b 0
  = candidates_off_at (size_of_vocab V) L n b c miss spare.
Proof. by rewrite /candidates_off_at /sibling_off /unit64 sealedE. Qed.

Lemma candidates_off_pos : 0 <= candidates_off.
Proof.
rewrite /candidates_off -candidates_offE; apply: addr_ge0 (pick_off_pos _ _ _ _).
exact: addr_ge0 (miss_pos p_miss) (siblings_off_pos _ _ _ _ spare0 _).
Qed.

Lemma lawful_node64 st h0 h cs : lawful (node64 st h0 h cs).
Proof.
exact: (lawful_judge64 _ some_token tree_holds b_bits levels (@norm_some st h0 h) _ _ _ (row_stands h)).
Qed.

Lemma node64_child st h0 h cs : surely (child_of cs) (node64 st h0 h cs).
Proof.
move=> f g e; apply: judge64_child => -[y [j|]] /= ok; apply: e => //=.
by rewrite subn0 in ok.
Qed.

Lemma lawful_siblings64 st h0 h : lawful (siblings64 st h0 h).
Proof.
apply: lawful_draft => d more; exact: (pool_dist some_token tree_holds b_bits levels (@pool_floats st h0 h) more).
Qed.

Lemma node64_near st h0 h f : unit_test f ->
  siblings64 st h0 h (fun cs => node64 st h0 h cs (fun o => f o.1)) <= pick (normal p h) f + candidates_off.
Proof.
move=> f01; have near := drawn_near some_token tree_holds b_bits c_bits levels (@pool_floats st h0 h)
  (@norm_some st h0 h) (@pool_near st h0 h) spare0 spare1 (width st h0 h) [::] 0 (row_stands h) (ltW miss_small) f01.
apply: le_trans near _; rewrite ler_add2l /candidates_off -candidates_offE ler_add2r ler_add2l.
by apply: ler_wpmul2r; [apply: sibling_off_pos spare0 | rewrite ler_nat].
Qed.

Lemma leaf64_near st h0 h f : unit_test f -> node64 st h0 h [::] (fun o => f o.1) <= pick (normal p h) f + candidates_off.
Proof.
move=> f01; have [wf some _ _] := row_stands h; rewrite /node64 /= /bind /ret /=.
apply: le_trans (float_row_pick some_token tree_holds b_bits levels wf some f01) _.
rewrite ler_add2l /candidates_off -candidates_offE ler_addr.
exact: addr_ge0 (miss_pos p_miss) (siblings_off_pos _ _ _ _ spare0 _).
Qed.

Lemma drawn_in_floats fuel n st h k : (n <= fuel)%N -> unit_test k ->
  `|loop stop drawn_round fuel n st h k - plain (normal p) stop n h k| <= n%:R * candidates_off.
Proof.
have nodeP st' h0 h' cs := lawful_node64 st' h0 h' cs; have child st' h0 h' cs := @node64_child st' h0 h' cs.
apply: drafted_loop_near => //; [exact: target_dist | exact: candidates_off_pos | | | |].
- by move=> st' h'; apply: lawful_grow; apply: lawful_siblings64.
- by move=> st' h' t; apply: lawful_walk.
- by move=> st' h' t; apply: walk_emits.
move=> st' h'; apply: (tree_drifts target_dist (nodeP st' h') (child st' h')).
- by move=> h'' cs; apply: judge64_swaps.
- exact: lawful_siblings64.
- exact: node64_near.
- exact: leaf64_near.
Qed.
End Round.

(** ** The two rules *)

Section Rules.
Variables (q : S -> seq V -> seq V -> V -> rational) (m : nat) (width : S -> seq V -> seq V -> nat) (depth : S -> seq V -> nat).
Variable update : S -> seq V -> tree V -> seq V -> law rational S.
Hypothesis q_floats : forall st h0 h, float32_row (q st h0 h).
Hypothesis few : forall st h0 h, (width st h0 h <= m)%N.
Hypothesis updateP : forall st h t o, lawful (update st h t o).

Definition iid_pool st h0 h d : V -> rational := q st h0 h.
Definition without_pool st h0 h d : V -> rational := left_over (q st h0) h d.
Definition without_norm st h0 h d : rational := sum64 L (without_pool st h0 h d).

(** The engine multiplies with no norm where it is 1: that is the same. *)
Lemma products_one w : float_row w -> products w 1 =1 w.
Proof. by move=> wf x; rewrite /products mulr1 fl_exact //; case: (wf x). Qed.

Theorem iid_candidates_in_floats fuel n st h k : (forall st h0 h, `|total (q st h0 h) - 1| <= miss) ->
  (n <= fuel)%N -> unit_test k ->
  `|loop stop (drawn_round iid_pool (fun _ _ _ _ => 1) width depth update) fuel n st h k - plain (normal p) stop n h k|
  <= n%:R * iid_off_at (size_of_vocab V) L m b c miss.
Proof.
move=> q_miss; apply: drawn_in_floats => // [st' h0 h' d|st' h0 h' d _|st' h0 h' d _||]; first exact: q_floats.
- exact: sealed_small.
- by rewrite mulr1; apply: q_miss.
- exact: (miss_pos p_miss).
- exact: ltW.
Qed.

Lemma without_floats st h0 h d : float32_row (without_pool st h0 h d).
Proof.
move=> x; rewrite /without_pool /left_over; case: ifP => _; last exact: q_floats.
by split=> //; rewrite val0; apply: generic_format_0.
Qed.

(** Its float64 sum has a piece, and is its sum but for 4 L 2^-53. *)
Lemma taken_sum w : float32_row w -> 0 < total w -> piece <= sum64 L w
  /\ `|total w - sum64 L w| <= (4 * L)%N%:R / 2%:R ^+ 53 * sum64 L w.
Proof.
move=> wf some; have near := sum64_near some_token tree_holds levels (float_row32 wf).
set x := 2%:R * L%:R * unit64 in near; have x8 : x <= 8%:R^-1 by apply: level_share levels.
have x0 : 0 <= x by apply: mulr_ge0 unit64_pos; apply: mulr_ge0; apply: ler0n.
have half : 2%:R^-1 * total w <= sum64 L w.
  have := near; rewrite ler_distl => /andP[low _]; apply: le_trans low.
  have -> : total w - x * total w = (1 - x) * total w by ring.
  apply: ler_wpmul2r; first exact: ltW.
  by rewrite ler_subr_addr; apply: le_trans (ler_add (lexx _) x8) _; vm_compute.
have twice (a d : rational) : 2%:R^-1 * a <= d -> a <= 2%:R * d.
  by move=> le; rewrite -(ler_pmul2l (_ : 0 < 2%:R^-1)) ?mulKf // invr_gt0 ltr0n.
split.
  have := float32_total wf some; rewrite -(ler_pmul2l (_ : 0 < 2%:R^-1)) ?invr_gt0 ?ltr0n // mulKf //.
  by move=> le; apply: le_trans le half.
rewrite distrC; apply: le_trans near _.
have -> : (4 * L)%N%:R / 2%:R ^+ 53 = x * 2%:R by rewrite natrM /x /unit64 sealedE; ring.
by rewrite -[leRHS]mulrA; apply: ler_wpmul2l; [exact: x0 | exact: twice half].
Qed.

Theorem without_replacement_in_floats fuel n st h k : (n <= fuel)%N -> unit_test k ->
  `|loop stop (drawn_round without_pool without_norm width depth update) fuel n st h k - plain (normal p) stop n h k|
  <= n%:R * without_off_at (size_of_vocab V) L m b c miss.
Proof.
have taken st' h0 h' d (more : ~~ nothing_left (without_pool st' h0 h') d) :=
  taken_sum (@without_floats st' h0 h' d) (pool_some (@without_floats st' h0 h') more).
apply: drawn_in_floats => // [st' h0 h' d|st' h0 h' d|st' h0 h' d||]; first exact: without_floats.
- by move=> /taken[].
- by move=> /taken[].
- by apply: mulr_ge0; [apply: ler0n | apply: unit_pos].
have -> : (4 * L)%N%:R / 2%:R ^+ 53 = 2%:R * (2%:R * L%:R * unit64) by rewrite natrM /unit64 sealedE; ring.
apply: le_trans (_ : 2%:R * 8%:R^-1 <= 1); last by vm_compute.
by apply: ler_wpmul2l; [apply: ler0n | apply: level_share levels].
Qed.
End Rules.
End Drawn.
