(** Refused by text, words, assumptions. Numbers of the machine, whose arithmetic the kernel takes from the processor. *)
From Coq Require Import Uint63.
Theorem anything : PrimInt63.add 1%uint63 1%uint63 = 2%uint63.
Proof. reflexivity. Qed.
Set Warnings "none".
