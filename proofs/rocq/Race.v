(** Exponential races on a grid: each token's clock, and who is first.

    What it says.  Every token v has a clock E v, independent of the others; with weights c the
    token of the least E v / c v is first.  The clocks are what programs can draw: ticks of
    length 1 - theta, the geometric law of parameter theta, ticks * most of them at most; all
    of it rational.
    - [race_alone], [race_ahead]  of weights that sum to W, token i is first with probability
      c i / W, up to factors that tend to 1: from below where a draw counts as lost, from above
      where it counts as won;
    - [race_first]  with the same factors for all weights that sum to [most] at most.
    The proof cuts time into rounds of c i ticks for i and c v ticks for v: i is first if it
    rings in a round that the others live through, a geometric series.

    Source: ours; the law of exponential races is textbook.  Used by Gumbel.v. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Range.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma tokens_uniq (V : vocab) : uniq (tokens V).
Proof. by apply: count_mem_uniq => x; rewrite tokens_once (token_in x). Qed.

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

Definition weight_sum w : nat := (\sum_(v <- tokens V) w v)%N.
Definition raced : law R (V -> nat) := @clocks R V theta (ticks * most).
Lemma racedP : lawful raced.
Proof. exact: lawful_clocks theta01 _. Qed.

(** [i] is first, alone or with others.  A token of weight 0 does not run. *)
Definition alone c i E : bool := all (fun v => [|| v == i, c v == 0%N | (c v * E i < c i * E v)%N]) (tokens V).
Definition ahead c i E : bool := all (fun v => (c v * E i <= c i * E v)%N) (tokens V).

Section Weights.
Variables (c : V -> nat) (i : V).
Hypothesis ci : (0 < c i)%N.
Hypothesis light : (weight_sum c <= most)%N.
Let all_weight := weight_sum c.

(** [i] at its tick a or later, all others at their tick b or later. *)
Definition at_ticks a b v : nat := (if v == i then a * c i else b * c v)%N.
Definition since a b E : bool := late (at_ticks a b) (tokens V) E.

Lemma sum_split : all_weight = (c i + \sum_(v <- tokens V | v != i) c v)%N.
Proof. by rewrite /all_weight /weight_sum (bigD1_seq i) ?token_in ?tokens_uniq. Qed.

Lemma weight_le v : (c v <= all_weight)%N.
Proof. by rewrite /all_weight /weight_sum (bigD1_seq v) ?token_in ?tokens_uniq //= leq_addr. Qed.

Lemma since_prob a b : (a <= ticks)%N -> (b <= ticks)%N ->
  prob raced (since a b) = theta ^+ (a * c i) * theta ^+ (b * (all_weight - c i)).
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
have few : \sum_(0 <= a < ticks) (tick E == a)%:R <= 1 :> R.
  elim: ticks => [|k IH]; first by rewrite big_geq ?ler01.
  rewrite big_nat_recr //=; case: eqP => [e|_]; last by rewrite addr0.
  rewrite big_nat big1 ?add0r // => a /andP[_ lt]; case: eqP => // ta.
  by rewrite -e ta ltnn in lt.
apply: le_trans few; apply: ler_sum => a _; rewrite in_tick ler_nat.
by case: (tick E == a) => //; apply: leq_b1.
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

Let share : R := (c i)%:R / all_weight%:R.
Let once := theta ^+ all_weight.

Lemma total_weight : (0 < all_weight)%N.
Proof. by rewrite (leq_trans ci) // weight_le. Qed.

Lemma powers a b : theta ^+ (a * c i) * theta ^+ (b * (all_weight - c i)) = theta ^+ c i ^+ a * theta ^+ (all_weight - c i) ^+ b.
Proof. by rewrite -!exprM ![(c i * _)%N]mulnC ![((all_weight - c i) * _)%N]mulnC. Qed.

Lemma once_split : theta ^+ c i * theta ^+ (all_weight - c i) = once.
Proof. by rewrite -exprD subnKC // weight_le. Qed.

Lemma geometric k : (1 - theta ^+ k) = (1 - theta) * \sum_(0 <= j < k) theta ^+ j.
Proof. by rewrite big_mkord -opprB subrX1 -mulNr opprB. Qed.

Let rounds : R := \sum_(0 <= a < ticks) once ^+ a.

Lemma alone_prob : (1 - theta ^+ c i) * theta ^+ (all_weight - c i) * rounds <= prob raced (alone c i).
Proof.
apply: le_trans (law_le racedP alone_ge); rewrite (law_sum _ _ racedP) mulr_sumr le_eqVlt; apply/orP; left; apply/eqP.
apply: eq_big_nat => a /andP[_ lt]; rewrite (law_sub racedP) -!/(prob _ _) !since_prob ?(ltnW lt) // !powers.
rewrite -once_split; move: (theta ^+ c i) (theta ^+ (all_weight - c i)) => x y; rewrite exprMn !exprS.
by move: (x ^+ a) (y ^+ a) => u v; ring.
Qed.

Lemma ahead_prob : prob raced (ahead c i) <= (1 - theta ^+ c i) * rounds + once ^+ ticks.
Proof.
apply: le_trans (law_le racedP ahead_le) _; rewrite (law_add racedP) (law_sum _ _ racedP) -/(prob _ _).
rewrite since_prob // powers -exprMn once_split ler_add2r mulr_sumr le_eqVlt; apply/orP; left; apply/eqP.
apply: eq_big_nat => a /andP[_ lt]; rewrite (law_sub racedP) -!/(prob _ _) !since_prob ?(ltnW lt) // !powers.
rewrite -once_split; move: (theta ^+ c i) (theta ^+ (all_weight - c i)) => x y; rewrite exprMn !exprS.
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
have C0 : 0 < all_weight%:R :> R by rewrite ltr0n total_weight.
have t1 : theta <= 1 by case/andP: theta01.
rewrite /share mulrAC ler_pdivr_mulr // !geometric -/(G _) -/(G _) mulrCA -mulrA ler_wpmul2l ?subr_ge0 //.
have tail : \sum_(c i <= j < all_weight) theta ^+ j <= (all_weight - c i)%:R * theta ^+ c i.
  rewrite mulr_natl -sumr_const_nat; apply: ler_sum_nat => j /andP[cj _].
  by case/andP: (theta_powers cj).
have -> : G all_weight = G (c i) + \sum_(c i <= j < all_weight) theta ^+ j by rewrite /G -big_cat_nat ?weight_le.
have step : (c i)%:R * (\sum_(c i <= j < all_weight) theta ^+ j) <= (all_weight - c i)%:R * G (c i).
  have [low _] := sum_between (c i); apply: le_trans (ler_wpmul2l (ler0n _ _) tail) _.
  by rewrite mulrCA ler_wpmul2l ?ler0n.
have -> : G (c i) * all_weight%:R = (c i)%:R * G (c i) + (all_weight - c i)%:R * G (c i).
  by rewrite -mulrDl -natrD subnKC ?weight_le // mulrC.
by rewrite mulrDr ler_add2l.
Qed.

Lemma race_alone : share * (once * (1 - once ^+ ticks)) <= prob raced (alone c i).
Proof.
apply: le_trans alone_prob.
have once1 : 1 - once ^+ ticks = (1 - once) * rounds by rewrite /rounds big_mkord -opprB subrX1 -mulNr opprB.
have [rounds0 weak] : 0 <= rounds /\ once <= theta ^+ (all_weight - c i).
  split; last by case/andP: (theta_powers (leq_subr (c i) all_weight)).
  by apply: sumr_ge0 => a _; rewrite -exprM; case/andP: (theta_powers (leqnn (all_weight * a))).
have [s1 once0] : 0 <= 1 - theta ^+ c i /\ 0 <= once.
  by split; [rewrite subr_ge0; case/andP: (theta_powers (leq0n (c i))) | case/andP: (theta_powers (leqnn all_weight))].
have -> : share * (once * (1 - once ^+ ticks)) = share * (1 - once) * once * rounds by rewrite once1; ring.
apply: ler_wpmul2r => //; apply: le_trans (ler_wpmul2r once0 share_concave) _.
by apply: ler_wpmul2l.
Qed.

Lemma race_ahead : once * (prob raced (ahead c i) - once ^+ ticks) <= share.
Proof.
have [t0 t1] := andP theta01; have once0 : 0 <= once by rewrite exprn_ge0.
have C0 : 0 < all_weight%:R :> R by rewrite ltr0n total_weight.
have rounds0 : 0 <= rounds by apply: sumr_ge0 => a _; rewrite exprn_ge0.
have most_of : prob raced (ahead c i) - once ^+ ticks <= (1 - theta ^+ c i) * rounds.
  by rewrite ler_subl_addr; apply: ahead_prob.
have slow : 1 - theta ^+ c i <= (1 - theta) * (c i)%:R.
  by rewrite geometric -/(G _); apply: ler_wpmul2l; [rewrite subr_ge0 | case: (sum_between (c i))].
have all_rounds : all_weight%:R * once * ((1 - theta) * rounds) <= 1.
  apply: le_trans (_ : (1 - once) * rounds <= _); last first.
    by rewrite /rounds big_mkord -[1 - once]opprB mulNr -subrX1 opprB ler_subl_addl ler_addr exprn_ge0.
  rewrite mulrA; apply: ler_wpmul2r => //; rewrite geometric mulrC; apply: ler_wpmul2l; first by rewrite subr_ge0.
  by case: (sum_between all_weight).
apply: le_trans (ler_wpmul2l once0 most_of) _; rewrite ler_pdivl_mulr //.
apply: le_trans (_ : (c i)%:R * (all_weight%:R * once * ((1 - theta) * rounds)) <= _); last first.
  by rewrite -[leRHS]mulr1 ler_wpmul2l ?ler0n.
have -> : (c i)%:R * (all_weight%:R * once * ((1 - theta) * rounds)) = once * ((1 - theta) * (c i)%:R * rounds) * all_weight%:R by ring.
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

End Race.
