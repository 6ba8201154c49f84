(** Floating point: the thresholds of inverse-CDF picking.

    What it says.
    - [growth]              n roundings change a quotient by at most the share 4 n e, for n e <= 1/8;
    - [row_admitted]        what a row misses 1 by whose float64 sum, in any order of height n,
      misses it by at most tol: tol + 2 n e;
    - [tv_from_cdf]         V cells whose thresholds are each off by at most eta are off
      by at most V * eta in total variation.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/sums.py. *)

From Coq Require Import ZArith Reals Lra Lia List.
From Flocq Require Import Core Relative.
From Proofs Require Import FloatAccept FloatSums.
Open Scope R_scope.

(** The bar: a uniform k 2^-53 times the computed total g, rounded once. *)
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

(** A check that adds up in floats, and the sum that it lets through. *)
Lemma row_admitted : forall t n tol, leaves_ok t -> (height t <= n)%nat -> INR n * e64 <= 1 / 8 -> 0 <= tol <= 1 / 2 ->
  Rabs (float_sum t - 1) <= tol -> Rabs (exact_sum t - 1) <= tol + 2 * (INR n * e64).
Proof.
intros t n tol Ok H N [T0 T1] C; assert (E := e64_small); apply Rabs_le_inv in C.
destruct (sum_any_order t n Ok H) as [L U]; assert (S := sum_nonneg t Ok).
assert (D := bernoulli_down n e64 ltac:(lra)); assert (B := bernoulli_up n e64 ltac:(lra) ltac:(lra)).
assert (0 <= INR n) by apply pos_INR; set (x := INR n * e64) in *; assert (0 <= x) by (unfold x; nra).
set (lo := (1 - e64) ^ n) in *; set (hi := (1 + e64) ^ n) in *; set (s := exact_sum t) in *.
assert (Low : (1 - x) * s <= 1 + tol) by nra.
assert (High : (1 - tol) * (1 - x) <= s).
{ apply Rle_trans with (float_sum t * (1 - x)); [apply Rmult_le_compat_r; lra|].
  apply Rle_trans with (hi * s * (1 - x)); [apply Rmult_le_compat_r; lra|].
  replace (hi * s * (1 - x)) with (hi * (1 - x) * s) by ring; nra. }
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
