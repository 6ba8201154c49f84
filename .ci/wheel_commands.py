"""Run every command of an installed refengine in this folder: exit codes, what is printed, and no traceback.

Usage: python wheel_commands.py REFENGINE
"""

import json
import os
import subprocess
import sys
from pathlib import Path

REFENGINE = sys.argv[1]
SAMPLER = """
import torch


def verify(p, q, draft, generator):
    out = []
    for i, x in enumerate(draft):
        if torch.rand((), generator=generator) * q[i, x] < p[i, x]:
            out.append(int(x))
        else:
            rest = (p[i] - q[i]).clamp(min=0)
            return [*out, int(torch.multinomial(rest, 1, generator=generator))]
    return [*out, int(torch.multinomial(p[-1], 1, generator=generator))]
"""
LAW = {"rule": "leviathan", "p": [[0.5, 0.5], [1, 0]], "q": [[0.25, 0.75]]}
ECHO = "import sys\nfor line in sys.stdin:\n    print('[0]', flush=True)\n"
failed: list[str] = []
Path("law.json").write_text(json.dumps(LAW))
Path("mine.py").write_text(SAMPLER)
Path("echo.py").write_text(ECHO)


def run(*arguments: str, code: int | tuple[int, ...] = 0, says: str = "", out: str | None = None, **env: str) -> str:
    """One command; it must exit with this code, say this, and never with a traceback. `out`: a file for its stdout."""
    file = open(out, "w") if out else None  # noqa: SIM115
    ended = subprocess.run(
        [REFENGINE, *arguments],
        stdout=file or subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
        timeout=1800,
        check=False,
    )
    said = (ended.stdout or "") + ended.stderr
    codes = code if isinstance(code, tuple) else (code,)
    good = ended.returncode in codes and says in said and "Traceback" not in said
    print(f"{'ok    ' if good else 'FAILED'} {ended.returncode} refengine {' '.join(arguments)}", flush=True)
    if not good:
        failed.append(" ".join(arguments))
        print(f"    wanted {code} and {says!r}\n" + "\n".join(f"    {line}" for line in said.splitlines()[-15:]))
    return ended.stdout or ""


def cheap() -> None:
    """What needs no network and no third party."""
    run("--help", says="referee")
    run("--version")
    run("nonsense", code=2)
    run("bugs", says="resample-from-target")
    run("claims", "leviathan", says="consistent")
    run("claims", "no-such-claim", code=2, says="no-such-claim")
    run("law", "law.json", says="TV from the target")
    run("law", "absent.json", code=2, says="absent.json")
    run("vectors", "list", says="leviathan")
    run("vectors", "export", "vectors.jsonl")
    run("vectors", "release", "vectors", says="SHA256SUMS")
    run("challenge", "new", "--seed", "a long secret", "--out", "challenge.json", says="questions")
    run("challenge", "check", "challenge.json", "echo.py", "--seed", "another", code=2, says="echo.py")
    run("challenge", "verify", "law.json", code=2, says="no transcript")
    run("vectors", "run", "--rule", "leviathan", sys.executable, "echo.py", code=1, says="VERDICT violated")
    run("rerun", "absent.json", code=2, says="absent.json")


def audits() -> None:
    """A sampler of one's own, and what goes wrong with files."""
    kernel = ("audit", "kernel", "mine:verify", "--path", ".", "--calls", "2000")
    run(*kernel, "--out", "found.json", code=(0, 1), says="VERDICT")
    run("rerun", "found.json", says="confirmed")
    run("show", "found.json", "--page", "page.html", says="page.html")
    run("show", "absent.json", code=2, says="absent.json")
    run(*kernel, "--out", "/dev/full", code=2, says="No space left on device")
    run(*kernel, "--out", "absent/found.json", code=2, says="absent")
    run("law", "law.json", code=2, says="No space left on device", out="/dev/full")
    run("audit", "kernel", "nowhere:f", code=2, says="nowhere")
    run("audit", "library", "transformers", code=(0, 1), says="VERDICT")
    run("report", "--out", "/dev/full", code=2, says="cannot write")


def suite(selection: str = "budget or (lossy and typical_inclusive)") -> None:
    """The statistical tests that the wheel carries, by pytest: a light selection of them."""
    command = [sys.executable, "-m", "pytest", "--pyargs", "refengine_tests", "-m", "stat", "-k", selection, "-q"]
    path = os.pathsep.join(filter(None, (os.environ.get("TESTS_LIBRARY"), os.environ.get("PYTHONPATH"))))
    ended = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-W", "error::pytest.PytestUnknownMarkWarning"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=1800,
        check=False,
    )
    good = ended.returncode == 0 and "null: typical_inclusive has the law of its definition" in ended.stdout
    print(
        f"{'ok    ' if good else 'FAILED'} {ended.returncode} pytest --pyargs refengine_tests: {selection}", flush=True
    )
    print("\n".join(f"    {line}" for line in (ended.stdout + ended.stderr).splitlines()[-12:]))
    if not good:
        failed.append("pytest --pyargs refengine_tests")


def decoder() -> None:
    """The reference decoder on the fixtures that the wheel carries."""
    (fixtures,) = Path(REFENGINE).parents[1].glob("lib/*/site-packages/refengine/shipped/fixtures")
    target, drafter = str(fixtures / "tiny" / "target"), str(fixtures / "tiny" / "dspark")
    run("decode", "--target", target, "--drafter", drafter, "1 2 3", "--max-new-tokens", "4", says="tokens")
    run("decode", "--target", "absent", "--drafter", drafter, "1 2 3", code=2, says="absent")
    run("checkpoint", "verify", drafter, "--target", target, code=0, says="VERDICT consistent")
    run("drafters", says="dspark")


def report() -> None:
    """The main job, and one of its findings made again."""
    run("report", "--out", "out", says="third parties")
    found = json.loads(Path("out/report.json").read_text())["findings"]
    assert len(found) > 300, f"{len(found)} findings"
    reasons = {f["id"]: f["reason"] for f in found if f["verdict"] == "not tested"}
    print("\n".join(f"    not tested {name}: {reason}" for name, reason in reasons.items()))
    run("rerun", "out/report.json", "rules/leviathan", says="confirmed")


parts = {part.__name__: part for part in (cheap, suite, audits, decoder, report)}
for name in sys.argv[2:] or list(parts):
    parts[name]()
if failed:
    sys.exit("failed: " + "; ".join(failed))
