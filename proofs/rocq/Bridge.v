(** Running the definitions: the laws that a program outside Coq is compared with.

    What it says.  Nothing new; it evaluates the very definitions that the theorems
    are about, on rows given as tables of rationals, and prints numerators and
    denominators.  proofs/bridge.py writes the tables and reads the answers.

    Source: ours. *)

From Coq Require Import ZArith QArith Qcanon.
From mathcomp Require Import all_ssreflect all_algebra.
From Proofs Require Import Prob Single Round Chain Leviathan Agreement Tree Siblings
  IidCandidates WithoutReplacement PointMass Block Rational.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory.

Notation field := [realFieldType of Qc].

(** Token ids 0, 1, ..., n-1. *)
Definition vocab2 : vocab := @Vocab [eqType of 'I_2]
  [:: @Ordinal 2 0 isT; @Ordinal 2 1 isT] ltac:(by case=> [[|[|?]] ?]).
Definition vocab3 : vocab := @Vocab [eqType of 'I_3]
  [:: @Ordinal 3 0 isT; @Ordinal 3 1 isT; @Ordinal 3 2 isT] ltac:(by case=> [[|[|[|?]]] ?]).

Section Tables.
Variables (V : vocab) (id : V -> nat).

(** Rows by history; a history that the table lacks gets the zero row. *)
Definition table := seq (seq nat * seq Qc).
Definition row_of (t : table) (h : seq V) (x : V) : Qc :=
  let key := [seq id y | y <- h] in
  nth (frac 0 1) (foldr (fun e r => if e.1 == key then e.2 else r) [::] t) (id x).

Definition length_of (widths : seq nat) (h : seq V) : nat := nth 0%N widths (size h).
Definition listed (histories : seq (seq nat)) (h : seq V) : bool := [seq id y | y <- h] \in histories.

(** All words of at most n tokens. *)
Fixpoint words_upto n : seq (seq V) :=
  if n is n'.+1 then [::] :: [seq x :: s | x <- tokens V, s <- words_upto n'] else [:: [::]].

(** The law, word by word: token ids, numerator, denominator; impossible words left out. *)
Definition show (n : nat) (m : law field (seq V)) : seq (seq nat * (Z * positive)) :=
  [seq e <- [seq let P := m (fun o => if o == w then frac 1 1 else frac 0 1) in
                 ([seq id y | y <- w], (Qnum P, Qden P)) | w <- words_upto n] | ~~ Z.eqb e.2.1 0].

Definition run_leviathan (p q : table) halts g := show g.+1 (leviathan (row_of p) (row_of q) (listed halts) g [::]).
Definition run_agreement (p q : table) halts g := show g.+1 (agreement (row_of p) (row_of q) (listed halts) g [::]).
Definition run_block (p q : table) halts g := show g.+1 (block (row_of p) (row_of q) (listed halts) g [::]).
Definition run_iid (p q : table) widths :=
  show (size widths).+1 (iid_candidates (row_of p) (row_of q) (length_of widths) (size widths) [::]).
Definition run_without_replacement (p q : table) widths :=
  show (size widths).+1 (without_replacement (row_of p) (row_of q) (length_of widths) (size widths) [::]).
Definition run_point_mass (p : table) depth t := show depth.+1 (point_mass (row_of p) [::] t).
Definition run_agreement_tree (p : table) depth t := show depth.+1 (agreement_walk (row_of p) [::] t).

End Tables.
