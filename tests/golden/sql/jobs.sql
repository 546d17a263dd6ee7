--- the job of the front page
CREATE JOB orders ON STREAMING DO
INSERT INTO sales.orders SELECT id, upper(city) AS city, amount*1.1 AS amount
FROM S3("uri"="s3://shop/orders/*.csv", "format"="csv_with_names");
--- =>
CREATE JOB orders
ON STREAMING
DO
INSERT INTO sales.orders
SELECT id, upper(city) AS city, amount*1.1 AS amount
FROM S3 (
    "uri" = "s3://shop/orders/*.csv",
    "format" = "csv_with_names"
)

--- everything a job can say
create job `my-job` properties ("max_interval" = 5, 's3.max_batch_files' = '10', offset = '{"fileName":"a/b.csv"}',
    session.enable_insert_strict = false, "s3.ingestion_mode" = once)
on streaming comment "the owner's words" do
insert into table orders (id, `select`, c) -- three columns
select s.id, /* odd name */ case when a = ',' then 'x)' else b end `select`, c c2
from s3('URI'='s3://shop/{1..3}/*.csv', "format"='csv', "column_separator"="\x01", "s3.access_key"='env:KEY',
    "s3.secret_key"='file:/run/secret') as s
where s.id > 3 and offset is not null;
--- =>
CREATE JOB `my-job`
PROPERTIES (
    "max_interval" = "5",
    "s3.max_batch_files" = "10",
    "offset" = '{"fileName":"a/b.csv"}',
    "session.enable_insert_strict" = "false",
    "s3.ingestion_mode" = "once"
)
ON STREAMING
COMMENT 'the owner''s words'
DO
INSERT INTO orders (id, `select`, c)
SELECT s.id, case when a = ',' then 'x)' else b end AS `select`, c AS c2
FROM S3 (
    "uri" = "s3://shop/{1..3}/*.csv",
    "format" = "csv",
    "column_separator" = "\\x01",
    "s3.access_key" = "env:KEY",
    "s3.secret_key" = "file:/run/secret"
) AS s
WHERE s.id > 3 and offset is not null

--- a star, local files
CREATE JOB all_of_it ON STREAMING DO INSERT INTO t SELECT * FROM FILE("uri"="file:///data/*.json", "format"="json")
--- =>
CREATE JOB all_of_it
ON STREAMING
DO
INSERT INTO t
SELECT *
FROM FILE (
    "uri" = "file:///data/*.json",
    "format" = "json"
)

--- a star among columns, alias without AS
CREATE JOB j ON STREAMING DO INSERT INTO t SELECT *, upper(a) u FROM S3("uri"="s3://b/k", "format"="json") x WHERE x.a LIKE 'b%'
--- =>
CREATE JOB j
ON STREAMING
DO
INSERT INTO t
SELECT *, upper(a) AS u
FROM S3 (
    "uri" = "s3://b/k",
    "format" = "json"
) AS x
WHERE x.a LIKE 'b%'

--- hyphens need no backquotes
CREATE JOB load-2-orders ON STREAMING DO INSERT INTO t SELECT a FROM S3("uri"="s3://b/k", "format"="json")
--- =>
CREATE JOB `load-2-orders`
ON STREAMING
DO
INSERT INTO t
SELECT a
FROM S3 (
    "uri" = "s3://b/k",
    "format" = "json"
)

--- names that look like keywords
CREATE JOB `left` ON STREAMING DO INSERT INTO `from`.`table` (`order`) SELECT `group` FROM S3("uri"="s3://b/k", "format"="orc")
--- =>
CREATE JOB `left`
ON STREAMING
DO
INSERT INTO `from`.`table` (`order`)
SELECT `group`
FROM S3 (
    "uri" = "s3://b/k",
    "format" = "orc"
)

--- alter properties
ALTER JOB orders PROPERTIES("max_interval"="20")
--- =>
ALTER JOB orders
PROPERTIES (
    "max_interval" = "20"
)

--- alter the select
ALTER JOB orders INSERT INTO sales.orders SELECT id FROM S3("uri"="s3://shop/orders/*.csv", "format"="csv")
--- =>
ALTER JOB orders
INSERT INTO sales.orders
SELECT id
FROM S3 (
    "uri" = "s3://shop/orders/*.csv",
    "format" = "csv"
)

--- alter both
ALTER JOB orders PROPERTIES("offset"="{\"fileName\":\"b.csv\"}") INSERT INTO t SELECT id FROM S3("uri"="s3://b/k", "format"="csv")
--- =>
ALTER JOB orders
PROPERTIES (
    "offset" = '{"fileName":"b.csv"}'
)
INSERT INTO t
SELECT id
FROM S3 (
    "uri" = "s3://b/k",
    "format" = "csv"
)

--- pause
PAUSE JOB WHERE jobName='orders'
--- =>
PAUSE JOB WHERE jobName = 'orders'

--- pause, other case of the key
pause job where JOBNAME = "orders"
--- =>
PAUSE JOB WHERE jobName = 'orders'

--- resume
RESUME JOB WHERE jobname = 'orders';
--- =>
RESUME JOB WHERE jobName = 'orders'

--- drop
DROP JOB WHERE jobName='orders'
--- =>
DROP JOB WHERE jobName = 'orders'

--- drop if exists
DROP JOB IF EXISTS WHERE jobName='it''s'
--- =>
DROP JOB IF EXISTS WHERE jobName = 'it''s'

--- show create job
SHOW CREATE JOB orders
--- =>
SHOW CREATE JOB orders

--- show create job for
SHOW CREATE JOB FOR orders
--- =>
SHOW CREATE JOB orders

--- explain
EXPLAIN JOB orders
--- =>
EXPLAIN JOB orders

--- explain a routine load
EXPLAIN JOB sales.clicks
--- =>
EXPLAIN JOB sales.clicks

--- load errors
SHOW LOAD ERRORS FOR orders
--- =>
SHOW LOAD ERRORS FOR orders

--- load errors with a limit
show load errors for sales.clicks limit 10
--- =>
SHOW LOAD ERRORS FOR sales.clicks LIMIT 10

--- load gaps
SHOW LOAD GAPS FOR orders
--- =>
SHOW LOAD GAPS FOR orders

--- load audit
SHOW LOAD AUDIT FOR orders
--- =>
SHOW LOAD AUDIT FOR orders

--- jobs
SELECT * FROM jobs("type"="insert") WHERE Name = 'orders'
--- =>
SELECT * FROM jobs("type"="insert") WHERE Name = 'orders'

--- tasks
select JobName, count(*) from tasks("type"="insert") group by JobName order by 2 desc limit 5;
--- =>
select JobName, count(*) from tasks("type"="insert") group by JobName order by 2 desc limit 5

--- a query without a function
SELECT * FROM information_schema.routine_load_jobs WHERE STATE <> 'RUNNING' # not those
--- =>
SELECT * FROM information_schema.routine_load_jobs WHERE STATE <> 'RUNNING'

--- with
WITH bad AS (SELECT * FROM jobs("type"="insert") WHERE Status = 'PAUSED') SELECT count(*) FROM bad
--- =>
WITH bad AS (SELECT * FROM jobs("type"="insert") WHERE Status = 'PAUSED') SELECT count(*) FROM bad

--- alter job says why
alter job j properties("max_interval"="3") comment "quicker"
--- =>
ALTER JOB j
PROPERTIES (
    "max_interval" = "3"
)
COMMENT 'quicker'

--- explain alter job
explain alter job j properties("offset"='{"fileName":"a"}')
--- =>
EXPLAIN ALTER JOB j
PROPERTIES (
    "offset" = '{"fileName":"a"}'
)

--- explain create job
explain create job j on streaming do insert into t select a from file("uri"="/x/*.csv", "format"="csv")
--- =>
EXPLAIN CREATE JOB j
ON STREAMING
DO
INSERT INTO t
SELECT a
FROM FILE (
    "uri" = "/x/*.csv",
    "format" = "csv"
)

--- undo the last change of a job
undo alter job j
--- =>
UNDO ALTER JOB j

--- a join with a table
create job j on streaming do insert into t select s.id, upper(d.`na me`) n from s3("uri"="s3://b/*.csv", "format"="csv") s left outer join shop.pages d on s.page = d.id and left(s.id, 1) <> 'x' where s.id > 1
--- =>
CREATE JOB j
ON STREAMING
DO
INSERT INTO t
SELECT s.id, upper(d.`na me`) AS n
FROM S3 (
    "uri" = "s3://b/*.csv",
    "format" = "csv"
) AS s
LEFT JOIN shop.pages AS d ON s.page = d.id and left(s.id, 1) <> 'x'
WHERE s.id > 1

--- a join with a table that has no other name
CREATE JOB j ON STREAMING DO INSERT INTO t SELECT s.id FROM S3("uri"="s3://b/*.csv") AS s INNER JOIN pages ON s.page = pages.id
--- =>
CREATE JOB j
ON STREAMING
DO
INSERT INTO t
SELECT s.id
FROM S3 (
    "uri" = "s3://b/*.csv"
) AS s
JOIN pages AS pages ON s.page = pages.id

--- accept a rollback as a form of alter
alter job my-job accept rollback keep position comment 'it was wrong'
--- =>
ACCEPT ROLLBACK OF JOB `my-job` KEEP POSITION COMMENT 'it was wrong'
