"""Make the first screen: how much is flagged, against before, where it concentrates, and the trend."""
