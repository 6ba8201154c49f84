(** Refused by text, words, names, assumptions, coqchk. A variable is one, too. *)
Variable absurd : False.
Theorem anything : 1 = 2.
Proof. destruct absurd. Qed.
