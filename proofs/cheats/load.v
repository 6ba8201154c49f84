(** Refused by text, compile. A text that the gate has not read. *)
Load "hidden".
Theorem anything : 1 = 1.
Proof. reflexivity. Qed.
