"""What agents remember: hard filters first, similarity second."""
