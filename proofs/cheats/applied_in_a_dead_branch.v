(** Refused by applied. One of two branches is never taken, and the premise holds there. *)
Theorem anything : 0 = 1 -> 1 = 2.
Proof. intro absurd; discriminate absurd. Qed.
Example used : True.
Proof. exact (match or_introl I : True \/ 0 = 1 with or_introl _ => I | or_intror no => (fun _ => I) (anything no) end). Qed.
