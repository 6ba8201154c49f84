(** Refused by text, words, premises. A letter that looks like another one: the first of lossless is not the one on the keyboard. *)
Definition ӏossless := True.
Theorem anything : ӏossless.
Proof. exact I. Qed.
