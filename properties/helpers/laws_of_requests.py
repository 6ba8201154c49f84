"""Laws of whole requests on tables, token for token: where they end, what company does to them, what is refused.

They stand in `laws.py` beside the others; each draws its coins from `Philox`, which are the same alone and in company.
"""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import strategies as st

from properties.helpers.table_decoder import TableDrafter, TableTarget
from refengine import strategies
from refengine.bugs.checks.batches import batch
from refengine.decoder.batch import Batch
from refengine.decoder.loop import Session, Stop, generate
from refengine.decoder.protocols import Tokens
from refengine.engine.block import NOTHING
from refengine.engine.check import check_rows
from refengine.engine.coins import Philox
from refengine.engine.policy import pipeline, presence_penalty
from refengine.engine.rules import RULES as ENGINE
from refengine.exact.rules import RULES
from refengine.strategies import Case, World

SIZE, POLICY = 3, pipeline(presence_penalty(0.5))
NEVER = Stop()
STARTS = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=2).map(tuple)


@dataclass(frozen=True)
class Request:
    """A decode by a rule. joins: before which step of a batch it comes."""

    world: World
    rule: str
    prompt: Tokens
    length: int
    seed: int
    joins: int

    def session(self) -> Session:
        parts = TableTarget(self.world.target, SIZE), TableDrafter(self.world, SIZE)
        return Session(*parts, ENGINE[self.rule], POLICY, self.length)

    @property
    def coins(self) -> Philox:
        return Philox(self.seed, torch.tensor([0]))

    def alone(self, stop: Stop = NEVER) -> Tokens:
        one = self.session()
        return generate(one.target, one.drafter, one.rule, POLICY, self.prompt, self.length, self.coins, stop).tokens


def requests(rule: str) -> st.SearchStrategy[Request]:
    worlds = strategies.worlds(RULES[rule].shape, RULES[rule].drawn, SIZE)
    lengths = st.sampled_from((2, 8, 5, 3, 1))
    return st.builds(Request, worlds, st.just(rule), STARTS, lengths, st.integers(0, 99), st.integers(0, 3))


LOSSLESS = st.sampled_from([card.name for card in RULES.values() if card.lossless])
ANY = LOSSLESS.flatmap(requests)
COMPANIES = LOSSLESS.flatmap(lambda rule: st.lists(requests(rule), min_size=2, max_size=3))


SPELLED = ("a", "ba", "")  # the tokens: letters that they share, several of one, none


def text_of(tokens: Tokens) -> str:
    return "".join(SPELLED[token] for token in tokens)


def a_decode_ends_where_its_text_does(one: Request, data: st.DataObject) -> None:
    """After the first token that is a stop token, or whose text completes a stop string, of any length: an unstopped
    decode with the same coins says the rest."""
    whole = one.alone()
    assert len(whole) == one.length
    text = text_of(whole)
    start = data.draw(st.integers(0, len(text)), label="where a stop string begins in the text")
    string = text[start : start + data.draw(st.integers(1, 4), label="its length")]
    stops = data.draw(st.frozensets(st.integers(0, SIZE - 1), max_size=1), label="stop tokens")
    strings = (string,) if string else ()
    ends = [
        n for n in range(1, len(whole) + 1) if whole[n - 1] in stops or any(s in text_of(whole[:n]) for s in strings)
    ]
    said = one.alone(Stop(stops, strings, text_of))
    assert said == whole[: ends[0] if ends else len(whole)]


def requests_say_in_company_what_they_say_alone(company: list[Request]) -> None:
    """Each with its own coins, in one batch, ragged in everything: prompts, blocks, paths, when they come and end."""
    together, sessions = Batch(), [one.session() for one in company]
    for now in range(4 + max(one.length for one in company)):
        for one, session in zip(company, sessions, strict=True):
            if one.joins == now:
                together.join(session, one.prompt, one.coins)
        together.step()
    assert [session.out for session in sessions] == [one.alone() for one in company]


FAULTY_ROWS = {
    "NaN": lambda row: row.index_fill(0, torch.tensor([0]), float("nan")),
    "infinite": lambda row: row.index_fill(0, torch.tensor([0]), float("inf")),
    "too light": lambda row: row / 2,
    "too heavy": lambda row: row * 2,
    "negative": lambda row: torch.cat((row[:1] + 2, row[1:-1], row[-1:] - 2)),  # of two tokens at least
}


def what_no_rule_can_judge_is_refused(lanes: list[Case], data: st.DataObject) -> None:
    """One fault in a sound batch, and its lane is named; whatever stands where nothing was drafted is none."""
    p, block = batch(lanes)
    check_rows(p, block)
    lane = data.draw(st.integers(0, len(lanes) - 1), label="lane")
    parents, vocabulary = lanes[lane].block.parents, p.shape[2]
    with_children = sorted({node for node in parents if node >= 0})
    nodes = {"row of p": range(-1, len(parents)), "token": range(len(parents)), "parent": range(len(parents))}
    nodes |= {"row of q": range(len(parents) if block.q is not None else 0), "no token before its child": with_children}
    kind = data.draw(st.sampled_from([kind for kind, some in nodes.items() if some]), label="fault")
    node = data.draw(st.sampled_from(nodes[kind]), label="node")
    if kind.startswith("row"):
        rows = [name for name in FAULTY_ROWS if name != "negative" or vocabulary > 1]
        row = p[lane, node + 1] if kind == "row of p" else block.q[lane, node]
        row.copy_(FAULTY_ROWS[data.draw(st.sampled_from(rows), label="row")](row.clone()))
    elif kind == "parent":
        beyond = sorted({node, node + 1, block.tokens.shape[1] - 1, 99, -2})
        block.parents[lane, node] = data.draw(st.sampled_from(beyond), label="parent")
    elif kind == "token":
        block.tokens[lane, node] = data.draw(st.sampled_from((-2, vocabulary)), label="token")
    else:
        block.tokens[lane, node] = NOTHING
    with pytest.raises(ValueError, match=f"lane {lane}"):
        check_rows(p, block)
