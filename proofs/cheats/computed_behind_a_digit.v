(** Refused by text, premises. A term that a tactic writes, behind a digit. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Definition second (n : nat) (P : Prop) : Prop := P.
Theorem anything : second 0ltac:(exact True).
Proof. exact I. Qed.
