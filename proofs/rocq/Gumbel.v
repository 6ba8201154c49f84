(** Gumbel-max sampling and its coupling, with noise that programs can draw.

    What it says.  Every token v has a clock E v; with weights w the token of the least
    E v / w v is written.  With exponential clocks this is the argmax of log w + Gumbel noise
    (E = exp(-G)).  Here the clocks are what programs can draw: ticks of length
    eta = 1 - theta, independent, geometric, ticks * most of them at most; all of it rational.
    - [race_tv]  whatever breaks draws, the token written has the law w v / W up to
          TV <= most eta + 1 / (1 + ticks eta):
      any eps, with eta small and ticks larger still;
    - [race_agreement]  drafter and target that share the clocks write the same token with
      probability sum_i 1 / sum_v max(p v / p i, q v / q i), up to the same kind of error;
    - [agreement_between]  that number lies between (1 - TV)/(1 + TV) and 1 - TV;
    - [race_text]  n tokens of a loop whose drafter may see all clocks, later ones too, are
      off from n tokens of the target by n times the error of one.
    Real exponential clocks are the limit eta -> 0, which is not taken: nothing is said here
    of noise that is not on a grid.  The weights are natural numbers, the rows rational.

    Source: Daliri et al. 2025 (arXiv 2408.07978), Gumbel sampling; the grid is ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Range Race Single Round Drift Tree Agreement Greedy Coupled.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** ** The coupling in the words of the papers *)
Section Bounds.
Variables (R : realFieldType) (V : vocab) (p q : V -> R).

Definition coupling_odds : R :=
  total (fun i => if (0 < p i) && (0 < q i) then (total (fun v => Num.max (p v / p i) (q v / q i)))^-1 else 0).

Hypothesis pP : dist p.
Hypothesis qP : dist q.

Theorem agreement_between : (1 - tv p q) / (1 + tv p q) <= coupling_odds /\ coupling_odds <= 1 - tv p q.
Proof.
have [[p0 p1] [q0 q1]] := (pP, qP); rewrite -acceptance_is_one_minus_tv //.
have union : total (fun v => Num.max (p v) (q v)) = 1 + tv p q.
  rewrite (total_ext (g := fun v => p v + q v - Num.min (p v) (q v))) => [|v]; last by case: lerP => _; ring.
  by rewrite total_sub total_add p1 q1 -/(overlap p q) acceptance_is_one_minus_tv //; ring.
pose ratio i v := Num.max (p v / p i) (q v / q i).
have above i (r : V -> R) : 0 < r i -> total r = 1 -> (forall v, r v / r i <= ratio i v) -> (r i)^-1 <= total (ratio i).
  by move=> r0 r1 le; rewrite -[leLHS]mul1r -r1 -total_scaler; apply: total_le.
have split_min i : 0 < p i -> 0 < q i -> 0 < Num.min (p i) (q i) by move=> pi qi; rewrite lt_minr pi qi.
split.
  rewrite -union /overlap -total_scaler; apply: total_le => i; case: ifP => [/andP[pi qi]|]; last first.
    have nil (r : R) : 0 <= r -> r <= 0 -> r = 0 by move=> r0 r1; apply/eqP; rewrite eq_le r1.
    case: (ltP 0 (p i)) => [pi /negbT|/(nil _ (p0 i)) -> _]; last by rewrite min_l // mul0r.
    by rewrite /= -leNgt => /(nil _ (q0 i)) ->; rewrite min_r ?p0 // mul0r.
  have m0 := split_min i pi qi; have ratio0 : 0 < total (ratio i).
    have low : (p i)^-1 <= total (ratio i) by apply: above => // v; rewrite /ratio le_maxr lexx.
    by apply: lt_le_trans low; rewrite invr_gt0.
  have within : total (ratio i) <= total (fun v => Num.max (p v) (q v)) / Num.min (p i) (q i).
    rewrite -total_scaler; apply: total_le => v; rewrite /ratio le_maxl.
    have [mp mq] : Num.min (p i) (q i) <= p i /\ Num.min (p i) (q i) <= q i by rewrite !le_minl !lexx orbT.
    by apply/andP; split; apply: ler_pmul; rewrite ?invr_ge0 ?(ltW pi) ?(ltW qi) ?lef_pinv ?le_maxr ?lexx ?orbT.
  by rewrite -invf_div lef_pinv // posrE (lt_le_trans ratio0).
apply: total_le => i; case: ifP => [/andP[pi qi]|_]; last by rewrite le_minr p0 q0.
have inv (r : R) : 0 < r -> r^-1 <= total (ratio i) -> (total (ratio i))^-1 <= r.
  by move=> r0 le; rewrite -[leRHS]invrK lef_pinv ?posrE ?invr_gt0 // (lt_le_trans _ le) ?invr_gt0.
by rewrite le_minr; apply/andP; split; apply: inv => //; apply: above => // v; rewrite /ratio le_maxr lexx ?orbT.
Qed.
End Bounds.

(** ** Who writes what *)
Section Gumbel.
Variables (R : realFieldType) (V : vocab) (theta : R) (ticks most : nat).
Hypothesis theta01 : 0 <= theta <= 1.
Implicit Types (c w : V -> nat) (E : V -> nat) (i v : V).

Notation race := (@raced R V theta ticks most).
Let raceP : lawful race := @racedP R V theta ticks most theta01.

(** A token with a weight that nobody is ahead of; draws go as [choose] likes. *)
Definition writes_first w (choose : (V -> nat) -> V) : Prop :=
  forall E, (0 < w (choose E))%N /\ ahead w (choose E) E.

Definition weight_row w v : R := (w v)%:R / (weight_sum w)%:R.
Definition written (choose : (V -> nat) -> V) v : R := prob race (fun E => choose E == v).
(** What the grid leaves of the odds: the race ends in time, and not by a draw. *)
Definition unspoilt : R := theta ^+ most * (1 - theta ^+ ticks).

Lemma unspoilt01 : 0 <= unspoilt <= 1.
Proof.
have [t0 t1] := andP theta01; have le1 n : 0 <= theta ^+ n <= 1 by rewrite exprn_ge0 // exprn_ile1.
have [/andP[a0 a1] /andP[b0 b1]] := (le1 most, le1 ticks).
by rewrite /unspoilt mulr_ge0 ?subr_ge0 //= mulr_ile1 ?subr_ge0 // ler_subl_addl ler_addr.
Qed.

Lemma odds_dist w : (0 < weight_sum w)%N -> dist (weight_row w).
Proof.
move=> w0; split=> [v|]; first by rewrite divr_ge0 ?ler0n.
have -> : total (weight_row w) = total (fun v => (w v)%:R : R) / (weight_sum w)%:R by rewrite total_scaler.
by rewrite totalE -natr_sum mulfV // pnatr_eq0 -lt0n.
Qed.

Lemma written_dist choose : dist (written choose).
Proof.
split=> [v|]; first exact: (prob_ge0 raceP).
rewrite -(law_total raceP) -[RHS](law_one raceP); apply: (law_ext raceP) => E.
by rewrite -[RHS](total_pick1 R (choose E)); apply: total_ext => v; rewrite eq_sym.
Qed.

Lemma ahead_of_alone c i j E : (0 < c j)%N -> alone c i E -> ahead c j E -> j = i.
Proof.
move=> cj /allP/(_ j (token_in j)) lead /allP/(_ i (token_in i)) ahead_j.
by case: eqP lead => // _; rewrite (gtn_eqF cj) /= ltnNge ahead_j.
Qed.

Lemma written_ge w choose v : writes_first w choose -> (weight_sum w <= most)%N ->
  weight_row w v * unspoilt <= written choose v.
Proof.
move=> first light; case: (posnP (w v)) => [z|wv].
  by rewrite /weight_row z !mul0r; case: (written_dist choose).
have [low _] := race_first ticks theta01 wv light; apply: le_trans low _; apply: (prob_le raceP) => E lead.
by apply/eqP; have [w0 front] := first E; apply: ahead_of_alone lead front.
Qed.

Lemma race_tv_left w choose : writes_first w choose -> (weight_sum w <= most)%N ->
  tv (weight_row w) (written choose) <= 1 - unspoilt.
Proof.
move=> first light; have [w0 _] := first (fun=> 0%N); have W0 := leq_trans w0 (weight_le w _).
have [oP wP] := (odds_dist W0, written_dist choose); have /andP[l0 l1] := unspoilt01.
have -> : tv (weight_row w) (written choose) = 1 - overlap (weight_row w) (written choose).
  by rewrite acceptance_is_one_minus_tv // subKr.
rewrite ler_add2l ler_opp2 -[leLHS]mul1r; have [o0 <-] := oP; rewrite -total_scaler; apply: total_le => v.
by rewrite le_minr written_ge // andbT -[leRHS]mulr1 ler_wpmul2l.
Qed.

(** Two who share the clocks: token i is written by both where it is first in one more race. *)
Section Shared.
Variables (w w' : V -> nat) (choose choose' : (V -> nat) -> V).
Hypothesis first : writes_first w choose.
Hypothesis first' : writes_first w' choose'.

Definition joint_weight i v : nat := maxn (w v * w' i) (w' v * w i).
Definition both_odds i : R := if (0 < w i)%N && (0 < w' i)%N then weight_row (joint_weight i) i else 0.
Definition agreement_odds : R := total both_odds.

Hypothesis light : forall i, (weight_sum (joint_weight i) <= most)%N.

Lemma joint_self i : joint_weight i i = (w i * w' i)%N.
Proof. by rewrite /joint_weight mulnC maxnn. Qed.

Lemma both_ahead i E : (0 < w i)%N -> (0 < w' i)%N -> ahead (joint_weight i) i E = ahead w i E && ahead w' i E.
Proof.
move=> wi w'i; rewrite /ahead -all_predI; apply: eq_all => v /=.
rewrite joint_self /joint_weight maxnMl geq_max; congr andb.
  by rewrite mulnAC [(w i * w' i * E v)%N]mulnAC leq_pmul2r.
by rewrite mulnAC -[(w i * w' i * E v)%N]mulnA mulnC leq_pmul2l.
Qed.

Lemma both_alone i E : (0 < w i)%N -> (0 < w' i)%N -> alone (joint_weight i) i E -> alone w i E && alone w' i E.
Proof.
move=> wi w'i /allP lead; apply/andP; split; apply/allP => v vin; case/or3P: (lead v vin) => [->//|z|].
- by move: z; rewrite /joint_weight -leqn0 geq_max !leqn0 !muln_eq0 (gtn_eqF w'i) orbF => /andP[-> _]; rewrite orbT.
- rewrite joint_self => lt; rewrite -[(w v * _ < _)%N](ltn_pmul2r w'i) mulnAC [(w i * E v * _)%N]mulnAC.
  by rewrite (leq_ltn_trans _ lt) ?orbT // leq_mul2r leq_maxl orbT.
- by move: z; rewrite /joint_weight -leqn0 geq_max !leqn0 !muln_eq0 (gtn_eqF wi) orbF => /andP[_ ->]; rewrite orbT.
rewrite joint_self => lt; rewrite -[(w' v * _ < _)%N](ltn_pmul2r wi) mulnAC [(w' i * E v * _)%N]mulnAC.
by rewrite [(w' i * w i)%N]mulnC (leq_ltn_trans _ lt) ?orbT // leq_mul2r leq_maxr orbT.
Qed.

Definition agreed : R := prob race (fun E => choose E == choose' E).
Let both i : R := prob race (fun E => (choose E == i) && (choose' E == i)).

Lemma agreed_total : agreed = total both.
Proof.
rewrite -(law_total raceP); apply: (law_ext raceP) => E.
rewrite -[LHS](total_pick (choose E) (fun i => (i == choose' E)%:R)); apply: total_ext => i.
by rewrite -natrM mulnb ![i == _]eq_sym.
Qed.

Lemma both_le i : both i <= 1 /\ (~~ ((0 < w i)%N && (0 < w' i)%N) -> both i = 0).
Proof.
split=> [|no]; first exact: prob_le1 raceP _.
rewrite -[RHS](law_const raceP); apply: (law_ext raceP) => E; case: andP => // -[/eqP e /eqP e'].
by have [[wi _] [w'i _]] := (first E, first' E); rewrite e in wi; rewrite e' in w'i; rewrite wi w'i in no.
Qed.

Lemma race_agreement_left :
  agreement_odds * unspoilt <= agreed
  /\ theta ^+ most * (agreed - (size (tokens V))%:R * theta ^+ ticks) <= agreement_odds.
Proof.
have [t0 t1] := andP theta01; have odds0 i : 0 <= both_odds i.
  by rewrite /both_odds; case: ifP => // _; rewrite divr_ge0 ?ler0n.
rewrite agreed_total /agreement_odds; split.
  rewrite -total_scaler; apply: total_le => i; rewrite /both_odds; case: ifP => [/andP[wi w'i]|_]; last first.
    by rewrite mul0r; apply: (prob_ge0 raceP).
  have ji : (0 < joint_weight i i)%N by rewrite joint_self muln_gt0 wi.
  have [low _] := race_first ticks theta01 ji (light i); apply: le_trans low _; apply: (prob_le raceP) => E.
  case/(both_alone wi w'i)/andP => lead lead'; have [[p0 f] [p0' f']] := (first E, first' E).
  by rewrite (ahead_of_alone p0 lead f) (ahead_of_alone p0' lead' f') !eqxx.
have -> : (size (tokens V))%:R * theta ^+ ticks = total (fun _ : V => theta ^+ ticks).
  by rewrite totalE big_const_seq count_predT iter_addr_0 mulr_natl.
rewrite -total_sub -total_scale; apply: total_le => i; have [_ none] := both_le i.
rewrite /both_odds; case: (boolP (_ && _)) => [/andP[wi w'i]|/none ->]; last first.
  by rewrite sub0r mulrN oppr_le0 mulr_ge0 ?exprn_ge0.
have ji : (0 < joint_weight i i)%N by rewrite joint_self muln_gt0 wi.
have [_ high] := race_first ticks theta01 ji (light i); apply: le_trans high; rewrite ler_wpmul2l ?exprn_ge0 // ler_add2r.
apply: (prob_le raceP) => E /andP[/eqP e /eqP e']; rewrite both_ahead //.
by have [[_ f] [_ f']] := (first E, first' E); rewrite e in f; rewrite e' in f'; rewrite f f'.
Qed.

Lemma agreement_formula : (0 < weight_sum w)%N -> (0 < weight_sum w')%N -> agreement_odds = coupling_odds (weight_row w) (weight_row w').
Proof.
have max_nat a b : Num.max a%:R b%:R = (maxn a b)%:R :> R.
  by case: (leqP a b) => [le|/ltnW ge]; [rewrite max_r | rewrite max_l]; rewrite ?ler_nat.
have shared a b d e : 0 < a -> 0 < b -> Num.max (d / a) (e / b) = Num.max (d * b) (e * a) / (a * b) :> R.
  move=> a0 b0; rewrite maxr_pmull ?invr_ge0 ?mulr_ge0 ?ltW //; have [an bn] := (lt0r_neq0 a0, lt0r_neq0 b0).
  by congr Num.max; field; rewrite an bn.
have sure a i : (0 < weight_sum a)%N -> (0 < weight_row a i) = (0 < a i)%N.
  by move=> a0; rewrite /weight_row pmulr_lgt0 ?invr_gt0 ltr0n.
move=> W0 W'0; apply: total_ext => i; rewrite /both_odds !sure //; case: ifP => // /andP[wi w'i].
have [n0 n'0] : 0 < (w i)%:R :> R /\ 0 < (w' i)%:R :> R by rewrite !ltr0n.
have [d0 d'0] : (weight_sum w)%:R != 0 :> R /\ (weight_sum w')%:R != 0 :> R by rewrite !pnatr_eq0 -!lt0n.
have term v : Num.max (weight_row w v / weight_row w i) (weight_row w' v / weight_row w' i)
            = (joint_weight i v)%:R / (w i * w' i)%:R.
  have plain a : (weight_sum a)%:R != 0 :> R -> 0 < (a i)%:R :> R -> weight_row a v / weight_row a i = (a v)%:R / (a i)%:R.
    by move=> an /lt0r_neq0 ain; rewrite /weight_row; field; rewrite an ain.
  by rewrite !plain // shared // -!natrM max_nat.
rewrite (total_ext (term)) total_scaler totalE -natr_sum invfM invrK mulrC /weight_row joint_self.
by rewrite /weight_sum.
Qed.
End Shared.

(** ** In numbers *)
Let eta := 1 - theta.

Lemma slow k : 1 - theta ^+ k <= k%:R * eta.
Proof.
have t1 : theta <= 1 by case/andP: theta01.
by rewrite geometric mulrC ler_wpmul2r ?subr_ge0 //; case: (sum_between theta01 k).
Qed.

Lemma over_by k : theta ^+ k <= (1 + k%:R * eta)^-1.
Proof.
have eta0 : 0 <= eta by rewrite subr_ge0; case/andP: theta01.
have d0 : 0 < 1 + k%:R * eta by rewrite ltr_spaddl ?ltr01 // mulr_ge0 ?ler0n.
rewrite -[leRHS]mul1r ler_pdivl_mulr // mulrDr mulr1 -ler_subr_addl geometric mulrCA [X in _ <= X]mulrC.
by rewrite mulrA -/eta ler_wpmul2r //; case: (sum_between theta01 k).
Qed.

Lemma spoilt_le : 1 - unspoilt <= most%:R * eta + (1 + ticks%:R * eta)^-1.
Proof.
have [t0 t1] := andP theta01.
apply: le_trans _ (ler_add (slow most) (over_by ticks)).
have -> : 1 - unspoilt = (1 - theta ^+ most) + theta ^+ most * theta ^+ ticks by rewrite /unspoilt; ring.
rewrite ler_add2l -[leRHS]mul1r ler_wpmul2r ?exprn_ge0 //.
by rewrite exprn_ile1.
Qed.

Theorem race_tv w choose : writes_first w choose -> (weight_sum w <= most)%N ->
  tv (weight_row w) (written choose) <= most%:R * eta + (1 + ticks%:R * eta)^-1.
Proof. by move=> first light; apply: le_trans spoilt_le; apply: race_tv_left. Qed.

(** The text of a loop whose drafter may see every clock, later ones too. *)
Theorem race_text (weights : seq V -> V -> nat) (choose : seq V -> (V -> nat) -> V) (S : Type)
    (propose : (nat -> V -> nat) -> S -> seq V -> seq V)
    (update : (nat -> V -> nat) -> S -> seq V -> seq V -> S) clocks0 n st h f :
  (forall h, writes_first (weights h) (choose h)) -> (forall h, weight_sum (weights h) <= most)%N -> unit_test f ->
  target (fun h => weight_row (weights h)) n h f
  - drawn race (size h) n clocks0
      (fun places => f (greedy_loop (chosen choose places) (propose places) (update places) n n st h))
  <= n%:R * (most%:R * eta + (1 + ticks%:R * eta)^-1).
Proof.
move=> first light f01; pose row h := written (choose h).
have noiseP h' k  : race (fun E => k (choose h' E)) = pick (row h') k.
  rewrite /pick /row /written /prob (total_ext (g := fun v => race (fun E => (choose h' E == v)%:R * k v))) => [|v].
    rewrite -(law_total raceP); apply: (law_ext raceP) => E.
    by rewrite -[LHS](total_pick (choose h' E) k); apply: total_ext => v; rewrite eq_sym.
  by rewrite (law_scaler raceP).
rewrite (coupled_lossless raceP noiseP); apply: drift => // h'; last exact: race_tv.
  by apply: odds_dist; have [w0 _] := first h' (fun=> 0%N); apply: leq_trans w0 (weight_le _ _).
exact: written_dist.
Qed.

(** How often drafter and target write the same: the papers' number, within the grid's errors. *)
Theorem race_agreement w w' choose choose' : writes_first w choose -> writes_first w' choose' ->
  (forall i, weight_sum (joint_weight w w' i) <= most)%N ->
  let c := coupling_odds (weight_row w) (weight_row w') in
  c - (most%:R * eta + (1 + ticks%:R * eta)^-1) <= agreed choose choose'
  /\ agreed choose choose' <= c + (most%:R * eta + (size (tokens V))%:R / (1 + ticks%:R * eta)).
Proof.
move=> first first' light c; have [t0 t1] := andP theta01; have eta0 : 0 <= eta by rewrite subr_ge0.
have [low high] := race_agreement_left first first' light.
have [[w0 _] [w'0 _]] := (first (fun=> 0%N), first' (fun=> 0%N)).
have [W0 W'0] : (0 < weight_sum w)%N /\ (0 < weight_sum w')%N.
  by split; [apply: leq_trans w0 (weight_le _ _) | apply: leq_trans w'0 (weight_le _ _)].
have [oP o'P] := (odds_dist W0, odds_dist W'0).
have ce : agreement_odds w w' = c by apply: agreement_formula.
have c01 : 0 <= c <= 1.
  have [_ up] := agreement_between oP o'P; have tv0 : 0 <= tv (weight_row w) (weight_row w').
    by rewrite mulr_ge0 ?invr_ge0 ?ler0n // total_ge0.
  rewrite (le_trans up) ?ler_subl_addl ?ler_addr // andbT -ce; apply: total_ge0 => i; rewrite /both_odds.
  by case: ifP => // _; rewrite divr_ge0 ?ler0n.
have [c0 c1] := andP c01; rewrite ce in low high; split.
  apply: le_trans low; rewrite -[X in X - _]mulr1 -(subKr 1 unspoilt) mulrBr mulr1 ler_add2l ler_opp2.
  by apply: le_trans spoilt_le; rewrite -[leRHS]mul1r ler_wpmul2r // subr_ge0; case/andP: unspoilt01.
have [x0 x1] : 0 <= theta ^+ most /\ theta ^+ most <= 1 by rewrite exprn_ge0 // exprn_ile1.
have a01 : agreed choose choose' <= 1 by apply: prob_le1 raceP _.
have size0 : 0 <= (size (tokens V))%:R * theta ^+ ticks by rewrite mulr_ge0 ?ler0n ?exprn_ge0.
have slack : agreed choose choose' - c <= (1 - theta ^+ most) + (size (tokens V))%:R * theta ^+ ticks.
  set a := agreed _ _ in high a01 *; set y := _ * theta ^+ ticks in high size0 *.
  set x := theta ^+ most in high x0 x1 *.
  have -> : a - c = (1 - x) * a + x * y + (x * (a - y) - c) by ring.
  have [loss late] : (1 - x) * a <= 1 - x /\ x * y <= y.
    by split; [rewrite -[leRHS]mulr1 ler_wpmul2l ?subr_ge0 | rewrite -[leRHS]mul1r ler_wpmul2r].
  by rewrite -[leRHS]addr0 ler_add ?ler_add // subr_le0.
rewrite addrC -ler_subl_addr; apply: le_trans slack _; apply: ler_add; first exact: slow.
by rewrite ler_wpmul2l ?ler0n // over_by.
Qed.

End Gumbel.
