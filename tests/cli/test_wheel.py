"""The wheel: built, installed into an empty environment, and used."""

from __future__ import annotations

import subprocess
import sysconfig
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


@pytest.mark.slow
def test_the_installed_wheel_runs(wheel: Path, tmp_path: Path) -> None:
    """Its dependencies are those of the running environment; the package itself is the one of the wheel."""
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--no-deps", str(wheel)], check=True, timeout=RUN_S)
    packages = Path(
        subprocess.check_output(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        ).strip()
    )
    # An editable install of this repository must not be found first: its .pth is not read from a folder of a .pth.
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    command = str(tmp_path / "env" / "bin" / "lading")

    def run(*words: str) -> str:
        done = subprocess.run([*words], cwd=tmp_path, capture_output=True, text=True, timeout=RUN_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    found = run(python, "-c", "import lading; print(lading.__file__)").strip()
    assert found.startswith(str(packages))
    assert "serve" in run(command, "--help")
    assert "1" in run(command, "sql", "--format", "json", "-e", "SELECT 1 AS one")
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    told = run(python, "-c", "from importlib.metadata import requires; print('\\n'.join(requires('lading')))")
    assert all(each.partition(">")[0].partition("[")[0] in told for each in needed)
