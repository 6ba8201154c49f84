(** Drafters whose randomness is any: countable, continuous, or told by nobody.

    What it says.  [lawful] asks an expectation for every test, so it has finitely many
    outcomes at heart; a geometric length or Gaussian noise has a mean for bounded tests
    only.  [bounded_law] asks that and no more: for unbounded tests any value will do, the
    same for the same tests.  All that a round's losslessness asks of a drafter's noise is
    that the mean of a constant is this constant ([steady]), so:
    - [noisy_loop_lossless]  the loop of Loops.v with draws and updates of the state that
      are steady;
    - [noisy_chain_loop_lossless]  rows, lengths and halting set by noise of any kind, the
      ratio rule: the loop writes the target's text.
    The vocabulary is finite, so tests of n tokens are bounded.  That an integral is a
    [bounded_law] is calculus, and not proved here; the instance has finitely many outcomes.

    Source: ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Loop Chain Leviathan Loops.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Bounded.
Variables (R : realFieldType) (A : Type).
Implicit Types (m : law R A) (f g : A -> R).

Definition bounded_test f : Prop := exists c, forall a, `|f a| <= c.

Record bounded_law m : Prop := BoundedLaw {
  bounded_ext : forall f g, f =1 g -> m f = m g;
  bounded_add : forall f g, bounded_test f -> bounded_test g -> m (fun a => f a + g a) = m f + m g;
  bounded_scale : forall c f, bounded_test f -> m (fun a => c * f a) = c * m f;
  bounded_le : forall f g, bounded_test f -> bounded_test g -> (forall a, f a <= g a) -> m f <= m g;
  bounded_one : m (fun _ => 1) = 1
}.

(** All that is used of it. *)
Record steady m : Prop := Steady {
  steady_ext : forall f g, f =1 g -> m f = m g;
  steady_const : forall c, m (fun _ => c) = c
}.

Lemma bounded_steady m : bounded_law m -> steady m.
Proof.
case=> ext _ scale _ one; split=> // c; rewrite -[RHS]mulr1 -one -scale; last by exists 1 => _; rewrite normr1.
by apply: ext => a; rewrite mulr1.
Qed.

Lemma lawful_bounded m : lawful m -> bounded_law m.
Proof.
move=> mP; split=> [f g|f g _ _|c f _|f g _ _|]; [exact: law_ext | exact: law_add | exact: law_scale | exact: law_le |].
exact: law_one.
Qed.
End Bounded.

Section Noisy.
Variables (R : realFieldType) (V : vocab) (S D : Type).
Variables (p : seq V -> V -> R) (stop : seq V -> bool).
Variables (draw : S -> seq V -> law R D) (answer : S -> seq V -> D -> law R (seq V)).
Variable update : S -> seq V -> D -> seq V -> law R S.
Hypothesis pP : forall h, dist (p h).
Hypothesis drawP : forall st h, steady (draw st h).
Hypothesis updateP : forall st h d o, steady (update st h d o).
Hypothesis answer_emits : forall st h d, surely (fun o => (0 < size o)%N) (answer st h d).
Hypothesis answer_lossless : forall st h d, lossless p h (answer st h d).

Theorem noisy_loop_lossless fuel n st h k : (n <= fuel)%N ->
  loop stop (drafted_round draw answer update) fuel n st h k = plain p stop n h k.
Proof.
apply: loop_lossless_until => // [st' h' m f|st' h' f f' e].
  rewrite -[RHS](steady_const (drawP st' h')); apply: (steady_ext (drawP st' h')) => d.
  rewrite -(answer_lossless st' h' d m f); apply: answer_emits => o _.
  exact: (steady_const (updateP st' h' d o) (complete p m h' o f)).
apply: (steady_ext (drawP st' h')) => d; apply: answer_emits => o o0.
by apply: (steady_ext (updateP st' h' d o)) => st''; apply: e.
Qed.
End Noisy.

Section NoisyChains.
Variables (R : realFieldType) (V : vocab) (S Noise : Type) (p : seq V -> V -> R) (stop : seq V -> bool).
(** Noise of a round, and what state, noise and the start of the round give. *)
Variables (noise : S -> seq V -> law R Noise) (q : S -> Noise -> seq V -> V -> R).
Variables (halt : S -> Noise -> seq V -> bool) (gamma : S -> Noise -> nat).
Variable update : S -> seq V -> Noise -> seq V -> law R S.
Hypothesis pP : forall h, dist (p h).
Hypothesis qP : forall st w h, dist (q st w h).
Hypothesis noiseP : forall st h, bounded_law (noise st h).
Hypothesis updateP : forall st h w o, bounded_law (update st h w o).

Theorem noisy_chain_loop_lossless fuel n st h k : (n <= fuel)%N ->
  loop stop (drafted_round noise (fun st h w => leviathan p (q st w) (halt st w) (gamma st w) h) update) fuel n st h k
  = plain p stop n h k.
Proof.
apply: noisy_loop_lossless => // [st' h'|st' h' w o|st' h' w|st' h' w]; try exact: bounded_steady.
  exact: leviathan_emits.
exact: leviathan_lossless.
Qed.
End NoisyChains.
