"""Print the results of commands as tables, one file per result. The report shows some of them too."""
