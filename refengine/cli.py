"""The command line. Every command is a few lines over the library; nothing is decided here but exit codes.

`audit` exits 0 consistent, 1 violated, 2 bad input, 3 not tested, 70 internal error, and the last line on stdout is
`VERDICT consistent|violated|not-tested ...`. `report` exits 0 when the report is complete, our own reference cells are
consistent and every negative control came out violated: a third party's defect is content, not failure.
"""

import json
import sys
import traceback
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from refengine.errors import BadInput
from refengine.report.finding import Finding
from refengine.report.matrices import Battery, battery
from refengine.terminal import progress

CONSISTENT, VIOLATED, BAD_INPUT, NOT_TESTED, INTERNAL = 0, 1, 2, 3, 70

app = typer.Typer(no_args_is_help=True, add_completion=False, help="The referee of speculative decoding.")
audit_app = typer.Typer(no_args_is_help=True, help="Hold an implementation to the law it promises.")
checkpoint_app = typer.Typer(no_args_is_help=True, help="Check or convert a released drafter checkpoint.")
app.add_typer(audit_app, name="audit")
app.add_typer(checkpoint_app, name="checkpoint")
vectors_app = typer.Typer(no_args_is_help=True, help="Conformance vectors for implementations in any language.")
app.add_typer(vectors_app, name="vectors")


class Signature(StrEnum):
    """The plain signatures of an audited function (docs/auditing.md)."""

    verify = "verify"
    verify_batch = "verify_batch"
    round = "round"


class Precision(StrEnum):
    """What the networks are run in."""

    float64 = "float64"
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


AsJson = Annotated[bool, typer.Option("--json", help="Print the findings as JSON before the verdict line.")]
Ngram = Annotated[Path | None, typer.Option(help="The n-gram store of a drafter that has one elsewhere (DART).")]
Seed = Annotated[str, typer.Option(help="A number, or `random`; alpha is the false-alarm rate of a random one.")]


# --- audit -----------------------------------------------------------------------------------------------------------


@audit_app.command("kernel")
def audit_kernel(
    subject: Annotated[str, typer.Argument(help="MODULE:FUNCTION, or `hf` for the installed transformers.")],
    signature: Annotated[Signature, typer.Option(help="Which plain signature the function has.")] = Signature.verify,
    path: Annotated[Path | None, typer.Option(help="Folder to put on the import path.")] = None,
    seed: Seed = "0",
    alpha: Annotated[float, typer.Option(help="False-alarm rate of the audit.")] = 1e-6,
    seconds: Annotated[float, typer.Option(help="Wall-clock limit.")] = 50.0,
    as_json: AsJson = False,
) -> None:
    """Audit a verification function: rows and drafts in, tokens out."""
    if subject == "hf":
        from refengine.audit.hf_kernel import audit_kernel_hf

        with progress() as tell:
            found = audit_kernel_hf(progress=tell)
        finish(found, as_json)
    from refengine.audit.kernel import audit_kernel as audit

    if path is not None and not path.is_dir():
        raise BadInput(f"--path {path} is not a folder")
    if not 0 < alpha < 1:
        raise BadInput(f"--alpha {alpha} is not between 0 and 1")
    if not seconds > 0:
        raise BadInput(f"--seconds {seconds} is not a positive time")
    folder, number = str(path) if path else None, seed_of(seed)
    with progress() as tell:
        findings = audit(subject, signature.value, folder, number, alpha, seconds, tell)
    finish(findings, as_json)


@audit_app.command("generate")
def audit_generate(
    library: Annotated[str, typer.Argument(help="`hf`: the assisted generation of the installed transformers.")],
    as_json: AsJson = False,
) -> None:
    """Audit a library's speculative generation against the same library with speculation off."""
    if library != "hf":
        raise BadInput(f"unknown audit {library!r}: the generators known here are: hf")
    from refengine.audit.hf_generate import audit_generate_hf

    with progress() as tell:
        found = audit_generate_hf(progress=tell)
    finish(found, as_json)


def seed_of(text: str) -> int:
    """A seed from the command line."""
    if text == "random":
        import secrets

        return secrets.randbits(32)
    try:
        return int(text)
    except ValueError:
        raise BadInput(f"--seed {text!r} is neither a number nor `random`") from None


def finish(findings: Sequence[Finding], as_json: bool) -> NoReturn:
    """Print what was found, the verdict line last, and exit with its code."""
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(list(findings)), indent=2).decode())
    else:
        for finding in findings:
            print_finding(finding)
    code, line = verdict(findings)
    typer.echo(line)
    raise typer.Exit(code)


def verdict(findings: Sequence[Finding]) -> tuple[int, str]:
    """The exit code and the last line of an audit: the worst finding decides, and nothing tested is not consistent."""
    by_verdict = {v: [f for f in findings if f.verdict == v] for v in ("violated", "consistent", "not tested")}
    counts = ", ".join(f"{len(found)} {name}" for name, found in by_verdict.items() if found)
    if violated := by_verdict["violated"]:
        worst = ", ".join(sorted({f.diagnosis for f in violated if f.diagnosis})) or violated[0].claim
        return VIOLATED, f"VERDICT violated ({counts}): {worst}"
    if by_verdict["consistent"]:
        return CONSISTENT, f"VERDICT consistent ({counts})"
    reason = by_verdict["not tested"][0].reason if findings else "nothing was run"
    return NOT_TESTED, f"VERDICT not-tested ({counts}): {reason}"


def print_finding(finding: Finding) -> None:
    """One finding for a person reading a terminal."""
    colour = {"consistent": typer.colors.GREEN, "violated": typer.colors.RED}.get(finding.verdict, typer.colors.YELLOW)
    typer.secho(f"{finding.verdict:<11}", fg=colour, bold=True, nl=False)
    typer.echo(f" {finding.id}\n            {finding.claim}\n            {finding.method}")
    if finding.reason:
        typer.echo(f"            reason: {finding.reason}")
    if finding.diagnosis:
        typer.echo(f"            looks like: {finding.diagnosis}")
    if finding.magnitude:
        size = finding.magnitude
        bound = "=" if size.exact else ">="
        mask = ", and a token of probability zero can be emitted" if size.breaks_mask else ""
        typer.echo(f"            magnitude: TV {bound} {size.tv.value:.3g}{mask}")
    if finding.witness:
        typer.echo(f"            witness: {json.dumps(finding.witness, sort_keys=True, default=str)[:600]}")
    for note in finding.notes:
        typer.echo(f"            note: {note}")


# --- report ----------------------------------------------------------------------------------------------------------


@app.command()
def report(
    out: Annotated[Path, typer.Option(help="Folder for report.json, report.html and run.json.")] = Path("out"),
    full: Annotated[bool, typer.Option("--full", help="The long report: every policy, the mutation run.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 when any subject is violated.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ignore the journal of an interrupted run.")] = False,
) -> None:
    """The whole correctness report on the embedded fixtures and on whatever real libraries are installed."""
    from refengine.main_report import write_report

    outcome = write_report(out, full=full, fresh=fresh)
    for line in outcome.lines:
        typer.echo(line)
    raise typer.Exit(VIOLATED if outcome.failed or (strict and outcome.subjects_violated) else CONSISTENT)


@app.command()
def rerun(
    report_file: Annotated[Path, typer.Argument(metavar="REPORT", help="A report.json.")],
    finding: Annotated[str | None, typer.Argument(help="One finding's id; all of them without it.")] = None,
) -> None:
    """Make findings again and compare: verdicts, integers and witnesses exactly, floats within tolerance."""
    import torch

    from refengine.report.report import environment_differences, load_report
    from refengine.report.rerun import rerun as again

    torch.set_num_threads(1)  # as the report that is compared with
    loaded = load_report(report_file)
    for line in environment_differences(loaded):
        typer.echo(f"note: another version made this report: {line}", err=True)
    outcomes = again(loaded, finding)
    for outcome in outcomes:
        typer.echo(str(outcome))
    confirmed = sum(outcome.confirmed for outcome in outcomes)
    typer.echo(f"RERUN {confirmed} of {len(outcomes)} findings confirmed")
    raise typer.Exit(CONSISTENT if confirmed == len(outcomes) else VIOLATED)


@app.command()
def law(
    file: Annotated[Path, typer.Argument(help="JSON with rule, p and q (or tokens); docs/laws.md.")],
    as_json: AsJson = False,
) -> None:
    """The exact law of one round of a rule, on rows of your own."""
    from refengine.one_round import answer, read

    found = answer(read(file))
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    for key in ("law", "accepted"):
        name = "emitted" if key == "law" else "accepted"
        print_rows([{name: outcome, "probability": mass} for outcome, mass in found[key].items()], as_json=False)
    for key in ("expected tokens", "TV from the target"):
        if found[key] is not None:
            typer.echo(f" {key}: {found[key]}")


# --- the reference decoder -------------------------------------------------------------------------------------------


@app.command()
def decode(
    target: Annotated[Path, typer.Option(help="Folder of the target model (transformers, safetensors).")],
    drafter: Annotated[Path, typer.Option(help="Folder of the drafter checkpoint, as released.")],
    prompt: Annotated[str, typer.Argument(help="Text; token ids where the target has no tokenizer.")],
    max_new_tokens: Annotated[int, typer.Option(help="Length limit.")] = 64,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 1.0,
    top_k: Annotated[int | None, typer.Option()] = None,
    top_p: Annotated[float | None, typer.Option()] = None,
    rule: Annotated[str | None, typer.Option(help="By default the one that fits the drafts.")] = None,
    gamma: Annotated[int, typer.Option(help="Drafted tokens a round, where the checkpoint leaves it open.")] = 4,
    seed: Annotated[int, typer.Option(help="Of every coin.")] = 0,
    dtype: Annotated[Precision, typer.Option()] = Precision.float32,
    device: Annotated[str, typer.Option()] = "cpu",
    ngram: Ngram = None,
) -> None:
    """Decode one prompt with the reference decoder and print the text, then how many tokens each pass gave."""
    from refengine import decode as command

    request = command.Request(
        target,
        drafter,
        prompt,
        max_new_tokens,
        temperature,
        top_k,
        top_p,
        rule,
        gamma,
        seed,
        dtype.value,
        device,
        ngram,
    )
    text, statistics = command.decode(request)
    typer.echo(text)
    typer.echo(json.dumps(statistics), err=True)


@checkpoint_app.command("verify")
def checkpoint_verify(
    drafter: Annotated[Path, typer.Argument(help="Folder of the drafter checkpoint, as released.")],
    target: Annotated[Path, typer.Option(help="Folder of the target model it was made for.")],
    dtype: Annotated[Precision, typer.Option()] = Precision.float64,
    device: Annotated[str, typer.Option()] = "cpu",
    gamma: Annotated[int, typer.Option(help="Drafted tokens a round, where the checkpoint leaves it open.")] = 4,
    ngram: Ngram = None,
    as_json: AsJson = False,
) -> None:
    """Load a drafter strictly and run the real loop on generated prompts: greedy equality, live state, acceptance."""
    from refengine.decoder.verify import verify

    store = str(ngram) if ngram else None
    finish(verify(str(drafter), str(target), dtype.value, device, gamma, store), as_json)


@checkpoint_app.command("convert")
def checkpoint_convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A pickle of tensors (.pt, .bin).")],
    out: Annotated[Path, typer.Argument(metavar="OUT.safetensors", help="Where to write; not overwritten.")],
) -> None:
    """Read a pickle with weights_only in a limited child process and write safetensors; no name changes."""
    from refengine.decoder.checkpoints.convert import convert

    names = convert(source, out)
    typer.echo(f"{out}: {len(names)} tensors, names unchanged")


@checkpoint_app.command("convert-mtp")
def checkpoint_convert_mtp(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Folder of a Qwen model with mtp.* tensors.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write; not overwritten.")],
    steps: Annotated[int, typer.Option(help="Drafted tokens a round, which the layout says.")] = 3,
) -> None:
    """The multi-token prediction module of a Qwen checkpoint in the layout of speculators."""
    from refengine.decoder.checkpoints.mtp_convert import convert_mtp

    typer.echo(f"{out}: {len(convert_mtp(source, out, steps))} tensors")


@checkpoint_app.command("stitch-mtp")
def checkpoint_stitch_mtp(
    module: Annotated[Path, typer.Argument(metavar="MODULE", help="Folder in the layout of speculators.")],
    verifier: Annotated[Path, typer.Argument(metavar="VERIFIER", help="Folder of the model whose mtp.* it replaces.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write; not overwritten.")],
) -> None:
    """A copy of a Qwen checkpoint with a fine-tuned module in the place of its own."""
    from refengine.decoder.checkpoints.mtp_convert import stitch_mtp

    typer.echo(f"{out}: {len(stitch_mtp(module, verifier, out))} tensors replaced")


@checkpoint_app.command("ngram")
def checkpoint_ngram(
    texts: Annotated[list[Path], typer.Argument(help="Files with a text on each line; .jsonl: its field `text`.")],
    target: Annotated[Path, typer.Option(help="Folder of the target, whose tokens are counted.")],
    out: Annotated[Path, typer.Option(metavar="OUT.trie", help="Where to write; not overwritten.")],
    order: Annotated[int, typer.Option(help="Longest run of tokens that is counted; DART's release has 3.")] = 3,
) -> None:
    """Count an n-gram store for DART from texts, in its released format."""
    from refengine.ngram_store import build

    typer.echo(f"{out}: {len(build(texts, target, out, order).tokens) - 1} runs of up to {order} tokens")


# --- lists -----------------------------------------------------------------------------------------------------------


@app.command()
def bugs(as_json: AsJson = False) -> None:
    """The catalogue of real defects, each an edit of the running source."""
    from refengine.bugs.catalogue import all_bugs

    rows = [{"id": b.id, "class": b.law_class, "title": b.title, "source": b.source} for b in all_bugs()]
    print_rows(rows, as_json)


@app.command()
def drafters(
    report: Annotated[
        Path,
        typer.Option(help="Take the verdicts from this report; where there is none, the battery is run (minutes)."),
    ] = Path("out/report.json"),
    as_json: AsJson = False,
) -> None:
    """The drafters of the reference decoder by what every one of them passes, with reasons for what is not tested."""
    from refengine.decoder.battery import steps
    from refengine.report.report import load_report

    if report.exists():
        typer.echo(f"verdicts from {report}", err=True)
        findings = load_report(report).findings
    else:
        work, findings = list(steps()), []
        with progress() as tell:
            for number, (what, step) in enumerate(work):
                tell(what, number / len(work))
                findings += step()
    print_battery(battery(findings), as_json)


def print_battery(found: Battery, as_json: bool) -> None:
    """The table of drafters by checks; on a terminal as signs, with the reasons below."""
    rows: list[dict[str, Any]] = []
    reasons: dict[str, str] = {}
    for name, cells in found.rows.items():
        verdicts = {check: cell.verdict if cell else None for check, cell in zip(found.checks, cells, strict=True)}
        why = {check: cell.reason for check, cell in zip(found.checks, cells, strict=True) if cell and cell.reason}
        rows.append({"drafter": name, **verdicts, **({"reasons": why} if as_json else {})})
        reasons |= {f"{name}, {check}": reason for check, reason in why.items()}
    signs = {"consistent": "✓", "violated": "✕", "not tested": "–", None: ""}
    if not as_json:
        rows = [{column: signs.get(value, value) for column, value in row.items()} for row in rows]
    print_rows(rows, as_json)
    if not as_json:
        typer.echo(
            "\n".join(["✓ consistent   ✕ violated   – not tested:", *(f"  {k}: {v}" for k, v in reasons.items())])
        )


@app.command()
def claims(as_json: AsJson = False) -> None:
    """Every claim with its source, verdict and evidence."""
    from refengine.claims import load

    print_rows([claim.record() if as_json else claim.summary() for claim in load()], as_json)


def print_rows(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    """A list of flat records, as JSON or as a table that fits the terminal."""
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    for number, column in enumerate(rows[0] if rows else ()):
        table.add_column(column, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


@vectors_app.command("list")
def vectors_list(as_json: AsJson = False) -> None:
    """How many vectors there are of each rule."""
    from collections import Counter

    from refengine.vectors import vectors

    counts = Counter(vector["rule"] for vector in vectors())
    print_rows([{"rule": rule, "vectors": count} for rule, count in counts.items()], as_json)


@vectors_app.command("export")
def vectors_export(file: Annotated[Path, typer.Argument(help="JSON lines file to write.")]) -> None:
    """Write every vector as one JSON line."""
    from refengine.vectors import vectors

    try:
        file.write_text("".join(json.dumps(vector, sort_keys=True) + "\n" for vector in vectors()))
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}") from None


@vectors_app.command("run", context_settings={"ignore_unknown_options": True})
def vectors_run(
    command: Annotated[list[str], typer.Argument(help="The program: JSON lines in, one list of tokens out per line.")],
    rule: Annotated[list[str] | None, typer.Option(help="Only this rule (may be repeated).")] = None,
    seconds: Annotated[float, typer.Option(help="Wall-clock limit.")] = 60.0,
) -> None:
    """Run a program on the vectors and compare token by token."""
    from refengine.vectors import run_command

    count, wrong = run_command(command, rule or [], seconds)
    for mismatch in wrong[:10]:
        typer.echo(str(mismatch))
    state = "violated" if wrong else "consistent"
    typer.echo(f"VERDICT {state} ({count - len(wrong)} of {count} vectors)")
    raise typer.Exit(VIOLATED if wrong else CONSISTENT)


# --- entry -----------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; every outcome has its own exit code."""
    try:
        command = typer.main.get_command(app)
        code = command.main(args=list(arguments) if arguments is not None else None, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else CONSISTENT)
    except BadInput as error:
        print(f"refengine: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        print("refengine: interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if hasattr(error, "show") and hasattr(error, "exit_code"):  # a usage error of the command-line library
            error.show()
            sys.exit(BAD_INPUT)
        traceback.print_exc()
        print("refengine: internal error; the lines above belong into a bug report", file=sys.stderr)
        sys.exit(INTERNAL)


if __name__ == "__main__":
    main()
