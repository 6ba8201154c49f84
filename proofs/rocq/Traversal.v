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

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Chain Leviathan Block.
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
Definition rest w r q : R := total (excess (fun y => w * r y) q).
Definition rest_weight w r q : R := rest w r q / (rest w r q + 1 - w).
Definition rest_row w r q x : R := if rest w r q == 0 then r x else excess (fun y => w * r y) q x / rest w r q.

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
End Traversal.
