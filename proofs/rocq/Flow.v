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

From mathcomp Require Import all_ssreflect all_algebra.
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
case: (boolP (P i && (F i < t))) => [/andP[Pi lt]|no].
  exists (F i); last by right; exists i.
  split=> [|j]; first exact: le_trans (ltW lt) tm.
  by rewrite inE => /orP[/eqP ->|js Pj] //; apply: le_trans (ltW lt) (tF j js Pj).
exists t => //; split=> // j; rewrite inE => /orP[/eqP ->|js] // Pj.
  by move: no; rewrite Pj -leNgt.
exact: tF.
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
  by rewrite -(ler_add2l t) addrCA.
- by exists H1; rewrite C_of in1 out1 /= mulr0 !addr0 mulr1.
- by exists H1; rewrite C_of in1 out1 /= mulr0 add0r addr0 mulr1.
have C1 : C H1 = cut E a' b' H1 + a x0 by rewrite C_of in1 out1 /= addr0 mulr0 mulr1 addr0.
case: tight => [|[H3 /andP[in3 out3] e3]].
  case: (leP (a x0) (b y0)) => _ e; first by exists H1; rewrite C1 e.
  exists (y0 |: H1); have out2 : leaves_set E (y0 |: H1) x0 = false.
    by apply/negbTE; apply: contraFN out1; apply: leaves_sub; apply: subsetUr.
  rewrite C_of out2 setU11 /= mulr0 !addr0 mulr1 ler_add2r !cutE; apply: ler_add.
    apply: ler_sum => y _; rewrite in_setU1; case: eqP => [->|_] //=.
    by rewrite /b' /less_wanted eqxx mulr1 e subrr !mul0r.
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
  by rewrite CI CU C3 addrACA addrA addrA ler_add2r ler_add2r.
by rewrite e3 addrA ler_subr_addr; apply: le_trans (ler_add lI lU) sum.
Qed.

End Flow.
