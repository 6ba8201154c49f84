"""Hold rocq/Translated.v to the text of the rules, or write it with --write."""

import sys

from proofs.translate.rules import FILE, written


def main() -> int:
    text = written()
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(text)
    fresh = FILE.is_file() and FILE.read_text() == text
    print("Translated.v is the text of the rules" if fresh else "violated: Translated.v is not the text of the rules")
    return int(not fresh)


if __name__ == "__main__":
    sys.exit(main())
