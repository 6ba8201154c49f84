"""The engine's lossless rules at length: up to 10^10 rounds of each, in shards of one campaign."""

from functools import partial

import numpy as np

from refengine.audit.at_length import Judged, counted, judged
from refengine.audit.inputs.case import Case
from refengine.evidence.alpha import ALPHA
from refengine.jobs.campaign import Counts, merged
from refengine.jobs.ranges import Range, batches, coins, split
from refengine.jobs.run import Job
from refengine.report.finding import Finding, Recipe
from refengine.selfcheck.rounds import LANES, LOSSLESS, batch, table

SHARD = 1 << 19  # rounds: some seconds
VOCABULARIES = (5, 16)
METHOD = "evidence of the counts by input, site and token; {rounds:,} rounds, half at V = 5 and half at V = 16; alpha"


def inputs(rule: str, seed: int) -> list[Case]:
    return [table(seed + vocabulary, vocabulary, LOSSLESS[rule][2]) for vocabulary in VOCABULARIES]


def jobs(rules: list[str], rounds: int, seed: int) -> list[Job]:
    """The shards: rule by rule and input by input they share one counter out, so that no coin is thrown twice."""
    made, first, each = list[Job](), 0, -(-rounds // len(VOCABULARIES))
    for rule in rules:
        for which, vocabulary in enumerate(VOCABULARIES):
            for lanes in split(Range(first, each), SHARD):
                name = f"{rule}, V = {vocabulary}, rounds from {lanes.first}"
                made.append(Job(name, partial(shard, rule, which, lanes, seed)))
            first += each
    return made


def shard(rule: str, which: int, lanes: Range, seed: int) -> Counts:
    """The counts of one shard, under the name of its rule and input."""
    item, (verify, draft, _) = inputs(rule, seed)[which], LOSSLESS[rule]
    counts = np.zeros((item.p.size // item.vocabulary, item.vocabulary), dtype=np.int64)
    for some in batches(lanes, LANES):
        thrown = coins(seed, some)
        counts += counted(item, thrown.requests.numpy() % item.lanes, batch(draft, verify, item, thrown))
    return {_key(rule, item): counts.ravel().tolist()}


def findings(rules: list[str], rounds: int, seed: int, counts: Counts) -> list[Finding]:
    """One for each rule; alpha is shared out among them."""
    alpha = ALPHA / len(rules)
    return [_finding(rule, _judged(rule, seed, counts, alpha), rules, rounds, seed, alpha) for rule in rules]


def again(rules: list[str], rounds: int, seed: int) -> list[Finding]:
    """The whole campaign in this process."""
    return findings(rules, rounds, seed, merged(job.call() for job in jobs(rules, rounds, seed)))


def _judged(rule: str, seed: int, counts: Counts, alpha: float) -> Judged:
    items = inputs(rule, seed)
    return judged(items, {item.name: counts[_key(rule, item)] for item in items}, alpha)


def _finding(rule: str, found: Judged, rules: list[str], rounds: int, seed: int, alpha: float) -> Finding:
    return Finding(
        id=f"campaign.engine/{rule}",
        subject=f"refengine.engine.rules.{rule}",
        claim="Each emitted token is distributed as the target's row after what was emitted before it.",
        source="refengine.exact.rules",
        verdict="violated" if found.accused else "consistent",
        method=f"{METHOD.format(rounds=rounds)} {alpha:.2g}; "
        f"a TV of {found.seen:.2g} at the site visited most is seen with probability 0.99",
        recipe=Recipe(function=f"{__name__}:again", arguments={"rules": rules, "rounds": rounds, "seed": seed}),
        numbers=found.numbers(),
        witness=found.farthest if found.accused else None,
    )


def _key(rule: str, item: Case) -> str:
    return f"{rule}/{item.name}"
