"""The bundled employee-handbook logs (`logs/`), their source (`items/`) and its builder."""
