"""Everything that needs torch: losses, objectives, optimizers, data, networks, training, recipes, export."""
