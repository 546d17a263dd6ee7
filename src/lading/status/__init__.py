"""What is shown of jobs over time: rates, points of plots, samples of metrics. Pure."""
