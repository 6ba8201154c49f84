(** Refused by text, premises, applied. A type made of its own members, which nobody has looked at. *)
Inductive endless := Next (before : endless).
Theorem anything (x : endless) : 1 = 2.
Proof. induction x as [y no]; exact no. Qed.
