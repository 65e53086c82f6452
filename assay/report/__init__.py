"""How results are shown: scaled, rounded and arranged here, and nowhere else."""
