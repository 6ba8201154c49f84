(** Budgets, rejections, shared noise, flows and noise, applied: none of their theorems is about nothing.

    What it says.  Nothing new.  Two lanes with drafters of their own and a scheduler that
    draws lots and looks at what was drafted; blocks whose length depends on the history;
    one uniform for drafter and target; two drafts over two tokens; a length drawn by lot;
    what block verification carries along, weighed on vocabularies of any size.

    Source: ours. *)

From Coq Require Import Qcanon.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Chain Leviathan Agreement Greedy Block Optimality Rejections Coupled Flow
  Rational Counterexamples Batch Loop Loops Noise EveryVocabulary Vacuity.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Implicit Types (h : seq two) (f : two -> field).

Lemma pP h : dist (p h). Proof. exact: rows_are_distributions.1. Qed.
Lemma qP h : dist (q h). Proof. exact: rows_are_distributions.2. Qed.

#[local] Hint Resolve pP qP : core.

(** ** A budget *)

Definition lane_q (i : nat) h : two -> field := if odd i then q h else p h.
Lemma lane_qP i h : dist (lane_q i h).
Proof. by rewrite /lane_q; case: ifP => _; [apply: qP | apply: pP]. Qed.

(** The first lane drafts until it has drafted [tok1]; then lots are drawn. *)
Definition asked (lanes : seq (lane two)) : law field (option nat) :=
  if tok1 \in (head ([::], [::]) lanes).2 then b <~ coin (1//3);; ret (if b then Some 1%N else None) else ret (Some 0%N).
Lemma askedP lanes : lawful (asked lanes).
Proof.
rewrite /asked; case: ifP => _; last exact: lawful_ret.
by apply: lawful_bind => [|b]; [apply: lawful_coin | apply: lawful_ret].
Qed.

Example used_batch fuel n hs k :
  scheduled lane_q asked fuel [seq (h, [::]) | h <- hs] (fun ls => finish p (fun _ h => agreement_step (p h)) n 0 ls k)
  = each p n hs k.
Proof.
apply: batch_lossless; [exact: pP | exact: lane_qP | | | exact: askedP].
- by move=> i h x; apply: lawful_agreement (pP h).
- by move=> i h; apply: agreement_step_lossless (pP h) (lane_qP i h).
Qed.
Example used_budget fuel n hs k :
  scheduled lane_q (within 3 asked) fuel [seq (h, [::]) | h <- hs]
    (fun lanes => finish p (fun i => leviathan_at p (lane_q i)) n 0 lanes k) = each p n hs k.
Proof. exact: (budget_lossless 3 pP lane_qP askedP). Qed.
Example used_budget_kept fuel hs : surely (fun lanes => (spent lanes <= 3)%N)
  (scheduled lane_q (within 3 asked) fuel [seq (h, [::]) | h <- hs]).
Proof. by apply: budget_is_kept; [apply: lane_qP | apply: askedP]. Qed.
(** The budget is met, and not always. *)
Example budget_is_met : prob (scheduled lane_q (within 3 asked) 5 [:: ([::], [::]); ([:: tok1], [::])])
  (fun lanes => spent lanes == 3%N) = 4//9.
Proof. by apply/eqP; vm_compute. Qed.
Example used_other_lane f :
  one_place_for_two (p [::]) (q [::]) (q [:: tok1]) (fun _ y => y == tok1) f = pick (p [::]) f.
Proof. exact: (@cut_by_the_other_lane _ _ _ (fun y => y == tok1) f (pP [::]) (qP [::]) (qP [:: tok1])). Qed.

(** ** Rejections *)

Example used_rejections n h :
  judged p q (fun h => size h) n n h (fun r => r.2%:R)
  = \sum_(0 <= i < n) target p i h (fun s => tv (p (h ++ s)) (q (h ++ s))).
Proof. exact: expected_rejections. Qed.
Example used_judged_text n h k : judged p q (fun h => size h) n n h (fun r => k r.1) = target p n h k.
Proof. exact: judged_text. Qed.
(** Some are rejected and some are not. *)
Example rejections_happen :
  let mean := judged p q (fun h => size h) 2%N 2%N [::] (fun r => r.2%:R) in 0 < mean /\ mean < 1.
Proof. by split; vm_compute. Qed.

(** ** Shared noise *)

Definition quarters h : two -> field := if odd (size h) then row2 (1//4) (3//4) else row2 (1//2) (1//2).
Definition by_uniform h (u : four) : two := invert2 (quarters h) (uniform u).
Definition lean (u : four) : two := invert2 (row2 (3//4) (1//4)) (uniform u).
Lemma any_uniformP : lawful any_uniform.
Proof. by apply: lawful_pick; split=> [[[] []]|] //; apply/eqP; vm_compute. Qed.

Lemma four_two (c : four -> two) (r : two -> field) :
  any_uniform (fun u => (c u == tok0)%:R) = r tok0 -> any_uniform (fun u => (c u == tok1)%:R) = r tok1 ->
  forall f, any_uniform (fun u => f (c u)) = pick r f.
Proof.
move=> e0 e1 f; have split u : f (c u) = (c u == tok0)%:R * f tok0 + (c u == tok1)%:R * f tok1.
  by case: (c u); rewrite ?mul1r ?mul0r ?addr0 ?add0r.
rewrite (law_ext any_uniformP split) (law_add any_uniformP) !(law_scaler any_uniformP) e0 e1.
by rewrite /pick /total /= addr0.
Qed.

Lemma by_uniformP h f : any_uniform (fun u => f (by_uniform h u)) = pick (quarters h) f.
Proof. by apply: four_two; rewrite /by_uniform /quarters; case: (odd (size h)); apply/eqP; vm_compute. Qed.
Lemma leanP f : any_uniform (fun u => f (lean u)) = pick (row2 (3//4) (1//4)) f.
Proof. by apply: four_two; apply/eqP; vm_compute. Qed.

(** The drafter sees all the noise, and keeps count of its tokens. *)
Definition peeking (w : nat -> four) (st : nat) h : seq two := [seq lean (w i) | i <- iota (size h) st].
Example used_coupled w n h (k : seq two -> field) :
  drawn any_uniform (size h) n w
    (fun w' => k (greedy_loop (chosen by_uniform w') (peeking w') (fun st _ _ => st.+1) n n 2%N h))
  = target quarters n h k.
Proof. exact: (coupled_lossless any_uniformP by_uniformP peeking (fun _ st _ _ => st.+1) w n 2%N h k). Qed.
Example used_coupled_plain w n h :
  greedy_loop (chosen by_uniform w) (peeking w) (fun st _ _ => st.+1) n n 2%N h = greedy_decode (chosen by_uniform w) n h.
Proof. exact: coupled_writes_plain. Qed.
Example used_coupled_keeps h :
  prob any_uniform (fun u => lean u == by_uniform h u) <= overlap (quarters h) (row2 (3//4) (1//4)).
Proof. exact: (coupled_keeps_at_most any_uniformP by_uniformP h leanP). Qed.
(** One uniform for both reaches that bound here; two uniforms do not. *)
Example coupling_keeps_more :
  prob any_uniform (fun u => lean u == by_uniform [::] u) = 3//4
  /\ prob (u <~ any_uniform;; u' <~ any_uniform;; ret (u, u')) (fun o => lean o.1 == by_uniform [::] o.2) = 1//2.
Proof. by split; apply/eqP; vm_compute. Qed.

(** ** Flows *)

Notation bools := (of_finType bool_finType).
Definition coin_p : bools -> field := row2 (3//4) (1//4).
Definition coin_q : bools -> field := row2 (1//5) (4//5).
Lemma row_bools (a b : Qc) : 0 <= a -> 0 <= b -> a + b = 1 -> dist (row2 a b : bools -> field).
Proof. by move=> a0 b0 e; split=> [[]|] //; rewrite totalE /= -enumT big_enum big_bool /= addrC. Qed.
Lemma coin_pP : dist coin_p. Proof. by apply: row_bools; [vm_compute | vm_compute | apply/eqP; vm_compute]. Qed.
Lemma coin_qP : dist coin_q. Proof. by apply: row_bools; [vm_compute | vm_compute | apply/eqP; vm_compute]. Qed.

Example used_optimum : exists rule : (seq bools -> law field bools),
  [/\ forall cs, lawful (rule cs), forall F, draws coin_q 2%N (fun cs => rule cs F) = pick coin_p F
    & exists H : pred bools, accepted coin_q 2%N rule = 1 + mass coin_p H - mass coin_q H ^+ 2].
Proof. exact: (transport_optimum 2%N coin_pP coin_qP). Qed.
Example used_flow : exists2 f, flows [:: (true, false); (false, true)] (fun _ => 1//2) coin_p f
  & exists H, flow_value f = cut [:: (true, false); (false, true)] (fun _ => 1//2) coin_p H.
Proof. by apply: flow_meets_cut => [x|y]; [vm_compute | case: coin_pP]. Qed.

(** ** Noise: a length, and a drafter by turns *)

Definition lots (st : nat) h : law field two := pick (row2 (1//3) (2//3)).
Lemma lotsP st h : bounded_law (lots st h).
Proof. by apply: lawful_bounded; apply: lawful_pick; apply: row2_dist; [vm_compute | vm_compute | apply/eqP; vm_compute]. Qed.
Definition counted (st : nat) h (w : two) (o : seq two) : law field nat := ret (st + size o)%N.
Lemma countedP st h w o : bounded_law (counted st h w o).
Proof. by apply: lawful_bounded; apply: lawful_ret. Qed.
Definition by_lot (st : nat) (w : two) h : two -> field := if w then q h else p h.
Lemma by_lotP st w h : dist (by_lot st w h).
Proof. by rewrite /by_lot; case: w. Qed.
Definition lot_length (st : nat) (w : two) : nat := if w then st.+1 else 2%N.

Example used_noisy_chain n st h k :
  loop (fun h => last false h) (drafted_round lots
    (fun st h w => leviathan p (by_lot st w) xpred0 (lot_length st w) h) counted) n n st h k
  = plain p (fun h => last false h) n h k.
Proof. exact: (@noisy_chain_loop_lossless _ _ _ _ p _ lots by_lot (fun _ _ => xpred0) lot_length counted pP by_lotP lotsP countedP). Qed.
Example used_noisy_loop n st h k :
  loop xpred0 (drafted_round lots (fun st h w => agreement p (by_lot st w) xpred0 2%N h) counted) n n st h k
  = plain p xpred0 n h k.
Proof.
have emits st' h' w : surely (fun o => (0 < size o)%N) (agreement p (by_lot st' w) xpred0 2%N h').
  by apply: chain_emits => // [h'' _|h'' x]; [apply: by_lotP | apply: lawful_agreement].
have lossless_there st' h' w : lossless p h' (agreement p (by_lot st' w) xpred0 2%N h').
  by apply: agreement_lossless => // h''; apply: by_lotP.
have lots_steady st' h' := bounded_steady (lotsP st' h').
have counted_steady st' h' w o := bounded_steady (countedP st' h' w o).
by apply: (@noisy_loop_lossless _ _ _ _ p xpred0 lots (fun st h w => agreement p (by_lot st w) xpred0 2%N h) counted).
Qed.

(** ** Every vocabulary: (d p - d q)+ weighs d times what (p - q)+ weighs, d being the entry at the one drafted token *)

Section AnyVocabulary.
Variables (R : realFieldType) (V : vocab) (f : nat -> V -> R) (x : V).

Definition some_row i v : R := `|f i v| + 1.
Definition the_draft (_ : 'I_1) : V := x.
Definition p_row : text R 1 := Supplied _ _ 0.
Definition q_row : text R 1 := Supplied _ _ 1.
Definition at_draft : text R 1 := EntryAt (Supplied _ _ 2) ord0.
Definition rest_of : text R 1 := TokenByToken (fun a b _ => Num.max (a - b) 0) p_row q_row at_draft.
Definition rest_scaled : text R 1 :=
  TokenByToken (fun a b d => Num.max (a * d - b * d) 0) p_row q_row at_draft.
Definition in_turn : statement R 1 := Statement [:: MassOf rest_scaled; at_draft; MassOf rest_of]
  (fun xs => xs`_0 = xs`_1 * xs`_2 /\ 0 <= xs`_2).
Definition drafts_some : statement R 1 := Statement [:: at_draft] (fun xs => 0 < xs`_0).
Definition known_masses : seq (mass_fact R 1) :=
  [:: Proportion (Number _ 1) rest_scaled at_draft rest_of; NoNegative rest_of].

Lemma known_masses_shown : derived [:: drafts_some] known_masses.
Proof.
split=> //; last split=> //.
  move=> s [_ [/= d0 _] _] c; rewrite /said /= in d0 *.
  by rewrite mul1r [RHS]mulrC maxr_pmull ?ltW // mul0r mulrBl.
by move=> s _ c; rewrite /said /= le_maxr lexx orbT.
Qed.

Lemma in_turn_shown : shows [:: drafts_some] known_masses in_turn.
Proof.
move=> s [_ _ [/= scaled [/= mass0 _]]] c; rewrite /said /= in scaled mass0 *.
by rewrite mul1r in scaled.
Qed.

Example used_every_vocabulary :
  total (fun v => Num.max (some_row 0 v * some_row 2 x - some_row 1 v * some_row 2 x) 0)
  = some_row 2 x * total (fun v => Num.max (some_row 0 v - some_row 1 v) 0).
Proof.
have rows0 i v : 0 <= some_row i v by rewrite addr_ge0.
have apart : injective the_draft by move=> i j _; rewrite !ord1.
have taken v : all_hold (fun c => said (shown_at some_row the_draft v) c None) [:: drafts_some].
  by split=> //; rewrite /said /= ltr_paddl.
by have [] := every_vocabulary apart rows0 known_masses_shown in_turn_shown taken x.
Qed.
End AnyVocabulary.

(** Five tokens: three turns of the loop over the levels. *)
Example used_root_is_sum (a b c d e : field) : last_left 4 [:: a; b; c; d; e] = \sum_(w <- [:: a; b; c; d; e]) w.
Proof. exact: (@root_is_sum _ 4). Qed.
