"""Which transformers is installed, and what its children import before they are forked."""

from refengine.audit.adapters import package_version

INSTALL = "pip install transformers"
PRELOAD = ("refengine.audit.adapters.transformers.generate_law", "refengine.audit.adapters.transformers.kernel_law")


def installed() -> str:
    """Its version. Raises Absent."""
    return package_version("transformers", INSTALL)
