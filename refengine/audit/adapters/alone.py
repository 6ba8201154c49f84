"""A few modules of a large package without the package. Runs under an engine's Python, without refengine.

An engine's package imports a GPU, a server and a hundred others before its kernels are reached. `without_the_rest`
makes the named files importable from where the package is installed and gives a stand-in for every other module of it:
what is taken from a stand-in may be named, subclassed or annotated with, and raises when it is called. So a kernel that
reaches code that was left out is `not tested`; it is never run beside something of ours.
"""

import importlib.util
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

# Read when triton and torch are imported, which nobody has done yet.
os.environ |= {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "", "TORCHDYNAMO_DISABLE": "1"}


class LeftOut(type):
    """The class of what a stand-in has."""

    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"{cls.__module__}.{cls.__name__} is left out of the audit and was called")

    def __getattr__(cls, name: str) -> Any:
        return _left_out(f"{cls.__module__}.{cls.__name__}", name)


def _left_out(module: str, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return LeftOut(name, (), {"__module__": module})


class _Alone(MetaPathFinder, Loader):
    def __init__(self, package: str, folder: Path, kept: set[str], given: dict[str, dict[str, Any]]) -> None:
        self.package, self.folder, self.kept, self.given = package, folder, kept, given

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != self.package:
            return None
        if fullname not in self.kept:
            return ModuleSpec(fullname, self, is_package=True)
        file = self.folder.joinpath(*fullname.split(".")[1:]).with_suffix(".py")
        if not file.exists():
            raise ImportError(f"this version of {self.package} has no {fullname}")
        return importlib.util.spec_from_file_location(fullname, file)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(self.given.get(module.__name__, {}))
        module.__dict__["__getattr__"] = lambda name: _left_out(module.__name__, name)


def without_the_rest(package: str, kept: set[str], given: dict[str, dict[str, Any]]) -> None:
    """From now on the files of `kept` are imported alone. given: what stand-ins have, by module.

    Raises ImportError where the package is not installed.
    """
    found = PathFinder.find_spec(package, sys.path)
    if found is None or not found.submodule_search_locations:
        raise ImportError(f"{package} is not installed")
    sys.meta_path.insert(0, _Alone(package, Path(next(iter(found.submodule_search_locations))), kept, given))


def left_out(package: str) -> None:
    """From now on all of a package is a stand-in."""
    sys.meta_path.insert(0, _Alone(package, Path(), set(), {}))


def with_todays_numpy() -> None:
    """The interpreter holds a scalar as an array of one number, of which numpy 2.4 makes no index (triton 3.6)."""
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def patched(tensor: Any, *scope: Any) -> None:
        patch(tensor, *scope)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    interpreter._patch_lang_tensor = patched


def with_log1p(libdevice: Any) -> Any:
    """libdevice with a log1p that the interpreter can run: it calls into a GPU's library (Kahan's, right to an ulp)."""
    import triton.language as tl

    def log1p(x: Any) -> Any:
        whole = 1.0 + x
        return tl.where(whole == 1.0, x, tl.log(whole) * (x / tl.where(whole == 1.0, 1.0, whole - 1.0)))

    libdevice.log1p = log1p
    return libdevice
