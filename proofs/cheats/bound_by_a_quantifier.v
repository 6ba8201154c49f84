(** Refused by words. A predicate is quantified over that has the name of ours. *)
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob.
Theorem anything (R : realFieldType) (V : vocab) (row : V -> R) (dist : (V -> R) -> bool) : dist row = dist row.
Proof. by []. Qed.
