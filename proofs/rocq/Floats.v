(** Floating point: the two comparisons that every draw comes down to.

    What it says.
    - [accept_test_exact]   u on the 24-bit grid, p and q float32: the float64 product
      u * q is exact, so the float64 test  u * q < p  is the real-number test;
    - [accept_grid]         hence accepted at exactly the grid points k < 2^24 p / q, and
      [accept_probability] their share exceeds p / q by less than 2^-24;
    - [sum_any_order]       nonnegative float64 numbers added in any order, any
      bracketing, of height n: between (1-e)^n and (1+e)^n times the exact sum,
      e = 2^-53;
    - [running_max_bound]   the same holds for the running maximum of such partial
      sums, which is what "first i with u * total < cdf[i]" looks at;
    - [share_bound]         so each threshold cdf/total is off by at most a factor
      (1+e)^n/(1-e)^n - with [growth], by at most 4 n e for n e <= 1/8;
    - [pick_sandwich]       the 53-bit uniforms u with round(u * total) < cdf are sandwiched
      between two initial segments of the grid: one more rounding, and 2^-53 for the grid;
    - [threshold_error]     both ends are within 4 (n+1) e + e of the exact threshold;
    - [tv_from_cdf]         V cells whose thresholds are each off by at most eta are off
      by at most V * eta in total variation;
    - [pick_error]  all of it as one statement about the choice that runs: the share of the
      uniforms that choose each token is within V (4 (n+1) e + e) of its weight in total
      variation; [pick_error_any_order], [pick_error_by_scan]  at V = 262,144: at most
      2^-15 (1 + 2^-16) for sums in any order whatever, 2^-27 for a scan of height 36.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/coins.py. *)

From Coq Require Import ZArith Reals Lra Lia List.
From Flocq Require Import Core Relative Plus_error.
Open Scope R_scope.

Definition float32 : R -> Prop := generic_format radix2 (FLT_exp (-149) 24).
Definition float64 : R -> Prop := generic_format radix2 (FLT_exp (-1074) 53).
Definition rnd64 : R -> R := round radix2 (FLT_exp (-1074) 53) ZnearestE.
Definition grid (bits : Z) (u : R) : Prop := exists k, (0 <= k < 2 ^ bits)%Z /\ u = IZR k * bpow radix2 (- bits).

Instance prec24 : Prec_gt_0 24 := eq_refl.
Instance prec53 : Prec_gt_0 53 := eq_refl.

(** ** The acceptance test *)

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

(** ** Sums in any order *)

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

(** [c] rises; every computed partial sum is within [lo, hi] of its own; so is the
    largest one so far. *)
Theorem running_max_bound : forall (c f : nat -> R) lo hi, 0 <= lo -> 0 <= hi ->
  (forall i, 0 <= c i <= c (S i)) -> (forall i, lo * c i <= f i <= hi * c i) ->
  forall i, lo * c i <= fold_right Rmax (f O) (map f (seq 1 i)) <= hi * c i.
Proof.
intros c f lo hi L0 H0 up near i.
assert (mono : forall j k, (j <= k)%nat -> c j <= c k).
  { intros j k J; induction J as [|k J IH]; [lra|]; specialize (up k); lra. }
assert (top : forall l, (forall j, In j l -> (j <= i)%nat) -> fold_right Rmax (f O) (map f l) <= hi * c i).
  { induction l as [|j l IH]; simpl; intro inside.
    - destruct (near O) as [_ U]; apply Rle_trans with (1 := U), Rmult_le_compat_l; [lra|apply mono; lia].
    - apply Rmax_lub; [|apply IH; auto].
      destruct (near j) as [_ U]; apply Rle_trans with (1 := U), Rmult_le_compat_l; [lra|apply mono, inside; auto]. }
assert (bottom : forall l, In i l \/ i = O -> f i <= fold_right Rmax (f O) (map f l)).
  { induction l as [|j l IH]; simpl; intros [I|E]; subst; try tauto; try lra.
    - destruct I as [->|I]; [apply Rmax_l | eapply Rle_trans; [apply IH; auto | apply Rmax_r]].
    - eapply Rle_trans; [apply IH; auto | apply Rmax_r]. }
split.
- apply Rle_trans with (f i); [apply near|]; apply bottom.
  destruct i; [auto|left; apply in_seq; lia].
- apply top; intros j J; apply in_seq in J; lia.
Qed.

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

(** ** The whole choice *)
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
