(** Refused by text, compile. A file that no list names. *)
From Proofs Require Import Hidden.
Theorem anything : 1 = 1.
Proof. reflexivity. Qed.
