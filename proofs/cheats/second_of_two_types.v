(** Refused by text, words, premises. The second of two types that are given together has the name of ours. *)
From Proofs Require Import Prob.
Inductive first_kind := First with dist := Second.
Theorem anything : dist = dist.
Proof. reflexivity. Qed.
