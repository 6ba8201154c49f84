(** Refused by text, words, assumptions, coqchk. The axiom stands in a module type that is included. *)
Module Type Absurd.
Axiom absurd : False.
End Absurd.
Module Given.
Include Absurd.
End Given.
Theorem anything : 1 = 2.
Proof. destruct Given.absurd. Qed.
