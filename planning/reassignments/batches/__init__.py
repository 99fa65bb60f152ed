"""Cutting a reassignment plan into batches that fit a throttle and a night."""
