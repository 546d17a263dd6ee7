"""Text to statements, and back."""
