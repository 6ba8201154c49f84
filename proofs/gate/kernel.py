"""The readers behind Coq: what Coq says that statements rest on and assume, and what coqchk says of the files.

Every answer is read whole: a line that is not one of those listed here is a refusal, whatever it says. Each answer
stands behind a mark drawn afresh in every run, so no text in a file can pass for one. The standard library alone.
"""

import re
import secrets
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from proofs.gate.build import clean
from proofs.statements import premises_of
from refengine.selfcheck.claims.coq_text import SOURCES, STATEMENTS, blank_comments, sentences

CLOSED = "Closed under the global context"
AXIOM = re.compile(r"([\w.']+)(?: :(?: .*)?)?")  # its type follows, on lines of its own that begin with spaces
# What a closed statement quantifies over, in order: "premise" or "value" and the name that it was given, a value after
# the types that it is of, or that a function ends in. Every value has a name drawn afresh, and so has what a function
# is given, and what is said to exist: `?` and `!` in a shape. What is concluded is read on to its end, through `let`,
# both sides of a conjunction, a disjunction or an equivalence, what equal functions give, and the definitions, of which
# the last is told with a premise. A conclusion that ends at a word that does not unfold (a structure, a recursion), at
# a `match`, or at all members of a list, is told too: a premise may stand in it. So is the test that it ends at, which
# may be true of whatever is not there; the tests that this one is given, or an equation; and an order of two of them,
# in which one implies the other.
PREMISES = r"""Set Printing Width 10000.
Set Printing Depth 10000.
Ltac told := lazymatch goal with
  | |- forall _ : ?B, _ => let z := fresh "{given}" in intro z; told
  | |- prod ?B ?C => try (assert B by (told; fail)); try (assert C by (told; fail))
  | |- ?A => let F := eval hnf in A in lazymatch F with
      | forall _ : _, _ => change F; told
      | prod _ _ => change F; told
      | _ => idtac "of" A
    end
  end.
Ltac quantified := repeat lazymatch goal with
  | |- let _ := _ in _ => cbv zeta
  | |- forall {unnamed} : ?A, _ => lazymatch type of A with
      | Prop => let y := fresh {unnamed} in intro y; idtac "premise" y
      | _ => let y := fresh {unnamed} in let z := fresh "{value}" in
          try (assert A by (told; fail)); intro z; idtac "value" y
    end
  end.
Ltac head A := lazymatch A with ?F _ => head F | _ => A end.
Ltac says T := lazymatch T with Prop => idtac | _ -> ?B => says B end.
Ltac given_a_claim A := lazymatch A with ?F ?a => first [let T := type of a in says T | given_a_claim F] end.
Ltac truth_of a := lazymatch a with
  | ssrnat.nat_of_bool ?b => b
  | _ (ssrnat.nat_of_bool ?b) => b
  | _ => let T := type of a in let S := eval hnf in T in lazymatch S with bool => a end
  end.
Ltac implies h b := lazymatch b with
  | andb _ _ => idtac
  | orb _ _ => idtac
  | eqtype.eq_op _ _ => idtac
  | _ ?a ?c => try (let x := truth_of a in let y := truth_of c in idtac "under" h)
  | _ => idtac
  end.
Ltac test_of b := let h := head b in
  tryif first [is_var h | is_constructor h] then idtac else (idtac "test" h; implies h b; tests_given_to b)
with tests_given_to b := lazymatch b with
  | ?f ?a => let h := head a in
      first [is_constructor h; tests_given_to a | let c := truth_of a in test_of c | idtac]; tests_given_to f
  | _ => idtac
  end.
Ltac inside def := lazymatch goal with
  | |- forall _ : ?A, _ => lazymatch type of A with
      | Prop => idtac "under" def; intro
      | _ => let z := fresh "{value}" in try (assert A by (told; fail)); intro z
    end; inside def
  | |- let _ := _ in _ => cbv zeta; inside def
  | |- and _ _ => split; inside def
  | |- ssrbool.and3 _ _ _ => split; inside def
  | |- ssrbool.and4 _ _ _ _ => split; inside def
  | |- ssrbool.and5 _ _ _ _ _ => split; inside def
  | |- iff ?A ?B => try (assert A by (inside def; fail)); try (assert B by (inside def; fail))
  | |- ex ?F => let z := fresh "{given}" in try (assert (forall z, F z) by (cbv beta; intro z; inside def; fail))
  | |- ex2 ?F ?G => inside_both def F G
  | |- not ?A => lazymatch A with is_true ?b => test_of b | _ = _ => tests_given_to A | _ => idtac end
  | |- or ?A ?B => try (assert A by (inside def; fail)); try (assert B by (inside def; fail))
  | |- is_true ?b => test_of b
  | |- @eq ?T ?a ?b => let S := eval hnf in T in lazymatch S with
      | forall _ : _, _ => let z := fresh "{given}" in try (assert (forall z, a z = b z) by (inside @eq; fail))
      | Prop => idtac "under eq"
      | _ => lazymatch goal with |- ?A => tests_given_to A end
    end
  | |- True => lazymatch def with tt => idtac | _ => idtac "under" def end
  | |- False => idtac
  | |- ?A => let F := eval hnf in A in let h := head F in tryif constr_eq A F
      then lazymatch h with
        | context [match _ with _ => _ end] => idtac "under match"
        | _ => tryif is_var h then (tryif given_a_claim F then idtac "under" h else idtac)
          else idtac "under" h
      end
      else (let h := head A in change F; inside h)
  end
with inside_both def F G := let z := fresh "{given}" in
  try (assert (forall z, F z /\ G z) by (cbv beta; intro z; inside def; fail))."""
LIBRARIES = ("Coq.", "mathcomp.", "Flocq.")
REFUSED = "coqchk refuses a file"
NONE = (
    "Constants/Inductives relying on type-in-type",
    "Constants/Inductives relying on unsafe (co)fixpoints",
    "Inductives whose positivity is assumed",
)


def asked(build: Path, requires: Sequence[str], lines: Mapping[str, str], prologue: str = "") -> dict[str, str]:
    """What Coq answers to each line, by its name; raises RuntimeError with Coq's words where it stops."""
    mark = secrets.token_hex(8)
    script = [f"From Proofs Require {file}." for file in requires] + [prologue]
    script += [f'Goal True. idtac "{mark} {name}". Abort.\n{line}' for name, line in lines.items()]
    with tempfile.TemporaryDirectory() as folder:  # one of its own: readers ask at the same time
        file = Path(folder) / "Asked.v"
        file.write_text("\n".join(script) + "\n")
        command = ["coqc", "-q", "-w", "none", "-Q", ".", "Proofs", str(file)]
        run = subprocess.run(command, cwd=build, env=clean(), capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(" ".join(run.stderr.split()))
    answers = [chunk.partition("\n") for chunk in run.stdout.split(f"{mark} ")[1:]]
    return {name: answer.strip("\n") for name, _, answer in answers}


class Question(NamedTuple):
    """Lines that Coq is to answer, by name, among settings of their own, and what is read in the answers."""

    lines: Mapping[str, str]
    prologue: str
    read: Callable[[dict[str, str]], Any]


def put(build: Path, requires: Sequence[str], questions: Sequence[Question]) -> list[Any]:
    """What is read in the answers: of one process, as it takes Coq longer to import than to answer."""
    lines = dict[str, str]()
    for number, question in enumerate(questions):
        named = {f"{number} {name}": line for name, line in question.lines.items()}
        lines |= inside(f"Module Question_{number}.\n{question.prologue}", named)
    answers = asked(build, requires, lines)
    own = ({n.partition(" ")[2]: a for n, a in answers.items() if n.startswith(f"{k} ")} for k in range(len(questions)))
    return [question.read(heard) for question, heard in zip(questions, own, strict=True)]


def inside(opening: str, asking: Mapping[str, str]) -> dict[str, str]:
    """The questions in a module that begins so and ends after the last."""
    names, module = [*asking], opening.split()[1].rstrip(".")
    return {
        name: (f"{opening}\n" if name == names[0] else "") + line + (f"\nEnd {module}." if name == names[-1] else "")
        for name, line in asking.items()
    }


def axioms(answer: str) -> list[str]:
    """The axioms that an answer to Print Assumptions lists; raises ValueError where it says anything else."""
    if answer == CLOSED:
        return []
    head, *rest = answer.splitlines()
    found = [AXIOM.fullmatch(line) for line in rest if not line.startswith(" ")]
    if head != "Axioms:" or not rest or rest[0].startswith(" ") or not all(found):
        raise ValueError(answer)
    return [match[1] for match in found if match]


def assumptions(build: Path, names: Sequence[str], permitted: Mapping[str, Sequence[str]]) -> list[str]:
    """What is wrong with what `File.name`s rest on: no such statement, an axiom that the file is not granted.

    Coq is asked once about all files that are granted the same, and about each of them where they rest on more.
    """
    by_file, alike = dict[str, list[str]](), dict[str, list[str]]()
    for name in names:
        file = name.split(".")[0]
        granted = sorted(axiom for axiom, files in permitted.items() if file in files)
        by_file.setdefault(file, []).append(name)
        alike.setdefault(" ".join(granted), []).append(name)
    question = resting([*alike.values()], permitted)
    try:
        if not (wrong := put(build, list(by_file), [question])[0]):
            return []
        return put(build, list(by_file), [resting([*by_file.values()], permitted)])[0] or list(wrong)
    except RuntimeError as error:
        return [f"Coq cannot say what every statement rests on: {error}"]


def resting(groups: Sequence[Sequence[str]], permitted: Mapping[str, Sequence[str]]) -> Question:
    """What each group of statements rests on, by one term that mentions all of them."""
    files = {f"rest_{number}": sorted({name.split(".")[0] for name in names}) for number, names in enumerate(groups)}
    lines = {
        rest: f"Definition {rest} : True := {' '.join(f'let a := @Proofs.{n} in' for n in names)} I. "
        f"Print Assumptions {rest}."
        for rest, names in zip(files, groups, strict=True)
    }

    def read(answers: dict[str, str]) -> list[str]:
        wrong = [f"{' '.join(files[rest])}: no answer" for rest in files if rest not in answers]
        for rest, answer in answers.items():
            among = " ".join(files[rest])
            try:
                granted = {axiom for axiom, to in permitted.items() if {*files[rest]} <= {*to}}
                wrong += [f"{among} uses {axiom}" for axiom in axioms(answer) if axiom not in granted]
            except ValueError:
                wrong.append(f"{among} rests on more than axioms: {' '.join(answer.split())}")
        return wrong

    return Question(lines, "", read)


def shape(type: str, always: Sequence[str]) -> str:
    """A type as it is granted: without what a type is applied to that has members `always`, whatever that is."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(type):
        depth += (letter == "(") - (letter == ")")
        if depth == 1 and letter == "(":
            parts.append(type[start:at])
            start = at + 1
        elif depth == 0 and letter == ")":
            parts.append(f"({shape(type[start:at], always)})")
            start = at + 1
    whole = "".join([*parts, type[start:]])
    if parts == ["", whole]:  # all of it in brackets
        return whole[1:-1]
    head = whole.split()[0]
    return head if head in always else whole


def quantified(build: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """What each statement quantifies over, in order: "premise" and its name or "?"; "value" after the "of" its types.

    Raises RuntimeError with Coq's words where it stops.
    """
    files = list(dict.fromkeys(name.split(".")[0] for name in names))
    (found,) = put(build, files, [quantifying(names)])
    return dict(found)


def quantifying(names: Sequence[str]) -> Question:
    unnamed, value, given, mark = (f"{letter}{secrets.token_hex(8)}_" for letter in "uvgm")
    prologue = PREMISES.format(unnamed=unnamed, value=value, given=given)
    goal = f'Goal ltac:(let t := type of @Proofs.{{}} in exact t). quantified. idtac "{mark}". inside tt. Abort.'
    drawn = re.compile(rf"({unnamed}|{value})\d*|{given}\d*")

    def read(answers: dict[str, str]) -> dict[str, list[str]]:
        found = {}
        for name, answer in answers.items():
            outside, _, inside = drawn.sub(lambda here: "?" if here[1] else "!", f"{answer}\n").partition(f"{mark}\n")
            found[name] = [*outside.splitlines(), *(f"within {line}" for line in inside.splitlines())]
        return found

    libraries = "From Coq Require List.\nFrom mathcomp Require ssrbool eqtype ssrnat."
    return Question({name: goal.format(name) for name in names}, f"{libraries}\n{prologue}", read)


def assumed(told: Sequence[str]) -> int:
    """How much a statement is to be given until it assumes nothing: 0 where it assumes nothing at all."""
    variables = [line.startswith("premise ") for line in told if not line.startswith(("of ", "within "))]
    return max((at for at, premise in enumerate(variables, 1) if premise), default=0)


def hidden_premises(
    statements: Mapping[str, Sequence[str]], granted: Mapping[str, Sequence[str]], sources: Path = SOURCES
) -> list[str]:
    """Of what is `quantified`: a proposition that the text shows neither as a Hypothesis nor before an arrow.

    And statements about all members of a type that is not known to have any (`granted`): they assume that there is one.
    """
    shown, arrows = dict[str, dict[str, str]](), Counter[str]()
    for file in dict.fromkeys(name.split(".")[0] for name in statements):
        text = (sources / f"{file}.v").read_text()
        shown |= {f"{file}.{name}": above for name, above in hypotheses_above(file, text).items()}
        arrows.update(f"{file}.{name}" for name, _, _ in premises_of(blank_comments(text), "|".join(STATEMENTS)))
    wrong, known = no_propositions(statements, shown), {*granted["always"], *granted["types"]}
    for name, lines in statements.items():
        read = name not in granted["read"]
        told = [line.removeprefix("within ") for line in lines if read or not line.startswith("within ")]
        premises = [line.removeprefix("premise ") for line in told if line.startswith("premise ")]
        under = {line.removeprefix("under ").lstrip("@") for line in told if line.startswith("under ")}
        kinds = {shape(line.removeprefix("of "), granted["always"]) for line in told if line.startswith("of ")}
        # A type that is itself quantified over, or what that gives: it may be chosen so that it has members.
        unknown = {kind for kind in kinds - known if not kind.startswith("?")}
        wrong += [f"{name} is about all {kind}, and there may be none" for kind in sorted(unknown)]
        named = [premise for premise in premises if premise != "?"]
        hidden = [premise for premise in named if premise not in shown.get(name, ())]
        wrong += [f"{name} assumes {premise}, which is no Hypothesis" for premise in hidden]
        if sum(line in ("premise ?", "value ?") for line in lines) > arrows[name]:
            wrong.append(f"{name} is given more than stands before its arrows: say it there, not in a Let")
        if "tt" in under and not premises:
            wrong.append(f"{name} assumes something in what it concludes, and nothing before")
        wrong += [f"{name} may assume something in {word}" for word in sorted(under - {"tt", *granted["assuming"]})]
        tests = {line.removeprefix("test ").lstrip("@") for line in told if line.startswith("test ")}
        wrong += [
            f"{name} ends at the test {word}, which may ask nothing" for word in sorted(tests - {*granted["tests"]})
        ]
    return wrong


def no_propositions(statements: Mapping[str, Sequence[str]], above: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Hypotheses that no statement below them has for a premise: `Hypothesis lossless : nat -> nat.` is a variable."""
    every = {place for name in statements for place in above.get(name, {}).values()}
    said = {
        above.get(name, {}).get(line.removeprefix("premise ")) for name, told in statements.items() for line in told
    }
    return [
        f"{place} is a Hypothesis, and no statement's premise: a Variable, or unused" for place in sorted(every - said)
    ]


def hypotheses_above(file: str, text: str) -> dict[str, dict[str, str]]:
    """Of every statement the hypotheses of the sections that are open there, and where each stands."""
    found, open_sections = dict[str, dict[str, str]](), [dict[str, str]()]
    for sentence in sentences(text):
        match sentence.word():
            case "Section":
                open_sections.append({})
            case "End" if len(open_sections) > 1:
                open_sections.pop()
            case "Hypothesis":
                name = sentence.name()
                open_sections[-1][name] = f"{file}, line {text.count(chr(10), 0, sentence.start) + 1}: {name}"
            case word if word in STATEMENTS:
                found[sentence.name()] = {name: at for above in open_sections for name, at in above.items()}
    return found


def given_by_libraries(build: Path, names: Sequence[str], kind: str = "") -> set[str]:
    """Those of our names that are short names of something in the libraries. kind: "Module" asks for modules alone."""
    libraries = (
        "From Coq Require Import ZArith Reals Lra Lia List Qcanon QArith.\nFrom Flocq Require Import Core Relative "
        "Plus_error.\nFrom mathcomp Require Import all_ssreflect all_algebra."
    )
    answers = asked(build, [], {name: f"Locate {kind} {name}." for name in names}, libraries)
    first = {name: re.sub(r"\(alias.*?\)", "", " ".join(answer.split())) for name, answer in answers.items()}
    kinds = kind or "Constant|Inductive|Constructor|Notation"
    found = re.compile(rf"(?:{kinds}) [\w.']+(?! *\(shorter)(?: |$)")
    return {name for name, answer in first.items() if found.match(answer)}


def checked(build: Path, files: Sequence[str]) -> list[str]:
    """What coqchk refuses, or finds that our compiled files rest on. Installed libraries are trusted as they are."""
    modules = [word for file in files for word in ("-norec", f"Proofs.{file}")]
    run = subprocess.run(
        ["coqchk", "-silent", "-o", *modules, "-Q", ".", "Proofs"],
        cwd=build,
        env=clean(),
        capture_output=True,
        text=True,
    )
    if run.returncode:
        return [f"{REFUSED}: {' '.join((run.stdout + run.stderr).split())[-500:]}"]
    _, summary, text = (run.stdout + run.stderr).partition("CONTEXT SUMMARY\n===============\n")
    parts = dict(_section(part) for part in re.split(r"^\* ", text, flags=re.M)[1:])
    if not summary or set(parts) != {"Theory", "Axioms", *NONE} or parts["Theory"] != ["Set is predicative"]:
        return [f"coqchk's summary has other parts than expected: {sorted(parts)}"]
    wrong = [f"coqchk: {name} is an axiom" for name in parts["Axioms"] if not name.startswith((*LIBRARIES, "<none>"))]
    return wrong + [f"coqchk: {part}: {parts[part]}" for part in NONE if parts[part] != ["<none>"]]


def _section(part: str) -> tuple[str, list[str]]:
    title, _, body = part.partition(":")
    return title, [line.strip() for line in body.splitlines() if line.strip()]
