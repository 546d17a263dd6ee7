"""Where rows come from. Runs on the driver and inside Spark's Python workers: importing is quick and silent."""
