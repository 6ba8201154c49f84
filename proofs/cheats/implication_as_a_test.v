(** Refused by premises, words. A test whose first half is a premise, which no arrow shows. *)
From mathcomp Require Import all_ssreflect.
Theorem anything (a b : nat) : (a == b) && (b != a) ==> (a < b).
Proof. by case: eqP => // ->; rewrite eqxx. Qed.
