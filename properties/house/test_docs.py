"""What documents say of the source is so."""

import re

from refengine.source_tree import PACKAGE, ROOT

LISTED = re.compile(r"^\| `([\w/]+\.py)` \| (\d+) \|", re.MULTILINE)


def test_the_walk_through_the_decoder_has_every_file_and_its_length() -> None:
    """Kills a walk that leaves out what must be trusted, names what is gone, or promises fewer lines than there are."""
    text, rooms = (ROOT / "docs" / "decoder.md").read_text(), PACKAGE / "decoder"
    listed = {file: int(lines) for file, lines in LISTED.findall(text)}
    files = [file for file in rooms.rglob("*.py") if file.name != "__init__.py" and file.parent.name != "layouts"]
    lines = {file.relative_to(rooms).as_posix(): len(file.read_text().splitlines()) for file in files}
    assert listed.keys() == lines.keys()
    assert [name for name in lines if abs(listed[name] - lines[name]) > max(5, lines[name] // 10)] == []
    (said,) = (int(number.replace(",", "")) for number in re.findall(r"below are ([\d,]+), comments", text))
    assert abs(said - sum(lines.values())) <= sum(lines.values()) // 10
