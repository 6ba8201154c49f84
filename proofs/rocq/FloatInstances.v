(** The theorems on floats that have hypotheses, applied: none of them is about nothing.

    What it says.  Nothing new.  A row of weights 1 and 3 is added up, and four uniforms go
    down its tree.

    Source: ours. *)

From Coq Require Import ZArith Reals Lra Lia List.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept FloatSums FloatThreshold FloatDescent FloatRow FloatCoin.
Open Scope R_scope.

Lemma float64_one : float64 1.
Proof. replace 1 with (bpow radix2 0) by reflexivity; apply generic_format_bpow; unfold FLT_exp; lia. Qed.
Lemma float32_one : float32 1.
Proof. replace 1 with (bpow radix2 0) by reflexivity; apply generic_format_bpow; unfold FLT_exp; lia. Qed.

Example used_accept_test : rnd64 (0 * 1) < 1 <-> 0 * 1 < 1.
Proof. apply accept_test_exact; [exists 0%Z; split; [lia | simpl; lra] | exact float32_one]. Qed.
Example used_accept_grid : IZR 1 / 4 * 1 < 1 / 2 <-> (1 < Zceil (4 * (1 / 2 / 1)))%Z.
Proof. apply accept_grid; lra. Qed.
Example used_accept_probability : 0 <= IZR (Zceil (4 * (1 / 3))) / 4 - 1 / 3 < / 4.
Proof. apply accept_probability; lra. Qed.
Example used_sum : (1 - e64) ^ 1 * (1 + 1) <= float_sum (Add (Leaf 1) (Leaf 1)) <= (1 + e64) ^ 1 * (1 + 1).
Proof. apply (sum_any_order (Add (Leaf 1) (Leaf 1))); simpl; repeat split; try lra; try exact float64_one; lia. Qed.
Lemma float64_half : float64 (/ 2).
Proof. replace (/ 2) with (bpow radix2 (-1)) by (simpl; lra); apply generic_format_bpow; unfold FLT_exp; lia. Qed.
Example used_row_admitted : Rabs (exact_sum (Add (Leaf (/ 2)) (Leaf (/ 2))) - 1) <= / 100 + 2 * (INR 1 * e64).
Proof.
assert (E := e64_small); apply row_admitted; [| simpl; lia | simpl; lra | lra |].
- simpl; repeat split; try lra; exact float64_half.
- simpl; replace (/ 2 + / 2) with 1 by lra; unfold rnd64.
  rewrite round_generic; [rewrite Rminus_eq_0, Rabs_R0; lra | apply valid_rnd_N | exact float64_one].
Qed.
Example used_growth : (1 + / 16) ^ 2 / (1 - / 16) ^ 2 - 1 <= 4 * (INR 2 * / 16).
Proof. apply growth; simpl; lra. Qed.
Example used_tv : / 2 * cells (fun _ => 0) (fun _ => 0) 3 <= INR 3 * 1.
Proof. apply tv_from_cdf; intros; rewrite Rminus_eq_0, Rabs_R0; lra. Qed.

(** ** The tree of two weights, 1 and 3, and four uniforms *)

Lemma float64_two_powers : float64 3 /\ float64 4.
Proof.
split; [|replace 4 with (bpow radix2 2) by reflexivity; apply generic_format_bpow; unfold FLT_exp; lia].
apply generic_format_FLT, FLT_spec with (Float radix2 3 0); [unfold F2R; simpl; lra | simpl; lia | simpl; lia].
Qed.
Lemma one_and_three : float_sum (Add (Leaf 1) (Leaf 3)) = 4.
Proof.
simpl; unfold rnd64; replace (1 + 3) with 4 by lra; apply round_generic; [apply valid_rnd_N | apply float64_two_powers].
Qed.

Example used_descent_weight :
  below (Add (Leaf 1) (Leaf 3)) (descend 1 0 (Add (Leaf 1) (Leaf 3)))
  < below (Add (Leaf 1) (Leaf 3)) (S (descend 1 0 (Add (Leaf 1) (Leaf 3)))).
Proof.
apply descent_weight with (m := 1%nat) (c := 0); [| simpl; lia | | simpl; lra].
- simpl; repeat split; try lra; [exact float64_one | apply float64_two_powers].
- repeat split; simpl; try lra; apply generic_format_0.
Qed.

Definition one_three := 1 :: 3 :: nil.
Definition grid_cells := Z.to_nat (2 ^ 51).
Lemma four_uniforms : INR 4 * INR grid_cells * e64 = 1.
Proof. unfold grid_cells; rewrite (INR_IZR_INZ (Z.to_nat _)), Z2Nat.id by lia; rewrite e64E; simpl; lra. Qed.

Example used_row_error : / 2 * row_distance 1 4 one_three one_three 2 <= INR 2 * row_eta 1 4 0.
Proof.
apply (row_error 1 4 grid_cells 0 one_three one_three four_uniforms).
- simpl; rewrite e64E; lra.
- change (bpow radix2 (-900) <= float_sum (Add (Leaf 1) (Leaf 3))); rewrite one_and_three.
  replace 4 with (bpow radix2 2) by reflexivity; apply bpow_le; lia.
- simpl; lia.
- repeat constructor; unfold rounded; simpl; try lra; [exact float64_one | apply float64_two_powers].
- discriminate.
Qed.

Example used_excess : rounded 1 (Rmax (1 - 1) 0) (excess64 1 1).
Proof. exact (excess_rounded 1 1 float32_one float32_one). Qed.
Example used_excess_heavy : bpow radix2 (-149) <= excess64 1 0.
Proof. apply (excess_heavy 1 0 float32_one); [apply generic_format_0 | lra]. Qed.

(** A coin with odds of 1 to 4, and one that cannot lose. *)
Lemma four_heavy : bpow radix2 (-900) <= 4.
Proof. replace 4 with (bpow radix2 2) by reflexivity; apply bpow_le; lia. Qed.
Example used_coin_error :
  Rabs (INR (count (says_yes 4 1 4) 4) / INR 4 - Rmin 1 (1 / 4)) <= 4 * (INR (0 + 1 + 1) * e64) + / INR 4.
Proof.
apply (coin_error 4 grid_cells 0 1 1 4 1 4 four_uniforms); try lra; try exact four_heavy;
  try (unfold rounded; simpl; try rewrite e64E; lra).
Qed.
Example used_coin_sure : says_yes 4 4 4 3 = true.
Proof.
apply (coin_sure 4 grid_cells 0 1 4 4 4 4 four_uniforms); try lra; try lia; try exact four_heavy;
  try (unfold rounded; simpl; try rewrite e64E; lra).
Qed.
