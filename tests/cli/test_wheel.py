"""The wheel has everything that the package needs."""

from __future__ import annotations

import subprocess
import tomllib
import venv
import zipfile
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
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built with pip, which fetches the build backend from the registry."""
    folder = tmp_path_factory.mktemp("wheel")
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
