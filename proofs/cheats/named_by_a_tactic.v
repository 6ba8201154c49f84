(** Refused by text. A word that a tactic has given, by what nobody was shown. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Section Hidden.
Let nothing : 0 = 0.
Proof.
have f : nat -> nat.
  transparent_abstract (exact (fun n : nat => n)) using half.
by [].
Qed.
Theorem anything (n : nat) : half n = n.
Proof. by []. Qed.
End Hidden.
