(** Refused by words, premises, applied. The premise has the name of a hypothesis of another section. *)
Section One.
Variable n : nat.
Hypothesis small : n = 0.
Lemma is_small : n = 0.
Proof. exact small. Qed.
End One.
Theorem anything (small : 0 = 1) : 1 = 2.
Proof. discriminate small. Qed.
