(** Refused by text, words, assumptions, coqchk. A type of functions from itself to False. *)
Unset Positivity Checking.
Inductive bad := Bad : (bad -> False) -> bad.
Set Positivity Checking.
Theorem anything : False.
Proof. assert (no : bad -> False) by (intros b; inversion b as [f]; exact (f b)). exact (no (Bad no)). Qed.
