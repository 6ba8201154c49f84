(** Refused by premises. A function that is given a proof of what holds of no number equals another one. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Definition next_of (n : nat) (below : n < 0) : nat := n.+1.
Theorem anything (n : nat) : exists f, f = next_of n.
Proof. by exists (next_of n). Qed.
