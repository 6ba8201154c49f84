(** Refused by text, applied. A notation binds the premise, and the hypothesis by its name comes later. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Notation upward n := (forall below : n < 0, n = n.+1).
Section Numbers.
Variables n k : nat.
Hypothesis below : 0 < k.
Theorem anything : upward n.
Proof. by []. Qed.
End Numbers.
