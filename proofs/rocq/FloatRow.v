(** Floating point: one row, from its weights to the shares of its tokens.

    What it says.  [sum_tree] is the tree of refengine/engine/sums.py: neighbours are added
    two by two up to the root, an odd one out with a zero.
    - [row_error]           V weights, each computed with j roundings, added up in that tree
      of L levels and picked from with the N uniforms k/N: off by at most
      V (4 (2 L + j + 1) e + 1/N) in total variation;
    - [excess_rounded]      the difference of two float32 numbers, in float64, has one
      rounding, and [excess_heavy] is 0 or no less than 2^-149.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/sums.py, row.py. *)

From Coq Require Import ZArith Reals Lra Lia List.
From Flocq Require Import Core Relative.
From Proofs Require Import FloatAccept FloatSums FloatThreshold FloatDescent.
Open Scope R_scope.

Fixpoint pair_up (s : list bracketing) : list bracketing :=
  match s with
  | a :: b :: s' => Add a b :: pair_up s'
  | a :: nil => Add a (Leaf 0) :: nil
  | nil => nil
  end.
Fixpoint summed levels (s : list bracketing) : bracketing :=
  match levels, s with
  | S l, _ :: _ :: _ => summed l (pair_up s)
  | _, a :: _ => a
  | _, nil => Leaf 0
  end.
Definition sum_tree levels (w : list R) := summed levels (map Leaf w).

Fixpoint leaf_list t := match t with Leaf x => x :: nil | Add a b => leaf_list a ++ leaf_list b end.
Definition all_leaves s := flat_map leaf_list s.
(** The sum of the first i numbers. *)
Fixpoint sum_before (w : list R) i := match i, w with S i', x :: w' => x + sum_before w' i' | _, _ => 0 end.

Lemma pairs_induction : forall P : list bracketing -> Prop, P nil -> (forall a, P (a :: nil)) ->
  (forall a b s, P s -> P (a :: b :: s)) -> forall s, P s.
Proof.
intros P P0 P1 P2 s; enough (P s /\ forall a, P (a :: s)) by tauto.
induction s as [|b s [I J]]; split; auto.
Qed.

Lemma pair_up_leaves : forall s, exists pad, all_leaves (pair_up s) = all_leaves s ++ repeat 0 pad.
Proof.
apply pairs_induction; [exists O; reflexivity | intro a; exists 1%nat; simpl; now rewrite !app_nil_r |].
intros a b s [pad E]; exists pad; unfold all_leaves in *; simpl; rewrite E, <- !app_assoc; reflexivity.
Qed.

Lemma pair_up_size : forall s n, (length s <= 2 * n)%nat -> (length (pair_up s) <= n)%nat.
Proof.
refine (pairs_induction _ _ _ _); [simpl; lia | simpl; lia |].
intros a b s IH n L; simpl in *; destruct n; [lia|]; specialize (IH n ltac:(lia)); lia.
Qed.

Lemma pair_up_height : forall s h, Forall (fun t => (height t <= h)%nat) s ->
  Forall (fun t => (height t <= S h)%nat) (pair_up s).
Proof.
refine (pairs_induction _ _ _ _); [constructor | |].
- intros a h F; inversion F; subst; constructor; [simpl; lia | constructor].
- intros a b s IH h F; inversion F as [|c u A F']; subst; inversion F' as [|c u B F'']; subst.
  constructor; [simpl; lia | now apply IH].
Qed.

Lemma summed_leaves : forall l s, s <> nil -> (length s <= 2 ^ l)%nat ->
  exists pad, leaf_list (summed l s) = all_leaves s ++ repeat 0 pad.
Proof.
induction l as [|l IH]; intros s N L.
- destruct s as [|a [|b s]]; [congruence | exists O; simpl; now rewrite !app_nil_r | simpl in L; lia].
- destruct s as [|a [|b s]]; [congruence | exists O; simpl; now rewrite !app_nil_r |].
  change (summed (S l) (a :: b :: s)) with (summed l (pair_up (a :: b :: s))).
  destruct (IH (pair_up (a :: b :: s))) as [pad E]; [discriminate | apply pair_up_size; simpl in *; lia |].
  destruct (pair_up_leaves (a :: b :: s)) as [pad' E']; exists (pad' + pad)%nat.
  rewrite E, E', <- app_assoc, repeat_app; reflexivity.
Qed.

Lemma summed_height : forall l s h, Forall (fun t => (height t <= h)%nat) s -> (height (summed l s) <= h + l)%nat.
Proof.
induction l as [|l IH]; intros s h F.
- destruct F as [|a s A F]; simpl; lia.
- destruct s as [|a [|b s]]; [simpl; lia | inversion F; subst; simpl; lia |].
  change (summed (S l) (a :: b :: s)) with (summed l (pair_up (a :: b :: s))).
  specialize (IH _ (S h) (pair_up_height _ h F)); lia.
Qed.

Lemma sum_before_app : forall a b i, sum_before (a ++ b) i = sum_before a i + sum_before b (i - length a).
Proof.
induction a as [|x a IH]; intros b i; [destruct i; simpl; lra|].
destruct i; [simpl; destruct b; simpl; lra|]; simpl; rewrite IH; lra.
Qed.

Lemma leaf_list_size : forall t, length (leaf_list t) = leaves t.
Proof. induction t as [x|a IHa b IHb]; simpl; [reflexivity|]; rewrite app_length; lia. Qed.

Lemma below_sum_before : forall t i, below t i = sum_before (leaf_list t) i.
Proof.
induction t as [x|a IHa b IHb]; intro i; [destruct i as [|[|i]]; simpl; lra|].
rewrite below_node; simpl leaf_list; rewrite sum_before_app, leaf_list_size, IHa, IHb; reflexivity.
Qed.

Lemma sum_before_zeros : forall n i, sum_before (repeat 0 n) i = 0.
Proof. induction n as [|n IH]; intros [|i]; simpl; rewrite ?IH; lra. Qed.

Lemma leaves_ok_list : forall t, Forall (fun x => 0 <= x /\ float64 x) (leaf_list t) -> leaves_ok t.
Proof.
induction t as [x|a IHa b IHb]; simpl; intro F; [now inversion F|].
apply Forall_app in F; tauto.
Qed.

(** ** The row *)

(** A weight, and what was computed for it. *)
Definition weighed j v y := 0 <= v /\ 0 <= y /\ float64 y /\ rounded j v y.

Lemma weighed_sum_before : forall j w x, Forall2 (weighed j) w x -> forall i, rounded j (sum_before w i) (sum_before x i).
Proof.
intros j w x F; induction F as [|v y w' x' [_ [_ [_ [A B]]]] F IH]; intros [|i]; unfold rounded in *;
  simpl; try (split; lra).
specialize (IH i); destruct IH as [C D]; rewrite !Rmult_plus_distr_l; split; lra.
Qed.

Lemma weighed_pos : forall j w x, Forall2 (weighed j) w x -> forall i, 0 <= nth i w 0.
Proof. intros j w x F; induction F as [|v y w' x' [A _] F IH]; intros [|i]; simpl; try lra; apply IH. Qed.

Lemma weighed_near : forall j w x, Forall2 (weighed j) w x -> forall i, (1 - e64) ^ j * nth i w 0 <= nth i x 0.
Proof.
intros j w x F; induction F as [|v y w' x' [_ [_ [_ [A B]]]] F IH]; intros [|i]; simpl; try lra; apply IH.
Qed.

Lemma weighed_length : forall j w x, Forall2 (weighed j) w x -> length x = length w.
Proof. intros j w x F; induction F as [|v y w' x' W F IH]; simpl; [reflexivity | now rewrite IH]. Qed.

Lemma weighed_floats : forall j w x, Forall2 (weighed j) w x -> Forall (fun y => 0 <= y /\ float64 y) x.
Proof. intros j w x F; induction F as [|v y w' x' [_ [A [B _]]] F IH]; constructor; auto. Qed.

Section Row.
Variables (L N M j : nat) (w x : list R).
Definition tree := sum_tree L x.
Definition picked i := descended_to tree N i.
Definition row_eta := 4 * (INR (2 * L + j + 1) * e64) + / INR N.
Fixpoint row_distance v :=
  match v with O => 0 | S i => row_distance i + Rabs (picked i - nth i w 0 / sum_before w (length w)) end.

Hypothesis uniforms : INR N * INR M * e64 = 1.
Hypothesis shallow : INR (2 * L + j + 1) * e64 <= 1 / 8.
Hypothesis heavy : bpow radix2 (-900) <= float_sum tree.
Hypothesis small : (length w <= 2 ^ L)%nat.
Hypothesis computed_near : Forall2 (weighed j) w x.

Lemma same_length : length x = length w.
Proof. exact (weighed_length j w x computed_near). Qed.

Lemma sum_before_near : forall i, rounded j (sum_before w i) (sum_before x i).
Proof. exact (weighed_sum_before j w x computed_near). Qed.

Lemma sum_before_step : forall (u : list R) i, sum_before u (S i) = sum_before u i + nth i u 0.
Proof.
induction u as [|a u IH]; intros [|i]; simpl; try lra; [destruct u; simpl; lra|].
specialize (IH i); simpl in IH; rewrite IH; lra.
Qed.

Lemma weight_pos : forall i, 0 <= nth i w 0.
Proof. exact (weighed_pos j w x computed_near). Qed.

(** What is computed of the weights from i on is nothing only if there are none. *)
Lemma tail_near : forall i k, (1 - e64) ^ j * (sum_before w (i + k) - sum_before w i) <= sum_before x (i + k) - sum_before x i.
Proof.
assert (Near := weighed_near j w x computed_near); intros i k; induction k as [|k IH]; [rewrite Nat.add_0_r; lra|].
rewrite Nat.add_succ_r, !sum_before_step; specialize (Near (i + k)%nat); lra.
Qed.

Lemma row_tree : w <> nil -> exists pad, leaf_list tree = x ++ repeat 0 pad.
Proof.
intro S0; assert (Lx := same_length); destruct (summed_leaves L (map Leaf x)) as [pad E].
- destruct x; [destruct w; [congruence|discriminate]|discriminate].
- rewrite map_length; lia.
- exists pad; unfold tree, sum_tree; rewrite E; f_equal; clear; induction x as [|a u IH]; simpl; congruence.
Qed.

Lemma row_height : (height tree <= L)%nat.
Proof. apply (summed_height L _ 0), Forall_map, Forall_forall; simpl; auto. Qed.

Lemma tree_ok : w <> nil -> leaves_ok tree.
Proof.
intro S0; destruct (row_tree S0) as [pad E]; apply leaves_ok_list; rewrite E; apply Forall_app; split.
- exact (weighed_floats j w x computed_near).
- apply Forall_forall; intros a I; apply repeat_spec in I; subst; split; [lra | apply generic_format_0].
Qed.

Lemma tree_below : w <> nil -> forall i, below tree i = sum_before x i.
Proof.
intros S0 i; destruct (row_tree S0) as [pad E].
rewrite below_sum_before, E, sum_before_app, sum_before_zeros; lra.
Qed.

Lemma tree_exact : w <> nil -> exact_sum tree = sum_before x (length w).
Proof.
intro S0; destruct (row_tree S0) as [pad E]; rewrite <- (below_all tree (leaves tree)) by lia.
rewrite (tree_below S0), <- same_length, <- leaf_list_size, E, app_length.
clear; generalize (length (repeat 0 pad)); intro n; induction x as [|a u IH]; simpl.
- destruct n; reflexivity.
- rewrite IH; reflexivity.
Qed.

Lemma picked_inside : w <> nil -> forall k, (descended tree N k < length w)%nat.
Proof.
intros S0 k; apply (descended_inside tree (length w) N M).
- now apply tree_ok.
- exact uniforms.
- exact heavy.
- rewrite (tree_below S0), (tree_exact S0); reflexivity.
Qed.

Theorem row_error : w <> nil -> / 2 * row_distance (length w) <= INR (length w) * row_eta.
Proof.
intro S0; assert (H := row_height); assert (E := e64_small).
assert (Flat : INR (2 * height tree + j + 1) <= INR (2 * L + j + 1)) by (apply le_INR; lia).
apply Rle_trans with (INR (length w) * descent_eta tree N j).
- assert (Hyp : / 2 * descent_distance tree (length w) N (fun i => sum_before w i) (length w)
      <= INR (length w) * descent_eta tree N j).
  { apply (descent_error tree (length w) N M j (fun i => sum_before w i)).
    - now apply tree_ok.
    - exact uniforms.
    - nra.
    - exact heavy.
    - intros i _; rewrite sum_before_step; assert (P := weight_pos i); lra.
    - destruct w; reflexivity.
    - intros i _; rewrite (tree_below S0); apply sum_before_near.
    - intros i I; rewrite (tree_below S0), (tree_exact S0); intro Z.
      assert (T := tail_near i (length w - i)); replace (i + (length w - i))%nat with (length w) in T by lia.
      destruct (powers j) as [J _].
      assert (Up : forall a b, sum_before w a <= sum_before w (a + b)).
      { intros a b; induction b as [|b IH]; [rewrite Nat.add_0_r; lra|].
        rewrite Nat.add_succ_r, sum_before_step; assert (P := weight_pos (a + b)); lra. }
      specialize (Up i (length w - i)%nat); replace (i + (length w - i))%nat with (length w) in Up by lia; nra.
    - rewrite (tree_below S0), (tree_exact S0); reflexivity. }
  apply Rle_trans with (2 := Hyp); right; f_equal.
  generalize (length w) at 1 3; intro v; induction v as [|v IH]; [reflexivity|]; cbn [row_distance descent_distance].
  rewrite IH, sum_before_step; f_equal; f_equal; unfold picked, Rdiv; ring.
- apply Rmult_le_compat_l; [apply pos_INR|]; unfold row_eta, descent_eta.
  apply Rplus_le_compat_r, Rmult_le_compat_l; [lra|]; apply Rmult_le_compat_r; lra.
Qed.

End Row.

(** ** What is emitted from after a refusal *)

Lemma float32_64 : forall y, float32 y -> float64 y.
Proof.
intros y; apply generic_inclusion_ln_beta || apply generic_inclusion_mag.
intros _; unfold FLT_exp; lia.
Qed.

Definition excess64 a b := Rmax (rnd64 (a - b)) 0.

Lemma excess_format : forall a b, float64 (excess64 a b).
Proof.
intros a b; unfold excess64, Rmax; destruct Rle_dec; [apply generic_format_0|].
apply generic_format_round; auto with typeclass_instances.
Qed.

Theorem excess_rounded : forall a b, float32 a -> float32 b -> rounded 1 (Rmax (a - b) 0) (excess64 a b).
Proof.
intros a b A B; unfold excess64, rounded; rewrite !pow_1; assert (S := e64_small).
destruct (Rle_or_lt 0 (a - b)) as [P|P].
- destruct (rounded_add a (- b) (float32_64 a A) (generic_format_opp _ _ _ (float32_64 b B)) P) as [L U].
  change (a + - b) with (a - b) in L, U; rewrite (Rmax_left (a - b)) by lra.
  rewrite Rmax_left by nra; lra.
- rewrite (Rmax_right (a - b)) by lra.
  assert (Z : rnd64 (a - b) <= 0).
  { rewrite <- (round_0 radix2 (FLT_exp (-1074) 53) ZnearestE); apply round_le; auto with typeclass_instances; lra. }
  rewrite Rmax_right by exact Z; lra.
Qed.

Lemma float32_multiple : forall y, float32 y -> exists k, y = IZR k * bpow radix2 (-149).
Proof.
intros y F; destruct (FLT_format_generic _ _ _ _ F) as [[m e] E _ X]; cbn [Fnum Fexp] in X.
exists (m * radix2 ^ (e + 149))%Z; rewrite E; unfold F2R; cbn [Fnum Fexp].
rewrite mult_IZR, IZR_Zpower by lia; rewrite Rmult_assoc, <- bpow_plus; f_equal; f_equal; lia.
Qed.

Lemma excess_heavy : forall a b, float32 a -> float32 b -> 0 < a - b -> bpow radix2 (-149) <= excess64 a b.
Proof.
intros a b A B P; unfold excess64; apply Rle_trans with (2 := Rmax_l _ _).
destruct (float32_multiple a A) as [k ->], (float32_multiple b B) as [l ->].
assert (G := bpow_gt_0 radix2 (-149)); rewrite <- Rmult_minus_distr_r, <- minus_IZR in *.
assert (K : (1 <= k - l)%Z) by (apply (Zlt_le_succ 0), lt_IZR; nra).
apply round_ge_generic; auto with typeclass_instances.
- apply generic_format_bpow; unfold FLT_exp; lia.
- apply IZR_le in K; nra.
Qed.
