(** Refused by text, applied. A premise behind more blanks than a screen is wide. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Theorem anything (n : nat) :                                                                                                                                                           n = 0 ->
  n = 0.
Proof. by []. Qed.
