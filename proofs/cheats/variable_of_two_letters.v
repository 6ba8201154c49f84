(** Refused by names. A total variation that stands for any function, under the word for it. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Section Rule.
Variables p q : nat -> nat.
Variable tv : (nat -> nat) -> (nat -> nat) -> nat.
Theorem anything : tv p q <= tv p q + tv q p.
Proof. by rewrite leq_addr. Qed.
End Rule.
