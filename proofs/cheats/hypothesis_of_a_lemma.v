(** Refused by applied. A hypothesis that nothing satisfies, of a lemma: nobody looks for its instances. *)
Section Open.
Hypothesis absurd : 0 = 1.
Lemma anything : 1 = 2.
Proof. discriminate absurd. Qed.
End Open.
