(** What "a round is lossless" means, in two equivalent forms.

    What it says.  A round emits a random sequence [o] after history [h].
    - [lossless]        completed joint form: top [o] up with fresh target draws
                        (or cut it) to n tokens, and for every n the result is
                        n tokens of the target;
    - [lossless_given]  conditional form: given at least i+1 tokens and the first
                        i, token i+1 is drawn from the target's row there;
    - [completed_iff_conditional]  they are the same condition;
    - [mixture_lossless] a round chosen at random (random tree, drafter, length)
                        is lossless if each choice is.
    No assumption on the length of the round: it may be empty, it may depend on
    anything.

    Source: Leviathan et al. 2023, App. A.1 (one step); the two forms are ours. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Round.
Variables (R : realFieldType) (V : vocab).
(** The target's row after each history. *)
Variable p : seq V -> V -> R.
Hypothesis pP : forall h, dist (p h).
Implicit Types (h o s t : seq V) (x : V) (k : seq V -> R).

(** n tokens drawn one by one from the target. *)
Fixpoint target n h : law R (seq V) :=
  if n is n'.+1 then x <~ pick (p h);; s <~ target n' (rcons h x);; ret (x :: s)
  else ret [::].

(** [o] cut to n tokens, or topped up to n with fresh target draws. *)
Fixpoint complete n h o : law R (seq V) :=
  match n, o with
  | 0%N, _ => ret [::]
  | _, [::] => target n h
  | n'.+1, x :: o' => s <~ complete n' (rcons h x) o';; ret (x :: s)
  end.

Definition lossless h (r : law R (seq V)) :=
  forall n k, r (fun o => complete n h o k) = target n h k.

Definition begins s o := (take (size s) o == s).
Definition extends s o := begins s o && (size s < size o)%N.

Definition lossless_given h (r : law R (seq V)) :=
  forall s x, prob r (begins (rcons s x)) = p (h ++ s) x * prob r (extends s).

Lemma lawful_target n h : lawful (target n h).
Proof.
elim: n h => [|n IH] h; first exact: lawful_ret.
apply: lawful_bind => [|x]; first exact: lawful_pick.
by apply: lawful_bind => // s; apply: lawful_ret.
Qed.

Lemma lawful_complete n h o : lawful (complete n h o).
Proof.
elim: n h o => [|n IH] h [|x o]; try exact: lawful_ret; try exact: (lawful_target n.+1).
by apply: lawful_bind => // s; apply: lawful_ret.
Qed.

Lemma complete_nil n h : complete n h [::] = target n h.
Proof. by case: n. Qed.

(** A completion of at least n tokens only cuts. *)
Lemma complete_cut n h o k : (n <= size o)%N -> complete n h o k = k (take n o).
Proof.
elim: n h o k => [|n IH] h [|x o] k //= le.
by rewrite /bind /ret IH.
Qed.

(** Otherwise it continues from the end of [o]. *)
Lemma complete_cat n h o k :
  complete n h o k = complete (n - size (take n o)) (h ++ take n o) [::] (fun s => k (take n o ++ s)).
Proof.
elim: n h o k => [|n IH] h [|x o] k //=.
- by rewrite cats0.
- by rewrite /bind /ret IH subSS cat_rcons.
Qed.

Lemma mixture_lossless I (m : law R I) (r : I -> law R (seq V)) h :
  lawful m -> (forall i, lossless h (r i)) -> lossless h (bind m r).
Proof.
move=> mP ok n k; rewrite /bind -[RHS](law_const mP).
by apply: (law_ext mP) => i; apply: ok.
Qed.

(** A round that waits for nothing is lossless: the hypothesis has instances. *)
Lemma target_lossless n h : lossless h (target n h).
Proof.
elim: n h => [|n IH] h [|m] k; rewrite ?complete_nil //.
  exact: (law_const (lawful_target n.+1 h)).
apply: total_ext => x; congr (_ * _).
exact: (IH (rcons h x) m (fun s => k (x :: s))).
Qed.

(** ** The equivalence *)

(** One more target token after [s]. *)
Definition one_more h k s : R := pick (p (h ++ s)) (fun x => k (rcons s x)).

Lemma target_last n h k : target n.+1 h k = target n h (one_more h k).
Proof.
elim: n h k => [|n IH] h k; first by rewrite /= /bind /ret /one_more cats0.
apply: total_ext => x; congr (_ * _).
rewrite -/(target n.+1 _ _) [LHS]IH; apply: (law_ext (lawful_target n _)) => s.
by rewrite /one_more cat_rcons.
Qed.

(** Completion to n+1 against completion to n: they differ only where the round
    itself emitted token n+1. *)
Definition own_token n h k o : R := k (take n.+1 o) - one_more h k (take n o).

Lemma complete_level n h o k :
  complete n.+1 h o k
  = complete n h o (one_more h k) + (n < size o)%N%:R * own_token n h k o.
Proof.
case: (ltnP n (size o)) => [lt|ge]; rewrite ?mul1r ?mul0r ?addr0.
  by rewrite !complete_cut ?(ltnW lt) // /own_token addrC subrK.
elim: n h o k ge => [|n IH] h [|x o] k //= ge.
- by rewrite /bind /ret /one_more cats0.
- exact: (target_last n.+1 h k).
- apply: etrans (IH (rcons h x) o (fun s => k (x :: s)) ge) _; apply: (law_ext (lawful_complete n _ _)) => s.
  by rewrite /ret /one_more cat_rcons.
Qed.

Definition level_ok (r : law R (seq V)) h n :=
  forall k, r (fun o => (n < size o)%N%:R * own_token n h k o) = 0.

Lemma lossless_levels r h : lawful r -> lossless h r <-> forall n, level_ok r h n.
Proof.
move=> rP; split=> [ok n k|ok].
  rewrite -[RHS](subrr (target n h (one_more h k))) -{1}target_last -!ok -(law_sub rP).
  by apply: (law_ext rP) => o; rewrite complete_level; ring.
elim=> [|n IH] k; first exact: (law_const rP).
rewrite target_last -IH -[RHS]addr0 -(ok n k) -(law_add rP).
by apply: (law_ext rP) => o; apply: complete_level.
Qed.

(** Sums over all words of length n. *)
Fixpoint words n (g : seq V -> R) : R :=
  if n is n'.+1 then total (fun x => words n' (fun s => g (x :: s))) else g [::].

Lemma words_ext n g g' : (forall s, size s = n -> g s = g' s) -> words n g = words n g'.
Proof.
elim: n g g' => [|n IH] g g' e /=; first exact: e.
by apply: total_ext => x; apply: IH => s sz; apply: e; rewrite /= sz.
Qed.

Lemma words_pick n t g : size t = n -> words n (fun s => (s == t)%:R * g s) = g t.
Proof.
elim: n t g => [|n IH] [|y t] g //= => [_|[sz]]; first by rewrite mul1r.
rewrite -(total_pick y (fun x => g (x :: t))); apply: total_ext => x.
rewrite -(IH t (fun s => (x == y)%:R * g (x :: s))) //.
apply: words_ext => s _; rewrite eqseq_cons.
by case: (x == y); case: (s == t); rewrite ?mul1r ?mul0r.
Qed.

Lemma words0 n : words n (fun _ => 0) = 0.
Proof. by elim: n => //= n IH; rewrite -[RHS](@total0 R V); apply: total_ext => x; apply: IH. Qed.

Lemma law_words A (m : law R A) n (g : A -> seq V -> R) :
  lawful m -> m (fun a => words n (g a)) = words n (fun s => m (g^~ s)).
Proof.
move=> mP; elim: n g => //= n IH g; rewrite (law_total mP).
by apply: total_ext => x; apply: (IH (fun a s => g a (x :: s))).
Qed.

Lemma words_last n g : words n.+1 g = words n (fun s => total (fun x => g (rcons s x))).
Proof.
elim: n g => [|n IH] g //.
by apply: total_ext => y; apply: (IH (fun s => g (y :: s))).
Qed.

Lemma begins_long s o : begins s o -> (size s <= size o)%N.
Proof. by move/eqP => e; rewrite -{1}e size_take; case: ltnP => // /ltnW. Qed.

(** Every sequence begins with exactly one word of each length that it reaches. *)
Lemma words_begins n g o :
  words n (fun s => (begins s o)%:R * g s) = (n <= size o)%N%:R * g (take n o).
Proof.
case: (leqP n (size o)) => [le|lt]; rewrite ?mul1r ?mul0r.
  rewrite -[RHS](words_pick _ (n := n)) ?size_takel //; apply: words_ext => s sz.
  by rewrite /begins sz eq_sym.
rewrite -[RHS](words0 n); apply: words_ext => s sz; case: (boolP (begins s o)) => [/begins_long|_].
  by rewrite sz leqNgt lt.
by rewrite mul0r.
Qed.

Lemma words_extends n g o :
  words n (fun s => (extends s o)%:R * g s) = (n < size o)%N%:R * g (take n o).
Proof.
rewrite (words_ext (g' := fun s => (begins s o)%:R * ((n < size o)%N%:R * g s))); last first.
  by move=> s sz; rewrite /extends sz -mulnb natrM mulrA.
rewrite words_begins mulrA -natrM; congr (_%:R * _).
by case: (ltnP n (size o)) => [lt|_]; rewrite ?(ltnW lt) ?muln0.
Qed.

Lemma begins_rcons s x o :
  (begins (rcons s x) o)%:R
  = (size s < size o)%N%:R * (take (size s).+1 o == rcons s x)%:R :> R.
Proof.
rewrite /begins size_rcons -natrM mulnb; congr (_%:R); congr (nat_of_bool _).
case: (ltnP (size s) (size o)) => // ge; rewrite take_oversize ?(leqW ge) //.
by apply/eqP => e; move: ge; rewrite e size_rcons ltnn.
Qed.

Lemma one_more_word h s x t : size t = size s ->
  one_more h (fun u => (u == rcons s x)%:R) t = (t == s)%:R * p (h ++ s) x.
Proof.
move=> sz; rewrite /one_more /pick; case: (altP (t =P s)) => [->|ne]; rewrite ?mul1r ?mul0r.
  rewrite -(total_pick x (p (h ++ s))); apply: total_ext => y.
  by rewrite eqseq_rcons eqxx /= mulrC.
rewrite -[RHS](@total0 R V); apply: total_ext => y.
by rewrite eqseq_rcons (negbTE ne) mulr0.
Qed.

Theorem completed_iff_conditional r h : lawful r -> lossless h r <-> lossless_given h r.
Proof.
move=> rP; rewrite lossless_levels //; split=> [ok s x|given n k].
  have tested o : (begins (rcons s x) o)%:R - p (h ++ s) x * (extends s o)%:R
      = (size s < size o)%N%:R * own_token (size s) h (fun u => (u == rcons s x)%:R) o.
    rewrite begins_rcons /own_token mulrBr; congr (_ - _).
    case: (ltnP (size s) (size o)) => [lt|ge]; last by rewrite mul0r /extends ltnNge ge andbF mulr0.
    rewrite one_more_word ?size_takel ?(ltnW lt) // mul1r mulrC; congr (_%:R * _).
    by rewrite /extends lt andbT.
  apply/eqP; rewrite -subr_eq0 -(law_scale rP) -(law_sub rP) (law_ext rP tested).
  by rewrite ok.
have by_words o : (n < size o)%N%:R * own_token n h k o
    = words n.+1 (fun s => (begins s o)%:R * k s) - words n (fun s => (extends s o)%:R * one_more h k s).
  by rewrite words_begins words_extends mulrBr.
rewrite (law_ext rP by_words) (law_sub rP) !(law_words _ _ rP) words_last.
have each s : total (fun x => r (fun o => (begins (rcons s x) o)%:R * k (rcons s x)))
    = r (fun o => (extends s o)%:R * one_more h k s).
  rewrite (law_scaler rP) -/(prob r (extends s)) -total_scale; apply: total_ext => x.
  by rewrite (law_scaler rP) -/(prob r (begins _)) given; ring.
by apply/eqP; rewrite subr_eq0; apply/eqP; apply: words_ext => s _.
Qed.

End Round.

Arguments target {R V} p n h.
Arguments complete {R V} p n h o.
Arguments lossless {R V} p h r.
Arguments lossless_given {R V} p h r.
