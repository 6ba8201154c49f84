(** Refused by premises, words. An implication of truth values, before which no premise is shown. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Theorem anything : (1 == 2) ==> (2 == 3).
Proof. by []. Qed.
