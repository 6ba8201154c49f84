(** Refused by text, words. Equality reads as before and says nothing. *)
Notation "x = y" := (x <> y) : type_scope.
Theorem anything : 1 = 2.
Proof. discriminate. Qed.
