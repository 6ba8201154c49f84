"""A Chromium without a window: what its console says of a page, and what a script finds in it."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
needed = pytest.mark.skipif(CHROMIUM is None, reason=f"not tested: none of {', '.join(NAMES)} is installed here")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-extensions", "--enable-logging=stderr")
WAIT = "--virtual-time-budget=30000"  # milliseconds that do not pass: Chromium skips them when nothing is left to do


def opened(file: Path, *options: str) -> tuple[str, list[str]]:
    """The page as the browser has it in the end, and the lines of its console."""
    command = [CHROMIUM, *OPTIONS, WAIT, f"--user-data-dir={file.parent / 'profile'}", *options, "--dump-dom"]
    done = subprocess.run([*command, file.as_uri()], capture_output=True, text=True, timeout=300, check=True)
    return done.stdout, re.findall(r"CONSOLE.*", done.stderr)


def asked(page: str, script: str, folder: Path, *options: str, library: str = "") -> Any:
    """What `script`, the body of an async function, returns in the page; `library` is run before it.

    The page's own content policy is taken out: it admits no script but the page's.
    """
    folder.joinpath("library.js").write_text(library, encoding="utf-8")
    body = f"(async () => {{ {script} }})().catch((error) => `${{error}}`)"
    tell = "found => { const pre = document.createElement('pre'); pre.id = 'found'; pre.textContent = found; "
    tell += "document.body.append(pre); }"
    run = f"addEventListener('load', () => {body}.then((it) => JSON.stringify(it)).then({tell}));"
    file = folder / "asked.html"
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    scripts = f'<script src="library.js"></script><script>{run}</script></body>'
    file.write_text(page.replace("</body>", scripts), encoding="utf-8")
    dom, _ = opened(file, *options)
    (found,) = re.findall(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)
    return json.loads(html.unescape(found))
