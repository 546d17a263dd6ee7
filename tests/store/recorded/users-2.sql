BEGIN TRANSACTION;
CREATE TABLE lading_access_tokens (
            token_id TEXT NOT NULL PRIMARY KEY,
            user_name TEXT NOT NULL REFERENCES lading_users (name) ON DELETE CASCADE,
            created_at TEXT NOT NULL,
            body TEXT NOT NULL
        );
INSERT INTO "lading_access_tokens" VALUES('t000000000001','jack','2026-03-02T00:00:00.000000+00:00','{"version": 1, "body": {"token_id": "t000000000001", "user": "jack", "digest": "069255c33d71948ad551451f3b4e5368d58d3e009e506e2965d6ccadfddbc7fa", "comment": "nightly", "created_at": "2026-03-02T00:00:00+00:00"}}');
INSERT INTO "lading_access_tokens" VALUES('t000000000002','root','2026-03-02T00:00:00.000000+00:00','{"version": 1, "body": {"token_id": "t000000000002", "user": "root", "digest": "576f4260e9b004273b6f3b2f9bf40717aad605026c14fa59a0c308290e8c4243", "comment": "nightly", "created_at": "2026-03-02T00:00:00+00:00"}}');
CREATE TABLE lading_audit (
            entry_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
            at TEXT NOT NULL,
            job_id TEXT,
            body TEXT NOT NULL
        );
CREATE TABLE lading_bills (
            job_id TEXT NOT NULL,
            seq BIGINT NOT NULL,
            epoch BIGINT NOT NULL,
            token BIGINT NOT NULL,
            kind TEXT NOT NULL,
            billed_at TEXT NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (job_id, seq)
        );
CREATE TABLE lading_databases (
            name TEXT NOT NULL PRIMARY KEY,
            created_at TEXT NOT NULL,
            body TEXT NOT NULL
        );
CREATE TABLE lading_error_samples (
            job_id TEXT NOT NULL,
            seq BIGINT NOT NULL,
            number INTEGER NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (job_id, seq, number)
        );
CREATE TABLE lading_grants (
            user_name TEXT NOT NULL REFERENCES lading_users (name) ON DELETE CASCADE,
            privilege TEXT NOT NULL,
            database TEXT NOT NULL,
            table_name TEXT NOT NULL,
            PRIMARY KEY (user_name, privilege, database, table_name)
        );
INSERT INTO "lading_grants" VALUES('jack','LOAD','shop','orders');
CREATE TABLE lading_jobs (
            job_id TEXT NOT NULL PRIMARY KEY,
            name TEXT NOT NULL,
            database TEXT NOT NULL,
            kind TEXT NOT NULL,
            state TEXT NOT NULL,
            live_key TEXT UNIQUE,
            version BIGINT NOT NULL,
            created_at TEXT NOT NULL,
            ended_at TEXT,
            body TEXT NOT NULL
        );
CREATE TABLE lading_leases (
            name TEXT NOT NULL PRIMARY KEY,
            owner TEXT NOT NULL,
            until TEXT NOT NULL,
            fence BIGINT NOT NULL
        );
CREATE TABLE lading_migrations (
            version INTEGER NOT NULL PRIMARY KEY,
            name TEXT NOT NULL,
            applied_at TEXT NOT NULL
        );
INSERT INTO "lading_migrations" VALUES(1,'first','2026-01-01T00:00:00.000000+00:00');
INSERT INTO "lading_migrations" VALUES(2,'users','2026-01-01T00:00:00.000000+00:00');
CREATE TABLE lading_settings (
            key TEXT NOT NULL PRIMARY KEY,
            value TEXT NOT NULL
        );
CREATE TABLE lading_tables (
            database TEXT NOT NULL REFERENCES lading_databases (name),
            name TEXT NOT NULL,
            format TEXT NOT NULL,
            location TEXT NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (database, name)
        );
CREATE TABLE lading_tasks (
            job_id TEXT NOT NULL REFERENCES lading_jobs (job_id) ON DELETE CASCADE,
            task_id BIGINT NOT NULL,
            state TEXT NOT NULL,
            created_at TEXT NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (job_id, task_id)
        );
CREATE TABLE lading_users (
            name TEXT NOT NULL PRIMARY KEY,
            created_at TEXT NOT NULL,
            body TEXT NOT NULL
        );
INSERT INTO "lading_users" VALUES('root','2026-03-02T00:00:00.000000+00:00','{"version": 1, "body": {"name": "root", "password_hash": "", "native_verifier": "", "created_at": "2026-03-02T00:00:00+00:00", "password_changed_at": null}}');
INSERT INTO "lading_users" VALUES('jack','2026-03-02T00:00:00.000000+00:00','{"version": 1, "body": {"name": "jack", "password_hash": "", "native_verifier": "", "created_at": "2026-03-02T00:00:00+00:00", "password_changed_at": null}}');
DELETE FROM "sqlite_sequence";
COMMIT;
