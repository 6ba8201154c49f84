(** Refused by text, applied. A premise between two signs that have a terminal show nothing in between. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Theorem anything (n : nat) : (* [8m *) n = 0 -> (* [0m *)
  n = 0.
Proof. by []. Qed.
