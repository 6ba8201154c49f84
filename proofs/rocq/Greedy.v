(** Rule [greedy]: follow the target's argmax while it was drafted.

    What it says.  [greedy_tokens]: whatever the draft - a chain of any length
    from any drafter - the emitted tokens are the greedy continuation, cut; so
    the loop's output is greedy decoding token for token, with no probability
    involved ([greedy_is_greedy]).  [greedy_lossless]: the same in the language
    of rounds, with p the point mass on the argmax.  [argmax] may break ties in any
    fixed way; [first_max] is the one that runs: [first_max_ge] no token is heavier,
    [first_max_first] of the heaviest it is the one listed first.
    [greedy_tree_lossless]: on trees greedy is agreement with that point mass.

    Source: greedy verification, Leviathan et al. 2023, sec. 3.6 (argmax as the
    limit of sampling).  Runs in: refengine/exact/rules/greedy.py. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Round Tree Agreement.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Greedy.
Variable V : vocab.
Variable argmax : seq V -> V.
Implicit Types (h xs s : seq V) (x : V).

Fixpoint greedy_decode n h : seq V :=
  if n is n'.+1 then argmax h :: greedy_decode n' (rcons h (argmax h)) else [::].

Fixpoint greedy h xs : seq V :=
  let y := argmax h in
  if xs is x :: xs' then if x == y then y :: greedy (rcons h y) xs' else [:: y] else [:: y].

Lemma greedy_emits h xs : (0 < size (greedy h xs))%N.
Proof. by case: xs => [|x xs] //=; case: ifP. Qed.

Theorem greedy_tokens h xs : greedy h xs = greedy_decode (size (greedy h xs)) h.
Proof.
elim: xs h => [|x xs IH] h //=; case: ifP => _ //=.
by rewrite -IH.
Qed.

Lemma greedy_decode_cat m n h :
  greedy_decode (m + n) h = greedy_decode m h ++ greedy_decode n (h ++ greedy_decode m h).
Proof.
elim: m h => [|m IH] h /=; first by rewrite cats0.
by rewrite IH cat_rcons.
Qed.

(** The loop, drafts supplied by an arbitrary function of the state and history. *)
Variables (S : Type) (propose : S -> seq V -> seq V) (update : S -> seq V -> seq V -> S).

Fixpoint greedy_loop fuel n (st : S) h : seq V :=
  if fuel is fuel'.+1 then
    if n == 0%N then [::] else
    let new := take n (greedy h (propose st h)) in
    new ++ greedy_loop fuel' (n - size new)%N (update st h new) (h ++ new)
  else [::].

Lemma take_greedy_decode m n h : take m (greedy_decode n h) = greedy_decode (minn m n) h.
Proof. by elim: m n h => [|m IH] [|n] h //=; rewrite IH minnSS. Qed.

Lemma size_greedy_decode n h : size (greedy_decode n h) = n.
Proof. by elim: n h => //= n IH h; rewrite IH. Qed.

Theorem greedy_is_greedy fuel n st h : (n <= fuel)%N -> greedy_loop fuel n st h = greedy_decode n h.
Proof.
elim: fuel n st h => [|fuel IH] [|n] st h // le; rewrite [LHS]/=.
set m := size (greedy h (propose st h)); set j := minn n.+1 m.
have j0 : (0 < j)%N by rewrite leq_min greedy_emits.
have jn : (j <= n.+1)%N by rewrite geq_minl.
rewrite greedy_tokens -/m take_greedy_decode -/j size_greedy_decode IH.
  by rewrite -greedy_decode_cat subnKC.
by rewrite leq_subLR (leq_trans le) // -addn1 addnC leq_add2r.
Qed.

End Greedy.

(** As a round of the general theory: p is the point mass on the argmax. *)
Section AsRound.
Variables (R : realFieldType) (V : vocab) (argmax : seq V -> V).

Definition onehot_row h : V -> R := fun x => (x == argmax h)%:R.

Lemma greedy_target n h k : target onehot_row n h k = k (greedy_decode argmax n h).
Proof.
elim: n h k => [|n IH] h k //=; rewrite /bind /pick /onehot_row.
by rewrite total_pick IH.
Qed.

Theorem greedy_lossless h xs : lossless onehot_row h (ret (greedy argmax h xs)).
Proof.
move=> n k; rewrite greedy_target /ret greedy_tokens.
move: (size (greedy argmax h xs)) => m; elim: m n h k => [|m IH] [|n] h k //; first by rewrite complete_nil greedy_target.
exact: (IH n (rcons h (argmax h)) (fun s => k (argmax h :: s))).
Qed.

End AsRound.

(** On trees. *)
Definition greedy_walk (R : realFieldType) (V : vocab) (argmax : seq V -> V) h t : law R (seq V) :=
  agreement_walk (@onehot_row R V argmax) h t.

Theorem greedy_tree_lossless (R : realFieldType) (V : vocab) (argmax : seq V -> V) h (t : tree V) :
  lossless (@onehot_row R V argmax) h (greedy_walk argmax h t).
Proof. by apply: agreement_tree_lossless => h'; apply: dist_onehot. Qed.

(** The argmax of a row; [d] matters in an empty vocabulary only. *)
Section FirstMax.
Variables (R : realFieldType) (V : vocab) (d : V) (r : V -> R).

Definition heavier best x : V := if r best < r x then x else best.
Definition first_max : V := foldl heavier (head d (tokens V)) (tokens V).

Definition tops (m : V) (s : seq V) :=
  (forall x, x \in s -> r x <= r m) /\ (forall x, x \in s -> (index x s < index m s)%N -> r x < r m).

(** Whoever starts, either stays or is beaten. *)
Lemma heavier_tops (s : seq V) b : let m := foldl heavier b s in
  (m = b /\ forall x, x \in s -> r x <= r b) \/ (r b < r m /\ tops m s).
Proof.
elim: s b => [|y s IH] b /=; first by left.
have skip m : r y < r m -> tops m s -> tops m (y :: s).
  move=> ym [ge first]; split=> x; rewrite inE => /orP[/eqP ->|xs] //=; first exact: ltW.
    exact: ge.
  case: (y =P m) => [e|_]; first by move: ym; rewrite e ltxx.
  by case: eqP => [<- _|_]; [apply: ym | apply: first].
have := IH (heavier b y); rewrite [heavier b y]/heavier; case: ltP => [lt|le] [[e all]|[xm t]].
- right; rewrite e; split=> //; split=> x; rewrite inE => /orP[/eqP ->|xs] //=; first exact: all.
    by rewrite eqxx.
  by rewrite eqxx.
- by right; split; [apply: lt_trans lt xm | apply: skip].
- by left; split=> // x; rewrite inE => /orP[/eqP ->|/all].
- by right; split=> //; apply: skip => //; apply: le_lt_trans le xm.
Qed.

Lemma first_max_tops : tops first_max (tokens V).
Proof.
rewrite /first_max; case: (tokens V) => [|a s] //=; rewrite {2}/heavier ltxx.
case: (heavier_tops s a) => [[-> all]|[am [ge first]]].
  by split=> x; rewrite inE => /orP[/eqP ->|xs] //=; [apply: all | rewrite eqxx | rewrite eqxx].
have none_heavier x : x \in a :: s -> r x <= r (foldl heavier a s).
  by rewrite inE => /orP[/eqP ->|xs]; [apply: ltW | apply: ge].
have of_those_the_first x : x \in s -> (index x (a :: s) < index (foldl heavier a s) (a :: s))%N ->
    r x < r (foldl heavier a s).
  move=> xs /=; case: (a =P foldl heavier a s) => [e|_]; first by move: am; rewrite -e ltxx.
  by case: eqP => [<- _|_]; [apply: am | apply: first].
by split=> // x; rewrite inE => /orP[/eqP -> _|]; [apply: am | apply: of_those_the_first].
Qed.

Theorem first_max_ge x : r x <= r first_max.
Proof. by have [ge _] := first_max_tops; apply: ge; apply: token_in. Qed.

Theorem first_max_first x : (index x (tokens V) < index first_max (tokens V))%N -> r x < r first_max.
Proof. by have [_ first] := first_max_tops; apply: first; apply: token_in. Qed.

End FirstMax.
