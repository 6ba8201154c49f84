(** Refused by text, premises. A Let that is in no section is a Definition, and no list of words holds it. *)
Let lossless_word := True.
Theorem anything : lossless_word.
Proof. exact I. Qed.
