(** Refused by text. Foreign code inside the prover can do anything. *)
Declare ML Module "coq-core.plugins.nsatz".
Theorem anything : 1 = 1.
Proof. reflexivity. Qed.
