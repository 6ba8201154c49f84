(** Floats, end to end: the rules that need no draft's row, on trees that are given.

    What it says.  The target's rows hold float32 numbers and miss 1 by at most [miss]; the
    machine is that of FloatsEndToEnd.v.
    - [coin_of_near]         a coin between two computed numbers is off by 2^-c and 4 (j + 1) 2^-53,
      j the roundings behind them;
    - [point_mass_in_floats] a candidate is kept where u times the float64 total of what is left
      is below what is left at it: n tokens, on trees with at most m siblings, differ in no event by
      more than n (m [total_coin_off] + [pick_off]) from those of the normalised target;
    - [greedy_in_floats]     the argmax of a row is that of its numbers: nothing is off.
    Trees are drawn by anything that does not see the round's coins.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.
    Runs in: refengine/engine/rules/point_mass.py, greedy.py; refengine/commands/rounding.py has the number. *)

From Coq Require Import ZArith QArith Qcanon Qreals Reals Lra Lia.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept FloatSums FloatThreshold FloatDescent FloatRow FloatCoin.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Loop Chain Tree Agreement PointMass Greedy Loops Drift Drifting Rational
  FloatMachine FloatsEndToEnd DriftingTrees.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** ** A coin between two computed numbers *)

Lemma val_min (a d : rational) : real_of (Num.min a d) = Rmin (real_of a) (real_of d).
Proof.
case: (leP a d) => [le|/ltW le].
  by rewrite Rmin_left //; apply/val_le.
by rewrite Rmin_right //; apply/val_le.
Qed.

Section Coins.
Variable c : nat.
Hypothesis c_bits : (c <= 24)%N.

(** The share of the uniforms u with u den < num. *)
Definition coin_of (num den : real) : rational :=
  (FloatDescent.count (says_yes (grid_of c) num den) (grid_of c))%:R / (grid_of c)%:R.

(** 4 (j + 1) 2^-53 + 2^-c. *)
Definition coin_off_at (roundings bits : nat) : rational :=
  (4 * (roundings + 1))%N%:R / 2%:R ^+ 53 + (2%:R ^+ bits)^-1.

Lemma coin_of01 num den : 0 <= coin_of num den <= 1.
Proof.
have g0 : 0 < (grid_of c)%:R :> rational by rewrite lt_neqAle eq_sym grid_some ler0n.
by rewrite divr_ge0 ?ler0n //= ler_pdivr_mulr // mul1r ler_nat count_up.
Qed.

Lemma coin_off_pos j : 0 <= coin_off_at j c.
Proof. by apply: addr_ge0 (unit_pos c); apply: mulr_ge0; [apply: ler0n | apply: unit_pos]. Qed.

Lemma c_double : (c <= 53)%N.
Proof. exact: leq_trans c_bits _. Qed.

Section Rounded.
Variables (i j : nat) (A D : rational) (num den : real).
Hypothesis few : (i + j <= 4000)%N.
Hypothesis num_near : rounded i (real_of A) num.
Hypothesis den_near : rounded j (real_of D) den.
Hypothesis den_heavy : Rle (bpow radix2 (-900)) den.
Hypothesis A_pos : 0 <= A.
Hypothesis D_pos : 0 < D.

Lemma few_roundings : Rle (Rmult (INR (i + j + 1)) e64) (Rmult (INR 4001) e64).
Proof. by apply: Rmult_le_compat_r; [have := e64_small; lra | apply/le_INR/ssrnat.leP; rewrite (leq_add few)]. Qed.

Lemma many : Rmult (INR 4001) e64 = Rmult (IZR 4001) e64.
Proof. by rewrite (INR_IZR_INZ 4001). Qed.

Lemma rounded_little : Rle (Rmult (INR (i + j + 1)) e64) (Rdiv (IZR 1) (IZR 8)).
Proof. by apply: Rle_trans few_roundings _; rewrite many e64E; lra. Qed.

Lemma A_real : Rle (IZR 0) (real_of A). Proof. by rewrite -val0; apply/val_le. Qed.
Lemma D_real : Rlt (IZR 0) (real_of D). Proof. by rewrite -val0; apply/val_lt. Qed.

Lemma coin_of_near : `|coin_of num den - Num.min 1 (A / D)| <= coin_off_at (i + j) c.
Proof.
have near := coin_error _ _ _ _ _ _ _ _ (grids c_double) rounded_little num_near den_near den_heavy A_real D_real.
have z : D != 0 by rewrite gt_eqF.
have e53 : Rinv (pow (IZR 2) 53) = e64 by rewrite e64E /=; lra.
apply/val_le; rewrite val_norm valB val_min val1 val_div // /coin_of val_div ?grid_some // !valn.
rewrite /coin_off_at valD val_div ?two_power // valV ?two_power // valn !powers_of_two -(grid_val c) /Rdiv e53.
apply: Rle_trans near _; apply: Req_le; congr (Rplus _ _).
by rewrite -multE mult_INR Rmult_assoc ?plusE; congr (Rmult _ _); rewrite /=; lra.
Qed.

(** A draft that has all of the mass is kept. *)
Lemma coin_of_sure : A = D -> coin_of num den = 1.
Proof.
move=> AD; have G : Rlt (IZR 0) (INR (grid_of c)) by rewrite grid_val; apply: pow_lt; lra.
have coarse : Rlt (Rmult (IZR 4) (Rmult (INR (i + j + 1)) e64)) (Rinv (INR (grid_of c))).
  apply: Rlt_le_trans (_ : Rle (Rinv (pow (IZR 2) 24)) _); last first.
    by apply: Rinv_le_contravar => //; rewrite grid_val; apply: Rle_pow; [lra | apply/ssrnat.leP].
  by have := few_roundings; rewrite many e64E /=; lra.
have yes := coin_sure _ _ _ _ _ _ _ _ (grids c_double) rounded_little num_near den_near den_heavy A_real D_real
  (f_equal real_of AD) coarse.
have all : FloatDescent.count (says_yes (grid_of c) num den) (grid_of c) = grid_of c.
  have [] := FloatDescent.count_between (says_yes (grid_of c) num den) (grid_of c) (grid_of c) (grid_of c)
    (fun k _ lt => yes k lt) (fun k lt _ => lt).
  by rewrite Nat.min_id => up down; apply: Nat.le_antisymm.
by rewrite /coin_of all mulfV // grid_some.
Qed.
End Rounded.
End Coins.

(** ** Rules on given trees *)

Section Given.
Variables (V : vocab) (L b c : nat).
Implicit Types (x y : V) (w f : V -> rational) (h cs : seq V).
Hypothesis some_token : tokens V <> [::].
Hypothesis tree_holds : (size_of_vocab V <= Nat.pow 2 L)%coq_nat.
Hypothesis b_bits : (b <= 53)%N.
Hypothesis c_bits : (c <= 24)%N.
Hypothesis shallow : (L <= 1000)%N.

(** [without] of row.py, and [total] of sums.py. *)
Definition out_of w x y : rational := if y == x then 0 else w y.
Definition total64 w : real := float_sum (sum_tree L (values w)).
Definition total_coin_off : rational := coin_off_at L c.

Definition has_mass w := float32_row w /\ 0 < total w.

Lemma total64_near w : float32_row w -> rounded L (real_of (total w)) (total64 w).
Proof.
move=> wf; have fit : (length (values w) <= Nat.pow 2 L)%coq_nat by rewrite values_length.
have some : values w <> List.nil by apply: values_some.
have ok := tree_ok L 0 (values w) (values w) fit (values_exact wf) some.
have := sum_rounded _ L ok (row_height L (values w)).
by rewrite (tree_exact L 0 (values w) (values w) fit (values_exact wf) some) values_total.
Qed.

Lemma out_of_floats w x : float32_row w -> float32_row (out_of w x).
Proof.
move=> wf y; rewrite /out_of; case: ifP => _; last exact: wf.
by split=> //; rewrite val0; apply: generic_format_0.
Qed.

Lemma total_out w x f : total (fun y => w y * f y) = w x * f x + total (fun y => out_of w x y * f y).
Proof.
rewrite -(total_pick x (fun y => w y * f y)) -total_add; apply: total_ext => y; rewrite /out_of.
by case: eqP => _; rewrite ?mul1r ?mul0r ?addr0 ?add0r.
Qed.

Lemma mass_out w x : total w = w x + total (out_of w x).
Proof.
have one g : total g = total (fun y : V => g y * 1) :> rational by apply: total_ext => y; rewrite mulr1.
by rewrite one (total_out w x) mulr1 -one.
Qed.

(** The coin of a candidate: u total(left) < left[x]. *)
Definition point_coin w x : rational := coin_of c (real_of (w x)) (total64 w).

Section Candidate.
Variables (w : V -> rational) (x : V).
Hypothesis wP : has_mass w.

Lemma weight_below : 0 <= w x <= total w.
Proof. by have [wf _] := wP; have w0 y : 0 <= w y by [case: (wf y)]; rewrite w0 total_ge_term. Qed.

Lemma exact_weight : rounded 0 (real_of (w x)) (real_of (w x)).
Proof. by rewrite /rounded /=; lra. Qed.

Lemma mass_heavy : Rle (bpow radix2 (-900)) (total64 w).
Proof. by have [wf w1] := wP; apply: (row_heavy some_token tree_holds b_bits shallow wf w1). Qed.

Lemma total_roundings : (0 + L <= 4000)%N.
Proof. exact: leq_trans shallow _. Qed.

Lemma point_coin_near : `|point_coin w x - w x / total w| <= total_coin_off.
Proof.
have [wf w1] := wP; have /andP[w0 le] := weight_below.
have := coin_of_near c_bits total_roundings exact_weight (total64_near wf) mass_heavy w0 w1.
by rewrite min_r; [apply | rewrite ler_pdivr_mulr // mul1r].
Qed.

Lemma point_coin_sure : total (out_of w x) = 0 -> point_coin w x = 1.
Proof.
move=> none; have [wf w1] := wP; have /andP[w0 _] := weight_below.
apply: (coin_of_sure c_bits total_roundings exact_weight (total64_near wf) mass_heavy w0 w1).
by rewrite (mass_out w x) none addr0.
Qed.

Lemma out_has_mass : total (out_of w x) != 0 -> has_mass (out_of w x).
Proof.
have [wf _] := wP => some; have outf := out_of_floats x wf; split=> //.
by rewrite lt_neqAle eq_sym some total_ge0 // => y; case: (outf y).
Qed.

(** What is kept and what is judged next have, together, the share of w. *)
Lemma share_split f : total (out_of w x) != 0 ->
  w x / total w * f x + (1 - w x / total w) * pick (share (out_of w x)) f = pick (share w) f.
Proof.
move=> some; have [_ w1] := wP; have z : total w != 0 by rewrite gt_eqF.
rewrite !pick_share (total_out w x) (mass_out w x) in z *.
by field; rewrite z some.
Qed.

Lemma share_alone f : total (out_of w x) = 0 -> pick (share w) f = f x.
Proof.
move=> none; have [wf w1] := wP; have z : total w != 0 by rewrite gt_eqF.
have outf := out_of_floats x wf; have o0 y : 0 <= out_of w x y by case: (outf y).
rewrite pick_share (total_out w x) (total_ext (g := fun=> 0)) ?total0 ?addr0; last first.
  by move=> y; rewrite (total_eq0 o0 none) mul0r.
by rewrite (mass_out w x) none addr0 in z *; rewrite mulrAC mulfV // mul1r.
Qed.
End Candidate.

(** *** point_mass *)

Fixpoint machine_try w i cs : law rational (choice V) :=
  if cs is x :: cs' then
    kept <~ coin (point_coin w x);;
    if kept then ret (x, Some i) else machine_try (out_of w x) i.+1 cs'
  else y <~ pick (row_of L b w);; ret (y, None).

Lemma machine_try_sure w i x cs g : point_coin w x = 1 -> machine_try w i (x :: cs) g = g (x, Some i).
Proof. by move=> sure; rewrite /= /bind /coin sure /ret mul1r subrr mul0r addr0. Qed.

Lemma lawful_machine_try w i cs : has_mass w -> lawful (machine_try w i cs).
Proof.
elim: cs w i => [|x cs IH] w i wP.
  have [wf w1] := wP; apply: lawful_bind => [|y]; last exact: lawful_ret.
  by apply: lawful_pick; apply: row_of_dist.
case: (eqVneq (total (out_of w x)) 0) => [none|some].
  apply: (lawful_same (m' := ret (x, Some i))) => [g|]; last exact: lawful_ret.
  by apply: machine_try_sure; apply: point_coin_sure.
apply: lawful_bind => [|[]]; [exact/lawful_coin/coin_of01 | exact: lawful_ret |].
by apply: IH; apply: out_has_mass.
Qed.

Lemma machine_try_child w i cs : has_mass w ->
  surely (fun o => if o.2 is Some j then (i <= j < i + size cs)%N && (nth o.1 cs (j - i) == o.1) else true)
         (machine_try w i cs).
Proof.
elim: cs w i => [|x cs IH] w i wP f g e; first by apply: total_ext => y; rewrite /ret e.
have first_ok : f (x, Some i) = g (x, Some i) by rewrite e //= subnn eqxx leqnn addnS ltnS leq_addr.
case: (eqVneq (total (out_of w x)) 0) => [none|some].
  by rewrite !machine_try_sure ?first_ok //; apply: point_coin_sure.
apply: (law_ext (lawful_coin (coin_of01 c _ _))) => -[]; first exact: first_ok.
apply: (IH _ _ (out_has_mass wP some)) => -[y [j|]] /= ok; last exact: e.
apply: e => /=; case/andP: ok => /andP[ij js] /eqP nj.
by rewrite (ltnW ij) addnS -addSn js /= -(subnSK ij) /= nj.
Qed.

(** m siblings, each with a coin, and what is picked after all of them. *)
Definition point_off_at (size levels siblings pick_bits coin_bits : nat) : rational :=
  siblings%:R * coin_off_at levels coin_bits + pick_off_at size levels 0 pick_bits.
Definition point_off m : rational := point_off_at (size_of_vocab V) L m b c.

Lemma point_off_pos m : 0 <= point_off m.
Proof. by apply: addr_ge0 (pick_off_pos _ _ _ _); apply: mulr_ge0 (coin_off_pos _ _); apply: ler0n. Qed.

Lemma point_off_rises m m' : (m <= m')%N -> point_off m <= point_off m'.
Proof. by move=> le; rewrite ler_add2r; apply: ler_wpmul2r; [apply: coin_off_pos | rewrite ler_nat]. Qed.

Lemma machine_try_near w i cs f : has_mass w -> unit_test f ->
  machine_try w i cs (fun o => f o.1) <= pick (share w) f + point_off (size cs).
Proof.
move=> wP f01; elim: cs w i wP => [|x cs IH] w i wP.
  by have [wf w1] := wP; rewrite /point_off /point_off_at mul0r add0r; apply: row_of_near.
case: (eqVneq (total (out_of w x)) 0) => [none|some].
  by rewrite machine_try_sure ?point_coin_sure // (share_alone wP f none) ler_addl; apply: point_off_pos.
have [outf o1] := out_has_mass wP some; have oP : dist (share (out_of w x)).
  by apply: share_dist => // y; case: (outf y).
have /andP[_ a1] := coin_of01 c (real_of (w x)) (total64 w); rewrite -/(point_coin w x) in a1.
set B := pick (share (out_of w x)) f; have B01 : 0 <= B <= 1 by apply: pick01.
apply: le_trans (_ : point_coin w x * f x + (1 - point_coin w x) * B + point_off (size cs) <= _).
  rewrite /= /bind /coin /ret /= -addrA ler_add2l.
  apply: le_trans (_ : (1 - point_coin w x) * (B + point_off (size cs)) <= _).
    by apply: ler_wpmul2l; [rewrite subr_ge0 | apply: IH; split].
  rewrite mulrDr ler_add2l -[leRHS]mul1r; apply: ler_wpmul2r; first exact: point_off_pos.
  by rewrite ler_subl_addr ler_addl; case/andP: (coin_of01 c (real_of (w x)) (total64 w)).
have moved := coin_moved (f01 x) B01 (point_coin_near x wP).
have -> : point_off (size (x :: cs)) = total_coin_off + point_off (size cs).
  by rewrite /point_off /point_off_at /total_coin_off /= mulrSr mulrDl mul1r; ring.
by rewrite addrA ler_add2r -(share_split wP f some).
Qed.

Section Machine.
Variables (S : Type) (p : seq V -> V -> rational) (stop : seq V -> bool) (miss : rational).
Variables (draw : S -> seq V -> law rational (tree V)) (update : S -> seq V -> tree V -> seq V -> law rational S).
Hypothesis p_floats : forall h, float32_row (p h).
Hypothesis p_miss : forall h, `|total (p h) - 1| <= miss.
Hypothesis miss_small : miss < 1.
Hypothesis drawP : forall st h, lawful (draw st h).
Hypothesis updateP : forall st h t o, lawful (update st h t o).

Lemma row_has_mass h : has_mass (p h).
Proof. by split; [apply: p_floats | apply: (admitted miss_small)]. Qed.

Definition point_node h cs : law rational (choice V) := machine_try (p h) 0 cs.

Theorem point_mass_in_floats m fuel n st h k : (forall st h, surely (fun t => (widest t <= m)%N) (draw st h)) ->
  (n <= fuel)%N -> unit_test k ->
  `|loop stop (drafted_round draw (fun=> walk point_node) update) fuel n st h k - plain (normal p) stop n h k|
  <= n%:R * point_off m.
Proof.
move=> narrow; have nodeP h' cs : lawful (point_node h' cs) by apply: lawful_machine_try; apply: row_has_mass.
have child h' cs : surely (child_of cs) (point_node h' cs).
  move=> f g e; apply: (machine_try_child (row_has_mass h')) => -[y [j|]] /= ok; apply: e => //=.
  by rewrite subn0 in ok.
have nP := normal_dist p_floats p_miss miss_small.
apply: drafted_loop_near => //; [exact: point_off_pos | | |].
- by move=> st' h' t; apply: lawful_walk.
- by move=> st' h' t; apply: walk_emits.
move=> st' h'; apply: (drawn_drifts_narrow nP nodeP child (point_off_pos m)) => // h'' cs f few f01.
apply: le_trans (machine_try_near 0 cs (row_has_mass h'') f01) _.
by rewrite ler_add2l; apply: point_off_rises.
Qed.

(** *** greedy *)

Variable d0 : V.

(** torch's argmax over the row in float64, ties to the lowest id. *)
Definition heavier64 w (best x : V) : V := if Rlt_bool (real_of (w best)) (real_of (w x)) then x else best.
Definition argmax64 h : V := foldl (heavier64 (p h)) (head d0 (tokens V)) (tokens V).

Lemma heavier64_exact w best x : heavier64 w best x = heavier w best x.
Proof.
rewrite /heavier64 /heavier; case: Rlt_bool_spec => [/val_lt ->|le] //.
by rewrite ltNge; move/val_le: le => ->.
Qed.

(** The row need not be normalised for that. *)
Lemma heavier_share w best x : 0 < total w -> heavier (share w) best x = heavier w best x.
Proof. by move=> w1; rewrite /heavier /share ltr_pmul2r // invr_gt0. Qed.

Lemma argmax64_exact h : argmax64 h = first_max d0 (normal p h).
Proof.
have [_ w1] := row_has_mass h; rewrite /argmax64 /first_max; move: (head d0 _) => best.
elim: (tokens V) best => [|x s IH] best //=.
by rewrite heavier64_exact IH -(heavier_share best x w1).
Qed.

Theorem greedy_in_floats fuel n st h k : (n <= fuel)%N ->
  loop stop (drafted_round draw (fun=> greedy_walk argmax64) update) fuel n st h k
  = plain (@onehot_row rational V (fun h => first_max d0 (normal p h))) stop n h k.
Proof.
move=> le; have same m h' : greedy_decode argmax64 m h' = greedy_decode (fun h => first_max d0 (normal p h)) m h'.
  by elim: m h' => [|m IH] h' //=; rewrite argmax64_exact IH.
have written argmax h' m k' : plain (@onehot_row rational V argmax) stop m h' k'
    = k' (upto_stop stop h' (greedy_decode argmax m h')).
  by rewrite plain_target; [apply: (greedy_target argmax) | move=> h''; apply: dist_onehot].
by rewrite greedy_tree_loop_lossless // !written same.
Qed.
End Machine.
End Given.
