"""Passes: functions from graph to graph, run in the order that `graph.lower` lists."""
