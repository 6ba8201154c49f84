(** Refused by premises. A premise is in what a test reflects. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Definition sound_at (n : nat) : Prop := n = n.+1 -> 0 = 1.
Theorem anything : reflect (sound_at 0) true.
Proof. by constructor. Qed.
