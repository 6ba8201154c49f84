"""llama.cpp through its Python package: prompt lookup, a draft model of one's own, and its server. Read `worker.py`."""

from functools import partial
from pathlib import Path

from refengine.audit.adapters import Adapter, Engine, package_version

INSTALL = "pip install 'refengine[gguf]'"


def serve(python: str, folder: Path, way: str, port: int) -> tuple[list[str], str]:
    lookup = ["--draft_model", "prompt-lookup-decoding", "--draft_model_num_pred_tokens", "3"] if way else []
    model = str(folder / "target.gguf")
    program = [python, "-m", "llama_cpp.server", "--model", model, "--port", str(port), "--n_ctx", "256"]
    return [*program, *lookup, "--verbose", "False"], model


ADAPTER = Adapter(
    name="llama_cpp",
    install=INSTALL,
    version=partial(package_version, "llama-cpp-python", INSTALL),
    engine=Engine(
        "llama-cpp-python",
        "gguf",
        "pip install gguf safetensors",
        ("prompt lookup", "draft model"),
        ("prompt lookup",),
        serve,
    ),
)
