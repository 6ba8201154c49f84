(** Refused by text, words, names. In the section the statement reads as if it were about losslessness. *)
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Round.
Section Open.
Variable lossless : nat -> bool.
Theorem anything : lossless 0 = lossless 0.
Proof. by []. Qed.
End Open.
