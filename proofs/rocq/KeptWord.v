(** Keep a prefix of a word by any law, then draw afresh: total variation, exactly.

    What it says.  K is a law of how many tokens of the word s are kept; what follows is
    drawn from the rows r.  [kept_word_tv]: of any number of tokens from |s| on, no test sees
    more than the largest [kept_gain] j, j <= |s|, and the event "the text begins with j tokens
    of s" sees [kept_gain] j; so TV is the maximum.  The reason: a text is likelier than under
    r by a factor that depends on how far it agrees with s, and grows with that ([reweighted]).

    Source: ours.  Used by Nucleus.v. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Range Single Round Drift Typical Medusa.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Kept.
Variables (R : realFieldType) (V : vocab) (r : seq V -> V -> R).
Hypothesis rP : forall h, dist (r h).
Implicit Types (h s t u : seq V) (f : seq V -> R).

Notation A h s j := (word_prob r h (take j s)).

(** The token drawn after what is kept is the first of the completion. *)
Lemma fresh_end n h u f : pick (r (h ++ u)) (fun y => complete r n h (rcons u y) f) = complete r n h u f.
Proof.
have one x : pick (r x) (fun _ => f [::]) = f [::] by apply: (law_const (lawful_pick (rP x))).
elim: u n h f one => [|x u IH] [|n] h f one //=; try exact: one.
  by rewrite cats0; apply: total_ext => y; rewrite complete_nil.
rewrite -cat_rcons; apply: (IH n (rcons h x) (fun s => f (x :: s))) => z.
exact: (law_const (lawful_pick (rP z))).
Qed.

Lemma begun n h u f : (size u <= n)%N ->
  target r n h (fun t => (begins u t)%:R * f t) = word_prob r h u * complete r n h u f.
Proof.
elim: u n h f => [|x u IH] [|n] h f //= le.
  rewrite [word_prob _ _ _]/= /ret /= mul1r; apply: (law_ext (lawful_target rP n.+1 h)) => t.
  by rewrite /begins /= take0 eqxx mul1r.
have step y : target r n (rcons h y) (fun s => (begins (x :: u) (y :: s))%:R * f (y :: s))
            = (y == x)%:R * target r n (rcons h y) (fun s => (begins u s)%:R * f (y :: s)).
  rewrite -(law_scale (lawful_target rP n _)); apply: (law_ext (lawful_target rP n _)) => s.
  by rewrite /begins /= eqseq_cons -mulnb natrM mulrA.
rewrite word_prob_cons // -mulrA -(IH n (rcons h x) (fun s => f (x :: s)) le).
rewrite -(total_pick x (fun y => r h y * target r n (rcons h y) (fun s => (begins u s)%:R * f (y :: s)))).
by apply: total_ext => y; rewrite /bind /ret step mulrCA.
Qed.

Lemma begun_prob n h u : (size u <= n)%N -> target r n h (fun t => (begins u t)%:R) = word_prob r h u.
Proof.
move=> le; rewrite -[RHS]mulr1 -[X in _ * X](law_const (lawful_complete rP n h u)) -begun //.
by apply: (law_ext (lawful_target rP n h)) => t; rewrite mulr1.
Qed.

Lemma begins_take i j s t : (i <= j)%N -> begins (take j s) t -> begins (take i s) t.
Proof.
move=> ij /eqP e; have short : (size (take i s) <= size (take j s))%N.
  by rewrite !size_take_min leq_min geq_minr andbT (leq_trans (geq_minl _ _)).
rewrite /begins -(take_take short t) e; case: (leqP i (size s)) => [le|lt]; first by rewrite size_takel ?take_take.
have [il jl] := (ltnW lt, leq_trans (ltnW lt) ij).
by rewrite (take_oversize il) (take_oversize jl) take_size.
Qed.

Lemma word_prob_take h s i j : (i <= j)%N -> A h s j <= A h s i.
Proof.
move=> ij; have cut k : (size (take k s) <= size s)%N by rewrite size_take_min geq_minr.
rewrite -(begun_prob h (cut i)) -(begun_prob h (cut j)).
by apply: (prob_le (lawful_target rP _ h)) => t; apply: begins_take.
Qed.

Lemma word_prob_rcons h u x : word_prob r h (rcons u x) = word_prob r h u * r (h ++ u) x.
Proof.
elim: u h => [|y u IH] h; last by rewrite rcons_cons !word_prob_cons // IH cat_rcons mulrA.
by rewrite word_prob_cons // cats0 mulrC.
Qed.

Lemma complete_take n h u f : complete r n h u f = complete r n h (take n u) f.
Proof. by rewrite complete_cat [RHS]complete_cat take_take. Qed.

(** Where at most [size s] are kept, and nothing that r never says. *)
Variables (h s : seq V) (K : law R nat).
Hypothesis KP : lawful K.
Hypothesis K_size : surely (fun k => (k <= size s)%N) K.
Hypothesis K_reached : forall i, (i <= size s)%N -> A h s i = 0 -> prob K (fun k => k == i) = 0.

Definition kept_law n : law R (seq V) := k <~ K;; complete r n h (take k s).
(** How much likelier than under r a text becomes that agrees with s just so far. *)
Definition raised i : R := prob K (fun k => k == i) / A h s i.
Definition likelihood t : R := \sum_(0 <= i < (size s).+1) (begins (take i s) t)%:R * raised i.
Definition kept_gain j : R :=
  A h s j * (\sum_(0 <= i < j) raised i) + prob K (fun k => (j <= k)%N) - A h s j.

Lemma A_ge0 i : 0 <= A h s i.
Proof. by case/andP: (word_prob01 rP h (take i s)). Qed.

Lemma raised_ge0 i : 0 <= raised i.
Proof. by rewrite divr_ge0 ?A_ge0 ?prob_ge0. Qed.

Lemma raised_mass i : (i <= size s)%N -> raised i * A h s i = prob K (fun k => k == i).
Proof.
move=> le; case: (eqVneq (A h s i) 0) => [z|nz]; last by rewrite divfK.
by rewrite z mulr0 K_reached.
Qed.

Lemma kept_sum (g : nat -> R) : K g = \sum_(0 <= i < (size s).+1) prob K (fun k => k == i) * g i.
Proof.
have one k : (k <= size s)%N -> g k = \sum_(0 <= i < (size s).+1) (k == i)%:R * g i.
  move=> le; rewrite (bigD1_seq k) ?iota_uniq ?mem_index_iota //= eqxx mul1r big1 ?addr0 // => i ne.
  by rewrite eq_sym (negbTE ne) mul0r.
rewrite (K_size one) law_sum //; apply: eq_bigr => i _.
exact: (law_scaler KP _ (fun k => (k == i)%:R)).
Qed.

Lemma reweighted n f : (size s <= n)%N -> kept_law n f = target r n h (fun t => likelihood t * f t).
Proof.
move=> sn; have tP := lawful_target rP n h; rewrite /kept_law /bind kept_sum.
transitivity (\sum_(0 <= i < (size s).+1) target r n h (fun t => (begins (take i s) t)%:R * raised i * f t)).
  apply: eq_big_nat => i /andP[_ le]; rewrite ltnS in le; rewrite -raised_mass // -mulrA -begun; last first.
    by rewrite (leq_trans _ sn) // size_take_min geq_minr.
  by rewrite -(law_scale tP); apply: (law_ext tP) => t; ring.
by rewrite -law_sum //; apply: (law_ext tP) => t; rewrite mulr_suml.
Qed.

Lemma gain_of_event n j : (size s <= n)%N -> (j <= size s)%N ->
  kept_law n (fun t => (begins (take j s) t)%:R) - target r n h (fun t => (begins (take j s) t)%:R) = kept_gain j.
Proof.
move=> sn js; have tP := lawful_target rP n h.
have cut i : (size (take i s) <= n)%N by rewrite (leq_trans _ sn) // size_take_min geq_minr.
have both i : (i <= size s)%N ->
    prob K (fun k => k == i) * complete r n h (take i s) (fun t => (begins (take j s) t)%:R)
    = raised i * A h s (maxn i j).
  move=> le; rewrite -raised_mass // -mulrA -begun // -(begun_prob h (cut (maxn i j))); congr (_ * _).
  apply: (law_ext tP) => t; rewrite -natrM mulnb; congr (nat_of_bool _)%:R.
  apply/andP/idP => [[bi bj]|b]; first by case: (leqP i j).
  by split; [apply: begins_take b; apply: leq_maxl | apply: begins_take b; apply: leq_maxr].
have tail : prob K (fun k => (j <= k)%N) = \sum_(j <= i < (size s).+1) prob K (fun k => k == i).
  rewrite /prob kept_sum (big_cat_nat _ (n := j)) ?(leqW js) //= big_nat big1 ?add0r => [|i /andP[_ lt]].
    by apply: eq_big_nat => i /andP[-> _]; rewrite mulr1.
  by rewrite leqNgt lt mulr0.
rewrite begun_prob // /kept_law /bind kept_sum /kept_gain tail; congr (_ - _).
rewrite (eq_big_nat _ _ (F2 := fun i => raised i * A h s (maxn i j))) => [|i /andP[_ le]]; last exact: both.
rewrite (big_cat_nat _ (n := j)) ?(leqW js) //= mulr_sumr; congr (_ + _); apply: eq_big_nat => i /andP[ji le].
  by rewrite (maxn_idPr (ltnW le)) mulrC.
by rewrite (maxn_idPl ji) raised_mass.
Qed.

(** Both from the tails of K. *)
Lemma gain_of_tails (B : nat -> R) j : (forall i, (i <= size s)%N -> prob K (fun k => (i <= k)%N) = B i) ->
  (j <= size s)%N ->
  kept_gain j = A h s j * (\sum_(0 <= i < j) (B i - B i.+1) / A h s i) + B j - A h s j.
Proof.
move=> tail js; rewrite /kept_gain tail //; congr (_ * _ + _ - _); apply: eq_big_nat => i /andP[_ ij].
have is' : (i < size s)%N := leq_trans ij js.
rewrite /raised -(tail i (ltnW is')) -(tail i.+1 is') -(law_sub KP); congr (_ / _).
by apply: (law_ext KP) => k; case: ltngtP; rewrite ?subrr ?subr0.
Qed.

(** The tests worth making: does the text begin with the first j tokens? *)
Theorem kept_word_tv n : (size s <= n)%N ->
  (exists2 j, (j <= size s)%N & forall f, unit_test f -> kept_law n f - target r n h f <= kept_gain j)
  /\ forall j, (j <= size s)%N ->
     kept_law n (fun t => (begins (take j s) t)%:R) - target r n h (fun t => (begins (take j s) t)%:R) = kept_gain j.
Proof.
move=> sn; have tP := lawful_target rP n h; split=> [|j]; last exact: gain_of_event.
have best j : (j <= size s)%N -> (forall t f01, 0 <= f01 <= 1 -> (likelihood t - 1) * f01
    <= (likelihood t - 1) * (begins (take j s) t)%:R) ->
    forall f, unit_test f -> kept_law n f - target r n h f <= kept_gain j.
  move=> js point f f01; rewrite -(gain_of_event sn js) !reweighted // -!(law_sub tP); apply: (law_le tP) => t.
  by have := point t (f t) (f01 t); rewrite !mulrBl !mul1r.
have split_at t j : (j <= (size s).+1)%N -> likelihood t
    = \sum_(0 <= i < j) (begins (take i s) t)%:R * raised i
      + \sum_(j <= i < (size s).+1) (begins (take i s) t)%:R * raised i.
  by move=> le; rewrite /likelihood (big_cat_nat _ (n := j)).
have part_ge0 a b t : 0 <= \sum_(a <= i < b) (begins (take i s) t)%:R * raised i.
  by apply: sumr_ge0 => i _; rewrite mulr_ge0 ?ler0n ?raised_ge0.
have below t j : ~~ begins (take j s) t -> (j <= (size s).+1)%N ->
    likelihood t <= \sum_(0 <= i < j) raised i.
  move=> no le; rewrite (split_at t j le) [X in _ + X]big_nat [X in _ + X]big1 ?addr0 => [|i /andP[ji _]].
    by apply: ler_sum => i _; case: (begins _ _); rewrite ?mul1r ?mul0r ?raised_ge0.
  by rewrite (negbTE (contra (begins_take ji) no)) mul0r.
pose over_one j := 1 < \sum_(0 <= i < j.+1) raised i.
case: (boolP (has over_one (iota 0 (size s).+1))) => [some|none]; last first.
  exists 0%N => // f f01; rewrite reweighted // -(law_sub tP); have gain0 : 0 <= kept_gain 0.
    rewrite /kept_gain big_geq // mulr0 add0r /prob (law_one KP) subr_ge0.
    by case/andP: (word_prob01 rP h (take 0 s)).
  apply: le_trans gain0; rewrite -[leRHS](law_const tP); apply: (law_le tP) => t; have /andP[f0 _] := f01 t.
  have /hasPn/(_ (size s)) := none; rewrite mem_iota ltnSn /over_one -leNgt => /(_ isT) le1.
  rewrite -[X in _ - X]mul1r -mulrBl mulr_le0_ge0 // subr_le0; apply: le_trans le1.
  by apply: ler_sum => i _; case: (begins _ _); rewrite ?mul1r ?mul0r ?raised_ge0.
have ex : exists j, (j < (size s).+1)%N && over_one j.
  by case/hasP: some => j; rewrite mem_iota => /andP[_ lt] yes; exists j; apply/andP.
case: (ex_minnP ex) => j /andP[js high] least; exists j => //; apply: best => // t x /andP[x0 x1].
case: (boolP (begins (take j s) t)) => [yes|no].
  rewrite mulr1 -[leRHS]mulr1 ler_wpmul2l // subr_ge0 ltW // (lt_le_trans high) //.
  rewrite (split_at t j.+1 js) -[leLHS]addr0 ler_add ?part_ge0 //; apply: ler_sum_nat => i /andP[_ ij].
  by rewrite (begins_take _ yes) ?mul1r // -ltnS.
rewrite mulr0 mulr_le0_ge0 // subr_le0 (le_trans (below t j no (ltnW js))) //.
case: j js {high no} least => [|j] js least; first by rewrite big_geq ?ler01.
rewrite leNgt; apply/negP => yes; have /least : (j < (size s).+1)%N && over_one j by rewrite (ltnW js).
by rewrite ltnn.
Qed.

End Kept.
