"""`refengine decode` on what a user may get wrong beside the checkpoints: numbers, rules, stop tokens, tokenizers."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from transformers import GPT2Config, GPT2LMHeadModel

from refengine.commands.decode import Request, decode, stop_tokens
from refengine.errors import BadInput
from refengine.exact.rules import RULES
from refengine.source_tree import FIXTURES

TINY = FIXTURES / "tiny"
LOOKUP, DSPARK = Path("prompt_lookup"), TINY / "dspark"


def refused(target: Path, drafter: Path, message: str, **fields: Any) -> None:
    with pytest.raises(BadInput, match=message) as raised:
        decode(Request(target, drafter, **{"prompt": "1 2 3", "max_new_tokens": 4, **fields}))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("drafter", ["prompt_lookup", "ngram", "lookahead", str(TINY / "ar")])
def test_no_drafts_are_no_round(drafter: str) -> None:
    """Kills a ValueError of some drafter's own, which reads like an error of ours."""
    refused(TINY / "target", Path(drafter), "0 drafted tokens a round: there must be one", gamma=0)


@pytest.mark.parametrize("rule", [name for name, card in RULES.items() if card.drawn])
def test_a_rule_for_draws_refuses_fixed_candidates(rule: str) -> None:
    """Kills a rule that is asked to weigh rows which do not exist."""
    refused(TINY / "target", LOOKUP, f"--rule {rule} weighs what was drawn, and this drafter draws nothing", rule=rule)


def test_the_greedy_rule_wants_greedy_decoding() -> None:
    """Kills a temperature that is given and has no effect."""
    refused(TINY / "target", LOOKUP, "--rule greedy emits the argmax at any temperature", rule="greedy")
    decode(Request(TINY / "target", LOOKUP, "1 2 3", max_new_tokens=4, rule="greedy", temperature=0.0))


@pytest.mark.parametrize("seed", [-1, 1 << 64])
def test_seeds_have_64_bits(seed: int) -> None:
    """Kills a seed that is cut, or that fails inside the coins."""
    refused(TINY / "target", DSPARK, f"--seed {seed} is outside", seed=seed)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("tokenizer.json", "{", "cannot load its tokenizer: .*line 1"),
        ("tokenizer.json", "{}", "cannot load its tokenizer: KeyError"),
        ("generation_config.json", '{"eos_token_id": "2"}', "eos_token_id is '2', expected a token or a list of them"),
    ],
)
def test_damaged_files_beside_a_target_are_named(tmp_path: Path, file: str, text: str, message: str) -> None:
    """Kills a traceback of a parser, and a stop token that never stops because it is text."""
    folder = shutil.copytree(TINY / "target", tmp_path / "target")
    (folder / file).write_text(text)
    refused(folder, LOOKUP, message)


def test_a_text_beyond_learned_positions_is_refused(tmp_path: Path) -> None:
    """Kills an index error from inside a model."""
    config = GPT2Config(vocab_size=96, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    message = "prompt and new tokens are 33, drafts not counted, and the target has 16 positions"
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": []}')
    refused(tmp_path, LOOKUP, message, max_new_tokens=30)


def test_stop_tokens_inside_the_text_config_stop(tmp_path: Path) -> None:
    """Kills text that runs on because a multimodal config has its stop tokens one level down."""
    (tmp_path / "config.json").write_text('{"text_config": {"eos_token_id": [1, 106]}}')
    assert stop_tokens(tmp_path) == [1, 106]
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": 7}')
    assert stop_tokens(tmp_path) == [7]
