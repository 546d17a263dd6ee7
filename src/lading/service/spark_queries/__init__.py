"""SELECT over tables, in a Spark process of its own."""
