(** Refused by text. The kernel compiles foreign code and believes what it returns. *)
Theorem anything : 2 + 2 = 4.
Proof. native_compute. reflexivity. Qed.
