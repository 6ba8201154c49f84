(** Refused by premises. A test of the members of a list that has none stands in a pair. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Definition probes : seq nat := drop 3 (iota 0 3).
Theorem anything : (0, all (fun k => k == k.+1) probes) = (0, true).
Proof. by []. Qed.
