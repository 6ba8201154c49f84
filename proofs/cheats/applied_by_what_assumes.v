(** Refused by applied. The instance assumes what the theorem assumes, and nothing applies the instance. *)
Theorem anything : False -> 1 = 2.
Proof. intro absurd; destruct absurd. Qed.
Example used : False -> 1 = 2.
Proof. intro no; exact (anything no). Qed.
