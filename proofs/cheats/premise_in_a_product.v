(** Refused by premises. A premise is in a product of two propositions. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Definition sound_at (n : nat) : Prop := n = n.+1 -> 0 = 1.
Theorem anything : (sound_at 0 * sound_at 1)%type.
Proof. by split. Qed.
