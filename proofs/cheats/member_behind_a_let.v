(** Refused by premises. What is given a name first hides that the type has no members. *)
From mathcomp Require Import all_ssreflect.
Theorem anything : let n := 0%N in forall i : 'I_n, 1%N = 2%N.
Proof. by move=> n; case. Qed.
