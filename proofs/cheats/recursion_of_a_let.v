(** Refused by text, words. A Let that is a function which calls itself. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Section Hidden.
Let ascends := 0.
End Hidden.
Section Anything.
Let due (n : nat) (b : bool) : Prop := if n is 0 then if b then 0 = 1 else True else 0 = 1.
Let used n : due n true -> 0 = 1.
Proof. by case: n. Qed.
Let idle : True.
Proof. by []. Qed.
Let lowest b (f : if b then forall k, due k false else True) : due 0 b.
Proof. by case: b f => // f; exact: (f 1). Qed.
Let Fixpoint ascends (n : nat) (b : bool) (f : if b then forall k, due k false else True) {struct n} : due n b :=
  match n return due n b with
  | 0 => lowest b f
  | S m => used m (ascends m true (fun k => ascends k false idle))
  end.
Theorem anything : 0 = 1.
Proof. exact: (ascends 1 false I). Qed.
End Anything.
