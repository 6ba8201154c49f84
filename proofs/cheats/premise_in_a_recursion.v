(** Refused by premises. A proposition that calls itself assumes, at every number, what holds of none. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Fixpoint same_up_to (p q : nat -> nat) (n : nat) : Prop :=
  match n with 0 => p 0 = p 0 | m.+1 => (m < 0 -> p m = q m) /\ same_up_to p q m end.
Theorem anything p q n : same_up_to p q n.
Proof. by elim: n. Qed.
