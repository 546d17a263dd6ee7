"""How the bytes of stream records become rows."""
