(** One draft token: the accept-or-resample step.

    What it says.  With target row [p] and draft row [q]:
    - [acceptance_is_one_minus_tv]  sum_x min(p,q) = 1 - TV(p,q);
    - [single_step]                 drafting x ~ q, keeping it with probability
                                    min(1, p x / q x) and otherwise drawing from
                                    the residual emits exactly [p];
    - [residual_iff_used]           norm(max(p-q, 0)) is a row iff rejection has
                                    positive probability; elsewhere the fallback
                                    is never reached, so its choice is free;
    - [acceptance_optimal]          no lossless step keeps a single draft token
                                    more often than sum_x min(p,q).
    q x = 0 and p = q (0/0) are included.  A token that q cannot have drawn counts
    as q x -> 0: it is kept iff p x > 0, as in refengine.exact.

    Source: Leviathan et al. 2023, Alg. 1, Thm 3.5, Cor. 3.6, App. A.1; Chen et al.
    2023, Thm 1 (who swap the letters p and q). *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Single.
Variables (R : realFieldType) (V : vocab).
Implicit Types (p q : V -> R) (f : V -> R) (x : V).

Definition overlap p q : R := total (fun x => Num.min (p x) (q x)).
Definition tv p q : R := 2%:R^-1 * total (fun x => `|p x - q x|).
(** min(1, p/q), and whether p wants x at all where q x = 0. *)
Definition accept p q x : R := if p x < q x then p x / q x else if 0 < p x then 1 else 0.
Definition excess p q x : R := Num.max (p x - q x) 0.
Definition residual p q x : R :=
  let z := total (excess p q) in if z == 0 then p x else excess p q x / z.

(** What became of a drafted token: kept, or replaced by another and stop. *)
Definition verdict := option V.
Definition emitted x (o : verdict) : V := odflt x o.

Definition leviathan_step p q x : law R verdict :=
  kept <~ coin (accept p q x);;
  if kept then ret None else y <~ pick (residual p q);; ret (Some y).

(** A verification step is lossless when drafting from [q] and verifying emits [p]. *)
Definition step_lossless p q (step : V -> law R verdict) :=
  forall f, pick q (fun x => step x (fun o => f (emitted x o))) = pick p f.

Lemma overlapC p q : overlap p q = overlap q p.
Proof. by apply: total_ext => x; rewrite minC. Qed.

Theorem acceptance_is_one_minus_tv p q : dist p -> dist q -> overlap p q = 1 - tv p q.
Proof.
case=> _ p1 [_ q1]; rewrite /overlap /tv.
have -> : total (fun x => `|p x - q x|)
        = total (fun x => p x + q x - 2%:R * Num.min (p x) (q x)).
  by apply: total_ext => x; case: lerP => _; ring.
rewrite total_sub total_add total_scale p1 q1.
by field.
Qed.

Lemma accept_min p q x : 0 < q x -> accept p q x = Num.min 1 (p x / q x).
Proof.
move=> q0; rewrite /accept; case: ltP => [lt|le]; first by rewrite min_r // ler_pdivr_mulr // mul1r ltW.
by rewrite (lt_le_trans q0 le) min_l // ler_pdivl_mulr // mul1r.
Qed.

Lemma accept01 p q x : (forall y, 0 <= p y) -> (forall y, 0 <= q y) -> 0 <= accept p q x <= 1.
Proof.
move=> p0 q0; rewrite /accept; case: ltP => [lt|_]; last by case: ifP; rewrite ?lexx ler01.
by rewrite divr_ge0 //= ler_pdivr_mulr ?mul1r ?(ltW lt) // (le_lt_trans (p0 x) lt).
Qed.

(** Drafted and kept: q min(1, p/q) = min(p, q). *)
Lemma accept_mass p q x : 0 <= p x -> 0 <= q x -> q x * accept p q x = Num.min (p x) (q x).
Proof.
move=> p0; rewrite le_eqVlt => /orP[/eqP <-|q0]; first by rewrite mul0r min_r.
by rewrite accept_min // minr_pmulr ?ltW // mulr1 mulrCA mulfV ?gt_eqF // mulr1 minC.
Qed.

Lemma excess_min p q x : excess p q x = p x - Num.min (p x) (q x).
Proof.
rewrite /excess; case: (lerP (p x) (q x)) => [le|lt].
  by rewrite subrr max_r // subr_le0.
by rewrite max_l // subr_ge0 ltW.
Qed.

Lemma excess_ge0 p q x : 0 <= excess p q x.
Proof. by rewrite /excess le_maxr lexx orbT. Qed.

Lemma total_excess p q : total (excess p q) = total p - overlap p q.
Proof. by rewrite -total_sub; apply: total_ext => x; rewrite excess_min. Qed.

(** The mass refused equals the mass that the residual must supply. *)
Lemma rejected_mass p q : dist p -> total (excess p q) = 1 - overlap p q.
Proof. by case=> _ p1; rewrite total_excess p1. Qed.

Lemma overlap_le1 p q : dist p -> overlap p q <= 1.
Proof. by move=> pP; rewrite -subr_ge0 -rejected_mass // total_ge0 // => x; apply: excess_ge0. Qed.

Lemma overlap_ge0 p q : dist p -> dist q -> 0 <= overlap p q.
Proof. by move=> [p0 _] [q0 _]; apply: total_ge0 => x; rewrite le_minr p0 q0. Qed.

Lemma residual_dist p q : dist p -> dist (residual p q).
Proof.
move=> pP; have z0 : 0 <= total (excess p q) by apply: total_ge0 => x; apply: excess_ge0.
rewrite /residual; case: eqP => [_|/eqP z]; first by split; [case: pP => p0 _ x; apply: p0 | case: pP].
split=> [x|]; first by rewrite divr_ge0 // excess_ge0.
by rewrite total_scaler mulfV.
Qed.

(** norm(max(p - q, 0)) is a row exactly where it is used. *)
Theorem residual_iff_used p q : dist p ->
  dist (fun x => excess p q x / total (excess p q)) <-> overlap p q < 1.
Proof.
move=> pP; rewrite lt_neqAle overlap_le1 // andbT -[_ == 1]subr_eq0 -oppr_eq0 opprB -rejected_mass //.
split=> [[_]|z]; last split=> [x|]; last by rewrite total_scaler mulfV.
  by rewrite total_scaler; case: eqP => // ->; rewrite mul0r => /eqP; rewrite eq_sym oner_eq0.
by rewrite divr_ge0 // ?excess_ge0 // total_ge0 // => y; apply: excess_ge0.
Qed.

(** Weighted by the rejected mass the residual is just the excess, also at 0/0. *)
Lemma residual_mass p q x :
  total (excess p q) * residual p q x = excess p q x.
Proof.
rewrite /residual; case: eqP => [z|/eqP z]; last by rewrite mulrCA mulfV // mulr1.
by rewrite z mul0r; symmetry; apply: (total_eq0 _ z) => y; apply: excess_ge0.
Qed.

Lemma rejection_prob p q : dist p -> dist q ->
  pick q (fun x => 1 - accept p q x) = total (excess p q).
Proof.
move=> pP [q0 q1]; rewrite rejected_mass // -{2}q1 -total_sub; apply: total_ext => x.
by rewrite mulrBr mulr1 accept_mass //; case: pP.
Qed.

Theorem single_step p q : dist p -> dist q -> step_lossless p q (leviathan_step p q).
Proof.
move=> pP qP f; rewrite /pick /leviathan_step /bind /coin /ret /emitted /=.
transitivity (total (fun x => Num.min (p x) (q x) * f x
                     + q x * (1 - accept p q x) * pick (residual p q) f)).
  apply: total_ext => x; rewrite -accept_mass; [by rewrite /pick; ring | by case: pP | by case: qP].
rewrite total_add total_scaler -/(pick q (fun x => 1 - accept p q x)) rejection_prob //.
rewrite -total_scale -total_add; apply: total_ext => x.
by rewrite mulrA residual_mass excess_min; ring.
Qed.

(** The probability that a drafted token is kept. *)
Definition keep_rate q (step : V -> law R verdict) : R := pick q (fun x => step x (fun o => (~~ isSome o)%:R)).

Theorem leviathan_keep_rate p q : dist p -> dist q -> keep_rate q (leviathan_step p q) = overlap p q.
Proof.
move=> [p0 p1] [q0 q1]; apply: total_ext => x; rewrite -accept_mass //; congr (_ * _).
rewrite /leviathan_step /bind /coin /ret /= mulr1.
suff -> : pick (residual p q) (fun _ => 0) = 0 :> R by rewrite mulr0 addr0.
by rewrite /pick -[RHS](@total0 R V); apply: total_ext => y; rewrite mulr0.
Qed.

Theorem acceptance_optimal p q step : dist p -> dist q ->
  (forall x, lawful (step x)) -> step_lossless p q step -> keep_rate q step <= overlap p q.
Proof.
move=> [p0 p1] [q0 q1] stepP ok; apply: total_le => c; rewrite le_minr; apply/andP; split; last first.
  rewrite -[leRHS]mulr1; apply: ler_wpmul2l => //.
  exact: (prob_le1 (stepP c) (fun o => ~~ isSome o)).
have -> : p c = pick p (fun x => (x == c)%:R).
  by rewrite -(total_pick c p); apply: total_ext => x; rewrite mulrC.
rewrite -ok; pose F x := q x * step x (fun o => (emitted x o == c)%:R).
apply: le_trans (total_ge_term c (f := F) _); last first.
  by move=> x; rewrite mulr_ge0 //; apply: law_ge0 => // o; rewrite ler0n.
apply: ler_wpmul2l => //; apply: (prob_le (stepP c)) => -[y|] //= _.
Qed.

Lemma lawful_leviathan p q x : dist p -> dist q -> lawful (leviathan_step p q x).
Proof.
move=> pP [q0 q1]; apply: lawful_bind => [|[]]; [|exact: lawful_ret|].
  by apply: lawful_coin; apply: accept01 => //; case: pP.
apply: lawful_bind => [|y]; last exact: lawful_ret.
by apply: lawful_pick; apply: residual_dist.
Qed.

End Single.
