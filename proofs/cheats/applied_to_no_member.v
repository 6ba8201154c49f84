(** Refused by words, premises. The instance is about all members of a type that has none. *)
Theorem anything : 0 = 1 -> 1 = 2.
Proof. intro absurd; discriminate absurd. Qed.
Example used (x : Empty_set) : 1 = 2.
Proof. exact (anything (match x with end)). Qed.
