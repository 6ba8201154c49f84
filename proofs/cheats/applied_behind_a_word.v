(** Refused by premises, applied. What the instance states has a premise, which a word hides. *)
Definition if_never := 0 = 1 -> 1 = 2.
Theorem anything : 0 = 1 -> 1 = 2.
Proof. intro absurd; discriminate absurd. Qed.
Example used : if_never.
Proof. intro no; exact (anything no). Qed.
