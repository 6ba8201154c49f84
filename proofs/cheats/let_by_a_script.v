(** Refused by text. A Let that is a proposition, which a script has made. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Section Hidden.
Let rule : Prop.
Proof. exact (0 = 0). Qed.
Definition sound_rule : Prop := rule.
End Hidden.
Theorem anything : sound_rule.
Proof. exact (erefl 0). Qed.
