(** Block verification in floats: how far one level is from what it is worth.

    What it says.  The prefix has weight n / d, a token is drawn down the tree of float64 sums of q and the weight carried
    on; where the longer prefixes come back, a coin decides whether what is left is emitted from here.  [level_off]: six
    picks, a coin, 5 [miss] and (40 L + 123) 2^-53.
    - [level_near]  with the coin of FloatLevel.v one level is off by [level_off];
    - [first_near]  and so is the first, which has weight 1 / 1 and tosses none.

    Source: ours; Flocq (Boldo, Melquiond) for rounding.  Runs in: refengine/engine/rules/block.py. *)

From Coq Require Import ZArith QArith Qcanon Qreals Reals Lra Lia.
From Flocq Require Import Core.
From Proofs Require Import FloatAccept FloatSums FloatThreshold FloatDescent FloatRow FloatCoin.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Drift Drifting Rational FloatMachine FloatsEndToEnd DriftingTrees FloatsGiven
  FloatNumbers Judged FloatRescaled FloatRefusal JudgedBlock BlockSums FloatWeight FloatLevel.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** ** The number *)

Definition level_off_at (size levels pick_bits coin_bits : nat) (miss : rational) : rational :=
  6%:R * pick_off_at size levels 0 pick_bits + coin_off_at 0 coin_bits + 5%:R * miss
  + (40 * levels + 123)%N%:R / 2%:R ^+ 53.

Lemma times_pos n (a : rational) : 0 <= a -> 0 <= n%:R * a.
Proof. by apply: mulr_ge0; apply: ler0n. Qed.

Section Off.
Variables (V : vocab) (L b c : nat) (miss : rational).
Hypothesis miss_pos : 0 <= miss.
Definition level_off : rational := level_off_at (size_of_vocab V) L b c miss.

Lemma level_off_pos : 0 <= level_off.
Proof.
apply: addr_ge0; last by apply: mulr_ge0; [apply: ler0n | apply: unit_pos].
apply: addr_ge0 (times_pos 5 miss_pos); apply: addr_ge0 (coin_off_pos c 0).
by apply: times_pos; apply: pick_off_pos.
Qed.

(** What is lost of a level's mass: what the sums miss, and what is rounded. *)
Definition level_lost : rational := 2%:R * (3%:R * unit64) + 3%:R * unit64 + emit_off V L b
  + (19%:R * unit64 + 4%:R * (2%:R * L%:R * unit64) + level_sigma L + level_mu + least).

Lemma level_lost_pos : 0 <= level_lost.
Proof.
have u m : 0 <= m%:R * unit64 by apply: times_pos unit64_pos.
have x0 : 0 <= 4%:R * (2%:R * L%:R * unit64) by apply: times_pos; rewrite -natrM; apply: u.
have emits0 := addr_ge0 (u 3%N) (times_pos 2 (pick_off_pos V L b 0)).
have stops0 := addr_ge0 (addr_ge0 (addr_ge0 (addr_ge0 (u 19%N) x0) (addr_ge0 (u 2%N) x0)) (u 11%N)) least_pos.
exact: addr_ge0 (addr_ge0 (addr_ge0 (times_pos 2 (u 3%N)) (u 3%N)) emits0) stops0.
Qed.

Lemma few_least : 5%:R / 2%:R * least <= 3%:R * unit64.
Proof.
have small : least <= unit64 by apply/val_le; rewrite val_least val_unit64; apply: bpow_le.
apply: le_trans (_ : 3%:R * least <= _); last by apply: ler_wpmul2l small; apply: ler0n.
by apply: ler_wpmul2r; [apply: least_pos | vm_compute].
Qed.

Lemma level_off_all : 5%:R * miss + coin_off_at 0 c + 5%:R / 2%:R * level_lost + 8%:R * unit64 + 2%:R * unit64
  + pick_off V L b 0 <= level_off.
Proof.
have two : 2%:R != 0 :> rational by rewrite pnatr_eq0.
have -> : 5%:R * miss + coin_off_at 0 c + 5%:R / 2%:R * level_lost + 8%:R * unit64 + 2%:R * unit64 + pick_off V L b 0
  = 6%:R * pick_off V L b 0 + coin_off_at 0 c + 5%:R * miss + ((40%:R * L%:R + 120%:R) * unit64 + 5%:R / 2%:R * least).
  by rewrite /level_lost /emit_off /level_sigma /level_mu; field.
have e53 : (2%:R ^+ 53)^-1 = unit64 by rewrite /unit64 sealedE.
have -> : level_off = 6%:R * pick_off V L b 0 + coin_off_at 0 c + 5%:R * miss
  + ((40%:R * L%:R + 120%:R) * unit64 + 3%:R * unit64).
  by rewrite /level_off /level_off_at e53 natrD natrM /pick_off; ring.
by rewrite !ler_add2l few_least.
Qed.

(** What a mass of at least 4/5 d makes of it. *)
Lemma lost_shared (r g k s d : rational) : 0 <= r -> 0 <= k -> 2%:R^-1 <= d -> 4%:R / 5%:R * d <= s -> g <= s ->
  (4%:R * (miss * d) + r + g * k) / s <= 5%:R * miss + k + 5%:R / 2%:R * r.
Proof.
move=> r0 k0 half some gs; have d0 : 0 < d by apply: lt_le_trans half; apply: half_pos.
have most : 0 < 4%:R / 5%:R :> rational by vm_compute.
have more : 0 <= 5%:R / 2%:R * r by apply: (mulr_ge0 _ r0); vm_compute.
have s0 : 0 < s := lt_le_trans (mulr_gt0 most d0) some.
have five : 5%:R != 0 :> rational by rewrite pnatr_eq0.
have two : 2%:R != 0 :> rational by rewrite pnatr_eq0.
have misses : 4%:R * (miss * d) <= 5%:R * miss * s.
  have -> : 4%:R * (miss * d) = 5%:R * miss * (4%:R / 5%:R * d) by field.
  exact: (ler_wpmul2l (times_pos 5 miss_pos) some).
have rounds : r <= 5%:R / 2%:R * r * s.
  have e : 5%:R / 2%:R * r * (4%:R / 5%:R * 2%:R^-1) = r by field.
  rewrite -{1}e; exact: (ler_wpmul2l more (le_trans (ler_wpmul2l (ltW most) half) some)).
have coins : g * k <= k * s by rewrite mulrC; exact: (ler_wpmul2l k0 gs).
have -> : (4%:R * (miss * d) + r + g * k) / s <= 5%:R * miss + k + 5%:R / 2%:R * r
  = (4%:R * (miss * d) + r + g * k <= 5%:R * miss * s + 5%:R / 2%:R * r * s + k * s).
  by rewrite (ler_pdivr_mulr _ _ s0); congr (_ <= _); ring.
exact: (ler_add (ler_add misses rounds) coins).
Qed.
End Off.

(** ** One level *)

Section Level.
Variables (V : vocab) (L b c : nat).
Implicit Types (w f : V -> rational) (x : V).
Hypothesis some_token : tokens V <> [::].
Hypothesis tree_holds : (size_of_vocab V <= Nat.pow 2 L)%coq_nat.
Hypothesis b_bits : (b <= 53)%N.
Hypothesis c_bits : (c <= 24)%N.
Hypothesis levels : (L <= 64)%N.
Variables (p q strange : V -> rational) (n d miss : rational).
Hypothesis p_floats : float32_row p.
Hypothesis q_floats : float32_row q.
Hypothesis p_miss : `|total p - 1| <= miss.
Hypothesis q_miss : `|total q - 1| <= miss.
Hypothesis miss_eighth : miss <= 8%:R^-1.
Hypothesis held : holds_weight (n, d).
Hypothesis strangeP : dist strange.

Notation pn := (level_wanted p n).
Notation qd := (level_supplied q d).
Definition level_next y : rational := carried_weight (carry (pn y) (qd y)).

Let p0 x : 0 <= p x. Proof. by case: (p_floats x). Qed.
Let q0 x : 0 <= q x. Proof. by case: (q_floats x). Qed.
Let facts := level_facts tree_holds levels p_floats q_floats p_miss q_miss miss_eighth held.
Let stopped := level_stops some_token tree_holds levels p_floats q_floats p_miss q_miss miss_eighth held.
Let n_below_d : 0 <= n <= d. Proof. by case: held. Qed.
Let d_half : 2%:R^-1 <= d <= 1. Proof. by case: held. Qed.
Let d0 : 0 < d. Proof. exact: weight_bottom held. Qed.

Lemma level_next01 y : 0 <= level_next y <= 1.
Proof. by apply: carried01; case: (wanted_row p_floats held y). Qed.

Lemma level_next_near y : `|level_next y - accept pn qd y| <= 8%:R * unit64.
Proof.
have [w0 _] := wanted_row p_floats held y; have := weight_near (qd y) w0.
by rewrite /level_next /accept; case: ltP => // _; case: (0 < pn y)%R.
Qed.

Lemma below_one_miss : miss < 1.
Proof. by apply: le_lt_trans miss_eighth _; vm_compute. Qed.
Lemma p_some : 0 < total p. Proof. exact: (admitted below_one_miss p_miss). Qed.
Lemma q_some : 0 < total q. Proof. exact: (admitted below_one_miss q_miss). Qed.

Lemma supplied_some : 0 < total qd.
Proof.
have [_ _ le _] := facts; have most : 0 < 4%:R / 5%:R :> rational by vm_compute.
exact: (lt_le_trans (mulr_gt0 most d0) le).
Qed.

Lemma supplied_dist : dist (share qd).
Proof. by apply: share_dist supplied_some => y; case: (supplied_row q_floats held y). Qed.

Lemma drawn_supplied : near (2%:R * unit64) (share q) (share qd).
Proof.
have piece_d : piece <= d.
  case/andP: d_half => half _; apply: le_trans half; apply/val_le.
  by rewrite val_piece val_half (_ : Rinv (IZR 2) = bpow radix2 (-1)) //; apply: bpow_le.
have lost : moved (fun y => q y * d) qd <= 2%:R * unit64 * (total q * d).
  apply: (products_moved tree_holds levels q0 (ltW d0)).
  by apply: two_pieces piece_d; apply: one_piece (float32_total q_floats q_some).
apply: near_sym; [exact: supplied_dist | exact: share_dist q_some |].
exact: (near_products q_some d0 (supplied_row q_floats held) supplied_some lost).
Qed.

(** A token drawn, and its weight carried on, in floats: of values [f] and [k] in [0, 1]. *)
Lemma level_drawn f k : unit_test f -> 0 <= k <= 1 ->
  pick (row_of L b q) (fun y => level_next y * f y + (1 - level_next y) * k)
  <= pick (share qd) (fun y => accept pn qd y * f y + (1 - accept pn qd y) * k)
    + 8%:R * unit64 + 2%:R * unit64 + pick_off V L b 0.
Proof.
move=> f01 k01; pose X y := level_next y * f y + (1 - level_next y) * k.
have X01 : unit_test X by move=> y; apply: mixed01 => //; apply: level_next01.
have picked : pick (row_of L b q) X <= pick (share q) X + pick_off V L b 0.
  exact: (row_of_near some_token tree_holds b_bits (levels_few levels) q_floats q_some).
apply: le_trans picked _; rewrite ler_add2r; apply: le_trans (drawn_supplied X01) _; rewrite ler_add2r.
have P := lawful_pick supplied_dist; rewrite -[X in _ + X](law_const P) -(law_add P); apply: (law_le P) => y.
exact: coin_moved (level_next_near y).
Qed.

Lemma wanted_up f : unit_test f -> total (fun y => pn y * f y) <= n * total p * pick (share p) f + 3%:R * unit64.
Proof.
move=> f01; have u0 := unit64_pos; have [n0 nd] := andP n_below_d; have [_ one] := andP d_half.
have lost : moved (fun y => p y * n) pn <= 3%:R * unit64.
  have tp2 : total p <= 2%:R.
    have := le_trans (ler_norm _) p_miss; rewrite ler_subl_addr => /le_trans; apply.
    by apply: le_trans (ler_add miss_eighth (lexx _)) _; vm_compute.
  apply: le_trans (product_sum tree_holds levels p0 n0) _.
  have -> : 3%:R * unit64 = unit64 * (2%:R * 1) + unit64 * 1 by ring.
  apply: ler_add; apply: (ler_wpmul2l u0); last exact: sealed_small.
  by apply: ler_pmul => //; [apply: ltW p_some | apply: le_trans nd one].
have due : n * total p * pick (share p) f = total (fun y => p y * n * f y).
  rewrite pick_share -mulrA [total p * _]mulrC (mulfVK (lt0r_neq0 p_some)) mulrC -total_scaler.
  by apply: total_ext => y; rewrite mulrAC.
rewrite due -ler_subl_addl -total_sub; apply: le_trans lost; apply: total_le => y; rewrite -mulrBl.
apply: le_trans (ler_norm _) _; rewrite normrM -[leRHS]mulr1; apply: ler_wpmul2l; first exact: normr_ge0.
by case/andP: (f01 y) => f0 f1; rewrite ger0_norm.
Qed.

Lemma back_share : 0 <= back pn qd <= total qd.
Proof.
have w0 y : 0 <= pn y by case: (wanted_row p_floats held y).
have s0 y : 0 <= qd y by case: (supplied_row q_floats held y).
rewrite subr_ge0 ler_subl_addr ler_addl; apply/andP; split.
  by apply: total_le => y; rewrite le_minl lexx orbT.
by apply: total_ge0 => y; rewrite le_minr w0 s0.
Qed.

Definition stop_off : rational := level_phi L d miss + level_sigma L + level_mu + least.

(** With any coin [a] that weighs the excess. *)
Section Coin.
Variable a : rational.
Hypothesis a01 : 0 <= a <= 1.
Hypothesis weighs :
  `|back pn qd * a - total (excess pn qd)| <= back pn qd * coin_off_at 0 c + stop_off.

Lemma coin_near f k : unit_test f -> 0 <= k <= 1 ->
  pick (row_of L b q) (fun y => level_next y * f y
    + (1 - level_next y) * (a * pick (level_left L b p q n d strange) f + (1 - a) * k))
  <= n / d * pick (share p) f + (1 - n / d) * k + level_off V L b c miss.
Proof.
move=> f01 k01; have [wanted_near tilt some _] := facts; have u0 := unit64_pos; have [half _] := andP d_half.
have w0 y : 0 <= pn y by case: (wanted_row p_floats held y).
have s0 y : 0 <= qd y by case: (supplied_row q_floats held y).
have left01 := pick01 (level_left_dist some_token tree_holds b_bits levels p q n d strangeP) f01.
have D01 := mixed01 a01 left01 k01; have drawn := level_drawn f01 D01.
have emits := level_emits some_token tree_holds b_bits levels p_floats q_floats p_miss q_miss miss_eighth held strangeP f01.
have valued := level_value w0 s0 supplied_some left01 k01 f01 emits weighs.
have t01 := pick01 (share_dist p0 p_some) f01; have e30 := times_pos 3 u0.
have low : n * total p - 3%:R * unit64 <= total pn by move: wanted_near; rewrite ler_distl [n * _]mulrC => /andP[].
have weighed := level_weight (emit_off V L b + (back pn qd * coin_off_at 0 c + stop_off))
  n_below_d d0 supplied_some t01 k01 e30 (wanted_up f01) low tilt.
have [_ back_le] := andP back_share; have m0 := miss0 p_miss.
have lost := lost_shared m0 (level_lost_pos V L b) (coin_off_pos c 0) half some back_le.
have all_lost : 2%:R * (3%:R * unit64) + (2%:R * (miss * d) + 3%:R * unit64)
    + (emit_off V L b + (back pn qd * coin_off_at 0 c + stop_off))
  = 4%:R * (miss * d) + level_lost V L b + back pn qd * coin_off_at 0 c.
  by rewrite /stop_off /level_phi /level_lost; ring.
rewrite all_lost in weighed; have worth := le_trans (le_trans valued weighed) (ler_add (lexx _) lost).
apply: le_trans drawn _; apply: le_trans (_ : n / d * pick (share p) f + (1 - n / d) * k + (5%:R * miss + coin_off_at 0 c
  + 5%:R / 2%:R * level_lost V L b) + 8%:R * unit64 + 2%:R * unit64 + pick_off V L b 0 <= _).
  by do 3![rewrite ler_add2r].
have all_off := level_off_all V L b c miss; set base := n / d * pick (share p) f + (1 - n / d) * k.
rewrite -3!(addrA base) ler_add2l; exact: all_off.
Qed.
End Coin.

Lemma level_near f k : unit_test f -> 0 <= k <= 1 ->
  pick (row_of L b q) (fun y => level_next y * f y + (1 - level_next y)
    * (level_coin L c p q n d * pick (level_left L b p q n d strange) f + (1 - level_coin L c p q n d) * k))
  <= n / d * pick (share p) f + (1 - n / d) * k + level_off V L b c miss.
Proof.
have [mass_off order back_off] := stopped; have /andP[G0 _] := back_share.
have /andP[E0 _] := excess_below p_floats q_floats held; have a01 : 0 <= level_coin L c p q n d <= 1 by apply: coin_of01.
have mu0 : 0 <= level_mu by apply: times_pos unit64_pos.
have mass0 := level_mass_pos some_token tree_holds levels p q n d.
have weighs := stopping G0 E0 mass0 a01 (coin_off_pos c 0) least_pos mu0 back_off mass_off order
  (level_coin_case some_token tree_holds c_bits levels p q n d).
exact: (coin_near a01 weighs).
Qed.

(** Before anything is kept there is no coin: what comes back is what is to be emitted, but for the rows' sums. *)
Lemma first_near f k : n = 1 -> d = 1 -> unit_test f -> 0 <= k <= 1 ->
  pick (row_of L b q) (fun y => level_next y * f y
    + (1 - level_next y) * (1 * pick (level_left L b p q n d strange) f + (1 - 1) * k))
  <= n / d * pick (share p) f + (1 - n / d) * k + level_off V L b c miss.
Proof.
move=> n1 d1; have [wanted_near tilt _ _] := facts; have /andP[G0 _] := back_share.
have u m : 0 <= m%:R * unit64 by apply: times_pos unit64_pos.
have two_sums : back pn qd - total (excess pn qd)
  = - (total p * d - total qd) - (total pn - total p * n).
  have same : total p * d = total p * n by rewrite n1 d1.
  by rewrite /back total_excess same; ring.
have apart_by : `|back pn qd - total (excess pn qd)| <= 2%:R * (miss * d) + 3%:R * unit64 + 3%:R * unit64.
  by rewrite two_sums; apply: le_trans (ler_norm_sub _ _) _; rewrite normrN; apply: ler_add.
have more : 0 <= back pn qd * coin_off_at 0 c
  + (13%:R * unit64 + 4%:R * (2%:R * L%:R * unit64) + level_sigma L + level_mu + least).
  have x0 : 0 <= 4%:R * (2%:R * L%:R * unit64) by apply: times_pos; rewrite -natrM; apply: u.
  have coins0 := mulr_ge0 G0 (coin_off_pos c 0); have sigma0 := addr_ge0 (u 2%N) x0.
  exact: addr_ge0 coins0 (addr_ge0 (addr_ge0 (addr_ge0 (addr_ge0 (u 13%N) x0) sigma0) (u 11%N)) least_pos).
have weighs : `|back pn qd * 1 - total (excess pn qd)|
    <= back pn qd * coin_off_at 0 c + stop_off.
  rewrite mulr1; apply: le_trans apart_by _; rewrite -subr_ge0; apply: le_trans more _.
  by rewrite le_eqVlt; apply/orP; left; apply/eqP; rewrite /stop_off /level_phi; ring.
have one01 : 0 <= (1 : rational) <= 1 by rewrite ler01 lexx.
exact: (coin_near one01 weighs).
Qed.
End Level.
