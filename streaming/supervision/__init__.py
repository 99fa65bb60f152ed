"""Supervision of jobs and JVMs: causes of failures, their number, restarts."""
