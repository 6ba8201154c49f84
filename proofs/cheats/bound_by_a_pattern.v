(** Refused by words. A pattern binds the name of ours. *)
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob.
Theorem anything : match True with dist => dist end.
Proof. by []. Qed.
