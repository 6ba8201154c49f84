(** Floating point: numbers that a program holds, as rational numbers.

    What it says.  [fl a] is the float64 number nearest to a, as a rational.
    - [fl_near]      it is off by at most 2^-53 of a, and 2^-1074;
    - [fl_row_near]  a row that is rounded number by number moves by at most 2 2^-53 of its
      mass, unless that is below 2^-900;
    - [sum64_near]   the float64 total of a row is off by at most 2 L 2^-53 of it.
    So subtraction, multiplication and totals of rows are operations on rationals, and a
    theorem over ordered fields can be applied to what was computed.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/row.py, sums.py. *)

From Coq Require Import ZArith QArith Qcanon Qreals Reals Lra Lia.
From Flocq Require Import Core Relative.
From Proofs Require Import FloatAccept FloatSums FloatThreshold FloatDescent FloatRow.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Drift Drifting Rational FloatMachine FloatsEndToEnd.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Notation format64 := (FLT_exp (-1074) 53).

(** m 2^e *)
Definition dyadic (m e : Z) : rational := Q2Qc (Qmult (inject_Z m) (Qpower (inject_Z 2) e)).

Lemma val_dyadic m e : real_of (dyadic m e) = Rmult (IZR m) (bpow radix2 e).
Proof.
have int z : Q2R (inject_Z z) = IZR z by rewrite /Q2R /= Rinv_1 Rmult_1_r.
rewrite /real_of val_red Q2R_mult RMicromega.Q2RpowerRZ ?int; last by left.
by rewrite bpow_powerRZ.
Qed.

(** A real number, rounded. *)
Definition fl_of (x : real) : rational := dyadic (ZnearestE (scaled_mantissa radix2 format64 x)) (cexp radix2 format64 x).
Definition fl (a : rational) : rational := fl_of (real_of a).

Lemma val_fl_of x : real_of (fl_of x) = rnd64 x.
Proof. exact: val_dyadic. Qed.
Lemma val_fl a : real_of (fl a) = rnd64 (real_of a).
Proof. exact: val_fl_of. Qed.

Lemma real_inj (a d : rational) : real_of a = real_of d -> a = d.
Proof. by move=> e; apply/eqP; rewrite eq_le; apply/andP; split; apply/val_le; rewrite e; apply: Rle_refl. Qed.

Definition is_float (a : rational) := float64 (real_of a).

Lemma fl_float a : is_float (fl a).
Proof. by rewrite /is_float val_fl; apply: generic_format_round. Qed.
Lemma fl_exact a : is_float a -> fl a = a.
Proof. by move=> af; apply: real_inj; rewrite val_fl /rnd64 round_generic. Qed.
Lemma fl_le a d : a <= d -> fl a <= fl d.
Proof. by move=> /val_le le; apply/val_le; rewrite !val_fl; apply: round_le. Qed.
Lemma float0 : is_float 0.
Proof. by rewrite /is_float val0; apply: generic_format_0. Qed.
Lemma fl0 : fl 0 = 0. Proof. exact: fl_exact float0. Qed.
Lemma fl_ge0 a : 0 <= a -> 0 <= fl a.
Proof. by move=> a0; rewrite -fl0; apply: fl_le. Qed.

(** ** Errors *)

(** 2^-53, 2^-1074 and 2^-900, sealed: nothing is to be computed with them. *)
Lemma sealed n : {a : rational | a = (2%:R ^+ n)^-1}. Proof. by exists (2%:R ^+ n)^-1. Qed.
Definition unit64 : rational := sval (sealed 53).
Definition dust : rational := sval (sealed (64 + (53 + (900 + 57)))).
Definition least : rational := sval (sealed 900).
Lemma sealedE n : sval (sealed n) = (2%:R ^+ n)^-1. Proof. exact: svalP (sealed n). Qed.

Lemma val_unit64 : real_of unit64 = e64.
Proof. by rewrite /unit64 sealedE valV ?two_power // powers_of_two e64E /=; lra. Qed.
Lemma val_power n : real_of (2%:R ^+ n)^-1 = bpow radix2 (- Z.of_nat n).
Proof. by rewrite valV ?two_power // powers_of_two bpow_opp bpow_powerRZ -pow_powerRZ. Qed.

Lemma val_dust : real_of dust = bpow radix2 (-1074).
Proof. by rewrite /dust sealedE (val_power (64 + (53 + (900 + 57)))). Qed.

Lemma sealed_small n : sval (sealed n) <= 1.
Proof. by rewrite sealedE invf_le1 ?exprn_ege1 ?exprn_gt0 ?ler1n ?ltr0n. Qed.
Lemma unit64_pos : 0 <= unit64. Proof. by rewrite /unit64 sealedE; apply: unit_pos. Qed.
Lemma dust_pos : 0 <= dust. Proof. by rewrite /dust sealedE; apply: unit_pos. Qed.
Lemma least_pos : 0 <= least. Proof. by rewrite /least sealedE; apply: unit_pos. Qed.

Lemma fl_near a : `|fl a - a| <= unit64 * `|a| + dust.
Proof.
have [eps [eta [small [tiny [_ e]]]]] := relative_error_N_FLT'_ex radix2 (-1074) 53 (erefl _) (fun z => negb (Z.even z)) (real_of a).
have u : u_ro radix2 53 = e64.
  by rewrite /u_ro; change (Rmult (Rinv 2) (Rinv 4503599627370496) = Rinv 9007199254740992); lra.
have s := e64_small; rewrite u in small.
have below : Rle (Rabs eps) e64.
  apply: Rle_trans small _; apply: (Rmult_le_reg_r (Rplus 1 e64)); first lra.
  by rewrite /Rdiv Rmult_assoc Rinv_l; [nra | lra].
apply/val_le; rewrite val_norm valB val_fl valD valM val_unit64 val_norm val_dust /rnd64 e; set x := real_of a.
have -> : Rminus (Rplus (Rmult x (Rplus 1 eps)) eta) x = Rplus (Rmult eps x) eta by lra.
apply: Rle_trans (Rabs_triang _ _) _; apply: Rplus_le_compat.
  by rewrite Rabs_mult; apply: Rmult_le_compat_r => //; apply: Rabs_pos.
by apply: Rle_trans tiny _; have := bpow_gt_0 radix2 (-1074); lra.
Qed.

Section Rows.
Variables (V : vocab) (L : nat).
Implicit Types (w f : V -> rational) (x : V).
Hypothesis some_token : tokens V <> [::].
Hypothesis tree_holds : (size_of_vocab V <= Nat.pow 2 L)%coq_nat.
Hypothesis levels : (L <= 64)%N.

Lemma levels_few : (L <= 1000)%N.
Proof. exact: leq_trans levels _. Qed.

Lemma power_parts i j k l : (2%:R ^+ (i + (j + (k + l))) : rational)^-1
  = (2%:R ^+ i)^-1 * ((2%:R ^+ j)^-1 * ((2%:R ^+ k)^-1 * (2%:R ^+ l)^-1)).
Proof. by rewrite !exprD !invfM. Qed.

Lemma vocab_fits n : (L <= n)%N -> (size_of_vocab V)%:R <= 2%:R ^+ n :> rational.
Proof.
move=> le; rewrite -natrX ler_nat; apply: leq_trans (_ : 2 ^ L <= _)%N; last by rewrite leq_exp2l.
by move/ssrnat.leP: tree_holds; rewrite (_ : Nat.pow 2 L = 2 ^ L)%N //; elim: (L) => // l IH; rewrite expnS -IH.
Qed.

(** What V tokens lose below 2^-1022 does not count beside a mass of 2^-900. *)
Lemma all_dust : (size_of_vocab V)%:R * dust <= unit64 * least.
Proof.
apply: le_trans (_ : 2%:R ^+ 64 * dust <= _).
  by apply: ler_wpmul2r; [apply: dust_pos | apply: vocab_fits].
have small : sval (sealed 57) <= 1 :> rational by apply: sealed_small.
have split : dust = (2%:R ^+ 64)^-1 * (unit64 * (least * sval (sealed 57))).
  by rewrite /dust /unit64 /least !sealedE power_parts.
rewrite split mulVKf; last exact: two_power.
apply: ler_wpmul2l; first exact: unit64_pos.
exact: (ler_pimulr least_pos small).
Qed.

Definition float_row w := forall x, 0 <= w x /\ is_float (w x).

Lemma total_const (a : rational) : total (fun _ : V => a) = (size_of_vocab V)%:R * a.
Proof.
rewrite /total /size_of_vocab; elim: (tokens V) => [|y s IH] /=; first by rewrite mul0r.
by rewrite IH mulrSr mulrDl mul1r addrC.
Qed.

Lemma fl_row_off w : (forall x, 0 <= w x) -> total (fun x => `|fl (w x) - w x|) <= unit64 * total w + unit64 * least.
Proof.
move=> w0; apply: le_trans (_ : total (fun x => unit64 * w x + dust) <= _).
  by apply: total_le => x; have := fl_near (w x); rewrite (ger0_norm (w0 x)).
by rewrite total_add total_scale total_const ler_add2l; apply: all_dust.
Qed.

Lemma fl_row_near w : (forall x, 0 <= w x) -> least <= total w ->
  total (fun x => `|fl (w x) - w x|) <= 2%:R * unit64 * total w.
Proof.
move=> w0 some; apply: le_trans (fl_row_off w0) _.
have -> : 2%:R * unit64 * total w = unit64 * total w + unit64 * total w by ring.
by rewrite ler_add2l; apply: ler_wpmul2l some; apply: unit64_pos.
Qed.

(** ** Totals and picks of rows of floats *)

Definition sum64 w : rational := fl_of (float_sum (sum_tree L (values w))).

Section Sum.
Variable w : V -> rational.
Hypothesis wf : float_row w.

Lemma floats_exact : computes 0 w (values w).
Proof.
apply: forall_tokens => x; have [w0 f] := wf x.
have v0 : Rle (IZR 0) (real_of (w x)) by rewrite -val0; apply/val_le.
by split=> //; split=> //; split=> //; rewrite /rounded /=; lra.
Qed.

Lemma floats_fit : (length (values w) <= Nat.pow 2 L)%coq_nat.
Proof. by rewrite values_length. Qed.

Lemma floats_some : values w <> List.nil.
Proof. exact: values_some. Qed.

Lemma floats_ok : leaves_ok (sum_tree L (values w)).
Proof. exact: (tree_ok L 0 (values w) (values w) floats_fit floats_exact floats_some). Qed.

Lemma val_sum64 : real_of (sum64 w) = float_sum (sum_tree L (values w)).
Proof. by rewrite val_fl_of /rnd64 round_generic //; apply: float_sum_format floats_ok. Qed.

Lemma sum64_rounded : rounded L (real_of (total w)) (real_of (sum64 w)).
Proof.
have := sum_rounded _ L floats_ok (row_height L (values w)).
by rewrite val_sum64 (tree_exact L 0 (values w) (values w) floats_fit floats_exact floats_some) values_total.
Qed.

Lemma sum64_near : `|sum64 w - total w| <= 2%:R * L%:R * unit64 * total w.
Proof.
have [lo up] := sum64_rounded; have s := e64_small.
have t0 : Rle (IZR 0) (real_of (total w)) by rewrite -val0; apply/val_le/total_ge0 => x; case: (wf x).
have few : Rle (Rmult (INR L) e64) (Rdiv (IZR 1) (IZR 8)).
  apply: Rle_trans (_ : Rle (Rmult (INR 64) e64) _); last by rewrite (INR_IZR_INZ 64) e64E /=; lra.
  by apply: Rmult_le_compat_r; [lra | apply/le_INR/ssrnat.leP].
have down := bernoulli_down L e64 ltac:(lra); have high := bernoulli_up L e64 ltac:(lra) ltac:(lra).
have l0 := pos_INR L; apply/val_le; rewrite val_norm valB !valM val_unit64 !valn.
set x := Rmult (INR L) e64 in few down high; have x0 : Rle 0 x by rewrite /x; nra.
have -> : Rmult (Rmult (Rmult (INR 2) (INR L)) e64) (real_of (total w)) = Rmult (Rmult 2 x) (real_of (total w)).
  by rewrite /x /=; lra.
set t := real_of (total w) in lo up t0 *; set g := pow (Rplus 1 e64) L in up high.
have gup : Rle g (Rplus 1 (Rmult 2 x)) by nra.
by apply: Rabs_le; split; nra.
Qed.
End Sum.
End Rows.
