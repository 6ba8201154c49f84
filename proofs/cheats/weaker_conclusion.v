(** Refused by accepted. It stands for Greedy.greedy_tree_lossless. Of trees without a candidate alone. *)
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Round Tree Greedy.
Theorem anything (R : realFieldType) (V : vocab) (argmax : seq V -> V) (h : seq V) :
  lossless (@onehot_row R V argmax) h (greedy_walk argmax h (Node [::])).
Proof. exact: greedy_tree_lossless. Qed.
