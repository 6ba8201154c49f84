(** Exponential races on a grid: what Gumbel-max sampling and its coupling rest on.

    What it says.  Every token v has a clock E v; with weights w the token of the least
    E v / w v is written.  For exponential clocks this is the argmax of log w + Gumbel noise
    (E = exp(-G)).  Here the clocks are what programs can draw: ticks of length eta, the
    geometric law with theta = 1 - eta, N = ticks * most of them at most; all of it rational.
    - [race_first]  of weights c that sum to C <= most, token i is first with probability
      c i / C, up to factors that tend to 1: at least times theta^most (1 - theta^ticks), also
      where a draw between two counts as lost; at most c i / C once P - theta^ticks is scaled
      by theta^most, also where a draw counts as won;
    - [race_tv]  so the token written by whatever breaks draws has the law w v / W up to
      TV <= most eta + 1 / (1 + ticks eta): any eps, with eta small and ticks large;
    - [race_agreement]  two that share the clocks, of weights w and w', write the same token
      with probability sum_i 1 / sum_v max(p v / p i, q v / q i), with the same errors;
    - [agreement_between]  that number lies between (1 - TV)/(1 + TV) and 1 - TV.
    Exponential clocks are the limit eta -> 0, which is not taken here: Coq's reals are not
    used, and nothing is said of a clock that is not on the grid.

    Source: Daliri et al. 2025 (arXiv 2408.07978), Gumbel sampling; the grid is ours. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Range Single Round Drift Tree Agreement Greedy Coupled.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma tokens_uniq (V : vocab) : uniq (tokens V).
Proof. by apply: count_mem_uniq => x; rewrite tokens_once (token_in x). Qed.

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

(** ** Clocks *)
Section Clocks.
Variables (R : realFieldType) (V : vocab) (theta : R).
Hypothesis theta01 : 0 <= theta <= 1.
Implicit Types (us vs : seq V) (E : V -> nat) (t : V -> nat).

(** Ticks until a clock rings, at most n. *)
Fixpoint clock n : law R nat :=
  if n is n'.+1 then on <~ coin theta;; if on then k <~ clock n';; ret k.+1 else ret 0%N else ret 0%N.

Lemma lawful_clock n : lawful (clock n).
Proof.
elim: n => [|n IH] /=; first exact: lawful_ret.
apply: lawful_bind => [|[]]; [exact: lawful_coin | | exact: lawful_ret].
by apply: lawful_bind => // k; apply: lawful_ret.
Qed.

Lemma clock_survives n a : (a <= n)%N -> prob (clock n) (fun k => (a <= k)%N) = theta ^+ a.
Proof.
elim: n a => [|n IH] [|a] //= le; try exact: (law_one (lawful_clock 0)).
  exact: (law_one (lawful_clock n.+1)).
by rewrite exprS -(IH a le) /prob /bind /coin /ret mulr0 addr0.
Qed.

Definition set_clock v k E : V -> nat := fun x => if x == v then k else E x.
Fixpoint set_clocks n vs E : law R (V -> nat) :=
  if vs is v :: vs' then k <~ clock n;; set_clocks n vs' (set_clock v k E) else ret E.
(** Every token's clock, each on its own. *)
Definition clocks n : law R (V -> nat) := set_clocks n (tokens V) (fun=> 0%N).

Lemma lawful_set_clocks n vs E : lawful (set_clocks n vs E).
Proof.
elim: vs E => [|v vs IH] E /=; first exact: lawful_ret.
by apply: lawful_bind => [|k]; [apply: lawful_clock | apply: IH].
Qed.

Lemma lawful_clocks n : lawful (clocks n).
Proof. exact: lawful_set_clocks. Qed.

Definition late t vs E : bool := all (fun v => (t v <= E v)%N) vs.

Lemma set_clocks_survive n us vs E t : uniq (us ++ vs) -> (forall v, (t v <= n)%N) ->
  prob (set_clocks n vs E) (late t (us ++ vs)) = (late t us E)%:R * theta ^+ (\sum_(v <- vs) t v).
Proof.
move=> uq small; elim: vs us E uq => [|v vs IH] us E uq /=; first by rewrite big_nil expr0 mulr1 cats0.
have new k : late t (rcons us v) (set_clock v k E) = (t v <= k)%N && late t us E.
  rewrite /late all_rcons /set_clock eqxx; congr andb; apply: eq_in_all => x xus.
  case: eqP => // e; move: uq; rewrite cat_uniq => /and3P[_ /hasPn/(_ v (mem_head _ _))] /=.
  by rewrite -e xus.
have step k : prob (set_clocks n vs (set_clock v k E)) (late t (us ++ v :: vs))
            = (t v <= k)%N%:R * ((late t us E)%:R * theta ^+ (\sum_(u <- vs) t u)).
  by rewrite -cat_rcons IH ?cat_rcons // new -mulnb natrM mulrA.
rewrite big_cons exprD -(clock_survives (small v)) mulrCA -(law_scaler (lawful_clock n)).
by apply: (law_ext (lawful_clock n)) => k; rewrite -/(prob _ _) step.
Qed.

Lemma clocks_survive n t : (forall v, (t v <= n)%N) ->
  prob (clocks n) (late t (tokens V)) = theta ^+ (\sum_(v <- tokens V) t v).
Proof. by move=> small; rewrite (set_clocks_survive (us := [::]) _ (tokens_uniq V) small) mul1r. Qed.

End Clocks.

(** ** One race *)
Section Race.
Variables (R : realFieldType) (V : vocab) (theta : R) (ticks most : nat).
Hypothesis theta01 : 0 <= theta <= 1.
Implicit Types (c w : V -> nat) (E : V -> nat) (i v : V).

Definition sum_of w : nat := (\sum_(v <- tokens V) w v)%N.
Definition raced : law R (V -> nat) := @clocks R V theta (ticks * most).
Lemma racedP : lawful raced.
Proof. exact: lawful_clocks theta01 _. Qed.

(** [i] is first, alone or with others.  A token of weight 0 does not run. *)
Definition alone c i E : bool := all (fun v => [|| v == i, c v == 0%N | (c v * E i < c i * E v)%N]) (tokens V).
Definition ahead c i E : bool := all (fun v => (c v * E i <= c i * E v)%N) (tokens V).

Section Weights.
Variables (c : V -> nat) (i : V).
Hypothesis ci : (0 < c i)%N.
Hypothesis light : (sum_of c <= most)%N.
Let C := sum_of c.

(** [i] at its tick a or later, all others at their tick b or later. *)
Definition at_ticks a b v : nat := (if v == i then a * c i else b * c v)%N.
Definition since a b E : bool := late (at_ticks a b) (tokens V) E.

Lemma sum_split : C = (c i + \sum_(v <- tokens V | v != i) c v)%N.
Proof. by rewrite /C /sum_of (bigD1_seq i) ?token_in ?tokens_uniq. Qed.

Lemma weight_le v : (c v <= C)%N.
Proof. by rewrite /C /sum_of (bigD1_seq v) ?token_in ?tokens_uniq //= leq_addr. Qed.

Lemma since_prob a b : (a <= ticks)%N -> (b <= ticks)%N ->
  prob raced (since a b) = theta ^+ (a * c i) * theta ^+ (b * (C - c i)).
Proof.
move=> at_ bt; rewrite (clocks_survive theta01) => [|v]; last first.
  by rewrite /at_ticks; case: ifP => _; apply: leq_mul => //; apply: leq_trans light; apply: weight_le.
rewrite -exprD; congr (_ ^+ _); rewrite (bigD1_seq i) ?token_in ?tokens_uniq //= /at_ticks eqxx.
rewrite sum_split addKn big_distrr; congr addn; apply: eq_bigr => v ne.
by rewrite (negbTE ne).
Qed.

Lemma sinceP a b E : reflect ((a * c i <= E i)%N /\ forall v, v != i -> (b * c v <= E v)%N) (since a b E).
Proof.
apply: (iffP allP) => [all_late|[first others] v _]; last first.
  by rewrite /at_ticks; case: eqP => [->|/eqP] // /others.
split=> [|v ne]; first by have := all_late i (token_in i); rewrite /at_ticks eqxx.
by have := all_late v (token_in v); rewrite /at_ticks (negbTE ne).
Qed.

Let tick E := (E i %/ c i)%N.

(** [i] rings in its tick a, the others not before their tick b. *)
Lemma in_tick a b E : (since a b E)%:R - (since a.+1 b E)%:R = ((tick E == a) && since a b E)%:R :> R.
Proof.
have rings : (tick E == a) = (a * c i <= E i < a.+1 * c i)%N.
  by rewrite -leq_divRL // -ltn_divLR // ltnS andbC -eqn_leq.
case: (sinceP a b E) => [[first others]|no]; last first.
  case: sinceP => [[first others]|_]; last by rewrite andbF subrr.
  by case: no; split=> //; apply: leq_trans first; rewrite leq_mul2r leqnSn orbT.
rewrite rings first andbT /= ltnNge; case: sinceP => [[-> _]|no]; first by rewrite subrr.
by rewrite subr0; case: leqP => // le; case: no; split.
Qed.

Lemma alone_ge E : \sum_(0 <= a < ticks) ((since a a.+1 E)%:R - (since a.+1 a.+1 E)%:R) <= (alone c i E)%:R :> R.
Proof.
have one a : (tick E == a) && since a a.+1 E -> alone c i E.
  case/andP=> /eqP ta /sinceP[_ others]; apply/allP => v _; case: eqP => //= /eqP ne.
  case: posnP => //= cv; have before : (E i < a.+1 * c i)%N by rewrite -ta -ltn_divLR.
  apply: leq_trans (_ : c i * (a.+1 * c v) <= _)%N; last by rewrite leq_mul2l others ?orbT.
  by rewrite mulnCA [(c i * c v)%N]mulnC mulnCA ltn_mul2l cv.
case: (boolP (alone c i E)) => [yes|no]; last first.
  rewrite big1 // => a _; rewrite in_tick; case: (boolP (_ && _)) => // /one.
  by rewrite (negbTE no).
apply: le_trans (_ : \sum_(0 <= a < ticks) (tick E == a)%:R <= _).
  by apply: ler_sum => a _; rewrite in_tick ler_nat; case: (tick E == a) => //; apply: leq_b1.
elim: ticks => [|k IH]; first by rewrite big_geq ?ler01.
rewrite big_nat_recr //=; case: eqP => [e|_]; last by rewrite addr0.
rewrite big_nat big1 ?add0r // => a /andP[_ lt]; case: eqP => // ta.
by rewrite -e ta ltnn in lt.
Qed.

Lemma ahead_le E : (ahead c i E)%:R
  <= \sum_(0 <= a < ticks) ((since a a E)%:R - (since a.+1 a E)%:R) + (since ticks ticks E)%:R :> R.
Proof.
have nonneg : 0 <= \sum_(0 <= a < ticks) ((since a a E)%:R - (since a.+1 a E)%:R) :> R.
  by apply: sumr_ge0 => a _; rewrite in_tick ler0n.
case: (boolP (ahead c i E)) => [/allP yes|_]; last by rewrite addr_ge0 ?ler0n.
have by_then a : (a * c i <= E i)%N -> since a a E.
  move=> le; apply/sinceP; split=> // v _; rewrite -(leq_pmul2l ci).
  by apply: leq_trans (yes v (token_in v)); rewrite mulnCA [(c i * c v)%N]mulnC mulnCA leq_mul2l le orbT.
case: (leqP (ticks * c i) (E i)) => [/by_then ->|]; first by rewrite ler_addr.
rewrite -ltn_divLR // -/(tick E) => lt.
rewrite (bigD1_seq (tick E)) ?iota_uniq ?mem_index_iota //= in_tick eqxx by_then ?leq_trunc_div //=.
rewrite -addrA ler_addl addr_ge0 ?ler0n //; apply: sumr_ge0 => a _.
by rewrite in_tick ler0n.
Qed.

(** ** Its odds *)

Let share : R := (c i)%:R / C%:R.
Let once := theta ^+ C.

Lemma total_weight : (0 < C)%N.
Proof. by rewrite (leq_trans ci) // weight_le. Qed.

Lemma powers a b : theta ^+ (a * c i) * theta ^+ (b * (C - c i)) = theta ^+ c i ^+ a * theta ^+ (C - c i) ^+ b.
Proof. by rewrite -!exprM ![(c i * _)%N]mulnC ![((C - c i) * _)%N]mulnC. Qed.

Lemma once_split : theta ^+ c i * theta ^+ (C - c i) = once.
Proof. by rewrite -exprD subnKC // weight_le. Qed.

Lemma geometric k : (1 - theta ^+ k) = (1 - theta) * \sum_(0 <= j < k) theta ^+ j.
Proof. by rewrite big_mkord -opprB subrX1 -mulNr opprB. Qed.

Let rounds : R := \sum_(0 <= a < ticks) once ^+ a.

Lemma alone_prob : (1 - theta ^+ c i) * theta ^+ (C - c i) * rounds <= prob raced (alone c i).
Proof.
apply: le_trans (law_le racedP alone_ge); rewrite (law_sum _ _ racedP) mulr_sumr le_eqVlt; apply/orP; left; apply/eqP.
apply: eq_big_nat => a /andP[_ lt]; rewrite (law_sub racedP) -!/(prob _ _) !since_prob ?(ltnW lt) // !powers.
rewrite -once_split; move: (theta ^+ c i) (theta ^+ (C - c i)) => x y; rewrite exprMn !exprS.
by move: (x ^+ a) (y ^+ a) => u v; ring.
Qed.

Lemma ahead_prob : prob raced (ahead c i) <= (1 - theta ^+ c i) * rounds + once ^+ ticks.
Proof.
apply: le_trans (law_le racedP ahead_le) _; rewrite (law_add racedP) (law_sum _ _ racedP) -/(prob _ _).
rewrite since_prob // powers -exprMn once_split ler_add2r mulr_sumr le_eqVlt; apply/orP; left; apply/eqP.
apply: eq_big_nat => a /andP[_ lt]; rewrite (law_sub racedP) -!/(prob _ _) !since_prob ?(ltnW lt) // !powers.
rewrite -once_split; move: (theta ^+ c i) (theta ^+ (C - c i)) => x y; rewrite exprMn !exprS.
by move: (x ^+ a) (y ^+ a) => u v; ring.
Qed.

Let G k : R := \sum_(0 <= j < k) theta ^+ j.

Lemma theta_powers j k : (j <= k)%N -> 0 <= theta ^+ k <= theta ^+ j.
Proof. by case/andP: theta01 => t0 t1 jk; rewrite exprn_ge0 //= ler_wiexpn2l. Qed.

Lemma sum_between k : k%:R * theta ^+ k <= G k /\ G k <= k%:R.
Proof.
have const x : k%:R * x = \sum_(0 <= j < k) x :> R by rewrite sumr_const_nat subn0 mulr_natl.
split; [rewrite const | rewrite -[leRHS]mulr1 const].
  by apply: ler_sum_nat => j /andP[_ jk]; case/andP: (theta_powers (ltnW jk)).
by apply: ler_sum_nat => j _; case/andP: (theta_powers (leq0n j)).
Qed.

Lemma share_concave : share * (1 - once) <= 1 - theta ^+ c i.
Proof.
have C0 : 0 < C%:R :> R by rewrite ltr0n total_weight.
have t1 : theta <= 1 by case/andP: theta01.
rewrite /share mulrAC ler_pdivr_mulr // !geometric -/(G _) -/(G _) mulrCA -mulrA ler_wpmul2l ?subr_ge0 //.
have tail : \sum_(c i <= j < C) theta ^+ j <= (C - c i)%:R * theta ^+ c i.
  rewrite mulr_natl -sumr_const_nat; apply: ler_sum_nat => j /andP[cj _].
  by case/andP: (theta_powers cj).
have -> : G C = G (c i) + \sum_(c i <= j < C) theta ^+ j by rewrite /G -big_cat_nat ?weight_le.
have step : (c i)%:R * (\sum_(c i <= j < C) theta ^+ j) <= (C - c i)%:R * G (c i).
  have [low _] := sum_between (c i); apply: le_trans (ler_wpmul2l (ler0n _ _) tail) _.
  by rewrite mulrCA ler_wpmul2l ?ler0n.
have -> : G (c i) * C%:R = (c i)%:R * G (c i) + (C - c i)%:R * G (c i).
  by rewrite -mulrDl -natrD subnKC ?weight_le // mulrC.
by rewrite mulrDr ler_add2l.
Qed.

Theorem race_alone : share * (once * (1 - once ^+ ticks)) <= prob raced (alone c i).
Proof.
apply: le_trans alone_prob.
have once1 : 1 - once ^+ ticks = (1 - once) * rounds by rewrite /rounds big_mkord -opprB subrX1 -mulNr opprB.
have [rounds0 weak] : 0 <= rounds /\ once <= theta ^+ (C - c i).
  split; last by case/andP: (theta_powers (leq_subr (c i) C)).
  by apply: sumr_ge0 => a _; rewrite -exprM; case/andP: (theta_powers (leqnn (C * a))).
have [s1 once0] : 0 <= 1 - theta ^+ c i /\ 0 <= once.
  by split; [rewrite subr_ge0; case/andP: (theta_powers (leq0n (c i))) | case/andP: (theta_powers (leqnn C))].
have -> : share * (once * (1 - once ^+ ticks)) = share * (1 - once) * once * rounds by rewrite once1; ring.
apply: ler_wpmul2r => //; apply: le_trans (ler_wpmul2r once0 share_concave) _.
by apply: ler_wpmul2l.
Qed.

Theorem race_ahead : once * (prob raced (ahead c i) - once ^+ ticks) <= share.
Proof.
have [t0 t1] := andP theta01; have once0 : 0 <= once by rewrite exprn_ge0.
have C0 : 0 < C%:R :> R by rewrite ltr0n total_weight.
have rounds0 : 0 <= rounds by apply: sumr_ge0 => a _; rewrite exprn_ge0.
have most_of : prob raced (ahead c i) - once ^+ ticks <= (1 - theta ^+ c i) * rounds.
  by rewrite ler_subl_addr; apply: ahead_prob.
have slow : 1 - theta ^+ c i <= (1 - theta) * (c i)%:R.
  by rewrite geometric -/(G _); apply: ler_wpmul2l; [rewrite subr_ge0 | case: (sum_between (c i))].
have all_rounds : C%:R * once * ((1 - theta) * rounds) <= 1.
  apply: le_trans (_ : (1 - once) * rounds <= _); last first.
    by rewrite /rounds big_mkord -[1 - once]opprB mulNr -subrX1 opprB ler_subl_addl ler_addr exprn_ge0.
  rewrite mulrA; apply: ler_wpmul2r => //; rewrite geometric mulrC; apply: ler_wpmul2l; first by rewrite subr_ge0.
  by case: (sum_between C).
apply: le_trans (ler_wpmul2l once0 most_of) _; rewrite ler_pdivl_mulr //.
apply: le_trans (_ : (c i)%:R * (C%:R * once * ((1 - theta) * rounds)) <= _); last by rewrite -[leRHS]mulr1 ler_wpmul2l ?ler0n.
have -> : (c i)%:R * (C%:R * once * ((1 - theta) * rounds)) = once * ((1 - theta) * (c i)%:R * rounds) * C%:R by ring.
by apply: ler_wpmul2r; [apply: ltW | apply: ler_wpmul2l => //; apply: ler_wpmul2r].
Qed.

(** With the same errors for all weights. *)
Theorem race_first :
  share * (theta ^+ most * (1 - theta ^+ ticks)) <= prob raced (alone c i)
  /\ theta ^+ most * (prob raced (ahead c i) - theta ^+ ticks) <= share.
Proof.
have share0 : 0 <= share by rewrite divr_ge0 ?ler0n.
have /andP[most0 slower] := theta_powers light.
have ended : once ^+ ticks <= theta ^+ ticks.
  by rewrite -exprM; case/andP: (theta_powers (leq_pmull ticks total_weight)).
split.
  apply: le_trans race_alone; apply: ler_wpmul2l => //; apply: ler_pmul => //.
    by rewrite subr_ge0; case/andP: (theta_powers (leq0n ticks)).
  by rewrite ler_add2l ler_opp2.
case: (lerP (prob raced (ahead c i) - theta ^+ ticks) 0) => [neg|pos].
  by apply: le_trans share0; rewrite mulr_ge0_le0.
by apply: le_trans race_ahead; apply: ler_pmul => //; [apply: ltW | rewrite ler_add2l ler_opp2].
Qed.

End Weights.

(** ** Who writes what *)

(** A token with a weight that nobody is ahead of; draws go as [choose] likes. *)
Definition writes_first w (choose : (V -> nat) -> V) : Prop :=
  forall E, (0 < w (choose E))%N /\ ahead w (choose E) E.

Definition odds w v : R := (w v)%:R / (sum_of w)%:R.
Definition written (choose : (V -> nat) -> V) v : R := prob raced (fun E => choose E == v).
(** What the grid leaves of the odds: the race ends in time, and not by a draw. *)
Definition unspoilt : R := theta ^+ most * (1 - theta ^+ ticks).

Lemma unspoilt01 : 0 <= unspoilt <= 1.
Proof.
have [t0 t1] := andP theta01; have le1 n : 0 <= theta ^+ n <= 1 by rewrite exprn_ge0 // exprn_ile1.
have [/andP[a0 a1] /andP[b0 b1]] := (le1 most, le1 ticks).
by rewrite /unspoilt mulr_ge0 ?subr_ge0 //= mulr_ile1 ?subr_ge0 // ler_subl_addl ler_addr.
Qed.

Lemma odds_dist w : (0 < sum_of w)%N -> dist (odds w).
Proof.
move=> w0; split=> [v|]; first by rewrite divr_ge0 ?ler0n.
have -> : total (odds w) = total (fun v => (w v)%:R : R) / (sum_of w)%:R by rewrite total_scaler.
by rewrite totalE -natr_sum mulfV // pnatr_eq0 -lt0n.
Qed.

Lemma written_dist choose : dist (written choose).
Proof.
split=> [v|]; first exact: (prob_ge0 racedP).
rewrite -(law_total racedP) -[RHS](law_one racedP); apply: (law_ext racedP) => E.
by rewrite -[RHS](total_pick1 R (choose E)); apply: total_ext => v; rewrite eq_sym.
Qed.

Lemma ahead_of_alone c i j E : (0 < c j)%N -> alone c i E -> ahead c j E -> j = i.
Proof.
move=> cj /allP/(_ j (token_in j)) lead /allP/(_ i (token_in i)) ahead_j.
by case: eqP lead => // _; rewrite (gtn_eqF cj) /= ltnNge ahead_j.
Qed.

Lemma written_ge w choose v : writes_first w choose -> (sum_of w <= most)%N ->
  odds w v * unspoilt <= written choose v.
Proof.
move=> first light; case: (posnP (w v)) => [z|wv].
  by rewrite /odds z !mul0r; case: (written_dist choose).
have [low _] := race_first wv light; apply: le_trans low _; apply: (prob_le racedP) => E lead.
by apply/eqP; have [w0 front] := first E; apply: ahead_of_alone lead front.
Qed.

Theorem race_tv_left w choose : writes_first w choose -> (sum_of w <= most)%N ->
  tv (odds w) (written choose) <= 1 - unspoilt.
Proof.
move=> first light; have [w0 _] := first (fun=> 0%N); have W0 := leq_trans w0 (weight_le w _).
have [oP wP] := (odds_dist W0, written_dist choose); have /andP[l0 l1] := unspoilt01.
have -> : tv (odds w) (written choose) = 1 - overlap (odds w) (written choose).
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
Definition both_odds i : R := if (0 < w i)%N && (0 < w' i)%N then odds (joint_weight i) i else 0.
Definition agreement_odds : R := total both_odds.

Hypothesis light : forall i, (sum_of (joint_weight i) <= most)%N.

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

Definition agreed : R := prob raced (fun E => choose E == choose' E).
Let both i : R := prob raced (fun E => (choose E == i) && (choose' E == i)).

Lemma agreed_total : agreed = total both.
Proof.
rewrite -(law_total racedP); apply: (law_ext racedP) => E.
rewrite -[LHS](total_pick (choose E) (fun i => (i == choose' E)%:R)); apply: total_ext => i.
by rewrite -natrM mulnb ![i == _]eq_sym.
Qed.

Lemma both_le i : both i <= 1 /\ (~~ ((0 < w i)%N && (0 < w' i)%N) -> both i = 0).
Proof.
split=> [|no]; first exact: prob_le1 racedP _.
rewrite -[RHS](law_const racedP); apply: (law_ext racedP) => E; case: andP => // -[/eqP e /eqP e'].
by have [[wi _] [w'i _]] := (first E, first' E); rewrite e in wi; rewrite e' in w'i; rewrite wi w'i in no.
Qed.

Theorem race_agreement_left :
  agreement_odds * unspoilt <= agreed
  /\ theta ^+ most * (agreed - (size (tokens V))%:R * theta ^+ ticks) <= agreement_odds.
Proof.
have [t0 t1] := andP theta01; have odds0 i : 0 <= both_odds i.
  by rewrite /both_odds; case: ifP => // _; rewrite divr_ge0 ?ler0n.
rewrite agreed_total /agreement_odds; split.
  rewrite -total_scaler; apply: total_le => i; rewrite /both_odds; case: ifP => [/andP[wi w'i]|_]; last first.
    by rewrite mul0r; apply: (prob_ge0 racedP).
  have ji : (0 < joint_weight i i)%N by rewrite joint_self muln_gt0 wi.
  have [low _] := race_first ji (light i); apply: le_trans low _; apply: (prob_le racedP) => E.
  case/(both_alone wi w'i)/andP => lead lead'; have [[p0 f] [p0' f']] := (first E, first' E).
  by rewrite (ahead_of_alone p0 lead f) (ahead_of_alone p0' lead' f') !eqxx.
have -> : (size (tokens V))%:R * theta ^+ ticks = total (fun _ : V => theta ^+ ticks).
  by rewrite totalE big_const_seq count_predT iter_addr_0 mulr_natl.
rewrite -total_sub -total_scale; apply: total_le => i; have [_ none] := both_le i.
rewrite /both_odds; case: (boolP (_ && _)) => [/andP[wi w'i]|/none ->]; last first.
  by rewrite sub0r mulrN oppr_le0 mulr_ge0 ?exprn_ge0.
have ji : (0 < joint_weight i i)%N by rewrite joint_self muln_gt0 wi.
have [_ high] := race_first ji (light i); apply: le_trans high; rewrite ler_wpmul2l ?exprn_ge0 // ler_add2r.
apply: (prob_le racedP) => E /andP[/eqP e /eqP e']; rewrite both_ahead //.
by have [[_ f] [_ f']] := (first E, first' E); rewrite e in f; rewrite e' in f'; rewrite f f'.
Qed.

Theorem agreement_formula : (0 < sum_of w)%N -> (0 < sum_of w')%N -> agreement_odds = coupling_odds (odds w) (odds w').
Proof.
have max_nat a b : Num.max a%:R b%:R = (maxn a b)%:R :> R.
  by case: (leqP a b) => [le|/ltnW ge]; [rewrite max_r | rewrite max_l]; rewrite ?ler_nat.
have shared a b d e : 0 < a -> 0 < b -> Num.max (d / a) (e / b) = Num.max (d * b) (e * a) / (a * b) :> R.
  move=> a0 b0; rewrite maxr_pmull ?invr_ge0 ?mulr_ge0 ?ltW //; have [an bn] := (lt0r_neq0 a0, lt0r_neq0 b0).
  by congr Num.max; field; rewrite an bn.
have sure a i : (0 < sum_of a)%N -> (0 < odds a i) = (0 < a i)%N.
  by move=> a0; rewrite /odds pmulr_lgt0 ?invr_gt0 ltr0n.
move=> W0 W'0; apply: total_ext => i; rewrite /both_odds !sure //; case: ifP => // /andP[wi w'i].
have [n0 n'0] : 0 < (w i)%:R :> R /\ 0 < (w' i)%:R :> R by rewrite !ltr0n.
have [d0 d'0] : (sum_of w)%:R != 0 :> R /\ (sum_of w')%:R != 0 :> R by rewrite !pnatr_eq0 -!lt0n.
have term v : Num.max (odds w v / odds w i) (odds w' v / odds w' i)
            = (joint_weight i v)%:R / (w i * w' i)%:R.
  have plain a : (sum_of a)%:R != 0 :> R -> 0 < (a i)%:R :> R -> odds a v / odds a i = (a v)%:R / (a i)%:R.
    by move=> an /lt0r_neq0 ain; rewrite /odds; field; rewrite an ain.
  by rewrite !plain // shared // -!natrM max_nat.
rewrite (total_ext (term)) total_scaler totalE -natr_sum invfM invrK mulrC /odds joint_self.
by rewrite /sum_of.
Qed.
End Shared.

(** ** In numbers *)
Let eta := 1 - theta.

Lemma slow k : 1 - theta ^+ k <= k%:R * eta.
Proof.
have t1 : theta <= 1 by case/andP: theta01.
by rewrite geometric mulrC ler_wpmul2r ?subr_ge0 //; case: (sum_between k).
Qed.

Lemma over_by k : theta ^+ k <= (1 + k%:R * eta)^-1.
Proof.
have eta0 : 0 <= eta by rewrite subr_ge0; case/andP: theta01.
have d0 : 0 < 1 + k%:R * eta by rewrite ltr_spaddl ?ltr01 // mulr_ge0 ?ler0n.
rewrite -[leRHS]mul1r ler_pdivl_mulr // mulrDr mulr1 -ler_subr_addl geometric mulrCA [X in _ <= X]mulrC.
by rewrite mulrA -/eta ler_wpmul2r //; case: (sum_between k).
Qed.

Lemma spoilt_le : 1 - unspoilt <= most%:R * eta + (1 + ticks%:R * eta)^-1.
Proof.
have [t0 t1] := andP theta01.
apply: le_trans _ (ler_add (slow most) (over_by ticks)).
have -> : 1 - unspoilt = (1 - theta ^+ most) + theta ^+ most * theta ^+ ticks by rewrite /unspoilt; ring.
rewrite ler_add2l -[leRHS]mul1r ler_wpmul2r ?exprn_ge0 //.
by rewrite exprn_ile1.
Qed.

Theorem race_tv w choose : writes_first w choose -> (sum_of w <= most)%N ->
  tv (odds w) (written choose) <= most%:R * eta + (1 + ticks%:R * eta)^-1.
Proof. by move=> first light; apply: le_trans spoilt_le; apply: race_tv_left. Qed.

(** The text of a loop whose drafter may see every clock, later ones too. *)
Theorem race_text (weights : seq V -> V -> nat) (choose : seq V -> (V -> nat) -> V) (S : Type)
    (propose : (nat -> V -> nat) -> S -> seq V -> seq V)
    (update : (nat -> V -> nat) -> S -> seq V -> seq V -> S) clocks0 n st h f :
  (forall h, writes_first (weights h) (choose h)) -> (forall h, sum_of (weights h) <= most)%N -> unit_test f ->
  target (fun h => odds (weights h)) n h f
  - drawn raced (size h) n clocks0
      (fun places => f (greedy_loop (chosen choose places) (propose places) (update places) n n st h))
  <= n%:R * (most%:R * eta + (1 + ticks%:R * eta)^-1).
Proof.
move=> first light f01; pose row h := written (choose h).
have noiseP h' k : raced (fun E => k (choose h' E)) = pick (row h') k.
  rewrite /pick /row /written /prob (total_ext (g := fun v => raced (fun E => (choose h' E == v)%:R * k v))) => [|v].
    rewrite -(law_total racedP); apply: (law_ext racedP) => E.
    by rewrite -[LHS](total_pick (choose h' E) k); apply: total_ext => v; rewrite eq_sym.
  by rewrite (law_scaler racedP).
rewrite (coupled_lossless racedP noiseP); apply: drift => // h'; last exact: race_tv.
  by apply: odds_dist; have [w0 _] := first h' (fun=> 0%N); apply: leq_trans w0 (weight_le _ _).
exact: written_dist.
Qed.

(** How often drafter and target write the same: the papers' number, within the grid's errors. *)
Theorem race_agreement w w' choose choose' : writes_first w choose -> writes_first w' choose' ->
  (forall i, sum_of (joint_weight w w' i) <= most)%N ->
  let c := coupling_odds (odds w) (odds w') in
  c - (most%:R * eta + (1 + ticks%:R * eta)^-1) <= agreed choose choose'
  /\ agreed choose choose' <= c + (most%:R * eta + (size (tokens V))%:R / (1 + ticks%:R * eta)).
Proof.
move=> first first' light c; have [t0 t1] := andP theta01; have eta0 : 0 <= eta by rewrite subr_ge0.
have [low high] := race_agreement_left first first' light.
have [[w0 _] [w'0 _]] := (first (fun=> 0%N), first' (fun=> 0%N)).
have [W0 W'0] : (0 < sum_of w)%N /\ (0 < sum_of w')%N.
  by split; [apply: leq_trans w0 (weight_le _ _) | apply: leq_trans w'0 (weight_le _ _)].
have [oP o'P] := (odds_dist W0, odds_dist W'0).
have ce : agreement_odds w w' = c by apply: agreement_formula.
have c01 : 0 <= c <= 1.
  have [_ up] := agreement_between oP o'P; have tv0 : 0 <= tv (odds w) (odds w').
    by rewrite mulr_ge0 ?invr_ge0 ?ler0n // total_ge0.
  rewrite (le_trans up) ?ler_subl_addl ?ler_addr // andbT -ce; apply: total_ge0 => i; rewrite /both_odds.
  by case: ifP => // _; rewrite divr_ge0 ?ler0n.
have [c0 c1] := andP c01; rewrite ce in low high; split.
  apply: le_trans low; rewrite -[X in X - _]mulr1 -(subKr 1 unspoilt) mulrBr mulr1 ler_add2l ler_opp2.
  by apply: le_trans spoilt_le; rewrite -[leRHS]mul1r ler_wpmul2r // subr_ge0; case/andP: unspoilt01.
have [x0 x1] : 0 <= theta ^+ most /\ theta ^+ most <= 1 by rewrite exprn_ge0 // exprn_ile1.
have a01 : agreed choose choose' <= 1 by apply: prob_le1 racedP _.
have size0 : 0 <= (size (tokens V))%:R * theta ^+ ticks by rewrite mulr_ge0 ?ler0n ?exprn_ge0.
have slack : agreed choose choose' - c <= (1 - theta ^+ most) + (size (tokens V))%:R * theta ^+ ticks.
  set a := agreed _ _ in high a01 *; set y := _ * theta ^+ ticks in high size0 *; set x := theta ^+ most in high x0 x1 *.
  have -> : a - c = (1 - x) * a + x * y + (x * (a - y) - c) by ring.
  have [loss late] : (1 - x) * a <= 1 - x /\ x * y <= y.
    by split; [rewrite -[leRHS]mulr1 ler_wpmul2l ?subr_ge0 | rewrite -[leRHS]mul1r ler_wpmul2r].
  by rewrite -[leRHS]addr0 ler_add ?ler_add // subr_le0.
rewrite addrC -ler_subl_addr; apply: le_trans slack _; apply: ler_add; first exact: slow.
by rewrite ler_wpmul2l ?ler0n // over_by.
Qed.

End Race.
