"""Globs against a matcher that is too simple to be wrong."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lading.errors import ConfigError
from lading.sources.files.glob import compile_glob
from tests.support.examples import examples


def naive(pattern: str, key: str) -> bool:
    return any(naive_flat(flat, key) for flat in expand(pattern))


def expand(pattern: str) -> list[str]:
    """Patterns without braces."""
    start = find(pattern, "{")
    if start is None:
        return [pattern]
    depth, end, parts, begin = 0, start, [], start + 1
    while True:
        char = pattern[end]
        if char == "\\":
            end += 1
        elif char == "[":
            end = pattern.index("]", end + 2 + (pattern[end + 1] == "!"))
        elif char == "{":
            depth += 1
        elif char == "," and depth == 1:
            parts.append(pattern[begin:end])
            begin = end + 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                parts.append(pattern[begin:end])
                break
        end += 1
    numbers = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", parts[0]) if len(parts) == 1 else None
    if numbers:
        low, high = sorted((int(numbers[1]), int(numbers[2])))
        parts = [str(number) for number in range(low, high + 1)]
    return [flat for part in parts for flat in expand(pattern[:start] + part + pattern[end + 1 :])]


def find(pattern: str, wanted: str) -> int | None:
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == "[":
            at = pattern.index("]", at + 2 + (pattern[at + 1] == "!"))
        elif pattern[at] == wanted:
            return at
        at += 1
    return None


def naive_flat(pattern: str, key: str) -> bool:
    if not pattern:
        return not key
    if pattern.startswith("**"):
        return any(naive_flat(pattern.lstrip("*"), key[at:]) for at in range(len(key) + 1))
    if pattern[0] == "*":
        stop = key.find("/") if "/" in key else len(key)
        return any(naive_flat(pattern[1:], key[at:]) for at in range(stop + 1))
    if not key:
        return False
    if pattern[0] == "?":
        return key[0] != "/" and naive_flat(pattern[1:], key[1:])
    if pattern[0] == "[":
        negated = pattern[1] == "!"
        end = pattern.index("]", 2 + negated)
        inside = pattern[1 + negated : end]
        hit = (inside[0] <= key[0] <= inside[2]) if len(inside) == 3 and inside[1] == "-" else key[0] in inside
        return key[0] != "/" and hit != negated and naive_flat(pattern[end + 1 :], key[1:])
    if pattern[0] == "\\" and len(pattern) > 1:
        return key[0] == pattern[1] and naive_flat(pattern[2:], key[1:])
    return key[0] == pattern[0] and naive_flat(pattern[1:], key[1:])


ATOMS = ["a", "b", "c", "/", "1", "2", ".", "*", "**", "?", "[a-b]", "[!a]", "[bc]", "[!a-b]", "\\*", "\\{", "\\a"]
atom = st.sampled_from(ATOMS)
flat = st.lists(atom, max_size=4).map("".join)
braces = st.one_of(
    st.lists(flat, min_size=1, max_size=3).map(lambda parts: "{" + ",".join(parts) + "}"),
    st.tuples(st.integers(-2, 12), st.integers(-2, 12)).map(lambda ends: f"{{{ends[0]}..{ends[1]}}}"),
    st.tuples(flat, flat, flat).map(lambda parts: "{" + parts[0] + "{" + parts[1] + "," + parts[2] + "}}"),
)
patterns = st.lists(st.one_of(atom, braces), max_size=6).map("".join)
keys = st.text(alphabet="abc/12.*{-", max_size=8)


@settings(max_examples=examples(250), deadline=None)
@given(patterns, keys)
def test_globs_match_what_the_simple_matcher_matches(pattern: str, key: str) -> None:
    # Two stars that meet only when braces are written out are two stars for Lading, and one of all folders for this.
    assume(not (re.search(r"\*[{,}]", pattern) and any("**" in flat_one for flat_one in expand(pattern))))
    glob = compile_glob(pattern)
    expected = naive(pattern, key)
    assert glob.matches(key) == expected
    if expected:
        assert key.startswith(glob.literal_prefix)
        assert glob.max_slashes is None or key.count("/") <= glob.max_slashes


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("in/*.csv", ["in/a.csv", "in/.csv"], ["in/x/a.csv", "in/a.csv.gz", "xin/a.csv"]),
        ("in/**.csv", ["in/a.csv", "in/x/y/a.csv"], ["in/a.json"]),
        ("in/{a,b}[0-9].csv", ["in/a1.csv", "in/b9.csv"], ["in/c1.csv", "in/ab.csv"]),
        ("in/f{3..1}", ["in/f1", "in/f2", "in/f3"], ["in/f4", "in/f01", "in/f{3..1}"]),
        ("in/f{08..10}", ["in/f8", "in/f9", "in/f10"], ["in/f08"]),
        ("in/\\*", ["in/*"], ["in/a"]),
        ("in/[]]", ["in/]"], ["in/a"]),
        ("in/plain", ["in/plain"], ["in/plain2", "in/"]),
        ("in/a}", ["in/a}"], ["in/a"]),
    ],
)
def test_globs_of_the_documentation(pattern: str, yes: list[str], no: list[str]) -> None:
    glob = compile_glob(pattern)
    assert [key for key in yes if not glob.matches(key)] == []
    assert [key for key in no if glob.matches(key)] == []


@pytest.mark.parametrize("pattern", ["in/{a,b", "in/[ab", "in/[b-a]", "in/[", "in/{1..99999999}"])
def test_a_broken_glob_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="Invalid uri"):
        compile_glob(pattern)
