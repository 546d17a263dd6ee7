"""The metadata store: names, states, and an index of bills. Whatever it says of progress is a copy."""
