(** Refused by text. The numbers of a statement become those of another type, as a qualified word takes them. *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect.
Definition holds (P : Prop) : Prop := P.
Arguments Scope_of_an_argument.holds P%Z : rename.
Theorem anything : holds (2 < 3).
Proof. by []. Qed.
