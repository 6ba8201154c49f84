(** How often the ratio rule rejects, over a whole text.

    What it says.  [judged] writes n tokens, every one of them drafted: it drafts at most
    [gamma h] + 1 tokens, never more than are still wanted, judges them by the ratio rule,
    and goes on after the last one kept or replaced; there is no bonus.
    - [expected_rejections]  the expected number of rejections is the sum over the n places
      of E TV(p, q) there, prefixes drawn from the target: whatever the block lengths,
      which may depend on the history;
    - [judged_text]  the text is the target's.
    So the block length changes the number of rounds, and no rejection.

    Source: Yin et al. 2024 (arXiv 2411.00841), Thm 1, for blocks of one; seed 004, Lemma 3.5. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Chain Leviathan Block Optimality.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Rejections.
Variables (R : realFieldType) (V : vocab).
Variables (p q : seq V -> V -> R) (gamma : seq V -> nat).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, dist (q h).
Implicit Types (h xs s : seq V) (x y : V) (f : seq V -> R).

(** What is written of a block of drafts, and how many of them were rejected: one or none. *)
Fixpoint judge_block h xs : law R (seq V * nat) :=
  if xs is x :: xs' then
    v <~ leviathan_at p q h x;;
    if v is Some y then ret ([:: y], 1%N)
    else r <~ judge_block (rcons h x) xs';; ret (x :: r.1, r.2)
  else ret ([::], 0%N).

(** [fuel] only bounds the recursion; [n] tokens remain to be written. *)
Fixpoint judged fuel n h : law R (seq V * nat) :=
  if fuel is fuel'.+1 then
    if n == 0%N then ret ([::], 0%N) else
    xs <~ draft q xpred0 (minn (gamma h).+1 n) h;;
    r <~ judge_block h xs;;
    rest <~ judged fuel' (n - size r.1)%N (h ++ r.1);;
    ret (r.1 ++ rest.1, (r.2 + rest.2)%N)
  else ret ([::], 0%N).

(** E TV(p, q) at each of the next n places. *)
Definition distances n h : R := \sum_(0 <= i < n) target p i h (fun s => tv (p (h ++ s)) (q (h ++ s))).

Lemma distances_rec n h : distances n.+1 h = tv (p h) (q h) + pick (p h) (fun x => distances n (rcons h x)).
Proof.
rewrite /distances big_nat_recl //= /ret cats0; congr (_ + _); rewrite /pick.
rewrite (total_ext (g := fun x => \sum_(0 <= i < n) p h x *
  target p i (rcons h x) (fun s => tv (p (rcons h x ++ s)) (q (rcons h x ++ s))))); last by move=> x; rewrite mulr_sumr.
rewrite total_sum; apply: eq_bigr => i _; apply: total_ext => x; congr (_ * _).
by apply: (law_ext (lawful_target pP i _)) => s; rewrite cat_rcons.
Qed.

(** What a text that begins with [r.1] is worth after [r.2] rejections: a test of it, and all rejections. *)
Definition worth_of n h f (r : seq V * nat) : R :=
  target p (n - size r.1)%N (h ++ r.1) (fun s => f (r.1 ++ s)) + distances (n - size r.1)%N (h ++ r.1) + r.2%:R.

Lemma one_place h (T : V -> R) :
  pick (q h) (fun x => leviathan_at p q h x (fun v => if v is Some y then T y + 1 else T x))
  = pick (p h) T + tv (p h) (q h).
Proof.
have -> : tv (p h) (q h) = pick (q h) (fun x => 1 - accept (p h) (q h) x).
  by rewrite rejection_prob // rejected_mass // acceptance_is_one_minus_tv //; ring.
rewrite -(single_step (pP h) (qP h) T) /pick -total_add; apply: total_ext => x.
rewrite -mulrDr; congr (_ * _); rewrite /leviathan_at /leviathan_step /bind /coin /ret /=.
have rP := lawful_pick (residual_dist (q h) (pP h)); rewrite (law_add rP) (law_one rP).
by rewrite mulrDr mulr1 addrA.
Qed.

Lemma lawful_judge_block h xs : lawful (judge_block h xs).
Proof.
elim: xs h => [|x xs IH] h /=; first exact: lawful_ret.
apply: lawful_bind => [|[y|]]; [exact: lawful_leviathan_at | exact: lawful_ret |].
by apply: lawful_bind => // r; apply: lawful_ret.
Qed.

Lemma block_worth g n h f : (g <= n)%N ->
  draft q xpred0 g h (fun xs => judge_block h xs (worth_of n h f)) = target p n h f + distances n h.
Proof.
elim: g n h f => [|g IH] n h f le; first by rewrite /= /ret /= /ret /worth_of /= subn0 cats0 addr0.
case: n le => // n le.
pose T x := target p n (rcons h x) (fun s => f (x :: s)) + distances n (rcons h x).
have replaced y : worth_of n.+1 h f ([:: y], 1%N) = T y + 1.
  by rewrite /worth_of /T /= subn1 cats1.
have kept_on x r : worth_of n.+1 h f (x :: r.1, r.2) = worth_of n (rcons h x) (fun s => f (x :: s)) r.
  by rewrite /worth_of /= subSS cat_rcons.
have judged_on x : draft q xpred0 g (rcons h x) (fun xs => judge_block h (x :: xs) (worth_of n.+1 h f))
  = leviathan_at p q h x (fun v => if v is Some y then T y + 1 else T x).
  have dP : lawful (draft q xpred0 g (rcons h x)) by apply: lawful_draft => h' _; apply: qP.
  rewrite /leviathan_at /leviathan_step /bind /coin /ret /= (law_add dP)
    (law_scale dP (accept _ _ _)) (law_scale dP (1 - _)).
  congr (_ * _ + _ * _); last first.
    rewrite -[RHS](law_const dP); apply: (law_ext dP) => xs.
    by apply: total_ext => y; rewrite /ret replaced.
  rewrite /T -(IH n (rcons h x)) //; apply: (law_ext dP) => xs.
  by apply: (law_ext (lawful_judge_block _ xs)) => r; apply: kept_on.
transitivity (pick (q h) (fun x => leviathan_at p q h x (fun v => if v is Some y then T y + 1 else T x))).
  by apply: total_ext => x; rewrite -judged_on.
rewrite one_place distances_rec /T (law_add (lawful_pick (pP h))) [in RHS]/= /bind /ret.
by rewrite -addrA; congr (_ + _); rewrite addrC.
Qed.

Lemma lawful_judged fuel n h : lawful (judged fuel n h).
Proof.
elim: fuel n h => [|fuel IH] [|n] h /=; try exact: lawful_ret.
apply: lawful_bind => [|xs]; first by apply: (@lawful_draft _ _ q xpred0 (minn (gamma h).+1 n.+1) h) => h' _; apply: qP.
apply: lawful_bind => [|r]; first exact: lawful_judge_block.
by apply: lawful_bind => // rest; apply: lawful_ret.
Qed.

(** Something is written in every round. *)
Lemma judge_block_writes h x xs : surely (fun r => (0 < size r.1)%N) (judge_block h (x :: xs)).
Proof.
move=> f f' e; apply: (law_ext (lawful_leviathan_at pP qP h x)) => -[y|]; first by rewrite /ret e.
by apply: (law_ext (lawful_judge_block _ xs)) => r; rewrite /ret e.
Qed.

Lemma judged_worth fuel n h f : (n <= fuel)%N ->
  judged fuel n h (fun r => f r.1 + r.2%:R) = target p n h f + distances n h.
Proof.
have nothing h' (g : seq V -> R) : g [::] + 0%:R = target p 0 h' g + distances 0 h'.
  by rewrite /distances big_geq.
elim: fuel n h f => [|fuel IH] [|n] h f le; try exact: (nothing h f); first by [].
have enough : (minn (gamma h).+1 n.+1 <= n.+1)%N by apply: geq_minr.
rewrite -(block_worth h f enough) [LHS]/= {1}/bind minnSS [RHS]/=.
apply: total_ext => x; congr (_ * _); have dP : lawful (draft q xpred0 (minn (gamma h) n) (rcons h x)).
  by apply: lawful_draft => h' _; apply: qP.
apply: (law_ext dP) => xs; apply: judge_block_writes => -[[|y o] c] //= _.
have jP := lawful_judged fuel (n - size o)%N (h ++ y :: o).
rewrite /worth_of /= subSS -(IH (n - size o)%N (h ++ y :: o) (fun s => f (y :: o ++ s))); last first.
  exact: leq_trans (leq_subr (size o) n) le.
rewrite /bind /ret -[X in _ + X](law_const jP) -(law_add jP); apply: (law_ext jP) => rest /=.
by rewrite natrD addrA addrAC.
Qed.

Lemma judged_count fuel n h : (n <= fuel)%N -> judged fuel n h (fun r => r.2%:R) = distances n h.
Proof.
move=> le; have := judged_worth h (fun _ => 0) le; rewrite (law_const (lawful_target pP n h)) add0r => <-.
by apply: (law_ext (lawful_judged fuel n h)) => r; rewrite add0r.
Qed.

Theorem expected_rejections fuel n h : (n <= fuel)%N ->
  judged fuel n h (fun r => r.2%:R) = \sum_(0 <= i < n) target p i h (fun s => tv (p (h ++ s)) (q (h ++ s))).
Proof. exact: judged_count. Qed.

Theorem judged_text fuel n h f : (n <= fuel)%N -> judged fuel n h (fun r => f r.1) = target p n h f.
Proof.
move=> le; apply: (addIr (distances n h)); rewrite -(judged_worth h f le) -(judged_count h le).
by rewrite -(law_add (lawful_judged fuel n h)).
Qed.

End Rejections.
