"""The engine's side of a conversation, run by the engine's own Python, where refengine is not installed.

    python speak.py WORKER.py PACKAGE

imports WORKER.py, which defines

    convert(source, folder)   writes the pair of models in `source` (target/, drafter/: transformers layout) in its own
    opened(folder)            -> generate(way, prompt, tokens, temperature, seed, **options) -> ids after the prompt

and answers a JSON line for each on standard input: {"ready": version} once, null where PACKAGE is
not installed, then {"tokens": [...]}, {"done": true},
{"refused": why} for an option that `generate` has no keyword for, {"absent": why} where an import fails, or
{"raised": what}. A way is a name, "" the same without speculation; prompts and tokens are ids. What the engine prints
goes to standard error.
"""

import importlib.util
import json
import os
import resource
import sys
from importlib import metadata

MEMORY_BYTES = 12 << 30  # that can be written


def main(worker, package):
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
            else:
                arguments = [asked[name] for name in ("way", "prompt", "tokens", "temperature", "seed")]
                reply(tokens=[int(token) for token in generate(*arguments, **asked["options"])])
        except ImportError as error:
            reply(absent=str(error))
        except TypeError as error:
            if "unexpected keyword argument" not in str(error) or error.__traceback__.tb_next is not None:
                reply(raised="TypeError: " + str(error))
            else:
                reply(refused=str(error))
        except Exception as error:
            reply(raised=type(error).__name__ + ": " + " ".join(str(error).split()))


if __name__ == "__main__":
    main(*sys.argv[1:])
