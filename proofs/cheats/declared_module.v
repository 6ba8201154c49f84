(** Refused by text, words, assumptions, coqchk. A module that is only declared. *)
Module Type Absurd.
Axiom absurd : False.
End Absurd.
Declare Module Given : Absurd.
Theorem anything : 1 = 2.
Proof. destruct Given.absurd. Qed.
