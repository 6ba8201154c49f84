(** Floating point: sums in any order.

    What it says.
    - [sum_any_order]       nonnegative float64 numbers added in any order, any
      bracketing, of height n: between (1-e)^n and (1+e)^n times the exact sum,
      e = 2^-53.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/sums.py. *)

From Coq Require Import ZArith Reals Lra Lia List.
From Flocq Require Import Core Relative Plus_error.
From Proofs Require Import FloatAccept.
Open Scope R_scope.

Inductive bracketing := Leaf (x : R) | Add (a b : bracketing).
Fixpoint exact_sum t := match t with Leaf x => x | Add a b => exact_sum a + exact_sum b end.
Fixpoint float_sum t := match t with Leaf x => x | Add a b => rnd64 (float_sum a + float_sum b) end.
Fixpoint leaves_ok t := match t with Leaf x => 0 <= x /\ float64 x | Add a b => leaves_ok a /\ leaves_ok b end.
Fixpoint height t := match t with Leaf _ => O | Add a b => S (Nat.max (height a) (height b)) end.

Definition e64 := bpow radix2 (- 53).
Lemma e64E : e64 = / 9007199254740992.
Proof. reflexivity. Qed.
Lemma e64_small : 0 < e64 < 1 / 8.
Proof. rewrite e64E; lra. Qed.

Lemma float_sum_format : forall t, leaves_ok t -> float64 (float_sum t).
Proof. intros [x|a b] H; [apply H|]; simpl; apply generic_format_round; auto with typeclass_instances. Qed.

Lemma sum_nonneg : forall t, leaves_ok t -> 0 <= exact_sum t.
Proof. induction t as [x|a IHa b IHb]; simpl; [tauto|]; intros [A B]; specialize (IHa A); specialize (IHb B); lra. Qed.

Lemma rounded_add : forall x y, float64 x -> float64 y -> 0 <= x + y ->
  (1 - e64) * (x + y) <= rnd64 (x + y) <= (1 + e64) * (x + y).
Proof.
intros x y Fx Fy P; destruct (FLT_plus_error_N_ex radix2 (-1074) 53 (fun z => negb (Z.even z)) x y Fx Fy) as [eps [B E]].
unfold rnd64; rewrite E; assert (S := e64_small).
assert (U : u_ro radix2 53 = e64) by (unfold u_ro; change (/ 2 * / 4503599627370496 = / 9007199254740992); field).
rewrite U in B.
assert (B' : Rabs eps <= e64).
  { apply Rle_trans with (1 := B); apply Rmult_le_reg_r with (1 + e64); [lra|].
    unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; nra. }
apply Rabs_le_inv in B'; split; nra.
Qed.

Theorem sum_any_order : forall t n, leaves_ok t -> (height t <= n)%nat ->
  (1 - e64) ^ n * exact_sum t <= float_sum t <= (1 + e64) ^ n * exact_sum t.
Proof.
assert (S := e64_small).
induction t as [x|a IHa b IHb]; intros n Ok H.
- simpl in *; destruct Ok as [X _].
  assert (1 <= (1 + e64) ^ n) by (apply pow_R1_Rle; lra).
  assert ((1 - e64) ^ n <= 1) by (apply Rle_trans with (1 ^ n); [apply pow_incr | rewrite pow1]; lra).
  split; nra.
- destruct n as [|n]; [simpl in H; lia|].
  destruct Ok as [Oa Ob]; simpl in H.
  destruct (IHa n Oa ltac:(lia)) as [La Ua]; destruct (IHb n Ob ltac:(lia)) as [Lb Ub].
  assert (A0 := sum_nonneg a Oa); assert (B0 := sum_nonneg b Ob).
  assert (P0 : 0 <= (1 - e64) ^ n) by (apply pow_le; lra).
  assert (Q0 : 0 <= (1 + e64) ^ n) by (apply pow_le; lra).
  assert (N : 0 <= float_sum a + float_sum b) by nra.
  destruct (rounded_add _ _ (float_sum_format a Oa) (float_sum_format b Ob) N) as [L U].
  simpl exact_sum; simpl float_sum; simpl pow; split.
  + apply Rle_trans with (2 := L).
    replace ((1 - e64) * (1 - e64) ^ n * (exact_sum a + exact_sum b))
      with ((1 - e64) * ((1 - e64) ^ n * exact_sum a + (1 - e64) ^ n * exact_sum b)) by ring.
    apply Rmult_le_compat_l; lra.
  + apply Rle_trans with (1 := U).
    replace ((1 + e64) * (1 + e64) ^ n * (exact_sum a + exact_sum b))
      with ((1 + e64) * ((1 + e64) ^ n * exact_sum a + (1 + e64) ^ n * exact_sum b)) by ring.
    apply Rmult_le_compat_l; lra.
Qed.
