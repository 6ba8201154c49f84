(** Finite precision: what an inexact engine may claim.

    What it says.  [drift]: if each row moves by at most eps in total variation,
    no event about n tokens moves by more than n * eps.  [drift_stop]: nor any event
    about texts that end at a stop.  [tv_events]: total variation is the largest
    change of an event's probability, the form used here.

    Source: ours (telescoping); the budget behind "the same up to rounding". *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Loop.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Drift.
Variables (R : realFieldType) (V : vocab).
Implicit Types (r : V -> R) (h : seq V).

Definition unit_test A (f : A -> R) := forall a, 0 <= f a <= 1.

(** No test with values in [0,1] gains more than TV. *)
Lemma tv_test r r' f : dist r -> dist r' -> unit_test f -> pick r f - pick r' f <= tv r r'.
Proof.
move=> rP r'P f01; have [_ e] := rP; have [_ e'] := r'P.
have -> : tv r r' = total (excess r r').
  by rewrite rejected_mass // acceptance_is_one_minus_tv //; ring.
rewrite -total_sub; apply: total_le => x; rewrite -mulrBl /excess.
have /andP[f0 f1] := f01 x; case: (lerP (r x - r' x) 0) => [le|lt].
  by rewrite -oppr_ge0 -mulNr mulr_ge0 // oppr_ge0.
by rewrite -[leRHS]mulr1 ler_wpmul2l // ltW.
Qed.

(** ... and the event "r exceeds r'" gains exactly that much. *)
Theorem tv_events r r' : dist r -> dist r' ->
  tv r r' = pick r (fun x => (r' x < r x)%R%:R) - pick r' (fun x => (r' x < r x)%R%:R)
  /\ forall f, unit_test f -> pick r f - pick r' f <= tv r r'.
Proof.
move=> rP r'P; split=> [|f]; last exact: tv_test.
have -> : tv r r' = total (excess r r').
  by rewrite rejected_mass // acceptance_is_one_minus_tv //; ring.
rewrite -total_sub; apply: total_ext => x; rewrite -mulrBl /excess; case: ltP => [lt|le].
  by rewrite mulr1 max_l // subr_ge0 ltW.
by rewrite mulr0 max_r // subr_le0.
Qed.

Variables (p p' : seq V -> V -> R) (eps : R).
Hypothesis pP : forall h, dist (p h).
Hypothesis p'P : forall h, dist (p' h).
Hypothesis close : forall h, tv (p h) (p' h) <= eps.

Theorem drift n h f : unit_test f -> target p n h f - target p' n h f <= n%:R * eps.
Proof.
elim: n h f => [|n IH] h f f01; first by rewrite /ret subrr mul0r.
pose F x := target p n (rcons h x) (fun s => f (x :: s)).
pose F' x := target p' n (rcons h x) (fun s => f (x :: s)).
have F01 : unit_test F.
  move=> x; have tP := lawful_target pP n (rcons h x); apply/andP; split.
    by apply: (law_ge0 tP) => s; case/andP: (f01 (x :: s)).
  by rewrite -(law_one tP); apply: (law_le tP) => s; case/andP: (f01 (x :: s)).
have parts : target p n.+1 h f - target p' n.+1 h f
        = (pick (p h) F - pick (p' h) F) + (pick (p' h) F - pick (p' h) F').
  by rewrite addrA subrK.
rewrite parts -addn1 natrD addrC mulrDl mul1r; apply: ler_add.
  rewrite -total_sub; have [p0 p1] := p'P h.
  rewrite -[leRHS](law_const (lawful_pick (p'P h))); apply: total_le => x.
  by rewrite -mulrBr; apply: ler_wpmul2l => //; apply: IH => s; apply: f01.
by apply: le_trans (close h); apply: tv_test.
Qed.

Theorem drift_stop stop n h f : unit_test f -> plain p stop n h f - plain p' stop n h f <= n%:R * eps.
Proof. by move=> f01; rewrite !plain_target //; apply: drift => s; apply: f01. Qed.

End Drift.
