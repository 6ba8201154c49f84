(** Refused by text, words, assumptions, coqchk, recursion. What stands between two strings looks like a comment. *)
Ltac opened := idtac "(*".
Unset Guard Checking.
Fixpoint loop (n : nat) : False := loop n.
Ltac closed := idtac "*)".
Theorem anything : 1 = 2.
Proof. destruct (loop 0). Qed.
