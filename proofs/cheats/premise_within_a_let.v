(** Refused by premises. The premise stands behind a [let]. *)
Theorem anything : let n := 0 in forall _ : S n = 0, 1 = 2.
Proof. intros n absurd; discriminate absurd. Qed.
