"""Hold rocq/Translated.v to the text of the rules, or write it with --write."""

import argparse
import sys

from proofs.translate.rules import FILE, unlike, written
from proofs.translate.running import replaced
from proofs.translate.terms import Untranslated


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python3 -m proofs.translate")
    parser.add_argument("--write", action="store_true", help="Write it as the rules are now.")
    write = parser.parse_args().write
    try:
        text = written()
    except Untranslated as error:
        sys.exit(f"violated: a rule is not translated: {error}")
    if write:
        FILE.write_text(text)
    if others := [*replaced()]:
        sys.exit(f"violated: {', '.join(others)}: what runs is not what was read")
    before = FILE.read_text() if FILE.is_file() else ""
    if before == text:
        print("Translated.v is the text of the rules")
        return 0
    print(f"violated: Translated.v is not the text of {'; '.join(unlike(before, text)) or 'its header'}")
    print(
        "python3 -m proofs.translate --write writes it as the rules are now; bash proofs/check.sh then proves it or not"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
