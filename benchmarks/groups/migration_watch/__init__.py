"""What the watch of a target sees of migrations, how soon, and what that costs."""
