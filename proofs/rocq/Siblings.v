(** Several candidates for one position: recursive rejection sampling.

    What it says.  Siblings are drawn one after the other, the next from row
    [qs d] where [d] are those drawn before ([qs] constant: independent draws;
    [qs] renormalised over what is left: without replacement).  They are judged
    in that order by min(1, r/q), r starting at p and becoming the residual at
    each refusal; after the last refusal r itself is drawn from.
    [siblings_lossless]: p comes out, for any number of candidates.
    The node rule then goes into Tree.v ([judge_*] are its side conditions).

    Source: SpecInfer (Miao et al. 2024) Alg. 2; Jeon et al. 2024 (RSD);
    Leviathan et al. 2023, App. A.5. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Chain Tree.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Siblings.
Variables (R : realFieldType) (V : vocab).
Variables (qs : seq V -> V -> R) (enough : seq V -> bool).
Hypothesis qs_ge0 : forall d x, 0 <= qs d x.
Hypothesis qsP : forall d, ~~ enough d -> dist (qs d).
Implicit Types (d cs : seq V) (r : V -> R) (c x : V).

(** At most k siblings; fewer once [enough] holds (nothing left to draw). *)
Definition siblings k : law R (seq V) := draft qs enough k [::].

(** [d]: refused so far, [i]: their number, [r]: what is still owed. *)
Fixpoint judge r d i cs : law R (choice V) :=
  if cs is c :: cs' then
    kept <~ coin (accept r (qs d) c);;
    if kept then ret (c, Some i) else judge (residual r (qs d)) (rcons d c) i.+1 cs'
  else y <~ pick r;; ret (y, None).

Lemma accept_row01 r d c : dist r -> 0 <= accept r (qs d) c <= 1.
Proof. by case=> r0 _; apply: accept01. Qed.

Lemma lawful_judge r d i cs : dist r -> lawful (judge r d i cs).
Proof.
elim: cs r d i => [|c cs IH] r d i rP /=.
  by apply: lawful_bind => [|y]; [apply: lawful_pick | apply: lawful_ret].
apply: lawful_bind => [|[]]; [exact/lawful_coin/accept_row01 | exact: lawful_ret |].
by apply: IH; apply: residual_dist.
Qed.

Lemma judge_swaps r d i cs : swaps (judge r d i cs).
Proof.
elim: cs r d i => [|c cs IH] r d i B n F nP.
  by rewrite /= /bind /ret; apply: (swaps_pick r (fun y => F (y, None)) nP).
rewrite /= /bind (law_ext nP (g := fun b => coin (accept r (qs d) c) (fun kept =>
  if kept then F (c, Some i) b else judge (residual r (qs d)) (rcons d c) i.+1 cs (F^~ b)))) //.
by rewrite -(swaps_coin _ _ nP) /coin /ret IH.
Qed.

Lemma judge_child r d i cs : dist r ->
  surely (fun o => if o.2 is Some j then (i <= j < i + size cs)%N && (nth o.1 cs (j - i) == o.1) else true)
         (judge r d i cs).
Proof.
elim: cs r d i => [|c cs IH] r d i rP f g e /=; first by apply: total_ext => y; rewrite /ret e.
apply: (law_ext (lawful_coin (accept_row01 d c rP))) => -[].
  by rewrite /ret e //= subnn eqxx leqnn addnS ltnS leq_addr.
apply: (IH _ _ _ (residual_dist _ rP)) => -[y [j|]] /= ok; last exact: e.
apply: e => /=; case/andP: ok => /andP[ij js] /eqP nj.
by rewrite (ltnW ij) addnS -addSn js /= -(subnSK ij) /= nj.
Qed.

Theorem judged_lossless k d i r f : dist r ->
  draft qs enough k d (fun cs => judge r d i cs (fun o => f o.1)) = pick r f.
Proof.
elim: k d i r => [|k IH] d i r rP //=; case: (boolP (enough d)) => [//|more].
rewrite -(single_step rP (qsP more) f); apply: total_ext => x; congr (_ * _).
have dP : lawful (draft qs enough k (rcons d x)) by apply: lawful_draft.
rewrite {1}/bind /ret /= {1}/bind /coin (law_add dP) (law_scale dP) (law_scale dP) (law_const dP).
by rewrite (IH _ i.+1 _ (residual_dist _ rP)).
Qed.

End Siblings.

(** At every node of a tree. *)
Section Node.
Variables (R : realFieldType) (V : vocab).
Variable p : seq V -> V -> R.
Variables (qs : seq V -> seq V -> V -> R) (enough : seq V -> seq V -> bool) (width : seq V -> nat).
Hypothesis pP : forall h, dist (p h).
Hypothesis qs_ge0 : forall h d x, 0 <= qs h d x.
Hypothesis qsP : forall h d, ~~ enough h d -> dist (qs h d).

Definition judge_node h cs : law R (choice V) := judge (qs h) (p h) [::] 0 cs.
Definition candidates_at h : law R (seq V) := siblings (qs h) (enough h) (width h).

Definition siblings_tree g h : law R (seq V) := tree_round judge_node candidates_at g h.

Theorem siblings_tree_lossless g h : lossless p h (siblings_tree g h).
Proof.
apply: tree_lossless => //.
- by move=> h' cs; apply: (lawful_judge (@qs_ge0 h')).
- by move=> h' cs; apply: judge_swaps.
- move=> h' cs f f' e; have c := @judge_child _ _ (qs h') (@qs_ge0 h') (p h') [::] 0 cs (pP h').
  apply: c => // -[y [j|]] /= ok; apply: e => //=.
  by rewrite subn0 in ok.
- by move=> h'; apply: lawful_draft; apply: qsP.
- by move=> h' f; apply: (judged_lossless (@qsP h') _ _ _ _ (pP h')).
Qed.

End Node.
