"""What is declared: functions and priors, and where they are found."""
