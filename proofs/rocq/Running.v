(** The rules that run are the rules that the theorems are about: chains.

    What it says.  Translated.v is the text of refengine/exact in the words of Python.v.
    For every vocabulary, every target and draft, every history and every drafted chain
    that the draft could have drawn, with any [raised]:
    - [leviathan_runs]  the program of leviathan.py has the law of [verify] of Chain.v
                        with the ratio rule, tokens and path;
    - [block_runs]      that of block.py has the law of [block_verify] of Block.v.
    So no error is met, and what is proved of the one is proved of the other:
    [leviathan_program_lossless] and [block_program_lossless] say of the programs
    themselves, drafts and all, that the target's law comes out.

    Source: ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Chain Leviathan Block Python Translated.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Words.
Variables (R : realFieldType) (V : vocab) (O : Type) (raised : law R O).
Implicit Types (w p q : V -> R) (x : V) (f : O -> R).

Lemma item_nth A (d : A) s i (k : A -> law R O) : (i < size s)%N -> item raised s i k = k (nth d s i).
Proof. by move=> lt; rewrite /item (drop_nth d lt). Qed.

Lemma item_iota A (g : nat -> A) n i (k : A -> law R O) : (i < n)%N ->
  item raised [seq g j | j <- iota 0 n] i k = k (g i).
Proof. by move=> lt; rewrite (item_nth (g 0%N)) ?size_map ?size_iota // (nth_map 0%N) ?size_iota // nth_iota. Qed.

Lemma choose_weights w (k : V -> law R O) f : (forall x, 0 <= w x) -> total w != 0 ->
  ask_choose raised w k f = pick (fun x => w x / total w) (fun y => k y f).
Proof.
move=> w0 z; have w1 : 0 < total w by rewrite lt_neqAle eq_sym z total_ge0.
by rewrite /ask_choose w1 andbT (introT allP).
Qed.

Lemma choose_dist w (k : V -> law R O) f : dist w -> ask_choose raised w k f = pick w (fun y => k y f).
Proof.
case=> w0 w1; rewrite choose_weights ?w1 ?oner_eq0 //.
by apply: total_ext => x; rewrite divr1.
Qed.

Lemma a_token w : dist w -> exists d : V, True.
Proof.
case=> _; rewrite /total; case: (tokens V) => [/eqP|d s _]; last by exists d.
by rewrite /= eq_sym oner_eq0.
Qed.

Lemma accept_asked (num den : R) (k : bool -> law R O) f : 0 <= num -> 0 <= den ->
  ask_accept raised num den k f = odds num den * k true f + (1 - odds num den) * k false f.
Proof. by move=> n0 d0; rewrite /ask_accept n0 d0. Qed.

(** Where nothing is owed, target and draft agree, and what the draft drew is kept. *)
Lemma nothing_owed p q x : dist p -> dist q -> total (excess p q) = 0 -> 0 < q x -> accept p q x = 1.
Proof.
move=> [p0 p1] [q0 q1] z qx; have le y : p y <= q y.
  have := total_eq0 (excess_ge0 p q) z y; rewrite excess_min => /eqP; rewrite subr_eq0 => /eqP ->.
  by rewrite le_minl lexx orbT.
have e : q x = p x.
  have d0 y : 0 <= q y - p y by rewrite subr_ge0.
  have d1 : total (fun y => q y - p y) = 0 by rewrite total_sub q1 p1 subrr.
  by apply/eqP; rewrite -subr_eq0 (total_eq0 d0 d1).
by rewrite /accept -e ltxx qx.
Qed.

Lemma choose_residual p q x (k : V -> law R O) f : dist p -> dist q -> 0 < q x ->
  (1 - accept p q x) * ask_choose raised (excess p q) k f
  = (1 - accept p q x) * pick (residual p q) (fun y => k y f).
Proof.
move=> pP qP qx; have [z|z] := eqVneq (total (excess p q)) 0.
  by rewrite nothing_owed // subrr !mul0r.
rewrite choose_weights //; last exact: excess_ge0.
by congr (_ * _); apply: total_ext => y; rewrite /residual (negbTE z).
Qed.

End Words.

Section Chains.
Variables (R : realFieldType) (V : vocab) (raised : answer R V).
Variables (p q : seq V -> V -> R).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, dist (q h).
Implicit Types (h xs pre suf : seq V) (x : V) (f : outcome V -> R).

(** The draft could have drawn these tokens. *)
Fixpoint drawable h xs : bool := if xs is x :: xs' then (0 < q h x) && drawable (rcons h x) xs' else true.

(** What the loop hands to a rule: a block whose rows are the draft's, and the target's rows. *)
Definition drafted_chain h xs : flat_block R V :=
  FlatBlock xs (iota 0 (size xs)) [seq Some (q (h ++ take i xs)) | i <- iota 0 (size xs)].
Definition rows_of_chain h xs : seq (V -> R) := [seq p (h ++ take i xs) | i <- iota 0 (size xs).+1].

Lemma chain_checked h xs (k : unit -> answer R V) : check_chain raised (drafted_chain h xs) k = k tt.
Proof. by rewrite /check_chain /= eqxx. Qed.

Lemma row_here h xs pre suf (k : (V -> R) -> answer R V) : xs = pre ++ suf ->
  item raised (rows_of_chain h xs) (size pre) k = k (p (h ++ pre)).
Proof. by move=> ->; rewrite item_iota ?take_size_cat // ltnS size_cat leq_addr. Qed.

Lemma draft_here h xs pre x suf (k : (V -> R) -> answer R V) : xs = pre ++ x :: suf ->
  drawn raised (drafted_chain h xs) (size pre) k = k (q (h ++ pre)).
Proof. by move=> ->; rewrite /drawn item_iota ?take_size_cat // size_cat /= addnS ltnS leq_addr. Qed.

Theorem leviathan_runs h xs f : drawable h xs ->
  py_leviathan raised (rows_of_chain h xs) (drafted_chain h xs) f
  = verify p (leviathan_at p q) h xs (fun o => f (o, iota 0 (size o).-1)).
Proof.
rewrite /py_leviathan chain_checked /enumerate /=.
set body := (fun '(i, x) => _); set after := (fun 'tt => _).
suff loop suf pre : xs = pre ++ suf -> drawable (h ++ pre) suf ->
    for_in (zip (iota (size pre) (size suf)) suf) tt body after f
    = verify p (leviathan_at p q) (h ++ pre) suf (fun o => f (pre ++ o, iota 0 (size pre + size o).-1)).
  by move=> ok; have := loop xs [::]; rewrite /= cats0; apply.
elim: suf pre => [|x suf IH] pre e ok.
  have ex : xs = pre by rewrite e cats0.
  rewrite /= /after /= ex (row_here _ _ (esym (cats0 pre))) choose_dist //.
  by apply: total_ext => y; rewrite /ret /= addn1.
have qx : 0 < q (h ++ pre) x by case/andP: ok.
have rest : drawable (rcons (h ++ pre) x) suf by case/andP: ok.
have [p0 _] := pP (h ++ pre); have [q0 _] := qP (h ++ pre).
rewrite /= {1}/body (draft_here _ _ e) (row_here _ _ e) accept_asked // -/(accept _ _ x).
congr (_ * _ + _).
  have := IH (rcons pre x); rewrite size_rcons cat_rcons -rcons_cat => -> //.
  rewrite /bind /ret; apply: (law_ext (lawful_verify pP _ _ _)) => [h' y|o]; first exact: lawful_leviathan_at.
  by rewrite cat_rcons /= addnS.
rewrite /= (row_here _ _ e) /py_residual choose_residual //; congr (_ * _); apply: total_ext => y.
by rewrite /ret /bind /= addn1 e take_size_cat.
Qed.

(** ** Block verification *)

Fixpoint weights_from w h xs : seq R :=
  w :: if xs is x :: xs' then weights_from (weight p q w h x) (rcons h x) xs' else [::].

Lemma weights_run h xs (k : seq R -> answer R V) :
  py_prefix_weights raised (rows_of_chain h xs) (drafted_chain h xs) k = k (weights_from 1 h xs).
Proof.
rewrite /py_prefix_weights /enumerate /=; set body := (fun '(i, x) => _).
suff loop suf pre ws w : xs = pre ++ suf ->
    for_in (zip (iota (size pre) (size suf)) suf) (rcons ws w) body k = k (ws ++ weights_from w (h ++ pre) suf).
  by have := loop xs [::] [::] 1; rewrite /= cats0; apply.
elim: suf pre ws w => [|x suf IH] pre ws w e; first by rewrite /= cats1.
rewrite /= {1}/body /last_item rev_rcons (row_here _ _ e) (draft_here _ _ e).
have := IH (rcons pre x) (rcons ws w); rewrite size_rcons cat_rcons => -> //.
by rewrite cat_rcons rcons_cat.
Qed.

Section BlockRuns.
Variables (h xs : seq V) (d : V) (f : outcome V -> R).
Hypothesis drawn_by_q : drawable h xs.

Definition weight_at n : R := nth 0 (weights_from 1 h xs) n.
Definition before n : seq V := h ++ take n xs.
Definition returned (o : seq V) : R := f (o, iota 0 (size o).-1).

Lemma size_weights w h' ys : size (weights_from w h' ys) = (size ys).+1.
Proof. by elim: ys w h' => //= y ys IH w h'; rewrite IH. Qed.

Lemma weights_nth w h' ys n : (n < size ys)%N ->
  nth 0 (weights_from w h' ys) n.+1
  = weight p q (nth 0 (weights_from w h' ys) n) (h' ++ take n ys) (nth d ys n).
Proof.
elim: ys w h' n => [|y ys IH] w h' [|n] //= lt; first by rewrite cats0; case: ys {IH lt}.
by rewrite IH // cat_rcons.
Qed.

Lemma weight_next n : (n < size xs)%N -> weight_at n.+1 = weight p q (weight_at n) (before n) (nth d xs n).
Proof. exact: weights_nth. Qed.

Lemma weight_in01 n : (n <= size xs)%N -> 0 <= weight_at n <= 1.
Proof.
elim: n => [|n IH] le; first by rewrite /weight_at; case: xs => [|x s]; rewrite /= ler01 lexx.
by rewrite weight_next //; apply: weight01 => //; case/andP: (IH (ltnW le)).
Qed.

Lemma drawable_nth h' ys n : drawable h' ys -> (n < size ys)%N -> 0 < q (h' ++ take n ys) (nth d ys n).
Proof.
elim: ys h' n => [|y ys IH] h' [|n] //= /andP[qy ok] lt; first by rewrite cats0.
by rewrite -cat_rcons; apply: IH.
Qed.

(** Level n: the coin that stops there, and what is emitted from there down. *)
Definition stop_odds n : R := owed p q (weight_at n) (before n) / (owed p q (weight_at n) (before n) + 1 - weight_at n).
Definition emit_at n : R := pick (owed_row p q (weight_at n) (before n)) (fun y => returned (rcons (take n xs) y)).
Fixpoint descend n : R :=
  if n is m.+1 then stop_odds m * emit_at m + (1 - stop_odds m) * descend m
  else pick (p h) (fun y => returned [:: y]).

Lemma verify_from n : (n <= size xs)%N -> block_verify p q h xs returned
  = keep p q (weight_at n) (before n) (drop n xs) (fun o => if o is Some s then returned (take n xs ++ s) else descend n).
Proof.
elim: n => [|n IH] lt.
  rewrite /block_verify /before take0 drop0 cats0.
  have -> : weight_at 0 = 1 by rewrite /weight_at; case: (xs).
  by apply: (law_ext (lawful_keep pP qP _ _ _)) => [|[s|]] //; rewrite ler01 lexx.
rewrite IH ?(ltnW lt) // (drop_nth d lt) [LHS]/= -weight_next //.
have -> : rcons (before n) (nth d xs n) = before n.+1 by rewrite /before rcons_cat -take_nth.
apply: (law_ext (lawful_keep pP qP _ _ (weight_in01 lt))) => -[s|].
  by rewrite /ret -cat_rcons -take_nth.
rewrite /bind /coin /ret /= -/(stop_odds n); congr (_ * _ + _).
by apply: total_ext => y; rewrite cats1.
Qed.

Lemma verify_whole : block_verify p q h xs returned
  = weight_at (size xs) * pick (p (h ++ xs)) (fun y => returned (rcons xs y))
    + (1 - weight_at (size xs)) * descend (size xs).
Proof.
rewrite (verify_from (leqnn _)) drop_size /before take_size /= /bind /coin /ret; congr (_ * _ + _).
by apply: total_ext => y; rewrite cats1.
Qed.

(** Where nothing is owed at weight one, the next weight is one. *)
Lemma weight_stays n : (n < size xs)%N -> weight_at n = 1 -> owed p q (weight_at n) (before n) = 0 -> weight_at n.+1 = 1.
Proof.
move=> lt w1; rewrite weight_next // w1 => z.
have e : scaled p 1 (before n) =1 p (before n) by move=> y; rewrite /scaled mul1r.
have z' : total (excess (p (before n)) (q (before n))) = 0.
  by rewrite -[RHS]z; apply: total_ext => y; rewrite /excess e.
have := nothing_owed (pP _) (qP _) z' (drawable_nth drawn_by_q lt).
by rewrite /weight /accept e.
Qed.

Lemma stop_asked n : (n <= size xs)%N ->
  odds (owed p q (weight_at n) (before n)) (owed p q (weight_at n) (before n) + 1 - weight_at n) = stop_odds n.
Proof.
move=> le; have /andP[w0 w1] := weight_in01 le; have s0 := owed_ge0 p q (weight_at n) (before n).
rewrite /odds /stop_odds; case: ltP => // ge.
have e : weight_at n = 1.
  by apply/eqP; rewrite eq_le w1 /=; move: ge; rewrite -addrA ger_addl subr_le0.
rewrite e addrK; case: (ltP 0 (owed p q 1 (before n))) => [pos|neg]; first by rewrite mulfV // gt_eqF.
have -> : owed p q 1 (before n) = 0 by apply/eqP; rewrite e in s0; rewrite eq_le neg s0.
by rewrite mul0r.
Qed.

Theorem block_runs : py_block raised (rows_of_chain h xs) (drafted_chain h xs) f = block_verify p q h xs returned.
Proof.
rewrite /py_block chain_checked weights_run /= (row_here _ _ (esym (cats0 xs))).
set body := (fun kept '(_, _) => _); set after := (fun '(rest, kept) => _).
have item_weight n (k : R -> answer R V) : (n <= size xs)%N -> item raised (weights_from 1 h xs) n k = k (weight_at n).
  by move=> le; apply: item_nth; rewrite size_weights.
pose owes n := excess (scaled p (weight_at n) (before n)) (q (before n)).
have level n st : (n < size xs)%N ->
    for_in (rev (iota 0 n.+1)) st body after f
    = if n == 0%N then after (owes n, Some n) f
      else stop_odds n * after (owes n, Some n) f
           + (1 - stop_odds n) * for_in (rev (iota 0 n)) (owes n, Some n) body after f.
  move=> lt; have e : xs = take n xs ++ nth d xs n :: drop n.+1 xs by rewrite -drop_nth // cat_take_drop.
  have sz : size (take n xs) = n by rewrite size_takel // ltnW.
  have rows k := row_here h k e; have draft k := draft_here h k e; rewrite sz in rows draft.
  have /andP[w0 w1] := weight_in01 (ltnW lt).
  rewrite -{1}addn1 iotaD rev_cat /= {1}/body; case: st => st1 st2.
  rewrite rows item_weight ?(ltnW lt) // draft /py_residual -/(scaled p (weight_at n) (before n)).
  case: (n =P 0%N) => // _; rewrite item_weight ?(ltnW lt) // accept_asked.
  - by rewrite stop_asked // ltnW.
  - exact: owed_ge0.
  - by rewrite -addrA addr_ge0 ?subr_ge0 // owed_ge0.
have emitted n : (n < size xs)%N -> owed p q (weight_at n) (before n) != 0 ->
    after (owes n, Some n) f = emit_at n.
  move=> lt z; rewrite /after /bound choose_weights //; last exact: excess_ge0.
  apply: total_ext => y; rewrite /owed_row (negbTE z) /ret /returned size_rcons /= size_takel ?(ltnW lt) //.
  by rewrite cats1.
have w00 : weight_at 0 = 1 by rewrite /weight_at; case: (xs).
have down n : (n <= size xs)%N ->
    weight_at n = 1 \/ forall st, for_in (rev (iota 0 n)) st body after f = descend n.
  elim: n => [|n IH] lt; first by left.
  have [w1|w1] := eqVneq (weight_at n) 1; have [z|z] := eqVneq (owed p q (weight_at n) (before n)) 0.
  - by left; apply: weight_stays.
  - have s1 : stop_odds n = 1 by rewrite /stop_odds {3}w1 addrK mulfV.
    right=> st; rewrite level // emitted // [RHS]/= s1 subrr !mul0r mul1r !addr0.
    by case: eqP.
  - case: (IH (ltnW lt)) => [/eqP|next]; first by rewrite (negbTE w1).
    right=> st; rewrite level // next [RHS]/= /stop_odds z !mul0r.
    by case: (n =P 0%N) => // n0; move: w1; rewrite n0 w00 eqxx.
  - case: (IH (ltnW lt)) => [/eqP|next]; first by rewrite (negbTE w1).
    right=> st; rewrite level // next emitted //.
    by case: (n =P 0%N) => // n0; move: w1; rewrite n0 w00 eqxx.
have bonus : ask_choose raised (p (h ++ xs)) (fun y => @ret R (outcome V) (xs ++ [:: y], iota 0 (size xs))) f
    = pick (p (h ++ xs)) (fun y => returned (rcons xs y)).
  by rewrite choose_dist //; apply: total_ext => y; rewrite /ret /returned size_rcons cats1.
rewrite verify_whole; case: (size xs =P 0%N) => [z|nz].
  by rewrite bonus z w00 mul1r subrr mul0r addr0.
have /andP[w0 w1] := weight_in01 (leqnn (size xs)).
rewrite item_weight // accept_asked ?ler01 // bonus.
have whole : odds (weight_at (size xs)) 1 = weight_at (size xs).
  rewrite /odds divr1; case: ltP => // ge; have -> : weight_at (size xs) = 1 by apply/eqP; rewrite eq_le w1.
  by rewrite ltr01.
rewrite whole; congr (_ + _); case: (down _ (leqnn (size xs))) => [->|-> //].
by rewrite subrr !mul0r.
Qed.

End BlockRuns.

(** ** The whole round: what the draft cannot draw has no weight. *)

Lemma draft_drawable halt g h (F F' : seq V -> R) :
  (forall xs, drawable h xs -> F xs = F' xs) -> draft q halt g h F = draft q halt g h F'.
Proof.
elim: g h F F' => [|g IH] h F F' e /=; first exact: e.
case: (halt h); first exact: e.
have [q0 _] := qP h; apply: total_ext => x; have [->|ne] := eqVneq (q h x) 0; first by rewrite !mul0r.
by congr (_ * _); apply: IH => xs ok; apply: e; rewrite /= ok lt_neqAle eq_sym ne q0.
Qed.

(** The tokens of a program, over all drafts. *)
Definition round_of (program : seq (V -> R) -> flat_block R V -> answer R V) halt g h : law R (seq V) :=
  xs <~ draft q halt g h;; o <~ program (rows_of_chain h xs) (drafted_chain h xs);; ret o.1.

Theorem leviathan_program_lossless halt g h : lossless p h (round_of (py_leviathan raised) halt g h).
Proof.
move=> n k; rewrite -(leviathan_lossless halt pP qP g h n k); apply: draft_drawable => xs ok.
exact: (leviathan_runs (fun o => complete p n h o.1 k) ok).
Qed.

Theorem block_program_lossless halt g h : lossless p h (round_of (py_block raised) halt g h).
Proof.
move=> n k; rewrite -(block_lossless halt pP qP g h n k); apply: draft_drawable => xs ok.
have [d _] := a_token (pP h).
exact: (block_runs d (fun o => complete p n h o.1 k) ok).
Qed.

End Chains.
