(** Refused by premises. A structure reads as if two rows had one law, and its field assumes what holds of no token. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Record one_law (p q : nat -> nat) : Prop := OneLaw { one_law_at : forall x, x < 0 -> p x = q x }.
Theorem anything p q : one_law p q.
Proof. by split. Qed.
