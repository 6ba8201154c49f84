"""The laws that Hypothesis is given, each as a function of drawn cases that raises where it is broken.

`properties/exact_and_engine/test_laws.py` tries a few cases of each, the same in every run; `statistical_tests/
test_laws.py` many, and others in every run. Which laws there are follows from the cards and from the table of drafters.
"""

import sys
from fractions import Fraction
from functools import partial
from typing import Any

import torch
from hypothesis import reject, reproduce_failure
from hypothesis import strategies as st

from properties.helpers.laws.law import Law
from properties.helpers.laws.of_parts import LOSSLESS, PROMPTS, laws_of_parts
from properties.helpers.laws.of_requests import (
    ANY,
    COMPANIES,
    LONG,
    SPELLINGS,
    Ending,
    a_decode_ends_where_its_text_does,
    coin_for_coin_a_decode_is_plain,
    judged_by,
    requests_say_in_company_what_they_say_alone,
    said,
    what_no_decode_can_serve_is_refused,
)
from properties.helpers.laws.of_the_engine import (
    ragged,
    rows_of_a_block_are_the_policys_along_its_paths,
    the_engine_is_the_definition,
    the_engine_is_the_definition_in_every_round,
    the_policy_is_the_definition,
)
from properties.helpers.table_decoder import TableDrafter, TableTarget, logits
from refengine import strategies
from refengine.bugs.checks.batches import EVERY
from refengine.decoder.loop import Session, Stop, generate, plain
from refengine.decoder.protocols import Tokens
from refengine.engine.coins import Philox
from refengine.engine.policy import NothingLeft, Policy, top_k
from refengine.engine.rules import RULES as ENGINE
from refengine.exact import loop
from refengine.exact.block import Target
from refengine.exact.card import Card
from refengine.exact.chance import Record, Shifted, Uniforms, place, runs
from refengine.exact.law import completed, law, round_law, target_law, tv
from refengine.exact.row import argmax, overlap, point
from refengine.exact.rules import RULES
from refengine.selfcheck.drafters.contract import claimed, proposed
from refengine.selfcheck.drafters.laws.cells import EXACT
from refengine.selfcheck.drafters.laws.exact_law import Enumeration
from refengine.selfcheck.drafters.laws.remembering import target_that_remembers
from refengine.selfcheck.drafters.table import ROWS
from refengine.strategies import AtTheEdge, World

TOKENS = 5  # of a decode of the real loop: so many that a round follows one that accepted a draft


def promised(card: Card, target: Target) -> Target:
    """The rows that a lossless rule promises to follow."""
    if card.law == "target":
        return target
    return lambda prefix: point(argmax(row := target(prefix)), len(row))


# --- the definition --------------------------------------------------------------------------------------------------


def a_round_is_lossless(card: Card, world: World, prompt: Tokens) -> None:
    """The completed law of a round is that of as many tokens of the target, in fractions."""
    wanted = promised(card, world.target)
    emitted = round_law(world.target, world.draft, card.rule, prompt)
    assert tv(completed(emitted, wanted, prompt, 3), target_law(wanted, prompt, 3)) == 0


def the_loop_is_plain_decoding(card: Card, world: World, prompt: Tokens, length: int, stop: frozenset[int]) -> None:
    """The law of a whole decode is that of a decode without speculation, stops and limit included; no coin serves two
    decisions."""
    wanted = promised(card, world.target)

    def decoded(chance: Any) -> Tokens:
        return loop.generate(world.target, world.draft, card.rule, prompt, length, Record(chance), stop)

    said = law(decoded)
    assert said == law(lambda chance: loop.plain(wanted, prompt, length, chance, stop))
    assert said == target_law(wanted, prompt, length, stop)


def a_decode_goes_on_where_a_round_ended(
    card: Card, world: World, prompt: Tokens, length: int, data: st.DataObject
) -> None:
    """A coin belongs to a place of the text: who asks from the end of the first round on says the same."""
    coins = AtTheEdge(data.draw)
    whole = loop.generate(world.target, world.draft, card.rule, prompt, length, coins)
    again = Uniforms(coins.table)
    said = loop_round(card, world, prompt, Shifted(again, len(prompt)))[:length]
    said += loop.generate(world.target, world.draft, card.rule, prompt + said, length - len(said), again)
    assert (said, again.unused()) == (whole, [])


def the_first_candidate_is_kept_as_often_as_rows_allow(card: Card, world: World, prompt: Tokens) -> None:
    """With probability 1 - TV(p, q) where it is drawn from q, with p(x) where nobody drew it."""
    single = World(world.table, (1,), world.drawn, ((0,), (-1,)))
    p, q = world.target(prompt), world.draft_row(prompt)
    kept = law(lambda chance: len(loop_round(card, single, prompt, chance)) > 1)
    assert kept.get(True, 0) == (overlap(p, q) if world.drawn else p[0])


def loop_round(card: Card, world: World, prompt: Tokens, chance: Any) -> Tokens:
    block = world.draft(prompt, chance)
    rows = [world.target(prompt + block.path(node)) for node in range(-1, len(block.tokens))]
    return card.rule(rows, block, chance).tokens


def lengths_are_sums_of_products(world: World, prompt: Tokens) -> None:
    """Expected tokens of a round of `leviathan`: 1 + the sum over k of the mass of min(p, q) along k drafts."""

    def below(prefix: Tokens, left: int) -> Fraction:
        kept = zip(world.target(prefix), world.draft_row(prefix), strict=True) if left else ()
        return sum((min(p, q) * (1 + below((*prefix, x), left - 1)) for x, (p, q) in enumerate(kept)), Fraction(0))

    lengths = law(lambda chance: len(loop_round(RULES["leviathan"], world, prompt, chance)))
    assert sum(length * weight for length, weight in lengths.items()) == 1 + below(prompt, len(world.where))


# --- the decoder -----------------------------------------------------------------------------------------------------


def the_decoder_is_plain_decoding(
    card: Card, world: World, policy: strategies.Policy, prompt: Tokens, stop: frozenset[int]
) -> None:
    """The real loop on a table: its exact law under a policy is the policy's own, whatever is accepted on the way, and
    it ends with nothing left behind the same tokens."""
    size = len(world.table[0][0])
    rule = judged_by(card.name, policy.engine)

    def row(out: Tokens) -> tuple[Any, ...]:  # with one token more, for the end
        try:
            return (*rule(logits(world.target(prompt + out)), prompt, out).tolist(), 0.0)
        except NothingLeft:
            return (*[0.0] * size, 1.0)

    play = Ending(
        TableTarget(world.target, size), TableDrafter(world, size), ENGINE[card.name], rule, TOKENS, Stop(stop)
    )
    found = Enumeration(play, prompt).rounds(3)
    assert not found.mismatches
    emitted: dict[Tokens, float] = {}
    for outcome, weight in found.law.items():
        emitted[outcome.out] = emitted.get(outcome.out, 0.0) + weight
    ends = stop | {size}
    assert tv(completed(emitted, row, (), TOKENS, ends), target_law(row, (), TOKENS, ends)) < EXACT


def session_of(name: str, policy: Policy, length: int) -> Session:
    row = ROWS[name]
    target = target_that_remembers(row.target)
    return Session(target, row.remembered(row.load(target)), ENGINE[row.rules[0]], policy, length)


@torch.inference_mode()
def draws_have_the_law_that_is_reported(name: str, prompt: Tokens, policy: strategies.Policy) -> None:
    """The q-contract: every block comes as often as its reported rows say, whatever the policy leaves, and with the
    coins of the sites that it reports."""
    narrow = top_k(2)
    play = session_of(name, lambda before, *history: policy.engine(narrow(before, *history), *history), 9)
    try:
        play.begin(prompt, COINS)
    except ValueError:  # the policy bans every token
        reject()
    start = len(play.prompt + play.out)
    for block, weight, trace in runs(partial(proposed, play, play.state())):
        assert abs(float(weight) - claimed(block)) < EXACT
        reported = [(kind, place(kind, depth, start), *candidate) for kind, depth, *candidate in block.sites]
        assert [decision.site for decision in trace] == reported


@torch.inference_mode()
def greedy_decoding_is_plain(name: str, prompt: Tokens, policy: strategies.Policy) -> None:
    """The same tokens as without speculation, where the last step of a policy is greedy; and as many of them where
    nothing is left."""
    rule = judged_by("greedy", policy.engine)
    play, target = session_of(name, rule, 12), target_that_remembers(ROWS[name].target)
    wanted = said(lambda length: plain(target, rule, prompt, length, COINS), 12)
    assert said(lambda n: generate(play.target, play.drafter, play.rule, rule, prompt, n, COINS).tokens, 12) == wanted


# --- all of them -----------------------------------------------------------------------------------------------------

COINS = Philox(5, torch.tensor([0]))
STARTS = st.lists(st.integers(0, 1), min_size=1, max_size=2).map(tuple)
STOPS = st.frozensets(st.integers(0, 1), max_size=1)
TEXTS = st.lists(st.integers(0, 6), min_size=1, max_size=6).map(tuple)  # 7 is the fixtures' mask token
NARROW = {"vocabulary": 2, "bits": 3}  # of whole decodes, whose laws are many times larger than a round's


def laws() -> dict[str, Law]:
    """Every law by its name."""
    found: dict[str, Law] = {}
    for card in LOSSLESS:
        worlds = strategies.worlds(card.shape, card.drawn)
        small = strategies.worlds(card.shape, card.drawn, **NARROW)
        found |= {
            f"{card.name} is lossless": Law(
                partial(a_round_is_lossless, card), {"world": worlds, "prompt": PROMPTS}, 120
            ),
            f"the loop of {card.name} is plain decoding": Law(
                partial(the_loop_is_plain_decoding, card),
                {"world": small, "prompt": PROMPTS, "length": st.integers(0, 3), "stop": STOPS},
                80,
            ),
            f"the loop of {card.name} goes on where a round ended": Law(
                partial(a_decode_goes_on_where_a_round_ended, card),
                {"world": worlds, "prompt": PROMPTS, "length": st.integers(1, 4), "data": st.data()},
                15,
            ),
            f"the decoder under {card.name} is plain decoding": Law(
                partial(the_decoder_is_plain_decoding, card),
                {
                    "world": small,
                    "policy": strategies.policies(2),
                    "prompt": STARTS,
                    "stop": STOPS,
                },
                20,
            ),
        }
        if card.law == "target":
            found[f"{card.name} keeps a first draft as often as rows allow"] = Law(
                partial(the_first_candidate_is_kept_as_often_as_rows_allow, card),
                {"world": worlds, "prompt": PROMPTS},
                100,
            )
    found["a round of leviathan is as long as its formula"] = Law(
        lengths_are_sums_of_products, {"world": strategies.worlds("chain", "iid"), "prompt": PROMPTS}, 60
    )
    asked: dict[str, Any]
    for pair in EVERY:
        found[f"engine = exact: {pair.name}"] = Law(
            partial(the_engine_is_the_definition, pair), {"lanes": ragged(pair), "data": st.data()}, 70
        )
        if RULES.get(pair.name) in LOSSLESS:
            asked = {"world": strategies.worlds(pair.shape, pair.drawn), "prompt": PROMPTS}
            found[f"engine = exact in every round: {pair.name}"] = Law(
                partial(the_engine_is_the_definition_in_every_round, pair), asked, 40
            )
    policies = {"pipelines": (strategies.policies(), strategies.weights(), 150)}
    policies["filters at edges"] = strategies.filters_at_their_edges(4), strategies.even_weights(4), 60
    policies |= {name: (strategies.policies(only=name), strategies.weights(), 30) for name in strategies.STEPS}
    for name, (policy, weights, quick) in policies.items():
        asked = {"asked": strategies.asked(policy), "weights": weights}
        found[f"engine = exact: the policy {name}"] = Law(the_policy_is_the_definition, asked, quick)
    found["rows of a block are the policy's along its paths"] = Law(
        rows_of_a_block_are_the_policys_along_its_paths,
        {"case": strategies.judged("tree", "iid", 3), "asked": strategies.asked(strategies.policies(3), 3)},
        100,
    )
    one = {"one": LONG, "spelling": st.sampled_from(SPELLINGS), "data": st.data()}
    found["a decode ends where its text does"] = Law(a_decode_ends_where_its_text_does, one, 60)
    company = {"company": COMPANIES}
    found["requests say in company what they say alone"] = Law(
        requests_say_in_company_what_they_say_alone, company, 160
    )
    found["coin for coin a decode is plain"] = Law(
        coin_for_coin_a_decode_is_plain, {"one": ANY, "stop": STOPS, "drafts": st.booleans()}, 40
    )
    outside = st.sampled_from((-1, 3, 4, -3))  # of a vocabulary of three tokens
    found["what no decode can serve is refused"] = Law(
        what_no_decode_can_serve_is_refused, {"one": ANY, "other": ANY, "token": outside}, 20
    )
    for name in ROWS:
        asked = {"prompt": TEXTS, "policy": strategies.policies(8, most=2)}
        found[f"the q of {name} is what it draws from"] = Law(
            partial(draws_have_the_law_that_is_reported, name), asked, 4
        )
        found[f"greedy decoding with {name} is plain"] = Law(partial(greedy_decoding_is_plain, name), asked, 3)
    return found | laws_of_parts()


LAWS = laws()


if __name__ == "__main__":  # python -m properties.helpers.laws.every NAME VERSION BLOB: a failure once more
    name, version, blob = sys.argv[1:]
    reproduce_failure(version, blob.encode())(LAWS[name].test())()
