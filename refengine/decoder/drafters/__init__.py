"""Drafters, one file each that reads top to bottom. How to add one:

1. `drafters/<name>.py`: a class with the six members of `refengine.decoder.protocols.Drafter`. `ar.py` is the model for
   a drafter with its own cache, `dspark.py` for one that reads the target's hidden states.
   * Keep the invariant: after `start` and after `commit` every cache holds exactly what belongs to the rows of
     prefix[:-1], however the prefix was reached. What only the anchor or later tokens decide is computed in `propose`.
   * `propose` draws with `turn.draw(q, site)` from the row `turn.row(logits, path)`, and reports that very tensor as q.
     Deterministic candidates draw nothing: `Block(tokens, parents, q=None)`, and `point_mass` judges them.
     Sites are ("draft", depth), with a third part where a depth has several candidates: ("draft", depth, node).
   * Ask for hidden states with `taps` (indices of `output_hidden_states`); `kept` in `commit` holds the rows of the
     anchor and the accepted path, in that order. Rows of rejected nodes are never shown.
   * A drafter that must run rows through the target itself (Jacobi windows) calls `target.run` and then
     `target.keep(())`. One that attends to the target's cache reads `target.kv(layer)`.
   * `state` returns all live state. Only entries named `pool.*` may depend on more than the prefix.
2. A reader in `checkpoints/`: the config, the table of tensor names and shapes that follows from it, the drafter; and
   one line in `checkpoints/load.py`.
3. `fixtures/make_<name>.py` writes a tiny trained checkpoint in the released layout; `fixtures/schemas/<name>.json`
   says which fields are known, second-hand or UNKNOWN.
4. An entry in `refengine/selfcheck/drafters/fixtures.py`, with the checkpoint's folder, and the tests against
   independent code in `checks.AGREES`: the battery (`table.CHECKS`, and planted state bugs) is then run on it. What
   cannot be tested is listed with its reason in `table.NOT_TESTED`. A drafter with state bugs of its own lists them as
   edits in `planted_bugs.py`.
"""
