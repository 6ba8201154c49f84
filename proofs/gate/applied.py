"""The reader of proofs: whether what assumes something is applied to all of it, in a proof that assumes nothing.

A statement that only names a theorem says nothing of what the theorem assumes. So the proof terms of the instances are
read as Coq prints them: a theorem counts where such a term reaches it (`terms.py`) with all that it assumes behind it.
Instances may apply each other. The standard library alone.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from proofs.gate.kernel import Question, assumed, put
from proofs.gate.terms import PRINTED, applied

END = "\n     : "  # between a term and its type


def proofs_of(names: Sequence[str], plain: Collection[str]) -> Question:
    """The proofs of `names`, printed, of what has one; what is `plain` stands in them with all that it is given."""

    def read(answers: dict[str, str]) -> dict[str, str]:
        proved = {n: answer.removeprefix(f"{n} = ") for n, answer in answers.items() if answer.startswith(f"{n} = ")}
        return {n: answer.partition(END)[0] for n, answer in proved.items() if END in answer}

    prologue = [f"Arguments Proofs.{name} : clear implicits." for name in plain]
    return Question({n: f"Print Proofs.{n}." for n in names}, "\n".join([*prologue, PRINTED]), read)


def applied_nowhere(
    build: Path, statements: Mapping[str, Sequence[str]], wanted: Collection[str], instances: Collection[str]
) -> set[str]:
    """Those of `wanted` that assume something and that no instance applies; `statements` is what Coq says of all.

    `instances` are files; what stands there and assumes nothing, or is applied there, applies what its proof reaches.
    Raises RuntimeError where Coq does not show their proofs, ValueError where one cannot be read.
    """
    inside = [name for name in statements if name.split(".")[0] in instances]
    files = list(dict.fromkeys(name.split(".")[0] for name in statements))
    interesting = {name for name in statements if assumed(statements[name]) or name in inside}
    (proofs,) = put(build, files, [proofs_of(inside, interesting)])
    return not_reached(statements, wanted, inside, proofs)


def not_reached(
    statements: Mapping[str, Sequence[str]],
    wanted: Collection[str],
    inside: Collection[str],
    proofs: Mapping[str, str],
) -> set[str]:
    """Those of `wanted` that assume something and that none of the `proofs` applies, which are of what is `inside`."""
    needs = {name: assumed(told) for name, told in statements.items()}
    interesting = {name for name in statements if needs[name] or name in inside}
    done, todo = set[str](), [name for name in inside if not needs[name]]
    while todo:
        if (name := todo.pop()) not in done:
            done.add(name)
            variables = sum(not line.startswith(("of ", "within ")) for line in statements[name])
            found = applied(proofs[name], variables, interesting) if name in proofs else ()
            todo += [other for other, given in found if given >= needs[other]]
    return {name for name in wanted if needs[name]} - done
