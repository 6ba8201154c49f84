"""mlx-lm, on a CPU: speculative_generate_step with a draft model, and its server. Read `worker.py`."""

from functools import partial
from pathlib import Path

from refengine.audit.adapters import Adapter, Engine, package_version

INSTALL = "pip install 'refengine[mlx]'"


def serve(python: str, folder: Path, way: str, port: int) -> tuple[list[str], str]:
    program = [python, "-m", "mlx_lm.server", "--model", str(folder / "target"), "--port", str(port)]
    return [*program, *(["--draft-model", str(folder / "drafter")] if way else [])], "default_model"


ADAPTER = Adapter(
    name="mlx_lm",
    install=INSTALL,
    version=partial(package_version, "mlx-lm", INSTALL),
    engine=Engine("mlx-lm", "mlx", INSTALL, ("draft model",), ("draft model",), serve),
)
