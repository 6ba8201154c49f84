(** Finite laws as expectations.

    What it says.  A [vocab] is a finite type that computes: an eqType with a
    list naming every token exactly once ([of_finType] makes one from any
    MathComp finType, so "for every [vocab]" means "for every finite
    vocabulary").  A random experiment with results in [A] is what it does to a
    test function: [law A = (A -> R) -> R], [f] going to E[f].  [R] is any
    ordered field with decidable order, so the rationals and the reals alike.

    [lawful] lists what makes such a functional an expectation; the
    combinators [ret], [bind], [coin], [pick] keep it.  Nothing else about
    probability is assumed anywhere in this development.

    Source: none; this is the common ground of all the other files. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Structure vocab := Vocab {
  token :> eqType;
  tokens : seq token;
  tokens_once : Finite.axiom tokens
}.

Definition of_finType (T : finType) : vocab := Vocab (@enumP T).

Section Total.
Variables (R : realFieldType) (V : vocab).
Implicit Types (f g : V -> R) (x : V).

(** MathComp's [\sum] is sealed against computation; this sum computes. *)
Definition total f : R := foldr (fun x s => f x + s) 0 (tokens V).

Lemma totalE f : total f = \sum_(x <- tokens V) f x.
Proof. by rewrite /total; elim: (tokens V) => [|x s IH] /=; rewrite ?big_nil // big_cons IH. Qed.

Lemma total_ext f g : f =1 g -> total f = total g.
Proof. by move=> e; rewrite !totalE; apply: eq_bigr => x _. Qed.

Lemma total_add f g : total (fun x => f x + g x) = total f + total g.
Proof. by rewrite !totalE big_split. Qed.

Lemma total_scale c f : total (fun x => c * f x) = c * total f.
Proof. by rewrite !totalE mulr_sumr. Qed.

Lemma total_scaler c f : total (fun x => f x * c) = total f * c.
Proof. by rewrite !totalE mulr_suml. Qed.

Lemma total_sub f g : total (fun x => f x - g x) = total f - total g.
Proof. by rewrite !totalE sumrB. Qed.

Lemma total0 : total (fun _ => 0) = 0.
Proof. by rewrite totalE big1. Qed.

Lemma total_le f g : (forall x, f x <= g x) -> total f <= total g.
Proof. by move=> le; rewrite !totalE; apply: ler_sum. Qed.

Lemma total_ge0 f : (forall x, 0 <= f x) -> 0 <= total f.
Proof. by move=> le; rewrite !totalE; apply: sumr_ge0. Qed.

Lemma total_norm f : `|total f| <= total (fun x => `|f x|).
Proof. by rewrite !totalE; apply: ler_norm_sum. Qed.

Lemma token_in x : x \in tokens V.
Proof. by rewrite -has_pred1 has_count tokens_once. Qed.

(** Picking out one token: the only place where "exactly once" is used. *)
Lemma total_pick c f : total (fun x => (x == c)%:R * f x) = f c.
Proof.
rewrite totalE (eq_bigr (fun x => if x == c then f c else 0)); last first.
  by move=> x _; case: eqP => [->|_]; rewrite ?mul1r ?mul0r.
by rewrite -big_mkcond big_const_seq tokens_once /= addr0.
Qed.

Lemma total_pick1 c : total (fun x => (x == c)%:R) = 1.
Proof. by rewrite -[RHS](total_pick c (fun _ => 1)); apply: total_ext => x; rewrite mulr1. Qed.

(** A sum of nonnegative terms that vanishes, vanishes term by term. *)
Lemma total_eq0 f : (forall x, 0 <= f x) -> total f = 0 -> forall x, f x = 0.
Proof.
move=> f0 /eqP; rewrite totalE psumr_eq0 //= => /allP f_0 x.
by apply/eqP; apply: f_0; apply: token_in.
Qed.

Lemma total_ge_term f c : (forall x, 0 <= f x) -> f c <= total f.
Proof.
move=> f0; rewrite -(total_pick c f); apply: total_le => x.
by case: eqP => _; rewrite ?mul1r ?mul0r.
Qed.

End Total.

(** A row: nonnegative weights that sum to one. *)
Definition dist (R : realFieldType) (V : vocab) (p : V -> R) :=
  (forall x, 0 <= p x) /\ total p = 1.

Section Law.
Variable R : realFieldType.

Definition law (A : Type) := (A -> R) -> R.
Definition ret A (a : A) : law A := fun f => f a.
Definition bind A B (m : law A) (k : A -> law B) : law B := fun f => m (fun a => k a f).
(** True with probability [a]. *)
Definition coin (a : R) : law bool := fun f => a * f true + (1 - a) * f false.
(** A token drawn from the row [p]. *)
Definition pick (V : vocab) (p : V -> R) : law V := fun f => total (fun x => p x * f x).

Record lawful A (m : law A) : Prop := Lawful {
  law_ext : forall f g, f =1 g -> m f = m g;
  law_add : forall f g, m (fun a => f a + g a) = m f + m g;
  law_scale : forall c f, m (fun a => c * f a) = c * m f;
  law_le : forall f g, (forall a, f a <= g a) -> m f <= m g;
  law_one : m (fun _ => 1) = 1
}.

(** Every outcome of [m] satisfies [P]: test functions matter on [P] only. *)
Definition surely A (P : A -> Prop) (m : law A) :=
  forall f g, (forall a, P a -> f a = g a) -> m f = m g.

Definition prob A (m : law A) (event : A -> bool) : R := m (fun a => (event a)%:R).

Section LawfulTheory.
Variables (A : Type) (m : law A).
Hypothesis mP : lawful m.

Lemma law_const c : m (fun _ => c) = c.
Proof.
rewrite -[RHS]mulr1 -(law_one mP) -(law_scale mP).
by apply: (law_ext mP) => a; rewrite mulr1.
Qed.

Lemma law_scaler c f : m (fun a => f a * c) = m f * c.
Proof. by rewrite mulrC -(law_scale mP); apply: (law_ext mP) => a; rewrite mulrC. Qed.

Lemma law_sub f g : m (fun a => f a - g a) = m f - m g.
Proof.
rewrite -mulN1r -(law_scale mP) -(law_add mP).
by apply: (law_ext mP) => a; rewrite mulN1r.
Qed.

Lemma law_ge0 f : (forall a, 0 <= f a) -> 0 <= m f.
Proof. by move=> f0; rewrite -(law_const 0); apply: (law_le mP). Qed.

Lemma law_total (V : vocab) (f : A -> V -> R) :
  m (fun a => total (f a)) = total (fun x => m (f^~ x)).
Proof.
rewrite /total; elim: (tokens V) => [|x s IH] /=; first exact: law_const.
by rewrite (law_add mP (f^~ x)) IH.
Qed.

Lemma prob_ge0 e : 0 <= prob m e.
Proof. by apply: law_ge0 => a; rewrite ler0n. Qed.

Lemma prob_le1 e : prob m e <= 1.
Proof. by rewrite -(law_one mP); apply: (law_le mP) => a; case: (e a); rewrite ?ler01. Qed.

Lemma prob_le (e1 e2 : A -> bool) : (forall a, e1 a -> e2 a) -> prob m e1 <= prob m e2.
Proof.
move=> i; apply: (law_le mP) => a; rewrite ler_nat.
by case: (e1 a) (i a) => // ->.
Qed.

End LawfulTheory.

Lemma lawful_ret A (a : A) : lawful (ret a).
Proof. by split=> [f g e|f g|c f|f g le|]; rewrite /ret ?e. Qed.

Lemma lawful_bind A B (m : law A) (k : A -> law B) :
  lawful m -> (forall a, lawful (k a)) -> lawful (bind m k).
Proof.
move=> mP kP; split=> [f g e|f g|c f|f g le|]; rewrite /bind.
- by apply: (law_ext mP) => a; apply: (law_ext (kP a)).
- by rewrite -(law_add mP); apply: (law_ext mP) => a; apply: (law_add (kP a)).
- by rewrite -(law_scale mP); apply: (law_ext mP) => a; apply: (law_scale (kP a)).
- by apply: (law_le mP) => a; apply: (law_le (kP a)).
- by rewrite -[RHS](law_one mP); apply: (law_ext mP) => a; apply: (law_one (kP a)).
Qed.

Lemma lawful_coin a : 0 <= a <= 1 -> lawful (coin a).
Proof.
case/andP=> a0 a1; rewrite /coin; split=> [f g e|f g|c f|f g le|].
- by rewrite !e.
- by ring.
- by ring.
- by apply: ler_add; apply: ler_wpmul2l; rewrite ?subr_ge0.
- by ring.
Qed.

Lemma lawful_pick (V : vocab) (p : V -> R) : dist p -> lawful (pick p).
Proof.
case=> p0 p1; rewrite /pick; split=> [f g e|f g|c f|f g le|].
- by apply: total_ext => x; rewrite e.
- by rewrite -total_add; apply: total_ext => x; rewrite mulrDr.
- by rewrite -total_scale; apply: total_ext => x; rewrite mulrCA.
- by apply: total_le => x; apply: ler_wpmul2l.
- by rewrite -[RHS]p1; apply: total_ext => x; rewrite mulr1.
Qed.

(** [lawful] is satisfiable on every inhabited type, and [dist] on every
    inhabited vocabulary: the theorems below are not vacuous. *)
Lemma dist_onehot (V : vocab) (c : V) : dist (fun x => (x == c)%:R : R).
Proof. by split=> [x|]; rewrite ?ler0n // total_pick1. Qed.

End Law.

Arguments total {R V} f.
Arguments dist {R V} p.
Arguments ret {R A} a.
Arguments bind {R A B} m k.
Arguments coin {R} a.
Arguments pick {R V} p.
Arguments lawful {R A} m.
Arguments surely {R A} P m.
Arguments prob {R A} m event.

Notation "x <~ m ;; k" := (bind m (fun x => k))
  (at level 90, m at level 60, right associativity).
