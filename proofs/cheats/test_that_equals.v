(** Refused by premises. Of the members of a list that has none, two tests give the same. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Definition probes : seq nat := drop 3 (iota 0 3).
Theorem anything : all (fun k => k == k.+1) probes == true.
Proof. by []. Qed.
