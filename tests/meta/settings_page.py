"""docs/settings.md, from the records of `lading.settings`: `python -m tests.meta.settings_page` writes it."""

from __future__ import annotations

from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from lading.settings import about, groups, variable_of

PAGE = Path(__file__).parent.parent.parent / "docs" / "settings.md"
KINDS = {
    "str": "text",
    "int": "whole number",
    "float": "number",
    "bool": "yes or no",
    "Path": "path",
    "Path | None": "path",
    "frozenset[str]": "path",
    "tuple[str, ...]": "text",
}
HEAD = """# Settings

Everything that can be set outside of statements. Each setting has a variable of the environment and a key in the file
`lading.toml`; many are options of `lading serve`, too. An option wins over the variable, the variable over the file,
the file over the default. `--home`, `--store` and `--config` are options of the other commands as well, `--spark-conf`
of `lading run` and `lading sql`.

- A home reads its settings once, when it is opened. Restart the service after a change.
- What is said counts, also when it is 0, no or empty: `LADING_COMPACTION_SECONDS=0` is 0, whatever the file says. An
  empty variable means the default, also over the file.
- A value that cannot be used, a key that is not known, and a variable that begins with `LADING_` and is not listed
  here stop the start, with the name that was probably meant. What Kubernetes sets for a Service called `lading` is left
  alone.
- A whole number is 0 or more, unless its text says otherwise. Yes is also `true`, `on`, `1`; no is `false`, `off`, `0`.
  Several values in one variable have commas or spaces between them.

## The file

`lading.toml` in the home is read when it is there; `--config` or `LADING_CONFIG` names another file instead. A key is
the name of the variable in small letters without `lading_`, in the table that its section below names. Relative
paths begin at the folder of the file.

```toml
[service]
host = "0.0.0.0"
http_port = 8030
tls_cert = "tls/cert.pem"
tls_key = "tls/key.pem"
allow_host = ["lading.example"]
store = "env:LOADS_DATABASE"

[compaction]
compaction_seconds = 0

[spark]
master = "spark://spark.example:7077"
sql.shuffle.partitions = 8
"spark.executor.memory" = "4g"

[catalogs.lake]
comment = "the lakehouse"
type = "iceberg"
iceberg.catalog.type = "rest"
uri = "https://catalog.example/api/catalog"
warehouse = "lake"
iceberg.rest.security.type = "oauth2"
iceberg.rest.oauth2.credential = "file:/run/secrets/lake"
```

A secret in the file is a reference, `env:NAME` or `file:/path`, or the file is readable for its owner alone
(`chmod 600`); else the start stops. Settings of Spark may be written with and without `spark.` before them; those of
`--spark-settings` win over them, and `--spark-conf` over all. A catalog of the file has the properties of CREATE
CATALOG ([catalogs.md](catalogs.md)). It is listed by SHOW CATALOGS; ALTER and DROP are refused and name the file.
"""


def render() -> str:
    """The page."""
    return HEAD + "".join(_section(name, group) for name, group in groups().items())


def _section(name: str, group: type[Any]) -> str:
    rows = "".join(_row(each) for each in fields(group))
    text = f"\n## {(group.__doc__ or '').partition(':')[0]}\n\n"
    if ": " in (group.__doc__ or ""):
        text += f"{(group.__doc__ or '').partition(': ')[2].capitalize()}.\n\n"
    text += f"In the file: `[{name}]`.\n\n"
    return text + "| variable | option | type | default | what it does |\n| --- | --- | --- | --- | --- |\n" + rows


def _row(each: Field[Any]) -> str:
    said, variable = about(each), variable_of(each)
    cells = (
        f"`{variable}`" if variable else "",
        f"`{said.option}`" if said.option else "",
        _kind(each),
        _default(each),
    )
    return f"| {' | '.join(cells)} | {said.what.replace('|', chr(92) + '|')} |\n"


def _kind(each: Field[Any]) -> str:
    said, kind = about(each), KINDS[str(each.type)]
    is_bounded = kind == "whole number" and (said.least, said.most) != (0, 1_000_000)
    return f"{said.least} to {said.most:,}" if is_bounded else kind


def _default(each: Field[Any]) -> str:
    value = each.default
    if about(each).shown:
        return about(each).shown
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`" if value or value == 0 else "none"


if __name__ == "__main__":
    PAGE.write_text(render())
