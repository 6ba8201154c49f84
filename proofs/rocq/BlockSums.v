(** Block verification in floats: the sums of one level, as real numbers.

    What it says.  n / d is the weight, p and q sum to tp and tq, P and Q to what was computed for n p and d q, and S to
    (P - Q)+; a rounding is off by a share e, a total by a share x.  S', X and F are the computed mass, mass + d and
    mass + d - n.
    - [quotient_near]  a quotient of two numbers that were rounded;
    - [rows_near]      P and Q are near n tp and d tp;
    - [back_near]      S' is near S, F near S + Q - P, and F not below S' by more than 11 e.

    Source: ours. *)

From Coq Require Import ZArith Reals Lra.
From Flocq Require Import Core.
From mathcomp Require Import all_ssreflect.
Open Scope R_scope.

Lemma quotient_near (a b a' b' e : R) : 0 <= a <= b -> / 2 <= b <= 1 -> / 2 <= b' -> 0 <= e ->
  Rabs (a' - a) <= 2 * e -> Rabs (b' - b) <= 2 * e -> Rabs (a' / b' - a / b) <= 8 * e.
Proof.
move=> ab b1 b2 e0 /Rabs_le_inv na /Rabs_le_inv nb.
have q : 0 <= a / b <= 1.
  split; first by apply: Rmult_le_pos; [lra | apply: Rlt_le; apply: Rinv_0_lt_compat; lra].
  by apply: (Rmult_le_reg_r b); [lra | rewrite /Rdiv Rmult_assoc Rinv_l; lra].
have -> : a' / b' - a / b = ((a' - a) + a / b * (b - b')) / b' by field; lra.
have small : Rabs ((a' - a) + a / b * (b - b')) <= 4 * e.
  have t : Rabs (a / b * (b - b')) <= 1 * (2 * e).
    rewrite Rabs_mult; apply: Rmult_le_compat; try apply: Rabs_pos; apply: Rabs_le; lra.
  by move/Rabs_le_inv: t => t; apply: Rabs_le; lra.
rewrite /Rdiv Rabs_mult (Rabs_pos_eq (/ b')); last by apply: Rlt_le; apply: Rinv_0_lt_compat; lra.
have inv : / b' <= 2 by rewrite -(Rinv_involutive 2); [apply: Rinv_le_contravar; lra | lra].
apply: Rle_trans (_ : 4 * e * 2 <= _); last lra.
by apply: Rmult_le_compat => //; [apply: Rabs_pos | apply: Rlt_le; apply: Rinv_0_lt_compat; lra].
Qed.

Section Level.
Variables (tp tq n d P Q S T S' X F e x l m dust : R).
Hypothesis m8 : 0 <= m <= / 8.
Hypothesis e64 : 0 <= e <= / 64.
Hypothesis l1 : 0 <= l <= 1.
Hypothesis tp_near : Rabs (tp - 1) <= m.
Hypothesis tq_near : Rabs (tq - 1) <= m.
Hypothesis n_d : 0 <= n <= d.
Hypothesis d_half : / 2 <= d <= 1.
Hypothesis P_near : Rabs (P - tp * n) <= e * (tp * n) + e * l.
Hypothesis Q_near : Rabs (Q - tq * d) <= e * (tq * d) + e * l.
Hypothesis S_pos : 0 <= S <= P.

Lemma products_small : 0 <= tp * n <= 9 / 8 * d /\ n - m * d <= tp * n <= n + m * d
  /\ d - m * d <= tq * d <= d + m * d /\ 7 / 8 * d <= tq * d.
Proof.
move/Rabs_le_inv: tp_near => t1; move/Rabs_le_inv: tq_near => t2.
have mn : 0 <= m * n <= m * d by split; [apply: Rmult_le_pos | apply: Rmult_le_compat_l]; lra.
have a : (1 - m) * n <= tp * n <= (1 + m) * n by split; apply: Rmult_le_compat_r; lra.
have b : (1 - m) * d <= tq * d <= (1 + m) * d by split; apply: Rmult_le_compat_r; lra.
have md : 0 <= m * d <= / 8 * d by split; [apply: Rmult_le_pos | apply: Rmult_le_compat_r]; lra.
have c : 0 <= (1 - m) * n by apply: Rmult_le_pos; lra.
lra.
Qed.

Lemma products_near : Rabs (P - tp * n) <= 3 * e /\ Rabs (Q - tq * d) <= e * (tq * d) + e
  /\ e * (tq * d) <= 2 * e.
Proof.
have [tn [_ [td _]]] := products_small; move/Rabs_le_inv: P_near => p1; move/Rabs_le_inv: Q_near => q1.
have md : 0 <= m * d <= / 8 * 1 by split; [apply: Rmult_le_pos | apply: Rmult_le_compat]; lra.
have el : 0 <= e * l <= e * 1 by split; [apply: Rmult_le_pos | apply: Rmult_le_compat_l]; lra.
have etn : e * (tp * n) <= e * 2 by apply: Rmult_le_compat_l; lra.
have etd : e * (tq * d) <= e * 2 by apply: Rmult_le_compat_l; lra.
by split; [apply: Rabs_le; lra | split; [apply: Rabs_le; lra | lra]].
Qed.

Lemma rows_near : Rabs (P - tp * n) <= 3 * e /\ Rabs (tp * d - Q) <= 2 * (m * d) + 3 * e
  /\ 4 / 5 * d <= Q /\ S <= 2.
Proof.
have [tn [_ [td td7]]] := products_small; have [pn [qn q2]] := products_near.
move/Rabs_le_inv: tp_near => t1; have tpd : (1 - m) * d <= tp * d <= (1 + m) * d by split; apply: Rmult_le_compat_r; lra.
move/Rabs_le_inv: (pn) => p1; move/Rabs_le_inv: qn => q1.
have share : e * (tq * d) <= / 64 * (tq * d) by apply: Rmult_le_compat_r; lra.
by split; [exact: pn | split; [apply: Rabs_le; lra | lra]].
Qed.

Hypothesis x8 : 0 <= x <= / 8.
Hypothesis dust_small : 0 <= dust <= e.
Hypothesis T_near : Rabs (T - S) <= e * S.
Hypothesis S'_near : Rabs (S' - T) <= x * T.
Hypothesis X_near : Rabs (X - (S' + d)) <= e * Rabs (S' + d) + dust.
Hypothesis F_near : Rabs (F - (X - n)) <= e * Rabs (X - n) + dust.

Lemma mass_near : Rabs (S - S') <= 2 * e + 4 * x /\ 0 <= S' <= 3.
Proof.
have [_ [_ [_ S2]]] := rows_near; move/Rabs_le_inv: T_near => r1; move/Rabs_le_inv: S'_near => s1.
have eS : 0 <= e * S <= e * 2 by split; [apply: Rmult_le_pos | apply: Rmult_le_compat_l]; lra.
have eS1 : e * S <= / 64 * S by apply: Rmult_le_compat_r; lra.
have xT : 0 <= x * T <= x * 4 by split; [apply: Rmult_le_pos | apply: Rmult_le_compat_l]; lra.
have xT1 : x * T <= / 8 * T by apply: Rmult_le_compat_r; lra.
by split; [apply: Rabs_le; lra | lra].
Qed.

Lemma back_near : Rabs (S - S') <= 2 * e + 4 * x /\ S' - 11 * e <= F
  /\ Rabs (S + Q - P - F) <= 2 * (m * d) + 19 * e + 4 * x.
Proof.
have [_ [tn1 [td _]]] := products_small; have [pn [qn q2]] := products_near; have [sn s3] := mass_near.
have a1 : Rabs (S' + d) <= 4 by apply: Rabs_le; lra.
have b1 : e * Rabs (S' + d) <= e * 4 by apply: Rmult_le_compat_l; lra.
move/Rabs_le_inv: X_near => u1; have a2 : Rabs (X - n) <= 5 by apply: Rabs_le; lra.
have b2 : e * Rabs (X - n) <= e * 5 by apply: Rmult_le_compat_l; lra.
move/Rabs_le_inv: F_near => f1; move/Rabs_le_inv: pn => p1; move/Rabs_le_inv: qn => q1; move/Rabs_le_inv: (sn) => s1.
by split; [exact: sn | split; [lra | apply: Rabs_le; lra]].
Qed.
End Level.
