"""What everything else stands on: the door for arrays, the compiled loops, lookup of names, atomic files."""
