(** The theorems on floats that have hypotheses, applied: none of them is about nothing.

    What it says.  Nothing new.  One token of weight 1 stands first, 2^53 uniforms are
    asked, and it is chosen by all of them: the hypotheses of the whole choice hold, also
    at V = 262,144 with 262,143 tokens that have none.

    Source: ours. *)

From Coq Require Import ZArith Reals Lra Lia List.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept FloatSums FloatThreshold FloatPick.
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
Example used_running_max : 1 * 1 <= fold_right Rmax 1 (map (fun _ => 1) (seq 1 3)) <= 1 * 1.
Proof. apply (running_max_bound (fun _ => 1) (fun _ => 1)); intros; lra. Qed.
Example used_share : 1 / 2 * (1 / 2) <= 1 / 2 <= 2 / 1 * (1 / 2).
Proof. apply share_bound; lra. Qed.
Example used_sandwich : (0 < Zceil (/ e64 * (1 / ((1 - e64) * 1))))%Z.
Proof.
destruct (pick_sandwich 0 1 1) as [_ below]; [lia | | apply below].
- replace 1 with (bpow radix2 0) by reflexivity; apply bpow_le; lia.
- rewrite !Rmult_0_l; unfold rnd64; rewrite round_0; [lra | apply valid_rnd_N].
Qed.
Example used_growth : (1 + / 16) ^ 2 / (1 - / 16) ^ 2 - 1 <= 4 * (INR 2 * / 16).
Proof. apply growth; simpl; lra. Qed.
Example used_threshold :
  Rabs (IZR (Zceil (/ e64 * (1 / (1 * 2)))) / / e64 - 1 / 2) <= 4 * (INR 1 * e64) + e64.
Proof. apply (threshold_error 0); simpl; rewrite ?e64E; lra. Qed.
Example used_tv : / 2 * cells (fun _ => 0) (fun _ => 0) 3 <= INR 3 * 1.
Proof. apply tv_from_cdf; intros; rewrite Rminus_eq_0, Rabs_R0; lra. Qed.

(** The whole choice. *)
Section First.
Variable V : nat.
Hypothesis some : (0 < V)%nat.
Definition first_only (j : nat) := match j with O => 1 | _ => 0 end.
Definition uniforms := Z.to_nat (2 ^ 53).

Lemma all_uniforms : INR uniforms * e64 = 1.
Proof. unfold uniforms; rewrite INR_IZR_INZ, Z2Nat.id by lia; rewrite e64E; simpl; lra. Qed.
Lemma partial_first : forall j, partial first_only (S j) = 1.
Proof. induction j as [|j IH]; simpl in *; lra. Qed.
Lemma point_below : forall k, point V (fun _ => Leaf 1) k < 1 \/ (forall j, (0 < j < V)%nat -> first_only j = 0).
Proof. intro k; right; intros [|j] J; [lia|reflexivity]. Qed.

Ltac first_ok :=
  match goal with
  | |- (0 < _)%nat => assumption
  | |- INR 1 * e64 <= _ => simpl; rewrite e64E; lra
  | |- INR uniforms * e64 = 1 => exact all_uniforms
  | |- forall j, (j < _)%nat -> 0 <= _ => intros [|j] _; simpl; lra
  | |- forall j, (j < _)%nat -> leaves_ok _ /\ _ =>
      intros j _; rewrite partial_first; simpl; repeat split; try lra; try exact float64_one; lia
  | |- bpow _ _ <= _ =>
      change (bpow radix2 (-900) <= 1); apply Rle_trans with (bpow radix2 0); [apply bpow_le; lia | right; reflexivity]
  | |- forall k, (0 < _)%nat /\ _ => intro k; simpl; split; [assumption | lra]
  | |- forall k j, _ => intros; lia
  | |- forall k, _ \/ _ => exact point_below
  end.

Lemma first_choice : / 2 * distance V uniforms first_only (fun _ => O) V <= INR V * eta 0.
Proof. apply (pick_error V 0 uniforms first_only (fun _ => Leaf 1)); first_ok. Qed.
Lemma first_any : INR V = 2 ^ 18 -> / 2 * distance V uniforms first_only (fun _ => O) V <= / 2 ^ 15 * (1 + / 2 ^ 16).
Proof. intro v; apply (pick_error_any_order V 0 uniforms first_only (fun _ => Leaf 1)); try assumption; first_ok. Qed.
Lemma first_scan : INR V = 2 ^ 18 -> / 2 * distance V uniforms first_only (fun _ => O) V <= / 2 ^ 27.
Proof.
intro v; apply (pick_error_by_scan V 0 uniforms first_only (fun _ => Leaf 1)); try assumption; try lia; first_ok.
Qed.
End First.

Definition large := Z.to_nat (2 ^ 18).
Lemma large_is : INR large = 2 ^ 18.
Proof. unfold large; rewrite INR_IZR_INZ, Z2Nat.id by lia; simpl; lra. Qed.
Lemma large_some : (0 < large)%nat.
Proof. apply INR_lt; rewrite large_is; simpl; lra. Qed.

Example used_pick_error : / 2 * distance 2 uniforms first_only (fun _ => O) 2 <= INR 2 * eta 0.
Proof. apply first_choice; lia. Qed.
Example used_any_order : / 2 * distance large uniforms first_only (fun _ => O) large <= / 2 ^ 15 * (1 + / 2 ^ 16).
Proof. exact (first_any large large_some large_is). Qed.
Example used_by_scan : / 2 * distance large uniforms first_only (fun _ => O) large <= / 2 ^ 27.
Proof. exact (first_scan large large_some large_is). Qed.
