(** Floats, end to end: one candidate that is judged against rows which were computed.

    What it says.  What is left of the target is a row [w] of float64 numbers that stands for w / mass; a
    candidate is drawn from a row [pool], which stands for pool / norm.  The machine multiplies crosswise,
    keeps the candidate where u times supplied is below wanted, and else subtracts and rescales, all in
    float64.  [stands k]: mass is the sum of w but for k of it.
    - [next_stands]      what is left after a refusal stands, but for (4 L + 12) 2^-53, whatever was lost before;
    - [step_near]        one candidate drawn, judged, and what is left emitted from after a refusal: off by
      [step_off], k + [spare] + 16 2^-53, a pick and a coin, where norm is the sum of pool but for [spare] of it.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.
    Runs in: refengine/engine/rules/iid_candidates.py, without_replacement.py; refengine/engine/row.py. *)

From Coq Require Import ZArith QArith Qcanon Qreals Reals Lra Lia.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept FloatSums FloatThreshold FloatDescent FloatRow FloatCoin.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Drift Drifting Rational FloatMachine FloatsEndToEnd DriftingTrees FloatsGiven
  FloatNumbers Judged FloatRescaled.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma mixed01 (a x y : rational) : 0 <= a <= 1 -> 0 <= x <= 1 -> 0 <= y <= 1 -> 0 <= a * x + (1 - a) * y <= 1.
Proof.
move=> a01 /andP[x0 x1] /andP[y0 y1]; have P := lawful_coin a01; pose g (k : bool) := if k then x else y.
rewrite -[a * x + _]/(coin a g); apply/andP; split; first by apply: (law_ge0 P) => -[].
by rewrite -(law_one P); apply: (law_le P) => -[].
Qed.

(** ** One candidate *)

Section Refusal.
Notation u := unit64.
Variables (V : vocab) (L b c : nat).
Implicit Types (w f : V -> rational) (x : V).
Hypothesis some_token : tokens V <> [::].
Hypothesis tree_holds : (size_of_vocab V <= Nat.pow 2 L)%coq_nat.
Hypothesis b_bits : (b <= 53)%N.
Hypothesis c_bits : (c <= 24)%N.
Hypothesis levels : (L <= 64)%N.


Lemma float32_piece w x : float32_row w -> 0 < w x -> 2%:R * piece <= w x.
Proof.
move=> wf x0; have [_ xf] := wf x; apply/val_le; rewrite valM valn val_piece.
have -> : Rmult (INR 2) (bpow radix2 (-300)) = bpow radix2 (-299) by rewrite -(bpow_plus radix2 1 (-300)).
by apply: Rle_trans (float32_heavy xf x0); apply: bpow_le.
Qed.

Lemma float32_total w : float32_row w -> 0 < total w -> 2%:R * piece <= total w.
Proof.
move=> wf some; have [x x0] := positive_somewhere some; apply: le_trans (float32_piece wf x0) _.
by apply: total_ge_term => y; case: (wf y).
Qed.

Lemma one_piece a : 2%:R * piece <= a -> piece <= a.
Proof. by apply: le_trans; rewrite mulr_natl mulr2n ler_addl; apply: ltW piece_pos. Qed.

Section One.
Variables (k spare mass norm : rational) (w pool : V -> rational).
Hypothesis w_stands : stands k w mass.
Hypothesis k1 : k <= 1.
Hypothesis pool_floats : float32_row pool.
Hypothesis norm_some : piece <= norm.
Hypothesis pool_near : `|total pool - norm| <= spare * norm.
Hypothesis spare1 : spare <= 1.
Hypothesis pool_some : 0 < total pool.

Definition wanted64 : V -> rational := products w norm.
Definition supplied64 : V -> rational := products pool mass.

Let u0 : 0 <= u := unit64_pos.
Let norm0 : 0 < norm. Proof. exact: lt_le_trans piece_pos norm_some. Qed.
Let mass0 : 0 < mass. Proof. by case: w_stands => _ _ some _; apply: lt_le_trans piece_pos some. Qed.
Let w0 x : 0 <= w x. Proof. by case: w_stands => wf _ _ _; case: (wf x). Qed.
Let pool0 x : 0 <= pool x. Proof. by case: (pool_floats x). Qed.

Lemma wanted_floats : float_row wanted64.
Proof. by apply: products_floats => //; apply: ltW. Qed.
Lemma supplied_floats : float_row supplied64.
Proof. by apply: products_floats => //; apply: ltW. Qed.

Lemma wanted_moved : moved (fun x => w x * norm) wanted64 <= 2%:R * u * (total w * norm).
Proof.
apply: (products_moved tree_holds levels w0 (ltW norm0)).
by apply: two_pieces norm_some; case: w_stands.
Qed.
Lemma supplied_moved : moved (fun x => pool x * mass) supplied64 <= 2%:R * u * (total pool * mass).
Proof.
apply: (products_moved tree_holds levels pool0 (ltW mass0)).
by apply: (two_pieces (one_piece (float32_total pool_floats pool_some))); case: w_stands.
Qed.

(** What was moved that little still has mass. *)
Lemma moved_pos (v v' : V -> rational) : 0 < total v -> moved v v' <= 2%:R * u * total v -> 0 < total v'.
Proof.
move=> v1 le; have := le_trans (total_moved v v') le; rewrite ler_distl => /andP[low _].
apply: lt_le_trans low; rewrite subr_gt0 -[ltRHS]mul1r ltr_pmul2r //.
apply: le_lt_trans (_ : 2%:R * 64%:R^-1 < 1); last by vm_compute.
by apply: ler_wpmul2l unit_share; apply: ler0n.
Qed.

Lemma scaled_pos (v : V -> rational) a : 0 < total v -> 0 < a -> 0 < total (fun x => v x * a).
Proof. by move=> v1 a0; rewrite total_scaler mulr_gt0. Qed.

Lemma wanted_pos : 0 < total wanted64.
Proof.
apply: (moved_pos (v := fun x => w x * norm)); first by apply: scaled_pos => //; apply: stands_pos w_stands.
by rewrite total_scaler; apply: wanted_moved.
Qed.
Lemma supplied_pos : 0 < total supplied64.
Proof.
apply: (moved_pos (v := fun x => pool x * mass)); first exact: scaled_pos.
by rewrite total_scaler; apply: supplied_moved.
Qed.

Lemma share_scaled (v : V -> rational) a : a != 0 -> share (fun x => v x * a) =1 share v.
Proof. by move=> z x; rewrite /share total_scaler -mulf_div divff // mulr1. Qed.

Lemma near_products (v v' : V -> rational) a : 0 < total v -> 0 < a -> float_row v' -> 0 < total v' ->
  moved (fun x => v x * a) v' <= 2%:R * u * (total v * a) -> near (2%:R * u) (share v') (share v).
Proof.
move=> v1 a0 v'f v'1 le f f01.
rewrite (_ : pick (share v) f = pick (share (fun x => v x * a)) f); last first.
  by apply: total_ext => x; rewrite share_scaled // gt_eqF.
apply: rounded_share => //; [by move=> x; case: (v'f x) | exact: scaled_pos |].
by rewrite total_scaler.
Qed.

Lemma wanted_near : near (2%:R * u) (share wanted64) (share w).
Proof.
exact: near_products (stands_pos w_stands) norm0 wanted_floats wanted_pos wanted_moved.
Qed.

Lemma supplied_near : near (2%:R * u) (share pool) (share supplied64).
Proof.
apply: near_sym; last exact: near_products pool_some mass0 supplied_floats supplied_pos supplied_moved.
  by apply: share_dist supplied_pos => x; case: (supplied_floats x).
exact: share_dist.
Qed.

Lemma spare_pos : 0 <= spare.
Proof. by have := le_trans (normr_ge0 _) pool_near; rewrite pmulr_lge0. Qed.
Lemma k_pos : 0 <= k.
Proof. by case: w_stands => _ _ _ near; have := le_trans (normr_ge0 _) near; rewrite pmulr_lge0. Qed.

Lemma sums_close : mismatch wanted64 supplied64 <= k + spare + 8%:R * u.
Proof.
have t4 : 0 <= 4%:R * u by rewrite mulr_ge0 ?ler0n.
have -> : k + spare + 8%:R * u = (k + 4%:R * u) + (spare + 4%:R * u) by ring.
apply: (mismatch_close wanted_pos supplied_pos (m := norm * mass)); rewrite ?mulr_gt0 ?addr_ge0 ?k_pos ?spare_pos //.
- case: w_stands => _ _ _ near; apply: carried (ltW norm0) (ltW mass0) k1 near _.
  by rewrite [norm * _]mulrC; apply: le_trans wanted_moved; rewrite -total_scaler; apply: total_moved.
- rewrite [norm * _]mulrC; apply: carried (ltW mass0) (ltW norm0) spare1 pool_near _.
  by rewrite [mass * _]mulrC; apply: le_trans supplied_moved; rewrite -total_scaler; apply: total_moved.
Qed.

(** *** The coin *)

Definition candidate_coin x : rational := coin_of c (real_of (wanted64 x)) (real_of (supplied64 x)).

Lemma supplied_least x : 0 < supplied64 x -> least <= supplied64 x.
Proof.
move=> s0; apply: fl_least; apply: two_pieces; last by case: w_stands.
apply/one_piece/float32_piece => //; rewrite lt_neqAle pool0 andbT; apply/eqP => z.
by rewrite /supplied64 /products -z mul0r fl0 ltxx in s0.
Qed.

Lemma candidate_coin_near x : 0 < supplied64 x -> `|candidate_coin x - accept wanted64 supplied64 x| <= coin_off_at 0 c.
Proof.
move=> s0; rewrite accept_min //.
have same v : rounded 0 v v by rewrite /rounded /=; lra.
have hv : Rle (bpow radix2 (-900)) (real_of (supplied64 x)).
  by rewrite -val_least; apply/val_le; apply: supplied_least.
apply: (coin_of_near c_bits (i := 0) (j := 0)) => //; first by case: (wanted_floats x).
Qed.

(** *** Drawn, judged, and what is left emitted from *)

Definition step_off : rational := pick_off V L b 0 + coin_off_at 0 c + k + spare + 16%:R * u.

Lemma step_near f : unit_test f -> pick (row_of L b pool) (fun x => candidate_coin x * f x
    + (1 - candidate_coin x) * pick (share (rescaled_row L wanted64 supplied64)) f) <= pick (share w) f + step_off.
Proof.
move=> f01; set left := rescaled_row _ _ _; set B := pick (share left) f.
have leftP : dist (share left).
  have st := next_stands some_token tree_holds levels supplied64 wanted_floats wanted_pos.
  by apply: share_dist => [x|]; [case: (stands_floats st x) | apply: stands_pos st].
have B01 : 0 <= B <= 1 by apply: pick01.
pose T x := candidate_coin x * f x + (1 - candidate_coin x) * B.
have T01 : unit_test T.
  by move=> x; apply: mixed01 => //; apply: coin_of01.
have s1 : pick (row_of L b pool) T <= pick (share pool) T + pick_off V L b 0.
  exact: (row_of_near some_token tree_holds b_bits (levels_few levels) pool_floats pool_some).
have s2 := supplied_near T01.
pose T0 x := accept wanted64 supplied64 x * f x + (1 - accept wanted64 supplied64 x) * B.
have s3 : pick (share supplied64) T <= pick (share supplied64) T0 + coin_off_at 0 c.
  have sP : dist (share supplied64) by apply: share_dist supplied_pos => x; case: (supplied_floats x).
  have P := lawful_pick sP; rewrite -[X in _ + X](law_const P) -(law_add P); apply: total_le => x.
  have := (supplied_floats x).1; rewrite le_eqVlt => /orP[/eqP z|s0]; first by rewrite /share -z !mul0r.
  by apply: ler_wpmul2l; [case: sP | apply: coin_moved (candidate_coin_near s0)].
have s4 : pick (share supplied64) T0 <= pick (share wanted64) f + (mismatch wanted64 supplied64 + 4%:R * u).
  apply: judged => // [x|x|||]; [by case: (wanted_floats x) | by case: (supplied_floats x) | exact: wanted_pos |
    exact: supplied_pos |].
  exact: (next_excess some_token tree_holds levels wanted_floats supplied_floats wanted_pos f01).
have s5 := wanted_near f01.
apply: le_trans s1 _; apply: le_trans (ler_add s2 (lexx _)) _; apply: le_trans (ler_add (ler_add s3 (lexx _)) (lexx _)) _.
apply: le_trans (ler_add (ler_add (ler_add s4 (lexx _)) (lexx _)) (lexx _)) _.
have -> : pick (share w) f + step_off = pick (share w) f + 2%:R * u + (k + spare + 8%:R * u + 4%:R * u) + coin_off_at 0 c
  + 2%:R * u + pick_off V L b 0 by rewrite /step_off; ring.
by do 3![rewrite ler_add2r]; apply: ler_add s5 _; rewrite ler_add2r; apply: sums_close.
Qed.
End One.
End Refusal.
