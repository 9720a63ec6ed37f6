"""The critic's loss around trained weights, as numbers, figures and a page."""
