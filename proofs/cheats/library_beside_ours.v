(** Refused by text, words, premises. A library that we do not use may open a scope or turn a symbol round. *)
From Coq Require Import Bool.
Theorem anything : implb false true = true.
Proof. reflexivity. Qed.
