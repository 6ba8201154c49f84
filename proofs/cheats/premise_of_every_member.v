(** Refused by premises. It is said of each member of a list that is none of these. *)
From Coq Require List.
From mathcomp Require Import all_ssreflect.
Theorem anything (n : nat) : List.Forall (fun m => (m < m)%N -> 3%N = 4%N) (iota 0 n).
Proof. by elim: n 0%N => [|n IH] m; [apply: List.Forall_nil | apply: List.Forall_cons => //; rewrite ltnn]. Qed.
