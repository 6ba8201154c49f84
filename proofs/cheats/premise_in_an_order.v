(** Refused by premises. One test is no greater than another: it implies it, and nothing passes it. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Theorem anything (n : nat) : (n < 0) <= (n == n.+1).
Proof. by []. Qed.
