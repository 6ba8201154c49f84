(** Rule [block]: block verification.

    What it says.  With prefix weights w_0 = 1, w_i = min(1, w_{i-1} p_i/q_i), the
    whole block is kept with probability w_gamma and a shorter prefix, from the
    far end inwards, with probability S/(S + 1 - w_i), S = sum_x max(w_i p - q, 0);
    then one token from norm(max(w_i p - q, 0)).
    - [block_lossless]   p comes out: every gamma, every history-dependent p and
                         q, every causal truncation;
    - [block_length_ge_token]  it emits at least as many tokens on average as the
                         ratio rule on the same drafts.
    That no round-lossless rule emits more is in Optimality.v.
    The invariant [keep_law]: carrying weight w, a run emits w * target and comes
    back empty-handed with probability 1 - w.

    Source: Sun et al. 2024 (arXiv 2403.10444), Alg. 2, Thm 1 and 2.
    Runs in: refengine/exact/rules/block.py. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Chain Leviathan.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Block.
Variables (R : realFieldType) (V : vocab).
Variables (p q : seq V -> V -> R) (halt : seq V -> bool).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, dist (q h).
Implicit Types (h xs s : seq V) (x : V) (w : R) (k : seq V -> R).

Definition scaled w h x : R := w * p h x.
(** The weight after one more draft token. *)
Definition weight w h x : R := accept (scaled w h) (q h) x.
(** What the target still wants beyond what the draft supplies. *)
Definition owed w h : R := total (excess (scaled w h) (q h)).
Definition owed_row w h x : R := if owed w h == 0 then p h x else excess (scaled w h) (q h) x / owed w h.

(** [None]: this suffix keeps nothing and leaves the decision to its prefix. *)
Fixpoint keep w h xs : law R (option (seq V)) :=
  if xs is x :: xs' then
    o <~ keep (weight w h x) (rcons h x) xs';;
    if o is Some s then ret (Some (x :: s))
    else here <~ coin (owed w h / (owed w h + 1 - w));;
         if here then y <~ pick (owed_row w h);; ret (Some [:: y]) else ret None
  else kept <~ coin w;; if kept then y <~ pick (p h);; ret (Some [:: y]) else ret None.

(** At weight 1 the run never comes back empty-handed, so the last line is idle. *)
Definition block_verify h xs : law R (seq V) :=
  o <~ keep 1 h xs;;
  if o is Some s then ret s else y <~ pick (p h);; ret [:: y].

Definition block g h : law R (seq V) := xs <~ draft q halt g h;; block_verify h xs.

Lemma scaled_ge0 w h x : 0 <= w -> 0 <= scaled w h x.
Proof. by move=> w0; rewrite mulr_ge0 //; case: (pP h). Qed.

Lemma weight01 w h x : 0 <= w -> 0 <= weight w h x <= 1.
Proof. by move=> w0; apply: accept01 => y; [apply: scaled_ge0 | case: (qP h)]. Qed.

Lemma owed_ge0 w h : 0 <= owed w h.
Proof. by apply: total_ge0 => x; apply: excess_ge0. Qed.

Lemma owed_overlap w h : owed w h = w - overlap (scaled w h) (q h).
Proof. by rewrite /owed total_excess /scaled total_scale; case: (pP h) => _ ->; rewrite mulr1. Qed.

Lemma owed_row_dist w h : dist (owed_row w h).
Proof.
rewrite /owed_row; case: eqP => [_|/eqP z]; first exact: pP.
by split=> [x|]; rewrite ?divr_ge0 ?excess_ge0 ?owed_ge0 // total_scaler mulfV.
Qed.

Lemma owed_mass w h f : owed w h * pick (owed_row w h) f = total (fun x => excess (scaled w h) (q h) x * f x).
Proof.
rewrite /pick /owed_row -total_scale; case: eqP => [z|/eqP z]; apply: total_ext => x; last first.
  by rewrite mulrA [_ * (_ / _)]mulrCA mulfV // mulr1.
by rewrite z mul0r (total_eq0 _ z) ?mul0r // => y; apply: excess_ge0.
Qed.

(** The stopping coin: S/(S+1-w) of the mass S+1-w that comes back. *)
Lemma stop_mass w h : 0 <= w <= 1 ->
  (owed w h + 1 - w) * (owed w h / (owed w h + 1 - w)) = owed w h.
Proof.
case/andP=> _ w1; case: (eqVneq (owed w h + 1 - w) 0) => [z|z]; last by rewrite mulrCA mulfV // mulr1.
rewrite z mul0r; move: z; rewrite -addrA => /eqP; rewrite paddr_eq0 ?subr_ge0 ?owed_ge0 //.
by case/andP=> /eqP ->.
Qed.

Lemma stop01 w h : 0 <= w <= 1 -> 0 <= owed w h / (owed w h + 1 - w) <= 1.
Proof.
case/andP=> _ w1; have d0 : 0 <= owed w h + 1 - w by rewrite -addrA addr_ge0 ?owed_ge0 ?subr_ge0.
rewrite divr_ge0 ?owed_ge0 //=; move: d0; rewrite le_eqVlt => /orP[/eqP <-|d0].
  by rewrite invr0 mulr0 ler01.
by rewrite ler_pdivr_mulr // mul1r -addrA ler_addl subr_ge0.
Qed.

Lemma lawful_keep w h xs : 0 <= w <= 1 -> lawful (keep w h xs).
Proof.
elim: xs w h => [|x xs IH] w h w01 /=.
  apply: lawful_bind => [|[]]; [exact: lawful_coin | | exact: lawful_ret].
  by apply: lawful_bind => [|y]; [apply: lawful_pick | apply: lawful_ret].
apply: lawful_bind => [|[s|]]; [apply/IH/weight01; by case/andP: w01 | exact: lawful_ret |].
apply: lawful_bind => [|[]]; [exact/lawful_coin/stop01 | | exact: lawful_ret].
by apply: lawful_bind => [|y]; [apply/lawful_pick/owed_row_dist | apply: lawful_ret].
Qed.

(** One level: [T x] is worth having after x, [c] is worth having after [None]. *)
Lemma one_level w h (T : V -> R) c : 0 <= w <= 1 ->
  let a := owed w h / (owed w h + 1 - w) in
  pick (q h) (fun x => weight w h x * T x
    + (1 - weight w h x) * (a * pick (owed_row w h) T + (1 - a) * c))
  = w * pick (p h) T + (1 - w) * c.
Proof.
move=> w01 a; set D := a * _ + _; have [w0 w1] := andP w01; have [q0 q1] := qP h.
have kept x : q h x * weight w h x = Num.min (scaled w h x) (q h x).
  by apply: accept_mass => //; apply: scaled_ge0.
have back : total (fun x => q h x * (1 - weight w h x)) = owed w h + 1 - w.
  rewrite (total_ext (g := fun x => q h x - Num.min (scaled w h x) (q h x))); last first.
    by move=> x; rewrite mulrBr mulr1 kept.
  by rewrite total_sub q1 owed_overlap /overlap; ring.
rewrite /pick (total_ext (g := fun x => Num.min (scaled w h x) (q h x) * T x
                                      + q h x * (1 - weight w h x) * D)); last first.
  by move=> x; rewrite -kept; ring.
rewrite total_add total_scaler back /D.
have -> : (owed w h + 1 - w) * (a * pick (owed_row w h) T + (1 - a) * c)
        = owed w h * pick (owed_row w h) T + (1 - w) * c.
  transitivity ((owed w h + 1 - w) * a * pick (owed_row w h) T
               + (owed w h + 1 - w - (owed w h + 1 - w) * a) * c); first by ring.
  by rewrite stop_mass //; ring.
rewrite owed_mass addrA -total_add -total_scale; congr (_ + _); apply: total_ext => x.
by rewrite excess_min /scaled; ring.
Qed.

(** Values of outcomes: complete the kept tokens, or settle for [c]. *)
Definition worth n h k c (o : option (seq V)) : R :=
  if o is Some s then complete p n h s k else c.

Lemma keep_law g w h n k c : 0 <= w <= 1 ->
  draft q halt g h (fun xs => keep w h xs (worth n h k c)) = w * target p n h k + (1 - w) * c.
Proof.
elim: g w h n k c => [|g IH] w h n k c w01.
  by rewrite /draft /ret /= /bind /coin /worth /ret; congr (_ * _ + _);
     case: n => [|n]; [apply: (law_const (lawful_pick (pP h))) | apply: bonus_lossless].
rewrite /=; case: (halt h).
  by rewrite /ret /= /bind /coin /worth /ret; congr (_ * _ + _);
     case: n => [|n]; [apply: (law_const (lawful_pick (pP h))) | apply: bonus_lossless].
pose T x := if n is n'.+1 then target p n' (rcons h x) (fun s => k (x :: s)) else k [::].
have targetT : target p n h k = pick (p h) T.
  by rewrite /T; case: n @T => [|n] T //; rewrite (law_const (lawful_pick (pP h))).
pose a := owed w h / (owed w h + 1 - w); pose D := a * pick (owed_row w h) T + (1 - a) * c.
rewrite targetT -one_level // -/a -/D; apply: total_ext => x; congr (_ * _).
have [m [k' [eT eS]]] : exists m k', T x = target p m (rcons h x) k'
    /\ forall s, complete p n h (x :: s) k = complete p m (rcons h x) s k'.
  rewrite /T; case: n {targetT D} @T => [|n] T; first by exists 0%N, (fun _ => k [::]).
  by exists n, (fun s => k (x :: s)).
have oneT y : complete p n h [:: y] k = T y by rewrite /T; case: (n) => //= n'; rewrite complete_nil.
rewrite eT -(IH _ _ m k' D) ?weight01 //; last by case/andP: w01.
have dP : lawful (draft q halt g (rcons h x)) by apply: lawful_draft => h' _; apply: qP.
apply: (law_ext dP) => xs; rewrite /ret [LHS]/= {1}/bind.
apply: (law_ext (lawful_keep _ _ _)) => [|[s|]]; first by apply: weight01; case/andP: w01.
  exact: eS.
rewrite /bind /coin /ret /= /D /pick; congr (_ * _ + _); apply: total_ext => y.
by rewrite oneT.
Qed.

Lemma lawful_block_verify h xs : lawful (block_verify h xs).
Proof.
apply: lawful_bind => [|[s|]]; [by apply: lawful_keep; rewrite ler01 lexx | exact: lawful_ret |].
by apply: lawful_bind => [|y]; [apply: lawful_pick | apply: lawful_ret].
Qed.

Lemma lawful_draft_q g h : lawful (draft q halt g h).
Proof. by apply: lawful_draft => h' _; apply: qP. Qed.

Lemma lawful_block g h : lawful (block g h).
Proof. by apply: lawful_bind => [|xs]; [apply: lawful_draft_q | apply: lawful_block_verify]. Qed.

Theorem block_lossless g h : lossless p h (block g h).
Proof.
move=> n k; pose c := pick (p h) (fun y => complete p n h [:: y] k).
have := keep_law g h n k c (w := 1); rewrite ler01 lexx subrr mul1r mul0r addr0 => <- //.
apply: (law_ext (lawful_draft_q g h)) => xs.
by apply: (law_ext (lawful_keep _ _ _)) => [|[s|] //]; rewrite ler01 lexx.
Qed.

Definition nonempty (o : option (seq V)) := if o is Some s then (0 < size s)%N else true.

Lemma keep_emits w h xs : 0 <= w <= 1 -> surely nonempty (keep w h xs).
Proof.
elim: xs w h => [|x xs IH] w h w01 f f' e /=.
  apply: (law_ext (lawful_coin w01)) => -[]; last by rewrite /ret e.
  by apply: total_ext => y; rewrite /ret e.
have w'01 : 0 <= weight w h x <= 1 by apply: weight01; case/andP: w01.
apply: (law_ext (lawful_keep _ _ w'01)) => -[s|]; first by rewrite /ret e.
apply: (law_ext (lawful_coin (stop01 h w01))) => -[]; last by rewrite /ret e.
by apply: total_ext => y; rewrite /ret e.
Qed.

Lemma one01 : 0 <= (1 : R) <= 1. Proof. by rewrite ler01 lexx. Qed.

Theorem block_emits g h : surely (fun o => (0 < size o)%N) (block g h).
Proof.
move=> f f' e; apply: (law_ext (lawful_draft_q g h)) => xs.
apply: (keep_emits h xs one01) => -[s|] /= ok; first exact: e.
by apply: total_ext => y; rewrite /ret e.
Qed.

(** ** Length *)

(** Kept draft tokens; the emitted length is one more. *)
Definition kept_tokens (o : option (seq V)) : R := if o is Some s then (size s).-1%:R else 0.
Definition block_kept w g h : R := draft q halt g h (fun xs => keep w h xs kept_tokens).

Lemma keep_some g w h : 0 <= w <= 1 ->
  draft q halt g h (fun xs => keep w h xs (fun o => (isSome o)%:R)) = w.
Proof.
move=> w01; rewrite -[RHS]mulr1 -[RHS]addr0 -[X in _ + X](mulr0 (1 - w)).
rewrite -(keep_law g h 0 (fun _ => 1) 0 w01); apply: (law_ext (lawful_draft_q g h)) => xs.
by apply: (law_ext (lawful_keep _ _ w01)) => -[].
Qed.

Lemma block_kept_stop w g h : halt h || (g == 0)%N -> block_kept w g h = 0.
Proof.
have none xs : xs = [::] -> keep w h xs kept_tokens = 0.
  move=> -> /=; rewrite /bind /coin /ret /= mulr0 addr0 /pick.
  by rewrite (total_ext (g := fun _ => 0)) ?total0 ?mulr0 // => x; rewrite mulr0.
by rewrite /block_kept; case: g => [|g] /= => [_|]; [|rewrite orbF => ->]; apply: none.
Qed.

Lemma block_kept_rec w g h : 0 <= w <= 1 -> ~~ halt h ->
  block_kept w g.+1 h = pick (q h) (fun x => weight w h x + block_kept (weight w h x) g (rcons h x)).
Proof.
move=> w01 go; rewrite /block_kept /= (negbTE go); apply: total_ext => x; congr (_ * _).
have w'01 : 0 <= weight w h x <= 1 by apply: weight01; case/andP: w01.
rewrite -[X in X + _](keep_some g (rcons h x) w'01) -(law_add (lawful_draft_q g _)).
apply: (law_ext (lawful_draft_q g _)) => xs; rewrite /ret [LHS]/= {1}/bind.
rewrite -(law_add (lawful_keep _ _ w'01)).
apply: (keep_emits _ _ w'01) => -[[|y s] //|] _.
  by rewrite /kept_tokens /ret /= -(addn1 (size s)) natrD addrC.
rewrite /bind /coin /ret /pick /= !mulr0 !addr0 (total_ext (g := fun _ => 0)) ?total0 ?mulr0 // => y.
by rewrite mulr0.
Qed.

Lemma block_kept_ge0 w g h : 0 <= w <= 1 -> 0 <= block_kept w g h.
Proof.
move=> w01; apply: (law_ge0 (lawful_draft_q g h)) => xs.
by apply: (law_ge0 (lawful_keep _ _ w01)) => -[s|] //=; rewrite ler0n.
Qed.

Theorem block_length g h : block g h (fun o => (size o)%:R) = 1 + block_kept 1 g h.
Proof.
rewrite -[X in X + _](law_one (lawful_draft_q g h)) -(law_add (lawful_draft_q g h)).
apply: (law_ext (lawful_draft_q g h)) => xs; have kP := lawful_keep h xs one01.
rewrite -[X in X + _](law_one kP) -(law_add kP).
apply: (keep_emits h xs one01) => -[[|y s] //|] _; first by rewrite /ret /kept_tokens /= -add1n natrD.
by rewrite /bind addr0 -[RHS](law_one (lawful_pick (pP h))).
Qed.

(** Expected length under the ratio rule, on the same drafts. *)
Definition token_length g h : R := chain_length p q halt (leviathan_at p q) g h.

Lemma weight_ge w h x : 0 <= w <= 1 -> w * accept (p h) (q h) x <= weight w h x.
Proof.
case/andP=> w0 w1; have [p0 _] := pP h; have [q0 _] := qP h.
have a01 := accept01 x p0 q0; rewrite /weight {2}/accept /scaled; case: ltP => [lt|le].
  have qx : 0 < q h x by apply: le_lt_trans lt; rewrite mulr_ge0.
  by rewrite accept_min // -mulrA; apply: ler_wpmul2l => //; rewrite le_minl lexx orbT.
case: (ltP 0 (w * p h x)) => [_|wp]; first by rewrite mulr_ile1 //; case/andP: a01.
have [->|wn] := eqVneq w 0; first by rewrite !mul0r.
have pz : p h x = 0.
  by apply/eqP; move: wp; rewrite le_eqVlt ltNge mulr_ge0 // orbF mulf_eq0 (negbTE wn).
have qz : q h x = 0 by apply/eqP; rewrite eq_le q0 andbT; move: le; rewrite pz mulr0.
by rewrite /accept pz qz ltxx mulr0.
Qed.

Lemma kept_ge_token g w h : 0 <= w <= 1 -> w * (token_length g h - 1) <= block_kept w g h.
Proof.
have lP h' x : lawful (leviathan_at p q h' x) by apply: lawful_leviathan_at.
elim: g w h => [|g IH] w h w01.
  by rewrite /token_length chain_length_halt ?orbT // subrr mulr0 block_kept_ge0.
case: (boolP (halt h)) => [yes|go].
  by rewrite /token_length chain_length_halt ?yes // subrr mulr0 block_kept_ge0.
rewrite /token_length leviathan_length // addrC addKr block_kept_rec //.
rewrite -total_scale; apply: total_le => x; have [p0 _] := pP h; have [q0 _] := qP h.
rewrite -accept_mass // -/(token_length g _) !mulrA [w * _]mulrC -!mulrA; apply: ler_wpmul2l => //.
have w'01 : 0 <= weight w h x <= 1 by apply: weight01; case/andP: w01.
apply: le_trans (ler_add (lexx _) (IH _ (rcons h x) w'01)).
rewrite mulrBr mulr1 [X in _ <= X]addrC subrK mulrA.
apply: ler_wpmul2r; last exact: weight_ge.
by apply: le_trans ler01 (chain_length_ge1 _ _ _ _ _) => // h' _; apply: qP.
Qed.

Theorem block_length_ge_token g h : token_length g h <= block g h (fun o => (size o)%:R).
Proof.
rewrite block_length -ler_subl_addl.
by have := kept_ge_token g h one01; rewrite mul1r.
Qed.

End Block.
