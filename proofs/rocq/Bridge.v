(** Running the definitions: the laws that a program outside Coq is compared with.

    What it says.  Nothing new; it evaluates the very definitions that the theorems
    are about, on rows given as tables of rationals, and prints numerators and
    denominators.  proofs/bridge.py writes the tables and reads the answers.

    Source: ours. *)

From Coq Require Import ZArith QArith Qcanon.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Chain Leviathan Agreement Greedy Tree Siblings
  IidCandidates WithoutReplacement PointMass Block Truncation Typical Medusa Rational.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Notation field := [realFieldType of Qc].

(** Token ids 0, 1, ..., n-1. *)
Definition vocab2 : vocab := @Vocab [eqType of 'I_2]
  [:: @Ordinal 2 0 isT; @Ordinal 2 1 isT] ltac:(by case=> [[|[|?]] ?]).
Definition vocab3 : vocab := @Vocab [eqType of 'I_3]
  [:: @Ordinal 3 0 isT; @Ordinal 3 1 isT; @Ordinal 3 2 isT] ltac:(by case=> [[|[|[|?]]] ?]).

Definition vocab4 : vocab := @Vocab [eqType of 'I_4]
  [:: @Ordinal 4 0 isT; @Ordinal 4 1 isT; @Ordinal 4 2 isT; @Ordinal 4 3 isT]
  ltac:(by case=> [[|[|[|[|?]]]] ?]).

Section Tables.
Variables (V : vocab) (id : V -> nat).

(** Rows by history; a history that the table lacks gets the zero row. *)
Definition table := seq (seq nat * seq Qc).
Definition row_of (t : table) (h : seq V) (x : V) : Qc :=
  let key := [seq id y | y <- h] in
  nth (frac 0 1) (foldr (fun e r => if e.1 == key then e.2 else r) [::] t) (id x).

(** Numbers by history: confidences and thresholds. *)
Definition numbers := seq (seq nat * Qc).
Definition number_of (t : numbers) (h : seq V) : Qc :=
  let key := [seq id y | y <- h] in foldr (fun e r => if e.1 == key then e.2 else r) (frac 0 1) t.

Definition length_of (widths : seq nat) (h : seq V) : nat := nth 0%N widths (size h).
Definition listed (histories : seq (seq nat)) (h : seq V) : bool := [seq id y | y <- h] \in histories.
Definition argmax_of (d : V) (p : table) (h : seq V) : V := first_max d (row_of p h).

(** All words of at most n tokens. *)
Fixpoint words_upto n : seq (seq V) :=
  if n is n'.+1 then [::] :: [seq x :: s | x <- tokens V, s <- words_upto n'] else [:: [::]].

(** The law, word by word: token ids, numerator, denominator; impossible words left out. *)
Definition show (n : nat) (m : law field (seq V)) : seq (seq nat * (Z * positive)) :=
  [seq e <- [seq let P := m (fun o => if o == w then frac 1 1 else frac 0 1) in
                 ([seq id y | y <- w], (Qnum P, Qden P)) | w <- words_upto n] | ~~ Z.eqb e.2.1 0].

Definition run_leviathan (p q : table) g := show g.+1 (leviathan (row_of p) (row_of q) xpred0 g [::]).
Definition run_agreement (p q : table) g := show g.+1 (agreement (row_of p) (row_of q) xpred0 g [::]).
Definition run_block (p q : table) g := show g.+1 (block (row_of p) (row_of q) xpred0 g [::]).

(** Truncated drafts, as in Truncation.v. *)
Definition unsure (t : numbers) (threshold : Qc) h : bool := number_of t h < threshold.
Definition run_causal_leviathan (p q : table) t threshold g :=
  show g.+1 (leviathan (row_of p) (row_of q) (unsure t threshold) g [::]).
Definition run_causal_block (p q : table) t threshold g :=
  show g.+1 (block (row_of p) (row_of q) (unsure t threshold) g [::]).
Definition run_stopping_leviathan (p q : table) last g :=
  show g.+1 (leviathan (row_of p) (row_of q) (after_keeping 0 (listed last)) g [::]).
Definition run_stopping_block (p q : table) last g :=
  show g.+1 (block (row_of p) (row_of q) (after_keeping 0 (listed last)) g [::]).
Definition run_retrospective (p q : table) t (cost : seq Qc) g :=
  show g.+1 (retrospective (row_of p) (row_of q) (number_of t) (nth (frac 0 1) cost) g [::]).

(** Several candidates. *)
Definition run_iid (p q : table) widths :=
  show (size widths).+1 (iid_candidates (row_of p) (row_of q) (length_of widths) (size widths) [::]).
Definition run_without_replacement (p q : table) widths :=
  show (size widths).+1 (without_replacement (row_of p) (row_of q) (length_of widths) (size widths) [::]).
Definition run_point_mass (p : table) depth t := show depth.+1 (point_mass (row_of p) [::] t).
Definition run_agreement_tree (p : table) depth t := show depth.+1 (agreement_walk (row_of p) [::] t).
Definition run_greedy d (p : table) depth t := show depth.+1 (greedy_walk (argmax_of d p) [::] t).
Definition run_greedy_chain d (p : table) (xs : seq V) := show (size xs).+1 (ret (greedy (argmax_of d p) [::] xs)).

(** Medusa's modes, on blocks. *)
Definition run_typical d (p : table) theta depth b :=
  show depth.+1 (ret (typical (row_of p) (over (row_of p) (number_of theta)) (argmax_of d p) [::] b)).
Definition run_typical_inclusive d (p : table) theta depth b :=
  show depth.+1 (ret (typical (row_of p) (at_least (row_of p) (number_of theta)) (argmax_of d p) [::] b)).
Definition run_nucleus d (p : table) top fast depth b :=
  show depth.+1 (nucleus (filtered top (row_of p)) fast (fun h => first_max d (filtered top (row_of p) h)) [::] b).

End Tables.
