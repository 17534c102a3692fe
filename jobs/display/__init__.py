"""What commands show: lines, tables, and log text made safe to print."""
