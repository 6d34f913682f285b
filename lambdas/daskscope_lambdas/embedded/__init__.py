"""What AWS does around the functions, done on one machine: requests, processes, schedules."""
