(** Traversal verification: a tree of drafts, judged from its leaves to its root.

    What it says.  A tree is drawn node by node: the next sibling after history h from row
    [qs h d], d the siblings drawn before (independent draws, without replacement, or any
    other), as many and as deep as one likes, with rows that look at the whole history.  It
    is judged in the order of its branches.  A node carries a weight: 1 at the root, then
    min(1, w r(x) / q(x)) for the child x of a node of weight w and row r.  The first leaf is
    kept, with all that is above it, with probability its weight; a leaf that is refused is
    cut off, and its parent goes on with the weight S/(S + 1 - w) and the row
    norm(max(w r - q, 0)), S the mass of what is normed; a parent without children left is
    a leaf.  What is kept is followed by one token from the row of its last node.
    - [traversal_lossless]  p comes out;
    - [traversal_iid_lossless], [traversal_distinct_lossless]  siblings drawn independently,
      and without replacement;
    - [traversal_chain]  of a chain it is block verification (Block.v), word for word.
    No text of refengine runs this rule: the theorem is about the abstract rule only.  That
    it keeps more than judging from the root is not proved here.

    Source: Weng et al. 2025 (arXiv 2505.12398). *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Chain Leviathan Block Tree Siblings WithoutReplacement.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Traversal.
Variables (R : realFieldType) (V : vocab) (p : seq V -> V -> R).
(** The row of the next sibling after those drawn, whether to stop, and at most how many. *)
Variables (qs : seq V -> seq V -> V -> R) (enough : seq V -> seq V -> bool) (width : seq V -> nat).
Hypothesis pP : forall h, dist (p h).
Hypothesis qsP : forall h d, ~~ enough h d -> dist (qs h d).
Implicit Types (h d s : seq V) (x y : V) (r : V -> R) (w : R) (k : seq V -> R).

(** The first child with what is below it, and its later siblings. *)
Inductive branches := Done | Branch of V & branches & branches.

Fixpoint sprout (deeper : seq V -> law R branches) n h d : law R branches :=
  if n is n'.+1 then
    if enough h d then ret Done
    else x <~ pick (qs h d);; beside <~ sprout deeper n' h (rcons d x);;
         below <~ deeper (rcons h x);; ret (Branch x below beside)
  else ret Done.
Fixpoint sprouts g h : law R branches := if g is g'.+1 then sprout (sprouts g') (width h) h [::] else ret Done.

(** Where the parent's weight is w and its row r. *)
Definition pass w r q x : R := accept (fun y => w * r y) q x.
Definition mass_in_excess w r q : R := total (excess (fun y => w * r y) q).
Definition rest_weight w r q : R := mass_in_excess w r q / (mass_in_excess w r q + 1 - w).
Definition rest_row w r q x : R := if mass_in_excess w r q == 0 then r x else excess (fun y => w * r y) q x / mass_in_excess w r q.

(** [None]: nothing below is kept; the parent decides.  [d]: the siblings refused so far. *)
Fixpoint climb w r h d (t : branches) : law R (option (seq V)) :=
  if t is Branch x below beside then
    o <~ climb (pass w r (qs h d) x) (p (rcons h x)) (rcons h x) [::] below;;
    if o is Some s then ret (Some (x :: s))
    else climb (rest_weight w r (qs h d)) (rest_row w r (qs h d)) h (rcons d x) beside
  else kept <~ coin w;; if kept then y <~ pick r;; ret (Some [:: y]) else ret None.

(** The root has weight 1 to the end, so the last line is idle. *)
Definition traverse h t : law R (seq V) :=
  o <~ climb 1 (p h) h [::] t;; if o is Some s then ret s else y <~ pick (p h);; ret [:: y].
Definition traversal g h : law R (seq V) := t <~ sprouts g h;; traverse h t.

(** ** Its law *)
Hypothesis qs_ge0 : forall h d x, 0 <= qs h d x.

Lemma pass01 w r q x : 0 <= w -> dist r -> (forall y, 0 <= q y) -> 0 <= pass w r q x <= 1.
Proof. by move=> w0 [r0 _] q0; apply: accept01 => // y; rewrite mulr_ge0. Qed.

Lemma rest_weight01 w r q : 0 <= w <= 1 -> 0 <= rest_weight w r q <= 1.
Proof. exact: (@stop01 _ _ (fun=> r) (fun=> q) w [::]). Qed.

Lemma rest_row_dist w r q : dist r -> dist (rest_row w r q).
Proof. by move=> rP; apply: (@owed_row_dist _ _ (fun=> r) (fun=> q) (fun=> rP) w [::]). Qed.

Lemma lawful_climb w r h d t : 0 <= w <= 1 -> dist r -> lawful (climb w r h d t).
Proof.
elim: t w r h d => [|x below IHb beside IHs] w r h d w01 rP /=.
  apply: lawful_bind => [|[]]; [exact: lawful_coin | | exact: lawful_ret].
  by apply: lawful_bind => [|y]; [apply: lawful_pick | apply: lawful_ret].
apply: lawful_bind => [|[s|]]; [|exact: lawful_ret|].
  by apply: IHb => //; apply: pass01 => //; case/andP: w01.
by apply: IHs; [apply: rest_weight01 | apply: rest_row_dist].
Qed.

Lemma lawful_sprout deeper n h d : (forall h, lawful (deeper h)) -> lawful (sprout deeper n h d).
Proof.
move=> deeperP; elim: n d => [|n IH] d /=; first exact: lawful_ret.
case: (boolP (enough h d)) => [_|more]; first exact: lawful_ret.
apply: lawful_bind => [|x]; first exact/lawful_pick/qsP.
by do 2![apply: lawful_bind => // ?]; apply: lawful_ret.
Qed.

Lemma lawful_sprouts g h : lawful (sprouts g h).
Proof. by elim: g h => [|g IH] h; [apply: lawful_ret | apply: lawful_sprout]. Qed.

(** What a completion is worth after its first token. *)
Definition onwards n h k x : R := if n is n'.+1 then target p n' (rcons h x) (fun s => k (x :: s)) else k [::].

Lemma onwards_target n h k : pick (p h) (onwards n h k) = target p n h k.
Proof. by case: n => [|n] //; apply: (law_const (lawful_pick (pP h))). Qed.

Lemma onwards_one n h k y : complete p n h [:: y] k = onwards n h k y.
Proof. by case: n => //= n; rewrite complete_nil. Qed.

(** ... and how a completion after x is one of a shorter word. *)
Lemma onwards_below n h k x : exists m k', onwards n h k x = target p m (rcons h x) k'
  /\ forall s, complete p n h (x :: s) k = complete p m (rcons h x) s k'.
Proof. by case: n => [|n]; [exists 0%N, (fun _ => k [::]) | exists n, (fun s => k (x :: s))]. Qed.

Definition climbs_as deeper h : Prop := forall n k c w, 0 <= w <= 1 ->
  deeper h (fun t => climb w (p h) h [::] t (worth p n h k c)) = w * target p n h k + (1 - w) * c.

Lemma leaf_law w r h d n k c : dist r ->
  climb w r h d Done (worth p n h k c) = w * pick r (onwards n h k) + (1 - w) * c.
Proof.
move=> rP; rewrite /= /bind /coin /ret /=; congr (_ * _ + _); apply: total_ext => y.
by rewrite onwards_one.
Qed.

(** With weight w and row r, m more siblings to be drawn after d. *)
Lemma sprout_law deeper m h d w r n k c : (forall h, lawful (deeper h)) -> (forall h, climbs_as deeper h) ->
  0 <= w <= 1 -> dist r ->
  sprout deeper m h d (fun t => climb w r h d t (worth p n h k c)) = w * pick r (onwards n h k) + (1 - w) * c.
Proof.
move=> deeperP below; elim: m d w r => [|m IH] d w r w01 rP; first exact: leaf_law.
rewrite [LHS]/=; case: (boolP (enough h d)) => [_|more]; first exact: leaf_law.
pose q := qs h d; pose w' := rest_weight w r q; pose r' := rest_row w r q.
have [w'01 r'P] : 0 <= w' <= 1 /\ dist r' by split; [apply: rest_weight01 | apply: rest_row_dist].
have one := @one_level _ _ (fun=> r) (fun=> q) (fun=> rP) (fun=> qsP more) w [::] (onwards n h k) c w01.
rewrite -one; apply: total_ext => x; congr (_ * _).
have a01 : 0 <= pass w r q x <= 1 by apply: pass01 => //; [case/andP: w01 | apply: qs_ge0].
pose later t := climb w' r' h (rcons d x) t (worth p n h k c).
have sP := lawful_sprout m h (rcons d x) deeperP.
transitivity (sprout deeper m h (rcons d x) (fun t => pass w r q x * onwards n h k x + (1 - pass w r q x) * later t)).
  apply: (law_ext sP) => beside; have [l [k' [-> eS]]] := onwards_below n h k x.
  rewrite -(below _ l k' (later beside) _ a01); apply: (law_ext (deeperP _)) => t.
  rewrite /ret [LHS]/= {1}/bind; apply: (law_ext (lawful_climb _ _ _ a01 (pP _))) => -[s|] //.
  exact: eS.
by rewrite (law_add sP) (law_const sP) (law_scale sP) (IH (rcons d x) w' r').
Qed.

Lemma sprouts_law g h : climbs_as (sprouts g) h.
Proof.
elim: g h => [|g IH] h n k c w w01; rewrite -onwards_target; first exact: leaf_law.
by apply: sprout_law => // h'; apply: lawful_sprouts.
Qed.

Theorem traversal_lossless g h : lossless p h (traversal g h).
Proof.
move=> n k; pose c := pick (p h) (fun y => complete p n h [:: y] k).
have one : 0 <= (1 : R) <= 1 by rewrite ler01 lexx.
have := sprouts_law g h n k c one; rewrite subrr mul1r mul0r addr0 => <-.
apply: (law_ext (lawful_sprouts g h)) => t.
by apply: (law_ext (lawful_climb _ _ _ one (pP h))) => -[s|].
Qed.

Lemma climb_emits w r h d t : 0 <= w <= 1 -> dist r -> surely (@nonempty V) (climb w r h d t).
Proof.
elim: t w r h d => [|x below IHb beside IHs] w r h d w01 rP f f' e /=.
  apply: (law_ext (lawful_coin w01)) => -[]; last by rewrite /ret e.
  by apply: total_ext => y; rewrite /ret e.
have a01 : 0 <= pass w r (qs h d) x <= 1 by apply: pass01 => //; case/andP: w01.
apply: (law_ext (lawful_climb _ _ _ a01 (pP _))) => -[s|]; first by rewrite /ret e.
by apply: IHs => //; [apply: rest_weight01 | apply: rest_row_dist].
Qed.

Theorem traversal_emits g h : surely (fun o => (0 < size o)%N) (traversal g h).
Proof.
have one : 0 <= (1 : R) <= 1 by rewrite ler01 lexx.
move=> f f' e; apply: (law_ext (lawful_sprouts g h)) => t.
apply: (climb_emits h [::] t one (pP h)) => -[s|] /= ok; first exact: e.
by apply: total_ext => y; rewrite /ret e.
Qed.

(** A chain is a tree whose nodes have one child. *)
Fixpoint chain_branches xs : branches := if xs is x :: xs' then Branch x (chain_branches xs') Done else Done.

Theorem traversal_chain h xs f : traverse h (chain_branches xs) f = block_verify p (fun h => qs h [::]) h xs f.
Proof.
have same w g ys F : climb w (p g) g [::] (chain_branches ys) F = keep p (fun h => qs h [::]) w g ys F.
  by elim: ys w g F => [|y ys IH] w g F //=; rewrite /bind IH.
by rewrite /traverse /block_verify /bind same.
Qed.
End Traversal.

(** ** Independent siblings, and siblings without replacement *)
Section Draws.
Variables (R : realFieldType) (V : vocab) (p q : seq V -> V -> R) (width : seq V -> nat).
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall h, dist (q h).

Theorem traversal_iid_lossless g h : lossless p h (traversal p (fun h _ => q h) (fun _ => xpred0) width g h).
Proof. by apply: traversal_lossless => // h' d x; case: (qP h'). Qed.

Theorem traversal_distinct_lossless g h : lossless p h (traversal p (renormalised q) (exhausted q) width g h).
Proof. by apply: traversal_lossless => // [h' d|h' d x]; [apply: renormalised_dist | apply: renormalised_ge0]. Qed.

End Draws.
