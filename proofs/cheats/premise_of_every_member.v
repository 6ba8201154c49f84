(** Refused by premises. It is said of each member of a list that is none of these. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Theorem anything (n s : nat) : List.Forall (fun m => (m < m)%N -> 3%N = 4%N) (iota s n).
Proof. by elim: n s => [|n IH] s; constructor; rewrite ?ltnn. Qed.
