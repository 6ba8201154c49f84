(** Refused by premises. What is lossless is any function, which is called a Hypothesis instead of a Variable. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Section Rule.
Variables p q : nat -> nat.
Hypothesis lossless_so : (nat -> nat) -> (nat -> nat) -> nat.
Theorem anything : lossless_so p q = lossless_so p q + 0.
Proof. by rewrite addn0. Qed.
End Rule.
