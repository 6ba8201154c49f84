"""Drafters, one file each that reads top to bottom. A new one is six files of one name:

1. `decoder/drafters/<name>.py`: a class with the six members of `refengine.decoder.protocols.Drafter`. `ar.py` is the
   model for a drafter with its own cache, `dspark.py` for one that reads the target's hidden states.
   * Keep the invariant: after `start` and after `commit` every cache holds exactly what belongs to the rows of
     prefix[:-1], however the prefix was reached. What only the anchor or later tokens decide is computed in `propose`.
   * A chain is drawn with `rows.DrawnChain(turn)`: `draw(logits)` for each token, until it says False, then `block()`.
     It draws from the row that the policy makes of the logits and reports that very row as q. A tree does the same by
     hand, see `StaticTree` in `eagle_trees.py`: sites are ("draft", depth, node) where a depth has several candidates.
     Deterministic candidates draw nothing: `rows.point_block(tokens, parents, device)`, and `point_mass` judges them.
   * Ask for hidden states with `taps` (indices of `output_hidden_states`); `kept` in `commit` holds the rows of the
     anchor and the accepted path, in that order. Rows of rejected nodes are never shown.
   * A drafter that must run rows through the target itself (Jacobi windows) calls `target.run` and then
     `target.keep(())`. One that attends to the target's cache reads `target.kv(layer)`; `target.lends` has its
     embeddings and head.
   * `state` returns all live state. Only entries named `pool.*` may depend on more than the prefix.
2. `decoder/checkpoints/layouts/<name>.py`: the config, the table of tensor names and shapes that follows from it, the
   drafter, and `LAYOUTS`: how a folder is recognised, and `load`, whose keywords are the options that the layout takes.
   `load` calls `refuse_unread(config)`, which refuses fields that change what a drafter computes and are not read here.
   (A drafter without files is a line of `WITHOUT_WEIGHTS` in `checkpoints/load.py` instead.)
3. `fixtures/make_<name>.py` writes a tiny trained checkpoint in the released layout to `fixtures/<name>/`. The tensors
   that its training starts from are made by its `start(name)`, or by a function of the script `untrained` beside it.
4. `fixtures/schemas/<name>.json` says of every field of the config, `architectures` and `torch_dtype` too, whether it
   is known, second-hand or UNKNOWN, and under `fixtures` what does not apply ("layers": "none", "angles": "none").
5. `selfcheck/drafters/rows/<name>.py`: its `ROWS` of the table, see `selfcheck/drafters/row.py`. The battery (damage of
   the checkpoint, exact law, planted state bugs) is then run on it; what cannot be tested has its reason there.
6. `properties/drafters/test_<name>.py`: tests against independent code, marked `@pytest.mark.peer("<row>")`.

A further layout of a drafter is three files, 2, 3 and 6, a row beside the others in 5, and its schema. All else is a
listing of these folders. A drafter without a row, and a layout without `LAYOUTS`, are errors of the import. Tests then
ask for prose and data: the drafter's line in docs/decoder.md, and in `commands/released.toml` the layout's released
pairs, or that there are none.
"""
