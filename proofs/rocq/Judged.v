(** What is judged against rows that were computed: how far one step is from the row that it should emit.

    What it says.
    - [rounded_share]  a row whose numbers are off by e of its mass, all together, is off by e;
    - [judged]         the ratio rule between any two rows, going on with a value b after a refusal,
      is off by the difference of their sums and by what b is off, weighed by the excess;
    - [mismatch_close] two sums that are near one number are near each other.

    Source: ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Drift Drifting.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Judged.
Variables (R : realFieldType) (V : vocab).
Implicit Types (x y : V) (f r w : V -> R).

(** ** Rows that were rounded *)

Section Rounded.
Variables (w w' : V -> R).
Hypothesis w'0 : forall x, 0 <= w' x.
Hypothesis w'1 : 0 < total w'.
Definition moved : R := total (fun x => `|w' x - w x|).

Lemma moved_share f : unit_test f -> total w * pick (share w') f <= total (fun x => w x * f x) + moved.
Proof.
move=> f01; set b := pick (share w') f; have b01 : 0 <= b <= 1 by apply: pick01 => //; apply: share_dist.
have z : total w' != 0 by rewrite gt_eqF.
have fair : total (fun x => w' x * (b - f x)) = 0.
  rewrite (total_ext (g := fun x => w' x * b - w' x * f x)) => [|x]; last by rewrite mulrBr.
  by rewrite total_sub total_scaler /b pick_share mulrCA mulfV // mulr1 subrr.
clearbody b; have owes : total w * b - total (fun x => w x * f x) = total (fun x => (w x - w' x) * (b - f x)).
  rewrite [RHS](total_ext (g := fun x => (w x * b - w x * f x) - w' x * (b - f x))) => [|x]; last by ring.
  by rewrite !total_sub fair subr0 total_scaler.
rewrite -ler_subl_addl owes; apply: total_le => x; apply: le_trans (ler_norm _) _.
by rewrite normrM distrC -[leRHS]mulr1; apply: ler_pmul => //; apply: apart.
Qed.

Lemma rounded_share e : 0 < total w -> moved <= e * total w -> near e (share w') (share w).
Proof.
move=> w1 le f f01; rewrite (pick_share w) -(ler_pmul2l w1) mulrDr mulrCA mulfV ?gt_eqF // mulr1.
by apply: le_trans (moved_share f01) _; rewrite ler_add2l mulrC.
Qed.
End Rounded.

Lemma near_sym e r r' : dist r -> dist r' -> near e r r' -> near e r' r.
Proof.
move=> rP r'P ok f f01; have f'01 : unit_test (fun x => 1 - f x).
  by move=> x; have /andP[a b] := f01 x; rewrite subr_ge0 b /= ler_subl_addr ler_addl.
have := ok _ f'01; rewrite !(law_sub (lawful_pick _)) // !(law_const (lawful_pick _)) //.
by rewrite -addrA ler_add2l addrC ler_subr_addr addrC ler_subl_addr addrC.
Qed.

(** ** One step between two rows *)

Section Step.
Variables (p q : V -> R).
Hypothesis p0 : forall x, 0 <= p x.
Hypothesis q0 : forall x, 0 <= q x.
Hypothesis p1 : 0 < total p.
Hypothesis q1 : 0 < total q.

Lemma overlap_sums : 0 <= overlap p q /\ overlap p q <= total p /\ overlap p q <= total q.
Proof.
split; first by apply: total_ge0 => x; rewrite le_minr p0 q0.
by split; apply: total_le => x; rewrite le_minl lexx ?orbT.
Qed.

Lemma judged_value f b : pick (share q) (fun x => accept p q x * f x + (1 - accept p q x) * b)
  = b + (total (fun x => Num.min (p x) (q x) * f x) - overlap p q * b) / total q.
Proof.
have z : total q != 0 by rewrite gt_eqF.
rewrite pick_share (total_ext (g := fun x => Num.min (p x) (q x) * f x + (q x - Num.min (p x) (q x)) * b)).
  by rewrite total_add total_scaler total_sub -/(overlap p q); field.
by move=> x; rewrite -accept_mass //; ring.
Qed.

Lemma judged f b e : unit_test f -> 0 <= b <= 1 ->
  total (excess p q) * b <= total (fun x => excess p q x * f x) + total p * e ->
  pick (share q) (fun x => accept p q x * f x + (1 - accept p q x) * b) <= pick (share p) f + (mismatch p q + e).
Proof.
move=> f01 b01 off; rewrite judged_value; have [o0 [op oq]] := overlap_sums.
set a := total (fun x => Num.min (p x) (q x) * f x); set o := overlap p q in o0 op oq *.
have a01 : 0 <= a <= o.
  apply/andP; split; first by apply: total_ge0 => x; rewrite mulr_ge0 ?le_minr ?p0 ?q0 //; case/andP: (f01 x).
  apply: total_le => x; rewrite -[leRHS]mulr1 ler_wpmul2l ?le_minr ?p0 ?q0 //; by case/andP: (f01 x).
have ob01 : 0 <= o * b <= o by case/andP: b01 => b0 b1; rewrite mulr_ge0 //= -[leRHS]mulr1 ler_wpmul2l.
have zp : total p != 0 by rewrite gt_eqF.
have zq : total q != 0 by rewrite gt_eqF.
have due : pick (share p) f = (a + total (fun x => excess p q x * f x)) / total p.
  rewrite pick_share -total_add; congr (_ / _); apply: total_ext => x.
  by rewrite excess_min; ring.
have least_due : b + (a - o * b) / total p - e <= pick (share p) f.
  move: off; rewrite due ler_pdivl_mulr // total_excess -/o => off.
  have -> : (b + (a - o * b) / total p - e) * total p = a + ((total p - o) * b - total p * e) by field.
  by rewrite ler_add2l ler_subl_addr.
have tilt : (a - o * b) / total q - (a - o * b) / total p <= mismatch p q.
  have -> : (a - o * b) / total q - (a - o * b) / total p = (a - o * b) * (total p - total q) / (total p * total q).
    by field; rewrite zp zq.
  have pq0 : 0 < total p * total q by rewrite mulr_gt0.
  have x0 : 0 < Num.max (total p) (total q) by rewrite lt_maxr p1.
  apply: le_trans (ler_norm _) _; rewrite !normrM normfV (ger0_norm (ltW pq0)) ler_pdivr_mulr // /mismatch.
  rewrite [leLHS]mulrC -[leRHS]mulrA; apply: ler_wpmul2l => //.
  rewrite [leRHS]mulrC ler_pdivl_mulr //; apply: le_trans (_ : o * Num.max (total p) (total q) <= _).
    by apply: ler_wpmul2r; [apply: ltW | apply: apart].
  case: (leP (total p) (total q)) => [_|_]; first by rewrite ler_wpmul2r // ltW.
  by rewrite mulrC ler_wpmul2l // ltW.
have -> : b + (a - o * b) / total q
        = (b + (a - o * b) / total p - e) + ((a - o * b) / total q - (a - o * b) / total p + e) by ring.
by apply: ler_add => //; rewrite ler_add2r.
Qed.

Lemma mismatch_close m a c : 0 < m -> 0 <= a -> 0 <= c -> `|total p - m| <= a * m -> `|total q - m| <= c * m ->
  mismatch p q <= a + c.
Proof.
move=> m0 a0 c0 pm qm; have x0 : 0 < Num.max (total p) (total q) by rewrite lt_maxr p1.
rewrite /mismatch ler_pdivr_mulr //.
have apart2 : `|total p - total q| <= (a + c) * m.
  have -> : total p - total q = (total p - m) - (total q - m) by ring.
  by apply: le_trans (ler_norm_sub _ _) _; rewrite mulrDl; apply: ler_add.
case: (leP m (Num.max (total p) (total q))) => [le|lt].
  by apply: le_trans apart2 _; apply: ler_wpmul2l => //; apply: addr_ge0.
have below (s t d d' : R) : 0 <= d -> 0 <= d' -> 0 < s -> s <= t -> t < m -> `|s - m| <= d * m -> t - s <= (d + d') * t.
  move=> d0 d'0 s0 st tm; rewrite ler_distl => /andP[low _].
  have t0 : 0 < t by apply: lt_le_trans st.
  apply: le_trans (_ : d * t <= _); last by apply: ler_wpmul2r; [apply: ltW | rewrite ler_addl].
  case: (leP d 1) => [d1|/ltW d1].
    have shrunk : t - d * t <= m - d * m.
      have -> : t - d * t = (1 - d) * t by ring.
      have -> : m - d * m = (1 - d) * m by ring.
      by apply: ler_wpmul2l; [rewrite subr_ge0 | apply: ltW].
    by rewrite ler_subl_addr -ler_subl_addl; apply: le_trans shrunk low.
  apply: le_trans (_ : t <= _); first by rewrite ler_subl_addr ler_addl ltW.
  by rewrite -[leLHS]mul1r; apply: ler_wpmul2r => //; apply: ltW.
case: (leP (total p) (total q)) lt => [le lt|/ltW le lt].
  by rewrite ler0_norm ?subr_le0 // opprB; exact: (below _ _ _ _ a0 c0 p1 le lt pm).
by rewrite ger0_norm ?subr_ge0 // [a + c]addrC; exact: (below _ _ _ _ c0 a0 q1 le lt qm).
Qed.
End Step.
End Judged.
