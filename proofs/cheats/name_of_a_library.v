(** Refused by names. The order of numbers, under its own name. *)
Definition le (m n : nat) := True.
Theorem anything : le 2 1.
Proof. exact I. Qed.
