(** Refused by names. A word of a library is a variable. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Section Anything.
Variable gcdn : nat -> nat -> unit.
Theorem anything (m n : nat) : gcdn m n = gcdn m n.+1.
Proof. by case: (gcdn m n); case: (gcdn m n.+1). Qed.
End Anything.
