(** Refused by words, premises, applied. The premise is an argument of the theorem. *)
Theorem anything {absurd : False} : 1 = 2.
Proof. destruct absurd. Qed.
