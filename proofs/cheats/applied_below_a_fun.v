(** Refused by applied. The premise is assumed where the theorem is applied, and nothing is given for it. *)
Theorem anything : False -> 1 = 2.
Proof. intro absurd; destruct absurd. Qed.
Example used : True.
Proof. pose proof (fun no : False => anything no). exact I. Qed.
