(** Refused by text. A member of a structure that stands for a proof of which there is but one: the kernel confuses the others. *)
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Definition marker : SProp := forall P : SProp, P -> P.
Definition marked : marker := fun P p => p.
Structure parcel := Pack { parcel_one : nat; parcel_two : nat; mark_one : marker := marked; mark_two : marker := marked }.
Theorem anything : 0 = 1.
Proof.
pose one_of (p : parcel) : nat := match p with Pack x y a b => x end.
pose two_of (p : parcel) : nat := match p with Pack x y a b => y end.
exact ((fun p : parcel => @erefl nat (one_of p) : one_of p = two_of p) (Pack 0 1)).
Qed.
