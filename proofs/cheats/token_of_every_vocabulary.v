(** Refused by premises. A function that would have a token of every vocabulary, the empty one among them. *)
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob.
Theorem anything (first_of : forall V : vocab, V) : 1%N = 2%N.
Proof.
have nothing : Finite.axiom (Nil void) by case.
by case: (first_of (Vocab nothing)).
Qed.
