(** Floating point: the acceptance test.

    What it says.
    - [accept_test_exact]   u on the 24-bit grid, p and q float32: the float64 product
      u * q is exact, so the float64 test  u * q < p  is the real-number test;
    - [accept_grid]         hence accepted at exactly the grid points k < 2^24 p / q, and
      [accept_probability]  their share exceeds p / q by less than 2^-24.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/coins.py. *)

From Coq Require Import ZArith Reals Lra Lia List.
From Flocq Require Import Core.
Open Scope R_scope.

Definition float32 : R -> Prop := generic_format radix2 (FLT_exp (-149) 24).
Definition float64 : R -> Prop := generic_format radix2 (FLT_exp (-1074) 53).
Definition rnd64 : R -> R := round radix2 (FLT_exp (-1074) 53) ZnearestE.
Definition grid (bits : Z) (u : R) : Prop := exists k, (0 <= k < 2 ^ bits)%Z /\ u = IZR k * bpow radix2 (- bits).

Instance prec24 : Prec_gt_0 24 := eq_refl.
Instance prec53 : Prec_gt_0 53 := eq_refl.

Lemma product_exact : forall u q, grid 24 u -> float32 q -> float64 (u * q).
Proof.
intros u q [k [[k0 k1] ->]] Fq.
destruct (FLT_format_generic _ _ _ _ Fq) as [[m e] E M X]; cbn [Fnum Fexp] in M, X.
apply generic_format_FLT, FLT_spec with (Float radix2 (k * m) (e - 24)).
- rewrite E; unfold F2R; cbn [Fnum Fexp].
  replace (e - 24)%Z with (e + - 24)%Z by ring; rewrite mult_IZR, bpow_plus.
  change (bpow radix2 (- (24))) with (bpow radix2 (-24)); generalize (bpow radix2 (-24)); intro; ring.
- cbn [Fnum]; rewrite Z.abs_mul, (Z.abs_eq k) by lia.
  change (radix2 ^ 53)%Z with (2 ^ 24 * 2 ^ 29)%Z.
  apply Z.le_lt_trans with (2 ^ 24 * Z.abs m)%Z; [apply Z.mul_le_mono_nonneg_r; lia|].
  apply Z.mul_lt_mono_pos_l; [reflexivity|].
  apply Z.lt_trans with (1 := M); reflexivity.
- cbn [Fexp]; lia.
Qed.

Theorem accept_test_exact : forall u p q, grid 24 u -> float32 q -> (rnd64 (u * q) < p <-> u * q < p).
Proof.
intros u p q Gu Fq; unfold rnd64; rewrite round_generic; [tauto| apply valid_rnd_N | now apply product_exact].
Qed.

(** With n grid points per unit, those below x are 0, ..., ceil x - 1. *)
Theorem accept_grid : forall k n p q, 0 < q -> 0 < n ->
  (IZR k / n * q < p <-> (k < Zceil (n * (p / q)))%Z).
Proof.
intros k n p q q0 n0.
assert (E : IZR k / n * q < p <-> IZR k < n * (p / q)).
  { split; intro H.
    - apply Rmult_lt_reg_r with (q / n); [apply Rdiv_lt_0_compat; lra|].
      replace (n * (p / q) * (q / n)) with p by (field; lra).
      replace (IZR k * (q / n)) with (IZR k / n * q) by (field; lra); exact H.
    - apply Rmult_lt_reg_r with (n / q); [apply Rdiv_lt_0_compat; lra|].
      replace (IZR k / n * q * (n / q)) with (IZR k) by (field; lra).
      replace (p * (n / q)) with (n * (p / q)) by (field; lra); exact H. }
rewrite E; split; intro H.
- apply lt_IZR, Rlt_le_trans with (1 := H), Zceil_ub.
- apply Rnot_le_lt; intro L; apply Zceil_glb in L; lia.
Qed.

Theorem accept_probability : forall n r, 0 < n -> 0 <= IZR (Zceil (n * r)) / n - r < / n.
Proof.
intros n r n0; assert (A := Zceil_ub (n * r)).
assert (B : IZR (Zceil (n * r)) < n * r + 1).
  { apply Rnot_le_lt; intro L.
    assert (H : (Zceil (n * r) <= Zceil (n * r) - 1)%Z).
      { apply Zceil_glb; rewrite minus_IZR; lra. }
    lia. }
assert (I : 0 < / n) by (apply Rinv_0_lt_compat; lra).
replace (IZR (Zceil (n * r)) / n - r) with ((IZR (Zceil (n * r)) - n * r) * / n) by (field; lra).
split; [apply Rmult_le_pos; lra|].
rewrite <- (Rmult_1_l (/ n)) at 2; apply Rmult_lt_compat_r; lra.
Qed.
