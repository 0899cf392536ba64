"""Writing files of the user's: whole, or with an error that names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rekernel.files import write_whole


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "kernels.json"
    for data in (b"one", b"another"):
        write_whole(file, data, 0o600)
        assert file.read_bytes() == data
    assert list(tmp_path.iterdir()) == [file]


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    missing = tmp_path / "no such directory" / "kernels.json"
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(missing, b"", 0o600)
    assert caught.value.filename == str(missing)
    assert str(missing) in str(caught.value)


def test_where_a_directory_is_in_the_way_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "kernels.json").mkdir()
    with pytest.raises(OSError, match=r"kernels\.json"):
        write_whole(tmp_path / "kernels.json", b"", 0o600)
    assert [entry.name for entry in tmp_path.iterdir()] == ["kernels.json"]
