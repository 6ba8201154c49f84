(** The rationals in binary, as an ordered field: numbers that compute fast.

    What it says.  Coq's canonical rationals [Qc] satisfy the axioms of a
    [realFieldType], so every theorem of this development applies to them and
    every definition can be run on them with [vm_compute].  MathComp's own [rat]
    counts in unary and cannot.

    Source: Coq standard library, QArith.Qcanon. *)

From Coq Require Import ZArith QArith Qcanon.
From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.

Definition qc_eqb (a b : Qc) : bool := Qeq_bool a b.
Lemma qc_eqP : Equality.axiom qc_eqb.
Proof.
move=> a b; apply: (iffP idP) => [e|->]; last by apply/Qeq_bool_iff.
by apply: Qc_is_canon; apply/Qeq_bool_iff.
Qed.
Canonical qc_eqType := EqType Qc (EqMixin qc_eqP).

(** A numbering, only to satisfy the hierarchy. *)
Definition qc_code (a : Qc) : (bool * nat) * nat :=
  ((Z.ltb (Qnum a) 0, Z.abs_nat (Qnum a)), Pos.to_nat (Qden a)).
Definition qc_decode (c : (bool * nat) * nat) : Qc :=
  let: ((neg, n), d) := c in
  Q2Qc (Qmake (if neg then Z.opp (Z.of_nat n) else Z.of_nat n) (Pos.of_nat d)).
Lemma qc_codeK : cancel qc_code qc_decode.
Proof.
case=> [[n d] canon]; rewrite /qc_code /qc_decode /= Pos2Nat.id Zabs2Nat.id_abs.
apply: Qc_is_canon; apply: Qeq_trans (Qred_correct _) _.
case: Z.ltb_spec => H; last by rewrite Z.abs_eq.
by rewrite Z.abs_neq ?Z.opp_involutive //; apply: Z.lt_le_incl.
Qed.
Canonical qc_choiceType := ChoiceType Qc (CanChoiceMixin qc_codeK).

Lemma qc_opp_l : left_inverse (Q2Qc 0) Qcopp Qcplus.
Proof. by move=> a; rewrite Qcplus_comm Qcplus_opp_r. Qed.
Canonical qc_zmodType := ZmodType Qc (ZmodMixin Qcplus_assoc Qcplus_comm Qcplus_0_l qc_opp_l).

Lemma qc_1_neq_0 : Q2Qc 1 != Q2Qc 0.
Proof. by []. Qed.
Definition qc_ringMixin := ComRingMixin Qcmult_assoc Qcmult_comm Qcmult_1_l Qcmult_plus_distr_l qc_1_neq_0.
Canonical qc_ringType := RingType Qc qc_ringMixin.
Canonical qc_comRingType := ComRingType Qc Qcmult_comm.

Lemma qc_mulV : forall a : Qc, a != Q2Qc 0 -> Qcmult (Qcinv a) a = Q2Qc 1.
Proof. by move=> a /eqP; apply: Qcmult_inv_l. Qed.
Lemma qc_inv0 : Qcinv (Q2Qc 0) = Q2Qc 0.
Proof. exact: Qc_is_canon. Qed.
Definition qc_unitMixin := FieldUnitMixin qc_mulV qc_inv0.
Canonical qc_unitRingType := UnitRingType Qc qc_unitMixin.
Canonical qc_comUnitRingType := [comUnitRingType of Qc].
Lemma qc_field : GRing.Field.mixin_of [unitRingType of Qc].
Proof. by []. Qed.
Canonical qc_idomainType := IdomainType Qc (FieldIdomainMixin qc_field).
Canonical qc_fieldType := FieldType Qc qc_field.

Definition qc_le (a b : Qc) : bool := Qle_bool a b.
Definition qc_lt (a b : Qc) : bool := ~~ Qle_bool b a.
Definition qc_norm (a : Qc) : Qc := if qc_le (Q2Qc 0) a then a else Qcopp a.

Lemma qc_leP a b : reflect (Qcle a b) (qc_le a b).
Proof. by apply: (iffP idP) => H; apply/Qle_bool_iff. Qed.

Local Open Scope ring_scope.
Implicit Types a b : Qc.

Lemma qc_le0D a b : qc_le 0 a -> qc_le 0 b -> qc_le 0 (a + b).
Proof. by move=> /qc_leP ha /qc_leP hb; apply/qc_leP; apply: (Qcplus_le_compat 0 a 0 b). Qed.
Lemma qc_le0M a b : qc_le 0 a -> qc_le 0 b -> qc_le 0 (a * b).
Proof.
move=> /qc_leP ha /qc_leP hb; apply/qc_leP; have := Qcmult_le_compat_r 0 a b ha hb.
by rewrite Qcmult_0_l.
Qed.
Lemma qc_le0_anti a : qc_le 0 a -> qc_le a 0 -> a = 0.
Proof. by move=> /qc_leP ha /qc_leP hb; apply: Qcle_antisym. Qed.
Lemma qc_sub_ge0 a b : qc_le 0 (b - a) = qc_le a b.
Proof.
by apply/qc_leP/qc_leP => H; [exact: (proj2 (Qcle_minus_iff a b) H) | exact: (proj1 (Qcle_minus_iff a b) H)].
Qed.
Lemma qc_le_total a b : qc_le a b || qc_le b a.
Proof.
case: (Qclt_le_dec a b) => H; apply/orP; [left|right]; apply/qc_leP => //.
exact: Qclt_le_weak.
Qed.
Lemma qc_le0_total a : qc_le 0 a || qc_le a 0. Proof. exact: qc_le_total. Qed.
Lemma qc_normN a : qc_norm (- a) = qc_norm a.
Proof.
rewrite /qc_norm; have e : qc_le 0 (- a) = qc_le a 0 by rewrite -(qc_sub_ge0 a 0) /Qcminus Qcplus_0_l.
rewrite -[Qcopp (- a)]/(- - a) -[Qcopp a]/(- a) opprK -[Q2Qc 0]/(0 : Qc) e.
case: (boolP (qc_le 0 a)) (qc_le0_total a) => [h0 _|_ /= -> //].
case: (boolP (qc_le a 0)) => // h1.
by rewrite (qc_le0_anti h0 h1) oppr0.
Qed.
Lemma qc_ge0_norm a : qc_le 0 a -> qc_norm a = a.
Proof. by rewrite /qc_norm => ->. Qed.
Lemma qc_lt_def a b : qc_lt a b = (b != a) && qc_le a b.
Proof.
rewrite /qc_lt -/(qc_le b a); case: (boolP (qc_le b a)) (qc_le_total a b) => [ba _|nba /orP[->|//]].
  case: eqP => //= ne; apply/esym/negbTE/negP => ab.
  by apply: ne; apply: Qcle_antisym; apply/qc_leP.
rewrite andbT; symmetry; apply/eqP => e; case/negP: nba; rewrite e.
by apply/qc_leP; apply: Qcle_refl.
Qed.

Definition qc_leMixin : realLeMixin qc_idomainType :=
  RealLeMixin qc_le0D qc_le0M qc_le0_anti qc_sub_ge0 qc_le0_total qc_normN qc_ge0_norm qc_lt_def.
Canonical qc_porderType := POrderType ring_display Qc qc_leMixin.
Canonical qc_latticeType := LatticeType Qc qc_leMixin.
Canonical qc_distrLatticeType := DistrLatticeType Qc qc_leMixin.
Canonical qc_orderType := OrderType Qc qc_le_total.
Canonical qc_numDomainType := NumDomainType Qc qc_leMixin.
Canonical qc_normedZmodType := NormedZmodType Qc Qc qc_leMixin.
Canonical qc_numFieldType := [numFieldType of Qc].
Canonical qc_realDomainType := [realDomainType of Qc].
Canonical qc_realFieldType := [realFieldType of Qc].

(** num/den as a number that computes. *)
Definition frac (n : Z) (d : positive) : Qc := Q2Qc (Qmake n d).
