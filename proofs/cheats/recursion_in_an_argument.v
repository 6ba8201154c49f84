(** Refused by recursion. What Coq's guard forgets: the function calls itself in an argument of its own call. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Fixpoint raised_by (n c : nat) (f : nat -> nat) : nat :=
  if n is m.+1 then raised_by m c.+1 (fun k => raised_by k 0 f) else (f c).+1.
Lemma at_none c f : raised_by 0 c f = (f c).+1.
Proof. by []. Qed.
Lemma at_more m c f : raised_by m.+1 c f = raised_by m c.+1 (fun k => raised_by k 0 f).
Proof. by []. Qed.
Theorem anything : 0 = 1.
Proof.
have := at_more 0 0 (fun x => x); rewrite at_none; elim: (raised_by 1 0 _) => [|n IH] //.
by case.
Qed.
