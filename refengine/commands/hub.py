"""A repository of the Hugging Face hub as a folder of its cache, each file held to the hash that it is named by.

Only `fetch` goes to the network, by `huggingface_hub.snapshot_download`, whose cache, mirrors (HF_ENDPOINT), tokens
(HF_TOKEN) and offline mode (HF_HUB_OFFLINE) are then ours too. Of a repository it takes safetensors, configs and
tokenizers, and never a program or a pickle. The cache names a file's content by its hash, SHA-256 for large files and
git's SHA-1 for others. What is read is hashed again, every time: a download that was tampered with, or a cache that
rotted, is no checkpoint.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from refengine.errors import BadInput
from refengine.report.terminal import Progress

NAME = re.compile(r"(?P<repository>[A-Za-z0-9][\w.-]*/[\w.-]+)(@(?P<revision>[\w./-]+))?")  # org/name[@revision]
TAKEN = ["*.safetensors", "*.safetensors.index.json", "config.json", "generation_config.json", "chat_template.*"]
TAKEN += ["tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt"]
NOT_TAKEN = ["*/*", "*.py"]  # folders inside hold other formats of the same weights
SHA256 = 64  # digits
PIECE = 1 << 24  # bytes that are hashed at a time


@dataclass(frozen=True)
class Snapshot:
    """A repository at a commit.

    files  their names, with the hashes that were found to be theirs
    """

    repository: str
    commit: str
    folder: Path
    files: dict[str, str]

    @property
    def pinned(self) -> str:
        """The name that means these very files."""
        return f"{self.repository}@{self.commit}"

    def line(self) -> str:
        """The commit, and the hashes of the weights."""
        weights = [f"{name} {digest}" for name, digest in self.files.items() if name.endswith(".safetensors")]
        return f"{self.pinned}: {len(self.files)} files, {', '.join(weights)}"


def on_the_hub(name: str) -> bool:
    """Whether this is no folder here, and spelled like a repository of the hub."""
    return NAME.fullmatch(name) is not None and not Path(name.partition("@")[0]).exists()


def fetch(name: str) -> Snapshot:
    """`org/name` or `org/name@revision` from the hub, or from its cache. Raises BadInput in one line."""
    from huggingface_hub import constants, snapshot_download

    found = NAME.fullmatch(name)
    if found is None:
        raise BadInput(f"{name} is no name of a repository: expected org/name or org/name@revision")
    repository, revision = found["repository"], found["revision"]
    try:
        folder = Path(snapshot_download(repository, revision=revision, allow_patterns=TAKEN, ignore_patterns=NOT_TAKEN))
    except Exception as error:  # the library raises its own, its client's and the system's
        refuse(repository, revision, error)
    if not folder.is_dir():
        raise BadInput(f"{constants.ENDPOINT} answered {repository} at {folder.name} with files of another commit")
    files = sorted(folder.iterdir())
    if not any(file.suffix == ".safetensors" for file in files):
        raise BadInput(
            f"{repository}@{folder.name} has no safetensors file: pickles are not downloaded. Download it yourself, "
            "convert it with `refengine checkpoint convert`, and give the folder"
        )
    with Progress(f"hashing {repository}", len(files)) as shown:
        digests = {file.name: held(file, f"{repository}@{folder.name}", shown.at) for file in files}
    return Snapshot(repository, folder.name, folder, digests)


def held(file: Path, where: str, tell: Callable[..., None]) -> str:
    """The hash of a file of the cache, where it is the one that was promised. Raises BadInput, and removes the file."""
    blob = file.resolve()
    sha = hashlib.sha256() if len(blob.name) == SHA256 else hashlib.sha1(f"blob {blob.stat().st_size}\0".encode())
    size = max(1, blob.stat().st_size)
    with blob.open("rb") as opened:
        while piece := opened.read(PIECE):
            sha.update(piece)
            tell(file.name, opened.tell() / size)
    if sha.hexdigest() != blob.name:
        file.unlink()
        blob.unlink(missing_ok=True)
        raise BadInput(
            f"{where}: {file.name} has the {sha.name} {sha.hexdigest()}, and the hub promised {blob.name}: "
            "it was removed from the cache"
        )
    return f"{sha.name}:{sha.hexdigest()}"


def refuse(repository: str, revision: str | None, error: Exception) -> NoReturn:
    """What went wrong in one line that says what to do."""
    from huggingface_hub import constants, errors

    at = f" at {revision}" if revision else ""
    hub, first = constants.ENDPOINT, (str(error).strip().splitlines() or [type(error).__name__])[0]
    kinds: list[tuple[Any, str]] = [
        (errors.GatedRepoError, f"is gated on {hub}: accept its terms there, and set HF_TOKEN"),
        (errors.RevisionNotFoundError, f"has no revision {revision} on {hub}"),
        (errors.DisabledRepoError, f"is disabled on {hub}"),
        (errors.RepositoryNotFoundError, f"is no folder here and no repository on {hub}, or a private one (HF_TOKEN)"),
        (errors.IncompleteSnapshotError, f"is in the cache in part, and {_unreachable(error, hub)}"),
        (errors.LocalEntryNotFoundError, f"is not in the cache, and {_unreachable(error, hub)}"),
        (Exception, f"could not be downloaded from {hub}: {first}"),
    ]
    said = next(said for kind, said in kinds if isinstance(error, kind))
    raise BadInput(f"{repository}{at} {said}") from error


def _unreachable(error: Exception, hub: str) -> str:
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    cause = error.__cause__
    return f"{hub} gave nothing: {(str(cause).splitlines() or [''])[0] or type(cause).__name__}"
