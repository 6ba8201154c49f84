(** Refused by text, words, assumptions, coqchk. The same, said of one definition only. *)
Definition types : Type := Type.
#[bypass_check(universes)] Definition member : types := types.
Theorem anything : member = types :> Type.
Proof. reflexivity. Qed.
