(** Refused by names. Words of ours are variables, in a file that does not import them. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Section Anything.
Variables (leviathan : nat -> unit) (lossless : unit -> unit).
Theorem anything (block : nat) : lossless (leviathan block) = tt.
Proof. by case: (lossless _). Qed.
End Anything.
