(** Refused by premises. The instance is about all members of a type that has none. *)
Theorem anything : False -> 1 = 2.
Proof. intro absurd; destruct absurd. Qed.
Example used (x : Empty_set) : 1 = 2.
Proof. exact (anything (match x with end)). Qed.
