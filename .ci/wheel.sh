#!/usr/bin/env bash
# The wheel as a stranger has it: built, installed in an environment of its own, every command run in an empty folder.
#
# Heavy dependencies (torch, transformers) are taken from the environment of the given Python, which has them installed;
# without one they are installed anew. Usage: bash .ci/wheel.sh [PYTHON [PART ...]]
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
python="${1:-python3}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

if "$python" -c 'import build, twine' 2>/dev/null; then
  # As a release is made: the source distribution, the wheel from it, and what a package index asks of both.
  "$python" -m build --outdir "$work" "$root" >"$work/build.log" 2>&1 || { tail -20 "$work/build.log"; exit 1; }
  "$python" -m twine check --strict "$work"/refengine-*
else
  echo "build and twine are not installed: the wheel alone is made, unchecked"
  "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work" "$root"
fi
wheel=("$work"/refengine-*.whl)
size=$(stat -c %s "${wheel[0]}")
echo "the wheel has $((size / 1024)) KiB"
[ "$size" -lt 6000000 ] || { echo "more than 6 MB"; exit 1; }

"$python" -m venv "$work/env"
if "$python" -c 'import torch, transformers' 2>/dev/null; then
  site="$("$work/env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
  mkdir "$work/lib" "$work/tests"
  # Everything that the given Python has, but this package itself and what a wheel must do without.
  "$python" - "$work/lib" "$work/tests" <<'PY'
import sys, sysconfig
from pathlib import Path
lib, tests = Path(sys.argv[1]), Path(sys.argv[2])
without = ("hypothesis", "_hypothesis", "pytest", "_pytest", "z3", "xdist")  # the extra `tests`, a folder of its own
for place in dict.fromkeys(p for p in sys.path if p.endswith("-packages")):
    for entry in Path(place).iterdir():
        into = tests if entry.name.startswith(without) else lib
        if not entry.name.startswith(("refengine", "_refengine")) and entry.suffix != ".pth":
            if not (into / entry.name).exists():
                (into / entry.name).symlink_to(entry)
PY
  echo "$work/lib" > "$site/shared.pth"
  "$work/env/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "${wheel[0]}"
else
  "$work/env/bin/python" -m pip install --quiet --disable-pip-version-check --constraint "$root/constraints.txt" "${wheel[0]}[tests]"
fi

mkdir "$work/empty"
cd "$work/empty"
export TESTS_LIBRARY="$work/tests"  # for the part that needs pytest
"$work/env/bin/python" "$root/.ci/wheel_commands.py" "$work/env/bin/refengine" "${@:2}"
