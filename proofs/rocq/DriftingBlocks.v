(** Machines that verify whole blocks: how far a round drifts.

    What it says.  A machine carries a state that is worth a weight [worth_of s] in [0, 1].
    - [complete_drifts]  a round that emits, and is within d of the target once it is completed, drifts by d;
    - [keep_near]        if one level of the machine is within eps of what it is worth, and the whole block's
      end within off, g levels are within g eps + off: nothing adds up but one term a level;
    - [block_drifts]     so does the round that begins at weight 1.

    Source: ours; the invariant is that of Block.v, with an error at every level. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From mathcomp.algebra_tactics Require Import ring.
From Proofs Require Import Prob Single Round Loop Chain Leviathan Block Drift Drifting.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Blocks.
Variables (R : realFieldType) (V : vocab).
Variable p : seq V -> V -> R.
Hypothesis pP : forall h, dist (p h).

Section Complete.
Variables (d : R) (h : seq V) (r : law R (seq V)).
Hypothesis d0 : 0 <= d.
Hypothesis rP : lawful r.
Hypothesis r_emits : surely (fun o => (0 < size o)%N) r.
Hypothesis r_near : forall n k, unit_test k -> r (fun o => complete p n h o k) <= target p n h k + d.

Lemma complete_drifts : drifts p d h r.
Proof.
case=> [|n] k k01.
  rewrite mul0r addr0 -[leRHS](law_const rP); apply: (law_le rP) => o; rewrite allowed_none.
  exact: lexx.
apply: le_trans (_ : r (fun o => complete p n.+1 h o k) + n%:R * d <= _); last first.
  by rewrite mulrSr mulrDl mul1r [n%:R * d + d]addrC addrA ler_add2r; apply: r_near.
pose good (o : seq V) F := if (0 < size o)%N then F else 0 : R.
rewrite -[X in _ + X](law_const rP) -(law_add rP).
set lhs := (X in r X <= _); set rhs := (X in _ <= r X).
have -> : r lhs = r (fun o => good o (lhs o)) by apply: r_emits => o ok; rewrite /good ok.
have -> : r rhs = r (fun o => good o (rhs o)) by apply: r_emits => o ok; rewrite /good ok.
apply: (law_le rP) => o; rewrite /good; case: ifP => // ok; rewrite /lhs /rhs /allowed ler_add2l.
by apply: ler_wpmul2r => //; rewrite ler_nat; case: (o) ok => // x o' _; rewrite /= subSS leq_subr.
Qed.
End Complete.

Section Keep.
Variables (S : Type) (worth_of : S -> R) (good : S -> Prop) (next : S -> seq V -> V -> S).
Variables (p' q' : seq V -> V -> R) (halt : seq V -> bool).
(** The coins of a shorter prefix and of the whole block, and what is emitted from after a prefix. *)
Variables (here_coin : S -> seq V -> R) (whole_coin : S -> R) (left_row : S -> seq V -> V -> R).
Variables (eps off : R).
Hypothesis q'P : forall h, ~~ halt h -> dist (q' h).
Hypothesis p'P : forall h, dist (p' h).
Hypothesis left_rowP : forall s h, good s -> dist (left_row s h).
Hypothesis here_coin01 : forall s h, good s -> 0 <= here_coin s h <= 1.
Hypothesis whole_coin01 : forall s, good s -> 0 <= whole_coin s <= 1.
Hypothesis next_good : forall s h x, good s -> good (next s h x).
Hypothesis eps0 : 0 <= eps.
Hypothesis level_near : forall s h T c, good s -> ~~ halt h -> unit_test T -> 0 <= c <= 1 ->
  pick (q' h) (fun x => worth_of (next s h x) * T x
    + (1 - worth_of (next s h x)) * (here_coin s h * pick (left_row s h) T + (1 - here_coin s h) * c))
  <= worth_of s * pick (p h) T + (1 - worth_of s) * c + eps.
Hypothesis whole_near : forall s h T c, good s -> unit_test T -> 0 <= c <= 1 ->
  whole_coin s * pick (p' h) T + (1 - whole_coin s) * c <= worth_of s * pick (p h) T + (1 - worth_of s) * c + off.

Fixpoint machine_keep s h xs : law R (option (seq V)) :=
  if xs is x :: xs' then
    o <~ machine_keep (next s h x) (rcons h x) xs';;
    if o is Some r then ret (Some (x :: r))
    else here <~ coin (here_coin s h);; if here then y <~ pick (left_row s h);; ret (Some [:: y]) else ret None
  else kept <~ coin (whole_coin s);; if kept then y <~ pick (p' h);; ret (Some [:: y]) else ret None.

Lemma lawful_machine_keep s h xs : good s -> lawful (machine_keep s h xs).
Proof.
elim: xs s h => [|x xs IH] s h ok /=.
  apply: lawful_bind => [|[]]; [exact/lawful_coin/whole_coin01 | | exact: lawful_ret].
  by apply: lawful_bind => [|y]; [apply: lawful_pick | apply: lawful_ret].
apply: lawful_bind => [|[r|]]; [exact/IH/next_good | exact: lawful_ret |].
apply: lawful_bind => [|[]]; [exact/lawful_coin/here_coin01 | | exact: lawful_ret].
by apply: lawful_bind => [|y]; [apply/lawful_pick/left_rowP | apply: lawful_ret].
Qed.

(** What one more token is worth, and what follows it. *)
Definition one_worth n h k x : R := if n is n'.+1 then after p n' h k x else k [::].

Lemma one_worth_unit n h k : unit_test k -> unit_test (one_worth n h k).
Proof. by case: n => [|n] k01 x; [apply: k01 | apply: unit_after]. Qed.

Lemma target_worth n h k : target p n h k = pick (p h) (one_worth n h k).
Proof. by case: n => [|n] //=; rewrite (law_const (lawful_pick (pP h))). Qed.

Lemma complete_worth n h k y : complete p n h [:: y] k = one_worth n h k y.
Proof. by case: n => [|n] //=; rewrite complete_nil. Qed.

Lemma after_worth n h k x : exists m k', [/\ unit_test k -> unit_test k', one_worth n h k x = target p m (rcons h x) k'
  & forall s, complete p n h (x :: s) k = complete p m (rcons h x) s k'].
Proof.
case: n => [|n]; first by exists 0%N, (fun _ => k [::]); split=> // k01 s; apply: k01.
by exists n, (fun s => k (x :: s)); split=> // k01 s; apply: k01.
Qed.

Lemma keep_near g s h n k c : good s -> unit_test k -> 0 <= c <= 1 ->
  draft q' halt g h (fun xs => machine_keep s h xs (worth p n h k c))
  <= worth_of s * target p n h k + (1 - worth_of s) * c + (g%:R * eps + off).
Proof.
elim: g s h n k c => [|g IH] s h n k c ok k01 c01; have T01 := one_worth_unit n h k01.
  rewrite mul0r add0r target_worth; apply: le_trans (whole_near h ok T01 c01).
  rewrite /draft /ret /= /bind /coin /worth /ret le_eqVlt; apply/orP; left; apply/eqP.
  by congr (_ * _ + _); apply: total_ext => y; rewrite complete_worth.
have one_more : g.+1%:R * eps = g%:R * eps + eps by rewrite mulrSr mulrDl mul1r.
rewrite target_worth one_more /=; case: (boolP (halt h)) => [yes|go].
  apply: le_trans (_ : worth_of s * pick (p h) (one_worth n h k) + (1 - worth_of s) * c + off <= _); last first.
    by rewrite ler_add2l ler_addr addr_ge0 // mulr_ge0 ?ler0n.
  apply: le_trans (whole_near h ok T01 c01); rewrite /ret /= /bind /coin /worth /ret le_eqVlt; apply/orP; left; apply/eqP.
  by congr (_ * _ + _); apply: total_ext => y; rewrite complete_worth.
pose D := here_coin s h * pick (left_row s h) (one_worth n h k) + (1 - here_coin s h) * c.
have D01 : 0 <= D <= 1.
  have cP := lawful_coin (here_coin01 h ok); have /andP[b0 b1] := pick01 (left_rowP h ok) T01; have /andP[c0 c1] := c01.
  pose f b := if b then pick (left_row s h) (one_worth n h k) else c.
  rewrite -[D]/(coin (here_coin s h) f); apply/andP; split; first by apply: (law_ge0 cP) => -[].
  by rewrite -(law_one cP); apply: (law_le cP) => -[].
pose rest := g%:R * eps + off.
have inner x : draft q' halt g (rcons h x) (fun xs => machine_keep s h (x :: xs) (worth p n h k c))
    <= worth_of (next s h x) * one_worth n h k x + (1 - worth_of (next s h x)) * D + rest.
  have [m [k' [k'01 -> eS]]] := after_worth n h k x; have good' := next_good h x ok.
  apply: le_trans (IH (next s h x) (rcons h x) m k' D good' (k'01 k01) D01); rewrite le_eqVlt; apply/orP; left; apply/eqP.
  have dP : lawful (draft q' halt g (rcons h x)) by apply: lawful_draft.
  apply: (law_ext dP) => xs; rewrite [LHS]/= {1}/bind; apply: (law_ext (lawful_machine_keep _ _ good')) => -[r|].
    exact: eS.
  rewrite /bind /coin /ret /= /D /pick; congr (_ * _ + _); apply: total_ext => y.
  by rewrite complete_worth.
have qP := lawful_pick (q'P go); apply: le_trans (_ : pick (q' h) (fun x => worth_of (next s h x) * one_worth n h k x
    + (1 - worth_of (next s h x)) * D) + rest <= _).
  by rewrite -[X in _ + X](law_const qP) -(law_add qP); apply: (law_le qP) => x; apply: inner.
apply: le_trans (ler_add (level_near ok go T01 c01) (lexx rest)) _.
by rewrite /rest le_eqVlt; apply/orP; left; apply/eqP; ring.
Qed.

Definition machine_verify s h xs : law R (seq V) :=
  o <~ machine_keep s h xs;; if o is Some r then ret r else y <~ pick (p' h);; ret [:: y].

Lemma keep_some_emits s h xs : good s -> surely (@nonempty V) (machine_keep s h xs).
Proof.
elim: xs s h => [|x xs IH] s h ok f f' e /=.
  apply: (law_ext (lawful_coin (whole_coin01 ok))) => -[]; last by rewrite /ret e.
  by apply: total_ext => y; rewrite /ret e.
apply: (law_ext (lawful_machine_keep _ _ (next_good h x ok))) => -[r|]; first by rewrite /ret e.
apply: (law_ext (lawful_coin (here_coin01 h ok))) => -[]; last by rewrite /ret e.
by apply: total_ext => y; rewrite /ret e.
Qed.

Lemma block_drifts g m s h : (g <= m)%N -> good s -> worth_of s = 1 -> 0 <= off ->
  drifts p (m%:R * eps + off) h (xs <~ draft q' halt g h;; machine_verify s h xs).
Proof.
move=> gm ok one off0; have kP xs := lawful_machine_keep h xs ok.
have vP xs : lawful (machine_verify s h xs).
  by apply: lawful_bind => // -[r|]; [apply: lawful_ret | apply: lawful_bind => [|y]; [apply: lawful_pick | apply: lawful_ret]].
have dP : lawful (draft q' halt g h) by apply: lawful_draft.
apply: complete_drifts.
- by apply: addr_ge0 off0; apply: mulr_ge0 eps0; apply: ler0n.
- exact: lawful_bind.
- move=> f f' e; apply: (law_ext dP) => xs; apply: (keep_some_emits h xs ok) => -[r|] /= r0; first exact: e.
  by apply: total_ext => y; rewrite /ret e.
move=> n k k01; pose c := pick (p' h) (one_worth n h k).
have c01 : 0 <= c <= 1 by apply: pick01 => //; apply: one_worth_unit.
have := keep_near g h n ok k01 c01; rewrite one mul1r subrr mul0r addr0 => near.
apply: le_trans (_ : target p n h k + (g%:R * eps + off) <= _); last first.
  by rewrite ler_add2l ler_add2r; apply: ler_wpmul2r => //; rewrite ler_nat.
apply: le_trans near; rewrite le_eqVlt; apply/orP; left; apply/eqP; apply: (law_ext dP) => xs.
apply: (law_ext (kP xs)) => -[r|] //; rewrite /bind /ret /worth /c; apply: total_ext => y.
by rewrite complete_worth.
Qed.
End Keep.
End Blocks.
