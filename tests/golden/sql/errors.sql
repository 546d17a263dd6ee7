--- a wrong word
CREATE JOB x ON STREAMIN DO
--- ! SqlError 1:17 mismatched input 'STREAMIN', expected STREAMING

--- a scheduled job of Doris
CREATE JOB x ON SCHEDULE EVERY 1 DAY DO INSERT INTO t SELECT 1
--- ! SqlError 1:17 mismatched input 'SCHEDULE', expected STREAMING

--- an illegal name
CREATE JOB a+b ON STREAMING DO INSERT INTO t SELECT * FROM S3("uri"="s3://b/k")
--- ! SqlError 1:13 mismatched input '+'

--- a reserved name
CREATE JOB inner_x ON STREAMING DO INSERT INTO t SELECT * FROM S3("uri"="s3://b/k")
--- ! SqlError 1:12 may not start with inner_

--- on the third line
CREATE JOB x
  ON STREAMING
    DU INSERT INTO t
--- ! SqlError 3:5 mismatched input 'DU', expected DO

--- the text ends
CREATE JOB x ON
--- ! SqlError 1:16 ends too early, expected STREAMING

--- no statement
FROBNICATE
--- ! SqlError 1:1 expected a statement

--- half a statement
SHOW CREATE
--- ! SqlError 1:12 expected ROUTINE, JOB or CATALOG

--- too much
PAUSE JOB WHERE jobName='x' NOW
--- ! SqlError 1:29 mismatched input 'NOW', expected the end of the statement

--- another key than jobName
PAUSE JOB WHERE name='x'
--- ! SqlError 1:17 mismatched input 'name', expected jobName

--- a name that is no string
RESUME JOB WHERE jobName=x
--- ! SqlError 1:26 mismatched input 'x', expected the name of a job in quotes

--- there is no stop all
STOP ALL ROUTINE LOAD
--- ! SqlError 1:6 mismatched input 'ALL', expected ROUTINE

--- a property twice
ALTER JOB x PROPERTIES("a"="1", a=2)
--- ! SqlError 1:33 Property a is set twice

--- a property without a value
ALTER JOB x PROPERTIES("a"=)
--- ! SqlError 1:28 mismatched input ')', expected a value

--- a property that is not separated
ALTER JOB x PROPERTIES("a"="1" "b"="2")
--- ! SqlError 1:32 mismatched input '"b"', expected , or )

--- alter nothing
ALTER JOB x
--- ! SqlError 1:12 expected PROPERTIES or INSERT

--- alter has no DO
ALTER JOB x DO INSERT INTO t SELECT 1
--- ! SqlError 1:13 mismatched input 'DO'

--- a string without an end
PAUSE JOB WHERE jobName='x
--- ! SqlError 1:25 The string that begins here is not closed

--- a comment without an end
SHOW /* tables
--- ! SqlError 1:6 The comment that begins here is not closed

--- two sources, with a comma
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT * FROM S3("uri"="a"), S3("uri"="b")
--- ! NotSupportedError 1:73 Only support one source in insert streaming job

--- two sources, with a join of another kind
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT * FROM S3("uri"="a") a FULL JOIN b ON a.x = b.x
--- ! NotSupportedError 1:74 Only support one source in insert streaming job

--- a join of two streams without a watermark
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN S3("uri"="b") b ON a.x = b.x AND b.ts = a.ts + INTERVAL 1 DAY
--- ! SqlError 1:100 A join of two streams needs a watermark: it says how long a row has to be kept

--- a join of two streams with the event time of one
CREATE JOB x PROPERTIES("watermark.column"="a.ts") ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN S3("uri"="b") b ON a.x = b.x AND b.ts = a.ts + INTERVAL 1 DAY
--- ! SqlError 1:25 watermark.column is 'a.ts', and a join of two streams needs the event time of each

--- an event time of a join without its stream
CREATE JOB x PROPERTIES("watermark.column"="a.ts, ts") ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN S3("uri"="b") b ON a.x = b.x AND b.ts = a.ts + INTERVAL 1 DAY
--- ! SqlError 1:25 watermark.column is 'a.ts, ts', and 'ts' does not say which stream it is of

--- a join of two streams without an interval
CREATE JOB x PROPERTIES("watermark.column"="a.ts,b.ts") ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN S3("uri"="b") b ON a.x = b.x
--- ! SqlError 1:143 has to say how much later or earlier one may be: rows would be kept for ever

--- a join of two streams with one end of its interval
CREATE JOB x PROPERTIES("watermark.column"="a.ts,b.ts") ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN S3("uri"="b") b ON a.x = b.x AND b.ts >= a.ts
--- ! SqlError 1:143 has to say both ends of the time between them: rows would be kept for ever

--- an interval of months, which have no length
CREATE JOB x PROPERTIES("watermark.column"="a.ts,b.ts") ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN S3("uri"="b") b ON a.x = b.x AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 MONTH
--- ! SqlError 1:143 has to say both ends of the time between them

--- an interval that nothing is in
CREATE JOB x PROPERTIES("watermark.column"="a.ts,b.ts") ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN S3("uri"="b") b ON a.x = b.x AND b.ts BETWEEN a.ts AND a.ts - INTERVAL 1 HOUR
--- ! SqlError 1:143 No rows can be joined: b.ts would have to be both before and after a.ts

--- a join of two streams without an equality
CREATE JOB x PROPERTIES("watermark.column"="a.ts,b.ts") ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN S3("uri"="b") b ON b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR
--- ! SqlError 1:143 has to ask for something of one that equals something of the other

--- a column of a join of two streams without its side
CREATE JOB x PROPERTIES("watermark.column"="a.ts,b.ts") ON STREAMING DO INSERT INTO t SELECT x FROM S3("uri"="a") a JOIN S3("uri"="b") b ON a.x = b.x AND b.ts = a.ts + INTERVAL 1 DAY
--- ! SqlError 1:94 x does not say which side of the join it is of

--- two streams of the same name
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN S3("uri"="b") a ON a.x = a.x
--- ! SqlError 1:76 In a join, both streams have names of their own

--- a join of two streams without names
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN S3("uri"="b") ON a.x = b.x
--- ! SqlError 1:76 In a join, both streams have names of their own

--- a FULL JOIN of two streams
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a FULL JOIN S3("uri"="b") b ON a.x = b.x
--- ! NotSupportedError 1:76 a FULL JOIN is not possible

--- a RIGHT JOIN of two streams
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a RIGHT JOIN S3("uri"="b") b ON a.x = b.x
--- ! NotSupportedError 1:76 a RIGHT JOIN is not possible

--- three streams
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN S3("uri"="b") b ON a.x = b.x JOIN S3("uri"="c") c ON a.x = c.x
--- ! NotSupportedError 1:110 A job joins its source with one table, or with one other stream

--- a join of two streams with windows
CREATE JOB x PROPERTIES("watermark.column"="a.ts,b.ts") ON STREAMING DO INSERT INTO t SELECT count(*) FROM S3("uri"="a") a JOIN S3("uri"="b") b ON a.x = b.x AND b.ts = a.ts + INTERVAL 1 DAY GROUP BY window(ts, '1 minute')
--- ! NotSupportedError 1:148 A JOIN together with GROUP BY window(…) is not supported

--- a source that is none in a join
CREATE JOB x PROPERTIES("watermark.column"="a.ts,b.ts") ON STREAMING DO INSERT INTO t SELECT a.x FROM FILE("uri"="/a", "format"="csv") a JOIN PULSAR("uri"="b") b ON a.x = b.x AND b.ts = a.ts + INTERVAL 1 DAY
--- ! NotSupportedError 1:143 A stream that is joined must be S3, FILE, KAFKA or KINESIS, not PULSAR

--- an offset that does not say its stream
CREATE JOB x PROPERTIES("watermark.column"="a.ts,b.ts", "offset"='{"fileName":"a"}') ON STREAMING DO INSERT INTO t SELECT a.x FROM FILE("uri"="/a", "format"="csv") a JOIN FILE("uri"="/b", "format"="csv") b ON a.x = b.x AND b.ts = a.ts + INTERVAL 1 DAY
--- ! SqlError 1:57 offset cannot be used in a join of two streams

--- a property of the second stream
CREATE JOB x PROPERTIES("watermark.column"="a.ts,b.ts") ON STREAMING DO INSERT INTO t SELECT a.x FROM FILE("uri"="/a", "format"="csv") a JOIN FILE("uri"="/b", "format"="csvv") b ON a.x = b.x AND b.ts = a.ts + INTERVAL 1 DAY
--- ! SqlError 1:160 csvv

--- a star in a join
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT * FROM S3("uri"="a") a LEFT JOIN b ON a.x = b.x
--- ! NotSupportedError 1:51 A star cannot be used in a join

--- a column of a join without its side
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a.x, y FROM S3("uri"="a") a JOIN b ON a.x = b.x
--- ! SqlError 1:56 y does not say which side of the join it is of

--- a column of a side that the join does not have
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a.x, c.y FROM S3("uri"="a") a JOIN b ON a.x = b.x
--- ! SqlError 1:56 c.y does not say which side of the join it is of

--- a join without names
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT b.x FROM S3("uri"="a") JOIN b ON x = b.x
--- ! SqlError 1:74 In a join, the source and the table have names of their own

--- a join without an equality
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN b ON a.x > b.x OR a.x = b.x
--- ! SqlError 1:86 something of the source that equals something of the table

--- a join of one side with itself
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN b ON b.y = b.x
--- ! SqlError 1:86 something of the source that equals something of the table

--- a join with USING
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN b USING (x)
--- ! NotSupportedError 1:83 JOIN … USING is not supported

--- two joins
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN b ON a.x = b.x JOIN c ON a.x = c.x
--- ! NotSupportedError 1:96 A job joins its source with one table

--- a join with a subquery
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN (SELECT 1) b ON a.x = b.x
--- ! NotSupportedError 1:81 A job cannot join with a subquery

--- a join with an aggregate in its condition
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN b ON a.x = max(b.x)
--- ! NotSupportedError 1:92 max is an aggregate

--- a join with windows
CREATE JOB x PROPERTIES ("watermark.column" = "at") ON STREAMING DO INSERT INTO t SELECT window_start FROM S3("uri"="a") a JOIN b ON a.x = b.x GROUP BY window(at, '1 minute')
--- ! NotSupportedError 1:129 A JOIN together with GROUP BY window(…) is not supported

--- a join with deduplication
CREATE JOB x PROPERTIES ("watermark.column" = "at", "dedup.keys" = "x") ON STREAMING DO INSERT INTO t SELECT a.x FROM S3("uri"="a") a JOIN b ON a.x = b.x
--- ! NotSupportedError 1:140 A JOIN together with dedup.keys is not supported

--- a table as the source
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT * FROM other
--- ! NotSupportedError 1:58 Only support one source in insert streaming job

--- another function as the source
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT * FROM cdc_stream("a"="b")
--- ! NotSupportedError 1:58 it must be S3, FILE, KAFKA or KINESIS, not cdc_stream

--- a subquery as the source
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT * FROM (SELECT 1) q
--- ! NotSupportedError 1:58 Only support one source in insert streaming job

--- the change log of a database
CREATE JOB x ON STREAMING FROM MYSQL("a"="b") TO DATABASE d
--- ! NotSupportedError 1:27 change log of a database is not supported

--- an aggregate
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT city, sum(amount) FROM S3("uri"="a")
--- ! NotSupportedError 1:57 sum is an aggregate

--- group by
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT city FROM S3("uri"="a") GROUP BY city
--- ! NotSupportedError 1:84 GROUP BY needs exactly one window

--- order by after where
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT city FROM S3("uri"="a") WHERE a > 1 ORDER BY city
--- ! NotSupportedError 1:87 ORDER BY is not possible in a streaming job

--- limit
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT city FROM S3("uri"="a") LIMIT 5
--- ! NotSupportedError 1:75 LIMIT is not possible in a streaming job

--- distinct
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT DISTINCT city FROM S3("uri"="a")
--- ! NotSupportedError 1:51 DISTINCT is not possible in a streaming job

--- union
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a FROM S3("uri"="a") UNION ALL SELECT b FROM S3("uri"="b")
--- ! NotSupportedError 1:72 UNION is not possible

--- a window function
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT row_number() OVER (ORDER BY a) FROM S3("uri"="a")
--- ! NotSupportedError 1:51 window function

--- a subquery in a condition
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a FROM S3("uri"="a") WHERE a IN (SELECT b FROM c)
--- ! NotSupportedError 1:91 A subquery is not possible

--- many rows from one
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT posexplode(a) FROM S3("uri"="a")
--- ! NotSupportedError 1:51 posexplode makes many rows from one

--- half an expression
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT a,
  b + FROM S3("uri"="a")
--- ! SqlError 2:5 mismatched input '+'

--- a bracket that is not closed
CREATE JOB x ON STREAMING DO INSERT INTO t SELECT upper(a FROM S3("uri"="a")
--- ! SqlError 1:56 ( is not closed

--- a target column twice
CREATE JOB x ON STREAMING DO INSERT INTO t (a, A) SELECT a, b FROM S3("uri"="a")
--- ! SqlError 1:48 Column A is named twice

--- too many parts
CREATE ROUTINE LOAD a.b.c.d ON t FROM KAFKA("a"="b")
--- ! SqlError 1:21 labelParts in load should be [[catalog.]db.]label

--- a name that begins with a digit
CREATE ROUTINE LOAD 1x ON t FROM KAFKA("a"="b")
--- ! SqlError 1:21 Incorrect ROUTINE LOAD NAME name '1x'

--- a name that is too long
CREATE ROUTINE LOAD abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm ON t FROM KAFKA("a"="b")
--- ! SqlError 1:21 longer than 64 or contains illegal characters

--- a clause twice
CREATE ROUTINE LOAD j ON t WHERE a = 1, COLUMNS(a), WHERE b = 2 FROM KAFKA("a"="b")
--- ! SqlError 1:53 repeat setting of clause load property

--- a comma before PROPERTIES
CREATE ROUTINE LOAD j ON t WHERE a = 1, PROPERTIES("a"="b") FROM KAFKA("a"="b")
--- ! SqlError 1:41 mismatched input 'PROPERTIES', expected a clause

--- half a clause
CREATE ROUTINE LOAD j ON t PRECEDING a = 1 FROM KAFKA("a"="b")
--- ! SqlError 1:38 mismatched input 'a', expected FILTER

--- no source
CREATE ROUTINE LOAD j ON t PROPERTIES("a"="b")
--- ! SqlError 1:47 expected FROM

--- two columns to order by
CREATE ROUTINE LOAD j ON t ORDER BY a b FROM KAFKA("a"="b")
--- ! SqlError 1:39 mismatched input 'b'

--- an aggregate in a filter
CREATE ROUTINE LOAD j ON t WHERE max(a) > 1 FROM KAFKA("a"="b")
--- ! NotSupportedError 1:34 max is an aggregate

--- an unknown merge type
CREATE ROUTINE LOAD j ON t WITH UPSERT FROM KAFKA("a"="b")
--- ! SqlError 1:33 mismatched input 'UPSERT', expected APPEND, MERGE or DELETE

--- tasks of no job
SHOW ROUTINE LOAD TASK
--- ! SqlError 1:23 please designate a jobName

--- a table without a format
CREATE TABLE t (a int)
--- ! SqlError 1:23 expected USING

--- a table as Doris makes it
CREATE TABLE t (a int) DUPLICATE KEY(a) DISTRIBUTED BY HASH(a) BUCKETS 3
--- ! SqlError 1:24 mismatched input 'DUPLICATE', expected USING

--- a primary key
CREATE TABLE t (a int NOT NULL, PRIMARY KEY (a)) USING paimon
--- ! SqlError 1:33 PRIMARY KEY is not supported

--- an unknown type
CREATE TABLE t (a int, b bitmap) USING delta
--- ! SqlError 1:26 mismatched input 'bitmap'

--- a decimal without digits
CREATE TABLE t (a decimal) USING delta
--- ! NotSupportedError 1:19 DECIMAL without digits

--- too many digits
CREATE TABLE t (a decimal(39, 2)) USING delta
--- ! SqlError 1:19 decimal(39,2) is not possible

--- a column twice
CREATE TABLE t (a int, A string) USING delta
--- ! SqlError 1:24 Column A is there twice

--- partitioned by a column that is not there
CREATE TABLE t (a int) USING delta PARTITIONED BY (b)
--- ! SqlError 1:52 no column b

--- an unknown transform
CREATE TABLE t (a int) USING iceberg PARTITIONED BY (weeks(a))
--- ! SqlError 1:54 mismatched input 'weeks'

--- a name that leaves the folder
CREATE DATABASE `../x`
--- ! SqlError 1:17 cannot be the name of a database

--- an option twice
CREATE TABLE t (a int) USING delta COMMENT 'a' COMMENT 'b'
--- ! SqlError 1:48 mismatched input 'COMMENT'

--- a query that is none
SELECT * FROM WHERE
--- ! SqlError 1:15 mismatched input

--- accept a rollback without a choice
ALTER JOB x ACCEPT ROLLBACK
--- ! SqlError 1:28 expected LOAD
