"""The laws of what rules, loops and policies are made of, by name. They stand in `every.py` beside the others."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from hypothesis import strategies as st

from properties.helpers.laws import of_chance as chance
from properties.helpers.laws import of_floats as floats
from properties.helpers.laws import of_refusals as refusals
from properties.helpers.laws import of_the_definition as definition
from properties.helpers.laws.law import Law
from refengine import strategies
from refengine.bugs.checks.batches import EVERY
from refengine.exact.card import Card
from refengine.exact.rules import RULES
from refengine.exact.tables import FAMILIES

LOSSLESS = [card for card in RULES.values() if card.lossless]
PROMPTS = st.lists(st.integers(0, 1), max_size=2).map(tuple)


def laws_of_parts() -> dict[str, Law]:
    """Of what rules, loops and policies are made of."""
    found: dict[str, Law] = {}
    one_of = st.sampled_from
    seeds, up_to_two = st.integers(0, 99), st.integers(0, 2)
    for card in LOSSLESS:
        drawn = card.drawn or "iid"
        asked: dict[str, Any] = {
            "world": strategies.worlds(card.shape, card.drawn),
            "prompt": PROMPTS,
            "data": st.data(),
        }
        found[f"{card.name} runs the same in every way"] = Law(
            partial(chance.a_program_runs_the_same_in_every_way, card), asked, 10
        )
        small = strategies.worlds(card.shape, drawn, vocabulary=2, bits=3)
        asked = {"world": small, "prompt": PROMPTS, "memory": st.none() | up_to_two, "length": st.integers(1, 3)}
        found[f"merged laws of {card.name} are those of the walk"] = Law(
            partial(definition.merged_laws_are_those_of_the_walk, card), asked, 4
        )
        asked = {"case": strategies.judged(card.shape, drawn, nodes=2)}
        found[f"uniforms of vectors of {card.name} stand at edges"] = Law(
            partial(definition.uniforms_of_vectors_stand_at_edges, card), asked, 10
        )
    for pair in EVERY:
        drawn = pair.drawn or "iid"
        asked = {"pair": st.just(pair), "lanes": strategies.lanes(strategies.judged(pair.shape, pair.drawn))}
        asked |= {"off": st.tuples(floats.FINE, floats.FINE)}
        asked |= {"us": st.tuples(one_of((0.0, 0.5, 1 - 2.0**-24)), one_of((0.0, 0.5, 1 - 2.0**-53)))}
        found[f"what {pair.name} emits has mass"] = Law(floats.what_is_emitted_has_mass, asked, 8)
        asked = {"lanes": strategies.lanes(strategies.judged("tree", drawn, nodes=3), 2), "given": st.booleans()}
        weighs = partial(refusals.what_a_rule_is_not_for_is_refused, pair, pair.drawn is not None)
        found[f"what {pair.name} is not for is refused"] = Law(weighs, asked, 15)
    for name in floats.COMPILED:
        card = RULES[name]
        asked = {"lanes": floats.TILED.flatmap(cache(partial(_lanes, card))), "dtype": floats.DTYPES}
        asked |= {"seed": seeds, "rough": st.booleans()}
        found[f"the kernel of {name} is the plain text"] = Law(
            partial(floats.the_kernel_is_the_plain_text, name), asked, 8
        )
        pair = next(pair for pair in EVERY if pair.name == name)
        asked = {"lanes": asked["lanes"], "data": st.data()}
        found[f"the kernel of {name} decides as the definition"] = Law(
            partial(floats.the_kernel_decides_as_the_definition, pair), asked, 10
        )
    trees = strategies.lanes(strategies.judged("tree", "iid"))
    lanes = (
        trees | strategies.lanes(strategies.judged("chain", "iid")) | strategies.lanes(strategies.judged("tree", None))
    )
    drawn_worlds = [strategies.worlds(shape, drawn) for shape, drawn in (("tree", "iid"), ("tree", "distinct"))]
    numbers = st.integers(0, 2**32) | st.integers(0, 2**64 - 1)
    powers = st.lists(
        st.tuples(st.integers(0, 200) | st.integers(160, 200), st.integers(0, 60) | st.integers(-9, 9)),
        min_size=1,
        max_size=12,
    )
    every: dict[str, tuple[Callable[..., None], dict[str, Any], int]] = {
        "what no rule can judge is refused": (
            refusals.what_no_rule_can_judge_is_refused,
            {"lanes": trees, "data": st.data()},
            50,
        ),
        "an option that is none is refused": (
            refusals.an_option_that_is_none_is_refused,
            {"name": one_of(list(refusals.OPTIONS)), "data": st.data()},
            200,
        ),
        "odds that are none are refused": (
            chance.odds_that_are_none_are_refused,
            {"odds": chance.NO_ODDS, "weights": chance.NO_WEIGHTS},
            30,
        ),
        "coins that are none are refused": (
            chance.coins_that_are_none_are_refused,
            {"given": chance.NO_COINS, "site": chance.NO_SITE},
            30,
        ),
        "a recorded coin serves a lane once": (
            chance.a_recorded_coin_serves_a_lane_once,
            {"asked": chance.RECORDED, "left": st.booleans()},
            30,
        ),
        "a coin is that of its counter": (
            chance.a_coin_is_that_of_its_counter,
            {
                "seed": numbers,
                "lanes": chance.LANES,
                "kind": one_of(("draft", "accept", "emit", "agree")),
                "start": st.integers(0, 5000),
                "alike": st.booleans(),
                "single": st.booleans(),
            },
            50,
        ),
        "a pick has weight": (
            chance.a_pick_has_weight,
            {"weights": chance.MASSES, "share": chance.SHARES, "zeros": st.integers(0, 5)},
            150,
        ),
        "distances are what rows do not share": (
            chance.distances_are_what_rows_do_not_share,
            {"pair": strategies.VOCABULARIES.flatmap(strategies.pairs)},
            40,
        ),
        "a table drafter draws what it says": (
            definition.a_table_drafter_draws_what_it_says,
            {"world": st.one_of(drawn_worlds), "prompt": PROMPTS},
            40,
        ),
        "a truncated draft ends where it is said": (
            definition.a_truncated_draft_ends_where_it_is_said,
            {
                "world": strategies.worlds("chain", "iid"),
                "prompt": PROMPTS,
                "sixteenths": st.integers(0, 16),
                "gamma": st.integers(0, 3),
            },
            30,
        ),
        "hostile tables are of their family": (
            definition.hostile_tables_are_of_their_family,
            {
                "family": one_of(FAMILIES),
                "vocabulary": st.integers(2, 4),
                "seed": seeds,
                "prefix": PROMPTS,
            },
            40,
        ),
        "a temperature divides": (
            floats.a_temperature_divides,
            {"numbers": floats.NUMBERS, "scale": floats.SCALES},
            100,
        ),
        "the rule that fits is that of the block": (
            floats.the_rule_that_fits_is_that_of_the_block,
            {"lanes": lanes, "seed": seeds},
            30,
        ),
        "weights of prefixes do not underflow": (floats.weights_of_prefixes_do_not_underflow, {"powers": powers}, 25),
    }
    return found | {name: Law(*given) for name, given in every.items()}


def _lanes(card: Card, vocabulary: int) -> st.SearchStrategy[list[strategies.Case]]:
    return strategies.lanes(strategies.judged(card.shape, card.drawn, vocabulary), 3)
