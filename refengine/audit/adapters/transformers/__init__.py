"""The installed transformers: its verification function and its assisted generation.

Read `library.py` (which version), `kernel.py` with `kernel_law.py` (the function, exactly); `tiny_models.py`,
`generate_cells.py`, `generate_law.py`, `generate.py` (generation, exactly, on tiny float64 models). `worker.py` is the
engine that `audit engine` asks.
"""

from functools import partial
from pathlib import Path

from refengine.audit.adapters import Adapter, Engine
from refengine.audit.adapters.transformers.generate import audit_generate_hf
from refengine.audit.adapters.transformers.generate_cells import CELLS
from refengine.audit.adapters.transformers.kernel import audit_kernel_hf
from refengine.audit.adapters.transformers.library import INSTALL, installed

COMMAND = "from transformers.cli.transformers import main; main()"  # its script may lie beside another Python


def serve(python: str, folder: Path, way: str, port: int) -> tuple[list[str], str]:
    """Its server reads from the model's generation_config.json whether it speculates."""
    model = str(folder / ("lookup" if way else "target"))
    program = [python, "-c", COMMAND, "serve", model]
    return [*program, "--port", str(port), "--host", "127.0.0.1", "--device", "cpu"], model


ADAPTER = Adapter(
    name="transformers",
    install=INSTALL,
    version=installed,
    audits={
        "kernel": audit_kernel_hf,
        **{f"generate {name}": partial(audit_generate_hf, (name,)) for name in CELLS},
    },
    engine=Engine(
        package="transformers",
        format="hf",
        converter=INSTALL,
        ways=("draft model", "prompt lookup", "early exit"),
        served=("prompt lookup",),
        serve=serve,
    ),
)
