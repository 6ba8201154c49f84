"""ONNX Runtime GenAI: Generator with a draft model and with n-gram lookup. Read `worker.py`."""

from functools import partial

from refengine.audit.adapters import Adapter, Engine, package_version

INSTALL = "pip install 'refengine[onnx]'"
CONVERTER = "pip install 'refengine[onnx]' onnx onnx_ir torch transformers"

ADAPTER = Adapter(
    name="onnxruntime_genai",
    install=INSTALL,
    version=partial(package_version, "onnxruntime-genai", INSTALL),
    engine=Engine("onnxruntime-genai", "onnx", CONVERTER, ("draft model", "prompt lookup")),
)
