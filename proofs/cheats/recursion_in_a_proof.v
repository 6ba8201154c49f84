(** Refused by text. The same in a proof, by a function without a name. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Theorem anything : 0 = 1.
Proof.
pose owed (n : nat) (b : bool) : Prop := match n with 0 => if b then False else True | S _ => False end.
have used n : owed n true -> False by case: n.
have no : False.
  exact ((fix ascend (n : nat) (b : bool) (f : if b then forall k, owed k false else True) {struct n} : owed n b :=
    match n return owed n b with
    | 0 => (if b return (if b then forall k, owed k false else True) -> owed 0 b
            then fun f => f 1 else fun f => f) f
    | S m => match used m (ascend m true (fun k => ascend k false I)) with end
    end) 1 false I).
by case: no.
Qed.
