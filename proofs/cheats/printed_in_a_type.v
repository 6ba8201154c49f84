(** Refused by text, words, assumptions, coqchk. The axiom's type is shown as the answer that is looked for. *)
Notation "'Closed' 'under' 'the' 'global' 'context'" := False.
Parameter absurd : False.
Theorem anything : 1 = 2.
Proof. destruct absurd. Qed.
