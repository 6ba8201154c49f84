(** Refused by text. The next file may come from anywhere. *)
Add LoadPath "/tmp" as Proofs.
Theorem anything : 1 = 1.
Proof. reflexivity. Qed.
