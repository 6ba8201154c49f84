"""OpenVINO GenAI over the tiny pair. Runs under the engine's Python: `speak.py` says what is here."""

from pathlib import Path
from typing import Any

DRAFTED = 3


def convert(source: str, folder: str) -> None:
    from optimum.exporters.openvino import main_export

    for part in ("target", "drafter"):
        main_export(
            model_name_or_path=str(Path(source) / part),
            output=str(Path(folder) / part),
            task="text-generation-with-past",
            convert_tokenizer=True,
        )


def opened(folder: str) -> Any:
    """Pipelines are made when a way is first asked for."""
    import numpy
    import openvino
    import openvino_genai as genai

    precise = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    target, drafter = (str(Path(folder) / part) for part in ("target", "drafter"))
    made: dict[str, Any] = {}

    def pipeline(way: str) -> Any:
        if way not in made:
            more: dict[str, Any] = {}
            if way == "draft model":
                more["draft_model"] = genai.draft_model(drafter, "CPU", **precise)
            if way == "prompt lookup":
                more["prompt_lookup"] = True
            made[way] = genai.LLMPipeline(target, "CPU", scheduler_config=genai.SchedulerConfig(), **precise, **more)
        return made[way]

    def generate(
        way: str,
        prompt: list[int],
        tokens: int,
        temperature: float,
        seed: int,
        top_k: int | None = None,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        min_tokens: int = 0,
    ) -> list[int]:
        made_of = genai.GenerationConfig()
        made_of.max_new_tokens = tokens
        made_of.min_new_tokens = min_tokens
        made_of.set_eos_token_id(1)
        made_of.repetition_penalty = repetition_penalty
        made_of.presence_penalty = presence_penalty
        made_of.frequency_penalty = frequency_penalty
        made_of.do_sample = temperature > 0
        if temperature > 0:
            made_of.temperature, made_of.rng_seed, made_of.top_p, made_of.min_p = temperature, seed, top_p, min_p
            if top_k is not None:
                made_of.top_k = top_k
        if way:
            made_of.num_assistant_tokens = DRAFTED
        if way == "prompt lookup":
            made_of.max_ngram_size = 2
        ids = numpy.array([prompt], dtype=numpy.int64)
        given = genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(numpy.ones_like(ids)))
        return list(pipeline(way).generate(given, made_of).tokens[0])

    return generate
