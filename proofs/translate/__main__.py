"""Hold rocq/Translated.v to the text of the rules, or write it with --write."""

import sys

from proofs.translate.rules import FILE, written
from proofs.translate.running import replaced
from proofs.translate.terms import Untranslated


def main() -> int:
    try:
        text = written()
    except Untranslated as error:
        sys.exit(f"violated: a rule is not translated: {error}")
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(text)
    if others := [*replaced()]:
        sys.exit(f"violated: {', '.join(others)}: what runs is not what was read")
    fresh = FILE.is_file() and FILE.read_text() == text
    print("Translated.v is the text of the rules" if fresh else "violated: Translated.v is not the text of the rules")
    return int(not fresh)


if __name__ == "__main__":
    sys.exit(main())
