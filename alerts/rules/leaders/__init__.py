"""Rules on partitions that their preferred leader does not lead."""
