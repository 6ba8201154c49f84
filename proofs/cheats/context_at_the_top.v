(** Refused by text, assumptions, coqchk. *)
Context (absurd : False).
Theorem anything : 1 = 2.
Proof. destruct absurd. Qed.
