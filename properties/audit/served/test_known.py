"""One server beside a law that is computed: an honest one is accused of nothing, and what both sides share is seen."""

import json
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer
from typer.testing import CliRunner

from properties.helpers.served.checkpoint import exported
from properties.helpers.served.engine import Engine
from properties.helpers.served.http import serving
from refengine.audit.served.endpoint import audit_known
from refengine.audit.served.known.law import KnownLaw
from refengine.cli import app
from refengine.commands.export_fixtures import export_fixtures
from refengine.errors import BadInput
from refengine.evidence.e_process_of_tokens import BALL, TokenEvidence

pytestmark = pytest.mark.on_record

NEARBY = 1e-5  # of a logit: transformers computes the angles of its rotations in float32


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("known") / "pair"
    export_fixtures(made)
    return made


def violated(folder: Path, requests: int, defect: str = "", shared: str = "") -> dict[str, str]:
    """What is said of a server of the exported model, by claim."""
    with serving(Engine(not shared, defect, shared, exported(folder))) as on:
        found = audit_known(on, str(folder), requests)
    assert len(found) == 16
    return {f.id.removeprefix("audit.endpoint/known/"): f.diagnosis for f in found if f.verdict == "violated"}


def test_an_honest_server_follows_the_law(folder: Path) -> None:
    """Kills a law that is not the one that law.json states: another order of the policy, another scope of a penalty."""
    assert not violated(folder, 48)


def test_a_filter_that_neither_side_has_is_seen(folder: Path) -> None:
    """Kills an audit that is blind to what both sides share."""
    found = violated(folder, 20, shared="the filter is ignored")
    assert set(found) == {"top_k", "top_p", "min_p", "temperature and top_p"}


def test_a_temperature_that_is_applied_twice_is_named(folder: Path) -> None:
    """Kills a diagnosis that does not know the laws it bet on."""
    found = violated(folder, 48, shared="the temperature is applied twice")
    assert "the temperature is applied twice" in found["temperature 1.7"]
    assert {"temperature 1", "temperature 0", "top_k"}.isdisjoint(found)


@pytest.mark.stat
@pytest.mark.parametrize(("defect", "claim"), [("corrected from p", "temperature 1"), ("bias ignored", "logit_bias")])
def test_what_speculation_does_is_seen(folder: Path, defect: str, claim: str) -> None:
    """n = 600 requests of 8 choices, alpha = ALPHA over 15 claims; a deviation of 0.02 of the mass would show. Kills
    bets that see filters alone."""
    assert claim in violated(folder, 600, defect)


@pytest.mark.stat
def test_a_penalty_of_both_sides_is_named(folder: Path) -> None:
    """n = 400 requests, alpha = ALPHA. Kills a penalty whose scope nobody looks at."""
    found = violated(folder, 400, shared="penalties count the prompt")
    assert "the penalty counts the prompt" in found["presence_penalty"]
    assert "the penalty counts the prompt" in found["frequency_penalty"]


@pytest.mark.stat
def test_an_honest_server_is_accused_of_nothing_at_length(folder: Path) -> None:
    """Null: every token follows its row to within float32; n = 1500 requests, alpha = ALPHA. Kills the same."""
    assert not violated(folder, 1500)


def test_the_law_is_that_of_the_file(folder: Path) -> None:
    """Kills a network that is read another way than engines do: logits in numpy, from the tensors alone."""
    language = exported(folder)
    for part, noise in (("target", 0.0), ("drafter", 0.7)):
        law = KnownLaw.load(folder, part)
        ids = law.ids("w7 w9 w11 w40 w2")
        rows = law.logits(ids[:2], [ids[2:], ids[2:4]])
        assert [len(row) for row in rows] == [4, 3]
        for i in range(4):
            theirs = language.logits(list(ids[: 2 + i]), noise)
            assert np.abs(np.array(theirs) - rows[0][i].numpy()).max() < NEARBY


def test_what_is_exported_loads_and_says_its_law(folder: Path, tmp_path: Path) -> None:
    """Kills a tokenizer that gives other ids than the law has, and an export over somebody's files."""
    told = json.loads((folder / "law.json").read_text())
    tokenizer = AutoTokenizer.from_pretrained(folder / "target")
    assert tokenizer("w7 w9 nothing").input_ids == [7, 9, 0]
    assert tokenizer.convert_ids_to_tokens([told["end"]]) == ["</s>"]
    assert [word for sentence in told["how"] for word in ("temperature", "top_p", "min_tokens") if word in sentence]
    (tmp_path / "mine").write_text("")
    with pytest.raises(BadInput, match="has something in it"):
        export_fixtures(tmp_path)
    with pytest.raises(BadInput, match="no folder of"):
        KnownLaw.load(tmp_path)
    out = CliRunner().invoke(app, ["audit", "endpoint", "--on", "http://127.0.0.1:9/v1"])
    assert "--known DIR" in str(out.exception)


def test_a_filter_has_an_edge(folder: Path) -> None:
    """Kills an accusation over a token that rounding lets in: the second and third logits all but equal."""
    law = KnownLaw.load(folder)
    (row,) = law.logits((7, 9), [()])
    logits = row[0]
    order = logits.argsort(descending=True)
    close = logits.clone()
    close[order[2]] = close[order[1]] - 1e-4
    for values, settled in ((close, False), (logits, bool(logits[order[1]] - logits[order[2]] > 0.05))):
        kept = law.row(values, (7, 9), (), 1.0, {"top_k": 2})
        assert law.settled(kept, values, (7, 9), (), 1.0, {"top_k": 2}) is settled


def test_every_bet_on_a_token_is_fair_in_the_whole_ball() -> None:
    """Kills a bet that gains under the null: the mean wealth after one more token, exactly, at the row and at the laws
    of the ball that lie farthest from it."""
    generator = np.random.default_rng(0)
    told = TokenEvidence(("other",), ("here",))
    for _ in range(30):
        p, other = generator.dirichlet(np.ones(6), 2)
        before = np.exp(told.log_evidence())
        after = []
        for token in range(6):
            tried = TokenEvidence(("other",), ("here",), BALL, told.tokens, dict(told.named), dict(told.tilted))
            tried.learned, tried.counts = told.learned, {k: v.copy() for k, v in told.counts.items()}
            tried.add((), ["here"], token, p, {"other": other})
            after.append(np.exp(tried.log_evidence()))
        gains = np.array(after)
        worst = p.copy()
        worst[gains.argmax()] += BALL / 2
        worst[gains.argmin()] -= min(BALL / 2, worst[gains.argmin()])
        assert worst @ gains <= before * (1 + 1e-12)
        assert p @ gains <= before * (1 + 1e-12)
        told.add((), ["here"], int(generator.choice(6, p=p)), p, {"other": other})
