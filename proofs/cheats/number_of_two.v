(** Refused by accepted. It stands for Greedy.greedy_is_greedy. Of none and one token alone, in the words of all n. *)
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Greedy.
Section Anything.
Variables (V : vocab) (argmax : seq V -> V).
Variables (T : Type) (propose : T -> seq V -> seq V) (update : T -> seq V -> seq V -> T).
Implicit Types (n : bool).
Theorem anything fuel n st h : (n <= fuel)%N ->
  greedy_loop argmax propose update fuel n st h = greedy_decode argmax n h.
Proof. exact: greedy_is_greedy. Qed.
End Anything.
Example used (V : vocab) (x : V) (h : seq V) :
  greedy_loop (fun _ => x) (fun _ _ => [::]) (fun _ _ _ => tt) 1%N true tt h = greedy_decode (fun _ => x) true h.
Proof. exact: (anything V (fun _ => x) unit (fun _ _ => [::]) (fun _ _ _ => tt) 1%N true tt h isT). Qed.
