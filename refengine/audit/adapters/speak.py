"""The engine's side of a conversation, run by the engine's own Python, where refengine is not installed.

    python speak.py WORKER.py PACKAGE [WAY]

imports WORKER.py, which defines

    convert(source, folder)   writes the pair of models in `source` (target/, drafter/: transformers layout) in its own
    opened(folder)            -> generate(way, prompt, tokens, temperature, seed, **options) -> ids after the prompt

or, where only its kernels are audited,

    verifier(way)             -> verify(p, q, draft, seed, counts, greedy) -> what each lane emits; of a whole round
                                 verify(ask, prefix, gamma, seed) -> tokens, where ask(side, tokens) is a row

and answers a JSON line for each on standard input: {"ready": version} once, null where PACKAGE is
not installed, then {"tokens": [...]}, {"done": true},
{"refused": why} for an option that `generate` has no keyword for, {"absent": why} where an import fails, or
{"raised": what}. A way is a name, "" the same without speculation; prompts and tokens are ids. What the engine prints
goes to standard error. With WAY it is a program for `refengine audit process`.
"""

import importlib.util
import json
import os
import resource
import sys
from importlib import metadata

MEMORY_BYTES = 12 << 30  # that can be written


def main(worker, package, way=None):
    sys.path.pop(0)  # the folder of this file, whose folders bear the names of the engines
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def reply(**said):
        replies.write(json.dumps(said) + "\n")
        replies.flush()

    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        version = None
    try:
        spec = importlib.util.spec_from_file_location("refengine_worker", worker)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        reply(absent=str(error))
        return
    if way is not None:
        answer_calls(module.verifier(way), reply)
        return
    reply(ready=version)
    generate = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if asked["op"] == "convert":
                module.convert(asked["source"], asked["folder"])
                reply(done=True)
            elif asked["op"] == "open":
                generate = module.opened(asked["folder"])
                reply(done=True)
            elif asked["op"] == "there":
                module.verifier(asked["way"])
                reply(done=True)
            elif asked["op"] == "verify":
                reply(tokens=module.verifier(asked["way"])(**arguments(asked["case"])))
            else:
                plain = [asked[name] for name in ("way", "prompt", "tokens", "temperature", "seed")]
                reply(tokens=[int(token) for token in generate(*plain, **asked["options"])])
        except ImportError as error:
            reply(absent=str(error))
        except TypeError as error:
            if "unexpected keyword argument" not in str(error) or error.__traceback__.tb_next is not None:
                reply(raised="TypeError: " + str(error))
            else:
                reply(refused=str(error))
        except Exception as error:
            reply(raised=type(error).__name__ + ": " + " ".join(str(error).split()))


def answer_calls(verify, reply):
    """The calls of `refengine audit process`, until there are no more."""
    import torch

    for line in sys.stdin:
        case = json.loads(line)
        if "prefix" in case:

            def ask(side, tokens):
                reply(ask=side, tokens=tokens)
                return torch.tensor(json.loads(sys.stdin.readline())["row"])

            reply(tokens=verify(ask, case["prefix"], case["gamma"], case["seed"]))
        else:
            reply(tokens=verify(**arguments(case)))


def arguments(case):
    """Those of `verify`; every lane has all of its drafts and is sampled, unless the case says otherwise."""
    import torch

    if "p" not in case:
        return case
    p, q, draft = (torch.tensor(case[name]) for name in ("p", "q", "draft"))
    lanes, places = p.shape[:2]
    whole = {"counts": [places - 1] * lanes, "greedy": [False] * lanes}
    return whole | case | {"p": p, "q": q, "draft": draft}


if __name__ == "__main__":
    main(*sys.argv[1:])
