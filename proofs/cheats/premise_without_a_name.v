(** Refused by words, premises, applied. The premise is quantified over and has no name. *)
Theorem anything : forall _ : False, 1 = 2.
Proof. intros []. Qed.
