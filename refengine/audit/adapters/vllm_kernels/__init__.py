"""vLLM's verification kernels, without a GPU: rejection sampling of both model runners. Read `worker.py`."""

from functools import partial

from refengine.audit.adapters import Adapter, Kernels, package_version

INSTALL = "pip install 'refengine[vllm]'"

ADAPTER = Adapter(
    name="vllm_kernels",
    install=INSTALL,
    version=partial(package_version, "vllm", INSTALL),
    kernels=Kernels(
        package="vllm",
        ways={
            "first runner, draft rows": "verify_batch",
            "first runner, no rows": "verify_batch",
            "second runner, draft rows": "verify_batch",
            "second runner, no rows": "verify_batch",
            "second runner, grammar": "verify_batch",
            "second runner, block, draft rows": "verify_batch",
            "second runner, block, no rows": "verify_batch",
            "second runner, own drafts": "round",
            "second runner, block, own drafts": "round",
        },
        mixed=True,
    ),
)
