(** What holds of the drafted tokens and of any other one, holds on every vocabulary.

    What it says.  A text is what a batched rule computes on one path: rows that are
    supplied, numbers, a mark on a drafted token, words that go token by token, a look
    at the entry of a drafted token, the mass of a row.  Nothing in it knows how many
    tokens there are.  [proofs/batched] shows a row at every drafted token and at one
    more that stands for any other, and takes a mass for an unknown number of which it
    knows only the facts that it has shown before.
    - [every_vocabulary]  what it shows of these columns is true at every token of every
                          vocabulary, whatever the rows and whichever tokens were drafted;
    - [proportion_shows], [mass_shows]  facts about masses that may be used: rows in
                          proportion have masses in proportion, no weight is negative;
    - [halved]            neighbours added two by two leave the sum of a row as it is, so
                          what the loop of refengine/engine/sums.py returns is the sum.

    There is no such bound for texts that may count: a rule can be right on three tokens
    and wrong on four.  That is why nothing is asked here of a vocabulary of some size.

    Source: ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section EveryVocabulary.
Variables (R : realFieldType) (m : nat).

(** [m] classes of drafted tokens. A number is a row with the same entry at every token. *)
Inductive text :=
  | Supplied (i : nat)
  | Number (c : R)
  | Marked (j : 'I_m)
  | TokenByToken (f : R -> R -> R -> R) (t u w : text)
  | EntryAt (t : text) (j : 'I_m)
  | MassOf (t : text).

Fixpoint is_number t : bool := match t with
  | Supplied _ | Marked _ => false
  | Number _ | EntryAt _ _ | MassOf _ => true
  | TokenByToken _ t u w => [&& is_number t, is_number u & is_number w]
  end.

(** What a text is over a vocabulary. *)
Section Vocabulary.
Variables (V : vocab) (rows : nat -> V -> R) (drafted : 'I_m -> V).

Fixpoint entry t (v : V) : R := match t with
  | Supplied i => rows i v
  | Number c => c
  | Marked j => (v == drafted j)%:R
  | TokenByToken f t u w => f (entry t v) (entry u v) (entry w v)
  | EntryAt t j => entry t (drafted j)
  | MassOf t => total (entry t)
  end.

End Vocabulary.

(** What is shown of it: at [Some j] the token of class j, at [None] any token that nobody drafted. *)
Definition column := option 'I_m.
Record columns := Columns { weight_shown : nat -> column -> R; mass_shown : text -> R }.

Fixpoint seen (s : columns) t (c : column) : R := match t with
  | Supplied i => weight_shown s i c
  | Number a => a
  | Marked j => (c == Some j)%:R
  | TokenByToken f t u w => f (seen s t c) (seen s u c) (seen s w c)
  | EntryAt t j => seen s t (Some j)
  | MassOf t => mass_shown s t
  end.

(** Something said of some texts, at a token. *)
Record statement := Statement { about : seq text; says : seq R -> Prop }.
Definition said (s : columns) (st : statement) c : Prop := says st [seq seen s t c | t <- about st].

(** A fact about masses, and what has to be shown at the columns for it. *)
Inductive mass_fact := Proportion (a t b u : text) | NoNegative (t : text).
Definition to_show f : statement := match f with
  | Proportion a t b u => Statement [:: a; t; b; u] (fun xs => xs`_0 * xs`_1 = xs`_2 * xs`_3)
  | NoNegative t => Statement [:: t] (fun xs => 0 <= xs`_0)
  end.
Definition of_masses f : statement := to_show match f with
  | Proportion a t b u => Proportion a (MassOf t) b (MassOf u)
  | NoNegative t => NoNegative (MassOf t)
  end.
Definition of_numbers f : bool := if f is Proportion a _ b _ then is_number a && is_number b else true.

Fixpoint all_hold A (P : A -> Prop) s : Prop := if s is x :: s' then P x /\ all_hold P s' else True.

(** No weight is negative, and the conditions of the path and the facts hold. *)
Definition admits (path : seq statement) (facts : seq mass_fact) (s : columns) : Prop :=
  [/\ forall i c, 0 <= weight_shown s i c, all_hold (fun st => said s st None) path
    & all_hold (fun f => said s (of_masses f) None) facts].
Definition shows path facts st : Prop := forall s, admits path facts s -> forall c, said s st c.

(** Each fact is shown from those before it, the last one standing first. *)
Fixpoint derived path facts : Prop :=
  if facts is f :: before then [/\ of_numbers f, shows path before (to_show f) & derived path before] else True.

Section Seen.
Variables (V : vocab) (rows : nat -> V -> R) (drafted : 'I_m -> V).
Hypothesis apart : injective drafted.
Hypothesis rows0 : forall i v, 0 <= rows i v.

Definition true_at (st : statement) v : Prop := says st [seq entry rows drafted t v | t <- about st].

(** The columns of a vocabulary, one of its tokens being the one that stands for any other. *)
Definition shown_at v : columns :=
  Columns (fun i c => rows i (if c is Some j then drafted j else v)) (fun t => total (entry rows drafted t)).

Lemma seen_drafted v t j : seen (shown_at v) t (Some j) = entry rows drafted t (drafted j).
Proof.
elim: t j => //= [i j|f t IHt u IHu w IHw j]; last by rewrite IHt IHu IHw.
by rewrite (inj_eq apart) (inj_eq (@Some_inj _)).
Qed.

Lemma seen_number v v' t c : is_number t -> seen (shown_at v) t c = entry rows drafted t v'.
Proof.
elim: t => //= [f t IHt u IHu w IHw /and3P[nt nu nw]|t _ j _]; first by rewrite IHt // IHu // IHw.
exact: seen_drafted.
Qed.

Lemma seen_other v t : (forall j, v != drafted j) -> seen (shown_at v) t None = entry rows drafted t v.
Proof.
move=> other; elim: t => //= [j|f t IHt u IHu w IHw|t _ j]; last exact: seen_drafted.
  by rewrite (negbTE (other j)).
by rewrite IHt IHu IHw.
Qed.

(** Every token has its column. *)
Lemma seen_somewhere v : exists c, forall t, seen (shown_at v) t c = entry rows drafted t v.
Proof.
case: (pickP (fun j => v == drafted j)) => [j /eqP ->|other].
  by exists (Some j) => t; apply: seen_drafted.
by exists None => t; apply: seen_other => j; rewrite other.
Qed.

Lemma shown_true path facts st v : shows path facts st -> admits path facts (shown_at v) -> true_at st v.
Proof.
move=> ok fits; have [c at_c] := seen_somewhere v.
have := ok _ fits c; rewrite /said /true_at.
by have -> : [seq seen (shown_at v) t c | t <- about st] = [seq entry rows drafted t v | t <- about st] by apply: eq_map.
Qed.

(** What is shown of the entries holds of the masses. *)
Lemma mass_of_shown f v : of_numbers f -> (forall v', true_at (to_show f) v') -> said (shown_at v) (of_masses f) None.
Proof.
case: f => [a t b u /andP[na nb]|t _] ok; last by apply: total_ge0 => v'; apply: ok.
rewrite /said /= (seen_number v v _ na) (seen_number v v _ nb) -!total_scale; apply: total_ext => v'.
by rewrite -(seen_number v v None na) -(seen_number v v None nb) (seen_number _ v' _ na) (seen_number _ v' _ nb); apply: ok.
Qed.

Theorem every_vocabulary path facts st : derived path facts -> shows path facts st ->
  (forall v, all_hold (fun c => said (shown_at v) c None) path) -> forall v, true_at st v.
Proof.
move=> shown ok taken v; apply: (shown_true ok).
suff all_facts v' : all_hold (fun f => said (shown_at v') (of_masses f) None) facts.
  by split=> [i c||] //; apply: rows0.
elim: facts shown v' {ok} => //= f before IH [numbers shown_f shown] v'; split; last exact: IH.
apply: mass_of_shown => // u; apply: (shown_true shown_f).
by split=> [i c||] //; [apply: rows0|apply: IH].
Qed.

End Seen.
End EveryVocabulary.

(** ** A row's sum is what is left when neighbours are added two by two, again and again *)
Section Halved.
Variable R : realFieldType.

Fixpoint neighbours (s : seq R) : seq R :=
  if s is x :: y :: s' then x + y :: neighbours s' else s.

Theorem halved (s : seq R) : \sum_(x <- neighbours s) x = \sum_(x <- s) x.
Proof.
have [n le] := ubnP (size s); elim: n s le => // n IH [|x [|y s]] //= le.
by rewrite !big_cons IH ?addrA // ltnW.
Qed.

(** The loop of sums.py: while more than one is left. *)
Fixpoint last_left (turns : nat) (s : seq R) : R :=
  if turns is n.+1 then if (1 < size s)%N then last_left n (neighbours s) else s`_0 else s`_0.

Lemma size_neighbours s : (size (neighbours s) <= size s)%N.
Proof.
have [n le] := ubnP (size s); elim: n s le => // n IH [|x [|y s]] //= le.
by rewrite ltnS; apply: leq_trans (IH s (ltnW le)) (leqnSn _).
Qed.

Theorem root_is_sum turns (s : seq R) : (size s <= turns.+1)%N -> last_left turns s = \sum_(x <- s) x.
Proof.
elim: turns s => [|n IH] [|x [|y s]] //= le; rewrite ?big_nil ?big_seq1 //.
rewrite IH ?(halved (x :: y :: s)) //.
by rewrite /= ltnS; apply: leq_trans (size_neighbours s) le.
Qed.

End Halved.
