(** Refused by text, words. Two statements that are proved by one another. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Section Hidden.
Let besides := 0.
End Hidden.
Lemma ascends (n : nat) : forall (b : bool), (b = true -> forall k, k = 0 \/ 0 = 1) -> n = 0 /\ b = false \/ 0 = 1
with besides (n : nat) : n = n.
Proof.
clear besides; case: n => [|m] b f.
  by case: b f => f; [right; case: (f erefl 1) | left].
have no : false = true -> forall j, j = 0 \/ 0 = 1 by [].
have less k : (k = 0 /\ false = false \/ 0 = 1) -> k = 0 \/ 0 = 1 by case=> [[]|]; [left|right].
by case: (ascends m true (fun _ k => less k (ascends k false no))) => [[_ bad]|]; [|right].
exact: erefl.
Qed.
Theorem anything : 0 = 1.
Proof. by case: (ascends 1 false) => // -[]. Qed.
