(** Floating point: the choice that goes down the tree of sums.

    What it says.  The engine adds a row up in a binary tree and picks by going down it
    with the bar u * total: left, or right and past all that stands on the left.
    - [descent_above], [descent_below]  the place where it ends is right for sums that
      are off by twice the height of the tree in roundings, no more: rounded sums of
      different subtrees need not rise;
    - [descent_weight]      it ends at a token with weight;
    - [descent_error]       over N uniforms k/N, the shares of the tokens are within
      V (4 (2 L + j + 1) e + 1/N) of the weights in total variation, L the height of the
      tree, and j the roundings behind each weight that is added up.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/sums.py. *)

From Coq Require Import ZArith Reals Lra Lia List.
From Flocq Require Import Core Relative.
From Proofs Require Import FloatAccept FloatSums FloatThreshold.
Open Scope R_scope.

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

(** ** Down the tree *)

Fixpoint leaves t := match t with Leaf _ => 1%nat | Add a b => (leaves a + leaves b)%nat end.
(** The exact sum of the first i leaves. *)
Fixpoint below t i :=
  match t with
  | Leaf x => match i with O => 0 | S _ => x end
  | Add a b => below a i + below b (i - leaves a)%nat
  end.

(** [first_above] of sums.py. *)
Fixpoint descend bar before t : nat :=
  match t with
  | Leaf _ => O
  | Add a b =>
      let past_left := rnd64 (before + float_sum a) in
      if andb (Rle_bool past_left bar) (Rlt_bool 0 (float_sum b))
      then (leaves a + descend bar past_left b)%nat else descend bar before a
  end.

Lemma leaves_some : forall t, (0 < leaves t)%nat.
Proof. induction t as [x|a IHa b IHb]; simpl; lia. Qed.

Lemma below_node : forall a b i, below (Add a b) i = below a i + below b (i - leaves a).
Proof. reflexivity. Qed.

Lemma below_none : forall t, below t 0 = 0.
Proof. induction t as [x|a IHa b IHb]; simpl; [reflexivity|]; rewrite IHa, IHb; lra. Qed.

Lemma below_all : forall t i, (leaves t <= i)%nat -> below t i = exact_sum t.
Proof.
induction t as [x|a IHa b IHb]; intros i I; simpl in *; [destruct i; [lia|reflexivity]|].
rewrite IHa, IHb by lia; reflexivity.
Qed.

Lemma below_step : forall t i, leaves_ok t -> below t i <= below t (S i).
Proof.
induction t as [x|a IHa b IHb]; intros i Ok.
- simpl in *; destruct i; lra.
- destruct Ok as [Oa Ob]; rewrite !below_node; specialize (IHa i Oa).
  destruct (Nat.le_gt_cases (leaves a) i) as [L|G].
  + replace (S i - leaves a)%nat with (S (i - leaves a)) by lia; specialize (IHb (i - leaves a)%nat Ob); lra.
  + replace (S i - leaves a)%nat with O by lia; replace (i - leaves a)%nat with O by lia; lra.
Qed.

Lemma below_mono : forall t i j, leaves_ok t -> (i <= j)%nat -> below t i <= below t j.
Proof. intros t i j Ok I; induction I as [|j I IH]; [lra|]; assert (A := below_step t j Ok); lra. Qed.

Lemma below_pos : forall t i, leaves_ok t -> 0 <= below t i.
Proof. intros t i Ok; rewrite <- (below_none t); apply below_mono; [exact Ok|lia]. Qed.

Lemma below_top : forall t i, leaves_ok t -> below t i <= exact_sum t.
Proof.
intros t i Ok; rewrite <- (below_all t (Nat.max i (leaves t))) by lia; apply below_mono; [exact Ok|lia].
Qed.

Lemma descend_node : forall a b bar before, descend bar before (Add a b)
  = if andb (Rle_bool (rnd64 (before + float_sum a)) bar) (Rlt_bool 0 (float_sum b))
    then (leaves a + descend bar (rnd64 (before + float_sum a)) b)%nat else descend bar before a.
Proof. reflexivity. Qed.

Lemma descend_inside : forall t bar before, (descend bar before t < leaves t)%nat.
Proof.
induction t as [x|a IHa b IHb]; intros bar before; [simpl; lia|].
rewrite descend_node; simpl leaves.
destruct (andb (Rle_bool (rnd64 (before + float_sum a)) bar) (Rlt_bool 0 (float_sum b))); [specialize (IHb bar (rnd64 (before + float_sum a))) | specialize (IHa bar before)]; lia.
Qed.

Lemma powers : forall n, 0 < (1 - e64) ^ n /\ (1 - e64) ^ n <= 1 /\ 1 <= (1 + e64) ^ n.
Proof.
intro n; assert (S := e64_small); split; [apply pow_lt; lra|split].
- apply Rle_trans with (1 ^ n); [apply pow_incr | rewrite pow1]; lra.
- apply pow_R1_Rle; lra.
Qed.

Lemma powers_grow : forall m n, (m <= n)%nat -> (1 - e64) ^ n <= (1 - e64) ^ m /\ (1 + e64) ^ m <= (1 + e64) ^ n.
Proof.
intros m n I; induction I as [|n I [D U]]; [lra|]; destruct (powers n) as [A [B C]]; assert (S := e64_small); simpl; split; nra.
Qed.

(** x is c but for n roundings. *)
Definition rounded n c x := (1 - e64) ^ n * c <= x <= (1 + e64) ^ n * c.

Lemma rounded_more : forall m n c x, (m <= n)%nat -> 0 <= c -> rounded m c x -> rounded n c x.
Proof. intros m n c x I C [L U]; destruct (powers_grow m n I) as [A B]; unfold rounded; split; nra. Qed.

Lemma rounded_sum : forall n c d x y, float64 x -> float64 y -> 0 <= c -> 0 <= d ->
  rounded n c x -> rounded n d y -> rounded (S n) (c + d) (rnd64 (x + y)).
Proof.
intros n c d x y Fx Fy C D [L1 U1] [L2 U2]; assert (S0 := e64_small).
destruct (powers n) as [A [B E]]; assert (0 <= x + y) by nra.
destruct (rounded_add x y Fx Fy H) as [L U]; unfold rounded; simpl pow; split.
- apply Rle_trans with (2 := L); rewrite Rmult_assoc; apply Rmult_le_compat_l; [lra|]; rewrite Rmult_plus_distr_l; lra.
- apply Rle_trans with (1 := U); rewrite Rmult_assoc; apply Rmult_le_compat_l; [lra|]; rewrite Rmult_plus_distr_l; lra.
Qed.

Lemma sum_rounded : forall t n, leaves_ok t -> (height t <= n)%nat -> rounded n (exact_sum t) (float_sum t).
Proof. intros t n Ok H; exact (sum_any_order t n Ok H). Qed.

Lemma sum_nothing : forall t, leaves_ok t -> float_sum t <= 0 -> exact_sum t = 0.
Proof.
intros t Ok F; destruct (sum_rounded t (height t) Ok (le_n _)) as [L _]; destruct (powers (height t)) as [P _].
assert (N := sum_nonneg t Ok); nra.
Qed.

Lemma sum_something : forall t, leaves_ok t -> 0 < float_sum t -> 0 < exact_sum t.
Proof.
intros t Ok F; destruct (sum_rounded t (height t) Ok (le_n _)) as [_ U]; assert (N := sum_nonneg t Ok).
destruct (Rle_lt_or_eq_dec 0 (exact_sum t) N) as [P|E]; [exact P|]; rewrite <- E in U; lra.
Qed.

Lemma float_sum_pos : forall t, leaves_ok t -> 0 <= float_sum t.
Proof.
intros t Ok; destruct (sum_rounded t (height t) Ok (le_n _)) as [L _]; destruct (powers (height t)) as [P _].
assert (N := sum_nonneg t Ok); nra.
Qed.

(** What the walk knows at a node: the mass c before it, the sum [before] of it, m roundings. *)
Definition standing m c before bar := 0 <= c /\ float64 before /\ rounded m c before /\ before <= bar.

Lemma standing_right : forall a m c before bar, leaves_ok a -> (height a <= m)%nat -> standing m c before bar ->
  rounded (S m) (c + exact_sum a) (rnd64 (before + float_sum a)).
Proof.
intros a m c before bar Ok H [C [F [B _]]]; apply rounded_sum; auto using float_sum_format, sum_nonneg, sum_rounded.
Qed.

Ltac node := rewrite descend_node;
  match goal with |- context [andb (Rle_bool ?x ?y) (Rlt_bool 0 ?z)] =>
    destruct (Rle_bool_spec x y) as [past|short]; [destruct (Rlt_bool_spec 0 z) as [some|none]|] end; cbn [andb].

Theorem descent_weight : forall t m (c before bar : R), leaves_ok t -> (height t <= m)%nat -> standing m c before bar ->
  0 < exact_sum t -> below t (descend bar before t) < below t (S (descend bar before t)).
Proof.
induction t as [x|a IHa b IHb]; intros m c before bar Ok H St P; [simpl in *; lra|].
destruct Ok as [Oa Ob]; simpl in H.
assert (Next := standing_right a m c before bar Oa ltac:(lia) St).
assert (Left : 0 < exact_sum a -> below (Add a b) (descend bar before a) < below (Add a b) (S (descend bar before a))).
{ intro Pa; assert (I := IHa m c before bar Oa ltac:(lia) St Pa); assert (In := descend_inside a bar before).
  rewrite !below_node; replace (descend bar before a - leaves a)%nat with O by lia.
  replace (S (descend bar before a) - leaves a)%nat with O by lia; lra. }
assert (Na := sum_nonneg a Oa); change (exact_sum (Add a b)) with (exact_sum a + exact_sum b) in P.
node.
- assert (I := IHb (S m) (c + exact_sum a) (rnd64 (before + float_sum a)) bar Ob ltac:(lia)).
  assert (J : standing (S m) (c + exact_sum a) (rnd64 (before + float_sum a)) bar).
  { destruct St as [C _]; repeat split; try lra; try apply Next; apply generic_format_round; auto with typeclass_instances. }
  specialize (I J (sum_something b Ob some)); set (k := descend bar (rnd64 (before + float_sum a)) b) in *.
  rewrite !below_node, !(below_all a) by lia.
  replace (leaves a + k - leaves a)%nat with k by lia.
  replace (S (leaves a + k) - leaves a)%nat with (S k) by lia; lra.
- apply Left; assert (exact_sum b = 0) by (now apply sum_nothing); lra.
- apply Left; destruct (Rle_lt_or_eq_dec 0 _ Na) as [|E]; [assumption|exfalso].
  destruct St as [C [F [_ B]]].
  assert (float_sum a = 0).
  { assert (U := float_sum_pos a Oa); destruct (sum_rounded a (height a) Oa (le_n _)) as [_ V]; rewrite <- E in V; lra. }
  rewrite H0, Rplus_0_r in short; unfold rnd64 in short; rewrite round_generic in short; auto with typeclass_instances; lra.
Qed.

(** Where it ends before place i, the bar lay below the mass of the first i tokens, or nothing has mass behind them. *)
Lemma descent_above : forall t m c before bar i, leaves_ok t -> (height t <= m)%nat -> standing m c before bar ->
  (descend bar before t < i)%nat ->
  bar < (1 + e64) ^ (m + height t) * (c + below t i) \/ below t i = exact_sum t.
Proof.
induction t as [x|a IHa b IHb]; intros m c before bar i Ok H St; [simpl; destruct i; [lia|now right]|].
destruct Ok as [Oa Ob]; simpl in H.
assert (Next := standing_right a m c before bar Oa ltac:(lia) St).
assert (Cp : 0 <= c) by apply St; assert (Na := sum_nonneg a Oa); assert (Nb := sum_nonneg b Ob).
assert (Grow : forall k x y, (k <= m + height (Add a b))%nat -> 0 <= x <= y ->
  (1 + e64) ^ k * x <= (1 + e64) ^ (m + height (Add a b)) * y).
{ intros k x y K [X Y]; destruct (powers_grow _ _ K) as [_ G]; destruct (powers k) as [_ [_ O]].
  apply Rmult_le_compat; lra. }
assert (Bi := below_pos b (i - leaves a) Ob); assert (Ai := below_pos a i Oa).
change (below (Add a b) i) with (below a i + below b (i - leaves a)).
change (exact_sum (Add a b)) with (exact_sum a + exact_sum b).
assert (Short : bar < rnd64 (before + float_sum a) -> (descend bar before a < i)%nat ->
  bar < (1 + e64) ^ (m + height (Add a b)) * (c + (below a i + below b (i - leaves a)))).
{ intros lt D; destruct (Nat.le_gt_cases (leaves a) i) as [L|G].
  - apply Rlt_le_trans with (1 := lt), Rle_trans with (1 := proj2 Next), Grow; [simpl; lia|].
    rewrite (below_all a) by lia; lra.
  - destruct (IHa m c before bar i Oa ltac:(lia) St D) as [A|A].
    + apply Rlt_le_trans with (1 := A), Grow; [simpl; lia | lra].
    + apply Rlt_le_trans with (1 := lt), Rle_trans with (1 := proj2 Next), Grow; [simpl; lia | lra]. }
node; intro D.
- assert (J : standing (S m) (c + exact_sum a) (rnd64 (before + float_sum a)) bar).
  { repeat split; try lra; try apply Next; apply generic_format_round; auto with typeclass_instances. }
  destruct (IHb (S m) _ _ bar (i - leaves a)%nat Ob ltac:(lia) J ltac:(lia)) as [A|A].
  + left; apply Rlt_le_trans with (1 := A); rewrite (below_all a) by lia.
    apply Rle_trans with ((1 + e64) ^ (m + height (Add a b)) * (c + exact_sum a + below b (i - leaves a))).
    * apply Grow; [simpl; lia | lra].
    * right; f_equal; lra.
  + right; rewrite A, (below_all a) by lia; reflexivity.
- assert (Z : exact_sum b = 0) by (now apply sum_nothing).
  assert (Zi : below b (i - leaves a) = 0) by (assert (T := below_top b (i - leaves a) Ob); lra).
  rewrite Z, Zi, !Rplus_0_r.
  destruct (IHa m c before bar i Oa ltac:(lia) St D) as [A|A]; [left|now right].
  apply Rlt_le_trans with (1 := A), Grow; [simpl; lia | lra].
- left; now apply Short.
Qed.

(** Where it ends at place i or behind, the bar had passed the mass of the first i tokens. *)
Lemma descent_below : forall t m c before bar i, leaves_ok t -> (height t <= m)%nat -> standing m c before bar ->
  (i <= descend bar before t)%nat ->
  (1 - e64) ^ (m + height t) * (c + below t i) <= bar \/ below t i = 0.
Proof.
induction t as [x|a IHa b IHb]; intros m c before bar i Ok H St; [simpl; destruct i; [now right|lia]|].
destruct Ok as [Oa Ob]; simpl in H.
assert (Next := standing_right a m c before bar Oa ltac:(lia) St).
assert (Cp : 0 <= c) by apply St; assert (Na := sum_nonneg a Oa); assert (Nb := sum_nonneg b Ob).
assert (Shrink : forall k x y, (k <= m + height (Add a b))%nat -> 0 <= y <= x ->
  (1 - e64) ^ (m + height (Add a b)) * y <= (1 - e64) ^ k * x).
{ intros k x y K [X Y]; destruct (powers_grow _ _ K) as [G _]; destruct (powers (m + height (Add a b))) as [O _].
  apply Rmult_le_compat; lra. }
assert (Bi := below_pos b (i - leaves a) Ob); assert (Ai := below_pos a i Oa); assert (At := below_top a i Oa).
change (below (Add a b) i) with (below a i + below b (i - leaves a)).
assert (Left : (i <= descend bar before a)%nat ->
  (1 - e64) ^ (m + height (Add a b)) * (c + (below a i + below b (i - leaves a))) <= bar
  \/ below a i + below b (i - leaves a) = 0).
{ intro D; assert (In := descend_inside a bar before).
  replace (i - leaves a)%nat with O by lia; rewrite below_none, Rplus_0_r.
  destruct (IHa m c before bar i Oa ltac:(lia) St D) as [A|A]; [left|now right].
  apply Rle_trans with (2 := A), Shrink; [simpl; lia | lra]. }
node; intro D; [|now apply Left|now apply Left].
left; destruct (Nat.le_gt_cases i (leaves a)) as [L|G].
- replace (i - leaves a)%nat with O by lia; rewrite below_none, Rplus_0_r.
  apply Rle_trans with (2 := past), Rle_trans with (2 := proj1 Next), Shrink; [simpl; lia | lra].
- rewrite (below_all a) by lia.
  assert (J : standing (S m) (c + exact_sum a) (rnd64 (before + float_sum a)) bar).
  { repeat split; try lra; try apply Next; apply generic_format_round; auto with typeclass_instances. }
  destruct (IHb (S m) _ _ bar (i - leaves a)%nat Ob ltac:(lia) J ltac:(lia)) as [A|A].
  + apply Rle_trans with (2 := A).
    replace (c + (exact_sum a + below b (i - leaves a))) with (c + exact_sum a + below b (i - leaves a)) by ring.
    apply Shrink; [simpl; lia | lra].
  + rewrite A, Rplus_0_r; apply Rle_trans with (2 := past), Rle_trans with (2 := proj1 Next), Shrink; [simpl; lia | lra].
Qed.

(** ** Over all uniforms of a grid *)

Lemma over_one : forall x, x / 1 = x.
Proof. intro x; field. Qed.

Lemma counted : forall test N lo hi, (0 < N)%nat -> lo <= 1 -> 0 <= hi ->
  (forall k, (k < N)%nat -> INR k / INR N < lo -> test k = true) ->
  (forall k, (k < N)%nat -> test k = true -> INR k / INR N < hi) ->
  lo <= INR (count test N) / INR N <= hi + / INR N.
Proof.
intros test N lo hi N0 L H A B; assert (P : 0 < INR N) by (apply lt_0_INR; lia).
assert (Cut : forall x k, INR k / INR N < x <-> (Z.of_nat k < Zceil (INR N * x))%Z).
{ intros x k; assert (E := accept_grid (Z.of_nat k) (INR N) x 1 ltac:(lra) P).
  rewrite <- INR_IZR_INZ, Rmult_1_r, over_one in E; exact E. }
destruct (count_between test (Z.to_nat (Zceil (INR N * lo))) (Z.to_nat (Zceil (INR N * hi))) N) as [D U].
- intros k K I; apply A; [exact I|]; apply Cut; lia.
- intros k K T; assert (X := proj1 (Cut hi k) (B k K T)); lia.
- assert (Hi : INR (count test N) <= INR N * hi + 1).
  { apply Rle_trans with (INR (Z.to_nat (Zceil (INR N * hi)))); [apply le_INR; lia|].
    assert (Z0 : (0 <= Zceil (INR N * hi))%Z) by (apply le_IZR, Rle_trans with (2 := Zceil_ub _); nra).
    rewrite (INR_IZR_INZ (Z.to_nat _)), Z2Nat.id by exact Z0; assert (Y := proj2 (accept_probability 1 (INR N * hi) ltac:(lra))).
    rewrite Rmult_1_l, over_one, Rinv_1 in Y; lra. }
  assert (Lo : INR N * lo <= INR (count test N)).
  { apply Rle_trans with (INR (Nat.min (Z.to_nat (Zceil (INR N * lo))) N)); [|apply le_INR, D].
    destruct (Nat.le_ge_cases (Z.to_nat (Zceil (INR N * lo))) N) as [I|I].
    - rewrite Nat.min_l by exact I; rewrite (INR_IZR_INZ (Z.to_nat _)); apply Rle_trans with (1 := Zceil_ub _), IZR_le; lia.
    - rewrite Nat.min_r by exact I; nra. }
  split; (apply Rmult_le_reg_r with (INR N); [exact P|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra).
  + lra.
  + rewrite Rmult_plus_distr_r, Rinv_l by lra; lra.
Qed.

Lemma count_step : forall (f : nat -> nat) i n, count (fun k => Nat.ltb (f k) (S i)) n
  = (count (fun k => Nat.ltb (f k) i) n + count (fun k => Nat.eqb (f k) i) n)%nat.
Proof.
intros f i n; induction n as [|n IH]; [reflexivity|]; simpl; rewrite IH.
destruct (Nat.ltb_spec (f n) i), (Nat.ltb_spec (f n) (S i)), (Nat.eqb_spec (f n) i); lia.
Qed.

Section Descent.
Variables (t : bracketing) (V N M j : nat) (C : nat -> R).
(** The k-th of N uniforms times the computed total, and where the walk ends. *)
Definition bar k := rnd64 (INR k / INR N * float_sum t).
Definition descended k := descend (bar k) 0 t.

Hypothesis ok : leaves_ok t.
Hypothesis uniforms : INR N * INR M * e64 = 1.
Hypothesis shallow : INR (2 * height t + j + 1) * e64 <= 1 / 8.
Hypothesis heavy : bpow radix2 (-900) <= float_sum t.
(** The first V leaves are weights, of which C is the exact sum, but for j roundings; the others are padding. *)
Hypothesis rises : forall i, (i < V)%nat -> C i <= C (S i).
Hypothesis nothing_first : C 0 = 0.
Hypothesis weights_near : forall i, (i <= V)%nat -> rounded j (C i) (below t i).
Hypothesis full : forall i, (i <= V)%nat -> below t i = exact_sum t -> C i = C V.
Hypothesis padded : below t V = exact_sum t.

Definition descent_eta := 4 * (INR (2 * height t + j + 1) * e64) + / INR N.
Definition descended_below i := INR (count (fun k => Nat.ltb (descended k) i) N) / INR N.
Definition descended_to i := INR (count (fun k => Nat.eqb (descended k) i) N) / INR N.

Lemma some_uniforms : 0 < INR N.
Proof.
assert (S := e64_small); assert (A := pos_INR N); assert (B := pos_INR M).
destruct (Rle_lt_or_eq_dec 0 _ A) as [|E]; [assumption|]; rewrite <- E, !Rmult_0_l in uniforms; lra.
Qed.

Lemma C_pos : forall i, (i <= V)%nat -> 0 <= C i <= C V.
Proof.
assert (up : forall a b, (a <= b)%nat -> (b <= V)%nat -> C a <= C b).
{ intros a b I; induction I as [|b I IH]; intro B; [lra|]; specialize (rises b ltac:(lia)); specialize (IH ltac:(lia)); lra. }
intros i I; rewrite <- nothing_first; split; apply up; lia.
Qed.

Lemma bar_near : forall k, (1 - e64) * (INR k / INR N * float_sum t) <= bar k
  <= (1 + e64) * (INR k / INR N * float_sum t).
Proof.
intro k; assert (P := some_uniforms).
replace (INR k / INR N) with (IZR (Z.of_nat k * Z.of_nat M) * e64).
- unfold bar.
  replace (INR k / INR N) with (IZR (Z.of_nat k * Z.of_nat M) * e64); [apply product_rounded; [lia|exact heavy]|].
  rewrite mult_IZR, <- !INR_IZR_INZ; apply Rmult_eq_reg_r with (INR N); [|lra].
  unfold Rdiv; rewrite !Rmult_assoc, Rinv_l, (Rmult_comm e64), Rmult_1_r by lra.
  rewrite <- (Rmult_assoc (INR M)), (Rmult_comm (INR M)), uniforms; ring.
- rewrite mult_IZR, <- !INR_IZR_INZ; apply Rmult_eq_reg_r with (INR N); [|lra].
  unfold Rdiv; rewrite !Rmult_assoc, Rinv_l, (Rmult_comm e64), Rmult_1_r by lra.
  rewrite <- (Rmult_assoc (INR M)), (Rmult_comm (INR M)), uniforms; ring.
Qed.

Lemma start : forall k, standing (height t) 0 0 (bar k).
Proof.
intro k; assert (B := proj1 (bar_near k)); assert (S := e64_small); assert (P := some_uniforms).
assert (0 <= INR k / INR N) by (apply Rmult_le_pos; [apply pos_INR | apply Rlt_le, Rinv_0_lt_compat, P]).
assert (G0 := bpow_gt_0 radix2 (-900)).
repeat split; try lra; [apply generic_format_0|]; apply Rle_trans with (2 := B).
apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra].
Qed.

Lemma some_mass : 0 < exact_sum t.
Proof. apply sum_something; [exact ok|]; assert (G0 := bpow_gt_0 radix2 (-900)); lra. Qed.

Lemma descended_inside : forall k, (descended k < V)%nat.
Proof.
intro k; destruct (Nat.lt_ge_cases (descended k) V) as [|G]; [assumption|exfalso].
assert (W := descent_weight t _ _ _ _ ok (le_n _) (start k) some_mass); fold (descended k) in W.
assert (A := below_mono t V (descended k) ok G); assert (B := below_top t (S (descended k)) ok); lra.
Qed.

Lemma descended_near : forall i, (i <= V)%nat -> Rabs (descended_below i - C i / C V) <= descent_eta.
Proof.
intros i I; assert (E := e64_small); assert (P := some_uniforms); assert (G0 := bpow_gt_0 radix2 (-900)).
assert (Near := weights_near i I); assert (Near' := weights_near V (le_n _)); rewrite padded in Near'.
set (h := height t) in *; set (n := (2 * h + j)%nat).
destruct (powers j) as [J1 [J2 J3]].
assert (X := some_mass); assert (W : 0 < C V) by (destruct Near'; nra).
destruct (C_pos i I) as [C0 C1].
assert (Y : 0 <= C i / C V <= 1).
{ split; [apply Rmult_le_pos; [lra | apply Rlt_le, Rinv_0_lt_compat, W]|].
  apply Rmult_le_reg_r with (C V); [exact W|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra. }
set (y := C i / C V) in *; assert (Ey : C i = y * C V) by (unfold y; field; lra).
assert (T := sum_rounded t h ok (le_n _)).
(* the computed total, against the exact weight *)
assert (Tn : rounded n (C V) (float_sum t)).
{ apply rounded_more with (h + j)%nat; [unfold n; lia | lra |]; destruct T as [T1 T2], Near' as [N1 N2].
  destruct (powers h) as [H1 [H2 H3]]; unfold rounded; rewrite !pow_add; split.
  - apply Rle_trans with (2 := T1); rewrite Rmult_assoc; apply Rmult_le_compat_l; lra.
  - apply Rle_trans with (1 := T2); rewrite Rmult_assoc; apply Rmult_le_compat_l; lra. }
set (lo := (1 - e64) ^ S n); set (hi := (1 + e64) ^ S n).
assert (Sn : (2 * h + j + 1)%nat = S n) by (unfold n; lia).
assert (D := growth (S n) e64 ltac:(lra)); rewrite <- Sn in D at 1; specialize (D shallow); fold lo hi in D.
destruct (powers (S n)) as [L0 [L1 H1]]; fold lo hi in L0, L1, H1.
set (d := hi / lo - 1) in *.
assert (Ehi : hi = (1 + d) * lo) by (unfold d; field; lra).
assert (D0 : 0 <= d) by nra.
assert (Below : 0 <= below t i) by (apply below_pos, ok).
assert (Tp : 0 < float_sum t) by lra.
destruct (powers (h + h)) as [K1 [K2 K3]]; destruct (powers n) as [M1 [M2 M3]].
assert (Split : forall x, x ^ n = x ^ (h + h) * x ^ j) by (intro x; rewrite <- pow_add; f_equal; unfold n; lia).
assert (U : forall k, 0 <= INR k / INR N).
{ intro k; apply Rmult_le_pos; [apply pos_INR | apply Rlt_le, Rinv_0_lt_compat, P]. }
assert (Up : forall k, (k < N)%nat -> Nat.ltb (descended k) i = true -> INR k / INR N < y + d + / INR N * 0).
{ intros k K Q; rewrite Rmult_0_r, Rplus_0_r; apply Nat.ltb_lt in Q.
  destruct (descent_above t _ _ _ _ i ok (le_n _) (start k) Q) as [A|A]; fold h in A.
  - rewrite Rplus_0_l in A; destruct (bar_near k) as [B _]; set (u := INR k / INR N) in *.
    assert (F : (1 + e64) ^ (h + h) * below t i <= (1 + e64) ^ n * C i).
    { rewrite Split, Rmult_assoc; apply Rmult_le_compat_l; [lra|apply Near]. }
    assert (G : (1 - e64) ^ n * C V <= float_sum t) by apply Tn.
    assert (Z : lo * (u * C V) < hi * (y * C V)).
    { unfold lo, hi; simpl pow; rewrite <- Ey.
      apply Rle_lt_trans with ((1 - e64) * (u * float_sum t)).
      - replace ((1 - e64) * (1 - e64) ^ n * (u * C V)) with ((1 - e64) * (u * ((1 - e64) ^ n * C V))) by ring.
        apply Rmult_le_compat_l; [lra|]; apply Rmult_le_compat_l; [apply U | exact G].
      - apply Rle_lt_trans with (1 := B), Rlt_le_trans with (1 := A), Rle_trans with (1 := F).
        rewrite Rmult_assoc; assert (0 <= (1 + e64) ^ n * C i) by (apply Rmult_le_pos; lra); nra. }
    rewrite Ehi in Z; assert (Z' : lo * C V * u < lo * C V * ((1 + d) * y)) by nra.
    apply Rmult_lt_reg_l in Z'; [|apply Rmult_lt_0_compat; lra]; nra.
  - assert (Y1 : y = 1) by (unfold y; rewrite (full i I A); field; lra).
    assert (INR k / INR N < 1).
    { apply Rmult_lt_reg_r with (INR N); [exact P|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_l, Rmult_1_r by lra.
      now apply lt_INR. }
    lra. }
assert (Down : forall k, (k < N)%nat -> INR k / INR N < y - d -> Nat.ltb (descended k) i = true).
{ intros k K Q; apply Nat.ltb_lt; destruct (Nat.lt_ge_cases (descended k) i) as [|G]; [assumption|exfalso].
  destruct (descent_below t _ _ _ _ i ok (le_n _) (start k) G) as [A|A]; fold h in A.
  - rewrite Rplus_0_l in A; destruct (bar_near k) as [_ B]; set (u := INR k / INR N) in *; specialize (U k); fold u in U.
    assert (F : (1 - e64) ^ n * C i <= (1 - e64) ^ (h + h) * below t i).
    { rewrite Split, Rmult_assoc; apply Rmult_le_compat_l; [lra|apply Near]. }
    assert (H : float_sum t <= (1 + e64) ^ n * C V) by apply Tn.
    assert (Z : lo * (y * C V) <= hi * (u * C V)).
    { unfold lo, hi; simpl pow; rewrite <- Ey.
      apply Rle_trans with ((1 + e64) * (u * float_sum t)).
      - apply Rle_trans with (2 := B), Rle_trans with (2 := A), Rle_trans with (2 := F).
        rewrite Rmult_assoc; assert (0 <= (1 - e64) ^ n * C i) by (apply Rmult_le_pos; lra); nra.
      - replace ((1 + e64) * (1 + e64) ^ n * (u * C V)) with ((1 + e64) * (u * ((1 + e64) ^ n * C V))) by ring.
        apply Rmult_le_compat_l; [lra|]; apply Rmult_le_compat_l; [exact U | exact H]. }
    rewrite Ehi in Z; assert (Z' : lo * C V * y <= lo * C V * ((1 + d) * u)) by nra.
    apply Rmult_le_reg_l in Z'; [|apply Rmult_lt_0_compat; lra]; nra.
  - assert (y = 0); [|specialize (U k); lra].
    destruct Near as [Near _]; rewrite A in Near; assert (C i = 0) by nra; unfold y; rewrite H; field; lra. }
destruct (counted (fun k => Nat.ltb (descended k) i) N (y - d) (y + d + / INR N * 0)
  ltac:(apply INR_lt; exact P) ltac:(lra) ltac:(rewrite Rmult_0_r; lra) Down Up) as [A B].
rewrite Rmult_0_r in B; unfold descent_eta; fold h; rewrite Sn; fold (descended_below i) in A, B.
assert (0 < / INR N) by (now apply Rinv_0_lt_compat).
apply Rabs_le; split; lra.
Qed.

Fixpoint descent_distance v :=
  match v with O => 0 | S i => descent_distance i + Rabs (descended_to i - (C (S i) - C i) / C V) end.

Lemma descended_step : forall i, descended_below (S i) - descended_below i = descended_to i.
Proof.
intro i; unfold descended_below, descended_to, Rdiv; rewrite count_step, plus_INR; ring.
Qed.

Lemma descent_error : / 2 * descent_distance V <= INR V * descent_eta.
Proof.
apply Rle_trans with (2 := tv_from_cdf descended_below (fun i => C i / C V) descent_eta V descended_near).
right; f_equal; generalize V at 1 3; intro v; induction v as [|v IH]; [reflexivity|]; simpl; rewrite IH.
f_equal; rewrite descended_step; f_equal; f_equal; unfold Rdiv; ring.
Qed.

End Descent.
