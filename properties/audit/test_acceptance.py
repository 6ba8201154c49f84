"""`audit acceptance`: honest counts are accused of nothing, and what a verifier does wrong shows at its position."""

import json
import random
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from refengine.audit.acceptance import meaning
from refengine.audit.acceptance.audit import audit_acceptance
from refengine.audit.acceptance.due import MEAN, Decoding, Profile, load, of_law
from refengine.audit.acceptance.rounds import Rounds, Sums, Told
from refengine.audit.served.known.law import KnownLaw
from refengine.bugs.catalogue.classes import named
from refengine.cli import app
from refengine.commands.export_fixtures import export_fixtures
from refengine.errors import BadInput
from refengine.evidence.e_process_of_shares import Share, detectable, interval, log_evidence
from refengine.exact.block import chain
from refengine.exact.chance import Sample
from refengine.exact.rules.leviathan import leviathan
from refengine.report.rerun import compare

pytestmark = pytest.mark.on_record

GAMMA, VOCABULARY = 3, 5
TABLES = np.random.default_rng(8).dirichlet(np.ones(VOCABULARY), (2, VOCABULARY)) * 0.95 + 0.01
Q = TABLES[1]  # rows after each token
P = (0.4 * TABLES[0] + 0.6 * Q) ** 2  # a target that is surer than its drafter
P /= P.sum(1, keepdims=True)
PENALTY = 0.05  # on the token that stands before


class OneCoin(Sample):
    """Every acceptance of a round by its first coin."""

    def accept(self, num: Any, den: Any, site: Any) -> bool:
        self.coin = self.generator.random() if site == ("accept", 0) else self.coin
        return bool(self.coin * den < num)


def penalised(row: Any, token: int) -> list[float]:
    weights = row * np.where(np.arange(VOCABULARY) == token, PENALTY, 1.0)
    return list(weights / weights.sum())


def rounds(defect: str, count: int, seed: int, penalty: bool = False) -> Rounds:
    """Counts of the ratio rule over many rounds. Each defect is one line of it."""
    coins, last, kept = random.Random(seed), 0, [0] * GAMMA
    chance = OneCoin(coins) if defect == "one coin" else Sample(coins)
    for _ in range(count):
        tokens, q = [last], []
        for _ in range(GAMMA):
            row = penalised(Q[tokens[-1]], tokens[-1]) if penalty else list(Q[tokens[-1]])
            q.append(row)
            argmax = int(np.argmax(row))
            tokens.append(argmax if defect == "argmax" else coins.choices(range(VOCABULARY), row)[0])
        counts = [last] * (GAMMA + 1) if defect == "penalty once a block" else tokens
        p = [penalised(P[x], seen) if penalty else list(P[x]) for x, seen in zip(tokens, counts, strict=True)]
        if defect == "row slip":
            p = [*p[1:], p[-1]]
        emitted = leviathan(p, chain(tokens[1:], q, [("draft", i) for i in range(GAMMA)]), chance).tokens  # type: ignore
        for i in range(len(emitted) - 1):
            kept[i] += 1
        last = emitted[-1]
    return Rounds(tuple(kept), count, GAMMA * count, sum(kept))


def scrape(told: Rounds, file: Path) -> str:
    """The counters that vLLM would show."""
    numbers = {"drafts": told.count, "draft_tokens": told.drafted, "accepted_tokens": told.accepted}
    lines = [f'vllm:spec_decode_num_{name}_total{{model_name="m"}} {value}.0' for name, value in numbers.items()]
    by_position = 'vllm:spec_decode_num_accepted_tokens_per_pos_total{{model_name="m",position="{}"}} {}.0'
    file.write_text("\n".join([*lines, *(by_position.format(i, k) for i, k in enumerate(told.kept))]) + "\n")
    return str(file)


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "penalised"])
def golden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[bool, str]:
    """A profile of 10,000 honest rounds, written by the command."""
    folder = tmp_path_factory.mktemp("golden")
    counted = scrape(rounds("", 10000, 1, request.param), folder / "metrics")
    out = str(folder / "golden.json")
    assert CliRunner().invoke(app, ["audit", "acceptance", counted, "--save-golden", out]).exit_code == 0
    return request.param, out


def verdicts(told: Rounds, golden: str, folder: Path) -> list[Any]:
    return audit_acceptance([scrape(told, folder / "metrics")], golden=golden)


def test_honest_counts_are_accused_of_nothing(golden: tuple[bool, str], tmp_path: Path) -> None:
    """Kills evidence of another rule than the one that decodes, and a profile that is taken for exact."""
    found = verdicts(rounds("", 4000, 2, golden[0]), golden[1], tmp_path)
    assert [finding.verdict for finding in found] == ["consistent"] * (GAMMA + 1)
    assert "would have been seen with probability 0.99" in found[0].notes[0]
    assert compare(found[0], audit_acceptance(**found[0].recipe.arguments)[0]) == []


@pytest.mark.parametrize(
    ("defect", "golden", "first", "meant"),
    [
        ("one coin", False, 3, meaning.TOO_OFTEN_LATER),
        ("argmax", False, 1, meaning.TOO_OFTEN),
        ("row slip", False, 1, meaning.TOO_SELDOM),
        ("penalty once a block", True, 2, meaning.TOO_SELDOM_LATER),
    ],
    indirect=["golden"],
)
def test_a_defect_shows_where_it_begins(
    golden: tuple[bool, str], defect: str, first: int, meant: meaning.Meaning, tmp_path: Path
) -> None:
    """Kills an audit that looks at the mean alone, one that is blind to too many, and a defect of later positions that
    is told as one of all."""
    found = verdicts(rounds(defect, 6000, 5, golden[0]), golden[1], tmp_path)
    violated = [finding for finding in found if finding.verdict == "violated"]
    assert violated[0].id == f"audit.acceptance/position {first}"
    assert meant.sentence in violated[0].notes
    assert violated[0].witness["kept"] < violated[0].witness["judged"]


def test_a_drop_of_acceptance_is_found_within_five_hundred_drafts(tmp_path: Path) -> None:
    """The drop of ROCm/ATOM #1557, 61% to 36%. Kills evidence that wastes most of what a count says."""
    file = tmp_path / "golden.json"
    Profile("", {p.name: p for p in sums(Rounds((61000,), 100000, 100000, 61000)).places(None, "")}, {}).save(file)
    found, _ = verdicts(Rounds((180,), 500, 500, 180), str(file), tmp_path)
    assert (found.verdict, found.witness["kept"]) == ("violated", 180)
    honest, _ = verdicts(Rounds((300,), 500, 500, 300), str(file), tmp_path)
    assert honest.verdict == "consistent"
    few, _ = verdicts(Rounds((3,), 5, 5, 3), str(file), tmp_path)
    assert few.verdict == "not tested"


@pytest.mark.parametrize(("bonus", "verdict"), [(0, "consistent"), (9, "not tested"), (2000, "violated")])
def test_two_counts_of_the_same_tokens_agree(bonus: int, verdict: str, tmp_path: Path) -> None:
    """Kills a bonus that is counted among the accepted tokens, and a scrape in a step that is accused."""
    file = tmp_path / "golden.json"
    Profile("", {p.name: p for p in sums(Rounds((61000,), 100000, 100000, 61000)).places(None, "")}, {}).save(file)
    position, counts = verdicts(Rounds((3000,), 5000, 5000, 3000 + bonus), str(file), tmp_path)
    assert (position.verdict, counts.verdict, counts.numbers["in all"]) == ("consistent", verdict, 3000 + bonus)


def sums(*parts: Rounds, requests: bool = False) -> Sums:
    made = Sums()
    made.add(Told("", parts, requests))
    return made


def test_evidence_and_its_interval_hold_at_every_look() -> None:
    """Null: a share of 0.6 or 0.05; n = 300 runs of 3,000 trials, 30 looks each, alpha = 0.05. More than 27 crossings
    have probability 1e-3 even at a rate of alpha. Kills evidence that is valid at one look, or for coins of one share
    alone: half of the runs have trials of many shares with this mean."""
    generator, bar = np.random.default_rng(0), log(1 / 0.05)
    for due in (0.6, 0.05):
        crossed = 0
        for run in range(300):
            chances = generator.beta(2 * due, 2 * (1 - due), 3000) if run % 2 else np.full(3000, due)
            kept = (generator.random(3000) < chances).cumsum() if run % 4 < 2 else chances.cumsum()
            looks = [Share(float(kept[n - 1]), n) for n in range(100, 3001, 100)]
            crossed += max(log_evidence(share, due, due) for share in looks) >= bar
            low, high = interval(looks[-1], 0.05)
            assert (low <= due <= high) == (log_evidence(looks[-1], due, due) <= bar)
        assert crossed <= 27


def test_what_is_said_to_be_detectable_is_detected() -> None:
    """n = 400 samples at the stated distance, of which 0.99 are due: at least 380. Kills a bound that forgets the
    noise, the interval of what is due, or the bar."""
    generator, bar = np.random.default_rng(1), 15.0
    for judged, low, high in ((2000, 0.5, 0.56), (300, 0.9, 0.9)):
        by = detectable(judged, low, high, bar)
        for share in (low - by, high + by):
            if 0 < share < 1:
                kept = generator.binomial(judged, share, 400)
                assert sum(log_evidence(Share(float(k), judged), low, high) >= bar for k in kept) >= 380


def test_requests_that_differ_are_no_finding() -> None:
    """Null: requests of 40 rounds, each with a share of its own (beta of mean 0.6); n = 200 audits, alpha = 0.05: more
    than 20 have probability 1e-3. Kills rounds of one request counted as if each stood alone (many are accused)."""
    generator, accused, alone = np.random.default_rng(2), 0, 0
    for _ in range(200):
        kept = generator.binomial(40, generator.beta(1.2, 0.8, 80))
        (place,) = sums(*(Rounds((int(k),), 40, 40, int(k)) for k in kept), requests=True).places(None, "")
        accused += log_evidence(place.share.thinned(place.alike), 0.6, 0.6) >= log(1 / 0.05)
        alone += log_evidence(place.share, 0.6, 0.6) >= log(1 / 0.05)
    assert accused <= 20 < alone


def test_short_drafts_are_given_the_benefit_of_the_doubt() -> None:
    """Kills rounds that ended before a position counted there as refusals, and an adaptive drafter accused."""
    told = Rounds((60, 30), 100, 180, 90)
    assert told.judged(0) == (90, 100)
    assert told.judged(1) == (40, 60)
    assert Rounds((60, 30), 100, 200, 90).judged(1) == (60, 60)


def test_tokens_alone_are_held_as_the_mean_of_a_block(golden: tuple[bool, str], tmp_path: Path) -> None:
    """Kills per-token counters read as per-round ones, and drafted tokens taken for independent trials."""
    told = rounds("", 4000, 7, golden[0])
    answer = {"timings": {"draft_n": told.drafted, "draft_n_accepted": told.accepted}}
    (tmp_path / "answers.jsonl").write_text(json.dumps(answer))
    with pytest.raises(BadInput, match="--draft-tokens N"):
        audit_acceptance([str(tmp_path / "answers.jsonl")], golden=golden[1])
    (found,) = audit_acceptance([str(tmp_path / "answers.jsonl")], golden=golden[1], draft_tokens=GAMMA)
    assert (found.verdict, found.id) == ("consistent", f"audit.acceptance/{MEAN}")
    answer["timings"]["draft_n_accepted"] = int(1.3 * told.accepted)
    (tmp_path / "answers.jsonl").write_text(json.dumps(answer))
    (found,) = audit_acceptance([str(tmp_path / "answers.jsonl")], golden=golden[1], draft_tokens=GAMMA)
    assert found.verdict == "violated"


def test_every_class_that_is_named_is_one_of_the_catalogue() -> None:
    """Kills a diagnosis that `refengine bugs` does not know."""
    for meant in (meaning.TOO_OFTEN, meaning.TOO_OFTEN_LATER, meaning.TOO_SELDOM, meaning.TOO_SELDOM_LATER):
        assert [found.name for found in named(meant.diagnosis("seen"))] == list(meant.classes)


def test_a_known_law_says_what_is_due(tmp_path: Path) -> None:
    """Kills a formula that is not what the rule accepts: counts of other requests of the same law are accused of
    nothing, those of a drafter that takes the argmax are; and a profile that is saved says the same."""
    pair = tmp_path / "pair"
    export_fixtures(pair)
    made = of_law(pair, 2, "drawn", 48, lambda what, share: None)
    made.save(tmp_path / "golden.json")
    assert load(tmp_path / "golden.json").places == made.places
    assert made.places.keys() == {"position 1", "position 2", MEAN}
    assert all(place.noise is not None and place.noise < 1 for place in made.places.values())  # chances beside coins
    whole = made.places["position 1"].share.kept + made.places["position 2"].share.kept
    assert whole == pytest.approx(2 * made.places[MEAN].share.kept)
    law, drafter = KnownLaw.load(pair), KnownLaw.load(pair, "drafter")
    for drawn, verdict in ((True, "consistent"), (False, "violated")):
        decoding = Decoding(law, drafter, 2, drawn)
        parts = [part for i, prompt in enumerate(law.prompts) for part in decoding.requests(law.ids(prompt), 24, 9 + i)]
        kept = tuple(int(sum(part.kept[position] for part in parts)) for position in range(2))
        count = sum(part.judged[0] for part in parts)
        file = scrape(Rounds(kept, count, 2 * count, sum(kept)), tmp_path / "metrics")
        found = audit_acceptance([file], known=str(pair), draft_tokens=2, requests=48)
        assert found[0].verdict == verdict, found[0]


def test_answers_with_their_steps_are_held_to_every_prefix(tmp_path: Path) -> None:
    """Null: 40 requests of two prompts that the law's own page does not weigh so, alpha = ALPHA. Kills a chance of the
    row beside, a bonus that counts as a draft, and steps that claim what the rows do not allow."""
    pair, prompts = tmp_path / "pair", ("w7 w9", "w12 w50 w3 w3")
    export_fixtures(pair)
    law, drafter = KnownLaw.load(pair), KnownLaw.load(pair, "drafter")
    honest, boast = [], []
    for number in range(40):
        coins, prompt = random.Random(number), law.ids(prompts[number % 2])
        text, steps = (int(law.logits(prompt, [()])[0].argmax()),), list[int]()
        while len(text) < 8 and law.end not in text:
            draft, q = (), list[list[float]]()
            for _ in range(2):
                q.append(drafter.logits(prompt, [text + draft])[0][-1].softmax(-1).tolist())
                draft += (coins.choices(range(64), q[-1])[0],)
            p = law.logits(prompt, [text + draft])[0][-3:].softmax(-1).tolist()
            emitted = leviathan(p, chain(draft, q, [("draft", 0), ("draft", 1)]), Sample(coins)).tokens  # type: ignore
            text, steps = text + emitted, [*steps, len(emitted) - 1]
        ended = law.end in text[:8]
        shown = text[: text.index(law.end)] if ended else text[:8]
        choice = {"text": " ".join(law.words[x] for x in shown), "finish_reason": "stop" if ended else "length"}
        for told, claimed in ((honest, steps), (boast, [2] * len(steps))):
            counts = [claimed.count(j) for j in range(3)]
            one = {"per_step_accepted": claimed, "per_step_drafted": [2] * len(claimed), "acceptance_histogram": counts}
            told.append({"prompt": prompts[number % 2], "choices": [choice], "metrics": one})
    for told, verdict in ((honest, "consistent"), (boast, "violated")):
        (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, told)))
        found = audit_acceptance([str(tmp_path / "answers.jsonl")], known=str(pair))
        assert [finding.verdict for finding in found] == [verdict] * 2, found
        assert "at every prefix" in str(found[0].witness or found[0].notes)
