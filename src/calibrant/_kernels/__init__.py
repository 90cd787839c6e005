"""Arrays in, arrays out: the numerical work, with no checks, no warnings, no options."""
