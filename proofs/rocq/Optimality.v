(** How many tokens any lossless rule can keep.

    What it says.
    - [block_optimal]  among all rules that look at a drafted chain, emit an
      accepted prefix of it plus one token, and are lossless, block verification
      keeps the most draft tokens on average: every gamma, every history-dependent
      p and q, every causal truncation, any randomness inside the rule.
    - [transport_bound]  a lossless rule that gets k independent draws from q emits
      one of them with probability at most 1 + p(H) - q(H)^k, for every set H of
      tokens; k = 1 gives 1 - TV, which the ratio rule reaches
      ([transport_bound_reached_at_one]).  Some rule reaches it for every k: Flow.v.

    The rules of [block_optimal] may look at p and q off the drafted path, which
    those of the paper's theorem may not.  One round only.

    Source: Sun et al. 2024 (arXiv 2403.10444), Thm 2 (optimality of block
    verification); the transport problem of SpecTr (Sun et al. 2023), its dual over
    sets of tokens in Hu et al. 2025 (arXiv 2502.18779). *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Chain Block.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section BlockOptimal.
Variables (R : realFieldType) (V : vocab).
Variables (p q : seq V -> V -> R) (halt : seq V -> bool).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, dist (q h).
Implicit Types (h xs s : seq V) (x : V) (w : R).

Definition drafts g h : law R (seq V) := draft q halt g h.
Definition reached g h s : R := prob (drafts g h) (begins s).

Fixpoint path_weight w h s : R :=
  if s is x :: s' then path_weight (weight p q w h x) (rcons h x) s' else w.

Lemma path_weight_rcons w h s x :
  path_weight w h (rcons s x) = weight p q (path_weight w h s) (h ++ s) x.
Proof. by elim: s w h => [|y s IH] w h /=; rewrite ?cats0 // IH cat_rcons. Qed.

Lemma path_weight_ge0 w h s : 0 <= w -> 0 <= path_weight w h s.
Proof.
elim: s w h => [|x s IH] w h w0 //=; apply: IH.
by have /andP[] := weight01 pP qP h x w0.
Qed.

Lemma lawful_drafts g h : lawful (drafts g h).
Proof. by apply: lawful_draft => h' _; apply: qP. Qed.

Lemma begins_cons x s y o : begins (x :: s) (y :: o) = (x == y) && begins s o.
Proof. by rewrite /begins /= eqseq_cons eq_sym. Qed.

Lemma reached_cons g h x s : ~~ halt h -> reached g.+1 h (x :: s) = q h x * reached g (rcons h x) s.
Proof.
move=> go; rewrite /reached /drafts /prob /= (negbTE go) /bind /pick /ret.
rewrite -(total_pick x (fun y => q h y * draft q halt g (rcons h y) (fun o => (begins s o)%:R))).
apply: total_ext => y; rewrite mulrCA; congr (_ * _); rewrite -(law_scale (lawful_drafts g _)).
apply: (law_ext (lawful_drafts g _)) => o; rewrite begins_cons eq_sym -natrM mulnb.
by [].
Qed.

Lemma reached_none g h x s : halt h || (g == 0)%N -> reached g h (x :: s) = 0.
Proof. by rewrite /reached /prob /drafts; case: g => [|g] //=; rewrite orbF => ->. Qed.

Lemma reached_nil g h : reached g h [::] = 1.
Proof.
rewrite -(law_one (lawful_drafts g h)); apply: (law_ext (lawful_drafts g h)) => o.
by rewrite /begins take0.
Qed.

(** One more token is reached as the draft's row says, or not at all. *)
Lemma reached_rcons g h s x :
  reached g h (rcons s x) = reached g h s * q (h ++ s) x \/ reached g h (rcons s x) = 0.
Proof.
elim: s g h => [|y s IH] g h.
  case: (boolP (halt h || (g == 0)%N)) => [stop|]; first by right; apply: reached_none.
  case: g => [|g]; rewrite ?orbT ?orbF // => go; left.
  by rewrite reached_cons // reached_nil reached_nil cats0 mul1r mulr1.
case: (boolP (halt h || (g == 0)%N)) => [stop|]; first by right; apply: reached_none.
case: g => [|g]; rewrite ?orbT ?orbF // => go; rewrite /= !reached_cons //.
by case: (IH g (rcons h y)) => ->; [left; rewrite cat_rcons mulrA | right; rewrite mulr0].
Qed.

Lemma words_scale n c f : words n (fun s => c * f s) = c * words n f :> R.
Proof. by elim: n f => //= n IH f; rewrite -total_scale; apply: total_ext => x; apply: IH. Qed.

Lemma words_le n (f f' : seq V -> R) : (forall s, f s <= f' s) -> words n f <= words n f'.
Proof. by elim: n f f' => //= n IH f f' le; apply: total_le => x; apply: IH. Qed.

Lemma total_sum (m : nat) (F : nat -> V -> R) :
  total (fun x => \sum_(0 <= n < m) F n x) = \sum_(0 <= n < m) total (F n).
Proof. by rewrite totalE exchange_big /=; apply: eq_bigr => n _; rewrite totalE. Qed.

(** What the block rule keeps, word by word. *)
Lemma block_kept_words w g h : 0 <= w <= 1 ->
  block_kept p q halt w g h
  = \sum_(0 <= n < g) words n.+1 (fun s => reached g h s * path_weight w h s).
Proof.
elim: g w h => [|g IH] w h w01; first by rewrite big_geq // block_kept_stop ?orbT.
case: (boolP (halt h)) => [stop|go].
  rewrite block_kept_stop ?stop // big1 // => n _ /=.
  rewrite -[RHS](@total0 R V); apply: total_ext => x; rewrite -[RHS](@words0 R V n).
  by apply: words_ext => s _; rewrite reached_none ?stop // mul0r.
rewrite block_kept_rec // /pick.
have level n : words n.+1 (fun s => reached g.+1 h s * path_weight w h s)
  = total (fun x => q h x * words n (fun s => reached g (rcons h x) s * path_weight (weight p q w h x) (rcons h x) s)).
  apply: total_ext => x; rewrite -words_scale; apply: words_ext => s _.
  by rewrite reached_cons // mulrA.
rewrite (eq_bigr _ (fun n _ => level n)) -total_sum; apply: total_ext => x.
have w'01 : 0 <= weight p q w h x <= 1 by apply: weight01 => //; case/andP: w01.
rewrite -mulr_sumr big_nat_recl //= reached_nil mul1r; congr (_ * (_ + _)).
exact: IH.
Qed.

(** ** Any rule that keeps a prefix and adds one token *)

Variable rule : seq V -> law R (nat * V).
Hypothesis ruleP : forall xs, lawful (rule xs).
Hypothesis rule_keeps : forall xs, surely (fun r => (r.1 <= size xs)%N) (rule xs).

Definition rule_round g h : law R (seq V) :=
  xs <~ drafts g h;; r <~ rule xs;; ret (rcons (take r.1 xs) r.2).
Definition rule_kept g h : R := drafts g h (fun xs => rule xs (fun r => r.1%:R)).

(** The draft begins with s and all of s was kept. *)
Definition kept_word g h s : R :=
  drafts g h (fun xs => rule xs (fun r => (begins s xs && (size s <= r.1)%N)%:R)).

Lemma lawful_rule_round g h : lawful (rule_round g h).
Proof.
apply: lawful_bind => [|xs]; first exact: lawful_drafts.
by apply: lawful_bind => // r; apply: lawful_ret.
Qed.

Lemma kept_reached g h s : kept_word g h s <= reached g h s.
Proof.
apply: (law_le (lawful_drafts g h)) => xs; rewrite -[leRHS](law_const (ruleP xs)).
by apply: (law_le (ruleP xs)) => r; rewrite ler_nat; case: (begins s xs) => //; apply: leq_b1.
Qed.

Lemma kept_extends g h s : kept_word g h s = prob (rule_round g h) (extends s).
Proof.
apply: (law_ext (lawful_drafts g h)) => xs; apply: rule_keeps => -[t y] /= le.
rewrite /ret /extends /begins size_rcons ltnS size_takel //; congr (_%:R).
case: (leqP (size s) t) => [st|_]; rewrite ?andbF // !andbT; congr (nat_of_bool (_ == _)).
by rewrite -cats1 take_cat size_takel // ltn_neqAle st andbT; case: eqP => [->|_] /=;
   rewrite ?subnn ?take0 ?cats0 // take_take.
Qed.

Lemma kept_rcons g h s x : lossless p h (rule_round g h) ->
  kept_word g h (rcons s x) <= p (h ++ s) x * kept_word g h s.
Proof.
move=> /(completed_iff_conditional pP _ (lawful_rule_round g h)) given.
rewrite [kept_word g h s]kept_extends -given kept_extends.
by apply: (prob_le (lawful_rule_round g h)) => o /andP[].
Qed.

(** The chain of bounds: kept <= reached * weight, along every word. *)
Lemma kept_bound g h s : lossless p h (rule_round g h) ->
  kept_word g h s <= reached g h s * path_weight 1 h s.
Proof.
move=> ok; elim/last_ind: s => [|s x IH]; first by rewrite /= mulr1 kept_reached.
case: (reached_rcons g h s x) => e; last by rewrite e mul0r -e kept_reached.
rewrite path_weight_rcons e; set D := reached g h s; set w := path_weight 1 h s.
have w0 : 0 <= w by apply: path_weight_ge0; apply: ler01.
have D0 : 0 <= D by apply: (prob_ge0 (lawful_drafts g h)).
have q0 : 0 <= q (h ++ s) x by case: (qP (h ++ s)).
rewrite -mulrA accept_mass //; last exact: scaled_ge0.
rewrite minr_pmulr // le_minr; apply/andP; split; last by rewrite -e; apply: kept_reached.
apply: le_trans (kept_rcons s x ok) _.
have -> : D * scaled p w (h ++ s) x = p (h ++ s) x * (D * w) by rewrite /scaled; ring.
by apply: ler_wpmul2l => //; case: (pP (h ++ s)).
Qed.

Lemma drafts_size g h : surely (fun xs => (size xs <= g)%N) (drafts g h).
Proof.
elim: g h => [|g IH] h f f' e /=; first by rewrite /ret e.
rewrite /drafts /=; case: ifP => _; first by rewrite /ret e.
by apply: total_ext => x; congr (_ * _); apply: IH => xs sz; rewrite /ret e.
Qed.

Lemma law_sum A (m : law R A) g (F : nat -> A -> R) : lawful m ->
  m (fun a => \sum_(0 <= n < g) F n a) = \sum_(0 <= n < g) m (F n).
Proof.
move=> mP; elim: g => [|g IH].
  by rewrite big_geq // -[RHS](law_const mP); apply: (law_ext mP) => a; rewrite big_geq.
rewrite big_nat_recr //= -IH -(law_add mP); apply: (law_ext mP) => a.
by rewrite big_nat_recr.
Qed.

Lemma count_below g t : (t <= g)%N -> \sum_(0 <= n < g) (n < t)%N%:R = t%:R :> R.
Proof.
move=> tg; rewrite (big_cat_nat _ (n := t)) //= [X in _ + X]big1_seq ?addr0; last first.
  by move=> n /andP[_]; rewrite mem_index_iota => /andP[tn _]; rewrite ltnNge tn.
rewrite big_seq (eq_bigr (fun _ => 1)); last by move=> n; rewrite mem_index_iota => /andP[_ ->].
by rewrite -big_seq big_const_nat subn0 iter_addr_0.
Qed.

Lemma rule_kept_words g h : rule_kept g h = \sum_(0 <= n < g) words n.+1 (kept_word g h).
Proof.
have dP := lawful_drafts g h.
have word n : words n.+1 (kept_word g h)
  = drafts g h (fun xs => rule xs (fun r => (n < size xs)%N%:R * (n < r.1)%N%:R)).
  rewrite -(law_words n.+1 (fun xs s => rule xs (fun r => (begins s xs && (size s <= r.1)%N)%:R)) dP).
  apply: (law_ext dP) => xs.
  rewrite -(law_words n.+1 (fun r s => (begins s xs && (size s <= r.1)%N)%:R) (ruleP xs)).
  apply: (law_ext (ruleP xs)) => r; rewrite -(words_begins n.+1 (fun _ => (n < r.1)%N%:R) xs).
  by apply: words_ext => s sz; rewrite -mulnb natrM sz.
have counted t m : (t <= m)%N -> (m <= g)%N -> \sum_(0 <= n < g) (n < m)%N%:R * (n < t)%N%:R = t%:R :> R.
  move=> tm mg; rewrite -[RHS](count_below (leq_trans tm mg)); apply: eq_bigr => n _.
  case: (ltnP n t) => [nt|_]; last by rewrite mulr0.
  by rewrite (leq_trans nt tm) mul1r.
rewrite (eq_bigr _ (fun n _ => word n)) -(law_sum _ _ dP); apply: drafts_size => xs sz.
rewrite -(law_sum _ _ (ruleP xs)); apply: rule_keeps => -[t y] /= le.
by rewrite /= counted.
Qed.

Theorem block_optimal g h : lossless p h (rule_round g h) -> rule_kept g h <= block_kept p q halt 1 g h.
Proof.
move=> ok; rewrite rule_kept_words block_kept_words ?ler01 ?lexx //.
by apply: ler_sum => n _; apply: words_le => s; apply: kept_bound.
Qed.

(** The same in emitted tokens. *)
Theorem block_longest g h : lossless p h (rule_round g h) ->
  rule_round g h (fun o => (size o)%:R) <= block p q halt g h (fun o => (size o)%:R).
Proof.
move=> ok; rewrite block_length //; apply: le_trans (ler_add (lexx 1) (block_optimal ok)).
rewrite -[X in X + _](law_one (lawful_drafts g h)) -(law_add (lawful_drafts g h)).
apply: (law_le (lawful_drafts g h)) => xs; rewrite -[X in X + _](law_one (ruleP xs)) -(law_add (ruleP xs)).
rewrite -[X in X <= _](rule_keeps (f := fun r => 1 + r.1%:R)) // => -[t y] /= le.
by rewrite /ret size_rcons size_takel // -add1n natrD.
Qed.

End BlockOptimal.

(** ** k candidates for one position *)
Section Transport.
Variables (R : realFieldType) (V : vocab).
Variables (p q : V -> R) (k : nat).
Hypothesis qP : dist q.

(** k independent draws from q. *)
Fixpoint draws n : law R (seq V) :=
  if n is n'.+1 then x <~ pick q;; xs <~ draws n';; ret (x :: xs) else ret [::].

Lemma lawful_draws n : lawful (draws n).
Proof.
elim: n => [|n IH] /=; first exact: lawful_ret.
apply: lawful_bind => [|x]; first exact: lawful_pick.
by apply: lawful_bind => // xs; apply: lawful_ret.
Qed.

Definition mass (r : V -> R) (H : pred V) : R := total (fun x => (H x)%:R * r x).

Lemma draws_inside n (H : pred V) : prob (draws n) (all H) = mass q H ^+ n.
Proof.
elim: n => [|n IH]; first by rewrite expr0.
rewrite exprS -IH /mass -total_scaler; apply: total_ext => x.
transitivity (q x * ((H x)%:R * prob (draws n) (all H))); last by ring.
congr (_ * _).
rewrite /prob -(law_scale (lawful_draws n)); apply: (law_ext (lawful_draws n)) => xs.
by rewrite /ret /= -natrM mulnb.
Qed.

(** The emitted token, given the candidates. *)
Variable rule : seq V -> law R V.
Hypothesis ruleP : forall cs, lawful (rule cs).
Hypothesis rule_lossless : forall f, draws k (fun cs => rule cs f) = pick p f.

Definition accepted : R := draws k (fun cs => rule cs (fun y => (y \in cs)%:R)).

Theorem transport_bound (H : pred V) : accepted <= 1 + mass p H - mass q H ^+ k.
Proof.
have dP := lawful_draws k.
have -> : mass p H = draws k (fun cs => rule cs (fun y => (H y)%:R)).
  by rewrite rule_lossless; apply: total_ext => x; rewrite mulrC.
rewrite -draws_inside -[X in X + _ - _](law_one dP) -(law_add dP) -(law_sub dP).
apply: (law_le dP) => cs; rewrite -[X in X + _ - _](law_one (ruleP cs)).
rewrite -[X in _ + _ - X](law_const (ruleP cs)) -(law_add (ruleP cs)) -(law_sub (ruleP cs)).
apply: (law_le (ruleP cs)) => y; case: (boolP (all H cs)) => [/allP inside|_]; last first.
  by rewrite subr0 -[leLHS]addr0 ler_add ?ler0n // lern1 leq_b1.
rewrite addrAC subrr add0r ler_nat.
by case: (boolP (y \in cs)) => // /inside ->.
Qed.

End Transport.

(** For one candidate the bound is 1 - TV, at H = the tokens that q over-supplies,
    and the ratio rule reaches it. *)
Theorem transport_bound_reached_at_one (R : realFieldType) (V : vocab) (p q : V -> R) : dist p -> dist q ->
  keep_rate q (leviathan_step p q) = 1 + mass p (fun x => p x < q x) - mass q (fun x => p x < q x) ^+ 1.
Proof.
move=> pP qP; rewrite leviathan_keep_rate // expr1 /mass -addrA -total_sub.
have [q0 q1] := qP; rewrite -[X in X + _]q1 -total_add; apply: total_ext => x.
by case: ltP => _; rewrite ?mul1r ?mul0r ?subrr ?addr0 // addrC subrK.
Qed.
