(** Refused by applied. An instance that names the theorem, and gives it nothing. *)
Theorem anything : 0 = 1 -> 1 = 2.
Proof. intro absurd; discriminate absurd. Qed.
Example used : True.
Proof. pose proof anything. exact I. Qed.
