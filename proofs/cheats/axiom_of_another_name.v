(** Refused by text, words, assumptions, coqchk. The word axiom does not occur. *)
Conjecture absurd : False.
Theorem anything : 1 = 2.
Proof. destruct absurd. Qed.
