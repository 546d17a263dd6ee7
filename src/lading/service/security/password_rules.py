"""Which new passwords are taken."""

from __future__ import annotations

from lading.errors import ConfigError
from lading.settings import SecuritySettings
from lading.sql.syntax.spans import MASK

MOST_LETTERS = 1024
_COMMON = frozenset(
    """
    password password1 password12 password123 passw0rd p@ssw0rd 12345678 123456789 1234567890 11111111 00000000
    qwertyui qwerty123 qwertyuiop 1q2w3e4r 1qaz2wsx abcd1234 abcdefgh asdfghjk iloveyou sunshine princess football
    baseball superman trustno1 welcome1 changeme letmein1 administrator
    """.split()  # noqa: SIM905 - a list of them would take thirty lines
)


def check_new_password(password: str, *, user: str, rules: SecuritySettings) -> None:
    """Refuse what nobody can mean as a password, and what is guessed first. Raises ConfigError."""
    problem = _problem(password, user, rules)
    if problem:
        msg = f"The new password {problem}"
        raise ConfigError(msg, left="Nothing was changed.", todo="Choose another one.")


def _problem(password: str, user: str, rules: SecuritySettings) -> str:
    if not password:
        return "is empty"
    if password == MASK:
        return f"is {MASK}, which is what is shown instead of passwords"
    if len(password) > MOST_LETTERS:
        return f"is longer than {MOST_LETTERS} characters"
    if len(password) < rules.password_min_length:
        return f"is shorter than {rules.password_min_length} characters"
    if password.casefold() in (user.casefold(), user.casefold()[::-1]):
        return "is the name of the user"
    if password.casefold() in _COMMON or password.casefold() in rules.password_list:
        return "is one of those that are guessed first"
    if _classes(password) < rules.password_classes:
        kinds = "small letters, capital letters, digits, other characters"
        return f"has fewer than {rules.password_classes} of these: {kinds}"
    return ""


def _classes(password: str) -> int:
    """How many kinds of characters it has. A letter that is neither small nor capital counts with the others."""
    kinds = {
        "small" if each.islower() else "capital" if each.isupper() else "digit" if each.isdigit() else "other"
        for each in password
    }
    return len(kinds)
