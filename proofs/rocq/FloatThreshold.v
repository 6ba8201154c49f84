(** Floating point: the thresholds of inverse-CDF picking.

    What it says.
    - [share_bound]         each threshold cdf/total is off by at most a factor
      (1+e)^n/(1-e)^n - with [growth], by at most 4 n e for n e <= 1/8;
    - [pick_sandwich]       the 53-bit uniforms u with round(u * total) < cdf are sandwiched
      between two initial segments of the grid: one more rounding, and 2^-53 for the grid;
    - [threshold_error]     both ends are within 4 (n+1) e + e of the exact threshold;
    - [tv_from_cdf]         V cells whose thresholds are each off by at most eta are off
      by at most V * eta in total variation.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/coins.py. *)

From Coq Require Import ZArith Reals Lra Lia List.
From Flocq Require Import Core Relative.
From Proofs Require Import FloatAccept FloatSums.
Open Scope R_scope.

(** A threshold: cumulated weight over total weight. *)
Theorem share_bound : forall lo hi c t f g, 0 < lo <= hi -> 0 <= c -> 0 < t ->
  lo * c <= f <= hi * c -> lo * t <= g <= hi * t ->
  lo / hi * (c / t) <= f / g <= hi / lo * (c / t).
Proof.
intros lo hi c t f g [L H] C T [F1 F2] [G1 G2].
assert (G0 : 0 < g) by nra.
replace (lo / hi * (c / t)) with (lo * c / (hi * t)) by (field; lra).
replace (hi / lo * (c / t)) with (hi * c / (lo * t)) by (field; lra).
split; unfold Rdiv; apply Rmult_le_compat; try nra;
  try (apply Rlt_le, Rinv_0_lt_compat; nra); apply Rinv_le; nra.
Qed.

(** Which of the 2^53 uniforms fall below a computed sum m, of total g: all k below
    2^53 m/((1+e)g), and none from 2^53 m/((1-e)g) on. *)
Lemma product_rounded : forall k g, (0 <= k)%Z -> bpow radix2 (-900) <= g ->
  (1 - e64) * (IZR k * e64 * g) <= rnd64 (IZR k * e64 * g) <= (1 + e64) * (IZR k * e64 * g).
Proof.
intros k g K G; assert (S := e64_small); assert (G0 := bpow_gt_0 radix2 (-900)).
destruct (Z.eq_dec k 0) as [->|N].
  { rewrite !Rmult_0_l, !Rmult_0_r; unfold rnd64; rewrite round_0; [lra | apply valid_rnd_N]. }
assert (K1 : 1 <= IZR k) by (apply IZR_le; lia).
assert (X : 0 <= IZR k * e64 * g) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
assert (P : bpow radix2 (-1074 + 53 - 1) <= Rabs (IZR k * e64 * g)).
  { rewrite Rabs_pos_eq by exact X.
    apply Rle_trans with (1 * e64 * bpow radix2 (-900)).
    - rewrite Rmult_1_l; unfold e64; rewrite <- bpow_plus; apply bpow_le; lia.
    - apply Rmult_le_compat; try lra; apply Rmult_le_compat_r; lra. }
destruct (relative_error_N_FLT_ex radix2 (-1074) 53 eq_refl (fun z => negb (Z.even z)) _ P) as [eps [B E]].
assert (U : / 2 * bpow radix2 (- (53) + 1) = e64).
  { change (/ 2 * / 4503599627370496 = / 9007199254740992); field. }
rewrite U in B; apply Rabs_le_inv in B; unfold rnd64; rewrite E.
split; nra.
Qed.

Theorem pick_sandwich : forall k g m, (0 <= k)%Z -> bpow radix2 (-900) <= g ->
  ((k < Zceil (/ e64 * (m / ((1 + e64) * g))))%Z -> rnd64 (IZR k * e64 * g) < m) /\
  (rnd64 (IZR k * e64 * g) < m -> (k < Zceil (/ e64 * (m / ((1 - e64) * g))))%Z).
Proof.
intros k g m K G; destruct (product_rounded k g K G) as [L U].
assert (S := e64_small); assert (G0 := bpow_gt_0 radix2 (-900)).
assert (I : 0 < / e64) by (apply Rinv_0_lt_compat; lra).
split; intro H.
- apply (proj2 (accept_grid k (/ e64) m ((1 + e64) * g) ltac:(nra) I)) in H.
  apply Rle_lt_trans with (1 := U); replace ((1 + e64) * (IZR k * e64 * g))
    with (IZR k / / e64 * ((1 + e64) * g)) by (field; lra); exact H.
- apply (proj1 (accept_grid k (/ e64) m ((1 - e64) * g) ltac:(nra) I)).
  replace (IZR k / / e64 * ((1 - e64) * g)) with ((1 - e64) * (IZR k * e64 * g)) by (field; lra).
  apply Rle_lt_trans with (1 := L); exact H.
Qed.

(** (1+e)^n / (1-e)^n - 1 <= 4 n e while n e <= 1/8. *)
Lemma bernoulli_down : forall n e, 0 <= e <= 1 -> 1 - INR n * e <= (1 - e) ^ n.
Proof.
intros n e E; induction n as [|n IH]; [simpl; lra|].
rewrite S_INR; simpl pow; assert (0 <= INR n) by apply pos_INR; nra.
Qed.

Lemma bernoulli_up : forall n e, 0 <= e -> INR n * e < 1 -> (1 + e) ^ n * (1 - INR n * e) <= 1.
Proof.
intros n e E; induction n as [|n IH]; [simpl; lra|].
rewrite S_INR; intro H; simpl pow; assert (0 <= INR n) by apply pos_INR.
assert (P : 0 <= (1 + e) ^ n) by (apply pow_le; lra).
assert (I : (1 + e) ^ n * (1 - INR n * e) <= 1) by (apply IH; nra).
apply Rle_trans with (2 := I).
replace ((1 + e) * (1 + e) ^ n * (1 - (INR n + 1) * e))
  with ((1 + e) ^ n * (1 - INR n * e - (INR n + 1) * e * e)) by ring.
apply Rmult_le_compat_l; [exact P|]; nra.
Qed.

Theorem growth : forall n e, 0 <= e -> INR n * e <= 1 / 8 ->
  (1 + e) ^ n / (1 - e) ^ n - 1 <= 4 * (INR n * e).
Proof.
intros n e E H; destruct n as [|n].
  { simpl; unfold Rdiv; rewrite Rinv_1; lra. }
assert (N : 1 <= INR (S n)) by (rewrite S_INR; assert (0 <= INR n) by apply pos_INR; lra).
assert (E1 : e <= 1 / 8) by nra.
set (x := INR (S n) * e) in *; assert (X0 : 0 <= x) by (unfold x; nra).
assert (D := bernoulli_down (S n) e ltac:(lra)); assert (U := bernoulli_up (S n) e E ltac:(fold x; lra)).
fold x in D, U; set (a := (1 + e) ^ S n) in *; set (b := (1 - e) ^ S n) in *.
assert (A0 : 0 < a) by (apply pow_lt; lra).
apply Rmult_le_reg_r with b; [lra|].
replace ((a / b - 1) * b) with (a - b) by (field; lra).
assert (A1 : a <= 1 + 8 / 7 * x).
  { apply Rmult_le_reg_r with (1 - x); [lra|]; nra. }
nra.
Qed.

(** Both ends of the sandwich lie within 4 (n+1) e + e of the exact threshold c/t. *)
Theorem threshold_error : forall n c t m g s, INR (S n) * e64 <= 1 / 8 -> 0 <= c <= t -> 0 < t ->
  (1 - e64) ^ n * c <= m <= (1 + e64) ^ n * c -> (1 - e64) ^ n * t <= g <= (1 + e64) ^ n * t ->
  1 - e64 <= s <= 1 + e64 ->
  Rabs (IZR (Zceil (/ e64 * (m / (s * g)))) / / e64 - c / t) <= 4 * (INR (S n) * e64) + e64.
Proof.
intros n c t m g s N [C CT] T M G S; assert (E := e64_small).
assert (L0 : 0 < (1 - e64) ^ n) by (apply pow_lt; lra).
assert (H0 : 0 < (1 + e64) ^ n) by (apply pow_lt; lra).
assert (D := growth (Datatypes.S n) e64 ltac:(lra) N).
set (lo := (1 - e64) ^ Datatypes.S n) in *; set (hi := (1 + e64) ^ Datatypes.S n) in *.
assert (lo = (1 - e64) * (1 - e64) ^ n) by reflexivity.
assert (hi = (1 + e64) * (1 + e64) ^ n) by reflexivity.
assert (LH : (1 - e64) ^ n <= (1 + e64) ^ n) by (apply pow_incr; lra).
assert (LL : 0 < lo <= hi) by (rewrite H, H1; split; [apply Rmult_lt_0_compat | apply Rmult_le_compat]; lra).
assert (GT : 0 < g) by (apply Rlt_le_trans with ((1 - e64) ^ n * t); [apply Rmult_lt_0_compat|]; lra).
assert (LO : lo <= (1 - e64) ^ n) by (rewrite H; nra).
assert (HI : (1 + e64) ^ n <= hi) by (rewrite H1; nra).
assert (LC : lo * c <= (1 - e64) ^ n * c) by (apply Rmult_le_compat_r; lra).
assert (HC : (1 + e64) ^ n * c <= hi * c) by (apply Rmult_le_compat_r; lra).
assert (B : lo / hi * (c / t) <= m / (s * g) <= hi / lo * (c / t)).
{ apply share_bound; [exact LL|exact C|exact T|lra|].
  assert (0 <= (1 - e64) ^ n * t) by (apply Rmult_le_pos; lra).
  assert (0 <= (1 + e64) ^ n * t) by (apply Rmult_le_pos; lra).
  replace (lo * t) with ((1 - e64) * ((1 - e64) ^ n * t)) by (rewrite H; ring).
  replace (hi * t) with ((1 + e64) * ((1 + e64) ^ n * t)) by (rewrite H1; ring).
  split; apply Rmult_le_compat; lra. }
assert (Y : 0 <= c / t <= 1).
{ split; [apply Rmult_le_pos; [lra | apply Rlt_le, Rinv_0_lt_compat, T]|].
  apply Rmult_le_reg_r with t; [exact T|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra. }
set (y := c / t) in *; set (d := hi / lo - 1) in *.
assert (D0 : 0 <= d).
{ unfold d; apply Rmult_le_reg_r with lo; [lra|]; unfold Rdiv; field_simplify; lra. }
assert (Low : 1 - d <= lo / hi).
{ replace (lo / hi) with (/ (1 + d)) by (unfold d; field; lra).
  apply Rmult_le_reg_r with (1 + d); [lra|]; rewrite Rinv_l by lra; nra. }
replace (hi / lo) with (1 + d) in B by (unfold d; ring).
assert (I : 0 < / e64) by (apply Rinv_0_lt_compat; lra).
destruct (accept_probability (/ e64) (m / (s * g)) I) as [P1 P2]; rewrite Rinv_inv in P2.
assert (Q1 : (1 - d) * y <= lo / hi * y) by (apply Rmult_le_compat_r; lra).
assert (Q2 : d * y <= d) by nra.
apply Rabs_le; split; nra.
Qed.

(** ** From thresholds to total variation *)
Fixpoint cells (F G : nat -> R) n :=
  match n with O => 0 | S m => cells F G m + Rabs ((F n - F m) - (G n - G m)) end.

Theorem tv_from_cdf : forall F G eta n, (forall i, (i <= n)%nat -> Rabs (F i - G i) <= eta) ->
  / 2 * cells F G n <= INR n * eta.
Proof.
intros F G eta n; induction n as [|n IH]; intro near; [simpl; lra|].
rewrite S_INR; simpl cells.
assert (A := near (S n) ltac:(lia)); assert (B := near n ltac:(lia)).
assert (C : Rabs (F (S n) - F n - (G (S n) - G n)) <= 2 * eta).
{ replace (F (S n) - F n - (G (S n) - G n)) with ((F (S n) - G (S n)) + - (F n - G n)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_Ropp; lra. }
assert (D := IH (fun i I => near i ltac:(lia))); lra.
Qed.
