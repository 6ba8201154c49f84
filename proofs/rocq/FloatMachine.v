(** Floats, end to end, the parts: a pick and a coin of the machine, over the rationals.

    What it says.  What a program computes in floats, and how many of its uniforms it treats
    how, are rational numbers; [real_of] is their value as a real number.
    - [machine_row_tv]      the share of the 2^b uniforms that the tree of sums sends down to
      each token is within [pick_off] of the token's share of the weights, in total variation;
    - [machine_coin_near]   the share of the 2^c uniforms u whose float64 product with q(x) is
      below p(x) is within 2^-c of min(1, p(x) / q(x)), for float32 p and q.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/sums.py, coins.py. *)

From Coq Require Import ZArith QArith Qcanon Qreals Reals Lra Lia.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept FloatSums FloatThreshold FloatDescent FloatRow.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Loop Drift Drifting Rational.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** ** Rationals as real numbers *)

Notation real := Rdefinitions.R.
Notation rational := qc_realFieldType.
Definition real_of (a : rational) : real := Q2R (this a).
Implicit Types a b : rational.

Lemma val_red (x : Q) : Q2R (this (Q2Qc x)) = Q2R x.
Proof. by apply: Qeq_eqR; apply: Qred_correct. Qed.
Lemma val0 : real_of 0 = IZR 0.
Proof. exact: RMicromega.Q2R_0. Qed.
Lemma val1 : real_of 1 = IZR 1.
Proof. exact: RMicromega.Q2R_1. Qed.
Lemma valD a b : real_of (a + b) = Rplus (real_of a) (real_of b).
Proof. by rewrite /real_of val_red Q2R_plus. Qed.
Lemma valM a b : real_of (a * b) = Rmult (real_of a) (real_of b).
Proof. by rewrite /real_of val_red Q2R_mult. Qed.
Lemma valN a : real_of (- a) = Ropp (real_of a).
Proof. by rewrite /real_of val_red Q2R_opp. Qed.
Lemma valB a b : real_of (a - b) = Rminus (real_of a) (real_of b).
Proof. by rewrite valD valN. Qed.
Lemma val_le a b : (a <= b) <-> Rle (real_of a) (real_of b).
Proof.
split=> [/qc_leP le|le]; first exact: Qle_Rle.
by apply/qc_leP; apply: Rle_Qle.
Qed.
Lemma val_lt a b : (a < b) <-> Rlt (real_of a) (real_of b).
Proof.
rewrite ltNge; split=> [/negP ge|lt].
  by apply: Rnot_le_lt => le; apply: ge; apply/val_le.
by apply/negP => /val_le le; move: lt => /Rlt_not_le; apply.
Qed.
Lemma valV a : a != 0 -> real_of a^-1 = Rinv (real_of a).
Proof.
move=> z; apply: (Rmult_eq_reg_l (real_of a)).
  by rewrite -valM mulfV // val1 Rinv_r // => e; case/eqP: z; apply/eqP; rewrite eq_le; apply/andP;
    split; apply/val_le; rewrite val0 e; apply: Rle_refl.
by move=> e; case/eqP: z; apply/eqP; rewrite eq_le; apply/andP; split; apply/val_le; rewrite val0 e; apply: Rle_refl.
Qed.
Lemma val_div a b : b != 0 -> real_of (a / b) = Rdiv (real_of a) (real_of b).
Proof. by move=> z; rewrite valM valV. Qed.
Lemma valn n : real_of n%:R = INR n.
Proof. by elim: n => [|n IH]; [exact: val0 | rewrite mulrSr valD IH val1 S_INR]. Qed.
Lemma val_norm a : real_of `|a| = Rabs (real_of a).
Proof.
case: (lerP 0 a) => [ge|/ltW le].
  by rewrite ger0_norm // Rabs_pos_eq // -val0; apply/val_le.
by rewrite ler0_norm // valN -Rabs_Ropp Rabs_pos_eq // -valN -val0; apply/val_le; rewrite oppr_ge0.
Qed.
Lemma val_max a b : real_of (Num.max a b) = Rmax (real_of a) (real_of b).
Proof.
case: (leP a b) => [le|/ltW le].
  by rewrite Rmax_right //; apply/val_le.
by rewrite Rmax_left //; apply/val_le.
Qed.
Lemma val_half : real_of 2%:R^-1 = Rinv (IZR 2).
Proof. by rewrite valV // valn. Qed.

(** ** Sums over a vocabulary *)

Fixpoint summing (g : nat -> real) n : real := if n is i.+1 then Rplus (summing g i) (g i) else IZR 0.

Section Floats.
Variables (V : vocab) (L b c : nat).
Implicit Types (x : V) (p q w f : V -> rational) (h xs : seq V).
Definition size_of_vocab : nat := size (tokens V).
Hypothesis some_token : tokens V <> [::].
Hypothesis tree_holds : (size_of_vocab <= Nat.pow 2 L)%coq_nat.
Hypothesis b_bits : (b <= 53)%N.
Hypothesis c_bits : (c <= 24)%N.
Hypothesis shallow : (L <= 1000)%N.

Definition place x : nat := index x (tokens V).

Lemma tokens_uniq : uniq (tokens V).
Proof. by apply: count_mem_uniq => x; rewrite token_in; apply: tokens_once. Qed.

Lemma val_total f g : (forall x, real_of (f x) = g (place x)) -> real_of (total f) = summing g size_of_vocab.
Proof.
move=> e; rewrite totalE /size_of_vocab.
case t: (tokens V) => [|d s]; first by rewrite big_nil val0.
rewrite -t (big_nth d).
have : forall i, (i < size (tokens V))%N -> real_of (f (nth d (tokens V) i)) = g i.
  by move=> i lt; rewrite e /place index_uniq // tokens_uniq.
elim: (size (tokens V)) => [|n IH] ok; first by rewrite big_geq // val0.
rewrite big_nat_recr //= valD IH; first by rewrite ok.
by move=> i lt; apply: ok; apply: ltnW.
Qed.

Definition values w : list real := [seq real_of (w x) | x <- tokens V].

Lemma values_nth w x : List.nth (place x) (values w) (IZR 0) = real_of (w x).
Proof.
rewrite /values /place; have := token_in x; elim: (tokens V) => [|y s IH] //=.
by rewrite inE eq_sym; case: eqP => [->|_] //= /IH.
Qed.

Lemma values_length w : length (values w) = size_of_vocab.
Proof. by rewrite /values /size_of_vocab; elim: (tokens V) => //= y s ->. Qed.

Lemma sum_before_summing (u : list real) n : sum_before u n = summing (fun i => List.nth i u (IZR 0)) n.
Proof. by elim: n => [|n IH]; [case: u | rewrite sum_before_step IH]. Qed.

Lemma values_total w : sum_before (values w) (length (values w)) = real_of (total w).
Proof. by rewrite values_length sum_before_summing; symmetry; apply: val_total => x; rewrite values_nth. Qed.

(** ** A pick of the machine *)

Definition grid_of bits : nat := Nat.pow 2 bits.
(** The share of the uniforms that go down to x, in the tree over the numbers y. *)
Definition machine_row (y : list real) x : rational :=
  (FloatDescent.count (fun k => Nat.eqb (descended (sum_tree L y) (grid_of b) k) (place x)) (grid_of b))%:R / (grid_of b)%:R.

(** V (4 (2 L + j + 1) 2^-53 + 2^-b). *)
Definition pick_off_at (size levels j bits : nat) : rational :=
  size%:R * ((4 * (2 * levels + j + 1))%N%:R / 2%:R ^+ 53 + (2%:R ^+ bits)^-1).
Definition pick_off j : rational := pick_off_at size_of_vocab L j b.

Lemma powers_of_two n : real_of (2%:R ^+ n) = pow (IZR 2) n.
Proof. by elim: n => [|n IH]; [exact: val1 | rewrite exprS valM IH valn]. Qed.
Lemma grid_val n : INR (grid_of n) = pow (IZR 2) n.
Proof. by rewrite /grid_of pow_INR. Qed.
Lemma two_power n : 2%:R ^+ n != 0 :> Qc.
Proof. by rewrite expf_neq0. Qed.
Lemma grid_some n : (grid_of n)%:R != 0 :> Qc.
Proof.
apply/eqP => e; have : real_of (grid_of n)%:R = IZR 0 by rewrite e val0.
by rewrite valn grid_val; apply: pow_nonzero; lra.
Qed.
Lemma e64_power : Rmult (pow (IZR 2) 53) e64 = IZR 1.
Proof. by rewrite e64E /=; lra. Qed.
Lemma grids n : (n <= 53)%N -> Rmult (Rmult (INR (grid_of n)) (INR (grid_of (53 - n)))) e64 = IZR 1.
Proof. by move=> le; rewrite !grid_val -pow_add -e64_power; congr (Rmult (pow _ _) _); rewrite plusE subnKC. Qed.

Lemma pick_off_val j : real_of (pick_off j) = Rmult (INR size_of_vocab) (row_eta L (grid_of b) j).
Proof.
rewrite /pick_off /pick_off_at valM valn valD val_div ?two_power // valV ?two_power // valn !powers_of_two /row_eta grid_val.
have e53 : Rinv (pow (IZR 2) 53) = e64 by rewrite e64E /=; lra.
rewrite /Rdiv e53 -multE mult_INR Rmult_assoc; congr (Rmult _ (Rplus (Rmult _ _) _)).
by rewrite /=; lra.
Qed.

(** What was computed for the weights w, with j roundings. *)
Definition computes j w (y : list real) := List.Forall2 (weighed j) (values w) y.
(** The computed total is nothing that could underflow. *)
Definition heavy (y : list real) := Rle (bpow radix2 (-900)) (float_sum (sum_tree L y)).

Lemma values_some w : values w <> List.nil.
Proof. by rewrite /values; case: (tokens V) some_token. Qed.

Section Pick.
Variables (j : nat) (w : V -> rational) (y : list real).
Hypothesis j1 : (j <= 1)%N.
Hypothesis w_near : computes j w y.
Hypothesis y_heavy : heavy y.

Let uniforms := grids b_bits.

Lemma flat : Rle (Rmult (INR (2 * L + j + 1)) e64) (Rdiv (IZR 1) (IZR 8)).
Proof.
have few : (2 * L + j + 1 <= 2002)%N by rewrite (leq_add (leq_add (leq_mul (leqnn 2) shallow) j1) (leqnn 1)).
apply: Rle_trans (_ : Rle (Rmult (INR 2002) e64) _); last by rewrite (INR_IZR_INZ 2002) e64E /=; lra.
by apply: Rmult_le_compat_r; [have := e64_small; lra | apply/le_INR/ssrnat.leP].
Qed.

Lemma machine_row_val x : real_of (machine_row y x) = picked L (grid_of b) y (place x).
Proof. by rewrite /machine_row val_div ?grid_some // !valn. Qed.

Lemma fits : (length (values w) <= Nat.pow 2 L)%coq_nat.
Proof. by rewrite values_length. Qed.

Lemma all_picked n : summing (fun i => picked L (grid_of b) y i) n = descended_below (sum_tree L y) (grid_of b) n.
Proof.
elim: n => [|n IH]; last first.
  by have := descended_step (sum_tree L y) (grid_of b) n; rewrite [summing _ _.+1]/= IH /picked /tree; lra.
rewrite /descended_below; suff -> : FloatDescent.count (fun k => Nat.ltb (descended (sum_tree L y) (grid_of b) k) 0) (grid_of b) = 0%N.
  by rewrite /= /Rdiv Rmult_0_l.
by elim: {2}(grid_of b) => [|m IH]; rewrite //= IH.
Qed.

Lemma count_all (test : nat -> bool) n : (forall k, test k = true) -> FloatDescent.count test n = n.
Proof. by move=> all; elim: n => [|n IH] //=; rewrite IH all plusE addn1. Qed.

Lemma grid_positive : Rlt (IZR 0) (INR (grid_of b)).
Proof. by rewrite grid_val; apply: pow_lt; lra. Qed.

Lemma machine_row_dist : dist (machine_row y).
Proof.
have inside := picked_inside L (grid_of b) (grid_of (53 - b)) j (values w) y uniforms y_heavy fits w_near (@values_some w).
split=> [x|]; first by rewrite /machine_row divr_ge0 // ler0n.
apply/eqP; rewrite eq_le; suff e : real_of (total (machine_row y)) = real_of 1.
  by apply/andP; split; apply/val_le; rewrite e; apply: Rle_refl.
rewrite (val_total (g := fun i => picked L (grid_of b) y i)); last exact: machine_row_val.
rewrite all_picked val1 /descended_below count_all.
  by rewrite /Rdiv Rinv_r //; have := grid_positive; lra.
by move=> k; apply/Nat.ltb_lt; have := inside k; rewrite values_length.
Qed.

Lemma total_some : total w != 0.
Proof.
apply/eqP => z; have := row_error L (grid_of b) (grid_of (53 - b)) j (values w) y uniforms flat y_heavy fits w_near (@values_some w).
have near := sum_before_near j (values w) y w_near (length (values w)).
have := tree_exact L j (values w) y fits w_near (@values_some w).
rewrite values_total z val0 in near; move: near; rewrite /rounded !Rmult_0_r => near ex.
have := sum_nothing; have := y_heavy; rewrite /heavy => hv.
have ok := tree_ok L j (values w) y fits w_near (@values_some w).
have pos := bpow_gt_0 radix2 (-900).
have := sum_something (sum_tree L y) ok; rewrite /tree in ex; lra.
Qed.

Lemma machine_row_tv : tv (machine_row y) (Drifting.share w) <= pick_off j.
Proof.
apply/val_le; rewrite pick_off_val /tv valM val_half.
have := row_error L (grid_of b) (grid_of (53 - b)) j (values w) y uniforms flat y_heavy fits w_near (@values_some w).
rewrite values_length; apply: Rle_trans; apply: Req_le; congr (Rmult _ _).
rewrite (val_total (g := fun i => Rabs (Rminus (picked L (grid_of b) y i)
  (Rdiv (List.nth i (values w) (IZR 0)) (sum_before (values w) (length (values w))))))).
  by elim: size_of_vocab => [|n IH] //=; rewrite IH.
move=> x; rewrite val_norm valB machine_row_val /Drifting.share val_div ?total_some //.
by rewrite values_nth values_total.
Qed.

Lemma w_pos x : 0 <= w x.
Proof. by apply/val_le; rewrite val0 -values_nth; apply: (weighed_pos j _ y w_near). Qed.

Lemma machine_row_near : near (pick_off j) (machine_row y) (Drifting.share w).
Proof.
apply: tv_near machine_row_tv; first exact: machine_row_dist.
apply: share_dist; first exact: w_pos.
by rewrite lt_neqAle eq_sym total_some total_ge0 // => x; apply: w_pos.
Qed.

End Pick.

(** ** The coin of the ratio rule *)

Definition machine_coin p q x : rational :=
  (FloatDescent.count (fun k => Rlt_bool (rnd64 (Rmult (Rdiv (INR k) (INR (grid_of c))) (real_of (q x)))) (real_of (p x)))
    (grid_of c))%:R / (grid_of c)%:R.
Definition coin_off : rational := (2%:R ^+ c)^-1.

Definition float32_row w := forall x, 0 <= w x /\ float32 (real_of (w x)).

Lemma count_up (test : nat -> bool) n : (FloatDescent.count test n <= n)%N.
Proof. by elim: n => [|n IH] //=; rewrite plusE -[in leqRHS]addn1 leq_add //; case: (test n). Qed.

Lemma all_of_the_grid : Z.of_nat (Nat.pow 2 c * Nat.pow 2 (24 - c)) = Z.pow 2 24.
Proof. by rewrite -multE -Nat.pow_add_r plusE (subnKC c_bits) Nat2Z.inj_pow. Qed.

Lemma grid_point k : (k < grid_of c)%N -> grid 24 (Rdiv (INR k) (INR (grid_of c))).
Proof.
move=> lt; exists (Z.of_nat (k * Nat.pow 2 (24 - c))); split.
  split; first exact: Nat2Z.is_nonneg.
  rewrite -all_of_the_grid; apply: inj_lt; apply/ssrnat.ltP; rewrite ltn_mul2r lt andbT.
  by apply/ssrnat.ltP/Nat.neq_0_lt_0; apply: Nat.pow_nonzero.
rewrite -INR_IZR_INZ -multE mult_INR pow_INR /Rdiv grid_val.
have e24 : bpow radix2 (- (24)) = Rinv (Rmult (pow (IZR 2) c) (pow (IZR 2) (24 - c))).
  rewrite -pow_add plusE (subnKC c_bits) bpow_opp; congr Rinv; rewrite bpow_powerRZ; exact: pow_powerRZ.
have one := Rinv_r (pow (IZR 2) (24 - c)) (pow_nonzero (IZR 2) (24 - c) ltac:(lra)).
rewrite e24 Rinv_mult (_ : INR 2 = IZR 2); last exact: INR_IZR_INZ.
by rewrite Rmult_assoc (Rmult_comm (Rinv _)) -(Rmult_assoc (pow _ (24 - c))) one Rmult_1_l.
Qed.

Lemma machine_coin01 p q x : 0 <= machine_coin p q x <= 1.
Proof.
have g0 : 0 < (grid_of c)%:R :> rational by rewrite lt_neqAle eq_sym grid_some ler0n.
by rewrite divr_ge0 ?ler0n //= ler_pdivr_mulr // mul1r ler_nat count_up.
Qed.

Lemma machine_coin_near p q x : float32_row p -> float32_row q -> `|machine_coin p q x - accept p q x| <= coin_off.
Proof.
move=> pP qP; have [p0 pf] := pP x; have [q0 qf] := qP x.
have G : Rlt (IZR 0) (INR (grid_of c)) by rewrite grid_val; apply: pow_lt; lra.
have off0 : 0 <= coin_off by rewrite /coin_off invr_ge0 exprn_ge0.
set test := (fun k => Rlt_bool (rnd64 (Rmult (Rdiv (INR k) (INR (grid_of c))) (real_of (q x)))) (real_of (p x))).
have exact_test k : (k < grid_of c)%N -> test k = true <-> Rlt (Rmult (Rdiv (INR k) (INR (grid_of c))) (real_of (q x))) (real_of (p x)).
  move=> lt; rewrite /test -(accept_test_exact _ _ _ (grid_point lt) qf).
  by case: Rlt_bool_spec => [l|l]; split=> // l'; lra.
have val_coin : real_of (machine_coin p q x) = Rdiv (INR (FloatDescent.count test (grid_of c))) (INR (grid_of c)).
  by rewrite /machine_coin val_div ?grid_some // !valn.
have some : (0 < grid_of c)%coq_nat by apply: INR_lt.
have p0' : Rle (IZR 0) (real_of (p x)) by rewrite -val0; apply/val_le.
have q0' : Rle (IZR 0) (real_of (q x)) by rewrite -val0; apply/val_le.
have below1 k : (k < grid_of c)%coq_nat -> Rle (IZR 0) (Rdiv (INR k) (INR (grid_of c))) /\ Rlt (Rdiv (INR k) (INR (grid_of c))) (IZR 1).
  move=> /lt_INR lt; split; first by apply: Rmult_le_pos; [apply: pos_INR | apply: Rlt_le; apply: Rinv_0_lt_compat].
  by apply: (Rmult_lt_reg_r _ _ _ G); rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_r ?Rmult_1_l //; lra.
have all_or r : real_of (accept p q x) = r ->
    (forall k, (k < grid_of c)%coq_nat -> Rlt (Rdiv (INR k) (INR (grid_of c))) r -> test k = true) ->
    (forall k, (k < grid_of c)%coq_nat -> test k = true -> Rlt (Rdiv (INR k) (INR (grid_of c))) r) ->
    Rle (IZR 0) r -> Rle r (IZR 1) -> `|machine_coin p q x - accept p q x| <= coin_off.
  move=> e below above r0 r1; have [lo hi] := counted test (grid_of c) r r some r1 r0 below above.
  apply/val_le; rewrite val_norm valB val_coin e /coin_off valV ?two_power // powers_of_two -grid_val.
  by apply: Rabs_le; have := Rinv_0_lt_compat _ G; lra.
rewrite /accept; case: (ltP (p x) (q x)) => [lt|le].
  have lt' : Rlt (real_of (p x)) (real_of (q x)) by apply/val_lt.
  have z : q x != 0 by rewrite gt_eqF // (le_lt_trans p0 lt).
  have cut k : Rlt (Rmult (Rdiv (INR k) (INR (grid_of c))) (real_of (q x))) (real_of (p x))
    <-> Rlt (Rdiv (INR k) (INR (grid_of c))) (Rdiv (real_of (p x)) (real_of (q x))).
    have qr : Rlt (IZR 0) (real_of (q x)) by lra.
    split=> l.
      by apply: (Rmult_lt_reg_r _ _ _ qr); rewrite [Rmult (Rdiv (real_of _) _) _]Rmult_assoc Rinv_l ?Rmult_1_r //; lra.
    by have := Rmult_lt_compat_r _ _ _ qr l; rewrite [Rmult (Rdiv (real_of _) _) _]Rmult_assoc Rinv_l ?Rmult_1_r //; lra.
  have := all_or (Rdiv (real_of (p x)) (real_of (q x))); rewrite /accept lt; apply.
  - exact: val_div.
  - by move=> k /ssrnat.ltP lk l; apply/exact_test => //; apply/cut.
  - by move=> k /ssrnat.ltP lk l; apply/cut; apply/exact_test.
  - by apply: Rmult_le_pos => //; apply: Rlt_le; apply: Rinv_0_lt_compat; lra.
  - by apply: (Rmult_le_reg_r (real_of (q x))); [lra | rewrite /Rdiv Rmult_assoc Rinv_l; lra].
have le' : Rle (real_of (q x)) (real_of (p x)) by apply/val_le.
case: (ltP 0 (p x)) => [lt0|le0].
  have lt' : Rlt (IZR 0) (real_of (p x)) by rewrite -val0; apply/val_lt.
  have := all_or (IZR 1); rewrite /accept ltNge le lt0 /=; apply; try lra.
  - exact: val1.
  - move=> k lk _; apply/exact_test; first exact/ssrnat.ltP.
    have [u0 u1] := below1 k lk; case: (Rle_lt_or_eq_dec _ _ q0') => [qr|<-]; last by rewrite Rmult_0_r.
    by have := Rmult_lt_compat_r _ _ _ qr u1; lra.
  - by move=> k lk _; have [] := below1 k lk.
have pz : Rle (real_of (p x)) (IZR 0) by rewrite -val0; apply/val_le.
have := all_or (IZR 0); rewrite /accept ltNge le ltNge le0 /=; apply; try lra.
- exact: val0.
- by move=> k lk l; have [] := below1 k lk; lra.
- move=> k lk l; have [u0 _] := below1 k lk; move/exact_test: l => /(_ (introT ssrnat.ltP lk)).
  by have := Rmult_le_pos _ _ u0 q0'; lra.
Qed.

End Floats.
