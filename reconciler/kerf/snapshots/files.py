"""The bytes of a file: its lines, compressed with gzip; uncompressed ones are read too."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kerf.snapshots.reading import Unreadable

#: A file whose lines are longer in all is none that Kerf has written: of 5,000 nodes and 100,000 pods they are 150 MB.
_LONGEST: Final = 2 * 1024**3
#: The same of one line: it has 500 objects at most.
_LONGEST_LINE: Final = 64 * 1024**2
_GZIP_MAGIC: Final = b"\x1f\x8b"
#: zlib's number for the gzip format with the largest window.
_GZIP: Final = 16 + zlib.MAX_WBITS
_PIECE: Final = 256 * 1024


def compressed(lines: Iterable[bytes], give_way: Callable[[], object] = lambda: None) -> bytes:
    """The file with these lines. The same lines give the same bytes. `give_way` is called before each line."""
    packing = packer()
    found = []
    for line in lines:
        give_way()
        found.append(packing.compress(line))
    return b"".join([*found, packing.flush()])


def packer() -> zlib._Compress:
    """What compresses the bytes of a file."""
    return zlib.compressobj(6, zlib.DEFLATED, _GZIP)


def lines(data: bytes, torn: Callable[[], object] | None = None) -> Iterator[bytes]:
    """The lines of a file, compressed or not. Raises Unreadable.

    With `torn` a file may end anywhere, as one does that was being written: it is called, and the last line is left
    out when it is not complete.
    """
    rest, size = b"", 0
    for piece in _pieces(data, torn):
        size += len(piece)
        if size > _LONGEST:
            raise Unreadable(f"it has more than {_LONGEST // 1024**3} GiB")
        first, *others = (rest + piece).split(b"\n")
        yield from [first, *others[:-1]] if others else ()
        rest = others[-1] if others else first
        if len(rest) > _LONGEST_LINE:
            raise Unreadable(f"a line has more than {_LONGEST_LINE // 1024**2} MiB")
    if rest.strip():
        if torn is None:
            yield rest
        else:
            torn()


def _pieces(data: bytes, torn: Callable[[], object] | None) -> Iterator[bytes]:
    if not data.startswith(_GZIP_MAGIC):
        yield from (data[start : start + _PIECE] for start in range(0, len(data), _PIECE))
        return
    unpacker = zlib.decompressobj(_GZIP)
    try:
        piece = unpacker.decompress(data, _PIECE)
        while piece:
            yield piece
            piece = unpacker.decompress(unpacker.unconsumed_tail, _PIECE)
    except zlib.error as error:
        raise Unreadable(f"it cannot be decompressed: {error}") from error
    if not unpacker.eof and torn is not None:
        torn()
    elif not unpacker.eof:
        raise Unreadable("its end is missing: it was not written to its end, or was cut")
