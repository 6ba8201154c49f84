(** Refused by text, premises, applied. The arrow is one of a type; the premise stands in a Let. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Section Numbers.
Variable n : nat.
Let upward := n < 0 -> n = n.+1.
Theorem anything : forall f : nat -> nat, upward.
Proof. by []. Qed.
End Numbers.
