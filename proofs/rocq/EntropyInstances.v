(** The theorems on entropy, applied: none of them is about nothing.

    What it says.  Nothing new.  A first feature that says nothing and a second that names
    the token: the uncertainty falls from ln 2 to 0.  A row with one token, beside a third of it.

    Source: ours. *)

From Coq Require Import Reals Lra List.
From Proofs Require Import Entropy Pinsker.
Open Scope R_scope.

Definition coins : list bool := true :: false :: nil.
Definition tells (a : unit) (b y : bool) : R := if Bool.eqb b y then / 2 else 0.
Lemma tells_ge0 : forall a b y, 0 <= tells a b y.
Proof. intros a [|] [|]; unfold tells; simpl; lra. Qed.
Definition third (y : bool) : R := if y then / 3 else 2 / 3.
Lemma third_ge0 : forall y, 0 < third y.
Proof. intros [|]; simpl; lra. Qed.

Example used_log_sum : surprise 1 (/ 3) + surprise 2 0 <= surprise (1 + 2) (/ 3 + 0).
Proof. apply log_sum; lra. Qed.
Example used_superadditive : uncertainty bool coins third + uncertainty bool coins (tells tt true)
  <= uncertainty bool coins (fun y => third y + tells tt true y).
Proof. apply entropy_superadditive; intro y; [left; apply third_ge0 | apply tells_ge0]. Qed.
Example used_gibbs : uncertainty bool coins (tells tt true) <= sum_of coins (fun y => tells tt true y * - ln (third y)).
Proof. apply gibbs; [apply tells_ge0 | apply third_ge0 | simpl; lra]. Qed.
Example used_gibbs_reached : sum_of coins (fun y => third y * - ln (third y / sum_of coins third)) = uncertainty bool coins third.
Proof. apply gibbs_reached; intro y; left; apply third_ge0. Qed.
Example used_features : entropy_given_both bool coins unit bool (tt :: nil) coins tells
  <= entropy_given_first bool coins unit bool (tt :: nil) coins tells.
Proof. apply features_cannot_raise_entropy; apply tells_ge0. Qed.
Example used_information : information_of_first bool coins unit bool (tt :: nil) coins tells
  <= information_of_both bool coins unit bool (tt :: nil) coins tells.
Proof. apply information_monotone; apply tells_ge0. Qed.
Example used_information_ge0 : 0 <= information_of_first bool coins unit bool (tt :: nil) coins tells.
Proof. apply information_ge0; apply tells_ge0. Qed.

(** The second feature does help. *)
Example the_second_feature_helps : entropy_given_both bool coins unit bool (tt :: nil) coins tells = 0
  /\ entropy_given_first bool coins unit bool (tt :: nil) coins tells = ln 2.
Proof.
unfold entropy_given_both, entropy_given_first, uncertainty, surprise, with_first, tells; simpl.
assert (one : ln (/ 2 / / 2) = 0) by (replace (/ 2 / / 2) with 1 by field; exact ln_1).
split.
- replace (/ 2 + (0 + 0)) with (/ 2) by lra; replace (0 + (/ 2 + 0)) with (/ 2) by lra; rewrite one; lra.
- replace (/ 2 + (0 + 0)) with (/ 2) by lra; replace (0 + (/ 2 + 0)) with (/ 2) by lra.
  replace ((/ 2 + (/ 2 + 0)) / / 2) with 2 by field; lra.
Qed.

(** A row that gives one token all, beside one that gives it a third. *)
Definition sure (y : bool) : R := if y then 1 else 0.
Lemma sure_ge0 : forall y, 0 <= sure y.
Proof. intros [|]; simpl; lra. Qed.

Example used_ln_above : 5 / 2 - / (4 * 3) - 27 / (4 * (3 + 2)) <= ln 3.
Proof. apply ln_above; lra. Qed.
Example used_pinsker : 2 * total_variation bool coins sure third ^ 2 <= divergence bool coins sure third.
Proof. apply pinsker; try (intro y; assert (H := third_ge0 y); assert (G := sure_ge0 y); lra); simpl; lra. Qed.
Example used_pinsker_root : total_variation bool coins sure third <= sqrt (divergence bool coins sure third / 2).
Proof. apply pinsker_root; try (intro y; assert (H := third_ge0 y); assert (G := sure_ge0 y); lra); simpl; lra. Qed.

(** What it says there: 8/9 is at most ln 3. *)
Example pinsker_says : total_variation bool coins sure third = 2 / 3 /\ divergence bool coins sure third = ln 3.
Proof.
unfold total_variation, divergence, sure, third; simpl; split.
  rewrite Rabs_pos_eq, Rabs_left by lra; lra.
replace (1 / / 3) with 3 by field; lra.
Qed.
