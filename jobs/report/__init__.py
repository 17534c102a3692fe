"""Make the HTML report, the printed tables and the review page."""
