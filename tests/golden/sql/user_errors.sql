--- a user without a name
CREATE USER IDENTIFIED BY
--- ! SqlError 1:24 mismatched input 'BY', expected the end of the statement

--- no name at all
CREATE USER
--- ! SqlError 1:12 ends too early, expected the name of a user

--- a name with a colon
CREATE USER 'a:b'
--- ! SqlError 1:13 cannot be the name of a user

--- an empty name
CREATE USER ''
--- ! SqlError 1:13 cannot be the name of a user

--- another host
CREATE USER 'jack'@'10.0.0.1'
--- ! NotSupportedError 1:20 A user is the same wherever they come from

--- no host
CREATE USER jack@
--- ! NotSupportedError 1:18 only the host '%'

--- a change of nothing
ALTER USER jack
--- ! SqlError 1:16 expected IDENTIFIED

--- no password
ALTER USER jack IDENTIFIED BY
--- ! SqlError 1:30 expected a password in quotes

--- an empty password
ALTER USER jack IDENTIFIED BY ''
--- ! SqlError 1:31 The password is empty

--- something else than a user
CREATE GROUP r
--- ! SqlError 1:8 mismatched input 'GROUP', expected JOB, ROUTINE, TABLE, DATABASE, CATALOG, USER, ROLE or TOKEN

--- an unknown privilege
GRANT LOAD, GRANT_PRIV ON * TO jack
--- ! SqlError 1:13 mismatched input 'GRANT_PRIV', expected ADMIN, LOAD, SELECT or USAGE

--- no scope
GRANT LOAD TO jack
--- ! SqlError 1:12 mismatched input 'TO', expected ON

--- a scope without an end
GRANT LOAD ON sales. TO jack
--- ! SqlError 1:25 mismatched input 'jack', expected TO

--- too many parts
GRANT LOAD ON a.b.c.d TO jack
--- ! SqlError 1:15 A privilege holds for

--- a database of a catalog that is called star
GRANT LOAD ON lake.`*`.t TO jack
--- ! SqlError 1:15 cannot be the name of a database

--- any database but one table
GRANT LOAD ON *.orders TO jack
--- ! SqlError 1:15 a table of any database

--- any catalog but one table
GRANT LOAD ON *.sales.orders TO jack
--- ! SqlError 1:15 a table of any database

--- a name that no table has
GRANT LOAD ON sales.`../x` TO jack
--- ! SqlError 1:21 cannot be the name of a database or table

--- to nobody
GRANT LOAD ON sales.*
--- ! SqlError 1:22 ends too early, expected TO

--- to where from should be
REVOKE LOAD ON sales.* TO jack
--- ! SqlError 1:24 mismatched input 'TO', expected FROM

--- a token for nobody
CREATE TOKEN jack
--- ! SqlError 1:14 mismatched input 'jack', expected FOR

--- a token without an id
DROP TOKEN ;
--- ! SqlError 1:12 expected the id of a token

--- a token that is over at once
CREATE TOKEN FOR jack EXPIRES IN 0 DAYS
--- ! SqlError 1:34 A token is valid for 1 to 36500 days

--- a token without a unit
CREATE TOKEN FOR jack EXPIRES IN 3
--- ! SqlError 1:35 ends too early, expected DAYS or DAY

--- a scope that is none
CREATE TOKEN FOR jack SCOPE SOME
--- ! SqlError 1:29 expected FULL, READ ONLY or (

--- a scope without an end
CREATE TOKEN FOR jack SCOPE (SELECT ON sales.*
--- ! SqlError 1:47 ends too early, expected )

--- a role for a role
GRANT 'loader' TO ROLE reader
--- ! SqlError 1:24 mismatched input 'reader'

--- a role on something
GRANT 'loader' ON sales.* TO jack
--- ! SqlError 1:16 mismatched input 'ON', expected TO

--- a name that no role has
CREATE ROLE 'a b'
--- ! SqlError 1:13 cannot be the name of a role

--- a kind that is none
SHOW AUDIT KIND 'loggin'
--- ! SqlError 1:17 expected login or account or statement or request

--- a time that is none
SHOW AUDIT SINCE 'yesterday'
--- ! SqlError 1:18 'yesterday' is not a time

--- an identity and a table in one grant
GRANT USAGE, LOAD ON IDENTITY service TO jack
--- ! SqlError 1:7 USAGE is for an identity, and the other privileges are for tables

--- an identity that nobody has
GRANT USAGE ON IDENTITY root TO jack
--- ! SqlError 1:25 mismatched input 'root', expected service

--- USAGE of a table
GRANT USAGE ON sales.orders TO jack
--- ! SqlError 1:16 mismatched input 'sales', expected IDENTITY

