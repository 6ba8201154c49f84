(** Entropy is superadditive, so more features cannot hurt.

    What it says.  A row of weights v over a list of tokens has the uncertainty
    sum_y v y ln (total v / v y): the entropy, weighted, of v normalised.
    - [log_sum]              two terms of the log-sum inequality, zeros included;
    - [entropy_superadditive]  the uncertainty of u + v is at least that of u and of v:
      what BayesRisk.more_features_cannot_hurt asks of an uncertainty;
    - [features_cannot_raise_entropy]  H(Y | A, B) <= H(Y | A), so
      [information_monotone]  I(Y; A, B) >= I(Y; A);
    - [gibbs], [gibbs_reached]  no predictor has a cross-entropy below the uncertainty, and
      the posterior has exactly that: so the least cross-entropy from (a, b) is H(Y | A, B).
    In nats, over Coq's real numbers and on their axioms.

    Source: Cover and Thomas, Thm 2.7.1 and 2.6.5; seed 004, Lemma 3.4. *)

From Coq Require Import Reals Lra List.
Open Scope R_scope.

Section Sums.
Variable A : Type.
Fixpoint sum_of (s : list A) (f : A -> R) : R := match s with nil => 0 | x :: s' => f x + sum_of s' f end.

Lemma sum_of_le : forall s f g, (forall x, In x s -> f x <= g x) -> sum_of s f <= sum_of s g.
Proof.
induction s as [|x s IH]; intros f g le; simpl; [lra|].
apply Rplus_le_compat; [apply le; left; reflexivity | apply IH; intros y i; apply le; right; exact i].
Qed.
Lemma sum_of_ext : forall s f g, (forall x, In x s -> f x = g x) -> sum_of s f = sum_of s g.
Proof. intros s f g e; apply Rle_antisym; apply sum_of_le; intros x i; rewrite (e x i); lra. Qed.
Lemma sum_of_add : forall s f g, sum_of s (fun x => f x + g x) = sum_of s f + sum_of s g.
Proof. induction s as [|x s IH]; intros f g; simpl; [lra | rewrite IH; lra]. Qed.
Lemma sum_of_scale : forall s c f, sum_of s (fun x => c * f x) = c * sum_of s f.
Proof. induction s as [|x s IH]; intros c f; simpl; [lra | rewrite IH; lra]. Qed.
Lemma sum_of_ge0 : forall s f, (forall x, 0 <= f x) -> 0 <= sum_of s f.
Proof. induction s as [|x s IH]; intros f f0; simpl; [lra | specialize (f0 x) as H; specialize (IH f f0); lra]. Qed.
Lemma sum_of_term : forall s f x, (forall y, 0 <= f y) -> In x s -> f x <= sum_of s f.
Proof.
induction s as [|y s IH]; intros f x f0 i; [destruct i|].
assert (rest := sum_of_ge0 s f f0); simpl; destruct i as [->|i]; [lra|].
specialize (IH f x f0 i); specialize (f0 y); lra.
Qed.
End Sums.
Arguments sum_of {A} s f.

(** The line above the logarithm. *)
Lemma ln_below : forall t, 0 < t -> ln t <= t - 1.
Proof.
intros t t0; destruct (Req_dec (ln t) 0) as [e|n]; [rewrite e; apply f_equal with (f := exp) in e; rewrite exp_ln, exp_0 in e; lra|].
assert (H := exp_ineq1 (ln t) n); rewrite exp_ln in H; lra.
Qed.

Lemma ln_le_mono : forall s t, 0 < s -> s <= t -> ln s <= ln t.
Proof. intros s t s0 [lt|<-]; [left; apply ln_increasing; assumption | right; reflexivity]. Qed.

(** What a weight a adds to the uncertainty of a row with this total. *)
Definition surprise (whole a : R) : R := a * ln (whole / a).

Lemma surprise0 : forall whole, surprise whole 0 = 0.
Proof. intro whole; unfold surprise; lra. Qed.

(** A larger whole makes a part more of a surprise. *)
Lemma surprise_le : forall whole whole' a, 0 <= a -> a <= whole -> whole <= whole' -> surprise whole a <= surprise whole' a.
Proof.
intros whole whole' a [a0|<-] aw le; [|rewrite !surprise0; lra].
apply Rmult_le_compat_l; [lra|]; apply ln_le_mono.
  apply Rdiv_lt_0_compat; lra.
apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat|]; lra.
Qed.

Theorem log_sum : forall U V u v, 0 <= u -> u <= U -> 0 <= v -> v <= V ->
  surprise U u + surprise V v <= surprise (U + V) (u + v).
Proof.
intros U V u v [u0|<-] uU [v0|<-] vV.
2: rewrite surprise0, !Rplus_0_r; apply surprise_le; lra.
2: rewrite surprise0, !Rplus_0_l; apply surprise_le; lra.
2: rewrite !Rplus_0_r, !surprise0; lra.
set (mean := (U + V) / (u + v)).
assert (m0 : 0 < mean) by (apply Rdiv_lt_0_compat; lra).
assert (part : forall W w, 0 < w -> w <= W -> w * ln (W / w) <= w * ln mean + (W / mean - w)).
  intros W w w0 le; assert (r0 : 0 < W / w) by (apply Rdiv_lt_0_compat; lra).
  assert (H := ln_below (W / w / mean) ltac:(apply Rdiv_lt_0_compat; assumption)).
  unfold Rdiv in H at 1; rewrite ln_mult, ln_Rinv in H; try assumption; [|apply Rinv_0_lt_compat; assumption].
  apply Rle_trans with (w * (ln mean + (W / w / mean - 1))); [apply Rmult_le_compat_l; lra|].
  right; field; lra.
assert (all : U / mean + V / mean = u + v) by (unfold mean; field; lra).
unfold surprise; fold mean; assert (pu := part U u u0 uU); assert (pv := part V v v0 vV).
apply Rle_trans with (u * ln mean + (U / mean - u) + (v * ln mean + (V / mean - v))); [lra|].
right; lra.
Qed.

Section Rows.
Variables (Y : Type) (vocabulary : list Y).
Implicit Types u v : Y -> R.

Definition uncertainty (v : Y -> R) : R := sum_of vocabulary (fun y => surprise (sum_of vocabulary v) (v y)).

Theorem entropy_superadditive : forall u v, (forall y, 0 <= u y) -> (forall y, 0 <= v y) ->
  uncertainty u + uncertainty v <= uncertainty (fun y => u y + v y).
Proof.
intros u v u0 v0; unfold uncertainty; rewrite sum_of_add, <- sum_of_add.
apply sum_of_le; intros y i; apply log_sum; try apply sum_of_term; trivial.
Qed.

Lemma uncertainty0 : uncertainty (fun _ => 0) = 0.
Proof.
unfold uncertainty; rewrite sum_of_ext with (g := fun _ => 0 * 0); [rewrite sum_of_scale; lra|].
intros y _; rewrite surprise0; lra.
Qed.

(** No predictor does better than the row's own uncertainty ... *)
Theorem gibbs : forall v r, (forall y, 0 <= v y) -> (forall y, 0 < r y) -> sum_of vocabulary r <= 1 ->
  uncertainty v <= sum_of vocabulary (fun y => v y * - ln (r y)).
Proof.
intros v r v0 r0 r1; unfold uncertainty; set (whole := sum_of vocabulary v).
assert (w0 : 0 <= whole) by (apply sum_of_ge0; exact v0).
assert (each : forall y, In y vocabulary ->
    surprise whole (v y) + v y <= v y * - ln (r y) + whole * r y).
  intros y i; assert (part := sum_of_term Y vocabulary v y v0 i); fold whole in part.
  destruct (v0 y) as [vy|<-]; [|rewrite surprise0; specialize (r0 y); nra].
  unfold surprise; assert (s0 : 0 < whole / v y) by (apply Rdiv_lt_0_compat; lra).
  assert (H := ln_below (whole / v y * r y) ltac:(apply Rmult_lt_0_compat; auto)).
  rewrite ln_mult in H; auto.
  apply Rmult_le_compat_l with (r := v y) in H; [|lra].
  replace (v y * (whole / v y * r y - 1)) with (whole * r y - v y) in H by (field; lra); lra.
assert (H := sum_of_le Y vocabulary _ _ each); rewrite !sum_of_add, sum_of_scale in H; fold whole in H.
assert (whole * sum_of vocabulary r <= whole * 1) by (apply Rmult_le_compat_l; assumption); lra.
Qed.

(** ... and the row itself, normalised, reaches it. *)
Theorem gibbs_reached : forall v, (forall y, 0 <= v y) ->
  sum_of vocabulary (fun y => v y * - ln (v y / sum_of vocabulary v)) = uncertainty v.
Proof.
intros v v0; apply sum_of_ext; intros y i; assert (part := sum_of_term Y vocabulary v y v0 i).
unfold surprise; destruct (v0 y) as [vy|<-]; [|lra].
rewrite <- ln_Rinv by (apply Rdiv_lt_0_compat; lra); f_equal; f_equal; field; lra.
Qed.

Variables (A B : Type) (firsts : list A) (seconds : list B) (mu : A -> B -> Y -> R).
Hypothesis mu_ge0 : forall a b y, 0 <= mu a b y.

(** The joint weights of a and token, and of the token alone. *)
Definition with_first (a : A) (y : Y) : R := sum_of seconds (fun b => mu a b y).
Definition of_token (y : Y) : R := sum_of firsts (fun a => with_first a y).

Definition entropy_given_both : R := sum_of firsts (fun a => sum_of seconds (fun b => uncertainty (mu a b))).
Definition entropy_given_first : R := sum_of firsts (fun a => uncertainty (with_first a)).
Definition information_of_both : R := uncertainty of_token - entropy_given_both.
Definition information_of_first : R := uncertainty of_token - entropy_given_first.

Lemma uncertainty_of_sum : forall (C : Type) (s : list C) (w : C -> Y -> R), (forall c y, 0 <= w c y) ->
  sum_of s (fun c => uncertainty (w c)) <= uncertainty (fun y => sum_of s (fun c => w c y)).
Proof.
intros C s w w0; induction s as [|c s IH]; simpl; [rewrite uncertainty0; lra|].
apply Rle_trans with (uncertainty (w c) + uncertainty (fun y => sum_of s (fun c' => w c' y))); [lra|].
apply (entropy_superadditive (w c) (fun y => sum_of s (fun c' => w c' y))); [apply w0|].
intro y; apply sum_of_ge0; intro c'; apply w0.
Qed.

Theorem features_cannot_raise_entropy : entropy_given_both <= entropy_given_first.
Proof. apply sum_of_le; intros a _; apply uncertainty_of_sum; apply mu_ge0. Qed.

Theorem information_monotone : information_of_first <= information_of_both.
Proof. assert (H := features_cannot_raise_entropy); unfold information_of_first, information_of_both; lra. Qed.

Theorem information_ge0 : 0 <= information_of_first.
Proof.
assert (H := uncertainty_of_sum A firsts with_first).
unfold information_of_first, entropy_given_first; fold of_token in H; unfold of_token in *.
enough (sum_of firsts (fun c => uncertainty (with_first c)) <= uncertainty (fun y => sum_of firsts (fun a => with_first a y))) by lra.
apply H; intros a y; apply sum_of_ge0; intro b; apply mu_ge0.
Qed.

End Rows.
