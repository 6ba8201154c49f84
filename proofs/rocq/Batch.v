(** A batch whose lanes share a budget of draft tokens.

    What it says.  A scheduler asks, again and again, which lane drafts one more token, or
    whether the batch is verified now; it may see every token that any lane has drafted,
    and draw lots.  What is drafted is verified.
    - [batch_lossless]   then the lanes' outputs together, completed to n tokens each, have
      the law of n target tokens for each lane, independently: every lane is lossless, and
      no lane learns of another;
    - [budget_lossless], [budget_is_kept]   so with a budget: it stops at [budget] drafts.
    - [cut_to_the_budget_is_lossy]  a scheduler that drafts first and then drops what is
      least likely until the budget holds: p = (1/2, 1/2) comes out as (19/32, 13/32) in
      the first lane; [cut_by_the_other_lane]  dropped for what the other lane drew alone,
      nothing is lost.

    Source: ours; the budget is the batched form of Truncation.v. *)

From Coq Require Import Qcanon.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Chain Leviathan Rational Counterexamples.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Batch.
Variables (R : realFieldType) (V : vocab).
(** One target; lane [i] has a drafter and a step of verification of its own. *)
Variables (p : seq V -> V -> R) (q : nat -> seq V -> V -> R) (step : nat -> seq V -> V -> law R (verdict V)).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall i h, dist (q i h).
Hypothesis stepP : forall i h x, lawful (step i h x).
Hypothesis step_ok : forall i h, step_lossless (p h) (q i h) (step i h).

(** A lane: its text, and what it has drafted after it. *)
Definition lane : Type := (seq V * seq V)%type.
Implicit Types (h d : seq V) (x : V) (lanes : seq lane).

(** Lane [i] drafts x as well. *)
Fixpoint drafted i x lanes : seq lane :=
  if lanes is l :: ls then (if i is i'.+1 then l :: drafted i' x ls else (l.1, rcons l.2 x) :: ls) else [::].

Definition next_row i lanes : V -> R := let l := nth ([::], [::]) lanes i in q i (l.1 ++ l.2).

Variable schedule : seq lane -> law R (option nat).

(** At most [fuel] tokens are drafted, in the order that the scheduler wants. *)
Fixpoint scheduled fuel lanes : law R (seq lane) :=
  if fuel is fuel'.+1 then
    next <~ schedule lanes;;
    if next is Some i then x <~ pick (next_row i lanes);; scheduled fuel' (drafted i x lanes) else ret lanes
  else ret lanes.

(** Every lane is verified and completed to n tokens; the first of these lanes is number [i]. *)
Fixpoint finish n i lanes : law R (seq (seq V)) :=
  if lanes is l :: ls then
    o <~ verify p (step i) l.1 l.2;; s <~ complete p n l.1 o;; rest <~ finish n i.+1 ls;; ret (s :: rest)
  else ret [::].

(** Plain decoding of a batch: n tokens for each text, each lane by itself. *)
Fixpoint each n (hs : seq (seq V)) : law R (seq (seq V)) :=
  if hs is h :: hs' then s <~ target p n h;; rest <~ each n hs';; ret (s :: rest) else ret [::].

Lemma pick_swap A (m : law R A) (r : V -> R) (F : V -> A -> R) : lawful m ->
  pick r (fun x => m (F x)) = m (fun a => pick r (F^~ a)).
Proof. by move=> mP; rewrite /pick (law_total mP); apply: total_ext => x; rewrite (law_scale mP). Qed.

Lemma lawful_finish n i lanes : lawful (finish n i lanes).
Proof.
elim: lanes i => [|l ls IH] i /=; first exact: lawful_ret.
apply: lawful_bind => [|o]; first exact: Chain.lawful_verify.
apply: lawful_bind => [|s]; first exact: lawful_complete.
by apply: lawful_bind => // rest; apply: lawful_ret.
Qed.

(** One more draft, judged with the others, changes nothing. *)
Lemma another_draft i h d n k :
  pick (q i (h ++ d)) (fun x => verify p (step i) h (rcons d x) (fun o => complete p n h o k))
  = verify p (step i) h d (fun o => complete p n h o k).
Proof.
elim: d h n k => [|y d IH] h n k.
  have ok g : lossless p h (chain p (q i) xpred0 (step i) g h) by apply: chain_lossless.
  by rewrite cats0; transitivity (target p n h k); [apply: (ok 1%N n k) | symmetry; apply: (ok 0%N n k)].
pose after v (rest : law R (seq V)) := (if v is Some z then ret [:: z] else o <~ rest;; ret (y :: o)) : law R (seq V).
transitivity (step i h y (fun v => pick (q i (h ++ y :: d)) (fun x =>
    after v (verify p (step i) (rcons h y) (rcons d x)) (fun o => complete p n h o k)))).
  exact: (pick_swap _ (fun x v => after v (verify p (step i) (rcons h y) (rcons d x)) _) (stepP i h y)).
apply: (law_ext (stepP i h y)) => -[z|] /=; first exact: (law_const (lawful_pick (qP _ _))).
by rewrite -cat_rcons; case: n => [|n]; [apply: (IH _ 0%N k) | apply: (IH _ n (fun s => k (y :: s)))].
Qed.

Lemma finish_drafted n j i lanes k :
  pick (let l := nth ([::], [::]) lanes i in q (j + i) (l.1 ++ l.2)) (fun x => finish n j (drafted i x lanes) k)
  = finish n j lanes k.
Proof.
elim: lanes j i k => [|l ls IH] j [|i] k; try exact: (law_const (lawful_pick (qP _ _))).
  by rewrite addn0 /= /bind /ret; apply: another_draft.
have vP := Chain.lawful_verify pP (stepP j) l.1 l.2.
rewrite [LHS]/= {2}/bind (pick_swap _ _ vP) [RHS]/= {1}/bind; apply: (law_ext vP) => o.
have cP := lawful_complete pP n l.1 o.
rewrite /bind (pick_swap _ _ cP); apply: (law_ext cP) => s.
by rewrite -(IH j.+1 i (fun rest => k (s :: rest))) addSnnS.
Qed.

Hypothesis scheduleP : forall lanes, lawful (schedule lanes).

Lemma scheduled_finish fuel n lanes k : scheduled fuel lanes (fun ls => finish n 0 ls k) = finish n 0 lanes k.
Proof.
elim: fuel lanes => [|fuel IH] lanes //=; rewrite {1}/bind -[RHS](law_const (scheduleP lanes)).
apply: (law_ext (scheduleP lanes)) => -[i|] //=.
rewrite -(finish_drafted n 0 i lanes k) {1}/bind; apply: total_ext => x; congr (_ * _).
by rewrite IH.
Qed.

Theorem batch_lossless fuel n hs k :
  scheduled fuel [seq (h, [::]) | h <- hs] (fun lanes => finish n 0 lanes k) = each n hs k.
Proof.
rewrite scheduled_finish; elim: hs 0%N k => [|h hs IH] i k //=.
have ok : lossless p h (chain p (q i) xpred0 (step i) 0 h) by apply: chain_lossless.
rewrite -[RHS](ok n); apply: (law_ext (lawful_pick (pP h))) => y.
by apply: (law_ext (lawful_complete pP n h [:: y])) => s; rewrite /bind IH.
Qed.

End Batch.

(** A scheduler that may not draft more than [budget] tokens over all lanes. *)
Section Budget.
Variables (R : realFieldType) (V : vocab) (budget : nat).
Variable wish : seq (lane V) -> law R (option nat).
Implicit Types lanes : seq (lane V).

Definition spent lanes : nat := sumn [seq size l.2 | l <- lanes].
Definition within lanes : law R (option nat) := if (budget <= spent lanes)%N then ret None else wish lanes.

Lemma spent_drafted i x lanes : (spent (drafted i x lanes) <= (spent lanes).+1)%N.
Proof.
rewrite /spent; elim: lanes i => [|l ls IH] [|i] //=; first by rewrite size_rcons addSn.
by rewrite -addnS leq_add2l.
Qed.

Lemma within_spends fuel lanes : (spent lanes <= budget)%N -> forall q : nat -> seq V -> V -> R,
  (forall i h, dist (q i h)) -> (forall ls, lawful (wish ls)) ->
  surely (fun ls => (spent ls <= budget)%N) (scheduled q within fuel lanes).
Proof.
move=> le q qP wP; elim: fuel lanes le => [|fuel IH] lanes le f g e; first exact: e.
rewrite /= /bind /within; case: leqP => [_|lt]; first exact: e.
apply: (law_ext (wP lanes)) => -[i|]; last exact: e.
apply: total_ext => x; congr (_ * _); apply: IH e.
exact: leq_trans (spent_drafted i x lanes) lt.
Qed.
End Budget.

Section Kept.
Variables (R : realFieldType) (V : vocab) (p : seq V -> V -> R) (q : nat -> seq V -> V -> R) (budget : nat).
Variable wish : seq (lane V) -> law R (option nat).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall i h, dist (q i h).
Hypothesis wishP : forall lanes, lawful (wish lanes).

(** The ratio rule in every lane; [fuel] may be the budget itself. *)
Theorem budget_lossless fuel n hs k :
  scheduled q (within budget wish) fuel [seq (h, [::]) | h <- hs]
    (fun lanes => finish p (fun i => leviathan_at p (q i)) n 0 lanes k) = each p n hs k.
Proof.
apply: batch_lossless => // [i h x|i h|lanes]; first exact: lawful_leviathan_at.
  exact: single_step.
by rewrite /within; case: leqP => _; [apply: lawful_ret | apply: wishP].
Qed.

Theorem budget_is_kept fuel hs :
  surely (fun lanes => (spent lanes <= budget)%N) (scheduled q (within budget wish) fuel [seq (h, [::]) | h <- hs]).
Proof.
apply: within_spends => //; suff -> : spent [seq (h, [::]) | h <- hs] = 0%N by [].
by rewrite /spent; elim: hs.
Qed.

End Kept.

(** ** Not so a scheduler that drafts first and then drops drafts for what they are *)

Notation field := [realFieldType of Qc].

(** Two lanes draft a token each, one may be judged: [first x y] says whether it is the first lane's. The law of what the
    first lane writes. *)
Definition one_place_for_two (p q q' : two -> field) (first : two -> two -> bool) : law field two :=
  x <~ pick q;; y <~ pick q';;
  if first x y then v <~ leviathan_step p q x;; ret (emitted x v) else pick p.

Theorem cut_to_the_budget_is_lossy :
  let p := row2 (1//2) (1//2) in let q := row2 (3//4) (1//4) in
  law2 (one_place_for_two p q q (fun x y => q y <= q x)) = (19//32, 13//32).
Proof. compute_law. Qed.

(** Whatever the other lane drew decides alone: the first lane's law is the target's. *)
Theorem cut_by_the_other_lane (p q q' : two -> field) (first : two -> bool) f : dist p -> dist q -> dist q' ->
  one_place_for_two p q q' (fun _ y => first y) f = pick p f.
Proof.
move=> pP qP q'P; have stepP x := lawful_leviathan x pP qP.
transitivity (pick q' (fun y => pick q (fun x =>
    if first y then leviathan_step p q x (fun v => f (emitted x v)) else pick p f))).
  rewrite /one_place_for_two /bind (pick_swap _ _ (lawful_pick q'P)); apply: total_ext => y; congr (_ * _).
  by apply: total_ext => x; case: (first y).
rewrite -[RHS](law_const (lawful_pick q'P)); apply: total_ext => y; congr (_ * _).
by case: (first y); [apply: single_step | apply: (law_const (lawful_pick qP))].
Qed.
