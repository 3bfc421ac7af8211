"""Presentation helpers that pages share: rendering, navigation, charts, labels."""
