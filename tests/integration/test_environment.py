"""What a pull request requires, installed by the real uv; the packages are made here, so no index is asked."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from oloproof.errors import ConfigurationError
from oloproof_ci.environment import Environments, Wanted


def add_wheel(tree: Path, version: str) -> str:
    """A package `palette` whose one constant is its version; gives its place as a requirement."""
    name = f"palette-{version}-py3-none-any.whl"
    facts = {
        "palette.py": f"VERSION = {version!r}\n",
        f"palette-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: palette\nVersion: {version}\n",
        f"palette-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"palette-{version}.dist-info/RECORD": "",
    }
    (tree / "wheels").mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(tree / "wheels" / name, "w") as archive:
        for path, body in facts.items():
            archive.writestr(path, body)
    return f"palette=={version}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    requirement = add_wheel(tree, "1.0")
    (tree / "requirements.txt").write_text(f"--no-index\n--find-links wheels\n{requirement}\n")
    return tree


def environments(tmp_path: Path, **wanted: object) -> Environments:
    folder = tmp_path / "environments"
    folder.mkdir(exist_ok=True)
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    return Environments(folder, Wanted(**wanted), variables, None)  # type: ignore[arg-type]


def version_seen(interpreter: str) -> str:
    done = subprocess.run(
        [interpreter, "-c", "import palette; print(palette.VERSION)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_requirements_are_installed_for_the_workers_alone(tmp_path: Path, tree: Path) -> None:
    made = environments(tmp_path, requirements=("requirements.txt",))
    assert version_seen(made.interpreter(tree)) == "1.0"


def test_the_base_shares_the_heads_when_their_requirements_are_the_same(tmp_path: Path, tree: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "requirements.txt").write_text((tree / "requirements.txt").read_text())
    made = environments(tmp_path, requirements=("requirements.txt",))
    assert made.interpreter(tree) == made.interpreter(base)


@pytest.mark.parametrize("included", [False, True], ids=["itself", "in an included file"])
def test_the_base_gets_its_own_when_a_requirement_differs(tmp_path: Path, tree: Path, included: bool) -> None:
    base = tmp_path / "base"
    lines = f"--no-index\n--find-links wheels\n{add_wheel(base, '0.9')}\n"
    if included:
        (base / "more.txt").write_text(lines)
        (tree / "more.txt").write_text((tree / "requirements.txt").read_text())
        (tree / "requirements.txt").write_text("-r more.txt\n")
        lines = "-r more.txt\n"
    (base / "requirements.txt").write_text(lines)
    made = environments(tmp_path, requirements=("requirements.txt",))
    assert version_seen(made.interpreter(tree)) == "1.0"
    assert version_seen(made.interpreter(base)) == "0.9"


def test_a_base_from_before_the_requirements_has_an_empty_environment(tmp_path: Path, tree: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    made = environments(tmp_path, requirements=("requirements.txt",))
    interpreter = made.interpreter(base)
    assert subprocess.run([interpreter, "-c", "import palette"], capture_output=True, check=False).returncode


def test_a_checkout_that_installs_itself_has_its_own(tmp_path: Path, tree: Path) -> None:
    base = tmp_path / "base"
    for folder in (tree, base):
        folder.mkdir(exist_ok=True)
        (folder / "requirements.txt").write_text("-e ./library\n")
        (folder / "library").mkdir()
    made = environments(tmp_path, requirements=("requirements.txt",))
    with pytest.raises(ConfigurationError, match="input requirements: uv pip install"):
        made.interpreter(tree)
    assert made._key(tree) != made._key(base)


def test_an_installation_that_fails_shows_what_uv_said_and_the_input(tmp_path: Path, tree: Path) -> None:
    (tree / "requirements.txt").write_text("--no-index\nnowhere-to-be-found==3\n")
    made = environments(tmp_path, requirements=("requirements.txt",))
    with pytest.raises(ConfigurationError) as raised:
        made.interpreter(tree)
    assert "input requirements: uv pip install ended with exit status 1" in str(raised.value)
    assert "nowhere-to-be-found" in str(raised.value)


def test_a_command_installs_in_their_place(tmp_path: Path, tree: Path) -> None:
    command = "pip install --quiet --no-index --find-links wheels palette"
    made = environments(tmp_path, install=command)
    assert version_seen(made.interpreter(tree)) == "1.0"


def test_a_command_that_fails_shows_what_it_said_and_the_input(tmp_path: Path, tree: Path) -> None:
    made = environments(tmp_path, install="echo no compiler here >&2; exit 3")
    with pytest.raises(ConfigurationError, match=r"input install: .* exit status 3[\s\S]*no compiler here"):
        made.interpreter(tree)


def test_a_python_that_cannot_be_had_names_its_input(tmp_path: Path, tree: Path) -> None:
    made = environments(tmp_path, python="2.1")
    with pytest.raises(ConfigurationError, match=r"input python-version: uv venv"):
        made.interpreter(tree)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("missing.txt", "no such file"),
        ("../outside.txt", "lies outside the repository"),
        ("link.txt", "outside"),
    ],
)
def test_a_requirement_file_that_is_not_the_checkouts_is_refused(
    tmp_path: Path, tree: Path, named: str, said: str
) -> None:
    (tmp_path / "outside.txt").touch()
    (tree / "link.txt").symlink_to("../outside.txt")
    made = environments(tmp_path, requirements=(named,))
    with pytest.raises(ConfigurationError, match=f"input requirements: {named}: .*{said}"):
        made.check_named(tree)


def test_a_uv_that_cannot_be_run_is_told_as_such(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by the workspace's owner, when ours lies in a folder that is closed to others."""
    (tmp_path / "uv").touch(mode=0o600)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    made = environments(tmp_path, requirements=("requirements.txt",), python="3.11")
    with pytest.raises(
        ConfigurationError, match=r"input python-version: .*/uv cannot be run \(Permission denied\)"
    ):
        made.interpreter(tree)
