(** Block verification in floats: the weight of a prefix, which travels as n / d.

    What it says.  The weight is two floats, n <= d and 1/2 <= d <= 1 ([holds_weight]).  After one more token, n and d are
    multiplied by the powers of two that bring d back; a weight above 1 is 1.
    - [carry_holds]  what is carried on is such a weight;
    - [weight_near]  and is min(1, num / den) but for 8 2^-53.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/rules/block.py (prefix_weights). *)

From Coq Require Import ZArith QArith Qcanon Qreals Reals Lra Lia.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept FloatSums FloatThreshold FloatDescent FloatRow.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Drift Drifting Rational FloatMachine FloatsEndToEnd FloatNumbers Judged
  FloatRescaled BlockSums.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Definition carry (num den : rational) : rational * rational :=
  if num < den then (fl (num * scale_of den), fl (den * scale_of den))
  else ((0 < num)%R%:R, 1).
Definition carried_weight (s : rational * rational) : rational := s.1 / s.2.

Record holds_weight (s : rational * rational) : Prop := HoldsWeight {
  weight_floats : is_float s.1 /\ is_float s.2;
  weight_order : 0 <= s.1 <= s.2;
  weight_half : 2%:R^-1 <= s.2 <= 1
}.

Lemma scale_one t : 0 < t -> t * scale_of t <= 1.
Proof.
move=> /val_lt; rewrite val0 => t0; apply/val_le; rewrite val1 valM val_dyadic Rmult_1_l.
set e := mag radix2 (real_of t) : Z; have up : Rle (real_of t) (bpow radix2 e).
  by have := bpow_mag_gt radix2 (real_of t); rewrite Rabs_pos_eq -/e; lra.
have one : Rmult (bpow radix2 e) (bpow radix2 (- e)) = IZR 1 by rewrite -bpow_plus Z.add_opp_diag_r.
by rewrite -one; apply: Rmult_le_compat_r => //; apply: bpow_ge_0.
Qed.

Lemma half_float : fl 2%:R^-1 = 2%:R^-1.
Proof.
apply: fl_exact; rewrite /is_float val_half (_ : Rinv (IZR 2) = bpow radix2 (-1)) //.
by apply: generic_format_bpow.
Qed.
Lemma one_float : fl 1 = 1.
Proof.
apply: fl_exact; rewrite /is_float val1 (_ : IZR 1 = bpow radix2 0) //.
by apply: generic_format_bpow.
Qed.
Lemma half_pos : 0 < 2%:R^-1 :> rational. Proof. by rewrite invr_gt0 ltr0n. Qed.

Lemma weight_bottom s : holds_weight s -> 0 < s.2.
Proof. by case=> _ _ /andP[half _]; apply: lt_le_trans half; apply: half_pos. Qed.

Lemma full_weight : holds_weight (1, 1).
Proof.
have f1 : is_float 1 by rewrite -one_float; apply: fl_float.
split; [by [] | by rewrite ler01 lexx | rewrite lexx andbT].
by apply/val_le; rewrite val_half val1; lra.
Qed.

Section Carry.
Variables num den : rational.
Hypothesis num0 : 0 <= num.

Lemma carry_holds : holds_weight (carry num den).
Proof.
rewrite /carry; case: ltP => [lt|_]; last first.
  have [[_ f1] _ one] := full_weight; split=> //; case: (0 < num)%R; rewrite /= ?lexx ?ler01 //.
  by split=> //; apply: float0.
have s0 := ltW (scale_pos den); have pos : 0 < den by apply: le_lt_trans lt.
split; first by split; apply: fl_float.
  by rewrite /= fl_ge0 ?mulr_ge0 //=; apply: fl_le; apply: ler_wpmul2r (ltW lt).
apply/andP; split; first by rewrite -half_float; apply/fl_le/scale_half.
by rewrite -[leRHS]one_float; apply/fl_le/scale_one.
Qed.

Lemma carried01 : 0 <= carried_weight (carry num den) <= 1.
Proof.
have [_ /andP[n0 nd] _] := carry_holds; have d0 := weight_bottom carry_holds.
by rewrite /carried_weight divr_ge0 ?(ltW d0) //= ler_pdivr_mulr // mul1r.
Qed.

Lemma dust_unit : dust <= unit64.
Proof. by apply/val_le; rewrite val_dust val_unit64; apply: bpow_le. Qed.

Lemma fl_one (a : rational) : 0 <= a <= 1 -> Rle (Rabs (Rminus (real_of (fl a)) (real_of a))) (Rmult (IZR 2) (real_of unit64)).
Proof.
move=> /andP[a0 a1]; have near := fl_near a; rewrite (ger0_norm a0) in near.
have le : `|fl a - a| <= 2%:R * unit64.
  apply: le_trans near _; rewrite mulr_natl mulr2n; apply: ler_add dust_unit.
  by rewrite -[leRHS]mulr1; apply: ler_wpmul2l => //; apply: unit64_pos.
by move/val_le: le; rewrite val_norm valB (valM 2%:R) valn (INR_IZR_INZ 2).
Qed.

Lemma weight_near :
  `|carried_weight (carry num den) - (if num < den then num / den else (0 < num)%R%:R)| <= 8%:R * unit64.
Proof.
have u8 : 0 <= 8%:R * unit64 by apply: mulr_ge0 unit64_pos; apply: ler0n.
have [_ order half] := carry_holds; move: order half; rewrite /carried_weight /carry; case: ltP => [lt|_]; last first.
  by rewrite /= divr1 subrr normr0.
rewrite /= => _ half; have pos : 0 < den by apply: le_lt_trans lt.
have zs : scale_of den != 0 := lt0r_neq0 (scale_pos den); have s0 := ltW (scale_pos den).
have -> : num / den = num * scale_of den / (den * scale_of den).
  by rewrite -mulf_div (divff zs) mulr1.
set a := num * scale_of den; set d := den * scale_of den.
have d1 : 2%:R^-1 <= d <= 1 by apply/andP; split; [apply: scale_half | apply: scale_one].
have ad : 0 <= a <= d by apply/andP; split; [apply: mulr_ge0 | apply: ler_wpmul2r s0 _ _ (ltW lt)].
have a1 : 0 <= a <= 1 by case/andP: ad => -> ad; case/andP: d1 => _; apply: le_trans ad.
have d01 : 0 <= d <= 1 by case/andP: d1 => _ ->; rewrite andbT; case/andP: ad => a0 ad; apply: le_trans ad.
have na := fl_one a1; have nd := fl_one d01.
have /andP[h1 _] := half; have /andP[d_half d_one] := d1; have /andP[a_pos a_d] := ad.
have zd : d != 0 := lt0r_neq0 (lt_le_trans half_pos d_half).
have zd' : fl d != 0 := lt0r_neq0 (lt_le_trans half_pos h1).
apply/val_le; rewrite val_norm valB (val_div _ zd') (val_div _ zd) (valM 8%:R) valn (INR_IZR_INZ 8).
move/val_le: h1; move/val_le: d_half; move/val_le: d_one; move/val_le: a_pos; move/val_le: a_d.
rewrite val_half val0 val1 => a_d a_pos d_one d_half h1.
have u0 : Rle (IZR 0) (real_of unit64) by rewrite -val0; apply/val_le/unit64_pos.
have -> : IZR (Z.of_nat 8) = IZR 8 by [].
exact: (quotient_near _ _ _ _ _ (conj a_pos a_d) (conj d_half d_one) h1 u0 na nd).
Qed.
End Carry.
