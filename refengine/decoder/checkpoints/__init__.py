"""Released checkpoint layouts, read strictly: names, shapes, dtypes and config against each other."""
