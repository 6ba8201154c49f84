"""What is known of a function on its way: its helpers, the types of its variables so far, and those of them that count.

Of types only what Gallina needs is known: numbers against lengths, and nodes, which count from -1 in Python and from 0
here.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from proofs.translate.terms import Term, element, refuse

Then = Callable[[Term], str]  # an expression is told what comes next: a text about its term


@dataclass
class Scope:
    helpers: set[str]
    types: dict[str, str] = field(default_factory=dict)
    counters: set[str] = field(default_factory=set)
    fresh: int = 0  # how many names were made up

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
                self.types[name] = kind
                return name
            case ast.Tuple([one, two]) if "*" in kind:
                left, _, right = kind.partition("*")
                return f"({self.bind_item(one, left)}, {self.bind_item(two, right)})"
        raise refuse(target)
