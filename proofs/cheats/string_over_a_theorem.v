(** Refused by text. A quote in a comment begins a string, which ends at the next quote; the theorem stands in between. *)
(* The sign " is a quote. *)
Theorem anything : 1 = 2.
Proof. reflexivity. Qed.
(* The sign " is a quote. *)
Theorem anything : 1 = 1.
Proof. reflexivity. Qed.
