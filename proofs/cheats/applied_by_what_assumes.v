(** Refused by applied. The instance assumes what the theorem assumes, and nothing applies the instance. *)
Theorem anything : 0 = 1 -> 1 = 2.
Proof. intro absurd; discriminate absurd. Qed.
Example used : 0 = 1 -> 1 = 2.
Proof. intro no; exact (anything no). Qed.
