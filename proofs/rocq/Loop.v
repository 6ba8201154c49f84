(** The whole decoder: rounds until n tokens or a stop.

    What it says.  If every round is lossless at every state and history and
    emits at least one token, the loop's output is distributed as plain decoding
    with the target ([loop_lossless], [loop_lossless_until]).  The state may hold
    anything and is updated from everything a round saw, rejected drafts included:
    n-gram pools, adaptive trees and lengths, drafters trained online.  The last
    round may overshoot n and is cut; [stop] may end the text inside a round
    (a stop token, a stop string: any property of the history).

    Source: Leviathan et al. 2023, Alg. 1 repeated; the state is ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Round.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Loop.
Variables (R : realFieldType) (V : vocab) (S : Type).
Variable p : seq V -> V -> R.
Hypothesis pP : forall h, dist (p h).
(** The text ends after the first token whose history satisfies [stop]. *)
Variable stop : seq V -> bool.
Variable round : S -> seq V -> law R (seq V * S).
Implicit Types (h o s t : seq V) (x : V) (k : seq V -> R).

(** Plain decoding: at most n tokens, the last of them possibly a stop. *)
Fixpoint plain n h : law R (seq V) :=
  if n is n'.+1 then
    x <~ pick (p h);;
    if stop (rcons h x) then ret [:: x]
    else s <~ plain n' (rcons h x);; ret (x :: s)
  else ret [::].

(** [o] up to and including its first stop. *)
Fixpoint upto_stop h o : seq V :=
  if o is x :: o' then x :: (if stop (rcons h x) then [::] else upto_stop (rcons h x) o') else [::].

Fixpoint stops h o : bool :=
  if o is x :: o' then stop (rcons h x) || stops (rcons h x) o' else false.

(** [fuel] only bounds the recursion; [n] tokens remain to be written. *)
Fixpoint loop fuel n st h : law R (seq V) :=
  if fuel is fuel'.+1 then
    if n == 0%N then ret [::] else
    out <~ round st h;;
    let new := take n out.1 in
    if stops h new then ret (upto_stop h new)
    else rest <~ loop fuel' (n - size new)%N out.2 (h ++ new);; ret (new ++ rest)
  else ret [::].

Lemma plain_target n h k : plain n h k = target p n h (fun s => k (upto_stop h s)).
Proof.
elim: n h k => [|n IH] h k //=; apply: total_ext => x; congr (_ * _); rewrite /bind /ret /=.
case: (stop _); first by rewrite (law_const (lawful_target pP n _)).
exact: (IH _ (fun s => k (x :: s))).
Qed.

Lemma upto_stop_cat h o s :
  upto_stop h (o ++ s) = if stops h o then upto_stop h o else o ++ upto_stop (h ++ o) s.
Proof.
elim: o h => [|x o IH] h /=; first by rewrite cats0.
case: (stop _) => //=; rewrite IH cat_rcons.
by case: (stops _ _).
Qed.

Hypothesis round_lossless : forall st h, lossless p h (out <~ round st h;; ret out.1).
Hypothesis round_emits : forall st h, surely (fun out => (0 < size out.1)%N) (round st h).

Theorem loop_lossless_until fuel n st h k : (n <= fuel)%N -> loop fuel n st h k = plain n h k.
Proof.
elim: fuel n st h k => [|fuel IH] [|n] st h k // le.
rewrite plain_target -(round_lossless st h n.+1) [LHS]/= /bind /ret.
apply: round_emits => -[o st'] /= o0.
have shorter : (n.+1 - size (take n.+1 o) <= fuel)%N.
  by case: o o0 => //= x o _; rewrite subSS (leq_trans (leq_subr _ _)).
rewrite -[RHS]/(complete p n.+1 h o (fun s => k (upto_stop h s))).
set new := take n.+1 o in shorter *; rewrite complete_cat -/new complete_nil.
have cut s : k (upto_stop h (new ++ s))
  = if stops h new then k (upto_stop h new) else k (new ++ upto_stop (h ++ new) s).
  by rewrite upto_stop_cat; case: ifP.
case: (boolP (stops h new)) => [yes|no].
  rewrite -[LHS](law_const (lawful_target pP (n.+1 - size new) (h ++ new))).
  by apply: law_ext => [|s]; [apply: lawful_target | rewrite cut yes].
rewrite (IH _ _ _ (fun s => k (new ++ s))) // plain_target.
by apply: law_ext => [|s]; [apply: lawful_target | rewrite cut (negbTE no)].
Qed.

End Loop.

Arguments plain {R V} p stop n h.
Arguments loop {R V S} stop round fuel n st h.

(** Without stop tokens: exactly n tokens of the target. *)
Theorem loop_lossless (R : realFieldType) (V : vocab) (S : Type) (p : seq V -> V -> R)
    (round : S -> seq V -> law R (seq V * S)) n st h k :
  (forall h, dist (p h)) ->
  (forall st h, lossless p h (out <~ round st h;; ret out.1)) ->
  (forall st h, surely (fun out => (0 < size out.1)%N) (round st h)) ->
  loop xpred0 round n n st h k = target p n h k.
Proof.
by move=> pP okR emR; rewrite (loop_lossless_until pP).
Qed.

(** The hypotheses have an instance: a "round" that is one target draw. *)
Lemma loop_instance (R : realFieldType) (V : vocab) (p : seq V -> V -> R) (h : seq V) :
  (forall h, dist (p h)) ->
  let round (_ : unit) h := o <~ target p 1 h;; ret (o, tt) in
  [/\ lawful (round tt h), lossless p h (out <~ round tt h;; ret out.1)
    & surely (fun out => (0 < size out.1)%N) (round tt h)].
Proof.
move=> pP; split.
- by apply: lawful_bind => [|o]; [apply: lawful_target | apply: lawful_ret].
- exact: (target_lossless pP 1 h).
- by move=> f g e; apply: total_ext => x; congr (_ * _); apply: e.
Qed.
