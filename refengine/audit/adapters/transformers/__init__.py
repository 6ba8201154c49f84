"""The installed transformers: its verification function and its assisted generation.

Read `kernel.py` with `kernel_law.py` (the function, exactly); `tiny_models.py`, `generate_cells.py`, `generate_law.py`,
`generate.py` (generation, exactly, on tiny float64 models).
"""

from functools import partial

from refengine.audit.adapters import Adapter
from refengine.audit.adapters.transformers.generate import audit_generate_hf
from refengine.audit.adapters.transformers.generate_cells import CELLS
from refengine.audit.adapters.transformers.kernel import audit_kernel_hf
from refengine.audit.adapters.transformers.library import INSTALL, installed

ADAPTER = Adapter(
    name="transformers",
    install=INSTALL,
    version=installed,
    audits={
        "kernel": audit_kernel_hf,
        **{f"generate {name}": partial(audit_generate_hf, (name,)) for name in CELLS},
    },
)
