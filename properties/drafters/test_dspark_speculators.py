"""DSpark in speculators' layout: recordings of its training forward, and what a checkpoint may not get wrong."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from properties.helpers.checkpoints.damaged import Edit, damaged
from properties.helpers.coins import COINS
from refengine.decoder import load_drafter, load_target
from refengine.decoder.drafters.dspark import DSpark
from refengine.decoder.loop import begin, nodes
from refengine.decoder.protocols import Tokens, Turn
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

GOLDEN = FIXTURES / "golden"
CASES = ("sp_dspark_A", "sp_dspark_B")


@pytest.fixture(scope="module")
def target() -> TransformersTarget:
    loaded = load_target(GOLDEN / "target_sp_qwen8", torch.float32)
    assert isinstance(loaded, TransformersTarget)
    return loaded


def recorded(case: str, target: TransformersTarget) -> tuple[DSpark, dict[str, Tensor]]:
    drafter = load_drafter(GOLDEN / case / "drafter", target)
    assert isinstance(drafter, DSpark)
    return drafter, load_file(GOLDEN / case / "golden.safetensors")


class Reading:
    """A policy that notes every row and leaves only the text's own token: the recording is teacher-forced."""

    def __init__(self, text: Tokens) -> None:
        self.text, self.rows = text, list[Tensor]()

    def __call__(self, logits: Tensor, prompt: Tokens, prefix: Tokens) -> Tensor:
        self.rows.append(logits)
        return torch.zeros_like(logits).index_fill(0, torch.tensor(self.text[len(prompt) + len(prefix)]), 1.0)


@pytest.mark.peer("dspark_speculators")
@pytest.mark.parametrize("case", CASES)
def test_rows_and_confidences_of_the_recording(case: str, target: TransformersTarget) -> None:
    """Kills a slot off by one, a bias over the wrong vocabulary, a memory that skips the anchor's slot, a window of the
    wrong size or place, a confidence of the wrong slot."""
    drafter, t = recorded(case, target)
    text = tuple(t["ids"].tolist())
    for place, wanted, confidences in zip(t["anchors"].tolist(), t["logits"], t["confidence"], strict=True):
        seen: list[float] = []
        drafter.cut = lambda c, seen=seen: seen.append(c[-1]) is None
        drafter.start((), begin(target, text[:place], drafter.taps))
        policy = Reading(text)
        block = drafter.propose(Turn(text[:1], text[: place + 1], policy, COINS))
        assert nodes(block)[0] == text[place + 1 : place + 1 + len(wanted)]
        ours = torch.stack(policy.rows)
        assert float((ours[:, t["targets"]] - wanted).abs().max()) <= 1e-5 * max(1.0, float(wanted.std()))
        assert int((ours > float("-inf")).sum()) == wanted.numel()
        assert float((torch.tensor(seen) - confidences).abs().max()) <= 1e-5


DAMAGE: dict[str, tuple[Edit, str]] = {
    "no head": (
        lambda t, c: t.pop("markov_head.markov_w2.weight"),
        r"tensor markov_head\.markov_w2\.weight is missing",
    ),
    "bias over the whole vocabulary": (
        lambda t, c: t.update({"markov_head.markov_w2.weight": torch.ones(128, 6)}),
        r"markov_w2.weight has shape \[128, 6\], the config asks for \[64, 6\]",
    ),
    "another head": (
        lambda t, c: c.update(markov_head_type="gated"),
        r"tensor markov_head\.gate_proj\.weight is missi",
    ),
    "no rank": (lambda t, c: c.pop("markov_rank"), "markov_rank is missing"),
    "confidence without a rank": (
        lambda t, c: c.update(markov_rank=0, confidence_head_with_markov=True),
        "confidence_head_with_markov is true, and markov_rank is 0",
    ),
    "a longer chain": (
        lambda t, c: c["speculators_config"]["proposal_methods"][0].update(speculative_tokens=4),
        "speculative_tokens is 4, and a block of 4 has 3 slots to draft from",
    ),
    "other member": (lambda t, c: t.update(t2d=t["t2d"].roll(1)), "d2t and t2d disagree"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_in_one_line(tmp_path: Path, damage: str, target: TransformersTarget) -> None:
    """Kills a reader that ignores, pads or guesses around what a checkpoint gets wrong."""
    change, message = DAMAGE[damage]
    folder = damaged(GOLDEN / "sp_dspark_A" / "drafter", tmp_path / "drafter", change)
    with pytest.raises(BadInput, match=message) as raised:
        load_drafter(folder, target)
    assert "\n" not in str(raised.value)


def test_the_anchors_slot_is_used_unless_the_config_denies_it(tmp_path: Path, target: TransformersTarget) -> None:
    """Kills DFlash's default, under which a file that does not say would be read one position off."""
    folder = shutil.copytree(GOLDEN / "sp_dspark_B" / "drafter", tmp_path / "drafter")
    config = json.loads((folder / "config.json").read_text())
    del config["sample_from_anchor"]
    (folder / "config.json").write_text(json.dumps(config))
    drafter = load_drafter(folder, target)
    assert isinstance(drafter, DSpark)
    assert drafter.shape.shifted
    assert drafter.shape.length == 3
