"""What the losses of many searches and benchmarks have in common, as numbers, tables and a page."""
