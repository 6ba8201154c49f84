(** Lossy by design: typical acceptance and the nucleus mode, at their exact distance.

    What it says.
    - [forced_token_tv]     a token that is emitted whatever the target draws is off by
                            TV = 1 - p(c), hence by at least 1 - max p
                            ([forced_token_tv_ge]), also against any policy's row;
    - [forced_word_tv]      two forced tokens: 1 - p1(a) p2(b|a) (alpha = .6,
                            beta = .51 gives .694: [medusa_examples]);
    - [threshold_rule_tv]   deterministic candidate, accepted iff p(c) passes a
                            threshold, else the argmax: the same formula at what is emitted;
    - [threshold_exact_iff] it is exact iff the emitted token has p = 1 - so "lossy for
                            every stochastic policy" is too strong: a stochastic policy
                            whose row here is a point mass is preserved;
    - [nucleus_row_tv]      sampling from the top-p row instead of p: 1 - p(kept set);
    - [nucleus_node_tv]     m leaves that share a candidate give it m tries and then a fresh
                            draw: off from the nucleus row by (1-s)(1-(1-s)^m), s its mass.

    Source: Cai et al. 2024 (Medusa), evaluate_posterior; seed 004, thm 1.1 and its
    corollaries.  Runs in: refengine/exact/rules/typical.py, nucleus.py. *)

From Coq Require Import Qcanon.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Rational Counterexamples.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Typical.
Variables (R : realFieldType).

Definition point (V : vocab) (c : V) : V -> R := fun x => (x == c)%:R.

Theorem forced_token_tv (V : vocab) (p : V -> R) (c : V) : dist p -> tv (point c) p = 1 - p c.
Proof.
move=> pP; have [p0 p1] := pP.
have pc1 : p c <= 1 by rewrite -p1; apply: total_ge_term.
rewrite -[LHS](subKr 1) -acceptance_is_one_minus_tv //; last exact: dist_onehot.
congr (1 - _); rewrite -[RHS](total_pick c p); apply: total_ext => x; rewrite /point.
by case: eqP => [->|_]; [rewrite mul1r min_r | rewrite mul0r min_l].
Qed.

Theorem forced_token_tv_ge (V : vocab) (p : V -> R) (c : V) top : dist p ->
  (forall x, p x <= top) -> 1 - top <= tv (point c) p.
Proof. by move=> pP le; rewrite forced_token_tv // ler_add2l ler_opp2. Qed.

(** Words of two tokens, as one vocabulary. *)
Lemma pairs_once (V W : vocab) : Finite.axiom [seq (x, y) | x <- tokens V, y <- tokens W].
Proof.
case=> a b; rewrite count_flatten -map_comp sumnE big_map.
rewrite (eq_bigr (fun x => (x == a) : nat)); last first.
  move=> x _ /=; rewrite count_map; case: (altP (x =P a)) => [->|ne]; last first.
    by apply/eqP; rewrite -leqn0 leqNgt -has_count; apply/hasPn => y _ /=; rewrite xpair_eqE (negbTE ne).
  rewrite -[RHS](tokens_once b); apply: eq_count => y /=.
  by rewrite xpair_eqE eqxx.
rewrite -[RHS](tokens_once a) -sum1_count [RHS]big_mkcond /=.
by apply: eq_bigr => x _; case: (x == a).
Qed.
Definition pairs (V W : vocab) : vocab := Vocab (@pairs_once V W).

Definition joint (V W : vocab) (p1 : V -> R) (p2 : V -> W -> R) (xy : pairs V W) : R := p1 xy.1 * p2 xy.1 xy.2.

Lemma total_pairs (V W : vocab) (f : pairs V W -> R) :
  total f = total (fun x => total (fun y => f (x, y))).
Proof.
rewrite !totalE big_allpairs_dep /=; apply: eq_bigr => x _; by rewrite totalE.
Qed.

Lemma joint_dist (V W : vocab) (p1 : V -> R) (p2 : V -> W -> R) :
  dist p1 -> (forall x, dist (p2 x)) -> dist (joint p1 p2).
Proof.
move=> [p10 p11] p2P; split=> [[x y]|].
  by rewrite mulr_ge0 //; case: (p2P x).
rewrite total_pairs -p11; apply: total_ext => x.
by have [_ e] := p2P x; rewrite (total_scale (p1 x) (p2 x)) e mulr1.
Qed.

Theorem forced_word_tv (V W : vocab) (p1 : V -> R) (p2 : V -> W -> R) a b :
  dist p1 -> (forall x, dist (p2 x)) ->
  tv (point ((a, b) : pairs V W)) (joint p1 p2) = 1 - p1 a * p2 a b.
Proof. by move=> p1P p2P; rewrite forced_token_tv //; apply: joint_dist. Qed.

(** The threshold rule on a deterministic candidate: no coin is involved. *)
Definition threshold_emits (V : vocab) (passes : bool) (candidate argmax : V) : V :=
  if passes then candidate else argmax.

Theorem threshold_rule_tv (V : vocab) (p : V -> R) passes candidate argmax : dist p ->
  let y := threshold_emits passes candidate argmax in tv (point y) p = 1 - p y.
Proof. by move=> pP; apply: forced_token_tv. Qed.

Theorem threshold_exact_iff (V : vocab) (p : V -> R) passes candidate argmax : dist p ->
  let y := threshold_emits passes candidate argmax in tv (point y) p = 0 <-> p y = 1.
Proof.
move=> pP y; rewrite threshold_rule_tv // -/y; split=> [/eqP|->]; last by rewrite subrr.
by rewrite subr_eq0 => /eqP.
Qed.

(** ** Nucleus *)
Definition kept_mass (V : vocab) (p : V -> R) (K : pred V) : R := total (fun x => (K x)%:R * p x).
Definition nucleus_row (V : vocab) (p : V -> R) (K : pred V) x : R := (K x)%:R * p x / kept_mass p K.

Lemma nucleus_row_dist (V : vocab) (p : V -> R) K : dist p -> kept_mass p K != 0 -> dist (nucleus_row p K).
Proof.
move=> [p0 p1] m; split=> [x|]; last by rewrite /nucleus_row total_scaler mulfV.
by rewrite !mulr_ge0 ?ler0n // invr_ge0 total_ge0 // => y; rewrite mulr_ge0 ?ler0n.
Qed.

Theorem nucleus_row_tv (V : vocab) (p : V -> R) K : dist p -> kept_mass p K != 0 ->
  tv (nucleus_row p K) p = 1 - kept_mass p K.
Proof.
move=> pP m; have nP := nucleus_row_dist pP m; have [p0 p1] := pP.
have m0 : 0 < kept_mass p K.
  by rewrite lt_neqAle eq_sym m total_ge0 // => x; rewrite mulr_ge0 ?ler0n.
have m1 : kept_mass p K <= 1.
  by rewrite -p1; apply: total_le => x; case: (K x); rewrite ?mul1r ?mul0r.
rewrite -[LHS](subKr 1) -acceptance_is_one_minus_tv //; congr (1 - _); apply: total_ext => x.
rewrite /nucleus_row; case: (K x); rewrite ?mul1r ?mul0r ?mul0r; last by rewrite min_l.
by rewrite min_r // ler_pdivl_mulr // -[leRHS]mulr1 ler_wpmul2l.
Qed.

(** m leaves try the candidate c with draws of their own; if none agrees the node
    draws afresh from the same row r. *)
Definition nucleus_node (V : vocab) (r : V -> R) (c : V) (m : nat) (x : V) : R :=
  let miss := (1 - r c) ^+ m in (1 - miss) * point c x + miss * r x.

Theorem nucleus_node_tv (V : vocab) (r : V -> R) c m : dist r ->
  tv (nucleus_node r c m) r = (1 - r c) * (1 - (1 - r c) ^+ m).
Proof.
move=> rP; have rc1 : r c <= 1 by have [r0 <-] := rP; apply: total_ge_term.
have [r0 r1] := rP; rewrite -[X in X * _](forced_token_tv c rP) /tv -mulrA; congr (_ * _).
rewrite -total_scaler; apply: total_ext => x; rewrite /nucleus_node; set s := (1 - r c) ^+ m.
have s1 : 0 <= 1 - s by rewrite subr_ge0 exprn_ile1 ?subr_ge0 // ler_subl_addl ler_addr.
have -> : (1 - s) * point c x + s * r x - r x = (point c x - r x) * (1 - s) by ring.
by rewrite normrM [`|1 - s|]ger0_norm.
Qed.

End Typical.

(** The examples of seed 004: .4 for a forced first token, .694 for a forced pair. *)
Theorem medusa_examples :
  let p := row2 (6//10) (4//10) in
  let first := fun x : two => (x == tok0)%:R : Qc in
  let p2 := fun _ : two => row2 (51//100) (49//100) in
  (tv first p, tv (point [realFieldType of Qc] ((tok0, tok0) : pairs two two)) (joint p p2)) = (4//10, 694//1000).
Proof. compute_law. Qed.
