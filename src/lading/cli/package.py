"""`lading package`: Lading and its libraries in one archive, for executors that have none of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

MIB = 1024 * 1024


def package(
    output: Annotated[Path, typer.Option("--output", "-o", help="The archive to write.")] = Path("lading.tar.gz"),
) -> None:
    """Pack Lading and what its tasks import, for executors that have Python and Spark and nothing else."""
    from lading.pipeline.archive import build_archive

    built = build_archive(output)
    version = ".".join(map(str, sys.version_info[:2]))
    typer.echo(
        f"{built.path}: {built.size_bytes / MIB:.0f} MB, {len(built.libraries)} libraries, for Python {version}\n"
        f"Set it: spark.lading.archive {built.path.absolute()}"
    )
