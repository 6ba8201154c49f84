(** Refused by applied. What the instance states has a premise, which a word hides. *)
Definition if_never := False -> 1 = 2.
Theorem anything : False -> 1 = 2.
Proof. intro absurd; destruct absurd. Qed.
Example used : if_never.
Proof. intro no; exact (anything no). Qed.
