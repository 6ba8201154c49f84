(** Refused by premises. Each branch assumes what is false. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Theorem anything (b : bool) : if b then 1%N = 2%N -> 3%N = 4%N else 1%N = 2%N -> 3%N = 4%N.
Proof. by case: b. Qed.
