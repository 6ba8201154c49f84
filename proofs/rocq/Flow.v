(** The most that k drafts can do is done by some rule.

    What it says.
    - [flow_meets_cut]  between finitely many senders and receivers, along given edges, some
      flow is as large as some cut: max-flow = min-cut for two layers over any ordered field,
      with no appeal to compactness;
    - [transport_optimum]  so for k independent drafts and any target some lossless rule emits
      one of its drafts with probability 1 + p(H) - q(H)^k for some set H of tokens: the bound
      that Optimality.transport_bound puts on every lossless rule, for every H, is reached.

    Source: Gale 1957, a theorem on flows in networks; the transport problem of SpecTr (Sun
    et al. 2023), its dual in Hu et al. 2025 (arXiv 2502.18779); the proof is ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Chain Optimality.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The largest number below a bound and below all F i with P i is one of these. *)
Lemma tight_bound (R : realFieldType) (I : finType) (P : pred I) (F : I -> R) (m : R) :
  exists2 t, t <= m /\ (forall i, P i -> t <= F i) & t = m \/ exists2 i, P i & t = F i.
Proof.
suff [t [tm tF] e] : exists2 t, t <= m /\ (forall i, i \in enum I -> P i -> t <= F i)
    & t = m \/ exists2 i, P i & t = F i.
  by exists t => //; split=> // i; apply: tF; rewrite mem_enum.
elim: (enum I) => [|i s [t [tm tF] e]]; first by exists m; [split | left].
have stays : ~~ (P i && (F i < t)) -> P i -> t <= F i by move=> no Pi; move: no; rewrite Pi -leNgt.
case: (boolP (P i && (F i < t))) => [/andP[Pi lt]|/stays no].
  exists (F i); last by right; exists i.
  split=> [|j]; first exact: le_trans (ltW lt) tm.
  by rewrite inE => /orP[/eqP ->|js Pj] //; apply: le_trans (ltW lt) (tF j js Pj).
by exists t => //; split=> // j; rewrite inE => /orP[/eqP ->|/tF].
Qed.

Section Flow.
Variables (R : realFieldType) (X Y : finType).
Implicit Types (E : seq (X * Y)) (a : X -> R) (b : Y -> R) (f : X -> Y -> R) (H : {set Y}) (x : X) (y : Y).

(** An edge of x leads out of H. *)
Definition leaves_set E H x : bool := has (fun e => (e.1 == x) && (e.2 \notin H)) E.
Definition cut E a b H : R := \sum_(y in H) b y + \sum_(x | leaves_set E H x) a x.

Record flows E a b f : Prop := Flows {
  flow_ge0 : forall x y, 0 <= f x y;
  flow_edges : forall x y, (x, y) \notin E -> f x y = 0;
  flow_sent : forall x, \sum_y f x y <= a x;
  flow_received : forall y, \sum_x f x y <= b y
}.

Definition flow_value f : R := \sum_x \sum_y f x y.

(** Whatever flows is received in H or leaves it. *)
Lemma flow_below_cut E a b f H : flows E a b f -> flow_value f <= cut E a b H.
Proof.
case=> f0 fE fa fb; have inside : \sum_x \sum_(y in H) f x y <= \sum_(y in H) b y.
  by rewrite exchange_big /=; apply: ler_sum => y _; apply: fb.
have outside : \sum_x \sum_(y | y \notin H) f x y <= \sum_(x | leaves_set E H x) a x.
  rewrite [leLHS](bigID (leaves_set E H)) /= [X in _ + X]big1 ?addr0; last first.
    move=> x stays; apply: big1 => y yH; apply: fE; apply: contra stays => xy.
    by apply/hasP; exists (x, y) => //=; rewrite eqxx.
  apply: ler_sum => x _; apply: le_trans (fa x).
  by rewrite [leRHS](bigID (mem H)) /= ler_addr; apply: sumr_ge0.
apply: le_trans (ler_add inside outside); rewrite -big_split /=.
by apply: ler_sum => x _; rewrite [leLHS](bigID (mem H)).
Qed.

Lemma leaves_cons E x0 y0 H x : leaves_set ((x0, y0) :: E) H x = ((x0 == x) && (y0 \notin H)) || leaves_set E H x.
Proof. by []. Qed.

(** Cuts with as indicators, so that they are sums over all x and all y. *)
Lemma cutE E a b H : cut E a b H = \sum_y b y * (y \in H)%:R + \sum_x a x * (leaves_set E H x)%:R.
Proof.
rewrite /cut big_mkcond /= [X in _ + X]big_mkcond /=; congr (_ + _); apply: eq_bigr => z _;
  by case: ifP; rewrite ?mulr1 ?mulr0.
Qed.

Lemma leaves_sub E (H H' : {set Y}) x : H \subset H' -> leaves_set E H' x -> leaves_set E H x.
Proof.
move=> /subsetP sub /hasP[e eE /andP[ex out]]; apply/hasP; exists e => //.
by rewrite ex /=; apply: contra out; apply: sub.
Qed.

(** Two cuts cost at least as much as what they share and what they cover. *)
Lemma cut_submodular E a b H H' : (forall x, 0 <= a x) ->
  cut E a b (H :&: H') + cut E a b (H :|: H') <= cut E a b H + cut E a b H'.
Proof.
move=> a0; rewrite !cutE addrACA [leRHS]addrACA; apply: ler_add.
  rewrite -!big_split /= le_eqVlt; apply/orP; left; apply/eqP; apply: eq_bigr => y _.
  by rewrite -!mulrDr in_setI in_setU; congr (_ * _); do 2 case: (y \in _); rewrite ?addr0 ?add0r.
rewrite -!big_split /=; apply: ler_sum => x _; rewrite -!mulrDr ler_wpmul2l // -!natrD ler_nat.
have either : leaves_set E (H :&: H') x -> leaves_set E H x || leaves_set E H' x.
  case/hasP=> e eE /andP[ex]; rewrite in_setI negb_and => /orP[] out; apply/orP; [left | right];
    by apply/hasP; exists e; rewrite ?ex.
have both : leaves_set E (H :|: H') x -> leaves_set E H x && leaves_set E H' x.
  by move=> out; rewrite !(leaves_sub _ out) ?subsetUl ?subsetUr.
move: either both; do 4 case: (leaves_set _ _ _) => //; move=> e o.
all: first [by have := e isT | by have := o isT].
Qed.

Section Edge.
Variables (E : seq (X * Y)) (x0 : X) (y0 : Y) (a : X -> R) (b : Y -> R) (t : R).
Definition less_sent x : R := a x - t * (x == x0)%:R.
Definition less_wanted y : R := b y - t * (y == y0)%:R.

Lemma sum_pick (T : finType) (c : T) (F : T -> R) : \sum_z t * (z == c)%:R * F z = t * F c.
Proof.
rewrite (bigD1 c) //= eqxx mulr1 big1 ?addr0 // => z /negbTE ->.
by rewrite mulr0 mul0r.
Qed.

(** What a cut of the old edges misses when t went along the new one. *)
Lemma cut_with_edge H : cut ((x0, y0) :: E) a b H = cut E less_sent less_wanted H
  + t * ((y0 \in H)%:R + (leaves_set E H x0)%:R) + a x0 * ((y0 \notin H) && ~~ leaves_set E H x0)%:R.
Proof.
have wanted : \sum_y b y * (y \in H)%:R = \sum_y less_wanted y * (y \in H)%:R + t * (y0 \in H)%:R.
  by rewrite -(sum_pick y0 (fun y => (y \in H)%:R)) -big_split /=; apply: eq_bigr => y _; rewrite /less_wanted; ring.
have sent : \sum_x a x * (leaves_set E H x)%:R
    = \sum_x less_sent x * (leaves_set E H x)%:R + t * (leaves_set E H x0)%:R.
  by rewrite -(sum_pick x0 (fun x => (leaves_set E H x)%:R)) -big_split /=; apply: eq_bigr => x _; rewrite /less_sent; ring.
have edge : \sum_x a x * (leaves_set ((x0, y0) :: E) H x)%:R
    = \sum_x a x * (leaves_set E H x)%:R + a x0 * ((y0 \notin H) && ~~ leaves_set E H x0)%:R.
  rewrite (bigD1 x0) // [X in _ = X + _](bigD1 x0) // [RHS]addrAC -mulrDr leaves_cons eqxx; congr (_ * _ + _).
    by case: (y0 \in H); case: (leaves_set E H x0); rewrite ?addr0 ?add0r.
  by apply: eq_bigr => x ne; rewrite leaves_cons eq_sym (negbTE ne).
by rewrite !cutE edge wanted sent; ring.
Qed.
End Edge.

Theorem flow_meets_cut E a b : (forall x, 0 <= a x) -> (forall y, 0 <= b y) ->
  exists2 f, flows E a b f & exists H, flow_value f = cut E a b H.
Proof.
elim: E a b => [|[x0 y0] E IH] a b a0 b0.
  exists (fun _ _ => 0); first by split=> // *; rewrite big1.
  exists set0; rewrite /flow_value cutE !big1 ?addr0 // => [x _|y _]; first by rewrite mulr0.
  by rewrite inE mulr0.
set C := cut ((x0, y0) :: E) a b.
have [H0 least] : exists H0, forall H, C H0 <= C H.
  by have [H0 _ le] := @Order.TotalTheory.arg_minP _ _ _ set0 xpredT C isT; exists H0 => H; apply: le.
pose bad H := (y0 \in H) && leaves_set E H x0.
have [t [tm tC] tight] := tight_bound bad (fun H => C H - C H0) (Num.min (a x0) (b y0)).
have [ta tb] : t <= a x0 /\ t <= b y0 by move: tm; rewrite le_minr => /andP[].
have t0 : 0 <= t.
  by case: tight => [->|[H _ ->]]; rewrite ?subr_ge0 // le_minr a0 b0.
pose a' := less_sent x0 a t; pose b' := less_wanted y0 b t.
have a'0 x : 0 <= a' x by rewrite /a' /less_sent; case: eqP => [->|_]; rewrite ?mulr1 ?mulr0 ?subr0 // subr_ge0.
have b'0 y : 0 <= b' y by rewrite /b' /less_wanted; case: eqP => [->|_]; rewrite ?mulr1 ?mulr0 ?subr0 // subr_ge0.
have [f [f0 fE fa fb] [H1 e1]] := IH a' b' a'0 b'0.
pose g x y := f x y + t * ((x == x0) && (y == y0))%:R.
have row x : \sum_y g x y = \sum_y f x y + t * (x == x0)%:R.
  rewrite big_split /=; congr (_ + _); case: eqP => _ /=; last by rewrite big1 ?mulr0 // => y _; rewrite mulr0.
  by rewrite -mulr_sumr; congr (_ * _); rewrite (bigD1 y0) //= eqxx big1 ?addr0 // => y /negbTE ->.
have col y : \sum_x g x y = \sum_x f x y + t * (y == y0)%:R.
  rewrite big_split /=; congr (_ + _); case: (y == y0); last by rewrite big1 ?mulr0 // => x _; rewrite andbF mulr0.
  by rewrite -mulr_sumr; congr (_ * _); rewrite (bigD1 x0) //= eqxx big1 ?addr0 // => x /negbTE ->.
have gP : flows ((x0, y0) :: E) a b g.
  split=> [x y|x y|x|y].
  - by rewrite addr_ge0 ?mulr_ge0 ?ler0n.
  - rewrite inE negb_or xpair_eqE => /andP[/negbTE no /fE e]; by rewrite /g e no mulr0 addr0.
  - by rewrite row -ler_subr_addr; apply: fa.
  - by rewrite col -ler_subr_addr; apply: fb.
have value : flow_value g = cut E a' b' H1 + t.
  rewrite /flow_value -e1 /flow_value (eq_bigr _ (fun x _ => row x)) big_split /=; congr (_ + _).
  by rewrite -mulr_sumr (bigD1 x0) //= eqxx big1 ?addr0 ?mulr1 // => x /negbTE ->.
have C_of H : C H = cut E a' b' H + t * ((y0 \in H)%:R + (leaves_set E H x0)%:R)
    + a x0 * ((y0 \notin H) && ~~ leaves_set E H x0)%:R by apply: cut_with_edge.
suff [H small] : exists H, C H <= cut E a' b' H1 + t.
  exists g => //; exists H; apply/eqP; rewrite eq_le (flow_below_cut H gP) /=.
  by rewrite value.
case in1: (y0 \in H1); case out1: (leaves_set E H1 x0).
- exists H0; have := tC H1; rewrite /bad in1 out1 => /(_ isT); rewrite C_of in1 out1 /=.
  rewrite mulr0 addr0 mulrDr mulr1 ler_subr_addr => le.
  by rewrite -(ler_add2l t) [leRHS]addrCA.
- by exists H1; rewrite C_of in1 out1 /= mulr0 !addr0 mulr1.
- by exists H1; rewrite C_of in1 out1 /= mulr0 add0r addr0 mulr1.
have C1 : C H1 = cut E a' b' H1 + a x0 by rewrite C_of in1 out1 /= addr0 mulr0 mulr1 addr0.
case: tight => [|[H3 /andP[in3 out3] e3]].
  case: (leP (a x0) (b y0)) => _ e; first by exists H1; rewrite C1 e.
  have none : b' y0 = 0 by rewrite /b' /less_wanted eqxx mulr1 e subrr.
  exists (y0 |: H1); have out2 : leaves_set E (y0 |: H1) x0 = false.
    by apply/negbTE; apply: contraFN out1; apply: leaves_sub; apply: subsetUr.
  rewrite C_of out2 setU11 /= mulr0 !addr0 mulr1 ler_add2r !cutE; apply: ler_add.
    apply: ler_sum => y _; rewrite in_setU1; case: eqP => [->|_] //=.
    by rewrite none !mul0r.
  apply: ler_sum => x _; apply: ler_wpmul2l => //; rewrite ler_nat.
  by case: (boolP (leaves_set E (y0 |: H1) x)) => // /(leaves_sub (subsetUr _ _)) ->.
exists H0; have C3 : C H3 = cut E a' b' H3 + t + t by rewrite C_of in3 out3 /= mulr0 addr0 mulrDr mulr1 addrA.
have CI : C (H1 :&: H3) = cut E a' b' (H1 :&: H3) + t.
  have out : leaves_set E (H1 :&: H3) x0 by apply: leaves_sub out3; apply: subsetIr.
  by rewrite C_of in_setI in1 out /= mulr0 add0r addr0 mulr1.
have CU : C (H1 :|: H3) = cut E a' b' (H1 :|: H3) + t.
  have out : leaves_set E (H1 :|: H3) x0 = false.
    by apply/negbTE; apply: contraFN out1; apply: leaves_sub; apply: subsetUl.
  by rewrite C_of in_setU in3 orbT out /= mulr0 !addr0 mulr1.
have sub := cut_submodular E b' H1 H3 a'0.
have lI := least (H1 :&: H3); have lU := least (H1 :|: H3).
have sum : C (H1 :&: H3) + C (H1 :|: H3) <= cut E a' b' H1 + C H3.
  by rewrite CI CU C3 addrACA -[X in _ <= _ + X]addrA [leRHS]addrA ler_add2r.
by rewrite e3 addrA ler_subr_addr; apply: le_trans (ler_add lI lU) sum.
Qed.

End Flow.

(** ** k independent drafts as senders, the target's tokens as receivers *)

Section Optimum.
Variables (R : realFieldType) (T : finType).
Notation V := (of_finType T).
Variables (p q : V -> R) (k : nat).
Hypothesis pP : dist p.
Hypothesis qP : dist q.
Implicit Types (x y : T) (t : k.-tuple T).

Lemma total_fin (F : T -> R) : total (V := V) F = \sum_x F x.
Proof. by rewrite totalE -[RHS]big_enum enumT. Qed.

Definition drawn_with n (t : n.-tuple T) : R := \prod_(x <- t) q x.

Lemma draws_tuples n (F : seq T -> R) : draws q n F = \sum_(u : n.-tuple T) drawn_with u * F u.
Proof.
elim: n F => [|n IH] F.
  by rewrite (big_pred1 [tuple]) => [|u]; rewrite ?[u]tuple0 ?eqxx // /drawn_with big_nil mul1r.
have head_and_tail : bijective (fun xu : T * n.-tuple T => cons_tuple xu.1 xu.2).
  exists (fun u => (thead u, [tuple of behead u])) => [[x u]|u] /=; first by congr (_, _); apply: val_inj.
  by rewrite [RHS]tuple_eta; apply: val_inj.
rewrite (reindex _ (onW_bij _ head_and_tail)) /=.
rewrite -(pair_big xpredT xpredT (fun x u => drawn_with (cons_tuple x u) * F (x :: u))) /=.
rewrite /bind /pick total_fin; apply: eq_bigr => x _; rewrite /ret IH mulr_sumr; apply: eq_bigr => u _.
by rewrite /drawn_with big_cons mulrA.
Qed.

Definition offered : seq (k.-tuple T * T) := enum [pred e : k.-tuple T * T | e.2 \in e.1].

Lemma drawn_ge0 t : 0 <= drawn_with t.
Proof. by apply: prodr_ge0 => x _; case: qP. Qed.

Lemma drawn_one : \sum_t @drawn_with k t = 1.
Proof.
by rewrite -[RHS](law_one (lawful_draws qP k)) draws_tuples; apply: eq_bigr => t _; rewrite mulr1.
Qed.

Lemma cut_bound H : cut offered (@drawn_with k) p H = 1 + mass p (mem H) - mass q (mem H) ^+ k.
Proof.
have leaves t : leaves_set offered H t = ~~ all (mem H) t.
  apply/hasP/allPn => [[[t' y] /=]|[y yt out]]; first by rewrite mem_enum inE /= => yt /andP[/eqP <- out]; exists y.
  by exists (t, y); rewrite ?mem_enum ?inE //= eqxx.
have inside : \sum_(t : k.-tuple T | all (mem H) t) drawn_with t = mass q (mem H) ^+ k.
  rewrite -(draws_inside qP) /prob draws_tuples big_mkcond /=; apply: eq_bigr => t _.
  by case: (all _ _); rewrite ?mulr1 ?mulr0.
rewrite /cut -drawn_one (bigID (fun t : k.-tuple T => all (mem H) t) xpredT) /= inside /mass !total_fin big_mkcond /=.
rewrite (eq_bigr (fun y => (y \in H)%:R * p y)); last by move=> y _; case: (y \in H); rewrite ?mul1r ?mul0r.
rewrite (eq_bigl (fun t : k.-tuple T => ~~ all (mem H) t)) => [|t]; last by rewrite leaves.
have regroup (u v w : R) : u + v = w + v + u - w by ring.
exact: regroup.
Qed.

Section Flowing.
Variable f : k.-tuple T -> T -> R.
Hypothesis fP : flows offered (@drawn_with k) p f.

(** What the flow leaves of each draft and of each token, and who gets it. *)
Definition unsent t : R := drawn_with t - \sum_y f t y.
Definition unmet y : R := p y - \sum_t f t y.
Definition share y : R := unmet y / \sum_z unmet z.
Definition row_of t y : R :=
  if drawn_with t == 0 then p y else (f t y + unsent t * share y) / drawn_with t.

Lemma unsent_ge0 t : 0 <= unsent t.
Proof. by rewrite subr_ge0; case: fP. Qed.

Lemma unmet_ge0 y : 0 <= unmet y.
Proof. by rewrite subr_ge0; case: fP. Qed.

Lemma unsent_unmet : \sum_t unsent t = \sum_y unmet y.
Proof.
have p1 : \sum_y p y = 1 by rewrite -total_fin; case: pP.
by rewrite !sumrB exchange_big /= drawn_one p1.
Qed.

Lemma share_unmet y : (\sum_t unsent t) * share y = unmet y.
Proof.
rewrite unsent_unmet /share; have [z|nz] := eqVneq (\sum_z unmet z) 0; last by rewrite mulrCA mulfV // mulr1.
rewrite z mul0r; symmetry; apply/eqP; move/eqP: z.
by rewrite psumr_eq0 => [/allP/(_ y (mem_index_enum _))|z _]; rewrite ?unmet_ge0.
Qed.

Lemma share_all t : unsent t * (\sum_y share y) = unsent t.
Proof.
rewrite -mulr_suml; have [z|nz] := eqVneq (\sum_z unmet z) 0; last by rewrite mulfV // mulr1.
rewrite z mul0r mulr0; symmetry; apply/eqP; move/eqP: z; rewrite -unsent_unmet.
by rewrite psumr_eq0 => [/allP/(_ t (mem_index_enum _))|z _]; rewrite ?unsent_ge0.
Qed.

Lemma row_mass t y : drawn_with t * row_of t y = f t y + unsent t * share y.
Proof.
rewrite /row_of; case: eqP => [z|/eqP nz]; last by rewrite mulrCA mulfV // mulr1.
have [f0 _ fa _] := fP; have below := fa t; rewrite z in below.
have none : \sum_y' f t y' = 0 by apply/eqP; rewrite eq_le below sumr_ge0.
have fy : f t y = 0.
  by move/eqP: none; rewrite psumr_eq0 => [/allP/(_ y (mem_index_enum _))/eqP|//].
by rewrite /unsent z none fy subr0 !mul0r addr0.
Qed.

Lemma row_dist t : dist (row_of t : V -> R).
Proof.
rewrite /row_of; case: eqP => [//|/eqP nz]; split=> [y|].
  have [f0 _ _ _] := fP; rewrite divr_ge0 ?drawn_ge0 // addr_ge0 // mulr_ge0 ?unsent_ge0 //.
  by rewrite divr_ge0 ?unmet_ge0 // sumr_ge0 // => z _; apply: unmet_ge0.
by rewrite total_fin -mulr_suml big_split /= -mulr_sumr share_all addrC subrK mulfV.
Qed.

Definition flowing_rule (cs : seq T) : law R T := if insub cs is Some t then pick (row_of t : V -> R) else pick p.

Lemma flowing_lawful cs : lawful (flowing_rule cs).
Proof. by rewrite /flowing_rule; case: insubP => [t _ _|_]; [apply: (lawful_pick (row_dist t)) | apply: (lawful_pick pP)]. Qed.

Lemma flowing_mean (F : seq T -> T -> R) :
  draws q k (fun cs => flowing_rule cs (F cs)) = \sum_t \sum_y (f t y + unsent t * share y) * F t y.
Proof.
rewrite draws_tuples; apply: eq_bigr => t _; rewrite /flowing_rule valK /pick total_fin mulr_sumr.
by apply: eq_bigr => y _; rewrite mulrA row_mass.
Qed.

Lemma flowing_lossless (F : T -> R) : draws q k (fun cs => flowing_rule cs F) = pick p F.
Proof.
rewrite flowing_mean exchange_big /= /pick total_fin; apply: eq_bigr => y _.
by rewrite -mulr_suml big_split /= -mulr_suml share_unmet /unmet addrC subrK.
Qed.

Lemma flowing_accepts : flow_value f <= accepted (V := V) q k flowing_rule.
Proof.
rewrite /accepted flowing_mean /flow_value; apply: ler_sum => t _; apply: ler_sum => y _.
have [f0 fE _ _] := fP; have share0 : 0 <= unsent t * share y.
  by rewrite mulr_ge0 ?unsent_ge0 // divr_ge0 ?unmet_ge0 // sumr_ge0 // => z _; apply: unmet_ge0.
case: (boolP (y \in val t)) => yt; first by rewrite mulr1 ler_addl.
by rewrite mulr0 fE // mem_enum inE.
Qed.
End Flowing.

Theorem transport_optimum : exists rule : (seq V -> law R V),
  [/\ forall cs, lawful (rule cs), forall F, draws q k (fun cs => rule cs F) = pick p F
    & exists H : pred V, accepted q k rule = 1 + mass p H - mass q H ^+ k].
Proof.
have [f fP [H e]] := flow_meets_cut offered drawn_ge0 (proj1 pP).
exists (flowing_rule f); split; [exact: flowing_lawful | exact: flowing_lossless |].
exists (mem H); apply/eqP; rewrite eq_le; apply/andP; split.
  by apply: (transport_bound qP) => [cs|F]; [apply: flowing_lawful | apply: flowing_lossless].
by rewrite -cut_bound -e; apply: flowing_accepts.
Qed.

End Optimum.
