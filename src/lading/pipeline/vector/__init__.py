"""The vector path: a task that maps rows in Arrow, exactly as Spark would."""
