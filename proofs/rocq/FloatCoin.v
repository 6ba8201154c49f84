(** Floating point: a coin between two numbers that are themselves rounded.

    What it says.
    - [coin_error]   num and den have i and j roundings behind them, and u den is rounded once
      more: the share of the N uniforms k/N with  u den < num  is within
      4 (i + j + 1) e + 1/N of min(1, num/den);
    - [coin_sure]    where num = den but for roundings, every uniform of a coarse grid says yes:
      a draft that has all of the mass is never refused.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/coins.py. *)

From Coq Require Import ZArith Reals Lra Lia.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept FloatSums FloatThreshold FloatDescent.
Open Scope R_scope.

Section Coin.
Variables (N M i j : nat) (A D num den : R).
Definition says_yes k := Rlt_bool (rnd64 (INR k / INR N * den)) num.

Hypothesis uniforms : INR N * INR M * e64 = 1.
Hypothesis few : INR (i + j + 1) * e64 <= 1 / 8.
Hypothesis num_near : rounded i A num.
Hypothesis den_near : rounded j D den.
Hypothesis heavy : bpow radix2 (-900) <= den.
Hypothesis A_pos : 0 <= A.
Hypothesis D_pos : 0 < D.

Lemma uniforms_some : 0 < INR N.
Proof.
assert (Sm := e64_small); assert (P := pos_INR N); assert (Q := pos_INR M).
destruct (Rle_lt_or_eq_dec 0 _ P) as [|E]; [assumption|]; rewrite <- E, !Rmult_0_l in uniforms; lra.
Qed.

Lemma product_near : forall k, (1 - e64) * (INR k / INR N * den) <= rnd64 (INR k / INR N * den)
  <= (1 + e64) * (INR k / INR N * den).
Proof.
intro k; assert (P := uniforms_some).
assert (E : INR k / INR N = IZR (Z.of_nat k * Z.of_nat M) * e64).
{ rewrite mult_IZR, <- !INR_IZR_INZ; apply Rmult_eq_reg_r with (INR N); [|lra].
  unfold Rdiv; rewrite !Rmult_assoc, Rinv_l, (Rmult_comm e64), Rmult_1_r by lra.
  rewrite <- (Rmult_assoc (INR M)), (Rmult_comm (INR M)), uniforms; ring. }
rewrite E; apply product_rounded; [lia|exact heavy].
Qed.

Definition coin_growth := (1 + e64) ^ (i + j + 1) / (1 - e64) ^ (i + j + 1) - 1.

Lemma growth_small : 0 <= coin_growth <= 4 * (INR (i + j + 1) * e64).
Proof.
assert (Sm := e64_small); split; [|apply growth; lra].
destruct (powers (i + j + 1)) as [L [L1 H]]; unfold coin_growth.
assert (O : 1 <= (1 + e64) ^ (i + j + 1) / (1 - e64) ^ (i + j + 1)); [|lra].
apply Rmult_le_reg_r with ((1 - e64) ^ (i + j + 1)); [exact L|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra.
Qed.

(** What the roundings can do to the odds, on either side. *)
Lemma odds_up : (1 + e64) ^ (i + j + 1) = (1 + coin_growth) * (1 - e64) ^ (i + j + 1).
Proof. destruct (powers (i + j + 1)) as [L _]; unfold coin_growth; field; lra. Qed.

Lemma quotient_pos : forall k, 0 <= INR k / INR N.
Proof. intro k; apply Rmult_le_pos; [apply pos_INR | apply Rlt_le, Rinv_0_lt_compat, uniforms_some]. Qed.

Lemma yes_below : forall k, (1 + coin_growth) * (INR k / INR N * D) < A -> says_yes k = true.
Proof.
intros k H; unfold says_yes; apply Rlt_bool_true; assert (Sm := e64_small).
set (u := INR k / INR N) in *; assert (U : 0 <= u) by apply quotient_pos.
destruct (product_near k) as [_ B]; fold u in B; destruct num_near as [C _], den_near as [_ E].
destruct (powers i) as [I0 [I1 I2]], (powers j) as [J0 [J1 J2]], (powers (i + j + 1)) as [P0 _].
assert (X : rnd64 (u * den) <= (1 + e64) ^ S j * (u * D)).
{ simpl pow; apply Rle_trans with (1 := B); rewrite Rmult_assoc; apply Rmult_le_compat_l; [lra|].
  rewrite (Rmult_comm _ (u * D)), Rmult_assoc; apply Rmult_le_compat_l; [exact U|]; lra. }
assert (Y : (1 + e64) ^ i * ((1 + e64) ^ S j * (u * D)) = (1 - e64) ^ (i + j + 1) * ((1 + coin_growth) * (u * D))).
{ rewrite <- Rmult_assoc, <- pow_add; replace (i + S j)%nat with (i + j + 1)%nat by lia; rewrite odds_up; ring. }
assert (Z : (1 - e64) ^ (i + j + 1) * A <= (1 - e64) ^ i * A).
{ apply Rmult_le_compat_r; [exact A_pos|]; apply powers_grow; lia. }
assert (W : (1 - e64) ^ (i + j + 1) * ((1 + coin_growth) * (u * D)) < (1 - e64) ^ (i + j + 1) * A).
{ apply Rmult_lt_compat_l; [exact P0 | exact H]. }
assert (T : (1 + e64) ^ S j * (u * D) <= (1 + e64) ^ i * ((1 + e64) ^ S j * (u * D))).
{ rewrite <- (Rmult_1_l ((1 + e64) ^ S j * (u * D))) at 1; apply Rmult_le_compat_r; [|exact I2].
  apply Rmult_le_pos; [apply pow_le; lra | apply Rmult_le_pos; lra]. }
lra.
Qed.

Lemma yes_above : forall k, says_yes k = true -> INR k / INR N * D < (1 + coin_growth) * A.
Proof.
intros k H; unfold says_yes in H; destruct (Rlt_bool_spec (rnd64 (INR k / INR N * den)) num) as [L|]; [|discriminate].
assert (Sm := e64_small); set (u := INR k / INR N) in *; assert (U : 0 <= u) by apply quotient_pos.
destruct (product_near k) as [B _]; fold u in B; destruct num_near as [_ C], den_near as [E _].
destruct (powers i) as [I0 [I1 I2]], (powers j) as [J0 [J1 J2]], (powers (i + j + 1)) as [P0 _].
assert (X : (1 - e64) ^ S j * (u * D) <= rnd64 (u * den)).
{ simpl pow; apply Rle_trans with (2 := B); rewrite Rmult_assoc; apply Rmult_le_compat_l; [lra|].
  rewrite (Rmult_comm _ (u * D)), Rmult_assoc; apply Rmult_le_compat_l; [exact U|]; lra. }
assert (Y : (1 - e64) ^ (i + j + 1) * (u * D) <= (1 - e64) ^ S j * (u * D)).
{ apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|]; apply powers_grow; lia. }
assert (Z : (1 + e64) ^ i * A <= (1 - e64) ^ (i + j + 1) * ((1 + coin_growth) * A)).
{ rewrite <- Rmult_assoc, (Rmult_comm _ (1 + _)), <- odds_up; apply Rmult_le_compat_r; [exact A_pos|]; apply powers_grow; lia. }
apply Rmult_lt_reg_l with ((1 - e64) ^ (i + j + 1)); [exact P0 | lra].
Qed.

Lemma uniform_below_one : forall k, (k < N)%nat -> INR k / INR N < 1.
Proof.
intros k K; apply lt_INR in K; assert (P := uniforms_some).
apply Rmult_lt_reg_r with (INR N); [exact P|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra.
Qed.

Theorem coin_error : Rabs (INR (count says_yes N) / INR N - Rmin 1 (A / D)) <= 4 * (INR (i + j + 1) * e64) + / INR N.
Proof.
assert (P := uniforms_some); destruct growth_small as [G0 G]; set (g := coin_growth) in *.
assert (N0 : (0 < N)%nat) by (now apply INR_lt).
set (r := A / D); assert (Er : A = r * D) by (unfold r; field; lra).
assert (R0 : 0 <= r) by (apply Rmult_le_pos; [exact A_pos | now apply Rlt_le, Rinv_0_lt_compat]).
set (y := Rmin 1 r); assert (Y : 0 <= y <= 1 /\ y <= r) by (unfold y, Rmin; destruct Rle_dec; lra).
destruct (counted says_yes N (y - g) (y + g) N0 ltac:(lra) ltac:(lra)) as [Lo Hi].
- intros k K H; apply yes_below; fold g; set (u := INR k / INR N) in *.
  assert (Q : (1 + g) * u < y) by nra.
  apply Rlt_le_trans with (y * D); [|rewrite Er; apply Rmult_le_compat_r; lra].
  rewrite <- Rmult_assoc; apply Rmult_lt_compat_r; [exact D_pos | exact Q].
- intros k K H; apply yes_above in H; fold g in H; assert (U := uniform_below_one k K); set (u := INR k / INR N) in *.
  rewrite Er, <- Rmult_assoc in H; apply Rmult_lt_reg_r in H; [|exact D_pos].
  unfold y, Rmin; destruct Rle_dec; [lra|]; nra.
- assert (I := Rinv_0_lt_compat _ P); apply Rabs_le; lra.
Qed.

(** On a grid that is coarser than the roundings. *)
Theorem coin_sure : A = D -> 4 * (INR (i + j + 1) * e64) < / INR N -> forall k, (k < N)%nat -> says_yes k = true.
Proof.
intros E C k K; apply yes_below; destruct growth_small as [G0 G]; set (g := coin_growth) in *.
assert (P := uniforms_some); assert (I := Rinv_0_lt_compat _ P).
assert (U : INR k / INR N <= 1 - / INR N).
{ apply lt_le_S, le_INR in K; rewrite S_INR in K; apply Rmult_le_reg_r with (INR N); [exact P|].
  rewrite Rmult_minus_distr_r; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra. }
rewrite E, <- Rmult_assoc; rewrite <- (Rmult_1_l D) at 2; apply Rmult_lt_compat_r; [exact D_pos|].
assert (V := quotient_pos k); nra.
Qed.

End Coin.
