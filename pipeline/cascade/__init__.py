"""The cascade: which responses a judge is asked about, and how what it says becomes their verdict."""
