"""What streaming queries share: complete ticks, admission of batches, warm-up."""
