(** Refused by text, compile. The assumption is the argument of a module, and the statement is inside. *)
Module Type Absurd.
Axiom absurd : False.
End Absurd.
Module Inside (A : Absurd).
Theorem anything : 1 = 2.
Proof. destruct A.absurd. Qed.
End Inside.
