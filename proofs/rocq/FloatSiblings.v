(** Floats, end to end: the siblings of one node, drawn and judged one after the other.

    What it says.  After the refusals d the next sibling is drawn down the tree of float64 sums over the row
    [pool d], of float32 numbers, which is taken to sum to [norm d]: it does but for [spare] of it.  It is judged
    as in FloatRefusal.v; the row that is left goes from one to the next, and is drawn from in the end.
    - [drawn_near]  n siblings, from a row that stands but for k: the token that comes out is off by
      k + n [sibling_off] and a pick, a sibling costing a pick, a coin, [spare] and (4 L + 28) 2^-53.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.
    Runs in: refengine/engine/rules/iid_candidates.py, without_replacement.py. *)

From Coq Require Import ZArith QArith Qcanon Qreals Reals Lra Lia.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Chain Tree Drift Drifting Rational
  FloatMachine FloatsEndToEnd DriftingTrees FloatsGiven FloatNumbers Judged FloatRescaled FloatRefusal.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Siblings.
Variables (V : vocab) (L b c : nat).
Implicit Types (w f : V -> rational) (x : V) (h d cs : seq V).
Hypothesis some_token : tokens V <> [::].
Hypothesis tree_holds : (size_of_vocab V <= Nat.pow 2 L)%coq_nat.
Hypothesis b_bits : (b <= 53)%N.
Hypothesis c_bits : (c <= 24)%N.
Hypothesis levels : (L <= 64)%N.

(** ** The candidates of one node *)

Section Node.
(** Drawn from after the refusals d, and what it is taken to sum to. *)
Variables (pool : seq V -> V -> rational) (norm : seq V -> rational) (spare : rational).
Definition nothing_left d : bool := total (pool d) == 0.
Hypothesis pool_floats : forall d, float32_row (pool d).
Hypothesis norm_some : forall d, ~~ nothing_left d -> piece <= norm d.
Hypothesis pool_near : forall d, ~~ nothing_left d -> `|total (pool d) - norm d| <= spare * norm d.
Hypothesis spare0 : 0 <= spare.
Hypothesis spare1 : spare <= 1.

(** The machine; w / mass is what is still owed.  Where nothing was left to draw from there are no candidates: what
    comes all the same is passed over. *)
Fixpoint judge64 w mass d i cs : law rational (choice V) :=
  if cs is x :: cs' then
    if nothing_left d then judge64 w mass (rcons d x) i.+1 cs' else
    let wanted := products w (norm d) in let supplied := products (pool d) mass in
    kept <~ coin (coin_of c (real_of (wanted x)) (real_of (supplied x)));;
    if kept then ret (x, Some i) else judge64 (rescaled_row L wanted supplied) (rescaled_mass L wanted supplied) (rcons d x) i.+1 cs'
  else y <~ pick (row_of L b w);; ret (y, None).

Definition candidates64 k : law rational (seq V) := draft (fun d => row_of L b (pool d)) nothing_left k [::].

Lemma pool_some d : ~~ nothing_left d -> 0 < total (pool d).
Proof. by move=> more; rewrite lt_neqAle eq_sym more total_ge0 // => x; case: (pool_floats d x). Qed.

Lemma pool_dist d : ~~ nothing_left d -> dist (row_of L b (pool d)).
Proof. by move=> /pool_some some; apply: (row_of_dist some_token tree_holds b_bits (levels_few levels) (pool_floats d)). Qed.

Definition left_off : rational := (4 * L + 12)%N%:R * unit64.

Lemma left_off1 : left_off <= 1.
Proof.
have -> : left_off = 2%:R * (2%:R * L%:R * unit64) + 12%:R * unit64 by rewrite /left_off natrD natrM; ring.
apply: le_trans (_ : 2%:R * 8%:R^-1 + 12%:R * 64%:R^-1 <= 1); last by vm_compute.
by apply: ler_add; apply: ler_wpmul2l; rewrite ?ler0n ?unit_share ?level_share.
Qed.

Lemma left_stands k w mass d : stands k w mass -> ~~ nothing_left d ->
  stands left_off (rescaled_row L (products w (norm d)) (products (pool d) mass)) (rescaled_mass L (products w (norm d)) (products (pool d) mass)).
Proof.
move=> st more; have wf := wanted_floats st (norm_some more); have w1 := wanted_pos tree_holds levels st (norm_some more).
exact: (next_stands some_token tree_holds levels (products (pool d) mass) wf w1).
Qed.

Lemma lawful_judge64 k w mass d i cs : stands k w mass -> lawful (judge64 w mass d i cs).
Proof.
elim: cs k w mass d i => [|x cs IH] k w mass d i st /=.
  case: st => wf some _ _; apply: lawful_bind => [|y]; last exact: lawful_ret.
  exact/lawful_pick/(float_row_dist some_token tree_holds b_bits levels).
case: (boolP (nothing_left d)) => [_|more]; first exact: IH st.
apply: lawful_bind => [|[]]; [exact/lawful_coin/coin_of01 | exact: lawful_ret |].
exact: IH (left_stands st more).
Qed.

Lemma judge64_swaps w mass d i cs : swaps (judge64 w mass d i cs).
Proof.
elim: cs w mass d i => [|x cs IH] w mass d i /=.
  by apply: swaps_bind => [f g e||y]; [apply: total_ext => y; rewrite e | apply: swaps_pick | apply: swaps_ret].
case: ifP => _; first exact: IH.
by apply: swaps_bind => [f g e||[]]; [rewrite /coin !e | apply: swaps_coin | apply: swaps_ret | apply: IH].
Qed.

Lemma judge64_child w mass d i cs :
  surely (fun o => if o.2 is Some j then (i <= j < i + size cs)%N && (nth o.1 cs (j - i) == o.1) else true)
         (judge64 w mass d i cs).
Proof.
elim: cs w mass d i => [|x cs IH] w mass d i f g e /=; first by apply: total_ext => y; rewrite /ret e.
have later w' mass' d' : judge64 w' mass' d' i.+1 cs f = judge64 w' mass' d' i.+1 cs g.
  apply: IH => -[y [j|]] /= ok; last exact: e.
  apply: e => /=; case/andP: ok => /andP[ij js] /eqP nj.
  by rewrite (ltnW ij) addnS -addSn js /= -(subnSK ij) /= nj.
case: ifP => _; first exact: later.
by rewrite /bind /coin /ret later e //= subnn eqxx leqnn addnS ltnS leq_addr.
Qed.

Definition sibling_off : rational := pick_off V L b 0 + coin_off_at 0 c + spare + (4 * L + 28)%N%:R * unit64.

Lemma sibling_off_pos : 0 <= sibling_off.
Proof.
apply: addr_ge0; last by apply: mulr_ge0; [apply: ler0n | apply: unit64_pos].
by apply: addr_ge0 spare0; apply: addr_ge0; [apply: pick_off_pos | apply: coin_off_pos].
Qed.

Lemma siblings_off_pos n : 0 <= n%:R * sibling_off.
Proof. by apply: mulr_ge0 sibling_off_pos; apply: ler0n. Qed.

Lemma drawn_near n d i k w mass f : stands k w mass -> k <= 1 -> unit_test f ->
  draft (fun d => row_of L b (pool d)) nothing_left n d (fun cs => judge64 w mass d i cs (fun o => f o.1))
  <= pick (share w) f + (k + n%:R * sibling_off + pick_off V L b 0).
Proof.
move=> st k1 f01; elim: n d i k w mass st k1 => [|n IH] d i k w mass st k1.
  rewrite mul0r addr0 /ret /=; case: (st) => wf some _ _.
  apply: le_trans (float_row_pick some_token tree_holds b_bits levels wf some f01) _.
  by rewrite ler_add2l ler_addr; apply: k_pos st.
have one_more : n.+1%:R * sibling_off = sibling_off + n%:R * sibling_off by rewrite mulrSr mulrDl mul1r addrC.
case: (boolP (nothing_left d)) => [none|more] /=.
  rewrite none /ret /=; case: (st) => wf some _ _.
  apply: le_trans (float_row_pick some_token tree_holds b_bits levels wf some f01) _.
  by rewrite ler_add2l ler_addr; apply: addr_ge0 (siblings_off_pos _); apply: k_pos st.
rewrite (negbTE more).
set wanted := products w (norm d); set supplied := products (pool d) mass.
set left := rescaled_row L wanted supplied; set lmass := rescaled_mass L wanted supplied.
pose a x := coin_of c (real_of (wanted x)) (real_of (supplied x)).
pose B := pick (share left) f; pose off := left_off + n%:R * sibling_off + pick_off V L b 0.
have lst : stands left_off left lmass by apply: left_stands st more.
have poolP := pool_dist more.
have inner x : draft (fun d => row_of L b (pool d)) nothing_left n (rcons d x)
    (fun cs => judge64 w mass d i (x :: cs) (fun o => f o.1)) <= a x * f x + (1 - a x) * B + off.
  have dP : lawful (draft (fun d => row_of L b (pool d)) nothing_left n (rcons d x)).
    by apply: lawful_draft => d' more'; apply: pool_dist.
  rewrite (law_ext dP (g := fun cs => a x * f x + (1 - a x) * judge64 left lmass (rcons d x) i.+1 cs (fun o => f o.1))); last first.
    by move=> cs; rewrite /= (negbTE more).
  rewrite (law_add dP (fun=> _)) (law_const dP) (law_scale dP) -addrA ler_add2l.
  have /andP[a0 a1] : 0 <= a x <= 1 by apply: coin_of01.
  have off0 : 0 <= off.
    apply: addr_ge0 (pick_off_pos _ _ _ _); apply: addr_ge0 (siblings_off_pos _).
    by apply: mulr_ge0; [apply: ler0n | apply: unit64_pos].
  apply: le_trans (_ : (1 - a x) * (B + off) <= _).
    by apply: ler_wpmul2l; [rewrite subr_ge0 | apply: IH lst left_off1].
  by rewrite mulrDr ler_add2l -[leRHS]mul1r; apply: ler_wpmul2r => //; rewrite ler_subl_addr ler_addl.
apply: le_trans (_ : pick (row_of L b (pool d)) (fun x => a x * f x + (1 - a x) * B) + off <= _).
  have P := lawful_pick poolP; rewrite -[X in _ + X](law_const P) -(law_add P).
  by apply: (law_le P) => x; apply: inner.
have near := step_near some_token tree_holds b_bits c_bits levels st k1 (pool_floats d) (norm_some more) (pool_near more)
  spare1 (pool_some more) f01.
apply: le_trans (ler_add near (lexx _)) _; rewrite -[leLHS]addrA ler_add2l le_eqVlt; apply/orP; left; apply/eqP.
by rewrite one_more /off /step_off /left_off /sibling_off !natrD; ring.
Qed.
End Node.
End Siblings.
