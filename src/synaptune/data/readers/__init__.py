"""One module per file format; each reader turns files that were found into a `DataSet`."""
