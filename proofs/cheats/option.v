(** Refused by text. An option that changes the theory. *)
Set Universe Polymorphism.
Theorem anything : 1 = 1.
Proof. reflexivity. Qed.
