"""python triton_compile.py [LEVELS]: the kernels that `kernels.cuda` launches, compiled for a device that is not there.

The interpreter takes Python; the compiler also wants one type for what a loop carries, and shapes that fit. A line for
each kernel: its name, and how many float64 products it fuses with a sum, which would round once where the text rounds
twice.
"""

import sys
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from refengine.engine.block import Block
from refengine.engine.coins import Philox
from refengine.engine.kernels import cuda

launch = JITFunction.run


class Device:
    """What Triton asks of a driver in order to compile: here for an H100."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: object = None) -> int:
        return 0


def compile_only(kernel: Any, *arguments: Any, grid: object, warmup: bool, **sizes: Any) -> None:
    made = launch(kernel, *arguments, grid=grid, warmup=True, **sizes)
    print(kernel.__name__, made.asm["ptx"].count("fma.rn.f64"))


def main() -> None:
    driver.set_active(Device())
    JITFunction.run = compile_only
    cuda.LEVELS = int(sys.argv[1]) if len(sys.argv) > 1 else cuda.LEVELS
    lanes, n, vocabulary = 3, 2, 5 << cuda.LEVELS
    p = torch.full((lanes, n + 1, vocabulary), 1 / vocabulary)
    block = Block(torch.zeros(lanes, n, dtype=torch.int64), torch.arange(-1, n - 1).repeat(lanes, 1), p[:, 1:])
    for name in cuda.RULES:
        cuda.verify(name, p, block, cuda.from_philox(Philox(0, torch.arange(lanes)), 0))
    cuda.judgeable(p, block, 0.0)


if __name__ == "__main__":
    main()
