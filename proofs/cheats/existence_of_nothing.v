(** Refused by premises. For some number, of all numbers below it: it is 0. *)
From mathcomp Require Import all_ssreflect.
Theorem anything : exists n, forall i : 'I_n, 1 = 2.
Proof. by exists 0 => -[]. Qed.
