--- the routine load of the front page
CREATE ROUTINE LOAD sales.clicks ON clicks PROPERTIES("format"="json")
FROM KINESIS("aws.region"="eu-west-1", "kinesis_stream"="clicks", "property.kinesis_default_pos"="TRIM_HORIZON");
--- =>
CREATE ROUTINE LOAD sales.clicks ON clicks
PROPERTIES (
    "format" = "json"
)
FROM KINESIS (
    "aws.region" = "eu-west-1",
    "kinesis_stream" = "clicks",
    "property.kinesis_default_pos" = "TRIM_HORIZON"
)

--- every clause
CREATE ROUTINE LOAD sales.`click-stream` ON clicks WITH MERGE
COLUMNS TERMINATED BY ",",
COLUMNS (k1, k2, (tmp), v1 = hour(tmp), (v2 = concat(k1, ',', k2))),
PRECEDING FILTER k1 > 0 and k2 is distinct from k1,
WHERE v1 between 1 and 9 or k2 in (1, 2, 3),
DELETE ON v2 = 'gone',
ORDER BY seq,
TEMPORARY PARTITIONS (p1, p2)
PROPERTIES
(
    "desired_concurrent_number" = "3",
    "max_batch_interval" = 20,
    "max_filter_ratio" = 0.1,
    strict_mode = true,
    "jsonpaths" = "[\"$.a\",\"$.b\"]"
)
FROM KAFKA
(
    "kafka_broker_list" = "b1:9092,b2:9092",
    "kafka_topic" = "clicks",
    "kafka_partitions" = "0,1",
    "kafka_offsets" = "101,OFFSET_BEGINNING",
    property.group.id = "lading",
    "property.sasl.password" = "env:PASSWORD"
)
COMMENT "a 'comment'"
--- =>
CREATE ROUTINE LOAD sales.`click-stream` ON clicks WITH MERGE
COLUMNS TERMINATED BY ",",
COLUMNS (k1, k2, tmp, v1 = hour(tmp), v2 = concat(k1, ',', k2)),
PRECEDING FILTER k1 > 0 and k2 is distinct from k1,
WHERE v1 between 1 and 9 or k2 in (1, 2, 3),
DELETE ON v2 = 'gone',
ORDER BY seq,
TEMPORARY PARTITIONS (p1, p2)
PROPERTIES (
    "desired_concurrent_number" = "3",
    "max_batch_interval" = "20",
    "max_filter_ratio" = "0.1",
    "strict_mode" = "true",
    "jsonpaths" = '["$.a","$.b"]'
)
FROM KAFKA (
    "kafka_broker_list" = "b1:9092,b2:9092",
    "kafka_topic" = "clicks",
    "kafka_partitions" = "0,1",
    "kafka_offsets" = "101,OFFSET_BEGINNING",
    "property.group.id" = "lading",
    "property.sasl.password" = "env:PASSWORD"
)
COMMENT 'a ''comment'''

--- clauses in another order
CREATE ROUTINE LOAD j ON t WHERE a = 1, COLUMNS(a, b) , COLUMNS TERMINATED BY '\t' FROM KAFKA("kafka_broker_list"="b", "kafka_topic"="t")
--- =>
CREATE ROUTINE LOAD j ON t
COLUMNS TERMINATED BY "\t",
COLUMNS (a, b),
WHERE a = 1
FROM KAFKA (
    "kafka_broker_list" = "b",
    "kafka_topic" = "t"
)

--- a separator in hex
CREATE ROUTINE LOAD j ON t COLUMNS TERMINATED BY "\x0102" FROM KAFKA("kafka_broker_list"="b", "kafka_topic"="t")
--- =>
CREATE ROUTINE LOAD j ON t
COLUMNS TERMINATED BY "\\x0102"
FROM KAFKA (
    "kafka_broker_list" = "b",
    "kafka_topic" = "t"
)

--- with append is the default
CREATE ROUTINE LOAD j ON t WITH APPEND FROM KAFKA("kafka_broker_list"="b", "kafka_topic"="t")
--- =>
CREATE ROUTINE LOAD j ON t
FROM KAFKA (
    "kafka_broker_list" = "b",
    "kafka_topic" = "t"
)

--- with delete
CREATE ROUTINE LOAD j ON t WITH DELETE FROM KAFKA("kafka_broker_list"="b", "kafka_topic"="t")
--- =>
CREATE ROUTINE LOAD j ON t WITH DELETE
FROM KAFKA (
    "kafka_broker_list" = "b",
    "kafka_topic" = "t"
)

--- one partition
CREATE ROUTINE LOAD j ON t PARTITION p1 FROM KAFKA("kafka_broker_list"="b", "kafka_topic"="t")
--- =>
CREATE ROUTINE LOAD j ON t
PARTITIONS (p1)
FROM KAFKA (
    "kafka_broker_list" = "b",
    "kafka_topic" = "t"
)

--- for many tables
CREATE ROUTINE LOAD sales.j FROM KAFKA("kafka_broker_list"="b", "kafka_topic"="t")
--- =>
CREATE ROUTINE LOAD sales.j
FROM KAFKA (
    "kafka_broker_list" = "b",
    "kafka_topic" = "t"
)

--- alter properties
ALTER ROUTINE LOAD FOR sales.clicks PROPERTIES("max_batch_rows"="300000")
--- =>
ALTER ROUTINE LOAD FOR sales.clicks
PROPERTIES (
    "max_batch_rows" = "300000"
)

--- alter positions
ALTER ROUTINE LOAD FOR clicks FROM KAFKA("kafka_partitions"="0,1", "kafka_offsets"="7,8")
--- =>
ALTER ROUTINE LOAD FOR clicks
FROM KAFKA (
    "kafka_partitions" = "0,1",
    "kafka_offsets" = "7,8"
)

--- alter everything
ALTER ROUTINE LOAD FOR sales.clicks COLUMNS(a, b = a + 1), WHERE b > 1 PROPERTIES("strict_mode"="true") FROM KINESIS("kinesis_shards"="shardId-000000000000", "kinesis_shards_pos"="LATEST")
--- =>
ALTER ROUTINE LOAD FOR sales.clicks
COLUMNS (a, b = a + 1),
WHERE b > 1
PROPERTIES (
    "strict_mode" = "true"
)
FROM KINESIS (
    "kinesis_shards" = "shardId-000000000000",
    "kinesis_shards_pos" = "LATEST"
)

--- pause
PAUSE ROUTINE LOAD FOR sales.clicks
--- =>
PAUSE ROUTINE LOAD FOR sales.clicks

--- pause all
PAUSE ALL ROUTINE LOAD
--- =>
PAUSE ALL ROUTINE LOAD

--- resume
RESUME ROUTINE LOAD FOR clicks
--- =>
RESUME ROUTINE LOAD FOR clicks

--- resume all
RESUME ALL ROUTINE LOAD
--- =>
RESUME ALL ROUTINE LOAD

--- stop
STOP ROUTINE LOAD FOR sales.clicks
--- =>
STOP ROUTINE LOAD FOR sales.clicks

--- show
SHOW ROUTINE LOAD
--- =>
SHOW ROUTINE LOAD

--- show all
SHOW ALL ROUTINE LOAD
--- =>
SHOW ALL ROUTINE LOAD

--- show one
SHOW ROUTINE LOAD FOR sales.clicks
--- =>
SHOW ROUTINE LOAD FOR sales.clicks

--- show all of one name
SHOW ALL ROUTINE LOAD FOR clicks
--- =>
SHOW ALL ROUTINE LOAD FOR clicks

--- show like
SHOW ALL ROUTINE LOAD LIKE '%cl_cks\_%'
--- =>
SHOW ALL ROUTINE LOAD LIKE '%cl_cks\\_%'

--- tasks of a job
SHOW ROUTINE LOAD TASK FOR sales.clicks
--- =>
SHOW ROUTINE LOAD TASK FOR sales.clicks

--- tasks, the other form
SHOW ROUTINE LOAD TASK FROM sales WHERE JobName = 'clicks'
--- =>
SHOW ROUTINE LOAD TASK FOR sales.clicks

--- tasks, the other form without a database
SHOW ROUTINE LOAD TASK WHERE jobname = "clicks"
--- =>
SHOW ROUTINE LOAD TASK FOR clicks

--- tasks, the other form with IN
SHOW ROUTINE LOAD TASK IN sales WHERE JobName = 'clicks'
--- =>
SHOW ROUTINE LOAD TASK FOR sales.clicks

--- show create
SHOW CREATE ROUTINE LOAD FOR sales.clicks
--- =>
SHOW CREATE ROUTINE LOAD FOR sales.clicks

--- show all create
SHOW ALL CREATE ROUTINE LOAD FOR clicks
--- =>
SHOW ALL CREATE ROUTINE LOAD FOR clicks

--- alter routine load says why
alter routine load for db.j where a > 1 comment 'too many zeros'
--- =>
ALTER ROUTINE LOAD FOR db.j
WHERE a > 1
COMMENT 'too many zeros'

--- explain a change before it is made
explain alter routine load for db.j from kafka("kafka_partitions"="0", "kafka_offsets"="7")
--- =>
EXPLAIN ALTER ROUTINE LOAD FOR db.j
FROM KAFKA (
    "kafka_partitions" = "0",
    "kafka_offsets" = "7"
)

--- explain routine load
explain routine load for db.j
--- =>
EXPLAIN ROUTINE LOAD db.j

--- undo the last change of a routine load
undo alter routine load for db.j comment 'it was right before'
--- =>
UNDO ALTER ROUTINE LOAD FOR db.j COMMENT 'it was right before'

--- accept a rollback as a form of alter
alter routine load for lake.db.j accept rollback load again
--- =>
ACCEPT ROLLBACK OF ROUTINE LOAD FOR lake.db.j LOAD AGAIN
