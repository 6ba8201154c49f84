(** Refused by applied. A hypothesis that nothing satisfies, of a lemma: nobody looks for its instances. *)
Section Open.
Hypothesis absurd : False.
Lemma anything : 1 = 2.
Proof. destruct absurd. Qed.
End Open.
