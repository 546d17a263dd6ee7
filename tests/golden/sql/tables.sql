--- a table
CREATE TABLE sales.orders (id BIGINT NOT NULL, city STRING, amount DECIMAL(18,2)) USING delta
--- =>
CREATE TABLE sales.orders (
    id bigint NOT NULL,
    city string,
    amount decimal(18,2)
) USING delta

--- everything a table can say
create table if not exists sales.clicks (
    id largeint not null comment 'whose',
    name varchar(20) null,
    code char(3) not null,
    at datetime(3),
    moment timestamp,
    `day` datev2,
    doc json,
    price decimalv3(10),
    tags array<string>,
    attributes map<string, array<int>>,
    place struct<lat: double, lon double>
) using ICEBERG
partitioned by (days(at), bucket(16, id), truncate(4, name), `day`, hour(moment), month(at), years(moment))
comment 'what people do'
location 's3://lake/clicks'
tblproperties ('write.parquet.compression-codec' = 'zstd', "a" = 1)
--- =>
CREATE TABLE IF NOT EXISTS sales.clicks (
    id decimal(38,0) NOT NULL COMMENT 'whose',
    name varchar(20),
    code varchar(3) NOT NULL,
    at timestamp_ntz,
    moment timestamp,
    day date,
    doc string,
    price decimal(10,0),
    tags array<string>,
    attributes map<string,array<int>>,
    place struct<lat:double,lon:double>
) USING iceberg
PARTITIONED BY (days(at), bucket(16, id), truncate(4, name), day, hours(moment), months(at), years(moment))
LOCATION 's3://lake/clicks'
COMMENT 'what people do'
TBLPROPERTIES (
    "write.parquet.compression-codec" = "zstd",
    "a" = "1"
)

--- every plain type
CREATE TABLE t (a boolean, b tinyint, c smallint, d int(11), e integer, f bigint, g float, h double, i text, j variant, k jsonb, l binary, m date, n datetimev2(6), o timestamp_ntz, p timestamp_ltz, q real, r double precision, s varchar, t2 varchar(*), u numeric(5,2), v decimalv2(27,9)) USING delta
--- =>
CREATE TABLE t (
    a boolean,
    b tinyint,
    c smallint,
    d int,
    e int,
    f bigint,
    g float,
    h double,
    i string,
    j string,
    k string,
    l binary,
    m date,
    n timestamp_ntz,
    o timestamp_ntz,
    p timestamp,
    q float,
    r double,
    s string,
    t2 string,
    u decimal(5,2),
    v decimal(27,9)
) USING delta

--- a column that looks like a keyword
CREATE TABLE t (`from` int, `two words` int, `tick``s` int) USING iceberg PARTITIONED BY (`from`)
--- =>
CREATE TABLE t (
    `from` int,
    `two words` int,
    `tick``s` int
) USING iceberg
PARTITIONED BY (`from`)

--- drop table
DROP TABLE sales.orders
--- =>
DROP TABLE sales.orders

--- drop table if exists
DROP TABLE IF EXISTS orders
--- =>
DROP TABLE IF EXISTS orders

--- create database
CREATE DATABASE sales
--- =>
CREATE DATABASE sales

--- create database if not exists
CREATE DATABASE IF NOT EXISTS `sales-2`
--- =>
CREATE DATABASE IF NOT EXISTS `sales-2`

--- drop database
DROP DATABASE sales
--- =>
DROP DATABASE sales

--- drop database if exists
DROP DATABASE IF EXISTS sales
--- =>
DROP DATABASE IF EXISTS sales

--- use
USE sales
--- =>
USE sales

--- show databases
SHOW DATABASES
--- =>
SHOW DATABASES

--- show tables
SHOW TABLES
--- =>
SHOW TABLES

--- show tables of a database
SHOW TABLES FROM sales
--- =>
SHOW TABLES FROM sales

--- show tables, the other word
show tables in sales
--- =>
SHOW TABLES FROM sales

--- describe
DESCRIBE sales.orders
--- =>
DESCRIBE sales.orders

--- desc
DESC orders
--- =>
DESCRIBE orders

--- compaction by hand
admin compact table sales.orders dry run
--- =>
ADMIN COMPACT TABLE sales.orders DRY RUN

--- compaction as Spark's users say it
optimize table orders
--- =>
ADMIN COMPACT TABLE orders

--- how files stand
show compaction in sales.orders
--- =>
SHOW COMPACTION FROM sales.orders

--- how files of all tables stand
show compaction
--- =>
SHOW COMPACTION

--- compaction off
alter table sales.orders set tblproperties ('compaction' = 'OFF')
--- =>
ALTER TABLE sales.orders SET (
    "compaction" = "OFF"
)

--- a catalog
create catalog if not exists lake comment 'theirs' properties ('type' = 'iceberg', "iceberg.catalog.type" = "rest")
--- =>
CREATE CATALOG IF NOT EXISTS lake
COMMENT 'theirs'
PROPERTIES (
    "type" = "iceberg",
    "iceberg.catalog.type" = "rest"
)

--- a catalog with other properties
alter catalog lake set properties ("warehouse" = "w")
--- =>
ALTER CATALOG lake SET PROPERTIES (
    "warehouse" = "w"
)

--- a catalog with another name
alter catalog lake rename pond
--- =>
ALTER CATALOG lake RENAME pond

--- a catalog with another comment
alter catalog lake modify comment "x"
--- =>
ALTER CATALOG lake MODIFY COMMENT 'x'

--- no catalog
drop catalog if exists lake
--- =>
DROP CATALOG IF EXISTS lake

--- a database of a catalog
use lake.sales
--- =>
USE lake.sales

--- tables of a database of a catalog
show tables in lake.sales
--- =>
SHOW TABLES FROM lake.sales

--- databases of a catalog
show databases from lake
--- =>
SHOW DATABASES FROM lake

--- a table of a catalog that goes with its files
drop table if exists lake.sales.orders purge
--- =>
DROP TABLE IF EXISTS lake.sales.orders PURGE
