(** Refused by premises. One side of the conclusion assumes what cannot be. *)
Theorem anything : 1 = 1 /\ (forall n, S n = 0 -> 1 = 2).
Proof. split; [reflexivity|intros n absurd; discriminate absurd]. Qed.
