(** The rules of refengine/exact, as they run.

    Written by proofs/translate from their text; do not edit. *)

From mathcomp Require Import all_ssreflect ssralg ssrnum ssrint rat.
From Proofs Require Import Prob Python.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.


Section Rules.
Variables (R : realFieldType) (V : vocab).
Variable raised : law R (outcome V).
Variable threshold : (V -> R) -> R -> R -> R -> R.
Variable inside_log : R.

(** refengine/exact/rules/agreement.py, agreement *)
Definition py_agreement (p : seq (V -> R)) (block : flat_block R V) : answer R V :=
  let k := @ret R (outcome V) in
  let here := 0%N in
  let tokens := [::] in
  let path := [::] in
  forever raised (size (block_tokens block)).+1 (here, path, tokens) (fun '(here, path, tokens) next =>
    row_after raised p here (fun v1 =>
      ask_choose raised v1 (fun v2 =>
        let y := v2 in
        let tokens := rcons tokens y in
        let hit := (ohead [seq j <- (children_of block here) | is_token block y j]) in
        if hit is Some hit then
        let path := rcons path hit in
        let here := hit.+1 in
        next (here, path, tokens)
        else
        k (tokens, path)))).

(** refengine/exact/rules/block.py, prefix_weights *)
Definition py_prefix_weights (p : seq (V -> R)) (block : flat_block R V) (k : (seq R) -> answer R V) : answer R V :=
  let weights := ([:: 1]) in
  for_in (enumerate (block_tokens block)) weights (fun '(i, x) 'weights next out =>
    last_item raised weights (fun v1 =>
      item raised p i (fun v2 =>
        let num := (v1 * (v2 x)) in
        drawn raised block i (fun v3 =>
          let den := (v3 x) in
          let weights := rcons weights (if (num < den) then (num / den) else (if (0 < num) then 1 else 0)) in
          next weights))))
  (fun 'weights =>
    k weights).

(** refengine/exact/row.py, residual *)
Definition py_residual (p : V -> R) (q : V -> R) (k : (V -> R) -> answer R V) : answer R V :=
  k (fun z : V => (Num.max ((p z) - (q z)) 0)).

(** refengine/exact/rules/block.py, block *)
Definition py_block (p : seq (V -> R)) (block : flat_block R V) : answer R V :=
  let k := @ret R (outcome V) in
  check_chain raised block (fun _ =>
    py_prefix_weights p block (fun v1 =>
      let w := v1 in
      let gamma := (size (block_tokens block)) in
      item raised p gamma (fun v2 =>
        let rest := v2 in
        let either3 := (fun holds : bool =>
          if holds then
          ask_choose raised rest (fun v4 =>
            k (((block_tokens block) ++ [:: v4]), (iota 0 gamma)))
          else
          for_in (rev (iota 0 gamma)) (rest, None) (fun kept '(rest, _) next out =>
            item raised p kept (fun v5 =>
              item raised w kept (fun v6 =>
                drawn raised block kept (fun v7 =>
                  py_residual (fun z : V => (v6 * (v5 z))) v7 (fun v8 =>
                    let rest := v8 in
                    let either9 := (fun holds : bool =>
                      if holds then
                      out (rest, Some kept)
                      else
                      next (rest, Some kept)) in
                    if (kept == 0%N) then either9 true else
                    item raised w kept (fun v10 =>
                      ask_accept raised (total rest) (((total rest) + 1) - v10) (fun v11 =>
                        either9 v11)))))))
          (fun '(rest, kept) =>
            bound raised kept (fun kept =>
              ask_choose raised rest (fun v12 =>
                k (((take kept (block_tokens block)) ++ [:: v12]), (iota 0 kept)))))) in
        if (gamma == 0%N) then either3 true else
        item raised w gamma (fun v13 =>
          ask_accept raised v13 (1) (fun v14 =>
            either3 v14))))).

(** refengine/exact/rules/greedy.py, greedy *)
Definition py_greedy (p : seq (V -> R)) (block : flat_block R V) : answer R V :=
  let k := @ret R (outcome V) in
  let here := 0%N in
  let tokens := [::] in
  let path := [::] in
  forever raised (size (block_tokens block)).+1 (here, path, tokens) (fun '(here, path, tokens) next =>
    row_after raised p here (fun v1 =>
      argmax_row raised v1 (fun v2 =>
        let best := v2 in
        let tokens := rcons tokens best in
        let hit := (ohead [seq j <- (children_of block here) | is_token block best j]) in
        if hit is Some hit then
        let path := rcons path hit in
        let here := hit.+1 in
        next (here, path, tokens)
        else
        k (tokens, path)))).

(** refengine/exact/row.py, normalised *)
Definition py_normalised (weights : V -> R) (k : (V -> R) -> answer R V) : answer R V :=
  let mass := (total weights) in
  if (mass == 0) then
  raised
  else
  k (fun z : V => ((weights z) / mass)).

(** refengine/exact/rules/iid_candidates.py, iid_candidates *)
Definition py_iid_candidates (p : seq (V -> R)) (block : flat_block R V) : answer R V :=
  let k := @ret R (outcome V) in
  let here := 0%N in
  row_after raised p (0%N) (fun v1 =>
    let r := v1 in
    let tokens := [::] in
    let path := [::] in
    for_in (enumerate (block_tokens block)) (here, path, r, tokens) (fun '(j, x) '(here, path, r, tokens) next out =>
      item raised (block_parents block) j (fun v2 =>
        if (v2 != here) then
        next (here, path, r, tokens)
        else
        drawn raised block j (fun v3 =>
          let q := v3 in
          ask_accept raised (r x) (q x) (fun v4 =>
            if v4 then
            let tokens := rcons tokens x in
            let path := rcons path j in
            let here := j.+1 in
            row_after raised p (j.+1) (fun v5 =>
              let r := v5 in
              next (here, path, r, tokens))
            else
            py_residual r q (fun v6 =>
              py_normalised v6 (fun v7 =>
                let r := v7 in
                next (here, path, r, tokens)))))))
    (fun '(here, path, r, tokens) =>
      ask_choose raised r (fun v8 =>
        let tokens := rcons tokens v8 in
        k (tokens, path)))).

(** refengine/exact/rules/leviathan.py, leviathan *)
Definition py_leviathan (p : seq (V -> R)) (block : flat_block R V) : answer R V :=
  let k := @ret R (outcome V) in
  check_chain raised block (fun _ =>
    for_in (enumerate (block_tokens block)) tt (fun '(i, x) 'tt next out =>
      drawn raised block i (fun v1 =>
        let q := v1 in
        item raised p i (fun v2 =>
          ask_accept raised (v2 x) (q x) (fun v3 =>
            if (~~ v3) then
            item raised p i (fun v4 =>
              py_residual v4 q (fun v5 =>
                ask_choose raised v5 (fun v6 =>
                  let correction := v6 in
                  k (((take i (block_tokens block)) ++ [:: correction]), (iota 0 i)))))
            else
            next tt))))
    (fun 'tt =>
      let gamma := (size (block_tokens block)) in
      item raised p gamma (fun v7 =>
        ask_choose raised v7 (fun v8 =>
          let bonus := v8 in
          k (((block_tokens block) ++ [:: bonus]), (iota 0 gamma)))))).

(** refengine/exact/rules/nucleus.py, nucleus *)
Definition py_nucleus (p : seq (V -> R)) (block : flat_block R V) (top_p : R) (fast : bool) : answer R V :=
  let k := @ret R (outcome V) in
  for_in p [::] (fun row v1 next out =>
    keep_top_p raised top_p row (fun v2 =>
      py_normalised v2 (fun v3 =>
        next (rcons v1 v3))))
  (fun v1 =>
    let filtered := v1 in
    for_in (iota 0 (size (block_tokens block))) [::] (fun j v4 next out =>
      if (~~ (size (children_of block (j.+1)) != 0%N)) then
      next (rcons v4 j)
      else
      next v4)
    (fun v4 =>
      let leaves := v4 in
      let best := [::] in
      for_in (rev leaves) best (fun leaf 'best next out =>
        let nodes := (ancestry block (leaf.+1)) in
        let kept := 0%N in
        for_in (enumerate nodes) kept (fun '(depth, j) 'kept next out =>
          item raised (block_parents block) j (fun v5 =>
            row_after raised filtered v5 (fun v6 =>
              ask_choose raised v6 (fun v7 =>
                let y := v7 in
                item raised (block_tokens block) j (fun v8 =>
                  if (y != v8) then
                  out kept
                  else
                  let kept := kept.+1 in
                  next kept)))))
        (fun 'kept =>
          if ((size best) < kept)%N then
          let best := (take kept nodes) in
          next best
          else
          next best))
      (fun 'best =>
        let either9 := (fun v9 =>
          row_after raised filtered v9 (fun v11 =>
            let final := v11 in
            let either12 := (fun v12 =>
              let token := v12 in
              for_in best [::] (fun j v15 next out =>
                item raised (block_tokens block) j (fun v16 =>
                  next (rcons v15 v16)))
              (fun v15 =>
                k ((v15 ++ [:: token]), best))) in
            if fast then
            argmax_row raised final (fun v13 =>
              either12 v13)
            else
            ask_choose raised final (fun v14 =>
              either12 v14))) in
        if (size best != 0%N) then
        last_item raised best (fun v10 =>
          either9 (v10.+1))
        else
        either9 (0%N)))).

(** refengine/exact/row.py, without *)
Definition py_without (weights : V -> R) (token : V) (k : (V -> R) -> answer R V) : answer R V :=
  k (fun x : V => (if (x == token) then 0 else (weights x))).

(** refengine/exact/rules/point_mass.py, point_mass *)
Definition py_point_mass (p : seq (V -> R)) (block : flat_block R V) : answer R V :=
  let k := @ret R (outcome V) in
  let here := 0%N in
  row_after raised p (0%N) (fun v1 =>
    let rest := v1 in
    let tokens := [::] in
    let path := [::] in
    for_in (enumerate (block_tokens block)) (here, path, rest, tokens) (fun '(j, x) '(here, path, rest, tokens) next out =>
      item raised (block_parents block) j (fun v2 =>
        if (v2 != here) then
        next (here, path, rest, tokens)
        else
        ask_accept raised (rest x) (total rest) (fun v3 =>
          if v3 then
          let tokens := rcons tokens x in
          let path := rcons path j in
          let here := j.+1 in
          row_after raised p (j.+1) (fun v4 =>
            let rest := v4 in
            next (here, path, rest, tokens))
          else
          py_without rest x (fun v5 =>
            let rest := v5 in
            next (here, path, rest, tokens)))))
    (fun '(here, path, rest, tokens) =>
      ask_choose raised rest (fun v6 =>
        let tokens := rcons tokens v6 in
        k (tokens, path)))).

(** refengine/exact/rules/typical.py, longest_passing *)
Definition py_longest_passing (p : seq (V -> R)) (block : flat_block R V) (passing : seq bool) (k : (outcome V) -> answer R V) : answer R V :=
  let paths := [:: (0%N, [::])] in
  let likelihood := [:: (0%N, 1)] in
  zipped raised (block_tokens block) (block_parents block) (fun v1 =>
    for_in (enumerate v1) (likelihood, paths) (fun '(j, (x, parent)) '(likelihood, paths) next out =>
      let both2 := (fun holds : bool =>
        if holds then
        look_up raised paths parent (fun v3 =>
          let paths := put paths (j.+1) (v3 ++ [:: j]) in
          look_up raised likelihood parent (fun v4 =>
            row_after raised p parent (fun v5 =>
              let likelihood := put likelihood (j.+1) (v4 * (v5 x)) in
              next (likelihood, paths))))
        else
        next (likelihood, paths)) in
      item raised passing j (fun v6 =>
        if v6 then
        both2 (has_key paths parent)
        else both2 false))
    (fun '(likelihood, paths) =>
      for_in (keys paths) [::] (fun j v7 next out =>
        look_up raised paths j (fun v8 =>
          look_up raised likelihood j (fun v9 =>
            next (rcons v7 (j, ((size v8), v9, j))))))
      (fun v7 =>
        greatest raised (by_both (by_both fewer (@less R)) fewer) v7 (fun v10 =>
          let best := v10 in
          row_after raised p best (fun v11 =>
            argmax_row raised v11 (fun v12 =>
              look_up raised paths best (fun v13 =>
                k (((path_of block best) ++ [:: v12]), v13)))))))).

(** refengine/exact/rules/typical.py, typical *)
Definition py_typical (p : seq (V -> R)) (block : flat_block R V) (epsilon : R) (delta : R) : answer R V :=
  let k := @ret R (outcome V) in
  zipped raised (block_tokens block) (block_parents block) (fun v2 =>
    for_in v2 [::] (fun '(x, parent) v1 next out =>
      row_after raised p parent (fun v3 =>
        row_after raised p parent (fun v4 =>
          next (rcons v1 ((threshold v4 epsilon delta inside_log) < (v3 x))))))
    (fun v1 =>
      let passing := v1 in
      py_longest_passing p block passing (fun v5 =>
        k v5))).

(** refengine/exact/rules/typical.py, typical_inclusive *)
Definition py_typical_inclusive (p : seq (V -> R)) (block : flat_block R V) (epsilon : R) (delta : R) : answer R V :=
  let k := @ret R (outcome V) in
  zipped raised (block_tokens block) (block_parents block) (fun v2 =>
    for_in v2 [::] (fun '(x, parent) v1 next out =>
      row_after raised p parent (fun v3 =>
        row_after raised p parent (fun v4 =>
          next (rcons v1 ((threshold v4 epsilon delta (0)) <= (v3 x))))))
    (fun v1 =>
      let passing := v1 in
      py_longest_passing p block passing (fun v5 =>
        k v5))).

(** refengine/exact/rules/without_replacement.py, without_replacement *)
Definition py_without_replacement (p : seq (V -> R)) (block : flat_block R V) : answer R V :=
  let k := @ret R (outcome V) in
  let here := 0%N in
  row_after raised p (0%N) (fun v1 =>
    let r := v1 in
    let taken := [::] in
    let tokens := [::] in
    let path := [::] in
    for_in (enumerate (block_tokens block)) (here, path, r, taken, tokens) (fun '(j, x) '(here, path, r, taken, tokens) next out =>
      item raised (block_parents block) j (fun v2 =>
        if (v2 != here) then
        next (here, path, r, taken, tokens)
        else
        drawn raised block j (fun v3 =>
          let q := v3 in
          for_in taken q (fun earlier 'q next out =>
            py_without q earlier (fun v4 =>
              let q := v4 in
              next q))
          (fun 'q =>
            py_normalised q (fun v5 =>
              let q := v5 in
              ask_accept raised (r x) (q x) (fun v6 =>
                if v6 then
                let tokens := rcons tokens x in
                let path := rcons path j in
                let here := j.+1 in
                row_after raised p (j.+1) (fun v7 =>
                  let r := v7 in
                  let taken := [::] in
                  next (here, path, r, taken, tokens))
                else
                py_residual r q (fun v8 =>
                  py_normalised v8 (fun v9 =>
                    let r := v9 in
                    let taken := rcons taken x in
                    next (here, path, r, taken, tokens)))))))))
    (fun '(here, path, r, taken, tokens) =>
      ask_choose raised r (fun v10 =>
        let tokens := rcons tokens v10 in
        k (tokens, path)))).

End Rules.

Section Loops.
Variables (R : realFieldType) (V : vocab).
Variable raised : law R (seq V).

(** refengine/exact/loop.py, generate *)
Definition py_generate (target : seq V -> V -> R) (drafter : seq V -> law R (flat_block R V)) (rule : seq (V -> R) -> flat_block R V -> law R (outcome V)) (prompt : seq V) (max_new_tokens : nat) (stop : V -> bool) : law R (seq V) :=
  let k := @ret R (seq V) in
  let said := [::] in
  while_do raised max_new_tokens.+1 said (fun 'said => ((size said) < max_new_tokens)%N)
  (fun 'said next leave =>
    let prefix := (prompt ++ said) in
    run (drafter prefix) (fun v1 =>
      let block := v1 in
      run (rule (target_rows target prefix block) block) (fun v2 =>
        for_in (v2.1) said (fun token 'said next out =>
          let said := (said ++ [:: token]) in
          let either3 := (fun holds : bool =>
            if holds then
            k said
            else
            next said) in
          if (stop token) then either3 true else
          either3 ((size said) == max_new_tokens))
        (fun 'said =>
          next said))))
  (fun 'said =>
    k said).

(** refengine/exact/loop.py, plain *)
Definition py_plain (target : seq V -> V -> R) (prompt : seq V) (max_new_tokens : nat) (stop : V -> bool) : law R (seq V) :=
  let k := @ret R (seq V) in
  let said := [::] in
  while_do raised max_new_tokens.+1 said (fun 'said => ((size said) < max_new_tokens)%N)
  (fun 'said next leave =>
    ask_choose raised (target (prompt ++ said)) (fun v1 =>
      let token := v1 in
      let said := (said ++ [:: token]) in
      if (stop token) then
      leave said
      else
      next said))
  (fun 'said =>
    k said).

End Loops.
