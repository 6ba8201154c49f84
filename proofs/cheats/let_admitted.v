(** Refused by text, words, assumptions, coqchk. A local fact that disappears with its section. *)
Section Local.
Let impossible : False.
Proof. Admitted.
Theorem anything : 1 = 2.
Proof. destruct impossible. Qed.
End Local.
