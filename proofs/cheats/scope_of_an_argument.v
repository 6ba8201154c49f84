(** Refused by text. A numeral is read in another scope than the reader's. *)
From Coq Require Import ZArith.
Definition same (m n : Z) : Prop := m = Z.opp n.
Definition opposite_of (n : positive) : Z := Zneg n.
Arguments same _%positive _%Z.
Theorem anything : same 0 0.
Proof. reflexivity. Qed.
