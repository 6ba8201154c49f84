(** Chains: draft gamma tokens first, then verify them left to right.

    What it says.  [chain_lossless]: any step that is lossless on one draft token
    (Single.v) is lossless on a whole block, bonus token included.  Target and
    draft rows depend on the whole history; [halt h] ends the block before the
    next token is drawn and may use anything known then - the draft's row, a
    confidence, and the token kept last - so confidence truncation and history-
    dependent gamma are inside the theorem.  [chain_length] counts the tokens.

    Source: Leviathan et al. 2023, Alg. 1; Chen et al. 2023, Alg. 2. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Draft.
Variables (R : realFieldType) (V : vocab).
Variables (q : seq V -> V -> R) (halt : seq V -> bool).

(** At most [g] tokens from the draft's rows, fewer where [halt] says so. *)
Fixpoint draft g h : law R (seq V) :=
  if g is g'.+1 then
    if halt h then ret [::]
    else x <~ pick (q h);; xs <~ draft g' (rcons h x);; ret (x :: xs)
  else ret [::].

Lemma lawful_draft g h : (forall h, ~~ halt h -> dist (q h)) -> lawful (draft g h).
Proof.
move=> qP; elim: g h => [|g IH] h /=; first exact: lawful_ret.
case: (boolP (halt h)) => [_|go]; first exact: lawful_ret.
apply: lawful_bind => [|x]; first by apply/lawful_pick/qP.
by apply: lawful_bind => // xs; apply: lawful_ret.
Qed.

End Draft.

Arguments draft {R V} q halt g h.

(** A verdict is one of finitely many things, so its law is a finite sum. *)
Lemma law_verdict (R : realFieldType) (V : vocab) (m : law R (verdict V)) f : lawful m ->
  m f = m (fun o => (~~ isSome o)%:R) * f None + total (fun y => m (fun o => (o == Some y)%:R) * f (Some y)).
Proof.
move=> mP; rewrite -(law_scaler mP) (total_ext (g := fun y => m (fun o => (o == Some y)%:R * f (Some y)))); last first.
  by move=> y; rewrite (law_scaler mP).
rewrite -(law_total mP) -(law_add mP); apply: (law_ext mP) => -[y|] /=.
  rewrite mul0r add0r -(total_pick y (fun y => f (Some y))); apply: total_ext => x.
  by rewrite eq_sym.
rewrite mul1r -[LHS]addr0; congr (_ + _).
by rewrite -[LHS](@total0 R V); apply: total_ext => y; rewrite mul0r.
Qed.

Section Chain.
Variables (R : realFieldType) (V : vocab).
Variables (p q : seq V -> V -> R) (halt : seq V -> bool).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, ~~ halt h -> dist (q h).
Variable step : seq V -> V -> law R (verdict V).
Implicit Types (h xs o : seq V) (x y : V) (k : seq V -> R).

Fixpoint verify h xs : law R (seq V) :=
  if xs is x :: xs' then
    v <~ step h x;;
    if v is Some y then ret [:: y]
    else rest <~ verify (rcons h x) xs';; ret (x :: rest)
  else bonus <~ pick (p h);; ret [:: bonus].

Definition chain g h : law R (seq V) := xs <~ draft q halt g h;; verify h xs.

Hypothesis stepP : forall h x, lawful (step h x).

Lemma lawful_verify h xs : lawful (verify h xs).
Proof.
elim: xs h => [|x xs IH] h /=.
  by apply: lawful_bind => [|y]; [apply: lawful_pick | apply: lawful_ret].
apply: lawful_bind => [|[y|]]; [exact: stepP | exact: lawful_ret |].
by apply: lawful_bind => // o; apply: lawful_ret.
Qed.

Lemma lawful_chain g h : lawful (chain g h).
Proof. by apply: lawful_bind => [|xs]; [apply: lawful_draft | apply: lawful_verify]. Qed.

(** Drafting the whole block first is the same as drafting token by token. *)
Lemma chain_step g h k : ~~ halt h ->
  chain g.+1 h k =
  pick (q h) (fun x => step h x (fun v =>
    if v is Some y then k [:: y] else chain g (rcons h x) (fun o => k (x :: o)))).
Proof.
move=> go; rewrite /chain {1}/bind /= (negbTE go); apply: total_ext => x; congr (_ * _).
have dP : lawful (draft q halt g (rcons h x)) by apply: lawful_draft.
rewrite {1}/bind /ret [RHS]law_verdict // -(law_scale dP) -[X in _ + X](law_const dP) -(law_add dP).
by apply: (law_ext dP) => xs; apply: (law_verdict _ (stepP h x)).
Qed.

Lemma chain_halt g h k : halt h || (g == 0)%N -> chain g h k = pick (p h) (fun y => k [:: y]).
Proof. by rewrite /chain /bind; case: g => [|g] //=; rewrite orbF => ->. Qed.

Lemma bonus_lossless n h k : pick (p h) (fun y => complete p n.+1 h [:: y] k) = target p n.+1 h k.
Proof. by rewrite /=; apply: total_ext => y; rewrite complete_nil. Qed.

Theorem chain_lossless g h :
  (forall h, ~~ halt h -> step_lossless (p h) (q h) (step h)) -> lossless p h (chain g h).
Proof.
move=> ok; elim: g h => [|g IH] h [|n] k; try exact: (law_const (lawful_chain _ _)).
  by rewrite chain_halt ?orbT // bonus_lossless.
case: (boolP (halt h)) => [yes|go].
  by rewrite chain_halt ?yes // bonus_lossless.
rewrite chain_step // -[RHS](ok h go); apply: total_ext => x; congr (_ * _).
apply: (law_ext (stepP h x)) => -[y|] /=; first by rewrite complete_nil.
exact: (IH (rcons h x) n (fun s => k (x :: s))).
Qed.

(** Expected number of emitted tokens, exactly, without any independence. *)
Definition chain_length g h : R := chain g h (fun o => (size o)%:R).

Lemma chain_length_halt g h : halt h || (g == 0)%N -> chain_length g h = 1.
Proof. by move=> e; rewrite /chain_length chain_halt //; apply: law_one; apply: lawful_pick. Qed.

Theorem chain_length_rec g h : ~~ halt h ->
  chain_length g.+1 h =
  1 + total (fun x => q h x * step h x (fun v => (~~ isSome v)%:R) * chain_length g (rcons h x)).
Proof.
move=> go; have [q0 q1] := qP go; rewrite /chain_length chain_step // -[X in X + total _]q1 -total_add.
apply: total_ext => x; rewrite -mulrA -[X in X + _]mulr1 -mulrDr; congr (_ * _).
have sP := stepP h x; rewrite -[X in X + _](law_one sP) -(law_scaler sP) -(law_add sP).
apply: (law_ext sP) => -[y|] /=; first by rewrite mul0r addr0.
have cP := lawful_chain g (rcons h x); rewrite mul1r -[X in X + _](law_one cP) -(law_add cP).
by apply: (law_ext cP) => o; rewrite -add1n natrD.
Qed.

Lemma chain_emits g h : surely (fun o => (0 < size o)%N) (chain g h).
Proof.
move=> f f' e; apply: (law_ext (lawful_draft g h qP)) => xs.
case: xs => [|x xs] /=; first by apply: total_ext => y; rewrite /ret e.
apply: (law_ext (stepP h x)) => -[y|]; first by rewrite /ret e.
by apply: (law_ext (lawful_verify _ _)) => o; rewrite /ret e.
Qed.

Lemma chain_length_ge1 g h : 1 <= chain_length g h.
Proof.
have cP := lawful_chain g h; rewrite /chain_length -[leLHS](law_one cP).
rewrite (chain_emits g h (f := fun o => (size o)%:R) (g := fun o => (maxn 1 (size o))%:R)); last first.
  by move=> o o0; rewrite (maxn_idPr o0).
by apply: (law_le cP) => o; rewrite ler1n leq_maxl.
Qed.

End Chain.

Arguments verify {R V} p step h xs.
Arguments chain {R V} p q halt step g h.
