(** Refused by text, words. The order of numbers, turned round by a shorter word for a notation. *)
Infix "<=" := ge.
Theorem anything : 2 <= 1.
Proof. repeat constructor. Qed.
