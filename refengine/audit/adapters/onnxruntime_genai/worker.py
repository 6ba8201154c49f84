"""ONNX Runtime GenAI over the tiny pair. Runs under the engine's Python: `speak.py` says what is here."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

DRAFTED = 3
ONE_THREAD = {"model": {"decoder": {"session_options": {"intra_op_num_threads": 1, "inter_op_num_threads": 1}}}}
BUILDER = (sys.executable, "-m", "onnxruntime_genai.models.builder")


def convert(source: str, folder: str) -> None:
    """target/, drafter/ and both/: the target with the drafter below it, named by its configuration."""
    import onnx  # noqa: F401 (without it the builder has no word of what is missing)
    import onnx_ir  # noqa: F401

    made = Path(folder)
    for part in ("target", "drafter"):
        options = ["-i", str(Path(source) / part), "-o", str(made / part), "-c", str(made / "cache")]
        subprocess.run([*BUILDER, *options, "-p", "fp32", "-e", "cpu"], check=True)
    shutil.rmtree(made / "cache", ignore_errors=True)
    shutil.copytree(made / "target", made / "both")
    shutil.copytree(made / "drafter", made / "both" / "drafter")
    told = made / "both" / "genai_config.json"
    config, theirs = (json.loads((made / part / "genai_config.json").read_text()) for part in ("target", "drafter"))
    draft = dict(theirs["model"]["decoder"])
    draft["filename"] = "drafter/" + draft["filename"]
    config["model"]["draft"] = draft
    told.write_text(json.dumps(config, indent=1) + "\n")


def opened(folder: str) -> Any:
    import onnxruntime_genai as genai

    made: dict[str, Any] = {}

    def model(way: str) -> Any:
        part = "both" if way == "draft model" else "target"
        if part not in made:
            config = genai.Config(str(Path(folder) / part))
            config.overlay(json.dumps(ONE_THREAD))
            made[part] = genai.Model(config)
        return made[part]

    def generate(
        way: str,
        prompt: list[int],
        tokens: int,
        temperature: float,
        seed: int,
        top_k: int = 0,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        min_tokens: int = 0,
    ) -> list[int]:
        policy: dict[str, Any] = {"repetition_penalty": repetition_penalty, "do_sample": temperature > 0}
        if temperature > 0:
            policy |= {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        if min_tokens:
            policy["min_length"] = len(prompt) + min_tokens
        parameters = genai.GeneratorParams(model(way))
        parameters.set_search_options(max_length=len(prompt) + tokens, random_seed=seed, **policy)
        if way:
            lookup = {"ngram_size": 2} if way == "prompt lookup" else {}
            parameters.set_speculative_options(max_draft_tokens=DRAFTED, **lookup)
        generator = genai.Generator(model(way), parameters)
        generator.append_tokens(prompt)
        while not generator.is_done():
            generator.generate_next_token()
        return list(generator.get_sequence(0)[len(prompt) :])

    return generate
