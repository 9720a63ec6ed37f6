"""Methods compared over environments and seeds, as numbers, figures and a page."""
