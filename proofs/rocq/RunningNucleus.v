(** The rules that run are the rules that the theorems are about: Medusa's nucleus mode.

    What it says.  On every flat block, as in RunningTrees.v, for every target, with any
    level in (0, 1], with any [raised] and with the last token drawn or the argmax:
    - [nucleus_runs]       the program of nucleus.py emits what [nucleus] of Medusa.v does,
                           every row being the [filtered] one;
    - [nucleus_path_runs]  and the path that it returns is that of the nodes whose tokens
                           these are: each leaf's nodes as far as they agreed, the longest,
                           of equally long ones that of the leaf that was drafted last.
    So no error is met: a filtered row has mass.

    Source: ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Greedy Typical Medusa Python Translated Running RunningTrees RunningTypical.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The heaviest token stays in the row. *)
Section Filtered.
Variables (R : realFieldType) (V : vocab) (level : R) (d : V).
Hypothesis level_pos : 0 < level.

Lemma heaviest_kept (r : V -> R) : dist r -> kept level r (first_max d r) = true.
Proof.
case=> r0 r1; rewrite /kept r1 mulr1 [X in X < _](_ : _ = 0) // -[RHS](@total0 R V); apply: total_ext => y.
rewrite /Medusa.before [_ < r y]ltNge first_max_ge /=; case: eqP => [e|_]; last by rewrite mul0r.
case: ltnP => lt; last by rewrite mul0r.
by have := first_max_first lt; rewrite e ltxx.
Qed.

Lemma kept_mass_pos (r : V -> R) : dist r -> kept_mass r (kept level r) != 0.
Proof.
move=> rP; have [r0 r1] := rP; apply/eqP => z; have k0 x : 0 <= (kept level r x)%:R * r x by rewrite mulr_ge0 ?ler0n.
have := total_eq0 k0 z (first_max d r); rewrite heaviest_kept // mul1r => top0.
have r_0 x : r x = 0 by apply/eqP; rewrite eq_le r0 andbT -top0 first_max_ge.
by move: r1; rewrite (total_ext (g := fun _ => 0)) // total0 => /eqP; rewrite eq_sym oner_eq0.
Qed.

Lemma filtered_dist (p : seq V -> V -> R) h : dist (p h) -> dist (filtered level p h).
Proof. by move=> pP; apply: nucleus_row_dist => //; apply: kept_mass_pos. Qed.

End Filtered.

Section Nucleus.
Variables (R : realFieldType) (V : vocab) (raised : answer R V).
Variables (xs : seq V) (parents : seq nat) (qs : seq (option (V -> R))) (d : V).
Variables (p : seq V -> V -> R) (h0 : seq V) (level : R) (fast : bool).
Hypothesis pP : forall h, dist (p h).
Hypothesis level_pos : 0 < level.
Hypothesis level_le1 : level <= 1.
Hypothesis parents_size : size parents = size xs.
Hypothesis parents_first : forall j, (j < size xs)%N -> (parent_at parents j <= j)%N.
Implicit Types (j k u : nat) (s best : seq nat) (f : outcome V -> R).
Notation tok := (token_at xs d).
Notation par := (parent_at parents).
Notation path_to := (word xs parents d).
Notation the_block := (flat xs parents qs).
Notation rows := (rows_of xs parents d p h0).
Notation nodes_to := (ancestry the_block).
Notation tokens_of s := [seq tok j | j <- s].
Notation r := (filtered level p).
Notation top := (fun h => first_max d (filtered level p h)).

Lemma rowsP h : dist (r h). Proof. exact: (filtered_dist d level_pos (pP h)). Qed.

(** ** Ways down to a node *)

Lemma said_word u : (u <= size xs)%N -> tokens_of (nodes_to u) = path_to u.
Proof.
have [m] := ubnP u; elim: m u => // m IH [|j] //= lt sz; have first := parents_first sz.
rewrite (ancestry_next qs parents_first) // word_next // map_rcons IH //; first by apply: leq_ltn_trans first _.
exact: leq_trans first (ltnW sz).
Qed.

(** What is above one of the nodes on a way is the way to its parent. *)
Lemma way_above u pre j s : (u <= size xs)%N -> nodes_to u = pre ++ j :: s -> (j < size xs)%N /\ pre = nodes_to (par j).
Proof.
have [m] := ubnP u; elim: m u pre s => // m IH [|i] pre s lt sz; first by case: pre.
have first := parents_first sz; rewrite (ancestry_next qs parents_first) //.
case/lastP: s => [|s i'].
  by rewrite cats1 => /eqP; rewrite eqseq_rcons => /andP[/eqP <- /eqP <-].
rewrite -rcons_cons -rcons_cat => /eqP; rewrite eqseq_rcons => /andP[/eqP e _].
by apply: IH e; [apply: leq_ltn_trans first _ | apply: leq_trans first (ltnW sz)].
Qed.

Lemma way_split u n : (n < size (nodes_to u))%N ->
  nodes_to u = take n (nodes_to u) ++ nth 0%N (nodes_to u) n :: drop n.+1 (nodes_to u).
Proof. by move=> lt; rewrite -drop_nth // cat_take_drop. Qed.

Lemma way_begins u n : (u <= size xs)%N -> exists2 v, (v <= size xs)%N & take n (nodes_to u) = nodes_to v.
Proof.
move=> sz; case: (ltnP n (size (nodes_to u))) => [lt|ge]; last by exists u; rewrite ?take_oversize.
have [jlt ->] := way_above sz (way_split lt); exists (par (nth 0%N (nodes_to u) n)) => //.
exact: leq_trans (parents_first jlt) (ltnW jlt).
Qed.

Lemma way_in u j : (u <= size xs)%N -> j \in nodes_to u -> (j < size xs)%N.
Proof.
move=> sz jin; have lt : (index j (nodes_to u) < size (nodes_to u))%N by rewrite index_mem.
by have [] := way_above sz (way_split lt); rewrite nth_index.
Qed.

(** ** The leaves *)

Definition is_leaf j : bool := size (children_of the_block j.+1) == 0%N.
Definition leaf_nodes : seq nat := rev [seq j <- iota 0 (size xs) | is_leaf j].

Lemma paths_are : paths (placed xs parents) = [seq path_to u | u <- iota 0 (size xs).+1].
Proof.
have sz := placed_size parents_size.
suff upto n : (n <= size xs)%N ->
    foldl (fun ps (c : candidate V) => rcons ps (rcons (nth [::] ps c.2) c.1)) [:: [::]] (take n (placed xs parents))
    = [seq path_to u | u <- iota 0 n.+1].
  by have := upto _ (leqnn _); rewrite -{1}sz take_size.
elim: n => [|n IH] lt; first by rewrite take0.
have first := parents_first lt.
have -> : [seq path_to u | u <- iota 0 n.+2] = rcons [seq path_to u | u <- iota 0 n.+1] (path_to n.+1).
  by rewrite -(addn1 n.+1) iotaD map_cat add0n cats1.
rewrite (take_nth (d, 0%N)) ?sz // foldl_rcons IH ?(ltnW lt) // placed_at //; congr (rcons _ _).
by rewrite word_next // [(_, _).2]/= (nth_map 0%N) ?size_iota ?ltnS // nth_iota ?ltnS // add0n.
Qed.

Lemma leaves_are : leaves (placed xs parents) = [seq tokens_of (nodes_to j.+1) | j <- leaf_nodes].
Proof.
rewrite /leaves /leaf_nodes -filter_rev placed_size //.
have e j : j \in rev (iota 0 (size xs)) -> (j < size xs)%N by rewrite mem_rev mem_iota.
have -> : [seq j <- rev (iota 0 (size xs)) | ~~ has (fun c : candidate V => c.2 == j.+1) (placed xs parents)]
        = [seq j <- rev (iota 0 (size xs)) | is_leaf j].
  apply: eq_in_filter => j _; rewrite /is_leaf children_are_kids // size_filter -leqn0 leqNgt -has_count.
  congr (~~ _); rewrite -[placed xs parents](mkseq_nth (d, 0%N)) placed_size // has_map.
  by apply: eq_has => i /=; rewrite placed_at.
apply/eq_in_map => j; rewrite mem_filter => /andP[_ /e lt].
by rewrite paths_are (nth_map 0%N) ?size_iota ?ltnS // nth_iota ?ltnS // add0n said_word.
Qed.

(** ** The longest agreeing path, by its nodes *)

Fixpoint longest_of js best : law R (seq nat) :=
  if js is leaf :: js' then
    n <~ agreeing r h0 (tokens_of (nodes_to leaf.+1));;
    longest_of js' (if (size best < n)%N then take n (nodes_to leaf.+1) else best)
  else ret best.

Definition nucleus_nodes : law R (outcome V) :=
  best <~ longest_of leaf_nodes [::];;
  let s := tokens_of best in
  if fast then ret (rcons s (top (h0 ++ s)), best) else y <~ pick (r (h0 ++ s));; ret (rcons s y, best).

Lemma lawful_longest_of js best : lawful (longest_of js best).
Proof.
elim: js best => [|leaf js IH] best /=; first exact: lawful_ret.
by apply: lawful_bind => [|n]; [apply: (lawful_agreeing rowsP) | apply: IH].
Qed.

Lemma longest_said js best (F : seq V -> R) :
  longest_of js best (fun b => F (tokens_of b))
  = longest_agreeing r h0 [seq tokens_of (nodes_to j.+1) | j <- js] (tokens_of best) F.
Proof.
elim: js best => [|leaf js IH] best //=; apply: (law_ext (lawful_agreeing rowsP _ _)) => n.
by rewrite IH size_map; case: ifP => _; rewrite // map_take.
Qed.

(** ** The program *)

Lemma rows_filtered (k : seq (V -> R) -> answer R V) :
  for_in rows [::] (fun row v1 next out =>
    keep_top_p raised level row (fun v2 => py_normalised raised v2 (fun v3 => next (rcons v1 v3)))) k
  = k (rows_of xs parents d r h0).
Proof.
rewrite (for_in_mapped (g := fun u => r (h0 ++ path_to u))) // => u made next out _.
by rewrite /keep_top_p level_pos level_le1 /py_normalised (negbTE (kept_mass_pos d level_pos (pP _))).
Qed.

Theorem nucleus_path_runs f : py_nucleus raised rows the_block level fast f = nucleus_nodes f.
Proof.
rewrite /py_nucleus rows_filtered (@for_in_filter _ _ _ _ is_leaf); last first.
  by move=> j made next out; rewrite negbK -/(is_leaf j); case: (is_leaf j).
rewrite cat0s /= -/leaf_nodes; set body := (fun leaf 'best => _); set after := (fun 'best => _).
pose emitted best : R := let s := tokens_of best in
  if fast then f (rcons s (top (h0 ++ s)), best) else pick (r (h0 ++ s)) (fun y => f (rcons s y, best)).
have emits v : (v <= size xs)%N -> after (nodes_to v) f = emitted (nodes_to v).
  move=> le; rewrite /emitted.
  pose write y : answer R V :=
    for_in (nodes_to v) [::] (fun j made next out => item raised (block_tokens the_block) j (fun x => next (rcons made x)))
      (fun words => ret (words ++ [:: y], nodes_to v)).
  pose onward u : answer R V := row_after raised (rows_of xs parents d r h0) u (fun row =>
    if fast then argmax_row raised row write else ask_choose raised row write).
  have written y : write y f = f (rcons (tokens_of (nodes_to v)) y, nodes_to v).
    rewrite /write (for_in_map (g := tok)) => [|j made next out jin]; first by rewrite /ret cats1.
    by rewrite (item_nth raised d) // (way_in le jin).
  have -> : after (nodes_to v) = onward v.
    rewrite -[LHS]/(if size (nodes_to v) != 0%N then last_item raised (nodes_to v) (fun j => onward j.+1) else onward 0%N).
    case: (v) le => [|j] le' //; rewrite (ancestry_next qs parents_first) //.
    by rewrite size_rcons /= /last_item rev_rcons.
  rewrite /onward row_of // -said_word //; case: (fast); first by rewrite (best_row _ d) written.
  rewrite choose_dist; last exact: rowsP.
  by apply: total_ext => y; rewrite written.
have judged u s pre : (u <= size xs)%N -> nodes_to u = pre ++ s -> forall nxt,
    for_in (zip (iota (size pre) (size s)) s) (size pre) (fun '(depth, j) 'kept next out =>
      item raised (block_parents the_block) j (fun v5 =>
        row_after raised (rows_of xs parents d r h0) v5 (fun v6 =>
          ask_choose raised v6 (fun v7 =>
            item raised (block_tokens the_block) j (fun v8 => if v7 != v8 then out kept else next kept.+1))))) nxt f
    = agreeing r (h0 ++ tokens_of pre) (tokens_of s) (fun n => nxt (size pre + n)%N f).
  move=> le; elim: s pre => [|j s IH] pre e nxt; first by rewrite /= /ret addn0.
  have [jlt above] := way_above le e; have first := parents_first jlt.
  rewrite [LHS]/= (item_nth raised 0%N) ?parents_size // -/(par j) row_of ?(leq_trans first (ltnW jlt)) //.
  rewrite choose_dist; last exact: rowsP.
  have -> : path_to (par j) = tokens_of pre by rewrite above said_word // (leq_trans first (ltnW jlt)).
  apply: total_ext => y; congr (_ * _); rewrite (item_nth raised d) //.
  rewrite -/(tok j); case: (y =P tok j) => _ /=; last by rewrite /ret addn0.
  have := IH (rcons pre j); rewrite size_rcons cat_rcons => /(_ e nxt) ->.
  rewrite map_rcons -rcons_cat /bind /ret; apply: (law_ext (lawful_agreeing rowsP _ _)) => n.
  by rewrite addnS addSn.
have loop leaves v : (v <= size xs)%N -> all (fun j => (j < size xs)%N) leaves ->
    for_in leaves (nodes_to v) body after f = longest_of leaves (nodes_to v) emitted.
  elim: leaves v => [|leaf leaves IH] v le /=; first by rewrite emits.
  case/andP=> lt ok; rewrite {1}/body (judged leaf.+1 _ [::]) //=.
  rewrite cats0; apply: (law_ext (lawful_agreeing rowsP _ _)) => n; rewrite add0n.
  have [v' le' e] := way_begins n lt; case: ifP => _; last exact: IH.
  by rewrite e IH.
have := loop leaf_nodes 0%N; rewrite /nodes_to /= => -> //; first last.
  by apply/allP => j; rewrite mem_rev mem_filter mem_iota => /and3P[].
rewrite /nucleus_nodes /bind /emitted /=.
by apply: (law_ext (lawful_longest_of _ _)) => best; case: (fast).
Qed.

Theorem nucleus_runs (g : seq V -> R) : py_nucleus raised rows the_block level fast (fun o => g o.1)
  = nucleus r fast top h0 (placed xs parents) g.
Proof.
rewrite nucleus_path_runs /nucleus_nodes /nucleus /nucleus_paths leaves_are.
pose F (s : seq V) := (if fast then ret (rcons s (top (h0 ++ s))) else y <~ pick (r (h0 ++ s));; ret (rcons s y)) g.
rewrite -[RHS](longest_said leaf_nodes [::] F) /F /bind.
by apply: (law_ext (lawful_longest_of _ _)) => best; case: fast.
Qed.

End Nucleus.
