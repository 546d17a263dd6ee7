"""Keys and roles of jobs that read a bucket: wrong ones are said at CREATE, and pause a job that runs."""

from __future__ import annotations

import json

import pytest

from lading.errors import LadingError
from lading.testing.marked import secret
from tests.guarded_s3 import GuardedStore
from tests.service.conftest import Desk


def source(store: GuardedStore, folder: str, function: str = "S3", **more: str) -> str:
    given = {"uri": f"s3://{store.bucket}/{folder}/*.json", "format": "json", **store.properties(**more)}
    pairs = ", ".join(f'"{name}"="{value}"' for name, value in given.items())
    return f"INSERT INTO orders SELECT id, city, amount FROM {function}({pairs})"


def role_of(store: GuardedStore) -> dict[str, str]:
    return {"s3.role_arn": store.role, "s3.external_id": store.external_id}


@pytest.mark.parametrize("function", ["S3", "FILE"])
def test_a_job_reads_with_a_role_on_driver_and_executors(desk: Desk, guarded: GuardedStore, function: str) -> None:
    desk.table()
    guarded.put(f"{function}/a.json", '{"id": 1, "city": "essen", "amount": 1.5}\n')
    guarded.put(f"{function}/b.json", '{"id": 2, "city": "essen", "amount": 1.5}\n')
    start = json.dumps({"fileName": f"{function}/a.json"})
    desk.sql(
        f"CREATE JOB j PROPERTIES(\"offset\"='{start}') ON STREAMING DO "
        + source(guarded, function, function, **role_of(guarded))
    )
    desk.run()
    assert (desk.show("Status"), desk.ids()) == ("RUNNING", [2])
    assert desk.show("CurrentOffset") == json.dumps({"fileName": f"{function}/b.json"})
    shown = repr(desk.sql('SELECT * FROM jobs("type"="insert")'))
    assert guarded.role in shown
    assert guarded.key["SecretAccessKey"] not in shown


def test_what_may_not_read_is_refused_at_create_and_leaves_nothing(desk: Desk, guarded: GuardedStore) -> None:
    desk.table()
    role = {"s3.role_arn": guarded.closed_role}
    cases = [
        ({}, "Can not build s3: .*AccessDenied"),
        ({"s3.access_key": secret("nobody")}, "Can not build s3: .*InvalidAccessKeyId"),
        ({"s3.secret_key": secret("wrong")}, "Can not build s3: .*SignatureDoesNotMatch"),
        (role, f"the role {guarded.closed_role} cannot be assumed"),
        ({**role_of(guarded), "s3.external_id": "another"}, f"the role {guarded.role} cannot be assumed"),
    ]
    for more, message in cases:
        with pytest.raises(LadingError, match=message) as caught:
            desk.sql(f"CREATE JOB j ON STREAMING DO {source(guarded, 'in', **more)}")
        assert "Nothing was read" in str(caught.value)
        assert guarded.key["SecretAccessKey"] not in str(caught.value)
    assert desk.sql('SELECT * FROM jobs("type"="insert")') == []


def test_keys_that_stop_working_pause_the_job_and_new_ones_let_it_go_on(desk: Desk, guarded: GuardedStore) -> None:
    desk.table()
    guarded.put("keys/a.json", '{"id": 1, "city": "essen", "amount": 1.5}\n')
    desk.sql(f"CREATE JOB j ON STREAMING DO {source(guarded, 'keys', **role_of(guarded))}")
    desk.run()
    desk.sql("PAUSE JOB WHERE jobName='j'")
    guarded.put("keys/b.json", '{"id": 2, "city": "essen", "amount": 1.5}\n')
    desk.sql(f"ALTER JOB j {source(guarded, 'keys')}; RESUME JOB WHERE jobName='j'")
    desk.run()
    found = json.loads(desk.show("ErrorMsg"))
    assert (desk.show("Status"), found["code"]) == ("PAUSED", "GET_REMOTE_DATA_ERROR")
    assert "Failed to fetch meta" in found["msg"]
    assert "Can not build s3" in found["msg"]
    assert (desk.ids(), json.loads(desk.show("LoadStatistic"))["scannedRows"]) == ([1], 1)
    desk.sql(f"ALTER JOB j {source(guarded, 'keys', **role_of(guarded))}; RESUME JOB WHERE jobName='j'")
    desk.run()
    assert (desk.show("Status"), desk.show("ErrorMsg"), desk.ids()) == ("RUNNING", "", [1, 2])
