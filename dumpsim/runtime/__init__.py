"""Memory planning, execution of programs and eager operators, sessions and their counters."""
