"""Archives of the cache: what we pack we unpack, and what somebody else packed to harm us we refuse."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from oloproof_ci.actions_cache.archives import ArchiveRefused, pack, unpack

NAME = ".oloproof/stages"
EXPECTED = frozenset({"manifest.json", "results.sqlite3"})


def member(name: str, content: bytes = b"x", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def good(name: str, content: bytes = b"x") -> tuple[tarfile.TarInfo, bytes]:
    return member(f"{NAME}/{name}", content)


Archive = Callable[..., Path]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Write members into an archive; gives its path."""

    def write(*members: tuple[tarfile.TarInfo, bytes]) -> Path:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for info, content in members:
                tar.addfile(info, io.BytesIO(content) if info.isreg() else None)
        path = tmp_path / "archive"
        path.write_bytes(zstandard.compress(packed.getvalue()))
        return path

    return write


def refusal(path: Path, folder: Path, max_bytes: int = 1_000_000) -> str:
    with pytest.raises(ArchiveRefused) as refused:
        unpack(path, NAME, EXPECTED, folder, max_bytes)
    return str(refused.value)


def test_what_was_packed_comes_out_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    contents = {"manifest.json": b"{}", "results.sqlite3": os.urandom(3_000_000)}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    pack(folder, NAME, tmp_path / "archive")
    unpack(tmp_path / "archive", NAME, EXPECTED, tmp_path / "out", 4_000_000)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == contents


def test_an_archive_names_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    pack(folder, NAME, tmp_path / "archive")
    data = zstandard.ZstdDecompressor().stream_reader((tmp_path / "archive").read_bytes()).read()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = tar.getmembers()
    assert [m.name for m in members] == [NAME, f"{NAME}/manifest.json"]
    assert {(m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, "", "")}


@pytest.mark.parametrize(
    "hostile",
    [
        member("/etc/cron.d/evil"),
        member("../evil"),
        member(f"{NAME}/../../evil"),
        member(f"{NAME}/deeper/manifest.json"),
        member("manifest.json"),
        member(f"{NAME}/evil"),
        member(f"{NAME}/link", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        member(f"{NAME}/manifest.json", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        member(f"{NAME}/manifest.json", b"", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
        member(f"{NAME}/manifest.json", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
        member(f"{NAME}/manifest.json", b"", type=tarfile.FIFOTYPE),
        member("evil", b"", type=tarfile.DIRTYPE),
        member(f"{NAME}/manifest.json\n", b"x"),
    ],
    ids=lambda hostile: f"{hostile[0].name!r} of type {hostile[0].type!r}",
)
def test_a_member_that_does_not_belong_is_refused(
    archive: Archive, tmp_path: Path, hostile: tuple[tarfile.TarInfo, bytes]
) -> None:
    path = archive(hostile, good("manifest.json"), good("results.sqlite3"))
    before = set(tmp_path.rglob("*"))
    assert (
        "in it is no plain file" in (said := refusal(path, tmp_path / "out"))
        or "does not belong there" in said
    )
    assert {place for place in tmp_path.rglob("*") if "out" not in place.parts} == before
    assert not any(place.is_symlink() for place in tmp_path.rglob("*"))


def test_a_file_that_comes_twice_is_refused(archive: Archive, tmp_path: Path) -> None:
    path = archive(good("manifest.json"), good("manifest.json", b"y"), good("results.sqlite3"))
    assert "does not belong" in refusal(path, tmp_path / "out")


def test_a_bomb_is_refused_before_it_fills_the_disk(archive: Archive, tmp_path: Path) -> None:
    path = archive(good("manifest.json"), good("results.sqlite3", bytes(30_000_000)))
    assert path.stat().st_size < 10_000
    assert "more than 1000000 bytes" in refusal(path, tmp_path / "out")
    assert sum(place.stat().st_size for place in (tmp_path / "out").iterdir()) < 1_000_000


def test_endless_members_are_refused(archive: Archive, tmp_path: Path) -> None:
    folders = [member(".oloproof", b"", type=tarfile.DIRTYPE)] * 5000
    path = archive(*folders, good("manifest.json"), good("results.sqlite3"))
    assert "unpacks to more than it may" in refusal(path, tmp_path / "out", max_bytes=1000)


@pytest.mark.parametrize("cut", [0, 1, 20, -5])
def test_a_truncated_archive_is_refused(archive: Archive, tmp_path: Path, cut: int) -> None:
    path = archive(good("manifest.json", os.urandom(5000)), good("results.sqlite3", os.urandom(5000)))
    path.write_bytes(path.read_bytes()[: cut if cut >= 0 else path.stat().st_size + cut])
    refusal(path, tmp_path / "out")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(b"<html>no</html>" * 100)
    assert "it is damaged" in refusal(tmp_path / "archive", tmp_path / "out")


def test_a_missing_file_is_named(archive: Archive, tmp_path: Path) -> None:
    assert refusal(archive(good("manifest.json")), tmp_path / "out") == "it lacks results.sqlite3"


def test_an_archive_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        pack(tmp_path / "absent", NAME, tmp_path / "archive")
    assert not (tmp_path / "archive").exists()
