from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from generator.documents import write_text_atomically
from generator.errors import InvalidInput
from generator.files import MAX_FILE_BYTES, read_text


def refused_reading(path: Path) -> str:
    with pytest.raises(InvalidInput) as caught:
        read_text(path, "spec.yaml")
    return str(caught.value)


def refused_writing(path: Path) -> str:
    with pytest.raises(InvalidInput) as caught:
        write_text_atomically(path, "new\n")
    return str(caught.value).replace(str(path), "TARGET")


# --- reading ----------------------------------------------------------------------------------


def test_text_is_read_without_its_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: gr\xc3\xbcn\n")
    assert read_text(path, "a.yaml") == "name: grün\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"a: 1\nb: caf\xe9\n",
            "spec.yaml:2: not UTF-8 text: byte 0xe9 at offset 11 (save it as UTF-8)",
        ),
        (
            "a: 1\n".encode("utf-16"),
            (
                "spec.yaml:1: not UTF-8 text: byte 0xff at offset 0"
                " (it looks like UTF-16: save it as UTF-8)"
            ),
        ),
        (
            b"#" * (MAX_FILE_BYTES + 1),
            "spec.yaml: is over 8 MiB (is this the right file?)",
        ),
    ],
    ids=["latin-1", "utf-16", "too large"],
)
def test_content_that_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x").write_bytes(content)
    assert refused_reading(tmp_path / "x") == message


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"#" * MAX_FILE_BYTES)
    assert len(read_text(tmp_path / "x", "x")) == MAX_FILE_BYTES


def test_places_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    assert refused_reading(tmp_path / "none") == "spec.yaml: no such file (check the path)"
    assert refused_reading(tmp_path) == "spec.yaml: is a folder, not a file (name a file)"
    assert refused_reading(tmp_path / "file" / "x") == (
        "spec.yaml: a part of the path is a file, not a folder (check the path)"
    )
    assert refused_reading(tmp_path / "loop") == (
        "spec.yaml: its symbolic links go round in a circle (check the path)"
    )
    assert refused_reading(tmp_path / ("x" * 300)) == (
        "spec.yaml: the name is too long (choose a shorter one)"
    )


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # whoever runs the tests as root may read anything
    message = "spec.yaml: permission denied (check its owner and mode)"
    assert refused_reading(tmp_path / "x") == message


# --- writing ----------------------------------------------------------------------------------


def everything_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_new_file_has_its_text_folders_and_an_ordinary_mode(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        write_text_atomically(tmp_path / "a" / "b" / "x.yaml", "name: grün\r\n")
    finally:
        os.umask(umask)
    path = tmp_path / "a" / "b" / "x.yaml"
    assert path.read_bytes() == "name: grün\r\n".encode()
    assert path.stat().st_mode & 0o777 == 0o644
    assert everything_in(tmp_path) == {"a", "a/b", "a/b/x.yaml"}


def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("old")
    path.chmod(0o750)
    write_text_atomically(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o750


def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "x", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_name_of_full_length_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    write_text_atomically(path, "new")
    assert path.read_text() == "new"


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    before = everything_in(tmp_path)
    parent_is_a_file = "TARGET: a part of the path is a file, not a folder (check the path)"
    assert refused_writing(tmp_path) == "TARGET: is a folder, not a file (name a file)"
    assert refused_writing(tmp_path / "file" / "x") == parent_is_a_file
    assert refused_writing(tmp_path / "file" / "y" / "x") == parent_is_a_file
    assert refused_writing(tmp_path / "new" / ("x" * 300)) == (
        "TARGET: the name is too long (choose a shorter one)"
    )
    assert everything_in(tmp_path) == before
    assert (tmp_path / "file").read_text() == "old"


def test_a_read_only_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write whatever the mode says
    assert refused_writing(path) == "TARGET: permission denied (check its owner and mode)"
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "no space left on the device (free some space; nothing was changed)"),
        (errno.EDQUOT, "the disk quota is used up (free some space; nothing was changed)"),
        (errno.EROFS, "the file system is read-only (choose another folder)"),
        (errno.EIO, "input/output error"),
    ],
    ids=["ENOSPC", "EDQUOT", "EROFS", "EIO"],
)
@pytest.mark.parametrize("name", ["old", "new", "made/for/it"])
def test_a_failed_write_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, message: str, name: str
) -> None:
    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    (tmp_path / "old").write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    assert refused_writing(tmp_path / name) == f"TARGET: {message}"
    assert everything_in(tmp_path) == {"old"}
    assert (tmp_path / "old").read_text() == "old"


def test_an_interrupted_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text_atomically(tmp_path / "made" / "x", "new")
    assert everything_in(tmp_path) == set()


def test_text_that_no_utf_8_file_can_hold(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with pytest.raises(InvalidInput) as caught:
        write_text_atomically(path, "# from \udce9.yaml")
    assert str(caught.value) == f"{path}: its text cannot be UTF-8: character U+DCE9"
    assert everything_in(tmp_path) == set()
