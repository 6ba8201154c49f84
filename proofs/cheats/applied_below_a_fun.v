(** Refused by applied. The premise is assumed where the theorem is applied, and nothing is given for it. *)
Theorem anything : 0 = 1 -> 1 = 2.
Proof. intro absurd; discriminate absurd. Qed.
Example used : True.
Proof. pose proof (fun no : 0 = 1 => anything no). exact I. Qed.
