(** Refused by text. A number is read as a proposition that holds. *)
Definition always (n : nat) : Prop := n = n.
Coercion always : nat >-> Sortclass.
Theorem anything : 0.
Proof. reflexivity. Qed.
