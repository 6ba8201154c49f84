(** Refused by text, compile. A rule of computation that the kernel is told. *)
Symbol one : nat.
Rewrite Rule twice := one => 2.
Theorem anything : one = 2.
Proof. reflexivity. Qed.
