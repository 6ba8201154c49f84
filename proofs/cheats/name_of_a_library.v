(** Refused by names. The order of numbers, under its own name. *)
Definition le (m n : nat) := 1 = 1.
Theorem anything : le 2 1.
Proof. reflexivity. Qed.
