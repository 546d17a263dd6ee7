--- a user
create user if not exists jack@'%' identified by 'it''s a "secret"'
--- =>
CREATE USER IF NOT EXISTS 'jack' IDENTIFIED BY 'it''s a "secret"'

--- a user with an unquoted host and a double-quoted password
CREATE USER jack @ % IDENTIFIED BY "a\\b"
--- =>
CREATE USER 'jack' IDENTIFIED BY 'a\\b'

--- a user without a password
CREATE USER 'jack.of-all@example.org'
--- =>
CREATE USER 'jack.of-all@example.org'

--- a user whose name is a keyword
CREATE USER `user`
--- =>
CREATE USER 'user'

--- a new password
ALTER USER root IDENTIFIED BY 'x'
--- =>
ALTER USER 'root' IDENTIFIED BY 'x'

--- a user goes
DROP USER jack@"%"
--- =>
DROP USER 'jack'

--- a user goes, if there
drop user if exists 'jack'
--- =>
DROP USER IF EXISTS 'jack'

--- privileges on a table, in one order and each once
GRANT select, LOAD, select ON sales.orders TO 'jack'@'%'
--- =>
GRANT LOAD, SELECT ON sales.orders TO 'jack'

--- privileges as Doris spells them
GRANT LOAD_PRIV, SELECT_PRIV ON sales.* TO 'jack'@'%'
--- =>
GRANT LOAD, SELECT ON sales.* TO 'jack'

--- with the catalog of Doris
GRANT ADMIN_PRIV ON internal.sales.orders TO jack
--- =>
GRANT ADMIN ON sales.orders TO 'jack'

--- everything in every catalog
GRANT SELECT_PRIV ON *.*.* TO jack
--- =>
GRANT SELECT ON *.* TO 'jack'

--- a database without its star
GRANT LOAD ON sales TO jack
--- =>
GRANT LOAD ON sales.* TO 'jack'

--- a database that is called like the catalog
GRANT LOAD ON internal.orders TO jack
--- =>
GRANT LOAD ON internal.orders TO 'jack'

--- one star
GRANT ADMIN ON * TO jack
--- =>
GRANT ADMIN ON *.* TO 'jack'

--- odd names
GRANT LOAD ON `my db`.`a.b` TO jack
--- =>
GRANT LOAD ON `my db`.`a.b` TO 'jack'

--- a database that is called star
GRANT LOAD ON `*` TO jack
--- =>
GRANT LOAD ON `*`.* TO 'jack'

--- privileges taken back
revoke load on sales.orders from jack
--- =>
REVOKE LOAD ON sales.orders FROM 'jack'

--- my grants
SHOW GRANTS
--- =>
SHOW GRANTS

--- the grants of another
SHOW GRANTS FOR jack@'%'
--- =>
SHOW GRANTS FOR 'jack'

--- all users
show users
--- =>
SHOW USERS

--- a token
CREATE TOKEN FOR jack COMMENT 'the nightly check'
--- =>
CREATE TOKEN FOR 'jack' COMMENT 'the nightly check'

--- a token without a comment
CREATE TOKEN FOR 'jack'
--- =>
CREATE TOKEN FOR 'jack'

--- a token that expires and reads
create token for jack comment 'c' expires in 1 day scope read only
--- =>
CREATE TOKEN FOR 'jack' COMMENT 'c' EXPIRES IN 1 DAYS SCOPE READ ONLY

--- a token for ever, with all rights
CREATE TOKEN FOR jack NEVER EXPIRES SCOPE FULL
--- =>
CREATE TOKEN FOR 'jack' NEVER EXPIRES

--- a token for some tables
CREATE TOKEN FOR jack SCOPE (load, SELECT ON sales.orders, SELECT ON hr)
--- =>
CREATE TOKEN FOR 'jack' SCOPE (LOAD, SELECT ON sales.orders, SELECT ON hr.*)

--- a token goes
DROP TOKEN t0a1b2c3d4e5f
--- =>
DROP TOKEN 't0a1b2c3d4e5f'

--- all tokens
SHOW TOKENS
--- =>
SHOW TOKENS

--- a role
create role loader
--- =>
CREATE ROLE 'loader'

--- a role, unless it is there
CREATE ROLE IF NOT EXISTS 'loader'
--- =>
CREATE ROLE IF NOT EXISTS 'loader'

--- a role goes
DROP ROLE IF EXISTS `loader`
--- =>
DROP ROLE IF EXISTS 'loader'

--- privileges for a role
GRANT LOAD_PRIV, SELECT_PRIV ON internal.sales.* TO ROLE 'loader'
--- =>
GRANT LOAD, SELECT ON sales.* TO ROLE 'loader'

--- privileges taken from a role
REVOKE LOAD ON sales.orders FROM ROLE loader
--- =>
REVOKE LOAD ON sales.orders FROM ROLE 'loader'

--- a user who is called role
GRANT LOAD ON sales.orders TO 'role'
--- =>
GRANT LOAD ON sales.orders TO 'role'

--- roles for a user, as Doris writes it
GRANT 'loader', 'reader' TO 'jack'@'%'
--- =>
GRANT 'loader', 'reader' TO 'jack'

--- a role without quotes
grant loader to jack
--- =>
GRANT 'loader' TO 'jack'

--- a role that is called as a privilege
GRANT 'LOAD' TO jack
--- =>
GRANT 'LOAD' TO 'jack'

--- a role taken back
REVOKE loader, reader FROM jack
--- =>
REVOKE 'loader', 'reader' FROM 'jack'

--- all roles
SHOW ROLES
--- =>
SHOW ROLES

--- the audit log
show audit
--- =>
SHOW AUDIT

--- the audit log, narrowed
SHOW AUDIT FOR jack KIND 'LOGIN' RESULT "denied" SINCE '2026-01-31T20:00:00+02:00' LIKE 'CREATE%' LIMIT 5
--- =>
SHOW AUDIT FOR 'jack' KIND 'login' RESULT 'denied' SINCE '2026-01-31 18:00:00+00:00' LIKE 'CREATE%' LIMIT 5

--- the identity of the service
grant usage on identity SERVICE to jack
--- =>
GRANT USAGE ON IDENTITY service TO 'jack'

--- it is taken back
REVOKE USAGE_PRIV ON IDENTITY service FROM 'jack'@'%'
--- =>
REVOKE USAGE ON IDENTITY service FROM 'jack'

--- a database that is called identity
GRANT LOAD ON identity TO jack
--- =>
GRANT LOAD ON identity.* TO 'jack'

