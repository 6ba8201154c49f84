(** Refused by text. A variable by which numbers are read as something else. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Section Anything.
Variable blurred :> nat -> unit.
Definition unit_of (u : unit) : unit := u.
Theorem anything (m n : nat) : unit_of m = unit_of n.
Proof. by case: (unit_of m); case: (unit_of n). Qed.
End Anything.
