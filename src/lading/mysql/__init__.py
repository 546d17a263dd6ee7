"""The MySQL wire protocol: `mysql`, DBeaver, PyMySQL and JDBC talk to Lading."""
