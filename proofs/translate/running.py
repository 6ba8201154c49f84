"""What runs is what was read: what the names of `refengine.exact` mean here is what they mean where nothing else ran.

A function may be put in another's place from anywhere, and so may a default, a method, an entry of a table or a word of
the language; the text of the rules then says nothing of what they do. So the definition is imported once more, from its
files, by a process that imports nothing else, and what is said there of every name of its modules, and of every name
that their functions reach, is compared with what is said here. A file that changes another one's names while it is
imported would do so there too: `written` refuses a file that does more than to define. Not seen: what is changed only
while something runs and put back before anybody asks.
"""

import builtins
import json
import pkgutil
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any

from refengine.source_tree import ROOT

PACKAGES = ("refengine.exact", "refengine.exact.rules")
FRESH = "import sys; sys.path[:] = sys.argv[2:]; from proofs.translate.running import told; told(sys.argv[1].split())"
# Where a name stands or was found, what types are noted and what is said for readers: none of it is run.
ASIDE = {"__cached__", "__spec__", "__loader__", "__builtins__", "__annotations__", "__doc__", "__warningregistry__"}
MADE_OF = ("fget", "fset", "fdel", "__func__", "__wrapped__", "func", "args", "keywords")  # what `vars` does not show
HEAP = 1 << 9  # marks a class that is not of C and can be changed
FOLLOWED = {"refengine", "proofs", "fractions", "numbers"}  # in other libraries only what is named here is told


def replaced(packages: Sequence[str] = PACKAGES) -> Iterator[str]:
    """The names that mean something else than their files say."""
    yield from differing(meanings(packages), as_written(packages))


def differing(here: Mapping[str, str], fresh: Mapping[str, str]) -> Iterator[str]:
    yield from (name for name in sorted({*here, *fresh}) if here.get(name) != fresh.get(name))


def as_written(packages: Sequence[str]) -> dict[str, str]:
    """What the names mean in a process that imports nothing else."""
    with tempfile.TemporaryDirectory() as empty:  # no compiled file is believed
        options = ["-I", "-S", "-B", "-X", f"pycache_prefix={empty}"]
        command = [sys.executable, *options, "-c", FRESH, " ".join(packages), str(ROOT), *filter(None, sys.path)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    meant: dict[str, str] = json.loads(run.stdout)
    return meant


def told(packages: Sequence[str]) -> None:
    print(json.dumps(meanings(packages)))


def modules_of(packages: Sequence[str]) -> list[ModuleType]:
    found = [import_module(package) for package in packages]
    inside = [m.name for package in found for m in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")]
    return [*found, *map(import_module, inside)]


def meanings(packages: Sequence[str]) -> dict[str, str]:
    """What is said of every name of the modules of the packages, and of what their functions reach, by its place."""
    places = [(m.__name__, name) for m in modules_of(packages) for name in vars(m).keys() - ASIDE]
    files = [(m, name) for m, name in places if vars(sys.modules[m])[name] is sys.modules.get(f"{m}.{name}")]
    teller = Teller(sorted({*places} - {*files}))  # a folder has a name for each file that somebody has imported
    while teller.todo:
        teller.tell(*teller.todo.pop())
    if any(package.startswith("refengine.engine") for package in packages):
        teller.tell_methods(vars(sys.modules["torch"])["Tensor"])
    return teller.said


class Teller:
    """Says what names mean, in words that are the same in two processes where the names mean the same."""

    def __init__(self, todo: list[tuple[str, str]]) -> None:
        self.said: dict[str, str] = {}
        self.todo = todo
        self.within: list[int] = []  # what is being told, as it may stand in itself
        self.names = set[str]()  # that functions look up, wherever

    def tell(self, module: str, name: str) -> None:
        """What a name of a module means; of a class that is at home there, what each of its names means."""
        place, value = f"{module}.{name}", vars(sys.modules[module])[name]
        if place in self.said:
            return
        at_home = home(value) == place
        if not isinstance(value, type) or not at_home:
            self.said[place] = self.meaning(value, at_home)
            return
        self.said[place] = f"class of {self.each([*value.__bases__, type(value)])}"
        if value.__flags__ & HEAP and followed(module):
            inside = vars(value).keys() - ASIDE
            self.said |= {f"{place}.{inner}": self.meaning(vars(value)[inner], at_home=True) for inner in inside}

    def tell_methods(self, kind: type) -> None:
        """What it means to ask a tensor for what the functions ask for."""
        for base in kind.__mro__[:-1]:
            for name in sorted(self.names & vars(base).keys()):
                self.said[f"{kind.__name__}.{name} of {base.__name__}"] = self.meaning(vars(base)[name])

    def meaning(self, value: Any, at_home: bool = False) -> str:
        if id(value) in self.within:
            return "itself"
        self.within.append(id(value))
        try:
            return self._meaning(value, at_home)
        finally:
            self.within.pop()

    def _meaning(self, value: Any, at_home: bool) -> str:
        kind = type(value).__qualname__
        match value:
            case ModuleType():
                return f"module {value.__name__} {getattr(value, '__file__', '')}"
            case FunctionType() if at_home or not home(value):
                return self.function(value)
            case FunctionType() | type() if home(value):
                self.visit(home(value))
                return f"{kind} {home(value)}"
            case str() | bytes() | int() | float() | None:
                return f"{kind} {value!r}"
            case tuple() | list():
                return kind + self.each(value)
            case set() | frozenset():
                return f"{kind} {sorted(map(self.meaning, value))}"
            case Mapping():
                return kind + self.each([*value.items()])
        return self.anything(value)

    def each(self, values: Sequence[Any]) -> str:
        return f"({', '.join(map(self.meaning, values))})"

    def anything(self, value: Any) -> str:
        """By its type, its parts and, where none of them are known, by what it says of itself."""
        kind, parts = type(value), dict[str, Any]()
        if followed(kind.__module__):
            slots = [vars(base).get("__slots__") or () for base in kind.__mro__]
            parts = {**getattr(value, "__dict__", {}), **dict.fromkeys(slot for names in slots for slot in names)}
        parts = {part: getattr(value, part) for part in (*MADE_OF, *parts) if hasattr(value, part)}
        text = "" if parts else re.sub(r" at 0x\w+", "", repr(value))
        return f"{self.meaning(kind)} {text}{self.each([(p, parts[p]) for p in sorted(parts.keys() - ASIDE)])}"

    def function(self, value: FunctionType) -> str:
        """Its code, where it looks words up, what it is given where nobody says, and what it carries along."""
        self.names |= {*words(value.__code__)}
        space, where = value.__globals__, str(value.__globals__.get("__name__"))
        if vars(sys.modules.get(where, builtins)) is not space or value.__builtins__ is not vars(builtins):
            where = "words of its own"
        elif followed(where):
            self.follow(where, {*words(value.__code__)})
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        parts = [value.__defaults__, value.__kwdefaults__, cells, value.__dict__]
        return f"function {where} {code(value.__code__)} {self.each(parts)}"

    def follow(self, module: str, names: Collection[str]) -> None:
        """Tell the words that a function of a module may look up there, in the language, and in modules named there."""
        for name in names:
            place = module if name in vars(sys.modules[module]) else "builtins"
            self.visit(f"{place}.{name}")
            value = vars(sys.modules[place]).get(name)
            if isinstance(value, ModuleType) and sys.modules.get(value.__name__) is value and value is not sys:
                for inner in names:
                    self.visit(f"{value.__name__}.{inner}")

    def visit(self, place: str) -> None:
        module, _, name = place.rpartition(".")
        if module in sys.modules and name not in ASIDE and name in vars(sys.modules[module]):
            self.todo.append((module, name))


def followed(module: str) -> bool:
    return module.partition(".")[0] in FOLLOWED


def home(value: Any) -> str:
    """The place that a function or a class says it is of, where it stands there."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    inside: Any = sys.modules.get(module) if isinstance(module, str) else None
    for part in name.split(".") if inside is not None else ():
        inside = vars(inside).get(part) if isinstance(inside, ModuleType | type) else None
    return f"{module}.{name}" if inside is not None and inside is value else ""


def words(found: CodeType) -> Iterator[str]:
    """Every name that code looks up, that of functions inside it too."""
    yield from found.co_names
    for inner in found.co_consts:
        if isinstance(inner, CodeType):
            yield from words(inner)


def code(found: CodeType) -> str:
    """What code does, without where it stands."""
    consts = [constant(c) for c in found.co_consts]
    names = [found.co_names, found.co_varnames, found.co_freevars, found.co_cellvars]
    counts = [found.co_argcount, found.co_posonlyargcount, found.co_kwonlyargcount, found.co_flags]
    return f"{found.co_code.hex()} {found.co_exceptiontable.hex()} {consts} {names} {counts}"


def constant(value: Any) -> str:
    match value:
        case CodeType():
            return code(value)
        case frozenset():
            return f"frozenset {sorted(map(constant, value))}"
        case tuple():
            return f"tuple {[*map(constant, value)]}"
    return re.sub(r" at 0x\w+", "", f"{type(value).__qualname__} {value!r}")
