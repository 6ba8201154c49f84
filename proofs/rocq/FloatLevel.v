(** Block verification in floats: what one level computes.

    What it says.  The prefix has weight n / d.  The machine multiplies p by n and q by d, adds up what is left, adds d
    and subtracts n.  Rows p and q hold float32 numbers and miss 1 by at most [miss] <= 1/8, L <= 64.
    - [level_facts]  what was multiplied is near what it stands for;
    - [level_stops]  the computed mass is near the excess, and what it is judged against near what comes back;
    - [level_emits]  what is emitted after a shorter prefix weighs the excess, but for two picks and 3 2^-53, whatever
      the pick is where less than 2^-300 is computed to be left.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/rules/block.py. *)

From Coq Require Import ZArith QArith Qcanon Qreals Reals Lra Lia.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept FloatSums FloatThreshold FloatDescent FloatRow FloatCoin.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Drift Drifting Rational FloatMachine FloatsEndToEnd DriftingTrees FloatsGiven
  FloatNumbers Judged FloatRescaled JudgedBlock BlockSums FloatWeight.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Level.
Variables (V : vocab) (L b c : nat).
Implicit Types (w f : V -> rational) (x : V).
Hypothesis some_token : tokens V <> [::].
Hypothesis tree_holds : (size_of_vocab V <= Nat.pow 2 L)%coq_nat.
Hypothesis b_bits : (b <= 53)%N.
Hypothesis c_bits : (c <= 24)%N.
Hypothesis levels : (L <= 64)%N.
Variables (p q : V -> rational) (n d miss : rational).
Hypothesis p_floats : float32_row p.
Hypothesis q_floats : float32_row q.
Hypothesis p_miss : `|total p - 1| <= miss.
Hypothesis q_miss : `|total q - 1| <= miss.
Hypothesis miss_eighth : miss <= 8%:R^-1.
Hypothesis held : holds_weight (n, d).

Definition level_wanted : V -> rational := products p n.
Definition level_supplied : V -> rational := products q d.
Definition level_rest : V -> rational := rest64 level_wanted level_supplied.
Definition level_mass : rational := sum64 L level_rest.
(** mass + d - n *)
Definition level_back : rational := fl (fl (level_mass + d) - n).

Notation wanted_sum := (total level_wanted).
Notation supplied_sum := (total level_supplied).
Notation excess_sum := (total (excess level_wanted level_supplied)).
Notation share64 := (2%:R * L%:R * unit64).

Let p0 x : 0 <= p x. Proof. by case: (p_floats x). Qed.
Let q0 x : 0 <= q x. Proof. by case: (q_floats x). Qed.
Let n0 : 0 <= n. Proof. by case: held => _ /andP[]. Qed.
Let d0 : 0 <= d. Proof. exact: ltW (weight_bottom held). Qed.

Lemma wanted_row : float_row level_wanted. Proof. exact: products_floats. Qed.
Lemma supplied_row : float_row level_supplied. Proof. exact: products_floats. Qed.
Lemma rest_row : float_row level_rest. Proof. exact: rest_floats. Qed.

(** *** In real numbers *)

Lemma product_sum w a : (forall x, 0 <= w x) -> 0 <= a ->
  moved (fun x => w x * a) (products w a) <= unit64 * (total w * a) + unit64 * least.
Proof. by move=> w0 a0; rewrite -total_scaler; apply: (fl_row_off tree_holds levels) => x; apply: mulr_ge0. Qed.

Lemma product_sum_near w a : (forall x, 0 <= w x) -> 0 <= a ->
  Rle (Rabs (Rminus (real_of (total (products w a))) (Rmult (real_of (total w)) (real_of a))))
    (Rplus (Rmult (real_of unit64) (Rmult (real_of (total w)) (real_of a))) (Rmult (real_of unit64) (real_of least))).
Proof.
move=> w0 a0; have := le_trans (total_moved _ _) (product_sum w0 a0); rewrite total_scaler => /val_le.
by rewrite val_norm valB valD (valM unit64 least) (valM unit64 _) (valM (total w)).
Qed.

Lemma real_miss w : `|total w - 1| <= miss -> Rle (Rabs (Rminus (real_of (total w)) (IZR 1))) (real_of miss).
Proof. by move/val_le; rewrite val_norm valB val1. Qed.

Lemma rounded_near (a : rational) :
  Rle (Rabs (Rminus (real_of (fl a)) (real_of a))) (Rplus (Rmult (real_of unit64) (Rabs (real_of a))) (real_of dust)).
Proof. by have /val_le := fl_near a; rewrite val_norm valB valD (valM unit64) val_norm. Qed.

Lemma excess_below : 0 <= excess_sum <= wanted_sum.
Proof.
rewrite total_ge0 /= => [|x]; last exact: excess_ge0.
apply: total_le => x; rewrite /excess le_maxl; case: (wanted_row x) => -> _; rewrite andbT.
by case: (supplied_row x) => s0 _; rewrite ler_subl_addr ler_addl.
Qed.

Lemma miss0 : 0 <= miss. Proof. exact: le_trans (normr_ge0 _) p_miss. Qed.

Lemma real_weight : Rle (IZR 0) (real_of n) /\ Rle (real_of n) (real_of d)
  /\ Rle (Rinv (IZR 2)) (real_of d) /\ Rle (real_of d) (IZR 1).
Proof.
have [_ /andP[/val_le n_pos /val_le nd] /andP[/val_le half /val_le one]] := held.
by move: n_pos nd half one; rewrite /= val0 val1 val_half.
Qed.

Lemma real_shares : (Rle (IZR 0) (real_of miss) /\ Rle (real_of miss) (Rinv (IZR 8)))
  /\ (Rle (IZR 0) (real_of unit64) /\ Rle (real_of unit64) (Rinv (IZR 64)))
  /\ (Rle (IZR 0) (real_of least) /\ Rle (real_of least) (IZR 1))
  /\ (Rle (IZR 0) (real_of share64) /\ Rle (real_of share64) (Rinv (IZR 8)))
  /\ (Rle (IZR 0) (real_of dust) /\ Rle (real_of dust) (real_of unit64)).
Proof.
have nonneg a : 0 <= a -> Rle (IZR 0) (real_of a) by move=> a0; rewrite -val0; apply/val_le.
have miss8 : Rle (real_of miss) (Rinv (IZR 8)) by move/val_le: miss_eighth; rewrite val_inv // (INR_IZR_INZ 8).
have u64 : Rle (real_of unit64) (Rinv (IZR 64)) by move/val_le: unit_share; rewrite val_inv // (INR_IZR_INZ 64).
have x0 : 0 <= share64 by apply: mulr_ge0 unit64_pos; apply: mulr_ge0; apply: ler0n.
have x8 : Rle (real_of share64) (Rinv (IZR 8)) by move/val_le: (level_share levels); rewrite val_inv // (INR_IZR_INZ 8).
have l1 : Rle (real_of least) (IZR 1) by rewrite -val1; apply/val_le; apply: sealed_small.
have e1 : Rle (real_of dust) (real_of unit64) by apply/val_le/dust_unit.
split; first by split; [apply: nonneg miss0 | exact: miss8].
split; first by split; [apply: nonneg unit64_pos | exact: u64].
split; first by split; [apply: nonneg least_pos | exact: l1].
by split; split; [apply: nonneg x0 | exact: x8 | apply: nonneg dust_pos | exact: e1].
Qed.

Lemma real_excess : Rle (IZR 0) (real_of excess_sum) /\ Rle (real_of excess_sum) (real_of wanted_sum).
Proof. by have [/val_le s0 /val_le s1] := andP excess_below; rewrite val0 in s0. Qed.

(** *** The facts, in rational numbers *)

Definition level_phi : rational := 2%:R * (miss * d) + 19%:R * unit64 + 4%:R * share64.
Definition level_sigma : rational := 2%:R * unit64 + 4%:R * share64.
Definition level_mu : rational := 11%:R * unit64.

Lemma level_facts : [/\ `|wanted_sum - total p * n| <= 3%:R * unit64,
  `|total p * d - supplied_sum| <= 2%:R * (miss * d) + 3%:R * unit64,
  4%:R / 5%:R * d <= supplied_sum & excess_sum <= 2%:R].
Proof.
have [m8 [u64 [l1 _]]] := real_shares; have [n_pos [nd [half one]]] := real_weight.
have [p1 [q1 [s1 e1]]] := rows_near _ _ _ _ _ _ _ _ _ _ m8 u64 l1 (real_miss p_miss) (real_miss q_miss)
  (conj n_pos nd) (conj half one) (product_sum_near p0 n0) (product_sum_near q0 d0) real_excess.
split; apply/val_le.
- by rewrite val_norm valB (valM (total p)) (valM 3%:R) valn (INR_IZR_INZ 3).
- by rewrite val_norm valB (valM (total p)) valD (valM 2%:R) (valM miss) (valM 3%:R) !valn (INR_IZR_INZ 2) (INR_IZR_INZ 3).
- have z : 5%:R != 0 :> rational by rewrite pnatr_eq0.
  by rewrite (valM (_ / _)) (val_div _ z) !valn (INR_IZR_INZ 4) (INR_IZR_INZ 5).
by rewrite valn (INR_IZR_INZ 2).
Qed.

Lemma level_stops : [/\ `|excess_sum - level_mass| <= level_sigma, level_mass <= level_back + level_mu
  & `|back level_wanted level_supplied - level_back| <= level_phi].
Proof.
have [m8 [u64 [l1 [x8 e1]]]] := real_shares; have [n_pos [nd [half one]]] := real_weight.
have tn := le_trans (total_moved _ _) (rest_moved wanted_row supplied_row).
move/val_le: tn; rewrite val_norm valB (valM unit64) => tn.
have sn := sum64_near some_token tree_holds levels rest_row.
move/val_le: sn; rewrite val_norm valB (valM share64) => sn.
have fx := rounded_near (level_mass + d); rewrite valD in fx.
have fb := rounded_near (fl (level_mass + d) - n); rewrite valB in fb.
have [s [m f]] := back_near _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ m8 u64 l1 (real_miss p_miss) (real_miss q_miss)
  (conj n_pos nd) (conj half one) (product_sum_near p0 n0) (product_sum_near q0 d0) real_excess x8 e1 tn sn fx fb.
have -> : back level_wanted level_supplied = excess_sum + supplied_sum - wanted_sum by rewrite /back total_excess; ring.
split; apply/val_le.
- by rewrite val_norm valB /level_sigma valD (valM 2%:R) (valM 4%:R) !valn (INR_IZR_INZ 2) (INR_IZR_INZ 4).
- have eleven : INR 11 = IZR 11 by rewrite INR_IZR_INZ.
  have m' : Rle (Rminus (real_of level_mass) (Rmult (IZR 11) (real_of unit64))) (real_of level_back) := m.
  by rewrite valD /level_mu (valM 11%:R) valn eleven; lra.
rewrite val_norm (valB _ level_back) (valB (excess_sum + supplied_sum)) (valD excess_sum) /level_phi.
rewrite (valD _ (4%:R * share64)) (valD (2%:R * _)) (valM 2%:R) (valM miss) (valM 19%:R) (valM 4%:R) !valn.
by rewrite (INR_IZR_INZ 2) (INR_IZR_INZ 19) (INR_IZR_INZ 4).
Qed.

(** *** What is emitted from after a shorter prefix: anything where less than 2^-300 is computed to be left *)

Variable strange : V -> rational.
Hypothesis strangeP : dist strange.
Definition level_left : V -> rational := if piece <= total level_rest then row_of L b level_rest else strange.

Lemma level_left_dist : dist level_left.
Proof.
rewrite /level_left; case: ifP => // some.
exact: (float_row_dist some_token tree_holds b_bits levels rest_row some).
Qed.

Definition emit_off : rational := 3%:R * unit64 + 2%:R * pick_off V L b 0.

Lemma excess_light : ~~ (piece <= total level_rest) -> excess_sum <= 3%:R * unit64.
Proof.
rewrite -ltNge => light; have [_ _ _ E2] := level_facts.
have lost := le_trans (total_moved _ _) (rest_moved wanted_row supplied_row).
have uE : unit64 * excess_sum <= 2%:R * unit64 by rewrite mulrC; apply: ler_wpmul2r unit64_pos _ _ E2.
have low : excess_sum <= 2%:R * unit64 + total level_rest.
  by have := le_trans lost uE; rewrite ler_distl => /andP[low _]; rewrite -ler_subl_addl.
have -> : 3%:R * unit64 = 2%:R * unit64 + unit64 by ring.
apply: le_trans low _; rewrite ler_add2l; apply: le_trans (ltW light) _.
by apply/val_le; rewrite val_piece val_unit64; apply: bpow_le.
Qed.

Lemma level_emits f : unit_test f ->
  excess_sum * pick level_left f <= total (fun y => excess level_wanted level_supplied y * f y) + emit_off.
Proof.
move=> f01; have [_ _ _ E2] := level_facts; have /andP[E0 _] := excess_below; have u0 := unit64_pos.
have Ef0 : 0 <= total (fun y => excess level_wanted level_supplied y * f y).
  by apply: total_ge0 => y; apply: mulr_ge0; [apply: excess_ge0 | case/andP: (f01 y)].
have pick0 : 0 <= 2%:R * pick_off V L b 0 by apply: mulr_ge0; [apply: ler0n | apply: pick_off_pos].
rewrite /level_left /emit_off; case: ifP => [some|/negbT light]; last first.
  have /andP[_ one] := pick01 strangeP f01; apply: le_trans (_ : excess_sum * 1 <= _); first exact: ler_wpmul2l.
  rewrite mulr1 -[leLHS]add0r; apply: ler_add => //; rewrite -[leLHS]addr0; apply: ler_add => //.
  exact: excess_light.
have rest_some : 0 < total level_rest by apply: lt_le_trans some; apply: piece_pos.
have r0 y : 0 <= level_rest y by case: (rest_row y).
have near := float_row_pick some_token tree_holds b_bits levels rest_row some f01.
apply: le_trans (ler_wpmul2l E0 near) _; rewrite mulrDr.
have shares := moved_share (excess level_wanted level_supplied) r0 rest_some f01.
have picks : excess_sum * pick_off V L b 0 <= 2%:R * pick_off V L b 0 by apply: ler_wpmul2r E2; apply: pick_off_pos.
rewrite addrA; apply: ler_add picks; apply: le_trans shares _; rewrite ler_add2l.
apply: le_trans (rest_moved wanted_row supplied_row) _; rewrite mulrC; apply: ler_wpmul2r => //.
by apply: le_trans E2 _; rewrite ler_nat.
Qed.

(** *** The coin of a shorter prefix *)

Definition level_coin : rational := coin_of c (real_of level_mass) (real_of level_back).

Lemma level_mass_pos : 0 <= level_mass.
Proof.
have near := sum64_near some_token tree_holds levels rest_row.
have r0 : 0 <= total level_rest by apply: total_ge0 => y; case: (rest_row y).
move: near; rewrite ler_distl => /andP[low _]; apply: le_trans low; rewrite subr_ge0 -[leRHS]mul1r.
by apply: ler_wpmul2r => //; apply: le_trans (level_share levels) _; vm_compute.
Qed.

Lemma level_coin_case : level_back < least
  \/ (0 < level_back /\ `|level_coin - Num.min 1 (level_mass / level_back)| <= coin_off_at 0 c).
Proof.
case: (ltP level_back least) => [small|big]; [by left | right].
have least0 : 0 < least by rewrite /least sealedE invr_gt0 exprn_gt0 // ltr0n.
have pos : 0 < level_back by apply: lt_le_trans big.
have same y : rounded 0 y y by rewrite /rounded /=; lra.
have heavy : Rle (bpow radix2 (-900)) (real_of level_back) by rewrite -val_least; apply/val_le.
split=> //; exact: (coin_of_near c_bits (i := 0) (j := 0) isT (same _) (same _) heavy level_mass_pos pos).
Qed.
End Level.
