"""Settings of what the service tells others: notifications and lineage. `settings.py` reads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lading.setting_fields import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyVariables:
    """Notifications: see [notifications.md](notifications.md)"""

    notify_webhook_url: str = setting("", "Where JSON is posted to.", shown="no webhook")
    notify_webhook_token: str = setting("", "Sent to it as `Authorization: Bearer …`.", is_secret=True)
    notify_webhook_token_file: Path | None = setting(None, "A file with that token.")
    notify_slack_url: str = setting(
        "", "An incoming webhook of Slack, or of something that takes the same.", is_secret=True, shown="no Slack"
    )
    notify_slack_url_file: Path | None = setting(None, "A file with its URL.")
    notify_email_to: str = setting("", "Who gets e-mail: addresses with commas.", shown="no e-mail")
    notify_email_from: str = setting("", "Who it comes from.")
    notify_smtp: str = setting("", "The mail server: `smtp.example:587`.")
    notify_smtp_tls: str = setting(
        "starttls", "`starttls`; `tls` from the first byte; `none`, which takes no password but on this machine."
    )
    notify_smtp_ca_file: Path | None = setting(
        None, "Certificates that vouch for the mail server, PEM.", shown="those of the system"
    )
    notify_smtp_user: str = setting("", "Who signs in at the mail server.", shown="nobody")
    notify_smtp_password: str = setting("", "Their password.", is_secret=True)
    notify_smtp_password_file: Path | None = setting(None, "A file with it.")
    notify_on: str = setting(
        "paused, resumed, late_files, lag, schema_change", "What is told: some of these words, with commas."
    )
    notify_lag_seconds: int = setting(0, "Told when a job is so many seconds behind (Kinesis); 0: never.")
    notify_lag_records: int = setting(
        0, "Told when a job is so many records behind (Kafka); 0: never.", most=1_000_000_000_000
    )
    notify_lag_files: int = setting(0, "Told when a job is so many files behind; 0: never.")
    notify_console_url: str = setting(
        "", "How people call the console, for links: `https://lading.example`.", shown="where the service listens"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageVariables:
    """Lineage: see [lineage.md](lineage.md)"""

    openlineage_url: str = setting(
        "", "Where OpenLineage events are posted to: `https://marquez.example/api/v1/lineage`.", shown="nowhere"
    )
    openlineage_api_key: str = setting("", "Sent as `Authorization: Bearer …`.", is_secret=True)
    openlineage_api_key_file: Path | None = setting(None, "A file with that key.")
    openlineage_file: Path | None = setting(None, "A file that each event is added to, as a line of JSON.")
    openlineage_namespace: str = setting("lading", "The namespace of the jobs.")
