"""docs/api.md, from the types and docstrings of what `lading` exports: `python -m tests.meta.api_page` writes it."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from pathlib import Path
from typing import Any

import lading

PAGE = Path(__file__).parent.parent.parent / "docs" / "api.md"
SHOWN = {
    "RemoteHome": ("sql", "run", "verify", "close"),
    "Lading": ("sql", "run", "verify", "job", "any_job", "open_target", "close"),
    "Session": ("sql", "use", "job"),
    "LakeTable": ("location", "schema", "scan", "files", "read_head", "ends_with", "job_ids"),
}
"""Of these, what programs use; the rest is for statements and threads. Of the others, everything."""
HEAD = """# Using Lading from Python

What `import lading` gives; everything else may change without notice. Errors are in [errors.md](errors.md).

```python
import lading

with lading.connect("shop-home", create=True) as home:
    home.sql("CREATE DATABASE shop")
    print(home.sql("SHOW DATABASES")[0].rows)
```

The same program works while a service has the home, and with `lading.connect("https://host:8030", token="…")`: then it
gets a `RemoteHome`.
"""


def render() -> str:
    """The page."""
    names = sorted(
        (name for name in lading.__all__ if name != "__version__"), key=lambda name: (name != "connect", name)
    )
    return HEAD + "".join(f"\n{_section(name, getattr(lading, name))}" for name in names)


def _section(name: str, thing: Any) -> str:
    text = f"## {name}\n\n"
    if not inspect.isclass(thing):
        return text + f"{_doc(thing)}\n\n    {name}{_signature(thing)}\n"
    text += f"{_doc(thing)}\n"
    if issubclass(thing, enum.Enum):
        return text + f"\nOne of {', '.join(f'`{member.name}`' for member in thing)}.\n"
    if issubclass(thing, Exception):
        thing_init = inspect.signature(thing.__init__)
        return text + f"\n    {name}({', '.join(list(map(str, thing_init.parameters.values()))[1:])})\n"
    if dataclasses.is_dataclass(thing):
        text += "".join(f"\n- `{field.name}`: `{field.type}`" for field in dataclasses.fields(thing)) + "\n"
    members = SHOWN.get(name) or [
        key for key, value in vars(thing).items() if not key.startswith("_") and _is_member(value)
    ]
    for member in members:
        value = inspect.getattr_static(thing, member)
        shape = "" if isinstance(value, property) else _signature(value)
        kind = (
            f": {inspect.signature(value.fget).return_annotation}" if isinstance(value, property) and value.fget else ""
        )
        text += f"\n### {name}.{member}\n\n    {member}{shape}{kind}\n\n{_doc(value)}\n"
    return text


def _is_member(value: Any) -> bool:
    return isinstance(value, property) or inspect.isfunction(value)


def _signature(value: Any) -> str:
    signature = inspect.signature(value)
    parameters = [item for key, item in signature.parameters.items() if key != "self"]
    return str(signature.replace(parameters=parameters)).replace("'", "")


def _doc(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "")


if __name__ == "__main__":
    PAGE.write_text(render())
