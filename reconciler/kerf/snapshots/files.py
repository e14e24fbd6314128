"""The bytes of a file: its lines, compressed with gzip; uncompressed ones are read too."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
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
_TOO_LONG: Final = f"it has more than {_LONGEST // 1024**3} GiB"
_SECOND: Final = "it has data after its end; split files that were joined"


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


def lines(data: bytes | Iterable[bytes], torn: Callable[[], object] | None = None) -> Iterator[bytes]:
    """The lines of a file, compressed or not: of its bytes, or of pieces of them. Raises Unreadable.

    With `torn` a file may end anywhere, as one does that was being written: it is called once, and the last line is
    left out when it is not complete. The lines before damaged bytes come before the error.
    """
    found = (data[start : start + _PIECE] for start in range(0, len(data), _PIECE)) if isinstance(data, bytes) else data
    rest, length, size, cut = list[bytes](), 0, 0, list[bool]()
    for piece in _unpacked(_bounded(found), None if torn is None else lambda: cut.append(True)):
        size += len(piece)
        if size > _LONGEST:
            raise Unreadable(_TOO_LONG)
        *ended, begun = piece.split(b"\n")
        if ended:
            yield b"".join([*rest, ended[0]])
            yield from ended[1:]
            rest, length = [], 0
        rest.append(begun)
        length += len(begun)
        if length > _LONGEST_LINE:
            raise Unreadable(f"a line has more than {_LONGEST_LINE // 1024**2} MiB")
    last = b"".join(rest)
    if torn is None:
        yield from [last] if last.strip() else []
    elif cut or last.strip():
        torn()


def _bounded(found: Iterable[bytes]) -> Iterator[bytes]:
    """Compressed bytes may stand for nothing at all, without end."""
    size = 0
    for piece in found:
        size += len(piece)
        if size > _LONGEST:
            raise Unreadable(_TOO_LONG)
        yield piece


def _unpacked(found: Iterator[bytes], torn: Callable[[], object] | None) -> Iterator[bytes]:
    first = next(found, b"")
    if not first.startswith(_GZIP_MAGIC):
        yield first
        yield from found
        return
    unpacker = zlib.decompressobj(_GZIP)
    begin = 0
    for packed in chain([first], found):
        before = unpacker.copy()
        size = 0
        try:
            for part in _parts(unpacker, packed):
                size += len(part)
                yield part
        except zlib.error:
            yield from _up_to_damage(before, packed, size, begin)
        begin += len(packed)
    if not unpacker.eof and torn is not None:
        torn()
    elif not unpacker.eof:
        raise Unreadable("its end is missing: it was not written to its end, or was cut")


def _up_to_damage(unpacker: zlib._Decompress, packed: bytes, known: int, begin: int) -> Iterator[bytes]:
    """The bytes of a damaged piece that decode, without the first `known` of them; then it raises Unreadable.

    zlib returns nothing of the input in which it fails, so it gets one byte at a time. `begin` is the place of the
    piece in the file. The damage may be earlier: wrong bits can stand for other lines.
    """
    for place in range(len(packed)):
        try:
            for part in _parts(unpacker, packed[place : place + 1]):
                yield part[known:]
                known = max(0, known - len(part))
        except zlib.error as error:
            raise Unreadable(f"it is damaged at byte {begin + place:,} or before: {error}") from error


def _parts(unpacker: zlib._Decompress, packed: bytes) -> Iterator[bytes]:
    """The bytes of a piece, a few at a time however well they are compressed. Raises Unreadable, zlib.error."""
    if unpacker.eof and packed:
        raise Unreadable(_SECOND)
    while part := unpacker.decompress(packed, _PIECE):
        yield part
        packed = unpacker.unconsumed_tail
    if unpacker.unused_data:
        raise Unreadable(_SECOND)
