(** Refused by text. Lists of one length are alike where their members are; the statement does not say of what. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Implicit Types s : seq unit.
Theorem anything s t : size s = size t -> s = t.
Proof. by elim: s t => [|[] s IH] [|[] t] //= [/IH->]. Qed.
Example used : [:: tt] = [:: tt].
Proof. exact: (@anything [:: tt] [:: tt] erefl). Qed.
