"""Telling others which data went where: OpenLineage events, from bills."""
