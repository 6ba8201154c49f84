(** Refused by text, premises. An instance decides what a symbol stands for: here `==` on a copy of the numbers. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Definition turned : Type := bool.
Lemma turned_eqP : Equality.axiom (fun a b : turned => ~~ (a (+) b)).
Proof. by case; case; constructor. Qed.
Canonical turned_eqType := EqType turned (EqMixin turned_eqP).
Theorem anything : (true : turned) == true.
Proof. by []. Qed.
