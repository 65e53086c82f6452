"""assay inside other people's tools: each file is imported only by who uses that tool."""
