"""The wheel has everything that the package needs."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import lading

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src"
RUN_S = 600


def test_the_licence_is_the_one_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    texts = {name: (ROOT / name).read_text() for name in project["license-files"]}
    assert "Version 2.0, January 2004" in texts["LICENSE"]
    assert "END OF TERMS AND CONDITIONS" in texts["LICENSE"]


@pytest.fixture(scope="module")
def wheel() -> Iterator[Path]:
    """Built with pip, which fetches the build backend from the registry.

    Not in a folder of the tests: the wheel has the module in it whose mark no file there may have.
    """
    with tempfile.TemporaryDirectory() as folder:
        yield _build(Path(folder))


def _build(folder: Path) -> Path:
    venv.create(folder / "build", with_pip=True)
    build = [str(folder / "build" / "bin" / "python"), "-m", "pip", "wheel", "--no-deps", "-w", str(folder), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=RUN_S, check=False)
    if done.returncode and "No matching distribution found" in done.stdout + done.stderr:
        pytest.skip("the registry cannot be reached: the wheel was not built")
    assert done.returncode == 0, done.stdout + done.stderr
    [made] = folder.glob("lading-*.whl")
    return made


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package_and_the_licence(wheel: Path) -> None:
    own = {
        str(path.relative_to(SOURCE))
        for path in (SOURCE / "lading").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = set(zipfile.ZipFile(wheel).namelist())
    assert own - names == set()
    assert "lading/console/static/console.css" in own
    about = f"lading-{lading.__version__}.dist-info"
    assert {f"{about}/licenses/LICENSE", f"{about}/licenses/NOTICE"} <= names
    assert {name for name in names if not name.startswith(("lading/", about))} == set()


INSTALLED = """
import sys
from importlib.metadata import entry_points, version
from pathlib import Path
import lading
assert Path(lading.__file__).is_relative_to(sys.prefix), lading.__file__
[command] = entry_points(group="console_scripts", name="lading")
print(version("lading"), command.value)
"""


@pytest.mark.slow
def test_the_wheel_works_where_nothing_else_of_the_project_is(wheel: Path) -> None:
    """In an empty environment, beside the libraries that are installed for the tests: nothing is fetched. What the
    package asks for is in its metadata, and all of it is among them.
    """
    # Not in the folder of the run: the package has the mark that is looked for there.
    with tempfile.TemporaryDirectory() as place:
        check_installed(wheel, Path(place))


def check_installed(wheel: Path, folder: Path) -> None:
    venv.create(folder / "empty", with_pip=True)
    python = folder / "empty" / "bin" / "python"
    run(python, "-m", "pip", "install", "--no-index", "--no-deps", str(wheel), folder=folder)
    [site] = (folder / "empty" / "lib").glob("python*/site-packages")
    # A .pth file, because PYTHONPATH would come before the wheel; the project itself is installed editable there.
    libraries = Path(pytest.__file__).parents[1]
    (site / "libraries.pth").write_text(f"{libraries}\n")
    assert run(python, "-c", INSTALLED, folder=folder).split() == [lading.__version__, "lading.cli.main:main"]
    command = folder / "empty" / "bin" / "lading"
    (folder / "a.csv").write_text("id;city\n1;essen\n")
    assert run(command, "--version", folder=folder).split()[-1] == lading.__version__
    run(command, "init", folder=folder)
    assert "essen" in run(command, "sql", "-e", 'SELECT * FROM FILE("uri" = "*.csv")', folder=folder)
    assert "console.css" in run(python, "-c", CONSOLE, folder=folder)
    wanted = metadata.distribution("lading").requires or []
    assert [name for name in map(plain_name, wanted) if name and not is_installed(name)] == []


CONSOLE = """
from importlib.resources import files
print([each.name for each in (files("lading.console") / "static").iterdir()])
"""


def run(*words: object, folder: Path) -> str:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("LADING_", "PYTHON"))}
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, timeout=RUN_S, cwd=folder, env=plain, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def plain_name(requirement: str) -> str:
    """Of a library that is always needed; empty for one of an extra."""
    return "" if "extra ==" in requirement else re.split(r"[^\w.-]", requirement)[0]


def is_installed(name: str) -> bool:
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False
