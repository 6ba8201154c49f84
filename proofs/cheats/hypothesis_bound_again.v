(** Refused by words, applied. A premise is bound by the name of a hypothesis, which nobody uses. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Section Numbers.
Variables n k : nat.
Hypothesis m : 0 < k.
Implicit Type m : n < 0.
Theorem anything : forall m, n + k = n.+1.
Proof. by []. Qed.
End Numbers.
