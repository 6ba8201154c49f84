(** The rules that run are the rules that the theorems are about: typical acceptance.

    What it says.  A flat block is that of RunningTrees.v, any of its rows may be the
    target's, and a threshold is any number that belongs to a row.  For every vocabulary,
    target, history and block, with any [raised]:
    - [typical_runs]            the program of typical.py, as released, returns the words of
                                [typical] of Medusa.v with the strict test, and the nodes of
                                the path on which they lie;
    - [typical_inclusive_runs]  that of the inclusive form, with the other test.
    So no error is met, and no node is judged otherwise because a block is large.

    Source: ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Greedy Medusa Python Translated Running RunningTrees.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Loops.
Variables (R : realFieldType) (O : Type) (raised : law R O).

(** A loop that makes a list item by item, and is never left. *)
Lemma for_in_mapped A B (s : seq nat) (a : nat -> A) (g : nat -> B) (made : seq B) body (k : seq B -> law R O) :
  (forall i made next out, i \in s -> body (a i) made next out = next (rcons made (g i))) ->
  for_in [seq a i | i <- s] made body k = k (made ++ [seq g i | i <- s]).
Proof.
elim: s made => [|i s IH] made /= turn; first by rewrite cats0.
rewrite turn ?mem_head // IH ?cat_rcons // => j made' next out js.
by apply: turn; rewrite inE js orbT.
Qed.

Lemma for_in_map B (s : seq nat) (g : nat -> B) (made : seq B) body (k : seq B -> law R O) :
  (forall a made next out, a \in s -> body a made next out = next (rcons made (g a))) ->
  for_in s made body k = k (made ++ [seq g a | a <- s]).
Proof. by move=> turn; rewrite -{1}(map_id s); apply: for_in_mapped. Qed.

Lemma for_in_filter A (s : seq A) (wanted : pred A) (made : seq A) body (k : seq A -> law R O) :
  (forall a made next out, body a made next out = next (if wanted a then rcons made a else made)) ->
  for_in s made body k = k (made ++ [seq a <- s | wanted a]).
Proof.
move=> turn; elim: s made => [|a s IH] made /=; first by rewrite cats0.
by rewrite turn IH; case: (wanted a); rewrite ?cat_rcons.
Qed.

(** A dict that holds [g u] by each node u of a list. *)
Lemma keys_of A (g : nat -> A) s : keys [seq (u, g u) | u <- s] = s.
Proof. by rewrite /keys -map_comp map_id. Qed.

Lemma look_up_of A (g : nat -> A) (s : seq nat) u (k : A -> law R O) : u \in s ->
  look_up raised [seq (v, g v) | v <- s] u k = k (g u).
Proof.
rewrite /look_up; elim: s => [|v s IH] //=; rewrite inE eq_sym.
by case: (v =P u) => [->|_] //=.
Qed.

Lemma put_new A (g : nat -> A) (s : seq nat) u : u \notin s ->
  put [seq (v, g v) | v <- s] u (g u) = [seq (v, g v) | v <- rcons s u].
Proof. by move=> new; rewrite /put /has_key keys_of (negbTE new) map_rcons. Qed.

End Loops.

Section Typical.
Variables (R : realFieldType) (V : vocab) (raised : answer R V).
Variables (xs : seq V) (parents : seq nat) (qs : seq (option (V -> R))) (d : V).
Variables (p : seq V -> V -> R) (h0 : seq V).
Hypothesis parents_size : size parents = size xs.
Hypothesis parents_first : forall j, (j < size xs)%N -> (parent_at parents j <= j)%N.
Implicit Types (j k u : nat) (a : seq V * R).
Notation tok := (token_at xs d).
Notation par := (parent_at parents).
Notation path_to := (word xs parents d).
Notation the_block := (flat xs parents qs).
Notation rows := (rows_of xs parents d p h0).

(** The block as Medusa.v has it: each token with the place where it hangs. *)
Definition placed : seq (candidate V) := zip xs parents.

Lemma placed_size : size placed = size xs.
Proof. by rewrite size_zip parents_size minnn. Qed.

Lemma placed_at j : nth (d, 0%N) placed j = (tok j, par j).
Proof. by rewrite nth_zip. Qed.

(** ** Ways through the block *)

Lemma path_word u : (u <= size xs)%N -> path_of the_block u = path_to u.
Proof.
rewrite /path_of /word; move: {2 4}u => k; elim: k u => [|k IH] [|j] //= lt.
rewrite -/(par j) IH; last by apply: leq_trans (parents_first lt) (ltnW lt).
by rewrite (drop_nth d lt) /= take0 cats1.
Qed.

Lemma ancestry_enough k u : (u <= k)%N -> (u <= size xs)%N -> nodes_upto the_block k u = ancestry the_block u.
Proof.
have [m] := ubnP u; elim: m k u => // m IH [|k] [|j] //= lt le sz.
have first := parents_first sz; rewrite -/(par j).
have short : (par j < m)%N by apply: leq_ltn_trans first _.
have small : (par j <= size xs)%N by apply: leq_trans first (ltnW sz).
by rewrite /ancestry /= -/(par j) !IH // (leq_trans first).
Qed.

Lemma ancestry_next j : (j < size xs)%N -> ancestry the_block j.+1 = rcons (ancestry the_block (par j)) j.
Proof.
move=> lt; have first := parents_first lt; rewrite /ancestry /= -/(par j) ancestry_enough //.
exact: leq_trans first (ltnW lt).
Qed.

Lemma ancestry_size u : size (ancestry the_block u) = size (path_to u).
Proof.
by rewrite /ancestry /word; move: {1 3}u => k; elim: k u => [|k IH] [|j] //=; rewrite !size_rcons IH.
Qed.

(** ** What stands at each node *)

Section Passing.
Variable passes : seq V -> V -> bool.

Definition standings : seq (standing R V) := foldl (extend p passes h0) [:: Some ([::], 1)] placed.
Definition stand u : standing R V := nth None standings u.
Definition likelihood_of u : R := if stand u is Some a then a.2 else 0.
Definition is_reached u : bool := isSome (stand u).

Lemma extended_size s b : size (foldl (extend p passes h0) s b) = (size s + size b)%N.
Proof. by elim: b s => [|c b IH] s; rewrite /= ?addn0 // IH size_rcons addnS addSn. Qed.

Lemma extended_nth s b u : (u < size s)%N -> nth None (foldl (extend p passes h0) s b) u = nth None s u.
Proof.
elim: b s => [|c b IH] s //= lt; rewrite IH ?size_rcons ?(leq_trans lt) //.
by rewrite nth_rcons lt.
Qed.

Lemma standings_size : size standings = (size xs).+1.
Proof. by rewrite extended_size placed_size. Qed.

Lemma stand_root : stand 0 = Some ([::], 1).
Proof. by rewrite /stand extended_nth. Qed.

Lemma stand_raw j : (j < size xs)%N -> stand j.+1
  = if stand (par j) is Some a then
      if passes (h0 ++ a.1) (tok j) then Some (rcons a.1 (tok j), a.2 * p (h0 ++ a.1) (tok j)) else None
    else None.
Proof.
move=> lt; have lt' : (j < size placed)%N by rewrite placed_size.
pose before := foldl (extend p passes h0) [:: Some ([::], 1)] (take j placed).
have sz : size before = j.+1 by rewrite extended_size size_takel // ltnW.
have e : standings = foldl (extend p passes h0) (extend p passes h0 before (tok j, par j)) (drop j.+1 placed).
  by rewrite /standings -{1}(cat_take_drop j placed) foldl_cat (drop_nth (d, 0%N) lt') placed_at.
have grown : size (extend p passes h0 before (tok j, par j)) = j.+2 by rewrite size_rcons sz.
have first : (par j < j.+1)%N by rewrite ltnS parents_first.
have up : stand (par j) = nth None before (par j).
  by rewrite /stand e extended_nth ?grown ?(leqW first) // /extend nth_rcons sz first.
by rewrite up /stand e extended_nth ?grown // /extend nth_rcons sz ltnn eqxx.
Qed.

Lemma stand_word u a : (u <= size xs)%N -> stand u = Some a -> a.1 = path_to u.
Proof.
have [m] := ubnP u; elim: m u a => // m IH [|j] a lt sz; first by rewrite stand_root => -[<-].
have first := parents_first sz; rewrite stand_raw //; case up: (stand (par j)) => [b|] //.
have bw : b.1 = path_to (par j).
  by apply: IH up; [apply: leq_ltn_trans first _ | apply: leq_trans first (ltnW sz)].
by case: ifP => // _ [<-]; rewrite word_next //= bw.
Qed.

(** A node is reached where it passes and the one above it is reached. *)
Lemma reached_next j : (j < size xs)%N ->
  is_reached j.+1 = is_reached (par j) && passes (h0 ++ path_to (par j)) (tok j).
Proof.
move=> lt; rewrite /is_reached stand_raw //; case up: (stand (par j)) => [a|] //=.
by rewrite (stand_word _ up) ?(leq_trans (parents_first lt) (ltnW lt)) //; case: ifP.
Qed.

Lemma likelihood_of_next j : (j < size xs)%N -> is_reached j.+1 ->
  likelihood_of j.+1 = likelihood_of (par j) * p (h0 ++ path_to (par j)) (tok j).
Proof.
move=> lt; rewrite /is_reached /likelihood_of stand_raw //; case up: (stand (par j)) => [a|] //=.
by rewrite (stand_word _ up) ?(leq_trans (parents_first lt) (ltnW lt)) //; case: ifP.
Qed.

(** ** The longest path *)

Definition at_least_as_good u u' : bool := better (path_to u, likelihood_of u) (path_to u', likelihood_of u').
Definition take_better (best u : nat) : nat := if is_reached u && at_least_as_good best u then u else best.
Definition longest_node : nat := foldl take_better 0%N (iota 1 (size xs)).

Lemma stand_is u : (u <= size xs)%N -> is_reached u -> stand u = Some (path_to u, likelihood_of u).
Proof.
move=> le; rewrite /is_reached /likelihood_of; case at_u: (stand u) => [a|] // _.
by rewrite -(stand_word le at_u) -surjective_pairing.
Qed.

Lemma better_so_far u n best : (u + n = (size xs).+1)%N -> (best <= size xs)%N -> is_reached best ->
  let far := foldl take_better best (iota u n) in
  [/\ (far <= size xs)%N, is_reached far = true
    & foldl (@pick_best R V) (path_to best, likelihood_of best) [seq stand v | v <- iota u n]
      = (path_to far, likelihood_of far)].
Proof.
elim: n u best => [|n IH] u best //= e le ok.
have lt : (u <= size xs)%N by rewrite -ltnS -e addnS ltnS leq_addr.
have step : pick_best (path_to best, likelihood_of best) (stand u)
    = (path_to (take_better best u), likelihood_of (take_better best u)).
  rewrite /take_better; case there: (is_reached u) => /=; last by move: there; rewrite /is_reached; case: (stand u).
  by rewrite stand_is //= -/(at_least_as_good best u); case: ifP.
rewrite step; apply: IH; first by rewrite addSnnS.
- by rewrite /take_better; case: ifP.
- by rewrite /take_better; case: ifP => // /andP[].
Qed.

Lemma reached_root : is_reached 0 = true. Proof. by rewrite /is_reached stand_root. Qed.

Lemma longest_is : [/\ (longest_node <= size xs)%N, is_reached longest_node = true
  & longest_passing p passes h0 placed = path_to longest_node].
Proof.
have [le ok e] := better_so_far (add1n _) (leq0n _) reached_root.
split=> //; rewrite /longest_passing -/standings.
have -> : standings = [seq stand v | v <- iota 0 (size xs).+1] by rewrite -standings_size -/(mkseq _ _) mkseq_nth.
have l0 : likelihood_of 0 = 1 by rewrite /likelihood_of stand_root.
rewrite /= stand_root /pick_best [better _ _](_ : _ = true); last by rewrite /better /= lexx.
by rewrite l0 in e; rewrite [foldl _ _ _]e.
Qed.

(** The key by which the program compares nodes has the same order on nodes that come later. *)
Definition key_of u : nat * (nat * R * nat) := (u, (size (ancestry the_block u), likelihood_of u, u)).
Notation exceeds := (by_both (by_both fewer (@less R)) fewer).

Lemma exceeds_is u u' : (u < u')%N -> exceeds (key_of u).2 (key_of u').2 = at_least_as_good u u'.
Proof.
move=> lt; rewrite /by_both /= /less /fewer lt andbT !ancestry_size /at_least_as_good /better /= xpair_eqE le_eqVlt.
by case: (_ < _)%N => //=; case: (_ == _) => //=; rewrite orbC.
Qed.

Lemma greatest_from u n best : (best < u)%N ->
  (foldl (fun e e' => if exceeds e.2 e'.2 then e' else e) (key_of best)
     [seq key_of v | v <- [seq v <- iota u n | is_reached v]]).1 = foldl take_better best (iota u n).
Proof.
elim: n u best => [|n IH] u best lt //=; rewrite {2}/take_better.
case there: (is_reached u) => /=; last by rewrite IH // ltnW.
by rewrite exceeds_is //; case: ifP => _; rewrite IH // ltnW.
Qed.

(** ** The program *)

Definition live j : seq nat := [seq u <- iota 0 j.+1 | is_reached u].
Definition verdicts : seq bool := [seq passes (h0 ++ path_to e.2) e.1 | e <- placed].
Definition returned_typical : outcome V :=
  (typical p passes (fun h => first_max d (p h)) h0 placed, ancestry the_block longest_node).

Lemma live_next j : live j.+1 = if is_reached j.+1 then rcons (live j) j.+1 else live j.
Proof.
rewrite /live -(addn1 j.+1) iotaD filter_cat add0n [filter _ (iota _ 1)]/=.
by case: ifP; rewrite ?cats1 ?cats0.
Qed.

Lemma live_in j u : (u \in live j) = (u <= j)%N && is_reached u.
Proof. by rewrite mem_filter mem_iota /= ltnS andbC. Qed.

Lemma best_row w (k : V -> answer R V) : argmax_row raised w k = k (first_max d w).
Proof. by rewrite /argmax_row /first_max; have := token_in d; case: (tokens V). Qed.

Lemma longest_passing_runs (k : outcome V -> answer R V) :
  py_longest_passing raised rows the_block verdicts k = k returned_typical.
Proof.
rewrite /py_longest_passing /zipped /= parents_size eqxx -/placed /enumerate.
set body := (fun '(j, (x, parent)) => _); set after := (fun '(l, paths) => _).
pose paths_of j := [seq (u, ancestry the_block u) | u <- live j].
pose likelihoods_of j := [seq (u, likelihood_of u) | u <- live j].
have loop n j : (j + n = size xs)%N ->
    for_in (zip (iota j n) (drop j placed)) (likelihoods_of j, paths_of j) body after
    = after (likelihoods_of (size xs), paths_of (size xs)).
  elim: n j => [|n IH] j e.
    by rewrite addn0 in e; rewrite -e drop_oversize // placed_size e.
  have lt : (j < size xs)%N by rewrite -e addnS ltnS leq_addr.
  have lt' : (j < size placed)%N by rewrite placed_size.
  have first := parents_first lt; have new : j.+1 \notin live j by rewrite live_in ltnn.
  have turn st next out : st = (likelihoods_of j, paths_of j) ->
      body (j, (tok j, par j)) st next out = next (likelihoods_of j.+1, paths_of j.+1).
    move=> ->; rewrite /body (item_nth raised false) ?size_map ?placed_size //.
    rewrite (nth_map (d, 0%N)) // placed_at /= /has_key keys_of live_in first /=.
    rewrite /likelihoods_of /paths_of live_next reached_next //.
    case passed: (passes _ _); last by rewrite andbF.
    case up: (is_reached (par j)) => //=.
    have in_live : par j \in live j by rewrite live_in first up.
    rewrite !look_up_of // row_of ?(leq_trans first (ltnW lt)) //.
    rewrite cats1 -ancestry_next // -likelihood_of_next ?reached_next ?up ?passed //.
    by rewrite (put_new (ancestry the_block)) // (put_new likelihood_of).
  pose onward st := for_in (zip (iota j.+1 n) (drop j.+1 placed)) st body after.
  rewrite (drop_nth (d, 0%N) lt') placed_at.
  rewrite -[LHS]/(body (j, (tok j, par j)) (likelihoods_of j, paths_of j) onward after) turn //.
  by rewrite /onward IH // addSnnS.
have start : likelihoods_of 0%N = [:: (0%N, 1)] /\ paths_of 0%N = [:: (0%N, [::])].
  by rewrite /likelihoods_of /paths_of /live /= reached_root /= /likelihood_of stand_root.
have := loop (size xs) 0%N erefl; rewrite drop0 !start.1 !start.2 placed_size => ->.
rewrite /after keys_of (for_in_map (g := key_of)) => [|u made next out inl]; last by rewrite !look_up_of.
have [le ok e] := longest_is.
have whole : live (size xs) = 0%N :: [seq u <- iota 1 (size xs) | is_reached u] by rewrite /live /= reached_root.
rewrite /greatest {1}whole /= greatest_from // -/longest_node.
rewrite row_of // best_row look_up_of; last by rewrite live_in le ok.
by rewrite path_word // cats1 /returned_typical /typical e.
Qed.

End Passing.

(** ** The two forms *)

Variables (threshold : (V -> R) -> R -> R -> R -> R) (inside_log epsilon delta : R).

Lemma verdicts_run test (k : seq bool -> answer R V) :
  zipped raised (block_tokens the_block) (block_parents the_block) (fun v2 =>
    for_in v2 [::] (fun '(x, parent) v1 next out =>
      row_after raised rows parent (fun v3 =>
        row_after raised rows parent (fun v4 =>
          next (rcons v1 (test v4 (v3 x)))))) k)
  = k (verdicts (fun h x => test (p h) (p h x))).
Proof.
rewrite /zipped /= parents_size eqxx -/placed.
have e : placed = [seq (tok j, par j) | j <- iota 0 (size xs)].
  by rewrite -[LHS](mkseq_nth (d, 0%N)) placed_size; apply: eq_map => j; apply: placed_at.
rewrite /verdicts e (for_in_mapped (g := fun j => test (p (h0 ++ path_to (par j))) (p (h0 ++ path_to (par j)) (tok j)))).
  by rewrite -map_comp.
move=> j made next out; rewrite mem_iota => /andP[_ lt].
by rewrite !row_of // (leq_trans (parents_first lt) (ltnW lt)).
Qed.

Notation strict := (over p (fun h => threshold (p h) epsilon delta inside_log)).
Notation inclusive := (at_least p (fun h => threshold (p h) epsilon delta 0)).
Notation top := (fun h => first_max d (p h)).

Theorem typical_runs : py_typical raised threshold inside_log rows the_block epsilon delta
  = ret (typical p strict top h0 placed, ancestry the_block (longest_node strict)).
Proof.
rewrite /py_typical /=.
rewrite (verdicts_run (fun r px => threshold r epsilon delta inside_log < px)).
exact: longest_passing_runs.
Qed.

Theorem typical_inclusive_runs : py_typical_inclusive raised threshold rows the_block epsilon delta
  = ret (typical p inclusive top h0 placed, ancestry the_block (longest_node inclusive)).
Proof.
rewrite /py_typical_inclusive /=.
rewrite (verdicts_run (fun r px => threshold r epsilon delta 0 <= px)).
exact: longest_passing_runs.
Qed.

End Typical.
