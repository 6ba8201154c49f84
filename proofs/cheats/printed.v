(** Refused by text, words, assumptions, coqchk. It prints the answer that is looked for. *)
Parameter absurd : False.
Theorem anything : 1 = 2.
Proof. idtac "Closed under the global context". destruct absurd. Qed.
Goal True. idtac "@@ Cheat anything". idtac "Closed under the global context". Abort.
