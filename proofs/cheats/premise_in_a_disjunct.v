(** Refused by premises. Either side assumes what is false. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Theorem anything : (1%N = 2%N -> 3%N = 4%N) \/ (1%N = 2%N -> 3%N = 4%N).
Proof. by left. Qed.
