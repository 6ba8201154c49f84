(** The rules that run are the rules that the theorems are about: trees.

    What it says.  A block of refengine.exact is flat: tokens, each with the place of its
    parent, parents before children.  [tree_of] hangs it up as a tree of Tree.v.  For
    every vocabulary, target, history and block, with any [raised]:
    - [agreement_runs]   the program of agreement.py has the law of [agreement_walk];
    - [greedy_runs]      the program of greedy.py emits what [greedy_walk] does.
    So no error is met, no loop is cut off, and what is proved of the one is proved of
    the other.

    Source: ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Chain Tree Agreement Greedy Leviathan Block Python Translated Running.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Flat.
Variables (R : realFieldType) (V : vocab) (raised : answer R V).
Variables (xs : seq V) (parents : seq nat) (qs : seq (option (V -> R))) (d : V).
Implicit Types (u j k : nat) (h : seq V) (g : seq V -> R).

Definition flat : flat_block R V := FlatBlock xs parents qs.
Definition token_at j : V := nth d xs j.
Definition parent_at j : nat := nth 0%N parents j.
Definition kids u : seq nat := [seq j <- iota 0 (size xs) | parent_at j == u].

(** As Block.__post_init__ asks. *)
Hypothesis parents_size : size parents = size xs.
Hypothesis parents_first : forall j, (j < size xs)%N -> (parent_at j <= j)%N.

(** The tokens down to a node. *)
Fixpoint word_upto k u : seq V :=
  if k is k'.+1 then if u is j.+1 then rcons (word_upto k' (parent_at j)) (token_at j) else [::] else [::].
Definition word u : seq V := word_upto u u.

(** What the loop hands to a rule: the target's rows, root first. *)
Variables (p : seq V -> V -> R) (h0 : seq V).
Definition rows_of : seq (V -> R) := [seq p (h0 ++ word u) | u <- iota 0 (size xs).+1].

(** The nodes below, hung up; [k] bounds the depth. *)
Fixpoint grown k u : tree V :=
  if k is k'.+1 then Node [seq (token_at j, grown k' j.+1) | j <- kids u] else Node [::].
Definition tree_of : tree V := grown (size xs).+1 0.

Lemma kid u j : j \in kids u -> [/\ (j < size xs)%N, parent_at j = u & (u <= j)%N].
Proof.
rewrite mem_filter mem_iota add0n => /andP[/eqP e lt]; split=> //.
by rewrite -e parents_first.
Qed.

Lemma children_are_kids u : children_of flat u = kids u.
Proof.
rewrite /children_of /enumerate /kids /parent_at /= -parents_size.
suff shifted i ps : [seq e.1 | e <- zip (iota i (size ps)) ps & e.2 == u]
                  = [seq j <- iota i (size ps) | nth 0%N ps (j - i) == u].
  by rewrite shifted; apply: eq_filter => j; rewrite subn0.
elim: ps i => [|x ps IH] i //=; rewrite subnn /=.
have -> : [seq j <- iota i.+1 (size ps) | nth 0%N (x :: ps) (j - i) == u]
        = [seq j <- iota i.+1 (size ps) | nth 0%N ps (j - i.+1) == u].
  by apply: eq_in_filter => j; rewrite mem_iota => /andP[lt _]; rewrite -(subnSK lt).
by rewrite -IH; case: (x == u).
Qed.

Lemma token_is x j : (j < size xs)%N -> is_token flat x j = (token_at j == x).
Proof. by move=> lt; rewrite /is_token /= (drop_nth d lt). Qed.

Lemma word_enough k u : (u <= k)%N -> (u <= size xs)%N -> word_upto k u = word u.
Proof.
have [m] := ubnP u; elim: m k u => // m IH [|k] [|j] //= lt le sz.
have first := parents_first sz.
have short : (parent_at j < m)%N by apply: leq_ltn_trans first _.
have small : (parent_at j <= size xs)%N by apply: leq_trans first (ltnW sz).
by rewrite /word /= !IH // (leq_trans first).
Qed.

Lemma word_next j : (j < size xs)%N -> word j.+1 = rcons (word (parent_at j)) (token_at j).
Proof.
move=> lt; have first := parents_first lt; rewrite /word /= word_enough //.
exact: leq_trans first (ltnW lt).
Qed.

Lemma grown_enough k k' u : (size xs - u < k)%N -> (size xs - u < k')%N -> grown k u = grown k' u.
Proof.
elim: k k' u => [|k IH] [|k'] u //= le le'; congr Node; apply/eq_in_map => j /kid[lt _ ge].
have less : (size xs - j.+1 < size xs - u)%N by rewrite ltn_sub2l // (leq_ltn_trans ge).
by rewrite (IH k') // (leq_trans less).
Qed.

Lemma row_of u (k : (V -> R) -> answer R V) : (u <= size xs)%N ->
  row_after raised rows_of u k = k (p (h0 ++ word u)).
Proof. by move=> le; rewrite /row_after item_iota. Qed.

(** The first of the nodes with a token, and its place among their tokens. *)
Lemma first_with x (ks : seq nat) : ohead [seq j <- ks | token_at j == x]
  = if x \in [seq token_at j | j <- ks] then Some (nth 0%N ks (index x [seq token_at j | j <- ks])) else None.
Proof.
elim: ks => [|j ks IH] //=; rewrite inE [x == _]eq_sym; case: ifP => //= _.
Qed.

(** From a node on, with what was emitted before it. *)
Definition from_node (node : seq V -> seq V -> law R (choice V)) u (said : seq V) g : R :=
  walk node (h0 ++ word u) (grown (size xs - u).+1 u) (fun o => g (said ++ o)).

Lemma from_root (node : seq V -> seq V -> law R (choice V)) g :
  from_node node 0 [::] g = walk node h0 tree_of g.
Proof. by rewrite /from_node /tree_of /= cats0 subn0. Qed.

(** One node of a walk: a token, and a kid to go on from if it was one. *)
Lemma from_step (node : seq V -> seq V -> law R (choice V)) u said g :
  (forall h cs f f', f =1 f' -> node h cs f = node h cs f') ->
  from_node node u said g
  = node (h0 ++ word u) [seq token_at j | j <- kids u] (fun o =>
      if o.2 is Some i then
        if (i < size (kids u))%N then
          walk node (rcons (h0 ++ word u) (token_at (nth 0%N (kids u) i)))
               (grown (size xs - (nth 0%N (kids u) i).+1).+1 (nth 0%N (kids u) i).+1)
               (fun s => g (said ++ o.1 :: s))
        else g (said ++ [:: o.1])
      else g (said ++ [:: o.1])).
Proof.
move=> ext; rewrite /from_node [LHS]/= -!map_comp; apply: ext => -[x [i|]] //=; rewrite /bind /ret.
case: ltnP => [lt|ge]; last by rewrite nth_default ?size_map.
rewrite (nth_map 0%N) //=; have /kid[jlt _ jge] := mem_nth 0%N lt.
by rewrite (@grown_enough (size xs - u) (size xs - (nth 0%N (kids u) i).+1).+1) // ltn_sub2l // (leq_ltn_trans jge).
Qed.

(** Where the token of a node of [agreement_walk] was drafted, go there. *)
Lemma where_drafted (node : seq V -> seq V -> law R (choice V)) u said y g (next : nat -> R) :
  (forall h cs, lawful (node h cs)) ->
  (forall j, j \in kids u -> next j = from_node node j.+1 (rcons said y) g) ->
  (if ohead [seq j <- children_of flat u | is_token flat y j] is Some hit then next hit else g (rcons said y))
  = (if (if y \in [seq token_at j | j <- kids u] then Some (index y [seq token_at j | j <- kids u]) else None) is Some i then
       if (i < size (kids u))%N then
         walk node (rcons (h0 ++ word u) (token_at (nth 0%N (kids u) i)))
              (grown (size xs - (nth 0%N (kids u) i).+1).+1 (nth 0%N (kids u) i).+1) (fun s => g (said ++ y :: s))
       else g (said ++ [:: y])
     else g (said ++ [:: y])).
Proof.
move=> nodeP nextE; rewrite children_are_kids.
have -> : [seq j <- kids u | is_token flat y j] = [seq j <- kids u | token_at j == y].
  by apply: eq_in_filter => j /kid[lt _ _]; rewrite token_is.
rewrite first_with; case: ifP => [yin|_]; last by rewrite cats1.
have ilt : (index y [seq token_at j | j <- kids u] < size (kids u))%N by rewrite -(size_map token_at) index_mem.
set j := nth 0%N (kids u) _; have jin : j \in kids u by apply: mem_nth.
have [jlt e _] := kid jin; have ty : token_at j = y by rewrite -[RHS](nth_index d yin) (nth_map 0%N).
rewrite ilt ty nextE // /from_node word_next // e ty rcons_cat.
by apply: (law_ext (lawful_walk nodeP _ _)) => s; rewrite cat_rcons.
Qed.

(** A kid lies deeper. *)
Lemma deeper u j fuel : j \in kids u -> (size xs - u < fuel.+1)%N -> (size xs - j.+1 < fuel)%N.
Proof.
move=> /kid[lt _ ge] le; rewrite -ltnS; apply: leq_trans le; rewrite ltnS ltn_sub2l //.
exact: leq_ltn_trans ge lt.
Qed.

Lemma agreeing_ext (r : seq V -> V -> R) h cs f f' : f =1 f' -> agreement_node r h cs f = agreement_node r h cs f'.
Proof. by move=> e; apply: total_ext => y; rewrite /ret e. Qed.

Theorem agreement_runs g : (forall h, dist (p h)) ->
  py_agreement raised rows_of flat (fun o => g o.1) = agreement_walk p h0 tree_of g.
Proof.
move=> pP; rewrite /py_agreement /agreement_walk -from_root; cbv zeta; set body := (fun '(_, _, _) => _).
suff loop fuel u path said : (size xs - u < fuel)%N -> (u <= size xs)%N ->
    forever raised fuel (u, path, said) body (fun o => g o.1) = from_node (agreement_node p) u said g.
  by apply: loop; rewrite ?subn0.
elim: fuel u path said => [|fuel IH] u path said //= le sz.
rewrite {1}/body row_of // choose_dist // from_step; last exact: agreeing_ext.
apply: total_ext => y; congr (_ * _).
rewrite -[RHS](@where_drafted _ u said y g (fun j => forever raised fuel (j.+1, rcons path j, rcons said y) body (fun o => g o.1))).
- by case: (ohead _).
- exact: lawful_agreement_node.
- by move=> j jin; rewrite IH ?(deeper jin) //; case: (kid jin).
Qed.

Theorem greedy_runs g :
  py_greedy raised rows_of flat (fun o => g o.1) = greedy_walk (fun h => first_max d (p h)) h0 tree_of g.
Proof.
pose top h := first_max d (p h); pose r := @onehot_row R V top; have rP h : dist (r h) by apply: dist_onehot.
rewrite /py_greedy /greedy_walk /agreement_walk -from_root; cbv zeta; set body := (fun '(_, _, _) => _).
have best w (k : V -> answer R V) : argmax_row raised w k = k (first_max d w).
  by rewrite /argmax_row /first_max; have := token_in d; case: (tokens V).
suff loop fuel u path said : (size xs - u < fuel)%N -> (u <= size xs)%N ->
    forever raised fuel (u, path, said) body (fun o => g o.1) = from_node (agreement_node r) u said g.
  by apply: loop; rewrite ?subn0.
elim: fuel u path said => [|fuel IH] u path said //= le sz.
rewrite {1}/body row_of // best from_step; last exact: agreeing_ext.
rewrite {1}/agreement_node /bind /pick {1}/r /onehot_row total_pick; set y := top (h0 ++ word u).
rewrite -[RHS](@where_drafted _ u said y g (fun j => forever raised fuel (j.+1, rcons path j, rcons said y) body (fun o => g o.1))).
- by case: (ohead _).
- exact: lawful_agreement_node.
- by move=> j jin; rewrite IH ?(deeper jin) //; case: (kid jin).
Qed.

End Flat.
