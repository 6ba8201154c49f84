(** Refused by text, accepted, premises. It stands for Single.accept. A word that theorems are about, with another meaning. *)
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single.
Local Open Scope ring_scope.
Definition anything (R : realFieldType) (V : vocab) (p q : V -> R) (x : V) : R :=
  if p x < q x then p x / q x else 1.
