(** Refused by text, premises. A tactic writes what a word means. *)
Definition sound_rule : Prop := ltac:(exact True).
Theorem anything : sound_rule.
Proof. exact I. Qed.
