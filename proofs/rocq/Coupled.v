(** Drafter and target that share their noise.

    What it says.  Token number i is a function of the history and of the noise w_i, for the
    target as for the drafter: inverse-CDF draws of one uniform, or the argmax of logits plus
    shared Gumbel noise.  Verification writes the target's own choice and goes on while the
    draft equals it.
    - [coupled_writes_plain]  for every noise the loop writes, token for token, what plain
      decoding writes with that noise, whatever proposes: a drafter may see the noise, of
      later places too;
    - [coupled_lossless]  so where the noise is drawn afresh for every place, and one place's
      noise gives the target's row, the text has the target's law;
    - [coupled_keeps_at_most]  a draft equals the target's choice with probability at most
      1 - TV, however the two share their noise;
    One uniform for both keeps more than two uniforms: BeyondInstances.coupling_keeps_more.
    That the argmax of log p plus Gumbel noise has the law p is not proved here: it is the
    hypothesis [noiseP] of an instance that would need the exponential function.

    Source: Agreement.v for one token; Gumbel coupling: Daliri et al. 2025 (arXiv 2408.07978). *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Single Round Tree Agreement Greedy.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Coupled.
Variables (R : realFieldType) (V : vocab) (Noise : Type).
Variables (p : seq V -> V -> R) (choose : seq V -> Noise -> V) (noise : law R Noise).
Implicit Types (h s : seq V) (x : V) (w : nat -> Noise) (k : seq V -> R).

(** The target's choice after [h], its place's noise given. *)
Definition chosen w h : V := choose h (w (size h)).

Theorem coupled_writes_plain w S (propose : S -> seq V -> seq V) (update : S -> seq V -> seq V -> S) fuel n st h :
  (n <= fuel)%N -> greedy_loop (chosen w) propose update fuel n st h = greedy_decode (chosen w) n h.
Proof. exact: greedy_is_greedy. Qed.

(** Noise for the places from [at_least] on, n of them fresh. *)
Definition with_noise (i : nat) (a : Noise) w : nat -> Noise := fun j => if j == i then a else w j.
Fixpoint drawn i n w : law R (nat -> Noise) :=
  if n is n'.+1 then a <~ noise;; drawn i.+1 n' (with_noise i a w) else ret w.

Hypothesis noise_lawful : lawful noise.
Hypothesis noiseP : forall h f, noise (fun a => f (choose h a)) = pick (p h) f.

Lemma lawful_drawn i n w : lawful (drawn i n w).
Proof.
elim: n i w => [|n IH] i w; first exact: lawful_ret.
by apply: lawful_bind => // a; apply: IH.
Qed.

(** Drawing later noise leaves the earlier as it was. *)
Lemma drawn_earlier i n w : surely (fun w' => forall j, (j < i)%N -> w' j = w j) (drawn i n w).
Proof.
elim: n i w => [|n IH] i w f g e; first by rewrite /= /ret e.
apply: (law_ext noise_lawful) => a; apply: IH => w' same; apply: e => j ji.
by rewrite same ?ltnS ?(ltnW ji) // /with_noise; case: eqP ji => // ->; rewrite ltnn.
Qed.

Lemma plain_with_noise n h w k :
  drawn (size h) n w (fun w' => k (greedy_decode (chosen w') n h)) = target p n h k.
Proof.
elim: n h w k => [|n IH] h w k //=; rewrite /bind -noiseP; apply: (law_ext noise_lawful) => a.
rewrite /ret -(IH (rcons h (choose h a)) (with_noise (size h) a w)) size_rcons.
apply: drawn_earlier => w' same.
by have -> : chosen w' h = choose h a by rewrite /chosen same // /with_noise eqxx.
Qed.

Theorem coupled_lossless (S : Type) (propose : (nat -> Noise) -> S -> seq V -> seq V)
    (update : (nat -> Noise) -> S -> seq V -> seq V -> S) w n st h k :
  drawn (size h) n w (fun w' => k (greedy_loop (chosen w') (propose w') (update w') n n st h)) = target p n h k.
Proof.
rewrite -(plain_with_noise n h w k); apply: (law_ext (lawful_drawn (size h) n w)) => w'.
by rewrite coupled_writes_plain.
Qed.

(** However draft and target share their noise. *)
Theorem coupled_keeps_at_most (q : V -> R) (draft : Noise -> V) h :
  (forall f, noise (fun a => f (draft a)) = pick q f) ->
  prob noise (fun a => draft a == choose h a) <= overlap (p h) q.
Proof.
move=> draftP; have row r (c : Noise -> V) : (forall f, noise (fun a => f (c a)) = pick r f) ->
    forall x, noise (fun a => (c a == x)%:R) = r x.
  by move=> cP x; rewrite (cP (fun y => (y == x)%:R)) -[RHS](total_pick x r); apply: total_ext => y; rewrite mulrC.
have -> : prob noise (fun a => draft a == choose h a)
        = total (fun x => noise (fun a => ((draft a == x) && (choose h a == x))%:R)).
  rewrite -(law_total noise_lawful); apply: (law_ext noise_lawful) => a.
  transitivity (total (fun x => (x == draft a)%:R * (choose h a == x)%:R : R)).
    by rewrite total_pick eq_sym.
  by apply: total_ext => x; rewrite -natrM mulnb eq_sym.
apply: total_le => x; rewrite le_minr -(row _ _ (noiseP h) x) -(row _ _ draftP x); apply/andP.
by split; apply: (prob_le noise_lawful) => a /andP[].
Qed.

End Coupled.
