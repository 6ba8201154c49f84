"""Medusa: recordings of the official code (fixtures/golden/README.md), round by round in its three modes."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from random import Random
from typing import Any, TypeAlias

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from properties.helpers.close import assert_close
from properties.helpers.coins import COINS
from refengine.decoder import load_drafter, load_target
from refengine.decoder.drafters.medusa import Medusa
from refengine.decoder.drafters.medusa_trees import TREES, ordered
from refengine.decoder.loop import Session, nodes
from refengine.decoder.protocols import Tokens
from refengine.decoder.rows import point_block, tree_rows
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.block import Block
from refengine.engine.coins import Site
from refengine.engine.policy import greedy as greedy_policy
from refengine.engine.policy import pipeline, temperature
from refengine.engine.rules.greedy import greedy
from refengine.engine.rules.nucleus import nucleus
from refengine.engine.rules.point_mass import point_mass
from refengine.engine.rules.typical import typical
from refengine.exact.chance import DEPTHS
from refengine.exact.rules.typical import DELTA, EPSILON, INSIDE_LOG, threshold
from refengine.report.finding import Quantity
from refengine.selfcheck.drafters.battery import lossy
from refengine.selfcheck.drafters.laws.cells import LOSSY
from refengine.source_tree import FIXTURES

GOLDEN = FIXTURES / "golden"
TARGETS = {"medusa1_A": "target_medusa1_A", "medusa2_A": "medusa2_A/drafter"}


@dataclass
class Recording:
    facts: dict[str, Any]
    tensors: dict[str, Tensor]
    target: TransformersTarget
    drafter: Medusa

    def with_tree(self, name: str) -> Medusa:
        tree = TREES[self.facts["shipped_tree"]] if name == "shipped" else map(tuple, self.facts["small_tree"])
        return Medusa(self.drafter.shape, dict(self.drafter.w.tensors), tuple(tree))

    def rounds(self, run: str) -> list[dict[str, Tensor]]:
        count = int(self.tensors[f"{run}.rounds"])
        return [
            {k.rpartition(".")[2]: v for k, v in self.tensors.items() if k.startswith(f"{run}.r{i}.")}
            for i in range(count)
        ]


@pytest.fixture(scope="module", params=sorted(TARGETS))
def recording(request: pytest.FixtureRequest) -> Recording:
    folder = GOLDEN / request.param
    target = load_target(GOLDEN / TARGETS[request.param], torch.float32)
    drafter = load_drafter(folder / "drafter", target)
    assert isinstance(drafter, Medusa)
    assert isinstance(target, TransformersTarget)
    facts = json.loads((folder / "golden.json").read_text())
    return Recording(facts, load_file(folder / "golden.safetensors"), target, drafter)


@pytest.mark.peer("medusa")
def test_the_heads_logits(recording: Recording) -> None:
    """Kills heads that read the state before the final norm, a residual left out, and heads counted from the config."""
    r = recording
    assert r.drafter.shape.heads == r.facts["medusa_heads"]
    assert_close(r.drafter.heads(r.tensors["prefill.hidden"]), r.tensors["prefill.medusa_logits"])


@pytest.mark.peer("medusa")
@pytest.mark.parametrize("run", ["greedy", "greedy_small"])
def test_a_greedy_run(recording: Recording, run: str) -> None:
    """Kills a head or a level off by one, a wrong tree slot, mask or position, a wrong path, a token too many."""
    r = recording
    drafter = r.with_tree("small" if run == "greedy_small" else "shipped")
    session = Session(r.target, drafter, point_mass, pipeline(greedy_policy()), 60)
    session.begin(tuple(r.tensors["prompt"].tolist()), COINS)
    for golden in r.rounds(run):
        prefix = session.prompt + session.out
        assert prefix == (*golden["committed"].tolist(), int(golden["tree_tokens"][0]))
        if "base_logits" in golden:  # recorded of the first rounds
            drafted = tuple(golden["tree_tokens"][1:].tolist())
            rows = tree_rows(prefix[-1], drafted, drafter.parents, len(prefix) - 1, r.target.device)
            assert rows.positions.tolist() == golden["positions"].tolist()
            assert_close(r.target.run(rows).logits, golden["base_logits"])
            r.target.keep(())
            assert_close(drafter.heads(drafter.hidden), golden["in_medusa_logits"])
        session.play(COINS)
        played = session.rounds[-1]
        assert nodes(played.block)[0] == tuple(golden["tree_tokens"][1:].tolist())
        assert played.p.argmax(-1).tolist() == golden["argmax"].tolist()
        assert len(played.verdict.path) == int(golden["accept"])


@dataclass
class Taken:
    """Coins that give back recorded tokens: one draw for every (leaf, depth), and the token that opens the next round.

    root None: the likeliest, as the released code takes it in its fast modes, at any temperature.
    """

    leaves: Tokens
    draws: list[list[int]]
    root: int | None
    seen: dict[tuple[int, int], Tensor]

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        raise AssertionError("the released modes toss no coin")

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        if site[0] == "emit":
            return weights.argmax(-1) if self.root is None else torch.tensor([self.root])
        row, step = self.leaves.index(int(site[2])), int(site[1]) % DEPTHS
        self.seen[row, step] = weights[0] / weights[0].sum()
        return torch.tensor([self.draws[row][step]])


def leaves(parents: Tokens) -> Tokens:
    """Leaves in Medusa's order: the deepest, last one first."""
    return tuple(node for node in reversed(range(len(parents))) if node not in parents)


@pytest.mark.peer("medusa")
@pytest.mark.parametrize("mode", ["typical", "nucleus"])
def test_a_sampled_run(recording: Recording, mode: str) -> None:
    """Kills a threshold, a filter, a tie between leaves or a next root that is not the released one."""
    r = recording
    facts = r.facts[mode]
    drafter = r.with_tree("small" if facts["tree"] == "small" else "shipped")
    rounds, order = r.rounds(mode), leaves(drafter.parents)

    def nucleus_as_run(p: Tensor, block: Block, coins: Any) -> Any:
        return nucleus(p, block, coins, facts["top_p"], facts["fast"])

    rule = typical if mode == "typical" else nucleus_as_run
    session = Session(r.target, drafter, rule, pipeline(temperature(facts["temperature"])), 60)
    roots = [int(golden["tree_tokens"][0]) for golden in rounds]
    session.begin(tuple(r.tensors["prompt"].tolist()), Taken(order, [], roots[0], {}))
    for golden, root in zip(rounds[:-1], roots[1:], strict=True):
        draws = golden["draw_tokens"].tolist() if mode == "nucleus" else []
        coins = Taken(order, draws, root if mode == "nucleus" else None, {})
        session.play(coins)
        assert len(session.rounds[-1].verdict.path) == int(golden["accept"])
        assert session.out[-1] == root
        for (row, step), weights in coins.seen.items():
            assert_close(weights, golden["draw_p"][row, step])
    assert session.prompt + session.out[:-1] == tuple(rounds[-1]["committed"].tolist())


@pytest.mark.peer("medusa")
@pytest.mark.parametrize("mode", ["greedy", "typical", "nucleus"])
@pytest.mark.parametrize("tree", ["small", "shipped"])
def test_the_released_decisions(tree: str, mode: str) -> None:
    """Kills a rule of ours that decides differently from the released function on rows made to be close calls.

    Left out, and counted: where the released function accepted *padding* (a leaf that is shorter than the longest goes
    on with token 0, whose row is the last slot's), which it does by oversight and which ours cannot: the tests below.
    """
    g, facts = load_file(GOLDEN / "medusa1_A" / "golden.safetensors"), json.loads(
        (GOLDEN / "medusa1_A" / "golden.json").read_text())  # fmt: skip
    at = f"post.{tree}."
    paths = ordered(set(map(tuple, facts["small_tree"]))) if tree == "small" else TREES[facts["shipped_tree"]]
    place = {path: node for node, path in enumerate(paths)}
    parents = tuple(place.get(path[:-1], -1) for path in paths)
    compared = padding = 0
    for case, (best, accepted) in enumerate(g[f"{at}{mode}"].tolist()):
        heat, top_p = float(g[f"{at}T"][case]), float(g[f"{at}top_p"][case])
        block = point_block(tuple(g[f"{at}tokens"][case, 1:].tolist()), parents, torch.device("cpu"))
        p = (g[f"{at}logits"][case] / (1.0 if mode == "greedy" else heat)).softmax(-1)[None]
        coins = Taken(leaves(parents), g[f"{at}draw_tokens"][case].tolist(), 0, {})
        rules: dict[str, Callable[[], Any]] = {
            "greedy": lambda p=p, block=block, coins=coins: greedy(p, block, coins),
            "typical": lambda p=p, block=block, coins=coins: typical(p, block, coins),
            "nucleus": lambda p=p, block=block, coins=coins, top_p=top_p: nucleus(p, block, coins, top_p),
        }
        ours = rules[mode]()
        slots = g[f"{at}retrieve"][best].tolist()[1 : accepted + 1]
        if -1 in slots:
            padding += 1
            continue
        wanted = [slot - 1 for slot in slots]
        assert ours.path[0, : int(ours.length[0]) - 1].tolist() == wanted, (case, best, accepted)
        compared += 1
    assert compared >= 3
    assert (padding > 0) == (mode == "typical")


Passes: TypeAlias = Callable[[Tensor, int], bool]  # (a row, a token judged by it)


def likeliest_alone(row: Tensor, token: int) -> bool:
    return int(row.argmax()) == token


def above_threshold(row: Tensor, token: int) -> bool:
    return float(row[token]) > threshold(row.tolist(), EPSILON, DELTA, INSIDE_LOG)  # type: ignore[arg-type]


def released(retrieve: list[list[int]], tokens: list[int], p: Tensor, mode: str) -> list[int]:
    """The slots that the released function accepts after the root; -1 is padding: token 0, and the last slot's row."""
    passes: Passes = likeliest_alone if mode == "greedy" else above_threshold
    judged = [
        [(p[before], 0 if slot < 0 else tokens[slot], slot) for before, slot in pairwise(leaf)] for leaf in retrieve
    ]
    lengths = [next((i for i, (row, x, _) in enumerate(leaf) if not passes(row, x)), len(leaf)) for leaf in judged]
    longest = [leaf[: max(lengths)] for leaf, length in zip(judged, lengths, strict=True) if length == max(lengths)]
    best = max(longest, key=lambda leaf: prod(float(row[x]) for row, x, _ in leaf) if mode == "typical" else 0.0)
    return [slot for *_, slot in best]


@pytest.mark.parametrize("mode", ["greedy", "typical"])
@pytest.mark.parametrize("tree", ["small", "shipped"])
def test_padding_is_read_as_the_released_function_reads_it(tree: str, mode: str) -> None:
    """Kills: padding read as no candidate, or as the token of the last slot.

    Every recorded decision, those with padding too: 5 of typical acceptance, none at temperature 0. None turns on the
    row of a second padding: that it is the last slot's is in the recording's notes.
    """
    g, at = load_file(GOLDEN / "medusa1_A" / "golden.safetensors"), f"post.{tree}."
    retrieve, padded = g[f"{at}retrieve"].tolist(), 0
    for case, (best, accepted) in enumerate(g[f"{at}{mode}"].tolist()):
        p = (g[f"{at}logits"][case] / (1.0 if mode == "greedy" else float(g[f"{at}T"][case]))).softmax(-1)
        found = released(retrieve, g[f"{at}tokens"][case].tolist(), p, mode)
        assert found == retrieve[best][1 : accepted + 1], case
        padded += -1 in found
    assert padded == (0 if mode == "greedy" else 2 if tree == "small" else 3)


UNEVEN = [[0, 1, 3], [0, 2, -1]]  # the released slots of the tree [0], [1], [0, 0]: its second leaf is short


@pytest.mark.parametrize("mode", ["greedy", "typical"])
def test_padding_is_accepted_and_goes_on_from_another_node(mode: str) -> None:
    """Kills: "released code emits what greedy decoding emits", and "what is accepted are candidates, then the argmax".

    The short leaf's token is right and so is 0 after it. The padding is accepted for that 0, and the next token is the
    argmax of the last slot's row, which is another node's. Ours ends at the leaf, with 0.
    """
    tokens = [3, 1, 2, 1]
    p = torch.tensor(
        [[0.01, 0.01, 0.97, 0.01], [0.25] * 4, [0.6, 0.0001, 0.0001, 0.3998], [0.0001, 0.9997, 1e-4, 1e-4]]
    )
    slots = released(UNEVEN, tokens, p, mode)
    assert slots == [2, -1]
    assert int(p[slots[-1]].argmax()) == tokens[1] == 1
    rule = greedy if mode == "greedy" else typical
    ours = rule(p[None].double(), point_block((1, 2, 1), (-1, -1, 0), torch.device("cpu")), COINS)
    assert ours.path[0, : int(ours.length[0]) - 1].tolist() == [1]
    assert int(p[2].argmax()) == 0


def text_as_released(name: str, seed: int, lowest: int, rounds: int = 6) -> tuple[list[int], list[int]]:
    """What the released decision writes at temperature 0 on a shipped tree, and plain greedy decoding as many tokens.

    The target's next token is a function of the last two tokens, between `lowest` and 10; heads guess at random; caches
    are without fault.
    """
    size, paths = 11, TREES[name]
    g = load_file(GOLDEN / "medusa1_A" / "golden.safetensors")
    retrieve = g[f"buf.{name}.retrieve_indices"].tolist()

    def after(text: list[int]) -> int:
        return lowest + Random(f"{seed} {text[-2:]}").randrange(size - lowest)

    text, root = [1, 2], after([1, 2])
    for _ in range(rounds):
        guesses = [Random(f"head {seed} {k} {text[-2:]}").sample(range(size), 10) for k in range(4)]
        words = [[root, *(guesses[depth][rank] for depth, rank in enumerate(path))] for path in ((), *paths)]
        p = torch.nn.functional.one_hot(torch.tensor([after(text + word) for word in words]), size).double()
        slots = released(retrieve, [word[-1] for word in words], p, "greedy")
        text += [root, *(0 if slot < 0 else words[slot][-1] for slot in slots)]
        root = int(p[slots[-1] if slots else 0].argmax())
    plain = [1, 2]
    while len(plain) < len(text):
        plain.append(after(plain))
    return text, plain


def test_a_shipped_tree_played_as_released_is_not_greedy_decoding() -> None:
    """Kills: "at temperature 0 the released code is exact": not on a tree with short leaves where token 0 comes up.

    Where it never is the argmax, it is exact, on as many texts.
    """
    pairs = [text_as_released("mc_sim_7b_63", seed, 0) for seed in range(60)]
    assert 0 < sum(text != plain for text, plain in pairs) < 20  # 6
    assert all(text == plain for text, plain in (text_as_released("mc_sim_7b_63", seed, 1) for seed in range(60)))


@pytest.mark.peer("medusa")
@pytest.mark.parametrize("name", ["mc_sim_7b_63", "vicuna_7b_stage2", "vicuna_7b_stage1", "vicuna_13b_stage2",
                                  "vicuna_33b_stage1", "zephyr_stage2"])  # fmt: skip
def test_the_shipped_trees_and_their_buffers(name: str) -> None:
    """Kills a mistyped tree, another order of its slots, a mask that shows a sibling, a wrong depth or candidate."""
    g = load_file(GOLDEN / "medusa1_A" / "golden.safetensors")
    paths = [tuple(x for x in path if x >= 0) for path in g[f"buf.{name}.choices"].tolist()]
    assert list(TREES[name]) == paths
    place = {path: node for node, path in enumerate(paths)}
    parents = tuple(place.get(path[:-1], -1) for path in paths)
    rows = tree_rows(0, tuple(range(63)), parents, 0, torch.device("cpu"))
    assert rows.visible is not None
    assert torch.equal(rows.visible, g[f"buf.{name}.medusa_attn_mask"].bool())
    assert rows.positions.tolist() == g[f"buf.{name}.medusa_position_ids"].tolist()
    assert [0, *(path[-1] + 10 * (len(path) - 1) + 1 for path in paths)] == g[f"buf.{name}.tree_indices"].tolist()
    official = [[slot for slot in row if slot > 0] for row in g[f"buf.{name}.retrieve_indices"].tolist()]
    assert [row[-1] - 1 for row in official] == list(leaves(parents))


@pytest.mark.parametrize("name", sorted(name for name, cell in LOSSY.items() if cell.drafter == "medusa"))
def test_the_lossy_modes_are_named_with_their_distance(name: str) -> None:
    """Kills a mode that is lossy by design and is reported as lossless, or whose caches are wrong besides."""
    (finding,) = lossy(name)
    assert finding.verdict == "consistent"
    assert finding.numbers["live states that differ"] == 0
    distance = finding.numbers["tv"]
    assert isinstance(distance, Quantity)
    assert distance.value > 0.1  # far above rounding: neither mode corrects what it accepts
