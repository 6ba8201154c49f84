(** Refused by recursion. A call in an argument that Coq does not print. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Definition kept_of {held : nat} (u : unit) : nat := held.
Fixpoint raised_by (n c : nat) (f : nat -> nat) : nat :=
  if n is m.+1 then raised_by m c.+1 (fun k => @kept_of (raised_by k 0 f) tt) else (f c).+1.
Lemma at_none c f : raised_by 0 c f = (f c).+1.
Proof. by []. Qed.
Lemma at_more m c f : raised_by m.+1 c f = raised_by m c.+1 (fun k => raised_by k 0 f).
Proof. by []. Qed.
Theorem anything : 0 = 1.
Proof.
have := at_more 0 0 (fun x => x); rewrite at_none; elim: (raised_by 1 0 _) => [|n IH] //.
by case.
Qed.
