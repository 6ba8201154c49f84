(** Refused by text. An eye ends a comment where it sees the first end, and reads the theorem below it. *)
(* One comment (* and another one in it. *)
Theorem anything : 1 = 2.
Proof. reflexivity. Qed.
*)
Theorem anything : 1 = 1.
Proof. reflexivity. Qed.
