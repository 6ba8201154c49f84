(** Refused by accepted. It stands for Greedy.greedy_tree_lossless. A premise more, which the instance happens to meet. *)
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Round Tree Greedy.
Theorem anything (R : realFieldType) (V : vocab) (argmax : seq V -> V) (h : seq V) (t : tree V) :
  (forall s, argmax s = argmax h) -> lossless (@onehot_row R V argmax) h (greedy_walk argmax h t).
Proof. by move=> _; apply: greedy_tree_lossless. Qed.
Example used (R : realFieldType) (V : vocab) (x : V) (t : tree V) :
  lossless (@onehot_row R V (fun _ => x)) [::] (greedy_walk (fun _ => x) [::] t).
Proof. exact: (anything R V (fun _ => x) [::] t (fun _ => erefl x)). Qed.
