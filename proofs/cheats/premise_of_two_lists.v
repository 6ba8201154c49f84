(** Refused by premises. A premise is in what is said of the members of two lists. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
From Coq Require Import Reals Lra List.
Definition sound_at (n m : nat) : Prop := n = n.+1 -> n = m.
Theorem anything : Forall2 sound_at [:: 0] [:: 1].
Proof. constructor; [by [] | by constructor]. Qed.
