// Not under src, so the recipe leaves it out.
