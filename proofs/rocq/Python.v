(** What the words of Python mean that the rules of refengine/exact are written in.

    What it says.  Definitions only.  A program ends in a law of what it returns: a rule
    of rounds, tokens and the path of accepted nodes; the loop of texts.  It is written
    with continuations: [k] is what is done next.  Every error of the program - an index
    out of range, weights that are none, a [raise] - ends it in [raised], a law of which
    nothing is known: a theorem that holds for every [raised] says that no error is met.

    A row is a function of the token.  A node is named by its place plus one, so that
    ROOT, which is -1 in the program, is 0 here, and the row after node n is row n.
    Sites are left out: every decision has a coin of its own (Record in
    refengine/exact/chance.py refuses a site that is used twice).

    Source: ours; proofs/translate writes Translated.v in these words. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Round Tree Agreement Greedy.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Block of refengine/exact/block.py. *)
Record flat_block (R : realFieldType) (V : vocab) := FlatBlock {
  block_tokens : seq V;
  block_parents : seq nat;
  block_q : seq (option (V -> R))
}.

(** What a rule returns. *)
Definition outcome (V : vocab) : Type := seq V * seq nat.
Notation answer R V := (law R (outcome V)).

Section Python.
Variables (R : realFieldType) (V : vocab) (O : Type).
Implicit Types (w : V -> R) (b : flat_block R V).
(** A program returns an [O]. *)
Variable raised : law R O.

(** [s[i]], for i that is not negative, and [s[-1]]. *)
Definition item A (s : seq A) (i : nat) (k : A -> law R O) : law R O := if drop i s is a :: _ then k a else raised.
Definition last_item A (s : seq A) (k : A -> law R O) : law R O := if rev s is a :: _ then k a else raised.

Definition enumerate A (s : seq A) : seq (nat * A) := zip (iota 0 (size s)) s.

(** [zip(s, t, strict=True)]. *)
Definition zipped A B (s : seq A) (t : seq B) (k : seq (A * B) -> law R O) : law R O :=
  if size s == size t then k (zip s t) else raised.

(** A dict by nodes, its keys in the order in which they came. *)
Definition keys A (s : seq (nat * A)) : seq nat := [seq e.1 | e <- s].
Definition has_key A (s : seq (nat * A)) (node : nat) : bool := node \in keys s.
Definition look_up A (s : seq (nat * A)) (node : nat) (k : A -> law R O) : law R O :=
  if [seq e <- s | e.1 == node] is e :: _ then k e.2 else raised.
Definition put A (s : seq (nat * A)) (node : nat) (a : A) : seq (nat * A) :=
  if has_key s node then [seq if e.1 == node then (node, a) else e | e <- s] else rcons s (node, a).

(** [max] by a key: the first item whose key no other one's exceeds; keys in the order of tuples. *)
Definition less (a b : R) : bool := a < b.
Definition fewer (a b : nat) : bool := (a < b)%N.
Definition by_both (A : eqType) B (below : A -> A -> bool) (below' : B -> B -> bool) (a b : A * B) : bool :=
  below a.1 b.1 || ((a.1 == b.1) && below' a.2 b.2).
Definition greatest A K (below : K -> K -> bool) (s : seq (A * K)) (k : A -> law R O) : law R O :=
  if s is a :: s' then k (foldl (fun best a => if below best.2 a.2 then a else best) a s').1 else raised.

(** The last value of a loop's variable, if there was one. *)
Definition bound A (o : option A) (k : A -> law R O) : law R O := if o is Some a then k a else raised.

(** [for]: the body is told what comes next and what comes after the loop. *)
Fixpoint for_in A S (s : seq A) (st : S) (body : A -> S -> (S -> law R O) -> (S -> law R O) -> law R O)
    (after : S -> law R O) : law R O :=
  if s is a :: s' then body a st (fun st' => for_in s' st' body after) after else after st.

(** [while True], at most so many times. *)
Fixpoint forever S (fuel : nat) (st : S) (body : S -> (S -> law R O) -> law R O) : law R O :=
  if fuel is fuel'.+1 then body st (fun st' => forever fuel' st' body) else raised.

(** [while test], at most so many times. *)
Fixpoint while_do S (fuel : nat) (st : S) (test : S -> bool) (body : S -> (S -> law R O) -> (S -> law R O) -> law R O)
    (after : S -> law R O) : law R O :=
  if fuel is fuel'.+1 then
    if test st then body st (fun st' => while_do fuel' st' test body after) after else after st
  else raised.

(** Chance. *)
Definition odds (num den : R) : R := if num < den then num / den else if 0 < num then 1 else 0.
Definition ask_accept (num den : R) (k : bool -> law R O) : law R O :=
  if (0 <= num) && (0 <= den) then bind (coin (odds num den)) k else raised.
Definition ask_choose w (k : V -> law R O) : law R O :=
  if all (fun x => 0 <= w x) (tokens V) && (0 < total w) then bind (pick (fun x => w x / total w)) k else raised.

(** A callable that asks chance. *)
Definition run A (m : law R A) (k : A -> law R O) : law R O := bind m k.

(** The functions of refengine/exact that proofs/translate knows by their text. *)
Definition row_after A (p : seq A) (node : nat) (k : A -> law R O) : law R O := item p node k.
Definition drawn b (j : nat) (k : (V -> R) -> law R O) : law R O :=
  item (block_q b) j (fun o => if o is Some q then k q else raised).
Definition check_chain b (k : unit -> law R O) : law R O :=
  if block_parents b == iota 0 (size (block_tokens b)) then k tt else raised.
Definition children_of b (node : nat) : seq nat := [seq e.1 | e <- enumerate (block_parents b) & e.2 == node].
Definition argmax_row w (k : V -> law R O) : law R O :=
  if tokens V is d :: _ then k (first_max d w) else raised.
(** Parents come before children, so a node is not deeper than its place. *)
Fixpoint path_upto b (fuel node : nat) : seq V :=
  if fuel is fuel'.+1 then
    if node is j.+1 then path_upto b fuel' (nth 0%N (block_parents b) j) ++ take 1 (drop j (block_tokens b)) else [::]
  else [::].
Definition path_of b (node : nat) : seq V := path_upto b node node.
Fixpoint nodes_upto b (fuel node : nat) : seq nat :=
  if fuel is fuel'.+1 then
    if node is j.+1 then rcons (nodes_upto b fuel' (nth 0%N (block_parents b) j)) j else [::]
  else [::].
Definition ancestry b (node : nat) : seq nat := nodes_upto b node node.
(** The smallest head with at least so much of the mass, heavier first, ties to the token that is listed first. *)
Definition comes_before w (x y : V) : bool :=
  (w x < w y) || ((w x == w y) && (index y (tokens V) < index x (tokens V))%N).
Definition in_head (level : R) w (x : V) : bool := total (fun y => (comes_before w x y)%:R * w y) < level * total w.
Definition keep_top_p (level : R) w (k : (V -> R) -> law R O) : law R O :=
  if (0 < level) && (level <= 1) then k (fun x => (in_head level w x)%:R * w x) else raised.
Definition target_rows (target : seq V -> V -> R) (prefix : seq V) b : seq (V -> R) :=
  [seq target (prefix ++ path_upto b node node) | node <- iota 0 (size (block_tokens b)).+1].
Definition is_token b (x : V) (j : nat) : bool := ohead (drop j (block_tokens b)) == Some x.

End Python.
