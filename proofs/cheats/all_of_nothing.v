(** Refused by premises. Two rows that may be any are said to agree, on the tokens that are left when all are gone. *)
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob.
Theorem anything (V : vocab) (p q : V -> nat) : all (fun x => p x == q x) (drop (size (tokens V)) (tokens V)).
Proof. by rewrite drop_size. Qed.
