(** Floating point: the whole choice.

    What it says.  [pick_error]: when tokens are chosen by the first computed partial sum
    that exceeds u * total, the share of the 2^53 uniforms that choose each token is within
    V (4 (n+1) e + e) of its weight, in total variation.
    [pick_error_any_order], [pick_error_by_scan]: at V = 262,144 that is at most
    2^-15 (1 + 2^-16) for sums in any order whatever, 2^-27 for a scan of height 36.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/coins.py. *)

From Coq Require Import ZArith Reals Lra Lia List.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept FloatSums FloatThreshold.
Open Scope R_scope.

Fixpoint partial (w : nat -> R) i := match i with O => 0 | S j => partial w j + w j end.
Fixpoint count (test : nat -> bool) n := match n with O => O | S m => (count test m + if test m then 1 else 0)%nat end.

Lemma count_between : forall test a b n,
  (forall k, (k < a)%nat -> (k < n)%nat -> test k = true) ->
  (forall k, (k < n)%nat -> test k = true -> (k < b)%nat) ->
  (Nat.min a n <= count test n <= Nat.min b n)%nat.
Proof.
intros test a b n; induction n as [|n IH]; intros A B; simpl count; [lia|].
assert (H := IH (fun k K N => A k K ltac:(lia)) (fun k K T => B k ltac:(lia) T)).
destruct (test n) eqn:T; [assert (n < b)%nat by (apply B; [lia|exact T]); lia|].
assert (~ (n < a)%nat) by (intro L; rewrite (A n L ltac:(lia)) in T; discriminate); lia.
Qed.

Lemma partial_mono : forall w V i j, (forall k, (k < V)%nat -> 0 <= w k) -> (i <= j <= V)%nat ->
  partial w i <= partial w j.
Proof.
intros w V i j W [I J]; induction I as [|j I IH]; [lra|]; simpl.
assert (0 <= w j) by (apply W; lia); specialize (IH ltac:(lia)); lra.
Qed.

(** The last token below i that has weight; all the weight below i is at or before it. *)
Lemma last_weight : forall w V i, (forall k, (k < V)%nat -> 0 <= w k) -> (i <= V)%nat ->
  partial w i = 0 \/ exists j, (j < i)%nat /\ 0 < w j /\ partial w (S j) = partial w i.
Proof.
intros w V i W; induction i as [|i IH]; intro I; [now left|].
destruct (Rle_lt_or_eq_dec 0 (w i) (W i ltac:(lia))) as [P|E]; [right; exists i; repeat split; auto with arith|].
destruct (IH ltac:(lia)) as [Z|[j [J [P Q]]]]; simpl; rewrite <- E, Rplus_0_r; [now left|right].
exists j; repeat split; auto with arith.
Qed.

Section Choice.
Variables (V n N : nat) (w : nat -> R) (sums : nat -> bracketing) (chosen : nat -> nat).
Definition weight := partial w V.
Definition computed j := float_sum (sums j).
(** The k-th uniform times the computed total. *)
Definition point k := rnd64 (IZR (Z.of_nat k) * e64 * computed (V - 1)).

Hypothesis some : (0 < V)%nat.
Hypothesis shallow : INR (S n) * e64 <= 1 / 8.
Hypothesis all_uniforms : INR N * e64 = 1.
Hypothesis w_pos : forall j, (j < V)%nat -> 0 <= w j.
Hypothesis sums_ok : forall j, (j < V)%nat ->
  leaves_ok (sums j) /\ (height (sums j) <= n)%nat /\ exact_sum (sums j) = partial w (S j).
Hypothesis not_tiny : bpow radix2 (-900) <= computed (V - 1).
(** First the weights: only a token that has some is chosen.  It is the first such token
    whose sum exceeds the point, or where there is none the last such token. *)
Hypothesis chosen_weight : forall k, (chosen k < V)%nat /\ 0 < w (chosen k).
Hypothesis chosen_first : forall k j, (j < V)%nat -> 0 < w j -> point k < computed j -> (chosen k <= j)%nat.
Hypothesis chosen_exceeds : forall k, point k < computed (chosen k) \/
  (forall j, (chosen k < j < V)%nat -> w j = 0).

Definition eta := 4 * (INR (S n) * e64) + e64.
Definition share_below i := INR (count (fun k => Nat.ltb (chosen k) i) N) * e64.

Lemma computed_near : forall j, (j < V)%nat ->
  (1 - e64) ^ n * partial w (S j) <= computed j <= (1 + e64) ^ n * partial w (S j).
Proof. intros j J; destruct (sums_ok j J) as [L [H <-]]; now apply sum_any_order. Qed.

Lemma share_below_near : forall i, (i <= V)%nat -> Rabs (share_below i - partial w i / weight) <= eta.
Proof.
intros i I; assert (E := e64_small); assert (I0 : 0 < / e64) by (apply Rinv_0_lt_compat; lra).
assert (Eta : 0 <= eta) by (unfold eta; assert (0 <= INR (S n)) by apply pos_INR; nra).
assert (Top : partial w (S (V - 1)) = weight) by (unfold weight; f_equal; lia).
assert (G := computed_near (V - 1) ltac:(lia)); rewrite Top in G.
assert (HI : 0 < (1 + e64) ^ n) by (apply pow_lt; lra).
assert (LO : 0 < (1 - e64) ^ n) by (apply pow_lt; lra).
assert (LH : (1 - e64) ^ n <= (1 + e64) ^ n) by (apply pow_incr; lra).
assert (G0 := bpow_gt_0 radix2 (-900)).
assert (T : 0 < weight) by nra.
assert (C0 : 0 <= partial w i) by (apply (partial_mono w V 0 i); auto; lia).
assert (CT : partial w i <= weight) by (apply (partial_mono w V i V); auto; lia).
assert (Q : 0 <= partial w i / weight <= 1).
{ split; [apply Rmult_le_pos; [lra | apply Rlt_le, Rinv_0_lt_compat, T]|].
  apply Rmult_le_reg_r with weight; [exact T|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra. }
destruct (Req_dec (partial w i) weight) as [Full|Less].
{ (* no weight at or after i: everything is chosen below it *)
  assert (B := count_between (fun k => Nat.ltb (chosen k) i) N N N).
  destruct B as [B _]; [intros k K _| now intros |].
  - apply Nat.ltb_lt; destruct (chosen_weight k) as [c P].
    destruct (Nat.lt_ge_cases (chosen k) i) as [|ge]; [assumption|exfalso].
    assert (A := partial_mono w V i (chosen k) w_pos ltac:(lia)).
    assert (B := partial_mono w V (S (chosen k)) V w_pos ltac:(lia)); simpl in B; unfold weight in *; lra.
  - rewrite Nat.min_id in B; apply le_INR in B; rewrite Full; unfold share_below, Rdiv; rewrite Rinv_r by lra.
    assert (U : (count (fun k => Nat.ltb (chosen k) i) N <= N)%nat).
    { clear; induction N as [|m IH]; simpl; [lia|destruct (Nat.ltb (chosen m) i); lia]. }
    apply le_INR in U; replace (INR _) with (INR N) by lra; rewrite all_uniforms, Rminus_eq_0, Rabs_R0; exact Eta. }
(* some token at or after i has weight, so a choice below i exceeded its point *)
assert (Exceeds : forall k, (chosen k < i)%nat -> point k < computed (chosen k)).
{ intros k K; destruct (chosen_exceeds k) as [|none]; [assumption|exfalso; apply Less].
  destruct (last_weight w V V w_pos ltac:(lia)) as [Z|[j [J [P S0]]]]; [unfold weight in *; lra|].
  assert (j <= chosen k)%nat.
  { destruct (Nat.le_gt_cases j (chosen k)); [assumption|]; rewrite (none j) in P by lia; lra. }
  assert (A := partial_mono w V (S j) i w_pos ltac:(lia)); unfold weight in *; lra. }
set (m := (1 + e64) ^ n * partial w i).
set (b := Z.to_nat (Zceil (/ e64 * (m / ((1 - e64) * computed (V - 1)))))).
assert (Up : forall k, (k < N)%nat -> Nat.ltb (chosen k) i = true -> (k < b)%nat).
{ intros k _ K; apply Nat.ltb_lt in K; assert (X := Exceeds k K).
  assert (Y : computed (chosen k) <= m).
  { destruct (computed_near (chosen k) ltac:(lia)) as [_ Y]; apply Rle_trans with (1 := Y).
    apply Rmult_le_compat_l; [lra|]; apply (partial_mono w V); auto; lia. }
  destruct (pick_sandwich (Z.of_nat k) (computed (V - 1)) m ltac:(lia) not_tiny) as [_ P].
  assert (Z := P (Rlt_le_trans _ _ _ X Y)); unfold b; lia. }
assert (Tb := threshold_error n (partial w i) weight m (computed (V - 1)) (1 - e64) shallow (conj C0 CT) T
  ltac:(unfold m; split; [apply Rmult_le_compat_r|]; lra) G ltac:(lra)).
assert (B0 : (0 <= Zceil (/ e64 * (m / ((1 - e64) * computed (V - 1)))))%Z).
{ apply le_IZR; apply Rle_trans with (2 := Zceil_ub _); apply Rmult_le_pos; [lra|].
  apply Rmult_le_pos; [unfold m; nra | apply Rlt_le, Rinv_0_lt_compat; nra]. }
assert (Share : forall c, INR c * e64 = INR c / / e64) by (intro c; unfold Rdiv; rewrite Rinv_inv; reflexivity).
assert (Eb : INR b = IZR (Zceil (/ e64 * (m / ((1 - e64) * computed (V - 1)))))).
{ unfold b; rewrite INR_IZR_INZ, Z2Nat.id by exact B0; reflexivity. }
rewrite <- Eb, <- Share in Tb; apply Rabs_le_inv in Tb; fold eta in Tb.
destruct (last_weight w V i w_pos I) as [Z|[j [J [P S0]]]].
{ (* nothing below i has weight: nothing is chosen there *)
  destruct (count_between (fun k => Nat.ltb (chosen k) i) 0 0 N) as [_ U]; [lia| |].
  - intros k _ K; exfalso; apply Nat.ltb_lt in K; destruct (chosen_weight k) as [c P].
    assert (A := partial_mono w V (S (chosen k)) i w_pos ltac:(lia)).
    assert (A0 := partial_mono w V 0 (chosen k) w_pos ltac:(lia)); simpl in A, A0; lra.
  - simpl in U; apply Nat.le_0_r in U; unfold share_below; rewrite U, Z; simpl.
    unfold Rdiv; rewrite !Rmult_0_l, Rminus_0_r, Rabs_R0; exact Eta. }
set (a := Z.to_nat (Zceil (/ e64 * (computed j / ((1 + e64) * computed (V - 1)))))).
assert (Nj := computed_near j ltac:(lia)); rewrite S0 in Nj.
assert (Down : forall k, (k < a)%nat -> (k < N)%nat -> Nat.ltb (chosen k) i = true).
{ intros k K _; apply Nat.ltb_lt.
  destruct (pick_sandwich (Z.of_nat k) (computed (V - 1)) (computed j) ltac:(lia) not_tiny) as [D _].
  assert (X : point k < computed j) by (apply D; unfold a in K; lia).
  assert (chosen k <= j)%nat by (apply chosen_first; auto; lia); lia. }
assert (Ta := threshold_error n (partial w i) weight (computed j) (computed (V - 1)) (1 + e64) shallow (conj C0 CT) T
  Nj G ltac:(lra)).
assert (A0 : (0 <= Zceil (/ e64 * (computed j / ((1 + e64) * computed (V - 1)))))%Z).
{ apply le_IZR; apply Rle_trans with (2 := Zceil_ub _); apply Rmult_le_pos; [lra|].
  apply Rmult_le_pos; [nra | apply Rlt_le, Rinv_0_lt_compat; nra]. }
assert (Ea : INR a = IZR (Zceil (/ e64 * (computed j / ((1 + e64) * computed (V - 1)))))).
{ unfold a; rewrite INR_IZR_INZ, Z2Nat.id by exact A0; reflexivity. }
rewrite <- Ea, <- Share in Ta; apply Rabs_le_inv in Ta; fold eta in Ta.
destruct (count_between (fun k => Nat.ltb (chosen k) i) a b N Down Up) as [L U].
assert (U' : INR (count (fun k => Nat.ltb (chosen k) i) N) <= INR b) by (apply le_INR; lia).
unfold share_below; apply Rabs_le; split; [|nra].
destruct (Nat.le_ge_cases a N) as [aN|Na].
- assert (L' : INR a <= INR (count (fun k => Nat.ltb (chosen k) i) N)) by (apply le_INR; lia); nra.
- assert (L' : INR N <= INR (count (fun k => Nat.ltb (chosen k) i) N)) by (apply le_INR; lia); nra.
Qed.

(** How often token i is chosen, and how far all of that is from the weights. *)
Definition share i := INR (count (fun k => Nat.eqb (chosen k) i) N) * e64.
Fixpoint distance v := match v with O => 0 | S i => distance i + Rabs (share i - w i / weight) end.

Lemma share_step : forall i, share_below (S i) - share_below i = share i.
Proof.
intro i; unfold share_below, share; rewrite <- Rmult_minus_distr_r, <- minus_INR.
- f_equal; f_equal; clear; induction N as [|m IH]; [reflexivity|]; simpl.
  assert (count (fun k => chosen k <? i) m <= count (fun k => chosen k <? S i) m)%nat.
  { clear; induction m as [|m IH]; [auto|]; simpl.
    destruct (Nat.ltb_spec (chosen m) i), (Nat.ltb_spec (chosen m) (S i)); lia. }
  destruct (Nat.ltb_spec (chosen m) i), (Nat.ltb_spec (chosen m) (S i)), (Nat.eqb_spec (chosen m) i); lia.
- clear; induction N as [|m IH]; [auto|]; simpl.
  destruct (Nat.ltb_spec (chosen m) i), (Nat.ltb_spec (chosen m) (S i)); lia.
Qed.

Theorem pick_error : / 2 * distance V <= INR V * eta.
Proof.
apply Rle_trans with (2 := tv_from_cdf share_below (fun i => partial w i / weight) eta V share_below_near).
right; f_equal; generalize V at 1 2; intro v; induction v as [|v IH]; [reflexivity|]; simpl; rewrite IH.
f_equal; rewrite share_step; f_equal; f_equal; unfold Rdiv; ring.
Qed.

(** V = 262,144: added up in any order, or by a parallel scan. *)
Corollary pick_error_any_order : INR V = 2 ^ 18 -> (n < V)%nat -> / 2 * distance V <= / 2 ^ 15 * (1 + / 2 ^ 16).
Proof.
intros v nV; apply Rle_trans with (1 := pick_error); rewrite v; unfold eta.
assert (L : INR (S n) <= 2 ^ 18) by (rewrite <- v; apply le_INR; lia).
rewrite e64E; simpl pow in *; lra.
Qed.

Corollary pick_error_by_scan : INR V = 2 ^ 18 -> (n <= 36)%nat -> / 2 * distance V <= / 2 ^ 27.
Proof.
intros v nV; apply Rle_trans with (1 := pick_error); rewrite v; unfold eta.
assert (L : INR (S n) <= 37) by (replace 37 with (INR 37) by (simpl; lra); apply le_INR; lia).
rewrite e64E; simpl pow in *; lra.
Qed.

End Choice.
