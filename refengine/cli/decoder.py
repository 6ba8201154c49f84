"""`refengine decode` and `drafters`: the reference decoder on a prompt, and what its drafters pass."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from refengine.cli import checks
from refengine.cli.output import print_rows
from refengine.cli.reporting import AsJson
from refengine.errors import BadInput
from refengine.report.terminal import Progress

if TYPE_CHECKING:
    from refengine.report.tables import Battery

SLOTS = 1024  # of a bitwise decode
REPORT = Path("out/report.json")  # that `refengine report` writes unless told otherwise
Ngram = Annotated[Path | None, typer.Option(help="The n-gram store of a drafter that has one elsewhere (DART).")]


class Precision(StrEnum):
    """What the networks are run in."""

    float64 = "float64"
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


class Switch(StrEnum):
    """Whether a head is used."""

    on = "on"
    off = "off"


Dtype = Annotated[Precision, typer.Option(help="What the networks are run in.")]
Device = Annotated[str, typer.Option(help="Where they are run: cpu, cuda, cuda:1, as torch calls it.")]


def decode(
    target: Annotated[Path, typer.Option(help="Folder of the target model (transformers, safetensors).")],
    drafter: Annotated[Path, typer.Option(help="Folder of the drafter checkpoint, as released.")],
    prompt: Annotated[str, typer.Argument(help="Text; token ids where the target has no tokenizer.")],
    max_new_tokens: Annotated[int, typer.Option(help="Length limit.")] = 64,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Keep so many of the heaviest tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Keep the heaviest tokens up to this share of the mass.")] = None,
    min_p: Annotated[
        float | None, typer.Option(help="Keep tokens with at least this share of the heaviest's probability.")
    ] = None,
    repetition_penalty: Annotated[
        float | None,
        typer.Option(help="Divides the logits of seen tokens, the prompt's too; multiplies negative ones."),
    ] = None,
    presence_penalty: Annotated[float | None, typer.Option(help="Subtracted from generated tokens' logits.")] = None,
    frequency_penalty: Annotated[float | None, typer.Option(help="The same, once an occurrence.")] = None,
    rule: Annotated[str | None, typer.Option(help="By default the one that fits the drafts.")] = None,
    gamma: Annotated[
        int | None, typer.Option(help="Drafted tokens a round, where the checkpoint leaves it open; 4 unless given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of every coin.")] = 0,
    dtype: Dtype = Precision.float32,
    device: Device = "cpu",
    ngram: Ngram = None,
    load: Annotated[
        str | None,
        typer.Option(metavar="ROWS:SECONDS,...", help="DSpark: end blocks where a server of this speed gains nothing."),
    ] = None,
    markov: Annotated[Switch, typer.Option(help="DSpark: off drafts without the Markov head.")] = Switch.on,
    chat: Annotated[
        bool, typer.Option("--chat", help="The prompt is a user's message: apply the template, without thinking.")
    ] = False,
    bitwise: Annotated[
        bool, typer.Option("--bitwise", help="Logits have the same bits however a row is computed; slower.")
    ] = False,
    slots: Annotated[
        int | None,
        typer.Option(
            min=1, help="With --bitwise: tokens that a text may have; the bits depend on it; 1024 unless given."
        ),
    ] = None,
) -> None:
    """Decode one prompt with the reference decoder and print the text. Then, as JSON on standard error: acceptance,
    tokens per pass, times and memory."""
    from refengine.commands.decode_request import Request, check

    if slots is not None and not bitwise:
        raise BadInput("--slots is a size of --bitwise decoding: give both or neither")
    request = Request(
        target=target,
        drafter=drafter,
        prompt=prompt,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        presence_penalty=presence_penalty,
        frequency_penalty=frequency_penalty,
        rule=rule,
        gamma=gamma,
        seed=seed,
        dtype=dtype.value,
        device=device,
        ngram=ngram,
        load=load,
        slots=(slots or SLOTS) if bitwise else None,
        chat=chat,
        markov=None if markov is Switch.on else False,
    )
    check(request)
    checks.checkpoint_folder(target)
    checks.drafter(drafter)
    from refengine.commands import decode as command

    text, statistics = command.decode(request)
    typer.echo(text)
    typer.echo(json.dumps(statistics), err=True)


def drafters(
    report: Annotated[
        Path | None,
        typer.Option(help="Take the verdicts from this report; without it those on record, and the rest is run."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Every drafter of the reference decoder: the checks that it passes, and why a check is not tested."""
    from refengine.report.report import load_report

    if report is None and REPORT.exists():
        report = REPORT
    if report is not None:
        findings = load_report(report).findings
        typer.echo(f"verdicts from {report}", err=True)
    else:
        from refengine.jobs.steps import played
        from refengine.selfcheck.drafters.battery import steps
        from refengine.selfcheck.recorded import PRELOAD, settle

        work, findings = list(steps()), []
        with Progress("drafters", len(work)) as shown:
            for step, (found, how), seconds in played(work, settle, preload=PRELOAD, begun=shown.at):
                findings += found
                shown.finish(f"{step.name}: {how or f'{seconds:.1f} s'}")
    from refengine.report.tables import battery

    print_battery(battery(findings), as_json)


def print_battery(found: "Battery", as_json: bool) -> None:
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
