"""srt-slurm recipes as they are written: texts, dialects, sweeps and override files."""
