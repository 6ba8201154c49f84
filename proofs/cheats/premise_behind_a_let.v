(** Refused by words, premises, applied. What is given a name first hides the premise. *)
Theorem anything : let one := 1 in forall absurd : False, one = 2.
Proof. intros one absurd; destruct absurd. Qed.
