"""OpenVINO GenAI: LLMPipeline with a draft model and with prompt lookup. Read `worker.py`."""

from functools import partial

from refengine.audit.adapters import Adapter, Engine, package_version

INSTALL = "pip install 'refengine[openvino]'"
CONVERTER = "pip install 'refengine[openvino]' 'optimum-intel[openvino]'"

ADAPTER = Adapter(
    name="openvino_genai",
    install=INSTALL,
    version=partial(package_version, "openvino-genai", INSTALL),
    engine=Engine("openvino-genai", "openvino", CONVERTER, ("draft model", "prompt lookup")),
)
