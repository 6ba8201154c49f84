(** Refused by applied. An instance that gives the theorem the first of its two premises. *)
Theorem anything : 1 = 1 -> 0 = 1 -> 1 = 2.
Proof. intros _ absurd; discriminate absurd. Qed.
Example used : True.
Proof. pose proof (anything eq_refl). exact I. Qed.
