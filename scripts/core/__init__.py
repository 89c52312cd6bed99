"""What every command uses: errors, signals, time, options of the command line, and what is printed. It knows no AWS."""
