(** Refused by text, words, assumptions, coqchk. Outside a section a hypothesis is an axiom, and has a plural. *)
Hypotheses (one : 0 = 0) (absurd : False).
Theorem anything : 1 = 2.
Proof. destruct absurd. Qed.
