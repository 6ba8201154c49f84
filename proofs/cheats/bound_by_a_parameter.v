(** Refused by words, premises. The parameter of a definition has the name of ours, and the statement reads the definition. *)
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob.
Definition fine (R : realFieldType) (V : vocab) (dist : (V -> R) -> Prop) (row : V -> R) := dist row \/ True.
Theorem anything (R : realFieldType) (V : vocab) (row : V -> R) : @fine R V (fun _ => False) row.
Proof. by right. Qed.
