"""Archives as `actions/cache` makes them: a tar of one folder, its names relative to the workspace, under zstd.

An archive comes from outside, so it is read with suspicion: it may hold the files that are expected and the folders
above them, nothing else, and no more than so many bytes. It is unpacked into a new folder, as a stream.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from oloproof.errors import OloproofError

LEVEL = 3
#: The largest window that we accept in a frame, in bytes; zstd itself makes none larger unless asked to.
MAX_WINDOW = 1 << 27
#: Headers and padding of a tar beside its files.
MARGIN = 1 << 20


class ArchiveRefused(OloproofError):
    """An archive that is damaged, or holds what it should not."""


def pack(folder: Path, name: str, target: Path) -> None:
    """Write the files of a folder into an archive, under the folder's `name` relative to the workspace. Raises OSError;
    a file half written is removed."""
    import zstandard

    try:
        with (
            target.open("wb") as file,
            zstandard.ZstdCompressor(level=LEVEL, threads=-1).stream_writer(file, closefd=False) as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT, bufsize=1 << 20) as tar,
        ):
            for path in [folder, *sorted(folder.iterdir())]:
                member = tar.gettarinfo(
                    path, arcname=str(PurePosixPath(name) / path.relative_to(folder).as_posix())
                )
                member.uid = member.gid = 0
                member.uname = member.gname = ""
                member.mode = 0o755 if path.is_dir() else 0o644
                if path.is_dir():
                    tar.addfile(member)
                else:
                    with path.open("rb") as source:
                        tar.addfile(member, source)
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def unpack(archive: Path, name: str, expected: frozenset[str], folder: Path, max_bytes: int) -> None:
    """Unpack the expected files of the folder `name` into a new folder. Raises ArchiveRefused for anything else, and
    then `folder` may hold some of the files."""
    folder.mkdir()
    inside = PurePosixPath(name)
    left = max_bytes
    found = set()
    try:
        with _opened(archive, max_bytes + MARGIN) as tar:
            for member in tar:
                place = PurePosixPath(member.name)
                if member.isdir() and (place == inside or place in inside.parents):
                    continue
                if place.parent != inside or place.name not in expected or place.name in found:
                    raise ArchiveRefused(f"it holds {member.name!r}, which does not belong there")
                if not member.isreg() or member.issparse():
                    raise ArchiveRefused(f"{member.name!r} in it is no plain file")
                left -= member.size
                if left < 0:
                    raise ArchiveRefused(f"it holds more than {max_bytes} bytes")
                found.add(place.name)
                member.name = place.name
                tar.extract(member, folder, filter="data")
    except (tarfile.TarError, EOFError, ValueError, UnicodeError) as error:
        raise ArchiveRefused(f"it is damaged ({error})") from None
    if found != expected:
        raise ArchiveRefused(f"it lacks {', '.join(sorted(expected - found))}")


@contextmanager
def _opened(archive: Path, max_bytes: int) -> Iterator[tarfile.TarFile]:
    import zstandard

    try:
        with archive.open("rb") as file:
            frames = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(
                file, read_across_frames=True, closefd=False
            )
            limited = cast("IO[bytes]", _Limited(frames, max_bytes))
            with frames, tarfile.open(fileobj=limited, mode="r|", bufsize=1 << 20) as tar:
                yield tar
    except zstandard.ZstdError as error:
        raise ArchiveRefused(f"it is damaged ({error})") from None


class _Limited:
    """A stream that gives no more than so many bytes: what unpacks to more is a bomb."""

    def __init__(self, stream: Any, limit: int) -> None:
        self._stream = stream
        self._left = limit

    def read(self, size: int) -> bytes:
        data: bytes = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ArchiveRefused("it unpacks to more than it may")
        return data
