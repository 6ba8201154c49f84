(** Rule [point_mass]: deterministic candidates, one after the other.

    What it says.  Siblings are tried in order; x is kept with probability r x,
    otherwise x is taken out of r and r renormalised.  [point_mass_lossless]: on
    any tree that was not chosen by looking at the target's coins - lists with
    repetitions, chains, adaptive trees, n-gram pools - p comes out.
    [point_mass_is_ratio_rule]: a deterministic candidate is a draw from a point
    mass, so writing q x = 1 for it (EAGLE's "qx = 1.0") is the ratio rule, not a
    mistake.

    Source: EAGLE-2/3 evaluate_posterior; Lookahead; prompt lookup; SpecInfer's
    naive trees.  Runs in: refengine/exact/rules/point_mass.py. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Tree.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section List.
Variables (R : realFieldType) (V : vocab).
Implicit Types (r : V -> R) (c x : V) (cs : seq V).

(** [r] with [c] taken out; where nothing else is left it is never used. *)
Definition without r c x : R :=
  if 1 - r c == 0 then r x else (if x == c then 0 else r x) / (1 - r c).

Fixpoint try_in_order r i cs : law R (choice V) :=
  if cs is c :: cs' then
    kept <~ coin (r c);;
    if kept then ret (c, Some i) else try_in_order (without r c) i.+1 cs'
  else y <~ pick r;; ret (y, None).

Lemma dist_le1 r c : dist r -> r c <= 1.
Proof. by case=> r0 <-; apply: total_ge_term. Qed.

Lemma total_without r c f : total (fun x => (if x == c then 0 else r x) * f x) = pick r f - r c * f c.
Proof.
rewrite -[r c * f c](total_pick c (fun x => r x * f x)) -total_sub; apply: total_ext => x.
by case: eqP => _ /=; rewrite ?mul1r ?mul0r; ring.
Qed.

Lemma without_mass r c f : dist r -> (1 - r c) * pick (without r c) f = pick r f - r c * f c.
Proof.
move=> rP; rewrite /pick /without; case: eqP => [e|/eqP ne]; last first.
  rewrite -total_scale -total_without; apply: total_ext => x.
  by rewrite mulrA [_ * (_ / _)]mulrCA mulfV // mulr1.
rewrite e mul0r -total_without -[LHS](@total0 R V); apply: total_ext => x.
case: eqP => [_|/eqP xc]; rewrite ?mul0r //.
have [r0 r1] := rP; suff -> : r x = 0 by rewrite mul0r.
have z : total (fun y => (if y == c then 0 else r y) * 1) = 0.
  by rewrite total_without mulr1 (law_one (lawful_pick rP)).
have ge0 y : 0 <= (if y == c then 0 else r y) * 1 by case: ifP => _; rewrite mulr1.
by have := total_eq0 ge0 z x; rewrite (negbTE xc) mulr1.
Qed.

Lemma without_dist r c : dist r -> dist (without r c).
Proof.
move=> rP; have [r0 r1] := rP; rewrite /without; case: eqP => [//|/eqP ne].
have pos : 0 <= 1 - r c by rewrite subr_ge0 dist_le1.
split=> [x|]; first by case: ifP => _; rewrite divr_ge0.
rewrite total_scaler (total_ext (g := fun x => (if x == c then 0 else r x) * 1)); last by move=> x; rewrite mulr1.
by rewrite total_without mulr1 (law_one (lawful_pick rP)) mulfV.
Qed.

Theorem list_lossless r i cs f : dist r -> try_in_order r i cs (fun o => f o.1) = pick r f.
Proof.
elim: cs r i => [|c cs IH] r i rP //=; rewrite /bind /coin /ret /= IH; last exact: without_dist.
by rewrite without_mass //; ring.
Qed.

(** A deterministic candidate under the ratio rule. *)
Theorem point_mass_is_ratio_rule r c : dist r ->
  accept r (fun x => (x == c)%:R) c = r c /\ residual r (fun x => (x == c)%:R) =1 without r c.
Proof.
move=> rP; have [r0 r1] := rP; have rc1 := dist_le1 c rP; split.
  by rewrite accept_min eqxx ?ltr01 // divr1 min_r.
have ex x : excess r (fun x => (x == c)%:R) x = if x == c then 0 else r x.
  rewrite /excess; case: eqP => [->|_]; last by rewrite subr0 max_l.
  by rewrite max_r // subr_le0.
have z : total (excess r (fun x => (x == c)%:R)) = 1 - r c.
  rewrite (total_ext (g := fun x => (if x == c then 0 else r x) * 1)); last by move=> x; rewrite ex mulr1.
  by rewrite total_without mulr1 (law_one (lawful_pick rP)).
by move=> x; rewrite /residual z /without ex.
Qed.

Lemma lawful_try r i cs : dist r -> lawful (try_in_order r i cs).
Proof.
elim: cs r i => [|c cs IH] r i rP /=.
  by apply: lawful_bind => [|y]; [apply: lawful_pick | apply: lawful_ret].
apply: lawful_bind => [|[]]; [|exact: lawful_ret | exact/IH/without_dist].
by apply: lawful_coin; rewrite dist_le1 // andbT; case: rP.
Qed.

Lemma try_child r i cs : dist r ->
  surely (fun o => if o.2 is Some j then (i <= j < i + size cs)%N && (nth o.1 cs (j - i) == o.1) else true)
         (try_in_order r i cs).
Proof.
elim: cs r i => [|c cs IH] r i rP f g e /=; first by apply: total_ext => y; rewrite /ret e.
have cP : 0 <= r c <= 1 by rewrite dist_le1 // andbT; case: rP.
apply: (law_ext (lawful_coin cP)) => -[].
  by rewrite /ret e //= subnn eqxx leqnn addnS ltnS leq_addr.
apply: (IH _ _ (without_dist c rP)) => -[y [j|]] /= ok; last exact: e.
apply: e => /=; case/andP: ok => /andP[ij js] /eqP nj.
by rewrite (ltnW ij) addnS -addSn js /= -(subnSK ij) /= nj.
Qed.

End List.

Section PointMass.
Variables (R : realFieldType) (V : vocab).
Variable p : seq V -> V -> R.
Hypothesis pP : forall h, dist (p h).

Definition point_mass h (t : tree V) : law R (seq V) :=
  walk (fun h cs => try_in_order (p h) 0 cs) h t.

Theorem point_mass_lossless h t : lossless p h (point_mass h t).
Proof.
apply: fixed_tree_lossless => //.
- by move=> h' cs; apply: lawful_try.
- move=> h' cs f f' e; apply: try_child => // -[y [j|]] /= ok; apply: e => //=.
  by rewrite subn0 in ok.
- by move=> h' cs f; apply: list_lossless.
Qed.

End PointMass.
