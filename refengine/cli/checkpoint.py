"""`refengine checkpoint`: check, convert or build what a released drafter consists of."""

from pathlib import Path
from typing import Annotated

import typer

from refengine.cli import checks
from refengine.cli.decoder import Device, Dtype, Ngram, Precision
from refengine.cli.output import finish
from refengine.cli.reporting import RECORD, Reporting, reports
from refengine.errors import BadInput


@reports(RECORD)
def verify(
    drafter: Annotated[str, typer.Argument(help="The drafter as released: its folder, or org/name[@revision].")],
    target: Annotated[str, typer.Option(help="The target that it was made for: a folder, or org/name[@revision].")],
    dtype: Dtype = Precision.float32,
    device: Device = "cpu",
    gamma: Annotated[
        int | None,
        typer.Option(min=1, help="Drafted tokens a round, where the checkpoint leaves it open; 4 unless given."),
    ] = None,
    ngram: Ngram = None,
    memory: Annotated[
        int | None,
        typer.Option(metavar="MIB", help="Memory for weights; by default what is free. Beyond it layers stream."),
    ] = None,
    *,
    reporting: Reporting,
) -> None:
    """Load a drafter strictly and run the real loop on fixed prompts: greedy equality of tokens, and bit for bit of
    logits in the bitwise mode; live state; acceptance and tokens per pass beside published figures. What is no folder
    here is downloaded."""
    from refengine.commands.hub import on_the_hub

    if memory is not None and memory < 1:
        raise BadInput(f"--memory {memory}: weights take a MiB at least")
    for name, check in ((target, checks.checkpoint_folder), (drafter, checks.drafter)):
        if not on_the_hub(name):
            check(Path(name))
    from refengine.commands.verify_checkpoint import verify

    store = str(ngram) if ngram else None
    finish(verify(drafter, target, dtype.value, device, gamma, store, memory), reporting)


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A pickle of tensors (.pt, .bin).")],
    out: Annotated[Path, typer.Argument(metavar="OUT.safetensors", help="Where to write; not overwritten.")],
) -> None:
    """Read a pickle with weights_only in a limited child process and write safetensors; no name changes."""
    checks.readable(source)
    checks.new(out, ".safetensors")
    from refengine.commands.convert_pickle import convert

    names = convert(source, out)
    typer.echo(f"{out}: {len(names)} tensors, names unchanged")


def convert_mtp(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Folder of a Qwen model with mtp.* tensors.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write; not overwritten.")],
    steps: Annotated[int, typer.Option(help="Drafted tokens a round, which the layout says.")] = 3,
) -> None:
    """The multi-token prediction module of a Qwen checkpoint in the layout of speculators."""
    if steps < 1:
        raise BadInput(f"--steps {steps}: a round drafts one token at least")
    checks.checkpoint_folder(source)
    checks.new(out)
    from refengine.commands.convert_mtp import convert_mtp

    typer.echo(f"{out}: {len(convert_mtp(source, out, steps))} tensors")


def stitch_mtp(
    module: Annotated[Path, typer.Argument(metavar="MODULE", help="Folder in the layout of speculators.")],
    verifier: Annotated[Path, typer.Argument(metavar="VERIFIER", help="Folder of the model whose mtp.* it replaces.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write; not overwritten.")],
) -> None:
    """A copy of a Qwen checkpoint with a fine-tuned module in the place of its own."""
    checks.checkpoint_folder(module)
    checks.checkpoint_folder(verifier)
    checks.new(out)
    from refengine.commands.convert_mtp import stitch_mtp

    typer.echo(f"{out}: {len(stitch_mtp(module, verifier, out))} tensors replaced")


def ngram(
    texts: Annotated[list[Path], typer.Argument(help="Files with a text on each line; .jsonl: its field `text`.")],
    target: Annotated[Path, typer.Option(help="Folder of the target, whose tokens are counted.")],
    out: Annotated[Path, typer.Option(metavar="OUT.trie", help="Where to write; not overwritten.")],
    order: Annotated[int, typer.Option(help="Longest run of tokens that is counted; DART's release has 3.")] = 3,
) -> None:
    """Count an n-gram store for DART from texts, in its released format."""
    if not 1 <= order <= 4:
        raise BadInput(f"--order {order}: a store for DART has an order of 1 to 4")
    checks.readable(*texts)
    checks.checkpoint_folder(target)
    checks.new(out, ".trie")
    from refengine.commands.ngram import build

    typer.echo(f"{out}: {len(build(texts, target, out, order).tokens) - 1} runs of up to {order} tokens")
