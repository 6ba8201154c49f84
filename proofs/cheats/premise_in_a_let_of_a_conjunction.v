(** Refused by text. Beside a premise that is shown another one stands in a Let, in one half of the conclusion. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Section Numbers.
Variable n : nat.
Let upward := n < 0 -> n = n.+1.
Theorem anything : 0 < n -> n = n /\ upward.
Proof. by []. Qed.
End Numbers.
Example used : 1 = 1.
Proof. exact: proj1 (@anything 1 isT). Qed.
