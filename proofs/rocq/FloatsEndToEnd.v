(** Floats, end to end: how far the text that is written is from the target's, by a number.

    What it says.  The rows of target and draft hold float32 numbers and miss 1 by at most
    [miss].  The machine draws drafts, corrections and bonuses by going down the tree of
    float64 sums with a uniform of [b] bits, and accepts where the float64 product of a
    uniform of [c] bits and q(x) is below p(x), as refengine/engine does.
    - [leviathan_in_floats]  the ratio rule: n tokens, however long the blocks, wherever
      they halt, whatever the drafter remembers, differ in no event by more than
      n [ratio_off] from those of the normalised target;
    - [agreement_in_floats]  agreement on trees, chains among them, drafted in any way: n [pick_off].
    Every uniform is one of the grid's, all of them equally likely, and independent.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.
    Runs in: refengine/engine/rules/leviathan.py, agreement.py; refengine/commands/rounding.py has the number. *)

From Coq Require Import ZArith QArith Qcanon Qreals Reals Lra Lia.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept FloatSums FloatThreshold FloatDescent FloatRow.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Loop Chain Leviathan Tree Agreement Loops Drift Drifting Rational FloatMachine.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section EndToEnd.
Variables (V : vocab) (L b : nat).
Implicit Types (x : V) (p q w f : V -> rational) (h xs : seq V).
Hypothesis some_token : tokens V <> [::].
Hypothesis tree_holds : (size_of_vocab V <= Nat.pow 2 L)%coq_nat.
Hypothesis b_bits : (b <= 53)%N.
Hypothesis shallow : (L <= 1000)%N.

(** ** What the engine computes of a row, and of what is left of one after a refusal *)

Definition row_of p : V -> rational := machine_row L b (values p).
Definition rest p q : list real := [seq excess64 (real_of (p x)) (real_of (q x)) | x <- tokens V].
(** [correction] of row.py: p itself where nothing is computed to be left. *)
Definition corrected p q : list real := if Rlt_bool (IZR 0) (float_sum (sum_tree L (rest p q))) then rest p q else values p.
Definition correction_of p q : V -> rational := machine_row L b (corrected p q).

Lemma forall_tokens (A B : Type) (P : A -> B -> Prop) (f : V -> A) (g : V -> B) :
  (forall x, P (f x) (g x)) -> List.Forall2 P [seq f x | x <- tokens V] [seq g x | x <- tokens V].
Proof. by move=> all; elim: (tokens V) => [|x s IH] /=; constructor. Qed.

Lemma nth_tokens (g : V -> real) x : List.nth (place x) [seq g y | y <- tokens V] (IZR 0) = g x.
Proof.
rewrite /place; have := token_in x; elim: (tokens V) => [|y s IH] //=.
by rewrite inE eq_sym; case: eqP => [->|_] //= /IH.
Qed.

Lemma rounded_none v : Rle (IZR 0) v -> rounded 1 v v.
Proof. by move=> v0; have s := e64_small; rewrite /rounded !pow_1; split; nra. Qed.

Lemma row_computes w : float32_row w -> computes 1 w (values w).
Proof.
move=> wP; apply: forall_tokens => x; have [w0 wf] := wP x.
have v0 : Rle (IZR 0) (real_of (w x)) by rewrite -val0; apply/val_le.
exact: (conj v0 (conj v0 (conj (float32_64 _ wf) (rounded_none v0)))).
Qed.

Lemma excess_val p q x : real_of (excess p q x) = Rmax (Rminus (real_of (p x)) (real_of (q x))) (IZR 0).
Proof. by rewrite /excess val_max valB val0. Qed.

Lemma rest_computes p q : float32_row p -> float32_row q -> computes 1 (excess p q) (rest p q).
Proof.
move=> pP qP; apply: forall_tokens => x; have [_ pf] := pP x; have [_ qf] := qP x.
rewrite excess_val; split; first exact: Rmax_r.
split; first exact: Rmax_r.
by split; [apply: excess_format | apply: excess_rounded].
Qed.

Lemma sum_before_up (y : list real) i k : (forall m, Rle (IZR 0) (List.nth m y (IZR 0))) ->
  Rle (sum_before y i) (sum_before y (i + k)%coq_nat).
Proof.
move=> y0; elim: k => [|k IH]; first by rewrite Nat.add_0_r; lra.
by rewrite Nat.add_succ_r sum_before_step; have := y0 (i + k)%coq_nat; lra.
Qed.

(** One weight that no float32 number is smaller than makes a total that cannot underflow. *)
Lemma some_heavy w y x : computes 1 w y -> Rle (bpow radix2 (-149)) (List.nth (place x) y (IZR 0)) -> heavy L y.
Proof.
move=> wy big; have s := e64_small.
have fit : (length (values w) <= Nat.pow 2 L)%coq_nat by rewrite values_length.
have some : values w <> List.nil by apply: values_some.
have ok := tree_ok L 1 (values w) y fit wy some; have high := row_height L y.
have e := tree_exact L 1 (values w) y fit wy some; have [lo _] := sum_rounded _ L ok high.
have y0 m : Rle (IZR 0) (List.nth m y (IZR 0)).
  have := weighed_floats 1 _ _ wy; elim: (y) m => [|a u IH] [|m] F /=; try lra.
    by have := List.Forall_inv F; case.
  exact: IH (List.Forall_inv_tail F).
have inside : (place x < size_of_vocab V)%N by rewrite index_mem token_in.
have sum : Rle (bpow radix2 (-149)) (exact_sum (FloatRow.tree L y)).
  rewrite e values_length (_ : size_of_vocab V = (S (place x) + (size_of_vocab V - S (place x)))%coq_nat); last first.
    by have /ssrnat.ltP := inside; lia.
  apply: Rle_trans (sum_before_up _ _ y0); rewrite sum_before_step.
  have none : sum_before y 0 = IZR 0 by case: (y).
  by have := sum_before_up 0 (place x) y0; rewrite Nat.add_0_l none; lra.
have down := bernoulli_down L e64 ltac:(lra).
have few : Rle (Rmult (INR L) e64) (Rdiv (IZR 1) (IZR 2)).
  apply: Rle_trans (_ : Rle (Rmult (INR 1000) e64) _); last by rewrite (INR_IZR_INZ 1000) e64E /=; lra.
  by apply: Rmult_le_compat_r; [lra | apply/le_INR/ssrnat.leP].
have half : Rle (bpow radix2 (-150)) (Rmult (Rdiv (IZR 1) (IZR 2)) (bpow radix2 (-149))) by rewrite /=; lra.
have less : Rle (bpow radix2 (-900)) (bpow radix2 (-150)) by apply: bpow_le; lia.
have pos := bpow_gt_0 radix2 (-149); rewrite /heavy -/(FloatRow.tree L y).
apply: Rle_trans less (Rle_trans _ _ _ half (Rle_trans _ _ _ _ lo)).
by apply: Rmult_le_compat; lra.
Qed.

Lemma unit_pos n : 0 <= (2%:R ^+ n)^-1 :> rational.
Proof. by rewrite invr_ge0; apply: exprn_ge0; apply: ler0n. Qed.

Lemma positive_somewhere w : 0 < total w -> exists x, 0 < w x.
Proof.
move=> w1; case: (boolP (has (fun x => 0 < w x) (tokens V))) => [/hasP[x _ wx]|/hasPn none]; first by exists x.
suff : total w <= 0 by rewrite leNgt w1.
rewrite -(@total0 _ V); apply: total_le => x; rewrite leNgt; apply: none; exact: token_in.
Qed.

Lemma float32_heavy (v : rational) : float32 (real_of v) -> 0 < v -> Rle (bpow radix2 (-149)) (real_of v).
Proof.
move=> vf v0; have z : float32 (IZR 0) by exact: generic_format_0.
have := excess_heavy _ _ vf z; rewrite /excess64 Rminus_0_r.
have v1 : Rlt (IZR 0) (real_of v) by rewrite -val0; apply/val_lt.
rewrite /rnd64 round_generic; last exact: float32_64; first by rewrite Rmax_left; [apply | lra].
Qed.

Section Row.
Variable w : V -> rational.
Hypothesis w_floats : float32_row w.
Hypothesis w_some : 0 < total w.

Lemma row_heavy : heavy L (values w).
Proof.
have [x wx] := positive_somewhere w_some; apply: (some_heavy (x := x) (row_computes w_floats)).
by rewrite /values nth_tokens; apply: float32_heavy => //; have [] := w_floats x.
Qed.

Lemma row_of_dist : dist (row_of w).
Proof. exact: (machine_row_dist some_token tree_holds b_bits (row_computes w_floats) row_heavy). Qed.

Lemma values_exact : computes 0 w (values w).
Proof.
apply: forall_tokens => x; have [w0 wf] := w_floats x.
have v0 : Rle (IZR 0) (real_of (w x)) by rewrite -val0; apply/val_le.
by split=> //; split=> //; split; [apply: float32_64 | rewrite /rounded /=; lra].
Qed.

Lemma row_of_near : near (pick_off V L b 0) (row_of w) (share w).
Proof. exact: (machine_row_near some_token tree_holds b_bits shallow (leq0n 1) values_exact row_heavy). Qed.
End Row.

Section Refused.
Variables p q : V -> rational.
Hypothesis p_floats : float32_row p.
Hypothesis q_floats : float32_row q.
Hypothesis p_some : 0 < total p.

(** Either nothing is left, and nothing is computed to be, or what is computed cannot underflow. *)
Lemma corrected_case : (total (excess p q) == 0 /\ corrected p q = values p)
  \/ (total (excess p q) != 0 /\ corrected p q = rest p q /\ heavy L (rest p q)).
Proof.
have computed := rest_computes p_floats q_floats; have s := e64_small.
case: (boolP (total (excess p q) == 0)) => [z|some]; [left | right]; split=> //.
  rewrite /corrected; case: Rlt_bool_spec => // pos.
  have fit : (length (values (excess p q)) <= Nat.pow 2 L)%coq_nat by rewrite values_length.
  have ne : values (excess p q) <> List.nil by apply: values_some.
  have ok := tree_ok L 1 _ _ fit computed ne; have e := tree_exact L 1 _ _ fit computed ne.
  have := sum_something _ ok pos; rewrite e.
  have [_ up] := sum_before_near 1 _ _ computed (length (values (excess p q))).
  by move: up; rewrite values_total (eqP z) val0 Rmult_0_r; lra.
have some' : 0 < total (excess p q).
  by rewrite lt_neqAle eq_sym some total_ge0 // => x; apply: excess_ge0.
have [x ex] := positive_somewhere some'.
have [_ pf] := p_floats x; have [_ qf] := q_floats x.
have hv : heavy L (rest p q).
  apply: (some_heavy (x := x) computed); rewrite /rest nth_tokens; apply: excess_heavy => //.
  move: ex => /val_lt; rewrite val0 excess_val => ex.
  by move: ex; rewrite /Rmax; case: Rle_dec; lra.
split=> //; rewrite /corrected; case: Rlt_bool_spec => // le; exfalso.
by have := bpow_gt_0 radix2 (-900); move: hv; rewrite /heavy; lra.
Qed.

Lemma correction_of_dist : dist (correction_of p q).
Proof.
rewrite /correction_of; case: corrected_case => [[_ ->]|[_ [-> hv]]]; first exact: row_of_dist.
exact: (machine_row_dist some_token tree_holds b_bits (rest_computes p_floats q_floats) hv).
Qed.

Lemma pick_off_rises : pick_off V L b 0 <= pick_off V L b 1.
Proof.
rewrite /pick_off /pick_off_at; apply: ler_wpmul2l; first exact: ler0n.
rewrite ler_add2r; apply: ler_wpmul2r; first exact: unit_pos.
by rewrite ler_nat leq_mul2l leq_add2r leq_add2l.
Qed.

Lemma correction_near : near (pick_off V L b 1) (correction_of p q) (wanted p q).
Proof.
rewrite /correction_of /wanted; case: corrected_case => [[-> ->]|[/negbTE-> [-> hv]]] f f01.
  apply: le_trans (row_of_near p_floats p_some f01) _; rewrite ler_add2l; exact: pick_off_rises.
exact: (machine_row_near some_token tree_holds b_bits shallow (leqnn 1) (rest_computes p_floats q_floats) hv).
Qed.
End Refused.

(** ** The number *)

(** Draft, coin, correction, and what the two rows' sums differ by: of V tokens in a tree of so many levels. *)
Definition ratio_off_at (size levels pick_bits coin_bits : nat) (miss : rational) : rational :=
  pick_off_at size levels 0 pick_bits + (2%:R ^+ coin_bits)^-1 + pick_off_at size levels 1 pick_bits
  + 2%:R * miss / (1 + miss).
Definition ratio_off c miss : rational := ratio_off_at (size_of_vocab V) L b c miss.

Lemma mismatch_small p q (miss : rational) : `|total p - 1| <= miss -> `|total q - 1| <= miss -> miss < 1 ->
  mismatch p q <= 2%:R * miss / (1 + miss).
Proof.
rewrite !ler_distl => /andP[p0 p1] /andP[q0 q1] small.
have m0 : 0 <= miss by have := le_trans p0 p1; rewrite ler_subl_addr -addrA ler_addl -mulr2n pmulrn_lge0.
have one0 : 0 < 1 + miss by rewrite ltr_spaddl.
rewrite /mismatch; set a := total p in p0 p1 *; set d := total q in q0 q1 *.
wlog le : a d p0 p1 q0 q1 / a <= d => [hwlog|].
  by case/orP: (le_total a d) => le; [|rewrite distrC maxC]; apply: hwlog.
have a0 : 0 < a by apply: lt_le_trans p0; rewrite subr_gt0.
rewrite max_r // ler0_norm ?subr_le0 // opprB ler_pdivr_mulr; last exact: lt_le_trans le.
rewrite mulrAC ler_pdivl_mulr //.
rewrite -subr_ge0; have -> : 2%:R * miss * d - (d - a) * (1 + miss) = (a - (1 - miss)) * (1 + miss) + (1 - miss) * (1 + miss - d).
  by ring.
by rewrite addr_ge0 // mulr_ge0 ?subr_ge0 // ltW.
Qed.

(** ** Rounds *)

Section Machine.
Variables (S : Type) (p : seq V -> V -> rational) (stop : seq V -> bool) (miss : rational).
Hypothesis p_floats : forall h, float32_row (p h).
Hypothesis p_miss : forall h, `|total (p h) - 1| <= miss.
Hypothesis miss_small : miss < 1.

Definition normal h : V -> rational := share (p h).

Lemma admitted w : `|total w - 1| <= miss -> 0 < total w.
Proof. by rewrite ler_distl => /andP[w0 _]; apply: lt_le_trans w0; rewrite subr_gt0. Qed.

Lemma normal_dist h : dist (normal h).
Proof. by apply: share_dist => [x|]; [case: (p_floats h x) | apply: admitted]. Qed.

Lemma miss_pos : 0 <= miss.
Proof. exact: le_trans (normr_ge0 _) (p_miss [::]). Qed.

Lemma pick_off_pos j : 0 <= pick_off V L b j.
Proof.
apply: mulr_ge0; first exact: ler0n.
apply: addr_ge0; last exact: unit_pos.
by apply: mulr_ge0; [apply: ler0n | apply: unit_pos].
Qed.

Lemma mismatch_pos : 0 <= 2%:R * miss / (1 + miss).
Proof. by have m := miss_pos; rewrite divr_ge0 ?mulr_ge0 ?addr_ge0. Qed.

Lemma ratio_off_pos c : 0 <= ratio_off c miss.
Proof.
apply: addr_ge0 mismatch_pos; apply: addr_ge0 (pick_off_pos 1).
by apply: addr_ge0 (unit_pos c); apply: pick_off_pos.
Qed.

Lemma row_p_dist h : dist (row_of (p h)).
Proof. by apply: row_of_dist; [apply: p_floats | apply: admitted]. Qed.

Lemma row_p_near h : near (pick_off V L b 0) (row_of (p h)) (normal h).
Proof. by apply: row_of_near; [apply: p_floats | apply: admitted]. Qed.

(** *** The ratio rule *)

Section Ratio.
Variables (c : nat) (q : S -> seq V -> seq V -> V -> rational) (halt : S -> seq V -> seq V -> bool) (gamma : S -> seq V -> nat).
Variable update : S -> seq V -> seq V -> seq V -> law rational S.
Hypothesis c_bits : (c <= 24)%N.
Hypothesis q_floats : forall st h0 h, float32_row (q st h0 h).
Hypothesis q_miss : forall st h0 h, `|total (q st h0 h) - 1| <= miss.
Hypothesis updateP : forall st h xs o, lawful (update st h xs o).

(** The draft's tokens, each drawn from its row by the machine. *)
Definition machine_draw st h : law rational (seq V) := chain_draw (fun st h0 h => row_of (q st h0 h)) halt gamma st h.
Definition ratio_at (q0 : seq V -> V -> rational) h x : law rational (verdict V) :=
  machine_step (correction_of (p h) (q0 h)) (machine_coin c (p h) (q0 h)) x.
Definition machine_round := drafted_round machine_draw (fun st h => verify (fun h => row_of (p h)) (ratio_at (q st h)) h) update.

Lemma row_q_dist st h0 h : dist (row_of (q st h0 h)).
Proof. by apply: row_of_dist; [apply: q_floats | apply: admitted]. Qed.

Lemma lawful_ratio_at st h0 h x : lawful (ratio_at (q st h0) h x).
Proof.
apply: lawful_machine_step; last by move=> y; apply: machine_coin01.
by apply: correction_of_dist; [apply: p_floats | apply: q_floats | apply: admitted].
Qed.

Lemma machine_round_drifts st h : drifts normal (ratio_off c miss) h
  (xs <~ machine_draw st h;; verify (fun h => row_of (p h)) (ratio_at (q st h)) h xs).
Proof.
apply: chain_drifts; [exact: normal_dist | exact: row_p_dist | | | |].
- by move=> h' _; apply: row_q_dist.
- by move=> h' x; apply: lawful_ratio_at.
- move=> h' f _ f01.
  have pp := admitted (p_miss h'); have qq := admitted (q_miss st h h').
  have pf := p_floats h'; have qf := q_floats st h h'.
  have step := ratio_step_drifts (fun x => (pf x).1) (fun x => (qf x).1) pp qq (row_q_dist st h h')
    (machine_coin01 c (p h') (q st h h')) (row_of_near qf qq) (fun x => machine_coin_near c_bits x pf qf)
    (correction_near pf qf pp) (pick_off_pos 1) f01.
  apply: le_trans step _.
  by rewrite ler_add2l /ratio_off /ratio_off_at ler_add2l; apply: mismatch_small.
- move=> h' f f01; apply: le_trans (row_p_near h' f01) _; rewrite ler_add2l /ratio_off /ratio_off_at -!addrA ler_addl.
  by apply: addr_ge0 (unit_pos c) _; apply: addr_ge0 (pick_off_pos 1) mismatch_pos.
Qed.

Theorem leviathan_in_floats fuel n st h k : (n <= fuel)%N -> unit_test k ->
  `|loop stop machine_round fuel n st h k - plain normal stop n h k| <= n%:R * ratio_off c miss.
Proof.
apply: drafted_loop_near; [exact: normal_dist | exact: ratio_off_pos | | exact: updateP | | |].
- by move=> st' h'; apply: lawful_draft => h'' _; apply: row_q_dist.
- move=> st' h' xs; apply: lawful_verify => [h''|h'' x]; [exact: row_p_dist | exact: lawful_ratio_at].
- by move=> st' h' xs; apply: verify_emits => [h''|h'' x]; [exact: row_p_dist | apply: lawful_ratio_at].
- exact: machine_round_drifts.
Qed.
End Ratio.

(** *** Agreement, whatever was drafted *)

Section Agreed.
Variables (draw : S -> seq V -> law rational (tree V)) (update : S -> seq V -> tree V -> seq V -> law rational S).
Hypothesis drawP : forall st h, lawful (draw st h).
Hypothesis updateP : forall st h t o, lawful (update st h t o).

Lemma agreement_walk_drifts h t : drifts normal (pick_off V L b 0) h (agreement_walk (fun h => row_of (p h)) h t).
Proof.
apply: walk_drifts; [exact: normal_dist | | exact: agreement_node_child |].
  by move=> h' cs; apply: lawful_agreement_node => h''; apply: row_p_dist.
by move=> h' cs f f01; apply: row_p_near.
Qed.

(** The tree, a chain being one, is anything that a state and the history give, at random if it likes. *)
Theorem agreement_in_floats fuel n st h k : (n <= fuel)%N -> unit_test k ->
  `|loop stop (drafted_round draw (fun=> agreement_walk (fun h => row_of (p h))) update) fuel n st h k
    - plain normal stop n h k| <= n%:R * pick_off V L b 0.
Proof.
apply: drafted_loop_near => //; [exact: normal_dist | exact: pick_off_pos | | |].
- by move=> st' h' d; apply: lawful_walk => h'' cs; apply: lawful_agreement_node => h3; apply: row_p_dist.
- by move=> st' h' d; apply: walk_emits => h'' cs; apply: lawful_agreement_node => h3; apply: row_p_dist.
move=> st' h' m k' k'01; rewrite -[leRHS](law_const (drawP st' h')); apply: (law_le (drawP st' h')) => d.
exact: agreement_walk_drifts.
Qed.
End Agreed.

End Machine.

End EndToEnd.
