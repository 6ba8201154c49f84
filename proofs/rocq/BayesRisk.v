(** Features, heads and losses: what seed 004's lemmas prove, and what they do not.

    What it says.
    - [more_features_cannot_hurt]  the least risk from features (a, b) is at most
      that from a alone, for every superadditive uncertainty [G] of unnormalised
      rows (entropy is such: Entropy.v; so are Gini and 0-1 loss); [bayes_superadditive] is the
      instance "least expected loss over any finite list of decisions".
    - [sufficient_feature_equal]   no gain at all where the token is drawn from a
      row that depends on a alone - the target's own next token given its last
      hidden state: "strictly lowers" is vacuous there.
    - [nullspace_invisible]        a change of the hidden state inside the kernel of
      the head W changes no logit, hence no loss of any kind;
    - [nullspace_iff_rank]         such a change exists iff rank W < d: without that
      there is no "nullspace tax";
    - [softmax_fisher_singular]    diag(p) - p p^T kills the all-ones vector, so the
      logits' Fisher matrix is never positive definite.

    Source: seed 004, Lemmas 3.1-3.4 and their boxes. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Risk.
Variables (R : realFieldType) (V A B : vocab).
(** The joint weights of token, feature a and feature b. *)
Variable mu : A -> B -> V -> R.
Hypothesis mu_ge0 : forall a b y, 0 <= mu a b y.

(** Uncertainty of an unnormalised row; superadditive = concave and homogeneous. *)
Definition superadditive (G : (V -> R) -> R) :=
  forall u v, (forall y, 0 <= u y) -> (forall y, 0 <= v y) -> G u + G v <= G (fun y => u y + v y).
Definition respects (G : (V -> R) -> R) := forall u v, u =1 v -> G u = G v.

Definition risk_fine (G : (V -> R) -> R) : R := total (fun a => total (fun b => G (mu a b))).
Definition risk_coarse (G : (V -> R) -> R) : R := total (fun a => G (fun y => total (fun b => mu a b y))).

Lemma superadditive_sum G (s : seq B) a : superadditive G -> respects G -> 0 <= G (fun _ => 0) ->
  foldr (fun b r => G (mu a b) + r) 0 s <= G (fun y => foldr (fun b r => mu a b y + r) 0 s).
Proof.
move=> sup ext G0; elim: s => [|b s IH] //=; apply: le_trans (ler_add (lexx _) IH) _.
by apply: sup => y //; elim: (s) => //= b' s' IH'; apply: addr_ge0.
Qed.

Theorem more_features_cannot_hurt G : superadditive G -> respects G -> 0 <= G (fun _ => 0) ->
  risk_fine G <= risk_coarse G.
Proof. by move=> sup ext G0; apply: total_le => a; apply: superadditive_sum. Qed.

(** The token given (a, b) is drawn from a row that a alone determines. *)
Theorem sufficient_feature_equal G (w : A -> B -> R) (row : A -> V -> R) :
  respects G -> (forall c v, 0 <= c -> G (fun y => c * v y) = c * G v) ->
  (forall a b, 0 <= w a b) -> (forall a b y, mu a b y = w a b * row a y) ->
  risk_fine G = risk_coarse G.
Proof.
move=> ext hom w0 e; apply: total_ext => a.
rewrite (total_ext (g := fun b => w a b * G (row a))); last by move=> b; rewrite (ext _ _ (e a b)) hom.
rewrite total_scaler -hom ?total_ge0 //; apply: ext => y.
by rewrite -total_scaler; apply: total_ext => b; rewrite e.
Qed.

(** Least expected loss over finitely many decisions. *)
Definition expected_loss (loss : V -> R) (v : V -> R) : R := total (fun y => v y * loss y).
Fixpoint bayes (first : V -> R) (others : seq (V -> R)) (v : V -> R) : R :=
  if others is l :: ls then Num.min (expected_loss first v) (bayes l ls v) else expected_loss first v.

Lemma expected_loss_add loss u v :
  expected_loss loss (fun y => u y + v y) = expected_loss loss u + expected_loss loss v.
Proof. by rewrite -total_add; apply: total_ext => y; rewrite mulrDl. Qed.

Theorem bayes_superadditive first others : superadditive (bayes first others).
Proof.
move=> u v u0 v0; elim: others first => [|l ls IH] first /=; first by rewrite expected_loss_add.
rewrite le_minr expected_loss_add; apply/andP; split.
  by apply: ler_add; rewrite le_minl lexx.
by apply: le_trans (IH l); apply: ler_add; rewrite le_minl lexx orbT.
Qed.

End Risk.

Section Head.
Variables (R : realFieldType) (n d : nat).
Variable W : 'M[R]_(n, d).

Theorem nullspace_invisible (L : 'cV[R]_n -> R) (f delta : 'cV[R]_d) :
  W *m delta = 0 -> L (W *m (f + delta)) = L (W *m f).
Proof. by move=> e; rewrite mulmxDr e addr0. Qed.

Theorem nullspace_iff_rank : (exists2 delta : 'cV[R]_d, delta != 0 & W *m delta = 0) <-> (\rank W < d)%N.
Proof.
have le : (\rank W <= d)%N by apply: rank_leq_col.
rewrite ltn_neqAle le andbT -mxrank_tr; split=> [[delta nz e]|].
  apply/negP => full; case/eqP: nz; apply: trmx_inj; rewrite trmx0.
  have free : row_free W^T by [].
  by apply: (row_free_inj free); rewrite -trmx_mul e trmx0 mul0mx.
rewrite -/(row_free W^T) -kermx_eq0 => /rowV0Pn[v sub nz]; exists v^T; first by rewrite -trmx0 (inj_eq trmx_inj).
by apply: trmx_inj; rewrite trmx_mul trmxK trmx0; apply/eqP; rewrite -sub_kermx.
Qed.

End Head.

Theorem softmax_fisher_singular (R : realFieldType) (V : vocab) (p : V -> R) x : dist p ->
  total (fun y => ((y == x)%:R * p y - p x * p y) * 1) = 0.
Proof.
case=> _ p1; rewrite (total_ext (g := fun y => (y == x)%:R * p y - p x * p y)); last by move=> y; rewrite mulr1.
by rewrite total_sub total_pick total_scale p1 mulr1 subrr.
Qed.
