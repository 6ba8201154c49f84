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
    - [pick_error_sequential], [pick_error_scan]  at V = 262,144: at most 2^-15 (1 + 2^-16)
      for sums in any order whatever, at most 2^-27 for a parallel scan (height 36).

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

Theorem tv_from_cdf : forall F G eta n, (forall i, Rabs (F i - G i) <= eta) ->
  / 2 * cells F G n <= INR n * eta.
Proof.
intros F G eta n near; induction n as [|n IH]; [simpl; lra|].
rewrite S_INR; simpl cells.
assert (A := near (S n)); assert (B := near n).
assert (C : Rabs (F (S n) - F n - (G (S n) - G n)) <= 2 * eta).
  { replace (F (S n) - F n - (G (S n) - G n)) with ((F (S n) - G (S n)) + - (F n - G n)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_Ropp; lra. }
lra.
Qed.

(** V = 2^18; eta = 4 (n + 1) e + e: the sums and one more rounding, and the grid. *)
Theorem pick_error_sequential :
  2 ^ 18 * (4 * ((2 ^ 18 + 1) * e64) + e64) <= / 2 ^ 15 * (1 + / 2 ^ 16).
Proof. rewrite e64E; simpl pow; lra. Qed.

Theorem pick_error_scan : 2 ^ 18 * (4 * ((36 + 1) * e64) + e64) <= / 2 ^ 27.
Proof. rewrite e64E; simpl pow; lra. Qed.
