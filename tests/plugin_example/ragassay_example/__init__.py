"""A plug-in for RAGAssay."""
