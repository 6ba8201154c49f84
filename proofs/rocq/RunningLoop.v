(** The loop that runs is the loop that the theorems are about, and with its rules it is lossless.

    What it says.  [py_generate] and [py_plain] are the text of refengine/exact/loop.py.
    For every target, drafter, rule, prompt, limit and set of stop tokens:
    - [plain_runs]      the program [plain] has the law of [plain] of Loop.v;
    - [generate_runs]   the program [generate] has the law of [loop] of Loop.v, if its rounds
                        always emit: limit, stop tokens and the cut of the last round are
                        those of the theorem, and no error is met;
    - [generate_is_plain]  so with rounds that are lossless the two programs have one law;
    - [leviathan_generates], [block_generates]  that is so of the programs leviathan.py and
                        block.py, whatever the draft and wherever it halts.

    Source: ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Round Loop Chain Leviathan Block Loops Python Translated Running.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Generate.
Variables (R : realFieldType) (V : vocab) (raised : law R (seq V)).
Variables (p : seq V -> V -> R) (stop : V -> bool) (prompt : seq V).
Hypothesis pP : forall h, dist (p h).
Implicit Types (h o s said : seq V) (x : V) (k : seq V -> R).

(** The history ends with a stop token. *)
Definition ends h : bool := if rev h is x :: _ then stop x else false.

Lemma ends_rcons h x : ends (rcons h x) = stop x.
Proof. by rewrite /ends rev_rcons. Qed.

Lemma plain_ext n h k k' : k =1 k' -> plain p ends n h k = plain p ends n h k'.
Proof. by move=> e; rewrite !plain_target //; apply: (law_ext (lawful_target pP _ _)) => s; rewrite e. Qed.

Lemma while_turn S fuel (st : S) test (body : S -> (S -> law R (seq V)) -> (S -> law R (seq V)) -> law R (seq V)) after :
  while_do raised fuel.+1 st test body after
  = if test st then body st (fun st' => while_do raised fuel st' test body after) after else after st.
Proof. by []. Qed.

Theorem plain_runs n k : py_plain raised p prompt n stop k = plain p ends n prompt k.
Proof.
rewrite /py_plain; cbv zeta; set more := (fun 'said => _); set body := (fun 'said => _); set after := (fun 'said => _).
suff turns fuel said : (n - size said <= fuel)%N ->
    while_do raised fuel.+1 said more body after k
    = plain p ends (n - size said) (prompt ++ said) (fun s => k (said ++ s)).
  by rewrite turns ?subn0 //= cats0.
elim: fuel said => [|fuel IH] said enough; rewrite while_turn {1}/more; case: ltnP => [lt|ge].
- by rewrite leqn0 subn_eq0 leqNgt lt in enough.
- by move: ge; rewrite -subn_eq0 => /eqP ->; rewrite /= /after /ret cats0.
- rewrite {1}/body (choose_dist raised) // -(subnSK lt) [RHS]/=; apply: total_ext => x; congr (_ * _).
  rewrite ends_rcons /bind /ret; case: (stop x); first by rewrite /after /ret.
  rewrite IH size_cat /= addn1; last by rewrite -ltnS (subnSK lt).
  by rewrite catA cats1; apply: plain_ext => s; rewrite -catA.
- by move: ge; rewrite -subn_eq0 => /eqP ->; rewrite /= /after /ret cats0.
Qed.

(** One round, as the loop of Loop.v sees it: the drafter proposes, the rule answers, nothing is remembered. *)
Variables (drafter : seq V -> law R (flat_block R V)).
Variable rule : seq (V -> R) -> flat_block R V -> law R (outcome V).
Definition loop_round (_ : unit) h : law R (seq V * unit) :=
  b <~ drafter h;; o <~ rule (target_rows p h b) b;; ret (o.1, tt).
Hypothesis round_emits : forall h, surely (fun out => (0 < size out.1)%N) (loop_round tt h).

(** The inner loop writes a round's tokens, up to a stop or the limit. *)
Definition writing n o said (again : seq V -> law R (seq V)) : law R (seq V) :=
  for_in o said (fun token said next _ =>
      let said := said ++ [:: token] in
      let either := fun holds : bool => if holds then ret said else next said in
      if stop token then either true else either (size said == n))
    again.

Lemma written n o said again k : (size said < n)%N ->
  writing n o said again k
  = let new := take (n - size said) o in
    if stops ends (prompt ++ said) new || (n - size said <= size o)%N
    then k (said ++ upto_stop ends (prompt ++ said) new) else again (said ++ o) k.
Proof.
rewrite /writing; elim: o said => [|x o IH] said lt /=; first by rewrite leqn0 subn_eq0 leqNgt lt /= cats0.
rewrite -(subnSK lt) [in RHS]/= ends_rcons /ret; case: (stop x) => //=.
have sz : size (said ++ [:: x]) = (size said).+1 by rewrite size_cat addn1.
rewrite sz; case: eqP => [e|/eqP ne]; first by rewrite -e subnn take0.
have := IH (said ++ [:: x]); rewrite sz ltn_neqAle ne lt => /(_ isT) -> /=.
by rewrite rcons_cat -cats1 ltnS -!catA.
Qed.

Lemma loop_ext fuel n h k k' : k =1 k' -> loop ends loop_round fuel n tt h k = loop ends loop_round fuel n tt h k'.
Proof.
elim: fuel n h k k' => [|fuel IH] n h k k' e /=; first exact: e.
case: eqP => _; first exact: e.
apply: round_emits => -[o []] /= _; case: ifP => _; first exact: e.
by apply: IH => s; rewrite /ret e.
Qed.

Lemma upto_none h o : stops ends h o = false -> upto_stop ends h o = o.
Proof. by move=> none; have := upto_stop_cat ends h o [::]; rewrite none !cats0. Qed.

Theorem generate_runs n k :
  py_generate raised p drafter rule prompt n stop k = loop ends loop_round n n tt prompt k.
Proof.
rewrite /py_generate; cbv zeta; set more := (fun 'said => _); set body := (fun 'said => _); set after := (fun 'said => _).
suff turns fuel said : (n - size said <= fuel)%N ->
    while_do raised fuel.+1 said more body after k
    = loop ends loop_round fuel (n - size said)%N tt (prompt ++ said) (fun s => k (said ++ s)).
  by rewrite turns ?subn0 //= cats0.
elim: fuel said => [|fuel IH] said enough; rewrite while_turn {1}/more; case: ltnP => [lt|ge].
- by rewrite leqn0 subn_eq0 leqNgt lt in enough.
- by rewrite /= /after /ret cats0.
- pose again said' := while_do raised fuel.+1 said' more body after.
  have -> : body said again after k = loop_round tt (prompt ++ said) (fun out => writing n out.1 said again k) by [].
  rewrite [RHS]/= subn_eq0 leqNgt lt; apply: round_emits => -[o []] /= o0; rewrite written //; cbv zeta.
  set new := take _ o; case: (boolP (stops ends _ new)) => [_|/negbTE none]; first exact: erefl.
  rewrite orFb upto_none //; case: leqP => [ends_here|goes_on]; rewrite /bind /ret.
    by rewrite size_takel // subnn; case: (fuel) => [|fuel'] /=; rewrite /ret cats0.
  rewrite /new take_oversize ?(ltnW goes_on) // /again IH; last first.
    by rewrite size_cat subnDA leq_subLR (leq_trans enough) // -add1n leq_add2r.
  by rewrite size_cat subnDA catA; apply: loop_ext => s; rewrite catA.
- by move: ge; rewrite -subn_eq0 => /eqP ->; rewrite /= /after /ret cats0.
Qed.

Theorem generate_is_plain n k : (forall h, lossless p h (out <~ loop_round tt h;; ret out.1)) ->
  py_generate raised p drafter rule prompt n stop k = py_plain raised p prompt n stop k.
Proof. by move=> ok; rewrite generate_runs plain_runs; apply: loop_lossless_until => // -[] h. Qed.

End Generate.

(** ** The programs of chains, through the program of the loop *)
Section Chains.
Variables (R : realFieldType) (V : vocab) (raised : law R (seq V)) (raised_by_rule : answer R V).
Variables (p : seq V -> V -> R) (stop : V -> bool) (prompt : seq V).
(** The draft's rows, where it halts and how long it may be, from where the round starts. *)
Variables (q : seq V -> seq V -> V -> R) (halt : seq V -> seq V -> bool) (gamma : seq V -> nat).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall start h, dist (q start h).
Implicit Types (h xs : seq V) (k : seq V -> R).

Definition chain_drafter h : law R (flat_block R V) :=
  xs <~ draft (q h) (halt h) (gamma h) h;; ret (drafted_chain (q h) h xs).

Lemma rows_of_a_chain h xs : target_rows p h (drafted_chain (q h) h xs) = rows_of_chain p h xs.
Proof.
apply/eq_in_map => u; rewrite mem_iota add0n ltnS /= => le; congr (p (_ ++ _)).
elim: u le => [|j IH] lt /=; first by rewrite take0.
by rewrite nth_iota // IH ?(ltnW lt) // -[in RHS]addn1 takeD.
Qed.

(** A program that emits on every chain that can be drawn, and is lossless over all of them. *)
Lemma program_generates (program : seq (V -> R) -> flat_block R V -> answer R V) n k :
  (forall h xs, drawable (q h) h xs ->
     surely (fun o => (0 < size o.1)%N) (program (rows_of_chain p h xs) (drafted_chain (q h) h xs))) ->
  (forall h, lossless p h (round_of p (q h) program (halt h) (gamma h) h)) ->
  py_generate raised p chain_drafter program prompt n stop k = py_plain raised p prompt n stop k.
Proof.
move=> emits ok; apply: generate_is_plain => // [h f f' e|h m f].
  apply: (draft_drawable (qP h)) => xs drawn; rewrite /bind /ret rows_of_a_chain.
  by apply: emits => // o o0; apply: e.
rewrite -(ok h m f); apply: (draft_drawable (qP h)) => xs drawn.
by rewrite /bind /ret rows_of_a_chain.
Qed.

Theorem leviathan_generates n k :
  py_generate raised p chain_drafter (py_leviathan raised_by_rule) prompt n stop k = py_plain raised p prompt n stop k.
Proof.
apply: program_generates => [h xs drawn f f' e|h]; last exact: leviathan_program_lossless.
rewrite !leviathan_runs //; apply: (verify_emits pP) => [h' x|o o0]; last exact: e.
exact: lawful_leviathan_at.
Qed.

Theorem block_generates n k :
  py_generate raised p chain_drafter (py_block raised_by_rule) prompt n stop k = py_plain raised p prompt n stop k.
Proof.
apply: program_generates => [h xs drawn f f' e|h]; last exact: block_program_lossless.
have [d _] := a_token (pP h).
by rewrite !(block_runs _ _ _ d) //; apply: block_verify_emits => // o o0; apply: e.
Qed.

End Chains.
