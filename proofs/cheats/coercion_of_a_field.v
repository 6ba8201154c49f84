(** Refused by text, premises. A field of a record makes a statement of what is none, as a coercion does. *)
Structure claim := Claim { words : nat; holds :> Prop }.
Definition one_is_two : claim := Claim 12 True.
Theorem anything : one_is_two.
Proof. exact I. Qed.
