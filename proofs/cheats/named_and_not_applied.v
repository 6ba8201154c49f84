(** Refused by applied. An instance that names the theorem, and gives it nothing. *)
Theorem anything : False -> 1 = 2.
Proof. intro absurd; destruct absurd. Qed.
Example used : True.
Proof. pose proof anything. exact I. Qed.
