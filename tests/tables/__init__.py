"""The contract every table keeps, and what is special to each format."""
