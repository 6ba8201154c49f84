"""What `refengine decode` says of a request beside its text."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from refengine.commands import decode as command
from refengine.commands.decode import as_chat, compiled_fitting
from refengine.commands.decode_figures import by_position, figures, play
from refengine.commands.decode_request import Request
from refengine.decoder.checkpoints.load import load_drafter, load_target
from refengine.decoder.loop import Played, Session, fitting, generate
from refengine.decoder.protocols import Tokens, Verdict
from refengine.engine.block import Block
from refengine.engine.coins import Philox
from refengine.engine.kernels import CompiledPhilox
from refengine.engine.policy import pipeline, temperature
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

JUDGED, OVERLAP = "accepted of those judged, by position", "sum of min(p, q), by position"


def round_of(parents: list[int], path: tuple[int, ...], p: list[list[float]], q: list[list[float]] | None) -> Played:
    tokens = torch.zeros(1, len(parents), dtype=torch.long)
    block = Block(tokens, torch.tensor([parents], dtype=torch.long), None if q is None else torch.tensor([q]))
    tokens_out = (0,) * (len(path) + 1)
    return Played(block, torch.tensor(p), Verdict(tokens_out, path), tokens_out)


def test_acceptance_is_of_what_was_judged() -> None:
    """Kills a rate over all that was drafted: what stands behind a refusal was never judged. By hand."""
    p, q = [[0.5, 0.5]] * 3, [[0.75, 0.25], [1.0, 0.0]]
    rounds = [round_of([-1, 0], path, p, q) for path in ((), (0,), (0, 1))]
    assert by_position(rounds) == {JUDGED: [0.667, 0.5], OVERLAP: [0.75, 0.5]}
    tree = [round_of([-1, -1, 1], path, [[0.5, 0.5]] * 4, None) for path in ((0,), (1,), (1, 2), ())]
    # Node 0 has no child, so after it nothing is judged; two paths go on from node 1.
    assert by_position(tree) == {JUDGED: [0.75, 0.5]}
    assert by_position([round_of([], (), [[0.5, 0.5]], None)]) == {JUDGED: []}


def test_the_clock_changes_nothing() -> None:
    """Kills a timed loop that is not the loop: another order, a coin of another place, a compiled rule that differs."""
    policy, requests = pipeline(temperature(1.0)), torch.tensor([0])
    target = load_target(FIXTURES / "tiny" / "target", torch.float32)
    drafter = load_drafter(FIXTURES / "tiny" / "dspark", target)
    want = generate(target, drafter, fitting, policy, (2, 3, 2, 4), 24, Philox(5, requests))
    session = Session(target, drafter, compiled_fitting, policy, 24)
    clock = play(session, (2, 3, 2, 4), CompiledPhilox(5, requests))
    assert session.out == want.tokens
    found = figures(session, clock)
    assert found["tokens"] == 24
    assert found["rounds"] == len(want.rounds)
    assert len(found[JUDGED]) == len(found[OVERLAP]) > 1
    assert 0 < clock.first < clock.first + clock.drafting + clock.verifying <= clock.whole


def test_times_are_of_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a rate over the prompt's pass too, drafting that is counted as verifying, a mean over tokens.

    The clock goes on by a second, then two, then three, whenever it is read: twice for the prompt, then three times a
    round and once at the end.
    """
    readings = itertools.accumulate(itertools.count())
    monkeypatch.setattr("refengine.commands.decode_figures.now", lambda device: float(next(readings)))
    target = load_target(FIXTURES / "tiny" / "target", torch.float32)
    drafter = load_drafter(FIXTURES / "tiny" / "dspark", target)
    session = Session(target, drafter, fitting, pipeline(temperature(1.0)), 12)
    said = figures(session, play(session, (4, 3, 4, 0), Philox(3, torch.tensor([0]))))
    rounds, emitted = said["rounds"], said["tokens"] - 1
    assert rounds > 1
    drafting, verifying = (sum(first + 3 * k for k in range(rounds)) for first in (3, 4))
    last = 2 + 3 * rounds  # the reading at the end, which is that many seconds after the one before
    assert said["seconds to the first token"] == 1
    assert said["milliseconds drafting a round"] == round(1e3 * drafting / rounds, 3)
    assert said["milliseconds verifying a round"] == round(1e3 * verifying / rounds, 3)
    assert said["tokens per second after it"] == round(emitted / (last * (last + 1) / 2 - 1), 3)


def tokenizer(template: str | None) -> Any:
    """Words to ids, <s> before every text."""
    words = {word: i for i, word in enumerate(("<s>", "[user]", "[assistant]", "hello", "there", "[quiet]"))}
    inner = Tokenizer(models.WordLevel(words, unk_token="<s>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    made: Any = PreTrainedTokenizerFast(tokenizer_object=inner)
    made.chat_template = template
    return made


TURNS = "<s> {% for m in messages %}[{{ m['role'] }}] {{ m['content'] }} {% endfor %}"
QUIET = "{% if enable_thinking is defined and enable_thinking is false %} [quiet]{% endif %}"  # as Qwen3's has it
CHAT = TURNS + "{% if add_generation_prompt %}[assistant]" + QUIET + "{% endif %}"


@pytest.mark.parametrize(("chat", "prompt"), [(False, (0, 3, 4)), (True, (0, 1, 3, 4, 2, 5))])
def test_a_chat_is_put_into_the_words_of_the_template(
    chat: bool, prompt: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills a prompt without the assistant's turn, one that begins twice, and one that asks the target to think, in the
    loop that the command plays."""
    asked: list[Tokens] = []

    def noted(session: Session, prompt: Tokens, coins: Any) -> Any:
        asked.append(prompt)
        return play(session, prompt, coins)

    monkeypatch.setattr(command, "play", noted)
    monkeypatch.setattr(command, "load_tokenizer", lambda folder: tokenizer(CHAT))
    command.decode(Request(FIXTURES / "tiny" / "target", Path("prompt_lookup"), "hello there", 2, chat=chat))
    assert asked == [prompt]


@pytest.mark.parametrize("template", [None, "{{ nobody.content }}", "{% for"])
def test_a_template_that_is_not_there_or_fails_is_one_line(template: str | None) -> None:
    """Kills a chat that is decoded as plain text, and a traceback of a template."""
    for given in (tokenizer(template), *([None] if template is None else [])):
        with pytest.raises(BadInput, match=r"^--chat: ") as raised:
            as_chat("hello", given)
        assert "\n" not in str(raised.value)
