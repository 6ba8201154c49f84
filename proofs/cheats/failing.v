(** Refused by text, compile. The statement is refused, and the refusal is what was wanted. *)
Fail Lemma anything : 1 = two.
