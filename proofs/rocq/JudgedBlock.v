(** One level of block verification on rows that were computed.

    What it says.  P is what was computed for n p, Q for d q; the level is worth n / d.
    - [stopping]       the coin S' / F' of a shorter prefix, F' having cancelled, weighed with the mass G that
      comes back: off by what G, S and S' <= F' are off, whatever the quotient itself is off;
    - [level_value]    what a level is worth, in terms of P and Q;
    - [level_weight]   and in terms of p and the weight n / d.

    Source: ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Drift Drifting Judged.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Stopping.
Variables (R : realFieldType) (G S S' F' a kappa phi sigma mu little : R).
Hypothesis G0 : 0 <= G.
Hypothesis S0 : 0 <= S.
Hypothesis S'0 : 0 <= S'.
Hypothesis a01 : 0 <= a <= 1.
Hypothesis kappa0 : 0 <= kappa.
Hypothesis little0 : 0 <= little.
Hypothesis mu0 : 0 <= mu.
Hypothesis back_off : `|G - F'| <= phi.
Hypothesis mass_off : `|S - S'| <= sigma.
Hypothesis order : S' <= F' + mu.

(** Where next to nothing comes back, next to nothing was to be emitted. *)
Lemma nothing_back : F' <= little -> `|G * a - S| <= phi + sigma + mu + little.
Proof.
move=> small; have sigma0 := le_trans (normr_ge0 _) mass_off; have phi0 := le_trans (normr_ge0 _) back_off.
have G_small : G <= phi + little by apply: le_trans (ler_add (le_trans (ler_norm _) back_off) small); rewrite subrK.
have S_small : S <= sigma + (little + mu).
  apply: le_trans (ler_add (le_trans (ler_norm _) mass_off) (le_trans order _)); first by rewrite subrK.
  by rewrite ler_add2r.
have Ga : 0 <= G * a <= G by case/andP: a01 => a0 a1; rewrite mulr_ge0 //= -[leRHS]mulr1; apply: ler_wpmul2l.
apply: apart; rewrite ?S0 /=; last first.
  have -> : phi + sigma + mu + little = sigma + (little + mu) + phi by ring.
  by apply: le_trans S_small _; rewrite ler_addl.
case/andP: Ga => -> Ga /=; apply: le_trans Ga (le_trans G_small _).
have -> : phi + sigma + mu + little = phi + little + (sigma + mu) by ring.
by rewrite ler_addl addr_ge0.
Qed.

(** Where more is to be emitted than comes back, it is all emitted. *)
Lemma all_back : F' <= S' -> `|G - S| <= phi + sigma + mu.
Proof.
move=> le; have -> : G - S = (G - F') + (S' - S) + (F' - S') by ring.
apply: le_trans (ler_norm_add _ _) _; apply: ler_add; last first.
  by rewrite distrC ger0_norm ?subr_ge0 // ler_subl_addl.
by apply: le_trans (ler_norm_add _ _) _; apply: ler_add => //; rewrite distrC.
Qed.

Lemma share_back : 0 < F' -> S' <= F' -> `|G * (S' / F') - S| <= phi + sigma.
Proof.
move=> F0 le; set t := S' / F'; have t01 : 0 <= t <= 1 by rewrite divr_ge0 ?(ltW F0) //= ler_pdivr_mulr // mul1r.
have -> : G * t - S = (G - F') * t + (S' - S).
  have -> : S' = t * F' by rewrite mulfVK ?gt_eqF.
  by ring.
case/andP: t01 => t0 t1; apply: le_trans (ler_norm_add _ _) _; apply: ler_add; last by rewrite distrC.
by rewrite normrM (ger0_norm t0) -[leRHS]mulr1; apply: ler_pmul.
Qed.

Lemma stopping : (F' < little) \/ (0 < F' /\ `|a - Num.min 1 (S' / F')| <= kappa) ->
  `|G * a - S| <= G * kappa + (phi + sigma + mu + little).
Proof.
have Gk : 0 <= G * kappa by apply: mulr_ge0.
case=> [/ltW small|[F0 near]].
  by apply: le_trans (nothing_back small) _; rewrite ler_addr.
have -> : G * a - S = G * (a - Num.min 1 (S' / F')) + (G * Num.min 1 (S' / F') - S) by ring.
apply: le_trans (ler_norm_add _ _) _; apply: ler_add.
  by rewrite normrM (ger0_norm G0); apply: ler_wpmul2l.
apply: le_trans (_ : phi + sigma + mu <= _); last by rewrite ler_addl.
case: (leP 1 (S' / F')) => [|/ltW]; rewrite ?ler_pdivl_mulr ?ler_pdivr_mulr // mul1r => le.
  by rewrite mulr1; apply: all_back.
by apply: le_trans (share_back F0 le) _; rewrite ler_addl.
Qed.
End Stopping.

Section Weight.
Variables (R : realFieldType) (n d tp Q P PT t c e3 e4 e : R).
Hypothesis nd01 : 0 <= n <= d.
Hypothesis d0 : 0 < d.
Hypothesis Q0 : 0 < Q.
Hypothesis t01 : 0 <= t <= 1.
Hypothesis c01 : 0 <= c <= 1.
Hypothesis e30 : 0 <= e3.
Hypothesis up : PT <= n * tp * t + e3.
Hypothesis low : n * tp - e3 <= P.
Hypothesis close : `|tp * d - Q| <= e4.

Lemma level_weight : (PT + (Q - P) * c + e) / Q <= n / d * t + (1 - n / d) * c + (2%:R * e3 + e4 + e) / Q.
Proof.
have zQ : Q != 0 by rewrite gt_eqF.
have zd : d != 0 by rewrite gt_eqF.
have v01 : 0 <= n / d <= 1 by case/andP: nd01 => n0 nd; rewrite divr_ge0 ?(ltW d0) //= ler_pdivr_mulr // mul1r.
rewrite ler_pdivr_mulr // [leRHS]mulrDl mulfVK //.
have settled : (Q - P) * c <= (Q - n * tp) * c + e3.
  have -> : (Q - P) * c = (Q - n * tp) * c + (n * tp - P) * c by ring.
  rewrite ler_add2l; apply: le_trans (_ : e3 * c <= _).
    by case/andP: c01 => c0 _; apply: ler_wpmul2r => //; rewrite ler_subl_addr -ler_subl_addl.
  by case/andP: c01 => _ c1; rewrite -[leRHS]mulr1; apply: ler_wpmul2l.
have tilted : n / d * (tp * d - Q) * (t - c) <= e4.
  apply: le_trans (ler_norm _) _; rewrite (normrM _ (t - c)) (normrM (n / d)) -[leRHS]mulr1; apply: ler_pmul => //.
  - by apply: mulr_ge0.
  - case/andP: v01 => v0 v1; rewrite (ger0_norm v0); apply: le_trans close.
    by rewrite -[leRHS]mul1r; apply: ler_wpmul2r.
  - exact: apart.
apply: le_trans (ler_add (ler_add up settled) (lexx e)) _.
have -> : n * tp * t + e3 + ((Q - n * tp) * c + e3) + e
        = (n / d * t + (1 - n / d) * c) * Q + (2%:R * e3 + n / d * (tp * d - Q) * (t - c) + e) by field.
by rewrite ler_add2l ler_add2r ler_add2l.
Qed.
End Weight.

Section Level.
Variables (R : realFieldType) (V : vocab) (P Q : V -> R).
Hypothesis P0 : forall x, 0 <= P x.
Hypothesis Q0 : forall x, 0 <= Q x.
Hypothesis Q1 : 0 < total Q.

(** The mass that comes back. *)
Definition back : R := total Q - overlap P Q.

Lemma level_value f a b c e1 e2 : 0 <= b <= 1 -> 0 <= c <= 1 -> unit_test f ->
  total (excess P Q) * b <= total (fun x => excess P Q x * f x) + e1 -> `|back * a - total (excess P Q)| <= e2 ->
  pick (share Q) (fun x => accept P Q x * f x + (1 - accept P Q x) * (a * b + (1 - a) * c))
  <= (total (fun x => P x * f x) + (total Q - total P) * c + (e1 + e2)) / total Q.
Proof.
move=> b01 c01 f01 emits stop; rewrite judged_value //; have z : total Q != 0 by rewrite gt_eqF.
set D := a * b + (1 - a) * c; set m := total (fun x => Num.min (P x) (Q x) * f x).
have -> : D + (m - overlap P Q * D) / total Q = (m + back * D) / total Q by rewrite /back; field.
apply: ler_wpmul2r; first by rewrite invr_ge0 ltW.
have split_p : total (fun x => P x * f x) = m + total (fun x => excess P Q x * f x).
  by rewrite -total_add; apply: total_ext => x; rewrite excess_min; ring.
have -> : back * D = total (excess P Q) * b + (total Q - total P) * c + (back * a - total (excess P Q)) * (b - c).
  by rewrite /D /back total_excess; ring.
rewrite split_p -!addrA ler_add2l.
have turned : (back * a - total (excess P Q)) * (b - c) <= e2.
  by apply: le_trans (ler_norm _) _; rewrite normrM -[leRHS]mulr1; apply: ler_pmul => //; apply: apart.
apply: le_trans (ler_add emits (ler_add (lexx _) turned)) _.
by rewrite le_eqVlt; apply/orP; left; apply/eqP; ring.
Qed.
End Level.
