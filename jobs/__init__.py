"""Where, when and in what order stages run: command line, job file, storage, Ray. Imports pipeline and schemas."""
