"""Alert rules: findings of one tick."""
