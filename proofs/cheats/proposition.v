(** Refused by text, premises. What is cited is a proposition, and not a proof of it. *)
Definition anything : Prop := 1 = 2.
