(** The nucleus mode on whole words: total variation, exactly.

    What it says.  All leaves begin with the drafted word s, m of them; [r] is the filtered
    row, A j the probability that decoding from r begins with the first j tokens of s,
    B j = 1 - (1 - A j)^m that of m tries.
    - [nucleus_word_tv]  no test of the next |s| tokens sees more than the largest
          gain j = A j * sum_(i < j) (B i - B (i+1)) / A i + B j - A j,    j <= |s|,
      and the event "the text begins with j tokens of s" sees gain j, so TV is their maximum;
    - [nucleus_chain_tv]  for one leaf, a chain, the same of any number of tokens from |s| on:
      there gain j = A j * sum_(i < j) (1 - a i), a i the row's probability of the token
      drafted at place i ([chain_gain]);
    - [nucleus_text_tv]  drawing every token from the filtered row is off from the target p
      itself by 1 - P(p stays in the nuclei for n tokens), exactly; so by 1 - top^n at most
      where every nucleus has the mass top ([nucleus_text_le]);
    - [nucleus_word_far]  together: the mode on a chain against p.
    For one place gain 1 is Medusa.nucleus_first_token_tv.  The last token is drawn
    (fast = false).  With the released default it is the argmax; of that the first token alone:
    - [nucleus_first_token_fast]  it is the candidate with probability B 1, else the argmax, and
      no other token ever.

    Source: ours.  Runs in: refengine/exact/rules/nucleus.py. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Drift Typical Medusa KeptWord.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** ** The mode as it runs, with a last token that is drawn *)
Section Mode.
Variables (R : realFieldType) (V : vocab) (r : seq V -> V -> R) (argmax : seq V -> V).
Hypothesis rP : forall h, dist (r h).
Implicit Types (h s t u : seq V) (f : seq V -> R).

(** At least one of m tries of probability a. *)
Definition tried m (a : R) : R := 1 - (1 - a) ^+ m.
Definition word_gain m h s j : R :=
  let A i := word_prob r h (take i s) in
  A j * (\sum_(0 <= i < j) (tried m (A i) - tried m (A i.+1)) / A i) + tried m (A j) - A j.
Definition chain_gain c h s j : R :=
  word_prob r h (take j s) * \sum_(0 <= i < j) (1 - r (h ++ take i s) (nth c s i)).

Lemma agreeing_size h u : surely (fun k => (k <= size u)%N) (agreeing r h u).
Proof.
elim: u h => [|x u IH] h f g e /=; first by rewrite /ret e.
apply: total_ext => y; congr (_ * _); case: ifP => _; last by rewrite /ret e.
by apply: IH => k le; rewrite /ret e.
Qed.

Lemma agreeing_tail h u j : (j <= size u)%N -> prob (agreeing r h u) (fun k => (j <= k)%N) = word_prob r h (take j u).
Proof.
have none v g : prob (agreeing r g v) (fun k => (0 <= k)%N) = word_prob r g [::].
  by rewrite /prob (law_one (lawful_agreeing rP g v)) /word_prob /= /ret eqxx.
elim: u h j => [|x u IH] h [|j] //= le; try exact: none; first exact: (none (x :: u) h).
pose below y := r h y * prob (agreeing r (rcons h x) u) (fun k => (j <= k)%N).
rewrite word_prob_cons // -(IH _ _ le) -[RHS](total_pick x below); apply: total_ext => y.
by case: eqP => [->|_]; rewrite ?mul1r // mul0r /ret mulr0.
Qed.

(** What is kept agrees with s as far as both go. *)
Definition along_word s u : bool := take (size s) u == take (size u) s.

Lemma along_word_take s u n : take (size s) u == s -> along_word s (take n u).
Proof.
move=> /eqP su; have short : (size s <= size u)%N.
  by rewrite -su size_take; case: ltnP => // /ltnW.
rewrite /along_word; case: (leqP n (size u)) => [le|/ltnW ge]; last first.
  by rewrite (take_oversize ge) su take_oversize.
rewrite size_takel // -[X in _ == take _ X]su.
case: (leqP n (size s)) => [ns|/ltnW sn].
  by rewrite take_oversize ?size_takel // take_take.
by rewrite take_take // (take_oversize (s := take _ _)) // size_takel.
Qed.

Lemma longest_along h s ss best : all (fun u => take (size s) u == s) ss -> along_word s best ->
  surely (along_word s) (longest_agreeing r h ss best).
Proof.
elim: ss best => [|u ss IH] best /= => [_ ok f g e|/andP[su ssP] ok f g e]; first by rewrite /ret e.
apply: (law_ext (lawful_agreeing rP h u)) => k; apply: IH => //.
by case: ifP => // _; apply: along_word_take.
Qed.

Lemma longest_tail h s ss best j : (j <= size s)%N -> all (fun u => take (size s) u == s) ss ->
  prob (longest_agreeing r h ss best) (fun b => (j <= size b)%N)
  = 1 - (size best < j)%N%:R * (1 - word_prob r h (take j s)) ^+ size ss.
Proof.
move=> js; elim: ss best => [|u ss IH] best /=.
  by move=> _; rewrite expr0 mulr1 /prob /ret leqNgt; case: (_ < _)%N; rewrite ?subrr ?subr0.
case/andP=> /eqP su ssP; have ju : (j <= size u)%N.
  by apply: leq_trans js _; rewrite -su size_take; case: ltnP => // /ltnW.
have aP := lawful_agreeing rP h u.
have uj : take j u = take j s by rewrite -su take_take.
pose left : R := (size best < j)%N%:R * (1 - word_prob r h (take j s)) ^+ size ss.
transitivity (agreeing r h u (fun k => 1 - left + left * (j <= k)%N%:R)).
  apply: agreeing_size => k ku; rewrite -/(prob _ _) IH //; case: ifP => lt.
    rewrite size_takel // /left; case: (leqP j k) => [jk|kj].
      by rewrite mul0r mulr1 subr0 subrK.
    by rewrite (ltn_trans lt kj) mulr0 addr0.
  case: (leqP j k) => jk; last by rewrite mulr0 addr0.
  by rewrite /left ltnNge (leq_trans jk) ?mul0r ?subr0 ?addr0 // leqNgt lt.
rewrite (law_add aP) (law_const aP) (law_scale aP) -/(prob _ _) agreeing_tail // uj /left exprS.
by ring.
Qed.

Lemma tried0 m : (0 < m)%N -> tried m 0 = 0.
Proof. by rewrite /tried subr0 expr1n subrr. Qed.

Lemma reached (K : law R nat) h s (B : nat -> R) : lawful K ->
  (forall i, (i <= size s)%N -> prob K (fun k => (i <= k)%N) = B i) ->
  (forall i, word_prob r h (take i s) = 0 -> B i = 0) ->
  forall i, (i <= size s)%N -> word_prob r h (take i s) = 0 -> prob K (fun k => k == i) = 0.
Proof.
move=> KP tail zero i le z; apply/eqP; rewrite eq_le (prob_ge0 KP) andbT -(zero i z) -tail //.
by apply: (prob_le KP) => k /eqP ->.
Qed.

Lemma emitted_completed n h ss f :
  nucleus_paths r false argmax h ss (fun o => complete r n h o f)
  = longest_agreeing r h ss [::] (fun b => complete r n h b f).
Proof. by apply: (law_ext (lawful_longest rP h ss [::])) => b; rewrite -(fresh_end rP). Qed.

(** How many of s the leaves keep together. *)
Definition in_common h s ss : law R nat := b <~ longest_agreeing r h ss [::];; ret (minn (size s) (size b)).

Lemma in_common_tail h s ss j : (0 < size ss)%N -> all (fun u => take (size s) u == s) ss -> (j <= size s)%N ->
  prob (in_common h s ss) (fun k => (j <= k)%N) = tried (size ss) (word_prob r h (take j s)).
Proof.
move=> some ssP js; transitivity (prob (longest_agreeing r h ss [::]) (fun b => (j <= size b)%N)).
  by apply: (law_ext (lawful_longest rP h ss [::])) => b; rewrite /ret leq_min js.
rewrite (longest_tail h [::] js ssP) /tried; case: j js => [|j] js; last by rewrite mul1r.
by rewrite mul0r take0 /word_prob /= /ret eqxx subrr expr0n; case: (size ss) some.
Qed.

Theorem nucleus_word_tv h s ss : (0 < size ss)%N -> all (fun u => take (size s) u == s) ss ->
  let n := size s in
  let emits f := nucleus_paths r false argmax h ss (fun o => complete r n h o f) in
  (exists2 j, (j <= n)%N & forall f, unit_test f -> emits f - target r n h f <= word_gain (size ss) h s j)
  /\ forall j, (j <= n)%N ->
     emits (fun t => (begins (take j s) t)%:R) - target r n h (fun t => (begins (take j s) t)%:R)
     = word_gain (size ss) h s j.
Proof.
move=> some ssP n emits; pose K := in_common h s ss.
have KP : lawful K by apply: lawful_bind => [|b]; [apply: lawful_longest | apply: lawful_ret].
have K_size : surely (fun k => (k <= size s)%N) K.
  by move=> f g e; apply: (law_ext (lawful_longest rP h ss [::])) => b; apply: e; apply: geq_minl.
have tail i (le : (i <= size s)%N) := in_common_tail h some ssP le.
have K_reached := reached KP tail (fun i z => etrans (congr1 _ z) (tried0 some)).
have same f : emits f = kept_law r h s K n f.
  rewrite /emits emitted_completed; have start : along_word s [::] by rewrite /along_word take0.
  apply: (longest_along h ssP start) => b /eqP together.
  rewrite /ret complete_take together; congr (complete _ _ _ _ _).
  by case: (leqP (size s) (size b)) => // sb; rewrite take_oversize // take_size.
have gain j (le : (j <= size s)%N) : word_gain (size ss) h s j = kept_gain r h s K j.
  by rewrite (gain_of_tails r h KP tail le).
have [[j js most] each] := kept_word_tv rP KP K_size K_reached (leqnn n).
split=> [|i le]; last by rewrite !same gain // each.
by exists j => // f f01; rewrite same gain //; apply: most.
Qed.

Theorem nucleus_chain_tv c h s n : (size s <= n)%N ->
  let emits f := nucleus_paths r false argmax h [:: s] (fun o => complete r n h o f) in
  (exists2 j, (j <= size s)%N & forall f, unit_test f -> emits f - target r n h f <= chain_gain c h s j)
  /\ forall j, (j <= size s)%N ->
     emits (fun t => (begins (take j s) t)%:R) - target r n h (fun t => (begins (take j s) t)%:R)
     = chain_gain c h s j.
Proof.
move=> sn emits; pose K := agreeing r h s.
have KP : lawful K by apply: lawful_agreeing.
have tail i (le : (i <= size s)%N) := agreeing_tail h le.
have K_reached := reached KP tail (fun i z => z).
have same f : emits f = kept_law r h s K n f.
  rewrite /emits emitted_completed; apply: (law_ext KP) => -[|k] //=.
  by rewrite /ret take0.
have gain j (le : (j <= size s)%N) : chain_gain c h s j = kept_gain r h s K j.
  rewrite (gain_of_tails r h KP tail le) addrK /chain_gain !mulr_sumr; apply: eq_big_nat => i /andP[_ ij].
  have is' : (i < size s)%N := leq_trans ij le.
  rewrite (take_nth c is') word_prob_rcons //; set a := r _ _; set w := word_prob r h (take i s).
  case: (eqVneq w 0) => [z|nz]; last by congr (_ * _); field.
  suff -> : word_prob r h (take j s) = 0 by rewrite !mul0r.
  apply/eqP; rewrite eq_le -[X in _ <= X]z (word_prob_take rP h s (ltnW ij)).
  by case/andP: (word_prob01 rP h (take j s)).
have [[j js most] each] := kept_word_tv rP KP (@agreeing_size h s) K_reached sn.
split=> [|i le]; last by rewrite !same gain // each.
by exists j => // f f01; rewrite same gain //; apply: most.
Qed.
(** With the released default, fast = true, the last token is the argmax: so is the first one, where nothing is kept. *)
Theorem nucleus_first_token_fast h ss c (f : V -> R) : all (fun s => ohead s == Some c) ss ->
  let b := tried (size ss) (r h c) in
  nucleus_paths r true argmax h ss (fun o => f (head c o)) = b * f c + (1 - b) * f (argmax h).
Proof.
move=> ssc /=; pose F o := if o is Some x then f x else f (argmax h).
transitivity (longest_agreeing r h ss [::] (fun s => F (ohead s))); last first.
  by rewrite (longest_first rP h F ssc) /F /tried; ring.
by apply: (law_ext (lawful_longest rP h ss [::])) => -[|x s]; rewrite /ret /= ?cats0.
Qed.
End Mode.

(** ** The filter itself *)
Section Filter.
Variables (R : realFieldType) (V : vocab) (p : seq V -> V -> R) (within : seq V -> pred V).
Hypothesis pP : forall h, dist (p h).
Hypothesis withinP : forall h, kept_mass (p h) (within h) != 0.
Implicit Types (h s t : seq V) (f : seq V -> R).

Definition nuclei h : V -> R := nucleus_row (p h) (within h).
(** That p itself draws n tokens each of which is in its nucleus. *)
Definition stays n h : R := prob (target p n h) (along within h).

Lemma nucleiP h : dist (nuclei h).
Proof. exact: nucleus_row_dist (pP h) (withinP h). Qed.

Lemma within_mass01 h : 0 < kept_mass (p h) (within h) <= 1.
Proof.
have [p0 p1] := pP h; rewrite lt_neqAle eq_sym withinP total_ge0 => [|x]; last by rewrite mulr_ge0 ?ler0n.
by rewrite -p1; apply: total_le => x; case: (within h x); rewrite ?mul1r ?mul0r.
Qed.

(** Inside, the filtered row only gains. *)
Lemma inside_gains n h f : (forall t, 0 <= f t) ->
  target p n h (fun t => (along within h t)%:R * f t) <= target nuclei n h f.
Proof.
elim: n h f => [|n IH] h f f0; first by rewrite /= /ret mul1r.
apply: total_le => x; have /andP[m0 m1] := within_mass01 h; have [p0 _] := pP h.
have tP := lawful_target pP n (rcons h x).
pose inside := target p n (rcons h x) (fun s => (along within (rcons h x) s)%:R * f (x :: s)).
have inside0 : 0 <= inside by apply: (law_ge0 tP) => s; rewrite mulr_ge0 ?ler0n.
have -> : (s <~ target p n (rcons h x);; ret (x :: s)) (fun t => (along within h t)%:R * f t)
        = (within h x)%:R * inside.
  by rewrite -(law_scale tP); apply: (law_ext tP) => s; rewrite /ret /= -mulnb natrM mulrA.
rewrite mulrA; apply: ler_pmul => //; [by rewrite mulr_ge0 ?ler0n | | exact: (IH (rcons h x) (fun s => f (x :: s)))].
by rewrite mulrC /nuclei /nucleus_row ler_pdivl_mulr // -[leRHS]mulr1 ler_wpmul2l // mulr_ge0 ?ler0n.
Qed.

Lemma never_leaves n h : prob (target nuclei n h) (along within h) = 1.
Proof.
have nP := nucleiP; elim: n h => [|n IH] h //.
have [_ <-] := nP h; apply: total_ext => x; have tP := lawful_target nP n (rcons h x).
have -> : (s <~ target nuclei n (rcons h x);; ret (x :: s)) (fun t => (along within h t)%:R) = (within h x)%:R :> R.
  rewrite -[RHS]mulr1 -[X in _ * X](IH (rcons h x)) -(law_scale tP); apply: (law_ext tP) => s.
  by rewrite /ret /= -mulnb natrM.
by rewrite /nuclei /nucleus_row; case: (within h x); rewrite ?mulr1 // !mul0r.
Qed.

Theorem nucleus_text_tv n h :
  (forall f, unit_test f -> target nuclei n h f - target p n h f <= 1 - stays n h)
  /\ prob (target nuclei n h) (along within h) - prob (target p n h) (along within h) = 1 - stays n h.
Proof.
split=> [f f01|]; last by rewrite never_leaves.
have [nP tP] := (lawful_target nucleiP n h, lawful_target pP n h).
pose inside := target p n h (fun t => (along within h t)%:R * f t).
have part : inside <= target p n h f.
  apply: (law_le tP) => t; have /andP[f0 _] := f01 t.
  by case: (along within h t); rewrite ?mul1r ?mul0r.
have rest : stays n h - inside <= 1 - target nuclei n h f.
  rewrite -[X in _ <= X - _](law_one nP) -(law_sub nP) -(law_sub tP).
  rewrite (law_ext tP (g := fun t => (along within h t)%:R * (1 - f t))) => [|t]; last by rewrite mulrBr mulr1.
  by apply: inside_gains => t; rewrite subr_ge0; case/andP: (f01 t).
have -> : target nuclei n h f - target p n h f
        = (target nuclei n h f - inside) + (inside - target p n h f) by rewrite addrA subrK.
have gain : target nuclei n h f - inside <= 1 - stays n h.
  have -> : target nuclei n h f - inside = (stays n h - inside) + (target nuclei n h f - stays n h) by ring.
  have -> : 1 - stays n h = (1 - target nuclei n h f) + (target nuclei n h f - stays n h) by ring.
  by rewrite ler_add2r.
by rewrite -[leRHS]addr0 ler_add // subr_le0.
Qed.

Theorem nucleus_text_le top n h f : 0 <= top -> (forall h, top <= kept_mass (p h) (within h)) -> unit_test f ->
  target nuclei n h f - target p n h f <= 1 - top ^+ n.
Proof.
move=> top0 heavy f01; have [bound _] := nucleus_text_tv n h; apply: le_trans (bound f f01) _.
rewrite ler_add2l ler_opp2; elim: n h {f01 bound} => [|n IH] h; first by rewrite expr0 /stays /prob /= /ret.
have tP x := lawful_target pP n (rcons h x); have [p0 _] := pP h.
have -> : stays n.+1 h = total (fun x => (within h x)%:R * p h x * stays n (rcons h x)).
  apply: total_ext => x; rewrite -[RHS]mulrA [RHS]mulrCA; congr (_ * _).
  by rewrite -(law_scale (tP x)); apply: (law_ext (tP x)) => s; rewrite /ret /= -mulnb natrM.
rewrite exprSr; apply: le_trans (_ : top ^+ n * kept_mass (p h) (within h) <= _).
  by rewrite ler_wpmul2l // exprn_ge0.
by rewrite -total_scale; apply: total_le => x; rewrite mulrC ler_wpmul2l // mulr_ge0 ?ler0n.
Qed.

(** The mode on a chain, against p itself. *)
Theorem nucleus_word_far (argmax : seq V -> V) c h s n : (size s <= n)%N ->
  exists2 j, (j <= size s)%N & (forall f, unit_test f ->
  nucleus_paths nuclei false argmax h [:: s] (fun o => complete nuclei n h o f) - target p n h f
  <= chain_gain nuclei c h s j + (1 - stays n h)).
Proof.
move=> sn; have [[j js most] _] := nucleus_chain_tv argmax nucleiP c h sn; exists j => // f f01.
set emits := nucleus_paths _ _ _ _ _ _; have [filter _] := nucleus_text_tv n h.
have -> : emits - target p n h f = (emits - target nuclei n h f) + (target nuclei n h f - target p n h f).
  by rewrite addrA subrK.
by apply: ler_add; [apply: most | apply: filter].
Qed.

End Filter.
