"""The schemas of released layouts, and what each says of the fixtures that are written in it.

`fixtures` of a schema names a folder where something about it is not what the tests of all layouts expect:

    layers       "fixed" or "none" where no config asks for a further one, "transformers'" where they are theirs
    angles       "none", or where scalings are said in other words than those of transformers
    drafts       "one a module" where no number of drafts can be asked for
    no effect    fields that are read, and change nothing beside the rest of this config, with the reason
    unsaid       fields that no fixture of the layout says: the value that is taken then, and another
    another where left out    fields without which it is another drafter, and the test that says which
"""

import json
from typing import Any

from refengine.source_tree import FIXTURES

SCHEMAS: dict[str, dict[str, Any]] = {
    file.stem: json.loads(file.read_text()) for file in sorted((FIXTURES / "schemas").glob("*.json"))
}
SPECIAL: dict[str, dict[str, Any]] = {
    folder: said for schema in SCHEMAS.values() for folder, said in schema.get("fixtures", {}).items()
}
KINDS = {"layers", "angles", "drafts", "no effect", "unsaid", "another where left out"}


def special(folder: str, kind: str) -> Any:
    """What a schema says of a folder; nothing, unless it says something."""
    assert kind in KINDS
    return SPECIAL.get(folder, {}).get(kind, {})
