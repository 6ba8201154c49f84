"""Every drafter of the table where checks of one drafter do not look: policies that leave nothing to draft, the text
that a policy is told, the coins of a whole request, a second request, taps in another order."""

import json
import random
import shutil
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor

from properties.helpers.coins import COINS
from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.drafters.eagle_trees import StaticTree
from refengine.decoder.loop import Session, Stop, begin, nodes
from refengine.decoder.protocols import Tokens
from refengine.engine.coins import Site
from refengine.engine.policy import Policy, grammar, pipeline, temperature
from refengine.engine.rules import RULES
from refengine.exact.law import completed, target_law, tv
from refengine.selfcheck.drafters.checks import along
from refengine.selfcheck.drafters.laws.cells import EXACT
from refengine.selfcheck.drafters.laws.exact_law import Enumeration, difference
from refengine.selfcheck.drafters.laws.memo import content
from refengine.selfcheck.drafters.laws.remembering import target_that_remembers
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES

pytestmark = pytest.mark.on_record

WORDS = range(8)  # the vocabulary of every fixture
LENGTH = 3  # tokens whose law is compared
TURNS = st.lists(st.tuples(st.lists(st.integers(0, 2), max_size=3), st.integers(0, 6)), min_size=1, max_size=4)
Turns: TypeAlias = list[tuple[list[int], int]]
# The drafters of the table, and some with options that the table's leave alone, or a tree in which siblings have
# children.
MORE = {
    **ROWS,
    "eagle1, both siblings with children": replace(
        ROWS["eagle1"], options={"plan": StaticTree(((0,), (1,), (0, 0), (1, 0)))}
    ),
    "gemma4_assistant, keys of rejected drafts": replace(
        ROWS["gemma4_assistant"], options={"gamma": 2, "stale_keys": True}
    ),
    "dspark, its head off": replace(ROWS["dspark"], options={"markov": False}),
}
PROMPTS = st.lists(st.integers(0, 6), min_size=1, max_size=6).map(tuple)


def played(name: str, policy: Policy, which: int = 0, folder: Path | None = None, **limits: Any) -> Session:
    """A session with a drafter as newly loaded, from its folder or another, under one of the rules that fit it."""
    row = MORE[name]
    target = target_that_remembers(row.target)
    drafter = row.load(target) if folder is None else row.read(folder, target, **row.options)
    rule = RULES[row.rules[which % len(row.rules)]]
    return Session(target, row.remembered(drafter), rule, policy, **{"max_new_tokens": 10**6, **limits})


# --- policies --------------------------------------------------------------------------------------------------------


Language = tuple[dict[int, dict[int, int]], int]  # the transitions, and the word that ends a text


@st.composite
def endings(draw: st.DrawFn) -> Language:
    """A grammar of three states that leave one or two words each, and the word that ends the text: nothing follows it.
    The words may be such as a drafter cannot draft, or would never draft."""
    end = draw(st.sampled_from(WORDS))
    states = st.dictionaries(st.sampled_from(WORDS).filter(lambda word: word != end), st.integers(0, 2), max_size=2)
    said = {state: draw(states) for state in range(3)}
    for words in said.values():
        if not words or draw(st.booleans()):
            words[end] = 3
    return {**said, 3: {}}, end


@pytest.mark.parametrize("name", MORE)
@settings(max_examples=6, deadline=None, derandomize=True)
@given(language=endings(), which=st.integers(0, 1))
@torch.inference_mode()
def test_a_policy_may_leave_nothing_to_draft(name: str, language: Language, which: int) -> None:
    """Kills a drafter that gives up where plain decoding goes on, because the policy leaves none of the tokens that it
    can draft, or because nothing follows a token that ends the text; and a block that is shorter for what it holds."""
    (transitions, end), row = language, MORE[name]
    policy = pipeline(grammar(transitions), temperature(1.3))
    session = played(name, policy, which, max_new_tokens=LENGTH, stop=Stop(frozenset({end})))
    found = Enumeration(session, row.prompt).rounds(2)
    assert not found.mismatches
    target = target_that_remembers(row.target)

    def alone(out: Tokens) -> tuple[float, ...]:
        return tuple(policy(begin(target, row.prompt + out, ()).logits[-1], row.prompt, out).tolist())

    law: dict[Tokens, float] = {}
    for outcome, mass in found.law.items():
        law[outcome.out] = law.get(outcome.out, 0.0) + mass
    ended = (alone, (), LENGTH, (end,))
    assert tv(completed(law, *ended), target_law(*ended)) <= EXACT


def told(logits: Tensor, prompt: Tokens, prefix: Tokens) -> Tensor:
    """A row that the text alone decides, the prompt apart from what follows it, and another for every text."""
    made = random.Random(repr((prompt, prefix)))
    row = torch.tensor([1.0 + made.random() for _ in logits], dtype=logits.dtype)
    return row / row.sum()


@pytest.mark.parametrize("name", MORE)
@settings(max_examples=3, deadline=None, derandomize=True)
@given(prompt=PROMPTS, turns=TURNS)
@torch.inference_mode()
def test_a_policy_is_told_the_text_that_a_row_follows(name: str, prompt: Tokens, turns: Turns) -> None:
    """Kills a draft's row, or a target's, that is made for the text of another node, a sibling's or a parent's, or
    for a text of which the prompt is a part: penalties and grammars would then be others than plain decoding's."""
    session = played(name, told)
    session.begin(prompt, COINS)
    for path, token in turns:
        texts = [session.out]
        session.rule = along(tuple(path), token)
        session.play(COINS)
        block, p = session.rounds[-1].block, session.rounds[-1].p
        parents = nodes(block)[1]
        for word, parent in zip(*nodes(block), strict=True):
            texts.append((*texts[parent + 1], word))
        rows = torch.stack([told(p[0], prompt, text) for text in texts])
        assert torch.equal(p, rows)
        if block.q is not None:
            assert torch.equal(block.q[0], rows[[parent + 1 for parent in parents]])


# --- coins -----------------------------------------------------------------------------------------------------------


@dataclass
class Once:
    """The coins of a whole request, none of which is tossed twice."""

    used: set[tuple[int | str, ...]] = field(default_factory=set)

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        return COINS.accept(num, den, self.new(site))

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        return COINS.choose(weights, self.new(site))

    def new(self, site: Site) -> Site:
        one = tuple(part if isinstance(part, str) else int(part) for part in site)
        assert one not in self.used, f"{one} is decided twice"
        self.used.add(one)
        return site


@pytest.mark.parametrize("name", MORE)
@settings(max_examples=3, deadline=None, derandomize=True)
@given(prompt=PROMPTS, which=st.integers(0, 1))
@torch.inference_mode()
def test_a_request_tosses_no_coin_twice(name: str, prompt: Tokens, which: int) -> None:
    """Kills a round whose coins are those of another round or of the first token: what is drawn there would follow from
    what was drawn here, and no law of a single round shows it."""
    session, coins = played(name, pipeline(temperature(1.0)), which, max_new_tokens=12), Once()
    session.begin(prompt, coins)
    while not session.done:
        session.play(coins)
    assert ("emit", len(prompt)) in coins.used


# --- requests --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MORE)
@settings(max_examples=6, deadline=None, derandomize=True)
@given(first=PROMPTS, before=TURNS, second=PROMPTS, after=TURNS)
@torch.inference_mode()
def test_a_second_request_knows_nothing_of_the_first(
    name: str,
    first: Tokens,
    before: Turns,
    second: Tokens,
    after: Turns,
) -> None:
    """Kills a table, a pool, a cache or a rejected token that outlives its request. Pools are compared too."""
    used, unused = (played(name, pipeline(temperature(1.0))) for _ in range(2))
    used.begin(first, COINS)
    for turns, token in before:
        used.rule = along(tuple(turns), token)
        used.play(COINS)
    for session in (used, unused):
        session.begin(second, COINS)
    of_a_request = [x.name for x in fields(Session) if x.name not in ("target", "drafter", "rule", "policy")]
    assert [getattr(used, x) for x in of_a_request] == [getattr(unused, x) for x in of_a_request]
    for session in (used, unused):
        session.out = (1,)  # the same anchor for both, whatever the law says
    for turns, token in after:
        for session in (used, unused):
            session.rule = along(tuple(turns), token)
            session.play(COINS)
        assert content(block_of(used)) == content(block_of(unused))
        assert not difference(used.state(), unused.state(), 0.0)
        assert pools(used) == pools(unused)


@pytest.mark.parametrize("name", ROWS)
@settings(max_examples=3, deadline=None, derandomize=True)
@given(prompt=PROMPTS, before=TURNS, after=TURNS, instead=TURNS)
@torch.inference_mode()
def test_a_snapshot_is_all_that_a_request_hangs_on(
    name: str, prompt: Tokens, before: Turns, after: Turns, instead: Turns
) -> None:
    """Kills state that a snapshot leaves out or does not restore, pools included: what comes after it comes again."""
    session = played(name, pipeline(temperature(1.0)))
    session.begin(prompt, COINS)
    forced(session, before)
    out, state = session.out, session.state()
    first = forced(session, after)
    forced(session, instead)
    session.restore(session.prompt, out, state)
    assert forced(session, after) == first


def forced(session: Session, turns: Turns) -> list[Any]:
    """What was proposed in rounds of these outcomes, and all that is held after them."""
    said = []
    for path, token in turns:
        session.rule = along(tuple(path), token)
        session.play(COINS)
        said.append((content(block_of(session)), {key: content(x) for key, x in session.state().items()}))
    return said


def block_of(session: Session) -> tuple[Any, ...]:
    block = session.rounds[-1].block
    return block.tokens, block.parents, block.q, block.sites


def pools(session: Session) -> dict[str, Any]:
    return {name: content(x) for name, x in session.state().items() if "pool." in name}


# --- taps ------------------------------------------------------------------------------------------------------------

TAPPED = ("target_layer_ids", "aux_hidden_state_layer_ids", "eagle_aux_hidden_state_layer_ids")
READERS = ("fc.weight", "input_norm.weight", "mask_hidden")  # as their names end; and one fc_norm for each tap


def said_taps(config: dict[str, Any]) -> list[list[int]]:
    """The lists of tapped layers in a config, at whatever depth."""
    own = [x for name, x in config.items() if name in TAPPED and len(x) > 1]
    return own + [taps for x in config.values() if isinstance(x, dict) for taps in said_taps(x)]


def count_of_taps(name: str) -> int:
    config = FIXTURES / ROWS[name].folder / "config.json"
    said = said_taps(json.loads(config.read_text())) if config.is_file() else []
    return len(said[0]) if said else 0


@pytest.mark.parametrize("name", [name for name in ROWS if count_of_taps(name)])
@settings(max_examples=3, deadline=None, derandomize=True)
@given(data=st.data(), prompt=PROMPTS)
@torch.inference_mode()
def test_taps_may_be_said_in_any_order(
    name: str, data: st.DataObject, prompt: Tokens, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Kills a reader that sorts what the config says, and features that are joined in another order than `fc` has them.

    The same taps in another order, the weights that read them moved along, are the same drafter.
    """
    order = data.draw(st.permutations(range(count_of_taps(name))))
    released = FIXTURES / ROWS[name].folder
    target = target_that_remembers(ROWS[name].target)
    moved = reordered(released, tmp_path_factory.mktemp("taps"), order, target.width)
    told = [played(name, pipeline(temperature(1.0)), folder=folder) for folder in (released, moved)]
    for session in told:
        session.begin(prompt, COINS)
        session.play(COINS)
    blocks = [session.rounds[0].block for session in told]
    taps = [tuple(session.drafter.taps) for session in told]
    assert taps[1] == (*(taps[0][place] for place in order), *taps[0][len(order) :])
    assert torch.equal(blocks[0].tokens, blocks[1].tokens)
    if blocks[0].q is not None and blocks[1].q is not None:
        assert float((blocks[0].q - blocks[1].q).abs().max()) < 1e-12  # sums of a few more than a hundred products


def reordered(folder: Path, into: Path, order: list[int], width: int) -> Path:
    """A copy of a checkpoint whose taps, and what reads them, stand in another order."""
    copy = Path(shutil.copytree(folder, into / "drafter"))
    config = json.loads((copy / "config.json").read_text())
    for listed in said_taps(config):
        listed[:] = [listed[place] for place in order]
    (copy / "config.json").write_text(json.dumps(config))
    tensors = load_file(copy / "model.safetensors")
    moved = {name: beside(x, order, width) if name.endswith(READERS) else x for name, x in tensors.items()}
    if "fc_norm.0.weight" in tensors:
        moved |= {f"fc_norm.{i}.weight": tensors[f"fc_norm.{j}.weight"] for i, j in enumerate(order)}
    save_file(moved, copy / "model.safetensors")
    return copy


def beside(x: Tensor, order: list[int], width: int) -> Tensor:
    """The features of the taps stand side by side on the last axis of what reads them."""
    parts = x.split(width, -1)
    return torch.cat([parts[place] for place in order], -1).contiguous()


# --- ties ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["medusa", "dflash", "eagle2"])
def test_equal_logits_go_to_the_lowest_id(name: str) -> None:
    """Kills candidates that another machine, or another build of torch, would take in another order."""
    row = ROWS[name]
    target = load_target(FIXTURES / row.target, torch.float64)  # its own: the weights of some are the drafter's too
    drafter: Any = row.load(target)
    for weight in getattr(drafter, "network", drafter).w.tensors.values():
        weight.zero_()
    session = Session(target, drafter, RULES[row.rules[0]], pipeline(), 10**6)
    session.begin((5, 4, 0, 4), COINS)
    session.play(COINS)
    tokens, parents = nodes(session.rounds[0].block)
    for parent in set(parents):
        beside = [token for token, above in zip(tokens, parents, strict=True) if above == parent]
        assert beside == [*range(len(beside))]
