(** Refused by text, words, assumptions, coqchk. The same, said of one definition only. *)
#[bypass_check(guard)] Fixpoint loop (n : nat) : False := loop n.
Theorem anything : 1 = 2.
Proof. destruct (loop 0). Qed.
