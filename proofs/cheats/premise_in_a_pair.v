(** Refused by premises. A premise is in what is said of a number that is given with it. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Definition sound_at (n : nat) : Prop := n = n.+1 -> 0 = 1.
Theorem anything : {n : nat | sound_at n}.
Proof. by exists 0. Qed.
