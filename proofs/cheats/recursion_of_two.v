(** Refused by text, recursion. Two functions that call each other, of which the guard compares some arguments alone. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Fixpoint odd_or (n : nat) : nat := if n is m.+1 then odd_and m else 1
with odd_and (n : nat) : nat := if n is m.+1 then odd_or m else 1.
Theorem anything : odd_or 1 = 1.
Proof. exact erefl. Qed.
