"""Programs of other systems, as `widemargin as PROGRAM` runs them: one file for each, with the table of its options."""
