(** Refused by words, premises, applied. The same, hidden in a type of our own that a function returns. *)
Record wish := Wish { granted : False }.
Section Open.
Variable wishes : nat -> wish.
Theorem anything : 1 = 2.
Proof. destruct (wishes 0) as [absurd]. destruct absurd. Qed.
End Open.
