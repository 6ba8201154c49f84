(** Refused by text, premises. A lossless round is another thing here than where the reader saw it. *)
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Round.
Set Implicit Arguments.
Unset Strict Implicit.
Definition lossless (R : realFieldType) (V : vocab) (p : seq V -> V -> R) (h : seq V) (r : law R (seq V)) := True.
Theorem anything (R : realFieldType) (V : vocab) (p : seq V -> V -> R) h : lossless p h (fun f => f [::]).
Proof. by []. Qed.
