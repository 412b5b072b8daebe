"""The routes of workload `http` on Granian."""
