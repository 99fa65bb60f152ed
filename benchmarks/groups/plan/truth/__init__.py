"""Group ``plan_truth``: what plans said beside what came."""
