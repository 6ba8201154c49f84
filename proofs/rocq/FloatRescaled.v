(** Floating point: a row that is not normalised, and the mass that travels with it.

    What it says.  What is left of the target is a row [w] of float64 numbers that stands for w / mass.
    [stands k]: mass is the sum of w but for k of it.  What a refusal subtracts is subtracted in float64, and
    the rest is multiplied by the power of two that brings its mass into [1/2, 1).
    - [float_row_pick]   a pick from such a row is off by [pick_off], as from a row of float32 numbers;
    - [next_stands]      what is left after a refusal stands, but for (4 L + 12) 2^-53, whatever was lost before;
    - [next_excess]      the excess that it is the float text of weighs what it is worth, but for 4 2^-53.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/row.py. *)

From Coq Require Import ZArith QArith Qcanon Qreals Reals Lra Lia.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept FloatSums FloatThreshold FloatDescent FloatRow.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Drift Drifting Rational FloatMachine FloatsEndToEnd FloatNumbers Judged.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.



(** ** Sizes *)

(** 2^-300: no row is as light as that; the product of two such numbers is not lost either. *)
Definition piece : rational := sval (sealed 300).
Lemma piece_pos : 0 < piece. Proof. by rewrite /piece sealedE invr_gt0 exprn_gt0 ?ltr0n. Qed.

Lemma val_piece : real_of piece = bpow radix2 (-300).
Proof. by rewrite /piece sealedE (val_power 300). Qed.
Lemma val_least : real_of least = bpow radix2 (-900).
Proof. by rewrite /least sealedE (val_power 900). Qed.

Lemma val_inv n : (0 < n)%N -> real_of n%:R^-1 = Rinv (INR n).
Proof.
move=> n0; rewrite valV ?valn //; apply/eqP => /(congr1 real_of); rewrite valn val0 => e.
by have := lt_0_INR n (ssrnat.ltP n0); rewrite e; lra.
Qed.

Lemma two_pieces a d : piece <= a -> piece <= d -> least <= a * d.
Proof.
move=> pa pd; apply: le_trans (_ : piece * piece <= _).
  apply/val_le; rewrite valM val_piece val_least -bpow_plus; exact: bpow_le.
by apply: ler_pmul => //; apply: ltW piece_pos.
Qed.

Lemma fl_least a : least <= a -> least <= fl a.
Proof.
move=> /fl_le; rewrite (_ : fl least = least) //; apply: fl_exact; rewrite /is_float val_least.
by apply: generic_format_bpow; rewrite /FLT_exp; lia.
Qed.

Lemma val_u : real_of unit64 = Rinv (IZR 9007199254740992). Proof. by rewrite val_unit64 e64E. Qed.

(** ** Rows that are multiplied, subtracted and rescaled *)

(** 2^-e, where t = m 2^e and 1/2 <= m < 1. *)
Definition scale_of (t : rational) : rational := dyadic 1 (- mag radix2 (real_of t)).

Lemma scale_pos t : 0 < scale_of t.
Proof. by apply/val_lt; rewrite val0 val_dyadic Rmult_1_l; apply: bpow_gt_0. Qed.

Lemma scale_half t : 0 < t -> 2%:R^-1 <= t * scale_of t.
Proof.
move=> /val_lt; rewrite val0 => t0; apply/val_le; rewrite val_half valM val_dyadic Rmult_1_l.
set e := mag radix2 (real_of t) : Z; have low : Rle (bpow radix2 (e - 1)) (real_of t).
  by have := bpow_mag_le radix2 (real_of t) ltac:(lra); rewrite Rabs_pos_eq //; lra.
have half : Rmult (bpow radix2 (e - 1)) (bpow radix2 (- e)) = Rinv (IZR 2).
  by rewrite -bpow_plus; have -> : Z.add (Z.sub e 1) (Z.opp e) = Z.opp 1 by lia.
by rewrite -half; apply: Rmult_le_compat_r => //; apply: bpow_ge_0.
Qed.

Section Moved.
Notation u := unit64.

Lemma carried (t m w n k : rational) : 0 <= n -> 0 <= m -> k <= 1 -> `|t - m| <= k * m -> `|w - n * t| <= 2%:R * u * (n * t) ->
  `|w - n * m| <= (k + 4%:R * u) * (n * m).
Proof.
move=> n0 m0 k1 tm wt; have u0 := unit64_pos.
have t2 : t <= 2%:R * m.
  have := le_trans (ler_norm _) tm; rewrite ler_subl_addr => /le_trans; apply.
  by rewrite mulr_natl mulr2n ler_add2r -[leRHS]mul1r; apply: ler_wpmul2r.
have -> : w - n * m = (w - n * t) + n * (t - m) by ring.
apply: le_trans (ler_norm_add _ _) _; rewrite [_ * (n * m)]mulrDl addrC; apply: ler_add.
  by rewrite normrM (ger0_norm n0) mulrCA; apply: ler_wpmul2l.
apply: le_trans wt _; have -> : 4%:R * u * (n * m) = 2%:R * u * n * (2%:R * m) by ring.
by rewrite mulrA; apply: ler_wpmul2l => //; rewrite !mulr_ge0 ?ler0n.
Qed.

End Moved.

(** What was added up, multiplied and rounded once more: sums t, s, w, m, with shares x and e of error. *)
Section Reals.
Open Scope R_scope.

Lemma sum_quarter (x s t : R) : 0 <= x <= / 8 -> / 2 <= s -> Rabs (s - t) <= x * t -> / 4 <= t.
Proof. by move=> [x0 x8] s2 /Rabs_le_inv st; nra. Qed.

Lemma next_sums (x e t s w m d : R) : 0 <= x <= / 8 -> 0 <= e <= / 64 -> / 2 <= s -> d <= e / 2 ->
  Rabs (s - t) <= x * t -> Rabs (w - t) <= 2 * e * t -> Rabs (m - s) <= e * s + d ->
  / 4 <= w /\ / 4 <= m /\ Rabs (w - m) <= (2 * x + 12 * e) * m.
Proof.
move=> [x0 x8] [e0 e64] s2 dust st /Rabs_le_inv wt /Rabs_le_inv ms.
have t4 := sum_quarter (conj x0 x8) s2 st; move/Rabs_le_inv: st => st.
have xt : 0 <= x * t <= t / 8 by split; nra.
have et : 0 <= e * t <= t / 64 by split; nra.
have es : e * s <= 9 / 8 * (e * t) /\ d <= e * s by split; nra.
have m0 : 4 / 5 * t <= m by lra.
have room : (2 * x + 12 * e) * (4 / 5 * t) <= (2 * x + 12 * e) * m by apply: Rmult_le_compat_l; lra.
by do 2![split; first lra]; apply: Rabs_le; split; lra.
Qed.
End Reals.

Section Rescaled.
Notation u := unit64.
Variables (V : vocab) (L b : nat).
Implicit Types (w f : V -> rational) (x : V).
Hypothesis some_token : tokens V <> [::].
Hypothesis tree_holds : (size_of_vocab V <= Nat.pow 2 L)%coq_nat.
Hypothesis b_bits : (b <= 53)%N.
Hypothesis levels : (L <= 64)%N.

Let near_sums := sum64_near some_token tree_holds levels.

Definition products w (a : rational) : V -> rational := fun x => fl (w x * a).
Definition rest64 w s : V -> rational := fun x => Num.max (fl (w x - s x)) 0.
(** [correction] of row.py. *)
Definition corrected64 w s : V -> rational := if 0 < sum64 L (rest64 w s) then rest64 w s else w.
(** [rescaled] of row.py: the row, and its mass. *)
Definition scale64 w s : rational := scale_of (sum64 L (corrected64 w s)).
Definition rescaled_row w s : V -> rational := products (corrected64 w s) (scale64 w s).
Definition rescaled_mass w s : rational := fl (sum64 L (corrected64 w s) * scale64 w s).

(** L 2^-53 is small. *)
Lemma level_share : 2%:R * L%:R * u <= 8%:R^-1.
Proof.
apply/val_le; rewrite (valM (2%:R * L%:R)) (valM 2%:R) !valn val_u val_inv // (INR_IZR_INZ 2) (INR_IZR_INZ 8) /=.
by have := le_INR _ _ (ssrnat.leP levels); rewrite (INR_IZR_INZ 64) /= => l; lra.
Qed.
Lemma unit_share : u <= 64%:R^-1.
Proof. by apply/val_le; rewrite val_inv // val_u (INR_IZR_INZ 64) /=; lra. Qed.

Lemma products_floats w a : (forall x, 0 <= w x) -> 0 <= a -> float_row (products w a).
Proof. by move=> w0 a0 x; split; [apply: fl_ge0; apply: mulr_ge0 | apply: fl_float]. Qed.

Lemma products_moved w a : (forall x, 0 <= w x) -> 0 <= a -> least <= total w * a ->
  moved (fun x => w x * a) (products w a) <= 2%:R * u * (total w * a).
Proof.
move=> w0 a0 some; rewrite -[in leRHS]total_scaler; apply: (fl_row_near tree_holds levels) => [x|].
  exact: mulr_ge0.
by rewrite total_scaler.
Qed.

Lemma total_moved w w' : `|total w' - total w| <= moved w w'.
Proof. by rewrite -total_sub; apply: total_norm. Qed.

Lemma rest_floats w s : float_row (rest64 w s).
Proof.
move=> x; rewrite /rest64; case: (leP (fl (w x - s x)) 0) => [_|/ltW le].
  by split; [apply: lexx | apply: float0].
by split; last exact: fl_float.
Qed.

Lemma rest_near w s x : is_float (w x) -> is_float (s x) -> `|rest64 w s x - excess w s x| <= u * excess w s x.
Proof.
move=> wf sf; rewrite /rest64 /excess; case: (lerP (w x - s x) 0) => [le|/ltW le].
  have le' : fl (w x - s x) <= 0 by rewrite -[leRHS]fl0; apply: fl_le.
  by rewrite max_r // subrr normr0 mulr0.
rewrite (max_l (fl_ge0 le)); apply/val_le; rewrite val_norm valM !valB val_fl val_unit64 valB.
move: le => /val_le; rewrite val0 valB => le.
have [] := rounded_add _ _ wf (generic_format_opp _ _ _ sf) le.
rewrite -/(Rminus (real_of (w x)) (real_of (s x))); set d := Rminus (real_of (w x)) _ => lo hi.
by apply: Rabs_le; split; lra.
Qed.

Lemma rest_moved w s : float_row w -> float_row s -> moved (excess w s) (rest64 w s) <= u * total (excess w s).
Proof.
move=> wf sf; rewrite -total_scale; apply: total_le => x; apply: rest_near; first by case: (wf x).
by case: (sf x).
Qed.

(** Nothing is computed to be left only where nothing is. *)
Lemma sum64_pos w : float_row w -> (0 < sum64 L w) = (0 < total w).
Proof.
move=> wf; have t0 : 0 <= total w by apply: total_ge0 => x; case: (wf x).
have near := near_sums wf; apply/idP/idP => [s0|w1].
  rewrite lt_neqAle t0 andbT eq_sym; apply/eqP => z; move: near.
  by rewrite z mulr0 subr0 normr_le0 => /eqP e; rewrite e ltxx in s0.
move: near; rewrite ler_distl => /andP[low _]; apply: lt_le_trans low; rewrite subr_gt0 -[ltRHS]mul1r.
by rewrite ltr_pmul2r //; apply: le_lt_trans level_share _; rewrite invf_lt1 ?ltr1n ?ltr0n.
Qed.

Lemma corrected_floats w s : float_row w -> float_row (corrected64 w s).
Proof. by move=> wf; rewrite /corrected64; case: ifP => _ //; apply: rest_floats. Qed.

(** ** What stands for a row *)

Record stands (k : rational) w (mass : rational) : Prop := Stands {
  stands_floats : float_row w;
  stands_some : piece <= total w;
  stands_mass : piece <= mass;
  stands_near : `|total w - mass| <= k * mass
}.

Lemma stands_pos k w mass : stands k w mass -> 0 < total w.
Proof. by case=> _ some _ _; apply: lt_le_trans some; apply: piece_pos. Qed.

(** A pick from it. *)
Lemma stands_heavy w : float_row w -> piece <= total w -> heavy L (values w).
Proof.
move=> wf some; rewrite /heavy -(val_sum64 some_token tree_holds wf) -val_least; apply/val_le.
have := near_sums wf; rewrite ler_distl => /andP[low _]; apply: le_trans low.
have half : 2%:R * L%:R * u * total w <= 8%:R^-1 * total w.
  by apply: ler_wpmul2r level_share; apply: le_trans some; apply: ltW piece_pos.
apply: le_trans (_ : (1 - 8%:R^-1) * piece <= _).
  by apply/val_le; rewrite valM valB val1 valV // valn val_piece val_least INR_IZR_INZ /=; lra.
apply: le_trans (_ : (1 - 8%:R^-1) * total w <= _); first by apply: ler_wpmul2l.
by rewrite mulrBl mul1r ler_add2l ler_opp2.
Qed.

Lemma float_row_dist w : float_row w -> piece <= total w -> dist (row_of L b w).
Proof.
move=> wf some; apply: (machine_row_dist some_token tree_holds b_bits (j := 0) (w := w)) (stands_heavy wf some).
exact: floats_exact.
Qed.

Lemma float_row_pick w : float_row w -> piece <= total w -> near (pick_off V L b 0) (row_of L b w) (share w).
Proof.
move=> wf some; have exact_w := floats_exact wf; have hv := stands_heavy wf some.
exact: (machine_row_near some_token tree_holds b_bits (leq_trans levels (erefl : 64 <= 1000)%N) (leq0n 1) exact_w hv).
Qed.

(** ** What is left after a refusal *)

Section Next.
Variables w s : V -> rational.
Hypothesis wf : float_row w.
Hypothesis sf : float_row s.
Hypothesis w1 : 0 < total w.

Lemma corrected_pos : 0 < total (corrected64 w s).
Proof. by rewrite /corrected64; case: ifP => //; rewrite sum64_pos //; apply: rest_floats. Qed.

Lemma next_all : [/\ least <= total (corrected64 w s) * scale64 w s, piece <= total (rescaled_row w s),
  piece <= rescaled_mass w s & `|total (rescaled_row w s) - rescaled_mass w s| <= (4 * L + 12)%N%:R * u * rescaled_mass w s].
Proof.
have vf := corrected_floats s wf; have v1 := corrected_pos; rewrite /rescaled_row /rescaled_mass /scale64.
set v := corrected64 w s in vf v1 *; set a := scale_of _; have a0 : 0 < a by apply: scale_pos.
have half : 2%:R^-1 <= sum64 L v * a by apply: scale_half; rewrite sum64_pos.
have st : `|sum64 L v * a - total v * a| <= 2%:R * L%:R * u * (total v * a).
  rewrite -mulrBl normrM (ger0_norm (ltW a0)) [leRHS]mulrA; apply: ler_wpmul2r; first exact: ltW.
  exact: near_sums.
have ms := fl_near (sum64 L v * a); set S := sum64 L v * a in half st ms *; set x := 2%:R * L%:R * u in st.
have S0 : 0 <= S by apply: le_trans half.
have x8 : Rle (IZR 0) (real_of x) /\ Rle (real_of x) (Rinv (IZR 8)).
  have := level_share; rewrite -/x => /val_le; rewrite valV // valn INR_IZR_INZ => le; split=> //.
  by rewrite -val0; apply/val_le; rewrite !mulr_ge0 ?ler0n ?unit64_pos.
move/val_le: half; rewrite val_half => half; move/val_le: (st); rewrite val_norm valB (valM x) => st'.
have t4 := sum_quarter x8 half st'.
have heavy : least <= total v * a.
  by apply/val_le; rewrite val_least; apply: Rle_trans t4; rewrite /=; lra.
have wt : `|total (products v a) - total v * a| <= 2%:R * u * (total v * a).
  rewrite -total_scaler; apply: le_trans (total_moved _ _) _; rewrite total_scaler.
  by apply: products_moved => // [y|]; [case: (vf y) | apply: ltW].
move/val_le: wt; rewrite val_norm valB !(valM (2%:R * u)) (valM 2%:R) valn INR_IZR_INZ => wt.
move/val_le: ms; rewrite (ger0_norm S0) val_norm valB valD (valM u) val_dust => ms.
have u64 : Rle (IZR 0) (real_of u) /\ Rle (real_of u) (Rinv (IZR 64)) by rewrite val_u; lra.
have tiny : Rle (bpow radix2 (-1074)) (Rdiv (real_of u) (IZR 2)).
  apply: Rle_trans (_ : Rle _ (bpow radix2 (-54))) _; first exact: bpow_le.
  by rewrite val_u /=; lra.
have [w4 [m4 off]] := next_sums x8 u64 half tiny st' wt ms.
have quarter : Rle (real_of piece) (Rinv (IZR 4)).
  by rewrite val_piece; apply: Rle_trans (_ : Rle _ (bpow radix2 (-2))) _; [exact: bpow_le | rewrite /=; lra].
split; [exact: heavy | by apply/val_le; lra | by apply/val_le; lra |].
have -> : (4 * L + 12)%N%:R * u = 2%:R * x + 12%:R * u by rewrite /x natrD natrM; ring.
apply/val_le; rewrite val_norm valB (valM (_ + _)) valD (valM 2%:R) (valM 12%:R) !valn (INR_IZR_INZ 2) (INR_IZR_INZ 12).
exact: off.
Qed.

Lemma next_stands : stands ((4 * L + 12)%N%:R * u) (rescaled_row w s) (rescaled_mass w s).
Proof.
have [_ some mass near] := next_all; have vf := corrected_floats s wf; split=> //.
by apply: products_floats => [x|]; [case: (vf x) | apply/ltW/scale_pos].
Qed.

Lemma moved_trans (v v' v'' : V -> rational) : moved v v'' <= moved v v' + moved v' v''.
Proof. by rewrite -total_add; apply: total_le => x; rewrite [leRHS]addrC; apply: ler_dist_add. Qed.

(** What is judged next, times the scale, is the excess but for three roundings and the dust. *)
Lemma next_moved : 0 < sum64 L (rest64 w s) ->
  moved (fun x => excess w s x * scale64 w s) (rescaled_row w s) <= 4%:R * u * (total (excess w s) * scale64 w s).
Proof.
move=> some; have [heavy _ _ _] := next_all; have rf := rest_floats w s; have near := rest_moved wf sf; have u0 := unit64_pos.
rewrite /rescaled_row; have e : corrected64 w s = rest64 w s by rewrite /corrected64 some.
have a0 : 0 < scale64 w s by apply: scale_pos.
rewrite e in heavy *; set a := scale64 w s in a0 heavy *; set E := excess w s in near *.
have step1 : moved (fun x => E x * a) (fun x => rest64 w s x * a) <= u * total E * a.
  apply: le_trans (_ : moved E (rest64 w s) * a <= _); last by apply: ler_wpmul2r => //; apply: ltW.
  by rewrite -total_scaler; apply: total_le => x; rewrite -mulrBl normrM (ger0_norm (ltW a0)).
have rest_le : total (rest64 w s) <= (1 + u) * total E.
  by rewrite mulrDl mul1r -ler_subl_addl; apply: le_trans (ler_norm _) (le_trans (total_moved _ _) near).
have step2 : moved (fun x => rest64 w s x * a) (products (rest64 w s) a) <= 2%:R * u * ((1 + u) * total E * a).
  apply: le_trans (products_moved _ (ltW a0) heavy) _ => [x|]; first by case: (rf x).
  by apply: ler_wpmul2l; [rewrite mulr_ge0 ?ler0n | apply: ler_wpmul2r rest_le; apply: ltW].
apply: le_trans (moved_trans _ (fun x => rest64 w s x * a) _) _; apply: le_trans (ler_add step1 step2) _.
have four : 4%:R * u * (total E * a) = u * total E * a + 2%:R * u * ((1 + 2%:R^-1) * total E * a).
  have -> : 2%:R * u * ((1 + 2%:R^-1) * total E * a) = (2%:R * 2%:R^-1 + 2%:R) * (u * (total E * a)) by ring.
  by rewrite divff //; ring.
rewrite four ler_add2l; apply: ler_wpmul2l; first by rewrite mulr_ge0 ?ler0n.
apply: ler_wpmul2r; first exact: ltW.
apply: ler_wpmul2r; first by apply: total_ge0 => x; apply: excess_ge0.
by rewrite ler_add2l; apply: le_trans unit_share _; vm_compute.
Qed.

Lemma next_excess f : unit_test f ->
  total (excess w s) * pick (share (rescaled_row w s)) f <= total (fun x => excess w s x * f x) + total w * (4%:R * u).
Proof.
move=> f01; have u0 : 0 <= 4%:R * u by rewrite mulr_ge0 ?ler0n ?unit64_pos.
have E0 := excess_ge0 w s; have Ef0 : 0 <= total (fun x => excess w s x * f x).
  by apply: total_ge0 => x; rewrite mulr_ge0 //; case/andP: (f01 x).
have Ew : total (excess w s) <= total w.
  apply: total_le => x; rewrite /excess; case: (wf x) => w0 _; case: (sf x) => s0 _.
  by rewrite le_maxl w0 andbT ler_subl_addr ler_addl.
have st := next_stands; have n0 x : 0 <= rescaled_row w s x by case: (stands_floats st x).
case: (boolP (0 < sum64 L (rest64 w s))) => [some|none]; last first.
  suff -> : total (excess w s) = 0 by rewrite mul0r addr_ge0 // mulr_ge0 // ltW.
  apply/eqP; rewrite eq_le (total_ge0 E0) andbT.
  have near := le_trans (total_moved _ _) (rest_moved wf sf); rewrite (sum64_pos (rest_floats w s)) -leNgt in none.
  have : total (excess w s) <= u * total (excess w s).
    move: near; rewrite ler_distl => /andP[low _]; have := le_trans low none.
    by rewrite subr_le0.
  apply: contraTT; rewrite -!ltNge => pos; rewrite -[ltRHS]mul1r ltr_pmul2r //.
  by apply: le_lt_trans unit_share _; vm_compute.
have a0 : 0 < scale64 w s by apply: scale_pos.
have shares := moved_share (fun x => excess w s x * scale64 w s) n0 (stands_pos st) f01.
have scaled : total (fun x => excess w s x * scale64 w s * f x) = total (fun x => excess w s x * f x) * scale64 w s.
  by rewrite -total_scaler; apply: total_ext => x; rewrite mulrAC.
rewrite total_scaler scaled mulrAC in shares; rewrite -(ler_pmul2r a0) mulrDl.
apply: le_trans shares _; rewrite ler_add2l; apply: le_trans (next_moved some) _.
rewrite [total w * _]mulrC -[leRHS]mulrA; apply: ler_wpmul2l => //.
by apply: ler_wpmul2r Ew; apply: ltW.
Qed.
End Next.
End Rescaled.
