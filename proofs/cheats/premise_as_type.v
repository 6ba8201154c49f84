(** Refused by words, premises. What is quantified over is no proposition, and has no members. *)
Theorem anything (x : Empty_set) : 1 = 2.
Proof. destruct x. Qed.
