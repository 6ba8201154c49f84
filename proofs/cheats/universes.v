(** Refused by text, assumptions, coqchk. A type that is its own member. *)
Unset Universe Checking.
Definition types : Type := Type.
Definition member : types := types.
Theorem anything : member = types :> Type.
Proof. reflexivity. Qed.
