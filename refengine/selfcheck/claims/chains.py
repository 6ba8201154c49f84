"""The chains that tie theorems to running code: Coq's definition = the exact text = the engine = the decoder's law.

One chain per rule and way of drafting. Every link is a test of this repository; a claim rests on the chains of the
rules that its theorems are about. The standard library alone: listing claims loads no torch.
"""

import json
from collections.abc import Sequence

from refengine.exact.rules import RULES
from refengine.source_tree import RESULTS, ROOT

TRUNCATED = ("causal", "stopping", "retrospective")  # ways of drafting; the rules behind them have chains of their own
CHAINS = (*RULES, *TRUNCATED)


def theory(chain: str) -> str:
    """The file of the theorems on a rule, named as the rule's file is: point_mass -> PointMass."""
    return "".join(word.capitalize() for word in RULES[chain].file.split("_"))


# Files in which every rule has theorems of its name.
RUNNING = ("Loops", *sorted(file.stem for file in (ROOT / "proofs" / "rocq").glob("Running*.v")))

# How a theorem `File.name` begins -> the chains that it speaks of; the longest beginning counts.
ABOUT = {
    **{f"{theory(rule)}.": tuple(r for r in RULES if theory(r) == theory(rule)) for rule in RULES},
    "Siblings.": ("iid_candidates", "without_replacement"),
    "Truncation.causal": ("causal",),
    "Truncation.stopping": ("stopping",),
    "Counterexamples.retrospective": ("retrospective",),
    "Typical.nucleus": ("nucleus",),
    "Medusa.": ("typical", "typical_inclusive"),
    "Medusa.nucleus": ("nucleus",),
    "Optimality.block": ("block",),
    "Optimality.transport": ("leviathan", "iid_candidates"),
    "Length.": ("leviathan",),
    "Mixtures.random_drafter": ("leviathan",),
    "Mixtures.random_tree": ("point_mass",),
    **{f"{file}.{chain}_": (chain,) for chain in CHAINS for file in RUNNING},
    "Loops.causal_block_": ("causal", "block"),
    "Loops.stopping_block_": ("stopping", "block"),
}

COQ = ("proofs/test_bridge.py::test_exact_is_what_coq_said", "proofs/test_bridge.py::test_coq_still_says_so")
ENGINE = ("proofs/test_bridge.py::test_engine_is_what_coq_said",)
TWINS = "properties/exact_and_engine/test_engine_laws.py::test_enumerated_engine_is_the_exact_law_decision_by_decision"
LOOP = "properties/decoder/test_law.py::test_the_loop_has_the_targets_law"
FEW = "/mixed/stop", "/mixed/truncated"  # how the short cells are named: with steps of several policies, stopped or cut


def cells() -> dict[str, str]:
    """Chain -> the first drafter's cell of it whose exact law is on record: "ar/block/mixed/stop"."""
    file = RESULTS / "cells.json"
    names = [name.removeprefix("law ") for name in (json.loads(file.read_text()) if file.is_file() else ())]
    short = [cell for cell in reversed(names) if cell.endswith(FEW)]
    return {"causal" if cell.endswith(FEW[1]) else cell.split("/")[1]: cell for cell in short}


# The last link of a chain. Rules without an exact law of the loop, and lossy ones, have tests of their own.
DECODED = {
    **{chain: f"{LOOP}[{cell}]" for chain, cell in cells().items()},
    "greedy": "properties/decoder/test_state.py::test_the_greedy_rule_in_the_loop_is_plain_greedy_decoding",
    "typical": "properties/drafters/test_medusa.py::test_a_sampled_run",
    "nucleus": "properties/drafters/test_medusa.py::test_a_sampled_run",
}


def chains_of(theorems: Sequence[str]) -> tuple[str, ...]:
    """The chains of theorems given as `File.theorem`, in the order of CHAINS."""
    keys = (max(filter(theorem.startswith, ABOUT), key=len, default=None) for theorem in theorems)
    wanted = {chain for key in keys if key for chain in ABOUT[key]}
    return tuple(chain for chain in CHAINS if chain in wanted)


def links(chain: str) -> dict[str, tuple[str, ...]]:
    """Each link with its tests. No drafter of the decoder uses a rule whose last link is missing."""
    twins = () if chain in TRUNCATED else (TWINS,)
    decoder = {"engine = decoder": (DECODED[chain],)} if chain in DECODED else {}
    return {"Coq = exact": COQ, "exact = engine": (*ENGINE, *twins), **decoder}


def texts(chain: str) -> tuple[str, ...]:
    """What is held equal, from the proof to the program: "Coq", "exact", "engine" and, where one uses it, "decoder"."""
    return tuple(dict.fromkeys(text for link in links(chain) for text in link.split(" = ")))


def files(chain: str) -> tuple[str, ...]:
    """The files that the first two links run through: the exact text's, then the engine's."""
    if chain in TRUNCATED:
        return ("refengine.exact.rules.truncation",)
    return tuple(f"refengine.{text}.rules.{RULES[chain].file}" for text in ("exact", "engine"))
