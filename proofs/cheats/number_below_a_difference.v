(** Refused by premises. The type looks as if it depended on a number, and is empty for every one. *)
From mathcomp Require Import all_ssreflect.
Theorem anything (n : nat) (i : 'I_(n - n)) : 1 = 2.
Proof. by case: i => m; rewrite subnn. Qed.
