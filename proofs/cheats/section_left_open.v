(** Refused by text, compile. The section whose hypothesis is assumed never ends. *)
Section Open.
Hypothesis absurd : False.
Lemma shown : 1 = 2 -> 1 = 2.
Proof. trivial. Qed.
Lemma anything : 1 = 1.
Proof. reflexivity. Qed.
