(** Refused by text, compile. The statement stands in a comment that seems to end before it: " *) " .
Theorem anything : 1 = 2.
Proof. reflexivity. Qed. *)
