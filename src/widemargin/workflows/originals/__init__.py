"""What programs of other systems do, as functions: files in, results out whose lines are those the programs print."""
