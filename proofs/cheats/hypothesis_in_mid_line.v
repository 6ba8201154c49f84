(** Refused by text, applied. A hypothesis that stands behind something else, where readers of lines do not look for it. *)
Section Open.
Variable n : nat. Hypothesis absurd : 0 = 1.
Theorem anything : 1 = 2.
Proof. discriminate absurd. Qed.
End Open.
