"""How a command says where its jobs run: `--workers N` processes here, or `--cluster ADDRESS`."""

import argparse
from collections.abc import Sequence

from refengine.jobs.cluster import Cluster
from refengine.jobs.processes import Processes, cores
from refengine.jobs.run import Here, Workers

WORKERS = "How many jobs run at once: by default one for each core, of a cluster one for each CPU."
CLUSTER = "A Ray cluster: auto (this machine's), HOST:PORT, ray://HOST:PORT, or local (started here and ended)."


def add_options(parser: argparse.ArgumentParser) -> None:
    """For a script; the options of `workers`."""
    parser.add_argument("--workers", type=int, help=WORKERS)
    parser.add_argument("--cluster", default="", help=CLUSTER)


def workers(count: int | None = None, cluster: str = "", preload: Sequence[str] = ()) -> Workers:
    """The place that the options name. Raises BadInput where there is no such cluster."""
    if cluster:
        return Cluster(cluster, count)
    count = count or cores()
    return Processes(count, preload) if count > 1 else Here()
