(** Medusa's two modes as they run, on blocks of candidates.

    What it says.
    - [typical]  the longest path whose every node passes a threshold, the likeliest of
      those, the last drafted of those; then the argmax.  No coin falls:
      [typical_tv]  whatever the block, the emitted word w is off by exactly 1 - p(w);
      [typical_lossless_iff]  it is lossless iff the target always says w itself.
    - [nucleus]  every leaf draws along its own path; the longest agreeing path wins; then a
      fresh draw.  [nucleus_first_token]  with all leaves below one candidate c its first
      token has the law [nucleus_node] of Typical.v, hence that distance from the row.
    The threshold is a number per history: min(eps, delta exp(-H)) is a float in every
    program, and any number will do here.

    Source: Cai et al. 2024 (Medusa), evaluate_posterior.
    Runs in: refengine/exact/rules/typical.py, nucleus.py. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Drift Typical.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Typical.
Variables (R : realFieldType) (V : vocab).
Variable p : seq V -> V -> R.
Implicit Types (h s : seq V) (x y : V).

(** A block as programs keep it: the token of each node and where it hangs, 0 for the
    root and i.+1 for node i. *)
Definition candidate := (V * nat)%type.
Implicit Types (c : candidate) (b : seq candidate).

(** A node's path and its likelihood; [None] where the path does not pass. *)
Definition standing := option (seq V * R).
Implicit Types (passes : seq V -> V -> bool) (nodes : seq standing).

Definition over (theta : seq V -> R) h x : bool := theta h < p h x.
Definition at_least (theta : seq V -> R) h x : bool := theta h <= p h x.

Definition extend passes h nodes c : seq standing :=
  rcons nodes (if nth None nodes c.2 is Some a then
    if passes (h ++ a.1) c.1 then Some (rcons a.1 c.1, a.2 * p (h ++ a.1) c.1) else None
  else None).
Definition better (a a' : seq V * R) := (size a.1 < size a'.1)%N || ((size a.1 == size a'.1) && (a.2 <= a'.2)).
Definition pick_best (best : seq V * R) (a : standing) :=
  if a is Some a' then (if better best a' then a' else best) else best.

Definition longest_passing passes h b : seq V :=
  (foldl pick_best ([::], 1) (foldl (extend passes h) [:: Some ([::], 1)] b)).1.
Definition typical passes (argmax : seq V -> V) h b : seq V :=
  let s := longest_passing passes h b in rcons s (argmax (h ++ s)).

Lemma typical_emits passes argmax h b : (0 < size (typical passes argmax h b))%N.
Proof. by rewrite size_rcons. Qed.

(** Nothing on the emitted path fell short. *)
Fixpoint along passes h s : bool := if s is x :: s' then passes h x && along passes (rcons h x) s' else true.

Lemma along_rcons passes h s x : along passes h (rcons s x) = along passes h s && passes (h ++ s) x.
Proof. by elim: s h => [|y s IH] h /=; rewrite ?cats0 ?andbT // IH cat_rcons andbA. Qed.

Theorem typical_path_passes passes h b : along passes h (longest_passing passes h b).
Proof.
pose sound (a : standing) := if a is Some a' then along passes h a'.1 else true.
have grown start : all sound start -> all sound (foldl (extend passes h) start b).
  elim: b start => [|c b IH] start //= sP; apply: IH.
  rewrite all_rcons sP andbT; case: (ltnP c.2 (size start)) => [lt|ge]; last by rewrite nth_default.
  have := all_nthP None sP _ lt; case: (nth None start c.2) => [a|] //= aP.
  by case: ifP => // go; rewrite /= along_rcons aP go.
have ok := grown [:: Some ([::], 1)] isT; rewrite /longest_passing.
move: (foldl _ _ b) ok => nodes ok.
suff gen best : along passes h best.1 -> along passes h (foldl pick_best best nodes).1 by apply: gen.
elim: nodes ok best => [|[a|] ns IH] //= /andP[aP nP] best bP; apply: IH => //=.
by case: ifP.
Qed.

(** ** Distance of a word that is emitted whatever the coins *)
Hypothesis pP : forall h, dist (p h).

Definition word_prob h (w : seq V) : R := target p (size w) h (fun s => (s == w)%:R).

Lemma word_prob_cons h x s : word_prob h (x :: s) = p h x * word_prob (rcons h x) s.
Proof.
rewrite -[RHS](total_pick x (fun y => p h y * word_prob (rcons h y) s)).
apply: total_ext => y; rewrite mulrCA; congr (_ * _); have tP z := lawful_target pP (size s) (rcons h z).
rewrite -(law_scale (tP y)); apply: (law_ext (tP y)) => o.
by rewrite /ret eqseq_cons -mulnb natrM.
Qed.

Lemma word_prob01 h w : 0 <= word_prob h w <= 1.
Proof. by rewrite (prob_ge0 (lawful_target pP _ h) (eq_op^~ w)) (prob_le1 (lawful_target pP _ h) (eq_op^~ w)). Qed.

(** No test of the next |w| tokens sees more than 1 - p(w), and "is it w" sees all of it. *)
Theorem forced_output_tv h w :
  (forall f, unit_test f -> f w - target p (size w) h f <= 1 - word_prob h w)
  /\ (w == w)%:R - target p (size w) h (fun s => (s == w)%:R) = 1 - word_prob h w.
Proof.
have tP := lawful_target pP (size w) h; split=> [f f01|]; last by rewrite eqxx.
have /andP[fw0 fw1] := f01 w; have /andP[_ w1] := word_prob01 h w.
have low : f w * word_prob h w <= target p (size w) h f.
  rewrite -(law_scale tP); apply: (law_le tP) => s; case: eqP => [->|_]; rewrite ?mulr1 ?mulr0 //.
  by case/andP: (f01 s).
apply: le_trans (ler_sub (lexx _) low) _; rewrite -subr_ge0.
have -> : 1 - word_prob h w - (f w - f w * word_prob h w) = (1 - f w) * (1 - word_prob h w) by ring.
by rewrite mulr_ge0 ?subr_ge0.
Qed.

Theorem forced_output_lossless_iff h w : lossless p h (ret w) <-> word_prob h w = 1.
Proof.
split=> [ok|].
  by rewrite /word_prob -ok /ret complete_cut // take_size eqxx.
elim: w h => [|x s IH] h; first by move=> _ n k; rewrite /ret complete_nil.
rewrite word_prob_cons => one; have [p0 p1] := pP h; have /andP[s0 s1] := word_prob01 (rcons h x) s.
have px1 : p h x <= 1 by rewrite -p1; apply: total_ge_term.
have px : p h x = 1.
  by apply/eqP; rewrite eq_le px1 -one -[leRHS]mulr1 ler_wpmul2l.
have sx : word_prob (rcons h x) s = 1 by rewrite px mul1r in one.
have only f : pick (p h) f = f x.
  have z : total (fun y => (y != x)%:R * p h y) = 0.
    rewrite (total_ext (g := fun y => p h y - (y == x)%:R * p h y)); last first.
      by move=> y; case: eqP => _; rewrite ?mul1r ?mul0r ?subrr ?subr0.
    by rewrite total_sub p1 total_pick px subrr.
  have z0 y : 0 <= (y != x)%:R * p h y by rewrite mulr_ge0 ?ler0n.
  rewrite -(total_pick x f); apply: total_ext => y; have := total_eq0 z0 z y.
  by case: eqP => [->|_]; rewrite ?px // !mul1r => ->; rewrite !mul0r.
move=> [|n] k; first by [].
rewrite [RHS]only; exact: (IH (rcons h x) sx n (fun t => k (x :: t))).
Qed.

Theorem typical_tv passes argmax h b : let w := typical passes argmax h b in
  (forall f, unit_test f -> f w - target p (size w) h f <= 1 - word_prob h w)
  /\ (w == w)%:R - target p (size w) h (fun s => (s == w)%:R) = 1 - word_prob h w.
Proof. exact: forced_output_tv. Qed.

Theorem typical_lossless_iff passes argmax h b : let w := typical passes argmax h b in
  lossless p h (ret w) <-> word_prob h w = 1.
Proof. exact: forced_output_lossless_iff. Qed.

End Typical.

Section Nucleus.
Variables (R : realFieldType) (V : vocab).
Implicit Types (h s : seq V) (x y : V) (b : seq (candidate V)).

(** Kept: what stands before x, heavier or equal and listed first, has less than [top] of the mass. *)
Definition before (r : V -> R) x y : bool := (r x < r y) || ((r x == r y) && (index y (tokens V) < index x (tokens V))%N).
Definition kept (top : R) (r : V -> R) x : bool := total (fun y => (before r x y)%:R * r y) < top * total r.
Definition filtered top (p : seq V -> V -> R) h : V -> R := nucleus_row (p h) (kept top (p h)).

Variables (r : seq V -> V -> R) (fast : bool) (argmax : seq V -> V).

Definition paths b : seq (seq V) := foldl (fun ps c => rcons ps (rcons (nth [::] ps c.2) c.1)) [:: [::]] b.
(** The paths of the leaves, the last drafted first. *)
Definition leaves b : seq (seq V) :=
  [seq nth [::] (paths b) j.+1 | j <- rev (iota 0 (size b)) & ~~ has (fun c => c.2 == j.+1) b].

Fixpoint agreeing h s : law R nat :=
  if s is x :: s' then
    y <~ pick (r h);; if y == x then n <~ agreeing (rcons h x) s';; ret n.+1 else ret 0%N
  else ret 0%N.
Fixpoint longest_agreeing h ss best : law R (seq V) :=
  if ss is s :: ss' then n <~ agreeing h s;; longest_agreeing h ss' (if (size best < n)%N then take n s else best)
  else ret best.
Definition nucleus_paths h ss : law R (seq V) :=
  s <~ longest_agreeing h ss [::];;
  if fast then ret (rcons s (argmax (h ++ s))) else y <~ pick (r (h ++ s));; ret (rcons s y).
Definition nucleus h b : law R (seq V) := nucleus_paths h (leaves b).

Hypothesis rP : forall h, dist (r h).

Lemma lawful_agreeing h s : lawful (agreeing h s).
Proof.
elim: s h => [|x s IH] h /=; first exact: lawful_ret.
apply: lawful_bind => [|y]; first exact: lawful_pick.
case: ifP => _; last exact: lawful_ret.
by apply: lawful_bind => // n; apply: lawful_ret.
Qed.

Lemma lawful_longest h ss best : lawful (longest_agreeing h ss best).
Proof.
elim: ss best => [|s ss IH] best /=; first exact: lawful_ret.
by apply: lawful_bind => [|n]; [apply: lawful_agreeing | apply: IH].
Qed.

(** Once something agreed, the first token is c for good. *)
Lemma longest_keeps h ss c best F : all (fun s => ohead s == Some c) ss -> ohead best == Some c ->
  longest_agreeing h ss best (fun s => F (ohead s)) = F (Some c).
Proof.
elim: ss best => [|s ss IH] best /=; first by move=> _ /eqP e; rewrite /ret e.
case/andP=> /eqP sc ssc bc; rewrite /bind -[RHS](law_const (lawful_agreeing h s)).
apply: (law_ext (lawful_agreeing h s)) => n; apply: IH => //.
by case: ifP => // lt; case: n lt => [|n] //; case: s sc => [|x s] //= [->].
Qed.

Lemma longest_first h ss c F : all (fun s => ohead s == Some c) ss ->
  longest_agreeing h ss [::] (fun s => F (ohead s))
  = (1 - (1 - r h c) ^+ size ss) * F (Some c) + (1 - r h c) ^+ size ss * F None.
Proof.
elim: ss => [|s ss IH] /=; first by move=> _; rewrite expr0 subrr mul0r add0r mul1r.
case/andP=> /eqP; case: s => [|x s] //= [->] ssc; rewrite /bind /=.
pose D := (1 - (1 - r h c) ^+ size ss) * F (Some c) + (1 - r h c) ^+ size ss * F None.
rewrite [LHS](_ : _ = pick (r h) (fun y => (y == c)%:R * (F (Some c) - D) + D)); last first.
  apply: total_ext => y; congr (_ * _); case: eqP => _; last by rewrite /ret /= mul0r add0r IH.
  have aP := lawful_agreeing (rcons h c) s; rewrite mul1r subrK -[RHS](law_const aP).
  by apply: (law_ext aP) => n; rewrite /ret /=; apply: longest_keeps => /=.
have pP := lawful_pick (rP h); rewrite (law_add pP) (law_const pP) (law_scaler pP).
have -> : pick (r h) (fun y => (y == c)%:R) = r h c.
  by rewrite -[RHS](total_pick c (r h)); apply: total_ext => y; rewrite mulrC.
by rewrite /D exprS; ring.
Qed.

Theorem nucleus_first_token h ss c f : fast = false -> all (fun s => ohead s == Some c) ss ->
  nucleus_paths h ss (fun o => f (head c o)) = pick (nucleus_node (r h) c (size ss)) f.
Proof.
move=> slow ssc; rewrite /nucleus_paths /bind slow.
pose F o := if o is Some x then f x else pick (r h) f.
rewrite [LHS](_ : _ = longest_agreeing h ss [::] (fun s => F (ohead s))); last first.
  apply: (law_ext (lawful_longest h ss [::])) => -[|x s] /=; rewrite ?cats0 //.
  by rewrite /ret /=; apply: (law_const (lawful_pick (rP _))).
rewrite (longest_first h F ssc) /F /pick /nucleus_node -(total_pick c f) -!total_scale -total_add.
by apply: total_ext => x; rewrite /point; ring.
Qed.

(** So a first candidate shared by m leaves comes out too often by this much. *)
Theorem nucleus_first_token_tv h ss c : fast = false -> all (fun s => ohead s == Some c) ss ->
  tv (fun x => nucleus_paths h ss (fun o => (head c o == x)%:R)) (r h) = (1 - r h c) * (1 - (1 - r h c) ^+ size ss).
Proof.
move=> slow ssc; rewrite -nucleus_node_tv //; congr (_ * _); apply: total_ext => x.
rewrite (nucleus_first_token _ (fun y => (y == x)%:R) slow ssc); congr `|_ - _|.
by rewrite -[RHS](total_pick x (nucleus_node (r h) c (size ss))); apply: total_ext => y; rewrite mulrC.
Qed.

End Nucleus.
