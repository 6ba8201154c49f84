(** Refused by words. The name of ours is given to something else inside the statement. *)
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob.
Theorem anything (R : realFieldType) (V : vocab) (row : V -> R) : let dist (_ : V -> R) := 0%N = 0%N in dist row.
Proof. by []. Qed.
