"""What crosses the pipe between an audit and its child: a length and a msgpack body that may hold numpy arrays."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

ARRAY = 1  # the msgpack extension type of a numpy array
HEADER = 8  # bytes that say how many come after them


def frame(message: Any) -> bytes:
    body = msgspec.msgpack.encode(message, enc_hook=_encode_array)
    return len(body).to_bytes(HEADER, "little") + body


def received(read: Callable[[int], bytes]) -> Any:
    """The next message, by a function that reads so many bytes, or fewer where there are no more: the other side has
    ended then, and ConnectionError is raised."""
    body = _whole(read, int.from_bytes(_whole(read, HEADER), "little"))
    return decode(body)


def _whole(read: Callable[[int], bytes], size: int) -> bytes:
    data = read(size)
    if len(data) < size:
        raise ConnectionError("the other side has ended")
    return data


def _encode_array(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        parts = (value.dtype.str, list(value.shape), value.tobytes())
        return msgspec.msgpack.Ext(ARRAY, msgspec.msgpack.encode(parts))
    raise NotImplementedError(f"{type(value).__name__} cannot cross the pipe")


def decode(body: bytes) -> Any:
    return msgspec.msgpack.decode(body, ext_hook=_decode_array)


def _decode_array(code: int, data: memoryview) -> Any:
    dtype, shape, content = msgspec.msgpack.decode(data)
    return np.frombuffer(content, dtype=np.dtype(dtype)).reshape(shape).copy()
