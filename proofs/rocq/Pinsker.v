(** Pinsker's inequality, for rows over any vocabulary: the total variation is at most sqrt (KL / 2).

    What it says.  p and q are rows over a list of tokens, and q gives a chance to whatever p gives one.
    [divergence] is sum_y p y ln (p y / q y), in nats; [total_variation] is half of sum_y |p y - q y|.
    - [ln_above]    5/2 - 1 / (4 t) - 27 / (4 (t + 2)) <= ln t, with equality at 1;
    - [at_one_token] what that gives for one token, and any tangent of a square;
    - [pinsker]     2 total_variation^2 <= divergence, and [pinsker_root] its root.
    Over Coq's real numbers and on their axioms.

    Source: seed 004, Lemma 3.5; Tsybakov 2009, Lemma 2.5, whose bound of one token this is. *)

From Coq Require Import Reals Lra List.
From Proofs Require Import Entropy.
Open Scope R_scope.

(** What ln is above the bound, but for 5/2. Its slope has the sign of t - 1. *)
Definition gap (t : R) : R := ln t + (/ 4 * (1 / t) + 27 / 4 * (1 / (t + 2))).
Definition slope (t : R) : R := (t - 1) ^ 3 / (t ^ 2 * (t + 2) ^ 2).

Lemma slope_sign : forall t c, 0 < c -> 0 <= (t - 1) * (c - 1) -> 0 <= (t - 1) * slope c.
Proof.
intros t c c0 side; unfold slope.
replace ((t - 1) * ((c - 1) ^ 3 / (c ^ 2 * (c + 2) ^ 2))) with ((t - 1) * (c - 1) * (((c - 1) / (c * (c + 2))) ^ 2))
  by (field; lra).
apply Rmult_le_pos; [exact side | apply pow2_ge_0].
Qed.

Lemma gap_least : forall t, 0 < t -> gap 1 <= gap t.
Proof.
assert (gap_slope : forall t, 0 < t -> derivable_pt_lim gap t (slope t)).
  intros t t0; set (first := (0 * id t - 1 * fct_cte 1 t) / Rsqr (id t)).
  set (second := (0 * plus_fct id (fct_cte 2) t - (1 + 0) * fct_cte 1 t) / Rsqr (plus_fct id (fct_cte 2) t)).
  replace (slope t) with (/ t + (/ 4 * first + 27 / 4 * second))
    by (unfold slope, first, second, Rsqr, plus_fct, fct_cte, id; field; lra).
  change (derivable_pt_lim (plus_fct ln (plus_fct (mult_real_fct (/ 4) (div_fct (fct_cte 1) id))
    (mult_real_fct (27 / 4) (div_fct (fct_cte 1) (plus_fct id (fct_cte 2)))))) t (/ t + (/ 4 * first + 27 / 4 * second))).
  apply derivable_pt_lim_plus; [apply derivable_pt_lim_ln; exact t0|].
  apply derivable_pt_lim_plus; apply derivable_pt_lim_scal; apply derivable_pt_lim_div;
    try apply derivable_pt_lim_plus; try apply derivable_pt_lim_const; try apply derivable_pt_lim_id;
    unfold plus_fct, fct_cte, id; lra.
intros t t0; destruct (Rtotal_order t 1) as [lt|[->|gt]]; [|right; reflexivity|].
  destruct (MVT_cor2 gap slope t 1 lt) as [c [e between]]; [intros c b; apply gap_slope; lra|].
  assert (H := slope_sign t c ltac:(lra)); nra.
destruct (MVT_cor2 gap slope 1 t gt) as [c [e between]]; [intros c b; apply gap_slope; lra|].
assert (H := slope_sign t c ltac:(lra)); nra.
Qed.

Theorem ln_above : forall t, 0 < t -> 5 / 2 - / (4 * t) - 27 / (4 * (t + 2)) <= ln t.
Proof.
intros t t0; assert (H := gap_least t t0).
unfold gap in H; rewrite ln_1 in H.
replace (/ (4 * t)) with (/ 4 * (1 / t)) by (field; lra).
replace (27 / (4 * (t + 2))) with (27 / 4 * (1 / (t + 2))) by (field; lra).
lra.
Qed.

(** c: where the square is replaced by its tangent. *)
Lemma at_one_token : forall c p q, 0 <= p -> 0 <= q -> (0 < p -> 0 < q) ->
  p - q + 3 / 2 * (2 * c * Rabs (p - q) - c ^ 2 * (p + 2 * q)) <= p * ln (p / q).
Proof.
intros c p q [p0|<-] q0 both.
2: rewrite Rmult_0_l, Rminus_0_l, Rabs_Ropp, Rabs_pos_eq by exact q0.
2: assert (H := Rmult_le_pos _ _ q0 (pow2_ge_0 (c - / 2))); nra.
specialize (both p0); assert (t0 : 0 < p / q) by (apply Rdiv_lt_0_compat; assumption).
apply Rle_trans with (p - q + 3 / 2 * ((p - q) ^ 2 / (p + 2 * q))).
  assert (tangent : 2 * c * Rabs (p - q) - c ^ 2 * (p + 2 * q) <= (p - q) ^ 2 / (p + 2 * q)).
    rewrite <- (pow2_abs (p - q)); set (a := Rabs (p - q)).
    assert (H : a ^ 2 / (p + 2 * q) - (2 * c * a - c ^ 2 * (p + 2 * q)) = (a - c * (p + 2 * q)) ^ 2 / (p + 2 * q)) by (field; lra).
    assert (0 <= (a - c * (p + 2 * q)) ^ 2 / (p + 2 * q)) by (apply Rmult_le_pos; [apply pow2_ge_0 | left; apply Rinv_0_lt_compat; lra]).
    lra.
  lra.
apply Rle_trans with (p * (5 / 2 - / (4 * (p / q)) - 27 / (4 * (p / q + 2)))).
  right; field; lra.
apply Rmult_le_compat_l; [lra | apply ln_above; exact t0].
Qed.

Section Rows.
Variables (Y : Type) (vocabulary : list Y).
Implicit Types p q : Y -> R.

Definition divergence p q : R := sum_of vocabulary (fun y => p y * ln (p y / q y)).
Definition total_variation p q : R := / 2 * sum_of vocabulary (fun y => Rabs (p y - q y)).

Theorem pinsker : forall p q, (forall y, 0 <= p y) -> (forall y, 0 <= q y) -> (forall y, 0 < p y -> 0 < q y) ->
  sum_of vocabulary p = 1 -> sum_of vocabulary q = 1 -> 2 * total_variation p q ^ 2 <= divergence p q.
Proof.
intros p q p0 q0 both p1 q1; set (c := 2 / 3 * total_variation p q).
assert (H := sum_of_le _ vocabulary _ _ (fun y _ => at_one_token c (p y) (q y) (p0 y) (q0 y) (both y))).
fold (divergence p q) in H; refine (Rle_trans _ _ _ (Req_le _ _ _) H); clear H.
assert (e : sum_of vocabulary (fun y => p y - q y + 3 / 2 * (2 * c * Rabs (p y - q y) - c ^ 2 * (p y + 2 * q y)))
  = sum_of vocabulary p + -1 * sum_of vocabulary q + 3 * c * sum_of vocabulary (fun y => Rabs (p y - q y))
    + - (3 / 2) * c ^ 2 * (sum_of vocabulary p + 2 * sum_of vocabulary q)).
  rewrite <- !sum_of_scale, <- !sum_of_add, <- sum_of_scale, <- sum_of_add.
  apply sum_of_ext; intros y _; lra.
rewrite e, p1, q1; unfold c, total_variation; field.
Qed.

Theorem pinsker_root : forall p q, (forall y, 0 <= p y) -> (forall y, 0 <= q y) -> (forall y, 0 < p y -> 0 < q y) ->
  sum_of vocabulary p = 1 -> sum_of vocabulary q = 1 -> total_variation p q <= sqrt (divergence p q / 2).
Proof.
intros p q p0 q0 both p1 q1; assert (H := pinsker p q p0 q0 both p1 q1).
assert (t0 : 0 <= total_variation p q) by (unfold total_variation; apply Rmult_le_pos; [lra | apply sum_of_ge0; intro y; apply Rabs_pos]).
rewrite <- (sqrt_pow2 (total_variation p q) t0); apply sqrt_le_1_alt; lra.
Qed.
End Rows.
