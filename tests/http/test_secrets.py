"""No answer holds a secret, whatever is asked and however it fails."""

from __future__ import annotations

import boto3
import pytest

from lading.errors import ConfigError
from lading.http.errors import describe
from lading.service.compile import compiler
from lading.service.security.users import ROOT
from lading.testing.marked import secret
from tests.http.rig import JSON, Rig
from tests.tables.s3_server import S3Server

SECRET = secret("wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLE")
KEY = secret("access")
PASSWORD = secret("horse")
READS = ("", "/bills", "/bills/1", "/batches", "/errors", "/quarantine", "/gaps", "/audit", "/definition", "/series")


@pytest.fixture
def job(rig: Rig, s3: S3Server) -> str:
    bucket = s3.make_bucket()
    client = boto3.client(
        "s3",
        endpoint_url=s3.endpoint,
        region_name="us-east-1",
        aws_access_key_id=secret("owner"),
        aws_secret_access_key=secret("owner"),
    )
    client.put_object(Bucket=bucket, Key="in/a.csv", Body=b"id,city,amount\n1,essen,2.50\n")
    rig.sql("CREATE TABLE orders (id BIGINT NOT NULL, city VARCHAR(10), amount DECIMAL(10,2)) USING delta")
    return f"""CREATE JOB kept ON STREAMING DO INSERT INTO shop.orders SELECT * FROM S3(
        "uri"="s3://{bucket}/in/*.csv", "format"="csv_with_names", "column_separator"=",",
        "s3.endpoint"="{s3.endpoint}", "s3.region"="us-east-1", "use_path_style"="true",
        "s3.access_key"="{KEY}", "s3.secret_key"="{SECRET}")"""


def test_no_answer_holds_a_secret(rig: Rig, job: str) -> None:
    access = rig.access()
    access.set_password("root", PASSWORD, by=ROOT)
    token = access.create_token("root", by=ROOT).text
    client = rig.client(access=access)
    client.headers.update({"authorization": f"Bearer {token}"})
    told: list[str] = []

    def ask(text: str) -> None:
        answer = client.post("/api/sql", json={"sql": text})
        told.append(answer.text + str(answer.headers))

    ask(job.replace('"format"', '"formt"'))  # unknown property
    ask(job.replace("DO INSERT", "DO INSRT"))  # cannot be read
    ask(job.replace("s3://", "s3:/"))  # cannot be run
    ask(job.replace("kept", "lost").replace("in/*.csv", "in/*.csv\\"))  # the text ends inside a string
    ask(job)
    assert '"created_at"' in client.get("/api/jobs/kept").text, told[-1]
    rig.load(rig.lading.job("kept"))
    _let_it_fail(rig)
    assert "Access Denied" in rig.lading.job("kept").last_error
    told += [client.post(f"/api/jobs/kept/{verb}", headers=JSON).text for verb in ("pause", "resume", "pause")]
    ask(f"ALTER JOB kept {job.partition(' DO ')[2]}")
    for text in ("SHOW CREATE JOB kept", 'SELECT * FROM jobs("type"="insert")', "EXPLAIN JOB kept"):
        ask(text)
    told += [client.get(f"/api/jobs{path}").text for path in ("", *(f"/kept{read}" for read in READS))]
    told += [client.get(path).text for path in ("/metrics", "/readyz", "/api/openapi.json")]
    told.append(client.get("/api/jobs", auth=("root", PASSWORD)).text)
    told.append(client.get("/api/jobs", auth=("root", PASSWORD + "x")).text)
    told.append(client.get("/api/jobs", headers={"authorization": f"Bearer {token}x"}).text)
    everything = "\n".join(told)
    assert "******" in everything
    for word in (SECRET, KEY, PASSWORD, token):
        assert word not in everything


def _let_it_fail(rig: Rig) -> None:
    """Foreign errors may repeat what they were given, in whatever words."""

    def fail(*given: object, **named: object) -> None:
        text = f'Access Denied for {KEY} with {SECRET}: "s3.secret_key" = "{SECRET}", secret_key={SECRET}'
        raise RuntimeError(text)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compiler, "compile_load", fail)
        rig.lading.drop_runner(rig.lading.job("kept").job_id)
        while rig.lading.runner(rig.lading.job("kept").job_id).run_once():
            pass


def test_facts_of_errors_are_masked() -> None:
    error = ConfigError(
        f"secret_key={SECRET}", secret_key=SECRET, said=f"password='{SECRET}'", list=[f"token={SECRET}"]
    )
    assert SECRET not in str(describe(error))
