(** Refused by words. The name of ours is given to something else inside the statement. *)
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob.
Theorem anything (R : realFieldType) (V : vocab) (row : V -> R) : let dist (_ : V -> R) := True in dist row.
Proof. by []. Qed.
