(** Refused by premises. A tuple of numbers below a difference that is nought. *)
From mathcomp Require Import all_ssreflect.
Theorem anything n (t : n.+1.-tuple 'I_(n - n)) : 1 = 2.
Proof. by case: (tnth t ord0) => m; rewrite subnn. Qed.
