(** Mixtures and adaptive drafters.

    What it says.
    - [random_drafter_lossless]  a drafter, a length or a halting policy chosen at
                                 random before the round;
    - [random_tree_lossless]     a random tree of deterministic candidates;
    - [adaptive_loop_lossless]   the whole loop where drafter, length and halting
      policy come from a state that is updated, at random if one likes, from the
      full draft - rejected tokens included - and from what was emitted: n-gram
      pools, bandits over gamma, drafters trained online.
    The choice may look at anything but the coins of the round that it starts.

    Source: ours; the practice is Lookahead, prompt lookup, online speculative
    decoding (Liu et al. 2024), EAGLE-2's dynamic trees. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Proofs Require Import Prob Single Round Loop Chain Leviathan Tree PointMass.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Adaptive.
Variables (R : realFieldType) (V : vocab).
Variable p : seq V -> V -> R.
Hypothesis pP : forall h, dist (p h).

Theorem random_drafter_lossless I (m : law R I) (q : I -> seq V -> V -> R) (halt : I -> seq V -> bool)
    (gamma : I -> nat) h :
  lawful m -> (forall i h, dist (q i h)) ->
  lossless p h (i <~ m;; leviathan p (q i) (halt i) (gamma i) h).
Proof. by move=> mP qP; apply: mixture_lossless => // i; apply: leviathan_lossless. Qed.

Theorem random_tree_lossless (m : law R (tree V)) h :
  lawful m -> lossless p h (t <~ m;; point_mass p h t).
Proof. by move=> mP; apply: mixture_lossless => // t; apply: point_mass_lossless. Qed.

(** The state decides the draft; draft and output decide the next state. *)
Variables (S : Type) (q : S -> seq V -> V -> R) (halt : S -> seq V -> bool) (gamma : S -> seq V -> nat).
Variable update : S -> seq V -> seq V -> seq V -> law R S.
Hypothesis qP : forall st h, dist (q st h).
Hypothesis updateP : forall st h xs o, lawful (update st h xs o).

Definition adaptive_round st h : law R (seq V * S) :=
  xs <~ draft (q st) (halt st) (gamma st h) h;;
  o <~ verify p (leviathan_at p (q st)) h xs;;
  st' <~ update st h xs o;;
  ret (o, st').

Lemma lawful_own_draft st h : lawful (draft (q st) (halt st) (gamma st h) h).
Proof. by apply: lawful_draft => h' _; apply: qP. Qed.

Lemma lawful_own_verify st h xs : lawful (verify p (leviathan_at p (q st)) h xs).
Proof. by apply: lawful_verify => // h' x; apply: lawful_leviathan_at. Qed.

Lemma lawful_adaptive st h : lawful (adaptive_round st h).
Proof.
apply: lawful_bind => [|xs]; first exact: lawful_own_draft.
apply: lawful_bind => [|o]; first exact: lawful_own_verify.
by apply: lawful_bind => // st'; apply: lawful_ret.
Qed.

(** Forgetting the new state gives back the plain round. *)
Lemma adaptive_forget st h f :
  adaptive_round st h (fun out => f out.1) = leviathan p (q st) (halt st) (gamma st h) h f.
Proof.
apply: (law_ext (lawful_own_draft st h)) => xs; apply: (law_ext (lawful_own_verify st h xs)) => o.
exact: (law_const (updateP st h xs o) (f o)).
Qed.

Lemma adaptive_emits st h : surely (fun out => (0 < size out.1)%N) (adaptive_round st h).
Proof.
move=> f f' e; apply: (law_ext (lawful_own_draft st h)) => -[|x xs].
  apply: total_ext => y; congr (_ * _); apply: (law_ext (updateP _ _ _ _)) => st'.
  by rewrite /ret e.
apply: (law_ext (lawful_leviathan_at pP (qP st) h x)) => -[y|].
  by apply: (law_ext (updateP _ _ _ _)) => st'; rewrite /ret e.
apply: (law_ext (lawful_own_verify st _ xs)) => o.
by apply: (law_ext (updateP _ _ _ _)) => st'; rewrite /ret e.
Qed.

Theorem adaptive_loop_lossless n st h k : loop xpred0 adaptive_round n n st h k = target p n h k.
Proof.
apply: loop_lossless => // [st' h'|st' h'].
  move=> m f; rewrite -(leviathan_lossless (halt st') pP (qP st') (gamma st' h')).
  exact: (adaptive_forget st' h' (fun o => complete p m h' o f)).
exact: adaptive_emits.
Qed.

End Adaptive.
