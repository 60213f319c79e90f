"""What an upstream offset means downstream: positions, ledger, progress. No pyspark; clusters only as parameters."""
