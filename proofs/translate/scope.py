"""What is known of a function on its way: its helpers, the types of its variables so far, and those of them that count.

Of types only what Gallina needs is known: numbers against lengths, and nodes, which count from -1 in Python and from 0
here.
"""

import ast
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

from proofs.translate.terms import Term, element, refuse, same

Then = Callable[[Term], str]  # an expression is told what comes next: a text about its term


@dataclass
class Scope:
    helpers: Set[str]
    types: dict[str, str] = field(default_factory=dict)
    counters: set[str] = field(default_factory=set)
    fresh: int = 0  # how many names were made up
    takes: Mapping[str, list[str]] = field(default_factory=dict)  # the types of the parameters of helpers
    learned: dict[str, str] | None = None  # the types that the first reading ended with, in the second

    def back_to(self, types: dict[str, str]) -> None:
        """The types before a branch; what was empty then may have got items in it."""
        self.types = {name: self.types[name] if kind.endswith("seq ?") else kind for name, kind in types.items()}

    def gets(self, node: ast.AST, name: str, kind: str) -> None:
        """A variable has one type in all of its life; of an empty list the first reading says what it will hold."""
        if kind == "seq ?":
            kind = (self.learned or {}).get(name, kind)
        self.known(node, kind)
        self.types[name] = same(node, self.types.get(name, kind), kind)

    def holds(self, node: ast.AST, name: str, made: str, item: Term) -> None:
        """A list, or a dict, whose items have one type."""
        self.known(node, item.type)
        before = self.types[name].removeprefix(f"{made} ")
        self.types[name] = f"{made} {item.type if before == '?' else same(node, before, item.type)}"

    def known(self, node: ast.AST, kind: str) -> None:
        if self.learned is not None and kind == "?":
            raise refuse(node, "it is not known what this is")

    def effect(self, call: str, type: str, then: Then) -> str:
        """A call that is told what comes next."""
        self.fresh += 1
        name = f"v{self.fresh}"
        return f"{call} (fun {name} =>\n{then(Term(name, type))})"

    def bind_target(self, target: ast.expr, items: Term) -> str:
        name = self.bind_item(target, element(items))
        return f"'{name}" if isinstance(target, ast.Tuple) else name

    def bind_item(self, target: ast.expr, kind: str) -> str:
        match target:
            case ast.Name(name):
                self.gets(target, name, kind)
                return name
            case ast.Tuple([one, two]) if "*" in kind:
                left, _, right = kind.partition("*")
                return f"({self.bind_item(one, left)}, {self.bind_item(two, right)})"
        raise refuse(target)
