"""How far exact laws reach: (V, gamma, rounds) for which merged laws fit into a minute, beside the walk of every path.

    python -m benchmarks.frontier [--seconds 60] [--out benchmarks/results/frontier.json]

On tables whose rows look back one token, in Fractions: the law of the first `rounds` tokens of as many rounds, the
fewest of which all rounds take part. `paths` is what a walk would take for the first round alone; where it is short
enough it is walked in the same run, and the ratio of processor times is given. `TV` is the distance of the completed
law from the target's, which is 0 exactly. For every rule, vocabulary and number of rounds gamma grows until a law takes
longer than --seconds of processor time: the last that did not is the frontier.

On networks, in float64: three rounds of the decoder's own loop with a draft model of V = 8 under a policy that leaves
two tokens, states merged where their caches equal a recompute; mismatches, and the TV, are rounding or defects.
"""

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.turns import OverTheLimit, at_most, keep, processor_seconds
from refengine.exact import drafters
from refengine.exact.law import round_law, target_law, tv
from refengine.exact.merged import Rounds
from refengine.exact.rules import RULES
from refengine.exact.tables import tables

CHAIN_RULES = ("leviathan", "iid_candidates", "agreement", "block")
VOCABULARIES, GAMMAS, ROUNDS = (2, 4, 8), (1, 2, 3, 4, 6, 8, 12, 16), (1, 3)
WALKED_PATHS = 20_000  # that a walk may have here
NETWORK_GAMMAS, NETWORK_TOKENS = (2, 4, 6), 4


def paths(vocabulary: int, gamma: int) -> int:
    """Of one round of the ratio rule on rows without zeros: each draft, and what is emitted after each accept count."""
    return vocabulary**gamma * (gamma + 1) * vocabulary


def loop(rule: str, vocabulary: int, gamma: int) -> Rounds:
    target, draft = tables("generic", vocabulary, 1)
    return Rounds(target, draft, "sampled_chain", gamma, RULES[rule].rule, memory=1)


def on_tables(rule: str, vocabulary: int, gamma: int, rounds: int) -> dict[str, Any]:
    """One law, and the walk of one round beside it where that is short."""
    made, runs = loop(rule, vocabulary, gamma), []
    law = made.completed((0,), rounds, rounds, runs)
    seconds = processor_seconds(lambda: made.completed((0,), rounds, rounds))
    row = {"rule": rule, "V": vocabulary, "gamma": gamma, "rounds": rounds, "seconds": round(seconds, 4)}
    distance = tv(law, target_law(made.plain, (0,), rounds))
    row |= {"runs": sum(runs), "paths": paths(vocabulary, gamma), "TV": str(distance)}
    if rounds == 1 and row["paths"] <= WALKED_PATHS:
        drafter = drafters.sampled_chain(lambda prefix: made.draft(made.seen(prefix)), gamma)
        walk = processor_seconds(lambda: round_law(made.plain, drafter, made.rule, (0,)))
        row |= {"walk seconds": round(walk, 4), "walk / merged": round(walk / seconds, 2)}
    return row


def reached(rule: str, vocabulary: int, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Every gamma up to the first that does not fit."""
    rows: list[dict[str, Any]] = []
    for gamma in GAMMAS:
        try:
            with at_most(seconds):
                rows.append(on_tables(rule, vocabulary, gamma, rounds))
        except OverTheLimit:
            rows.append({"rule": rule, "V": vocabulary, "gamma": gamma, "rounds": rounds, "over": seconds})
        print(json.dumps(rows[-1]), flush=True)
        if "over" in rows[-1]:
            break
    return rows


def on_networks(seconds: float) -> list[dict[str, Any]]:
    """Three rounds of the decoder's loop with a draft model, by how much it drafts."""
    from refengine.decoder.drafters.ar import AR
    from refengine.selfcheck.drafters.laws import cells
    from refengine.selfcheck.drafters.laws.exact_law import Enumeration
    from refengine.selfcheck.drafters.laws.remembering import target_that_remembers

    rows: list[dict[str, Any]] = []
    for gamma in NETWORK_GAMMAS:
        cell = cells.Cell("ar", "top-k", prompt=cells.ROWS["ar"].prompt, length=NETWORK_TOKENS, rounds=3)
        play = cells.session(cell)
        play.drafter = AR(target_that_remembers("tiny/ar"), gamma)
        enumeration = Enumeration(play, cell.prompt)
        row: dict[str, Any] = {"drafter": "ar", "V": 8, "support": 2, "gamma": gamma, "rounds": 3}
        try:
            with at_most(seconds):
                begun = time.process_time()
                law = enumeration.rounds(3)
                row["seconds"] = round(time.process_time() - begun, 3)
            row |= {"runs": law.runs, "states compared": law.compared, "mismatches": len(law.mismatches)}
            row["TV"] = float(tv(cells.completed(cell, law), cells.target_law(cell)))
        except OverTheLimit:
            row["over"] = seconds
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time that a law may take")
    parser.add_argument("--rule", choices=CHAIN_RULES, action="append")
    parser.add_argument("--no-networks", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found: dict[str, Any] = {"seconds": given.seconds, "tables": [], "networks": []}
    for rule, vocabulary, rounds in itertools.product(given.rule or CHAIN_RULES, VOCABULARIES, ROUNDS):
        found["tables"] += reached(rule, vocabulary, rounds, given.seconds)
        keep(given.out, found)
    if not given.no_networks:
        found["networks"] = on_networks(given.seconds)
        keep(given.out, found)


if __name__ == "__main__":
    main()
