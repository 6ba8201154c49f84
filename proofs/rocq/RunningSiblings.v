(** The rules that run are the rules that the theorems are about: candidates judged one by one.

    What it says.  On every flat block, as in RunningTrees.v:
    - [point_mass_runs]           the program of point_mass.py has the law of [point_mass];
    - [iid_candidates_runs]       that of iid_candidates.py, on candidates that the draft's
                                  rows can have drawn, has the law of the walk that judges
                                  every node by [judge] of Siblings.v;
    - [without_replacement_runs]  that of without_replacement.py, on candidates of which no
                                  sibling comes twice, judged by what was left of the row.
    The program visits the nodes in the order of the list and passes over all that do not
    hang where it stands ([scan]); the theorems walk down a tree ([scan_is_walk]).

    Source: ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Chain Tree Siblings PointMass IidCandidates WithoutReplacement Agreement
  Greedy Leviathan Block Python Translated Running RunningTrees.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Scan.
Variables (R : realFieldType) (V : vocab) (raised : answer R V).
Variables (xs : seq V) (parents : seq nat) (d : V).
Variables (p : seq V -> V -> R) (h0 : seq V).
Hypothesis parents_size : size parents = size xs.
Hypothesis parents_first : forall j, (j < size xs)%N -> (parent_at parents j <= j)%N.
Implicit Types (g : seq V -> R) (i j u : nat).
Notation tok := (token_at xs d).
Notation par := (parent_at parents).
Notation path_to := (word xs parents d).
Notation below := (kids xs parents).
Notation onward := (from_node xs parents d h0).

(** A rule that keeps or refuses one candidate after the other, remembering [S]. *)
Section Rule.
Variable S : Type.
Variables (fresh : seq V -> S) (chance_of : seq V -> S -> V -> R) (refuse : seq V -> S -> V -> S).
Variable last_row : seq V -> S -> V -> R.

Fixpoint try_kids h s i cs : law R (choice V) :=
  if cs is c :: cs' then
    kept <~ coin (chance_of h s c);;
    if kept then ret (c, Some i) else try_kids h (refuse h s c) i.+1 cs'
  else y <~ pick (last_row h s);; ret (y, None).
Definition try_node h cs : law R (choice V) := try_kids h (fresh h) 0 cs.

(** What a program does that goes through the nodes [js] in order, standing at [u]. *)
Fixpoint scan js u s g said : R :=
  if js is j :: js' then
    if par j != u then scan js' u s g said else
    chance_of (h0 ++ path_to u) s (tok j) * scan js' j.+1 (fresh (h0 ++ path_to j.+1)) g (rcons said (tok j))
    + (1 - chance_of (h0 ++ path_to u) s (tok j)) * scan js' u (refuse (h0 ++ path_to u) s (tok j)) g said
  else pick (last_row (h0 ++ path_to u) s) (fun y => g (rcons said y)).

Lemma try_ext h s i cs f f' : f =1 f' -> try_kids h s i cs f = try_kids h s i cs f'.
Proof.
move=> e; elim: cs s i => [|c cs IH] s i /=; first by apply: total_ext => y; rewrite /ret e.
by rewrite /bind /coin /= /ret e IH.
Qed.

Lemma try_shift h s i cs f : try_kids h s i.+1 cs f = try_kids h s i cs (fun o => f (o.1, omap succn o.2)).
Proof. by elim: cs s i => [|c cs IH] s i //=; rewrite /bind /coin /= IH. Qed.

Lemma grown_ext h k u f f' : f =1 f' ->
  walk try_node h (grown xs parents d k u) f = walk try_node h (grown xs parents d k u) f'.
Proof.
elim: k h u f f' => [|k IH] h u f f' e /=; apply: try_ext => -[x [m|]] //=; rewrite /bind /ret ?nth_nil //.
rewrite -map_comp; case: (ltnP m (size (below u))) => [lt|ge]; last by rewrite nth_default ?size_map // /ret e.
by rewrite (nth_map 0%N) //=; apply: IH => s; rewrite e.
Qed.

(** Go on below the candidate that was kept. *)
Definition go_on (ks : seq nat) said g (o : choice V) : R :=
  if o.2 is Some m then
    if (m < size ks)%N then onward try_node (nth 0%N ks m).+1 (rcons said o.1) g else g (rcons said o.1)
  else g (rcons said o.1).

Lemma step_try u said g : onward try_node u said g
  = try_kids (h0 ++ path_to u) (fresh (h0 ++ path_to u)) 0 [seq tok j | j <- below u] (go_on (below u) said g).
Proof.
rewrite (from_step d parents_first); last by move=> *; apply: try_ext.
apply: try_ext => -[x [m|]]; rewrite /go_on; cbn [fst snd]; last by rewrite cats1.
case: ifP => [lt|_]; last by rewrite cats1.
have [jlt e _] := kid parents_first (mem_nth 0%N lt); rewrite /from_node (word_next d parents_first jlt) e rcons_cat.
by apply: grown_ext => s; rewrite cat_rcons.
Qed.

(** The below of [u] that are still to come when the program is at place [i]. *)
Definition kids_from i u : seq nat := [seq j <- iota i (size xs - i) | par j == u].

Lemma kids_from_start u : (u <= size xs)%N -> kids_from u u = below u.
Proof.
move=> le; rewrite /kids_from /kids -{2}(subnKC le) iotaD filter_cat add0n.
have -> : [seq j <- iota 0 u | par j == u] = [::]; last by [].
rewrite -[RHS](filter_pred0 (iota 0 u)); apply: eq_in_filter => j.
rewrite mem_iota add0n => /andP[_ lt]; apply/negbTE; rewrite neq_ltn.
by rewrite (leq_ltn_trans (parents_first (leq_trans lt le)) lt).
Qed.

Lemma scan_is_walk i u s g said : (u <= i)%N -> (i <= size xs)%N ->
  scan (iota i (size xs - i)) u s g said
  = try_kids (h0 ++ path_to u) s 0 [seq tok j | j <- kids_from i u] (go_on (kids_from i u) said g).
Proof.
move: {2}(size xs - i)%N (erefl (size xs - i)%N) => m.
elim: m i u s said => [|m IH] i u s said e ui lt; rewrite /kids_from e //=.
have ilt : (i < size xs)%N by rewrite -subn_gt0 e.
have e' : (size xs - i.+1)%N = m by rewrite subnS e.
have next u' s' said' : (u' <= i.+1)%N -> scan (iota i.+1 m) u' s' g said'
    = try_kids (h0 ++ path_to u') s' 0 [seq tok j | j <- kids_from i.+1 u'] (go_on (kids_from i.+1 u') said' g).
  by move=> le; rewrite -IH // e'.
case: ifP => [ne|/negbFE eq].
  by rewrite (negbTE ne) next ?(leqW ui) // /kids_from e'.
rewrite eq /= /bind /coin /ret; congr (_ * _ + _ * _).
  by rewrite {1}/go_on; cbn [fst snd size]; rewrite step_try next // kids_from_start.
by rewrite next ?(leqW ui) // try_shift /kids_from e'; apply: try_ext => -[x [n|]].
Qed.

Lemma scan_from_root g : scan (iota 0 (size xs)) 0 (fresh h0) g [::] = walk try_node h0 (tree_of xs parents d) g.
Proof.
have := @scan_is_walk 0 0 (fresh h0) g [::] (leqnn _) (leq0n _); rewrite subn0 => ->.
by rewrite kids_from_start // -from_root -[fresh h0]/(fresh (h0)) step_try /= cats0.
Qed.

(** A node rule that is this one, as another file writes it. *)
Lemma grown_same (node : seq V -> seq V -> law R (choice V)) h k u f :
  (forall h' cs f', node h' cs f' = try_node h' cs f') ->
  walk node h (grown xs parents d k u) f = walk try_node h (grown xs parents d k u) f.
Proof.
move=> same; elim: k h u f => [|k IH] h u f /=; rewrite /bind same; apply: try_ext => -[x [m|]] //=; rewrite ?nth_nil //.
rewrite -!map_comp; case: (ltnP m (size (below u))) => [lt|ge]; last by rewrite !nth_default ?size_map.
by rewrite !(nth_map 0%N) //= IH.
Qed.

End Rule.

(** ** Deterministic candidates *)
Section PointMassRuns.
Hypothesis pP : forall h, dist (p h).
Variable qs : seq (option (V -> R)).

Definition point_fresh h : V -> R := p h.
Definition point_chance (h : seq V) (r : V -> R) c : R := r c.
Definition point_refuse (h : seq V) (r : V -> R) c : V -> R := without r c.
Definition point_last (h : seq V) (r : V -> R) : V -> R := r.

Lemma point_odds (T rx : R) : 0 < T -> rx <= 1 -> odds (T * rx) T = rx.
Proof.
move=> T0 r1; rewrite /odds gtr_pmulr //; case: ltP => [_|ge]; first by rewrite mulrAC mulfV ?gt_eqF // mul1r.
by have -> : rx = 1; [apply/eqP; rewrite eq_le r1 | rewrite mulr1 T0].
Qed.

Theorem point_mass_runs g :
  py_point_mass raised (rows_of xs parents d p h0) (flat xs parents qs) (fun o => g o.1)
  = point_mass p h0 (tree_of xs parents d) g.
Proof.
rewrite /point_mass (@grown_same _ point_fresh point_chance point_refuse point_last); last first.
  move=> h' cs f'; rewrite /try_node /point_fresh; move: (p h') 0%N => r i.
  elim: cs r i => [|c cs IH] r i; first exact: erefl.
  by rewrite /= /bind /coin IH.
rewrite -scan_from_root /py_point_mass; cbv zeta; rewrite row_of // /word /= cats0.
set body := (fun '(_, _) => _); set after := (fun '(_, _, _, _) => _).
suff loop m i u w r path said : (size xs - i)%N = m -> (u <= i)%N -> (i <= size xs)%N -> 0 < total w ->
    (forall x, 0 <= w x) -> dist r -> (forall x, w x = total w * r x) ->
    for_in (zip (iota i m) (drop i xs)) (u, path, w, said) body after (fun o => g o.1)
    = scan point_fresh point_chance point_refuse point_last (iota i m) u r g said.
  have [p0 p1] := pP h0; have := loop (size xs) 0%N 0%N (p h0) (p h0) [::] [::].
  rewrite subn0 drop0 /enumerate p1 => -> //; first exact: ltr01.
  by move=> x; rewrite mul1r.
elim: m i u w r path said => [|m IH] i u w r path said e ui lt w1 w0 rP wr.
  rewrite drop_oversize -?subn_eq0 ?e //= /after /= choose_weights ?gt_eqF //; apply: total_ext => y.
  by congr (_ * _); rewrite wr mulrAC mulfV ?gt_eqF // mul1r.
have ilt : (i < size xs)%N by rewrite -subn_gt0 e.
have e' : (size xs - i.+1)%N = m by rewrite subnS e.
rewrite (drop_nth d ilt) /= {1}/body (item_nth raised 0%N) ?parents_size // -/(par i).
case: ifP => [_|/negbFE/eqP eq]; first by apply: IH => //; apply: leqW.
have [r0 r1] := rP; have rx1 := dist_le1 (tok i) rP.
rewrite accept_asked ?(ltW w1) // [w _]wr point_odds // row_of //.
have [p0 p1] := pP (h0 ++ path_to i.+1).
have kept := IH i.+1 i.+1 (p (h0 ++ path_to i.+1)) (p (h0 ++ path_to i.+1)) (rcons path i) (rcons said (tok i)).
rewrite kept ?p1 ?ltr01 //; last by move=> x; rewrite mul1r.
rewrite /point_chance /point_fresh; congr (_ + _); have [z|z] := eqVneq (1 - r (tok i)) 0.
  by rewrite z !mul0r.
congr (_ * _); rewrite /py_without; pose w' x := if x == tok i then 0 else w x.
have T' : total w' = total w * (1 - r (tok i)).
  rewrite (total_ext (g := fun x => w x - (x == tok i)%:R * w x)) => [|x]; last first.
    by rewrite /w'; case: eqP => _; rewrite ?mul1r ?subrr ?mul0r ?subr0.
  by rewrite total_sub total_pick wr; ring.
have pos : 0 < 1 - r (tok i) by rewrite lt_neqAle eq_sym z subr_ge0.
apply: (IH _ _ w') => //; first exact: leqW.
- by rewrite T' mulr_gt0.
- by move=> x; rewrite /w'; case: ifP.
- exact: without_dist.
- move=> x; rewrite T' /w' /point_refuse /without (negbTE z); case: eqP => _; first by rewrite mul0r mulr0.
  by rewrite wr -mulrA; congr (_ * _); rewrite mulrCA mulfV // mulr1.
Qed.

End PointMassRuns.

(** ** Independent candidates *)
Section IidRuns.
Variable q : seq V -> V -> R.
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, dist (q h).

(** Every node was drawn from the row at its parent, and can have been. *)
Definition rows_drawn : seq (option (V -> R)) := [seq Some (q (h0 ++ path_to (par j))) | j <- iota 0 (size xs)].
Hypothesis drawn_by_q : forall j, (j < size xs)%N -> 0 < q (h0 ++ path_to (par j)) (tok j).

Definition judged : Type := (V -> R) * seq V.
Definition judge_fresh h : judged := (p h, [::]).
Definition judge_chance h (s : judged) c : R := accept s.1 (q h) c.
Definition judge_refuse h (s : judged) c : judged := (residual s.1 (q h), rcons s.2 c).
Definition judge_last (h : seq V) (s : judged) : V -> R := s.1.

Theorem iid_candidates_runs g :
  py_iid_candidates raised (rows_of xs parents d p h0) (flat xs parents rows_drawn) (fun o => g o.1)
  = walk (judge_node p (same_row q)) h0 (tree_of xs parents d) g.
Proof.
rewrite (@grown_same _ judge_fresh judge_chance judge_refuse judge_last); last first.
  move=> h' cs f'; rewrite /judge_node /try_node /judge_fresh.
  move: (p h') [::] 0%N => r refused i; elim: cs r refused i => [|c cs IH] r refused i; first exact: erefl.
  by rewrite /= /bind /coin IH.
rewrite -scan_from_root /py_iid_candidates; cbv zeta; rewrite row_of // /word /= cats0.
set body := (fun '(_, _) => _); set after := (fun '(_, _, _, _) => _).
suff loop m i u r s path said : (size xs - i)%N = m -> (u <= i)%N -> (i <= size xs)%N ->
    dist s.1 -> (forall x, r x = s.1 x) ->
    for_in (zip (iota i m) (drop i xs)) (u, path, r, said) body after (fun o => g o.1)
    = scan judge_fresh judge_chance judge_refuse judge_last (iota i m) u s g said.
  have := loop (size xs) 0%N 0%N (p h0) (judge_fresh h0) [::] [::]; rewrite subn0 drop0 => -> //.
  exact: pP.
elim: m i u r s path said => [|m IH] i u r s path said e ui lt sP rs.
  have rP : dist r by have [s0 s1] := sP; split=> [x|]; rewrite ?rs // (total_ext rs).
  rewrite drop_oversize -?subn_eq0 ?e //= /after /= choose_dist //.
  by apply: total_ext => y; rewrite rs.
have ilt : (i < size xs)%N by rewrite -subn_gt0 e.
have e' : (size xs - i.+1)%N = m by rewrite subnS e.
rewrite (drop_nth d ilt) /= {1}/body (item_nth raised 0%N) ?parents_size // -/(par i).
case: ifP => [_|/negbFE/eqP eq]; first by apply: IH => //; apply: leqW.
rewrite /drawn /= item_iota // eq -/(tok i); set here := h0 ++ path_to u.
have [s0 _] := sP; have [q0 _] := qP here; have qx := drawn_by_q ilt; rewrite eq -/here in qx.
rewrite accept_asked ?rs // row_of // -[odds _ _]/(accept s.1 (q here) (tok i)).
rewrite (IH i.+1 i.+1 _ (judge_fresh (h0 ++ path_to i.+1))) //; last exact: pP.
congr (_ + _); rewrite /judge_chance -/here /py_residual /py_normalised.
have same x : Num.max (r x - q here x) 0 = excess s.1 (q here) x by rewrite rs.
have [z|z] := eqVneq (total (excess s.1 (q here))) 0; first by rewrite nothing_owed // subrr !mul0r.
rewrite (total_ext same) (negbTE z); congr (_ * _).
apply: (IH _ _ _ (judge_refuse here s (tok i))) => //; first exact: leqW.
  exact: residual_dist.
by move=> x; rewrite same /= /residual (negbTE z).
Qed.

End IidRuns.

(** ** Candidates drawn without replacement *)
Section WithoutReplacementRuns.
Variable q : seq V -> V -> R.
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, dist (q h).

(** Every node can have been drawn from the row at its parent, and no sibling before it was the same token. *)
Hypothesis drawn_by_q : forall j, (j < size xs)%N -> 0 < q (h0 ++ path_to (par j)) (tok j).
Hypothesis drawn_once : forall i j, (i < j)%N -> (j < size xs)%N -> par i = par j -> tok i != tok j.

Definition pool_chance h (s : judged) c : R := accept s.1 (renormalised q h s.2) c.
Definition pool_refuse h (s : judged) c : judged := (residual s.1 (renormalised q h s.2), rcons s.2 c).

(** The inner loop takes the refused tokens out one by one. *)
Lemma taken_out taken (w : V -> R) (after : (V -> R) -> answer R V) :
  exists2 w', forall x, w' x = if x \in taken then 0 else w x &
  for_in taken w (fun earlier w next _ => py_without w earlier next) after = after w'.
Proof.
elim: taken w => [|y taken IH] w /=; first by exists w.
have [w' e run] := IH (fun x => if x == y then 0 else w x); exists w'; last exact: run.
by move=> x; rewrite e inE; case: (x == y) => //=; case: ifP.
Qed.

(** The tokens refused at a node are those of its children that came before. *)
Definition refused_at i u (taken : seq V) := forall x, x \in taken -> exists2 j, (j < i)%N & par j = u /\ tok j = x.

Lemma refused_later i u taken : refused_at i u taken -> refused_at i.+1 u taken.
Proof. by move=> seen x /seen[j lt at_j]; exists j => //; apply: leqW. Qed.

Lemma some_left i taken : (i < size xs)%N -> refused_at i (par i) taken ->
  0 < left_over q (h0 ++ path_to (par i)) taken (tok i).
Proof.
move=> ilt seen; rewrite /left_over; case: ifP => [/seen[j ji [same tj]]|_]; last exact: drawn_by_q.
by have := drawn_once ji ilt same; rewrite tj eqxx.
Qed.

Theorem without_replacement_runs g :
  py_without_replacement raised (rows_of xs parents d p h0) (flat xs parents (rows_drawn q)) (fun o => g o.1)
  = walk (judge_node p (renormalised q)) h0 (tree_of xs parents d) g.
Proof.
rewrite (@grown_same _ judge_fresh pool_chance pool_refuse judge_last); last first.
  move=> h' cs f'; rewrite /judge_node /try_node /judge_fresh.
  move: (p h') [::] 0%N => r refused i; elim: cs r refused i => [|c cs IH] r refused i; first exact: erefl.
  by rewrite /= /bind /coin IH.
rewrite -scan_from_root /py_without_replacement; cbv zeta; rewrite row_of // /word /= cats0.
set body := (fun '(_, _) => _); set after := (fun '(_, _, _, _, _) => _).
suff loop m i u r s path said : (size xs - i)%N = m -> (u <= i)%N -> (i <= size xs)%N ->
    dist s.1 -> (forall x, r x = s.1 x) -> refused_at i u s.2 ->
    for_in (zip (iota i m) (drop i xs)) (u, path, r, s.2, said) body after (fun o => g o.1)
    = scan judge_fresh pool_chance pool_refuse judge_last (iota i m) u s g said.
  have := loop (size xs) 0%N 0%N (p h0) (judge_fresh h0) [::] [::]; rewrite subn0 drop0 => -> //.
  exact: pP.
elim: m i u r s path said => [|m IH] i u r s path said e ui lt sP rs seen.
  have rP : dist r by have [s0 s1] := sP; split=> [x|]; rewrite ?rs // (total_ext rs).
  rewrite drop_oversize -?subn_eq0 ?e //= /after /= choose_dist //.
  by apply: total_ext => y; rewrite rs.
have ilt : (i < size xs)%N by rewrite -subn_gt0 e.
have e' : (size xs - i.+1)%N = m by rewrite subnS e.
rewrite (drop_nth d ilt) /= {1}/body (item_nth raised 0%N) ?parents_size // -/(par i).
case: ifP => [_|/negbFE/eqP eq]; first by apply: IH => //; [apply: leqW | apply: refused_later].
rewrite /drawn /= item_iota // -/(tok i); have pos := some_left ilt; rewrite eq in pos *.
set here := h0 ++ path_to u in pos *; have {pos} := pos _ seen => pos.
set judge_it := (fun 'w => py_normalised _ w _); have [w wE ->] := taken_out s.2 (q here) judge_it.
have wL x : w x = left_over q here s.2 x by rewrite wE.
have some : ~~ exhausted q here s.2.
  by rewrite /exhausted gt_eqF // (lt_le_trans pos) // total_ge_term // => x; apply: left_over_ge0.
have poolP := renormalised_dist qP some; set pool := renormalised q here s.2 in poolP.
have supplied : 0 < pool (tok i).
  by rewrite /pool /renormalised divr_gt0 // lt_neqAle eq_sym some total_ge0 // => x; apply: left_over_ge0.
rewrite /judge_it /py_normalised (total_ext wL) -/(exhausted q here s.2) (negbTE some).
have poolE x : w x / total (left_over q here s.2) = pool x by rewrite wL.
have [s0 _] := sP; have [q0 _] := poolP.
rewrite accept_asked ?rs ?poolE // row_of // -[odds _ _]/(accept s.1 pool (tok i)).
rewrite (IH i.+1 i.+1 _ (judge_fresh (h0 ++ path_to i.+1))) //; last exact: pP.
congr (_ + _); rewrite /pool_chance -/here -/pool /py_residual.
have same x : Num.max (r x - w x / total (left_over q here s.2)) 0 = excess s.1 pool x by rewrite rs poolE.
have [z|z] := eqVneq (total (excess s.1 pool)) 0; first by rewrite nothing_owed // subrr !mul0r.
rewrite (total_ext same) (negbTE z); congr (_ * _).
apply: (IH _ _ _ (pool_refuse here s (tok i))) => //; first exact: leqW.
- exact: residual_dist.
- by move=> x; rewrite same /= -/pool /residual (negbTE z).
- move=> x; rewrite mem_rcons inE => /predU1P[->|]; first by exists i.
  exact: refused_later.
Qed.

End WithoutReplacementRuns.

End Scan.
