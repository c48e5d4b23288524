"""What is answered on which path, beside the turn of a model."""
