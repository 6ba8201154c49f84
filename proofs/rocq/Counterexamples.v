(** Rules that look right and are not, each with its exact wrong law.

    What it says.  Every theorem below runs a complete program on a two- or three-
    token vocabulary over exact rationals and reads off the law of the first
    emitted token (or the joint law of two).  The law differs from the target's.

    - [dropping_by_value]        discarding a drafted token because of what it is
    - [retrospective_is_lossy]   choosing the length after seeing the block:
                                 (.7,.3) comes out as (.85,.15)
    - [verifying_another_q]      judging against a q that was not the drawing law
    - [resampling_from_p]        p instead of the residual after a rejection
    - [coin_used_twice]          the accept coin reused for the residual draw
    - [shared_noise]             draft and acceptance from one uniform, ratio rule
    - [local_grammar_mask]       masking token by token is not conditioning

    Source: huggingface/transformers PR 47961, sgl-project/sglang PR 7231,
    DeepSpec issue 31 and others; see the catalogue in refengine/bugs. *)

From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Coq Require Import Qcanon.
From Proofs Require Import Prob Single Round Chain Truncation Rational.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Definition two : vocab := @Vocab bool_eqType [:: false; true] ltac:(by case).
Definition three : vocab := @Vocab (option_eqType bool_eqType) [:: None; Some false; Some true] ltac:(by case=> [[]|]).

Definition n_d (n d : nat) : Qc := frac (Z.of_nat n) (Pos.of_nat d).
Notation "n // d" := (n_d n d) (at level 40).

(** Rows by their entries. *)
Definition row2 (a b : Qc) (x : two) : Qc := if x then b else a.
Definition row3 (a b c : Qc) (x : three) : Qc := if x is Some y then (if y then c else b) else a.
Definition tok0 : two := false.
Definition tok1 : two := true.

Definition law2 (m : law [realFieldType of Qc] two) := (m (fun x => (x == tok0)%:R), m (fun x => (x == tok1)%:R)).
Definition law3 (m : law [realFieldType of Qc] three) :=
  (m (fun x => (x == None :> three)%:R), m (fun x => (x == Some false :> three)%:R), m (fun x => (x == Some true :> three)%:R)).

Ltac compute_law := by apply/eqP; vm_compute.

(** Verify x if [keep x], otherwise pretend that nothing was drafted. *)
Definition dropping (p q : two -> Qc) (keep : two -> bool) : law [realFieldType of Qc] two :=
  x <~ pick q;;
  if keep x then v <~ leviathan_step p q x;; ret (emitted x v) else pick p.

Theorem dropping_by_value :
  let p := row2 (1//2) (1//2) in let q := row2 (3//4) (1//4) in
  law2 (dropping p q (fun x => 1//2 <= q x)) = (5//8, 3//8).
Proof. compute_law. Qed.

(** Even a perfect draft does not help. *)
Theorem dropping_by_value_perfect_draft :
  let p := row2 (1//2) (1//2) in law2 (dropping p p (fun x => x == tok0)) = (3//4, 1//4).
Proof. compute_law. Qed.

(** The scheduler of Truncation.v, up to two drafts; the confidence of the second depends
    on the first. *)
Theorem retrospective_is_lossy :
  let p := row2 (7//10) (3//10) in let q := row2 (1//2) (1//2) in
  let confidence h := if h is [:: x] then row2 1 0 x else 1//2 in
  let cost := nth 0 [:: 1; 8//5; 9//5] in
  law2 (o <~ retrospective (fun _ => p) (fun _ => q) confidence cost 2 [::];; ret (head tok0 o)) = (17//20, 3//20).
Proof. compute_law. Qed.

(** Drawn from [q], judged against [q']. *)
Theorem verifying_another_q :
  let p := row2 (1//2) (1//2) in let q := row2 1 0 in let q' := row2 (3//4) (1//4) in
  law2 (x <~ pick q;; v <~ leviathan_step p q' x;; ret (emitted x v)) = (2//3, 1//3).
Proof. compute_law. Qed.

Theorem resampling_from_p :
  let p := row2 (1//2) (1//2) in let q := row2 (3//4) (1//4) in
  law2 (x <~ pick q;; kept <~ coin (accept p q x);; if kept then ret x else pick p) = (5//8, 3//8).
Proof. compute_law. Qed.

(** ** Programs that look at a uniform themselves, on a grid fine enough to be exact *)

Definition four : vocab := @Vocab (prod_eqType bool_eqType bool_eqType)
  [:: (false, false); (false, true); (true, false); (true, true)] ltac:(by case=> [[] []]).
Definition uniform (i : four) : Qc := (if i.1 then 1//2 else 0) + (if i.2 then 1//4 else 0).
Definition any_uniform : law [realFieldType of Qc] four := pick (fun _ => 1//4).

(** First token whose cumulated weight exceeds u. *)
Definition invert3 (w : three -> Qc) (u : Qc) : three :=
  if u < w None then None else if u < w None + w (Some false) then Some false else Some true.
Definition invert2 (w : two -> Qc) (u : Qc) : two := if u < w tok0 then tok0 else tok1.

Theorem coin_used_twice :
  let p := row3 (1//2) (1//4) (1//4) in let q := row3 1 0 0 in
  law3 (u <~ any_uniform;;
        let x := invert3 q 0 in
        if uniform u * q x < p x then ret x else ret (invert3 (residual p q) (uniform u)))
  = (1//2, 0, 1//2).
Proof. compute_law. Qed.

(** With a coin of its own for the residual the same program is right. *)
Theorem coin_used_once :
  let p := row3 (1//2) (1//4) (1//4) in let q := row3 1 0 0 in
  law3 (u <~ any_uniform;; u' <~ any_uniform;;
        let x := invert3 q 0 in
        if uniform u * q x < p x then ret x else ret (invert3 (residual p q) (uniform u')))
  = (1//2, 1//4, 1//4).
Proof. compute_law. Qed.

Theorem shared_noise :
  let p := row2 (1//4) (3//4) in let q := row2 (1//2) (1//2) in
  law2 (u <~ any_uniform;;
        let x := invert2 q (uniform u) in
        if uniform u * q x < p x then ret x else pick (residual p q))
  = (1//2, 1//2).
Proof. compute_law. Qed.

(** The agreement rule survives the same sharing: the target's draw is emitted. *)
Theorem shared_noise_agreement :
  let p := row2 (1//4) (3//4) in let q := row2 (1//2) (1//2) in
  law2 (u <~ any_uniform;;
        let x := invert2 q (uniform u) in let y := invert2 p (uniform u) in
        ret (if x == y then x else y))
  = (1//4, 3//4).
Proof. compute_law. Qed.

(** Two tokens, first uniform; after token 0 only token 0 (probability 1/10) is
    grammatical, after token 1 everything is. *)
Definition after (x : two) : two -> Qc := if x then row2 (1//2) (1//2) else row2 (1//10) (9//10).
Definition allowed (x y : two) : bool := x || ~~ y.
Definition masked (x : two) : two -> Qc := if x then after x else row2 1 0.

Definition first_given_grammar (x : two) : Qc :=
  let joint x := 1//2 * total (fun y => (allowed x y)%:R * after x y) in
  joint x / total joint.

Theorem local_grammar_mask :
  (first_given_grammar tok0, first_given_grammar tok1) = (1//11, 10//11)
  /\ law2 (x <~ pick (row2 (1//2) (1//2));; y <~ pick (masked x);; ret x) = (1//2, 1//2).
Proof. by split; compute_law. Qed.
