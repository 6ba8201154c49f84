"""The released vectors and the challenge: one version is one text, and nothing of a transcript can be changed."""

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from properties.helpers.command_line import run
from refengine.commands import challenge
from refengine.commands.vectors_release import DIGEST, SCHEMA, VERSION, digest_of, release
from refengine.errors import BadInput
from refengine.source_tree import ROOT

SEED = "nothing up my sleeve"


def test_the_release_obeys_its_schema_and_its_sums(tmp_path: Path) -> None:
    """Kills a schema that does not describe the vectors, one that lets a broken vector through, and wrong checksums."""
    assert run("vectors", "release", tmp_path / "new") == 0
    given = json.loads((tmp_path / "new" / f"vectors-{VERSION}.json").read_text())
    schema = json.loads((tmp_path / "new" / SCHEMA.name).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    law = jsonschema.Draft202012Validator(schema)
    law.validate(given)
    released = given["version"], given["digest"]
    assert released == (VERSION, DIGEST), "other vectors are another release: VERSION and DIGEST of vectors_release.py"
    for line in (tmp_path / "new" / "SHA256SUMS").read_text().splitlines():
        value, name = line.split("  ")
        assert hashlib.sha256((tmp_path / "new" / name).read_bytes()).hexdigest() == value
    for broken in ({"p": [[1.5]]}, {"emitted": [-1]}, {"uniforms": {"draft 0": [1, 2]}}, {"scale": 255}, {"more": 1}):
        assert not law.is_valid({**given, "vectors": [{**given["vectors"][0], **broken}]}), broken


@pytest.fixture
def answered(tmp_path: Path) -> Path:
    """A challenge with right answers in a folder."""
    assert run("challenge", "new", "--seed", SEED, "--out", tmp_path / "challenge.json") == 0
    answers = [vector["emitted"] for vector in challenge.fresh_vectors(SEED, asked(tmp_path)["rules"])]
    (tmp_path / "answers.jsonl").write_text("".join(f"{answer}\n" for answer in answers))
    return tmp_path


def asked(folder: Path) -> Any:
    return json.loads((folder / "challenge.json").read_text())


def check(folder: Path, seed: str = SEED) -> int:
    files = (folder / "challenge.json", folder / "answers.jsonl")
    return run("challenge", "check", *files, "--seed", seed, "--out", folder / "transcript.json")


def test_a_challenge_shows_neither_seed_nor_answers(answered: Path) -> None:
    """Kills questions that give their answers away, vectors that are the released ones, and a seed without effect."""
    made = asked(answered)
    assert SEED not in json.dumps(made)
    assert not {"emitted", "path"} & {key for vector in made["vectors"] for key in vector}
    assert made["vectors"] != challenge.new("another seed")["vectors"]
    released = [json.dumps(v["p"]) for v in release()["vectors"]]
    assert all(json.dumps(vector["p"]) not in released for vector in made["vectors"])


def test_right_answers_pass_and_one_altered_token_does_not(answered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a check that compares lengths, or the first answer alone."""
    assert check(answered) == 0
    assert run("challenge", "verify", answered / "transcript.json") == 0
    lines = (answered / "answers.jsonl").read_text().splitlines()
    last = json.loads(lines[-1])
    lines[-1] = json.dumps([*last[:-1], (last[-1] + 1) % 3])
    (answered / "answers.jsonl").write_text("\n".join(lines))
    capsys.readouterr()
    assert check(answered) == 1
    told = capsys.readouterr().out
    assert f"wrong: {asked(answered)['vectors'][-1]['id']}" in told
    assert f"({len(lines) - 1} of {len(lines)} answers are right)" in told
    assert run("challenge", "verify", answered / "transcript.json") == 1


def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills docs/vectors.md with a command that is not there, or that does not say what it promises."""
    page = (ROOT / "docs" / "vectors.md").read_text()
    lines = [shlex.split(line)[1:] for line in page.splitlines() if line.startswith("refengine challenge")]
    assert [words[1] for words in lines] == ["new", "check", "verify"]
    monkeypatch.chdir(tmp_path)
    assert run(*lines[0]) == 0
    seed = lines[0][lines[0].index("--seed") + 1]
    answers = [vector["emitted"] for vector in challenge.fresh_vectors(seed, asked(tmp_path)["rules"])]
    (tmp_path / "answers.jsonl").write_text("".join(f"{answer}\n" for answer in answers))
    assert [run(*words) for words in lines[1:]] == [0, 0]


@pytest.mark.parametrize("answer", ["[true, 1]", "[1.0, 1]", '"[0]"', "null", "{}", "[]"])
def test_what_is_no_list_of_whole_numbers_is_wrong(answer: str) -> None:
    """Kills a comparison for which true is 1 and 1.0 is 1."""
    assert not challenge.same([1, 1], json.loads(answer))


def test_a_wrong_seed_and_edited_questions_are_refused(answered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a verdict about questions that the seed did not make."""
    assert check(answered, "another seed") == 2
    assert "not the one that the challenge is committed to" in capsys.readouterr().err
    made = asked(answered)
    made["vectors"][0]["p"][0] = made["vectors"][0]["p"][0][::-1]
    (answered / "challenge.json").write_text(json.dumps(made))
    assert check(answered) == 2
    assert "not what its seed makes" in capsys.readouterr().err
    (answered / "challenge.json").write_text("[]")
    assert check(answered) == 2


def test_a_transcript_that_was_edited_does_not_hold(answered: Path) -> None:
    """Kills a verdict that is read off the file, a digest that is not compared, and a signature nobody demands."""
    assert check(answered) == 0
    document = json.loads((answered / "transcript.json").read_text())
    transcript, published = document["transcript"], document["digest"]

    def edited(**changes: Any) -> dict[str, Any]:
        told = {**transcript, **changes}
        return {"transcript": told, "digest": digest_of(told)}

    first = transcript["answers"][0]
    altered = edited(answers=[[(first[0] + 1) % 3, *first[1:]], *transcript["answers"][1:]])
    assert "its verdict is not that of its answers" in challenge.verified(altered, None)[1]
    excused = edited(wrong=["leviathan/0/0/low"])
    assert "its digest is not the one that was published" in challenge.verified(excused, None, published)[1]
    stale = {"transcript": altered["transcript"], "digest": published}
    assert "its digest is not that of its text" in challenge.verified(stale, None)[1]
    signed = challenge.signed(transcript, "key")
    assert challenge.verified(signed, "key") == (transcript, [])
    assert challenge.verified(signed, "another key")[1] == ["it is not signed with this key"]
    assert challenge.verified(document, "key")[1] == ["it is not signed with this key"]
    with pytest.raises(BadInput, match="answers to"):
        challenge.verified(edited(answers=transcript["answers"][1:]), None)
    with pytest.raises(BadInput, match="no transcript"):
        challenge.verified({"digest": published}, None)
