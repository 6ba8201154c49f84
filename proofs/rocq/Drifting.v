(** What a machine that decides almost as a rule does writes almost what the target writes.

    What it says.  A machine's round is a law like any other.  [drifts d]: each token that it
    emits, given the past, is within [d] of the target's row in total variation; in completed
    form, so that rounds of random length compose.
    - [loop_drifts]       n tokens written by rounds that drift by d, stop or no stop, differ
      from the target's text in no event by more than n d, however long the rounds are;
    - [chain_drifts]      a chain drifts by d if each of its verdicts and its bonus do;
    - [ratio_step_drifts] and the ratio rule's verdict drifts by what its draw, its coin and
      its correction are off, and by the difference of the sums of its two rows;
    - [agreement_step_drifts], [walk_drifts]  the same for agreement, and for given trees.
    The number of tests does not enter: a token is judged once.

    Source: ours (a hybrid argument over tokens). *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Loop Chain Leviathan Tree Loops Drift.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Drifting.
Variables (R : realFieldType) (V : vocab) (p : seq V -> V -> R) (d : R).
Hypothesis pP : forall h, dist (p h).
Hypothesis d0 : 0 <= d.
Implicit Types (h o : seq V) (x y : V) (k : seq V -> R) (f : V -> R).

(** What is still to be written is allowed to drift too. *)
Definition allowed n h o k : R := complete p n h o k + (n - size o)%:R * d.
Definition drifts h (r : law R (seq V)) := forall n k, unit_test k -> r (allowed n h ^~ k) <= target p n h k + n%:R * d.

(** The value of going on after one more token. *)
Definition after n h k y : R := target p n (rcons h y) (fun s => k (y :: s)).

Lemma unit_target n h k : unit_test k -> 0 <= target p n h k <= 1.
Proof.
move=> k01; have tP := lawful_target pP n h; apply/andP; split.
  by apply: (law_ge0 tP) => s; case/andP: (k01 s).
by rewrite -(law_one tP); apply: (law_le tP) => s; case/andP: (k01 s).
Qed.

Lemma unit_after n h k : unit_test k -> unit_test (after n h k).
Proof. by move=> k01 y; apply: unit_target => s; apply: k01. Qed.

Lemma allowed_one n h y k : allowed n.+1 h [:: y] k = after n h k y + n%:R * d.
Proof. by rewrite /allowed /= complete_nil subn1. Qed.

Lemma allowed_cons n h x o k : allowed n.+1 h (x :: o) k = allowed n (rcons h x) o (fun s => k (x :: s)).
Proof. by []. Qed.

Lemma allowed_none h o k : allowed 0 h o k = k [::].
Proof. by rewrite /allowed sub0n mul0r addr0; case: o. Qed.

Lemma drift_more n h k : pick (p h) (after n h k) + d + n%:R * d = target p n.+1 h k + n.+1%:R * d.
Proof. by rewrite -[target p n.+1 h k]/(pick (p h) (after n h k)) mulrSr; ring. Qed.

(** ** The loop *)

Section Loops.
Variables (S : Type) (stop : seq V -> bool) (round : S -> seq V -> law R (seq V * S)).
Hypothesis roundP : forall st h, lawful (round st h).
Hypothesis round_emits : forall st h, surely (fun out => (0 < size out.1)%N) (round st h).
Hypothesis round_drifts : forall st h, drifts h (out <~ round st h;; ret out.1).

Lemma loop_drifts fuel n st h k : (n <= fuel)%N -> unit_test k ->
  loop stop round fuel n st h k <= plain p stop n h k + n%:R * d.
Proof.
elim: fuel n st h k => [|fuel IH] [|n] st h k // le k01; rewrite ?mul0r ?addr0 //.
rewrite plain_target //.
have k'01 : unit_test (fun s => k (upto_stop stop h s)) by move=> s; apply: k01.
apply: le_trans (round_drifts st h n.+1 k'01).
rewrite [loop _ _ _ _ _ _]/= [X in _ <= X]/bind.
pose go (out : seq V * S) := let new := take n.+1 out.1 in
  if stops stop h new then k (upto_stop stop h new)
  else loop stop round fuel (n.+1 - size new)%N out.2 (h ++ new) (fun s => k (new ++ s)).
have -> : (out <~ round st h;; (let new := take n.+1 out.1 in
    if stops stop h new then ret (upto_stop stop h new)
    else rest <~ loop stop round fuel (n.+1 - size new)%N out.2 (h ++ new);; ret (new ++ rest))) k
  = round st h (fun out => if (0 < size out.1)%N then go out else 0).
  apply: round_emits => -[o st'] /= o0; rewrite o0 /go /= /bind /ret.
  by case: ifP.
have -> : round st h (fun out => ret out.1 (fun o => allowed n.+1 h o (fun s => k (upto_stop stop h s))))
  = round st h (fun out => if (0 < size out.1)%N then allowed n.+1 h out.1 (fun s => k (upto_stop stop h s)) else 0).
  by apply: round_emits => -[o st'] /= o0; rewrite o0 /ret.
apply: (law_le (roundP st h)) => -[o st'] /=; case: ifP => // o0; rewrite /go /=.
set new := take n.+1 o.
have sz : (n.+1 - size o = n.+1 - size new)%N.
  rewrite /new size_take; case: ltnP => // ge; rewrite subnn; apply/eqP; rewrite subn_eq0.
  exact: ltnW.
rewrite /allowed sz complete_cat -/new complete_nil.
have shorter : (n.+1 - size new <= fuel)%N.
  by rewrite /new; case: (o) o0 => //= x o' _; rewrite subSS (leq_trans (leq_subr _ _)).
have rest0 : 0 <= (n.+1 - size new)%N%:R * d by rewrite mulr_ge0 ?ler0n.
case: (boolP (stops stop h new)) => [yes|no].
  rewrite -[leLHS]addr0; apply: ler_add => //.
  rewrite -[leLHS](law_const (lawful_target pP (n.+1 - size new)%N (h ++ new))).
  by apply: (law_le (lawful_target pP _ _)) => s; rewrite upto_stop_cat yes.
apply: le_trans (IH _ _ _ _ shorter _) _ => [s|]; first exact: k01.
rewrite plain_target // ler_add2r; apply: (law_le (lawful_target pP _ _)) => s.
by rewrite upto_stop_cat (negbTE no).
Qed.

Lemma lawful_loop fuel n st h : lawful (loop stop round fuel n st h).
Proof.
elim: fuel n st h => [|fuel IH] n st h /=; first exact: lawful_ret.
case: eqP => _; first exact: lawful_ret.
apply: lawful_bind => // -[o st']; case: ifP => _; first exact: lawful_ret.
by apply: lawful_bind => // s; apply: lawful_ret.
Qed.

Lemma lawful_plain n h : lawful (plain p stop n h).
Proof.
elim: n h => [|n IH] h /=; first exact: lawful_ret.
apply: lawful_bind => [|x]; first exact: lawful_pick.
by case: ifP => _; [apply: lawful_ret | apply: lawful_bind => // s; apply: lawful_ret].
Qed.

Theorem loop_near fuel n st h k : (n <= fuel)%N -> unit_test k ->
  `|loop stop round fuel n st h k - plain p stop n h k| <= n%:R * d.
Proof.
move=> le k01; have lP := lawful_loop fuel n st h; have tP := lawful_plain n h.
rewrite ler_distl; apply/andP; split; last exact: loop_drifts.
have k'01 : unit_test (fun s => 1 - k s).
  by move=> s; have /andP[a b] := k01 s; rewrite subr_ge0 b /= ler_subl_addr ler_addl.
have := loop_drifts st h le k'01; rewrite !law_sub // !(law_const lP) !(law_const tP).
by rewrite -addrA ler_add2l ler_oppl opprD opprK.
Qed.

End Loops.

(** ... whatever was drafted, from whatever the drafter remembers. *)
Section Drafted.
Variables (S D : Type) (stop : seq V -> bool).
Variables (draw : S -> seq V -> law R D) (answer : S -> seq V -> D -> law R (seq V)).
Variable update : S -> seq V -> D -> seq V -> law R S.
Hypothesis drawP : forall st h, lawful (draw st h).
Hypothesis updateP : forall st h d o, lawful (update st h d o).
Hypothesis answerP : forall st h d, lawful (answer st h d).
Hypothesis answer_emits : forall st h d, surely (fun o => (0 < size o)%N) (answer st h d).
Hypothesis answer_drifts : forall st h, drifts h (d <~ draw st h;; answer st h d).

Lemma drafted_loop_near fuel n st h k : (n <= fuel)%N -> unit_test k ->
  `|loop stop (drafted_round draw answer update) fuel n st h k - plain p stop n h k| <= n%:R * d.
Proof.
apply: loop_near => [st' h'|st' h' f f' e|st' h' m k' k'01].
- apply: lawful_bind => // dr; apply: lawful_bind => // o; apply: lawful_bind => // st''; exact: lawful_ret.
- apply: (law_ext (drawP st' h')) => dr; apply: answer_emits => o o0.
  by apply: (law_ext (updateP _ _ _ _)) => st''; apply: e.
apply: le_trans (answer_drifts st' h' m k'01); rewrite le_eqVlt; apply/orP; left; apply/eqP.
apply: (law_ext (drawP st' h')) => dr; apply: (law_ext (answerP st' h' dr)) => o.
exact: (law_const (updateP st' h' dr o) (allowed m h' o k')).
Qed.

End Drafted.

(** ** Chains *)

Section Chains.
Variables (p' q' : seq V -> V -> R) (halt : seq V -> bool) (step : seq V -> V -> law R (verdict V)).
Hypothesis p'P : forall h, dist (p' h).
Hypothesis q'P : forall h, ~~ halt h -> dist (q' h).
Hypothesis stepP : forall h x, lawful (step h x).
(** Each verdict, and the bonus, is within d of the target's row. *)
Hypothesis verdict_near : forall h f, ~~ halt h -> unit_test f ->
  pick (q' h) (fun x => step h x (fun v => f (emitted x v))) <= pick (p h) f + d.
Hypothesis bonus_near : forall h f, unit_test f -> pick (p' h) f <= pick (p h) f + d.

Lemma one_more_drifts n h k (r : law R V) : lawful r -> unit_test k ->
  (forall f, unit_test f -> r f <= pick (p h) f + d) ->
  r (fun y => allowed n h [:: y] k) <= target p n h k + n%:R * d.
Proof.
move=> rP k01 near; case: n => [|n].
  by rewrite mul0r addr0 -[leRHS](law_const rP); apply: (law_le rP) => y; rewrite allowed_none.
rewrite -drift_more; apply: le_trans (_ : r (after n h k) + n%:R * d <= _); last first.
  by rewrite ler_add2r; apply: near; apply: unit_after.
rewrite -[X in _ + X](law_const rP) -(law_add rP); apply: (law_le rP) => y.
by rewrite allowed_one.
Qed.

Lemma chain_drifts g h : drifts h (chain p' q' halt step g h).
Proof.
elim: g h => [|g IH] h n k k01.
  by rewrite chain_halt ?orbT //; apply: one_more_drifts => // [|f]; [apply: lawful_pick | apply: bonus_near].
case: (boolP (halt h)) => [yes|go].
  by rewrite chain_halt ?yes //; apply: one_more_drifts => // [|f]; [apply: lawful_pick | apply: bonus_near].
have cP g' h' := lawful_chain p'P q'P stepP g' h'.
case: n => [|n].
  rewrite mul0r addr0 -[leRHS](law_const (cP g.+1 h)).
  by apply: (law_le (cP g.+1 h)) => o; rewrite allowed_none.
rewrite chain_step // -drift_more.
pose T x := step h x (fun v => after n h k (emitted x v)).
have qP := lawful_pick (q'P go).
apply: le_trans (_ : pick (q' h) T + n%:R * d <= _); last first.
  by rewrite ler_add2r; apply: verdict_near => //; apply: unit_after.
rewrite -[X in _ + X](law_const qP) -(law_add qP); apply: (law_le qP) => x.
have sP := stepP h x; rewrite -[X in _ + X](law_const sP) -(law_add sP); apply: (law_le sP) => -[y|] /=.
  by rewrite allowed_one.
rewrite (law_ext (cP g (rcons h x)) (g := fun o => allowed n (rcons h x) o (fun s => k (x :: s)))); last first.
  by move=> o; rewrite allowed_cons.
by apply: IH => s; apply: k01.
Qed.

End Chains.

(** ** Trees that are given: each node's verdict decides one token, however many candidates it has *)

Section Trees.
Variable node : seq V -> seq V -> law R (choice V).
Hypothesis nodeP : forall h cs, lawful (node h cs).
Hypothesis node_child : forall h cs, surely (child_of cs) (node h cs).
Hypothesis node_near : forall h cs f, unit_test f -> node h cs (fun c => f c.1) <= pick (p h) f + d.

Lemma walk_drifts h t : drifts h (walk node h t).
Proof.
have [m] := ubnP (height t); elim: m h t => // m IH h [cts] lt [|n] k k01.
  have wP := lawful_walk nodeP h (Node cts).
  rewrite mul0r addr0 -[leRHS](law_const wP); apply: (law_le wP) => o.
  by rewrite allowed_none.
set cs := [seq ct.1 | ct <- cts]; rewrite -drift_more.
apply: le_trans (_ : node h cs (fun c => after n h k c.1) + n%:R * d <= _); last first.
  by rewrite ler_add2r; apply: node_near; apply: unit_after.
rewrite -[X in _ + X](law_const (nodeP h cs)) -(law_add (nodeP h cs)) [leLHS]/= /bind -/cs.
pose good (c : choice V) F := if child_of cs c then F else 0 : R.
set go := (X in node h cs X <= _); set bar := (X in _ <= node h cs X).
have -> : node h cs go = node h cs (fun c => good c (go c)) by apply: node_child => c ok; rewrite /good ok.
have -> : node h cs bar = node h cs (fun c => good c (bar c)) by apply: node_child => c ok; rewrite /good ok.
apply: (law_le (nodeP h cs)) => -[x j]; rewrite /good; case: ifP => // ok; rewrite /go /bar {go bar good} /=.
case: j ok => [j|_] /=; last by rewrite /ret allowed_one.
rewrite /child_of /= size_map => /andP[jlt /eqP e].
have ct0 : (V * tree V)%type by case: (cts) jlt => [|ct ?].
rewrite (nth_map ct0) // in e; rewrite (nth_map ct0) // e /ret.
have hP := lawful_walk nodeP (rcons h x) (nth ct0 cts j).2.
rewrite (law_ext hP (g := fun o => allowed n (rcons h x) o (fun s => k (x :: s)))); last first.
  by move=> o; rewrite allowed_cons.
apply: IH => [|s]; last exact: k01.
exact: leq_ltn_trans (height_child jlt ct0) _.
Qed.

End Trees.

End Drifting.

(** ** One verdict of the ratio rule, on rows that need not sum to one *)

Section Ratio.
Variables (R : realFieldType) (V : vocab).
Implicit Types (x y : V) (f r w : V -> R).

(** No event is more than d likelier. *)
Definition near (d : R) r r' := forall f, unit_test f -> pick r f <= pick r' f + d.
Definition share w x : R := w x / total w.

Lemma tv_near r r' d : dist r -> dist r' -> tv r r' <= d -> near d r r'.
Proof. by move=> rP r'P le f f01; rewrite -ler_subl_addl; apply: le_trans le; apply: tv_test. Qed.

Lemma share_dist w : (forall x, 0 <= w x) -> 0 < total w -> dist (share w).
Proof.
move=> w0 w1; split=> [x|]; first by rewrite divr_ge0 // ltW.
by rewrite total_scaler mulfV // gt_eqF.
Qed.

Lemma pick_share w f : pick (share w) f = total (fun x => w x * f x) / total w.
Proof. by rewrite -total_scaler; apply: total_ext => x; rewrite /share mulrAC. Qed.

Lemma pick01 r f : dist r -> unit_test f -> 0 <= pick r f <= 1.
Proof.
move=> rP f01; have P := lawful_pick rP; apply/andP; split.
  by apply: (law_ge0 P) => x; case/andP: (f01 x).
by rewrite -(law_one P); apply: (law_le P) => x; case/andP: (f01 x).
Qed.

(** Two numbers in [0, m] are at most m apart. *)
Lemma apart (a b m : R) : 0 <= a <= m -> 0 <= b <= m -> `|a - b| <= m.
Proof.
move=> /andP[a0 am] /andP[b0 bm]; rewrite ler_norml; apply/andP; split.
  by rewrite ler_oppl opprB; apply: le_trans bm; rewrite ler_subl_addr ler_addl.
by apply: le_trans am; rewrite ler_subl_addr ler_addl.
Qed.

Variables (p q : V -> R).
Hypothesis p0 : forall x, 0 <= p x.
Hypothesis q0 : forall x, 0 <= q x.
Hypothesis p1 : 0 < total p.
Hypothesis q1 : 0 < total q.

(** What is emitted after a refusal: the excess, and p itself where there is none. *)
Definition wanted : V -> R := if total (excess p q) == 0 then share p else share (excess p q).
Definition mismatch : R := `|total p - total q| / Num.max (total p) (total q).

Lemma wanted_dist : dist wanted.
Proof.
rewrite /wanted; case: eqP => [_|/eqP z]; first exact: share_dist.
apply: share_dist => [x|]; first exact: excess_ge0.
by rewrite lt_neqAle eq_sym z; apply: total_ge0 => x; apply: excess_ge0.
Qed.

Lemma wanted_mass f : total (fun x => excess p q x * f x) = total (excess p q) * pick wanted f.
Proof.
rewrite /wanted; case: eqP => [z|/eqP z]; last by rewrite pick_share mulrCA mulfV ?mulr1.
rewrite z mul0r -[RHS](@total0 R V); apply: total_ext => x.
by rewrite (total_eq0 (excess_ge0 p q) z) mul0r.
Qed.

Lemma unnormalised f : unit_test f ->
  `|pick (share q) (fun x => accept p q x * f x + (1 - accept p q x) * pick wanted f) - pick (share p) f| <= mismatch.
Proof.
move=> f01; set b := pick wanted f.
have b01 : 0 <= b <= 1 by apply: pick01 => //; apply: wanted_dist.
pose a := total (fun x => Num.min (p x) (q x) * f x); pose m := overlap p q.
have m0 : 0 <= m by apply: total_ge0 => x; rewrite le_minr p0 q0.
have am : 0 <= a <= m.
  apply/andP; split; first by apply: total_ge0 => x; rewrite mulr_ge0 ?le_minr ?p0 ?q0 //; case/andP: (f01 x).
  apply: total_le => x; rewrite -[leRHS]mulr1 ler_wpmul2l ?le_minr ?p0 ?q0 //; by case/andP: (f01 x).
have bm : 0 <= m * b <= m by case/andP: b01 => b0 b1; rewrite mulr_ge0 //= -[leRHS]mulr1 ler_wpmul2l.
have mp : m <= total p by apply: total_le => x; rewrite le_minl lexx.
have mq : m <= total q by apply: total_le => x; rewrite le_minl lexx orbT.
have Zp : total p != 0 by rewrite gt_eqF.
have Zq : total q != 0 by rewrite gt_eqF.
have -> : pick (share q) (fun x => accept p q x * f x + (1 - accept p q x) * b) = b + (a - m * b) / total q.
  rewrite pick_share (total_ext (g := fun x => Num.min (p x) (q x) * f x + (q x - Num.min (p x) (q x)) * b)).
    by rewrite total_add total_scaler total_sub -/a -/(overlap p q) -/m; field.
  by move=> x; rewrite -accept_mass //; ring.
have -> : pick (share p) f = b + (a - m * b) / total p.
  rewrite pick_share (total_ext (g := fun x => Num.min (p x) (q x) * f x + excess p q x * f x)).
    by rewrite total_add wanted_mass total_excess -/a -/m -/b; field.
  by move=> x; rewrite excess_min; ring.
have -> : b + (a - m * b) / total q - (b + (a - m * b) / total p)
        = (a - m * b) * (total p - total q) / (total p * total q) by field; rewrite Zp Zq.
have pq0 : 0 < total p * total q by rewrite mulr_gt0.
have x0 : 0 < Num.max (total p) (total q) by rewrite lt_maxr p1.
rewrite !normrM normfV (ger0_norm (ltW pq0)) ler_pdivr_mulr // /mismatch.
rewrite [leLHS]mulrC -[leRHS]mulrA; apply: ler_wpmul2l => //.
rewrite [leRHS]mulrC ler_pdivl_mulr //.
apply: le_trans (_ : m * Num.max (total p) (total q) <= _).
  by apply: ler_wpmul2r; [apply: ltW | apply: apart].
case: (leP (total p) (total q)) => [_|_]; first by rewrite ler_wpmul2r // ltW.
by rewrite mulrC ler_wpmul2l // ltW.
Qed.

(** The machine draws from q', tosses a coin of its own, and corrects from a row of its own. *)
Variables (q' c' a' : V -> R) (dq da dc : R).
Hypothesis q'P : dist q'.
Hypothesis c'P : dist c'.
Hypothesis a'01 : forall x, 0 <= a' x <= 1.
Hypothesis q'_near : near dq q' (share q).
Hypothesis a'_near : forall x, `|a' x - accept p q x| <= da.
Hypothesis c'_near : near dc c' wanted.

Definition machine_step x : law R (verdict V) :=
  kept <~ coin (a' x);; if kept then ret None else y <~ pick c';; ret (Some y).

Lemma lawful_machine_step x : lawful (machine_step x).
Proof.
apply: lawful_bind => [|[]]; [exact: lawful_coin | exact: lawful_ret |].
by apply: lawful_bind => [|y]; [apply: lawful_pick | apply: lawful_ret].
Qed.

Theorem ratio_step_drifts f : 0 <= dc -> unit_test f ->
  pick q' (fun x => machine_step x (fun v => f (emitted x v))) <= pick (share p) f + (dq + da + dc + mismatch).
Proof.
move=> dc0 f01; pose b := pick wanted f; pose T x := accept p q x * f x + (1 - accept p q x) * b.
have b01 : 0 <= b <= 1 by apply: pick01 => //; apply: wanted_dist.
have qP : dist (share q) by apply: share_dist.
pose T' x := a' x * f x + (1 - a' x) * b.
have T'01 : unit_test T'.
  move=> x; have /andP[a0 a1] := a'01 x; have /andP[f0 f1] := f01 x; have /andP[b0 b1] := b01.
  have n0 : 0 <= 1 - a' x by rewrite subr_ge0.
  apply/andP; split; first by rewrite addr_ge0 // mulr_ge0.
  apply: le_trans (_ : a' x * 1 + (1 - a' x) * 1 <= _); last by rewrite !mulr1 addrC subrK.
  by apply: ler_add; apply: ler_wpmul2l.
have step1 : pick q' (fun x => machine_step x (fun v => f (emitted x v))) <= pick q' T' + dc.
  have P := lawful_pick q'P; rewrite -[X in _ + X](law_const P) -(law_add P); apply: (law_le P) => x.
  rewrite /machine_step /bind /coin /ret /= /T' -addrA ler_add2l.
  have /andP[a0 a1] := a'01 x; have n0 : 0 <= 1 - a' x by rewrite subr_ge0.
  apply: le_trans (_ : (1 - a' x) * (b + dc) <= _); first by rewrite ler_wpmul2l //; apply: c'_near.
  by rewrite mulrDr ler_add2l -[leRHS]mul1r ler_wpmul2r // ler_subl_addr ler_addl.
have step2 : pick (share q) T' <= pick (share q) T + da.
  have P := lawful_pick qP; rewrite -[X in _ + X](law_const P) -(law_add P); apply: (law_le P) => x.
  rewrite -ler_subl_addl.
  have -> : T' x - T x = (a' x - accept p q x) * (f x - b) by rewrite /T' /T; ring.
  apply: le_trans (ler_norm _) _; rewrite normrM -[leRHS]mulr1; apply: ler_pmul => //.
  by apply: apart.
have step3 : pick (share q) T <= pick (share p) f + mismatch.
  rewrite -ler_subl_addl; apply: le_trans (ler_norm _) _; exact: unnormalised.
apply: le_trans step1 _; apply: le_trans (_ : pick (share q) T' + dq + dc <= _).
  by rewrite ler_add2r; apply: q'_near.
apply: le_trans (_ : pick (share q) T + da + dq + dc <= _); first by rewrite !ler_add2r.
apply: le_trans (_ : pick (share p) f + mismatch + da + dq + dc <= _); first by rewrite !ler_add2r.
by rewrite le_eqVlt; apply/orP; left; apply/eqP; ring.
Qed.

End Ratio.
