"""SGLang's verification kernels, without a GPU: chains, blocks, DSpark's, UNO's and greedy trees. Read `worker.py`."""

from functools import partial

from refengine.audit.adapters import TREE, Adapter, Kernels, package_version

INSTALL = "pip install 'refengine[sglang]'"

ADAPTER = Adapter(
    name="sglang_kernels",
    install=INSTALL,
    version=partial(package_version, "sglang", INSTALL),
    kernels=Kernels(
        package="sglang",
        ways={
            "chain": "verify_batch",
            "chain, block": "verify_batch",
            "blockwise, draft rows": "verify_batch",
            "blockwise, no rows": "verify_batch",
            "blockwise in torch": "verify_batch",
            "sparse in torch": "verify_batch",
            "greedy tree": TREE,
            "tree": "verify_batch",
        },
        coins=("chain", "chain, block", "sparse in torch"),
    ),
)
