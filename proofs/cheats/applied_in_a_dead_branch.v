(** Refused by applied. One of two branches is never taken, and the premise holds there. *)
Theorem anything : False -> 1 = 2.
Proof. intro absurd; destruct absurd. Qed.
Example used : True.
Proof. exact (match or_introl I : True \/ False with or_introl _ => I | or_intror no => (fun _ => I) (anything no) end). Qed.
