"""The gate of `make prove`: what it lets through, and the cheats that it must refuse. What needs Coq runs there."""

import shutil
from pathlib import Path

import pytest

from proofs.gate import build, cheats, kernel, terms, text
from proofs.gate.recursion import misused
from refengine.selfcheck.claims.coq_text import SOURCES, blank_comments, listed, sentences


def test_our_own_files_pass() -> None:
    """Kills: a reader that refuses everything, and a command that nobody has looked at."""
    assert text.read() == []


@pytest.mark.parametrize("cheat", cheats.every(), ids=lambda cheat: cheat.stem)
def test_cheats_are_refused_by_their_text(cheat: Path) -> None:
    """Kills: a command, an option, an attribute or a name by which something false passes for proved."""
    assert cheats.by_text(cheat) == ("text" in cheats.named(cheat))
    assert cheats.named(cheat)


def test_every_reader_has_cheats_of_its_own() -> None:
    """Kills: a reader that nothing would miss."""
    alone = {frozenset(cheats.named(cheat)) for cheat in cheats.every()}
    readers = ("text", "words", "premises", "names", "assumptions", "applied", "accepted", "recursion")
    assert {frozenset({reader}) for reader in readers} <= alone
    assert sum("coqchk" in readers for readers in alone) >= 1


@pytest.mark.coq
@pytest.mark.parametrize("name", ["guard", "premise_as_variable", "named_and_not_applied"])
def test_coq_refuses_them_too(name: str) -> None:
    """Kills: readers that stand only on our own reading of the text. Three of them; `make prove` asks about all."""
    cheat = cheats.FOLDER / f"{name}.v"
    with cheats.beside_ours() as build:
        assert cheats.compiles(build, cheat)
        refused = cheats.by_kernel(build, [cheat])[cheat]
        checked = {"coqchk"} if cheats.by_coqchk(build, [cheats.compiled_as(cheat)]) else set()
    assert refused | checked == cheats.named(cheat) - {"text", "names"}


@pytest.mark.parametrize(
    "answer",
    [
        "Axioms:\nCheat.loop is assumed to be guarded.",
        "Axioms:",
        "",
        "Closed under the global context\nAxioms:\nCheat.absurd : False",
        "Section Variables:\nabsurd : False",
        "Axioms:\n  Cheat.absurd : False",
    ],
)
def test_an_answer_is_read_whole(answer: str) -> None:
    """Kills: a reader that looks for the lines it knows and calls the rest closed."""
    with pytest.raises(ValueError, match=r"^" + answer[:8]):
        kernel.axioms(answer)


def test_axioms_are_read() -> None:
    """Kills: an axiom whose type stands on lines of its own and is lost."""
    assert kernel.axioms(kernel.CLOSED) == []
    assert kernel.axioms("Axioms:\nA.b : forall x,\n      x = x\nC.d\n  : True") == ["A.b", "C.d"]


@pytest.mark.parametrize(
    ("term", "reached"),
    [
        ("A.t x (A.u y)", {("A.t", 2), ("A.u", 1)}),
        ("fun x : T => A.t x", {("A.t", 1)}),
        ("fun (x : T) (no : False) => A.t no", set()),
        ("B.c (fun no : False => A.t no)", set()),
        ("(fun (x y : T) => A.t x y) a b", {("A.t", 2)}),
        ("(fun (x y : T) => A.t x y) a", set()),
        ("(fun _ : forall no : False, P => I) A.t", {("A.t", 0)}),
        ("match A.u x with | conj a b => A.t a b end", {("A.u", 1), ("A.t", 2)}),
        ("match c with | inl a => A.t a | inr b => A.u b end", set()),
        (
            "(fun m : P => (fun f : Q => match m with | conj a b => f a b end) (fun (a : R) (b : S) => A.t a b)) A.u",
            {
                ("A.u", 0),
                ("A.t", 2),
            },
        ),
        ("(fun f : Q => match top with | conj f b => f a end) (fun a : R => A.t a)", set()),
        ("let f := fun no : False => A.t no in B.c f", set()),
        ("let f := fun a : R => A.t a in f x", {("A.t", 1)}),
        ("forall x : A.t y, P", set()),
        ("fun x : T => (A.t x : P)", {("A.t", 1)}),
    ],
)
def test_a_proof_is_read_as_far_as_it_reaches(term: str, reached: set[tuple[str, int]]) -> None:
    """Kills: a theorem that counts as applied below a `fun` that nothing is given to, or in one branch of several."""
    assert set(terms.applied(term, int(term.startswith("fun")), ("A.t", "A.u"))) == reached


@pytest.mark.parametrize(
    ("body", "right"),
    [
        ("fix f (n : nat) : T := match n with | 0 => a | S m => b (f m) end", True),
        ("fun A : T => fix f (x : A) (n : nat) {struct n} : T := match n with | 0 => a | S m => f x m end", True),
        ("fix f (s : L) : T := match s with | cons x r => match r with | cons y q => f q | nil => a end end", True),
        (
            "fix f (n : nat) : T := match n with | Two a b => let y : T := f a in "
            "g y (fun x : T => match c x with | true => f b | false => x end) end",
            True,
        ),
        ("fix f (n c : nat) {struct n} : T := match n with | 0 => c | S m => f m (fun k : nat => f k 0) end", False),
        ("fix f (n : nat) : T := match n with | 0 => a | S m => f (h m) end", False),
        ("fix f (n : nat) : T := match n with | 0 => a | S m => g f m end", False),
        ("fix f (n : nat) : T := match n with | 0 => a | S m => f n end", False),
        ("fix f (n : nat) : T := match n with | 0 => a | S m => (fun m : nat => f m) c end", False),
        ("fix f (n : nat) : T := match n with | 0 => a | S m => let m := c in f m end", False),
        ("fix f (n : nat) : T := match h n with | 0 => a | S m => f m end", False),
        ("fix f (n : nat) : T := (fun n : nat => match n with | 0 => a | S m => f m end) c", False),
        ("fix f (n k : nat) {struct n} : T := match k with | 0 => a | S m => f m k end", False),
        ("fix f (n k : nat) {struct n} : T := match n with | 0 => a | S m => f k m end", False),
        ("fix f (n : nat) : T := match n return f n with | 0 => a | S m => f m end", False),
        ("fix f (n : nat) : T := match n with | 0 => a | S m => (fix g (k : nat) : T := f m) c end", False),
        ("fix f (n : nat) : T := match n with | S m => g m end with g (n : nat) : T := h n for f", False),
        ("fun n : nat => n", False),
    ],
)
def test_a_call_of_itself_is_on_a_part(body: str, right: bool) -> None:
    """Kills: a function that Coq's guard accepts and that does not end, and a part that is hidden by its name."""
    assert (misused(body) == "") == right


def test_a_type_is_told_whole() -> None:
    """Kills: a family of types that is granted by its name, whatever it is applied to: no number is below `n - n`."""
    always = ["list", "Num.sort"]
    assert kernel.shape("(fintype.ordinal (subn ? ?))", always) == "fintype.ordinal (subn ? ?)"
    assert kernel.shape("(list (fintype.ordinal 0))", always) == "list"
    assert kernel.shape("matrix (Num.sort (pack (f (g ?)))) ? 1", always) == "matrix (Num.sort) ? 1"
    assert kernel.shape("(a ?) (b ?)", always) == "(a ?) (b ?)"
    assert kernel.shape("nat", always) == "nat"


@pytest.mark.parametrize(
    "line", ["-arg -type-in-type", "-arg -impredicative-set", "-R /tmp Proofs", "Prob.v", "Gone.v"]
)
def test_the_list_of_files_takes_no_options(tmp_path: Path, line: str) -> None:
    """Kills: a flag that switches the kernel's checks off for every file, and a file that is not there."""
    sources = tmp_path / "rocq"
    shutil.copytree(SOURCES, sources)
    assert list(text.project(sources)) == []
    with (sources / "_CoqProject").open("a") as project:
        project.write(f"{line}\n")
    assert list(text.project(sources)) != []


def test_a_file_without_a_capital_is_refused(tmp_path: Path) -> None:
    """Kills: a definition in a file whose name nobody takes for a file's, so that its body has no digest."""
    sources = tmp_path / "rocq"
    shutil.copytree(SOURCES, sources)
    (sources / "bounded.v").touch()
    with (sources / "_CoqProject").open("a") as project:
        project.write("bounded.v\n")
    assert "capital" in " ".join(text.project(sources))


def test_a_file_that_is_not_listed_is_found(tmp_path: Path) -> None:
    """Kills: a theorem in a folder below that is cited and never compiled."""
    sources = tmp_path / "rocq"
    shutil.copytree(SOURCES, sources)
    (sources / "more").mkdir()
    (sources / "more" / "Cheat.v").write_text("Theorem anything : 1 = 2. Abort.\n")
    assert "more/Cheat.v" in " ".join(text.project(sources))


@pytest.mark.coq
def test_a_compiled_file_from_elsewhere_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a folder of compiled files that a commit brings along, with a proof in it that its text does not have.

    It is as a run of the gate leaves it, the list of what was made included, but for that the text was another then.
    """
    sources, made = tmp_path / "rocq", tmp_path / "build" / "rocq"
    sources.mkdir()
    (sources / "_CoqProject").write_text("\n".join([*text.PROJECT, "Cheat.v"]) + "\n")
    for name, value in (("SOURCES", sources), ("BUILD", made), ("MADE", made.parent / "made.json")):
        monkeypatch.setattr(build, name, value)
    monkeypatch.setattr(build, "listed", lambda: ["Cheat"])
    false, true = ("Theorem anything : False.\nProof. Admitted.\n", "Theorem anything : True.\nProof. exact I. Qed.\n")
    (sources / "Cheat.v").write_text(false)
    assert build.compiled() == ""
    shutil.copytree(made.parent, tmp_path / "delivered")
    shutil.rmtree(made.parent)
    (tmp_path / "delivered").rename(made.parent)
    (sources / "Cheat.v").write_text(true)
    shutil.copyfile(sources / "Cheat.v", made / "Cheat.v")
    for file in ("Cheat.vo", "Cheat.glob", "Cheat.v.timing"):  # younger than the text
        (made / file).touch()
    assert build.compiled() == ""
    assert kernel.asked(made, ["Cheat"], {"it": "Check Proofs.Cheat.anything."})["it"].split() == [
        "Cheat.anything",
        ":",
        "True",
    ]
    before = (made / "Cheat.vo").stat().st_mtime_ns
    assert build.compiled() == ""
    assert (made / "Cheat.vo").stat().st_mtime_ns == before  # what was made here is kept


@pytest.mark.coq
def test_a_file_with_the_name_of_a_module_is_seen(tmp_path: Path) -> None:
    """Kills: a file Nat.v of ours, by which `Nat.modulo` is another function in the files after it."""
    assert kernel.given_by_libraries(tmp_path, ["Nat", "Loop", "GRing", "Prob"], "Module") == {"Nat", "GRing"}


def test_what_a_proof_prints_hides_no_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a premise in what is one word of Coq's, a quotation, and several sentences to who reads the text, where
    the proof prints that Coq saw these. It cannot take away the line of the one that Coq saw."""
    monkeypatch.setattr(build, "BUILD", tmp_path)
    (tmp_path / "Cheat.v").write_text("let aside x := lp:{{ aside.\nHypothesis m : 0 <= n.\n}} x in idtac.\n")
    ours = [(found.start, found.end) for found in sentences((tmp_path / "Cheat.v").read_text())]
    for lines, refused in ((ours, False), ([ours[0][:1] + ours[-1][1:], *ours[1:]], True), ([*ours, ours[0]], True)):
        told = "".join(f"Chars {start} - {end} [let~aside] 0. secs (0.u,0.s)\n" for start, end in lines)
        (tmp_path / "Cheat.v.timing").write_text(told)
        assert bool(build.read_otherwise("Cheat")) == refused


def test_comments_and_strings_are_read_as_coq_reads_them() -> None:
    """Kills: code that is hidden from us, and only from us, by a comment in a comment or in a string."""
    assert blank_comments("a (* (* b *) c *) d").split() == ["a", "d"]
    assert blank_comments('a (* "*)" b *) c').split() == ["a", "c"]
    assert blank_comments('a "(*" b "*)" c').split() == ["a", '"(*"', "b", '"*)"', "c"]
    for wrong in ("(* a", "a *)", '"a', "(* (* a *)"):
        with pytest.raises(ValueError, match="does not end"):
            blank_comments(wrong)


def test_sentences() -> None:
    """Kills: two commands that are read as one, so that the second is never looked at."""
    found = sentences("- move=> x.1. }{ by []. (* . *) Set A.B\n C.")
    assert [s.text for s in found] == ["-", "move=> x.1.", "}", "{", "by [].", "Set A.B C."]
    assert [(s.start, s.end) for s in found] == [(0, 1), (2, 13), (14, 15), (15, 16), (17, 23), (32, 43)]
    with pytest.raises(ValueError, match="no full stop"):
        sentences("Lemma a")
    assert len(listed()) > 30
