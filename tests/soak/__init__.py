"""Jobs that are killed for hours, in every way there is, and a verifier that looks over their shoulder."""
