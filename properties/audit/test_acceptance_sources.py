"""What engines write of their speculation is read in each format; what cannot be read is one clear line."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from refengine.audit.acceptance.due import load, together
from refengine.audit.acceptance.rounds import Rounds
from refengine.audit.acceptance.sources import read, sources
from refengine.audit.acceptance.sources.logs import counts
from refengine.cli import app
from refengine.errors import BadInput
from refengine.source_tree import ROOT

NAME = "vllm:spec_decode_num_"


def metrics(*parts: tuple[str, float], name: str = NAME) -> str:
    """Counters, the labels within their names."""
    return "# TYPE x counter\nother_total 3\n" + "".join(f"{name}{part} {value}\n" for part, value in parts)


WHOLE = (
    ('drafts_total{engine="0",model_name="m"}', 10.0),
    ('drafts_created{engine="0",model_name="m"}', 1.7e9),
    ('draft_tokens_total{engine="0",model_name="m"}', 20.0),
    ('accepted_tokens_total{engine="0",model_name="m"}', 9.0),
    ('accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"}', 6.0),
    ('accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"}', 3.0),
)
TEN = Rounds((6, 3), 10, 20, 9)
VLLM_LOG = (
    "(APIServer pid=1) INFO 05-03 18:50:55 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 2.79,"
    " Accepted throughput: 0.05 tokens/s, Drafted throughput: 0.05 tokens/s, Accepted: 25 tokens, Drafted: 28 tokens,"
    " Per-position acceptance rate: 0.929, 0.857, Avg Draft acceptance rate: 89.3%"
)
LLAMA_LOG = (
    "0.06.896.015 I slot print_timing: id  1 | task 0 | draft acceptance = 0.64479 (  167 accepted /   259 generated),"
    " mean acceptance length =  2.92, acceptance rate per position = (0.805, 0.632, 0.483)"
)
VLLM_ANSWER = {
    "choices": [{"text": "w1"}],
    "model": "m",
    "metrics": {
        "speculative_decoding": {
            "acceptance_histogram": [39, 1, 0, 3],
            "acceptance_histogram_by_draft_length": {"3": [39, 1, 0, 3], "1": [2, 5]},
            "num_spec_steps": 50,
            "num_accepted_draft_tokens": 15,
            "num_draft_tokens": 136,
        }
    },
}
SGLANG_ANSWER = {"text": "w1", "meta_info": {"spec_verify_ct": 6, "spec_accept_histogram": [1, 2, 3], "id": "x"}}
PROFILE = {
    "schema_version": "1.0",
    "measured": True,
    "num_speculative_tokens": 3,
    "conditional_accept_rates": [0.6, 0.5, 0.0],
    "acceptance_length_histogram": {"1": 40, "2": 30, "3": 30},
}


def told(text: str, folder: Path, name: str = "file", since: str = "") -> list[Rounds]:
    (folder / name).write_text(text)
    (folder / "since").write_text(since)
    read_ = read(folder / name, folder / "since" if since else None)
    return [part for one in read_ for part in one.parts]


READ = {
    "vLLM's counters": (metrics(*WHOLE), TEN),
    "llama.cpp's counters": (metrics(*WHOLE, name="llamacpp:spec_decode_num_"), TEN),
    "vLLM's log": (VLLM_LOG, Rounds((13, 12), 14, 28, 25)),
    "llama.cpp's log": (LLAMA_LOG, Rounds((70, 55, 42), 87, 259, 167)),
    "an older log": ("slot x: draft acceptance rate = 0.57576 (  171 accepted /   297 generated)",
                     Rounds((), None, 297, 171)),
    "vLLM's answer": (json.dumps(VLLM_ANSWER), Rounds((9, 3, 3), 50, 136, 15)),
    "SGLang's answer": (json.dumps(SGLANG_ANSWER), Rounds((5, 3), 6, 12, 8)),
    "llama.cpp's answer": ('{"timings": {"draft_n": 347, "draft_n_accepted": 65}}', Rounds((), None, 347, 65)),
    "a profile": (json.dumps(PROFILE), Rounds((60, 30, 0), 100, 300, 90)),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_each_format_is_read(name: str, tmp_path: Path) -> None:
    """Kills a bonus token counted as a draft, survival read as a histogram, and a rate rounded to the wrong count."""
    text, due = READ[name]
    assert told(text, tmp_path) == [due]


def test_every_file_of_the_folder_is_a_source() -> None:
    """Kills a reader that nothing registers."""
    assert len({source.name for source in sources()}) == 4


def test_between_two_scrapes_the_difference_counts(tmp_path: Path) -> None:
    """Kills counts since the server's start held to a profile of another day, and a position that came in between."""
    later = [(name, value if "created" in name else 3 * value) for name, value in WHOLE]
    assert told(metrics(*later), tmp_path, since=metrics(*WHOLE[:-1])) == [Rounds((12, 9), 20, 40, 18)]
    assert told(metrics(*later), tmp_path, since=metrics(*WHOLE)) == [Rounds((12, 6), 20, 40, 18)]


def test_engines_of_one_model_are_added_up(tmp_path: Path) -> None:
    """Kills the last of several series taken for all."""
    other = [(name.replace('engine="0"', 'engine="1"'), value) for name, value in WHOLE]
    (tmp_path / "file").write_text(metrics(*WHOLE, *other))
    (one,) = read(tmp_path / "file")
    assert one.parts == (Rounds((12, 6), 20, 40, 18),)
    assert one.notes == ("The sum of 2 series: engine 0; engine 1.",)


@pytest.mark.parametrize(
    ("text", "since", "says"),
    [
        (metrics(*WHOLE), metrics((WHOLE[0][0], 11.0)), "went from 11 to 10, so the server was started again"),
        (metrics(*WHOLE), metrics((WHOLE[1][0], 1.6e9)), "was started again"),
        (metrics(*WHOLE), metrics(('drafts_total{engine="9"}', 1.0)), "is gone, so the server was started again"),
        (metrics(*WHOLE[:4], WHOLE[5]), "", "none of position 0"),
        (metrics(*WHOLE[:2], *WHOLE[3:]), "", "has no spec_decode_num_draft_tokens_total of the model 'm'"),
        (metrics(*WHOLE).rstrip("3.0\n"), "", "line 8 is no whole sample of a counter"),
        (metrics(*WHOLE[:5], (WHOLE[5][0], 7.0)), "", "more drafts are kept at position 2 (7) than are reached"),
        (metrics(*WHOLE[:3], (WHOLE[3][0], 21.0)), "", "21 tokens are accepted of 20 drafted"),
        ("sglang:spec_accept_rate 0.5\n", "", "rates without counts"),
        ("x accept len: 2.36, accept rate: 0.19", "", "SGLang's accept len and rate are none"),
        (VLLM_LOG[:-90], "", "no whole line"),
        (VLLM_LOG.replace("0.857", "0.700"), "", "no whole numbers have these rates"),
        (VLLM_LOG, VLLM_LOG, "--since is an earlier scrape of counters"),
        ('{"timings": {"draft_n": 3, "draft_n_accepted": 1}}\n{"ti\n{}', "", "line 2 is no JSON"),
        ('{"acceptance_histogram": ["x"]}', "", "is no count"),
        ('{"schema_version": 1, "measured": false}', "", "is a stub"),
        ('{"schema_version": 1, "measured": true, "conditional_accept_rates": [0.5]}', "", "rates without counts"),
        ("hello", "", "tells nothing of speculation that is known here"),
    ],
)
def test_what_cannot_be_read_is_one_line(text: str, since: str, says: str, tmp_path: Path) -> None:
    """Kills a restarted server's counters subtracted, a missing position taken for zero, and a traceback."""
    with pytest.raises(BadInput) as error:
        told(text, tmp_path, since=since)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_cut_off_is_left_out_and_said(tmp_path: Path) -> None:
    """Kills half a line counted, and a log of a running server refused for its end."""
    answers = "\n".join([json.dumps(SGLANG_ANSWER), json.dumps(SGLANG_ANSWER), '{"meta_info": {"spec_acc'])
    for text, count in ((answers, 2), (f"{VLLM_LOG}\n{VLLM_LOG}\n{VLLM_LOG[:200]}", 2)):
        (tmp_path / "file").write_text(text)
        (one,) = read(tmp_path / "file")
        assert len(one.parts) == count
        assert "cut off" in one.notes[0]


def test_of_several_models_one_is_named(tmp_path: Path) -> None:
    """Kills two models added up and held to one profile."""
    other = [(name.replace('"m"', '"n"'), 2 * value) for name, value in WHOLE]
    (tmp_path / "file").write_text(metrics(*WHOLE, *other))
    found = read(tmp_path / "file")
    with pytest.raises(BadInput, match="name one with --model, of 'm', 'n'"):
        together(found, None, "file")
    assert together(found, "n", "file").parts == [Rounds((12, 6), 20, 40, 18)]
    with pytest.raises(BadInput, match="tells nothing of the model 'x'"):
        together(found, "x", "file")


@pytest.mark.parametrize("kept", [(70, 55, 42), (1, 0, 0), (497, 3, 1), (41234, 30007, 20011), (64000, 64000, 63997)])
def test_rates_of_three_decimals_are_counts_again(kept: tuple[int, ...]) -> None:
    """Kills a neighbouring count that has the accepted tokens and other rates, and a busy server's line refused: of
    64,123 rounds a rate of three decimals leaves 64 counts open."""
    count = {70: 87, 1: 999, 497: 500}.get(kept[0], 64123)
    rates = tuple(float(f"{k / count:.3f}") for k in kept)
    found = counts(rates, sum(kept), 3 * count)
    assert found is not None
    assert (found.count, sum(found.kept)) == (count, sum(kept))
    assert found.check("") is found
    assert found.kept == kept or count == 64123
    assert all(abs(here - true) <= 0.00051 * count for here, true in zip(found.kept, kept, strict=True))


def test_rates_of_a_checkpoint_can_be_due(tmp_path: Path) -> None:
    """Kills a profile without counts taken for one of no rounds."""
    bare = {name: value for name, value in PROFILE.items() if name != "acceptance_length_histogram"}
    (tmp_path / "golden").write_text(json.dumps(bare))
    assert load(tmp_path / "golden").due("position 2", 1e-6, 0.02) == pytest.approx((0.48, 0.52))
    assert load(tmp_path / "golden").due("position 4", 1e-6, 0.02) is None


def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a page whose commands nobody has tried (docs/auditing.md)."""
    monkeypatch.chdir(tmp_path)
    for name, factor in (("metrics-good", 90), ("metrics-before", 5), ("metrics", 100)):
        counted = [(n, v if "created" in n else factor * v) for n, v in WHOLE]
        (tmp_path / f"{name}.txt").write_text(metrics(*counted))
    (page,) = re.findall(
        r"```sh\n(refengine audit acceptance.*?)```", (ROOT / "docs" / "auditing.md").read_text(), re.S
    )
    for line in page.splitlines():
        told_ = CliRunner().invoke(app, line.split()[1:])
        assert told_.exit_code == 0, told_.output
    assert "VERDICT consistent (3 consistent)" in told_.output
    assert (tmp_path / "junit.xml").exists()


def test_the_command_writes_what_the_others_write(tmp_path: Path) -> None:
    """Kills an exit code of its own, a file that is not written, and a due profile that nobody named."""
    for name, factor in (("a", 100.0), ("b", 200.0)):
        (tmp_path / name).write_text(metrics(*[(n, v if "created" in n else factor * v) for n, v in WHOLE]))
    few = [*WHOLE[:3], (WHOLE[3][0], 4.0), (WHOLE[4][0], 3.0), (WHOLE[5][0], 1.0)]
    (tmp_path / "c").write_text(metrics(*[(n, v if "created" in n else 100 * v) for n, v in few]))
    ask, golden = ["audit", "acceptance"], str(tmp_path / "golden.json")
    assert CliRunner().invoke(app, [*ask, str(tmp_path / "a"), "--save-golden", golden]).exit_code == 0
    files = [f"--{kind}={tmp_path / kind}" for kind in ("out", "junit", "sarif", "summary", "badge")]
    honest = CliRunner().invoke(app, [*ask, str(tmp_path / "b"), "--golden", golden, *files])
    assert honest.exit_code == 0, honest.output
    assert "VERDICT consistent (3 consistent)" in honest.output
    assert all((tmp_path / kind).stat().st_size > 50 for kind in ("out", "junit", "sarif", "summary", "badge"))
    wrong = CliRunner().invoke(app, [*ask, str(tmp_path / "c"), "--golden", golden])
    assert wrong.exit_code == 1
    assert "kept too seldom, 0.300 of the time" in " ".join(wrong.output.split())
    for asked, says in (((), "what the engine counted"), ((str(tmp_path / "a"),), "what is due")):
        assert says in str(CliRunner().invoke(app, [*ask, *asked]).exception)
