"""Medusa: recordings of the official code (fixtures/golden/README.md), the two released layouts, every tensor used."""

import itertools
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from refengine.decoder import load_drafter, load_target
from refengine.decoder.battery import lossy
from refengine.decoder.cells import LOSSY
from refengine.decoder.checkpoints.medusa import heads
from refengine.decoder.drafters.medusa import Medusa, Shape
from refengine.decoder.drafters.medusa_trees import TREES, ordered, tree_for
from refengine.decoder.loop import Session, nodes
from refengine.decoder.protocols import Tokens
from refengine.decoder.rows import depth, point_block, tree_rows
from refengine.decoder.target import TransformersTarget
from refengine.engine.block import Block
from refengine.engine.coins import Philox, Site
from refengine.engine.policy import greedy as greedy_policy
from refengine.engine.policy import pipeline, temperature
from refengine.engine.rules.greedy import greedy
from refengine.engine.rules.nucleus import nucleus
from refengine.engine.rules.point_mass import point_mass
from refengine.engine.rules.typical import typical
from refengine.errors import BadInput
from refengine.exact.chance import DEPTHS
from refengine.report.finding import Quantity

FIXTURES = Path(__file__).parents[1] / "fixtures"
GOLDEN = FIXTURES / "golden"
TARGETS = {"medusa1_A": "target_medusa1_A", "medusa2_A": "medusa2_A/drafter"}
COINS = Philox(0, torch.tensor([0]))  # greedy rows leave nothing to chance


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


def assert_close(ours: Tensor, theirs: Tensor) -> None:
    """1e-5 of a logit standard deviation of at least 1; the recording's own float32 error is about 3e-6."""
    assert float((ours - theirs).abs().max()) <= 1e-5 * max(1.0, float(theirs.std()))


def test_the_heads_logits(recording: Recording) -> None:
    """Kills heads that read the state before the final norm, a residual left out, and heads counted from the config."""
    r = recording
    assert r.drafter.shape.heads == r.facts["medusa_heads"]
    assert_close(r.drafter.heads(r.tensors["prefill.hidden"]), r.tensors["prefill.medusa_logits"])


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


@pytest.mark.parametrize("mode", ["greedy", "typical", "nucleus"])
@pytest.mark.parametrize("tree", ["small", "shipped"])
def test_the_released_decisions(tree: str, mode: str) -> None:
    """Kills a rule of ours that decides differently from the released function on rows made to be close calls.

    Left out, and counted: where the released function accepted *padding* (token 0 after a leaf, judged by the last
    slot's row), which it does by oversight and which ours cannot.
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
    assert mode == "typical" or not padding


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


def test_trees() -> None:
    """Kills a tree of the wrong size, an orphan that is drafted, and a tree picked by another rule than the name's."""
    assert len(TREES) == 9
    assert all(len(tree) == 63 for tree in TREES.values())
    with pytest.raises(ValueError, match=r"node \(1, 0\) of the tree has no parent"):
        ordered({(0,), (1, 0)})
    picked = {"lmsys/vicuna-13b-v1.3": "vicuna_13b_stage2", "HuggingFaceH4/zephyr-7b-beta": "zephyr_stage2"}
    assert {name: tree_for(name) for name in picked} == picked
    assert tree_for("mistral") == "mc_sim_7b_63"


def test_a_node_that_cannot_be_filled_is_left_out() -> None:
    """Kills a tree that asks a small vocabulary, or a file with few heads, for a candidate that is not there."""
    target = load_target(FIXTURES / "tiny" / "target", torch.float32)
    drafter = load_drafter(FIXTURES / "heads" / "medusa", target)
    assert isinstance(drafter, Medusa)
    assert all(len(path) <= 3 and max(path) < 8 for path in drafter.tree)
    assert depth(point_block((0,) * len(drafter.tree), drafter.parents, target.device)) == 3


# --- the released layouts ------------------------------------------------------------------------------------------


Edit = Callable[[dict[str, Tensor], dict[str, Any]], object]
DAMAGE: dict[str, tuple[str, Edit, str]] = {
    "missing": ("medusa1_A", lambda t, c: t.pop("1.0.linear.bias"), "tensor 1.0.linear.bias is missing"),
    "extra": ("medusa1_A", lambda t, c: t.update(stray=torch.zeros(2)), "tensor stray is in the file"),
    "misshapen": (
        "medusa1_A",
        lambda t, c: t.update({"2.0.linear.weight": torch.ones(64, 63)}),
        r"tensor 2.0.linear.weight has shape \[64, 63\]",
    ),
    "wrong dtype": (
        "medusa1_A",
        lambda t, c: t.update({"2.1.weight": t["2.1.weight"].half()}),
        "tensor 2.1.weight has dtype float16",
    ),
    "other target": (
        "medusa1_A",
        lambda t, c: t.update({f"{i}.1.weight": torch.ones(95, 64) for i in range(5)}),
        "0.1.weight maps a width of 64 to 95 tokens, and the target has width 64 and 96 tokens",
    ),
    "fewer heads than said": ("medusa1_A", lambda t, c: c.update(medusa_num_heads=6), "tensor 5.0.linear.weight is mi"),
    "more layers than said": ("medusa1_A", lambda t, c: c.update(medusa_num_layers=2), "tensor 0.2.weight is missing"),
    "no layer count": ("medusa1_A", lambda t, c: c.pop("medusa_num_layers"), "medusa_num_layers is missing"),
    "count as text": ("medusa1_A", lambda t, c: c.update(medusa_num_heads="2"), "medusa_num_heads is '2', expected an"),
    "whole: more heads": ("medusa2_A", lambda t, c: c.update(medusa_num_heads=3), "is 3, and the file has 4 heads"),
    "whole: base missing": ("medusa2_A", lambda t, c: t.pop("lm_head.weight"), "tensor lm_head.weight is missing"),
    "whole: base extra": (
        "medusa2_A",
        lambda t, c: t.update({"model.layers.6.mlp.up_proj.weight": torch.ones(96, 64)}),
        "tensor model.layers.6.mlp.up_proj.weight is in the file",
    ),
    "whole: no model": ("medusa2_A", lambda t, c: c.update(model_type="none-such"), "no model of transformers"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_in_one_line(recording: Recording, tmp_path: Path, damage: str) -> None:
    """Kills a reader that ignores, pads or guesses around what a checkpoint gets wrong."""
    case, change, message = DAMAGE[damage]
    if recording.facts["name"] != case:
        return  # the other parameter of the fixture holds the target that this damage needs
    folder = tmp_path / "drafter"
    shutil.copytree(GOLDEN / case / "drafter", folder)
    (weights,) = folder.glob("*.safetensors")
    tensors, config = load_file(weights), json.loads((folder / "config.json").read_text())
    change(tensors, config)
    save_file(tensors, weights)
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match=message) as raised:
        load_drafter(folder, recording.target)
    assert "\n" not in str(raised.value)


def test_the_pickle_is_refused_with_the_command_that_helps(tmp_path: Path) -> None:
    """Kills unpickling of `medusa_lm_head.pt`, the only file that Medusa-1 releases."""
    shutil.copy(GOLDEN / "medusa1_A" / "drafter" / "config.json", tmp_path)
    (tmp_path / "medusa_lm_head.pt").write_bytes(b"\x80\x02.")
    target = load_target(FIXTURES / "tiny" / "target")
    with pytest.raises(BadInput, match=r"refengine checkpoint convert .*medusa_lm_head\.pt"):
        load_drafter(tmp_path, target)


def written(folder: Path, tensors: dict[str, Tensor], **config: Any) -> Path:
    """A drafter folder. Tensors are copied: safetensors stores no shared memory."""
    folder.mkdir()
    save_file({name: x.clone() for name, x in tensors.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def residual_layers(count: int, heads: int = 2) -> dict[str, Tensor]:
    """The released heads: `[ResBlock] * count` is one module under `count` names."""
    made = torch.Generator().manual_seed(count)
    tensors: dict[str, Tensor] = {}
    for i in range(heads):
        one = {"weight": torch.randn(32, 32, generator=made) / 6, "bias": torch.randn(32, generator=made)}
        tensors |= {f"{i}.{j}.linear.{part}": x for j in range(count) for part, x in one.items()}
        tensors[f"{i}.{count}.weight"] = torch.randn(8, 32, generator=made)
    return tensors


@pytest.mark.parametrize("layers", [0, 1, 2, 3])
def test_repeated_layers_are_written_once_or_under_every_name(tmp_path: Path, layers: int) -> None:
    """Kills a reader that asks for names which transformers leaves out when it saves a repeated module, one that puts
    another head's layer there, and one that thinks every head has a residual layer."""
    target = load_target(FIXTURES / "tiny" / "target", torch.float32)
    said = {"medusa_num_heads": 2, "medusa_num_layers": layers}
    every = residual_layers(layers)
    once = {name: x for name, x in every.items() if not re.match(r"\d+\.[1-9]\.linear", name)}
    a, b = (load_drafter(written(tmp_path / n, t, **said), target) for n, t in (("all", every), ("once", once)))
    assert isinstance(a, Medusa)
    assert isinstance(b, Medusa)
    hidden, logits = torch.ones(32), []
    for i in range(2):
        x = hidden
        for _ in range(layers):
            x = x + torch.nn.functional.silu(every[f"{i}.0.linear.weight"] @ x + every[f"{i}.0.linear.bias"])
        logits.append(every[f"{i}.{layers}.weight"] @ x)
    assert_close(a.heads(hidden), torch.stack(logits))
    assert_close(b.heads(hidden), torch.stack(logits))


def test_a_repeated_layer_that_is_there_in_part_is_missing(tmp_path: Path) -> None:
    """Kills a damaged file that is taken for one in which repeated layers were left out."""
    target = load_target(FIXTURES / "tiny" / "target", torch.float32)
    tensors = residual_layers(3)
    del tensors["1.2.linear.bias"]
    with pytest.raises(BadInput, match=r"tensor 1\.2\.linear\.bias is missing"):
        load_drafter(written(tmp_path / "d", tensors, medusa_num_heads=2, medusa_num_layers=3), target)


def test_the_legacy_trainers_heads_end_in_the_targets(tmp_path: Path) -> None:
    """Kills a refusal of what train_legacy.py writes, and a tree picked by a name that its decoder never reads."""
    target = load_target(FIXTURES / "tiny" / "target", torch.float32)
    assert isinstance(target, TransformersTarget)
    tensors = {name: x for name, x in residual_layers(1).items() if "linear" in name}
    said = {"medusa_num_heads": 2, "medusa_num_layers": 1, "base_model_name_or_path": "vicuna-7b"}
    drafter = load_drafter(written(tmp_path / "legacy", tensors, version="2", **said), target)
    assert isinstance(drafter, Medusa)
    hidden, head = torch.ones(32), target.model.get_output_embeddings()
    layers = [tensors[f"{i}.0.linear.weight"] @ hidden + tensors[f"{i}.0.linear.bias"] for i in range(2)]
    wanted = torch.stack([head(hidden + torch.nn.functional.silu(x)) for x in layers])
    assert_close(drafter.heads(hidden), wanted)
    assert drafter.tree == Medusa(drafter.shape, dict(drafter.w.tensors), TREES["mc_sim_7b_63"]).tree
    with pytest.raises(BadInput, match=r"tensor 0\.1\.weight is missing"):
        load_drafter(written(tmp_path / "plain", tensors, **said), target)


def test_a_whole_models_tree_is_picked_by_the_name_it_is_loaded_by(recording: Recording, tmp_path: Path) -> None:
    """Kills a tree picked by the base model's name alone: the released code asks the folder of a Medusa-2."""
    if recording.facts["name"] != "medusa2_A":
        return
    folder = shutil.copytree(GOLDEN / "medusa2_A" / "drafter", tmp_path / "medusa-v1.0-vicuna-7b-v1.5")
    drafter = load_drafter(folder, recording.target)
    assert isinstance(drafter, Medusa)
    assert drafter.tree == TREES["vicuna_7b_stage2"]


def test_no_tensor_can_be_zeroed_or_swapped_unnoticed(recording: Recording) -> None:
    """Kills a tensor that is loaded and never used, or used in another's place."""
    drafter, hidden = recording.drafter, recording.tensors["prefill.hidden"]
    tensors = dict(drafter.w.tensors)

    def moved(change: dict[str, Tensor]) -> float:
        other = Medusa(drafter.shape, tensors | change, ())
        return float((other.heads(hidden) - drafter.heads(hidden)).abs().max())

    for name in tensors:
        assert moved({name: torch.zeros_like(tensors[name])}) > 1e-4, name
    for a, b in itertools.combinations(tensors, 2):
        if tensors[a].shape == tensors[b].shape:
            assert moved({a: tensors[b], b: tensors[a]}) > 1e-4, (a, b)


def test_the_schema_knows_every_tensor_and_field() -> None:
    """Kills a reader that has outgrown the statement of what is known about the layout."""
    schema = json.loads((FIXTURES / "schemas" / "medusa.json").read_text())
    named = {re.sub(r"^\d+\.\d+\.linear", "{head}.{layer}.linear", re.sub(r"^\d+\.2\.", "{head}.{layers}.", name))
             for name in heads(Shape(2, 2, 8, 4, 1))}  # fmt: skip
    assert named == schema["tensors"].keys()
    config = json.loads((GOLDEN / "medusa1_A" / "drafter" / "config.json").read_text())
    assert config.keys() - {"transformers_version"} <= schema["config"].keys()
    for field in (*schema["config"].values(), *schema["tensors"].values()):
        assert field["status"] in schema["statuses"]


@pytest.mark.parametrize("name", sorted(name for name, cell in LOSSY.items() if cell.drafter == "medusa"))
def test_the_lossy_modes_are_named_with_their_distance(name: str) -> None:
    """Kills a mode that is lossy by design and is reported as lossless, or whose caches are wrong besides."""
    (finding,) = lossy(name)
    assert finding.verdict == "consistent"
    assert finding.numbers["live states that differ"] == 0
    distance = finding.numbers["tv"]
    assert isinstance(distance, Quantity)
    assert distance.value > 0.1  # far above rounding: neither mode corrects what it accepts
