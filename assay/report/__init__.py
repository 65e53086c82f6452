"""Reports: results as terminal output, tables, figures, JSON and pages."""
