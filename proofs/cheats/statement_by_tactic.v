(** Refused by text. A tactic writes what is stated. *)
Theorem anything : ltac:(exact True).
Proof. exact I. Qed.
